// A person wants a node fenced that still answers, or a remedy does. Where the policy gives its pods time, they are asked to go in good order first, by the
// eviction API, which asks their disruption budgets; kubelet ends them, and their owners replace them elsewhere. It is a courtesy and
// no proof: it has an end, and it is for a node that answers alone. A dead node keeps no budget, since its pods are down whatever a
// budget says, and only their deletion lets their owners replace them.
import type { Action } from './action.ts'
import { choose } from './choice.ts'
import { hasTaint, isOver, quarantineKey } from './clear.ts'
import { given, isWish } from './incident.ts'
import { seconds } from './judge.ts'
import { askPods } from './look.ts'
import { evictedKey, type Ms, type NodeSeen, type PodSeen } from './model.ts'
import type { Policy } from './policy.ts'
import { hold, quarantine, type Situation } from './situation.ts'

const batchSize = 25
/** A pod whose budget said no is asked for again after this. */
const againAfter: Ms = 5_000
const podsEvery: Ms = 1_000

/** Before the first order. Undefined: nothing is asked for, or not any more. */
export function evictFirst(at: Situation): Action[] | undefined {
  const { incident: { name, policy, status }, node } = at
  // Kubernetes deletes every pod of a Node that is gone, and asks no budget.
  if (node.gone === true || !isWish(at.incident) || policy.evictWithin === 0 || status.eviction?.over !== undefined || given(status).length > 0) return undefined
  const began = status.eviction !== undefined
  const ends = (because: string): Action[] => [{ do: 'endEviction', node: node.name, incident: name, because }]
  if (at.on.verdicts.get(node.name)?.is === 'dead') return ends('the node does not answer: a budget cannot be kept by a dead node')
  const left = began ? policy.evictWithin - (at.on.now - (node.firstSeen.get(evictedKey(name)) ?? at.on.now)) : policy.evictWithin
  const pods = listed(at)
  const ask = (some: readonly PodSeen[]): Action[] => [{ do: 'evict', node: node.name, incident: name, pods: some }]
  if (left <= 0) return ends(`evictWithin (${seconds(policy.evictWithin)}) is over${pods === undefined ? '' : leftBehind(node, toGo(pods, policy, node, at.on.now))}`)
  // Whatever comes before the first of them may never succeed: the time goes on from here all the same.
  const begins = began ? [] : ask([])
  if (!answers(at)) return [...begins, unasked(at, `nothing is heard of ${node.name} just now`, `a beat, evidence that it is dead, or another ${seconds(left)} over`)]
  // Else the scheduler sends back what goes.
  if (!hasTaint(node, quarantineKey)) return [...begins, quarantine(at), unasked(at, 'its quarantine does not stand yet', `the quarantine, another ${seconds(left)} over, or spec.abort`)]
  if (pods === undefined) return [...begins, ...askPods(node), unasked(at, 'no fresh list of its pods was received', `a list of them, another ${seconds(left)} over, or spec.abort`)]
  const all = toGo(pods, policy, node, at.on.now)
  if (all.length === 0) return began ? ends('all of its pods that were to go have gone') : undefined
  const asked = all.filter((pod) => !pod.terminating && at.on.now - (node.evictions?.get(pod.uid)?.askedAt ?? -Infinity) >= againAfter)
  const batch = asked.slice(0, Math.min(batchSize, at.on.seen.self.podBudget))
  return [
    ...(batch.length === 0 ? [] : ask(batch)),
    ...(at.on.now - pods.listedAt < podsEvery ? [] : askPods(node)), ...waiting(at, all, left),
  ]
}

/** An agent that is ill says nothing; its node's kubelet may be well, and it is kubelet that ends pods. */
function answers({ on, node, heard }: Situation): boolean {
  return heard === 'old boot' || (on.verdicts.get(node.name)?.is === 'ill' && node.probe?.word === 'answered' && node.ready.status === 'True')
}

/** So long a list tells which pods are still there. */
const podsFreshFor: Ms = 5_000

function listed({ on, node }: Situation): NodeSeen['pods'] {
  return node.pods === undefined || on.now - node.pods.listedAt > podsFreshFor ? undefined : node.pods
}

/** What the policy would free once the node is dead. Who tolerates the quarantine would be back at once. */
function toGo({ items }: NonNullable<NodeSeen['pods']>, policy: Policy, node: NodeSeen, now: Ms): readonly PodSeen[] {
  return items.filter((pod) => !isOver(pod) && pod.tolerates !== true && choose(pod, { ...policy, onlyTerminating: false }, node, now).is === 'free')
}

function leftBehind(node: NodeSeen, pods: readonly PodSeen[]): string {
  return pods.length === 0 ? '' : `, and ${pods.length} pods are still there: ${list(pods.map((pod) => `${called(pod)}${reasonOf(node, pod)}`))}`
}

function reasonOf(node: NodeSeen, { uid, terminating }: PodSeen): string {
  const refused = node.evictions?.get(uid)?.refused
  return terminating || refused === undefined ? '' : ` (${refused.says})`
}

function unasked({ incident, node }: Situation, why: string, lifts: string): Action {
  return hold(node.name, { because: 'evicting', detail: `${why}, and no pod of ${node.name} is asked to go`, lifts }, incident)
}

function waiting(at: Situation, pods: readonly PodSeen[], left: Ms): Action[] {
  const { incident, node } = at
  const refused = pods.filter((pod) => !pod.terminating && node.evictions?.get(pod.uid)?.refused !== undefined)
  const byBudget = refused.filter((pod) => node.evictions?.get(pod.uid)?.refused?.by === 'budget')
  const going = pods.filter((pod) => !byBudget.includes(pod))
  return [
    ...(byBudget.length === 0 ? [] : [hold(node.name, {
      because: 'disruption-budget', detail: `${byBudget.length} pods may not go yet: ${list(byBudget.map((pod) => `${called(pod)}${reasonOf(node, pod)}`))}`,
      lifts: `more of them healthy elsewhere, another budget, ${seconds(left)} more over, the node falling silent, or spec.abort`,
    }, incident)]),
    ...(going.length === 0 ? [] : [hold(node.name, {
      because: 'evicting', detail: `${going.length} pods are going in good order before ${node.name} is ordered off: ${list(going.map((pod) => `${called(pod)}${reasonOf(node, pod)}`))}`,
      lifts: `their end, ${seconds(left)} more over, the node falling silent, or spec.abort`,
    }, incident)]),
  ]
}

const called = ({ namespace, name }: PodSeen): string => `${namespace}/${name}`

function list(names: readonly string[]): string {
  return names.slice(0, 3).join(', ') + (names.length > 3 ? ` and ${names.length - 3} more` : '')
}
