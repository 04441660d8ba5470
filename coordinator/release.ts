// The two writes of the selective release, by which Kubernetes' attach/detach controller lets go of some volumes of a node and of no
// others: a pod that stays is told that nothing of it runs, and volumes are struck from what the node is said to use. Both say what
// the proof says; whoever calls them has one.
import type { Incident } from '../core/incident.ts'
import type { PodSeen } from '../core/model.ts'
import type { Api, CallOptions, KubeObject } from './api.ts'
import { attachmentOf, keepNode, paths } from './kubernetes.ts'
import type { Observation } from './observe.ts'
import type { Row } from './row.ts'

/** What the condition DisruptionTarget of a pod says that goes with its node, up to the name of the incident. The admission policies hold us to it. */
export const fencedWith = (node: string): string => `its node ${node} was fenced (`

/** That a pod goes with its node, and by which incident. */
export function doom({ nodeName, name }: Pick<Incident, 'nodeName' | 'name'>, at: string) {
  return { type: 'DisruptionTarget', status: 'True', reason: 'HoldfastFenced', lastTransitionTime: at, message: `${fencedWith(nodeName)}${name})` }
}

export interface Releaser {
  /** It is terminating, and stays so: its owner has replaced it, and only its kubelet ends it. */
  end(pod: PodSeen, incident: Incident): Promise<boolean>
  /** By the names of their VolumeAttachments. */
  strike(row: Row, attachments: ReadonlySet<string>): Promise<boolean>
}

interface RunningPod extends KubeObject {
  status?: { containerStatuses?: { state?: { running?: { startedAt?: string } } }[] }
}

/** As a container that was killed. */
const killed = 137

export function releaser({ api, observation, how, at }: { api: Api; observation: Observation; how: () => CallOptions; at: () => string }): Releaser {
  return {
    async end({ namespace, name, uid, resourceVersion }, incident) {
      const path = paths.pod(namespace, name)
      const live = await api.get<RunningPod>(path, how())
      if (!live.ok || live.value.metadata.uid !== uid || live.value.metadata.resourceVersion !== resourceVersion) return false
      const finishedAt = at()
      const condition = doom(incident, finishedAt)
      const { message } = condition
      const containerStatuses = (live.value.status?.containerStatuses ?? []).map((one) => (one.state?.running === undefined ? one : {
        ...one, ready: false, started: false,
        state: { terminated: { exitCode: killed, reason: 'NodeFenced', message, startedAt: one.state.running.startedAt ?? finishedAt, finishedAt } },
      }))
      const body = { metadata: { uid, resourceVersion }, status: { containerStatuses, conditions: [condition] } }
      return (await api.patch<KubeObject>(`${path}/status`, 'strategic', body, how())).ok
    },
    async strike({ name, uid }, attachments) {
      const live = await api.get<KubeObject & { status?: { volumesInUse?: string[] } }>(paths.node(name), how())
      if (!live.ok || live.value.metadata.uid !== uid) return false
      const before = live.value.status?.volumesInUse ?? []
      const volumesInUse = before.filter((unique) => !attachments.has(attachmentOf(unique, name) ?? ''))
      if (volumesInUse.length === before.length) return true
      // Over that very version: kubelet may be writing the same list.
      const patch = [
        { op: 'test', path: '/metadata/uid', value: uid },
        { op: 'test', path: '/metadata/resourceVersion', value: live.value.metadata.resourceVersion },
        { op: 'add', path: '/status/volumesInUse', value: volumesInUse },
      ]
      const answer = await api.patch<KubeObject>(`${paths.node(name)}/status`, 'json', patch, how())
      if (answer.ok) observation.node(keepNode(answer.value), 'live')
      return answer.ok
    },
  }
}
