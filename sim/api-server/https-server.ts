// The same server for people's own kubectl and for processes of their own: HTTPS on loopback, users by bearer token. A
// machine-host file: it owns sockets and real time only for what sockets need.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import type { ApiRequest, ApiResponse } from '../../coordinator/transport.ts'
import { makeAuthority, makeServer } from '../../edge/certificate.ts'
import { objectFromProtobuf, protobufType } from './protobuf.ts'
import { unauthorized, tooLarge } from './refusal.ts'
import { refusalResponse } from './response.ts'
import type { ApiServer } from './server.ts'
import type { User } from './user.ts'

export interface Served {
  readonly url: string
  readonly port: number
  /** The authority to trust, PEM. */
  readonly ca: string
  /** Ends every connection, open watches included. */
  close(): Promise<void>
}

export interface ServeOptions {
  /** Users by the token they bear, beside the tokens that the server issues itself. */
  readonly tokens?: Readonly<Record<string, User>>
  /** 0 or left out: a free one. */
  readonly port?: number
  /** When the certificates are made; milliseconds since the epoch. */
  readonly wall: number
}

const certifiedFor = 365 * 24 * 3600 * 1000
const bodyLimit = 3 * 1024 * 1024

export async function serve(apiServer: ApiServer, options: ServeOptions): Promise<Served> {
  for (const [token, user] of Object.entries(options.tokens ?? {})) apiServer.addToken(token, user)
  const span = { from: options.wall - 60_000, until: options.wall + certifiedFor }
  const name = 'embedded-kubernetes'
  const authority = makeAuthority({ name, ...span })
  const own = makeServer({ ...authority, name }, { name: 'kube-apiserver', names: ['127.0.0.1', 'localhost', '::1', 'kubernetes.default.svc'], ...span })
  const server = createServer({ cert: own.certificate, key: own.key, keepAliveTimeout: 60_000 }, (request, response) => {
    void answer(apiServer, request, response)
  })
  server.on('clientError', (_cause, socket) => socket.destroy())
  server.listen(options.port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  // A TCP server that listens has an address with a port.
  const { port } = server.address() as AddressInfo
  return {
    url: `https://127.0.0.1:${port}`, port, ca: authority.certificate,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

async function answer(apiServer: ApiServer, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const stop = new AbortController()
  outgoing.on('close', () => stop.abort())
  try {
    const token = /^Bearer (.+)$/.exec(incoming.headers.authorization ?? '')?.[1]
    const user = token === undefined ? undefined : apiServer.authenticate(token)
    const bytes = await bodyOf(incoming)
    const body = bytes === undefined ? undefined : textOf(incoming, bytes)
    if (body === undefined) return await send(outgoing, refusalResponse(tooLarge(`limit is ${bodyLimit}`)))
    const open = ['/version', '/healthz', '/livez', '/readyz'].includes((incoming.url ?? '').split('?')[0] ?? '')
    const asked = user ?? (open ? anonymous : undefined)
    if (asked === undefined) return await send(outgoing, refusalResponse(unauthorized()))
    await send(outgoing, await apiServer.handle(requestOf(incoming, body), asked, stop.signal))
  } catch {
    // No answer was made (a fault switched on, a watch broken off): what the client sees is a connection that breaks.
    incoming.socket.destroy()
  } finally {
    stop.abort()
  }
}

const anonymous: User = { name: 'system:anonymous', groups: ['system:unauthenticated'] }

function requestOf(incoming: IncomingMessage, body: string): ApiRequest {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(incoming.headers)) if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  const { method } = incoming
  const known = method === 'POST' || method === 'PUT' || method === 'PATCH' || method === 'DELETE' ? method : 'GET'
  return { method: known, path: incoming.url ?? '/', headers, ...(body === '' ? {} : { body }) }
}

/** kubectl sends a few kinds as protobuf, whatever the server likes better. Others stay what they are and are refused later. */
function textOf(incoming: IncomingMessage, bytes: Buffer): string {
  if (!(incoming.headers['content-type'] ?? '').startsWith(protobufType)) return bytes.toString('utf8')
  const object = objectFromProtobuf(bytes)
  if (object === undefined) return ''
  incoming.headers['content-type'] = 'application/json'
  return JSON.stringify(object)
}

async function bodyOf(incoming: IncomingMessage): Promise<Buffer | undefined> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of incoming) {
    // Without an encoding set, a request's pieces are buffers.
    const buffer = piece as Buffer
    size += buffer.length
    if (size > bodyLimit) return undefined
    pieces.push(buffer)
  }
  return Buffer.concat(pieces)
}

async function send(outgoing: ServerResponse, response: ApiResponse): Promise<void> {
  outgoing.writeHead(response.status, { ...response.headers, 'cache-control': 'no-cache, private' })
  outgoing.flushHeaders()
  for await (const piece of response.body) {
    if (outgoing.destroyed) return
    if (!outgoing.write(piece)) await drained(outgoing)
  }
  outgoing.end()
}

/** Or closed. Of a long stream it is asked thousands of times, so nothing of it may stay behind. */
async function drained(outgoing: ServerResponse): Promise<void> {
  const over = new AbortController()
  const either = ['drain', 'close'].map((event) => once(outgoing, event, { signal: over.signal }))
  await Promise.race(either).finally(() => over.abort())
  await Promise.allSettled(either)
}
