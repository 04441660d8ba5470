// The sockets of a node's container runtime, for an agent that is a process: CRI by Node's own HTTP/2, which shares nothing with the
// agent's client, and NRI, whose bytes pass unread between the agent and the simulated runtime.
import { mkdirSync } from 'node:fs'
import { createServer as createHttp2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { createServer, type Server, type Socket } from 'node:net'
import { dirname } from 'node:path'
import type { AgentHost } from '../../agent/host.ts'
import { bytesField, joined, readMessage, textField, textOf, wholeField } from '../../agent/protobuf.ts'
import type { Container, Runtime } from '../../sim/runtime.ts'

export interface LabRuntime {
  /** Which container of the simulated machine it is that connects from now on. */
  serve(host: Pick<AgentHost, 'connectNri'>): void
  close(): void
}

const connectWithin = 3_000
const running = 1

export function labRuntime(criSocket: string, nriSocket: string, runtime: Runtime): LabRuntime {
  let host: Pick<AgentHost, 'connectNri'> | undefined
  const open = new Set<Socket | ServerHttp2Session>()
  const keep = <S extends Socket | ServerHttp2Session>(one: S): S => {
    open.add(one)
    one.on('error', () => undefined) // its end is told by `close`
    one.on('close', () => open.delete(one))
    return one
  }
  const cri = createHttp2Server()
  cri.on('session', keep)
  cri.on('stream', (stream: ServerHttp2Stream, headers: Readonly<Record<string, unknown>>) => {
    stream.on('error', () => undefined) // the agent goes as soon as it has its answer
    // One that hangs or is dead takes the connection and says nothing.
    if (runtime.fault !== undefined) return
    const path = String(headers[':path'])
    if (path.includes('/Stop')) stream.on('data', (request: Buffer) => stop(stream, request, runtime))
    else answer(stream, path, [...runtime.containers.values()])
  })
  const nri = createServer((socket) => {
    keep(socket)
    if (host === undefined) return void socket.destroy()
    host.connectNri(connectWithin).then((stream) => {
      if (socket.destroyed) return stream.close()
      stream.listen({ bytes: (bytes) => socket.write(bytes), closed: () => socket.destroy() })
      socket.on('data', (bytes: Buffer) => stream.send(bytes))
      socket.on('close', () => stream.close())
    }, () => socket.destroy())
  })
  for (const [server, path] of [[cri, criSocket], [nri, nriSocket]] as const satisfies readonly (readonly [Server | typeof cri, string])[]) {
    mkdirSync(dirname(path), { recursive: true })
    server.listen(path)
  }

  return {
    serve(given) { host = given },
    close() {
      for (const one of open) one.destroy()
      cri.close()
      nri.close()
    },
  }
}

/** {1 id} behind five bytes of its length. There is one container a pod, and its sandbox ends with it. */
function stop(stream: ServerHttp2Stream, request: Buffer, runtime: Runtime): void {
  const message = readMessage(request.subarray(5))
  const uid = message === undefined ? '' : textOf(message, 1).replace(/^(container|sandbox)-/, '')
  runtime.containers.get(uid)?.kill()
  succeed(stream, new Uint8Array())
}

function answer(stream: ServerHttp2Stream, path: string, containers: readonly Container[]): void {
  const list = lists[path]
  if (list === undefined) return stream.respond({ 'content-type': 'application/grpc', 'grpc-status': '12' }, { endStream: true })
  succeed(stream, joined(containers.map((container) => bytesField(1, list(container)))))
}

/** The message with its length before it, then the status in trailers, as grpc-go does it. */
function succeed(stream: ServerHttp2Stream, message: Uint8Array): void {
  const head = new Uint8Array(5)
  new DataView(head.buffer).setUint32(1, message.length)
  stream.respond({ 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(joined([head, message]))
}

const lists: Readonly<Record<string, (container: Container) => Uint8Array>> = {
  /** PodSandbox {1 id, 2 metadata {1 name, 2 uid, 3 namespace}, 3 state, 4 created_at}: ready as long as its container runs. */
  '/runtime.v1.RuntimeService/ListPodSandbox': ({ pod, since }) => joined([
    textField(1, `sandbox-${pod.uid}`), bytesField(2, joined([textField(1, pod.name), textField(2, pod.uid), textField(3, pod.namespace)])), wholeField(3, 0), wholeField(4, since * 1_000_000),
  ]),
  /** Container {1 id, 3 metadata {1 name}, 6 state, 7 created_at, 8 labels}. */
  '/runtime.v1.RuntimeService/ListContainers': ({ pod, since }) => joined([
    textField(1, `container-${pod.uid}`), bytesField(3, textField(1, 'main')), wholeField(6, running), wholeField(7, since * 1_000_000),
    ...Object.entries({ uid: pod.uid, name: pod.name, namespace: pod.namespace })
      .map(([key, value]) => bytesField(8, joined([textField(1, `io.kubernetes.pod.${key}`), textField(2, value)]))),
  ]),
}
