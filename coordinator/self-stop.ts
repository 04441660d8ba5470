// What the nodes are told of self-stop: whether they are to give up when nobody permits them to run workloads, who stands in for a leader
// then, and, to those who stand in, which boots they must not permit. Every replica tells it, so that a new leader's word is there before
// it leads; the agents go by those that lead. A replica whose own view is stale says nothing new.
//
// A node whose watchdog is wanted is told of no members that do not stand on its record first, and that its watchdog may be disarmed only once it stands
// there as unarmed: whoever is to prove something by it later knows nothing else.
import type { NodeBoot, NodeKey } from '../core/beat.ts'
import { blind } from '../core/brake.ts'
import type { Incident } from '../core/incident.ts'
import { sameBoot, type BeatSeen, type Ms, type NodeName, type NodeSeen } from '../core/model.ts'
import { policyOf, type Policy } from '../core/policy.ts'
import { isRevoked, membersAmong, type Candidate } from '../core/self-stop.ts'
import { openOf } from '../core/survey.ts'
import type { Membership } from '../core/watchdog.ts'
import type { Log } from '../edge/log.ts'
import type { Beats } from './beats.ts'
import type { Recorder } from './events.ts'
import type { Observation } from './observe.ts'

export interface SelfStopTeller {
  now(policies: readonly Policy[]): void
}

export interface SelfStopOptions {
  readonly observation: Pick<Observation, 'seen' | 'row'>
  readonly beats: Pick<Beats, 'nodes' | 'heard' | 'agent' | 'permits' | 'say' | 'nonce'>
  readonly now: () => Ms
  readonly log: Log
  readonly recorder: Recorder
}

/** The reason of the Event on its Node, by which it is found for as long as the API server keeps Events. */
export const gaveUpReason = 'GaveUp'

/** Five thousand nodes are told in one go, and most of them were told the same before. */
const tellEvery: Ms = 1_000
/** Who comes and goes within this is not worth telling everybody. */
const membersEvery: Ms = 5_000
/** An agent silent for longer is nobody's member. */
const heardWithin: Ms = 10_000

export function selfStopTeller({ observation, beats, now, log, recorder }: SelfStopOptions): SelfStopTeller {
  /** Whom each node was told, so that they hear of it when its permit is revoked. */
  const told = new Map<NodeName, readonly NodeName[]>()
  const stopped = new Set<NodeName>()
  const keys = new Map<NodeName, string>()
  let members = membersAmong([])
  let replicas: readonly string[] = []
  let madeAt = -Infinity
  let toldAt = -Infinity
  let warned = ''

  return {
    now(policies) {
      const { seen } = observation
      if (blind(seen.self, now()) !== undefined) return
      const { open } = openOf(seen)
      for (const name of beats.nodes()) {
        const beat = beats.heard(name)
        const node = known(name)
        if (beat === undefined || node === undefined) continue
        beats.permits(name, beat.boot, isRevoked(beat.boot, open.get(name)) ? 'revoked' : 'permitted')
        mayDisarm(name, beat)
        if (beat.permit !== 'gave up' && beat.permit !== 'resumed') stopped.delete(name)
        else if (!stopped.has(name)) {
          stopped.add(name)
          gaveUp(node)
        }
      }
      if (told.size === 0 && [...open.values()].every(({ status }) => status.revoked === undefined) && policies.every(({ giveUp }) => giveUp === 'never')) return
      const revoked = [...open.values()].filter((incident) => isRevoked(incident.boot, incident)).map(({ nodeName, boot }): NodeBoot => ({ node: nodeName, boot }))
      const text = JSON.stringify(revoked)
      if (text === warned && now() - toldAt < tellEvery) return
      toldAt = now()
      warned = text
      if (now() - madeAt >= membersEvery) renew()
      const acting = seen.self.pause === undefined ? policies : []
      for (const name of beats.nodes()) {
        const node = known(name)
        if (node !== undefined) tell(node, acting)
      }
      warn(revoked, open)
    },
  }

  /** It tells so itself, and mostly afterwards: while it gave up nobody heard it. */
  function gaveUp({ name, uid }: NodeSeen): void {
    log.warn({ node: name }, 'the node has given up its workloads, for want of a permit')
    if (observation.seen.self.term === undefined) return
    recorder.say({
      regarding: { apiVersion: 'v1', kind: 'Node', name, uid }, reason: gaveUpReason, action: 'GiveUp', type: 'Warning',
      note: `${name} has stopped its workloads by itself: nobody permitted it to run them any more`,
    })
  }

  function mayDisarm(name: NodeName, { boot, watchdog }: BeatSeen): void {
    const row = observation.row(name)
    const kept = row?.record?.watchdog
    // A record that is being written may be of before it asked.
    if (watchdog?.disarm === undefined || kept === undefined || observation.seen.self.term === undefined || row?.busy.has(`record ${name}`) === true) return
    if (kept.state === 'unarmed' && sameBoot(kept.boot, boot)) beats.say(name, { say: 'disarm', boot, disarm: watchdog.disarm })
  }

  function known(name: NodeName): NodeSeen | undefined {
    const row = observation.row(name)
    return row?.gone === true ? undefined : row
  }

  function renew(): void {
    madeAt = now()
    for (const name of told.keys()) {
      if (observation.row(name) !== undefined) continue
      told.delete(name)
      keys.delete(name)
    }
    const candidates: Candidate[] = []
    for (const name of beats.nodes()) {
      const node = known(name)
      const beat = beats.heard(name)
      if (node === undefined || beat?.permit === undefined || now() - beat.at > heardWithin) continue
      if (beats.agent(name)?.whisperAddress !== undefined) candidates.push({ name, zone: node.zone })
    }
    members = membersAmong(candidates)
    replicas = [observation.seen.self.replica, ...observation.seen.self.replicas].toSorted()
  }

  function tell(node: NodeSeen, policies: readonly Policy[]): void {
    const chosen = policyOf(node, policies)
    const giveUp = 'policy' in chosen && chosen.policy.mode === 'enforce' && chosen.policy.pause === undefined ? chosen.policy.giveUp : 'never'
    if (giveUp === 'watchdog') return tellWithWatchdog(node)
    want(node.name, undefined)
    keys.delete(node.name)
    const named = giveUp === 'never' ? [] : members(node.name)
    told.set(node.name, named)
    beats.say(node.name, { say: 'self-stop', node: node.name, giveUp, members: named.flatMap((name) => beats.agent(name)?.whisperAddress ?? []) })
  }

  /** Of the members that are on record last; until there are any it gives up as it would without a watchdog. */
  function tellWithWatchdog({ name, record, beat }: NodeSeen): void {
    const wanted = members(name)
    want(name, { agents: wanted, replicas })
    const kept = record?.watchdog !== undefined && beat !== undefined && sameBoot(record.watchdog.boot, beat.boot) ? record.watchdog : undefined
    const membership = kept?.memberships.at(-1)
    const named = membership?.agents ?? wanted
    told.set(name, [...new Set([...named, ...kept?.memberships.flatMap(({ agents }) => agents) ?? []])])
    const giveUp = 'stop'
    const addresses = named.map((member) => beats.agent(member)?.whisperAddress ?? '')
    beats.say(name, membership === undefined ? { say: 'self-stop', node: name, giveUp, members: addresses.filter((address) => address !== '') }
      : { say: 'self-stop', node: name, giveUp, members: addresses, membership, key: keyOf(name) })
  }

  /** Of this replica alone: members keep those of the leaders before. */
  function keyOf(name: NodeName): string {
    const key = keys.get(name) ?? beats.nonce()
    keys.set(name, key)
    return key
  }

  /** For the leader's record of it. */
  function want(name: NodeName, membership: Omit<Membership, 'epoch'> | undefined): void {
    const row = observation.row(name)
    if (row !== undefined) row.members = membership
  }

  /** Every agent, also where nothing is revoked: one that was never told can permit nobody. */
  function warn(revoked: readonly NodeBoot[], open: ReadonlyMap<NodeName, Incident>): void {
    const lists = new Map<NodeName, NodeBoot[]>()
    for (const one of revoked) {
      // Whoever led before may have told it of others than we would.
      const recorded = open.get(one.node)?.status.revoked?.watchdog.memberships.flatMap(({ agents }) => agents) ?? []
      for (const member of new Set([...told.get(one.node) ?? [], ...recorded])) {
        const list = lists.get(member)
        if (list === undefined) lists.set(member, [one])
        else list.push(one)
      }
    }
    const given = new Map<NodeName, NodeKey[]>()
    for (const [node, key] of keys) {
      for (const member of told.get(node) ?? []) {
        const own = given.get(member)
        if (own === undefined) given.set(member, [{ node, key }])
        else own.push({ node, key })
      }
    }
    const { term } = observation.seen.self
    for (const name of beats.nodes()) {
      const own = given.get(name)
      if (own !== undefined) beats.say(name, { say: 'keys', keys: own })
      beats.say(name, { say: 'revoked', ...(term === undefined ? {} : { term }), boots: lists.get(name) ?? [] })
    }
  }
}
