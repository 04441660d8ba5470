// What a machine's kernel has mounted, in the shapes in which a kubelet and a CSI node plugin leave it.
import { createHash } from 'node:crypto'

export interface Mount {
  readonly path: string
  /** `ext4 /dev/vdb`, `tmpfs tmpfs`. */
  readonly source: string
  /** The volume behind it, where it is one of the storage's. */
  readonly volume?: string
  /** Of that volume. */
  readonly driver?: string
}

export const kubeletRoot = '/var/lib/kubelet'

export function stagingPath(driver: string, volume: string): string {
  return `${kubeletRoot}/plugins/kubernetes.io/csi/${driver}/${sha256(volume)}/globalmount`
}

export function isStaged({ path }: Mount): boolean {
  return path.startsWith(`${kubeletRoot}/plugins/`)
}

export function volumePath(podUid: string, persistentVolume: string): string {
  return `${kubeletRoot}/pods/${podUid}/volumes/kubernetes.io~csi/${persistentVolume}/mount`
}

export function tokenPath(podUid: string): string {
  return `${kubeletRoot}/pods/${podUid}/volumes/kubernetes.io~projected/kube-api-access`
}

/** The name that the attach/detach controller and every kubelet compute for one attachment. */
export function attachmentName(volume: string, driver: string, node: string): string {
  return `csi-${sha256(`${volume}${driver}${node}`)}`
}

/** As /proc/1/mountinfo: the machine's own mounts first, as on any machine. */
export function mountInfo(mounts: Iterable<Mount>): string {
  const own: Mount[] = [
    { path: '/', source: 'ext4 /dev/vda1' },
    { path: '/proc', source: 'proc proc' },
    { path: '/sys', source: 'sysfs sysfs' },
    { path: '/run', source: 'tmpfs tmpfs' },
  ]
  const devices = new Map<string, number>()
  return [...own, ...mounts].map(({ path, source }, index) => {
    // One source, one device number: a bind mount of a volume elsewhere is known by it.
    const minor = devices.get(source) ?? devices.size
    devices.set(source, minor)
    const device = source.includes('/dev/') ? `253:${minor}` : `0:${minor + 20}`
    return `${index + 20} ${index === 0 ? 1 : 20} ${device} / ${escaped(path)} rw,relatime shared:${index + 1} - ${source} rw\n`
  }).join('')
}

/** As the kernel writes what would break its columns. */
function escaped(path: string): string {
  return path.replace(/[\\ \t\n]/g, (letter) => `\\${(letter.codePointAt(0) ?? 0).toString(8).padStart(3, '0')}`)
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
