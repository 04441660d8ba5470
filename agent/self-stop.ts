// The permit of this node, and what is done when nobody gives it one any more. core/self-stop.ts decides; here the words are gathered, the
// others are asked while the leader is silent, and the workloads are ended, again and again until somebody permits them: a kubelet that
// is cut off starts what it finds ended. Off unless the leader said otherwise in this boot.
//
// What cannot be stopped within its deadline is frozen, and is never thawed: by the time the runtime answers again its pod may run
// elsewhere. It is stopped then, which a frozen process does not survive.
import type { NodeBoot, PermitState, RevokedWord, SelfStopWord } from '../core/beat.ts'
import type { Exemptions } from '../core/gate.ts'
import { sameBoot, type Boot, type Ms } from '../core/model.ts'
import type { ContainerSeen } from '../core/mounts.ts'
import {
  clusterSays, mostPermit, permitSpan, wasRevoked, reasonToGiveUp, selfStop, standingAfter, standingSince, workloads, type MemberSays, type PermitHeard, type Standing,
} from '../core/self-stop.ts'
import { withDeadline } from '../edge/clock.ts'
import { askCluster } from './cold-start.ts'
import type { AgentHost } from './host.ts'
import { askMember } from './witness.ts'

export interface SelfStopKeeper {
  /** For the beat. */
  word(): PermitState
  /** Why this node starts nothing, as a sentence's end. */
  gaveUp(): string | undefined
  /** A leader's word on our permit, and how many replicas it names. */
  heard(word: Pick<PermitHeard, 'askedAt' | 'says'>, named: number): void
  /** A leader's. */
  told(word: SelfStopWord | RevokedWord): void
  /** What we say as a member of another node. */
  permits(of: NodeBoot): MemberSays
  stop(): void
}

export interface SelfStopOptions {
  readonly host: Pick<AgentHost, 'clock' | 'chance' | 'secret' | 'log' | 'disk' | 'whispers' | 'askApi' | 'containers' | 'stopContainer' | 'freezeContainer'>
  readonly boot: Boot
  exempt(): Exemptions
  /** What the replicas that are linked say of our permit, where that was asked for since then. */
  replicas(since: Ms): readonly MemberSays[]
}

const turnEvery: Ms = 1_000
/** Members are asked again so soon: at least once between the first question and the end of a permit. */
const askEvery: Ms = permitSpan / 4
/** Members, and after them the API server. */
const askWithin: Ms = 9_000
/** The API server, by a node that has given up: a whole cluster may have. */
const lastAskEvery: Ms = 120_000
/** What the runtime runs is looked at while all is well, for the day on which it does not answer. */
const listEvery: Ms = 30_000
const listWithin: Ms = 2_000
const stopWithin: Ms = 5_000
const memory = 'self-stop.json'

export function keepSelfStop({ host, boot, exempt, replicas }: SelfStopOptions): SelfStopKeeper {
  const { clock, log } = host
  const stopping = new AbortController()
  let asked: Asked | undefined
  let named = 0
  let revoked: readonly NodeBoot[] | undefined
  let standing: Standing = standingSince(clock.now())
  let latest: readonly ContainerSeen[] = []
  let listedAt = -Infinity
  let running = false
  let asking = false
  let askAt = -Infinity
  let answeredAt = -Infinity
  let askAgain = askEvery
  let frozen: readonly string[] = []
  let kept = ''
  let saved = recall()

  return {
    word: () => (asked === undefined ? 'off' : standing.gaveUp === undefined ? 'running' : 'gave up'),
    gaveUp: () => standing.gaveUp?.reason,
    heard(word, many) {
      named = many
      take({ from: 'leader', ...word })
    },
    told(word) {
      if (word.say === 'revoked') revoked = word.boots
      else want(word)
    },
    permits({ node, boot: of }) {
      if (revoked === undefined) return 'unknown'
      return revoked.some((one) => one.node === node && sameBoot(one.boot, of)) ? 'revoked' : 'permitted'
    },
    stop: () => stopping.abort(),
  }

  function want({ giveUp, node, members }: SelfStopWord): void {
    if (giveUp === 'never') {
      if (asked !== undefined) log.info({}, 'this node is not asked to give up any more')
      asked = undefined
      standing = standingSince(clock.now())
    } else asked = { node, members }
    remember()
    goOn()
  }

  function take(word: PermitHeard): void {
    const before = standing
    standing = standingAfter(standing, word)
    if (before.gaveUp === undefined || standing.gaveUp !== undefined) return
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
    if (must === 'run') askAgain = askEvery
    else void ask(of)
    if (must === 'give up' && (standing.gaveUp !== undefined || wasRevoked(standing) || wasAsked())) return stopAll()
    if (frozen.length > 0) await endFrozen()
    if (now - listedAt >= listEvery) await list()
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
    const left = (await Promise.all(doomed.map(async (one) => ((await end(one)) ? [] : [one.id])))).flat()
    keepFrozen([...frozen.filter((id) => !doomed.some((one) => one.id === id)), ...left])
  }

  /** Of what was frozen: a pod that has gone on meanwhile is not meant. */
  async function endFrozen(): Promise<void> {
    if (!await list()) return
    const left = await Promise.all(latest.filter(({ id }) => frozen.includes(id)).map(async (one) => ((await end(one)) ? [] : [one.id])))
    keepFrozen(left.flat())
  }

  /** Whether it is over; what is not is frozen. */
  async function end(one: ContainerSeen): Promise<boolean> {
    const facts = { container: one.name, id: one.id }
    const fault = await host.stopContainer(one, stopWithin).catch((error: unknown) => String(error))
    if (fault === undefined) {
      log.warn(facts, 'stopped: nobody permits this node to run it')
      return true
    }
    if (frozen.includes(one.id)) return false
    const cold = await host.freezeContainer(one).catch((error: unknown) => String(error))
    if (cold === undefined) log.error({ ...facts, reason: fault }, 'frozen: it could not be stopped')
    else log.error({ ...facts, reason: fault, cold }, 'neither stopped nor frozen: it runs on')
    return cold !== undefined
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

  async function membersPermit({ node, members }: Asked, askedAt: Ms): Promise<boolean> {
    const agents = await Promise.all(members.map((address) => askMember(host, address, { node, boot }, Buffer.from(host.secret(16)).toString('base64url'))))
    return mostPermit({ agents: agents.filter((says) => says !== undefined), replicas: replicas(askedAt - askEvery), named: members.length + named })
  }

  function keepFrozen(ids: readonly string[]): void {
    frozen = [...new Set(ids)]
    remember()
  }

  /** For an agent that is started again in this boot: it is asked for the same, and a node that gave up stays so. */
  function remember(): void {
    const text = JSON.stringify({ boot, ...asked, named, frozen, ...(standing.gaveUp === undefined ? {} : { gaveUp: standing.gaveUp.reason }) })
    if (text === kept) return
    kept = text
    saved = saved.then(() => host.disk.save(memory, text))
      .catch((error: unknown) => log.warn({ reason: String(error) }, 'what this node does without a permit could not be remembered on disk'))
  }

  async function recall(): Promise<void> {
    const last = readMemory(await host.disk.load(memory).catch(() => undefined)) // a disk that cannot be read remembers nothing
    if (last === undefined || last.boot !== boot) return
    frozen = [...last.frozen, ...frozen]
    goOn()
    const { node, members, gaveUp } = last
    // A leader has spoken meanwhile, and knows better.
    if (node === undefined || asked !== undefined) return remember()
    asked = { node, members }
    named = last.named
    if (gaveUp !== undefined) standing = { ...standing, gaveUp: { at: clock.now(), reason: gaveUp } }
    log.info({ members: members.length, gaveUp }, 'asked in this boot to give up without a permit')
  }
}

type Asked = Pick<SelfStopWord, 'node' | 'members'>

interface Memory {
  readonly boot: Boot
  readonly named: number
  readonly node?: string
  readonly members: readonly string[]
  readonly gaveUp?: string
  readonly frozen: readonly string[]
}

function readMemory(text: string | undefined): Memory | undefined {
  try {
    const value: unknown = JSON.parse(text ?? 'null')
    if (typeof value !== 'object' || value === null || !('boot' in value) || typeof value.boot !== 'string') return undefined
    return {
      boot: value.boot, named: 'named' in value && typeof value.named === 'number' ? value.named : 0,
      members: 'members' in value ? texts(value.members) : [], frozen: 'frozen' in value ? texts(value.frozen) : [],
      ...('node' in value && typeof value.node === 'string' ? { node: value.node } : {}), ...('gaveUp' in value && typeof value.gaveUp === 'string' ? { gaveUp: value.gaveUp } : {}),
    }
  } catch {
    return undefined // cut short, or not ours
  }
}

function texts(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.filter((item) => typeof item === 'string') : []
}
