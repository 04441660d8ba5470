// What a replica's beats server costs: five thousand links over loopback, one beat a second on each. The replica is a process
// of its own, as it is in a cluster, with an API server that answers token reviews at once; the agents are light: a real
// handshake, a real hello, real beats, and nothing behind them. In the same run, so that the machine's mood divides out:
// plain TCP streams and TLS streams with as many bytes and answers and nothing behind them.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, connect, type Socket } from 'node:net'
import process, { argv, cpuUsage, exit, memoryUsage } from 'node:process'
import { setTimeout as wait } from 'node:timers/promises'
import { createSecureContext, createServer as createTlsServer, connect as connectTls } from 'node:tls'
import type { Answer } from '../../coordinator/api.ts'
import { audience } from '../../coordinator/beats-review.ts'
import { serveBeats } from '../../coordinator/beats.ts'
import { frameOf } from '../../core/frame.ts'
import { makeAuthority, makeServer, type Certified } from '../../edge/certificate.ts'
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
/** As the image starts the coordinator: the handshakes' garbage must not blow up the young generation for ever. */
const replicaFlags = ['--max-semi-space-size=4']
const ways = ['replica', 'plain TCP', 'TLS'] as const
type Way = typeof ways[number]
/** What a beat and a permit weigh on the wire, for the streams that carry nothing. */
const beatBytes = 26
const permitBytes = 80
const permitEvery = 5

export interface BeatsFigures {
  readonly way: Way
  readonly links: number
  readonly linkedInSeconds: number
  readonly linkCpuMs: number
  readonly beatsPerSecond: number
  readonly answersPerSecond: number
  /** Of one core. */
  readonly cpuPercent: number
  readonly rssMb: number
  readonly heapMb: number
  readonly longestStallMs: number
}

if (import.meta.main) {
  const [, , part, ...input] = argv
  if (part === 'server') await server(input[0] as Way) // from start() below
  else if (part === 'crowd') crowd(input[0] as Way, Number(input[1]), input[2] ?? '', Buffer.from(input[3] ?? '', 'base64').toString())
  else await bench(argv.includes('--json'))
}

export async function bench(json: boolean): Promise<void> {
  const figures: BeatsFigures[] = []
  for (const way of ways) {
    const one = await measure(way)
    figures.push(one)
    if (!json) console.log(Object.entries(one).map(([name, value]) => `${name} ${value}`).join('  '))
  }
  if (json) console.log(JSON.stringify(figures))
}

async function measure(way: Way): Promise<BeatsFigures> {
  const children: ChildProcess[] = []
  try {
    const served = start(children, ['server', way], replicaFlags)
    const { address, authority } = await told<{ address: string; authority: string }>(served)
    const linked = Promise.all(Array.from({ length: crowds }, (_, index) => told(start(children, ['crowd', way, String(index), address, Buffer.from(authority).toString('base64')]))))
    const late = wait(linkedWithin, 'late' as const, { ref: false })
    if (await Promise.race([linked, late]) === 'late') throw new Error(`not all linked within ${linkedWithin} ms`)
    await wait(settle)
    served.send('begin')
    await wait(measured)
    served.send('end')
    return { way, ...await told<Omit<BeatsFigures, 'way'>>(served) }
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
}

function start(children: ChildProcess[], input: readonly string[], flags: readonly string[] = []): ChildProcess {
  const child = fork(import.meta.filename, input, { execArgv: [...flags], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  children.push(child)
  return child
}

async function told<T>(child: ChildProcess): Promise<T> {
  const ended = once(child, 'exit').then(() => { throw new Error('a process of the benchmark ended by itself') })
  ended.catch(() => undefined) // it is ended by us in the end
  const [message] = await Promise.race([once(child, 'message'), ended])
  return message as T // our own child's word
}

interface Counted { links: number; beats: number; answers: number }

async function server(way: Way): Promise<void> {
  const now = Date.now()
  const authority = makeAuthority({ name: way, from: now - 60_000, until: now + 3_600_000 })
  const serving = makeServer({ ...authority, name: way }, { name: replicaName, names: [replicaName], from: now - 60_000, until: now + 3_600_000 })
  const counted: Counted = { links: 0, beats: 0, answers: 0 }
  const address = way === 'replica' ? await serveReplica(authority, serving, counted) : await serveBytes(way, serving, counted)
  const began = performance.now()
  const cpuBegan = cpuUsage()
  let linkedInSeconds = 0
  let linkCpuMs = 0
  let longestStallMs = 0
  let at = 0
  let cpu = cpuBegan
  let last = began
  setInterval(() => {
    const next = performance.now()
    longestStallMs = Math.max(longestStallMs, Math.round(next - last - 50))
    last = next
    if (linkCpuMs > 0 || counted.links < agents) return
    linkedInSeconds = round((next - began) / 1_000)
    linkCpuMs = round(milliseconds(cpuBegan) / agents)
  }, 50)
  process.on('message', (word) => {
    if (word === 'begin') {
      counted.beats = 0
      counted.answers = 0
      longestStallMs = 0
      at = performance.now()
      cpu = cpuUsage()
      return
    }
    const span = performance.now() - at
    const { rss, heapUsed } = memoryUsage()
    const figures: Omit<BeatsFigures, 'way'> = {
      links: counted.links, linkedInSeconds, linkCpuMs, beatsPerSecond: Math.round(counted.beats / span * 1_000), answersPerSecond: Math.round(counted.answers / span * 1_000),
      cpuPercent: round(milliseconds(cpu) / span * 100), rssMb: Math.round(rss / 1e6), heapMb: Math.round(heapUsed / 1e6), longestStallMs,
    }
    process.send?.(figures, undefined, undefined, () => exit(0))
  })
  process.send?.({ address, authority: authority.certificate })
}

function milliseconds(since: NodeJS.CpuUsage): number {
  const { user, system } = cpuUsage(since)
  return (user + system) / 1_000
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}

async function serveReplica(authority: Certified, serving: Certified, counted: Counted): Promise<string> {
  const dialer = tlsDialer({ clock: machineClock, authorities: async () => authority.certificate })
  const beats = serveBeats({
    host: { clock: machineClock, chance: () => 0.5, log: silentLog, secret: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)), dialer },
    api: { create: async <T>(_: string, body: unknown) => review<T>(body) },
    replica: 'replica', namespace: 'holdfast', replicaNamespace: 'holdfast', token: async () => undefined,
    changed(_, what) { if (what === 'boot') counted.links += 1 },
  })
  beats.setLeading(true)
  beats.setReplicas(['10.0.0.1:7443', '10.0.0.2:7443', '10.0.0.3:7443'])
  const listener = await listenTls({ clock: machineClock, host: '127.0.0.1', port: 0, serving }, (link) => beats.accept({
    remote: link.remote,
    close: (reason) => link.close(reason),
    send(frame, secrecy) {
      counted.answers += 1
      link.send(frame, secrecy)
    },
    listen: (ears) => link.listen({
      closed: (reason) => ears.closed(reason),
      frame(frame) {
        counted.beats += 1
        ears.frame(frame)
      },
    }),
  }))
  return listener.address
}

async function review<T>(body: unknown): Promise<Answer<T>> {
  // The spec is what coordinator/beats-review.ts makes; a service account token is about a kilobyte.
  const { token } = (body as { spec: { token: string } }).spec
  const node = token.trimEnd()
  const extra = { 'authentication.kubernetes.io/node-name': [node], 'authentication.kubernetes.io/node-uid': [`uid-${node}`], 'authentication.kubernetes.io/pod-uid': [`pod-${node}`], 'authentication.kubernetes.io/pod-name': [`agent-${node}`] }
  const user = { username: 'system:serviceaccount:holdfast:holdfast-agent', extra }
  return { ok: true, value: { status: { authenticated: true, audiences: [audience], user } } as T }
}

async function serveBytes(way: Way, serving: Certified, counted: Counted): Promise<string> {
  const permit = Buffer.alloc(permitBytes)
  const accept = (socket: Socket) => {
    let count = 0
    counted.links += 1
    socket.setNoDelay(true)
    socket.on('error', () => undefined) // the crowd is killed in the end
    socket.on('data', () => {
      counted.beats += 1
      count += 1
      if (count % permitEvery !== 0) return
      counted.answers += 1
      socket.write(permit)
    })
  }
  const listener = way === 'TLS' ? createTlsServer({ cert: serving.certificate, key: serving.key, minVersion: 'TLSv1.3', ecdhCurve: 'X25519' }, accept) : createServer(accept)
  listener.listen({ host: '127.0.0.1', port: 0, backlog: 4_096 })
  await once(listener, 'listening')
  const bound = listener.address()
  return `127.0.0.1:${typeof bound === 'object' && bound !== null ? bound.port : 0}`
}

/** A share of the agents in one process: each beats at a phase of its own, a millisecond fine. */
function crowd(way: Way, index: number, address: string, authority: string): void {
  const share = agents / crowds
  const slots: (() => void)[][] = Array.from({ length: 1_000 }, () => [])
  const open = way === 'replica' ? dialReplica(index, address, authority) : dialBytes(way, address, authority)
  let dialled = 0
  let linked = 0
  const work = async () => {
    while (dialled < share) {
      const number = dialled
      dialled += 1
      const beat = await open(number)
      slots[number * 997 % 1_000]?.push(beat)
      linked += 1
      if (linked === share) process.send?.('linked')
    }
  }
  for (let width = 0; width < 50; width += 1) {
    work().catch((error: unknown) => {
      console.error(`crowd ${index}: ${String(error)}`)
      exit(1)
    })
  }
  let slot = 0
  const began = performance.now()
  setInterval(() => {
    for (const due = Math.floor(performance.now() - began); slot < due; slot += 1) for (const beat of slots[slot % 1_000] ?? []) beat()
  }, 1)
}

function dialReplica(index: number, address: string, authority: string): (number: number) => Promise<() => void> {
  const dialer = tlsDialer({ clock: machineClock, authorities: async () => authority })
  return async (number) => {
    const link: Link = await dialer.dial(address, 30_000)
    let count = 0
    const beat = () => {
      count += 1
      link.send(frameOf({ say: 'beat', count, kubelet: 'ok' }), 'public')
    }
    await new Promise<void>((resolve, reject) => {
      link.listen({ frame: () => resolve(), closed: (reason) => reject(new Error(`a link ended: ${reason}`)) })
      link.send(frameOf({
        say: 'hello', version: 1, token: `node-${index}-${number}`.padEnd(1_000), agent: 'benchmark', boot: `3f2b4c55-7a10-4d8e-9d1f-${index}${number}/4711`,
        uptime: 1, machine: '4c4c4544-0042-3510-8052-b7c04f4a3132', whisperPort: 7_000,
      }))
    })
    beat()
    return beat
  }
}

function dialBytes(way: Way, address: string, authority: string): () => Promise<() => void> {
  const secureContext = createSecureContext({ ca: authority })
  const port = Number(address.split(':')[1])
  const bytes = Buffer.alloc(way === 'TLS' ? beatBytes - 16 : beatBytes)
  return async () => {
    const socket = way === 'TLS' ? connectTls({ host: '127.0.0.1', port, servername: replicaName, secureContext }) : connect(port, '127.0.0.1')
    await once(socket, way === 'TLS' ? 'secureConnect' : 'connect')
    socket.setNoDelay(true)
    socket.on('error', () => undefined) // the server ends first
    socket.resume()
    return () => { socket.write(bytes) }
  }
}
