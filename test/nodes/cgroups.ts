// The control groups of a machine: one in each hierarchy of cgroup v1, below one of the lab's own, so that several kubelets do
// not fight over /kubepods. They say what belongs to a machine, and the freezer among them stops it.
import { existsSync, mkdirSync, readFileSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { kill } from 'node:process'

const hierarchies = '/sys/fs/cgroup'
/** What containerd, runc and kubelet ask for on v1. */
export const controllers = ['cpu', 'cpuacct', 'cpuset', 'memory', 'devices', 'freezer', 'blkio', 'pids', 'systemd'] as const

export interface Groups {
  /** Files into which a process writes its own pid to belong to the machine, with all that it starts. */
  readonly doors: readonly string[]
  /** Of every process of the machine, those in its containers too. */
  pids(): readonly number[]
  freeze(): void
  /** Not what was frozen within. */
  thaw(): void
  /** Kills whatever stands still, the whole machine or what its own agent has frozen on it. Nothing frozen dies, and what thaws first would run on until it is killed. */
  killFrozen(): void
  remove(): void
}

/** Why there can be no machines on this computer, or undefined. */
export function missingControllers(): string | undefined {
  const missing = controllers.filter((controller) => !existsSync(join(hierarchies, controller, 'cgroup.procs')))
  return missing.length === 0 ? undefined : `no cgroup v1 hierarchy for ${missing.join(', ')} below ${hierarchies}`
}

export function createGroups(lab: string, machine: string): Groups {
  const folders = controllers.map((controller) => join(hierarchies, controller, lab, machine))
  for (const folder of folders) mkdirSync(folder, { recursive: true })
  // A cpuset takes nobody in before it has processors and memory, which it does not inherit.
  for (const folder of [lab, join(lab, machine)]) {
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      writeFileSync(join(hierarchies, 'cpuset', folder, file), readFileSync(join(hierarchies, 'cpuset', folder, '..', file)))
    }
  }
  const freezer = join(hierarchies, 'freezer', lab, machine)
  return {
    doors: folders.map((folder) => join(folder, 'cgroup.procs')),
    pids: () => within(freezer).flatMap(pidsIn),
    freeze: () => writeFileSync(join(freezer, 'freezer.state'), 'FROZEN'),
    thaw: () => writeFileSync(join(freezer, 'freezer.state'), 'THAWED'),
    killFrozen: () => killFrozenIn(freezer),
    // Deepest first: only empty groups can be removed, and a leftover costs the next boot's kubelet three seconds each.
    remove: () => folders.forEach((folder) => within(folder).toReversed().forEach((one) => rmdirSync(one))),
  }
}

/** Of every machine that a test has left behind: the end of the room would wait for them for ever. */
export function killAllFrozen(lab: string): void {
  killFrozenIn(join(hierarchies, 'freezer', lab))
}

function killFrozenIn(freezer: string): void {
  const still = within(freezer).filter((folder) => textOf(folder, 'freezer.state').startsWith('FR'))
  for (const pid of still.flatMap(pidsIn)) {
    try {
      kill(pid, 'SIGKILL')
    } catch {
      // It has just ended: not all of a group that is still freezing stands still.
    }
  }
  for (const folder of still) if (existsSync(folder)) writeFileSync(join(folder, 'freezer.state'), 'THAWED')
}

function pidsIn(folder: string): readonly number[] {
  return textOf(folder, 'cgroup.procs').split('\n').map(Number).filter((pid) => pid > 0)
}

function textOf(folder: string, file: string): string {
  try {
    return readFileSync(join(folder, file), 'utf8')
  } catch {
    return '' // whoever made the group has just removed it
  }
}

function within(folder: string): readonly string[] {
  if (!existsSync(folder)) return []
  return [folder, ...readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory()).flatMap(({ name }) => within(join(folder, name)))]
}
