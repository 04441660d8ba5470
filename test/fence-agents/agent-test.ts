// `npm run agent-test -- PROGRAM [--params FILE]`: whether a program keeps the contract of fence-agents/README.md, one row a
// clause. PROGRAM is one of ours by name, or any by its path. FILE tells of a device that may be switched off and on at will:
//   key=value         as the program gets it on stdin
//   unknown=PLUG      an outlet that the device does not have
//   other=PLUG        a second outlet that it has
//   wrong.KEY=VALUE   a secret that is not the right one
//   truth=COMMAND     a line of shell that prints on or off, of the outlet in $PLUG: what is so, whatever the program says
//   gone=COMMAND      a line of shell that takes the back end away in the middle of an order; back=COMMAND brings it back
// The end is 1 if a clause was broken.
import { readFileSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { argv, env, exit } from 'node:process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Programs } from '../../coordinator/host.ts'
import { findProgram, machinePrograms } from '../../coordinator/programs.ts'
import { machineClock } from '../../edge/clock.ts'
import { clauses, type Bench, type Row } from './clauses.ts'

const usage = 'npm run agent-test -- PROGRAM [--params FILE]: PROGRAM is a name in fence-agents/ or a path'

async function main(words: readonly string[]): Promise<number> {
  const input = inputOf(words)
  if (input === undefined) {
    console.error(usage)
    return 2
  }
  const found = findProgram(basename(input.program), [folderOf(input.program)])
  if ('refused' in found) {
    console.error(found.refused)
    return 2
  }
  const rows = await testAgent(input.program, input.params, (row) => console.error(`${row.verdict.padEnd(8)} ${row.clause}`))
  console.log(tableOf(rows))
  return rows.every(({ verdict }) => verdict === 'kept' || verdict === 'not run') ? 0 : 1
}

function inputOf(words: readonly string[]): { readonly program: string; readonly params: string } | undefined {
  try {
    const { values, positionals } = parseArgs({ args: [...words], options: { params: { type: 'string' } }, allowPositionals: true })
    const [program, ...more] = positionals
    return program === undefined || more.length > 0 ? undefined : { program, params: values.params === undefined ? '' : readFileSync(values.params, 'utf8') }
  } catch {
    return undefined // words that are not known, or a file that is not there: the usage tells
  }
}

export async function testAgent(program: string, params: string, heard: (row: Row) => void): Promise<readonly Row[]> {
  // A program of the ClusterLabs finds its own tools in the usual places.
  const programs = machinePrograms({ folders: [folderOf(program)], clock: machineClock, path: env['PATH'] ?? '' })
  try {
    return await testOver(programs, program, params, heard)
  } finally {
    await programs.close()
  }
}

export async function testOver(programs: Programs, program: string, params: string, heard: (row: Row) => void): Promise<readonly Row[]> {
  const rows: Row[] = []
  const bench: Bench = {
    ...deviceOf(params),
    run: async (stdin, within) => {
      const began = performance.now()
      const end = await programs.run({ agent: basename(program), stdin, environment: { HOLDFAST_DEADLINE: String(within), PYTHONWARNINGS: 'ignore' }, within })
      return { ...end, took: Math.round(performance.now() - began) }
    },
  }
  for (const clause of clauses) {
    const row = await clause(bench)
    rows.push(row)
    heard(row)
  }
  return rows
}

/** What FILE would hold. */
export function linesOf(params: Readonly<Record<string, string>>): string {
  return Object.entries(params).map(([key, value]) => `${key}=${value}\n`).join('')
}

function folderOf(program: string): string {
  return program.includes('/') ? resolve(dirname(program)) : fileURLToPath(new URL('../../fence-agents', import.meta.url))
}

function deviceOf(params: string): Omit<Bench, 'run'> {
  const given: Record<string, string> = {}
  const about: Record<string, string> = {}
  for (const entry of params.split('\n').map((raw) => raw.trim()).filter((one) => one !== '' && !one.startsWith('#'))) {
    const [key = '', value = ''] = [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]
    const apart = ['unknown', 'other', 'truth', 'gone', 'back'].includes(key) || key.startsWith('wrong.')
    ;(apart ? about : given)[key] = value
  }
  const wrong = Object.fromEntries(Object.entries(about).flatMap(([key, value]) => (key.startsWith('wrong.') ? [[key.slice('wrong.'.length), value]] : [])))
  const { unknown, other, truth, gone, back } = about
  return {
    given, wrong,
    ...(unknown === undefined ? {} : { unknown }), ...(other === undefined ? {} : { other }), ...(truth === undefined ? {} : { truth }),
    ...(gone === undefined || back === undefined ? {} : { backEnd: { gone, back } }),
  }
}

export function tableOf(rows: readonly Row[]): string {
  return [line(['clause', 'verdict', 'what was seen', 'ms']), '|---|---|---|---|', ...rows.map((row) => line([row.clause, row.verdict, row.seen, String(row.took ?? '')]))].join('\n')
}

function line(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replace(/\s+/g, ' ').trim()).join(' | ')} |`
}

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) exit(await main(argv.slice(2)))
