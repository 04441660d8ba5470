// Is anything left on this node of pods that do not belong there? Read from text alone: the host's mount table and the names
// of the pod folders. Nothing here touches a mount, because a dead server behind one would hang whoever does.
//
// What kubelet leaves behind, all under its root: a pod's own mounts (pods/<uid>/volumes, pods/<uid>/volume-subpaths), its
// folder, the staging mount that the pods of one node share (plugins/kubernetes.io/csi/<driver>/<hash>/globalmount: kubelet
// forgets it after a crash at the wrong moment), and for block volumes bind mounts of the device (volumeDevices).
// A staging mount belongs while a pod that belongs has the same device mounted; the device's number tells.
import type { CleanReport, Leftover } from './beat.ts'
import { mostLeftovers } from './frame.ts'

export interface HostTables {
  /** Text of /proc/1/mountinfo: the host's table, not the one of our own container. */
  readonly mountinfo: string | undefined
  /** Names in the kubelet's pods folder: pod uids, of static pods their config hashes. */
  readonly podFolders: readonly string[] | undefined
  /** As the host's mount table spells it. */
  readonly kubeletRoot: string
  /** Undefined: nobody told yet which pods belong. */
  readonly belonging: ReadonlySet<string> | undefined
}

export function cleanReport({ mountinfo, podFolders, kubeletRoot, belonging }: HostTables): CleanReport {
  if (belonging === undefined) return { state: 'unknown', reason: 'no list of the pods that belong here was received' }
  if (mountinfo === undefined) return { state: 'unknown', reason: 'the mount table of the host cannot be read' }
  if (podFolders === undefined) return { state: 'unknown', reason: 'the folder of pods cannot be read' }
  const mounts = readMounts(mountinfo)
  if ('fault' in mounts) return { state: 'unknown', reason: mounts.fault }
  const places = mounts.mounts.flatMap((mount) => placed(mount, kubeletRoot.replace(/\/+$/, '')))
  const alive = new Set(places.filter((place) => place.pod !== undefined && belonging.has(place.pod)).map((place) => place.device))
  const leftovers = [
    ...places.filter((place) => (place.pod === undefined ? !alive.has(place.device) : !belonging.has(place.pod))).map(leftoverOf),
    ...podFolders.filter((pod) => !belonging.has(pod)).map((pod): Leftover => ({ kind: 'pod directory', path: `${kubeletRoot}/pods/${pod}`, pod })),
  ]
  return leftovers.length === 0 ? { state: 'clean' } : { state: 'dirty', leftovers: leftovers.slice(0, mostLeftovers) }
}

export interface Mount {
  /** `major:minor`. */
  readonly device: string
  readonly path: string
}

/** One line that cannot be read could be the one that matters: then nothing is known. */
export function readMounts(mountinfo: string): { readonly mounts: readonly Mount[] } | { readonly fault: string } {
  const mounts: Mount[] = []
  for (const line of mountinfo.split('\n')) {
    if (line === '') continue
    // id, parent, major:minor, root, mount point, ...
    const [, , device, , path] = line.split(' ')
    if (device === undefined || path === undefined || !/^\d+:\d+$/.test(device) || !path.startsWith('/')) {
      return { fault: `a line of the mount table cannot be read: ${line.slice(0, 200)}` }
    }
    mounts.push({ device, path: unescaped(path) })
  }
  return mounts.length === 0 ? { fault: 'the mount table is empty' } : { mounts }
}

/** The kernel writes space, tab, newline and backslash of a path as three octal digits, bytes of UTF-8 as they are. */
function unescaped(path: string): string {
  return path.includes('\\') ? path.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8))) : path
}

/** A mount that tells of a pod's volume. */
interface Place {
  readonly kind: Leftover['kind']
  readonly device: string
  readonly path: string
  /** Undefined: shared by the pods that use the same device. */
  readonly pod?: string
  readonly volume?: string
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
  if (folder === 'volumes') return plugin !== undefined && harmless.has(plugin) ? [] : [{ kind: 'mount', device, path, pod, ...named(volume) }]
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
  return pod === undefined ? {} : { pod }
}

function leftoverOf({ kind, path, pod, volume }: Place): Leftover {
  return { kind, path, ...owner(pod), ...named(volume) }
}
