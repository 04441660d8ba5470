// HoldfastPolicy: what the operator wants for a set of nodes. The schema below is the one source of what is read here and
// of the CRD; what the fields mean to the core stands in core/policy.ts.
import { validate } from 'node-cron'
import * as v from 'valibot'
import { defaultPolicy, profiles, type Brakes, type Drills, type Policy } from '../core/policy.ts'
import type { KubeObject } from './api.ts'
import { conditionAfter, conditions } from './schema-condition.ts'
import { showDuration } from './schema-duration.ts'
import { fit, shapeOf } from './schema-shape.ts'
import { duration, flag, instant, labels, list, prose, read, ruled, text, whole, word, type Fault, type Fields } from './schema.ts'
import { apiVersion, pathOf, type Kind } from './schema-kind.ts'

const { brakes, ...usual } = defaultPolicy

const tooShort = 'must be at least as long as the profile takes to call a node dead, or no storm is ever seen whole'
const unfed = 'needs giveUp: watchdog: a machine whose watchdog nobody arms is not reset by it'
/** A season. */
const provenFor = 90 * 24 * 3_600_000
const undrillable = 'needs another nodeDownPodDeletionPolicy: under DoNothing no device is ever ordered, and none drilled'
const contradicts = 'needs another nodeDownPodDeletionPolicy: under DoNothing no device is ever ordered'

const brakesSchema = v.pipe(
  v.object({
    stormPercent: v.exactOptional(whole('No device is ordered while more than this share of the nodes, and at least two, fell silent together.', 0, 100), brakes.stormPercent),
    stormWindow: v.exactOptional(duration('How close together silences must begin to count as one storm.', 1_000, 24 * 3_600_000), showDuration(brakes.stormWindow)),
    concurrency: v.exactOptional(whole('Nodes fenced at once. 0 means by size: one below ten nodes, then a tenth, at most five.', 0, 100), brakes.concurrency),
    repeatLimit: v.exactOptional(whole('A node that was fenced so often within repeatWindow is cleared, and not switched on again before that time is over. 0 means never.', 0, 100), brakes.repeatLimit),
    repeatWindow: v.exactOptional(duration('The time in which repeatLimit counts.', 60_000, 7 * 24 * 3_600_000), showDuration(brakes.repeatWindow)),
    etcd: v.exactOptional(word('Where the members of etcd are, of which a majority must stand while a control-plane node is off.', {
      byLabel: 'on the nodes with the label node-role.kubernetes.io/etcd; where no node has it, which is so with an etcd outside too, no control-plane node is ordered off',
      stacked: 'one on each control-plane node',
      external: 'on machines that are no nodes of this cluster: no order of ours ends one, and of the control plane alone a majority must stand',
    }), brakes.etcd),
    skipIfStorageUnreachable: v.exactOptional(text('A condition by which Nodes say that they cannot reach their storage, as a node problem detector can be taught to set it. While it is True of a node, or of more than stormPercent of all, no device of the node is ordered off. What an agent says of the storage that it was set to probe counts as much. Absent: neither is asked for.', 316)),
    skipIfStorageHears: v.exactOptional(text([
      'A condition by which the storage, or whoever watches it, says of a Node that it still hears it, as long as it posts it anew every ten seconds or so.',
      'While it is True of a silent node, and posted within the last half minute, no device of the node is ordered off: what runs there may be well, and only its network cut.',
      'A fence by a person goes on. Absent: it is not asked for.',
    ].join(' '), 316)),
  } satisfies Fields<Brakes>),
  v.description('Limits that keep devices untouched while a fault looks common.'),
)

/** `*`, each nth, or numbers and spans of them: what cron has beyond that (names of months, seconds) nobody needs here. */
const cronField = (one: string): string => `(\\*(/[1-9][0-9]?)?|${one}(-${one})?(,${one}(-${one})?)*)`
const weekday = '([0-7]|sun|mon|tue|wed|thu|fri|sat)'
const cronTime = new RegExp(`^${['[1-5]?[0-9]', '(1?[0-9]|2[0-3])', '([1-9]|[12][0-9]|3[01])', '([1-9]|1[0-2])', weekday].map(cronField).join(' ')}$`)

const drillsSchema = v.pipe(
  v.object({
    schedule: v.pipe(
      text('When, as cron has it: five fields, in UTC where the coordinator has no other time zone. Each time at most one node is drilled.', 100),
      v.regex(cronTime, 'must be five fields as cron has them, such as 0 3 * * 6'), v.check(validate, 'never comes'),
    ),
    again: v.exactOptional(duration('How long what a drill has proven is taken for proven here: a node whose every path is proven since then is not drilled. A path whose device tells the machine\'s own UUID is proven all the time.', 3_600_000, 10 * 365 * 24 * 3_600_000), showDuration(provenFor)),
  } satisfies Fields<Drills>),
  v.description([
    'Nodes that have nothing to do are switched off and on while everybody listens, to see that their fence paths lead to them: one that is cordoned and drained already, well, and not of the control plane.',
    'Nothing is drilled while an incident is open or a node is silent. Absent: nothing is, but by a person.',
  ].join(' ')),
)

/** What a person writes; also what a NodeFence keeps by value. */
export const policyFields = {
  priority: v.exactOptional(whole('Of several policies that select a node the highest priority is in force. Two of the same highest priority are no policy at all.', -1_000, 1_000), usual.priority),
  selector: v.exactOptional(v.pipe(
    v.object({ matchLabels: v.exactOptional(labels('Labels that a node must bear, all of them.', 50), usual.nodeLabels) }),
    v.description('The nodes that this policy is for. Empty selects every node.'),
  ), {}),
  mode: v.exactOptional(word('Whether anything is done.', {
    enforce: 'what is decided is done', dryRun: 'every write that would be made is shown, none is made',
  }), usual.mode),
  profile: v.exactOptional(word('How long a node may be silent.', {
    fast: 'suspect after 1.5 s, dead after 3 s: for audited power fencing and quiet networks',
    balanced: 'suspect after 3 s, dead after 8 s',
    conservative: 'suspect after 10 s, dead after 45 s and only once Ready was lost: where needless fencing costs most',
  }), usual.profile),
  nodeDownPodDeletionPolicy: v.exactOptional(word('What becomes of the pods of a node that is proven unable to write.', {
    DoNothing: 'no device is ordered and no pod is deleted',
    DeleteStatefulSetPod: 'the node is fenced, and pods of StatefulSets on it are deleted',
    DeleteDeploymentPod: 'the node is fenced, and pods of ReplicaSets on it are deleted, which is what Deployments have',
    DeleteBothStatefulsetAndDeploymentPod: 'the node is fenced, and pods of both on it are deleted, and no others',
    DeleteAllPods: 'the node is fenced, and every pod on it is deleted that is not bound to it, whatever owns it',
  }), usual.nodeDownPodDeletionPolicy),
  onlyTerminating: v.exactOptional(flag('Delete only pods that Kubernetes itself has begun to evict, once their grace is over: six minutes after the death by default, instead of seconds.'), usual.onlyTerminating),
  provisioners: v.exactOptional(list('Delete only pods with a volume of one of these CSI drivers or provisioners. Empty: whatever their volumes.', text('A driver\'s or provisioner\'s name.', 253), 32), [...usual.provisioners]),
  volumeAttachmentRecovery: v.exactOptional(word('When the volumes of a ReplicaSet pod that is terminating, and is itself left alone, are released for the pod that replaced it.', {
    never: '', wait: 'once its grace is over', immediate: 'at once',
  }), usual.volumeAttachmentRecovery),
  safeDetach: v.exactOptional(list('CSI drivers that refuse to detach a volume which is in use, and to attach it to another node meanwhile (Kubernetes asks them to, once a detach has failed), beside those whose CSIDriver is annotated with holdfast.dev/safe-detach. Of a node that is dead by all evidence, and that nothing proves off, the pods are freed all of whose volumes are of such a driver.', text('A driver\'s name.', 253), 32), [...usual.safeDetach]),
  release: v.exactOptional(word('How volumes are released where every pod is freed. Where some are spared it is always selective.', {
    outOfService: 'by the taint node.kubernetes.io/out-of-service', selective: 'one by one, without it: where another system reacts badly to that taint',
  }), usual.release),
  hungAfter: v.exactOptional(duration('How long a machine may answer at its kubelet port with nothing on it working (no beat, no word on that port, a Lease that stands still, Ready lost) before it is fenced like a dead one. 0s means never.', 0), showDuration(usual.hungAfter)),
  evictWithin: v.exactOptional(duration([
    'How long the pods of a node that a person wants fenced, and that still answers, are given to go in good order before it is ordered off.',
    'They are evicted by the eviction API, which asks their disruption budgets; one that says no is waited for within this time. Only the pods that would be freed of a dead node.',
    'A node that is silent is not waited for: its pods are down whatever a budget says. 0s means no time: it is ordered off at once.',
  ].join(' '), 0, 24 * 3_600_000), showDuration(usual.evictWithin)),
  retries: v.exactOptional(whole('Orders to one method before the next level is tried.', 1, 20), usual.retries),
  powerAfter: v.exactOptional(duration('Once a machine was cut off by the step isolation, so long its power is left on: it may come back by itself. Where it could not be cut off, or has no such step, nothing is waited for.', 0), showDuration(usual.powerAfter)),
  restAfter: v.exactOptional(duration('After a round in which no level could be proven, the wait before the next round.', 1_000), showDuration(usual.restAfter)),
  restarts: v.exactOptional(whole('Rounds after the first one. After the last an incident that nothing has proven is in phase Error, and orders no device off any more; a larger number here lets it go on. Absent: as many as it takes.', 0, 10_000)),
  bootWithin: v.exactOptional(duration('A node that was switched on and shows no new boot within this span is switched on again.', 1_000), showDuration(usual.bootWithin)),
  returnPatience: v.exactOptional(duration('How long a node that is back, under quarantine and heard, may take to become clean. What becomes of it then is for afterPatience to say.', 1_000), showDuration(usual.returnPatience)),
  afterPatience: v.exactOptional(word([
    'What becomes of a node that runs and did not become clean within returnPatience.', 'One that was taken for off, and was heard after that, is fenced by its next level in any case: what it still runs runs elsewhere too.',
  ].join(' '), {
    wait: 'it waits under its quarantine, and says for what', fence: 'it is fenced, once: switched off, and on again, with what runs on it; its next boot holds nothing of what is left over on this one',
  }), usual.afterPatience),
  cleanUp: v.exactOptional(word('What becomes of what is left over of pods that do not belong on a node that is back under quarantine.', {
    never: 'its agent names it, and kubelet or a person ends it', agent: 'its agent ends it too: containers by the runtime, then mounts, staging mounts, empty staging folders and loop devices; never a lazy unmount',
  }), usual.cleanUp),
  clearPatience: v.exactOptional(duration('How long a volume may take to be released before the node is powered on without it.', 1_000), showDuration(usual.clearPatience)),
  powerOnFoundOff: v.exactOptional(flag([
    'Switch on also what we did not switch off.',
    'A machine that was found off is ordered off as well once its pods are freed, so that it stays so, and that order makes it ours to switch on, whatever stands here.',
    'This counts only while no such order was given, because a brake keeps it back: true switches it on all the same,',
    'false leaves it off, as there may be hands in the machine. One that announced its shutdown is never switched on.',
  ].join(' ')), usual.powerOnFoundOff),
  identity: v.exactOptional(word('What to do about a fence path of which nothing proves that it is wired to this node.', {
    warn: 'use it, with a standing warning', require: 'refuse it',
  }), usual.identity),
  cloudCredentials: v.exactOptional(v.pipe(
    text([
      'A Secret beside the coordinator, labelled holdfast.dev/fence-secret, with what the program of a cloud needs to switch the instance that a Node names in spec.providerID: its keys are that program\'s parameters.',
      'Only for the built-in methods; what stands in a ConfigMap says secret:NAME/KEY. Absent: what the cloud itself gives to the coordinator\'s pod.',
    ].join(' '), 253),
    v.regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/, 'must be the name of a Secret'),
  )),
  cloudShutdown: v.exactOptional(word('What the taint node.cloudprovider.kubernetes.io/shutdown is worth.', {
    ignore: 'nothing', trust: 'as much as holdfast.dev/force-eviction, where a device of the node says off too',
  }), usual.cloudShutdown),
  giveUp: v.exactOptional(word([
    'What a node does by itself when for twenty seconds nobody permits it to run workloads: no coordinator that leads, not the API server, not most of the peers and replicas named to it.',
    'It is the second line behind a device that calls a machine off which is only cut off, and no proof.',
  ].join(' '), {
    never: 'nothing', stop: 'it shuts its gate, stops its workloads by the container runtime and freezes what will not stop; static pods, pods annotated holdfast.dev/tolerate-gate and exempt namespaces go on',
    watchdog: 'the same, and it feeds the watchdog of its machine no more, which was armed for that: the machine resets',
  }), usual.giveUp),
  selfFenced: v.exactOptional(word([
    'Whether a node of which no device can tell counts as ended once its own watchdog must have reset it: its permit is taken back, most of its members have said that they permit it no more, and time enough has gone by for any watchdog of its kind.',
    'By accept you say that no machine of these nodes can be made to stand still from outside, with its watchdog, and go on later, and that each watchdog was seen to reset its machine. A machine that says it is virtual is refused all the same.',
  ].join(' '), {
    refuse: 'it does not', accept: 'it does; giveUp must be watchdog',
  }), usual.selfFenced),
  kdump: v.exactOptional(word([
    'Whether a node counts as ended once its crash kernel was heard (fence_kdump_send, UDP): it fell silent, its audited kubelet port did not even refuse for a while, then the word came from its address, and Ready, Lease and every other source stayed silent. Its configuration must say kdump=.',
    'The word is eight bytes that nobody signs. By accept you say that nobody but a node\'s own machine can send from its address to the coordinators.',
  ].join(' '), {
    refuse: 'it does not: its power waits for the dump, and its pods for its power', accept: 'it does: its pods are freed while it dumps',
  }), usual.kdump),
  waitForPermit: v.exactOptional(flag('Where nodes give up: free nothing of a node that was ordered off, or whose crash kernel was heard, before its last permit has run out and it had time to stop what it runs, half a minute after the proof. For devices that have been seen to call a machine off that runs on. A machine that was found off is not waited for.'), usual.waitForPermit),
  brakes: v.exactOptional(brakesSchema, {}),
  drills: v.exactOptional(drillsSchema),
  pause: v.exactOptional(v.pipe(
    v.object({
      reason: text('Why.', 1_024),
      by: text('Who asked for it.', 253),
      until: v.exactOptional(instant('When it ends by itself. Left out: once a person takes it off.')),
    }),
    v.description('While this stands nothing is done for the nodes of this policy, but taking the out-of-service taint off.'),
  )),
} satisfies Fields<Omit<Policy, 'name' | 'nodeLabels'>, 'selector'>

const deadAfter = Object.entries(profiles).reduce((rest, [name, profile]) =>
  `self.profile == '${name}' ? '${showDuration(profile.deadAfter)}' : ${rest}`, `'${showDuration(0)}'`)

const policyRules = ruled(
  { rule: `self.nodeDownPodDeletionPolicy != 'DoNothing' || !self.powerOnFoundOff`, message: contradicts, fieldPath: '.powerOnFoundOff' },
  { rule: `self.nodeDownPodDeletionPolicy != 'DoNothing' || !has(self.drills)`, message: undrillable, fieldPath: '.drills' },
  { rule: `self.selfFenced != 'accept' || self.giveUp == 'watchdog'`, message: unfed, fieldPath: '.selfFenced' },
  { rule: `duration(self.brakes.stormWindow) >= duration(${deadAfter})`, message: tooShort, fieldPath: '.brakes.stormWindow' },
)

/** The same rules, for files and tests, which no API server has seen. Each looks only at fields that are well formed,
 *  so that one fault does not hide another. */
const spec = v.pipe(
  v.object(policyFields),
  v.forward(v.partialCheck(
    [['nodeDownPodDeletionPolicy'], ['powerOnFoundOff']], (some) => some.nodeDownPodDeletionPolicy !== 'DoNothing' || !some.powerOnFoundOff, contradicts,
  ), ['powerOnFoundOff']),
  v.forward(v.partialCheck([['nodeDownPodDeletionPolicy'], ['drills']], (some) => some.nodeDownPodDeletionPolicy !== 'DoNothing' || some.drills === undefined, undrillable), ['drills']),
  v.forward(v.partialCheck([['selfFenced'], ['giveUp']], (some) => some.selfFenced !== 'accept' || some.giveUp === 'watchdog', unfed), ['selfFenced']),
  v.forward(v.partialCheck(
    // An optional object's field has no type here; by now it is a number, or was a fault of its own.
    [['profile'], ['brakes', 'stormWindow']], (some) => Number(some.brakes.stormWindow) >= profiles[some.profile].deadAfter, tooShort,
  ), ['brakes', 'stormWindow']),
  v.description('What is wanted for a set of nodes. A node that no policy selects is only watched.'),
  v.metadata(policyRules),
)

const status = v.pipe(
  v.object({
    inForce: v.exactOptional(v.pipe(v.object(policyFields), v.description('The latest spec without a fault. It is what counts while the present one has faults, across restarts too.'))),
    faults: v.exactOptional(list('What is wrong with the present spec, every fault at once.', v.pipe(
      v.object({ path: prose('Which field.', 512), says: prose('What is wrong with it.') }),
      v.description('One fault.'),
    ), 100), []),
    conditions: v.exactOptional(conditions('Accepted: whether the present spec is in force.'), []),
  }),
  v.description('What we make of the spec.'),
)

export const holdfastPolicy: Kind = {
  kind: 'HoldfastPolicy', plural: 'holdfastpolicies', singular: 'holdfastpolicy', shortNames: ['hp'],
  says: 'HoldfastPolicy says what shall be done when a node of a set of nodes dies: how sure to be, what to free, and what to keep hands off.',
  spec, status,
  columns: [
    { name: 'Profile', path: '.spec.profile', says: 'How long a node may be silent.' },
    { name: 'Mode', path: '.spec.mode', says: 'enforce or dryRun.' },
    { name: 'Pods', path: '.spec.nodeDownPodDeletionPolicy', says: 'What becomes of the pods of a dead node.' },
    { name: 'Priority', path: '.spec.priority', type: 'integer', says: 'The highest priority is in force.' },
    { name: 'In-Force', path: '.status.conditions[?(@.type=="Accepted")].status', says: 'Whether the present spec is in force.' },
    { name: 'Paused-By', path: '.spec.pause.by', says: 'Who asked for a pause.', wide: true },
    { name: 'Age', path: '.metadata.creationTimestamp', type: 'date', says: 'When it was made.' },
  ],
}

export const policiesPath = pathOf(holdfastPolicy)

interface PolicyObject extends KubeObject {
  spec?: unknown
  status?: unknown
}

export function readPolicy(object: KubeObject): { ok: true; policy: Policy } | { ok: false; faults: readonly Fault[] } {
  const { metadata, spec: wanted } = object as PolicyObject // both are unknown until read
  const got = read(spec, wanted, 'spec')
  return got.ok ? { ok: true, policy: policyOfSpec(metadata.name, got.value) } : got
}

/** The last good version that an earlier leader wrote down. Undefined: there is none, or none that is still readable. */
export function policyInForce(object: KubeObject): Policy | undefined {
  const kept = statusOf(object)
  return kept?.inForce === undefined ? undefined : policyOfSpec(object.metadata.name, kept.inForce)
}

function statusOf(object: KubeObject): v.InferOutput<typeof status> | undefined {
  const { status: kept } = object as PolicyObject // unknown until read
  const got = read(status, kept ?? {}, 'status')
  return got.ok ? got.value : undefined
}

export function policyOfSpec(name: string, { selector, ...rest }: v.InferOutput<typeof spec>): Policy {
  return { ...filled(rest), name, nodeLabels: selector?.matchLabels ?? {} }
}

/** Every field with a default is there once parsed; valibot's type of an optional field does not say so. */
function filled(some: Omit<v.InferOutput<typeof spec>, 'selector'>): Omit<Policy, 'name' | 'nodeLabels'> {
  return { ...usual, ...some, brakes: { ...brakes, ...some.brakes } }
}

/** As a person would write it, every field named: a policy kept by value must not change its meaning with our defaults. */
export function specOfPolicy(policy: Policy): v.InferInput<typeof spec> {
  const { priority, nodeLabels, mode, profile, nodeDownPodDeletionPolicy, onlyTerminating, provisioners, volumeAttachmentRecovery, safeDetach, release, hungAfter, evictWithin, retries, powerOnFoundOff, identity, cloudShutdown, giveUp, selfFenced, kdump, waitForPermit, cleanUp, afterPatience, brakes: limits, cloudCredentials, drills, pause } = policy
  return {
    priority, selector: { matchLabels: { ...nodeLabels } }, mode, profile, nodeDownPodDeletionPolicy, onlyTerminating, provisioners: [...provisioners], volumeAttachmentRecovery, safeDetach: [...safeDetach], release, hungAfter: showDuration(hungAfter), evictWithin: showDuration(evictWithin), retries,
    powerAfter: showDuration(policy.powerAfter), restAfter: showDuration(policy.restAfter), ...(policy.restarts === undefined ? {} : { restarts: policy.restarts }), bootWithin: showDuration(policy.bootWithin),
    returnPatience: showDuration(policy.returnPatience), afterPatience, clearPatience: showDuration(policy.clearPatience),
    powerOnFoundOff, identity, cloudShutdown, giveUp, selfFenced, kdump, waitForPermit, cleanUp, brakes: { ...limits, stormWindow: showDuration(limits.stormWindow), repeatWindow: showDuration(limits.repeatWindow) },
    ...(cloudCredentials === undefined ? {} : { cloudCredentials }),
    ...(drills === undefined ? {} : { drills: { ...drills, again: showDuration(drills.again) } }),
    ...(pause === undefined ? {} : { pause: { ...pause } }),
  }
}

export interface PolicyStatus {
  /** The last good version. Undefined: there never was one. */
  readonly inForce: Policy | undefined
  /** Of the present version. */
  readonly faults: readonly Fault[]
  /** Wall time, RFC 3339. */
  readonly at: string
}

/** The whole body of a PUT to …/status of the object as it was read. */
export function policyStatusBody(object: KubeObject, { inForce, faults, at }: PolicyStatus): unknown {
  const { name, uid, resourceVersion, generation } = object.metadata
  const accepted = conditionAfter(statusOf(object)?.conditions ?? [], {
    type: 'Accepted', status: faults.length === 0 ? 'True' : 'False',
    reason: faults.length === 0 ? 'InForce' : inForce === undefined ? 'Faulty' : 'LastGoodInForce',
    message: faults.length === 0 ? 'The present spec is in force.'
      : `${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}: ${inForce === undefined ? 'no policy is in force' : 'the last good version stays in force'}.`,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  }, at)
  const next: v.InferInput<typeof status> = {
    ...(inForce === undefined ? {} : { inForce: specOfPolicy(inForce) }), faults: [...faults], conditions: [accepted],
  }
  return { apiVersion, kind: holdfastPolicy.kind, metadata: { name, uid, resourceVersion }, status: fit(shapeOf(status, 'status'), next) }
}
