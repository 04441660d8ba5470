// What each deed writes on the incident: from the status before to the status after. Pure, so that the same change can be
// applied again to a newer copy when a write met a conflict. `at` is wall time as text, for people.
import type { HoldAction } from './action.ts'
import { isPartial, kindsOf, lapsed, type Attempt, type DrillSeen, type Evidence, type Found, type Hold, type IdentitySeen, type IncidentStatus, type Moment, type Outcome, type PodFate, type ProofKind, type Taken, type VolumeFate } from './incident.ts'
import type { Boot, Method, Ms, PodSeen, VolumeSeen } from './model.ts'
import type { Proof } from './proof.ts'
import type { WatchdogKept } from './watchdog.ts'

export type Change = (status: IncidentStatus) => IncidentStatus

/** More tries than this of one incident are not told one by one. */
const momentLimit = 400

export function freshStatus(term: number): IncidentStatus {
  return { phase: 'New', step: 'none', level: 0, round: 1, term, attempts: [], voided: [], pods: [], volumes: [], holds: [], timeline: [] }
}

export function opened(term: number, replica: string, cause: string, evidence: readonly Evidence[], at: string): Change {
  return (status) => tell({ ...status, term }, at, 'opened', `${cause}, by ${replica}: ${evidence.map((one) => `${one.source} ${one.word}`).join('; ')}`)
}

export function adopted(term: number, replica: string, at: string): Change {
  return (status) => tell({ ...status, term }, at, 'adopted', `${replica} leads, term ${term}`)
}

export function completed(taken: Taken, at: string): Change {
  return (status) => (status.taken === undefined ? tell({ ...status, taken }, at, 'completed', `boot ${taken.boot}, by policy ${taken.policy.name}`) : status)
}

/** `isolates`: it is no order to the machine's power. */
export function ordered(attempt: Attempt, isolates = false): Change {
  const step = attempt.action === 'on' ? 'recovery' : isolates ? 'isolation' : 'power-management'
  return (status) => tell({
    ...status, attempts: [...status.attempts, attempt], level: attempt.level, round: attempt.round,
    phase: status.phase === 'New' || status.phase === 'Error' ? 'Running' : status.phase,
    // The securing off after found-off must not take the incident back behind its clear.
    step: status.proof !== undefined && !isPartial(status.proof) && attempt.action === 'off' ? status.step : step,
  }, attempt.startedAt, `ordered ${attempt.action}`, `${attempt.method} (${attempt.agent}), level ${attempt.level + 1}, round ${attempt.round}`)
}

export function ended(id: string, result: Attempt['result'], reason: string, at: string): Change {
  return (status) => {
    const attempt = status.attempts.find((one) => one.id === id)
    if (attempt === undefined || attempt.result !== 'running') return status
    const after = { ...attempt, result, endedAt: at, ...(reason === '' ? {} : { reason }) }
    return tell({ ...status, attempts: status.attempts.map((one) => (one.id === id ? after : one)) }, at,
      'order ended', `${attempt.method} ${attempt.action}: ${result}${reason === '' ? '' : ` (${reason})`}`)
  }
}

export function settled(id: string, at: string): Change {
  return ended(id, 'unknown', 'its end is not known to this leader', at)
}

/** Each piece keeps its own time, so that whoever reads the record can check what the proof claims: read twice, a second apart. */
export function proved(proof: Proof, at: string, wallOf: (instant: Ms) => string = () => at): Change {
  const written = (all: readonly Found[]): Evidence[] => all.map((one) => ({ ...one, at: (typeof one.at === 'number' ? wallOf(one.at) : one.at) || at }))
  const evidence = written(proof.evidence)
  const { kind, boot, nodeUid, level, methods, digests } = proof
  const joined = proof.joined && { kind: proof.joined.kind, evidence: written(proof.joined.evidence) }
  const record = { kind, boot, nodeUid, level, methods, ...(digests === undefined ? {} : { digests }), evidence }
  return (status) => tell({
    ...noMore(status, 'the node is proven unable to write: a budget cannot be kept by a dead node', at), phase: 'Running', step: 'clear',
    proof: { ...record, at: madeAt(status, kind, at), ...(joined === undefined ? {} : { joined: { ...joined, at: madeAt(status, joined.kind, at) } }) },
  }, at, 'proven', `${kindsOf(proof)}: ${[...evidence, ...joined?.evidence ?? []].map((one) => `${one.source} ${one.word}`).join('; ')}`)
}

/** What another one is joined to was made before. */
function madeAt({ proof }: IncidentStatus, kind: ProofKind, at: string): string {
  return proof !== undefined && isPartial(proof) && proof.kind === kind ? proof.at : at
}

/** The same as an order to the machine: it is to end. */
export function revoked(boot: Boot, watchdog: WatchdogKept, at: string): Change {
  return (status) => (status.revoked !== undefined ? status : tell({
    ...status, revoked: { boot, at, watchdog }, phase: status.phase === 'New' ? 'Running' : status.phase, step: status.proof === undefined || isPartial(status.proof) ? 'power-management' : status.step,
  }, at, 'permit revoked', `${watchdog.identity} is to reset it; by most of ${watchdog.memberships.map(({ agents, replicas }) => [...agents, ...replicas].join(', ')).join(', and of ')}`))
}

export function announced(by: string, from: string, afterSilence: boolean, at: string): Change {
  return (status) => (status.dump !== undefined ? status : tell({ ...status, dump: { at, by, from, afterSilence } }, at, 'crash kernel heard', `from ${from}, by ${by}, ${afterSilence ? 'after' : 'without'} a silence`))
}

export function offAtFirst(methods: readonly Pick<Method, 'name' | 'digest'>[], at: string): Change {
  return (status) => {
    const known = status.offAtFirst ?? []
    const fresh = methods.filter(({ name, digest }) => !known.some((one) => one.method === name && one.digest === digest))
    if (fresh.length === 0) return status
    return tell({ ...status, offAtFirst: [...known, ...fresh.map(({ name, digest }) => ({ method: name, digest, at }))] }, at,
      'off at first', `${fresh.map(({ name }) => name).join(', ')}: what it says on after that is of another boot`)
  }
}

/** What lapsed before is shown false with it: a boot that answers was never off. */
export function shownFalse(evidence: string, at: string): Change {
  return (status) => {
    if (status.proof === undefined && lapsed(status) === undefined) return status
    const { proof, ...rest } = status
    const voided = status.voided.map((one) => (one.how === 'lapsed' ? { proof: one.proof, at, evidence } : one))
    return tell({ ...rest, step: 'power-management', voided: proof === undefined ? voided : [...voided, { proof, at, evidence }] }, at, 'proof void', evidence)
  }
}

export function lapse(evidence: string, at: string): Change {
  return (status) => {
    if (status.proof === undefined) return status
    const { proof, ...rest } = status
    return tell({ ...rest, step: 'power-management', voided: [...status.voided, { proof, how: 'lapsed', at, evidence }] }, at, 'proof lapsed', evidence)
  }
}

/** The first of these begins the time that they are given. */
export function evicting(pods: readonly PodSeen[], at: string): Change {
  return (status) => {
    const fresh = pods.filter(({ uid }) => !status.pods.some((fate) => fate.uid === uid))
    if (fresh.length === 0 && status.eviction !== undefined) return status
    const fates = fresh.map(({ namespace, name, uid }): PodFate => ({ namespace, name, uid, fate: 'evicted' }))
    return tell({ ...status, eviction: status.eviction ?? { since: at }, pods: [...status.pods, ...fates] }, at,
      'evicting', fresh.map((pod) => `${pod.namespace}/${pod.name}`).join(', ') || 'nobody yet: their time begins')
  }
}

export function evictionOver(because: string, at: string): Change {
  return (status) => (status.eviction?.over === undefined
    ? tell({ ...status, eviction: { since: status.eviction?.since ?? at, over: { at, because } } }, at, 'eviction over', because) : status)
}

/** Whatever ends the time before the first order ends it. */
function noMore(status: IncidentStatus, because: string, at: string): IncidentStatus {
  return status.eviction === undefined ? status : evictionOver(because, at)(status)
}

export function freed(pods: readonly PodSeen[], at: string): Change {
  return (status) => {
    const fates: PodFate[] = pods.map(({ namespace, name, uid }) => ({ namespace, name, uid, fate: 'freed' }))
    const known = new Set(pods.map((pod) => pod.uid))
    return tell({ ...status, step: 'clear', pods: [...status.pods.filter((pod) => !known.has(pod.uid)), ...fates] }, at,
      'freed', pods.map((pod) => `${pod.namespace}/${pod.name}`).join(', '))
  }
}

/** Of pods that are left alone, which is told where the clear ends. */
export function leftAlone(pods: readonly PodFate[]): Change {
  if (pods.length === 0) return (status) => status
  return (status) => ({ ...status, pods: [...status.pods.filter(({ uid }) => !pods.some((pod) => pod.uid === uid)), ...pods] })
}

export function detached(pods: readonly PodSeen[], volumes: readonly VolumeSeen[], at: string): Change {
  const names = [...pods.map((pod) => `the volumes of ${pod.namespace}/${pod.name}`), ...volumes.map(({ volume }) => volume)]
  return (status) => tell({ ...status, step: 'clear' }, at, 'detached', names.join(', '))
}

/** The volumes of the node as they stand; of those that are not on the record yet, `concerned` come onto it. */
export function volumesSeen(volumes: readonly VolumeSeen[], at: string, concerned: readonly VolumeSeen[] = volumes): Change {
  return (status) => {
    const now = new Map(volumes.map((volume) => [volume.attachment, volume]))
    const known = refused(volumes)(status).volumes.map((fate): VolumeFate => (now.has(fate.attachment) ? fate : { ...fate, fate: 'released' }))
    const fresh = concerned.filter((volume) => !status.volumes.some((fate) => fate.attachment === volume.attachment))
      .map(({ attachment, volume, driver, error }): VolumeFate => ({ attachment, volume, driver, fate: 'attached', ...(error === undefined ? {} : { reason: error }) }))
    const released = known.filter((fate, index) => fate.fate === 'released' && status.volumes[index]?.fate !== 'released')
    const after = { ...status, volumes: [...known, ...fresh] }
    return released.length === 0 ? after : tell(after, at, 'volumes released', released.map((fate) => fate.volume).join(', '))
  }
}

/** What drivers say of volumes that they do not let go of outlives the hold that quotes it. */
export function refused(volumes: readonly VolumeSeen[]): Change {
  const errors = new Map(volumes.flatMap(({ attachment, error }) => (error === undefined ? [] : [[attachment, error] as const])))
  return (status) => ({ ...status, volumes: status.volumes.map((fate): VolumeFate => {
    const reason = errors.get(fate.attachment)
    return reason === undefined ? fate : { ...fate, reason }
  }) })
}

/** What is attached still when the clear or the incident ends was left for the reason that ended it, unless its driver gave one. */
function left(status: IncidentStatus, because: string): IncidentStatus {
  return { ...status, volumes: status.volumes.map((fate): VolumeFate => (fate.fate === 'attached' ? { ...fate, reason: fate.reason ?? because } : fate)) }
}

export function tainted(outOfService: boolean, at: string): Change {
  return (status) => tell(status, at, 'tainted', outOfService ? 'quarantine and out-of-service' : 'quarantine')
}

export function untainted(key: string, because: string, cleared: boolean, at: string): Change {
  return (status) => tell(cleared ? { ...left(status, because), step: 'recovery' } : status, at, 'untainted', `${key}: ${because}`)
}

export function exhausted(because: string, at: string): Change {
  return (status) => (status.phase === 'Error' ? status : tell({ ...status, phase: 'Error' }, at, 'exhausted', because))
}

export function withdrawn(because: string, at: string, drill?: DrillSeen): Change {
  const what = drill === undefined ? 'withdrawn' : drill.passed ? 'drill passed' : 'drill failed'
  return (status) => tell({ ...noMore(status, 'the incident is withdrawn', at), phase: 'Done', step: 'recovery', ...(drill === undefined ? {} : { drill }) }, at, what, because)
}

export function closed(outcome: Outcome, because: string, at: string, identity?: IdentitySeen): Change {
  return (status) => tell({ ...left(status, because), phase: 'Final', outcome, holds: [], ...(identity === undefined ? {} : { identity }) }, at, 'closed', `${outcome}: ${because}`)
}

/** Holds keep the instant since which they stand. */
export function held(holds: readonly HoldAction[], at: string): Change {
  return (status) => {
    const after = holds.map(({ because, detail, lifts }): Hold => ({
      because, detail, lifts, since: status.holds.find((one) => one.because === because)?.since ?? at,
    }))
    const fresh = after.filter((one) => !status.holds.some((before) => before.because === one.because))
    return fresh.reduce<IncidentStatus>((next, one) => tell(next, at, `held: ${one.because}`, one.detail), { ...status, holds: after })
  }
}

/** Whether the holds now wanted differ from those on the record in what matters; a counting detail does not. */
export function sameHolds(holds: readonly HoldAction[], status: IncidentStatus): boolean {
  return holds.map((one) => one.because).toSorted().join() === status.holds.map((one) => one.because).toSorted().join()
}

function tell(status: IncidentStatus, at: string, what: string, detail: string): IncidentStatus {
  const moment: Moment = { at, what, detail }
  return { ...status, timeline: [...status.timeline, moment].slice(-momentLimit) }
}
