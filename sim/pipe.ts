// One direction of a stream between two machines: in order, never twice, held back while packets do not arrive and given up
// after a while, as TCP does it. What nobody acknowledges is not known to have arrived.
import type { Ms } from '../core/model.ts'
import type { Host, Network, Plane } from './network.ts'

export interface Pipe<T> {
  send(item: T): void
  /** Forgets what is under way. */
  drop(): void
}

export interface PipeEnds<T> {
  arrived(item: T): void
  /** Told to the sender's side, once. `reset`: the other machine does not know the connection. */
  broken(reason: 'reset' | 'timed out' | 'overflow'): void
}

/** After so long without an acknowledgement the sender's kernel gives up. Linux takes 15 minutes by default; whoever cares sets
 *  TCP_USER_TIMEOUT, and a simulated minute is already longer than any patience of ours. */
const giveUpAfter: Ms = 60_000
const firstRetry: Ms = 200
const lastRetry: Ms = 5_000
/** Items a kernel would buffer for a reader that is away. */
const queueLimit = 20_000

export function createPipe<T>(network: Network, plane: Plane, from: Host, to: Host, ends: PipeEnds<T>): Pipe<T> {
  const { clock } = network
  const fromBoot = from.boot
  const toBoot = to.boot
  const queue: { readonly item: T; readonly at: Ms }[] = []
  let open = true
  let busy = false
  let retry = firstRetry
  let unacknowledgedSince: Ms | undefined

  return {
    send(item) {
      if (!open) return
      if (queue.length >= queueLimit) return end('overflow')
      const lost = network.chance.yes(network.weather.loss) ? firstRetry : 0
      // Never earlier than what was sent before it: a stream keeps its order.
      const at = Math.max(clock.now() + network.delay() + lost, queue.at(-1)?.at ?? 0)
      queue.push({ item, at })
      if (!busy) next()
    },
    drop() {
      open = false
      queue.length = 0
    },
  }

  function next(): void {
    const head = queue[0]
    busy = head !== undefined
    if (head === undefined) return
    retry = firstRetry
    clock.after(Math.max(0, head.at - clock.now()), () => attempt(true))
  }

  /** The first attempt left the machine while it was well; a retransmission needs its kernel alive. */
  function attempt(first: boolean): void {
    const head = queue[0]
    if (!open || head === undefined) return
    if (!first) {
      const mine = network.kernelOf(from, fromBoot)
      if (mine === 'resets' || from.kernel === 'down') return void (open = false)
      if (mine === 'silent') return later()
    }
    const there = network.reach(from, to, plane)
    const kernel = there === 'open' ? network.kernelOf(to, toBoot) : 'silent'
    const back = network.reach(to, from, plane)
    if ((there === 'refused' || kernel === 'resets') && back !== 'silent') return end('reset')
    if (kernel !== 'answers') return starve() ? end('timed out') : later()
    queue.shift()
    ends.arrived(head.item)
    if (back === 'open') unacknowledgedSince = undefined
    else if (starve()) return end('timed out')
    next()
  }

  /** Notes that nothing is acknowledged, and says whether that has lasted too long. */
  function starve(): boolean {
    unacknowledgedSince ??= clock.now()
    return clock.now() - unacknowledgedSince >= giveUpAfter
  }

  function later(): void {
    clock.after(retry, () => attempt(false))
    retry = Math.min(retry * 2, lastRetry)
  }

  function end(reason: 'reset' | 'timed out' | 'overflow'): void {
    if (!open) return
    open = false
    queue.length = 0
    ends.broken(reason)
  }
}
