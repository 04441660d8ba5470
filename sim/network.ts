// The simulated network: named hosts, and what happens to a packet between them. Links (links.ts), whispers (whispers.ts) and
// the way to the API server (api-path.ts) stand on the few facts kept here: how long a packet takes, whether it arrives, and
// what the other machine's kernel does with it.
import type { Ms, ProbeWord } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Link } from '../edge/link.ts'
import type { Chance } from './chance.ts'
import type { Process } from './process.ts'

/** What kind of traffic a rule speaks of, so that a node can lose the replicas and keep the API server. `watch` is what an API
 *  server streams, apart from `api`, all else it is asked: a watch can stall while writes still pass. */
export type Plane = 'link' | 'whisper' | 'probe' | 'api' | 'watch' | 'device' | 'kdump'

/** `silent`: packets vanish. `refused`: something on the way, or the host itself, answers with a reset. */
export type Reach = 'open' | 'silent' | 'refused'

/** Asked for each packet, one direction at a time: a one-way cut is a rule that answers for one order of the two names. */
export type ReachRule = (from: string, to: string, plane: Plane) => Reach

export interface Weather {
  /** One way, evenly between the two. */
  delay: readonly [Ms, Ms]
  /** Share of packets lost. On a stream a loss is a retransmission, that is, a delay; a whisper is gone. */
  loss: number
  /** Share of whispers that arrive twice. */
  duplicate: number
  /** Share of packets that are held up, and for how long at most: what reorders whispers. */
  clog: number
  clogFor: Ms
}

export interface Host {
  readonly name: string
  readonly address: string
  readonly ports: Map<number, Port>
  /** `frozen` and `down` are silent. `stuck`: the kernel still completes TCP handshakes, nobody reads. `crash`: a crash kernel, which knows nothing
   *  of the one before it and refuses whoever connects. */
  kernel: 'up' | 'stuck' | 'frozen' | 'down' | 'crash'
  /** Grows with each boot: packets of a connection of an earlier boot are answered with a reset. */
  boot: number
  nextPort: number
}

/** `answers`: TCP and TLS. `drops`: a firewall swallows what comes. No entry: the kernel refuses. `link`: a listener for links. */
export type Port =
  | { readonly serves: 'answers' | 'drops' }
  | { readonly serves: 'link'; readonly process: Process; readonly accept: (link: Link) => void }

export interface Network {
  readonly clock: Clock
  readonly chance: Chance
  readonly weather: Weather
  addHost(name: string, address: string): Host
  /** By name or address. */
  find(nameOrAddress: string): Host | undefined
  /** Holds until the answer is called. The worst word of all rules wins: silent, then refused. */
  rule(rule: ReachRule): () => void
  /** What becomes of a packet that arrives now. */
  reach(from: Host, to: Host, plane: Plane): Reach
  /** How long the next packet takes. */
  delay(): Ms
  /** A connection attempt to a port, as a prober without a process sees it. */
  probe(from: Host, address: string, port: number, span: Ms): Promise<ProbeWord>
  /** Whether a kernel answers packets of a connection made in that boot. */
  kernelOf(host: Host, boot: number): 'answers' | 'resets' | 'silent'
}

const clearWeather: Weather = { delay: [0.2, 2], loss: 0, duplicate: 0, clog: 0, clogFor: 0 }

/** First retransmission of a SYN on Linux; then doubled. */
const synRetry: Ms = 1_000

export function createNetwork(clock: Clock, chance: Chance, weather: Partial<Weather> = {}): Network {
  const hosts = new Map<string, Host>()
  const rules = new Set<ReachRule>()

  const network: Network = {
    clock,
    chance,
    weather: { ...clearWeather, ...weather },
    addHost(name, address) {
      if (hosts.has(name) || hosts.has(address)) throw new Error(`the network has a host ${name} or ${address} already`)
      const host: Host = { name, address, ports: new Map(), kernel: 'up', boot: 1, nextPort: 32_768 }
      hosts.set(name, host)
      hosts.set(address, host)
      return host
    },
    find: (nameOrAddress) => hosts.get(nameOrAddress),
    rule(rule) {
      rules.add(rule)
      return () => rules.delete(rule)
    },
    reach(from, to, plane) {
      let worst: Reach = 'open'
      if (from === to || rules.size === 0) return worst
      for (const rule of rules) {
        const word = rule(from.name, to.name, plane)
        if (word === 'silent') return word
        if (word === 'refused') worst = word
      }
      return worst
    },
    delay() {
      const { delay: [low, high], clog, clogFor } = network.weather
      return chance.between(low, high) + (chance.yes(clog) ? chance.between(0, clogFor) : 0)
    },
    kernelOf(host, boot) {
      if (host.kernel === 'down' || host.kernel === 'frozen') return 'silent'
      return host.boot === boot && host.kernel !== 'crash' ? 'answers' : 'resets'
    },
    probe(from, address, port, span) {
      return new Promise((resolve) => {
        let over = false
        const end = (word: ProbeWord) => {
          if (over) return
          over = true
          stopWaiting()
          resolve(word)
        }
        let accepted = false
        const stopWaiting = clock.after(span, () => end(accepted ? 'open' : 'silent'))
        knock(network, from, address, port, 'probe', () => over, (word, to) => {
          // A machine whose userspace is stuck completes TCP and never TLS: something runs there, and nobody serves.
          accepted = word === 'accepted'
          if (to.kernel !== 'stuck' || !accepted) end(accepted ? 'answered' : 'refused')
        })
      })
    },
  }
  return network
}

/** A SYN and its answer, tried again until `over`. A port that drops, a dead kernel and an unknown address never answer. */
export function knock(
  network: Network, from: Host, address: string, port: number, plane: Plane, over: () => boolean,
  answer: (word: 'accepted' | 'refused', to: Host, open: Port | undefined) => void,
): void {
  const { clock } = network
  let retry = synRetry
  const attempt = () => {
    clock.after(network.delay(), () => {
      if (over()) return
      const to = network.find(address)
      const there = to === undefined || lost() ? 'silent' : network.reach(from, to, plane)
      if (to === undefined || there === 'silent' || network.kernelOf(to, to.boot) === 'silent') return again()
      const open = to.ports.get(port)
      if (there === 'open' && open?.serves === 'drops') return again()
      const back = network.reach(to, from, plane)
      if (back === 'silent') return again()
      const word = there === 'refused' || back === 'refused' || open === undefined || to.kernel === 'crash' ? 'refused' : 'accepted'
      clock.after(network.delay(), () => {
        if (!over()) answer(word, to, open)
      })
    })
  }
  const again = () => {
    clock.after(retry, () => {
      if (!over()) attempt()
    })
    retry = Math.min(retry * 2, 8_000)
  }
  const lost = () => network.chance.yes(network.weather.loss)
  attempt()
}
