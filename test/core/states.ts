// The states an incident of node-2 goes through, each with the node as it is then.
import { outOfServiceKey, quarantineKey } from '../../core/clear.ts'
import type { IncidentStatus } from '../../core/incident.ts'
import type { NodeSeen, ReadySeen } from '../../core/model.ts'
import { attempt, beat, dead, newBoot, now, orderedOff, pod, podsOf, proofRecord, reading, record, seenOrder, seenProof, volume } from './world.ts'

export const quarantine = { key: quarantineKey, effect: 'NoSchedule' } as const
export const outOfService = { key: outOfServiceKey, value: 'holdfast', effect: 'NoSchedule' } as const
/** As the documentation of Kubernetes has a person put it. */
export const theirs = { key: outOfServiceKey, value: 'nodeshutdown', effect: 'NoExecute' } as const

export interface State {
  readonly node: Partial<NodeSeen>
  readonly status: Partial<IncidentStatus>
}

export const attempts = [attempt()]
const listed = { pods: podsOf([pod('web-0'), pod('api-x', { owner: 'ReplicaSet' })]), volumes: [volume('pv-1')] }
export const seenAll = new Map([...seenOrder(now - 6_000, now - 4_000), seenProof(now - 500)])
const offNow: Partial<NodeSeen> = { ...orderedOff, firstSeen: seenAll }

export const opened: State = { node: { ...dead, readings: [reading('on', now - 1_000)] }, status: {} }
export const ordering: State = { node: { ...opened.node, taints: [quarantine], busy: new Set(['order node-2 bmc-off']), firstSeen: new Map(seenOrder(now - 1_000)) }, status: { phase: 'Running', step: 'power-management', attempts: [attempt({ result: 'running' })] } }
export const ordered: State = { node: { ...orderedOff, taints: [quarantine] }, status: { phase: 'Running', step: 'power-management', attempts } }
export const proven: State = { node: { ...offNow, taints: [quarantine] }, status: { phase: 'Running', step: 'clear', attempts, proof: proofRecord() } }
export const clearing: State = { node: { ...proven.node, ...listed, taints: [quarantine, outOfService] }, status: proven.status }
export const freed: State = { node: { ...clearing.node, pods: podsOf([]) }, status: { ...proven.status, pods: [{ namespace: 'default', name: 'web-0', uid: 'uid-web-0', fate: 'freed' }] } }
export const cleared: State = { node: { ...freed.node, volumes: [] }, status: freed.status }
export const recovering: State = { node: { ...cleared.node, taints: [quarantine] }, status: { ...cleared.status, step: 'recovery' } }
export const on = attempt({ id: 'node-2-abc-1.2', action: 'on', result: 'on' })
export const seenLongAgo = new Map([...seenOrder(now - 60_000, now - 58_000), seenProof(now - 55_000)])
export const switchedOn: State = {
  node: { ...recovering.node, firstSeen: new Map([...seenLongAgo, ...seenOrder(now - 40_000, now - 39_000, 'node-2-abc-1.2'), [`gone ${outOfServiceKey}`, now - 41_000]]) },
  status: { ...recovering.status, attempts: [...attempts, on] },
}
export const bootedReady: ReadySeen = { status: 'True', postedAt: now - 9_000, since: now - 9_000, bootId: 'boot-2' }
export const booted: State = {
  node: { ...switchedOn.node, readings: [], beat: beat({ boot: newBoot, since: now - 10_000, clean: { at: now - 2_000, report: { state: 'clean' } } }), ready: bootedReady, bootId: 'boot-2', record: record({ boot: newBoot, paths: [] }) },
  status: switchedOn.status,
}
/** Doomed, never deleted, and back. */
export const littered: State = { node: { ...booted.node, pods: podsOf([pod('web-0', { phase: 'Failed' })]) }, status: booted.status }
export const lifted: State = { node: { ...booted.node, taints: [] }, status: booted.status }
export const withdrawn: State = { node: { taints: [], firstSeen: new Map([[`gone ${outOfServiceKey}`, now - 60_000]]) }, status: { phase: 'Done', step: 'recovery' } }
