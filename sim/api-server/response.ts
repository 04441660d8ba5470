// Answers as a Transport hands them over.
import type { ApiResponse } from '../../coordinator/transport.ts'
import { statusOf } from './refusal.ts'
import type { Refusal } from './refusal.ts'

export function json(status: number, text: string): ApiResponse {
  return page(text, 'application/json', status)
}

export function page(text: string, type: string, status = 200): ApiResponse {
  return { status, headers: { 'content-type': type }, body: new WholeBody(text) }
}

export function refusalResponse(refusal: Refusal): ApiResponse {
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (refusal.retryAfterSeconds !== undefined) headers['retry-after'] = String(refusal.retryAfterSeconds)
  return { status: refusal.code, headers, body: new WholeBody(JSON.stringify(statusOf(refusal))) }
}

/** A body in one piece: most are, and whoever carries them need not ask piece by piece. */
export class WholeBody implements AsyncIterable<string> {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  [Symbol.asyncIterator](): AsyncIterator<string> {
    let read = false
    return {
      next: () => {
        if (read) return Promise.resolve({ done: true, value: undefined })
        read = true
        return Promise.resolve({ done: false, value: this.text })
      },
    }
  }
}
