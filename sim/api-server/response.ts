// Answers as a Transport hands them over.
import type { ApiResponse } from '../../coordinator/transport.ts'
import { statusOf } from './refusal.ts'
import type { Refusal } from './refusal.ts'

export function json(status: number, text: string): ApiResponse {
  return page(text, 'application/json', status)
}

export function page(text: string, type: string, status = 200): ApiResponse {
  return { status, headers: { 'content-type': type }, body: once(text) }
}

export function refusalResponse(refusal: Refusal): ApiResponse {
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (refusal.retryAfterSeconds !== undefined) headers['retry-after'] = String(refusal.retryAfterSeconds)
  return { status: refusal.code, headers, body: once(JSON.stringify(statusOf(refusal))) }
}

async function* once(text: string): AsyncGenerator<string> {
  yield text
}
