// The permit of this node, and what is done when nobody gives it one any more. core/self-stop.ts decides; here the words are gathered, the
// others are asked while the leader is silent, and the workloads are ended, again and again until somebody permits them: a kubelet that
// is cut off starts what it finds ended. Off unless the leader said otherwise in this boot.
//
// What cannot be stopped within its deadline is frozen, and is never thawed: by the time the runtime answers again its pod may run
// elsewhere. It is stopped then, which a frozen process does not survive.
import type { AgentWord, MemberAnswer, PermitState, SelfStopWord } from '../core/beat.ts'
import type { Exemptions } from '../core/gate.ts'
import type { Boot, Ms } from '../core/model.ts'
import type { ContainerSeen } from '../core/mounts.ts'
import {
  clusterSays, mayFeed, mostPermit, permitSpan, wasRevoked, reasonToGiveUp, selfStop, standingAfter, standingSince, workloads, type MemberSays, type PermitHeard, type Standing,
} from '../core/self-stop.ts'
import type { Membership } from '../core/watchdog.ts'
import { withDeadline } from '../edge/clock.ts'
import { askCluster } from './cold-start.ts'
import type { AgentHost } from './host.ts'
import { isSealed } from './member.ts'
import { keepWatchdog } from './watchdog-feed.ts'
import { askMember } from './witness.ts'

export interface SelfStopKeeper {
  /** For the beat. */
  word(): PermitState
  /** Why this node starts nothing, as a sentence's end. */
  gaveUp(): string | undefined
  /** A leader's word on our permit, and how many replicas it names. */
  heard(word: Pick<PermitHeard, 'askedAt' | 'says'>, named: number): void
  /** A leader's. */
  told(word: SelfStopWord): void
  /** What a replica that is linked anew must know. */
  words(): readonly AgentWord[]
  /** The leader's answer to our wish to disarm the watchdog. */
  recorded(disarm: number): void
  /** Before this agent ends. What nobody puts on record stays armed. */
  disarm(): Promise<void>
  stop(): void
}

export interface SelfStopOptions {
  readonly host: Pick<AgentHost, 'clock' | 'chance' | 'secret' | 'log' | 'disk' | 'whispers' | 'askApi' | 'containers' | 'stopContainer' | 'freezeContainer' | 'read' | 'watchdog'>
  readonly boot: Boot
  exempt(): Exemptions
  /** What the replicas that are linked say of our permit, where that was asked for since then. */
  replicas(since: Ms): readonly { readonly replica: string; readonly says: MemberSays }[]
  /** To every replica that is linked. */
  say(word: AgentWord): void
}

const turnEvery: Ms = 1_000
/** Members are asked again so soon: at least once between the first question and the end of a permit. */
const askEvery: Ms = permitSpan / 4
/** Members, and after them the API server. */
const askWithin: Ms = 9_000
/** The API server, by a node that has given up: a whole cluster may have. */
const lastAskEvery: Ms = 120_000
/** What the runtime runs is looked at while all is well, for the day on which it does not answer: what began since is not known then, and runs on. */
const listEvery: Ms = 10_000
const listWithin: Ms = 2_000
const stopWithin: Ms = 5_000
/** Kubelet gives an agent ten seconds to end, and its goodbye must still be said. */
const disarmWithin: Ms = 3_000
const disarmAgain: Ms = 10_000
const memory = 'self-stop.json'

export function keepSelfStop({ host, boot, exempt, replicas, say }: SelfStopOptions): SelfStopKeeper {
  const { clock, log } = host
  const stopping = new AbortController()
  let asked: Asked | undefined
  let named = 0
  let leaving: SelfStopWord | undefined
  /** By the agent before this one: it counts, and nobody feeds it. */
  let leftOpen = false
  let standing: Standing = standingSince(clock.now())
  /** It had given up, and no leader knows that yet. */
  let resumedAt: Ms | undefined
  let latest: readonly ContainerSeen[] = []
  let listedAt = -Infinity
  let running = false
  let asking = false
  let askAt = -Infinity
  let answeredAt = -Infinity
  let askAgain = askEvery
  let frozen: readonly string[] = []
  let kept = ''
  const watchdog = keepWatchdog({ host, mayFeed: () => mayFeed(standing, clock.now()), epoch: () => asked?.membership?.epoch ?? 0, say, changed: opened })
  let saved = recall()

  return {
    word: () => (asked === undefined ? 'off' : standing.gaveUp !== undefined ? 'gave up' : resumedAt === undefined ? 'running' : 'resumed'),
    gaveUp: () => standing.gaveUp?.reason,
    heard(word, many) {
      named = many
      if (resumedAt !== undefined && word.askedAt > resumedAt) resumedAt = undefined
      take({ from: 'leader', ...word })
    },
    told: want,
    words() {
      const word = watchdog.word()
      return word === undefined ? [] : [word]
    },
    recorded: (disarm) => watchdog.recorded(disarm),
    async disarm() {
      leaving = undefined
      await watchdog.disarm(disarmWithin)
    },
    stop() {
      stopping.abort()
      watchdog.stop()
    },
  }

  function want(word: SelfStopWord): void {
    const { giveUp, node, members, membership, key } = word
    // It is told so again with each permit.
    if (leaving === word) return
    leaving = undefined
    // Somebody may count on a watchdog that is armed, and on whose word this node goes by, until it is on record that it is not.
    if ((giveUp === 'never' || membership === undefined) && (watchdog.armed() || leftOpen)) {
      leaving = word
      return void leave(word)
    }
    // What was confirmed is never gone back on: a leader with an old view may not have it any more.
    if (membership !== undefined && membership.epoch < (asked?.membership?.epoch ?? 0)) return
    if (giveUp === 'never') {
      if (asked !== undefined) log.info({}, 'this node is not asked to give up any more')
      asked = undefined
      standing = standingSince(clock.now())
    } else asked = { node, members, ...(membership === undefined ? {} : { membership, ...(key === undefined ? {} : { key }) }) }
    remember()
    goOn()
    watchdog.want(giveUp === 'stop' && membership !== undefined)
  }

  async function leave(word: SelfStopWord): Promise<void> {
    while (leaving === word && !stopping.signal.aborted) {
      // To close it as it should be takes opening it again.
      watchdog.want(leftOpen)
      if (!leftOpen && await watchdog.disarm(disarmWithin)) {
        if (leaving !== word) return
        leaving = undefined
        return want(word)
      }
      await clock.wait(leftOpen ? turnEvery : disarmAgain, stopping.signal)
    }
  }

  function opened(): void {
    leftOpen = false
    remember()
  }

  function take(word: PermitHeard): void {
    const before = standing
    standing = standingAfter(standing, word)
    if (before.gaveUp === undefined || standing.gaveUp !== undefined) return
    resumedAt = clock.now()
    log.warn({ by: word.from }, 'permitted to run workloads again')
    remember()
  }

  /** As long as there is anything to do: on most nodes nobody ever asks for it. */
  function goOn(): void {
    if (running) return
    running = true
    void run()
  }

  function hasWork(): boolean {
    return asked !== undefined || frozen.length > 0
  }

  async function run(): Promise<void> {
    await saved
    while (!stopping.signal.aborted && hasWork()) {
      if (asked !== undefined) await turn(asked)
      else await endFrozen()
      await clock.wait(turnEvery, stopping.signal)
    }
    running = false
  }

  async function turn(of: Asked): Promise<void> {
    const now = clock.now()
    const must = selfStop(standing, now)
    if (must === 'run') askAfresh()
    else void ask(of)
    if (must === 'give up' && (standing.gaveUp !== undefined || wasRevoked(standing) || wasAsked())) return stopAll()
    if (frozen.length > 0) await endFrozen()
    // One that hangs would hold up what comes at the end of the permit.
    if (must === 'run' && now - listedAt >= listEvery) await list()
  }

  /** What it waited for while it had given up is over: nobody gives up unasked, so the next question must not wait for that. */
  function askAfresh(): void {
    askAgain = askEvery
    askAt = -Infinity
  }

  /** An agent that stood still wakes with a permit that has run out, and the next one may lie in its ears. Nobody gives up unasked. */
  function wasAsked(): boolean {
    return answeredAt >= standing.until - permitSpan / 2
  }

  async function stopAll(): Promise<void> {
    if (standing.gaveUp === undefined) {
      const reason = reasonToGiveUp(standing)
      standing = { ...standing, gaveUp: { at: clock.now(), reason } }
      log.error({ reason }, 'this node gives up its workloads')
      remember()
    }
    const answers = await list()
    if (!answers) log.error({ known: latest.length }, 'the runtime does not say what it runs: what it ran before is frozen')
    const doomed = workloads(latest, exempt()).filter(({ id }) => answers || !frozen.includes(id))
    const left = (await Promise.all(doomed.map(async (one) => ((await end(one, answers)) ? [] : [one.id])))).flat()
    keepFrozen([...frozen.filter((id) => !doomed.some((one) => one.id === id)), ...left])
  }

  /** Of what was frozen: a pod that has gone on meanwhile is not meant. */
  async function endFrozen(): Promise<void> {
    if (!await list()) return
    const left = await Promise.all(latest.filter(({ id }) => frozen.includes(id)).map(async (one) => ((await end(one)) ? [] : [one.id])))
    keepFrozen(left.flat())
  }

  /** Whether it is over; what is not is frozen. At once where the runtime does not even say what it runs: to ask it to stop that first would take the time that there is. */
  async function end(one: ContainerSeen, answers = true): Promise<boolean> {
    const facts = { container: one.name, id: one.id }
    const early = answers ? 'not tried yet' : await freeze(one)
    const fault = early === undefined ? 'the runtime does not answer' : await host.stopContainer(one, stopWithin).catch((error: unknown) => String(error))
    if (fault === undefined) {
      log.warn(facts, 'stopped: nobody permits this node to run it')
      return true
    }
    if (frozen.includes(one.id)) return false
    const cold = answers ? await freeze(one) : early
    if (cold === undefined) log.error({ ...facts, reason: fault }, 'frozen: it could not be stopped')
    else log.error({ ...facts, reason: fault, cold }, 'neither stopped nor frozen: it runs on')
    return cold !== undefined
  }

  function freeze(one: ContainerSeen): Promise<string | undefined> {
    return host.freezeContainer(one).catch((error: unknown) => String(error))
  }

  /** Whether the runtime answered; where it does not, what it ran when it last did is gone by. */
  async function list(): Promise<boolean> {
    const seen = await host.containers(listWithin).catch((error: unknown) => ({ failed: String(error) }))
    listedAt = clock.now()
    if ('failed' in seen) return false
    latest = seen
    return true
  }

  async function ask(of: Asked): Promise<void> {
    const askedAt = clock.now()
    if (asking || askedAt < askAt) return
    const given = standing.gaveUp !== undefined
    asking = true
    const word = await withDeadline(clock, askWithin, undefined, () => others(of, askedAt, given)).catch(() => undefined) // whatever it was, it is no permit
    if (word !== undefined) take(word)
    if (given) askAgain = Math.min(askAgain * 2, lastAskEvery)
    askAt = askedAt + askAgain * (0.5 + host.chance())
    answeredAt = askedAt
    asking = false
  }

  async function others(of: Asked, askedAt: Ms, given: boolean): Promise<PermitHeard | undefined> {
    if (!given && await membersPermit(of, askedAt)) return { from: 'members', askedAt, says: 'permitted' }
    const said = await askCluster(host, of.node)
    const says = 'failed' in said ? 'unknown' : clusterSays(boot, said)
    return says === 'unknown' ? undefined : { from: 'API server', askedAt, says }
  }

  async function membersPermit(of: Asked, askedAt: Ms): Promise<boolean> {
    const { node, members, membership } = of
    const agents = await Promise.all(members.map(async (address, index) => {
      if (address === '') return undefined
      const member = membership?.agents[index]
      const question = { node, boot, nonce: Buffer.from(host.secret(16)).toString('base64url'), ...(member === undefined ? {} : { member }) }
      const answer = await askMember(host, address, question)
      return answer !== undefined && counts(of, answer) ? answer.says : undefined
    }))
    const linked = replicas(askedAt - askEvery).filter(({ replica }) => membership?.replicas.includes(replica) !== false)
    return mostPermit({
      agents: agents.filter((says) => says !== undefined), replicas: linked.map(({ says }) => says),
      named: membership === undefined ? members.length + named : membership.agents.length + membership.replicas.length,
    })
  }

  /** With a watchdog nobody's word is taken who was not given the key. */
  function counts({ membership, key }: Asked, answer: MemberAnswer): boolean {
    return membership === undefined || (key !== undefined && isSealed(answer, key, boot))
  }

  function keepFrozen(ids: readonly string[]): void {
    frozen = [...new Set(ids)]
    remember()
  }

  /** For an agent that is started again in this boot: it is asked for the same, and a node that gave up stays so. */
  function remember(): void {
    const text = JSON.stringify({ boot, ...asked, named, frozen, ...(watchdog.armed() || leftOpen ? { open: true } : {}), ...(standing.gaveUp === undefined ? {} : { gaveUp: standing.gaveUp.reason }) })
    if (text === kept) return
    kept = text
    saved = saved.then(() => host.disk.save(memory, text))
      .catch((error: unknown) => log.warn({ reason: String(error) }, 'what this node does without a permit could not be remembered on disk'))
  }

  async function recall(): Promise<void> {
    const last = readMemory(await host.disk.load(memory).catch(() => undefined)) // a disk that cannot be read remembers nothing
    if (last === undefined || last.boot !== boot) return
    frozen = [...last.frozen, ...frozen]
    leftOpen = last.open && !watchdog.armed()
    goOn()
    const { node, members, membership, key, gaveUp } = last
    // A leader has spoken meanwhile, and knows better.
    if (node === undefined || asked !== undefined) return remember()
    asked = { node, members, ...(membership === undefined ? {} : { membership }), ...(key === undefined ? {} : { key }) }
    watchdog.want(membership !== undefined)
    named = last.named
    if (gaveUp !== undefined) standing = { ...standing, gaveUp: { at: clock.now(), reason: gaveUp } }
    log.info({ members: members.length, gaveUp }, 'asked in this boot to give up without a permit')
  }
}

type Asked = Pick<SelfStopWord, 'node' | 'members' | 'membership' | 'key'>

interface Memory {
  readonly boot: Boot
  readonly named: number
  readonly node?: string
  readonly members: readonly string[]
  /** Where it was asked to arm its watchdog. */
  readonly membership?: Membership
  readonly key?: string
  readonly gaveUp?: string
  readonly frozen: readonly string[]
  /** The watchdog was, and nobody has disarmed it. */
  readonly open: boolean
}

function readMemory(text: string | undefined): Memory | undefined {
  try {
    const value: unknown = JSON.parse(text ?? 'null')
    if (typeof value !== 'object' || value === null || !('boot' in value) || typeof value.boot !== 'string') return undefined
    const membership = 'membership' in value ? readMembership(value.membership) : undefined
    return {
      open: 'open' in value && value.open === true, ...(membership === undefined ? {} : { membership }), ...('key' in value && typeof value.key === 'string' ? { key: value.key } : {}), boot: value.boot, named: 'named' in value && typeof value.named === 'number' ? value.named : 0,
      members: 'members' in value ? texts(value.members) : [], frozen: 'frozen' in value ? texts(value.frozen) : [],
      ...('node' in value && typeof value.node === 'string' ? { node: value.node } : {}), ...('gaveUp' in value && typeof value.gaveUp === 'string' ? { gaveUp: value.gaveUp } : {}),
    }
  } catch {
    return undefined // cut short, or not ours
  }
}

function readMembership(value: unknown): Membership | undefined {
  if (typeof value !== 'object' || value === null || !('epoch' in value) || typeof value.epoch !== 'number') return undefined
  return { epoch: value.epoch, agents: 'agents' in value ? texts(value.agents) : [], replicas: 'replicas' in value ? texts(value.replicas) : [] }
}

function texts(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.filter((item) => typeof item === 'string') : []
}
