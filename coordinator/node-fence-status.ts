// The status of a NodeFence: its fields, and how it is kept within limits. What is left out when a list is full is chosen so
// that no decision changes: core/plan.ts and core/clear.ts read these lists.
import * as v from 'valibot'
import {
  given, sweptUnproven, type Attempt, type DrillSeen, type DumpHeard, type Eviction, type Evidence, type Hold, type HoldReason, type IdentitySeen, type IncidentStatus, type Moment, type OffAtFirst, type Outcome, type PodFate, type ProofKind, type ProofRecord, type Revocation, type Taken,
  type VolumeFate, type Voided,
} from '../core/incident.ts'
import { policyFields } from './holdfast-policy.ts'
import { bootText, watchdogField } from './node-record.ts'
import { conditions, type Condition } from './schema-condition.ts'
import { isObject, pruned, shapeOf } from './schema-shape.ts'
import { duration, flag, instant, list, prose, ruled, text, whole, word, type Fields } from './schema.ts'

const phases: Record<IncidentStatus['phase'], string> = {
  New: 'opened', Running: 'orders, readings and the clear', Done: 'the need is over, what was cut is given back', Final: 'ended', Error: 'every restart was used up: nothing more is ordered off until a person helps, or the node is heard',
}
const steps: Record<IncidentStatus['step'], string> = {
  none: 'nothing was ordered yet', isolation: 'cut off', 'power-management': 'switched off', clear: 'pods and volumes freed', recovery: 'brought back',
}
const outcomes: Record<Outcome, string> = {
  Recovered: 'the node is back and clean', Withdrawn: 'the node was well after all', Void: 'the proof was shown false',
  Replaced: 'another machine bears the name', NodeDeleted: 'the Node object is gone', Refused: 'a person asked for it, and it could not be done',
  Drilled: 'a drill passed: the path switches this machine, and no other',
}
const proofs: Record<ProofKind, string> = { off: 'ordered off and read off twice', 'found-off': 'read off twice before any order', vouched: 'a person said that it is off', isolated: 'its volumes of some drivers were put out of its reach, and that was read back twice', 'self-fenced': 'nobody could permit it any more, and its own watchdog must have reset it since', kdump: 'it fell silent, and then its crash kernel announced itself', 'safe-detach': 'the driver itself refuses to detach what is in use' }
const reasons: Record<HoldReason, string> = {
  storm: 'too many nodes fell silent together', storage: 'the node, or too many, cannot reach their storage', concurrency: 'enough nodes are being fenced', 'control-plane': 'the control plane would lose its majority',
  'path-unverified': 'the fence path was not audited', 'identity-unproven': 'nothing proves that the path is this node\'s', 'no-path': 'no fence path is configured',
  'config-invalid': 'the fence configuration has faults', 'not-dead': 'the node is not judged dead', blind: 'our own view is stale', pause: 'a person paused',
  'dry-run': 'the policy only shows', unselected: 'no policy selects the node', 'policy-conflict': 'two policies of one priority do', 'do-nothing': 'the policy says so',
  'order-may-land': 'an order that was sent may still land', resting: 'between two rounds', 'waiting-for-boot': 'switched on, no new boot yet', 'still-cut': 'ordered off, and not on again so far',
  'waiting-for-clean': 'not clean yet', 'waiting-for-volumes': 'volumes are not released yet', 'waiting-for-kubelet': 'kubelet has not posted yet', 'waiting-for-controllers': 'Kubernetes\' controllers may not have noticed yet',
  'proof-void': 'the fenced boot was heard', 'proof-doubted': 'a device reads otherwise now', 'out-of-levels': 'no level is left', finalizer: 'a finalizer keeps a pod',
  'sent-back': 'the scheduler keeps sending pods back', rate: 'the rate of deletions is reached', unreadable: 'a NodeFence of the node cannot be read',
  'foreign-taint': 'somebody else\'s out-of-service is on the node', aborted: 'a person aborted it, and the node is silent still',
  'power-after': 'it is isolated, and its power is left on for a while', exhausted: 'every restart was used up', dumping: 'a crash kernel writes its dump', 'abort-refused': 'an abort came after the proof', permit: 'a permit has not run out yet', 'self-fencing': 'its own watchdog does not prove it ended, or not yet', unvouched: 'an acknowledgement is no proof', 'not-due': 'Kubernetes has not evicted the pods yet',
  exclude: 'a person keeps us off the node', maintenance: 'a person works on the node', remediator: 'another remediator has the node in hand',
  'kept-off': 'a person wants the machine off', 'repeat-limit': 'the node was fenced too often', partial: 'only some volumes are proven', evicting: 'pods are going in good order, while the node answers', ailing: 'a remedy has it told, and nothing done', 'out-of-patience': 'not clean within returnPatience', 'disruption-budget': 'a disruption budget says that pods may not go yet',
}

const evidence = (says: string) => list(says, v.pipe(
  v.object({
    source: text('Who said it.', 512), word: prose('What it said.', 512), at: instant('When it was written down.'),
  } satisfies Fields<Evidence>),
  v.description('One source\'s word.'),
), 100)

const proof = (says: string) => v.pipe(
  v.object({
    kind: word('What it was made from.', proofs),
    at: instant('When it was made.'),
    boot: bootText('The boot that cannot write any more.'),
    nodeUid: text('UID of the Node object that it is of.', 128, 0),
    level: whole('Index of the level that proved it, from 0 (sentences count from 1); -1 where none did.', -1, 100),
    methods: list('All methods of that level.', text('Its name.', 253), 32),
    digests: v.exactOptional(list('Of each method\'s configuration when it proved, in the same order.', text('One digest.', 128), 32)),
    evidence: evidence('Everything it rests on.'),
    joined: v.exactOptional(v.pipe(
      v.object({
        kind: word('What it was made from.', { 'safe-detach': proofs['safe-detach'] }), at: instant('When it was made.'), evidence: evidence('Everything it rests on.'),
      } satisfies Fields<NonNullable<ProofRecord['joined']>>),
      v.description('Of isolated: a proof of other drivers\' volumes that stands beside it, under its own rule.'),
    )),
  } satisfies Fields<ProofRecord>),
  v.description(says),
)

const attempt = v.pipe(
  v.object({
    id: text('Its own name.', 253),
    round: whole('The round it belongs to.', 0, 1_000_000),
    level: whole('Index of the level it belongs to, from 0 (sentences count from 1).', 0, 100),
    method: text('The method that ran.', 253),
    digest: v.exactOptional(text('Of its configuration then: another configuration of its name may be another outlet.', 128)),
    beside: v.exactOptional(list('The other methods of its level then: what was configured beside it may feed the machine.', text('The name of one.', 253), 32)),
    ends: v.exactOptional(flag('It was to end the machine for good: nothing of it is switched on again.')),
    agent: text('The fence agent that ran.', 253),
    action: word('What was asked.', { off: '', on: '' }),
    replica: text('The replica that ran it.', 253),
    term: whole('That replica\'s term.', 0, Number.MAX_SAFE_INTEGER),
    startedAt: instant('When it was written down, which is before the device was touched.'),
    endedAt: v.exactOptional(instant('When its end was known.')),
    within: duration('How long the program may run.', 0),
    late: duration('How long after that the order may still land.', 0),
    result: word('What came of it.', {
      running: 'not known to have ended', off: 'verified off', on: 'verified on', failed: 'the program says so; it may still land', unknown: 'nobody knows; it may still land',
      'not-given': 'never sent: its program was not started',
    } satisfies Record<Attempt['result'], string>),
    reason: v.exactOptional(prose('Why, where it did not end well.')),
  } satisfies Fields<Attempt>),
  v.description('One run of one method.'),
)

const pod = v.pipe(
  v.object({
    namespace: text('Its namespace.', 63), name: text('Its name.', 253), uid: text('Its UID.', 128),
    fate: word('What became of it.', { freed: 'deleted', left: 'not touched', evicted: 'asked to go in good order, while its node answered' } satisfies Record<PodFate['fate'], string>),
    reason: v.exactOptional(prose('Why it was left.')),
  } satisfies Fields<PodFate>),
  v.description('One pod.'),
)

const volume = v.pipe(
  v.object({
    attachment: text('Name of the VolumeAttachment.', 253), volume: text('Name of the PersistentVolume.', 253, 0), driver: text('The CSI driver.', 253, 0),
    fate: word('Where it stands.', { attached: 'still attached', released: 'gone' } satisfies Record<VolumeFate['fate'], string>),
    reason: v.exactOptional(prose('Why it was not let go of at once: what its driver said last, or for what it was left.', 256)),
  } satisfies Fields<VolumeFate>),
  v.description('One VolumeAttachment.'),
)

const hold = v.pipe(
  v.object({
    because: word('The reason.', reasons),
    detail: prose('A sentence with its numbers.'),
    lifts: prose('What would end it.'),
    since: instant('Since when it stands.'),
  } satisfies Fields<Hold>),
  v.description('One decision not to act.'),
)

const moment = v.pipe(
  v.object({ at: instant('When.'), what: text('What happened.', 128), detail: prose('In which way.') } satisfies Fields<Moment>),
  v.description('One moment.'),
)

export const limits = { attempts: 200, timeline: 500, pods: 1_000, volumes: 1_000, voided: 20, holds: 32, offAtFirst: 100 } as const

export const statusSchema = v.pipe(
  v.object({
    phase: v.exactOptional(v.pipe(word('How far it is.', phases), v.metadata(ruled({
      rule: `oldSelf != 'Final' || self == 'Final'`, message: 'Final is final: another failure of the node is another NodeFence',
    }))), 'New'),
    step: v.exactOptional(word('What is being done.', steps), 'none'),
    outcome: v.exactOptional(word('How it ended.', outcomes)),
    level: v.exactOptional(whole('Index of the level under way, from 0 (sentences count from 1).', 0, 100), 0),
    round: v.exactOptional(whole('Which round through all levels this is.', 0, 1_000_000), 1),
    term: v.exactOptional(whole('The term of the leader that wrote last. Its writes make those of an older leader fail.', 0, Number.MAX_SAFE_INTEGER), 0),
    waitsFor: v.exactOptional(prose('The reason of the first hold; empty when nothing is waited for.', 128)),
    attempts: v.exactOptional(list('Runs of methods, oldest first.', attempt, limits.attempts, ['id']), []),
    taken: v.exactOptional(v.pipe(
      v.object({
        nodeUid: text('UID of the Node object.', 128), boot: bootText('The boot that is fenced.'), machine: text('The machine\'s UUID.', 128, 0),
        policy: v.pipe(v.object({ name: text('The HoldfastPolicy it was taken from.', 253), ...policyFields }), v.description('The policy, by value.')),
      } satisfies Fields<Taken>),
      v.description('What a person who fenced by hand did not write, as it was when it was first seen.'),
    )),
    eviction: v.exactOptional(v.pipe(
      v.object({
        since: instant('When the first was asked for.'),
        over: v.exactOptional(v.pipe(v.object({ at: instant('When.'), because: prose('Why.') } satisfies Fields<NonNullable<Eviction['over']>>), v.description('Why none is asked for any more. Absent: it goes on.'))),
      } satisfies Fields<Eviction>),
      v.description('Pods were asked to go in good order before the node was ordered off: a person wanted it fenced, and it answered.'),
    )),
    proof: v.exactOptional(proof('Why the node cannot write. Absent: nothing proves it.')),
    revoked: v.exactOptional(v.pipe(
      v.object({
        boot: bootText('The boot that nobody is to permit any more.'), at: instant('When it was taken back.'),
        watchdog: watchdogField('Its watchdog, as it stood on record then.'),
      } satisfies Fields<Revocation>),
      v.description('The permit of the fenced boot is taken back: its own watchdog is to end it.'),
    )),
    dump: v.exactOptional(v.pipe(
      v.object({
        at: instant('When.'), by: text('The replica that heard it.', 253), from: text('The address that it came from.', 64),
        afterSilence: flag('The kubelet port was silent before it, straight after the last beat: without that it proves nothing.'),
      } satisfies Fields<DumpHeard>),
      v.description('The first word of the node\'s crash kernel: its power waits for the dump, as the configuration says (kdump=).'),
    )),
    offAtFirst: v.exactOptional(list('Paths that said off before they were ever read on in the boot that is fenced: what they say on after that is of another one.', v.pipe(
      v.object({
        method: text('The method.', 253), digest: text('Of its configuration then.', 128), at: instant('When it was written down.'),
      } satisfies Fields<OffAtFirst>),
      v.description('One of them.'),
    ), limits.offAtFirst)),
    drill: v.exactOptional(v.pipe(
      v.object({
        passed: flag('Off, this node fell silent with it, and no other did.'), detail: prose('In which way, or why not.'),
      } satisfies Fields<DrillSeen>),
      v.description('What came of switching off, where nothing had failed and a person wanted to see it.'),
    )),
    identity: v.exactOptional(v.pipe(
      v.object({
        proven: flag('After it was switched on this node, and no other, came up in a boot younger than that.'), detail: prose('How, or why nothing is proven.'),
        digests: list('Of every method of the level that was switched: they prove it together.', text('One digest.', 128), 32),
      } satisfies Fields<IdentitySeen>),
      v.description('What a fence that is over proved of the identity of its path, where no device tells it.'),
    )),
    voided: v.exactOptional(list('Proofs that do not stand any more.', v.pipe(
      v.object({
        proof: proof('The proof as it stood.'),
        how: v.exactOptional(word('What became of it.', {
          'shown-false': 'the fenced boot spoke after it', lapsed: 'what it rests on tells nothing any more',
        } satisfies Record<NonNullable<Voided['how']>, string>)),
        at: instant('When that was known.'), evidence: prose('By what.'),
      } satisfies Fields<Voided>),
      v.description('One proof that does not stand any more.'),
    ), limits.voided), []),
    pods: v.exactOptional(list('What became of the pods.', pod, limits.pods, ['uid']), []),
    volumes: v.exactOptional(list('What became of the volumes of freed pods.', volume, limits.volumes, ['attachment']), []),
    holds: v.exactOptional(list('Why nothing is being done just now, if so.', hold, limits.holds), []),
    timeline: v.exactOptional(list('All that happened, oldest first.', moment, limits.timeline), []),
    conditions: v.exactOptional(conditions('Proven: whether the node is proven unable to write. Succeeded: whether it ended well.'), []),
  } satisfies Fields<IncidentStatus, 'waitsFor' | 'conditions'>),
  v.description('What happened so far. Written by the leader alone.'),
)

/** Nothing is decided by these but by the times of what is known of them. */
const forPeople = ['holds', 'timeline', 'conditions']

/** What stands there for people alone may hold more than this release knows: its fields are passed over, and holds whose reason is another
 *  release's. What this leader waits for it finds itself. */
export function withoutAsides(status: unknown): unknown {
  if (!isObject(status)) return status
  const asides = Object.fromEntries(Object.entries(status).filter(([name]) => forPeople.includes(name)))
  const { holds, ...known } = pruned(shapeOf(statusSchema, 'status'), asides) as typeof asides // of an object, its own fields
  return { ...status, ...known, ...(holds === undefined ? {} : { holds: Array.isArray(holds) ? holds.filter((one: unknown) => !isAnothers(one)) : holds }) }
}

function isAnothers(one: unknown): boolean {
  return isObject(one) && typeof one['because'] === 'string' && !Object.hasOwn(reasons, one['because'])
}

/** The status with every list within its limit; `moments` for a status that is too large all the same. */
export function limited(status: IncidentStatus, moments: number = limits.timeline): IncidentStatus {
  return {
    ...status,
    attempts: keptAttempts(distinct(status.attempts, (one) => one.id)),
    voided: keptVoided(status.voided),
    ...(status.offAtFirst === undefined ? {} : { offAtFirst: status.offAtFirst.slice(-limits.offAtFirst) }),
    pods: distinct(status.pods, (one) => one.uid).slice(-limits.pods),
    volumes: keptVolumes(distinct(status.volumes, (one) => one.attachment)),
    holds: status.holds.slice(0, limits.holds),
    timeline: folded(status.timeline, moments),
  }
}

/** The API server refuses a list with two items of one key, and with it the whole status. */
function distinct<Item>(items: readonly Item[], key: (item: Item) => string): readonly Item[] {
  return [...new Map(items.map((item) => [key(item), item])).values()]
}

/** What runs, and the last order to each method, say what is on its way and what we have to switch on again: they stay. */
function keptAttempts(attempts: readonly Attempt[]): readonly Attempt[] {
  const surplus = attempts.length - limits.attempts
  if (surplus <= 0) return attempts
  const last = new Set(new Map(given({ attempts }).map((one) => [`${one.method} ${one.digest ?? ''} ${one.action}`, one.id])).values())
  const spare = attempts.filter((one) => one.result !== 'running' && !last.has(one.id)).slice(0, surplus).map((one) => one.id)
  const gone = new Set(spare)
  return attempts.filter((one) => !gone.has(one.id))
}

/** A lie marks its path as long as it stands here; a path that falls silent again and again tells the same each time. */
function keptVoided(voided: readonly Voided[]): readonly Voided[] {
  const surplus = voided.length - limits.voided
  const spare = new Set(voided.filter(({ how }) => how === 'lapsed').slice(0, Math.max(0, surplus)))
  return voided.filter((one) => !spare.has(one)).slice(-limits.voided)
}

function keptVolumes(volumes: readonly VolumeFate[]): readonly VolumeFate[] {
  if (volumes.length <= limits.volumes) return volumes
  // Stable: what is attached still matters, and stands last.
  return volumes.toSorted((one, other) => Number(one.fate === 'attached') - Number(other.fate === 'attached')).slice(-limits.volumes)
}

const foldedWord = 'folded'

/** The oldest moments become one that counts them. */
function folded(timeline: readonly Moment[], most: number): readonly Moment[] {
  const surplus = timeline.length - most
  const [first] = timeline
  if (surplus <= 0 || first === undefined) return timeline
  const before = first.what === foldedWord ? Number.parseInt(first.detail, 10) - 1 : 0
  return [{ at: first.at, what: foldedWord, detail: `${before + surplus + 1} earlier moments` }, ...timeline.slice(surplus + 1)]
}

/** Their times are those of the moments that made them true, so that each writer says the same. */
export function conditionsOf(status: IncidentStatus, generation?: number): readonly Condition[] {
  const [first] = status.timeline
  if (first === undefined) return []
  const observed = generation === undefined ? {} : { observedGeneration: generation }
  return [{ ...proven(status, first), ...observed }, { ...succeeded(status, first), ...observed }]
}

function proven({ proof: made, voided }: IncidentStatus, first: Moment): Condition {
  const type = 'Proven'
  if (made !== undefined) {
    const message = made.evidence.map((one) => `${one.source}: ${one.word}`).join('; ')
    return { type, status: 'True', reason: camel(made.kind), lastTransitionTime: made.at, message }
  }
  const last = voided.at(-1)
  if (last !== undefined) return { type, status: 'False', reason: last.how === 'lapsed' ? 'Lapsed' : 'Voided', lastTransitionTime: last.at, message: last.evidence }
  return { type, status: 'False', reason: 'NoProof', lastTransitionTime: first.at, message: 'Nothing proves yet that the node cannot write.' }
}

function succeeded(status: IncidentStatus, first: Moment): Condition {
  const { phase, outcome, holds, timeline } = status
  const type = 'Succeeded'
  const last = timeline.at(-1) ?? first
  if (phase === 'Error') {
    const { at, detail } = timeline.findLast(({ what }) => what === 'exhausted') ?? last
    return { type, status: 'False', reason: 'Error', lastTransitionTime: at, message: detail }
  }
  if (phase === 'Final') {
    return { type, status: outcome === 'Void' || outcome === 'Refused' || sweptUnproven(status) ? 'False' : 'True', reason: outcome ?? 'Ended', lastTransitionTime: last.at, message: last.detail }
  }
  const [waits] = holds
  const message = waits === undefined ? 'It goes on.' : `${waits.detail}; ended by: ${waits.lifts}`
  return { type, status: 'Unknown', reason: waits === undefined ? phase : camel(waits.because), lastTransitionTime: first.at, message }
}

function camel(words: ProofKind | Hold['because']): string {
  return words.split('-').map((part) => `${part.charAt(0).toUpperCase()}${part.slice(1)}`).join('')
}
