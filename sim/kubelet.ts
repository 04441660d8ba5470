// A kubelet: it registers its node, watches the pods bound to it, runs them, and answers on its port. It speaks to the API as
// its node's own identity and through nothing else, so the same kubelet serves on the in-memory API server and on a real one.
import { createApi } from '../coordinator/api.ts'
import { reflect } from '../coordinator/reflector.ts'
import type { Transport } from '../coordinator/transport.ts'
import type { Ms } from '../core/model.ts'
import type { Log } from '../edge/log.ts'
import type { Chance } from './chance.ts'
import { speakForNode } from './kubelet-node.ts'
import { startPodWorker, type PodWorker } from './kubelet-pod.ts'
import { kubeletVolumes, type MountFaults } from './kubelet-volumes.ts'
import type { Machine } from './machine.ts'
import type { Condition, NodeObject, PodObject } from './objects.ts'
import type { Process } from './process.ts'
import type { Runtime } from './runtime.ts'
import type { Storage } from './storage.ts'

export interface Kubelet {
  readonly process: Process
  readonly port: number
  /** What `/healthz` would say. */
  healthy(): boolean
  /** Sets a condition other than Ready, or takes it away, as a node's problem detector would through its kubelet. */
  setCondition(condition: Condition | undefined, type: string): void
}

export interface KubeletSettings {
  readonly port: number
  readonly drivers: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly version: string
}

export const usualKubelet: KubeletSettings = { port: 10_250, drivers: ['csi.holdfast.dev'], labels: {}, version: 'v1.36.4' }

/** Orphans of pods that the API no longer has get this long after a kubelet's start. */
const orphanGrace: Ms = 1_000
const startWindow: Ms = 1_200
const housekeepingEvery: Ms = 2_000

export interface KubeletGround {
  readonly machine: Machine
  readonly runtime: Runtime
  readonly storage: Storage
  readonly chance: Chance
  readonly log: Log
  readonly faults: MountFaults
  /** The process it runs as, and its way to the API server. */
  transport(process: Process): Transport
}

export function startKubelet({ machine, runtime, storage, chance, log, faults, transport }: KubeletGround, settings: KubeletSettings): Kubelet {
  const process = machine.start('kubelet', 'system')
  const { clock } = process
  const api = createApi({ transport: transport(process), clock, userAgent: 'kubelet' })
  const draw = () => chance.next()
  const volumes = kubeletVolumes({ machine, clock, chance, api, storage, drivers: settings.drivers, faults })
  const workers = new Map<string, PodWorker>()
  const extra = new Map<string, Condition>()
  const startedAt = clock.now()
  let rebuilt = false
  let node: NodeObject | undefined

  machine.host.ports.set(settings.port, { serves: 'answers' })
  process.onEnd(() => machine.host.ports.delete(settings.port))

  const voice = speakForNode({
    ...settings, machine, clock, chance: draw, api, kubeletPort: settings.port,
    volumesInUse: () => (rebuilt ? volumes.inUse() : undefined),
    conditions: () => [...extra.values(), ...runtimeCondition(runtime, clock.now())],
    node: () => node,
  })
  const own = { api, clock, chance: draw, log }
  const nodes = reflect<NodeObject>({
    ...own, path: '/api/v1/nodes', query: { fieldSelector: `metadata.name=${machine.name}` },
    changed: ({ type, object }) => { node = type === 'deleted' ? undefined : object },
  })
  void begin()

  return {
    process, port: settings.port,
    healthy: () => process.running(),
    setCondition(condition, type) {
      if (condition === undefined) extra.delete(type)
      else extra.set(type, condition)
      process.deliver(() => voice.postNow())
    },
  }

  /** Pods wait for the node to be known, as they do on a real kubelet: admission without its taints would be a guess. */
  async function begin(): Promise<void> {
    const known = () => nodes.synced && node !== undefined && voice.registered()
    while (!known()) await clock.wait(50)
    const pods = reflect<PodObject>({
      ...own, path: '/api/v1/pods', query: { fieldSelector: `spec.nodeName=${machine.name}` },
      changed: ({ type, object }) => seen(object, type === 'deleted'),
    })
    while (!pods.synced) await clock.wait(20)
    await clock.wait(Math.max(0, startedAt + startWindow - clock.now()))
    await forgetOrphans()
    rebuilt = true
    voice.postNow()
    for (;;) {
      await clock.wait(housekeepingEvery)
      for (const [uid, worker] of workers) if (worker.done()) workers.delete(uid)
      await forgetOrphans()
    }
  }

  function seen(pod: PodObject, gone: boolean): void {
    const uid = pod.metadata.uid ?? ''
    const worker = workers.get(uid)
    if (worker !== undefined) return worker.update(gone ? undefined : pod)
    if (gone) return
    workers.set(uid, startPodWorker({
      machine, process, chance, api, runtime, volumes, startedAt, node: () => node, reportedInUse: voice.reportedInUse,
    }, pod, !rebuilt))
  }

  /** Containers and mounts of pods that this kubelet was never told of: they ran before it started, and are not wanted. */
  async function forgetOrphans(): Promise<void> {
    if (runtime.fault !== undefined) return
    for (const [uid, container] of runtime.containers) if (!workers.has(uid)) container.terminate(orphanGrace)
    for (const uid of volumes.mountedPods()) if (!workers.has(uid) && !runtime.containers.has(uid)) await volumes.unmount(uid)
    if (faults.kept === 'folders') return
    for (const uid of machine.podFolders) if (!workers.has(uid) && !volumes.mountedPods().includes(uid)) machine.podFolders.delete(uid)
  }
}

/** A kubelet whose runtime is not there says so after half a minute; one whose runtime hangs, when its relist has been overdue for
 *  three minutes. */
const runtimePatience = { dead: 30_000, hangs: 180_000 } as const

function runtimeCondition({ fault }: Runtime, now: Ms): readonly Condition[] {
  if (fault === undefined || now - fault.since < runtimePatience[fault.how]) return []
  const message = fault.how === 'dead' ? 'container runtime is down' : 'PLEG is not healthy'
  return [{ type: 'Ready', status: 'False', reason: 'KubeletNotReady', message }]
}
