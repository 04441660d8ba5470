// holdfast fence-agents: the fence programs that are installed where this command runs, each with what it says of itself. They
// are found as the coordinator finds them, and asked as it asks them; no device is asked anything.
import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { readMetadata, type AgentParameter } from '../core/agent-metadata.ts'
import { inputOf } from '../core/contract.ts'
import { resolveParameters } from '../coordinator/fence-config-secret.ts'
import type { ProgramEnd, Programs } from '../coordinator/host.ts'
import { findProgram } from '../coordinator/programs.ts'
import { few } from './claim.ts'
import type { Paint } from './paint.ts'

export interface FenceProgram {
  readonly name: string
  readonly file: string
  /** Absent: it tells none. */
  readonly version?: string
  readonly says: string
  readonly actions: readonly string[]
  readonly parameters: readonly FenceParameter[]
}

export interface FenceParameter extends Pick<AgentParameter, 'name' | 'kind' | 'required' | 'options'> {
  readonly says: string
  /** Its value never leaves the coordinator but on the program's stdin, however it was written. */
  readonly secret: boolean
  /** It names a file: what a Secret holds for it is written to one. */
  readonly file: boolean
  /** In a fence ConfigMap it is a fault. */
  readonly refused: boolean
}

export interface Undescribed {
  readonly name: string
  readonly file: string
  readonly because: string
}

/** Ours come with this command, in one release. */
const ownVersion = '0.1.0'
/** A Python that starts cold on a busy machine. */
const within = 30_000
const atOnce = 4
const mostPrograms = 1_000
/** A column of a person's terminal. */
const widest = 34

/** As HOLDFAST_FENCE_AGENTS says, which every replica has; else those beside this command, and ClusterLabs' of this machine. */
export function foldersOf(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  const said = (environment['HOLDFAST_FENCE_AGENTS'] ?? '').split(':').filter((one) => one !== '')
  const [bundled, source] = [join(import.meta.dirname, 'fence-agents'), join(dirname(import.meta.dirname), 'fence-agents')]
  return said.length > 0 ? said : [existsSync(bundled) ? bundled : source, '/usr/sbin/fence_*']
}

/** ClusterLabs', beside its programs: asked what they are they would begin to serve, and go on. */
const daemons: ReadonlySet<string> = new Set(['fence_virtd', 'fence_sanlockd'])

export function installedIn(folders: readonly string[]): readonly string[] {
  const names = new Set(folders.flatMap((entry) => (entry.endsWith('*') ? namesIn(dirname(entry)).filter((name) => name.startsWith(basename(entry).slice(0, -1))) : namesIn(entry))))
  return [...names].filter((name) => !daemons.has(name) && 'file' in findProgram(name, folders)).toSorted().slice(0, mostPrograms)
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return [] // not there: as good as empty
  }
}

export async function describe(names: readonly string[], folders: readonly string[], programs: Programs): Promise<readonly (FenceProgram | Undescribed)[]> {
  const described = new Map<string, FenceProgram | Undescribed>()
  const left = [...names]
  await Promise.all(Array.from({ length: atOnce }, async () => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) described.set(name, await describeOne(name, folders, programs))
  }))
  return names.flatMap((name) => described.get(name) ?? [])
}

async function describeOne(name: string, folders: readonly string[], programs: Programs): Promise<FenceProgram | Undescribed> {
  const found = findProgram(name, folders)
  if ('refused' in found) return { name, file: '', because: found.refused }
  const { file, byNode } = found
  const asked = (stdin: string) => programs.run({ agent: name, stdin, environment: { PYTHONWARNINGS: 'ignore' }, within })
  const told = await asked('action=metadata\n')
  const parameters = told.exitCode === 0 ? readMetadata(told.stdout) : undefined
  if (parameters === undefined) return { name, file, because: whyNot(told) }
  // With `monitor`, so that one that heeds no such word looks for a device at most, and finds none named.
  const version = byNode ? ownVersion : parameters.has('version') ? versionIn(await asked('action=monitor\nversion=1\n')) : undefined
  return { name, file, ...(version === undefined ? {} : { version }), ...wordsOf(told.stdout, parameters) }
}

function whyNot({ refused, late, exitCode, stderr }: ProgramEnd): string {
  if (refused !== undefined) return refused
  if (late) return `no answer within ${within / 1_000} s`
  const last = stderr.trim().split('\n').at(-1) ?? ''
  return exitCode === 0 ? 'what it says of itself has no parameters' : `exit ${exitCode ?? 'by a signal'}${last === '' ? '' : `: ${last.slice(0, 120)}`}`
}

function versionIn({ exitCode, stdout }: ProgramEnd): string | undefined {
  return exitCode === 0 ? /^\d[\w.+~-]{0,63}$/.exec(stdout.trim())?.[0] : undefined
}

function wordsOf(text: string, known: ReadonlyMap<string, AgentParameter>): Pick<FenceProgram, 'says' | 'actions' | 'parameters'> {
  const sentences = new Map([...text.matchAll(/<parameter\s[^>]*?\bname="([^"]*)"[^>]*>(.*?)<\/parameter>/gs)].map(([, name = '', body = '']) => [name, plain(/<shortdesc[^>]*>(.*?)<\/shortdesc>/s.exec(body)?.[1])]))
  // Each old name stands there a second time, by itself.
  const old = new Set([...known.values()].flatMap(({ obsoletes }) => obsoletes ?? []))
  return {
    says: plain(/<resource-agent\s[^>]*?\bshortdesc="([^"]*)"/.exec(text)?.[1]),
    actions: [...text.matchAll(/<action\s+name="([^"]*)"/g)].map(([, action]) => plain(action)),
    parameters: [...known.values()].filter(({ name }) => name !== 'action' && !old.has(name)).map(({ name, kind, required, options }) => ({ name, kind, required, options, says: sentences.get(name) ?? '', ...treatmentOf(name) })),
  }
}

/** By the coordinator's own rules, of a text that was written as it is and of one out of a Secret. */
function treatmentOf(name: string): Pick<FenceParameter, 'secret' | 'file' | 'refused'> {
  const [written, kept] = [resolveParameters({ [name]: 'text' }, () => undefined), resolveParameters({ [name]: { secret: 's', key: 'k' } }, () => 'text')]
  return { secret: 'secrets' in written && written.secrets.length > 0, file: 'files' in kept && name in kept.files, refused: 'refused' in inputOf('off', { [name]: 'yes' }) }
}

const entities: ReadonlyMap<string, string> = new Map([['&lt;', '<'], ['&gt;', '>'], ['&quot;', '"'], ['&apos;', "'"], ['&amp;', '&']])

/** Whatever a program prints: one line, and no word to the terminal. */
function plain(text = ''): string {
  return text.replace(/&(lt|gt|quot|apos|amp);/g, (entity) => entities.get(entity) ?? '').replace(/[\s\p{Cc}]+/gu, ' ').trim().slice(0, 300)
}

export function programLines(all: readonly (FenceProgram | Undescribed)[], paint: Paint): readonly string[] {
  return all.flatMap((program) => {
    if ('because' in program) return [`${paint.warn(`${paint.glyphs.warn} ${program.name}`)}   does not say what it is: ${program.because}`]
    const { name, version, says, actions, parameters } = program
    const [needs, secret] = [parameters.filter(({ required }) => required), parameters.filter((one) => one.secret && !one.refused)].map((chosen) => few(chosen.map((one) => one.name)))
    const facts = [actions.join(' '), ...(needs === '' ? [] : [`needs ${needs}`]), ...(secret === '' ? [] : [`secret ${secret}`]), `${parameters.length} parameters`]
    return [`${paint.bold(name)}${version === undefined ? '' : ` ${version}`}   ${says}`, paint.dim(`    ${facts.join('; ')}`)]
  })
}

/** One program, with each of its parameters. */
export function wholeLines(program: FenceProgram | Undescribed, paint: Paint): readonly string[] {
  if ('because' in program) return programLines([program], paint)
  const { file, parameters } = program
  const rows = parameters.map((one) => [one.name, one.options.length > 0 ? one.options.join('|') : one.kind, [...(one.required ? ['required'] : []), ...(one.secret ? ['secret'] : []), ...(one.file ? ['file'] : []), ...(one.refused ? ['refused'] : [])].join(' '), one.says] as const)
  const widths = [0, 1, 2].map((column) => Math.min(widest, Math.max(0, ...rows.map((row) => row[column]?.length ?? 0))))
  return [
    ...programLines([program], paint), paint.dim(`    ${file}`),
    ...rows.map((row) => `    ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd()),
  ]
}
