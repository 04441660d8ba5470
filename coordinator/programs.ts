// Fence programs as processes of this machine. Each run is a process group of its own, gets everything on stdin, has a
// deadline, and is over only when nothing of it is left: a grandchild that outlives its parent could switch a machine off
// long after somebody has switched it on again.
//
// What this cannot do: if the coordinator itself is killed with SIGKILL, or its machine stops, its programs live on as
// orphans. They know their deadline from HOLDFAST_DEADLINE and ours end by it, but others need not, which is why an order
// whose end nobody saw is held to be under way for its whole length and the device's `late` (core/plan.ts, mayLand).
import { accessSync, constants, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join } from 'node:path'
import { execPath } from 'node:process'
import { execa } from 'execa'
import type { Reason } from '../core/contract.ts'
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { ProgramEnd, ProgramRun, Programs } from './host.ts'
import { handedOn, secretsAmong, type Surroundings } from './programs-environment.ts'
import { groupOf, pidsNow, signalGroup, type Group } from './programs-group.ts'
import { seats, type Seats } from './programs-seats.ts'
import { tailOf } from './programs-tail.ts'
import { redactor } from './redact.ts'

export interface MachinePrograms extends Programs {
  /** Ends every group at once and takes no more runs. The owner of this process calls it on SIGINT and SIGTERM too: the
   *  default end by a signal runs no exit handlers, and groups of their own do not hear the terminal's Ctrl-C. */
  close(): Promise<void>
}

export interface MachineProgramsOptions {
  /** Where programs are found. `/usr/sbin/fence_*` allows only the names that begin so: such a folder holds other things. */
  readonly folders: readonly string[]
  readonly clock: Clock
  /** Where programs find their own tools. This node's own folder always comes first. */
  readonly path?: string
  /** The empty folder that programs run in. Without one, one is made and taken away at the end. */
  readonly emptyFolder?: string
  /** What Node made of programs in TypeScript, the same way. */
  readonly compiledFolder?: string
  readonly width?: number
  /** The environment that programs get their part of. This process's own, unless said otherwise. */
  readonly surroundings?: Surroundings
}

export const widest = 32
/** From SIGTERM to SIGKILL. */
export const termPatience: Ms = 2_000
/** From SIGKILL until we say that it cannot be ended (a process in an uninterruptible call). */
const killPatience: Ms = 5_000
/** A program that ended may have helpers that are just ending too. */
const settlePatience: Ms = 200
const outputLimit = 64 * 1024
const nameForm = /^[a-z][a-z0-9_.-]{0,63}$/
const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export function machinePrograms(options: MachineProgramsOptions): MachinePrograms {
  const seating = seats(options.width ?? widest, options.clock)
  const closing = new AbortController()
  const groups = new Set<Group>()
  const under = new Set<Promise<ProgramEnd>>()
  let own: string | undefined
  const within = (name: string) => {
    own ??= mkdtempSync(join(tmpdir(), 'holdfast-programs-'))
    mkdirSync(join(own, name), { recursive: true })
    return join(own, name)
  }
  const leave = () => {
    for (const group of groups) signalGroup(group, 'SIGKILL')
    if (own !== undefined) rmSync(own, { recursive: true, force: true })
  }
  process.once('exit', leave)
  const shared: Shared = {
    options, seating, groups, closing: closing.signal,
    emptyFolder: () => options.emptyFolder ?? within('empty'),
    compiledFolder: () => options.compiledFolder ?? within('compiled'),
    privateFolder: () => mkdtempSync(join(within('private'), 'run-')),
  }
  return {
    run(program) {
      const work = runProgram(program, shared)
      under.add(work)
      return work.finally(() => under.delete(work))
    },
    async close() {
      closing.abort()
      await Promise.all(under)
      process.off('exit', leave)
      leave()
    },
  }
}

interface Shared {
  readonly options: MachineProgramsOptions
  readonly seating: Seats
  readonly groups: Set<Group>
  emptyFolder(): string
  /** Where Node keeps what it made of a program in TypeScript: to make it anew is half of such a program's start. Nobody else
   *  can write there, and it goes when we go, unless whoever runs us keeps one. */
  compiledFolder(): string
  /** A new one, which nobody else can enter. */
  privateFolder(): string
  readonly closing: AbortSignal
}

async function runProgram(program: ProgramRun, shared: Shared): Promise<ProgramEnd> {
  const { clock, folders } = shared.options
  const deadlineAt = clock.now() + program.within
  const signal = program.signal === undefined ? shared.closing : AbortSignal.any([program.signal, shared.closing])
  const found = findProgram(program.agent, folders)
  if ('refused' in found) return notStarted(found.refused)
  // The wait for a seat counts: the attempt on record is not longer than what it says.
  const seat = await shared.seating.take(program.within, signal)
  if ('refused' in seat) return notStarted(seat.refused, 'busy')
  try {
    return await withFiles(program, shared, (told) => live(found, told, deadlineAt, signal, shared))
  } finally {
    seat.give()
  }
}

async function withFiles(program: ProgramRun, shared: Shared, work: (told: ProgramRun) => Promise<ProgramEnd>): Promise<ProgramEnd> {
  const files = Object.entries(program.files ?? {})
  if (files.length === 0) return work(program)
  const put = written(files, shared)
  if ('refused' in put) return notStarted(put.refused, 'program')
  try {
    return await work({ ...program, stdin: program.stdin + put.lines })
  } finally {
    rmSync(put.folder, { recursive: true, force: true })
  }
}

/** A disk without room, or a name that no file can have, is no order whose end is not known: nothing was started. */
function written(files: readonly (readonly [string, string])[], shared: Shared): { readonly folder: string; readonly lines: string } | { readonly refused: string } {
  let folder: string | undefined
  try {
    const into = folder = shared.privateFolder()
    for (const [key, content] of files) writeFileSync(join(into, key), content, { mode: 0o600 })
    return { folder, lines: files.map(([key]) => `${key}=${join(into, key)}\n`).join('') }
  } catch (error) {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    return { refused: `its files could not be written: ${error instanceof Error && 'code' in error ? String(error.code) : String(error)}` }
  }
}

function notStarted(refused: string, refusedFor: Reason = 'config'): ProgramEnd {
  return { stdout: '', stderr: '', late: false, gone: true, refused, refusedFor }
}

interface Found {
  readonly file: string
  /** Our own programs are run by the node that runs us, whatever `node` means on this machine. */
  readonly byNode: boolean
}

/** By name, never by path: `redfish` is the program `redfish`, or our `redfish/redfish.ts` (`.mjs` where it is bundled). */
export function findProgram(name: string, folders: readonly string[]): Found | { readonly refused: string } {
  if (!nameForm.test(name)) return { refused: `${JSON.stringify(name)} is not the name of a program` }
  for (const entry of folders) {
    const prefix = entry.endsWith('*') ? basename(entry).slice(0, -1) : ''
    const folder = entry.endsWith('*') ? dirname(entry) : entry
    if (!name.startsWith(prefix)) continue
    if (isFile(join(folder, name)) && mayRun(join(folder, name))) return { file: join(folder, name), byNode: false }
    const ours = ['.ts', '.mjs'].map((ending) => join(folder, name, `${name}${ending}`)).find(isFile)
    if (ours !== undefined) return { file: ours, byNode: true }
  }
  return { refused: `there is no program ${name} in ${folders.join(', ')}` }
}

function isFile(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? false
}

function mayRun(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false // not executable: as good as not there
  }
}

async function live(found: Found, program: ProgramRun, deadlineAt: Ms, signal: AbortSignal, shared: Shared): Promise<ProgramEnd> {
  const { clock } = shared.options
  const before = await pidsNow()
  // Asked where nothing is waited for any more: this process may sleep in any wait, and an order that begins after its time
  // would strike a machine that was given back meanwhile.
  const within = deadlineAt - clock.now()
  if (within <= 0) return notStarted('its time was over before it could start')
  const mark = nextMark()
  const ofOurs = handedOn(program.agent, shared.options.surroundings ?? process.env)
  const redact = redactor(secretsAmong(ofOurs))
  const child = execa(found.byNode ? execPath : found.file, found.byNode ? [found.file] : [], {
    detached: true, cleanup: false, reject: false, buffer: false, extendEnv: false, cwd: shared.emptyFolder(),
    stdin: 'pipe', stdout: 'pipe', stderr: 'pipe',
    env: {
      ...ofOurs,
      ...environmentOf(program, mark, within, shared.options.path ?? process.env['PATH'] ?? defaultPath),
      ...(found.file.endsWith('.ts') ? { NODE_COMPILE_CACHE: shared.compiledFolder() } : {}),
    },
  })
  if (child.pid === undefined) {
    const ended = await child
    return notStarted(`${program.agent} could not be started: ${ended.shortMessage ?? 'no reason given'}`)
  }
  const group = groupOf(child.pid, mark, before)
  shared.groups.add(group)
  const exited = new Promise<number | undefined>((resolve) => child.nodeChildProcess.once('exit', (code) => resolve(code ?? undefined)))
  const closed = new Promise<void>((resolve) => child.nodeChildProcess.once('close', () => resolve()))
  const stdout = tailOf(child.stdout, outputLimit)
  const stderr = tailOf(child.stderr, outputLimit)
  child.stdin.on('error', () => undefined) // it ended, or closed its stdin, before it had read all: its exit code tells
  child.stdin.end(program.stdin)

  const first = await firstOf(exited, within, signal, clock)
  const gone = await endGroup(group, first.end, signal, clock)
  if (gone) shared.groups.delete(group)
  // What it wrote last may still be in the pipe; a stranger that holds the other end must not hold us.
  await firstOf(closed, settlePatience, undefined, clock)
  child.stdout.destroy()
  child.stderr.destroy()
  child.stdin.destroy()
  const code = first.end === 'exited' ? first.value : undefined
  return { ...(code === undefined ? {} : { exitCode: code }), stdout: redact(stdout.text()), stderr: redact(stderr.text()), late: first.end === 'late', gone }
}

/** `within`: what is left once it was seated. Told the whole of its time, an orphan would act when its order is held to be over. */
function environmentOf(program: ProgramRun, mark: string, within: Ms, path: string): Record<string, string> {
  return { ...program.environment, PATH: `${dirname(execPath)}${delimiter}${path}`, LANG: 'C', LC_ALL: 'C', HOLDFAST_RUN: mark, HOLDFAST_DEADLINE: String(Math.floor(within)) }
}

let marks = 0

/** Stands in the environment of everything that a run starts, so that what leaves its group is found all the same. */
function nextMark(): string {
  marks += 1
  return `${process.pid}-${marks}`
}

type First<T> = { readonly end: 'exited'; readonly value: T } | { readonly end: 'late' } | { readonly end: 'aborted' }

async function firstOf<T>(work: Promise<T>, within: Ms, signal: AbortSignal | undefined, clock: Clock): Promise<First<T>> {
  const stop = new AbortController()
  const either = signal === undefined ? stop.signal : AbortSignal.any([stop.signal, signal])
  try {
    return await Promise.race([
      work.then((value): First<T> => ({ end: 'exited', value })),
      clock.wait(within, either).then((): First<T> => ({ end: signal?.aborted ? 'aborted' : 'late' })),
    ])
  } finally {
    stop.abort()
  }
}

/** True once nothing of the group is left. An abort goes straight to SIGKILL, also in the middle of being patient. */
async function endGroup(group: Group, end: First<unknown>['end'], signal: AbortSignal, clock: Clock): Promise<boolean> {
  if (end === 'exited' && await emptied(group, settlePatience, clock, signal)) return true
  if (end !== 'aborted' && !signal.aborted) {
    signalGroup(group, 'SIGTERM')
    if (await emptied(group, termPatience, clock, signal)) return true
  }
  const until = clock.now() + killPatience
  while (clock.now() < until) {
    // Again in each turn: what forks while it is being killed may have been missed.
    signalGroup(group, 'SIGKILL')
    if (await emptied(group, 500, clock)) return true
  }
  return false
}

async function emptied(group: Group, within: Ms, clock: Clock, signal?: AbortSignal): Promise<boolean> {
  const until = clock.now() + within
  for (let pause: Ms = 10; ; pause = Math.min(pause * 1.5, 100)) {
    if (await group.empty()) return true
    if (clock.now() >= until || signal?.aborted) return false
    await clock.wait(pause, signal)
  }
}
