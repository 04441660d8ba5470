// A Redfish service over HTTPS whose machines are somebody else's: it asks what their power is and passes orders on. It
// behaves like a controller, well or badly as it is told, so that real fence programs can be run against simulated machines.
import { timingSafeEqual, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import { selfSigned } from './redfish-certificate.ts'

export type RedfishPower = 'On' | 'Off' | 'PoweringOn' | 'PoweringOff'
export type RedfishOrder = 'ForceOff' | 'On'

export interface RedfishSystem {
  readonly id: string
  readonly name: string
  readonly uuid: string
}

/** `mute` takes the connection and never answers. `refuse` breaks it. `error` answers 500, to an order after it was carried
 *  out, as the worst of them do. `ignore` takes an order, says 204 and does nothing. `slow` answers late. */
export type RedfishFault = 'mute' | 'refuse' | 'error' | 'ignore' | 'wrong-password' | { readonly slow: Ms }

export interface RedfishOptions {
  readonly clock: Clock
  systems(): readonly RedfishSystem[]
  power(system: string): RedfishPower
  order(system: string, order: RedfishOrder): void
  readonly username: string
  readonly password: string
  readonly host?: string
  readonly port?: number
}

export interface Redfish {
  readonly url: string
  readonly host: string
  readonly port: number
  /** PEM, and its SHA-256 as an operator pins it. */
  readonly certificate: string
  readonly fingerprint: string
  /** For one system, or for the whole controller. Undefined: it behaves. */
  fault(system: string | 'all', fault: RedfishFault | undefined): void
  close(): Promise<void>
}

const root = '/redfish/v1'
/** As few as on real ones, so that a client that leaves sessions behind locks itself out soon. */
const mostSessions = 4
const longestBody = 16 * 1024

export async function startRedfish(options: RedfishOptions): Promise<Redfish> {
  const host = options.host ?? '127.0.0.1'
  const { key, certificate, fingerprint } = selfSigned('redfish.sim', host)
  const state: State = { options, faults: new Map(), sessions: new Set(), closing: new AbortController() }
  const sockets = new Set<Socket>()
  const server = createServer({ key, cert: certificate }, (request, response) => {
    serve(state, request, response).catch(() => response.destroy()) // the client went away in the middle: nobody is left to tell
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('tlsClientError', () => undefined) // a client that does not like our certificate: its affair
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, host, resolve)
  })
  const { port } = server.address() as AddressInfo // it listens on TCP, so this is no path
  return {
    url: `https://${host}:${port}`, host, port, certificate, fingerprint,
    fault(system, fault) {
      if (fault === undefined) state.faults.delete(system)
      else state.faults.set(system, fault)
    },
    async close() {
      state.closing.abort()
      const closed = new Promise<void>((resolve) => { server.close(() => resolve()) })
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

interface State {
  readonly options: RedfishOptions
  readonly faults: Map<string, RedfishFault>
  readonly sessions: Set<string>
  readonly closing: AbortController
}

interface Reply {
  readonly status: number
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
}

async function serve(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = (request.url ?? '/').replace(/\?.*$/, '').replace(/\/+$/, '')
  const text = await bodyOf(request)
  const [, id, action] = /^\/redfish\/v1\/Systems\/([^/]+)(\/Actions\/ComputerSystem\.Reset)?$/.exec(path) ?? []
  const system = id === undefined ? undefined : state.options.systems().find((one) => one.id === decodeURIComponent(id))
  const fault = (system === undefined ? undefined : state.faults.get(system.id)) ?? state.faults.get('all')
  if (fault === 'mute') return
  if (fault === 'refuse') {
    response.destroy()
    return
  }
  if (typeof fault === 'object') await state.options.clock.wait(fault.slow, state.closing.signal)
  const reply = answer(state, request, { path, text, system, reset: action !== undefined, named: id !== undefined }, fault)
  response.writeHead(reply.status, { 'content-type': 'application/json', 'odata-version': '4.0', ...reply.headers })
  response.end(reply.body === undefined ? '' : JSON.stringify(reply.body))
}

interface Asked {
  readonly path: string
  readonly text: string
  readonly system: RedfishSystem | undefined
  readonly reset: boolean
  readonly named: boolean
}

function answer(state: State, request: IncomingMessage, asked: Asked, fault: RedfishFault | undefined): Reply {
  const { method = 'GET' } = request
  if (asked.path === root && method === 'GET') return { status: 200, body: serviceRoot }
  if (asked.path === `${root}/SessionService/Sessions` && method === 'POST') return logIn(state, asked.text, fault)
  if (fault === 'wrong-password' || !authorized(state, request)) return { ...refusal(401, 'the login is not known'), headers: { 'www-authenticate': 'Basic realm="redfish"' } }
  if (asked.path.startsWith(`${root}/SessionService/Sessions/`) && method === 'DELETE') {
    state.sessions.delete(asked.path.slice(`${root}/SessionService/Sessions/`.length))
    return { status: 204 }
  }
  if (fault === 'error' && !asked.reset) return refusal(500, 'something broke')
  if (asked.path === `${root}/Systems` && method === 'GET') return { status: 200, body: collection(state) }
  if (asked.system === undefined) return refusal(404, asked.named ? 'there is no such system' : 'there is no such resource')
  if (asked.reset) return method === 'POST' ? reset(state, asked.system, asked.text, fault) : refusal(405, 'only POST')
  return method === 'GET' ? { status: 200, body: resource(state, asked.system) } : refusal(405, 'only GET')
}

function reset(state: State, system: RedfishSystem, text: string, fault: RedfishFault | undefined): Reply {
  const type = stringIn(text, 'ResetType')
  if (type !== 'ForceOff' && type !== 'On') return refusal(400, `ResetType ${type ?? 'missing'} is not allowed`)
  if (fault !== 'ignore') state.options.order(system.id, type)
  return fault === 'error' ? refusal(500, 'something broke') : { status: 204 }
}

function logIn(state: State, text: string, fault: RedfishFault | undefined): Reply {
  const { username, password } = state.options
  if (fault === 'wrong-password' || !same(stringIn(text, 'UserName') ?? '', username) || !same(stringIn(text, 'Password') ?? '', password)) {
    return refusal(401, 'the login is not known')
  }
  if (state.sessions.size >= mostSessions) return refusal(503, 'no session is free')
  const token = randomBytes(12).toString('hex')
  state.sessions.add(token)
  const location = `${root}/SessionService/Sessions/${token}`
  return { status: 201, body: { '@odata.id': location, Id: token, Name: 'Session' }, headers: { 'x-auth-token': token, location } }
}

function authorized(state: State, request: IncomingMessage): boolean {
  const { authorization, 'x-auth-token': token } = request.headers
  if (typeof token === 'string') return state.sessions.has(token)
  const { username, password } = state.options
  return same(authorization ?? '', `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`)
}

function same(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

const serviceRoot = {
  '@odata.id': root, '@odata.type': '#ServiceRoot.v1_15_0.ServiceRoot', Id: 'RootService', Name: 'Root Service', RedfishVersion: '1.15.0',
  Systems: { '@odata.id': `${root}/Systems` }, SessionService: { '@odata.id': `${root}/SessionService` },
  Links: { Sessions: { '@odata.id': `${root}/SessionService/Sessions` } },
}

function collection(state: State): object {
  const members = state.options.systems().map((system) => ({ '@odata.id': pathOf(system) }))
  return {
    '@odata.id': `${root}/Systems`, '@odata.type': '#ComputerSystemCollection.ComputerSystemCollection', Name: 'Computer System Collection',
    'Members@odata.count': members.length, Members: members,
  }
}

function resource(state: State, system: RedfishSystem): object {
  return {
    '@odata.id': pathOf(system), '@odata.type': '#ComputerSystem.v1_20_0.ComputerSystem', Id: system.id, Name: system.name, UUID: system.uuid,
    PowerState: state.options.power(system.id), SystemType: 'Physical',
    Actions: { '#ComputerSystem.Reset': { target: `${pathOf(system)}/Actions/ComputerSystem.Reset`, 'ResetType@Redfish.AllowableValues': ['On', 'ForceOff'] } },
  }
}

function pathOf(system: RedfishSystem): string {
  return `${root}/Systems/${encodeURIComponent(system.id)}`
}

function refusal(status: number, says: string): Reply {
  return { status, body: { error: { code: 'Base.1.15.GeneralError', message: says } } }
}

function stringIn(text: string, field: string): string | undefined {
  try {
    const body = JSON.parse(text) as unknown
    const value = typeof body === 'object' && body !== null ? (body as Readonly<Record<string, unknown>>)[field] : undefined
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined // no JSON: it has no such field
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of request as AsyncIterable<Buffer>) {
    size += piece.length
    if (size > longestBody) throw new Error('a body longer than any order')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}
