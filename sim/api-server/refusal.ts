// Why a request was not carried out, as the `Status` object that the real server answers with. Its words are the real
// server's own, because people and tests read them.
import type { Json, JsonObject } from './json.ts'

export interface Refusal {
  readonly code: number
  readonly reason: string
  readonly message: string
  readonly details?: JsonObject
  readonly retryAfterSeconds?: number
  readonly metadata?: JsonObject
}

export interface Cause {
  readonly reason:
    | 'FieldValueInvalid' | 'FieldValueRequired' | 'FieldValueForbidden' | 'FieldValueNotSupported' | 'FieldValueDuplicate'
    | 'FieldValueTypeInvalid' | 'FieldValueTooLong' | 'FieldValueTooMany' | 'FieldValueNotFound'
  readonly field: string
  readonly message: string
}

/** What is refused: a resource by its plural, or a kind. */
export interface Subject { readonly group: string; readonly plural: string; readonly kind: string }

export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && 'code' in value && 'reason' in value && 'message' in value
}

export function statusOf(refusal: Refusal): JsonObject {
  const details = refusal.retryAfterSeconds === undefined ? refusal.details : { ...refusal.details, retryAfterSeconds: refusal.retryAfterSeconds }
  return {
    kind: 'Status', apiVersion: 'v1', metadata: refusal.metadata ?? {}, status: 'Failure',
    message: refusal.message, ...(refusal.reason === '' ? {} : { reason: refusal.reason }), ...(details === undefined ? {} : { details }), code: refusal.code,
  }
}

function qualified(subject: Subject): string {
  return subject.group === '' ? subject.plural : `${subject.plural}.${subject.group}`
}

function named(subject: Subject, name: string): JsonObject {
  return { ...(name === '' ? {} : { name }), ...(subject.group === '' ? {} : { group: subject.group }), kind: subject.plural }
}

export function notFound(subject: Subject, name: string): Refusal {
  return { code: 404, reason: 'NotFound', message: `${qualified(subject)} "${name}" not found`, details: named(subject, name) }
}

export const noSuchPath: Refusal = {
  code: 404, reason: 'NotFound', message: 'the server could not find the requested resource', details: {},
}

export function alreadyExists(subject: Subject, name: string): Refusal {
  return { code: 409, reason: 'AlreadyExists', message: `${qualified(subject)} "${name}" already exists`, details: named(subject, name) }
}

export function conflict(subject: Subject, name: string, why: string): Refusal {
  return {
    code: 409, reason: 'Conflict', details: named(subject, name),
    message: `Operation cannot be fulfilled on ${qualified(subject)} "${name}": ${why}`,
  }
}

export const modified = 'the object has been modified; please apply your changes to the latest version and try again'

export function invalid(subject: Pick<Subject, 'group' | 'kind'>, name: string, causes: readonly Cause[]): Refusal {
  const sentences = causes.map((cause) => `${cause.field}: ${cause.message}`)
  const kind = subject.group === '' ? subject.kind : `${subject.kind}.${subject.group}`
  return {
    code: 422, reason: 'Invalid',
    message: `${kind} "${name}" is invalid: ${sentences.length === 1 ? sentences[0] : `[${sentences.join(', ')}]`}`,
    details: {
      ...(name === '' ? {} : { name }), ...(subject.group === '' ? {} : { group: subject.group }), ...(subject.kind === '' ? {} : { kind: subject.kind }),
      causes: causes.map((cause) => ({ reason: cause.reason, message: cause.message, field: cause.field })),
    },
  }
}

/** The same for what is refused under its kind's name rather than its plural. */
export function asKind(subject: Subject): Subject {
  return { ...subject, plural: subject.kind }
}

export function badRequest(message: string): Refusal {
  return { code: 400, reason: 'BadRequest', message }
}

export function forbidden(subject: Subject, name: string, why: string, causes?: readonly { reason: string; message: string; field?: string }[]): Refusal {
  return {
    code: 403, reason: 'Forbidden', message: `${qualified(subject)}${name === '' ? '' : ` "${name}"`} is forbidden: ${why}`,
    details: { ...named(subject, name), ...(causes === undefined ? {} : { causes: causes.map((cause) => ({ ...cause })) }) },
  }
}

export function unauthorized(): Refusal {
  return { code: 401, reason: 'Unauthorized', message: 'Unauthorized' }
}

export function methodNotAllowed(): Refusal {
  return { code: 405, reason: 'MethodNotAllowed', message: 'the server does not allow this method on the requested resource', details: {} }
}

export function unsupportedMediaType(accepted: readonly string[]): Refusal {
  return {
    code: 415, reason: 'UnsupportedMediaType', message: `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  }
}

/** A JSON patch that could not be applied: the real server does not say which operation it was. */
export const unprocessable: Refusal = {
  code: 422, reason: 'Invalid', message: 'the server rejected our request due to an error in our request', details: {},
}

/** History that is no longer kept. */
export function expired(message: string): Refusal {
  return { code: 410, reason: 'Expired', message }
}

export function tooOld(asked: number, oldest: number): Refusal {
  return expired(`too old resource version: ${asked} (${oldest})`)
}

export function tooLargeResourceVersion(asked: number, current: number): Refusal {
  return {
    code: 504, reason: 'Timeout', message: `Timeout: Too large resource version: ${asked}, current: ${current}`, retryAfterSeconds: 1,
    details: { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }] },
  }
}

export function tooLarge(message: string): Refusal {
  return { code: 413, reason: 'RequestEntityTooLarge', message }
}

export const required = (field: string, why = ''): Cause => ({ reason: 'FieldValueRequired', field, message: why === '' ? 'Required value' : `Required value: ${why}` })
export const wrong = (field: string, value: Json | undefined, why: string): Cause => ({ reason: 'FieldValueInvalid', field, message: `Invalid value: ${JSON.stringify(value ?? null)}: ${why}` })
export const forbiddenField = (field: string, why: string): Cause => ({ reason: 'FieldValueForbidden', field, message: `Forbidden: ${why}` })
export const unsupported = (field: string, value: Json | undefined, supported: readonly Json[]): Cause => ({
  reason: 'FieldValueNotSupported', field,
  message: `Unsupported value: ${JSON.stringify(value ?? null)}: supported values: ${supported.map((one) => JSON.stringify(one)).join(', ')}`,
})
export const duplicate = (field: string, value: Json, why = ''): Cause => ({
  reason: 'FieldValueDuplicate', field, message: `Duplicate value: ${JSON.stringify(value)}${why === '' ? '' : `: ${why}`}`,
})
export const tooMany = (field: string, count: number, most: number): Cause => ({
  reason: 'FieldValueTooMany', field, message: `Too many: ${count}: must have at most ${most} items`,
})
