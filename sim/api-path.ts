// The way from a simulated process to an API server: the same Transport, with a network in between that may lose the request,
// or only the answer (the write then has happened), hold up a watch while writes still pass, or refuse.
import type { Ms } from '../core/model.ts'
import type { ApiRequest, ApiResponse, Transport } from '../coordinator/transport.ts'
import { WholeBody } from './api-server/response.ts'
import type { Host, Network } from './network.ts'
import { createPipe } from './pipe.ts'
import type { Process } from './process.ts'

type Head = Omit<ApiResponse, 'body'>
type Piece = { readonly whole: Head; readonly text: string } | { readonly head: Head } | { readonly text: string } | { readonly end: true } | { readonly broke: string }

/** A server whose client vanished without a word notices by its own keepalive. */
const serverNotices: Ms = 30_000
/** And whatever it was asked to do is over by then. */
const serverAbandons: Ms = 120_000
/** One for all, since an abort without a reason makes an exception with a stack each time, and nobody reads it. */
const gone = new Error('the client has left')

export function simulatedTransport(network: Network, from: Host, server: Host, process: Process, inner: Transport): Transport {
  return (request, signal) => process.hold(new Promise<ApiResponse>((resolve, reject) => {
    if (signal.aborted) return reject(new Error('aborted before it was sent'))
    // A chain that still ran when its process died: nothing of it leaves the machine.
    if (!process.alive()) return
    const closed = new AbortController()
    const watches = /[?&]watch=(true|1)\b/.test(request.path)
    const body = watches ? textQueue(() => leave()) : undefined
    let over = false
    const fail = (sentence: string) => {
      reject(new Error(sentence))
      body?.fail(new Error(sentence))
      over = true
    }
    const leave = () => {
      if (over) return
      over = true
      finish()
      // What was sent stays under way: a kernel goes on delivering for a socket that was closed, so a write that its caller gave
      // up may land much later. The server learns that we left at once if a packet can pass, and late if not.
      const heard = from.kernel === 'up' && network.reach(from, server, 'api') === 'open'
      const abandons = watches ? (heard ? network.delay() : serverNotices) : serverAbandons
      network.clock.after(abandons, () => closed.abort(gone))
    }
    const aborted = () => {
      if (over) return
      leave()
      fail('aborted')
    }
    const forget = process.onEnd(leave)
    const finish = () => {
      forget()
      signal.removeEventListener('abort', aborted)
    }
    signal.addEventListener('abort', aborted, { once: true })

    const answers = createPipe<Piece>(network, watches ? 'watch' : 'api', server, from, {
      arrived(piece) {
        if (over) return
        if ('whole' in piece) {
          over = true
          finish()
          // It is there with its head: what the process reads of it comes from its own memory.
          resolve({ ...piece.whole, body: new WholeBody(piece.text) })
        } else if ('head' in piece) {
          if (body !== undefined) resolve({ ...piece.head, body: process.holdStream(body.stream) })
        } else if ('text' in piece) body?.push(piece.text)
        else {
          finish()
          if ('broke' in piece) fail(piece.broke)
          else {
            over = true
            body?.end()
          }
        }
      },
      // The server's kernel gave up on us; we may never hear of it, and our own deadline speaks for us.
      broken: () => closed.abort(gone),
    })
    const requests = createPipe<ApiRequest>(network, 'api', from, server, {
      arrived: (asked) => void (watches ? serveWatch(inner, asked, closed.signal, answers) : serveWhole(inner, asked, closed.signal, answers)),
      broken(reason) {
        if (over) return
        finish()
        fail(reason === 'reset' ? 'connection refused' : reason)
      },
    })
    requests.send(request)
  }))
}

/** Nobody tells a server that its client has left before it has done what was asked. */
async function serveWhole(inner: Transport, request: ApiRequest, signal: AbortSignal, answers: { send(piece: Piece): void }): Promise<void> {
  try {
    const { body, ...whole } = await inner(request, signal)
    answers.send({ whole, text: await textOf(body) })
  } catch (error) {
    answers.send(broke(error))
  }
}

async function textOf(body: AsyncIterable<string>): Promise<string> {
  if (body instanceof WholeBody) return body.text
  let text = ''
  for await (const piece of body) text += piece
  return text
}

async function serveWatch(inner: Transport, request: ApiRequest, signal: AbortSignal, answers: { send(piece: Piece): void }): Promise<void> {
  try {
    const { body, ...head } = await inner(request, signal)
    answers.send({ head })
    for await (const text of body) answers.send({ text })
    answers.send({ end: true })
  } catch (error) {
    answers.send(broke(error))
  }
}

/** Whatever broke between the world and its API server is, to the process, a connection that broke off. */
function broke(error: unknown): Piece {
  return { broke: error instanceof Error ? error.message : String(error) }
}

/** Pieces in, an async iterable out; read once. */
function textQueue(left: () => void): { stream: AsyncIterable<string>; push(text: string): void; end(): void; fail(error: Error): void } {
  const texts: string[] = []
  let ended: 'open' | 'ended' | Error = 'open'
  let wake: (() => void) | undefined
  const woken = () => {
    wake?.()
    wake = undefined
  }
  return {
    push(text) {
      texts.push(text)
      woken()
    },
    end() {
      if (ended === 'open') ended = 'ended'
      woken()
    },
    fail(error) {
      if (ended === 'open') ended = error
      woken()
    },
    stream: {
      [Symbol.asyncIterator]: () => ({
        async next() {
          for (;;) {
            const text = texts.shift()
            if (text !== undefined) return { done: false, value: text }
            if (ended === 'ended') return { done: true, value: undefined }
            if (ended instanceof Error) throw ended
            await new Promise<void>((resolve) => { wake = resolve })
          }
        },
        async return() {
          left()
          return { done: true, value: undefined }
        },
      }),
    },
  }
}
