import { request } from 'node:https'

import type { Credentials } from './certificates.ts'

// A healthy apiserver answers in milliseconds. One that takes longer is asked again.
const PATIENCE_MS = 5_000

/** The status of a GET, or why there was none. */
export function statusOf(url: URL, { cert, key, ca }: Credentials): Promise<number | string> {
  return new Promise((resolve) => {
    // No agent: a connection kept alive would outlive the apiserver it went to.
    const asked = request(url, { cert, key, ca, agent: false, timeout: PATIENCE_MS }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 'no status')
    })
    asked.once('timeout', () => asked.destroy(new Error('no answer in time')))
    asked.once('error', (cause) => resolve(cause.message))
    asked.end()
  })
}
