// The agent's links: one to every replica, dialled again with patience whenever it ends.
import type { AgentWord, Beat, GateWord, NodeBoot, ReplicaWord, RevokedWord, SelfStopWord } from '../core/beat.ts'
import { frameOf, framesOf, mostReplicas, readReplicaWord } from '../core/frame.ts'
import type { Ms } from '../core/model.ts'
import type { MemberSays } from '../core/self-stop.ts'
import type { Link } from '../edge/link.ts'
import type { AgentHost } from './host.ts'

/** An open, welcomed link. */
export interface Line {
  readonly address: string
  readonly replica: string
  /** What that replica calls our node, by our token. */
  readonly node: string
  leads: boolean
  permittedUntil?: Ms
  /** Whether it says the gate's words at all, and the latest of them. */
  readonly gates: boolean
  gate?: GateWord
  /** The latest of its words on our permit, and when that was asked for. */
  permits?: { readonly askedAt: Ms; readonly says: MemberSays }
  selfStop?: SelfStopWord
  revoked?: RevokedWord
  /** Of a list that comes in parts: what has come so far. It ends with the link. */
  pods: readonly string[]
  boots: readonly NodeBoot[]
  send(word: AgentWord): void
}

export interface Links {
  setWanted(addresses: readonly string[]): void
  open(): readonly Line[]
  /** To every open link. */
  beat(beat: Beat): void
  say(word: AgentWord): void
  /** The key that this replica last gave, whether or not its link still stands. */
  keyOf(replica: string): string | undefined
  close(): void
}

export interface LinksOptions {
  readonly host: Pick<AgentHost, 'clock' | 'chance' | 'log' | 'dialer'>
  /** Undefined: there is no token to be read now. */
  hello(): Promise<AgentWord | undefined>
  opened(line: Line): void
  heard(line: Line, word: ReplicaWord): void
}

const dialWithin: Ms = 3_000
/** The replica may wait a minute for the API server's word on our token. */
const welcomeWithin: Ms = 90_000
/** The first wait is short: a blink of the network must not cost a beat too many. The last is long: the whole cluster dials
 *  a replica that comes back, and each handshake costs it a millisecond. Each wait is half to one and a half of this. */
const firstRedial: Ms = 200
const lastRedial: Ms = 10_000
/** A link that stood so long begins with the short wait again. */
const stood: Ms = 10_000
/** Every fifth beat is answered: two answers missed, and the link is dead though nobody told us. Counted in beats and not
 *  in time, so that a machine that was frozen does not cut its links when it wakes. */
const mostUnanswered = 12
/** While another address leads to the same replica. */
const twinWait: Ms = 10_000

interface Keeping {
  wanted: boolean
  link?: Link
  line?: Line
  unanswered: number
  /** Who answered here last. */
  replica?: string
  readonly stop: AbortController
}

export function keepLinks({ host, hello, opened, heard }: LinksOptions): Links {
  const { clock, log } = host
  const kept = new Map<string, Keeping>()
  const keys = new Map<string, string>()
  let closed = false

  return {
    setWanted(addresses) {
      if (closed) return
      const wanted = new Set(addresses.slice(0, mostReplicas))
      for (const [address, keeping] of kept) {
        keeping.wanted = wanted.has(address)
        // An open link is worth more than a list: it is given up only when it ends by itself.
        if (!keeping.wanted && keeping.line === undefined) leave(address, keeping, 'no replica is there any more')
      }
      for (const address of wanted) if (!kept.has(address)) void keep(address)
    },
    open: () => [...kept.values()].flatMap((keeping) => keeping.line ?? []),
    beat(beat) {
      const frame = frameOf(beat)
      for (const keeping of kept.values()) {
        if (keeping.line === undefined) continue
        keeping.unanswered += 1
        if (keeping.unanswered > mostUnanswered) keeping.link?.close(`${mostUnanswered} beats without an answer`)
        else keeping.link?.send(frame, 'public')
      }
    },
    say(word) {
      const frames = framesOf(word)
      for (const keeping of kept.values()) if (keeping.line !== undefined) for (const frame of frames) keeping.link?.send(frame)
    },
    keyOf: (replica) => keys.get(replica),
    close() {
      closed = true
      for (const [address, keeping] of kept) leave(address, keeping, 'the agent stops')
    },
  }

  function leave(address: string, keeping: Keeping, reason: string): void {
    keeping.wanted = false
    keeping.stop.abort()
    keeping.link?.close(reason)
    kept.delete(address)
  }

  async function keep(address: string): Promise<void> {
    const keeping: Keeping = { wanted: true, unanswered: 0, stop: new AbortController() }
    kept.set(address, keeping)
    let redial = firstRedial
    while (keeping.wanted) {
      if (linkedElsewhere(keeping)) {
        await clock.wait(twinWait, keeping.stop.signal)
        continue
      }
      const lasted = await once(address, keeping)
      if (lasted > stood) redial = firstRedial
      await clock.wait(redial * (0.5 + host.chance()), keeping.stop.signal)
      redial = Math.min(redial * 2, lastRedial)
    }
    if (kept.get(address) === keeping) kept.delete(address)
  }

  function linkedElsewhere(keeping: Keeping): boolean {
    return keeping.replica !== undefined && [...kept.values()].some((other) => other !== keeping && other.line?.replica === keeping.replica)
  }

  /** One link from dial to end; answers how long it was open. */
  async function once(address: string, keeping: Keeping): Promise<Ms> {
    const first = await hello()
    if (first === undefined) {
      log.warn({ address }, 'no token to say hello with')
      return 0
    }
    let link: Link
    try {
      link = await host.dialer.dial(address, dialWithin)
    } catch (error) {
      log.debug({ address, reason: String(error) }, 'replica not reached') // it is dialled again
      return 0
    }
    if (!keeping.wanted) {
      link.close('not wanted any more')
      return 0
    }
    keeping.link = link
    const lasted = await new Promise<Ms>((resolve) => {
      let openedAt: Ms | undefined
      const late = clock.after(welcomeWithin, () => link.close('no welcome'))
      link.listen({
        frame(frame) {
          late()
          openedAt ??= clock.now()
          take(address, keeping, link, frame)
        },
        closed(reason) {
          late()
          if (keeping.line !== undefined) log.info({ address, replica: keeping.replica, reason }, 'link ended')
          delete keeping.line
          delete keeping.link
          resolve(openedAt === undefined ? 0 : clock.now() - openedAt)
        },
      })
      link.send(frameOf(first))
    })
    return lasted
  }

  function take(address: string, keeping: Keeping, link: Link, frame: Uint8Array): void {
    const read = readReplicaWord(frame)
    if ('unknown' in read) return
    if ('garbage' in read) {
      log.warn({ address, reason: read.garbage }, 'garbage from a replica')
      return link.close(read.garbage)
    }
    const { word } = read
    keeping.unanswered = 0
    if (word.say === 'refused') {
      log.warn({ address, reason: word.reason }, 'a replica refuses us')
      return link.close(word.reason)
    }
    if (word.say === 'welcome') return welcomed(address, keeping, link, word)
    if (keeping.line !== undefined) heard(keeping.line, word)
  }

  function welcomed(address: string, keeping: Keeping, link: Link, { replica, key, node, gates }: ReplicaWord & { say: 'welcome' }): void {
    remember(replica, key)
    keeping.replica = replica
    // The replica keeps the newer of two links of one node, and so do we.
    for (const other of kept.values()) if (other !== keeping && other.line?.replica === replica) other.link?.close('a newer link to this replica took its place')
    const send = (word: AgentWord): void => { for (const frame of framesOf(word)) link.send(frame) }
    const line: Line = { address, replica, node, gates: gates === true, leads: false, pods: [], boots: [], send }
    keeping.line = line
    log.info({ address, replica, node }, 'linked')
    opened(line)
  }

  /** As many as there can be replicas; the one longest without a welcome goes first. */
  function remember(replica: string, key: string): void {
    keys.delete(replica)
    keys.set(replica, key)
    for (const oldest of keys.keys()) {
      if (keys.size <= mostReplicas) break
      keys.delete(oldest)
    }
  }
}
