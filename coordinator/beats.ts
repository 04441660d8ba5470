// The beats server: every agent's open link to this replica, and what was heard over it. Its hot path is one number written
// for each beat; whatever is worth a decision is told through `changed`. It judges nothing.
import { tolerating, type Acceptance } from '../core/acceptance.ts'
import type { AgentWord, Answer, Beat, Before, Check, CleanReport, CleanWord, Hello, NodeBoot, Places, ReplicaWord, RevokesWord, Witness } from '../core/beat.ts'
import { checkFrames, frameOf, framesOf, mostPods, mostRevoked, permitAgain, readAgentWord } from '../core/frame.ts'
import type { BeatSeen, Boot, Ms, NodeName, PodsSeen } from '../core/model.ts'
import { permitSpan, type MemberSays } from '../core/self-stop.ts'
import { sealHolds } from '../edge/link-seal.ts'
import type { Link, LinkEars } from '../edge/link.ts'
import type { Api } from './api.ts'
import { createDoor } from './beats-door.ts'
import { beforeOf, sinceFirst, takeBeat, type BeatChange, type Changing } from './beats-heard.ts'
import { questions } from './beats-questions.ts'
import { tallyBeat, type Tally } from './beats-tally.ts'
import { createReviews, type Caller } from './beats-review.ts'
import type { CoordinatorHost } from './host.ts'
import { keepReplicaLinks } from './replicas.ts'

export interface BeatsOptions {
  readonly host: Pick<CoordinatorHost, 'clock' | 'chance' | 'secret' | 'log' | 'dialer'>
  /** For token reviews only, and for them alone it needs a rate of some 200 a second: a new replica is dialled by all. */
  readonly api: Pick<Api, 'create'>
  /** This replica's name, its own among all replicas. Agents keep their keys by it. */
  readonly replica: string
  /** Where the agents' account is, and where the replicas' own. */
  readonly namespace: string
  readonly replicaNamespace: string
  /** This replica's own service account token, for the links to other replicas. Undefined: none can be read now. */
  token(): Promise<string | undefined>
  /** The Node's own address, by its object. Undefined or empty: none is known. */
  addressOf?(node: NodeName): string | undefined
  /** Never called for an ordinary beat. */
  changed(node: NodeName, what: BeatChange): void
  /** Resolves when what the machine has received by now was handed out. The simulated world has its own. */
  drained?(): Promise<void>
}

export interface Beats {
  /** For `host.listen`: agents and other replicas come in here. */
  accept(link: Link): void
  /** Undefined: never heard by this replica. The record is live: the same object changes with each beat of that boot. */
  heard(node: NodeName): BeatSeen | undefined
  /** What the latest hello said, and where from. Undefined: never welcomed by this replica. Live, as what was heard. */
  agent(node: NodeName): AgentFacts | undefined
  nodes(): Iterable<NodeName>
  /** Links open now. */
  linked(): number
  /** Of all agents, since this replica started. */
  tally(): Readonly<Tally>
  setLeading(leads: boolean): void
  /** Addresses of all replicas, this one's own among them or not: agents learn them, other replicas are dialled. */
  setReplicas(addresses: readonly string[]): void
  /** Names of the other replicas with an open link, in either direction. */
  replicas(): readonly string[]
  /** Undefined: no link, no answer within the span, or a seal that does not hold. */
  challenge(node: NodeName, span?: Ms): Promise<Challenged | undefined>
  /** What `witness` says of `node` behind `address`. Undefined: the witness itself did not answer. */
  ask(witness: NodeName, node: NodeName, address: string, nonce: string, span?: Ms): Promise<Testimony | undefined>
  /** What another replica says of `node`. Undefined: it did not answer. */
  askReplica(replica: string, node: NodeName, span?: Ms): Promise<Testimony | undefined>
  /** A nonce for `ask`. */
  nonce(): string
  /** Asks for a clean report at once. `podUids` are all pods that belong on the node, by the name of their folder there
   *  (of a static pod: its config hash), as they were listed `asOf`. False: no link, or more pods than can be told, which then stands as the report. */
  check(node: NodeName, podUids: readonly string[], wish?: Pick<Check, 'stop' | 'cleanUp'>, asOf?: Ms): boolean
  /** Tells the node's gate, unless its link was told the same; a reason alone that changes is told now and then. */
  gate(node: NodeName, word: Acceptance, pods: PodsSeen | undefined): void
  /** What permits of this boot say from now on; `unknown` before. */
  permits(node: NodeName, boot: Boot, says: MemberSays): void
  /** Unless its link was told the same. */
  say(node: NodeName, word: Told): void
  /** The agent pod ended: its link is closed and its token believed no more. What was heard stays. */
  drop(podUid: string): void
  /** The Node was deleted and nothing of it is of interest any more. */
  forget(node: NodeName): void
  drained(): Promise<void>
  close(): void
}

type Told = Extract<ReplicaWord, { say: 'self-stop' | 'revoked' | 'keys' | 'disarm' }>

export interface AgentFacts {
  readonly nodeUid: string
  readonly pod: string
  readonly podUid: string
  readonly agent: string
  readonly boot: Boot
  readonly machine: string
  /** Machine's uptime when it said hello, and when that was. */
  readonly uptime: Ms
  readonly helloAt: Ms
  readonly remote: string
  /** Where peers can whisper to it; undefined when it answers none. */
  readonly whisperAddress: string | undefined
  readonly linked: boolean
}

export interface Challenged { readonly issuedAt: Ms; readonly boot: Boot }

export interface Testimony {
  readonly word: 'hears' | 'deaf'
  /** The node's own seal came back with it, or the replica that says so has checked one of this moment. */
  readonly proven: boolean
  readonly boot?: Boot
}

const longestReason = 1_024
const permitEvery = 5
const challengeSpan: Ms = 1_000
/** A witness tries thrice, 300 ms each. */
const askSpan: Ms = 1_500
/** A relayed challenge must be answered, or missed, before the asking replica gives up. */
const relaySpan: Ms = 700
/** A beat so recent makes a bare "hears" when the node does not answer a relayed challenge in time. */
const recentBeat: Ms = 2_000
const mostQuestions = 5_000
/** Reasons with a number in them change with every tick. */
const reasonEvery: Ms = 5_000
/** So many uids fit a frame, and no node runs more pods. */
const mostTolerating = 500
/** A link without a beat for so long belongs to nobody. */
const silentLinkEnds: Ms = 60_000
const sweepEvery: Ms = 10_000

/** All that is kept of a node. It survives the link. */
interface Row {
  seen: Changing<BeatSeen> | undefined
  /** The number of its latest beat. */
  count?: number
  line: Line | undefined
  facts: AgentFacts
  permits?: { readonly boot: Boot; readonly says: MemberSays }
  /** Newest first: an agent whose welcome got lost on the way still seals with the one before. */
  keys: readonly string[]
}

/** A welcomed link. */
interface Line {
  readonly link: Link
  /** The address at its other end. */
  readonly from: string
  readonly boot: Boot
  readonly bootedAt: Ms
  readonly before: Before
  readonly places: Places | undefined
  untilPermit: number
  heardAt: Ms
  /** The latest list of pods that its agent was told. */
  listed?: { readonly list: string; readonly asOf: Ms }
  /** What its gate was told last. */
  gate?: { readonly at: Ms; readonly accepted: boolean; readonly reason: string; readonly tolerating: string }
  readonly said: Map<string, string>
  /** Of a list that comes in parts: what has come so far. */
  boots: readonly NodeBoot[]
}

/** Whoever waits for a clean report asks for it every five seconds. */
const rowBreaks: Ms = 60_000

export function serveBeats(options: BeatsOptions): Beats {
  const { host, changed, replica } = options
  const { clock, log } = host
  const rows = new Map<NodeName, Row>()
  const reviews = createReviews({ api: options.api, clock, namespace: options.namespace, replicaNamespace: options.replicaNamespace })
  const challenges = questions<string, Answer>(clock, mostQuestions)
  const asks = questions<string, Witness>(clock, mostQuestions)
  const peers = keepReplicaLinks({ host, replica, token: () => options.token(), answer: testify })
  const door = createDoor({ host, reviews, agent: welcome, replica: (link, name) => peers.accepted(link, name) })
  let leads = false
  let addresses: readonly string[] = []
  /** As frames, until one of the two changes. */
  const permits = new Map<MemberSays, Uint8Array>()
  const tally: Tally = { late: 0, lost: 0 }
  let linked = 0
  let asked = 0
  let closed = false
  let cancelSweep = clock.after(sweepEvery, sweep)

  return {
    accept: (link) => (closed ? link.close('this replica stops') : door.accept(link)),
    heard: (node) => rows.get(node)?.seen,
    agent: (node) => rows.get(node)?.facts,
    nodes: () => rows.keys(),
    linked: () => linked,
    tally: () => tally,
    setLeading(now) {
      leads = now
      permits.clear()
    },
    setReplicas(all) {
      addresses = [...all]
      permits.clear()
      peers.setAddresses(all)
    },
    replicas: () => peers.names(),
    challenge,
    ask,
    async askReplica(name, node, span = askSpan) {
      const said = await peers.ask(name, node, span)
      if (said === undefined) return undefined
      const { word, boot } = said
      return { word, proven: word === 'hears' && boot !== undefined, ...(boot === undefined ? {} : { boot }) }
    },
    nonce: newNonce,
    check(node, podUids, wish = {}, asOf = clock.now()) {
      const line = rows.get(node)?.line
      if (line === undefined) return false
      if (podUids.length > mostPods) return untold(node, `${podUids.length} pods are bound to it, and its agent can be told of ${mostPods} at most`)
      const list = newNonce()
      line.listed = { list, asOf }
      for (const frame of checkFrames(podUids, { ...wish, list })) line.link.send(frame)
      return true
    },
    gate(node, { accepted, reason }, pods) {
      const row = rows.get(node)
      const line = row?.line
      // Nothing is said of a boot before its first beat: the core has not seen it.
      if (row?.seen === undefined || line === undefined || row.seen.boot !== line.boot) return
      const told = line.gate
      if (told?.accepted === true && accepted && row.seen.gate !== 'shut') return
      const now = clock.now()
      const uids = tolerating(pods).slice(0, mostTolerating)
      const key = uids.join()
      if (told?.accepted === accepted && ((told.reason === reason && told.tolerating === key) || now - told.at < reasonEvery)) return
      line.gate = { at: now, accepted, reason, tolerating: key }
      line.link.send(frameOf({ say: 'gate', boot: line.boot, accepted, reason: reason.slice(0, longestReason), tolerating: uids }))
    },
    permits(node, boot, says) {
      const row = rows.get(node)
      if (row !== undefined && (row.permits?.boot !== boot || row.permits.says !== says)) row.permits = { boot, says }
    },
    say(node, word) {
      const line = rows.get(node)?.line
      if (line === undefined) return
      const text = JSON.stringify(word)
      if (line.said.get(word.say) === text) return
      line.said.set(word.say, text)
      for (const frame of framesOf(word)) line.link.send(frame)
    },
    drop(podUid) {
      reviews.forget(podUid)
      for (const row of rows.values()) if (row.facts.podUid === podUid) row.line?.link.close('its agent pod ended')
    },
    forget(node) {
      rows.get(node)?.line?.link.close('its Node was deleted')
      rows.delete(node)
    },
    // Two turns of the loop: everything the kernel held when the first began was read and handed out by the second. The
    // simulated world's sockets are no sockets, so there this waits for nothing that could differ from run to run.
    drained: options.drained?.bind(options) ?? (() => new Promise((resolve) => { setImmediate(() => setImmediate(resolve)) })),
    close() {
      closed = true
      cancelSweep()
      challenges.close()
      asks.close()
      peers.close()
      door.close('this replica stops')
      for (const row of rows.values()) row.line?.link.close('this replica stops')
    },
  }

  function newNonce(): string {
    return Buffer.from(host.secret(16)).toString('base64url')
  }

  function welcome(link: Link, hello: Hello, caller: Caller & { is: 'agent' }, saidAt: Ms): LinkEars {
    const { node } = caller
    const key = Buffer.from(host.secret(32)).toString('base64url')
    const before = rows.get(node)
    const from = hostOf(link.remote).replace(/^\[|\]$/g, '').toLowerCase()
    const line: Line = { link, from, boot: hello.boot, bootedAt: saidAt - hello.uptime, before: beforeOf(hello), places: hello.places, untilPermit: 1, heardAt: clock.now(), said: new Map(), boots: [] }
    const { whisperPort } = hello
    const facts: AgentFacts = {
      nodeUid: caller.nodeUid, pod: caller.pod, podUid: caller.podUid, agent: hello.agent, boot: hello.boot, machine: hello.machine,
      uptime: hello.uptime, helloAt: saidAt, remote: link.remote,
      get linked() { return rows.get(node)?.line === line },
      get whisperAddress() { return whisperPort === 0 ? undefined : `${peersReach(hostOf(link.remote), options.addressOf?.(node))}:${whisperPort}` },
    }
    const replaced = before?.line
    if (replaced === undefined) linked += 1
    // An agent that begins anew permits as if it had been told nothing; one that has not says so again.
    if (before?.seen !== undefined) before.seen.revokes = undefined
    const row: Row = Object.assign(before ?? { seen: undefined }, { line, facts, keys: [key, ...(before?.keys.slice(0, 1) ?? [])] })
    rows.set(node, row)
    link.send(frameOf({ say: 'welcome', node, replica, key, gates: true }))
    log.info({ node, remote: link.remote, boot: hello.boot, pod: caller.pod }, 'agent welcomed')
    replaced?.link.close('a newer link of this node took its place')
    return { frame: (frame) => hear(node, row, line, frame), closed: (reason) => farewell(node, row, line, reason) }
  }

  function farewell(node: NodeName, row: Row, line: Line, reason: string): void {
    if (row.line !== line) return
    row.line = undefined
    linked -= 1
    log.info({ node, reason }, 'agent link ended')
  }

  function hear(node: NodeName, row: Row, line: Line, frame: Uint8Array): void {
    if (row.line !== line) return // replaced, and what it still says is of no weight
    const read = readAgentWord(frame)
    if ('word' in read) return take(node, row, line, read.word)
    if ('unknown' in read) return log.debug({ node, word: read.unknown }, 'unknown word ignored')
    door.refuse(line.link, read.garbage)
  }

  function take(node: NodeName, row: Row, line: Line, word: AgentWord): void {
    switch (word.say) {
      case 'beat':
        return beat(node, row, line, word)
      case 'clean':
        return report(node, row, line, word)
      case 'goodbye':
        return row.seen === undefined ? undefined : tell(node, row.seen, { goodbye: { at: clock.now(), why: word.why } }, 'goodbye')
      case 'answer':
        challenges.answer(`${node} ${word.nonce}`, word)
        return
      case 'witness':
        asks.answer(`${node} ${word.id}`, word)
        return
      case 'watchdog': {
        const { say: _, ...said } = word
        return ofItsBoot(row) ? tell(node, row.seen, { watchdog: said }, 'watchdog') : undefined
      }
      case 'revokes':
        return revokes(node, row, line, word)
      case 'hello':
        return door.refuse(line.link, 'a second hello')
    }
  }

  function beat(node: NodeName, row: Row, line: Line, word: Beat): void {
    line.heardAt = clock.now()
    tallyBeat(tally, row, line.boot, word.count, line.heardAt)
    takeBeat(row, line, word, line.heardAt, node, changed)
    line.untilPermit -= 1
    if (line.untilPermit > 0) return
    line.untilPermit = permitEvery
    line.link.send(permitAgain(permitOf(row.permits?.boot === line.boot ? row.permits.says : 'unknown'), word.count), 'public')
  }

  /** Thousands are told the same. */
  function permitOf(says: MemberSays): Uint8Array {
    const known = permits.get(says) ?? frameOf({ say: 'permit', count: 0, leads, span: permitSpan, replicas: addresses, says })
    permits.set(says, known)
    return known
  }

  /** What is said before the first beat of its boot is of no boot that was heard: the agent beats first. */
  function ofItsBoot(row: Row): row is Row & { seen: Changing<BeatSeen> } {
    return row.seen !== undefined && row.seen.boot === row.line?.boot
  }

  /** An agent tells every replica, and answers the list of one. */
  function report(node: NodeName, row: Row, { listed }: Line, { report: said, list }: CleanWord): void {
    const asOf = list === undefined ? {} : { asOf: listed?.list === list ? listed.asOf : -Infinity }
    if (ofItsBoot(row)) tell(node, row.seen, { clean: { at: clock.now(), ...asOf, ...unclean(row.seen, said), report: said } }, 'report')
  }

  /** From the first word of an unbroken row of them: between two of which nobody asked it may have been clean. */
  function unclean({ clean }: BeatSeen, { state }: CleanReport): { readonly uncleanSince?: Ms } {
    const now = clock.now()
    return state === 'clean' ? {} : { uncleanSince: clean !== undefined && now - clean.at < rowBreaks ? clean.uncleanSince ?? now : now }
  }

  /** Until all of it is there the list before stands. What is cut off counts as permitted still. */
  function revokes(node: NodeName, row: Row, line: Line, { boots: some, more }: RevokesWord): void {
    const boots = [...line.boots, ...some].slice(0, mostRevoked)
    line.boots = more === true ? boots : []
    if (more !== true && ofItsBoot(row)) tell(node, row.seen, { revokes: sinceFirst(row.seen, boots, clock.now()) }, 'revokes')
  }

  /** Whoever waits for a clean report reads there why none comes. */
  function untold(node: NodeName, reason: string): false {
    const seen = rows.get(node)?.seen
    const none: CleanReport = { state: 'unknown', reason }
    if (seen !== undefined) tell(node, seen, { clean: { at: clock.now(), ...unclean(seen, none), report: none } }, 'report')
    return false
  }

  function tell(node: NodeName, seen: Changing<BeatSeen>, fact: Partial<BeatSeen>, what: BeatChange): void {
    Object.assign(seen, fact)
    changed(node, what)
  }

  async function challenge(node: NodeName, span: Ms = challengeSpan): Promise<Challenged | undefined> {
    const line = rows.get(node)?.line
    if (line === undefined) return undefined
    const issuedAt = clock.now()
    const nonce = newNonce()
    const said = await challenges.ask(`${node} ${nonce}`, span, () => line.link.send(frameOf({ say: 'challenge', nonce })))
    const row = rows.get(node)
    if (said === undefined || row?.seen === undefined) return undefined
    if (!holds(row, nonce, said.boot, said.seal)) {
      log.warn({ node, boot: said.boot }, 'the seal of an answer does not hold')
      return undefined
    }
    tell(node, row.seen, { answered: { issuedAt, boot: said.boot } }, 'answer')
    return { issuedAt, boot: said.boot }
  }

  async function ask(witness: NodeName, node: NodeName, address: string, nonce: string, span: Ms = askSpan): Promise<Testimony | undefined> {
    const line = rows.get(witness)?.line
    if (line === undefined) return undefined
    asked += 1
    const id = asked
    const said = await asks.ask(`${witness} ${id}`, span, () => line.link.send(frameOf({ say: 'ask', id, node, address, nonce })))
    return said === undefined ? undefined : testimony(node, nonce, said)
  }

  function testimony(node: NodeName, nonce: string, said: { word: 'hears' | 'deaf'; boot?: Boot; seal?: string }): Testimony {
    if (said.word === 'deaf' || said.boot === undefined) return { word: said.word, proven: false }
    const row = rows.get(node)
    return { word: 'hears', proven: row !== undefined && holds(row, nonce, said.boot, said.seal), boot: said.boot }
  }

  function holds(row: Row, nonce: string, boot: Boot, seal: string | undefined): boolean {
    return seal !== undefined && row.keys.some((key) => sealHolds(key, nonce, boot, seal))
  }

  /** Another replica asks whether we hear a node. It takes our word for the seal: the node may never have had a key of that
   *  replica's, because it booted when they could not reach each other, and then nobody could prove that it lives. */
  async function testify(node: NodeName): Promise<{ word: 'hears' | 'deaf'; boot?: Boot }> {
    const line = rows.get(node)?.line
    if (line === undefined) return { word: 'deaf' }
    const said = await challenge(node, relaySpan)
    if (said !== undefined) return { word: 'hears', boot: said.boot }
    return { word: clock.now() - line.heardAt < recentBeat ? 'hears' : 'deaf' }
  }

  function sweep(): void {
    const now = clock.now()
    for (const { line } of rows.values()) if (line !== undefined && now - line.heardAt > silentLinkEnds) line.link.close('no beat for a minute')
    cancelSweep = clock.after(sweepEvery, sweep)
  }
}

/** The host at which peers reach an agent: its Node's own address. What it comes from is another one where an overlay lies between; and an agent beside the
 *  replica, on the same machine, comes from the gateway of the pods there, where no peer gets an answer from it. Who comes by loopback has all his peers there. */
function peersReach(remote: string, address: string | undefined): string {
  if (address === undefined || address === '' || loopback.test(remote)) return remote
  return address.includes(':') ? `[${address}]` : address
}

const loopback = /^(127\.|\[?(::ffff:127\.|::1\]?$))/

function hostOf(address: string): string {
  return address.slice(0, address.lastIndexOf(':'))
}
