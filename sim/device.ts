// Devices that cut machines off: a BMC that switches a machine's chassis, an outlet that feeds it, a port to its storage. What a device says and what is true are
// two things here; the machine's own state is the truth, and each fault is a way in which the two part.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Machine } from './machine.ts'
import type { Host } from './network.ts'

export interface PowerDevice {
  readonly name: string
  readonly kind: DevicePlan['kind']
  readonly host: Host
  readonly plugs: ReadonlyMap<string, Plug>
  readonly timing: DeviceTiming
  /** Replaces the device's present fault; undefined: it is honest again. */
  fault: DeviceFault | undefined
  /** Of one outlet alone: it comes before the device's own. */
  plugFault(plug: string): DeviceFault | undefined
  setPlugFault(plug: string, fault: DeviceFault | undefined): void
  /** Honest, quick and fed again. */
  heal(): void
  /** Wires a plug to a machine: another one than the configuration thinks, or none. Power follows the cables. */
  wire(plug: string, machine: Machine | undefined): void
  /** What feeds the device itself. A strip without it feeds nothing, and no device without it answers. */
  mains(there: boolean): void
  /** Somebody stands before it and presses the outlet's button. */
  turn(plug: string, to: 'on' | 'off'): void
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
  /** Orders are taken, the answer is a failure, or none, and the order lands after so long. */
  | { readonly does: 'late'; readonly by: Ms; readonly answers?: 'never' }
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
  /** Knows its outlets no more, and calls off whatever it does not know. */
  | { readonly does: 'forget' }
  /** Obeys, and calls its machine off whatever is so. */
  | { readonly does: 'deny' }
  /** Carries orders out and gives no status. */
  | { readonly does: 'no-status' }

/** A device with a feed of its own answers whatever becomes of the machine; one that hangs on the machine's feed is gone when
 *  that is lost, by its outlets too, and answers on when the machine was merely switched off. A chassis device starts and stops a machine; an outlet takes the feed away, and gives it back. */
export interface DevicePlan {
  readonly name: string
  readonly feed: 'own' | 'machine'
  /** Chassis devices know the board they sit on and tell its UUID. */
  readonly kind: 'chassis' | 'outlet' | 'port'
  readonly timing: DeviceTiming
  readonly note: (what: string, facts: Readonly<Record<string, unknown>>) => void
}

/** What decides whether a machine has power: every outlet that feeds it, and its own chassis. */
export interface Feeds {
  /** True when at least one outlet feeds the machine, or none is known. */
  live(machine: Machine): boolean
  /** Undefined: the outlet's cable leads elsewhere. */
  set(machine: Machine, outlet: string, live: boolean | undefined): void
  /** The machine notices: what lost its last feed is off, and what got one again starts. */
  follow(machine: Machine): void
  /** The mains behind the machine itself, which a device on the machine's own feed shares. */
  mains(machine: Machine, there: boolean): void
  hasMains(machine: Machine): boolean
}

export function createFeeds(): Feeds {
  const feeds = new Map<Machine, Map<string, boolean>>()
  const dead = new Set<Machine>()
  const withoutMains = new Set<Machine>()
  const live = (machine: Machine): boolean => [...(feeds.get(machine)?.values() ?? [true])].includes(true)
  return {
    live,
    mains: (machine, there) => void (there ? withoutMains.delete(machine) : withoutMains.add(machine)),
    hasMains: (machine) => !withoutMains.has(machine),
    set(machine, outlet, to) {
      const known = feeds.get(machine) ?? new Map<string, boolean>()
      if (to === undefined) known.delete(outlet)
      else known.set(outlet, to)
      feeds.set(machine, known)
    },
    follow(machine) {
      if (live(machine) === !dead.has(machine)) return
      if (dead.delete(machine)) {
        // What the outlet brings back are its mains, also to the controller that hangs on them.
        withoutMains.delete(machine)
        machine.powerOn()
      } else {
        dead.add(machine)
        machine.powerOff()
      }
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
  let fed = true
  const plugFaults = new Map<string, DeviceFault>()
  const device: PowerDevice = {
    name, kind, host, plugs, timing,
    get fault() { return fault },
    set fault(next) {
      fault = next
      lied.clear()
      early.clear()
    },
    plugFault: (plug) => plugFaults.get(plug),
    setPlugFault(plug, next) {
      if (next === undefined) plugFaults.delete(plug)
      else plugFaults.set(plug, next)
      lied.delete(plug)
      early.delete(plug)
    },
    heal() {
      plugFaults.clear()
      device.fault = undefined
      device.mains(true)
      Object.assign(timing, plan.timing)
    },
    wire(plug, machine) {
      const before = plugs.get(plug)
      plugs.set(plug, { machine, switched: before?.switched ?? 'on' })
      if (kind === 'chassis') return
      if (before?.machine !== undefined) feeds.set(before.machine, `${name}/${plug}`, undefined)
      feed(plug)
      // Later: two cables that change places do so at one instant.
      for (const one of [before?.machine, machine]) if (one !== undefined) world.after(0, () => feeds.follow(one))
    },
    mains(there) {
      if (there === fed) return
      fed = there
      note(there ? 'device fed again' : 'device lost its feed', { device: name })
      for (const plug of plugs.keys()) feed(plug)
      for (const { machine } of plugs.values()) if (kind !== 'chassis' && machine !== undefined) feeds.follow(machine)
    },
    turn: (plug, to) => act(plug, to),
    async read(plug) {
      await world.wait(timing.status)
      const there = plugs.get(plug)
      if (silent(plug, there)) return await never()
      if (there === undefined && faultOf(plug)?.does === 'call-missing-off') return { says: 'off' }
      if (there === undefined || faultOf(plug)?.does === 'vanish') return { says: 'missing' }
      if (faultOf(plug)?.does === 'no-status') return { says: 'nothing' }
      const says = told(plug, there)
      if (says === 'off' && truth(there) === 'on') note('device lied', { device: name, plug, machine: there.machine?.name ?? 'nothing' })
      return { says, ...(kind === 'chassis' && there.machine !== undefined && faultOf(plug)?.does !== 'forget' ? { machine: there.machine.settings.machineId } : {}) }
    },
    async order(plug, to) {
      const there = plugs.get(plug)
      note('device ordered', { device: name, plug, to })
      if (silent(plug, there)) return await never()
      const present = faultOf(plug)
      if (there === undefined || present?.does === 'vanish' || present?.does === 'forget') {
        await world.wait(timing.status)
        return { says: 'missing' }
      }
      switch (present?.does) {
        case 'fail':
          await world.wait(timing.status)
          return { says: 'refused' }
        case 'late':
          world.after(present.by, () => act(plug, to))
          if (present.answers === 'never') return await never()
          await world.wait(timing.status)
          return { says: 'refused' }
        case 'early':
          early.set(plug, world.now() + timing[to] + present.by)
          world.after(timing[to] + present.by, () => act(plug, to))
          break
        case 'lie':
          lied.set(plug, to)
          break
        case 'ignore': break
        case 'bounce':
          world.after(timing[to], () => act(plug, to))
          if (to === 'off') world.after(timing.off + present.after, () => act(plug, 'on'))
          break
        case 'say-off-once': case 'call-missing-off': case 'no-status': case 'deny': case undefined:
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

  function faultOf(plug: string): DeviceFault | undefined {
    return plugFaults.get(plug) ?? fault
  }

  function silent(plug: string, there: Plug | undefined): boolean {
    return faultOf(plug)?.does === 'hang' || !isFed(there)
  }

  function isFed(there: Plug | undefined): boolean {
    if (!fed) return false
    return plan.feed === 'own' || there?.machine === undefined || (feeds.hasMains(there.machine) && feeds.live(there.machine))
  }

  function told(plug: string, there: Plug): 'on' | 'off' {
    switch (faultOf(plug)?.does) {
      case 'lie': return lied.get(plug) ?? truth(there)
      case 'early': return (early.get(plug) ?? 0) > world.now() ? 'off' : truth(there)
      case 'forget': case 'deny': return 'off'
      case 'say-off-once': {
        if (lied.has(plug)) return truth(there)
        lied.set(plug, 'off')
        return 'off'
      }
      default: return truth(there) // the others do not touch what it says
    }
  }

  function truth({ machine, switched }: Plug): 'on' | 'off' {
    if (kind !== 'chassis') return switched
    return machine === undefined || machine.state() === 'off' || machine.hibernated() ? 'off' : 'on'
  }

  function act(plug: string, to: 'on' | 'off'): void {
    const there = plugs.get(plug)
    // One without power starts no machine: what ran so would have a dead controller for ever.
    if (there === undefined || !isFed(there)) return
    there.switched = to
    const { machine } = there
    note(kind === 'port' ? 'port switched' : 'device switched', { device: name, plug, to, machine: machine?.name ?? 'nothing' })
    feed(plug)
    if (machine === undefined) return
    if (kind !== 'chassis') feeds.follow(machine)
    else if (to === 'off') machine.powerOff()
    else if (feeds.live(machine)) machine.powerOn()
  }

  function feed(plug: string): void {
    const { machine, switched } = plugs.get(plug) ?? {}
    if (kind !== 'chassis' && machine !== undefined) feeds.set(machine, `${name}/${plug}`, fed && switched === 'on')
  }
}

function never(): Promise<DeviceAnswer> {
  return new Promise(() => undefined)
}
