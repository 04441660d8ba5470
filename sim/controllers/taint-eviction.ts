// The taint eviction controller: it deletes pods that do not tolerate a NoExecute taint of their node, or not for ever.
//
// Kept: the wait begins when this process sees the taint, not at its timeAdded, so a restart begins it anew; the shortest
// tolerationSeconds of the matching tolerations counts; a taint that goes cancels the wait; before the deletion the pod gets the
// condition DisruptionTarget/DeletionByTaintManager; the DELETE is plain, by name, without uid. Pods of 300 s come from the
// API server's default tolerations. Left out: the queue's width, the Events.
import { timestamp, tolerates, excuses, type PodObject } from '../objects.ts'
import type { ControllerGround } from './cache.ts'

export function startTaintEviction({ clock, api, caches }: ControllerGround): void {
  const waits = new Map<string, () => void>()

  caches.pods.listen(({ type, object }) => {
    if (type === 'deleted') cancel(object.metadata.uid)
    else weigh(object)
  })
  caches.nodes.listen(({ key }) => {
    for (const pod of caches.pods.items.values()) if (pod.spec.nodeName === key) weigh(pod)
  })

  function weigh(pod: PodObject): void {
    const { uid = '', deletionTimestamp } = pod.metadata
    const taints = (caches.nodes.items.get(pod.spec.nodeName ?? '')?.spec?.taints ?? []).filter(({ effect }) => effect === 'NoExecute')
    if (taints.length === 0 || deletionTimestamp !== undefined) return cancel(uid)
    if (!taints.every((taint) => tolerates(pod.spec.tolerations, taint))) {
      cancel(uid)
      return void remove(pod)
    }
    const used = (pod.spec.tolerations ?? []).filter((toleration) => taints.some((taint) => excuses(toleration, taint)))
    const spans = used.flatMap(({ tolerationSeconds }) => (tolerationSeconds === undefined ? [] : [Math.max(0, tolerationSeconds)]))
    if (spans.length === 0) return cancel(uid)
    if (waits.has(uid)) return
    waits.set(uid, clock.after(Math.min(...spans) * 1_000, () => {
      waits.delete(uid)
      void remove(pod)
    }))
  }

  function cancel(uid = ''): void {
    waits.get(uid)?.()
    waits.delete(uid)
  }

  async function remove({ metadata: { namespace, name } }: PodObject): Promise<void> {
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`
    await api.patch(`${path}/status`, 'strategic', {
      status: {
        conditions: [{
          type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager',
          message: 'Taint manager: deleting due to NoExecute taint', lastTransitionTime: timestamp(clock.wall()),
        }],
      },
    })
    await api.remove(path)
  }
}
