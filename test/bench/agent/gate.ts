// The gate under load: the agent's bundle as a process of its own, asked over a socket by a runtime that replays the frames of sandboxes in a
// steady rhythm. What is measured is what the runtime waits for: from the last byte of a call to the last one of its answer.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { setTimeout as wait } from 'node:timers/promises'
import { nodeFlags } from '../../../agent/node-flags.ts'
import { bytesField, joined, textField, wholeField } from '../../../agent/protobuf.ts'
import { callBody, piecesOf, pluginService, readFrames, readReply, replyBody, type Reply } from '../../../agent/ttrpc.ts'
import { podBytes } from '../../../sim/runtime-nri.ts'

export interface GateFigures {
  /** Of one call, in milliseconds. */
  readonly p50Ms: number
  readonly p99Ms: number
  readonly worstMs: number
  readonly calls: number
  readonly refused: number
  /** Sandboxes of which a call was not answered in time; a runtime lets go of a plugin for one. */
  readonly unanswered: number
  readonly sandboxesPerMinute: number
}

const registeredWithin = 30_000
const answeredWithin = 2_000
/** Every tenth pod is of a namespace that passes: it is asked about twice. */
const passing = 10

/** `program`: the agent's bundle. */
export async function loadGate(program: string, sandboxes: number, seconds: number): Promise<GateFigures> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-gate-'))
  mkdirSync(join(folder, 'nri'))
  const server = createServer().listen(join(folder, 'nri', 'nri.sock'))
  let agent: ChildProcess | undefined
  try {
    const connected = once(server, 'connection', { signal: AbortSignal.timeout(registeredWithin) })
    agent = startAgent(program, folder)
    const [socket] = await connected as [Socket]
    return await load(runtimeOf(socket), sandboxes, seconds)
  } finally {
    agent?.kill('SIGKILL')
    await closed(server)
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Nobody leads where it looks, so its gate is shut. */
function startAgent(program: string, folder: string): ChildProcess {
  writeFileSync(join(folder, 'ca.crt'), '')
  writeFileSync(join(folder, 'token'), '')
  return spawn(execPath, [...nodeFlags, program], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      HOLDFAST_REPLICAS: '127.0.0.1:1', HOLDFAST_GATE: 'on', HOLDFAST_NODE: 'node-1', HOLDFAST_RUN: folder, HOLDFAST_STATE: join(folder, 'state'), HOLDFAST_PROC: '/proc',
      HOLDFAST_KUBELET_ROOT: folder, HOLDFAST_TOKEN_FILE: join(folder, 'token'), HOLDFAST_AUTHORITY_FILE: join(folder, 'ca.crt'), HOLDFAST_BIND: '127.0.0.1', HOLDFAST_WHISPER_PORT: '0',
      HOLDFAST_VITALS: 'off', HOLDFAST_LOG_LEVEL: 'error',
    },
  })
}

export interface Runtime {
  /** The plugin has named itself. */
  readonly registered: Promise<void>
  call(method: string, payload: Uint8Array): Promise<Reply>
}

/** A runtime with this one plugin. */
export function runtimeOf(socket: Socket): Runtime {
  const waiting = new Map<number, (reply: Reply) => void>()
  const { promise: registered, resolve: register } = Promise.withResolvers<void>()
  let calls = 0
  const frames = readFrames(({ connection, stream, type, body }) => {
    if (type === 'response') {
      const reply = readReply(body)
      if (reply !== undefined) waiting.get(stream)?.(reply)
      waiting.delete(stream)
    } else {
      for (const piece of piecesOf({ connection, stream, type: 'response', body: replyBody({ ok: true, payload: new Uint8Array() }) })) socket.write(piece)
      register()
    }
  })
  socket.on('data', (bytes: Buffer) => {
    const fault = frames.feed(bytes)
    if (fault !== undefined) socket.destroy(new Error(fault))
  })
  return {
    registered,
    call: (method, payload) => new Promise((resolve, reject) => {
      const stream = 1 + 2 * calls++
      const late = setTimeout(() => reject(new Error(`${method} was not answered within ${answeredWithin} ms`)), answeredWithin)
      waiting.set(stream, (reply) => {
        clearTimeout(late)
        resolve(reply)
      })
      for (const piece of piecesOf({ connection: pluginService, stream, type: 'request', body: callBody({ service: 'nri.pkg.api.v1alpha1.Plugin', method, payload }, answeredWithin) })) socket.write(piece)
    }),
  }
}

/** As containerd does with a plugin that has registered. */
export async function configure(runtime: Runtime): Promise<void> {
  await runtime.call('Configure', joined([textField(2, 'containerd'), textField(3, 'v2.3.7'), wholeField(4, 5_000), wholeField(5, answeredWithin), textField(6, 'v0.12.0')]))
  await runtime.call('Synchronize', new Uint8Array())
}

async function load(runtime: Runtime, sandboxes: number, seconds: number): Promise<GateFigures> {
  await runtime.registered
  await configure(runtime)
  const spans: number[] = []
  let refused = 0
  let unanswered = 0
  const ask = async (method: string, payload: Uint8Array): Promise<Reply> => {
    const began = performance.now()
    const reply = await runtime.call(method, payload)
    spans.push(performance.now() - began)
    return reply
  }
  const sandbox = async (index: number): Promise<void> => {
    const pod = bytesField(1, podBytes({
      namespace: index % passing === 0 ? 'kube-system' : 'work', name: `web-${index}`, uid: crypto.randomUUID(),
      annotations: { 'kubernetes.io/config.source': 'api', 'kubernetes.io/config.seen': new Date().toISOString(), 'kubectl.kubernetes.io/last-applied-configuration': 'x'.repeat(1_500) },
    }))
    const admitted = (await ask('RunPodSandbox', pod)).ok
    if (admitted) await ask('ValidateContainerAdjustment', pod)
    else refused += 1
  }
  const began = performance.now()
  const all: Promise<void>[] = []
  const total = Math.round(sandboxes * seconds / 60)
  for (let index = 0; index < total; index += 1) {
    await wait(Math.max(0, began + index * 60_000 / sandboxes - performance.now()))
    // Awaited only when all are asked: one that failed by then would end this process and leave the agent behind.
    all.push(sandbox(index).catch(() => { unanswered += 1 }))
  }
  await Promise.all(all)
  const sorted = spans.toSorted((one, other) => one - other)
  const at = (share: number): number => round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN)
  return { p50Ms: at(0.5), p99Ms: at(0.99), worstMs: at(1), calls: spans.length, refused, unanswered, sandboxesPerMinute: Math.round(total * 60_000 / (performance.now() - began)) }
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}

async function closed(server: Server): Promise<void> {
  await new Promise((resolve) => { server.close(resolve) })
}
