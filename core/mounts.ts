// Is anything left on this node of pods that do not belong there? Read from text alone: the host's mount table and those of the other
// mount namespaces, the names of the pod folders, the loop devices, and what the runtime says it runs. Nothing here touches a mount,
// because a dead server behind one would hang whoever does. What could not be read makes the whole answer unknown: half a look finds
// half of what is left.
//
// What kubelet leaves behind, all under its root: a pod's own mounts (pods/<uid>/volumes, pods/<uid>/volume-subpaths), its
// folder, the staging mount that the pods of one node share (plugins/kubernetes.io/csi/<driver>/<hash>/globalmount: kubelet
// forgets it after a crash at the wrong moment), and for block volumes bind mounts of the device (volumeDevices).
// A staging mount belongs while a pod that belongs has the same device mounted; the device's number tells.
//
// A copy leaks where a container was started with kubelet's folder, or a volume, in its own mount namespace, and the host let go of it
// since: the device stays busy and can be written to. It is told by its path under kubelet's root, or, elsewhere, by a disk or a server
// that the host itself does not know any more, unless the process is of a pod that belongs: what that one mounts is its own.
import type { CleanReport, Leftover } from './beat.ts'
import { mostLeftovers } from './frame.ts'

export interface HostTables {
  /** Text of /proc/1/mountinfo: the host's table, not the one of our own container. */
  readonly mountinfo: string | undefined
  /** Names in the kubelet's pods folder: pod uids, of static pods their config hashes. */
  readonly podFolders: readonly string[] | undefined
  /** As the host's mount table spells it. */
  readonly kubeletRoot: string
  readonly containers: readonly ContainerSeen[] | { readonly failed: string }
  readonly mountTables: readonly MountTable[] | undefined
  readonly loopDevices: readonly LoopDevice[] | undefined
  /** Undefined: nobody told yet which pods belong. */
  readonly belonging: ReadonlySet<string> | undefined
}

/** A container, or the sandbox of a pod, that the runtime does not call over. */
export interface ContainerSeen {
  readonly id: string
  /** For people: `namespace/pod`, and the container where it is one. */
  readonly name: string
  /** Uid of its pod; empty where the runtime does not tell. */
  readonly pod: string
  /** The pod's own, which its containers live in. */
  readonly sandbox?: true
  /** When it was made, by this machine's own wall clock. Undefined: the runtime does not tell. */
  readonly since?: number
  /** Its pod bears the annotation by which it passes a gate that is shut. */
  readonly tolerates?: true
}

/** Kubelet's name for a pod from a file is a digest; the API server's are UUIDs. */
export function isOfTheApi(pod: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(pod)
}

/** Of one mount namespace, as one of its processes sees it. */
export interface MountTable {
  readonly process: number
  /** Uid of the pod whose cgroup the process is in. */
  readonly pod?: string
  readonly mountinfo: string
}

export interface LoopDevice {
  /** `loop7`. */
  readonly name: string
  /** The file behind it. */
  readonly file: string
}

export function cleanReport(tables: HostTables): CleanReport {
  const { belonging } = tables
  if (belonging === undefined) return { state: 'unknown', reason: 'no list of the pods that belong here was received' }
  const left = leftOn(tables, belonging)
  return 'state' in left ? left : judged(left)
}

/** What is there of pods that do not belong, with what is needed to end it. */
export interface LeftOn {
  readonly containers: readonly ContainerSeen[]
  readonly places: readonly Place[]
  readonly loops: readonly LoopLeft[]
  /** Volumes of pods that belong, too. */
  readonly all: readonly Place[]
  /** Copies in other mount namespaces, and folders of pods: nothing that an agent could end. */
  readonly leaks: readonly Leftover[]
  readonly folders: readonly Leftover[]
}

export interface LoopLeft {
  readonly device: LoopDevice
  readonly pod: string
  readonly volume?: string
}

/** A report: it cannot be told. */
export function leftOn(tables: HostTables, belonging: ReadonlySet<string>): LeftOn | CleanReport {
  const whole = readWhole(tables)
  if ('state' in whole) return whole
  const { mounts, podFolders, containers, mountTables, loopDevices } = whole
  const kubeletRoot = tables.kubeletRoot.replace(/\/+$/, '')
  const places = mounts.flatMap((mount) => placed(mount, kubeletRoot))
  const alive = new Set(places.filter((place) => place.pod !== undefined && belonging.has(place.pod)).map((place) => place.device))
  const left = (place: Place): boolean => (place.pod === undefined ? !alive.has(place.device) : !belonging.has(place.pod))
  const known = new Set(mounts.map(({ device }) => device))
  const leaks = mountTables.map((table) => leaked(table, { kubeletRoot, belonging, left, known }))
  const unread = leaks.find((leak) => 'fault' in leak)
  if (unread !== undefined) return { state: 'unknown', reason: unread.fault }
  return {
    containers: containers.filter(({ pod }) => !belonging.has(pod)), places: places.filter(left), all: places,
    loops: loopDevices.flatMap((device) => looped(device, kubeletRoot, belonging)),
    leaks: leaks.flatMap((leak) => ('fault' in leak ? [] : leak.leftovers)),
    folders: podFolders.filter((pod) => !belonging.has(pod)).map((pod) => ({ kind: 'pod directory', path: `${kubeletRoot}/pods/${pod}`, pod })),
  }
}

/** What can be said of a node whose pods nobody can name: that nothing runs there that is older than its boot. Mounts and loop devices
 *  end with the boot that made them. */
export function bootReport(tables: HostTables, bootedAt: number): CleanReport {
  const whole = readWhole(tables)
  if ('state' in whole) return whole
  const older = whole.containers.filter(({ since }) => since === undefined || since < bootedAt)
  return older.length === 0 ? { state: 'clean' } : { state: 'dirty', leftovers: told(older.map(containerLeft)) }
}

interface WholeTables {
  readonly mounts: readonly Mount[]
  readonly podFolders: readonly string[]
  readonly containers: readonly ContainerSeen[]
  readonly mountTables: readonly MountTable[]
  readonly loopDevices: readonly LoopDevice[]
}

/** Half a look finds half of what is left. */
function readWhole({ mountinfo, podFolders, containers, mountTables, loopDevices }: HostTables): WholeTables | CleanReport {
  if (mountinfo === undefined) return { state: 'unknown', reason: 'the mount table of the host cannot be read' }
  if (podFolders === undefined) return { state: 'unknown', reason: 'the folder of pods cannot be read' }
  if ('failed' in containers) return { state: 'unknown', reason: `the container runtime did not say what it runs: ${containers.failed}` }
  if (mountTables === undefined) return { state: 'unknown', reason: 'the mount tables of the containers cannot be read' }
  if (loopDevices === undefined) return { state: 'unknown', reason: 'the loop devices cannot be read' }
  const read = readMounts(mountinfo)
  return 'fault' in read ? { state: 'unknown', reason: read.fault } : { mounts: read.mounts, podFolders, containers, mountTables, loopDevices }
}

/** In the order in which they have to go: what runs holds the mounts, and those hold the devices. */
function judged({ containers, places, loops, leaks, folders }: LeftOn): CleanReport {
  const leftovers = [...containers.map(containerLeft), ...places.map(leftoverOf), ...leaks, ...loops.map(loopLeft), ...folders]
  return leftovers.length === 0 ? { state: 'clean' } : { state: 'dirty', leftovers: told(leftovers) }
}

function containerLeft({ id, name, pod }: ContainerSeen): Leftover {
  return { kind: 'container', path: containerPath({ id, name }), ...owner(pod === '' ? undefined : pod) }
}

export function containerPath({ id, name }: Pick<ContainerSeen, 'id' | 'name'>): string {
  return `${name} ${id.slice(0, 13)}`
}

/** Paths of pods are as long as their owners like, and a report that fits no frame would end the link: the node would be silent over it. */
const longestPath = 512
const longestReport = 48_000
/** What is read beside a staging mount comes to its leftover afterwards. */
const longestName = 512
/** And to each a driver's name, and since when it is left over. */
const longestWhose = 110

/** As many as fit, one in any case; the rest is found when these are gone. */
function told(leftovers: readonly Leftover[]): readonly Leftover[] {
  let size = 0
  const cut = leftovers.slice(0, mostLeftovers).map((leftover) => ({ ...leftover, path: toldPath(leftover.path) }))
  const fits = cut.findIndex((leftover, index) => {
    size += sizeOf(leftover) + longestWhose + (leftover.kind === 'staging' ? longestName : 0)
    return index > 0 && size > longestReport
  })
  return fits === -1 ? cut : cut.slice(0, fits)
}

export function toldPath(path: string): string {
  return path.slice(0, longestPath)
}

function sizeOf(value: object): number {
  return utf8.encode(JSON.stringify(value)).length
}

const utf8 = new TextEncoder()

interface Around {
  readonly kubeletRoot: string
  readonly belonging: ReadonlySet<string>
  left(place: Place): boolean
  /** Devices in the host's own table. */
  readonly known: ReadonlySet<string>
}

function leaked({ process, pod, mountinfo }: MountTable, { kubeletRoot, belonging, left, known }: Around): { readonly leftovers: readonly Leftover[] } | { readonly fault: string } {
  const mounts = readMounts(mountinfo)
  if ('fault' in mounts) return { fault: `of process ${process}: ${mounts.fault}` }
  const own = pod !== undefined && belonging.has(pod)
  const copies = mounts.mounts.flatMap((mount): readonly Leftover[] => {
    const places = placed({ ...mount, path: asOnHost(mount.path, kubeletRoot) }, kubeletRoot)
    if (places.length > 0) return places.filter(left).map(leftoverOf)
    return own || known.has(mount.device) || !lasting(mount) ? [] : [{ kind: 'leaked mount', path: mount.path, ...owner(pod) }]
  })
  return { leftovers: copies.map((copy) => ({ ...copy, kind: 'leaked mount', path: `${copy.path} in process ${process}` })) }
}

/** A container may have the host's folders anywhere: `/host/var/lib/kubelet/pods/...`. */
function asOnHost(path: string, kubeletRoot: string): string {
  const [, below] = /(\/pods\/[^/]+\/(?:volumes|volume-subpaths|volumeDevices)\/.*|\/plugins\/kubernetes\.io\/.*)$/.exec(path) ?? []
  return below === undefined ? path : `${kubeletRoot}${below}`
}

/** Kubelet keeps a loop device on the file through which a pod has a block volume, so that nobody else may have it meanwhile. */
function looped(device: LoopDevice, kubeletRoot: string, belonging: ReadonlySet<string>): readonly LoopLeft[] {
  return placed({ device: device.name, path: device.file.replace(/ \(deleted\)$/, ''), type: '' }, kubeletRoot)
    .flatMap(({ pod, volume }): readonly LoopLeft[] => (pod === undefined || belonging.has(pod) ? [] : [{ device, pod, ...(volume === undefined ? {} : { volume }) }]))
}

function loopLeft({ device, pod, volume }: LoopLeft): Leftover {
  return { kind: 'loop device', path: loopPath(device), ...owner(pod), ...named(volume) }
}

export function loopPath({ name, file }: LoopDevice): string {
  return `${name} on ${file}`
}

/** What other machines could write to as well: a block device, or a server. All else ends with its namespace. */
function lasting({ device, type }: Mount): boolean {
  return !device.startsWith('0:') || servers.test(type)
}

/** Of the many that stand on fuse a few are known to be of this machine alone. */
const servers = /^(nfs4?|cifs|smb3|ceph|9p|glusterfs|lustre|beegfs|gpfs|afs|fuse(\.(?!fuse-overlayfs$|lxcfs$|portal$|gvfsd-fuse$|squashfuse$|snapfuse$).+)?)$/

export interface Mount {
  /** `major:minor`. */
  readonly device: string
  readonly path: string
  /** The file system, `ext4`; empty where the table does not say. */
  readonly type: string
}

/** One line that cannot be read could be the one that matters: then nothing is known. */
export function readMounts(mountinfo: string): { readonly mounts: readonly Mount[] } | { readonly fault: string } {
  const mounts: Mount[] = []
  for (const line of mountinfo.split('\n')) {
    if (line === '') continue
    // id, parent, major:minor, root, mount point, options, tags of any number, a dash, file system, ...
    const parts = line.split(' ')
    const [, , device, , path] = parts
    const dash = parts.indexOf('-', 6)
    if (device === undefined || path === undefined || !/^\d+:\d+$/.test(device) || !path.startsWith('/')) {
      return { fault: `a line of the mount table cannot be read: ${line.slice(0, 200)}` }
    }
    mounts.push({ device, path: unescaped(path), type: dash === -1 ? '' : parts[dash + 1] ?? '' })
  }
  return mounts.length === 0 ? { fault: 'the mount table is empty' } : { mounts }
}

/** The kernel writes space, tab, newline and backslash of a path as three octal digits, bytes of UTF-8 as they are. */
function unescaped(path: string): string {
  return path.includes('\\') ? path.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8))) : path
}

/** A mount that tells of a pod's volume. */
export interface Place {
  readonly kind: Leftover['kind']
  readonly device: string
  readonly path: string
  /** Undefined: shared by the pods that use the same device. */
  readonly pod?: string
  readonly volume?: string
  /** Of a plugin that is kubelet's own; a CSI driver's name is in no path of a pod. */
  readonly driver?: string
}

/** What kubelet makes of the API's own data and of scratch space: it dies with the pod and nobody else writes to it. */
const harmless = new Set(['secret', 'configmap', 'projected', 'downward-api', 'empty-dir'].map((kind) => `kubernetes.io~${kind}`))

function placed(mount: Mount, root: string): readonly Place[] {
  if (!mount.path.startsWith(`${root}/`)) return []
  const parts = mount.path.slice(root.length + 1).split('/')
  if (parts[0] === 'pods') return podPlace(mount, parts)
  if (parts[0] === 'plugins' && parts[1] === 'kubernetes.io') return parts[3] === 'volumeDevices' || parts[2] === 'volumeDevices' ? blockPlace(mount, parts) : stagingPlace(mount, parts)
  return []
}

/** pods/<uid>/volumes/<plugin>/<volume>[/mount], pods/<uid>/volume-subpaths/<volume>/..., pods/<uid>/volumeDevices/<plugin>/<volume>.
 *  A mount anywhere else in a pod's folder is none that kubelet makes: better one name too many than one too few. */
function podPlace({ device, path }: Mount, [, pod, folder, plugin, volume]: readonly string[]): readonly Place[] {
  if (pod === undefined) return []
  if (folder === 'volumes') return plugin !== undefined && harmless.has(plugin) ? [] : [{ kind: 'mount', device, path, pod, ...named(volume), ...madeBy(plugin) }]
  if (folder === 'volume-subpaths') return [{ kind: 'mount', device, path, pod, ...named(plugin) }]
  if (folder === 'volumeDevices') return [{ kind: 'block volume', device, path, pod, ...named(volume) }]
  return [{ kind: 'mount', device, path, pod }]
}

/** plugins/kubernetes.io/csi/volumeDevices/{publish/<volume>/<pod>, staging/<volume>, <volume>/dev/<pod>}; other plugins keep
 *  theirs one folder higher. The device node's file system is the same for all, so a staging belongs with its publication. */
function blockPlace({ device, path }: Mount, parts: readonly string[]): readonly Place[] {
  const [first, second, third] = parts.slice(parts.indexOf('volumeDevices') + 1)
  if (first === 'publish') return [{ kind: 'block volume', device: blockDevice(device, second), path, ...owner(third), ...named(second) }]
  if (first === 'staging') return [{ kind: 'block volume', device: blockDevice(device, second), path, ...named(second) }]
  if (second === 'dev') return [{ kind: 'block volume', device: blockDevice(device, first), path, ...owner(third), ...named(first) }]
  return [{ kind: 'block volume', device: blockDevice(device, first), path, ...named(first) }]
}

function blockDevice(device: string, volume: string | undefined): string {
  return `${device} ${volume ?? ''}`
}

/** plugins/kubernetes.io/csi/<driver>/<hash>/globalmount, and every other plugin's own shared mount. */
function stagingPlace({ device, path }: Mount, parts: readonly string[]): readonly Place[] {
  return [{ kind: 'staging', device, path, ...named(parts.slice(2, 5).join('/')) }]
}

function named(volume: string | undefined): { readonly volume?: string } {
  return volume === undefined || volume === '' ? {} : { volume: volume.slice(0, 256) }
}

function owner(pod: string | undefined): { readonly pod?: string } {
  return pod === undefined ? {} : { pod: pod.slice(0, 128) }
}

/** `kubernetes.io~nfs` is how kubelet writes a plugin's name as a folder's. */
function madeBy(plugin: string | undefined): { readonly driver?: string } {
  return plugin === undefined || plugin === csiPlugin || !driverWord.test(plugin) ? {} : { driver: plugin.replace('~', '/') }
}

const csiPlugin = 'kubernetes.io~csi'
/** As long as Kubernetes lets one be. */
const driverWord = /^[\w.~-]{1,63}$/

function leftoverOf({ kind, path, pod, volume, driver }: Place): Leftover {
  return { kind, path, ...owner(pod), ...named(volume), ...(driver === undefined ? {} : { driver }) }
}

/** A CSI driver's staging mount itself, or a pod's own mount of its volume: their folders are kubelet's own, and it keeps there whose they are. What is mounted below may
 *  belong to a server that is dead. */
export function isOfCsi(path: string): boolean {
  return /\/plugins\/kubernetes\.io\/csi\/[^/]+\/[^/]+\/globalmount$/.test(path) || /\/pods\/[^/]+\/volumes\/kubernetes\.io~csi\/[^/]+\/mount$/.test(path)
}

/** What kubelet wrote beside the mount adds to what its path tells. A pod's mount has its volume's name in its path already, by which people know it. */
export function withName(leftover: Leftover, volData: string): Leftover {
  const name = stagedName(volData)
  if (name === undefined || leftover.kind === 'staging') return { ...leftover, ...name }
  return name.driver === undefined || !driverWord.test(name.driver) ? leftover : { ...leftover, driver: name.driver }
}

/** The driver and its name of a volume. Undefined: nothing that names one. */
export function stagedName(volData: string): Pick<Leftover, 'driver' | 'volume'> | undefined {
  let value: unknown
  try {
    value = JSON.parse(volData)
  } catch {
    return undefined // cut short by a crash: the folder's own name is said
  }
  if (typeof value !== 'object' || value === null || !('driverName' in value) || !('volumeHandle' in value)) return undefined
  const { driverName, volumeHandle } = value
  if (typeof driverName !== 'string' || typeof volumeHandle !== 'string') return undefined
  const name = { driver: driverName.slice(0, 64), volume: volumeHandle.slice(0, 128) }
  return sizeOf(name) > longestName ? undefined : name
}
