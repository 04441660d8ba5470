// A machine of the lab: processes in namespaces of their own with a disk that outlives them. Its power is its cable and its process 1:
// that killed, the kernel ends everything in it at once, containers and all.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { kill } from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Ms } from '../../core/model.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { startComponent, type Component } from '../control-plane/component.ts'
import { createGroups, type Groups } from './cgroups.ts'
import { command } from './command.ts'
import { addressOf, plugIn, setCable, unplug } from './network.ts'

export interface Machine {
  readonly name: string
  readonly index: number
  readonly address: string
  readonly machineId: string
  /** Its root disk, as seen from outside. */
  readonly disk: string
  /** A frozen machine is on, and a power controller says so. */
  power(): 'on' | 'off'
  /** Of this boot, or of the last one while it is off. */
  bootId(): string
  /** The same disk, another boot. */
  powerOn(): Promise<void>
  /** Resolves when nothing of it runs any more. What was not written is lost with it, but for what went through the file cache of
   *  this computer. */
  powerOff(): Promise<void>
  /** Its kernel stands still: nothing in it runs, and nobody gets an answer. */
  freeze(): Promise<void>
  /** Of a machine that lost its power meanwhile there is nothing to thaw. */
  thaw(): Promise<void>
  /** Cut, its containers run on. */
  cutCable(): Promise<void>
  mendCable(): Promise<void>
  /** As root on the machine. */
  run(words: readonly string[], deadline?: Ms): Promise<string>
  /** SIGKILL to a service that its init keeps, and whether init may start it again. */
  killService(service: 'kubelet' | 'containerd', then: 'starts again' | 'stays away'): Promise<void>
  startService(service: 'kubelet' | 'containerd'): Promise<void>
}

export interface MachineSettings {
  readonly name: string
  readonly index: number
  readonly machineId: string
  /** Names the lab's control groups. */
  readonly lab: string
  readonly disk: string
  readonly binaries: string
  readonly images: string
  readonly storage: string
  readonly logFile: string
  /** Its process 1, where it is another than machine-init.sh: a script beside this file that is told the same. */
  readonly init?: string
}

/** Joins the machine's groups and becomes what is named after `--`. */
const enterGroups = 'while [ "$1" != -- ]; do echo $$ > "$1"; shift; done; shift; exec "$@"'
/** Its child is the machine's process 1 and dies with it. */
const namespaces = ['--mount', '--pid', '--net', '--uts', '--ipc', '--cgroup', '--fork', '--kill-child', '--propagation', 'private']
const goneWithin: Ms = 20_000

interface Running {
  readonly component: Component
  readonly groups: Groups
  /** Of its process 1, as we see it. */
  readonly pid: number
}

export function createMachine(settings: MachineSettings): Machine {
  const { name, index, disk } = settings
  const init = fileURLToPath(new URL(settings.init ?? 'machine-init.sh', import.meta.url))
  const address = addressOf(index)
  let bootId = ''
  let running: Running | undefined
  let frozen = false
  let cut = false

  const now = (): Running => {
    if (running === undefined) throw new Error(`${name} is off`)
    return running
  }
  const run = (words: readonly string[], deadline?: Ms): Promise<string> => {
    const path = 'PATH=/opt/runtime:/opt/lab:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
    const enter = ['nsenter', '--target', String(now().pid), '--all', 'env', '-i', path, 'HOME=/root', 'CONTAINERD_NAMESPACE=k8s.io', ...words]
    return command('sh', ['-c', enterGroups, 'sh', ...now().groups.doors, '--', ...enter], deadline)
  }
  const powerOff = async (): Promise<void> => {
    if (running === undefined) return
    const { component, groups, pid } = running
    // First, or its kernel, which is everybody's, would take leave of every peer in its name: whoever loses power says nothing.
    await unplug(name)
    if (component.end() === undefined) kill(pid, 'SIGKILL')
    // Its process 1 is not buried before everything in it is dead.
    await Promise.all([component.ended, emptied(name, groups)])
    frozen = false
    groups.remove()
    running = undefined
  }
  const carrier = (): Promise<void> => setCable(name, frozen || cut ? 'down' : 'up')
  const powerOn = async (): Promise<void> => {
    if (running !== undefined && running.component.end() === undefined) return
    await powerOff()
    bootId = randomUUID()
    const groups = createGroups(settings.lab, name)
    const words = [name, address, bootId, disk, settings.binaries, settings.images, settings.storage]
    const component = await startComponent({
      name, file: 'sh', args: ['-c', enterGroups, 'sh', ...groups.doors, '--', 'unshare', ...namespaces, 'bash', init, ...words], logFile: settings.logFile,
    })
    const pid = await childOf(component)
    running = { component, groups, pid }
    await plugIn(name, index, pid)
    if (cut) await carrier()
  }

  // Whoever pulls a lever while another is pulled waits for it: two who boot one machine would make two of it.
  let last: Promise<unknown> = Promise.resolve()
  const pull = (lever: () => Promise<void>): Promise<void> => {
    const pulled = last.then(lever)
    last = pulled.catch(() => undefined) // whoever pulled it is told
    return pulled
  }

  return {
    name, index, address, disk, run,
    machineId: settings.machineId,
    power: () => (running !== undefined && running.component.end() === undefined ? 'on' : 'off'),
    bootId: () => bootId,
    powerOn: () => pull(powerOn),
    powerOff: () => pull(powerOff),
    freeze: () => pull(async () => {
      now().groups.freeze()
      frozen = true
      // The freezer stops processes; the kernel, which is everybody's, would go on shaking hands in their name.
      await carrier()
    }),
    thaw: () => pull(async () => {
      if (!frozen) return
      now().groups.thaw()
      frozen = false
      await carrier()
    }),
    cutCable: () => pull(async () => {
      cut = true
      if (running !== undefined) await carrier()
    }),
    mendCable: () => pull(async () => {
      cut = false
      if (running !== undefined) await carrier()
    }),
    async killService(service, then) {
      const pid = readFileSync(join('/proc', String(now().pid), 'root/run', `${service}.pid`), 'utf8').trim()
      if (then === 'stays away') await run(['touch', `/run/${service}.off`])
      await run(['kill', '-KILL', pid])
    },
    startService: async (service) => void await run(['rm', '-f', `/run/${service}.off`]),
  }
}

async function childOf(component: Component): Promise<number> {
  for (const limit = clock.now() + goneWithin; clock.now() < limit; await clock.wait(10)) {
    if (component.end() !== undefined) break
    const children = readFileSync(`/proc/${component.pid}/task/${component.pid}/children`, 'utf8').trim()
    if (/^\d+$/.test(children)) return Number(children)
  }
  throw new Error(`${component.name} did not start: ${component.end() ?? 'no process 1'}\n${component.lastWords()}`)
}

async function emptied(name: string, groups: Groups): Promise<void> {
  const limit = clock.now() + goneWithin
  while (groups.pids().length > 0) {
    groups.killFrozen()
    if (clock.now() > limit) throw new Error(`${name} has no power, and still runs ${groups.pids().join(', ')}`)
    await clock.wait(10)
  }
}
