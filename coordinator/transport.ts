// How one HTTP exchange with an API server is made: over TLS (coordinator/https.ts), or straight into the in-memory
// API server of the simulated world. Everything above is the same code for both.
export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With its query. */
  readonly path: string
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

export interface ApiResponse {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** Text as it arrives, in pieces of any size; a watch ends only when either side ends it. Throws when the connection breaks. */
  readonly body: AsyncIterable<string>
}

/** Rejects when no status line came (refused, reset, unreachable, aborted). Deadlines are the caller's, by the signal. */
export type Transport = (request: ApiRequest, signal: AbortSignal) => Promise<ApiResponse>
