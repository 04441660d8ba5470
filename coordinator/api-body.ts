// Bodies as they come over the wire, each with a limit: whole ones for answers, line by line for watches.

/** The pieces of a body until it ends; throws on abort, even if the body itself would wait for ever. `heard` is called
 *  with each piece. */
export async function* pieces(body: AsyncIterable<string>, signal: AbortSignal, heard?: () => void): AsyncGenerator<string> {
  const reader = readerOf(body, signal)
  try {
    for (let next = await reader.next(); !next.done; next = await reader.next()) {
      heard?.()
      yield next.value
    }
  } finally {
    reader.close()
  }
}

/** Undefined: longer than the limit. Throws on abort, as above. */
export async function readAll(body: AsyncIterable<string>, signal: AbortSignal, limit: number): Promise<string | undefined> {
  const reader = readerOf(body, signal)
  try {
    let text = ''
    for (let next = await reader.next(); !next.done; next = await reader.next()) {
      if (text.length + next.value.length > limit) return undefined
      text += next.value
    }
    return text
  } finally {
    reader.close()
  }
}

function readerOf(body: AsyncIterable<string>, signal: AbortSignal): { next(): Promise<IteratorResult<string>>; close(): void } {
  const iterator = body[Symbol.asyncIterator]()
  // One listener and one slot for whoever waits: a race per piece against one long-lived promise would keep every piece's
  // reaction in memory until the watch ends.
  let giveUp: (() => void) | undefined
  const onAbort = () => giveUp?.()
  signal.addEventListener('abort', onAbort, { once: true })
  return {
    next: () => new Promise((resolve, reject) => {
      giveUp = () => reject(new Error('given up'))
      if (signal.aborted) return giveUp()
      iterator.next().then(resolve, reject)
    }),
    close() {
      signal.removeEventListener('abort', onAbort)
      // Lets go of the connection; not awaited, because a half-dead body may never confirm it.
      void Promise.resolve(iterator.return?.()).catch(() => undefined)
    },
  }
}

/** Throws a RangeError on a longer line. A last line without its end is a broken one, and dropped. */
export async function* lines(body: AsyncIterable<string>, limit: number): AsyncGenerator<string> {
  let rest = ''
  for await (const piece of body) {
    let from = 0
    for (let end = piece.indexOf('\n'); end !== -1; end = piece.indexOf('\n', from)) {
      const line = rest + piece.slice(from, end)
      rest = ''
      from = end + 1
      if (line.length > limit) throw new RangeError(`a line of ${line.length} characters`)
      if (line.trim() !== '') yield line
    }
    rest += piece.slice(from)
    if (rest.length > limit) throw new RangeError(`a line of more than ${limit} characters`)
  }
}

/** Rejects on abort even when the work itself does not listen: a half-dead path must not hold its caller. */
export function abandonable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const give = () => reject(new Error('given up'))
    if (signal.aborted) give()
    signal.addEventListener('abort', give, { once: true })
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', give))
  })
}
