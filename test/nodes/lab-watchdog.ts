// A watchdog for machines that have no hardware: the far end of a pipe, outside of the machine, that cuts its power and gives it back when it is
// not fed. The near end is a terminal, since that is a character device which is nobody's hardware; it lies in the agent's container where a
// watchdog does, with what the kernel would tell of it below /sys. No device of this computer is touched.
//
// Unlike a real one it counts from the first feed and not from the open, is not fed by a kernel that closes it, and says `active` all the time.
import { constants, openSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import type { Ms } from '../../core/model.ts'
import type { WatchdogSeen } from '../../core/watchdog.ts'
import type { Manifest } from '../../deploy/manifest.ts'
import { names } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { command } from './command.ts'
import type { Machine } from './machine.ts'
import { uptime } from './stage.ts'

export interface LabWatchdog {
  /** Since it was last disarmed or has reset its machine somebody has fed it. */
  armed(): boolean
  /** In the kernel's uptime, as the writers tell theirs. */
  readonly resets: readonly { readonly boot: string; readonly at: number }[]
}

export interface LabWatchdogs {
  of(machine: string): LabWatchdog
  /** Before it is first powered on. */
  wire(machines: Iterable<Machine>): Promise<void>
  /** The agent's DaemonSet with the device in its container. */
  fit(manifests: readonly Manifest[]): readonly Manifest[]
  close(): void
}

/** No kind that anybody has measured: it counts twice. */
export const labWatchdog: WatchdogSeen = { identity: 'lab watchdog', timeout: 10_000 }
const lookEvery: Ms = 100
const here = '/run/lab-watchdog'
/** On the machine's disk. */
const pipe = 'var/lab-watchdog'

/** A processor that names a hypervisor makes a machine whose watchdog proves nothing; these play real ones. */
const atBoot = `set -e
mkdir -p ${here}/sys/watchdog0
cd ${here}
echo '${labWatchdog.identity}' > sys/watchdog0/identity
echo ${labWatchdog.timeout / 1_000} > sys/watchdog0/timeout
echo 0 > sys/watchdog0/nowayout
echo active > sys/watchdog0/state
sed 's/ hypervisor\\b//' /proc/cpuinfo > cpuinfo
mount --bind cpuinfo /proc/cpuinfo
setsid script --quiet --flush --command 'tty > ${here}/tty; exec sleep infinity' /dev/null > /${pipe} &
until [ -s tty ]; do sleep 0.05; done
touch device
mount --bind "$(cat tty)" device
`

export function labWatchdogs(): LabWatchdogs {
  const all = new Map<string, LabWatchdog & { close(): void }>()
  return {
    of(machine) {
      const found = all.get(machine)
      if (found === undefined) throw new Error(`${machine} has no lab watchdog`)
      return found
    },
    async wire(machines) {
      for (const machine of machines) {
        const file = join(machine.disk, pipe)
        await command('mkfifo', [file])
        writeFileSync(join(machine.disk, 'etc/rc.local'), atBoot)
        all.set(machine.name, watch(machine, file))
      }
    },
    fit: (manifests) => manifests.map((one) => (one.kind === 'DaemonSet' && one.metadata.name === names.agent ? withDevice(one as AgentSet) : one)), // as deploy/agent.ts writes it
    close() {
      for (const one of all.values()) one.close()
    },
  }
}

function watch(machine: Machine, file: string): LabWatchdog & { close(): void } {
  const resets: { readonly boot: string; readonly at: number }[] = []
  let fed: { readonly at: Ms; readonly boot: string } | undefined
  let resetting = false
  // Open for writing too: it outlives each boot's end of it.
  const end = new Socket({ fd: openSync(file, constants.O_RDWR | constants.O_NONBLOCK), readable: true, writable: false })
  end.on('data', (bytes: Buffer) => {
    // What a dead boot wrote may still be on its way.
    if (resetting) return
    const words = bytes.toString('latin1').replaceAll(/[^.V]/g, '')
    if (words !== '') fed = words.endsWith('V') ? undefined : { at: clock.now(), boot: machine.bootId() }
  })
  const timer = setInterval(() => {
    if (fed === undefined || clock.now() - fed.at < labWatchdog.timeout) return
    const { boot } = fed
    fed = undefined
    // It has no power of its own.
    if (machine.power() === 'on' && machine.bootId() === boot) void reset(boot)
  }, lookEvery)
  return {
    resets,
    armed: () => fed !== undefined,
    close() {
      clearInterval(timer)
      end.destroy()
    },
  }

  async function reset(boot: string): Promise<void> {
    resetting = true
    await machine.powerOff()
    resets.push({ boot, at: uptime() })
    await machine.powerOn()
    resetting = false
  }
}

type AgentSet = Manifest & { readonly spec: { readonly template: { readonly spec: { readonly volumes: readonly object[]; readonly containers: readonly { readonly volumeMounts: readonly object[] }[] } } } }

function withDevice(set: AgentSet): Manifest {
  const { template } = set.spec
  const { volumes, containers } = template.spec
  return {
    ...set,
    spec: {
      ...set.spec,
      template: {
        ...template,
        spec: {
          ...template.spec,
          volumes: [...volumes, { name: 'lab-watchdog', hostPath: { path: `${here}/device`, type: 'CharDevice' } }, { name: 'lab-watchdog-told', hostPath: { path: `${here}/sys`, type: 'Directory' } }],
          containers: containers.map((one) => ({
            ...one,
            volumeMounts: [...one.volumeMounts, { name: 'lab-watchdog', mountPath: '/dev/watchdog0' }, { name: 'lab-watchdog-told', mountPath: '/sys/class/watchdog', readOnly: true }],
          })),
        },
      },
    },
  }
}
