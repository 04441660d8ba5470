// What an agent reads of the host, as files of a folder: the kernel's own few, the mount table, the kubelet's pods. They follow
// the simulated machine. It has no loop device, and no process keeps a mount that the host has let go of.
import { mkdirSync, readdirSync, renameSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Ms } from '../../core/model.ts'
import { machineClock } from '../../edge/clock.ts'
import type { Machine } from '../../sim/machine.ts'

export interface HostFiles {
  readonly proc: string
  /** The file with the board's UUID. */
  readonly machine: string
  readonly pods: string
  readonly state: string
  readonly sys: string
  /** For the runtime's sockets. */
  readonly run: string
  /** At a boot: what does not change until the next one. */
  boot(): void
  /** Whatever the agent is to find beside the host's own. Whole or not at all, as a kubelet writes. */
  write(name: string, text: string): string
  close(): void
}

/** Mounts and pod folders are brought up to date this often; an agent looks far less often. */
const followEvery: Ms = 100

export function hostFiles(root: string, machine: Machine): HostFiles {
  const [proc, pods, state, sys, run] = ['proc', 'pods', 'state', 'sys', 'run'].map((name) => join(root, name)) as [string, string, string, string, string] // five in, five out
  const productUuid = join(sys, 'class/dmi/id/product_uuid')
  for (const folder of [proc, pods, state, join(sys, 'block'), run]) mkdirSync(folder, { recursive: true })
  let mounts: string | undefined
  let cancel = machineClock.after(followEvery, follow)

  return {
    proc, pods, state, sys, run, machine: productUuid,
    boot() {
      put(join(proc, 'sys/kernel/random/boot_id'), machine.read('boot-id'))
      put(join(proc, '1/stat'), machine.read('pid-1-stat'))
      put(join(proc, 'uptime'), machine.read('uptime'))
      put(productUuid, machine.read('machine'))
      bringUp()
    },
    write(name, text) {
      put(join(root, name), text)
      return join(root, name)
    },
    close: () => cancel(),
  }

  function follow(): void {
    bringUp()
    cancel = machineClock.after(followEvery, follow)
  }

  function bringUp(): void {
    const now = machine.read('mounts')
    if (now !== undefined && now !== mounts) {
      put(join(proc, '1/mountinfo'), now)
      mounts = now
    }
    const there = new Set(readdirSync(pods))
    for (const uid of machine.podFolders) if (!there.delete(uid)) mkdirSync(join(pods, uid))
    for (const uid of there) rmdirSync(join(pods, uid))
  }
}

function put(file: string, text: string | undefined): void {
  if (text === undefined) return
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}
