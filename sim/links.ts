// Links between simulated hosts: what edge/link.ts promises, over the simulated network. A link whose far machine lost power
// or froze is silent, not closed; keepalive breaks it much later. A link whose far process died is closed by that machine's
// kernel. A machine that booted again resets what it does not know.
import type { Ms } from '../core/model.ts'
import type { Link, LinkDialer, LinkEars, LinkListener } from '../edge/link.ts'
import { knock, type Host, type Network } from './network.ts'
import { createPipe, type Pipe } from './pipe.ts'
import type { Process } from './process.ts'

/** A kernel asks an idle connection every so often whether the other end is there, and breaks it at the third silence. */
const keepAliveEvery: Ms = 15_000
const keepAliveMisses = 3

type Parcel = { readonly frame: Uint8Array } | { readonly end: string }

interface End {
  readonly host: Host
  readonly boot: number
  readonly process: Process
  readonly link: Link
  open: boolean
  ears: LinkEars | undefined
  /** What came before anybody listened. */
  readonly early: ((ears: LinkEars) => void)[]
  out: Pipe<Parcel> | undefined
  forget: () => void
}

export function simulatedDialer(network: Network, host: Host, process: Process): LinkDialer {
  return { dial: (address, span) => process.hold(dial(network, host, process, address, span)) }
}

export function simulatedListener(
  host: Host, process: Process, accept: (link: Link) => void, port = 0,
): LinkListener {
  const own = port === 0 ? host.nextPort++ : port
  if (host.ports.has(own)) throw new Error(`port ${own} of ${host.name} is taken`)
  const open = { serves: 'link', process, accept } as const
  host.ports.set(own, open)
  const shut = () => {
    if (host.ports.get(own) === open) host.ports.delete(own)
  }
  const forget = process.onEnd(shut)
  return {
    address: `${host.address}:${own}`,
    async close() {
      forget()
      shut()
    },
  }
}

function dial(network: Network, host: Host, process: Process, address: string, span: Ms): Promise<Link> {
  const colon = address.lastIndexOf(':')
  const port = Number(address.slice(colon + 1))
  return new Promise((resolve, reject) => {
    let over = false
    const settle = () => {
      over = true
      stopWaiting()
      forget()
    }
    const fail = (sentence: string) => {
      settle()
      reject(new Error(sentence))
    }
    const stopWaiting = network.clock.after(span, () => fail(`no answer from ${address} within ${Math.round(span)} ms`))
    const forget = process.onEnd(() => settle())
    knock(network, host, address.slice(0, colon), port, 'link', () => over, (word, to, open) => {
      // A port that speaks something else fails the handshake at once, which to a dialer is a refusal too.
      if (word === 'refused' || open?.serves !== 'link') return fail(`${address} refused the connection`)
      // Accepted by the kernel, and there is nobody to shake hands.
      if (to.kernel === 'stuck') return
      const { near, far } = join(network, { host, process, remote: address }, { host: to, process: open.process, remote: `${host.address}:${host.nextPort++}` })
      open.process.deliver(() => {
        open.accept(far.link)
        network.clock.after(network.delay(), () => {
          if (over) return near.link.close('the dialer was gone')
          settle()
          resolve(near.link)
        })
      })
    })
  })
}

interface Side { readonly host: Host; readonly process: Process; readonly remote: string }

function join(network: Network, nearSide: Side, farSide: Side): { near: End; far: End } {
  const near = makeEnd(nearSide)
  const far = makeEnd(farSide)
  connect(network, near, far)
  connect(network, far, near)
  const watch = () => {
    if (!near.open && !far.open) return
    const oneWay = keepAlive(network, near, far)
    const otherWay = keepAlive(network, far, near)
    misses.near = oneWay ? 0 : misses.near + 1
    misses.far = otherWay ? 0 : misses.far + 1
    if (misses.near >= keepAliveMisses) lose(near, 'timed out')
    if (misses.far >= keepAliveMisses) lose(far, 'timed out')
    network.clock.after(keepAliveEvery, watch)
  }
  const misses = { near: 0, far: 0 }
  network.clock.after(keepAliveEvery, watch)
  return { near, far }
}

function makeEnd({ host, process, remote }: Side): End {
  const end: End = {
    host, boot: host.boot, process, open: true, ears: undefined, early: [], out: undefined, forget: () => undefined,
    link: {
      remote,
      send(frame) {
        if (end.open && process.running()) end.out?.send({ frame: new Uint8Array(frame) })
      },
      listen(ears) {
        if (end.ears !== undefined) throw new Error('a link is listened to once')
        end.ears = ears
        for (const event of end.early.splice(0)) event(ears)
      },
      close(reason) {
        if (!end.open || !process.alive()) return
        end.out?.send({ end: 'closed by the other end' })
        lose(end, reason)
      },
    },
  }
  end.forget = process.onEnd(() => {
    if (!end.open) return
    end.open = false
    // Only a kernel that lives can close a dead process's sockets; after a power loss nobody says anything.
    if (host.kernel === 'up' && host.boot === end.boot) end.out?.send({ end: 'reset by the other end' })
    else end.out?.drop()
  })
  return end
}

function connect(network: Network, from: End, to: End): void {
  from.out = createPipe<Parcel>(network, 'link', from.host, to.host, {
    arrived(parcel) {
      if ('end' in parcel) return lose(to, parcel.end)
      // The process at the far side is gone and its end message still under way: its kernel knows, and resets.
      if (!to.open) {
        if (network.reach(to.host, from.host, 'link') !== 'silent') lose(from, 'reset by the other end')
        return
      }
      hear(to, (ears) => ears.frame(parcel.frame))
    },
    broken: (reason) => lose(from, reason === 'reset' ? 'reset by the other end' : reason),
  })
}

/** Whether the other end's kernel acknowledged; a kernel that does not know the connection breaks it at once. */
function keepAlive(network: Network, from: End, to: End): boolean {
  if (!from.open || network.kernelOf(from.host, from.boot) !== 'answers') return true
  const [there, back] = [network.reach(from.host, to.host, 'link'), network.reach(to.host, from.host, 'link')]
  if (there === 'silent' || back === 'silent') return false
  const kernel = network.kernelOf(to.host, to.boot)
  if (kernel === 'silent') return false
  if (kernel === 'resets' || there === 'refused' || back === 'refused' || !to.open) lose(from, 'reset by the other end')
  return true
}

function lose(end: End, reason: string): void {
  if (!end.open) return
  end.open = false
  end.forget()
  // A microtask later, as a socket's close event: whoever closes a link is not called back inside its own call. The order of
  // microtasks is the order in which they were queued, so this is deterministic.
  queueMicrotask(() => hear(end, (ears) => ears.closed(reason)))
}

function hear(end: End, event: (ears: LinkEars) => void): void {
  end.process.deliver(() => {
    if (end.ears === undefined) end.early.push(event)
    else event(end.ears)
  })
}
