// The pod garbage collector: what is terminating on a node out of service, what is bound to no node, what never ran.
//
// Kept: every 20 s, from its own cache (which may lag: it then acts on a taint that is gone, or on a node that is well again);
// a terminating pod of a node that is not Ready and bears the out-of-service key, any effect, is set Failed and deleted with
// grace 0, without uid and without looking at tolerations; so is a pod whose Node has been missing for 40 s and is missing in a
// live read, with condition DeletionByPodGC; and a terminating pod that never was scheduled. Left out: the 12,500 finished pods.
import type { Ms } from '../../core/model.ts'
import { isReady, timestamp, type Condition, type PodObject } from '../objects.ts'
import type { ControllerGround } from './cache.ts'

export interface PodGcSettings { period: Ms; quarantine: Ms }

export const usualPodGc: PodGcSettings = { period: 20_000, quarantine: 40_000 }

const outOfService = 'node.kubernetes.io/out-of-service'

export function startPodGc({ clock, api, caches }: ControllerGround, settings: PodGcSettings): void {
  const missingSince = new Map<string, Ms>()
  void loop()

  async function loop(): Promise<void> {
    for (;;) {
      await clock.wait(settings.period)
      await sweep()
    }
  }

  async function sweep(): Promise<void> {
    for (const pod of caches.pods.items.values()) {
      if (pod.metadata.deletionTimestamp === undefined) continue
      const node = caches.nodes.items.get(pod.spec.nodeName ?? '')
      if (pod.spec.nodeName === undefined) await collect(pod)
      else if (node !== undefined && !isReady(node) && (node.spec?.taints ?? []).some(({ key }) => key === outOfService)) await collect(pod)
    }
    await sweepOrphans()
  }

  async function sweepOrphans(): Promise<void> {
    const bound = new Set([...caches.pods.items.values()].flatMap(({ spec: { nodeName } }) => (nodeName === undefined ? [] : [nodeName])))
    for (const name of missingSince.keys()) if (!bound.has(name) || caches.nodes.items.has(name)) missingSince.delete(name)
    for (const name of bound) {
      if (caches.nodes.items.has(name)) continue
      const since = missingSince.get(name)
      if (since === undefined) missingSince.set(name, clock.now())
      else if (clock.now() - since >= settings.quarantine) {
        const live = await api.get(`/api/v1/nodes/${name}`)
        if (live.ok || live.error.kind !== 'notFound') continue
        for (const pod of caches.pods.items.values()) {
          if (pod.spec.nodeName === name) {
            await collect(pod, [{
              type: 'DisruptionTarget', status: 'True', reason: 'DeletionByPodGC', message: 'PodGC: node no longer exists',
              lastTransitionTime: timestamp(clock.wall()),
            }])
          }
        }
      }
    }
  }

  async function collect({ metadata: { namespace, name }, status }: PodObject, conditions: Condition[] = []): Promise<void> {
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`
    if (status?.phase !== 'Failed' && status?.phase !== 'Succeeded') await api.patch(`${path}/status`, 'strategic', { status: { phase: 'Failed', conditions } })
    await api.remove(path, { gracePeriodSeconds: 0 })
  }
}
