// The page: what this replica sees, for people. It only reads; a browser that asks gets the state as JSON, one that listens
// gets it again whenever it changed. Whoever looks costs a bounded amount: one state is built for all listeners, no oftener
// than twice a second, and only while somebody listens.
import { readFileSync } from 'node:fs'
import type http from 'node:http'
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Handler } from './health.ts'
import { pageState, type PageExtras, type PageSource } from './page-state.ts'

export interface PageOptions {
  readonly source: PageSource
  readonly clock: Clock
  readonly extras?: PageExtras
}

export interface Page {
  /** For the route `/`: the page, its files, `/api/state` and `/api/events`. */
  readonly handle: Handler
  /** Browsers that listen now. */
  listeners(): number
  /** Ends every listening; browsers come back by themselves. */
  close(): void
}

/** More than this many open browser tabs are told to come again. */
const mostListeners = 32
const lookEvery: Ms = 500
/** Proxies and browsers give up on streams that say nothing. */
const breathEvery: Ms = 15_000
/** Bytes that a listener may leave unread: two large states. */
const mostUnread = 4 * 1024 * 1024

const folder = new URL('page/', import.meta.url)
const files: Readonly<Record<string, { readonly file: string; readonly type: string }>> = {
  '/': { file: 'page.html', type: 'text/html; charset=utf-8' },
  '/page.css': { file: 'page.css', type: 'text/css; charset=utf-8' },
  '/page.js': { file: 'page.js', type: 'text/javascript; charset=utf-8' },
  '/draw.js': { file: 'draw.js', type: 'text/javascript; charset=utf-8' },
  '/icon.svg': { file: 'icon.svg', type: 'image/svg+xml' },
}

/** Nothing from elsewhere, no script but our own: what is shown comes from a cluster that may be broken in any way. */
const guard = {
  'content-security-policy': "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
} as const

export function createPage({ source, clock, extras }: PageOptions): Page {
  const listening = new Map<http.ServerResponse, { told: string; at: Ms }>()
  const texts = new Map<string, Buffer>()
  let cancelLook: (() => void) | undefined

  return {
    handle(request, response, url) {
      if (request.method !== 'GET' && request.method !== 'HEAD') return say(response, 405, 'only read\n', 'text/plain; charset=utf-8', { allow: 'GET, HEAD' })
      if (url.pathname === '/api/state') return say(response, 200, `${stateText()}\n`, 'application/json; charset=utf-8')
      if (url.pathname === '/api/events') return listen(request, response)
      // The first state comes with the script, so that the page is never drawn empty. JSON is an expression of the language.
      if (url.pathname === '/first.js') return say(response, 200, `export const first = ${news(stateText())}\n`, 'text/javascript; charset=utf-8')
      const known = Object.hasOwn(files, url.pathname) ? files[url.pathname] : undefined
      if (known === undefined) return say(response, 404, 'not found\n', 'text/plain; charset=utf-8')
      say(response, 200, textOf(known.file), known.type)
    },
    listeners: () => listening.size,
    close() {
      cancelLook?.()
      for (const response of listening.keys()) response.end()
      listening.clear()
    },
  }

  function textOf(file: string): Buffer {
    const text = texts.get(file) ?? readFileSync(new URL(file, folder))
    texts.set(file, text)
    return text
  }

  function stateText(): string {
    return JSON.stringify(pageState(source, clock, extras))
  }

  function news(state: string): string {
    return `{"now":${clock.wall()},"state":${state}}`
  }

  function listen(request: http.IncomingMessage, response: http.ServerResponse): void {
    if (listening.size >= mostListeners) return say(response, 503, 'enough listen already\n', 'text/plain; charset=utf-8', { 'retry-after': '10' })
    response.writeHead(200, { ...guard, 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' })
    response.write('retry: 1000\n\n')
    if (request.method === 'HEAD') return void response.end()
    listening.set(response, { told: '', at: clock.now() })
    response.on('close', () => listening.delete(response))
    tell()
    cancelLook ??= clock.after(lookEvery, look)
  }

  function look(): void {
    cancelLook = undefined
    if (listening.size === 0) return
    tell()
    cancelLook = clock.after(lookEvery, look)
  }

  function tell(): void {
    const state = stateText()
    const now = clock.now()
    for (const [response, kept] of listening) {
      if (response.writableLength > mostUnread) {
        // It does not read. Cut off it comes again, and begins with the latest state.
        response.destroy()
        listening.delete(response)
      } else if (kept.told !== state) {
        response.write(`data: ${news(state)}\n\n`)
        listening.set(response, { told: state, at: now })
      } else if (now - kept.at >= breathEvery) {
        response.write(': still here\n\n')
        kept.at = now
      }
    }
  }
}

function say(response: http.ServerResponse, status: number, body: string | Buffer, type: string, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(status, { ...guard, ...headers, 'content-type': type, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}
