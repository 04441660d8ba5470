// One failure of one boot of one node, as it stands on its NodeFence. Everything a next leader must know is here; nothing
// here is believed to be still true of the world without looking again.
import type { Boot, Method, Ms, NodeName } from './model.ts'
import type { Policy } from './policy.ts'
import type { WatchdogKept } from './watchdog.ts'

export interface Incident {
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly nodeName: NodeName
  readonly nodeUid: string
  readonly boot: Boot
  readonly machine: string
  readonly cause: Cause
  /** By value: editing the policy does not bend an incident under way. */
  readonly policy: Policy
  /** A person wants no more orders, and back what was cut. It binds this silence: no other incident is opened of it. */
  readonly abort: boolean
  /** A person's word that the machine is off. */
  readonly acknowledge?: Acknowledgement
  /** A person wrote it who named the node alone: what else it needs is not on its status yet. */
  readonly incomplete?: true
  readonly status: IncidentStatus
}

export interface Acknowledgement {
  readonly boot: Boot
  /** Who says so. */
  readonly by: string
  readonly reason: string
  /** Wall time, as the person wrote it. */
  readonly until: string
}

/** Of three nothing failed. `drill`: a person wants to see that the path switches this machine, and no other; `scheduled-drill`: the policy does. `owed`: what an earlier incident
 *  left off is given back. `remedy`: it runs, and is not well, and the operator wants such a node fenced. `leftover`: it is back, and did not become clean in its policy's patience. */
export type Cause = 'silence' | 'hung' | 'found-off' | 'by-hand' | 'by-word' | 'drill' | 'scheduled-drill' | 'owed' | 'remedy' | 'leftover'

/** Somebody, or something, wants the node fenced though it runs: that it is heard speaks against none of these. */
export function isWish({ cause }: Pick<Incident, 'cause'>): boolean {
  return cause === 'by-hand' || cause === 'remedy' || cause === 'leftover'
}

export function isDrill({ cause }: Pick<Incident, 'cause'>): boolean {
  return cause === 'drill' || cause === 'scheduled-drill'
}

/** Of `firstSeen`: when an incident was opened, as far as its record tells. */
export const openedKey = (incident: string): string => `opened ${incident}`

export interface IncidentStatus {
  /** The seed's automaton. Running: orders and readings. Done: the need is over, what was cut is given back. Error: every restart that the
   *  policy allows was used up, and no device is ordered off any more. */
  readonly phase: 'New' | 'Running' | 'Done' | 'Final' | 'Error'
  readonly step: 'none' | 'isolation' | 'power-management' | 'clear' | 'recovery'
  readonly outcome?: Outcome
  /** Index of the level under way, and how many rounds through all of them were begun. */
  readonly level: number
  readonly round: number
  /** The leader's term that wrote last. An older leader's write meets a 409. */
  readonly term: number
  readonly attempts: readonly Attempt[]
  /** What a person did not have to write, as it was when it was first seen. */
  readonly taken?: Taken
  /** Pods of a node that a person wants fenced, and that answered, were asked to go in good order first. */
  readonly eviction?: Eviction
  readonly proof?: ProofRecord
  /** Its boot's permit is taken back, so that its own watchdog ends it. */
  readonly revoked?: Revocation
  /** Proofs that do not stand any more: shown false by the fenced boot's own answer, or lapsed. */
  readonly voided: readonly Voided[]
  /** The first word of its crash kernel that a leader heard in this incident. */
  readonly dump?: DumpHeard
  /** Paths that said off before anybody had read them on in its boot: what they say on after that is of the next one. */
  readonly offAtFirst?: readonly OffAtFirst[]
  /** Of a drill: what came of switching off. */
  readonly drill?: DrillSeen
  /** Of a fence that is over: what it proved of the paths that it switched. Absent: each device told its machine by itself, or none was switched. */
  readonly identity?: IdentitySeen
  readonly pods: readonly PodFate[]
  readonly volumes: readonly VolumeFate[]
  readonly holds: readonly Hold[]
  readonly timeline: readonly Moment[]
}

export interface Eviction {
  readonly since: string
  /** Absent: it goes on. */
  readonly over?: { readonly at: string; readonly because: string }
}

export type Taken = Pick<Incident, 'nodeUid' | 'boot' | 'machine' | 'policy'>

export interface DrillSeen {
  /** Off, this node fell silent with it, and no other. Only its next boot makes that a proof of identity. */
  readonly passed: boolean
  readonly detail: string
}

export interface IdentitySeen {
  readonly proven: boolean
  /** How, or why not. */
  readonly detail: string
  /** Of every method of the level that was off and on again. */
  readonly digests: readonly string[]
}

/** `Refused`: asked for by a person, and nothing was done about it. `Drilled`: a drill that passed, and the machine booted anew. */
export type Outcome = 'Recovered' | 'Withdrawn' | 'Void' | 'Replaced' | 'NodeDeleted' | 'Refused' | 'Drilled'

export interface Attempt {
  readonly id: string
  readonly round: number
  readonly level: number
  readonly method: string
  /** Of its configuration then; an earlier version did not write it. */
  readonly digest?: string
  /** The other methods of its level then, if there were any. */
  readonly beside?: readonly string[]
  /** It was to end the machine for good: there is nothing of it to give back, whatever is configured by then. */
  readonly ends?: boolean
  readonly agent: string
  readonly action: 'off' | 'on'
  readonly replica: string
  readonly term: number
  readonly startedAt: string
  readonly endedAt?: string
  /** How long the program may run, and how long after it the order may still land. */
  readonly within: Ms
  readonly late: Ms
  /** `not-given`: its program is known never to have been started. That counts as a try, and as an order never. */
  readonly result: 'running' | 'off' | 'on' | 'failed' | 'unknown' | 'not-given'
  readonly reason?: string
}

/** Whether it was an order by this method as it is configured now: another configuration of the name may be another outlet. */
export function isOf(attempt: Attempt, method: Method): boolean {
  return attempt.method === method.name && (attempt.digest === undefined || attempt.digest === method.digest)
}

/** Attempts that reached their device, or may have. */
export function given({ attempts }: Pick<IncidentStatus, 'attempts'>): readonly Attempt[] {
  return attempts.filter((attempt) => attempt.result !== 'not-given')
}

/** What a change of the record put an end to. */
export function ordersEnded(before: Pick<IncidentStatus, 'attempts'>, { attempts }: Pick<IncidentStatus, 'attempts'>): readonly Attempt[] {
  const running = new Set(before.attempts.flatMap(({ id, result }) => (result === 'running' ? [id] : [])))
  return attempts.filter(({ id, result }) => result !== 'running' && running.has(id))
}

export type ProofKind = 'off' | 'found-off' | 'vouched' | 'self-fenced' | 'kdump' | 'isolated' | 'safe-detach'

/** Of some volumes alone: the machine may run. */
export function isPartial({ kind }: { readonly kind: string }): boolean {
  return kind === 'isolated' || kind === 'safe-detach'
}

/** Of `firstSeen`: when this replica first saw the nth proof of an incident. Of a partial one, and of *kdump*, apart, since a proof that the
 *  machine is off takes its place, and another partial one is joined to it, without its being set aside. */
export function proofKey(incident: string, nth: number, proof: { readonly kind: ProofKind }): string {
  return `proof ${incident} ${nth}${isPartial(proof) || proof.kind === 'kdump' ? ` ${proof.kind}` : ''}`
}

type Kinds = Pick<ProofRecord, 'kind'> & { readonly joined?: { readonly kind: ProofKind } }

/** Of each part. */
export function proofKeys(incident: string, nth: number, { kind, joined }: Kinds): readonly string[] {
  return [{ kind }, ...(joined === undefined ? [] : [joined])].map((part) => proofKey(incident, nth, part))
}

/** When the proof that stands, or that was set aside last, was first seen whole. */
export function lastProvenAt({ name, status: { proof, voided } }: Pick<Incident, 'name' | 'status'>, firstSeen: ReadonlyMap<string, Ms>): Ms | undefined {
  const last = proof ?? voided.at(-1)?.proof
  if (last === undefined) return undefined
  const seen = proofKeys(name, proof === undefined ? voided.length - 1 : voided.length, last).flatMap((key) => firstSeen.get(key) ?? [])
  return seen.length === 0 ? undefined : Math.max(...seen)
}

/** For people. */
export function kindsOf({ kind, joined }: Kinds): string {
  return joined === undefined ? kind : `${kind} and ${joined.kind}`
}

export interface ProofRecord {
  readonly kind: ProofKind
  readonly at: string
  readonly boot: Boot
  readonly nodeUid: string
  /** The level that proved it; -1 where none of the node's did. */
  readonly level: number
  readonly methods: readonly string[]
  /** Of each method's configuration when it proved, in the same order: what another configuration says proves nothing. */
  readonly digests?: readonly string[]
  readonly evidence: readonly Evidence[]
  /** Of *isolated*: a proof of other drivers' volumes that stands beside it. A pod may have volumes of both. */
  readonly joined?: { readonly kind: 'safe-detach'; readonly at: string; readonly evidence: readonly Evidence[] }
}

/** By value, read live when it was written: what the NodeRecord says of it later is of no weight. */
export interface Revocation {
  readonly boot: Boot
  readonly at: string
  readonly watchdog: WatchdogKept
}

export interface OffAtFirst {
  readonly method: string
  readonly digest: string
  readonly at: string
}

/** By which replica, and from which address. */
export interface DumpHeard {
  readonly at: string
  readonly by: string
  readonly from: string
  /** That replica had seen the silence that must come before it. */
  readonly afterSilence: boolean
}

export interface Voided {
  readonly proof: ProofRecord
  /** `lapsed`: not false, but a device that it rests on tells nothing any more. Absent: shown false. */
  readonly how?: 'shown-false' | 'lapsed'
  readonly at: string
  readonly evidence: string
}

/** These were lies of a path, and mark it. */
export function shownFalse({ voided }: Pick<IncidentStatus, 'voided'>): readonly Voided[] {
  return voided.filter(({ how }) => how !== 'lapsed')
}

/** Its Node was deleted, and with it Kubernetes has deleted the pods of a machine that may run. Of a node that was well by then nothing had to be proven. */
export function sweptUnproven({ outcome, proof, step }: Pick<IncidentStatus, 'outcome' | 'proof' | 'step'>): boolean {
  return outcome === 'NodeDeleted' && proof === undefined && step !== 'recovery'
}

/** The proof that stood last, was never shown false, and was not made anew yet. */
export function lapsed({ proof, voided }: Pick<IncidentStatus, 'proof' | 'voided'>): Voided | undefined {
  const last = voided.at(-1)
  return proof === undefined && last?.how === 'lapsed' ? last : undefined
}

export interface Evidence {
  readonly source: string
  readonly word: string
  readonly at: string
}

/** Evidence before it stands on a record. `at`: an instant of this process's clock, or the wall time of the record it is from,
 *  where that tells one. */
export interface Found extends Omit<Evidence, 'at'> {
  readonly at: Ms | string
}

export interface PodFate {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  /** `evicted`: it was asked to go in good order, while its node answered. */
  readonly fate: 'freed' | 'left' | 'evicted'
  readonly reason?: string
}

export interface VolumeFate {
  readonly attachment: string
  readonly volume: string
  readonly driver: string
  readonly fate: 'attached' | 'released'
  /** Why it was not let go of at once: what its driver said last, or for what the incident left it. */
  readonly reason?: string
}

/** A decision not to act. `because` is a word of the glossary, `detail` a sentence with its numbers, `lifts` what would end it. */
export interface Hold {
  readonly because: HoldReason
  readonly detail: string
  readonly lifts: string
  readonly since: string
}

export type HoldReason =
  | 'storm' | 'storage' | 'concurrency' | 'control-plane' | 'path-unverified' | 'identity-unproven' | 'no-path' | 'config-invalid'
  | 'not-dead' | 'blind' | 'pause' | 'dry-run' | 'unselected' | 'policy-conflict' | 'do-nothing'
  | 'order-may-land' | 'resting' | 'waiting-for-boot' | 'still-cut' | 'waiting-for-clean' | 'waiting-for-volumes' | 'waiting-for-kubelet' | 'waiting-for-controllers'
  | 'proof-void' | 'proof-doubted' | 'out-of-levels' | 'finalizer' | 'sent-back' | 'rate' | 'foreign-taint' | 'unreadable'
  | 'power-after' | 'exhausted' | 'dumping' | 'aborted' | 'abort-refused' | 'unvouched' | 'not-due' | 'exclude' | 'maintenance' | 'remediator' | 'kept-off' | 'repeat-limit' | 'partial' | 'permit' | 'evicting' | 'disruption-budget' | 'self-fencing' | 'ailing' | 'out-of-patience'

export interface Moment {
  readonly at: string
  readonly what: string
  readonly detail: string
}
