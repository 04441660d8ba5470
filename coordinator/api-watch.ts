// One watch: a stream of events that says why it ended. A watch is the one call without a deadline, so what bounds it is
// silence: a path that is up and carries nothing looks just like a quiet cluster, until `idle` is over.
import type { Ms } from '../core/model.ts'
import type { Answer, ApiOptions, WatchEvent, WatchStatus } from './api.ts'
import { abandonable, lines, pieces } from './api-body.ts'
import type { Bucket } from './rate.ts'
import type { ApiRequest, ApiResponse } from './transport.ts'

export interface WatchMeans extends ApiOptions {
  readonly deadline: Ms
  readonly limit: Bucket
  readAnswer(asked: ApiRequest, response: ApiResponse, signal: AbortSignal): Promise<Answer<unknown>>
}

/** One for all ends: nobody reads it, and making one with its stack for each short watch is not cheap. */
const ending = new Error('the watch is over')

// An object is at most 3 MB by etcd's own limit.
const lineLimit = 16 * 1024 * 1024

export async function* watchOn(means: WatchMeans, asked: ApiRequest, idle: Ms, signal: AbortSignal): AsyncGenerator<WatchEvent> {
  const { clock, limit, deadline } = means
  const began = clock.now()
  const turn = limit.take(idle)
  if (turn === undefined) return yield ended('Idle', 'our own rate limit: nothing was sent')
  if (turn > 0) await clock.wait(turn, signal)
  if (signal.aborted) return
  const stop = new AbortController()
  const relay = () => stop.abort(ending)
  signal.addEventListener('abort', relay, { once: true })
  // Until the status line a shorter span: the first byte of a watch comes at once when the path is alive.
  const silence = silenceOn(means, Math.min(idle, deadline), relay)
  try {
    const response = await abandonable(means.transport(asked, stop.signal), stop.signal)
    means.observe?.('watch', response.status, clock.now() - began)
    if (response.status < 500) means.onAnswer?.(clock.now())
    silence.heard(idle)
    if (response.status !== 200) return yield refusal(await means.readAnswer(asked, response, stop.signal))
    const heard = () => {
      silence.heard(idle)
      means.onAnswer?.(clock.now())
    }
    for await (const line of lines(pieces(response.body, stop.signal, heard), lineLimit)) {
      if (signal.aborted) return
      const event = parseEvent(line)
      yield event
      if (event.type === 'ERROR') return
    }
  } catch (error) {
    // Every way in which a stream can break is one to the caller: it ended early, and here is why.
    if (signal.aborted) return
    if (silence.over()) yield ended('Idle', `${asked.path}: nothing came for ${idle} ms`)
    else yield ended(error instanceof RangeError ? 'TooLong' : 'Unreachable', `${asked.path}: ${error instanceof Error ? error.message : String(error)}`)
  } finally {
    silence.stop()
    signal.removeEventListener('abort', relay)
    stop.abort(ending)
  }
}

/** Calls `end` once nothing was heard for the span. One timer that looks at the last word's age, instead of one armed
 *  anew with each of many thousand pieces. */
function silenceOn({ clock }: Pick<ApiOptions, 'clock'>, first: Ms, end: () => void) {
  let span = first
  let heardAt = clock.now()
  let over = false
  const listen = () => {
    const silent = clock.now() - heardAt
    if (silent < span) {
      cancel = clock.after(span - silent, listen)
      return
    }
    over = true
    end()
  }
  let cancel = clock.after(span, listen)
  return {
    heard(next: Ms) {
      heardAt = clock.now()
      span = next
    },
    over: () => over,
    stop: () => cancel(),
  }
}

function parseEvent(line: string): WatchEvent {
  let event: { type?: unknown; object?: { metadata?: unknown } | null }
  try {
    // The server's schema vouches for the rest; what everybody leans on is looked at here.
    event = JSON.parse(line) as typeof event
  } catch {
    return ended('Malformed', `not JSON: ${line.slice(0, 200)}`)
  }
  const { type, object } = event
  if (typeof type !== 'string' || typeof object !== 'object' || object === null || (type !== 'ERROR' && typeof object.metadata !== 'object')) {
    return ended('Malformed', `not an event: ${line.slice(0, 200)}`)
  }
  return event as WatchEvent // its fields were just looked at
}

function refusal(answer: Answer<unknown>): WatchEvent {
  if (answer.ok) return ended('Malformed', 'an answer that is no stream')
  const { status = 0, reason = '', message, retryAfter } = answer.error
  return { type: 'ERROR', object: watchStatus(status, reason, message, retryAfter) }
}

function ended(reason: string, message: string): WatchEvent {
  return { type: 'ERROR', object: watchStatus(0, reason, message) }
}

function watchStatus(code: number, reason: string, message: string, retryAfter?: Ms): WatchStatus {
  return { kind: 'Status', apiVersion: 'v1', metadata: { name: '' }, code, reason, message, ...(retryAfter === undefined ? {} : { retryAfter }) }
}
