// The attach/detach controller: it compares the volumes that pods on a node want with what is attached there.
//
// Kept of 1.36: a pod wants its volumes until it is gone, finished, or deleted with no container reported as running or waiting
// to run (so a pod stuck in Terminating whose last status says Running keeps its volume for ever, and the six minutes do not
// even begin); a volume is not detached while the node reports it in use, unless six minutes have passed *and* the node is not
// Ready, or the node bears out-of-service (any effect, Ready or not); before a detach it is struck from volumesAttached, and in
// the ordinary path volumesInUse is read live once more; an attach or a detach that failed, by the word of the attacher, by that
// reading or after two minutes without a word, leaves the volume *uncertain* on its node: it is not named in volumesAttached, it is
// detached again where nobody wants it, and it keeps no other node from it, since ReadWriteOnce waits for confirmed attachments
// only; one operation a volume at a time, whatever the node; back-off from 500 ms to 122 s, begun anew when the other operation has
// its turn; passes of 100 ms; a vanished VolumeAttachment is noticed once a minute; after a start what the nodes' statuses name is
// confirmed, and a VolumeAttachment beside it uncertain; what is ReadWriteMany waits for no other node, each of which has operations of its
// own; what a pod wants of a Node that was deleted under it is wanted as long as the pod is there, and what such a Node last said that it
// uses stands; names are `csi-` and the hash of volume, driver and node. Left out: attach limits, migration of in-tree volumes, the disable flag's dead end with a deleted Node.
import type { Ms } from '../../core/model.ts'
import { attachmentName } from '../mounts.ts'
import {
  isFinished, isReady, isShared, timestamp, uniqueVolumeName, volumeOfUniqueName, type NodeObject, type PodObject,
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

/** A volume on a node. */
interface Place {
  readonly unique: string
  readonly handle: string
  readonly driver: string
  readonly node: string
  /** Not known of what a start finds in a node's status alone. */
  readonly shared: boolean
}

interface Wanted extends Place { readonly persistentVolume: string; readonly pods: PodObject[] }

interface Attached extends Place {
  /** False: what was begun there has failed, and nobody knows how far it came. */
  confirmed: boolean
  /** The node says, or may still say, that it uses it. */
  mounted: boolean
  /** Named in the node's volumesAttached. */
  told: boolean
  unwantedSince: Ms | undefined
}

/** The latest one of a volume, kept until one has succeeded. */
interface Operation {
  readonly name: 'attach' | 'detach'
  pending: boolean
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
  const operations = new Map<string, Operation>()
  const warned = new Set<string>()
  const turns = new Map<string, Promise<boolean>>()
  /** Nodes whose volumes this controller attaches, be they gone since. */
  const managedNodes = new Set<string>()
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
    noteNode(object)
    const inUse = new Set(object.status?.volumesInUse)
    for (const volume of actual.values()) if (volume.node === object.metadata.name) volume.mounted = inUse.has(volume.unique)
  })
  recall()
  void loop()
  void sync()

  function noteNode({ metadata: { name, annotations } }: NodeObject): void {
    if (annotations?.[managed] === 'true') managedNodes.add(name)
    else managedNodes.delete(name)
  }

  function recall(): void {
    for (const object of caches.nodes.items.values()) {
      noteNode(object)
      const { metadata: { name: node }, status } = object
      const inUse = new Set(status?.volumesInUse)
      for (const { name: unique } of status?.volumesAttached ?? []) {
        const volume = volumeOfUniqueName(unique)
        if (volume !== undefined) note({ unique, node, ...volume, shared: false }, { confirmed: true, told: true, mounted: inUse.has(unique) })
      }
    }
    for (const { spec } of caches.attachments.items.values()) {
      const volume = caches.volumes.items.get(spec.source.persistentVolumeName ?? '')
      const csi = volume?.spec?.csi
      if (volume === undefined || csi === undefined) continue
      const { driver, volumeHandle: handle } = csi
      const place: Place = { unique: uniqueVolumeName(driver, handle), handle, driver, node: spec.nodeName, shared: isShared(volume) }
      if (!actual.has(keyOf(place))) note(place, { confirmed: false })
    }
  }

  /** What came newly is taken to be in use until the node's next word says otherwise. */
  function note({ unique, handle, driver, node, shared }: Place, known: Pick<Attached, 'confirmed'> & Partial<Attached>): void {
    const place: Place = { unique, handle, driver, node, shared }
    actual.set(keyOf(place), { mounted: true, told: false, unwantedSince: undefined, ...actual.get(keyOf(place)), ...place, ...known })
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
      if (!wanted.has(keyOf(volume))) considerDetach(volume)
      else if (volume.confirmed) volume.unwantedSince = undefined
    }
    for (const volume of wanted.values()) {
      if (actual.get(keyOf(volume))?.confirmed !== true) considerAttach(volume)
    }
    const settled = [...wanted.keys()].every((key) => actual.get(key)?.confirmed === true) && [...actual.keys()].every((key) => wanted.has(key))
    return !settled || news
  }

  function considerDetach(volume: Attached): void {
    if (!mayBegin(volume, 'detach')) return
    volume.unwantedSince ??= clock.now()
    const node = caches.nodes.items.get(volume.node)
    const healthy = node !== undefined && isReady(node)
    const late = settings.forceOnTimeout && clock.now() - volume.unwantedSince > settings.forceAfter
    const swept = (node?.spec?.taints ?? []).some(({ key }) => key === outOfService)
    if (volume.mounted && !(late && !healthy) && !swept) return
    void operate(volume, 'detach', () => detach(volume, late || swept))
  }

  function considerAttach(volume: Wanted): void {
    if (operations.get(operationOf(volume))?.pending === true) return
    const elsewhere = volume.shared ? [] : [...actual.values()].filter((other) => other.unique === volume.unique && other.confirmed)
    if (elsewhere.length > 0) warnMultiAttach(volume, elsewhere.map(({ node }) => node))
    else if (mayBegin(volume, 'attach')) void operate(volume, 'attach', () => attach(volume))
  }

  function mayBegin(place: Place, name: Operation['name']): boolean {
    const latest = operations.get(operationOf(place))
    return latest === undefined || (!latest.pending && (latest.name !== name || clock.now() > latest.notBefore))
  }

  /** `skipped`: it was not begun, for want of a write, and nothing is known to have changed. */
  async function operate(place: Place, name: Operation['name'], work: () => Promise<'done' | 'failed' | 'skipped'>): Promise<void> {
    const key = operationOf(place)
    const latest = operations.get(key)
    const operation: Operation = { name, pending: true, pause: latest?.name === name ? latest.pause : firstPause, notBefore: 0 }
    operations.set(key, operation)
    const end = await work()
    operation.pending = false
    if (end === 'done') operations.delete(key)
    if (end === 'failed') {
      operation.notBefore = clock.now() + operation.pause
      operation.pause = Math.min(operation.pause * 2, longestPause)
    }
    stir()
  }

  async function detach(volume: Attached, unchecked: boolean): Promise<'done' | 'failed' | 'skipped'> {
    if (volume.told) {
      volume.told = false
      if (!(await tellNode(volume.node, 'once'))) {
        volume.told = true
        await tellNode(volume.node)
        return 'skipped'
      }
    }
    if ((unchecked || (await safeToDetach(volume))) && (await removeAttachment(volume))) {
      actual.delete(keyOf(volume))
      return 'done'
    }
    note(volume, { confirmed: false })
    return 'failed'
  }

  async function safeToDetach({ node, unique }: Attached): Promise<boolean> {
    const live = await api.get<NodeObject>(`/api/v1/nodes/${node}`)
    if (!live.ok) return live.error.kind === 'notFound'
    return !(live.value.status?.volumesInUse ?? []).includes(unique)
  }

  async function removeAttachment({ handle, driver, node }: Attached): Promise<boolean> {
    const name = attachmentName(handle, driver, node)
    const removed = await api.remove(pathOf(name))
    if (!removed.ok) return removed.error.kind === 'notFound'
    return await whenCached(() => {
      const there = caches.attachments.items.get(name)
      if (there === undefined) return 'done'
      return there.status?.detachError == null ? undefined : 'failed'
    })
  }

  async function attach(wanted: Wanted): Promise<'done' | 'failed'> {
    const confirmed = await createAttachment(wanted)
    if (!confirmed) {
      note(wanted, { confirmed })
      return 'failed'
    }
    note(wanted, { confirmed, told: true })
    await tellNode(wanted.node)
    return 'done'
  }

  async function createAttachment({ handle, driver, node, persistentVolume }: Wanted): Promise<boolean> {
    const name = attachmentName(handle, driver, node)
    if (!caches.attachments.items.has(name)) {
      const made = await api.create('/apis/storage.k8s.io/v1/volumeattachments', {
        apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata: { name },
        spec: { attacher: driver, nodeName: node, source: { persistentVolumeName: persistentVolume } },
      })
      if (!made.ok && made.error.kind !== 'conflict') return false
    }
    return await whenCached(() => {
      const there = caches.attachments.items.get(name)
      if (there === undefined) return undefined
      if (there.metadata.deletionTimestamp !== undefined) return 'failed'
      if (there.status?.attached === true) return 'done'
      return there.status?.attachError == null ? undefined : 'failed'
    })
  }

  /** Waits for what the cache is to show, as the real one watches the VolumeAttachment, and not for ever. */
  async function whenCached(look: () => 'done' | 'failed' | undefined): Promise<boolean> {
    const until = clock.now() + operationLimit
    for (;;) {
      const seen = look()
      if (seen !== undefined || clock.now() > until) return seen === 'done'
      await clock.wait(20)
    }
  }

  /** Writes into the node's status which volumes are attached, one write of a node after the other, as the real controller
   *  does: two on their way at once could arrive in the wrong order, and the older list would stay. */
  function tellNode(node: string, times: 'once' | 'until told' = 'until told'): Promise<boolean> {
    const turn = (turns.get(node) ?? Promise.resolve(true)).then(() => writeAttached(node, times))
    turns.set(node, turn)
    return turn
  }

  async function writeAttached(node: string, times: 'once' | 'until told'): Promise<boolean> {
    for (;;) {
      const volumesAttached = toldOf(node).map((name) => ({ name, devicePath: '' }))
      const told = await api.patch(`/api/v1/nodes/${node}/status`, 'merge', { status: { volumesAttached: volumesAttached.length > 0 ? volumesAttached : null } })
      if (told.ok || told.error.kind === 'notFound') return true
      if (times === 'once') return false
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
        if (!volume.confirmed || there?.status?.attached === true) continue
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
      if (node === undefined || isOver(pod) || !managedNodes.has(node)) continue
      for (const { persistentVolumeClaim } of pod.spec.volumes ?? []) {
        if (persistentVolumeClaim === undefined) continue
        const name = caches.claims.items.get(`${pod.metadata.namespace}/${persistentVolumeClaim.claimName}`)?.spec?.volumeName
        const bound = caches.volumes.items.get(name ?? '')
        const csi = bound?.spec?.csi
        if (name === undefined || bound === undefined || csi === undefined) continue
        const volume: Wanted = {
          shared: isShared(bound), unique: uniqueVolumeName(csi.driver, csi.volumeHandle), handle: csi.volumeHandle, driver: csi.driver, persistentVolume: name, node, pods: [],
        }
        const known = wanted.get(keyOf(volume)) ?? volume
        known.pods.push(pod)
        wanted.set(keyOf(volume), known)
      }
    }
    return wanted
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
}

/** Upstream's IsPodTerminated: finished, or deleted and nothing of it known to run. */
function isOver(pod: PodObject): boolean {
  if (isFinished(pod)) return true
  if (pod.metadata.deletionTimestamp === undefined) return false
  return (pod.status?.containerStatuses ?? []).every(({ state }) => state?.terminated !== undefined || state?.waiting !== undefined)
}

function keyOf({ unique, node }: Pick<Place, 'unique' | 'node'>): string {
  return `${unique} ${node}`
}

/** Of a volume that only one node may have there is one at a time, whatever the node. */
function operationOf({ unique, node, shared }: Place): string {
  return shared ? keyOf({ unique, node }) : unique
}

function pathOf(name: string): string {
  return `/apis/storage.k8s.io/v1/volumeattachments/${name}`
}

