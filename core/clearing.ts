// From the proof to the node cleared: taint, free, wait for the volumes, take out-of-service off while the node is still off.
// Each step follows from what is seen, and each stands on what the devices of the proving level say now: the moment one of
// them says anything but off, nothing more is freed.
import { spokenAfterWord, unasked, unread } from './acknowledge.ts'
import type { Action, Deed, HoldAction } from './action.ts'
import { loosened, noOrders, unlistable, type Brake } from './brake.ts'
import { freesNothing, safeDriversOf } from './choice.ts'
import { goesOutOfService, hasOurs, hasTaint, left, nothingLeft, outOfServiceKey, quarantineKey, type Left } from './clear.ts'
import { keptOff } from './hands.ts'
import { isPartial } from './incident.ts'
import { seconds, shutsDown } from './judge.ts'
import { askDevices, askNow, askPods, readLive } from './look.ts'
import { letIn } from './let-in.ts'
import type { Ms } from './model.ts'
import { borneOut, doubtOf, driversOf, freshFor, extentOf, partsOf, restsOnSilence, saidElsewhere, saysOn, speechless, stillOff, unconfigured, unheardElsewhere, type Proof } from './proof.ts'
import { sweepWithin } from './reading.ts'
import { gaveUpWithin } from './self-stop.ts'
import { hold, untaint, type Situation } from './situation.ts'

const podsEvery: Ms = 1_000
/** What is waited for may take minutes, in which somebody may switch the machine on: then out-of-service must go. */
const whileWaiting: Ms = 2_000
/** A batch that waits for fresh readings longer than this after the proof says so. */
const freshSoon: Ms = 30_000

export function clearing(at: Situation, proof: Proof, provenAt: Ms): Action[] {
  const { incident, node } = at
  if (freesNothing(incident.policy)) return [idle(at)]
  // What one of two that were joined does not bear out any more, the other may still: each frees what it is of, and nobody what takes both.
  const parts = partsOf(proof)
  const doubtful = parts.filter((part) => unconfigured(part, node) !== undefined || (doubtOf(part, incident, node, at.on.now) ?? uncalled(at, part) ?? letIn(at, part)) !== undefined)
  if (doubtful.length === 0 || doubtful.length === parts.length) return clearingBy(at, proof, provenAt)
  const sound = parts.filter((part) => !doubtful.includes(part))
  return [...sound, ...doubtful].flatMap((part) => clearingBy(at, part, provenAt))
}

function clearingBy(at: Situation, proof: Proof, provenAt: Ms): Action[] {
  const { on, incident, node } = at
  const lost = unconfigured(proof, node)
  if (lost !== undefined) {
    const detail = `${lost}, by which the node was proven ${isPartial(proof) ? 'isolated' : 'off'}, is not configured as it was then: nobody can tell whether it is off still`
    return [hold(node.name, { because: 'config-invalid', detail, lifts: 'that configuration, or the machine booting' }, incident)]
  }
  const doubt = doubtOf(proof, incident, node, on.now) ?? uncalled(at, proof)
  if (doubt !== undefined) return [...doubted(at, proof, doubt, provenAt), ...givenUp(at, proof, doubt, provenAt)]
  const permitted = mayRunOn(at, proof, provenAt)
  if (permitted !== undefined) return [...askDevices(node, on.now, whileWaiting), hold(node.name, permitted, incident)]
  if (unheardElsewhere(proof, node, on.seen.self)) return [...askDevices(node, on.now), ...late(at, proof, provenAt)]
  const outOfService = node.gone !== true && goesOutOfService(incident, proof)
  if ((node.gone !== true && !hasTaint(node, quarantineKey)) || (outOfService && !hasTaint(node, outOfServiceKey))) {
    // A leader that took over has read nothing itself yet, and its predecessor's word may be as old as the machine's next boot.
    if (!borneOut(proof, incident, node, on.now, sweepWithin)) return [...askBasis(at, proof), ...late(at, proof, provenAt)]
    return [{ do: 'taint', node: node.name, incident: incident.name, outOfService, proof }, ...askPods(node)]
  }
  const rest = left(incident, node, on.seen.self.podBudget, provenAt, on.now, extentOf(proof))
  if (rest === undefined) return [...askPods(node), ...unlisted(at, provenAt)]
  const strikes = !outOfService && rest.strike.length > 0
  const open = rest.batch.length + rest.release.length > 0 || strikes ? letIn(at, proof) : undefined
  if (open !== undefined) return [...askDevices(node, on.now, whileWaiting), hold(node.name, open, incident)]
  if (rest.batch.length > 0) {
    if (!borneOut(proof, incident, node, on.now)) return [...askBasis(at, proof), ...late(at, proof, provenAt)]
    return [{ do: 'delete', node: node.name, incident: incident.name, pods: rest.batch, proof }]
  }
  if (rest.release.length > 0 || strikes) {
    if (!borneOut(proof, incident, node, on.now)) return [...askBasis(at, proof), ...late(at, proof, provenAt)]
    return [{ do: 'detach', node: node.name, incident: incident.name, pods: rest.release, volumes: outOfService ? [] : rest.strike, proof }]
  }
  if (!isCleared(at, rest, provenAt)) {
    return [...secure(at, proof), ...askDevices(node, on.now, whileWaiting), ...askBasis(at, proof, whileWaiting), ...podsAgain(at), ...waitsFor(rest).map((brake) => hold(node.name, brake, incident))]
  }
  if (isPartial(proof)) return [...askBasis(at, proof, whileWaiting), ...podsAgain(at), partial(at, proof, rest)]
  if (incident.policy.nodeDownPodDeletionPolicy === 'DoNothing') return [idle(at)]
  return [cleared(at, rest, 'everything that was to be freed is free, and the node is still off'), ...secure(at, proof)]
}

/** What a driver is called is its operator's word, who may take it back: by the annotation, while the incident keeps its policy as it was. */
function uncalled({ on, incident }: Situation, proof: Proof): string | undefined {
  const called = safeDriversOf(incident.policy, on.seen.self.safeDrivers)
  const refusing = partsOf(proof).filter(({ kind }) => kind === 'safe-detach').flatMap(driversOf)
  const driver = refusing.find((name) => !called.includes(name))
  return driver && `nobody calls ${driver} safe to detach any more`
}

/** A device has been seen to call a machine off that was only cut off, and anybody could send a crash kernel's word; then its own permit is what ends it. Nobody permits it since the
 *  proof, and out-of-service does not stand yet. What was off by itself had nobody to deceive. */
function mayRunOn({ on, incident: { policy } }: Situation, proof: Proof, provenAt: Ms): Brake | undefined {
  if (!policy.waitForPermit || policy.giveUp === 'never' || !(proof.kind === 'off' || proof.kind === 'kdump') || on.now - provenAt >= gaveUpWithin) return undefined
  return { because: 'permit', detail: `proven (${proof.kind}) ${seconds(on.now - provenAt)} ago; if it runs on all the same, it gives up within ${seconds(gaveUpWithin)}`, lifts: 'the end of its permit' }
}

/** Nothing was ordered off, so nothing is to be given back. */
function idle({ incident, node }: Situation): HoldAction {
  return hold(node.name, { because: 'do-nothing', detail: 'proven, but nodeDownPodDeletionPolicy is DoNothing', lifts: 'the machine booting' }, incident)
}

function partial({ incident, node }: Situation, { kind, methods, joined }: Proof, { alone }: Left): HoldAction {
  const spared = alone.filter(({ pod }) => pod.exempt === undefined)
  const refused = 'what its drivers refuse to detach while it is in use'
  const free = kind === 'safe-detach' ? `free is ${refused}` : `free is what ${methods.join(', ')} put out of its reach${joined === undefined ? '' : `, and ${refused}`}`
  const detail = `${free}; nothing proves ${node.name} itself off${spared.length === 0 ? '' : `, and ${spared.length} pods stay: ${list(spared.map(({ pod, because }) => `${pod.namespace}/${pod.name} (${because})`))}`}`
  return hold(node.name, { because: 'partial', detail, lifts: 'a beat of its agent, or a proof that the machine is off' }, incident)
}

/** With out-of-service the clear ends, whether it was on the node or not. */
function cleared({ incident, node }: Situation, { alone, later }: Left, because: string): Deed {
  const spared = [...alone, ...later].filter(({ pod }) => pod.exempt === undefined)
  return { ...untaint(node, outOfServiceKey, because, incident, true), left: spared.map(({ pod: { namespace, name, uid }, because: reason }) => ({ namespace, name, uid, fate: 'left', reason })) }
}

/** What bears the proof out, at once: a batch waits for it. */
function askBasis(at: Situation, proof: Proof, every: Ms = 0): Action[] {
  // A leader that took over has asked none of the devices since the word, and one of them may say on.
  if (proof.joined !== undefined) return partsOf(proof).flatMap((part) => askBasis(at, part, every))
  const { on, node } = at
  if (proof.kind === 'vouched' || restsOnSilence(proof)) return [...readLive(node, on.now, every), ...(every > 0 ? [] : askDevices(node, on.now, whileWaiting))]
  if (every > 0) return []
  // Nothing waits for the other paths; but what was mute may answer by now, and say on.
  return [...askNow(node, proof.methods), ...askDevices(node, on.now, whileWaiting).filter((look) => look.do === 'askDevice' && !proof.methods.includes(look.method.name))]
}

/** What is waited for lasts seconds, and a list of a node's pods is no small question. */
function podsAgain({ on, node }: Situation): Action[] {
  return node.pods === undefined || on.now - node.pods.listedAt >= podsEvery ? askPods(node) : []
}

/** All that was to be freed is, or what is left was waited for long enough. */
function isCleared({ on, incident }: Situation, rest: Left, provenAt: Ms): boolean {
  const patient = on.now - provenAt < incident.policy.clearPatience
  return rest.batch.length === 0 && rest.waiting === 0 && rest.release.length === 0 && (nothingLeft(rest) || !patient)
}

/** Another path goes on saying on: whoever has switched the machine on has one that boots in its time, and else it was never off. Or its devices
 *  tell nothing any more, and perhaps never will; with nothing left to free nothing rests on their word. Or it rests on a silence that was broken, as a word does that was spoken against, and
 *  the node is dead by all evidence again: that is another silence, and whoever leads next would not know of the word between. The proof lapses, so
 *  that another level, or a person, can make the next. */
function givenUp(at: Situation, proof: Proof, doubt: string, provenAt: Ms): Action[] {
  const { on, incident, node } = at
  const elsewhere = proof.methods.length === 0 ? undefined : saidElsewhere(proof, incident, node)
  // Also with nothing left to free: what runs nobody else would end.
  if (elsewhere !== undefined && on.now - provenAt >= incident.policy.bootWithin) return [{ do: 'lapse', node: node.name, incident: incident.name, evidence: `${elsewhere}, and no boot is heard` }]
  const mute = speechless(proof, node, on.now)
  const silenced = restsOnSilence(proof) || (proof.kind === 'vouched' && spokenAfterWord(incident, node, on.now) !== undefined)
  const broken = silenced && on.verdicts.get(node.name)?.is === 'dead'
  if (broken && !isPartial(proof)) return [{ do: 'lapse', node: node.name, incident: incident.name, evidence: `${doubt}, and the node is dead by all evidence` }]
  if (mute === undefined && !broken) return []
  const rest = left(incident, node, on.seen.self.podBudget, provenAt, on.now, extentOf(proof))
  if (rest === undefined) return askPods(node)
  if (isCleared(at, rest, provenAt)) {
    if (isPartial(proof)) return [partial(at, proof, rest)]
    return incident.policy.nodeDownPodDeletionPolicy === 'DoNothing' ? [idle(at)] : [cleared(at, rest, 'everything that was to be freed is free')]
  }
  const by = isPartial(proof) ? 'volumes were put out of the node\'s reach' : 'the node was proven off'
  const because = mute === undefined ? `${doubt}, and the node is dead by all evidence` : `${mute}, by which ${by}, does not answer any more`
  return [{ do: 'lapse', node: node.name, incident: incident.name, evidence: `${because}, and pods or volumes are still to be freed` }]
}

/** Out-of-service is Kubernetes' leave to detach by force, also from a machine that somebody has just switched on. */
function doubted(at: Situation, proof: Proof, doubt: string, provenAt: Ms): Action[] {
  const { on, incident, node, status } = at
  const whole = status.proof?.joined === undefined || proof.joined !== undefined
  const elsewhere = saidElsewhere(proof, incident, node)
  const lifts = proof.kind === 'vouched' ? 'another acknowledgement' : restsOnSilence(proof) ? 'its silence, until it is dead by all evidence again' : elsewhere === undefined ? 'off again, twice, on every method'
    : `off read there too, as once a person has switched the machine off by it, ${seconds(Math.max(0, provenAt + incident.policy.bootWithin - on.now))} over, after which the proof lapses`
  return [
    ...(hasOurs(node, outOfServiceKey) && (proof.kind === 'vouched' || proof.kind === 'self-fenced' || proof.kind === 'kdump' || saysOn(proof, node) || elsewhere !== undefined) ? [untaint(node, outOfServiceKey, doubt, incident)] : []),
    ...askDevices(node, on.now), ...askBasis(at, proof, whileWaiting),
    hold(node.name, { because: 'proof-doubted', detail: `nothing more is freed${whole ? '' : ` by ${proof.kind}`}: ${doubt}`, lifts: `${lifts}, or a new boot` }, incident),
  ]
}

function unlisted({ on, incident, node }: Situation, provenAt: Ms): Action[] {
  const refused = unlistable(node)
  if (refused !== undefined) return [hold(node.name, refused, incident)]
  if (on.now - provenAt < freshSoon) return []
  return [hold(node.name, { because: 'blind', detail: `the pods of ${node.name} could not be listed since the proof`, lifts: 'an answer of the API server' }, incident)]
}

function late({ on, incident, node }: Situation, proof: Proof, provenAt: Ms): Action[] {
  if (on.now - provenAt < freshSoon) return []
  const unseen = proof.kind === 'vouched' ? unasked(incident, node, on.now, freshFor) : restsOnSilence(proof) ? unread(node, on.now, freshFor) : undefined
  const detail = proof.methods.length === 0 ? `before a batch everything must have been asked: ${unseen ?? 'not all together'}`
    : `before a batch every method must have been read off within a second, all together: ${proof.methods.join(', ')}${proof.joined === undefined ? '' : '; and its Node and its Lease been read'}`
  return [hold(node.name, { because: 'proof-doubted', detail, lifts: 'answers that come soon enough' }, incident)]
}

/** After found-off nothing but our order holds the machine off. It follows the batches, since a device that is being ordered
 *  cannot be read, and each batch needs a reading. A shutdown that was announced needs none. */
export function secure({ on, incident, node, status }: Situation, proof: Proof): Action[] {
  if (proof.kind !== 'found-off' || shutsDown(node)) return []
  if (keptOff(node) !== undefined) return []
  // What was read a while ago may have been switched on since, by somebody who stands before it.
  if (!stillOff(proof, node, on.now, sweepWithin)) return []
  const due = node.path.levels[proof.level]?.find((method) => method.ends !== true && !status.attempts.some((attempt) => attempt.method === method.name))
  if (due === undefined || node.busy.has(`order ${node.name} ${due.name}`) || status.attempts.some((attempt) => attempt.result === 'running')) return []
  if (noOrders(on.seen.nodes, node, loosened(incident, node, on.policies), on.storms, on.fencing, on.now, on.verdicts) !== undefined) return []
  on.fencing.add(node.name)
  return [{ do: 'fence', node: node.name, incident: incident.name, method: due, level: proof.level, round: status.round }]
}

function waitsFor(rest: Left): Brake[] {
  return [
    ...(rest.volumes.length === 0 ? [] : [{
      because: 'waiting-for-volumes', detail: `${rest.volumes.length} volumes are still attached: ${list(rest.volumes.map((volume) => volume.volume + (volume.error === undefined ? '' : ` (${volume.error})`)))}`,
      lifts: 'their VolumeAttachments gone',
    } as const]),
    ...(rest.later.length === 0 ? [] : [{
      because: 'not-due', detail: `not to be freed yet: ${list(rest.later.map(({ pod, because }) => `${pod.namespace}/${pod.name} (${because})`))}`,
      lifts: 'their eviction by Kubernetes, or the patience of the clear over',
    } as const]),
    ...(rest.kept.length === 0 ? [] : [{
      because: 'finalizer', detail: `kept by finalizers: ${list(rest.kept.map((pod) => `${pod.namespace}/${pod.name} (${pod.finalizers.join(', ')})`))}`,
      lifts: 'the owner of the finalizer',
    } as const]),
    ...(rest.returning.length === 0 ? [] : [{
      because: 'sent-back', detail: `tolerating the quarantine, sent back by the scheduler: ${list(rest.returning.map((pod) => `${pod.namespace}/${pod.name}`))}`,
      lifts: 'another toleration',
    } as const]),
    ...(rest.waiting === 0 ? [] : [{
      because: 'rate', detail: `${rest.waiting} pods wait for the rate of deletions`, lifts: 'the next pods that the rate allows',
    } as const]),
  ]
}

function list(names: readonly string[]): string {
  return names.slice(0, 3).join(', ') + (names.length > 3 ? ` and ${names.length - 3} more` : '')
}
