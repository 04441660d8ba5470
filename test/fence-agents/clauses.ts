// What the contract demands, clause by clause. A program may fail in many ways and keep it; the one thing that it may never
// do is to say that a machine is off which is not, and only that is called a lie.
import { execFile } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import type { Ms } from '../../core/model.ts'

export interface Bench {
  /** Of a device that works, and of an outlet that may be switched. */
  readonly given: Readonly<Record<string, string>>
  readonly wrong: Readonly<Record<string, string>>
  readonly unknown?: string
  readonly other?: string
  readonly truth?: string
  readonly backEnd?: { readonly gone: string; readonly back: string }
  run(stdin: string, within: Ms): Promise<Ended>
}

export interface Ended {
  readonly exitCode?: number
  readonly stdout: string
  readonly stderr: string
  readonly late: boolean
  readonly took: number
  readonly refused?: string
}

export interface Row {
  readonly clause: string
  readonly verdict: 'kept' | 'broken' | 'LIES' | 'not run'
  readonly seen: string
  readonly took?: number
}

type Clause = (bench: Bench) => Promise<Row>

const deadline: Ms = 30_000

export const clauses: readonly Clause[] = [
  (bench) => plain(bench, 'metadata: XML, exit 0', 'action=metadata\n', ({ exitCode, stdout }) => exitCode === 0 && stdout.includes('<resource-agent')),
  (bench) => coded(bench, 'validate-all: exit 0', 'validate-all', [0]),
  (bench) => coded(bench, 'on, to begin with: exit 0', 'on', [0], 'on'),
  (bench) => coded(bench, 'monitor: exit 0 or 2', 'monitor', [0, 2]),
  (bench) => coded(bench, 'status of what is on: exit 0', 'status', [0], 'on'),
  (bench) => coded(bench, 'off: exit 0, and off', 'off', [0], 'off'),
  (bench) => coded(bench, 'off of what is off: exit 0', 'off', [0], 'off'),
  (bench) => coded(bench, 'status of what is off: exit 2', 'status', [2], 'off'),
  (bench) => coded(bench, 'on: exit 0, and on', 'on', [0], 'on'),
  (bench) => coded(bench, 'on of what is on: exit 0', 'on', [0], 'on'),
  (bench) => coded(bench, 'status: exit 0', 'status', [0], 'on'),
  unknownPlug('status'), unknownPlug('off'),
  wrongSecret, mute, nobody, vanished,
  (bench) => idle(bench, 'garbage on stdin: nothing done, exit 1', (lines) => `\u0001\u0002=%%%\n=\nnonsense\n${lines}`),
  (bench) => idle(bench, 'no action: nothing done, exit 1', (lines) => lines),
  (bench) => idle(bench, 'action with blanks round its =: nothing done, exit 1', (lines) => `action = status\n${lines}`),
  (bench) => idle(bench, 'an unknown action: nothing done, exit 1', (lines) => `action=explode\n${lines}`),
  twoPlugs,
]

async function plain(bench: Bench, clause: string, stdin: string, kept: (end: Ended) => boolean): Promise<Row> {
  const end = await bench.run(stdin, deadline)
  return { clause, verdict: kept(end) ? 'kept' : 'broken', seen: seenOf(end), took: end.took }
}

/** `power`: what must be so afterwards, by the device's truth where one is given. */
async function coded(bench: Bench, clause: string, action: string, codes: readonly number[], power?: 'on' | 'off'): Promise<Row> {
  const end = await bench.run(input(bench, action), deadline)
  const fits = end.exitCode !== undefined && codes.includes(end.exitCode)
  const truth = power === undefined ? undefined : await truthOf(bench)
  const untrue = fits && truth !== undefined && truth !== power
  return { clause, verdict: untrue && power === 'off' ? 'LIES' : fits && !untrue ? 'kept' : 'broken', seen: `${seenOf(end)}${truth === undefined ? '' : `; it is ${truth}`}`, took: end.took }
}

function unknownPlug(action: 'status' | 'off'): Clause {
  return async (bench) => {
    const clause = `${action} of an outlet that is not there: exit 1`
    if (bench.unknown === undefined) return notRun(clause, 'unknown= is not given')
    const end = await bench.run(input(bench, action, { plug: bench.unknown }), deadline)
    return { clause, verdict: failed(end) ? 'kept' : saysOff(action, end) ? 'LIES' : 'broken', seen: seenOf(end), took: end.took }
  }
}

async function wrongSecret(bench: Bench): Promise<Row> {
  const clause = 'off with a wrong secret: exit 1, and still on'
  if (Object.keys(bench.wrong).length === 0) return notRun(clause, 'wrong.KEY= is not given')
  return stillOn(bench, clause, 'off', await bench.run(input(bench, 'off', bench.wrong), deadline))
}

/** Hears and never answers, over TCP and UDP. */
async function mute(bench: Bench): Promise<Row> {
  const clause = `off at a device that never answers: exit 1, by itself, within ${deadline / 1_000} s`
  if (bench.given['ip'] === undefined) return notRun(clause, 'the device has no ip=')
  const taken: Socket[] = []
  const server = createServer((socket) => { taken.push(socket.on('error', () => undefined)) })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', () => resolve()) })
  const { port } = server.address() as AddressInfo // it listens on a port
  const datagrams = createSocket('udp4')
  await new Promise<void>((resolve) => { datagrams.bind(port, '127.0.0.1', () => resolve()) })
  try {
    const end = await bench.run(input(bench, 'off', { ip: '127.0.0.1', ipport: String(port) }), deadline)
    return { clause, verdict: failed(end) ? 'kept' : saysOff('off', end) ? 'LIES' : 'broken', seen: seenOf(end), took: end.took }
  } finally {
    for (const socket of taken) socket.destroy()
    await new Promise<void>((resolve) => { server.close(() => datagrams.close(() => resolve())) })
  }
}

async function nobody(bench: Bench): Promise<Row> {
  const clause = 'status where nobody listens: exit 1'
  if (bench.given['ip'] === undefined) return notRun(clause, 'the device has no ip=')
  const end = await bench.run(input(bench, 'status', { ip: '127.0.0.1', ipport: '1' }), deadline)
  return { clause, verdict: failed(end) ? 'kept' : saysOff('status', end) ? 'LIES' : 'broken', seen: seenOf(end), took: end.took }
}

async function vanished(bench: Bench): Promise<Row> {
  const clause = 'status with the back end gone: exit 1'
  if (bench.backEnd === undefined) return notRun(clause, 'gone= and back= are not given')
  await shell(bench.backEnd.gone, bench)
  const end = await bench.run(input(bench, 'status'), deadline)
  await shell(bench.backEnd.back, bench)
  return { clause, verdict: failed(end) ? 'kept' : saysOff('status', end) ? 'LIES' : 'broken', seen: seenOf(end), took: end.took }
}

async function idle(bench: Bench, clause: string, text: (lines: string) => string): Promise<Row> {
  return stillOn(bench, clause, 'nothing', await bench.run(text(input(bench, undefined)), deadline))
}

/** Doing both is as good as refusing; doing one and calling it done is the worst there is. */
async function twoPlugs(bench: Bench): Promise<Row> {
  const clause = 'off of two outlets in one run: both, or exit 1 and neither'
  const plug = bench.given['plug']
  if (plug === undefined || bench.other === undefined || bench.truth === undefined) return notRun(clause, 'other= or truth= is not given')
  await bench.run(input(bench, 'on', { plug: bench.other }), deadline)
  const end = await bench.run(input(bench, 'off', { plug: `${plug},${bench.other}` }), deadline)
  const [one, two] = [await truthOf(bench), await truthOf(bench, bench.other)]
  for (const each of [plug, bench.other]) await bench.run(input(bench, 'on', { plug: each }), deadline)
  const said = end.exitCode === 0
  const verdict = said ? (one === 'off' && two === 'off' ? 'kept' : 'LIES') : failed(end) && one === 'on' && two === 'on' ? 'kept' : 'broken'
  return { clause, verdict, seen: `${seenOf(end)}; they are ${one} and ${two}`, took: end.took }
}

/** Whether it acted is told by the truth; where none is given, by what the program itself says then. */
async function stillOn(bench: Bench, clause: string, action: string, end: Ended): Promise<Row> {
  const truth = await truthOf(bench) ?? ((await bench.run(input(bench, 'status'), deadline)).exitCode === 0 ? 'on' : 'not on')
  const verdict = failed(end) && truth === 'on' ? 'kept' : saysOff(action, end) && truth === 'on' ? 'LIES' : 'broken'
  // What it did unasked must not be held against it in the next clause.
  if (truth !== 'on') await bench.run(input(bench, 'on'), deadline)
  return { clause, verdict, seen: `${seenOf(end)}; it is ${truth}`, took: end.took }
}

function input(bench: Bench, action: string | undefined, over: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries({ ...bench.given, ...over }).map(([key, value]) => `${key}=${value}\n`).join('')
  return action === undefined ? lines : `action=${action}\n${lines}`
}

/** By itself: a program that had to be ended at its deadline has not failed, it hung. */
function failed(end: Ended): boolean {
  return !end.late && end.exitCode === 1
}

function saysOff(action: string, { exitCode }: Ended): boolean {
  return action === 'status' ? exitCode === 2 : action === 'off' && exitCode === 0
}

function notRun(clause: string, why: string): Row {
  return { clause, verdict: 'not run', seen: why }
}

function seenOf(end: Ended): string {
  if (end.refused !== undefined) return end.refused
  const code = end.late ? 'ended by its runner' : end.exitCode === undefined ? 'ended by a signal' : `exit ${end.exitCode}`
  const lines = [...end.stderr.split('\n'), ...end.stdout.split('\n')].map((one) => one.trim()).filter((one) => one !== '' && !noWord.test(one))
  const line = lines.find((one) => /ERROR|Success|Status/.test(one)) ?? lines[0] ?? ''
  return line === '' || line.startsWith('<') ? code : `${code}, "${line.replace(/^[\d-]+ [\d:,]+ /, '').slice(0, 120)}"`
}

/** Our own last line, and how ClusterLabs programs end whatever went wrong before. */
const noWord = /^holdfast \{|Please use '-h' for usage/

async function truthOf(bench: Bench, plug = bench.given['plug'] ?? ''): Promise<'on' | 'off' | undefined> {
  if (bench.truth === undefined) return undefined
  const said = (await shell(bench.truth, bench, plug)).trim()
  if (said !== 'on' && said !== 'off') throw new Error(`truth= printed ${JSON.stringify(said.slice(0, 80))}, which is neither on nor off`)
  return said
}

function shell(command: string, bench: Bench, plug = bench.given['plug'] ?? ''): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('/bin/sh', ['-c', command], { env: { ...process.env, PLUG: plug }, timeout: deadline }, (error, out) => (error === null ? resolve(out) : reject(error)))
  })
}
