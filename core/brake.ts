// What keeps us from acting, each with its numbers and with what would lift it. Two kinds: *hands off* allows no deed at
// all but taking out-of-service off; *no orders* keeps devices untouched while facts go on clearing what they prove.
import { isDrill, isWish, type HoldReason, type Incident } from './incident.ts'
import { seconds, type Verdict } from './judge.ts'
import type { Ms, NodeName, NodeSeen, Self } from './model.ts'
import { policyOf, type Pause, type Policy } from './policy.ts'
import { isIdentified, unidentified } from './path.ts'

export interface Brake {
  readonly because: HoldReason
  readonly detail: string
  readonly lifts: string
}

/** Older than this, our own view of the cluster is no ground to act on. */
const viewHolds: Ms = 10_000
/** After a stall of our own the sockets are drained and every silence begins anew; until then we are blind. */
const wakingFor: Ms = 1_000

/** Our own view is stale: nothing is done, and nothing is asked either. */
export function blind(self: Self, now: Ms): Brake | undefined {
  if (now - self.awakeSince < wakingFor) {
    return { because: 'blind', detail: 'this replica stood still and has just woken', lifts: 'one second of undisturbed listening' }
  }
  if (now - self.apiAnsweredAt > viewHolds) {
    return { because: 'blind', detail: `the API server has not answered for ${seconds(now - self.apiAnsweredAt)}`, lifts: 'an answer of the API server' }
  }
  if (now - self.freshAt > viewHolds) {
    return { because: 'blind', detail: `a watch has not been known fresh for ${seconds(now - self.freshAt)}`, lifts: 'fresh watches' }
  }
  return undefined
}

/** The API server answers, and says no: that is lifted by whoever grants the right, and by no waiting. */
export function unlistable({ name, podsRefused }: NodeSeen): Brake | undefined {
  if (podsRefused === undefined) return undefined
  return { because: 'blind', detail: `the API server refuses to list the pods of ${name}: ${podsRefused}`, lifts: 'the right to list pods' }
}

/** The policy or a person says hands off. */
export function handsOff(self: Self, policy: Policy): Brake | undefined {
  if (self.pause !== undefined) return paused(self.pause, theirPause)
  if (policy.pause !== undefined) return paused(policy.pause, `spec.pause taken off policy ${policy.name}`)
  if (policy.mode === 'dryRun') {
    return { because: 'dry-run', detail: `policy ${policy.name} is a dry run`, lifts: 'mode: enforce' }
  }
  return undefined
}

export const theirPause = 'the ConfigMap holdfast-pause deleted'

export function paused({ by, reason, until }: Pause, lifts: string): Brake {
  return { because: 'pause', detail: `paused by ${by}${until === undefined ? '' : ` until ${until}`}: ${reason}`, lifts: until === undefined ? lifts : `that hour, or ${lifts}` }
}

/** Which zones, or the whole cluster, have fallen silent together. A fault that is common is rarely the nodes' own. */
export interface Storm {
  readonly cluster?: Brake
  readonly zones: ReadonlyMap<string, Brake>
}

/** A node that is silent, and unproven: proven off, or in a new boot, its silence is explained and it is not here. */
export interface Silent {
  readonly node: NodeSeen
  readonly since: Ms
}

export function storm(nodes: readonly NodeSeen[], silent: readonly Silent[], policies: readonly Policy[]): Storm {
  if (silent.length < 2) return { zones: new Map() }
  const cluster = common(silent, nodes.length, 'in all', policies)
  const zones = new Map<string, Brake>()
  for (const zone of new Set(silent.map((one) => one.node.zone))) {
    const size = nodes.filter((node) => node.zone === zone).length
    const brake = size < 3 ? undefined : common(silent.filter((one) => one.node.zone === zone), size, `in zone ${zone}`, policies)
    if (brake !== undefined) zones.set(zone, brake)
  }
  return cluster === undefined ? { zones } : { cluster, zones }
}

function common(silent: readonly Silent[], size: number, where: string, policies: readonly Policy[]): Brake | undefined {
  const percent = Math.min(...policies.map((policy) => policy.brakes.stormPercent), 100)
  const window = Math.max(...policies.map((policy) => policy.brakes.stormWindow), 0)
  const together = mostWithin(silent.map((one) => one.since).toSorted((one, other) => one - other), window)
  if (together < 2 || together * 100 <= percent * size) return undefined
  return {
    because: 'storm',
    detail: `${together} of ${size} nodes ${where} fell silent within ${seconds(window)}, more than ${percent} %`,
    lifts: 'fewer of them silent and unproven, or a greater brakes.stormPercent in every policy, by a person who knows that they are dead',
  }
}

function mostWithin(sorted: readonly Ms[], window: Ms): number {
  let most = 0
  let start = 0
  sorted.forEach((at, end) => {
    while (at - (sorted[start] ?? at) > window) start += 1
    most = Math.max(most, end - start + 1)
  })
  return most
}

/** An incident keeps the policy it began with; but who takes one of these off now means this one, too, or nothing would lift it. */
export function loosened(incident: Incident, node: NodeSeen, policies: readonly Policy[]): Incident {
  const now = policyOf(node, policies)
  if (!('policy' in now)) return incident
  const { skipIfStorageUnreachable, skipIfStorageHears, ...brakes } = incident.policy.brakes
  const { etcd, skipIfStorageUnreachable: unreachable, skipIfStorageHears: hears } = now.policy.brakes
  return { ...incident, policy: { ...incident.policy, brakes: {
    ...brakes, etcd: etcd === 'byLabel' ? brakes.etcd : etcd,
    ...(skipIfStorageUnreachable === undefined || unreachable === undefined ? {} : { skipIfStorageUnreachable }),
    ...(skipIfStorageHears === undefined || hears === undefined ? {} : { skipIfStorageHears }),
  } } }
}

/** What forbids an order to this node's devices now. `fencing` are the nodes that hold a slot, `verdicts` those of every node
 *  that is not plainly alive. `awaited`: another goes on by this node's own *off* alone, and the two count for one. */
export function noOrders(
  nodes: ReadonlyMap<NodeName, NodeSeen>, node: NodeSeen, incident: Incident, storms: Storm, fencing: ReadonlySet<NodeName>,
  now: Ms, verdicts: ReadonlyMap<NodeName, Verdict> = new Map(), awaited = (): boolean => false,
): Brake | undefined {
  return storms.cluster ?? storms.zones.get(node.zone) ?? storage(nodes, node, incident.policy) ?? heardByStorage(node, incident, now, verdicts) ?? concurrency(nodes.size, node, incident.policy, fencing, awaited)
    ?? controlPlane(nodes, node, incident.policy, fencing, verdicts) ?? distrusted(node, incident)
}

/** Where many cannot reach their storage it is the storage that is ill, and a machine that is switched off gains nothing by it. */
function storage(nodes: ReadonlyMap<NodeName, NodeSeen>, node: NodeSeen, { brakes }: Policy): Brake | undefined {
  const condition = brakes.skipIfStorageUnreachable
  if (condition === undefined) return undefined
  const lifts = `${condition} no more True, brakes.skipIfStorageUnreachable out of its policy, or spec.acknowledge by a person who knows that the machine is off`
  if (node.conditions?.has(condition) === true) return { because: 'storage', detail: `${node.name} said ${condition} when it fell silent`, lifts }
  if (node.beat?.storage === 'unreached') return { because: 'storage', detail: `${node.name} did not reach its storage when its agent fell silent`, lifts: 'a beat that it does, brakes.skipIfStorageUnreachable out of its policy, or spec.acknowledge by a person who knows that the machine is off' }
  const present = [...nodes.values()].filter(({ gone }) => gone !== true)
  const without = present.filter(({ conditions, beat }) => conditions?.has(condition) === true || beat?.storage === 'unreached')
  if (without.length * 100 <= brakes.stormPercent * present.length) return undefined
  return { because: 'storage', detail: `${without.length} of ${present.length} nodes say ${condition}, or their agents that they do not reach it, more than ${brakes.stormPercent} %`, lifts }
}

/** A word that is not said again is worth nothing after this: whoever says it may be dead itself. */
const storageWordHolds: Ms = 30_000

/** What the storage hears may run well, cut off from all who would hear it else. Of a person's fence that is no news, nor of another one that was opened
 *  of a node that runs, while it beats. */
function heardByStorage(node: NodeSeen, incident: Incident, now: Ms, verdicts: ReadonlyMap<NodeName, Verdict>): Brake | undefined {
  const { cause, policy: { brakes } } = incident
  const condition = brakes.skipIfStorageHears
  const said = condition === undefined ? undefined : node.conditions?.get(condition)
  if (said === undefined || cause === 'by-hand' || isDrill(incident) || (isWish(incident) && !verdicts.has(node.name)) || now - said.postedAt > storageWordHolds) return undefined
  return {
    because: 'storage', detail: `its storage still hears ${node.name}: ${condition} was posted ${seconds(now - said.postedAt)} ago`,
    lifts: `${condition} no more True, or not posted anew for ${seconds(storageWordHolds)}; brakes.skipIfStorageHears out of its policy; or spec.acknowledge by a person who knows that the machine is off`,
  }
}

function concurrency(size: number, node: NodeSeen, policy: Policy, fencing: ReadonlySet<NodeName>, awaited: () => boolean): Brake | undefined {
  if (fencing.has(node.name)) return undefined
  const limit = policy.brakes.concurrency > 0 ? policy.brakes.concurrency : size < 10 ? 1 : Math.min(5, Math.floor(size / 10))
  if (fencing.size < limit || awaited()) return undefined
  return {
    because: 'concurrency',
    detail: `${[...fencing].toSorted().join(', ')} ${fencing.size === 1 ? 'is' : 'are'} being fenced, ${limit} at once ${limit === 1 ? 'is' : 'are'} allowed`,
    lifts: 'the last volume of one of them freed, or its rest',
  }
}

/** By it k3s and RKE2 tell which nodes bear a member of etcd. */
const etcdLabel = 'node-role.kubernetes.io/etcd'
const bearsEtcd = ({ labels }: NodeSeen): boolean => labels[etcdLabel] !== undefined

/** One control-plane node at a time, and only while a majority of them stands without it, of those too that bear members of etcd. Ready
 *  outlives a node by most of a minute, so one that has fallen silent does not stand, whatever its status says. */
function controlPlane(
  nodes: ReadonlyMap<NodeName, NodeSeen>, node: NodeSeen, { brakes }: Policy, fencing: ReadonlySet<NodeName>, verdicts: ReadonlyMap<NodeName, Verdict>,
): Brake | undefined {
  if (!node.controlPlane && !bearsEtcd(node)) return undefined
  // Its own Node may be gone: the machine is one of them still.
  const present = [...nodes.values()].filter((other) => other.gone !== true || other.name === node.name)
  const [plane, members] = [present.filter((other) => other.controlPlane), present.filter(bearsEtcd)]
  if (brakes.etcd === 'byLabel' && members.length === 0) {
    return {
      because: 'control-plane', detail: `nothing tells where the members of etcd are: no node bears ${etcdLabel}, so ${node.name} may be one of a bare majority`,
      lifts: 'that label on the nodes that bear them, or in its policy brakes.etcd: stacked, where each control-plane node bears one, or external, where none does',
    }
  }
  const other = [...plane, ...members].find(({ name }) => name !== node.name && fencing.has(name))
  if (other !== undefined) return { because: 'control-plane', detail: `${other.name}, another control-plane node, is being fenced`, lifts: `${other.name} back` }
  return [{ who: 'control-plane nodes', all: plane }, { who: 'members of etcd', all: members }].filter(({ all }) => all.some(({ name }) => name === node.name))
    .map(({ who, all }) => majorityOf(who, all, node, verdicts)).find((brake) => brake !== undefined)
}

function majorityOf(who: string, all: readonly NodeSeen[], node: NodeSeen, verdicts: ReadonlyMap<NodeName, Verdict>): Brake | undefined {
  const standing = all.filter((other) => other.name !== node.name && other.ready.status === 'True' && !hasFallen(verdicts.get(other.name)))
  if (standing.length * 2 > all.length) return undefined
  return { because: 'control-plane', detail: `${standing.length} of ${all.length} ${who} would stand: no majority`, lifts: `a majority of Ready ${who} besides this one` }
}

function hasFallen(verdict: Verdict | undefined): boolean {
  return verdict?.is === 'suspect' || verdict?.is === 'dead'
}

/** Where the policy requires it, a level is used only if something proves that it is wired to this node; others may be. */
function distrusted(node: NodeSeen, incident: Incident): Brake | undefined {
  if (incident.policy.identity !== 'require') return undefined
  const firsts = node.path.levels.map((level) => level.find((method) => !isIdentified(node, method, incident.boot)))
  const unproven = firsts[0]
  if (unproven === undefined || firsts.includes(undefined)) return undefined
  return { because: 'identity-unproven', detail: unidentified(node, unproven), lifts: `an answer in which the device of ${unproven.name} tells this machine's UUID${node.twin === undefined ? '' : ', and no other node has it'}; or, once the node is well, a drill that passes` }
}
