// The kubelet's port of one machine, as a process of its own: it answers TLS, and `/healthz` beside it. A machine that is dead
// must be silent, not refuse, and no socket of a living process on loopback is silent by itself. So the process is stopped, and
// the queue in which the kernel keeps what it has accepted for it is filled: from then on Linux drops each further SYN, as a
// machine without power does. The port is never let go of meanwhile, so there is no moment in which it would refuse.
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import process, { argv, execPath } from 'node:process'
import { createServer as createTlsServer } from 'node:tls'
import { probePort } from '../../coordinator/probe.ts'
import { machineClock } from '../../edge/clock.ts'
import { selfSigned } from '../../sim/redfish-certificate.ts'
import { startComponent, type Component } from './component.ts'

export interface KubeletPort {
  readonly host: string
  readonly port: number
  /** Answers; resolves once it does. */
  speak(): Promise<void>
  /** Whoever connects hears nothing; resolves once that is so. */
  silence(): Promise<void>
  /** Nothing listens: the kernel refuses. */
  close(): Promise<void>
}

export interface KubeletPortOptions {
  readonly name: string
  readonly host: string
  readonly port: number
  readonly healthPort: number
  readonly logFile: string
}

/** Enough for the probes of a few replicas at once, and soon filled. */
const backlog = 8
/** The kernel takes one more than it was told, and whoever came before us may sit there too. */
const fillers = 2 * backlog
const answersWithin = 20_000
const settle = 150

export function kubeletPort(options: KubeletPortOptions): KubeletPort {
  const { host, port } = options
  let component: Component | undefined
  let stuffed: Socket[] = []
  let turn: Promise<void> = Promise.resolve()
  let listens = false
  // What failed was told to whoever asked for it; the next one starts from what there is.
  const inTurn = (work: () => Promise<void>) => () => (turn = turn.catch(() => undefined).then(work))
  const signal = (name: NodeJS.Signals) => {
    if (component !== undefined && component.end() === undefined) process.kill(component.pid, name)
  }
  const empty = () => {
    for (const socket of stuffed) socket.destroy()
    stuffed = []
  }

  return {
    host, port,
    speak: inTurn(async () => {
      empty()
      await start()
      signal('SIGCONT')
      await until('answered')
    }),
    silence() {
      // At once: what is asked of a machine in the moment of its death must not be answered because of a queue of ours.
      if (listens) {
        signal('SIGSTOP')
        fill()
      }
      return inTurn(async () => {
        await start()
        signal('SIGSTOP')
        fill()
        await until('silent')
      })()
    },
    close: inTurn(async () => {
      empty()
      listens = false
      await component?.crash()
      component = undefined
    }),
  }

  async function start(): Promise<void> {
    if (component !== undefined && component.end() === undefined) return
    component = await startComponent({
      name: `kubelet port of ${options.name}`, file: execPath, logFile: options.logFile,
      args: [import.meta.filename, options.name, host, String(port), String(options.healthPort)],
    })
    await until('answered')
    listens = true
  }

  function fill(): void {
    while (stuffed.length < fillers) {
      const socket = connect({ host, port })
      socket.on('error', () => undefined) // the last ones never connect, and are taken away at the thaw
      stuffed.push(socket)
    }
  }

  async function until(wanted: 'answered' | 'silent'): Promise<void> {
    const deadline = machineClock.now() + answersWithin
    for (;;) {
      const word = await probePort(machineClock, host, port, wanted === 'silent' ? settle : answersWithin)
      if (word === wanted) return
      if (machineClock.now() > deadline) throw new Error(`the kubelet port of ${options.name} is ${word}, not ${wanted}`)
      await machineClock.wait(20)
    }
  }
}

if (import.meta.main) {
  const [, , name = '', host = '', port, healthPort] = argv
  const { key, certificate } = selfSigned(name, host)
  const server = createTlsServer({ key, cert: certificate }, (socket) => socket.on('error', () => undefined)) // a prober that went away
  server.on('tlsClientError', () => undefined) // likewise
  server.listen({ host, port: Number(port), backlog })
  createServer((_, response) => response.end('ok')).listen({ host, port: Number(healthPort) })
}
