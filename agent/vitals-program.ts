// The program that tells a node's vitals: one line of JSON, and it ends. Run by agent/vitals.ts, which kills it where it hangs; a bundle of its
// own, so that the library stays out of the agent's. What cannot be told is left out.
import { readFile, readdir, statfs } from 'node:fs/promises'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { argv } from 'node:process'
import { cpuTemperature, currentLoad, mem } from 'systeminformation'
import type { Vitals } from '../core/vitals.ts'

if (import.meta.main) {
  setPriority(19)
  console.log(JSON.stringify(await lookAt(argv[2] ?? '/', '/sys')))
}

async function lookAt(folder: string, sys: string): Promise<Vitals> {
  const [memory, load, heat, files] = await Promise.all([mem(), currentLoad(), cpuTemperature(), filesOf(folder)])
  // The library asks a shell for it, and an image need not have one.
  const temperature = heat.max ?? await hottest(join(sys, 'class', 'thermal'))
  return {
    ...files, memory: share(memory.total - memory.available, memory.total), load: load.avgLoad,
    ...(temperature === undefined || temperature <= 0 ? {} : { temperature }),
  }
}

/** Of this one file system alone: the library runs df, which asks every mount of the node, and hangs at the first whose server is gone. */
async function filesOf(folder: string): Promise<Pick<Vitals, 'disk' | 'inodes'>> {
  const { blocks, bfree, bavail, files, ffree } = await statfs(folder)
  const used = blocks - bfree
  // As df has it: what only root may still take is not free.
  return { ...(used + bavail === 0 ? {} : { disk: share(used, used + bavail) }), ...(files === 0 ? {} : { inodes: share(files - ffree, files) }) }
}

async function hottest(folder: string): Promise<number | undefined> {
  const zones = await readdir(folder).catch(() => [])
  const told = await Promise.all(zones.filter((zone) => zone.startsWith('thermal_zone')).map((zone) => readFile(join(folder, zone, 'temp'), 'utf8').catch(() => '')))
  const degrees = told.map((text) => Number.parseInt(text, 10) / 1_000).filter((value) => Number.isFinite(value))
  return degrees.length === 0 ? undefined : Math.max(...degrees)
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.round((part / whole) * 1_000) / 10
}
