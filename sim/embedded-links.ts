// Links of the embedded world: real TLS over loopback, under the world's network. A loopback has no cables to cut and no kernel
// that falls silent, so what becomes of a frame is asked of the world first (its `Network`, as in a simulated run), and only what
// arrives there is put on the real socket. All of it is done at the dialling end, for both directions; a machine without power
// therefore leaves its sockets open and mute, as it must, and they are reset once it has booted again.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Link, LinkDialer, LinkEars, LinkListener } from '../edge/link.ts'
import { listenTls, tlsDialer, type Serving } from '../edge/tls-link.ts'
import { knock, type Host, type Network } from './network.ts'
import { createPipe } from './pipe.ts'
import type { Process } from './process.ts'

export interface EmbeddedLinks {
  dialer(host: Host, process: Process): LinkDialer
  listen(host: Host, process: Process, serving: Serving, accept: (link: Link) => void): Promise<LinkListener>
  /** Every socket that is still open. */
  close(): Promise<void>
}

const loopback = '127.0.0.1'
/** In the simulated network a replica's host has this port open as long as its real listener is. */
const namesake = 7_443

export function embeddedLinks(network: Network, clock: Clock, authority: string): EmbeddedLinks {
  const hosts = new Map<string, Host>()
  const open = new Set<Link>()
  const listeners = new Set<LinkListener>()
  const tls = tlsDialer({ clock, authorities: async () => authority })

  return {
    dialer: (host, process) => ({
      dial: (address, span) => process.hold(dial(host, process, address, span)),
    }),
    async listen(host, process, serving, accept) {
      const listener = await listenTls({ clock, host: loopback, port: 0, serving }, (link) => {
        // A process that stands still accepts nothing; its kernel does, and keeps what comes.
        process.deliver(() => accept(ofProcess(link, process)))
      })
      hosts.set(listener.address, host)
      listeners.add(listener)
      host.ports.set(namesake, { serves: 'answers' })
      const close = async (): Promise<void> => {
        listeners.delete(listener)
        hosts.delete(listener.address)
        host.ports.delete(namesake)
        await listener.close()
      }
      // Its kernel lives: the sockets of a dead process are closed, and its port refuses.
      process.onEnd(() => void close())
      return { address: listener.address, close }
    },
    async close() {
      for (const link of open) link.close('the world ends')
      await Promise.all([...listeners].map((listener) => listener.close()))
    },
  }

  async function dial(from: Host, process: Process, address: string, span: Ms): Promise<Link> {
    const to = hosts.get(address)
    if (to === undefined) throw new Error(`${address} refused the connection`)
    const began = clock.now()
    await way(from, to, span, address)
    const real = await tls.dial(address, Math.max(1, span - (clock.now() - began)))
    open.add(real)
    return underNetwork(from, to, process, real)
  }

  /** The world's own word on whether a connection can be made now. */
  function way(from: Host, to: Host, span: Ms, address: string): Promise<void> {
    return new Promise((resolve, reject) => {
      let over = false
      const late = clock.after(span, () => end(new Error(`no answer from ${address} within ${Math.round(span)} ms`)))
      const end = (error?: Error) => {
        over = true
        late()
        if (error === undefined) resolve()
        else reject(error)
      }
      knock(network, from, to.address, namesake, 'link', () => over, (word) => end(word === 'refused' ? new Error(`${address} refused the connection`) : undefined))
    })
  }

  function underNetwork(from: Host, to: Host, process: Process, real: Link): Link {
    const { boot } = from
    let ears: LinkEars | undefined
    let ended = false
    const early: ((ears: LinkEars) => void)[] = []
    const hear = (event: (ears: LinkEars) => void) => process.deliver(() => {
      if (ears === undefined) early.push(event)
      else event(ears)
    })
    const lose = (reason: string) => {
      if (ended) return
      ended = true
      forget()
      there.drop()
      open.delete(real)
      real.close(reason)
      hear((listening) => listening.closed(reason))
    }
    const there = createPipe<Uint8Array>(network, 'link', from, to, {
      arrived: (frame) => real.send(frame),
      broken: (reason) => lose(reason === 'reset' ? 'reset by the other end' : reason),
    })
    const back = createPipe<{ frame: Uint8Array } | { closed: string }>(network, 'link', to, from, {
      arrived(parcel) {
        if ('closed' in parcel) lose(parcel.closed)
        else if (!ended) hear((listening) => listening.frame(parcel.frame))
      },
      // The far kernel gave up, or this machine has booted since and knows nothing of it.
      broken() {
        open.delete(real)
        real.close('reset by the other end')
      },
    })
    real.listen({
      frame: (frame) => back.send({ frame: Uint8Array.from(frame) }),
      closed: (reason) => {
        open.delete(real)
        back.send({ closed: reason })
      },
    })
    const forget = process.onEnd(() => {
      if (ended) return
      ended = true
      there.drop()
      // Only a kernel that lives closes a dead process's sockets; after a power loss nobody says anything.
      if (from.kernel === 'up' && from.boot === boot) {
        open.delete(real)
        real.close('closed by the other end')
      }
    })
    return {
      remote: real.remote,
      send(frame) {
        if (!ended && process.running()) there.send(Uint8Array.from(frame))
      },
      listen(given) {
        ears = given
        for (const event of early.splice(0)) event(given)
      },
      close: lose,
    }
  }
}

/** What a process that may be paused or killed sees of a real link. */
function ofProcess(link: Link, process: Process): Link {
  return {
    remote: link.remote,
    send(frame) {
      if (process.running()) link.send(frame)
    },
    listen: (ears) => link.listen({
      frame: (frame) => process.deliver(() => ears.frame(frame)),
      closed: (reason) => process.deliver(() => ears.closed(reason)),
    }),
    close: (reason) => link.close(reason),
  }
}
