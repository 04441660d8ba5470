// The node lifecycle controller: it notices that a kubelet is silent, and says so on the Node, in taints and on the pods.
//
// Kept, with the numbers of 1.36: looks every 5 s; a node is silent when neither its Lease nor its status was *seen to move* for
// 50 s by this process (a restart grants 50 s anew; a node without status gets 60 s); then Ready and the pressures are Unknown,
// unreachable:NoSchedule (not-ready: False) follows the update at once, the NoExecute twin at 0.1 nodes a second and zone, burst
// one; pods of a node that left Ready get Ready=False and nothing else; a zone more than 55 % down with more than two nodes
// down gets no NoExecute taint (at most 50 nodes) or a tenth of the pace; when every zone is wholly down all NoExecute taints
// come off and no judgement falls until one is back. Left out: the cloud provider's word, the circuit breaker of 1.37.
import type { Ms } from '../../core/model.ts'
import { isReady, timestamp, type Condition, type NodeObject, type StoredTaint } from '../objects.ts'
import type { ControllerGround } from './cache.ts'
import { changeTaints } from './node-taints.ts'
import { turnsByKey } from './turn.ts'

export interface NodeLifecycleSettings {
  grace: Ms
  startupGrace: Ms
  period: Ms
  /** NoExecute taints a second and zone. */
  rate: number
}

export const usualNodeLifecycle: NodeLifecycleSettings = { grace: 50_000, startupGrace: 60_000, period: 5_000, rate: 0.1 }

const unreachable = 'node.kubernetes.io/unreachable'
const notReady = 'node.kubernetes.io/not-ready'
const unschedulable = 'node.kubernetes.io/unschedulable'
const zoneLabel = 'topology.kubernetes.io/zone'
const judged = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure']

interface Health { renewTime: string | undefined; heartbeat: string | undefined; movedAt: Ms; ready: Condition['status'] | undefined }

export function startNodeLifecycle({ clock, api, caches, chance }: ControllerGround, settings: NodeLifecycleSettings): void {
  const health = new Map<string, Health>()
  const evictions = new Map<string, { readonly queue: Set<string>; nextAt: Ms }>()
  let allDown = false

  const schedulingTaints = turnsByKey(clock, async (name) => {
    const node = caches.nodes.items.get(name)
    if (node !== undefined) await changeTaints(api, name, (taints) => withSchedulingTaints(node, taints, timestamp(clock.wall())))
  })
  caches.nodes.listen(({ type, key }) => {
    if (type === 'deleted') health.delete(key)
    else schedulingTaints(key)
  })
  void monitor()
  void evict()

  async function monitor(): Promise<void> {
    // At a phase of its own against the kubelets', as after any start of a controller manager.
    await clock.wait(settings.period * chance.next())
    for (;;) {
      for (const node of caches.nodes.items.values()) await look(node)
      await judgeZones()
      await clock.wait(settings.period)
    }
  }

  async function look(node: NodeObject): Promise<void> {
    const { name } = node.metadata
    const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')
    const seen = {
      renewTime: caches.leases.items.get(`kube-node-lease/${name}`)?.spec?.renewTime,
      // The controller's own writes leave the heartbeat alone, so a changed one is the kubelet's.
      heartbeat: ready?.lastHeartbeatTime,
    }
    const known = health.get(name)
    const moved = known === undefined || known.renewTime !== seen.renewTime || known.heartbeat !== seen.heartbeat
    const state: Health = { ...seen, movedAt: moved ? clock.now() : known.movedAt, ready: ready?.status }
    health.set(name, state)
    const grace = ready === undefined ? settings.startupGrace : settings.grace
    if (clock.now() - state.movedAt > grace) await declareUnknown(node, state)
    if (known?.ready === 'True' && state.ready !== 'True') await markPodsNotReady(name)
    if (state.ready === 'True') return void (await forgive(node))
    const wanted = state.ready === 'Unknown' || state.ready === undefined ? unreachable : notReady
    const has = (node.spec?.taints ?? []).some(({ key, effect }) => effect === 'NoExecute' && key === wanted)
    if (!has && !allDown) zoneOf(node).queue.add(name)
  }

  async function declareUnknown(node: NodeObject, state: Health): Promise<void> {
    const conditions = node.status?.conditions ?? []
    const stale = judged.filter((type) => conditions.find((condition) => condition.type === type)?.status !== 'Unknown')
    if (stale.length === 0) return
    const reason = state.ready === undefined ? 'NodeStatusNeverUpdated' : 'NodeStatusUnknown'
    const told = await api.patch(`/api/v1/nodes/${node.metadata.name}/status`, 'strategic', {
      status: {
        conditions: stale.map((type) => ({
          type, status: 'Unknown', reason, message: 'Kubelet stopped posting node status.', lastTransitionTime: timestamp(clock.wall()),
        })),
      },
    })
    if (told.ok) state.ready = 'Unknown'
  }

  async function markPodsNotReady(name: string): Promise<void> {
    for (const pod of caches.pods.items.values()) {
      if (pod.spec.nodeName !== name || !isReady(pod)) continue
      await api.patch(`/api/v1/namespaces/${pod.metadata.namespace}/pods/${pod.metadata.name}/status`, 'strategic', {
        metadata: { uid: pod.metadata.uid },
        status: { conditions: [{ type: 'Ready', status: 'False', lastTransitionTime: timestamp(clock.wall()) }] },
      })
    }
  }

  async function forgive(node: NodeObject): Promise<void> {
    zoneOf(node).queue.delete(node.metadata.name)
    if ((node.spec?.taints ?? []).some(isEviction)) await changeTaints(api, node.metadata.name, (taints) => taints.filter((taint) => !isEviction(taint)))
  }

  async function judgeZones(): Promise<void> {
    const zones = Object.values(Object.groupBy(caches.nodes.items.values(), (node) => node.metadata.labels?.[zoneLabel] ?? ''))
    const wasDown = allDown
    allDown = zones.length > 0 && zones.every((nodes) => (nodes ?? []).every(isDown))
    if (allDown && !wasDown) {
      for (const { queue } of evictions.values()) queue.clear()
      for (const name of caches.nodes.items.keys()) await changeTaints(api, name, (taints) => taints.filter((taint) => !isEviction(taint)))
    }
    // Back from nothing: every silence begins anew.
    if (!allDown && wasDown) for (const state of health.values()) state.movedAt = clock.now()
  }

  /** Takes the NoExecute taint to one node of a zone at a time, at that zone's pace. */
  async function evict(): Promise<void> {
    for (;;) {
      for (const [zone, eviction] of evictions) {
        const [name] = eviction.queue
        if (name === undefined || clock.now() < eviction.nextAt) continue
        const pace = paceOf(zone)
        if (pace === 0) continue
        eviction.queue.delete(name)
        eviction.nextAt = clock.now() + 1_000 / pace
        const key = health.get(name)?.ready === 'False' ? notReady : unreachable
        const taint: StoredTaint = { key, effect: 'NoExecute', timeAdded: timestamp(clock.wall()) }
        const done = await changeTaints(api, name, (taints) => [...taints.filter((one) => !isEviction(one)), taint])
        if (!done) eviction.queue.add(name)
      }
      await clock.wait(evictions.values().some(({ queue }) => queue.size > 0) ? 100 : 1_000)
    }
  }

  function isDown(node: NodeObject): boolean {
    return health.get(node.metadata.name)?.ready !== 'True'
  }

  function paceOf(zone: string): number {
    const nodes = [...caches.nodes.items.values()].filter((node) => (node.metadata.labels?.[zoneLabel] ?? '') === zone)
    const down = nodes.filter(isDown).length
    if (down === nodes.length) return settings.rate
    if (down > 2 && down / nodes.length >= 0.55) return nodes.length > 50 ? settings.rate / 10 : 0
    return settings.rate
  }

  function zoneOf(node: NodeObject): { readonly queue: Set<string>; nextAt: Ms } {
    const zone = node.metadata.labels?.[zoneLabel] ?? ''
    const known = evictions.get(zone)
    if (known !== undefined) return known
    const made = { queue: new Set<string>(), nextAt: 0 }
    evictions.set(zone, made)
    return made
  }
}

function isEviction({ key, effect }: StoredTaint): boolean {
  return effect === 'NoExecute' && (key === unreachable || key === notReady)
}

/** The NoSchedule taints that this controller owns, as the node's own words call for them; all others are left alone. */
function withSchedulingTaints(node: NodeObject, taints: readonly StoredTaint[], timeAdded: string): readonly StoredTaint[] {
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')?.status
  const wanted = new Set<string>()
  if (ready === 'Unknown') wanted.add(unreachable)
  if (ready === 'False' || ready === undefined) wanted.add(notReady)
  if (node.spec?.unschedulable === true) wanted.add(unschedulable)
  const ours = (taint: StoredTaint) => taint.effect === 'NoSchedule' && [unreachable, notReady, unschedulable].includes(taint.key)
  const kept = taints.filter((taint) => !ours(taint) || wanted.has(taint.key))
  const missing = [...wanted].filter((key) => !kept.some((taint) => ours(taint) && taint.key === key))
  return [...kept, ...missing.map((key) => ({ key, effect: 'NoSchedule' as const, timeAdded }))]
}

