// The writes of the selective release, by which Kubernetes' attach/detach controller lets go of some volumes of a node and of no
// others: a pod that stays is told that nothing of it runs, and volumes are struck from what the node is said to use. Of a Node that is
// gone there is nothing to strike them from: their VolumeAttachments are deleted, which the controller finds out at its next look. All of
// them say what the proof says; whoever calls them has one.
import type { Incident } from '../core/incident.ts'
import type { PodSeen, VolumeSeen } from '../core/model.ts'
import type { Log } from '../edge/log.ts'
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

/** What frees ends before a machine could boot, and as soon as anything speaks against it. */
export interface Batch {
  /** Asked before each write: what is read before it may take seconds. */
  may(): boolean
  /** A write that waits for its turn is not sent once the batch is over. */
  how(): CallOptions
}

export interface Releaser {
  /** It is terminating, and stays so: its owner has replaced it, and only its kubelet ends it. */
  end(pod: PodSeen, incident: Incident, batch: Batch): Promise<boolean>
  /** By the names of their VolumeAttachments. */
  strike(row: Row, attachments: ReadonlySet<string>, batch: Batch): Promise<boolean>
  /** Of a Node that is gone, one after the other, as long as each may be. Which were deleted. */
  deleteAttachments(row: Row, volumes: readonly VolumeSeen[], batch: Batch): Promise<readonly VolumeSeen[]>
}

interface RunningPod extends KubeObject {
  status?: { containerStatuses?: { state?: { running?: { startedAt?: string } } }[] }
}

/** As a container that was killed. */
const killed = 137

export function releaser({ api, observation, log, at }: { api: Api; observation: Observation; log: Log; at: () => string }): Releaser {
  return {
    async end({ namespace, name, uid, resourceVersion }, incident, { may, how }) {
      const path = paths.pod(namespace, name)
      const live = await api.get<RunningPod>(path, how())
      if (!may() || !live.ok || live.value.metadata.uid !== uid || live.value.metadata.resourceVersion !== resourceVersion) return false
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
    async strike({ name, uid }, attachments, { may, how }) {
      const live = await api.get<KubeObject & { status?: { volumesInUse?: string[] } }>(paths.node(name), how())
      if (!live.ok || live.value.metadata.uid !== uid) return false
      const before = live.value.status?.volumesInUse ?? []
      const volumesInUse = before.filter((unique) => !attachments.has(attachmentOf(unique, name) ?? ''))
      if (volumesInUse.length === before.length) return true
      if (!may()) return false
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
    async deleteAttachments({ name }, volumes, { may, how }) {
      const deleted: VolumeSeen[] = []
      for (const volume of volumes) {
        // One that was made anew has its volumes by the same names, and may use them by now.
        const live = await api.get<KubeObject>(paths.node(name), how())
        if (live.ok) observation.node(keepNode(live.value), 'live')
        if (live.ok || live.error.kind !== 'notFound' || !may()) break
        const gone = await api.remove(paths.attachment(volume.attachment), { preconditions: { uid: volume.uid } }, how())
        if (gone.ok || gone.error.kind === 'notFound') deleted.push(volume)
        else log.warn({ node: name, volume: volume.volume, kind: gone.error.kind, message: gone.error.message }, 'a VolumeAttachment could not be deleted')
      }
      return deleted
    },
  }
}
