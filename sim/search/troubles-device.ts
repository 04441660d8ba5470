// Devices that fail, hang, act late, lie; strips, their outlets and the cables between them and the machines; and a storage
// that does not let go.
import type { Ms } from '../../core/model.ts'
import type { Chance } from '../chance.ts'
import type { DeviceFault, DeviceTiming, PowerDevice } from '../device.ts'
import { switchesOf, type Power } from '../world/power.ts'
import type { Scene } from './schedule.ts'
import { aNode, when, type Ground, type Trouble, type TroubleKind } from './trouble.ts'

const faults: Readonly<Record<string, readonly DeviceFault[]>> = {
  'a device refuses orders': [{ does: 'fail' }],
  'a device does not answer': [{ does: 'hang' }],
  'a device gives no status': [{ does: 'no-status' }],
  'a device acts late': [
    { does: 'late', by: 3_000 }, { does: 'late', by: 15_000 }, { does: 'late', by: 45_000 },
    { does: 'late', by: 8_000, answers: 'never' }, { does: 'late', by: 35_000, answers: 'never' }, { does: 'late', by: 80_000, answers: 'never' },
  ],
  'a device takes orders and ignores them': [{ does: 'ignore' }],
  'a device switches on again by itself': [{ does: 'bounce', after: 400 }, { does: 'bounce', after: 3_000 }],
  'a device says off once': [{ does: 'say-off-once' }],
  'a device loses its back end': [{ does: 'vanish' }],
  'a device forgets its outlets and calls them off': [{ does: 'forget' }],
  'a device lies': [{ does: 'lie' }],
  'a device calls its machine off whatever is so': [{ does: 'deny' }],
  'a device says off early': [{ does: 'early', by: 3_000 }, { does: 'early', by: 400 }, { does: 'early', by: 800 }],
}

/** Which of the faults, and what it strikes: all of a device, or one outlet of it, by the name of the switch. */
function faulty(choices: readonly DeviceFault[]): TroubleKind {
  return {
    class: 'device',
    draw: (chance, scene) => ({ on: aNode(chance, scene), how: `${chance.below(choices.length)} ${chance.yes(0.4) ? 'outlet' : 'device'} ${aSwitch(chance, scene)}` }),
    begin(ground, trouble) {
      const [choice, scope, name] = (trouble.how ?? '').split(' ')
      const { device, plug } = switchOf(ground, trouble, name) ?? {}
      const fault = choices[Number(choice)]
      if (device === undefined || plug === undefined || fault === undefined) return undefined
      return scope === 'outlet' ? ofOutlet(device, plug, fault) : ofDevice(device, fault)
    },
  }
}

function ofDevice(device: PowerDevice, fault: DeviceFault): (() => void) | undefined {
  if (device.fault !== undefined) return undefined
  device.fault = fault
  return () => {
    if (device.fault === fault) device.fault = undefined
  }
}

function ofOutlet(device: PowerDevice, plug: string, fault: DeviceFault): (() => void) | undefined {
  if (device.plugFault(plug) !== undefined) return undefined
  device.setPlugFault(plug, fault)
  return () => {
    if (device.plugFault(plug) === fault) device.setPlugFault(plug, undefined)
  }
}

/** Without a name, the first one that a configuration would ask. */
function switchOf(ground: Ground, trouble: Trouble, name?: string): { readonly device: PowerDevice; readonly plug: string } | undefined {
  const { world } = ground.on
  const all = world.switches(ground.node(trouble)).flat()
  const found = all.find((one) => one.name === name) ?? all[0]
  const device = found === undefined ? undefined : world.devices.get(found.device)
  return found === undefined || device === undefined ? undefined : { device, plug: found.plug }
}

function namesIn({ power = 'bmc' }: Scene): readonly string[] {
  return switchesOf(power, { node: '', index: 0, zone: 0 }).flat().map(({ name }) => name)
}

function aSwitch(chance: Chance, scene: Scene): string {
  return chance.pick(namesIn(scene))
}

/** In its rack; where it stands alone there, any. */
function neighbour({ nodes }: Ground['on']['world'], of: string): string {
  const zone = nodes.get(of)?.machine.settings.zone
  const rack = [...nodes].filter(([, { machine }]) => machine.settings.zone === zone).map(([name]) => name)
  const among = rack.length > 1 ? rack : [...nodes.keys()]
  return among[(among.indexOf(of) + 1) % among.length] ?? of
}

/** As it is wired in truth, to the machine of the next node: somebody has mixed up two cables. What would switch a machine by
 *  being plugged in is left alone, and so it is put right only when both are on. */
const swapped: TroubleKind = {
  class: 'device', weight: 2,
  draw: (chance, scene) => ({ on: aNode(chance, scene), how: chance.yes(0.3) ? 'all' : aSwitch(chance, scene) }),
  begin(ground, trouble) {
    const { world } = ground.on
    const own = ground.node(trouble)
    const next = neighbour(world, own)
    const chosen = (node: string) => {
      const all = world.switches(node).flat()
      return trouble.how === 'all' ? all : [all.find(({ name }) => name === trouble.how) ?? all[0]].filter((one) => one !== undefined)
    }
    const pairs = chosen(own).flatMap((one, index) => {
      const other = chosen(next)[index]
      return other === undefined ? [] : [[one, other] as const]
    })
    const machineAt = ({ device, plug }: (typeof pairs)[number][0]) => world.devices.get(device)?.plugs.get(plug)
    const bothOn = () => pairs.flat().every((one) => machineAt(one)?.switched === 'on' || one.kind === 'chassis')
    const change = () => {
      for (const [one, other] of pairs) {
        const [here, there] = [machineAt(one)?.machine, machineAt(other)?.machine]
        world.devices.get(one.device)?.wire(one.plug, there)
        world.devices.get(other.device)?.wire(other.plug, here)
        world.truth.note('cables changed', { one: `${one.device}/${one.plug}`, other: `${other.device}/${other.plug}` })
      }
    }
    if (!bothOn()) return undefined
    change()
    let over = false
    return () => {
      if (over) return
      over = true
      when(world, bothOn, change, 1_000)
    }
  },
}

const slowness: Readonly<Record<string, number>> = { 'in 0.8 s': 800, 'in 1.5 s': 1_500, 'in 4 s': 4_000, 'in 12 s': 12_000 }

/** Before it was first slow: what a second slowness found must not come back with its end. */
const usualPace = new WeakMap<DeviceTiming, Ms>()

const slow: TroubleKind = {
  class: 'device',
  draw: (chance, scene) => ({ on: aNode(chance, scene), how: `${aSwitch(chance, scene)}, ${chance.pick(Object.keys(slowness))}` }),
  begin(ground, trouble) {
    const [name, pace = ''] = (trouble.how ?? '').split(', ')
    const { timing } = switchOf(ground, trouble, name)?.device ?? {}
    if (timing === undefined) return undefined
    const usual = usualPace.get(timing) ?? timing.status
    usualPace.set(timing, usual)
    timing.status = slowness[pace] ?? usual
    return () => { timing.status = usual }
  },
}

const unreachable: TroubleKind = {
  class: 'device',
  draw: (chance, scene) => ({ on: aNode(chance, scene), how: aSwitch(chance, scene) }),
  begin(ground, trouble) {
    const device = switchOf(ground, trouble, trouble.how)?.device
    return device === undefined ? undefined : ground.on.world.partition({ from: [device.name], to: ['*'], planes: ['device'] })
  },
}

/** The switch of a rack dies: its machines and what switches them are gone from the network together. */
const rackCut: TroubleKind = {
  class: 'device',
  draw: (chance, scene) => ({ on: aNode(chance, scene) }),
  begin(ground, trouble) {
    const { world } = ground.on
    const zone = world.nodes.get(ground.node(trouble))?.machine.settings.zone
    const machines = [...world.nodes].filter(([, { machine }]) => machine.settings.zone === zone).map(([name]) => name)
    const devices = machines.flatMap((name) => world.switches(name).flat().map(({ device }) => device))
    return world.partition({ from: [...machines, ...new Set(devices)], to: ['*'] })
  },
}

/** Nobody can hear the machine, and nobody can ask what switches it: for so long that its own watchdog is the only one to end it. */
const cutWithDevices: TroubleKind = {
  class: 'device', weight: 2, spans: [[30_000, 90_000], [120_000, 220_000]],
  draw: (chance, scene) => ({ on: aNode(chance, scene) }),
  begin(ground, trouble) {
    const { world } = ground.on
    const node = ground.node(trouble)
    return world.partition({ from: [node, ...new Set(world.switches(node).flat().map(({ device }) => device))], to: ['*'] })
  },
}

const strips: readonly (Power | undefined)[] = ['outlet', 'two feeds on one strip', 'two feeds on two strips', 'bmc, then outlet', 'bmc, then two feeds']

/** A breaker: the strip and all that it feeds. Machines with another feed go on; the others start when it is back. */
const unfed: TroubleKind = {
  class: 'device', weight: 2,
  fits: ({ power }) => strips.includes(power),
  draw: (chance, scene) => ({ on: aNode(chance, scene), how: chance.pick(namesIn(scene).filter((name) => name !== 'bmc')) }),
  begin(ground, trouble) {
    const device = switchOf(ground, trouble, trouble.how)?.device
    if (device === undefined) return undefined
    device.mains(false)
    return () => device.mains(true)
  },
}

function attacher(fault: 'attachFault' | 'detachFault', how: 'stuck' | 'error'): TroubleKind {
  return {
    class: 'storage',
    draw: () => ({ on: '' }),
    begin({ on: { world: { csi: { settings } } } }) {
      settings[fault] = how
      return () => { settings[fault] = 'none' }
    },
  }
}

export const deviceTroubles: Readonly<Record<string, TroubleKind>> = {
  ...Object.fromEntries(Object.entries(faults).map(([name, choices]) => [name, faulty(choices)])),
  'two devices are swapped': swapped,
  'a device answers late': slow,
  'a device is unreachable': unreachable,
  'a rack is unreachable': rackCut,
  'a strip loses its feed': unfed,
  'a node is cut off with its devices': cutWithDevices,
  'detaching is stuck': attacher('detachFault', 'stuck'),
  'detaching fails': attacher('detachFault', 'error'),
  'attaching fails': attacher('attachFault', 'error'),
}
