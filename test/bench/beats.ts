// How much a replica's beats server costs: five thousand links over loopback, one beat a second on each, for twenty seconds.
// The replica is a process of its own, as it is in a cluster, with an API server that answers token reviews at once; the
// agents are light: a real handshake, a real hello, real sealed beats, and nothing behind them.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import process, { argv, cpuUsage, exit, memoryUsage } from 'node:process'
import { setTimeout as wait } from 'node:timers/promises'
import type { Answer } from '../../coordinator/api.ts'
import { audience } from '../../coordinator/beats-review.ts'
import { serveBeats } from '../../coordinator/beats.ts'
import { frameOf } from '../../core/frame.ts'
import { makeAuthority, makeServer } from '../../edge/certificate.ts'
import { machineClock } from '../../edge/clock.ts'
import type { Link } from '../../edge/link.ts'
import { silentLog } from '../../edge/log.ts'
import { listenTls, replicaName, tlsDialer } from '../../edge/tls-link.ts'

const agents = 5_000
const crowds = 2
const settle = 5_000
const measured = 20_000
/** All links up, at the latest. */
const linkedWithin = 120_000

export interface BeatsFigures {
  readonly links: number
  readonly linkedIn: string
  readonly handshakeCpuMs: number
  readonly beatsPerSecond: number
  readonly permitsPerSecond: number
  /** Of one core. */
  readonly cpuPercent: number
  readonly rssMb: number
  readonly heapMb: number
  readonly longestStallMs: number
}

if (import.meta.main) {
  const part = argv[2]
  if (part === 'replica') await replica()
  else if (part === 'crowd') crowd(Number(argv[3]), argv[4] ?? '', Buffer.from(argv[5] ?? '', 'base64').toString())
  else await bench(argv.includes('--json'))
}

export async function bench(json: boolean): Promise<void> {
  const children: ChildProcess[] = []
  try {
    const server = start(children, ['replica'])
    const { address, authority } = await told<{ address: string; authority: string }>(server)
    const crowdsLinked = Array.from({ length: crowds }, async (_, index) => {
      const child = start(children, ['crowd', String(index), address, Buffer.from(authority).toString('base64')])
      await told(child)
    })
    const late = wait(linkedWithin, 'late', { ref: false })
    if (await Promise.race([Promise.all(crowdsLinked), late]) === 'late') throw new Error(`not all linked within ${linkedWithin} ms`)
    await wait(settle)
    server.send('begin')
    await wait(measured)
    server.send('end')
    const figures = await told<BeatsFigures>(server)
    if (json) console.log(JSON.stringify(figures))
    else for (const [name, value] of Object.entries(figures)) console.log(`${name.padEnd(18)} ${value}`)
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
}

function start(children: ChildProcess[], input: readonly string[]): ChildProcess {
  const child = fork(import.meta.filename, input, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  children.push(child)
  return child
}

async function told<T>(child: ChildProcess): Promise<T> {
  const ended = once(child, 'exit').then(() => { throw new Error('a process of the benchmark ended by itself') })
  ended.catch(() => undefined) // it is ended by us in the end
  const [message] = await Promise.race([once(child, 'message'), ended])
  // Our own child's word.
  return message as T
}

async function replica(): Promise<void> {
  const now = Date.now()
  const name = 'holdfast benchmark'
  const authority = makeAuthority({ name, from: now - 60_000, until: now + 3_600_000 })
  const serving = makeServer({ ...authority, name }, { name: replicaName, names: [replicaName], from: now - 60_000, until: now + 3_600_000 })
  const beats = serveBeats({
    host: { clock: machineClock, chance: () => 0.5, log: silentLog, secret: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)), dialer: tlsDialer({ clock: machineClock, authorities: async () => authority.certificate }) },
    api: { create: async <T>(_: string, body: unknown) => review<T>(body) },
    replica: 'replica', namespace: 'holdfast', token: async () => undefined, changed: () => undefined,
  })
  beats.setLeading(true)
  beats.setReplicas(['10.0.0.1:7443', '10.0.0.2:7443', '10.0.0.3:7443'])
  let frames = 0
  let sent = 0
  const listener = await listenTls({ clock: machineClock, host: '127.0.0.1', port: 0, serving }, (link) => beats.accept(counted(link, () => { frames += 1 }, () => { sent += 1 })))
  const began = performance.now()
  const cpuBegan = cpuUsage()
  let at = 0
  let cpu = cpuBegan
  let linkedAfter = 0
  let handshakeCpuMs = 0
  let stall = 0
  let last = performance.now()
  setInterval(() => {
    const next = performance.now()
    stall = Math.max(stall, next - last - 50)
    last = next
    if (linkedAfter > 0 || frames < agents) return
    linkedAfter = next - began
    const used = cpuUsage(cpuBegan)
    handshakeCpuMs = (used.user + used.system) / 1_000 / agents
  }, 50)
  process.on('message', (word) => {
    if (word === 'begin') {
      frames = 0
      sent = 0
      stall = 0
      at = performance.now()
      cpu = cpuUsage()
      return
    }
    const span = performance.now() - at
    const used = cpuUsage(cpu)
    const { rss, heapUsed } = memoryUsage()
    const figures: BeatsFigures = {
      links: beats.linked(), linkedIn: `${(linkedAfter / 1_000).toFixed(1)} s`, handshakeCpuMs: round(handshakeCpuMs),
      beatsPerSecond: Math.round(frames / span * 1_000), permitsPerSecond: Math.round(sent / span * 1_000),
      cpuPercent: round((used.user + used.system) / 10 / span), rssMb: Math.round(rss / 1e6), heapMb: Math.round(heapUsed / 1e6), longestStallMs: Math.round(stall),
    }
    process.send?.(figures, undefined, undefined, () => exit(0))
  })
  process.send?.({ address: listener.address, authority: authority.certificate })
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}

function counted(link: Link, heard: () => void, sent: () => void): Link {
  return {
    remote: link.remote,
    close: (reason) => link.close(reason),
    send(frame) {
      sent()
      link.send(frame)
    },
    listen: (ears) => link.listen({
      closed: (reason) => ears.closed(reason),
      frame(frame) {
        heard()
        ears.frame(frame)
      },
    }),
  }
}

async function review<T>(body: unknown): Promise<Answer<T>> {
  // The spec is what coordinator/beats-review.ts makes; a service account token is about a kilobyte.
  const { token } = (body as { spec: { token: string } }).spec
  const node = token.trimEnd()
  const extra = { 'authentication.kubernetes.io/node-name': [node], 'authentication.kubernetes.io/node-uid': [`uid-${node}`], 'authentication.kubernetes.io/pod-uid': [`pod-${node}`], 'authentication.kubernetes.io/pod-name': [`agent-${node}`] }
  const user = { username: 'system:serviceaccount:holdfast:holdfast-agent', extra }
  return { ok: true, value: { status: { authenticated: true, audiences: [audience], user } } as T }
}

/** A share of the agents in one process: each beats at a phase of its own, a millisecond fine. */
function crowd(index: number, address: string, authority: string): void {
  const dialer = tlsDialer({ clock: machineClock, authorities: async () => authority })
  const share = agents / crowds
  const slots: Link[][] = Array.from({ length: 1_000 }, () => [])
  let welcomed = 0
  let dialled = 0
  const open = async (): Promise<void> => {
    while (dialled < share) {
      const number = dialled
      dialled += 1
      const link = await dialer.dial(address, 30_000)
      await new Promise<void>((resolve) => {
        link.listen({
          frame() {
            if (slots[number * 997 % 1_000]?.includes(link)) return
            welcomed += 1
            slots[number * 997 % 1_000]?.push(link)
            link.send(frameOf({ say: 'beat', count: 0, kubelet: 'ok' }))
            resolve()
          },
          closed: (reason) => {
            console.error(`crowd ${index}: a link ended: ${reason}`)
            exit(1)
          },
        })
        link.send(frameOf({
          say: 'hello', version: 1, token: `node-${index}-${number}`.padEnd(1_000), agent: 'benchmark', boot: `3f2b4c55-7a10-4d8e-9d1f-${index}${number}/4711`,
          uptime: 1, machine: '4c4c4544-0042-3510-8052-b7c04f4a3132', whisperPort: 7_000,
        }))
      })
      if (welcomed === share) process.send?.('linked')
    }
  }
  // As many at once as a cluster's agents that all lost their replica; each then waits its turn.
  for (let width = 0; width < 50; width += 1) void open()
  let count = 0
  let slot = 0
  const began = performance.now()
  setInterval(() => {
    const due = Math.floor(performance.now() - began)
    for (; slot < due; slot += 1) {
      count += 1
      for (const link of slots[slot % 1_000] ?? []) link.send(frameOf({ say: 'beat', count, kubelet: 'ok' }))
    }
  }, 1)
}
