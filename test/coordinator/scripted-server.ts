// An API server that a test plays by hand: each request waits in a list until the test answers it, and streams stay in the
// test's hands. For what no honest server does: half-dead bodies, answers lost after the deed, time going backwards.
import type { ApiRequest, ApiResponse, Transport } from '../../coordinator/transport.ts'

export interface Asked {
  readonly request: ApiRequest
  readonly query: URLSearchParams
  readonly signal: AbortSignal
  answer(status: number, body: unknown, headers?: Record<string, string>): void
  /** Starts a stream. */
  stream(): Stream
  fail(message: string): void
}

export interface Stream {
  /** One event a line. */
  say(type: string, object: object): void
  end(): void
  breakOff(): void
}

export interface ScriptedServer {
  readonly transport: Transport
  /** Every request so far, oldest first. */
  readonly asked: Asked[]
  /** The newest request; fails the test when there is none. */
  last(): Asked
}

/** `react` may answer at once. */
export function scriptedServer(react: (asked: Asked) => void = () => undefined): ScriptedServer {
  const asked: Asked[] = []
  const transport: Transport = (request, signal) => new Promise<ApiResponse>((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true })
    const one: Asked = {
      request,
      signal,
      query: new URLSearchParams(request.path.split('?')[1]),
      answer: (status, body, headers = {}) => resolve({ status, headers, body: textOf(JSON.stringify(body)) }),
      fail: (message) => reject(new Error(message)),
      stream() {
        const { body, say, end, breakOff } = openStream(signal)
        resolve({ status: 200, headers: {}, body })
        return { say, end, breakOff }
      },
    }
    asked.push(one)
    react(one)
  })
  return {
    transport,
    asked,
    last() {
      const one = asked.at(-1)
      if (!one) throw new Error('nothing was asked')
      return one
    },
  }
}

async function* textOf(text: string): AsyncGenerator<string> {
  yield text
}

function openStream(signal: AbortSignal): Stream & { body: AsyncIterable<string> } {
  const queue: string[] = []
  let over: 'open' | 'ended' | 'broken' = 'open'
  let wake: (() => void) | undefined
  signal.addEventListener('abort', () => wake?.(), { once: true })
  async function* body(): AsyncGenerator<string> {
    for (;;) {
      const next = queue.shift()
      if (next !== undefined) yield next
      else if (signal.aborted || over === 'broken') throw new Error('the connection broke')
      else if (over === 'ended') return
      else await new Promise<void>((resolve) => { wake = resolve })
    }
  }
  return {
    body: body(),
    say(type, object) {
      queue.push(`${JSON.stringify({ type, object })}\n`)
      wake?.()
    },
    end() {
      over = 'ended'
      wake?.()
    },
    breakOff() {
      over = 'broken'
      wake?.()
    },
  }
}
