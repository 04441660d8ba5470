// Worlds in which a deed is to be done: an incident that was opened, a node that is proven off, and an API server that fails at its writes.
import type { KubeObject } from '../../coordinator/api.ts'
import type { Deed } from '../../core/action.ts'
import type { Attempt, IncidentStatus } from '../../core/incident.ts'
import type { NodeRecord, PodSeen } from '../../core/model.ts'
import { recall, type Proof } from '../../core/proof.ts'
import { attempt, boot, method, proofRecord, record as recordOf } from '../core/world.ts'
import { edgeWorld, fence, victim, type EdgeWorld, type Write } from './edge-world.ts'

export const off: Extract<Deed, { do: 'fence' }> = { do: 'fence', node: victim, incident: fence, method, level: 0, round: 1 }
export const switchOn: Extract<Deed, { do: 'restore' }> = { do: 'restore', node: victim, incident: fence, method, level: 0, round: 1 }

/** As the core makes them: the edge adds the time. */
export function record(changes: Partial<NodeRecord> = {}): NodeRecord {
  const made = recordOf(changes)
  return { ...made, paths: made.paths.map((path) => ({ ...path, at: '' })), probe: { boot, answered: true, at: '' } }
}

export const faulty = ['unreachable', 'lose answer', 'answer 409', 'answer 429', 'answer 500'] as const

/** The next writes to what the path names meet this. */
export function fault(world: EdgeWorld, does: (typeof faulty)[number], path: string, times = Infinity): void {
  const strikes = (call: { method: string; path: string; user: { name: string } }): boolean => call.method !== 'GET' && call.path.includes(path) && call.user.name.includes('coordinator')
  const [word, status] = does.split(' ')
  world.server.faults.set([word === 'answer'
    ? { does: 'answer', status: Number(status) as 409, strikes, times } // one of those above
    : { does: does as 'unreachable', strikes, times }]) // likewise
}

export async function opened(status: Partial<IncidentStatus> = {}): Promise<EdgeWorld> {
  const world = edgeWorld()
  world.plantNode()
  await world.plantFence(status)
  return world
}

export function proofOf(world: EdgeWorld): Proof {
  const { proof } = world.stored().status
  if (proof === undefined) throw new Error('no proof on record')
  return recall(proof)
}

/** Proven, tainted, and its device read off just now. */
export async function fenced(): Promise<EdgeWorld> {
  const world = edgeWorld()
  const { metadata } = world.plantNode()
  await world.plantFence({ phase: 'Running', step: 'clear', attempts: [attempt()], proof: proofRecord({ nodeUid: metadata.uid ?? '', digests: ['d1'] }) })
  world.read('off')
  return world
}

export const freeing = (world: EdgeWorld, pods: readonly PodSeen[], proof: Proof = proofOf(world)): Deed => ({ do: 'delete', node: victim, incident: fence, pods, proof })
export const attempts = (world: EdgeWorld): readonly Attempt[] => world.stored().status.attempts
export const phases = (world: EdgeWorld): string[] => world.pods().map((pod) => `${pod.metadata.name} ${(pod as KubeObject & { status: { phase: string } }).status.phase}`) // a Pod has it
export const podWrites = (world: EdgeWorld): Write[] => world.writes.filter((write) => write.path.includes('/pods/'))
