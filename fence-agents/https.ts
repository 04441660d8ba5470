// HTTPS to the API of a cloud: the one place where our programs decide whom they trust, through which proxy they go and how
// long they wait. Nothing is sent before the server's certificate was judged. In plain HTTP only this machine and the cloud's
// own link-local services are spoken to, unless the operator says otherwise; those are never asked through a proxy.
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
// Not from node:http: as a module it brings a WebSocket client with it, which is a third of the program's start.
import { Agent, request } from 'node:https'
import { BlockList, connect as connectPlain, isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { Failure, environment, withoutSecrets, type Given, type ParameterDescription, type Reason } from './contract.ts'

export interface Web {
  ask(asking: Asking): Promise<Answer>
  close(): void
}

export interface Asking {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Instead of login_timeout and shell_timeout together: for a service that answers at once if it is there at all. */
  readonly within?: number
}

export interface Answer {
  readonly status: number
  readonly text: string
  header(name: string): string | undefined
  /** What is no JSON object is an empty one. */
  json(): Fields
}

export type Fields = Readonly<Record<string, unknown>>

export const webParameters: readonly ParameterDescription[] = [
  { name: 'ca', says: 'A file of the authorities to trust instead of the built-in ones; else SSL_CERT_FILE', type: 'string', obsoletes: 'cacert' },
  { name: 'proxy', says: 'The proxy, as http://HOST:PORT; else HTTPS_PROXY, but for the hosts of NO_PROXY', type: 'string' },
  { name: 'login_timeout', says: 'For connecting', type: 'second', default: '5' },
  { name: 'shell_timeout', says: 'For each answer', type: 'second', default: '10' },
]

/** For servers of one's own, which are often signed by nobody. */
export const trustParameters: readonly ParameterDescription[] = [
  { name: 'certificate_sha256', says: 'The SHA-256 of the server\'s certificate: this one and no other is trusted', type: 'string' },
  { name: 'ssl_insecure', says: 'Trust any certificate, and plain HTTP', type: 'boolean' },
]

const longestAnswer = 8 * 1024 * 1024

export function openWeb(given: Given): Web {
  const agents = { 'https:': new JudgingAgent(given, 'https:'), 'http:': new JudgingAgent(given, 'http:') }
  return {
    async ask(asking) {
      const url = URL.parse(asking.url)
      if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) throw new Failure('config', `${JSON.stringify(asking.url.slice(0, 64))} is no address of an API`)
      if (url.protocol === 'http:' && !isNear(url.hostname) && !given.yes('ssl_insecure')) throw new Failure('config', `${url.host}: a password is not sent in plain HTTP`)
      return exchange(agents[url.protocol], url, asking, given)
    },
    close() {
      for (const agent of Object.values(agents)) agent.destroy()
    },
  }
}

export function fieldsOf(value: unknown): Fields {
  // A field that is not there is an empty one; what is in it is unknown until it is looked at.
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value as Fields : {}
}

export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

const reasons: ReadonlyMap<number, Reason> = new Map([[400, 'config'], [401, 'auth'], [403, 'privilege'], [404, 'notfound'], [409, 'busy'], [410, 'notfound'], [429, 'busy']])

/** A server that fails is asked again like one that is busy. */
export function reasonOf(status: number): Reason {
  return reasons.get(status) ?? (status >= 500 ? 'busy' : 'device')
}

/** Of a server's own sentence so much as people need. Secrets go first: half of one would not be known for what it is. */
export function excerpt(text: string): string {
  const line = withoutSecrets(text).replace(/\p{Cc}+/gu, ' ').trim()
  return line.length <= longestExcerpt ? line : `${line.slice(0, longestExcerpt)}…`
}

const longestExcerpt = 160

async function exchange(agent: Agent, url: URL, asking: Asking, given: Given): Promise<Answer> {
  const { method, headers = {}, body } = asking
  const within = Math.max(1, Math.min(asking.within ?? given.ms('shell_timeout') + given.ms('login_timeout'), given.left()))
  const signal = AbortSignal.timeout(Math.ceil(within))
  const what = `${method} ${url.host}${url.pathname}`
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const sending = request(url, {
        agent, method, signal, headers: { host: url.host, 'user-agent': 'holdfast', ...headers, ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }) },
      }, resolve)
      sending.on('error', reject)
      sending.end(body)
    })
    const text = await wholeOf(response)
    const header = (name: string) => {
      const value = response.headers[name]
      return typeof value === 'string' ? value : undefined
    }
    return { status: response.statusCode ?? 0, text, header, json: () => objectOf(text) }
  } catch (error) {
    // The API's side of the program: each way of not answering becomes a reason, and none becomes an answer.
    if (error instanceof Failure) throw error
    if (signal.aborted) throw new Failure('timeout', `no answer to ${what} within ${Math.round(within)} ms`)
    throw new Failure('unreachable', `${what}: ${error instanceof Error ? error.message : 'no answer'}`)
  }
}

async function wholeOf(response: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of response as AsyncIterable<Buffer>) {
    size += piece.length
    if (size > longestAnswer) throw new Failure('device', 'an answer longer than any that was asked for')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}

function objectOf(text: string): Fields {
  try {
    return fieldsOf(JSON.parse(text))
  } catch {
    return {} // an HTML error page, or nothing: its status tells what there is to tell
  }
}

type Protocol = 'https:' | 'http:'

/** Hands out a socket only once the server's certificate has been judged, so that no secret can run ahead of the judgement. */
class JudgingAgent extends Agent {
  readonly given: Given
  readonly kind: Protocol

  constructor(given: Given, kind: Protocol) {
    super({ keepAlive: true, maxSockets: 1 })
    this.given = given
    this.kind = kind
    // Read by node:https, which would refuse http: otherwise.
    Object.assign(this, { protocol: kind, defaultPort: kind === 'https:' ? 443 : 80 })
  }

  override createConnection(options: { readonly host?: string; readonly port?: number | string }, ready?: (error: Error | null, socket: Duplex) => void): undefined {
    const [host, port] = [options.host ?? '', Number(options.port ?? (this.kind === 'https:' ? 443 : 80))]
    const given = (error: unknown) => (ready as ((error: unknown) => void) | undefined)?.(error) // of a failure there is no socket to hand out
    connected({ host, port, kind: this.kind }, this.given).then((socket) => ready?.(null, socket), given)
    return undefined
  }
}

interface Place {
  readonly host: string
  readonly port: number
  readonly kind: Protocol
}

async function connected(place: Place, given: Given): Promise<Socket> {
  const within = Math.max(1, Math.min(given.ms('login_timeout'), given.left()))
  const proxy = proxyFor(place, given)
  const way = proxy === undefined ? place.host : `${place.host} through ${proxy.host}`
  const opened: Socket[] = []
  const keep = <T extends Socket>(socket: T): T => {
    opened.push(socket)
    return socket
  }
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Failure('timeout', `no connection to ${way} within ${Math.round(within)} ms`)), within)
  })
  try {
    return await Promise.race([late, way === place.host ? direct(place, given, keep) : tunnelled(place, proxy, given, keep)])
  } catch (error) {
    // The one on top first: Node falls over where the socket beneath a TLS socket goes before it.
    for (const socket of opened.toReversed()) socket.destroy()
    throw error instanceof Failure ? error : new Failure('unreachable', `${way}: ${error instanceof Error ? error.message : 'no connection'}`)
  } finally {
    clearTimeout(timer)
  }
}

type Keep = <T extends Socket>(socket: T) => T

async function direct(place: Place, given: Given, keep: Keep): Promise<Socket> {
  const socket = keep(connectPlain({ host: place.host, port: place.port }))
  await opens(socket, 'connect')
  return place.kind === 'https:' ? judged(socket, place.host, given, keep) : socket
}

async function tunnelled(place: Place, proxy: URL | undefined, given: Given, keep: Keep): Promise<Socket> {
  if (proxy === undefined) return direct(place, given, keep)
  const kind = proxy.protocol === 'https:' ? 'https:' : 'http:'
  const socket = await direct({ host: bare(proxy.hostname), port: Number(proxy.port) || (kind === 'https:' ? 443 : 80), kind }, given, keep)
  const target = `${isIP(place.host) === 6 ? `[${place.host}]` : place.host}:${place.port}`
  const login = proxy.username === '' ? '' : `proxy-authorization: Basic ${Buffer.from(`${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`).toString('base64')}\r\n`
  socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n${login}\r\n`)
  const status = await statusOf(socket)
  if (status < 200 || status > 299) throw new Failure(status === 407 ? 'auth' : 'unreachable', `the proxy ${proxy.host} answers ${status} for ${target}`)
  return place.kind === 'https:' ? judged(socket, place.host, given, keep) : socket
}

const longestHead = 16 * 1024

/** Of the proxy's answer to CONNECT. A server behind it says nothing before it is spoken to, so nothing of its words is lost. */
async function statusOf(socket: Socket): Promise<number> {
  let head = ''
  while (!head.includes('\r\n\r\n')) {
    if (head.length > longestHead) throw new Error('the proxy answers without end')
    const piece: unknown = socket.read()
    if (piece === null) await opens(socket, 'readable')
    else head += String(piece)
    if (piece === null && socket.readableEnded) throw new Error('the proxy hung up')
  }
  return Number(/^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1] ?? 0)
}

async function judged(socket: Socket, host: string, given: Given, keep: Keep): Promise<TLSSocket> {
  const pin = given.optional('certificate_sha256')
  const pinned = pin !== undefined && pin !== ''
  const ca = authorities(given)
  socket.on('error', () => undefined) // told by the TLS socket upon it
  const tls = keep(connectTls({
    socket, host, ...(isIP(host) === 0 ? { servername: host } : {}), ...(ca === undefined ? {} : { ca }),
    rejectUnauthorized: !pinned && !given.yes('ssl_insecure'),
  }))
  await opens(tls, 'secureConnect').catch((error: Error) => {
    const code = 'code' in error ? String(error.code) : ''
    if (!/CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET|ALTNAME/.test(code)) throw error
    throw new Failure('config', `the certificate of ${host} is not trusted (${code}): name its authority in ca= or SSL_CERT_FILE`)
  })
  const has = plainHex(tls.getPeerCertificate().fingerprint256 ?? '')
  if (pinned && has !== plainHex(pin)) throw new Failure('config', `the certificate of ${host} is not the pinned one: it has ${has}`)
  return tls
}

function plainHex(text: string): string {
  return text.replace(/[^0-9a-fA-F]/g, '').toLowerCase()
}

function opens(socket: Socket, event: 'connect' | 'secureConnect' | 'readable'): Promise<void> {
  return new Promise((resolve, reject) => {
    const closed = () => reject(new Error('the connection was closed'))
    socket.once('error', reject).once('close', closed).once(event, () => {
      socket.off('error', reject).off('close', closed)
      resolve()
    })
  })
}

function authorities(given: Given): string | undefined {
  const file = textOf(given.optional('ca')) ?? textOf(environment()['SSL_CERT_FILE'])
  return file === undefined ? undefined : contentOf(file, 'ca=')
}

/** A file that the operator named. What is in it is not repeated: it may be a key. */
export function contentOf(file: string, parameter: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'no reason given'
    throw new Failure('config', `${parameter} names a file that cannot be read (${code})`)
  }
}

function proxyFor({ host, kind }: Place, given: Given): URL | undefined {
  if (isNear(host)) return undefined
  const named = textOf(given.optional('proxy'))
  const fromEnvironment = kind === 'https:' ? (environment()['HTTPS_PROXY'] ?? environment()['https_proxy']) : environment()['http_proxy']
  const text = named ?? textOf(fromEnvironment)
  if (text === undefined || (named === undefined && isExempt(host))) return undefined
  const url = URL.parse(text.includes('://') ? text : `http://${text}`)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) throw new Failure('config', 'the proxy is not of the form http://HOST:PORT')
  return url
}

/** NO_PROXY as most programs read it: names with all below them, addresses, networks, or everything. */
function isExempt(host: string): boolean {
  const entries = (environment()['NO_PROXY'] ?? environment()['no_proxy'] ?? '').split(',').map((entry) => entry.trim().toLowerCase()).filter((entry) => entry !== '')
  const name = bare(host).toLowerCase()
  return entries.some((entry) => {
    // The end of an IPv6 address is no port.
    const plain = isIP(entry) === 6 ? entry : bare(entry.replace(/:\d+$/, '').replace(/^\*?\./, ''))
    return entry === '*' || name === plain || (isIP(name) === 0 ? name.endsWith(`.${plain}`) : inNetwork(name, entry))
  })
}

function inNetwork(address: string, network: string): boolean {
  const [start = '', bits] = network.split('/')
  const [family, length] = [isIP(start), Number(bits)]
  if (bits === undefined || family === 0 || !Number.isInteger(length) || length < 0 || length > (family === 4 ? 32 : 128)) return false
  const list = new BlockList()
  list.addSubnet(start, length, family === 4 ? 'ipv4' : 'ipv6')
  return list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

const near = new BlockList()
near.addSubnet('127.0.0.0', 8)
near.addSubnet('169.254.0.0', 16)
near.addAddress('::1', 'ipv6')
near.addSubnet('fe80::', 10, 'ipv6')
near.addAddress('fd00:ec2::254', 'ipv6')
near.addAddress('fd00:ec2::23', 'ipv6')

/** This machine, and where clouds keep the metadata of an instance: what is sent there passes no network of others. */
function isNear(host: string): boolean {
  const address = bare(host)
  const family = isIP(address)
  return family === 0 ? ['localhost', 'metadata.google.internal'].includes(address) : near.check(address, family === 6 ? 'ipv6' : 'ipv4')
}

function bare(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1')
}
