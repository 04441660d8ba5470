// Remedies: what is done about a node that runs, and is not well. The operator names a threshold (a vital that its agent tells, or a condition
// of its Node), for how long it must be crossed, and the remedy. A node ails by what is told of it now: what nobody tells any more, or tells
// from before a silence, is no ailment. For how long it has ailed the edge remembers, and a replica that starts begins anew.
//
// A remedy that fences opens an incident as a person would, and everything that brakes a person's fence brakes this one. Before that it has
// brakes of its own: one node at a time, none while many ail alike, and none again within `again`.
import type { Action } from './action.ts'
import { handsOff, type Brake } from './brake.ts'
import { foreignTaint, hasTaint, quarantineKey } from './clear.ts'
import { keptOff, othersHands } from './hands.ts'
import { given, isWish } from './incident.ts'
import { seconds, shutsDown } from './judge.ts'
import { beatsWithin } from './look.ts'
import { kubeletsBootKey, remediedKey, sameBoot, type Ms, type NodeSeen } from './model.ts'
import { incidentName } from './name.ts'
import { policyOf, selects, type Policy } from './policy.ts'
import { hold, latestBoot, type Situation } from './situation.ts'
import type { Survey } from './survey.ts'
import type { Strain } from './vitals.ts'

export interface Remedy {
  readonly name: string
  /** Empty selects every node. */
  readonly nodeLabels: Readonly<Record<string, string>>
  /** Any of them is enough. */
  readonly thresholds: readonly Threshold[]
  /** `tell`: nothing is done, and everybody is told. `fence`: the machine is switched off and on, its pods replaced as the policy has it. */
  readonly does: 'tell' | 'fence'
  /** A node that was fenced by it is not fenced by it again before that. */
  readonly again: Ms
}

export interface Threshold {
  readonly name: string
  /** One of the two. */
  readonly vital?: { readonly name: Strain; readonly above: number }
  /** A condition of the Node that is True. */
  readonly condition?: string
  /** For so long without a break. */
  readonly period: Ms
}

/** A beat may come late; what was told before a longer silence is not told any more. */
const toldWithin: Ms = 30_000

/** What the threshold is crossed by, as it is told now. Undefined: it is not crossed, or nobody tells. */
export function crossed({ vital, condition }: Threshold, { beat, conditions, gone }: NodeSeen, now: Ms): string | undefined {
  if (beat === undefined || now - beat.at >= toldWithin || gone === true) return undefined
  if (condition !== undefined) return conditions?.has(condition) === true ? `${condition} is True` : undefined
  const value = vital === undefined ? undefined : beat.vitals?.[vital.name]
  return vital === undefined || value === undefined || value <= vital.above ? undefined : `${vital.name} ${value}${units[vital.name]}, above ${vital.above}`
}

const units: Readonly<Record<Strain, string>> = { disk: ' %', inodes: ' %', memory: ' %', temperature: ' °C', load: ' a core' }

/** Since when each threshold is crossed in this boot. One that was rewritten is another one; and while we stood still it may not have been
 *  crossed. Undefined: none is. */
export function ailingSince(node: NodeSeen, remedies: readonly Remedy[], awakeSince: Ms, now: Ms): ReadonlyMap<string, Ms> | undefined {
  const { ailing, beat } = node
  const since = new Map<string, Ms>()
  for (const remedy of remedies) {
    if (!selects(remedy, node.labels)) continue
    for (const threshold of remedy.thresholds) {
      const key = keyOf(remedy, threshold)
      if (crossed(threshold, node, now) !== undefined) since.set(key, Math.max(ailing?.get(key) ?? now, awakeSince, beat?.since ?? now))
    }
  }
  return since.size === 0 ? undefined : since
}

function keyOf(remedy: Remedy, { name, vital, condition }: Threshold): string {
  return `${remedy.name} ${name} ${condition ?? `${vital?.name} ${vital?.above}`}`
}

interface Ailment {
  readonly node: NodeSeen
  readonly remedy: Remedy
  readonly threshold: Threshold
  readonly key: string
  readonly since: Ms
  /** What ails it, and for how long, with its numbers. */
  readonly says: string
}

export function seekRemedies(on: Survey): Action[] {
  if (on.ailing.length === 0) return []
  const due = ailments(on)
  const asked = new Set<string>()
  const actions: Action[] = []
  let first: NodeSeen | undefined
  for (const one of due) {
    const { node, remedy } = one
    // The longest of each kind speaks for its node.
    if (on.open.has(node.name) || asked.has(`${remedy.does} ${node.name}`)) continue
    asked.add(`${remedy.does} ${node.name}`)
    const action = remedy.does === 'tell' ? tell(one) : first === undefined ? fence(on, one) : waits(one, oneAtATime(first.name))
    if (action?.do === 'open') first = node
    if (action !== undefined) actions.push(action)
  }
  return actions
}

/** Of nodes that nobody suspects, and that have ailed for as long as the remedy says; the longest first. */
function ailments({ seen, ailing, verdicts, now }: Survey): readonly Ailment[] {
  return ailing.filter(({ name }) => !verdicts.has(name)).flatMap((node) => (seen.remedies ?? []).flatMap((remedy) => (selects(remedy, node.labels) ? remedy.thresholds : []).flatMap((threshold): Ailment[] => {
    const key = keyOf(remedy, threshold)
    const [since, says] = [node.ailing?.get(key), crossed(threshold, node, now)]
    return since === undefined || says === undefined || now - since < threshold.period ? [] : [{ node, remedy, threshold, key, since, says: `${says} for ${seconds(now - since)}` }]
  }))).toSorted((one, other) => one.since - other.since)
}

function tell({ node, remedy, says }: Ailment): Action {
  return hold(node.name, { because: 'ailing', detail: `${says}: NodeRemedy ${remedy.name} has it told, and nothing done`, lifts: 'that over' })
}

function waits({ node, remedy, says }: Ailment, brake: Brake): Action {
  return hold(node.name, { ...brake, detail: `${says}: NodeRemedy ${remedy.name} would have it fenced; ${brake.detail}` })
}

/** Undefined: nothing stands against it but that its latest beat is a little late, and what it would tell is waited for. */
function fence(on: Survey, one: Ailment): Action | undefined {
  const { node, remedy, says } = one
  const chosen = policyOf(node, on.policies)
  if (!('policy' in chosen)) return waits(one, { because: chosen.none, detail: 'no one policy is in force for it', lifts: 'a HoldfastPolicy that selects it before all others' })
  const brake = ownHands(on, node, chosen.policy) ?? underQuarantine(node) ?? on.storms.cluster ?? on.storms.zones.get(node.zone) ?? shared(on, one, chosen.policy) ?? tooSoon(on, one) ?? leftStanding(one) ?? another(on)
  if (brake !== undefined) return waits(one, brake)
  if (on.now - (node.beat?.at ?? -Infinity) >= beatsWithin) return undefined
  const boot = latestBoot(node)
  return { do: 'open', node: node.name, name: incidentName(on.seen, node, boot), boot, cause: 'remedy', policy: chosen.policy, evidence: [{ source: `NodeRemedy ${remedy.name}`, word: says, at: '' }] }
}

/** What keeps every hand of ours off it, or would leave it off for longer than it takes to boot. */
export function ownHands({ seen }: Survey, node: NodeSeen, policy: Policy): Brake | undefined {
  const off = handsOff(seen.self, policy) ?? othersHands(node) ?? keptOff(node) ?? foreignTaint(node)
  if (off !== undefined) return off
  if (policy.nodeDownPodDeletionPolicy === 'DoNothing') return { because: 'do-nothing', detail: 'nodeDownPodDeletionPolicy is DoNothing: no order is given', lifts: 'another nodeDownPodDeletionPolicy' }
  if (node.path.levels.length === 0) return { because: 'no-path', detail: 'it has no fence path', lifts: 'one' }
  return shutsDown(node) ? { because: 'waiting-for-boot', detail: 'it shuts down by itself', lifts: 'its next boot' } : undefined
}

function underQuarantine(node: NodeSeen): Brake | undefined {
  return hasTaint(node, quarantineKey) ? { because: 'waiting-for-clean', detail: 'it is under quarantine as it is', lifts: 'the end of that' } : undefined
}

/** A hot room, and a log that fills every disk, are not mended by switching machines off. Each agent tells at its own time, so those count that
 *  have only just crossed it. */
function shared({ seen, ailing }: Survey, { key }: Ailment, { brakes }: Policy): Brake | undefined {
  const alike = ailing.filter((node) => node.ailing?.has(key) === true).length
  const all = [...seen.nodes.values()].filter(({ gone }) => gone !== true).length
  if (alike < 2 || alike * 100 <= brakes.stormPercent * all) return undefined
  return { because: 'storm', detail: `${alike} of ${all} nodes ail alike, more than ${brakes.stormPercent} %: that is hardly the fault of each`, lifts: 'fewer of them' }
}

/** It ails again, so it was not helped. Pods that went in good order may have taken what ailed it with them, before anything was ordered: when
 *  they are back it ails again, and would be emptied again. */
function tooSoon({ seen, now }: Survey, { node, remedy: { again } }: Ailment): Brake | undefined {
  const begun = [...seen.incidents.values()].flatMap(({ name, nodeName, cause }) => (nodeName === node.name && cause === 'remedy' ? node.firstSeen.get(remediedKey(name)) ?? [] : []))
  const last = Math.max(...begun)
  if (begun.length === 0 || now - last >= again) return undefined
  return { because: 'repeat-limit', detail: `a remedy began on it ${seconds(now - last)} ago, and it did not help`, lifts: `another ${seconds(again - (now - last))} over, or a person` }
}

/** A condition stands until whoever sets it takes it back, and he may be gone. What was posted of another boot, its next one may have mended. */
function leftStanding({ node, threshold: { condition } }: Ailment): Brake | undefined {
  const said = condition === undefined ? undefined : node.conditions?.get(condition)
  if (said === undefined || (said.stood !== true && said.postedAt >= heardFrom(node))) return undefined
  return { because: 'ailing', detail: `nobody was seen to post it in this boot of ${node.name}`, lifts: 'whoever sets it posting it anew, or taking it back' }
}

/** Since when its present boot is heard: by its agent, or by its kubelet, which is there first. */
function heardFrom({ beat, bootId, firstSeen }: NodeSeen): Ms {
  const since = beat?.since ?? Infinity
  return beat !== undefined && sameBoot(bootId, beat.boot) ? Math.min(since, firstSeen.get(kubeletsBootKey) ?? since) : since
}

function another({ open }: Survey): Brake | undefined {
  const other = [...open.values()].find(({ cause }) => cause === 'remedy')
  return other === undefined ? undefined : oneAtATime(other.nodeName)
}

function oneAtATime(name: string): Brake {
  return { because: 'concurrency', detail: `${name} is fenced by a remedy, and one node at a time`, lifts: 'the end of that' }
}

/** A person wants it, or something else does and the node lives still: that it is heard speaks against neither. One that has fallen silent is judged as
 *  any other. */
export function isWanted({ on, incident, node }: Pick<Situation, 'on' | 'incident' | 'node'>): boolean {
  return incident.cause === 'by-hand' || (isWish(incident) && !on.verdicts.has(node.name))
}

/** Nothing was ordered yet, and no remedy would want it any more. */
export function isCured({ on, incident, node, heard, status }: Situation): boolean {
  const { remedies } = on.seen
  if (incident.cause !== 'remedy' || heard !== 'old boot' || given(status).length > 0 || remedies === undefined) return false
  return !remedies.some((remedy) => remedy.does === 'fence' && selects(remedy, node.labels) && remedy.thresholds.some((threshold) => crossed(threshold, node, on.now) !== undefined))
}
