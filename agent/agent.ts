// The agent of one node: it beats to every replica, says what the machine is and whether it is clean, answers challenges and
// peers, and remembers where the replicas are. It decides nothing and writes nothing to the API server.
import type { Beat, Check, Goodbye, Hello, Permit, ReplicaWord, RevokedWord } from '../core/beat.ts'
import type { ColdWord } from '../core/cold-start.ts'
import { mostPods, mostReplicas, mostRevoked } from '../core/frame.ts'
import type { Boot, Ms } from '../core/model.ts'
import type { MemberSays } from '../core/self-stop.ts'
import { withDeadline } from '../edge/clock.ts'
import { sealOf } from '../edge/link-seal.ts'
import { markBoot, type BootMark } from './boot-mark.ts'
import { watchCleanliness } from './cleanliness.ts'
import { keepColdStart } from './cold-start.ts'
import { keepGate, type GateKeeper, type GateOptions } from './gate.ts'
import { watchHealth } from './health.ts'
import { watchKubelet } from './kubelet.ts'
import type { AgentHost } from './host.ts'
import { readMachine, type Machine } from './machine.ts'
import { keepLinks, type Line } from './links.ts'
import { createMember } from './member.ts'
import { recallReplicas } from './replicas.ts'
import { keepRhythm } from './rhythm.ts'
import { keepSelfStop, type SelfStopKeeper } from './self-stop.ts'
import { answerWhispers, createWitness } from './witness.ts'

export interface AgentSettings {
  /** For people: which release this agent is. */
  readonly version: string
  /** As the host's mount table spells it, `/var/lib/kubelet`. */
  readonly kubeletRoot: string
  /** 0: any free one. */
  readonly whisperPort: number
  /** Undefined: the operator wants no gate on this node. `node`: as the API server calls it; empty where nobody said, and then a cluster
   *  that starts cold waits for its coordinator here. */
  readonly gate?: { readonly node?: string }
  /** Pods of these start while the gate is shut, and are not stopped by a node that gives up. */
  readonly exemptNamespaces?: readonly string[]
  /** What is probed; nothing unless said. */
  readonly storage?: readonly string[]
}

export interface Agent {
  /** Undefined until the machine could be read. */
  boot(): Boot | undefined
  links(): readonly LinkState[]
  /** Says goodbye and closes. Idempotent. */
  stop(why: Goodbye): Promise<void>
}

export interface LinkState {
  readonly address: string
  readonly replica: string
  /** The latest permit's: whether that replica leads, and until when workloads may run by its word. */
  readonly leads: boolean
  readonly permittedUntil?: Ms
}

const beatEvery: Ms = 1_000
const machineAgainAfter: Ms = 2_000
/** What is looked for are names in folders that no pod mounts anything over. */
const placesWithin: Ms = 500
/** A permit for an older beat has run out. */
const beatsKept = 32

export function startAgent(host: AgentHost, settings: AgentSettings): Agent {
  const { clock, log } = host
  const { exemptNamespaces = [] } = settings
  const stopping = new AbortController()
  const namespaces = new Set(exemptNamespaces)
  let machine: Machine | undefined
  let mark: BootMark | undefined
  let whispers: { port: number; close(): void } | undefined
  let selfStop: SelfStopKeeper | undefined
  let tolerating: readonly string[] = []
  let ownName = ''
  let count = 0
  let ending = false
  const sentAt = new Map<number, Ms>()

  const links = keepLinks({ host, hello, opened: greet, heard })
  const replicas = recallReplicas({ host, linked: () => links.open().length > 0, found: (addresses) => links.setWanted(addresses), signal: stopping.signal })
  const kubelet = watchKubelet(host, stopping.signal)
  const health = watchHealth(host, settings.storage ?? [], stopping.signal)
  const gate = settings.gate === undefined ? undefined : keepGate({ host, exemptNamespaces, known })
  const cleanliness = watchCleanliness(host, settings.kubeletRoot, (report, list) => {
    gate?.found(report)
    links.say({ say: 'clean', report, ...(list === undefined ? {} : { list }) })
  })
  const witness = createWitness(host)
  const member = createMember(() => ownName, (word) => links.say(word))
  const node = settings.gate?.node ?? ''
  if (gate !== undefined && node !== '') {
    void keepColdStart({ host, node, signal: stopping.signal, waits: () => gate.waits()?.boot, told: (boot, word) => void startCold(gate, boot, word) })
  }
  const started = start()

  return {
    boot: () => machine?.boot,
    links: () => links.open().map(({ address, replica, leads, permittedUntil }) => ({
      address, replica, leads, ...(permittedUntil === undefined ? {} : { permittedUntil }),
    })),
    async stop(why) {
      if (ending) return
      ending = true
      // While it still beats: an upgrade never rides on a watchdog that runs.
      await selfStop?.disarm()
      stopping.abort()
      links.say({ say: 'goodbye', why })
      links.close()
      gate?.stop()
      selfStop?.stop()
      cleanliness.stop()
      await started
      if (why !== 'restart') await mark?.shutDown()
      whispers?.close()
    },
  }

  async function start(): Promise<void> {
    for (;;) {
      machine = await readMachine(host)
      if (machine !== undefined || stopping.signal.aborted) break
      log.error({ again: machineAgainAfter }, 'the boot of this machine cannot be read: no beat until it can')
      await clock.wait(machineAgainAfter, stopping.signal)
    }
    if (machine === undefined || stopping.signal.aborted) return
    mark = await markBoot(host, machine.boot)
    log.info({ boot: machine.boot, machine: machine.id, ...mark.told }, 'agent started')
    const stop = keepSelfStop({ host, boot: machine.boot, exempt: () => ({ namespaces, tolerating: new Set(tolerating) }), replicas: repliesSince, say: (word) => links.say(word) })
    selfStop = stop
    whispers = await answerWhispers(host, settings.whisperPort, { boot: machine.boot, keyOf: (replica) => links.keyOf(replica), answer: member.answer })
    if (stopping.signal.aborted) return stop.stop()
    void replicas.run()
    keepRhythm(clock, beatEvery, host.chance() * beatEvery, stopping.signal, () => {
      links.beat(beat())
    })
  }

  /** What the API server does not hold against this boot the node itself may. */
  async function startCold(keeper: GateKeeper, boot: Boot, word: ColdWord): Promise<void> {
    const before = keeper.waits()?.before
    if (!word.clear || before === 'open') return keeper.alone(boot, word)
    if (before === 'shut') return keeper.alone(boot, { clear: false, reason: 'it was held before in this boot, which only a coordinator ends' })
    const bootedAt = clock.wall() - (machine?.uptime(clock.now()) ?? 0)
    const report = await cleanliness.alone(bootedAt)
    if (stopping.signal.aborted || keeper.waits()?.boot !== boot) return
    keeper.alone(boot, report.state === 'clean' ? word : { clear: false, reason: report.state === 'unknown' ? report.reason : 'something runs on it that is older than its boot' })
  }

  function beat(): Beat {
    count += 1
    sentAt.set(count, clock.now())
    sentAt.delete(count - beatsKept)
    return { say: 'beat', count, kubelet: kubelet.word(), gate: gate?.word() ?? 'off', permit: selfStop?.word() ?? 'off', ...health.word() }
  }

  function known(): ReturnType<GateOptions['known']> {
    const lines = links.open()
    const leaders = lines.filter((line) => line.leads).map((line) => line.gate ?? (line.gates ? 'silent' : 'older'))
    return { boot: machine?.boot, node: lines[0]?.node ?? '', leaders, gaveUp: selfStop?.gaveUp() }
  }

  function repliesSince(since: Ms): readonly { readonly replica: string; readonly says: MemberSays }[] {
    return links.open().flatMap(({ replica, permits }) => (permits === undefined || permits.askedAt < since ? [] : [{ replica, says: permits.says }]))
  }

  async function hello(): Promise<Hello | undefined> {
    const token = (await host.read('token'))?.trim()
    if (machine === undefined || token === undefined || token === '') return undefined
    const places = await withDeadline(clock, placesWithin, undefined, () => host.places())
    return {
      say: 'hello', version: 1, token, agent: settings.version, boot: machine.boot, uptime: Math.max(0, Math.round(machine.uptime(clock.now()))),
      machine: machine.id, whisperPort: whispers?.port ?? 0, ...mark?.told, ...(places === undefined ? {} : { places }),
    }
  }

  /** The first beat follows the welcome at once; a report counts only after it. */
  function greet(line: Line): void {
    line.send(beat())
    const report = cleanliness.report()
    // What was found clean was so by a list of that moment: it says nothing of what was freed since, and whoever must know asks.
    if (report.state !== 'clean') line.send({ say: 'clean', report })
    ownName = line.node
    for (const word of [...selfStop?.words() ?? [], ...member.words()]) line.send(word)
  }

  function heard(line: Line, word: ReplicaWord): void {
    switch (word.say) {
      case 'permit':
        line.leads = word.leads
        line.permittedUntil = clock.now() + word.span
        permitted(line, word)
        return replicas.told(word.replicas.slice(0, mostReplicas))
      case 'challenge':
        return challenged(line, word.nonce)
      case 'ask':
        void witness.ask(word, line.replica).then((said) => (said === undefined ? undefined : line.send(said)))
        return
      case 'check':
        return check(line, word)
      case 'gate':
        line.gate = word
        if (line.leads) tolerating = word.tolerating
        gate?.told()
        return
      case 'self-stop':
        line.selfStop = word
        if (line.leads) selfStop?.told(word)
        return
      case 'revoked':
        return revoked(line, word)
      case 'keys':
        return member.given(word.keys)
      case 'disarm':
        if (line.leads && word.boot === machine?.boot) selfStop?.recorded(word.disarm)
        return
      case 'welcome':
      case 'refused':
        return // the keeper of the links has seen to it
    }
  }

  /** It counts from the beat that it answers: it may have been on its way for long. */
  function permitted(line: Line, { count: answered, leads, says = 'permitted', replicas: { length: named } }: Permit): void {
    const askedAt = sentAt.get(answered)
    if (askedAt === undefined) return
    line.permits = { askedAt, says }
    if (!leads) return
    if (line.selfStop !== undefined) selfStop?.told(line.selfStop)
    if (line.revoked !== undefined) member.told(line.revoked)
    if (says !== 'unknown') selfStop?.heard({ askedAt, says }, named)
  }

  /** A list too long to be kept is none: what is said of it would accuse the pods that are missing. */
  function check(line: Line, { pods, more, stop, cleanUp, list }: Check): void {
    const all = [...line.pods, ...pods].slice(0, mostPods + 1)
    line.pods = more === true ? all : []
    if (more !== true && all.length <= mostPods) cleanliness.check(all, line.leads ? { ...(stop === undefined ? {} : { stop }), ...(cleanUp === undefined ? {} : { cleanUp }) } : {}, list)
  }

  /** Until all of it is there the list before stands. */
  function revoked(line: Line, { more, ...word }: RevokedWord): void {
    const boots = [...line.boots, ...word.boots].slice(0, mostRevoked + 1)
    line.boots = more === true ? boots : []
    if (more === true) return
    line.revoked = { ...word, boots }
    if (line.leads) member.told(line.revoked)
  }

  function challenged(line: Line, nonce: string): void {
    if (machine === undefined) return
    const key = links.keyOf(line.replica)
    line.send({ say: 'answer', nonce, boot: machine.boot, ...(key === undefined ? {} : { seal: sealOf(key, nonce, machine.boot) }) })
  }
}
