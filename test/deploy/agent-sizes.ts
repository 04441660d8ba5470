// `node test/deploy/agent-sizes.ts`: how large each fence agent's one file is, and how long it takes to begin. The table goes into
// docs/fence-agents.md, between its two marks; a test holds its sizes to what is built.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { execPath } from 'node:process'
import { bundle, programs, type Program } from '../../deploy/build.ts'

const document = 'docs/fence-agents.md'
const [start, end] = ['<!-- made by: node test/deploy/agent-sizes.ts -->', '<!-- sizes made so far -->']
const runs = 10

export const agentsBuilt: readonly Program[] = programs().filter(({ to }) => to.startsWith('fence-agents/'))

export function agentName({ to }: Program): string {
  return basename(to, '.mjs')
}

/** What the document says, in KiB by the program's name. */
export function sizesTold(text = readFileSync(document, 'utf8')): ReadonlyMap<string, number> {
  return new Map([...text.slice(...marked(text)).matchAll(/^\| `([^`]+)` \| (\d+) \|/gm)].map(([, name = '', size]) => [name, Number(size)]))
}

/** From behind the first mark to the second. */
function marked(text: string): [number, number] {
  const [from, to] = [text.indexOf(start), text.indexOf(end)]
  if (from === -1 || to < from) throw new Error(`${document} lacks its two marks: ${start} and ${end}`)
  return [from + start.length, to]
}

async function measure(folder: string): Promise<string> {
  const rows: string[] = []
  for (const program of agentsBuilt) {
    const built = await bundle(program, folder)
    if ('missing' in built) throw new Error(`${program.to}: ${built.missing}`)
    rows.push(`| \`${agentName(program)}\` | ${Math.round(built.bytes / 1024)} | ${processorTime(join(folder, program.to))} |`)
  }
  const empty = join(folder, 'empty.mjs')
  writeFileSync(empty, '')
  return [...rows, `| an empty \`node\` | | ${processorTime(empty)} |`].join('\n')
}

/** In ms, the least of several: others share the machine. Node tells nothing of what a child has used, bash does. */
function processorTime(file: string): number {
  const line = 'TIMEFORMAT="%3U %3S"; time "$0" "$1" <<< action=metadata > /dev/null'
  const times = Array.from({ length: runs }, () => {
    const said = execFileSync('bash', ['-c', `{ ${line}; } 2>&1`, execPath, file], { encoding: 'utf8' })
    const [user = Number.NaN, system = Number.NaN] = said.trim().split(' ').map(Number)
    return Math.round((user + system) * 1000)
  })
  return Math.min(...times)
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-sizes-'))
  try {
    const table = await measure(folder)
    const text = readFileSync(document, 'utf8')
    const [from, to] = marked(text)
    writeFileSync(document, `${text.slice(0, from)}\n\n| program | KiB | ms |\n|---|---|---|\n${table}\n\n${text.slice(to)}`)
    console.log(table)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (import.meta.main) await main()
