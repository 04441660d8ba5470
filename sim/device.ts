// Power devices: a BMC that switches a machine's chassis, or an outlet that feeds it. What a device says and what is true are
// two things here; the machine's own state is the truth, and each fault is a way in which the two part.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Machine } from './machine.ts'
import type { Host } from './network.ts'

export interface PowerDevice {
  readonly name: string
  readonly host: Host
  readonly plugs: ReadonlyMap<string, Plug>
  readonly timing: DeviceTiming
  /** Replaces the device's present fault; undefined: it is honest again. */
  fault: DeviceFault | undefined
  /** Wires a plug to a machine: another one than the configuration thinks, or none. */
  wire(plug: string, machine: Machine | undefined): void
  /** What a program hears: never rejects. `nothing`: no answer, ever. */
  read(plug: string): Promise<DeviceAnswer>
  order(plug: string, to: 'on' | 'off'): Promise<DeviceAnswer>
}

export interface Plug {
  machine: Machine | undefined
  /** Where the switch stands. A machine without power for other reasons may be off behind a plug that is on. */
  switched: 'on' | 'off'
}

/** `done`: the device says that it has taken the order. `missing`: it answers that it knows no such outlet. */
export type DeviceAnswer =
  | { readonly says: 'on' | 'off' | 'done'; readonly machine?: string }
  | { readonly says: 'refused' | 'missing' | 'nothing' }

export interface DeviceTiming { off: Ms; on: Ms; status: Ms }

export type DeviceFault =
  /** Every order is refused; status is honest. */
  | { readonly does: 'fail' }
  /** No answer to anything. */
  | { readonly does: 'hang' }
  /** Orders are taken, the answer is a failure, and the order lands after so long. */
  | { readonly does: 'late'; readonly by: Ms }
  /** Says off, in status too, so long before the power drops. */
  | { readonly does: 'early'; readonly by: Ms }
  /** Says what was ordered and does nothing, in status too. */
  | { readonly does: 'lie' }
  /** Its back end is gone: it answers that there is no such outlet, which programs have been seen to take for off. */
  | { readonly does: 'vanish' }
  /** Takes the order, does nothing, and tells the truth in status. */
  | { readonly does: 'ignore' }
  /** Switches off, and after so long on again by itself. */
  | { readonly does: 'bounce'; readonly after: Ms }
  /** Calls an outlet off that it does not know. */
  | { readonly does: 'call-missing-off' }
  /** Says off once, whatever was asked first, and the truth from then on. */
  | { readonly does: 'say-off-once' }

/** A device with a feed of its own answers whatever becomes of the machine; one that hangs on the machine's feed is gone when
 *  that is lost, and answers on when the machine was merely switched off. A chassis device starts and stops a machine; an outlet takes the feed away, and gives it back. */
export interface DevicePlan {
  readonly name: string
  readonly feed: 'own' | 'machine'
  /** Chassis devices know the board they sit on and tell its UUID. */
  readonly kind: 'chassis' | 'outlet'
  readonly timing: DeviceTiming
  readonly note: (what: string, facts: Readonly<Record<string, unknown>>) => void
}

/** What decides whether a machine has power: every outlet that feeds it, and its own chassis. */
export interface Feeds {
  /** True when at least one outlet feeds the machine, or none is known. */
  live(machine: Machine): boolean
  set(machine: Machine, outlet: string, live: boolean): void
  /** The mains behind the machine itself, which a device on the machine's own feed shares. */
  mains(machine: Machine, there: boolean): void
  hasMains(machine: Machine): boolean
}

export function createFeeds(): Feeds {
  const feeds = new Map<Machine, Map<string, boolean>>()
  const withoutMains = new Set<Machine>()
  return {
    mains: (machine, there) => void (there ? withoutMains.delete(machine) : withoutMains.add(machine)),
    hasMains: (machine) => !withoutMains.has(machine),
    live: (machine) => [...(feeds.get(machine)?.values() ?? [true])].includes(true),
    set(machine, outlet, live) {
      const known = feeds.get(machine) ?? new Map<string, boolean>()
      feeds.set(machine, known.set(outlet, live))
    },
  }
}

export function createDevice(world: Clock, host: Host, feeds: Feeds, plan: DevicePlan): PowerDevice {
  const plugs = new Map<string, Plug>()
  const lied = new Map<string, 'on' | 'off'>()
  const early = new Map<string, Ms>()
  const { kind, name, note } = plan
  const timing = { ...plan.timing }

  let fault: DeviceFault | undefined
  const device: PowerDevice = {
    name, host, plugs, timing,
    get fault() { return fault },
    set fault(next) {
      fault = next
      lied.clear()
      early.clear()
    },
    wire(plug, machine) {
      plugs.set(plug, { machine, switched: plugs.get(plug)?.switched ?? 'on' })
      if (kind === 'outlet' && machine !== undefined) feeds.set(machine, `${name}/${plug}`, plugs.get(plug)?.switched === 'on')
    },
    async read(plug) {
      await world.wait(timing.status)
      const there = plugs.get(plug)
      if (silent(there)) return await never()
      if (there === undefined && device.fault?.does === 'call-missing-off') return { says: 'off' }
      if (there === undefined || device.fault?.does === 'vanish') return { says: 'missing' }
      const identity = kind === 'chassis' && there.machine !== undefined ? { machine: there.machine.settings.machineId } : {}
      if (device.fault?.does === 'lie') return { says: lied.get(plug) ?? truth(there), ...identity }
      if (device.fault?.does === 'early' && (early.get(plug) ?? 0) > world.now()) return { says: 'off', ...identity }
      if (device.fault?.does === 'say-off-once' && !lied.has(plug)) {
        lied.set(plug, 'off')
        return { says: 'off', ...identity }
      }
      return { says: truth(there), ...identity }
    },
    async order(plug, to) {
      const there = plugs.get(plug)
      note('device ordered', { device: name, plug, to })
      if (silent(there)) return await never()
      if (there === undefined || device.fault?.does === 'vanish') {
        await world.wait(timing.status)
        return { says: 'missing' }
      }
      switch (device.fault?.does) {
        case 'fail':
          await world.wait(timing.status)
          return { says: 'refused' }
        case 'late':
          world.after(device.fault.by, () => act(plug, to))
          await world.wait(timing.status)
          return { says: 'refused' }
        case 'early':
          early.set(plug, world.now() + timing[to] + device.fault.by)
          world.after(timing[to] + device.fault.by, () => act(plug, to))
          break
        case 'lie':
          lied.set(plug, to)
          break
        case 'ignore': break
        case 'bounce':
          world.after(timing[to], () => act(plug, to))
          if (to === 'off') world.after(timing.off + device.fault.after, () => act(plug, 'on'))
          break
        case 'say-off-once': case 'call-missing-off': case undefined:
          // What a device has taken it carries out, whatever becomes of him who asked.
          world.after(timing[to], () => act(plug, to))
          break
        case 'hang': break // answered above
      }
      await world.wait(Math.min(timing[to], timing.status))
      return { says: 'done' }
    },
  }
  return device

  function silent(plug: Plug | undefined): boolean {
    if (device.fault?.does === 'hang') return true
    return plan.feed === 'machine' && plug?.machine !== undefined && !feeds.hasMains(plug.machine)
  }

  function truth({ machine, switched }: Plug): 'on' | 'off' {
    if (kind === 'outlet') return switched
    return machine === undefined || machine.state() === 'off' || machine.hibernated() ? 'off' : 'on'
  }

  function act(plug: string, to: 'on' | 'off'): void {
    const there = plugs.get(plug)
    if (there === undefined) return
    there.switched = to
    const { machine } = there
    note('device switched', { device: name, plug, to, machine: machine?.name ?? 'nothing' })
    if (machine === undefined) return
    if (kind === 'outlet') feeds.set(machine, `${name}/${plug}`, to === 'on')
    if (to === 'off' && (kind === 'chassis' || !feeds.live(machine))) machine.powerOff()
    if (to === 'on' && feeds.live(machine)) machine.powerOn()
  }
}

function never(): Promise<DeviceAnswer> {
  return new Promise(() => undefined)
}
