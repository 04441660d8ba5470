// The CSI external-attacher: it has the controller half of a driver attach what a VolumeAttachment asks for, and holds its
// finalizer until the volume is detached.
//
// Kept: the finalizer before the attach, `status.attached` after it, detach on deletion and the finalizer off last, errors in
// attachError and detachError with back-off from 1 s to 5 min, one operation a volume attachment at a time. Left out: the PV's
// finalizer, node ids other than the node's name, periodic reconciliation with the storage (ListVolumes).
import { createApi } from '../coordinator/api.ts'
import { reflect } from '../coordinator/reflector.ts'
import type { Transport } from '../coordinator/transport.ts'
import type { Ms } from '../core/model.ts'
import type { Log } from '../edge/log.ts'
import type { Chance } from './chance.ts'
import type { CsiController, CsiVolume } from './csi-controller.ts'
import { isShared, timestamp, type AttachmentObject, type VolumeObject } from './objects.ts'
import type { Process } from './process.ts'

export interface Attacher {
  readonly process: Process
  readonly transport: Transport
  /** Its name: whose attachments are meant. */
  readonly driver: string
  readonly controller: CsiController
  readonly chance: Chance
  readonly log: Log
}

const firstRetry: Ms = 1_000
const longestRetry: Ms = 300_000

/** It runs until its process ends. */
export function startAttacher({ process, transport, driver, controller, chance, log }: Attacher): void {
  const { clock } = process
  const api = createApi({ transport, clock, userAgent: 'external-attacher', rate: { perSecond: 200, burst: 400 } })
  const finalizer = `external-attacher/${driver.replaceAll('/', '-')}`
  const busy = new Set<string>()
  const latest = new Map<string, AttachmentObject>()
  // Attached by this process and not yet shown so by the watch: by uid, since the name comes again.
  const attached = new Set<string>()

  reflect<AttachmentObject>({
    api, clock, log, chance: () => chance.next(), path: '/apis/storage.k8s.io/v1/volumeattachments',
    changed({ type, object }) {
      if (object.spec.attacher !== driver) return
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
    const volume = await volumeOf(attachment)
    if (volume === undefined) return 'again'
    const refusal = await controller.publish(volume, attachment.spec.nodeName)
    if (refusal !== undefined) {
      await report(name, 'attachError', refusal)
      return 'again'
    }
    const told = await api.patch(`${path}/status`, 'merge', { metadata: { uid }, status: { attached: true, attachError: null } })
    if (told.ok) attached.add(uid)
    return told.ok || told.error.kind === 'notFound' ? 'settled' : 'again'
  }

  async function detach(attachment: AttachmentObject): Promise<'settled' | 'again'> {
    const { name, finalizers = [], uid } = attachment.metadata
    if (!finalizers.includes(finalizer)) return 'settled'
    const volume = await volumeOf(attachment)
    if (volume === undefined) return 'again'
    const refusal = await controller.unpublish(volume, attachment.spec.nodeName)
    if (refusal !== undefined) {
      await report(name, 'detachError', refusal)
      return 'again'
    }
    const now = await api.get<AttachmentObject>(pathOf(name))
    if (!now.ok) return now.error.kind === 'notFound' ? 'settled' : 'again'
    const left = (now.value.metadata.finalizers ?? []).filter((one) => one !== finalizer)
    const freed = await api.patch(pathOf(name), 'merge', { metadata: { uid, resourceVersion: now.value.metadata.resourceVersion, finalizers: left.length > 0 ? left : null } })
    return freed.ok || freed.error.kind === 'notFound' ? 'settled' : 'again'
  }

  async function volumeOf({ spec }: AttachmentObject): Promise<CsiVolume | undefined> {
    const volume = await api.get<VolumeObject>(`/api/v1/persistentvolumes/${spec.source.persistentVolumeName}`)
    return volume.ok && volume.value.spec?.csi?.driver === driver ? { handle: volume.value.spec.csi.volumeHandle, shared: isShared(volume.value) } : undefined
  }

  async function report(name: string, field: 'attachError' | 'detachError', message: string): Promise<void> {
    await api.patch(`${pathOf(name)}/status`, 'merge', { status: { [field]: { message, time: timestamp(clock.wall()) } } })
  }
}

function pathOf(name: string): string {
  return `/apis/storage.k8s.io/v1/volumeattachments/${name}`
}
