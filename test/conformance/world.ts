// What a case has to work with: an API server it knows only by its Transport, a namespace, a custom kind, and names that
// nobody else uses. What a case makes is removed after it.
import * as assert from 'uvu/assert'
import type { ApiRequest, Transport } from '../../coordinator/transport.ts'
import type { Clock } from '../../edge/clock.ts'
import { withDeadline } from '../../edge/clock.ts'

export interface Driver {
  readonly admin: Transport
  /** As system:node:NAME of system:nodes. */
  readonly node: (name: string) => Transport
  /** As whoever bears this token. Left out where there is no way to come with one. */
  readonly bearer?: (token: string) => Transport
  /** Begins every name outside the namespace: lower-case letters, digits, dashes. */
  readonly prefix: string
  readonly clock: Clock
}

export interface Case {
  readonly name: string
  run(world: World): Promise<void>
}


export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** Parsed; an empty object when it is no JSON. */
  readonly body: Loose
}

/** JSON as a test looks at it. */
export interface Loose { readonly [field: string]: unknown }

export interface Caller {
  call(method: ApiRequest['method'], path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  get(path: string): Promise<Answer>
  post(path: string, body: unknown): Promise<Answer>
  put(path: string, body: unknown): Promise<Answer>
  merge(path: string, body: unknown): Promise<Answer>
  json(path: string, body: unknown): Promise<Answer>
  strategic(path: string, body: unknown): Promise<Answer>
  remove(path: string, body?: unknown): Promise<Answer>
  watch(path: string): Promise<Watching>
}

export interface WatchedEvent { readonly type: string; readonly object: Loose }

export interface Watching {
  readonly status: number
  /** The next event, or undefined when the stream ended first. Fails after ten seconds. */
  next(): Promise<WatchedEvent | undefined>
  /** Skips what does not fit. */
  until(what: string, fits: (event: WatchedEvent) => boolean): Promise<WatchedEvent>
  /** All events until the stream ends. */
  rest(): Promise<WatchedEvent[]>
  close(): void
}

export interface World extends Caller {
  readonly namespace: string
  readonly clock: Clock
  /** Group and plural of the custom kind `Buoy`, which is cluster-scoped, has a status and a schema. */
  readonly group: string
  readonly buoys: string
  readonly driver: Driver
  as(transport: Transport): Caller
  /** A name of this case's own. */
  name(hint: string): string
  /** Removed after the case, whatever holds it. */
  made(path: string): string
  /** Waits until it is true, at most ten seconds. */
  eventually(what: string, holds: () => Promise<boolean>): Promise<void>
}

const patience = 10_000

export function callerOf(transport: Transport, clock: Clock): Caller {
  const call: Caller['call'] = async (method, path, body, headers = {}) => {
    const stop = new AbortController()
    const request: ApiRequest = {
      method, path, headers: { accept: 'application/json', ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    }
    try {
      const answer = await withDeadline(clock, patience, undefined, async () => {
        const response = await transport(request, stop.signal)
        let text = ''
        for await (const piece of response.body) text += piece
        return { status: response.status, headers: response.headers, text, body: looseOf(text) }
      })
      if (answer === undefined) throw new Error(`no answer to ${method} ${path} within ${patience} ms`)
      return answer
    } finally {
      stop.abort()
    }
  }
  return {
    call,
    get: (path) => call('GET', path),
    post: (path, body) => call('POST', path, body),
    put: (path, body) => call('PUT', path, body),
    merge: (path, body) => call('PATCH', path, body, { 'content-type': 'application/merge-patch+json' }),
    json: (path, body) => call('PATCH', path, body, { 'content-type': 'application/json-patch+json' }),
    strategic: (path, body) => call('PATCH', path, body, { 'content-type': 'application/strategic-merge-patch+json' }),
    remove: (path, body) => call('DELETE', path, body),
    watch: (path) => openWatching(transport, clock, path),
  }
}

function looseOf(text: string): Loose {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    // Not JSON: a case that looks for fields finds none and fails with its own words.
    return {}
  }
}

async function openWatching(transport: Transport, clock: Clock, path: string): Promise<Watching> {
  const stop = new AbortController()
  const response = await withDeadline(clock, patience, undefined, () => transport({ method: 'GET', path, headers: { accept: 'application/json' } }, stop.signal))
  if (response === undefined) throw new Error(`no answer to the watch of ${path}`)
  const pieces = response.body[Symbol.asyncIterator]()
  let text = ''
  let ended = false
  const next = async (): Promise<WatchedEvent | undefined> => {
    while (!text.includes('\n')) {
      if (ended) return undefined
      const piece = await withDeadline(clock, patience, 'late' as const, () => pieces.next())
      if (piece === 'late') throw new Error(`the watch of ${path} said nothing for ${patience} ms`)
      if (piece.done === true) ended = true
      else text += piece.value
    }
    const end = text.indexOf('\n')
    const line = text.slice(0, end)
    text = text.slice(end + 1)
    // A line of a watch is one event.
    return JSON.parse(line) as WatchedEvent
  }
  return {
    status: response.status,
    next,
    async until(what, fits) {
      for (let count = 0; count < 1000; count += 1) {
        const event = await next()
        if (event === undefined) throw new Error(`the watch of ${path} ended before ${what}`)
        if (fits(event)) return event
      }
      throw new Error(`no ${what} among a thousand events of ${path}`)
    },
    async rest() {
      const events: WatchedEvent[] = []
      for (let event = await next(); event !== undefined; event = await next()) events.push(event)
      return events
    },
    close() {
      stop.abort()
      // Whether it ends well does not matter any more.
      void Promise.resolve(pieces.return?.()).catch(() => undefined)
    },
  }
}

/** What stands under a path such as `metadata.labels.a` or `items.0.metadata.name`. Keys with dots: give the parts. */
export function at(value: unknown, ...path: (string | number)[]): unknown {
  const parts = path.length === 1 && typeof path[0] === 'string' ? path[0].split('.') : path
  let here: unknown = value
  for (const part of parts) here = typeof here === 'object' && here !== null ? Reflect.get(here, String(part)) : undefined
  return here
}

export function textAt(value: unknown, ...path: (string | number)[]): string {
  const found = at(value, ...path)
  return typeof found === 'string' ? found : ''
}

export function listAt(value: unknown, ...path: (string | number)[]): unknown[] {
  const found = at(value, ...path)
  return Array.isArray(found) ? found : []
}

export function expect(answer: Answer, status: number, reason?: string): Answer {
  assert.is(answer.status, status, `HTTP ${answer.status}, expected ${status}: ${answer.text.slice(0, 600)}`)
  if (reason !== undefined) assert.is(textAt(answer.body, 'reason'), reason, `reason ${textAt(answer.body, 'reason')}, expected ${reason}: ${answer.text.slice(0, 400)}`)
  return answer
}

/** The fields that a 422 complains about. */
export function faults(answer: Answer): string[] {
  return listAt(answer.body, 'details', 'causes').map((cause) => textAt(cause, 'field')).toSorted()
}

export function versionOf(answer: Answer): string {
  return textAt(answer.body, 'metadata', 'resourceVersion')
}
