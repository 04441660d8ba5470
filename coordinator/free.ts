// Frees the pods and volumes of a node that was proven dead, in batches that end as soon as anything speaks against it, and deletes what
// is over to the API server.
import { sealedSince } from '../core/acknowledge.ts'
import type { Deed } from '../core/action.ts'
import { isOver, volumesOf } from '../core/clear.ts'
import type { Incident } from '../core/incident.ts'
import type { Ms, PodSeen, VolumeSeen } from '../core/model.ts'
import * as timeline from '../core/timeline.ts'
import type { KubeObject } from './api.ts'
import type { DeedMeans } from './deed-means.ts'
import { paths } from './kubernetes.ts'
import { holds } from './on-record.ts'
import type { PodRate } from './pod-rate.ts'
import { doom, releaser, type Batch } from './release.ts'
import type { Row } from './row.ts'

export interface Freer {
  free(deed: Extract<Deed, { do: 'delete' }>): Promise<boolean>
  detach(deed: Extract<Deed, { do: 'detach' }>): Promise<boolean>
  bury(deed: Extract<Deed, { do: 'bury' }>): Promise<boolean>
}

/** A batch ends before a machine that was switched on at its start could have booted. */
export const batchWithin: Ms = 5_000
const podsAtOnce = 5

export function freer({ api, observation, incidents, clock, log, rate, leads, how, at, say, handsOff }: DeedMeans & { readonly rate: PodRate }): Freer {
  const release = releaser({ api, observation, log, at })

  return { free, detach, bury }

  /** Status first (the lethal write: the owner acts on phase Failed at once), then the object, both under uid and version. */
  async function free(deed: Extract<Deed, { do: 'delete' }>): Promise<boolean> {
    const row = observation.row(deed.node)
    const incident = observation.seen.incidents.get(deed.incident)
    const term = leads()
    if (row === undefined || incident === undefined || term === undefined) return false
    const paced = deed.pods.filter((pod) => !isOver(pod))
    const left = new Set(paced.slice(rate.take(paced.length)))
    const pods = deed.pods.filter((pod) => !left.has(pod))
    if (pods.length === 0) return false
    const written = await incidents.change(deed.incident, (status) => timeline.volumesSeen(row.volumes, at(), volumesOf(incident, row, pods))(timeline.freed(pods, at())(status)))
    const batch = begin(deed, row, term)
    const queue = written ? [...pods] : []
    const freed: PodSeen[] = []
    const worker = async (): Promise<void> => {
      for (let pod = queue[0]; pod !== undefined && batch.may(); pod = queue[0]) {
        queue.shift()
        if (await freePod(pod, incident, batch)) freed.push(pod)
      }
    }
    await Promise.all(Array.from({ length: podsAtOnce }, worker))
    rate.giveBack((written ? queue : pods).filter((pod) => !isOver(pod)).length)
    if (!written) return false
    observation.listed(deed.node, undefined)
    if (freed.length === 0) return false
    log.warn({ node: deed.node, incident: deed.incident, pods: freed.length }, 'pods freed')
    say(deed.node, deed.incident, 'PodsFreed', 'Clear', freed.map((pod) => `${pod.namespace}/${pod.name}`).join(', '), 'Normal')
    return true
  }

  /** What ends it is told once. */
  function begin(deed: Extract<Deed, { do: 'delete' | 'detach' }>, row: Row, term: number): Batch {
    const startedAt = clock.now()
    const { gone } = row
    let told: string | undefined
    return {
      may() {
        if (leads() !== term || clock.now() - startedAt >= batchWithin) return false
        const because = row.gone === gone ? refuted(deed, row, startedAt) : 'its Node was deleted, or is there again'
        if (because !== undefined && because !== told) log.warn({ node: deed.node, incident: deed.incident, because }, 'nothing more is freed')
        told = because
        return because === undefined
      },
      how() {
        const { deadline = batchWithin, ...usual } = how()
        return { ...usual, deadline: Math.max(0, Math.min(deadline, startedAt + batchWithin - clock.now())) }
      },
    }
  }

  /** What speaks against freeing: it takes the very proof, the very Node, what its devices said just now, and nothing heard of it since; and
   *  nobody who has it in hand by now. */
  function refuted({ node, incident, proof }: Extract<Deed, { do: 'delete' | 'detach' }>, row: Row, startedAt: Ms): string | undefined {
    const known = observation.seen.incidents.get(incident)
    if (known === undefined) return 'the incident is gone'
    if (observation.row(node) !== row) return 'the Node is another one'
    if ((row.beat?.at ?? -Infinity) > startedAt || sealedSince(row, startedAt) !== undefined) return 'the node is heard again'
    return holds(proof, known, row, startedAt) ? handsOff(known, row) : 'its proof is not borne out'
  }

  /** Whether it was doomed; that its object is gone as well is seen in the next list. */
  async function freePod(pod: PodSeen, incident: Incident, batch: Batch): Promise<boolean> {
    const path = paths.pod(pod.namespace, pod.name)
    const { uid, resourceVersion } = pod
    const condition = doom(incident, at())
    const over = isOver(pod)
    if (!over) {
      const body = { metadata: { uid, resourceVersion }, status: { phase: 'Failed', reason: 'NodeFenced', message: condition.message, conditions: [condition] } }
      const answer = await api.patch<KubeObject>(`${path}/status`, 'strategic', body, batch.how())
      // Anything but yes: it is gone, another one, changed, or unknown. The next list tells, and the next batch follows.
      if (!answer.ok) return false
      // Whatever is heard by now, its owner has replaced it. The old one ends only with its object, and once the proof is void
      // nobody else would delete that.
      if (leads() === undefined) return true
    }
    // After our own write its owner may have changed it already: the uid says which pod it is, and it is doomed.
    return await remove(pod, over ? { uid, resourceVersion } : { uid }) || !over
  }

  /** Kubernetes' attach/detach controller lets go of a volume once no pod of the node is said to run on it, and kubelet's last word is
   *  not that it uses it. Pods that stay are told the first, the node's status the second, and neither says more than the proof. Where the
   *  Node is gone, that last word stands for six minutes, or for ever: there the VolumeAttachment goes itself. */
  async function detach(deed: Extract<Deed, { do: 'detach' }>): Promise<boolean> {
    const row = observation.row(deed.node)
    const incident = observation.seen.incidents.get(deed.incident)
    const term = leads()
    if (row === undefined || incident === undefined || term === undefined) return false
    const { pods, volumes } = deed
    const seen = timeline.volumesSeen(row.volumes, at(), [...new Set([...volumesOf(incident, row, pods), ...volumes])])
    if (!await incidents.change(deed.incident, (status) => seen(timeline.detached(pods, volumes, at())(status)))) return false
    const batch = begin(deed, row, term)
    const released: PodSeen[] = []
    for (const pod of pods) if (batch.may() && await release.end(pod, incident, batch)) released.push(pod)
    observation.listed(deed.node, undefined)
    const freed = row.gone === true ? await release.deleteAttachments(row, volumes, batch) : await struck(row, volumes, batch)
    if (released.length + freed.length === 0) return false
    log.warn({ node: deed.node, incident: deed.incident, pods: released.length, volumes: freed.length }, 'volumes released')
    const names = [...released.map((pod) => `${pod.namespace}/${pod.name}`), ...freed.map(({ volume }) => volume)]
    say(deed.node, deed.incident, 'VolumesReleased', 'Clear', names.join(', '), 'Normal')
    return true
  }

  async function struck(row: Row, volumes: readonly VolumeSeen[], batch: Batch): Promise<readonly VolumeSeen[]> {
    return volumes.length > 0 && batch.may() && await release.strike(row, new Set(volumes.map(({ attachment }) => attachment)), batch) ? volumes : []
  }

  /** To the API server all of them are over: no readings and no rate. */
  async function bury({ node, pods }: Extract<Deed, { do: 'bury' }>): Promise<boolean> {
    const term = leads()
    const gone: boolean[] = []
    for (const pod of pods) if (term !== undefined && leads() === term) gone.push(await remove(pod, { uid: pod.uid, resourceVersion: pod.resourceVersion }))
    observation.listed(node, undefined)
    return gone.includes(true)
  }

  async function remove({ namespace, name }: PodSeen, preconditions: { readonly uid: string; readonly resourceVersion?: string }): Promise<boolean> {
    const gone = await api.remove(paths.pod(namespace, name), { gracePeriodSeconds: 0, preconditions }, how())
    if (gone.ok || gone.error.kind === 'notFound') return true
    if (gone.error.kind !== 'conflict') log.warn({ pod: `${namespace}/${name}`, kind: gone.error.kind, message: gone.error.message }, 'a pod could not be deleted')
    return false
  }
}
