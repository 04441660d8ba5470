// HTTPS to one management controller. Nothing is sent before its certificate was judged: by a pin, by the machine's own
// authorities, or, if the operator says so, not at all. Every request has a deadline; a controller that stands still must
// not hold the program, as it was measured to hold others.
import type { IncomingMessage } from 'node:http'
// Not from node:http: as a module it brings a WebSocket client with it, which is a third of the program's start.
import { Agent, request } from 'node:https'
import { isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect, type TLSSocket } from 'node:tls'
import { Failure, type Given } from '../contract.ts'

export interface Connection {
  call(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<Answer>
  /** Sent with each call from here on. */
  authorize(headers: Readonly<Record<string, string>>): void
  close(): void
}

export interface Answer {
  readonly status: number
  readonly location: string | undefined
  readonly token: string | undefined
  readonly body: Readonly<Record<string, unknown>>
}

const mostRedirects = 3
const longestBody = 1024 * 1024

export function connectTo(given: Given): Connection {
  const agent = new VerifyingAgent(given)
  let authorization: Readonly<Record<string, string>> = {}
  return {
    authorize(headers) {
      authorization = headers
    },
    async call(method, path, body) {
      let target = path
      for (let turn = 0; turn <= mostRedirects; turn += 1) {
        const answer = await exchange(agent, given, { method, path: target, headers: authorization, body })
        if (answer.status < 300 || answer.status > 399 || answer.location === undefined) return answer
        target = samePlace(answer.location, given)
      }
      throw new Failure('device', `${path} leads in a circle`)
    },
    close: () => agent.destroy(),
  }
}

/** Only the path of a redirect or a Location is used: the password goes to this controller and to no other. */
export function samePlace(location: string, given: Given): string {
  const url = URL.parse(location, `https://${host(given)}`)
  if (url === null || url.hostname !== new URL(`https://${host(given)}`).hostname) throw new Failure('device', 'the device sends us elsewhere')
  return `${url.pathname}${url.search}`
}

interface Exchange {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

async function exchange(agent: Agent, given: Given, { method, path, headers, body }: Exchange): Promise<Answer> {
  const within = Math.min(given.ms('shell_timeout') + given.ms('login_timeout'), given.left())
  const signal = AbortSignal.timeout(Math.max(1, Math.ceil(within)))
  const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const sending = request({
        agent, method, path, signal,
        headers: {
          host: host(given), accept: 'application/json', 'odata-version': '4.0', ...headers,
          ...(payload === undefined ? {} : { 'content-type': 'application/json', 'content-length': payload.length }),
        },
      }, resolve)
      sending.on('error', reject)
      sending.end(payload)
    })
    const text = await textOf(response)
    const { location, 'x-auth-token': token } = response.headers
    return { status: response.statusCode ?? 0, location, token: typeof token === 'string' ? token : undefined, body: objectOf(text) }
  } catch (error) {
    // The device's side of the program: each way of not answering becomes a reason, and none becomes an answer.
    if (error instanceof Failure) throw error
    if (signal.aborted) throw new Failure('timeout', `no answer to ${method} ${path} within ${Math.round(within)} ms`)
    throw new Failure('unreachable', `${method} ${path}: ${error instanceof Error ? error.message : 'no answer'}`)
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of response as AsyncIterable<Buffer>) {
    size += piece.length
    if (size > longestBody) throw new Failure('device', 'an answer longer than any Redfish resource')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = text.trim() === '' ? {} : JSON.parse(text)
    // Its fields are unknown until each is looked at.
    return typeof value === 'object' && value !== null ? value as Readonly<Record<string, unknown>> : {}
  } catch {
    return {} // an HTML error page is no resource: its status tells what there is to tell
  }
}

function host(given: Given): string {
  const ip = given.text('ip')
  return `${isIP(ip) === 6 ? `[${ip}]` : ip}:${given.text('ipport')}`
}

/** Hands out a socket only once its certificate has been judged, so that no password can run ahead of the judgement. */
class VerifyingAgent extends Agent {
  readonly given: Given

  constructor(given: Given) {
    super({ keepAlive: true, maxSockets: 1 })
    this.given = given
  }

  override createConnection(_options: unknown, ready?: (error: Error | null, socket: Duplex) => void): undefined {
    const { given } = this
    const ip = given.text('ip')
    const pin = given.optional('certificate_sha256')
    const socket = connect({
      host: ip, port: Number(given.text('ipport')), ...(isIP(ip) === 0 ? { servername: ip } : {}),
      rejectUnauthorized: pin === undefined && !given.yes('ssl_insecure'),
    })
    const within = Math.min(given.ms('login_timeout'), given.left())
    const fail = (error: Error) => {
      socket.destroy()
      ready?.(error, socket)
    }
    socket.setTimeout(Math.max(1, within), () => fail(new Failure('timeout', `no TLS connection to ${host(given)} within ${Math.round(within)} ms`)))
    socket.once('error', (error) => fail(connectFailure(error, given)))
    socket.once('secureConnect', () => {
      socket.setTimeout(0)
      socket.removeAllListeners('error')
      if (pin !== undefined && fingerprint(socket) !== plainHex(pin)) {
        fail(new Failure('config', `the certificate of ${host(given)} is not the pinned one: it has ${fingerprint(socket)}`))
        return
      }
      ready?.(null, socket)
    })
    return undefined
  }
}

function connectFailure(error: Error, given: Given): Failure {
  const code = 'code' in error ? String(error.code) : ''
  const untrusted = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME/.test(code)
  if (untrusted) return new Failure('config', `the certificate of ${host(given)} is not trusted (${code}): set certificate_sha256= or ssl_insecure=1`)
  return new Failure('unreachable', `${host(given)}: ${error.message}`)
}

function fingerprint(socket: TLSSocket): string {
  return plainHex(socket.getPeerCertificate().fingerprint256 ?? '')
}

function plainHex(text: string): string {
  return text.replace(/[^0-9a-fA-F]/g, '').toLowerCase()
}
