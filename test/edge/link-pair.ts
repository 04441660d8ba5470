// Links in memory, on a clock turned by hand: a network of addresses with switches, for the code above the link.
import type { Ms } from '../../core/model.ts'
import type { Clock } from '../../edge/clock.ts'
import type { Link, LinkDialer, LinkEars, Whispers } from '../../edge/link.ts'

/** Two ends of one link. A frame arrives `delay` later, unless `cut` says that nothing passes. */
export function linkPair(clock: Clock, names: readonly [string, string], delay: Ms = 1, cut: () => boolean = () => false): readonly [Link, Link] {
  const ears: [LinkEars | undefined, LinkEars | undefined] = [undefined, undefined]
  const open = [true, true]
  const early: [Uint8Array[], Uint8Array[]] = [[], []]
  const end = (side: 0 | 1, reason: string) => {
    if (!open[side]) return
    open[side] = false
    ears[side]?.closed(reason)
  }
  const make = (side: 0 | 1): Link => {
    const other = side === 0 ? 1 : 0
    return {
      remote: names[other],
      send(frame) {
        if (!open[side]) return
        const copy = Uint8Array.from(frame)
        clock.after(delay, () => {
          if (!open[other] || cut()) return
          if (ears[other] === undefined) early[other].push(copy)
          else ears[other].frame(copy)
        })
      },
      listen(given) {
        if (ears[side] !== undefined) throw new Error('a link is listened to once')
        ears[side] = given
        for (const frame of early[side].splice(0)) given.frame(frame)
      },
      close(reason) {
        if (!open[side]) return
        clock.after(delay, () => { if (!cut()) end(other, 'closed by the other end') })
        end(side, reason)
      },
    }
  }
  return [make(0), make(1)]
}

export interface MemoryNetwork {
  /** Who listens where; returns how to stop. */
  listen(address: string, accept: (link: Link) => void): () => void
  dialer(from: string): LinkDialer
  whispers(from: string): Whispers
  /** Nothing passes between this host and any other, in silence, until it is joined again. */
  cut(host: string): void
  join(host: string): void
  /** Dials so far, by address. */
  readonly dials: Map<string, number>
}

export function memoryNetwork(clock: Clock, delay: Ms = 1): MemoryNetwork {
  const listeners = new Map<string, (link: Link) => void>()
  const ears = new Map<string, (question: Uint8Array, from: string) => Uint8Array | undefined>()
  const cut = new Set<string>()
  const dials = new Map<string, number>()
  const silent = (one: string, other: string) => () => cut.has(hostOf(one)) || cut.has(hostOf(other))
  let ports = 40_000
  return {
    dials,
    cut: (host) => { cut.add(host) },
    join: (host) => { cut.delete(host) },
    listen(address, accept) {
      listeners.set(address, accept)
      return () => { listeners.delete(address) }
    },
    dialer: (from) => ({
      async dial(address, span) {
        dials.set(address, (dials.get(address) ?? 0) + 1)
        await clock.wait(delay)
        if (silent(from, address)()) {
          await clock.wait(span - delay)
          throw new Error(`no answer from ${address}`)
        }
        const accept = listeners.get(address)
        if (accept === undefined) throw new Error(`${address} refused the connection`)
        ports += 1
        const [near, far] = linkPair(clock, [`${from}:${ports}`, address], delay, silent(from, address))
        accept(far)
        return near
      },
    }),
    whispers: (from) => ({
      async ask(address, question, span, isAnswer) {
        const reply = ears.get(address)
        if (reply === undefined || silent(from, address)()) {
          await clock.wait(span)
          return undefined
        }
        await clock.wait(2 * delay)
        const answer = reply(question, `${from}:1`)
        return answer !== undefined && isAnswer(answer) ? answer : undefined
      },
      async answer(port, reply) {
        const own = port === 0 ? 7_000 : port
        ears.set(`${from}:${own}`, reply)
        return { port: own, close: () => { ears.delete(`${from}:${own}`) } }
      },
    }),
  }
}

function hostOf(address: string): string {
  return address.split(':')[0] ?? address
}
