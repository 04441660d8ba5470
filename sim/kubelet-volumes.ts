// A kubelet's volumes: which it wants, which are mounted, what may be mounted now.
//
// Kept: a volume is mounted only once the kubelet has reported it in use, the node's status names it as attached, and its
// VolumeAttachment says so; at the kubelet's own start the VolumeAttachment alone decides, and for about a second the volumes
// of every bound pod are mounted, also of pods that admission has just refused (measured on 1.36). Staging first, then the
// pod's own mount; a journal replayed at staging is a write. What was mounted before the kubelet started is found by its paths.
// Left out: the growing back-offs between two looks (a steady pace instead), block volumes, drivers without attachment.
import type { Api } from '../coordinator/api.ts'
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Chance } from './chance.ts'
import type { Machine } from './machine.ts'
import { attachmentName, kubeletRoot, stagingPath, volumePath } from './mounts.ts'
import { uniqueVolumeName, type AttachmentObject, type ClaimObject, type NodeObject, type PodObject, type VolumeObject } from './objects.ts'
import type { Storage } from './storage.ts'

export interface KubeletVolume {
  readonly persistentVolume: string
  readonly handle: string
  readonly driver: string
  readonly unique: string
}

export interface KubeletVolumes {
  /** The volumes of the pod's claims; undefined while a claim is not bound or cannot be read. */
  resolve(pod: PodObject): Promise<readonly KubeletVolume[] | undefined>
  /** Wanted from now on: reported in use at the next status. */
  want(podUid: string, volumes: readonly KubeletVolume[]): void
  mayMount(volume: KubeletVolume, reported: ReadonlySet<string>): Promise<boolean>
  attached(volume: KubeletVolume): Promise<boolean>
  mount(podUid: string, pod: string, volume: KubeletVolume): Promise<void>
  /** Takes down whatever is mounted for the pod. */
  unmount(podUid: string): Promise<void>
  inUse(): readonly string[]
  /** Pods that have something mounted. */
  mountedPods(): readonly string[]
}

/** What goes wrong with mounts and folders on a node; may be changed at any time. */
export interface MountFaults {
  /** `hangs`: it never ends. `forgets staging`: the pod's own mount goes, the staged one stays and is known to nobody. */
  unmount: 'well' | 'hangs' | 'forgets staging'
  /** What a boot finds of pods before it. `folders`: those of orphans are not removed, as where something is in them that the kubelet
   *  will not delete. `staged mounts`: somebody beside the kubelet makes them again, without a write. */
  kept: 'nothing' | 'folders' | 'staged mounts'
}

const mountTime: readonly [Ms, Ms] = [40, 200]
const hangLook: Ms = 1_000

export function kubeletVolumes(
  { machine, clock, chance, api, storage, drivers, faults }:
  { machine: Machine; clock: Clock; chance: Chance; api: Api; storage: Storage; drivers: readonly string[]; faults: MountFaults },
): KubeletVolumes {
  const wanted = new Map<string, readonly KubeletVolume[]>()
  const volumes = `${kubeletRoot}/pods/`

  const podMounts = () => [...machine.mounts.values()].filter(({ path, volume }) => volume !== undefined && path.startsWith(volumes))
  const podOf = (path: string) => path.slice(volumes.length).split('/')[0] ?? ''

  const attached = async ({ handle, driver }: KubeletVolume) => {
    const read = await api.get<AttachmentObject>(`/apis/storage.k8s.io/v1/volumeattachments/${attachmentName(handle, driver, machine.name)}`)
    return read.ok && read.value.status?.attached === true
  }

  return {
    attached,
    async resolve({ metadata: { namespace }, spec }) {
      const found: KubeletVolume[] = []
      for (const { persistentVolumeClaim } of spec.volumes ?? []) {
        if (persistentVolumeClaim === undefined) continue
        const claim = await api.get<ClaimObject>(`/api/v1/namespaces/${namespace}/persistentvolumeclaims/${persistentVolumeClaim.claimName}`)
        if (!claim.ok || claim.value.spec?.volumeName === undefined || claim.value.status?.phase !== 'Bound') return undefined
        const volume = await api.get<VolumeObject>(`/api/v1/persistentvolumes/${claim.value.spec.volumeName}`)
        if (!volume.ok) return undefined
        const csi = volume.value.spec?.csi
        if (csi === undefined || !drivers.includes(csi.driver)) continue
        const { driver, volumeHandle: handle } = csi
        found.push({ persistentVolume: volume.value.metadata.name, handle, driver, unique: uniqueVolumeName(driver, handle) })
      }
      return found
    },
    want(podUid, list) {
      wanted.set(podUid, list)
    },
    async mayMount(volume, reported) {
      if (!reported.has(volume.unique) || !storage.reaches(machine.name, volume.handle)) return false
      const node = await api.get<NodeObject>(`/api/v1/nodes/${machine.name}`)
      if (!node.ok || !(node.value.status?.volumesAttached ?? []).some(({ name }) => name === volume.unique)) return false
      return await attached(volume)
    },
    async mount(podUid, pod, { handle, driver, persistentVolume }) {
      const source = `ext4 /dev/disk/by-id/${handle}`
      const staging = stagingPath(driver, handle)
      await clock.wait(chance.between(...mountTime))
      if (!machine.mounts.has(staging)) {
        machine.mounts.set(staging, { path: staging, source, volume: handle, driver })
        storage.write(handle, { node: machine.name, boot: machine.boot()?.id ?? '', pod, podUid }, 'mount')
      }
      const path = volumePath(podUid, persistentVolume)
      machine.mounts.set(path, { path, source, volume: handle, driver })
    },
    async unmount(podUid) {
      for (const { path, volume, driver = '' } of podMounts().filter((mount) => podOf(mount.path) === podUid)) {
        while (faults.unmount === 'hangs') await clock.wait(hangLook)
        await clock.wait(chance.between(...mountTime))
        machine.mounts.delete(path)
        if (volume === undefined || faults.unmount === 'forgets staging' || podMounts().some((mount) => mount.volume === volume)) continue
        await clock.wait(chance.between(...mountTime))
        machine.mounts.delete(stagingPath(driver, volume))
      }
      wanted.delete(podUid)
    },
    inUse() {
      const names = [...wanted.values()].flat().map(({ unique }) => unique)
      // By the pods' own mounts: a staged one without a pod is the leak that a real kubelet has, too.
      for (const { volume, driver } of podMounts()) if (volume !== undefined && driver !== undefined) names.push(uniqueVolumeName(driver, volume))
      return [...new Set(names)].toSorted()
    },
    mountedPods: () => [...new Set(podMounts().map(({ path }) => podOf(path)))],
  }
}
