// What a replica sees, with a clock of its own and beats that a test sets.
import { keepNode, keepAttachment } from '../../coordinator/kubernetes.ts'
import { createObservation, type Observation } from '../../coordinator/observe.ts'
import { outOfServiceKey } from '../../core/clear.ts'
import type { IncidentStatus } from '../../core/incident.ts'
import type { BeatSeen } from '../../core/model.ts'
import { virtualClock, type VirtualClock } from '../../sim/clock.ts'
import { incident as incidentOf } from '../core/world.ts'

export interface Small { readonly clock: VirtualClock; readonly observation: Observation; readonly beats: Map<string, BeatSeen>; readonly forgotten: string[] }

export function small(): Small {
  const clock = virtualClock(100_000)
  const beats = new Map<string, BeatSeen>()
  const forgotten: string[] = []
  return { clock, beats, forgotten, observation: createObservation(clock, 'replica-0', { heard: (name) => beats.get(name), forget: (name) => forgotten.push(name) }) }
}

export function node(version: string, { name = 'node-2', uid = 'uid-node-2', heartbeat = 'h1', bootId = 'boot-1', taints = [] as { key: string; effect: 'NoSchedule' }[], ready = 'True' } = {}) {
  return keepNode({
    apiVersion: 'v1', kind: 'Node', metadata: { name, uid, resourceVersion: version }, spec: { taints },
    status: { nodeInfo: { bootID: bootId, systemUUID: 'machine-2' }, conditions: [{ type: 'Ready', status: ready, lastHeartbeatTime: heartbeat }] },
  } as never) // a Node is more than the common type tells
}

export const fenced = (status: Partial<IncidentStatus>, version: string, changes = {}) => incidentOf(status, { resourceVersion: version, ...changes })

export const attachment = (name: string, uid = `uid-${name}`) => keepAttachment({ metadata: { name, uid }, spec: { nodeName: 'node-2', attacher: 'd', source: { persistentVolumeName: name } }, status: { attached: true } } as never) // likewise

export const out = { key: outOfServiceKey, effect: 'NoSchedule' as const }
