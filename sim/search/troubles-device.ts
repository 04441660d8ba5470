// Devices that fail, hang, act late, lie; and a storage that does not let go.
import type { DeviceFault } from '../device.ts'
import { aNode, type TroubleKind } from './trouble.ts'

const faults: Readonly<Record<string, readonly DeviceFault[]>> = {
  'a device refuses orders': [{ does: 'fail' }],
  'a device does not answer': [{ does: 'hang' }],
  'a device acts late': [{ does: 'late', by: 3_000 }, { does: 'late', by: 15_000 }, { does: 'late', by: 45_000 }],
  'a device takes orders and ignores them': [{ does: 'ignore' }],
  'a device switches on again by itself': [{ does: 'bounce', after: 400 }, { does: 'bounce', after: 3_000 }],
  'a device says off once': [{ does: 'say-off-once' }],
  'a device loses its back end': [{ does: 'vanish' }],
  'a device lies': [{ does: 'lie' }],
  'a device says off early': [{ does: 'early', by: 3_000 }],
}

function faulty(choices: readonly DeviceFault[]): TroubleKind {
  return {
    class: 'device',
    draw: (chance, scene) => ({ on: aNode(chance, scene), how: String(chance.below(choices.length)) }),
    begin(ground, trouble) {
      const device = ground.on.world.devices.get(`bmc-${ground.node(trouble)}`)
      const fault = choices[Number(trouble.how)]
      if (device === undefined || device.fault !== undefined || fault === undefined) return undefined
      device.fault = fault
      return () => {
        if (device.fault === fault) device.fault = undefined
      }
    },
  }
}

/** Wired to the machine of the next node: somebody has mixed up two cables. */
const swapped: TroubleKind = {
  class: 'device',
  draw: (chance, scene) => ({ on: aNode(chance, scene) }),
  begin(ground, trouble) {
    const { world } = ground.on
    const names = [...world.nodes.keys()]
    const [one, other] = [ground.node(trouble), names[(names.indexOf(ground.node(trouble)) + 1) % names.length] ?? '']
    const wire = (device: string, machine: string) => world.devices.get(`bmc-${device}`)?.wire('1', world.nodes.get(machine)?.machine)
    wire(one, other)
    wire(other, one)
    return () => {
      wire(one, one)
      wire(other, other)
    }
  },
}

function attacher(fault: 'attachFault' | 'detachFault', how: 'stuck' | 'error'): TroubleKind {
  return {
    class: 'storage',
    draw: () => ({ on: '' }),
    begin({ on: { world: { attacher: { settings } } } }) {
      settings[fault] = how
      return () => { settings[fault] = 'none' }
    },
  }
}

export const deviceTroubles: Readonly<Record<string, TroubleKind>> = {
  ...Object.fromEntries(Object.entries(faults).map(([name, choices]) => [name, faulty(choices)])),
  'two devices are swapped': swapped,
  'detaching is stuck': attacher('detachFault', 'stuck'),
  'detaching fails': attacher('detachFault', 'error'),
  'attaching fails': attacher('attachFault', 'error'),
}
