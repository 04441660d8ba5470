// Tables of the kernel about all processes: which mount namespaces there are and what is mounted in each, and what is behind the loop
// devices. Text alone; a process that ends while it is looked at is none.
import { readFile, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { LoopDevice, MountTable } from '../core/mounts.ts'

/** A node runs some hundred pods of a few containers. With more than this nobody could look at all of them in time. */
const mostTables = 4_000

/** Every mount namespace but pid 1's, once. To tell one from another takes the right to trace its processes. Without it one process of each
 *  cgroup stands for those that are not in the host's namespace: a container is one cgroup. Undefined: not all could be read. */
export async function readMountTables(proc: string): Promise<readonly MountTable[] | undefined> {
  try {
    const host = await readFile(join(proc, '1', 'mountinfo'), 'utf8')
    const seen = new Set<string | undefined>([await namespaceOf(proc, '1')])
    const tables: MountTable[] = []
    for (const process of (await readdir(proc)).filter((name) => /^\d+$/.test(name) && name !== '1')) {
      const cgroup = await unlessGone(readFile(join(proc, process, 'cgroup'), 'utf8'))
      if (cgroup === undefined) continue
      const namespace = await namespaceOf(proc, process)
      const kind = namespace ?? cgroup
      if (seen.has(kind)) continue
      const mountinfo = await unlessGone(readFile(join(proc, process, 'mountinfo'), 'utf8'))
      // A process that is dead and not yet buried has none; another of its namespace may stand for it.
      if (mountinfo === undefined || mountinfo === '') continue
      // A service of the host may have one process in a namespace of its own beside others that are not; threads of the kernel never.
      if (mountinfo !== host || namespace !== undefined || kernels.test(cgroup)) seen.add(kind)
      if (mountinfo === host) continue
      if (tables.length >= mostTables) return undefined
      const pod = podOfCgroup(cgroup)
      tables.push({ process: Number(process), mountinfo, ...(pod === undefined ? {} : { pod }) })
    }
    return tables
  } catch {
    return undefined // whoever asked says that he does not know
  }
}

/** The root of every hierarchy, which a reader in a cgroup namespace of its own sees as so many steps up. */
const kernels = /^(?:[^/\n]*:\/(?:\.\.\/)*(?:\.\.)?\n)+$/

async function namespaceOf(proc: string, process: string): Promise<string | undefined> {
  return await readlink(join(proc, process, 'ns', 'mnt')).catch(() => undefined)
}

const gone = new Set(['ENOENT', 'ESRCH', 'EINVAL'])

async function unlessGone(text: Promise<string>): Promise<string | undefined> {
  try {
    return await text
  } catch (error) {
    if (error instanceof Error && 'code' in error && gone.has(String(error.code))) return undefined
    throw error
  }
}

/** `/kubepods/burstable/pod<uid>/<id>`, or systemd's `kubepods-burstable-pod<uid with _>.slice/...`; a static pod's uid is a digest. */
export function podOfCgroup(cgroup: string): string | undefined {
  const [, uid] = /pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?=[./\n]|$)/.exec(cgroup) ?? []
  return uid?.replaceAll('_', '-')
}

export async function readLoopDevices(sys: string): Promise<readonly LoopDevice[] | undefined> {
  try {
    const names = (await readdir(join(sys, 'block'))).filter((name) => /^loop\d+$/.test(name))
    const read = await Promise.all(names.map(async (name) => {
      const file = await unlessGone(readFile(join(sys, 'block', name, 'loop', 'backing_file'), 'utf8'))
      return file === undefined ? [] : [{ name, file: file.replace(/\n$/, '') }]
    }))
    return read.flat()
  } catch {
    return undefined // likewise
  }
}
