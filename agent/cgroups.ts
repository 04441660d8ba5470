// The kernel's freezer of a container's control group: what no runtime ends stands still by it. The unified hierarchy has a file for it in
// each group; on the older ones it is a hierarchy of its own, and a host may have both: a runtime puts its containers into the older ones there,
// and into the unified one what the older ones have no freezer for. The group is looked for by its folder's name: what a process says of its
// own group is told from the reader's, and we have one of our own.
import { access, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'

/** A process stops where it returns from the kernel; one that sleeps there waits for its disk, perhaps for ever. Counted in looks: on a
 *  machine with no time to spare a second may pass between two of them. */
const looks = 20
const lookEvery: Ms = 50
/** Slices in slices, a pod's, a container's, and two more. */
const deepest = 8

/** By the id that the runtime gave the container, after which its group is named. `root`: of all hierarchies, and it may be written.
 *  Undefined: it stands still, with what is below it; else why it does not. */
export async function freezeGroup(root: string, clock: Clock, id: string): Promise<string | undefined> {
  if (!/^[\w-]{8,}$/.test(id)) return 'no control group can be told by its id'
  try {
    const found = await foundIn(await hierarchiesOf(root), id)
    if (typeof found === 'string') return found
    const { group, unified } = found
    for (let look = 0; look < looks; look++, await clock.wait(lookEvery)) {
      // Again at each look: the older freezer calls only those it finds, and who was being started then may have missed it.
      await writeFile(join(group, unified ? 'cgroup.freeze' : 'freezer.state'), unified ? '1' : 'FROZEN')
      const state = await readFile(join(group, unified ? 'cgroup.events' : 'freezer.state'), 'utf8')
      if (unified ? /^frozen 1$/m.test(state) : state.startsWith('FROZEN')) return undefined
    }
    return `told to stand still, and some of it sleeps in the kernel: ${group}`
  } catch (error) {
    return String(error).slice(0, 300) // it may not be written here, or has just ended: whoever asked tries again
  }
}

interface Hierarchy {
  readonly folder: string
  readonly unified: boolean
}

/** Those with a freezer, where the runtime would look first at the front. */
async function hierarchiesOf(root: string): Promise<readonly Hierarchy[]> {
  if (await isThere(join(root, 'cgroup.controllers'))) return [{ folder: root, unified: true }]
  const both: readonly Hierarchy[] = [{ folder: join(root, 'freezer'), unified: false }, { folder: join(root, 'unified'), unified: true }]
  const found = await Promise.all(both.map(({ folder }) => isThere(folder)))
  return both.filter((_, index) => found[index])
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(() => true, () => false)
}

async function foundIn(hierarchies: readonly Hierarchy[], id: string): Promise<{ readonly group: string; readonly unified: boolean } | string> {
  for (const { folder, unified } of hierarchies) {
    const group = await groupOf(folder, id)
    if (group !== undefined) return { group, unified }
  }
  return hierarchies.length === 0 ? 'no freezer of the kernel is here' : 'it has no control group here'
}

async function groupOf(folder: string, id: string, deep = 0): Promise<string | undefined> {
  const below = (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isDirectory()).map(({ name }) => name)
  const own = below.find((name) => name.includes(id))
  if (own !== undefined || deep === deepest) return own === undefined ? undefined : join(folder, own)
  for (const name of below) {
    const found = await groupOf(join(folder, name), id, deep + 1).catch(() => undefined) // it has just ended
    if (found !== undefined) return found
  }
  return undefined
}
