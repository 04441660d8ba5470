// How an API server says no, as a value. Its Status object is read with suspicion: a proxy on the way may answer in HTML.
import type { Ms } from '../core/model.ts'
import type { Answer, ApiCause, ApiError } from './api.ts'
import type { ApiRequest, ApiResponse } from './transport.ts'

export function readStatus(request: ApiRequest, response: ApiResponse, body: string): ApiError {
  const status = parseStatus(body)
  const details = asRecord(status['details'])
  const retryAfter = seconds(response.headers['retry-after']) ?? seconds(details['retryAfterSeconds'])
  const causes = readCauses(details['causes'])
  const said = typeof status['message'] === 'string' ? status['message'] : body.slice(0, 300)
  return {
    kind: kindOf(response.status),
    status: response.status,
    message: `${request.method} ${request.path}: ${response.status} ${said}`,
    ...(typeof status['reason'] === 'string' && status['reason'] !== '' ? { reason: status['reason'] } : {}),
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(causes.length === 0 ? {} : { causes }),
  }
}

/** An answer came, and is unusable: what was asked for may have happened. */
export function badAnswer(request: ApiRequest, response: ApiResponse, why: string): ApiError {
  return { kind: 'unreachable', status: response.status, message: `${request.method} ${request.path}: ${response.status}, but ${why}` }
}

export function tooLate(request: ApiRequest, span: Ms): Answer<never> {
  return { ok: false, error: { kind: 'late', message: `${request.method} ${request.path}: no answer within ${span} ms` } }
}

export function failure(request: ApiRequest, error: unknown): Answer<never> {
  const why = error instanceof Error ? error.message : String(error)
  return { ok: false, error: { kind: 'unreachable', message: `${request.method} ${request.path}: ${why}` } }
}

function kindOf(status: number): ApiError['kind'] {
  if (status >= 500) return 'server'
  switch (status) {
    case 401: return 'unauthorized'
    case 403: return 'forbidden'
    case 404: return 'notFound'
    case 409: return 'conflict'
    case 410: return 'gone'
    case 422: return 'invalid'
    case 429: return 'throttled'
  }
  return 'refused'
}

function parseStatus(body: string): Record<string, unknown> {
  try {
    return asRecord(JSON.parse(body))
  } catch {
    return {} // not Kubernetes' words: the body itself becomes the message
  }
}

function asRecord(value: unknown): Record<string, unknown> {
  // Every field is looked at before it is used.
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}

function readCauses(value: unknown): ApiCause[] {
  if (!Array.isArray(value)) return []
  return value.slice(0, 50).map((cause: unknown) => {
    const { reason, field, message } = asRecord(cause)
    return { reason: word(reason), field: word(field), message: word(message) }
  })
}

function word(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Retry-After may also be a date; ours are always seconds, and a date by another machine's clock is worth nothing here. */
function seconds(value: unknown): Ms | undefined {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) && number > 0 ? Math.min(number, 3600) * 1000 : undefined
}
