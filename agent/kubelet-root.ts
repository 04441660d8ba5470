// Where the host's own mount table has kubelet's folder. A setting may name a symbolic link (MicroK8s ships one, and whoever moves the folder to a larger disk leaves one
// behind), and in the agent's container there is no link any more: the runtime followed it and put there what it led to. The table knows no links. So it is told by what the
// kernel says of both sides: the file system that the folder is on and its path within that, which our own table tells, and where the host has just that, which its own does.
//
// By a root that is not the table's own not one mount would be kubelet's, and a node would be found clean of what it is full of.
import { readFile, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { isOfTheApi, readMounts, type HostTables } from '../core/mounts.ts'

/** Undefined: it cannot be told. `proc`: the host's. */
export async function placeOnHost(folder: string, proc: string): Promise<string | undefined> {
  try {
    const [real, own, host] = await Promise.all([realpath(folder), readFile(join(proc, 'self', 'mountinfo'), 'utf8'), readFile(join(proc, '1', 'mountinfo'), 'utf8')])
    return asHostSpells(real, own, host)
  } catch {
    return undefined // whoever asked says that he does not know
  }
}

/** `own`, `host`: mount tables. Undefined: the host has it nowhere. */
export function asHostSpells(path: string, own: string, host: string): string | undefined {
  if (own === host) return path // a process of the host's
  const mine = holderOf(path, rowsOf(own))
  if (mine === undefined) return undefined
  const within = joined(mine.root, below(mine.path, path) ?? '')
  const rows = rowsOf(host)
  const places = rows.flatMap((row) => {
    const rest = row.device === mine.device ? below(row.root, within) : undefined
    const place = rest === undefined ? undefined : joined(row.path, rest)
    // What lies below another mount is not to be seen there.
    return place !== undefined && holderOf(place, rows) === row ? [place] : []
  })
  // The host may have it more than once, by a mount of the folder elsewhere: kubelet's is where something is mounted below.
  const best = (some: readonly string[]): string | undefined => (some.includes(path) ? path : some[0])
  return best(places.filter((place) => rows.some((row) => row.path.startsWith(`${place}/`)))) ?? best(places)
}

/** Kubelet mounts something for nearly every pod of the API, our own among them. Of a static pod it often mounts nothing. */
export function hidesMounts({ mountinfo = '', podFolders = [], kubeletRoot, belonging = new Set() }: HostTables): boolean {
  const read = readMounts(mountinfo)
  return 'mounts' in read && podFolders.some((pod) => isOfTheApi(pod) && belonging.has(pod)) && !read.mounts.some(({ path }) => path.startsWith(`${kubeletRoot}/`))
}

interface Row {
  readonly device: string
  /** What of the file system is mounted. */
  readonly root: string
  readonly path: string
}

/** id, parent, major:minor, root, mount point, ... */
function rowsOf(table: string): readonly Row[] {
  return table.split('\n').flatMap((line): readonly Row[] => {
    const [, , device, root, path] = line.split(' ', 5)
    return device === undefined || root === undefined || path === undefined ? [] : [{ device, root: unescaped(root), path: unescaped(path) }]
  })
}

/** The kernel writes what would break its columns as three octal digits. */
function unescaped(path: string): string {
  return path.includes('\\') ? path.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8))) : path
}

/** The mount that a path lies on: the deepest, and of two at one place the later, which covers the other. */
function holderOf(path: string, rows: readonly Row[]): Row | undefined {
  return rows.reduce<Row | undefined>((deepest, row) => (below(row.path, path) !== undefined && row.path.length >= (deepest?.path.length ?? 0) ? row : deepest), undefined)
}

/** The rest of the path, `/pods`; empty where it is the folder itself. Undefined: it is elsewhere. */
function below(folder: string, path: string): string | undefined {
  if (folder === '/') return path === '/' ? '' : path
  return path === folder || path.startsWith(`${folder}/`) ? path.slice(folder.length) : undefined
}

function joined(folder: string, rest: string): string {
  return rest === '' ? folder : `${folder === '/' ? '' : folder}${rest}`
}
