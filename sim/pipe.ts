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
  return new SimulatedPipe(network, plane, from, to, ends)
}

/** A class and not closures: each call to the API server takes two, and most carry one item in all their life. */
class SimulatedPipe<T> implements Pipe<T> {
  readonly #network: Network
  readonly #plane: Plane
  readonly #from: Host
  readonly #to: Host
  readonly #ends: PipeEnds<T>
  readonly #fromBoot: number
  readonly #toBoot: number
  readonly #queue: { readonly item: T; readonly at: Ms }[] = []
  #open = true
  #busy = false
  #retry = firstRetry
  #unacknowledgedSince: Ms | undefined

  constructor(network: Network, plane: Plane, from: Host, to: Host, ends: PipeEnds<T>) {
    this.#network = network
    this.#plane = plane
    this.#from = from
    this.#to = to
    this.#ends = ends
    this.#fromBoot = from.boot
    this.#toBoot = to.boot
  }

  send(item: T): void {
    if (!this.#open) return
    const network = this.#network
    const queue = this.#queue
    if (queue.length >= queueLimit) return this.#end('overflow')
    const lost = network.chance.yes(network.weather.loss) ? firstRetry : 0
    // Never earlier than what was sent before it: a stream keeps its order.
    const at = Math.max(network.clock.now() + network.delay() + lost, queue.at(-1)?.at ?? 0)
    queue.push({ item, at })
    if (!this.#busy) this.#next()
  }

  drop(): void {
    this.#open = false
    this.#queue.length = 0
  }

  #next(): void {
    const head = this.#queue[0]
    this.#busy = head !== undefined
    if (head === undefined) return
    this.#retry = firstRetry
    const { clock } = this.#network
    clock.after(Math.max(0, head.at - clock.now()), () => this.#attempt(true))
  }

  /** The first attempt left the machine while it was well; a retransmission needs its kernel alive. */
  #attempt(first: boolean): void {
    const head = this.#queue[0]
    if (!this.#open || head === undefined) return
    const network = this.#network
    const from = this.#from
    const to = this.#to
    if (!first) {
      const mine = network.kernelOf(from, this.#fromBoot)
      if (mine === 'resets' || from.kernel === 'down') return void (this.#open = false)
      if (mine === 'silent') return this.#later()
    }
    const there = network.reach(from, to, this.#plane)
    const kernel = there === 'open' ? network.kernelOf(to, this.#toBoot) : 'silent'
    const back = network.reach(to, from, this.#plane)
    if ((there === 'refused' || kernel === 'resets') && back !== 'silent') return this.#end('reset')
    if (kernel !== 'answers') return this.#starve() ? this.#end('timed out') : this.#later()
    this.#queue.shift()
    this.#ends.arrived(head.item)
    if (back === 'open') this.#unacknowledgedSince = undefined
    else if (this.#starve()) return this.#end('timed out')
    this.#next()
  }

  /** Notes that nothing is acknowledged, and says whether that has lasted too long. */
  #starve(): boolean {
    const now = this.#network.clock.now()
    this.#unacknowledgedSince ??= now
    return now - this.#unacknowledgedSince >= giveUpAfter
  }

  #later(): void {
    this.#network.clock.after(this.#retry, () => this.#attempt(false))
    this.#retry = Math.min(this.#retry * 2, lastRetry)
  }

  #end(reason: 'reset' | 'timed out' | 'overflow'): void {
    if (!this.#open) return
    this.#open = false
    this.#queue.length = 0
    this.#ends.broken(reason)
  }
}
