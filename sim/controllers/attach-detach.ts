// The attach/detach controller: it compares the volumes that pods on a node want with what is attached there.
//
// Kept of 1.36: a pod wants its volumes until it is gone, finished, or deleted with no container reported as running or waiting
// to run (so a pod stuck in Terminating whose last status says Running keeps its volume for ever, and the six minutes do not
// even begin); a volume is not detached while the node reports it in use, unless six minutes have passed *and* the node is not
// Ready, or the node bears out-of-service (any effect, Ready or not); before a detach it is struck from volumesAttached, and in
// the ordinary path volumesInUse is read live once more; ReadWriteOnce waits for every other node; passes of 100 ms; back-off
// from 500 ms to 122 s; a vanished VolumeAttachment is noticed once a minute; names are `csi-` and the hash of volume, driver
// and node. Left out: attach limits, RWX, migration of in-tree volumes, the disable flag's dead end with a deleted Node.
import type { Ms } from '../../core/model.ts'
import { attachmentName } from '../mounts.ts'
import {
  isFinished, isReady, timestamp, uniqueVolumeName, type AttachmentObject, type NodeObject, type PodObject,
} from '../objects.ts'
import type { ControllerGround } from './cache.ts'

export interface AttachDetachSettings {
  pass: Ms
  sync: Ms
  forceAfter: Ms
  forceOnTimeout: boolean
  /** It makes no pass and begins nothing, until it is let go. */
  stuck: boolean
}

export const usualAttachDetach: AttachDetachSettings = { pass: 100, sync: 60_000, forceAfter: 360_000, forceOnTimeout: true, stuck: false }

interface Wanted { readonly unique: string; readonly handle: string; readonly driver: string; readonly persistentVolume: string; readonly node: string; readonly pods: PodObject[] }

interface Attached extends Omit<Wanted, 'pods'> {
  /** `uncertain`: somebody began something before this process did, and nobody knows how far it came. */
  state: 'uncertain' | 'attaching' | 'attached' | 'detaching'
  /** The node says, or may still say, that it uses it. */
  mounted: boolean
  /** Named in the node's volumesAttached. */
  told: boolean
  unwantedSince: Ms | undefined
  pause: Ms
  notBefore: Ms
}

const outOfService = 'node.kubernetes.io/out-of-service'
const managed = 'volumes.kubernetes.io/controller-managed-attach-detach'
const firstPause: Ms = 500
const longestPause: Ms = 122_000
const operationLimit: Ms = 120_000
/** Without any news only time can change something: the six minutes, a back-off. */
const idlePass: Ms = 1_000

export function startAttachDetach({ clock, api, caches }: ControllerGround, settings: AttachDetachSettings): void {
  const actual = new Map<string, Attached>()
  const warned = new Set<string>()
  const turns = new Map<string, Promise<boolean>>()
  let news = true
  let wake: (() => void) | undefined

  const stir = () => {
    news = true
    wake?.()
  }
  caches.pods.listen(stir)
  caches.claims.listen(stir)
  caches.volumes.listen(stir)
  caches.attachments.listen(stir)
  caches.nodes.listen(({ type, object }) => {
    stir()
    if (type === 'deleted') return
    const inUse = new Set(object.status?.volumesInUse)
    for (const volume of actual.values()) if (volume.node === object.metadata.name) volume.mounted = inUse.has(volume.unique)
  })
  recall()
  void loop()
  void sync()

  /** After a start: what the API shows as attached is taken to be, until something says otherwise. What the node was not told of,
   *  or what is on its way in or out, is begun anew: attached once more where it is wanted, and told; else detached. */
  function recall(): void {
    for (const attachment of caches.attachments.items.values()) {
      const wanted = ofAttachment(attachment)
      if (wanted === undefined) continue
      const { volumesInUse = [], volumesAttached = [] } = caches.nodes.items.get(wanted.node)?.status ?? {}
      const told = volumesAttached.some(({ name }) => name === wanted.unique)
      const settled = told && attachment.status?.attached === true && attachment.metadata.deletionTimestamp === undefined
      actual.set(keyOf(wanted), {
        ...wanted, state: settled ? 'attached' : 'uncertain', mounted: volumesInUse.includes(wanted.unique), told, unwantedSince: undefined, pause: firstPause, notBefore: 0,
      })
    }
  }

  async function loop(): Promise<void> {
    for (;;) {
      while (settings.stuck) await clock.wait(idlePass)
      const open = pass()
      news = false
      await new Promise<void>((resolve) => {
        const cancel = clock.after(open ? idlePass : settings.sync, resolve)
        wake = () => {
          cancel()
          resolve()
        }
      })
      wake = undefined
      await clock.wait(settings.pass)
    }
  }

  /** True: something is left that only waits. */
  function pass(): boolean {
    const wanted = desired()
    for (const volume of actual.values()) {
      if (volume.state !== 'attached' && volume.state !== 'uncertain') continue
      if (wanted.has(keyOf(volume))) volume.unwantedSince = undefined
      else considerDetach(volume)
    }
    let open = [...actual.values()].some((volume) => (volume.state === 'attached' || volume.state === 'uncertain') && !wanted.has(keyOf(volume)))
    for (const volume of wanted.values()) {
      const there = actual.get(keyOf(volume))
      if (there?.state === 'attached' || there?.state === 'attaching') continue
      open = true
      if (there?.state === 'detaching') continue
      const elsewhere = [...actual.values()].filter((other) => other.unique === volume.unique && other.node !== volume.node)
      if (elsewhere.length > 0) warnMultiAttach(volume, elsewhere.map(({ node }) => node))
      else void attach(volume)
    }
    return open || news
  }

  function considerDetach(volume: Attached): void {
    volume.unwantedSince ??= clock.now()
    if (clock.now() < volume.notBefore) return
    const node = caches.nodes.items.get(volume.node)
    const healthy = node !== undefined && isReady(node)
    const forced = settings.forceOnTimeout && !healthy && clock.now() - volume.unwantedSince > settings.forceAfter
    const swept = (node?.spec?.taints ?? []).some(({ key }) => key === outOfService)
    if (volume.mounted && !forced && !swept) return
    void detach(volume, forced || swept)
  }

  async function detach(volume: Attached, unchecked: boolean): Promise<void> {
    volume.state = 'detaching'
    volume.told = false
    const detached = (await tellNode(volume.node)) && (unchecked || (await safeToDetach(volume))) && (await removeAttachment(volume))
    if (detached) {
      actual.delete(keyOf(volume))
      return stir()
    }
    volume.state = 'attached'
    volume.told = true
    backOff(volume)
    await tellNode(volume.node)
    stir()
  }

  async function safeToDetach({ node, unique }: Attached): Promise<boolean> {
    const live = await api.get<NodeObject>(`/api/v1/nodes/${node}`)
    if (!live.ok) return live.error.kind === 'notFound'
    return !(live.value.status?.volumesInUse ?? []).includes(unique)
  }

  async function removeAttachment({ handle, driver, node }: Attached): Promise<boolean> {
    const name = attachmentName(handle, driver, node)
    const removed = await api.remove(pathOf(name))
    if (!removed.ok && removed.error.kind !== 'notFound') return false
    return await whenCached(() => !caches.attachments.items.has(name))
  }

  async function attach(wanted: Wanted): Promise<void> {
    const { pods: _pods, ...rest } = wanted
    const told = actual.get(keyOf(wanted))?.told ?? false
    const volume: Attached = { ...rest, state: 'attaching', mounted: true, told, unwantedSince: undefined, pause: firstPause, notBefore: 0 }
    actual.set(keyOf(volume), volume)
    for (let pause = firstPause; ; pause = Math.min(pause * 2, longestPause)) {
      if (await createAttachment(volume)) break
      await clock.wait(pause)
      // Nobody wants it any more, and nothing of it is there.
      if (!desired().has(keyOf(volume)) && !caches.attachments.items.has(attachmentName(volume.handle, volume.driver, volume.node))) {
        actual.delete(keyOf(volume))
        return stir()
      }
    }
    // Taken to be in use until the node's next word says otherwise, as the real one does.
    volume.state = 'attached'
    volume.told = true
    await tellNode(volume.node)
    stir()
  }

  async function createAttachment({ handle, driver, node, persistentVolume }: Attached): Promise<boolean> {
    const name = attachmentName(handle, driver, node)
    const there = caches.attachments.items.get(name)
    if (there?.metadata.deletionTimestamp !== undefined) return false
    if (there === undefined) {
      const made = await api.create('/apis/storage.k8s.io/v1/volumeattachments', {
        apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata: { name },
        spec: { attacher: driver, nodeName: node, source: { persistentVolumeName: persistentVolume } },
      })
      if (!made.ok && made.error.kind !== 'conflict') return false
    }
    return await whenCached(() => caches.attachments.items.get(name)?.status?.attached === true)
  }

  /** Waits for what the cache is to show, as the real one watches the VolumeAttachment, and not for ever. */
  async function whenCached(holds: () => boolean): Promise<boolean> {
    const until = clock.now() + operationLimit
    while (!holds()) {
      if (clock.now() > until) return false
      await clock.wait(20)
    }
    return true
  }

  /** Writes into the node's status which volumes are attached, one write of a node after the other, as the real controller
   *  does: two on their way at once could arrive in the wrong order, and the older list would stay. */
  function tellNode(node: string): Promise<boolean> {
    const turn = (turns.get(node) ?? Promise.resolve(true)).then(() => writeAttached(node))
    turns.set(node, turn)
    return turn
  }

  async function writeAttached(node: string): Promise<boolean> {
    for (;;) {
      const volumesAttached = toldOf(node).map((name) => ({ name, devicePath: '' }))
      const told = await api.patch(`/api/v1/nodes/${node}/status`, 'merge', { status: { volumesAttached: volumesAttached.length > 0 ? volumesAttached : null } })
      if (told.ok || told.error.kind === 'notFound') return true
      // As the real one: its updater comes round again until the node's status says what is true.
      await clock.wait(firstPause)
    }
  }

  async function sync(): Promise<void> {
    for (;;) {
      await clock.wait(settings.sync)
      while (settings.stuck) await clock.wait(idlePass)
      for (const volume of actual.values()) {
        const there = caches.attachments.items.get(attachmentName(volume.handle, volume.driver, volume.node))
        if (volume.state !== 'attached' || there?.status?.attached === true) continue
        actual.delete(keyOf(volume))
        await tellNode(volume.node)
        stir()
      }
      for (const { metadata: { name }, status } of caches.nodes.items.values()) {
        const shown = (status?.volumesAttached ?? []).map((volume) => volume.name).toSorted()
        if (shown.join() !== toldOf(name).join()) await tellNode(name)
      }
    }
  }

  function toldOf(node: string): readonly string[] {
    return [...actual.values()].filter((volume) => volume.node === node && volume.told).map(({ unique }) => unique).toSorted()
  }

  function desired(): Map<string, Wanted> {
    const wanted = new Map<string, Wanted>()
    for (const pod of caches.pods.items.values()) {
      const node = pod.spec.nodeName
      if (node === undefined || isOver(pod) || caches.nodes.items.get(node)?.metadata.annotations?.[managed] !== 'true') continue
      for (const { persistentVolumeClaim } of pod.spec.volumes ?? []) {
        if (persistentVolumeClaim === undefined) continue
        const name = caches.claims.items.get(`${pod.metadata.namespace}/${persistentVolumeClaim.claimName}`)?.spec?.volumeName
        const csi = caches.volumes.items.get(name ?? '')?.spec?.csi
        if (name === undefined || csi === undefined) continue
        const volume: Wanted = { unique: uniqueVolumeName(csi.driver, csi.volumeHandle), handle: csi.volumeHandle, driver: csi.driver, persistentVolume: name, node, pods: [] }
        const known = wanted.get(keyOf(volume)) ?? volume
        known.pods.push(pod)
        wanted.set(keyOf(volume), known)
      }
    }
    return wanted
  }

  function ofAttachment({ spec }: AttachmentObject): Omit<Wanted, 'pods'> | undefined {
    const persistentVolume = spec.source.persistentVolumeName ?? ''
    const csi = caches.volumes.items.get(persistentVolume)?.spec?.csi
    if (csi === undefined) return undefined
    return { unique: uniqueVolumeName(csi.driver, csi.volumeHandle), handle: csi.volumeHandle, driver: csi.driver, persistentVolume, node: spec.nodeName }
  }

  function warnMultiAttach({ pods, handle }: Wanted, nodes: readonly string[]): void {
    for (const pod of pods) {
      const { uid = '', namespace, name } = pod.metadata
      if (warned.has(`${uid} ${handle}`)) continue
      warned.add(`${uid} ${handle}`)
      const now = timestamp(clock.wall())
      void api.create(`/api/v1/namespaces/${namespace}/events`, {
        apiVersion: 'v1', kind: 'Event', metadata: { name: `${name}.${uid.slice(0, 8)}.multi-attach`, namespace }, type: 'Warning',
        reason: 'FailedAttachVolume', source: { component: 'attachdetach-controller' }, count: 1, firstTimestamp: now, lastTimestamp: now,
        message: `Multi-Attach error for volume "${handle}" Volume is already exclusively attached to ${nodes.join(', ')} and can't be attached to another`,
        involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name, uid },
      })
    }
  }

  function backOff(volume: Attached): void {
    volume.notBefore = clock.now() + volume.pause
    volume.pause = Math.min(volume.pause * 2, longestPause)
  }
}

/** Upstream's IsPodTerminated: finished, or deleted and nothing of it known to run. */
function isOver(pod: PodObject): boolean {
  if (isFinished(pod)) return true
  if (pod.metadata.deletionTimestamp === undefined) return false
  return (pod.status?.containerStatuses ?? []).every(({ state }) => state?.terminated !== undefined || state?.waiting !== undefined)
}

function keyOf({ unique, node }: Pick<Wanted, 'unique' | 'node'>): string {
  return `${unique} ${node}`
}

function pathOf(name: string): string {
  return `/apis/storage.k8s.io/v1/volumeattachments/${name}`
}

