// The replica's own HTTP server: probes for kubelet, metrics for Prometheus, and whatever else is hung onto it (the page).
// Plain, small and bounded: nothing it is asked may cost the replica its beat.
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Log } from '../edge/log.ts'

/** Undefined: well. Else why not, in a few words. */
export type Check = () => string | undefined

export type Handler = (request: http.IncomingMessage, response: http.ServerResponse, url: URL) => void | Promise<void>

export interface HealthOptions {
  /** `host:port`; `:8080` is every address; port 0 is any. */
  readonly address: string
  /** Only of this process itself: a replica whose API server is away must not be restarted for it. */
  readonly live: Readonly<Record<string, Check>>
  readonly ready: Readonly<Record<string, Check>>
  metrics(): string
  readonly log: Log
}

export interface HealthServer {
  /** Where it listens. */
  readonly address: string
  /** `path` itself, or with a `/` at its end all below it. The longest one wins. Bodies are at most `bodyLimit` long. */
  route(path: string, handler: Handler): void
  close(): Promise<void>
}

const bodyLimit = 256 * 1024
const connections = 128

export async function serveHealth({ address, live, ready, metrics, log }: HealthOptions): Promise<HealthServer> {
  const routes = new Map<string, Handler>([
    ['/livez', checking('livez', live)],
    ['/healthz', checking('healthz', live)],
    ['/readyz', checking('readyz', ready)],
    ['/metrics', reading((_url, response) => say(response, 200, metrics(), 'text/plain; version=0.0.4; charset=utf-8'))],
  ])
  const server = http.createServer({ maxHeaderSize: 16 * 1024, headersTimeout: 5_000, requestTimeout: 15_000, keepAliveTimeout: 10_000 }, (request, response) => {
    void answer(request, response)
  })
  server.maxConnections = connections
  // A client that speaks no HTTP, or sends too much of it, is nobody's news.
  server.on('clientError', (_error, socket) => socket.destroy())
  await listening(server, address)
  const bound = server.address() as AddressInfo // a TCP server's address is always an object
  return {
    address: bound.family === 'IPv6' ? `[${bound.address}]:${bound.port}` : `${bound.address}:${bound.port}`,
    route: (path, handler) => void routes.set(path, handler),
    close: () => new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    }),
  }

  async function answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    try {
      const refused = tooMuch(request)
      if (refused !== undefined) return say(response, refused, `${http.STATUS_CODES[refused]}\n`)
      const url = new URL(request.url ?? '/', 'http://holdfast')
      const handler = handlerOf(url.pathname)
      if (!handler) return say(response, 404, 'not found\n')
      await handler(request, response, url)
    } catch (error) {
      // A page that fails is a page that fails; the replica goes on.
      log.error({ path: request.url, error }, 'a request could not be answered')
      if (response.headersSent) response.destroy()
      else say(response, 500, 'failed\n')
    }
  }

  function handlerOf(path: string): Handler | undefined {
    const exact = routes.get(path)
    if (exact) return exact
    const [longest] = [...routes.keys()].filter((route) => route.endsWith('/') && path.startsWith(route)).toSorted((one, other) => other.length - one.length)
    return longest === undefined ? undefined : routes.get(longest)
  }
}

/** Bodies come with their length or not at all, so that the limit holds before the first byte is read. */
function tooMuch(request: http.IncomingMessage): number | undefined {
  if (request.headers['transfer-encoding'] !== undefined) return 411
  return Number(request.headers['content-length'] ?? 0) > bodyLimit ? 413 : undefined
}

function reading(show: (url: URL, response: http.ServerResponse) => void): Handler {
  return (request, response, url) => {
    if (request.method === 'GET' || request.method === 'HEAD') show(url, response)
    else say(response, 405, 'only read\n')
  }
}

/** kube-apiserver's own form, which people and tools know: a word when well, the list when not, or when asked. */
function checking(name: string, checks: Readonly<Record<string, Check>>): Handler {
  return reading((url, response) => {
    const said = Object.entries(checks).map(([check, ask]) => ({ check, why: asked(ask) }))
    const well = said.every(({ why }) => why === undefined)
    const list = said.map(({ check, why }) => (why === undefined ? `[+]${check} ok` : `[-]${check} failed: ${why}`))
    const sum = `${name} check ${well ? 'passed' : 'failed'}`
    say(response, well ? 200 : 503, well && !url.searchParams.has('verbose') ? 'ok' : `${[...list, sum].join('\n')}\n`)
  })
}

function asked(check: Check): string | undefined {
  try {
    return check()
  } catch (error) {
    return error instanceof Error ? error.message : String(error) // a check that fails is a check that failed
  }
}

function say(response: http.ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text), 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
  response.end(text)
}

function listening(server: http.Server, address: string): Promise<void> {
  const cut = address.lastIndexOf(':')
  const host = address.slice(0, cut).replace(/^\[|\]$/g, '')
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port: Number(address.slice(cut + 1)), ...(host === '' ? {} : { host }) }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}
