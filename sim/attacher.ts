// The CSI external-attacher and the controller half of a driver: it attaches what a VolumeAttachment asks for, and holds its
// finalizer until the volume is detached.
//
// Kept: the finalizer before the attach, `status.attached` after it, detach on deletion and the finalizer off last, errors in
// attachError and detachError with back-off from 1 s to 5 min, one operation a volume attachment at a time; where it is wanted, a refusal to detach what is in use. Left out: the PV's
// finalizer, RWX, node ids other than the node's name, periodic reconciliation with the storage (ListVolumes).
import { createApi } from '../coordinator/api.ts'
import { reflect } from '../coordinator/reflector.ts'
import type { Transport } from '../coordinator/transport.ts'
import type { Ms } from '../core/model.ts'
import type { Log } from '../edge/log.ts'
import type { Chance } from './chance.ts'
import { timestamp, type AttachmentObject, type VolumeObject } from './objects.ts'
import type { Process } from './process.ts'
import type { Storage, Stretch } from './storage.ts'

export interface Attacher {
  readonly settings: AttacherSettings
}

/** All may be changed while it runs. */
export interface AttacherSettings {
  driver: string
  attachTime: Ms
  detachTime: Ms
  /** `stuck`: never ends. `error`: fails and says so. */
  attachFault: 'none' | 'stuck' | 'error'
  detachFault: 'none' | 'stuck' | 'error'
  /** As a driver that looks first: what is written from a node stays there, and comes to no other one meanwhile. */
  refusesInUse: boolean
}

/** What it asks of the storage: also of one whose writers stand elsewhere. */
export interface AttacherStorage extends Pick<Storage, 'attach' | 'detach'> {
  writersOf(volume: string, within: Ms): readonly Pick<Stretch, 'node' | 'pod'>[]
}

export const usualAttacher: AttacherSettings = {
  driver: 'csi.holdfast.dev', attachTime: 500, detachTime: 500, attachFault: 'none', detachFault: 'none', refusesInUse: false,
}

const firstRetry: Ms = 1_000
const longestRetry: Ms = 300_000
const stuckLook: Ms = 1_000
const writtenLately: Ms = 1_000

export function startAttacher(
  { process, transport, storage, chance, log }: { process: Process; transport: Transport; storage: AttacherStorage; chance: Chance; log: Log },
  wanted: Partial<AttacherSettings> = {},
): Attacher {
  const settings: AttacherSettings = { ...usualAttacher, ...wanted }
  const { clock } = process
  const api = createApi({ transport, clock, userAgent: 'external-attacher', rate: { perSecond: 200, burst: 400 } })
  const finalizer = `external-attacher/${settings.driver.replaceAll('/', '-')}`
  const busy = new Set<string>()
  const latest = new Map<string, AttachmentObject>()
  // Attached by this process and not yet shown so by the watch: by uid, since the name comes again.
  const attached = new Set<string>()

  reflect<AttachmentObject>({
    api, clock, log, chance: () => chance.next(), path: '/apis/storage.k8s.io/v1/volumeattachments',
    changed({ type, object }) {
      if (object.spec.attacher !== settings.driver) return
      const { name } = object.metadata
      if (type === 'deleted') {
        latest.delete(name)
        attached.delete(object.metadata.uid ?? '')
      } else {
        latest.set(name, object)
        void work(name)
      }
    },
  })
  return { settings }

  async function work(name: string): Promise<void> {
    if (busy.has(name)) return
    busy.add(name)
    let pause = firstRetry
    for (let attachment = latest.get(name); attachment !== undefined; attachment = latest.get(name)) {
      const settled = attachment.metadata.deletionTimestamp === undefined ? await attach(attachment) : await detach(attachment)
      if (settled === 'settled' && latest.get(name) === attachment) break
      if (settled === 'settled') pause = firstRetry
      else {
        await clock.wait(pause)
        pause = Math.min(pause * 2, longestRetry)
      }
    }
    busy.delete(name)
  }

  async function attach(attachment: AttachmentObject): Promise<'settled' | 'again'> {
    const { name, finalizers = [], uid = '' } = attachment.metadata
    if (attachment.status?.attached === true || attached.has(uid)) return 'settled'
    const path = pathOf(name)
    if (!finalizers.includes(finalizer)) {
      const held = await api.patch<AttachmentObject>(path, 'merge', { metadata: { uid, resourceVersion: attachment.metadata.resourceVersion, finalizers: [...finalizers, finalizer] } })
      if (!held.ok) return held.error.kind === 'notFound' ? 'settled' : 'again'
    }
    const handle = await handleOf(attachment)
    if (handle === undefined) return 'again'
    while (settings.attachFault === 'stuck') await clock.wait(stuckLook)
    await clock.wait(settings.attachTime)
    if (settings.attachFault === 'error') {
      await report(name, 'attachError', 'the driver refused: simulated fault')
      return 'again'
    }
    // The controller that asks counts a volume whose detach has failed among those that nobody has.
    const user = settings.refusesInUse ? storage.writersOf(handle, writtenLately).find(({ node }) => node !== attachment.spec.nodeName) : undefined
    if (user !== undefined) {
      await report(name, 'attachError', `the driver refused: ${handle} is in use by ${user.pod} on ${user.node}`)
      return 'again'
    }
    storage.attach(handle, attachment.spec.nodeName)
    const told = await api.patch(`${path}/status`, 'merge', { metadata: { uid }, status: { attached: true, attachError: null } })
    if (told.ok) attached.add(uid)
    return told.ok || told.error.kind === 'notFound' ? 'settled' : 'again'
  }

  async function detach(attachment: AttachmentObject): Promise<'settled' | 'again'> {
    const { name, finalizers = [], uid } = attachment.metadata
    if (!finalizers.includes(finalizer)) return 'settled'
    const handle = await handleOf(attachment)
    if (handle === undefined) return 'again'
    while (settings.detachFault === 'stuck') await clock.wait(stuckLook)
    await clock.wait(settings.detachTime)
    if (settings.detachFault === 'error') {
      await report(name, 'detachError', 'the driver refused: simulated fault')
      return 'again'
    }
    const user = settings.refusesInUse ? storage.writersOf(handle, writtenLately).find(({ node }) => node === attachment.spec.nodeName) : undefined
    if (user !== undefined) {
      await report(name, 'detachError', `the driver refused: ${handle} is in use by ${user.pod} on ${user.node}`)
      return 'again'
    }
    storage.detach(handle, attachment.spec.nodeName)
    const now = await api.get<AttachmentObject>(pathOf(name))
    if (!now.ok) return now.error.kind === 'notFound' ? 'settled' : 'again'
    const left = (now.value.metadata.finalizers ?? []).filter((one) => one !== finalizer)
    const freed = await api.patch(pathOf(name), 'merge', { metadata: { uid, resourceVersion: now.value.metadata.resourceVersion, finalizers: left.length > 0 ? left : null } })
    return freed.ok || freed.error.kind === 'notFound' ? 'settled' : 'again'
  }

  async function handleOf({ spec }: AttachmentObject): Promise<string | undefined> {
    const volume = await api.get<VolumeObject>(`/api/v1/persistentvolumes/${spec.source.persistentVolumeName}`)
    return volume.ok && volume.value.spec?.csi?.driver === settings.driver ? volume.value.spec.csi.volumeHandle : undefined
  }

  async function report(name: string, field: 'attachError' | 'detachError', message: string): Promise<void> {
    await api.patch(`${pathOf(name)}/status`, 'merge', { status: { [field]: { message, time: timestamp(clock.wall()) } } })
  }
}

function pathOf(name: string): string {
  return `/apis/storage.k8s.io/v1/volumeattachments/${name}`
}
