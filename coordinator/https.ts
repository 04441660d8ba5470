// The transport on a machine: one keep-alive pool for calls and one for watches, so that watches, which never end, cannot
// starve calls. Connections are few and live long: a new TLS connection for each call costs ten times the time and CPU of
// the call itself, and once cost a client 500 descriptors. Deadlines are the caller's, by the signal; what this file bounds
// by itself are only sockets that nobody waits for.
import http from 'node:http'
import https from 'node:https'
import type { Ms } from '../core/model.ts'
import { machineClock, withDeadline, type Clock } from '../edge/clock.ts'
import type { ApiRequest, ApiResponse, Transport } from './transport.ts'

export interface HttpsOptions {
  /** With a path if the server stands behind one. `http://` only for this machine itself (kubectl proxy, tests). */
  readonly url: string
  /** PEM. Undefined: the machine's own authorities. */
  readonly ca?: string
  /** The name in the server's certificate, where it is not the one in the URL. */
  readonly servername?: string
  /** False only where a person wrote so into the kubeconfig. */
  readonly verify?: boolean
  /** Who we are. Asked at the first call, again when the last answer is older than `credentialAge`, and with `renew` when
   *  the server answered 401: then whatever is cached below must be read anew. */
  credentials(renew: boolean): Promise<Credentials>
  readonly credentialAge?: Ms
  readonly clock?: Clock
  readonly maxSockets?: number
  readonly maxWatches?: number
}

export interface Credentials {
  readonly token?: string
  /** `user:password`. */
  readonly basic?: string
  readonly cert?: string
  readonly key?: string
}

export interface HttpsTransport extends Transport {
  /** Ends every connection; what was under way rejects. */
  close(): void
}

interface Pools { readonly calls: http.Agent; readonly watches: http.Agent }

// The API server closes idle connections after 90 s or more: ours go before, so that a call never meets one just closed.
const idleSpan = 60_000
const keepAliveSpan = 15_000
// Bound tokens in files change about hourly; client-go reads them as often.
const usualCredentialAge = 60_000
// A server that answers everything with 401 must not make us run an exec plugin with each call, nor a plugin that hangs
// hold every call for ever.
const renewSpacing = 5_000
const credentialSpan = 30_000
const usualSockets = 16
const usualWatches = 64

export function httpsTransport(options: HttpsOptions): HttpsTransport {
  const base = new URL(options.url)
  const secure = base.protocol === 'https:'
  if (!secure && !(base.protocol === 'http:' && isLoopback(base.hostname))) {
    throw new Error(`${options.url}: an API server is spoken to over https, or over http on this machine alone`)
  }
  const clock = options.clock ?? machineClock
  const prefix = base.pathname.replace(/\/+$/, '')
  let known: { at: Ms; credentials: Credentials } | undefined
  let asking: Promise<Credentials> | undefined
  let renewedAt: Ms | undefined
  let pools: Pools | undefined
  let poolsFor: Credentials = {}
  let closed = false

  const transport = async (request: ApiRequest, signal: AbortSignal): Promise<ApiResponse> => {
    const credentials = await current()
    const message = await exchange(request, credentials, signal)
    if (message.statusCode !== 401) return answerOf(message)
    // A token that was rotated or revoked under us. Once, and only if there is another one to show: the request was refused
    // before it did anything, so a second sending repeats nothing.
    const renewed = await renew(credentials)
    if (same(credentials, renewed)) return answerOf(message)
    message.resume()
    return answerOf(await exchange(request, renewed, signal))
  }
  return Object.assign(transport, {
    close() {
      closed = true
      if (pools) end(pools)
    },
  })

  async function current(): Promise<Credentials> {
    if (known && clock.now() - known.at < (options.credentialAge ?? usualCredentialAge)) return known.credentials
    return await ask(false)
  }

  async function renew(refused: Credentials): Promise<Credentials> {
    // Somebody else's 401 may have brought the new token already.
    if (known && !same(known.credentials, refused)) return known.credentials
    if (renewedAt !== undefined && clock.now() - renewedAt < renewSpacing) return refused
    renewedAt = clock.now()
    return await ask(true)
  }

  /** One question at a time: a hundred calls that meet an old token together ask once. */
  function ask(anew: boolean): Promise<Credentials> {
    asking ??= withDeadline(clock, credentialSpan, undefined, () => options.credentials(anew)).then((credentials) => {
      if (credentials === undefined) throw new Error(`no credentials within ${credentialSpan} ms`)
      known = { at: clock.now(), credentials }
      return credentials
    }).finally(() => { asking = undefined })
    return asking
  }

  function poolsOf(credentials: Credentials): Pools {
    if (closed) throw new Error('the transport is closed')
    if (pools && poolsFor.cert === credentials.cert && poolsFor.key === credentials.key) return pools
    // Another client certificate needs new connections. The old ones finish what they carry and are not used again.
    if (pools) retire(pools)
    pools = { calls: pool(credentials, options.maxSockets ?? usualSockets), watches: pool(credentials, options.maxWatches ?? usualWatches) }
    poolsFor = credentials
    return pools
  }

  function pool(credentials: Credentials, maxSockets: number): http.Agent {
    const shape = { keepAlive: true, keepAliveMsecs: keepAliveSpan, maxSockets, maxFreeSockets: 4, timeout: idleSpan, scheduling: 'lifo' as const }
    if (!secure) return new http.Agent(shape)
    const { ca, servername } = options
    const { cert, key } = credentials
    return new https.Agent({
      ...shape, rejectUnauthorized: options.verify !== false,
      ...(ca === undefined ? {} : { ca }), ...(servername === undefined ? {} : { servername }),
      ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }),
    })
  }

  function exchange(request: ApiRequest, credentials: Credentials, signal: AbortSignal): Promise<http.IncomingMessage> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) throw new Error('given up')
      const { calls, watches } = poolsOf(credentials)
      const body = request.body === undefined ? undefined : Buffer.from(request.body)
      const sent = (secure ? https : http).request({
        agent: isWatch(request.path) ? watches : calls,
        host: base.hostname.replace(/^\[|\]$/g, ''),
        port: base.port === '' ? (secure ? 443 : 80) : base.port,
        method: request.method,
        path: prefix + request.path,
        headers: {
          ...request.headers, ...authorization(credentials),
          ...(body === undefined ? {} : { 'content-length': body.length }),
        },
      })
      let answer: http.IncomingMessage | undefined
      // Not the `signal` option: that also destroys the connection of an exchange whose body has just been read to its end,
      // and each call would then open a new one.
      const give = () => {
        if (!answer?.complete) sent.destroy(new Error('given up'))
      }
      signal.addEventListener('abort', give, { once: true })
      const settle = () => signal.removeEventListener('abort', give)
      sent.once('socket', (socket) => socket.setKeepAlive(true, keepAliveSpan))
      sent.once('error', reject)
      sent.on('error', () => undefined) // after the status line the body's reader hears of it
      sent.once('close', settle)
      sent.once('response', (message) => {
        answer = message.setEncoding('utf8')
        message.once('close', settle)
        resolve(message)
      })
      sent.end(body)
    })
  }
}

function answerOf(message: http.IncomingMessage): ApiResponse {
  return { status: message.statusCode ?? 0, headers: single(message.headers), body: message }
}

function authorization({ token, basic }: Credentials): Record<string, string> {
  if (token !== undefined) return { authorization: `Bearer ${token}` }
  return basic === undefined ? {} : { authorization: `Basic ${Buffer.from(basic).toString('base64')}` }
}

function same(one: Credentials, other: Credentials): boolean {
  return one.token === other.token && one.basic === other.basic && one.cert === other.cert && one.key === other.key
}

function isWatch(path: string): boolean {
  return /[?&]watch=(1|true)(&|$)/.test(path)
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}

function single(headers: http.IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : (value ?? '')]))
}

function retire({ calls, watches }: Pools): void {
  for (const agent of [calls, watches]) {
    agent.maxFreeSockets = 0
    for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy()
  }
}

function end({ calls, watches }: Pools): void {
  calls.destroy()
  watches.destroy()
}
