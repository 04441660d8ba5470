// Questions sent over a link whose answer comes back as another frame, or never.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'

export interface Questions<K, A> {
  /** Undefined: no answer within the span, or too many questions are open already. */
  ask(key: K, span: Ms, send: () => void): Promise<A | undefined>
  /** False: nobody asked that, or no longer. The first answer counts. */
  answer(key: K, answer: A): boolean
  /** Every open question ends unanswered. */
  close(): void
}

export function questions<K, A>(clock: Pick<Clock, 'after'>, mostOpen: number): Questions<K, A> {
  const open = new Map<K, (answer: A | undefined) => void>()
  return {
    ask(key, span, send) {
      if (open.size >= mostOpen || open.has(key)) return Promise.resolve(undefined)
      return new Promise((resolve) => {
        const cancel = clock.after(span, () => end(undefined))
        const end = (answer: A | undefined) => {
          open.delete(key)
          cancel()
          resolve(answer)
        }
        open.set(key, end)
        send()
      })
    },
    answer(key, answer) {
      const end = open.get(key)
      end?.(answer)
      return end !== undefined
    },
    close() {
      for (const end of open.values()) end(undefined)
    },
  }
}
