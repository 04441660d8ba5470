// The two processes of a control plane beside its API server: the controllers with their shared caches, and the scheduler.
import { createApi } from '../../coordinator/api.ts'
import type { Transport } from '../../coordinator/transport.ts'
import type { Log } from '../../edge/log.ts'
import type { Chance } from '../chance.ts'
import type { Process } from '../process.ts'
import { startAttachDetach, usualAttachDetach, type AttachDetachSettings } from './attach-detach.ts'
import { createCaches, synced, type Caches } from './cache.ts'
import { startDaemonSets } from './daemon-set.ts'
import { startDisruption } from './disruption.ts'
import { startNodeLifecycle, usualNodeLifecycle, type NodeLifecycleSettings } from './node-lifecycle.ts'
import { startPodGc, usualPodGc, type PodGcSettings } from './pod-gc.ts'
import { startReplicaSets } from './replica-set.ts'
import { startScheduler } from './scheduler.ts'
import { startStatefulSets } from './stateful-set.ts'
import { startTaintEviction } from './taint-eviction.ts'

export interface ControlLoops {
  /** The controllers' caches, so that a test can let one lag. */
  readonly caches: Caches
  readonly settings: ControlLoopSettings
}

export interface ControlLoopSettings {
  readonly nodeLifecycle: NodeLifecycleSettings
  readonly podGc: PodGcSettings
  readonly attachDetach: AttachDetachSettings
  /** Whether disruption budgets are counted. Where they are not, an eviction that one of them is about is refused. */
  readonly disruption: boolean
}

export interface ControlLoopGround {
  readonly controllers: Process
  readonly scheduler: Process
  readonly chance: Chance
  readonly log: Log
  transport(process: Process, user: string): Transport
}

/** Plenty: what limits real controllers (20 to 100 a second each) is not what this world is about. */
const rate = { perSecond: 1_000, burst: 2_000 }

export function startControlLoops({ controllers, scheduler, chance, log, transport }: ControlLoopGround, wanted: Partial<ControlLoopSettings> = {}): ControlLoops {
  const settings: ControlLoopSettings = {
    nodeLifecycle: { ...usualNodeLifecycle, ...wanted.nodeLifecycle },
    podGc: { ...usualPodGc, ...wanted.podGc },
    attachDetach: { ...usualAttachDetach, ...wanted.attachDetach },
    disruption: wanted.disruption ?? false,
  }
  const { clock } = controllers
  const api = createApi({ transport: transport(controllers, 'system:kube-controller-manager'), clock, rate, userAgent: 'kube-controller-manager' })
  const ground = { clock, api, chance: chance.fork('controllers'), log }
  const caches = createCaches(ground)
  void begin()

  const schedulerApi = createApi({ transport: transport(scheduler, 'system:kube-scheduler'), clock: scheduler.clock, rate, userAgent: 'kube-scheduler' })
  const schedulerGround = { clock: scheduler.clock, api: schedulerApi, chance: chance.fork('scheduler'), log }
  const own = createCaches(schedulerGround, ['nodes', 'pods'])
  startScheduler({ ...schedulerGround, caches: own })

  return { caches, settings }

  async function begin(): Promise<void> {
    await synced(clock, caches)
    const full = { ...ground, caches }
    startNodeLifecycle(full, settings.nodeLifecycle)
    startTaintEviction(full)
    startPodGc(full, settings.podGc)
    startAttachDetach(full, settings.attachDetach)
    startStatefulSets(full)
    startReplicaSets(full)
    startDaemonSets(full)
    if (settings.disruption) await startDisruption(full)
  }
}
