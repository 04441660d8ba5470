// One pod on a kubelet, from the first sight of it to the last trace: admission, volumes, container, status, and the way down.
//
// Kept: admission by NoExecute taints at first sight only, toleration seconds ignored; a pod that is deleted is stopped with its
// grace, reported, unmounted, and only then removed from the API with grace 0 and its uid; a pod that has vanished from the API
// is stopped with its own grace and unmounted; a pod that somebody else set Failed or Succeeded, and nobody deletes, is stopped at
// the kubelet's next look at it, which comes about once a minute; a container that ends is started again, with a growing pause;
// after a boot of the machine the same pod is started anew. Left out: init containers, probes, image pulls, eviction by pressure,
// the status manager, which may write Running over such a foreign Failed before that look.
import { mayHaveHappened, type Api } from '../coordinator/api.ts'
import type { Ms } from '../core/model.ts'
import type { Chance } from './chance.ts'
import type { KubeletVolume, KubeletVolumes } from './kubelet-volumes.ts'
import type { Machine } from './machine.ts'
import { tokenPath, volumePath } from './mounts.ts'
import { isFinished, podName, timestamp, tolerates, type Condition, type NodeObject, type PodObject } from './objects.ts'
import type { Process } from './process.ts'
import type { Container, Runtime } from './runtime.ts'

export interface PodWorker {
  /** The pod as the API has it now; undefined: it is gone there. */
  update(pod: PodObject | undefined): void
  /** Nothing of it is left on the machine, and the API has it no more. */
  done(): boolean
}

export interface PodGround {
  readonly machine: Machine
  readonly process: Process
  readonly chance: Chance
  readonly api: Api
  readonly runtime: Runtime
  readonly volumes: KubeletVolumes
  reportedInUse(): ReadonlySet<string>
  node(): NodeObject | undefined
  /** Instant of the kubelet's start, and whether this pod was already bound then. */
  readonly startedAt: Ms
}

/** How long after its start a kubelet keeps the volumes of pods it has refused mounted (measured: 1.1 to 1.3 s). */
const startWindow: Ms = 1_200
const containerStart: readonly [Ms, Ms] = [200, 800]
const volumeLook: Ms = 300
const runtimeLook: Ms = 1_000
const deleteRetry: Ms = 1_000
const usualGrace = 30
/** Five minutes of an API server that is away. */
const statusTries = 30
const statusAgain: Ms = 10_000
/** A pod of which nothing is heard is synced once a minute, and up to half a minute later. */
const syncWithin: Ms = 90_000

export function startPodWorker(ground: PodGround, first: PodObject, atStart: boolean): PodWorker {
  const { machine, process, chance, api, runtime, volumes } = ground
  const { clock } = process
  const uid = first.metadata.uid ?? ''
  const path = `/api/v1/namespaces/${first.metadata.namespace}/pods/${first.metadata.name}`
  let pod: PodObject | undefined = first
  let latest = first
  let over = false
  let refused = false
  let calledOverAt: Ms | undefined
  let ring: (() => void) | undefined
  let refusals = 0
  let restarts = first.status?.containerStatuses?.[0]?.restartCount ?? 0

  void live()
  return {
    update(next) {
      pod = next
      if (next !== undefined) latest = next
      if (next === undefined || !isFinished(next)) calledOverAt = undefined
      else calledOverAt ??= clock.now() + chance.between(0, syncWithin)
      ring?.()
    },
    done: () => over,
  }

  async function live(): Promise<void> {
    machine.podFolders.add(uid)
    refused = admissionRefuses()
    if (refused) await refuse()
    else if (!leaving() && !isFinished(first)) await run()
    await takeDown()
    await leave()
    over = true
  }

  function admissionRefuses(): boolean {
    if (isFinished(first)) return false
    return (ground.node()?.spec?.taints ?? []).some((taint) => taint.effect === 'NoExecute' && !tolerates(first.spec.tolerations, taint))
  }

  async function refuse(): Promise<void> {
    void patchStatus({
      phase: 'Failed', reason: 'TaintToleration',
      message: 'Pod was rejected: Predicate TaintToleration failed: node(s) had taints that the pod didn\'t tolerate',
    })
    if (!atStart) return
    // The volume manager starts beside the pod workers and does not know yet that this pod was refused.
    const list = (await volumes.resolve(first)) ?? []
    for (const volume of list) if (await volumes.attached(volume)) await volumes.mount(uid, podName(first), volume)
    await clock.wait(Math.max(0, ground.startedAt + startWindow - clock.now()))
  }

  async function run(): Promise<void> {
    const list = await prepareVolumes()
    if (list === undefined) return
    while (!ending() && !(await fetchToken())) await wait(deleteRetry)
    let pause: Ms = 0
    for (;;) {
      if (ending()) return
      while (!ending() && runtime.fault !== undefined) await wait(runtimeLook)
      if (ending()) return
      const container = runtime.containers.get(uid) ?? (await startContainer(list))
      if (container === undefined) continue
      const began = clock.now()
      void patchStatus(runningStatus(container))
      await until(() => ending() || container.ended())
      if (ending()) return
      restarts++
      void patchStatus({ containerStatuses: [containerStatus({ waiting: { reason: 'CrashLoopBackOff' } }, false)], conditions: conditions(false) })
      // As real kubelets: at once, then 10 s, doubled to five minutes; forgotten after ten good minutes.
      pause = clock.now() - began > 600_000 ? 0 : pause
      await rest(Math.max(pause, 500))
      pause = Math.min(Math.max(10_000, pause * 2), 300_000)
    }
  }

  async function prepareVolumes(): Promise<readonly KubeletVolume[] | undefined> {
    let list = await volumes.resolve(first)
    while (list === undefined) {
      await wait(volumeLook)
      if (ending()) return undefined
      list = await volumes.resolve(latest)
    }
    volumes.want(uid, list)
    for (const volume of list) {
      if (machine.mounts.has(volumePath(uid, volume.persistentVolume))) continue
      const starting = () => atStart && clock.now() - ground.startedAt < startWindow
      while (!((starting() && (await volumes.attached(volume))) || (await volumes.mayMount(volume, ground.reportedInUse())))) {
        await wait(volumeLook)
        if (ending()) return undefined
      }
      if (ending()) return undefined
      await volumes.mount(uid, podName(first), volume)
    }
    return list
  }

  /** Undefined: a plugin of the runtime refused it, and it is tried again. */
  async function startContainer(list: readonly KubeletVolume[]): Promise<Container | undefined> {
    await clock.wait(chance.between(...containerStart))
    if (runtime.asksPlugins() && await refusedByPlugins()) return undefined
    const container = runtime.run(
      { namespace: first.metadata.namespace ?? '', name: first.metadata.name, uid, identity: first.metadata.ownerReferences?.some(({ kind }) => kind === 'StatefulSet') ?? false },
      first.spec.containers[0]?.image ?? '',
      list.map(({ persistentVolume, handle }) => ({ path: volumePath(uid, persistentVolume), volume: handle })),
    )
    container.process.onEnd(() => process.deliver(() => ring?.()))
    return container
  }

  /** Kubelet tries again after a second, then every 10 to 15 (measured). */
  async function refusedByPlugins(): Promise<boolean> {
    const { namespace = '', name, annotations } = first.metadata
    const refusal = await process.hold(runtime.askPlugins({ namespace, name, uid, annotations: { ...annotations, 'kubernetes.io/config.source': 'api' } }))
    if (refusal === undefined) return false
    refusals += 1
    await wait(refusals === 1 ? 1_000 : chance.between(10_000, 15_000))
    return true
  }

  /** A token for the first projected volume that asks for one, bound to this pod; renewed at four fifths of its life. */
  async function fetchToken(): Promise<boolean> {
    const source = projectedToken(first)
    if (source === undefined || over) return true
    const asked = await api.create<{ status: { token: string } }>(
      `/api/v1/namespaces/${first.metadata.namespace}/serviceaccounts/${first.spec.serviceAccountName ?? 'default'}/token`,
      {
        apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest',
        spec: {
          ...(source.audience === undefined ? {} : { audiences: [source.audience] }), expirationSeconds: source.expirationSeconds ?? 3_600,
          boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: first.metadata.name, uid },
        },
      },
    )
    if (asked.ok) {
      const at = tokenPath(uid)
      machine.disk.set(at, asked.value.status.token)
      machine.mounts.set(at, { path: at, source: 'tmpfs tmpfs' })
    }
    const again = () => void fetchToken().then((got) => (got ? undefined : void clock.after(5_000, again)))
    if (asked.ok) clock.after((source.expirationSeconds ?? 3_600) * 800, again)
    return asked.ok
  }

  async function takeDown(): Promise<void> {
    const container = runtime.containers.get(uid)
    if (container !== undefined) {
      const seconds = pod === undefined ? graceOf(latest) : (latest.metadata.deletionGracePeriodSeconds ?? graceOf(latest))
      container.process.onEnd(() => process.deliver(() => ring?.()))
      while (runtime.fault !== undefined && !container.ended()) await clock.wait(runtimeLook)
      container.terminate(seconds * 1_000)
      await until(() => container.ended())
    }
    if (pod !== undefined && !refused && !isFinished(pod)) {
      await patchStatus({
        phase: 'Succeeded', conditions: conditions(false),
        containerStatuses: [containerStatus({ terminated: { exitCode: 0, reason: 'Completed', finishedAt: timestamp(clock.wall()) } }, false)],
      })
    }
    await volumes.unmount(uid)
  }

  /** Waits for the deletion of what is over, and ends it in the API. */
  async function leave(): Promise<void> {
    for (;;) {
      await until(() => leaving())
      if (pod === undefined) break
      const removed = await api.remove(path, { gracePeriodSeconds: 0, preconditions: { uid } })
      if (removed.ok || removed.error.kind === 'notFound' || removed.error.kind === 'conflict') break
      await wait(deleteRetry)
    }
    machine.disk.delete(tokenPath(uid))
    machine.mounts.delete(tokenPath(uid))
    machine.podFolders.delete(uid)
  }

  function leaving(): boolean {
    return pod === undefined || pod.metadata.deletionTimestamp !== undefined
  }

  /** Or somebody else has called it over, and this kubelet has looked at it since. */
  function ending(): boolean {
    return leaving() || (calledOverAt !== undefined && clock.now() >= calledOverAt)
  }

  function runningStatus(container: Container): PodObject['status'] & object {
    const { address } = machine.host
    return {
      phase: 'Running', hostIP: address, podIP: address, startTime: latest.status?.startTime ?? timestamp(clock.wall()), conditions: conditions(true),
      containerStatuses: [containerStatus(container.ended() ? {} : { running: { startedAt: timestamp(clock.wall()) } }, true)],
    }
  }

  function containerStatus(state: object, ready: boolean) {
    const { name = '', image = '' } = first.spec.containers[0] ?? {}
    return { name, image, imageID: `sim/${image}`, containerID: `sim://${uid}/${restarts}`, ready, started: ready, restartCount: restarts, state }
  }

  function conditions(ready: boolean): Condition[] {
    const now = timestamp(clock.wall())
    const status = ready ? 'True' : 'False'
    return [
      { type: 'PodScheduled', status: 'True', lastTransitionTime: now },
      { type: 'Initialized', status: 'True', lastTransitionTime: now },
      { type: 'ContainersReady', status, lastTransitionTime: now },
      { type: 'Ready', status, lastTransitionTime: now },
    ]
  }

  /** With the uid, so that a successor of the same name is never described by the words about its predecessor. */
  async function patchStatus(status: object): Promise<void> {
    for (let tries = 0; tries < statusTries; tries++) {
      const told = await api.patch(`${path}/status`, 'strategic', { metadata: { uid }, status })
      // A real kubelet brings the status in line every ten seconds; what did not arrive is told again, what was refused is not.
      if (told.ok || !mayHaveHappened(told.error)) return
      await clock.wait(statusAgain)
    }
  }

  async function until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      const untilLook = (calledOverAt ?? Infinity) - clock.now()
      await wait(untilLook > 0 ? Math.min(60_000, untilLook) : 60_000)
    }
  }

  /** What is told of the pod meanwhile, its own status first of all, makes it no shorter; that it is to end does. */
  async function rest(span: Ms): Promise<void> {
    const end = clock.now() + span
    while (!ending() && clock.now() < end) await wait(end - clock.now())
  }

  function wait(span: Ms): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        cancel()
        ring = undefined
        resolve()
      }
      const cancel = clock.after(span, done)
      ring = done
    })
  }
}

function graceOf(pod: PodObject): number {
  return pod.spec.terminationGracePeriodSeconds ?? usualGrace
}

function projectedToken(pod: PodObject): { audience?: string; expirationSeconds?: number } | undefined {
  for (const volume of pod.spec.volumes ?? []) {
    const projected = volume['projected'] as { sources?: { serviceAccountToken?: { audience?: string; expirationSeconds?: number } }[] } | undefined // the API's own shape
    const source = projected?.sources?.find(({ serviceAccountToken }) => serviceAccountToken !== undefined)?.serviceAccountToken
    if (source !== undefined) return source
  }
  return undefined
}

