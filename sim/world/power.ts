// What stands in the racks between the mains and the machines, and what of it an operator writes into the fence configuration.
// The world is wired by the same list that the configuration is written from, so that each begins as the other says.
import type { DevicePlan } from '../device.ts'

/** Each is what operators have: a controller in each machine; one controller for all machines of an enclosure; a strip whose
 *  outlets bear the nodes' names; two supplies, on one strip or on two; a controller, and the rack's strips where it fails; a switch
 *  before the storage, which isolates, and a controller. */
export type Power = 'bmc' | 'enclosure' | 'outlet' | 'two feeds on one strip' | 'two feeds on two strips' | 'bmc, then outlet' | 'bmc, then two feeds' | 'fabric, then bmc'

export const powers: readonly Power[] = [
  'bmc', 'enclosure', 'outlet', 'two feeds on one strip', 'two feeds on two strips', 'bmc, then outlet', 'bmc, then two feeds', 'fabric, then bmc',
]

/** One plug of one device, as it is wired and as the configuration names it. */
export interface Switch {
  /** Of its methods: `NAME-off` and `NAME-on`. */
  readonly name: string
  readonly device: string
  readonly address: string
  readonly plug: string
  readonly kind: DevicePlan['kind']
}

export interface Placed {
  readonly node: string
  /** Its place in the list of nodes. */
  readonly index: number
  /** Of its rack, from 0. */
  readonly zone: number
}

/** A strip answers by what feeds it, whichever of its machines is dead. Relays act sooner than a controller, and answer later. */
export const strip: Pick<DevicePlan, 'kind' | 'feed' | 'timing'> = { kind: 'outlet', feed: 'own', timing: { off: 1_000, on: 1_000, status: 300 } }

/** A switch of the storage network, with a port for each machine. */
export const fabric: Pick<DevicePlan, 'kind' | 'feed' | 'timing'> = { kind: 'port', feed: 'own', timing: { off: 500, on: 500, status: 200 } }

const stripOf = (rack: number, letter: 'a' | 'b'): Pick<Switch, 'device' | 'address' | 'kind'> => ({
  device: `pdu-${letter}-${rack + 1}`, address: `10.2.1.${2 * rack + (letter === 'a' ? 1 : 2)}`, kind: 'outlet',
})

/** Level by level: what is asked first, and what is asked where that has failed. */
export function switchesOf(power: Power, { node, index, zone }: Placed): readonly (readonly Switch[])[] {
  const bmc: Switch = { name: 'bmc', device: `bmc-${node}`, address: `10.2.0.${index + 11}`, plug: '1', kind: 'chassis' }
  const feeds = (rack: number, other: 'a' | 'b'): readonly Switch[] => [
    { name: 'feed-a', ...stripOf(rack, 'a'), plug: other === 'a' ? `${node}-a` : node }, { name: 'feed-b', ...stripOf(rack, other), plug: other === 'a' ? `${node}-b` : node },
  ]
  switch (power) {
    case 'bmc': return [[bmc]]
    case 'enclosure': return [[{ name: 'blade', device: 'enclosure', address: '10.2.1.1', plug: node, kind: 'chassis' }]]
    case 'outlet': return [[{ name: 'outlet', ...stripOf(0, 'a'), plug: node }]]
    case 'two feeds on one strip': return [feeds(0, 'a')]
    case 'two feeds on two strips': return [feeds(0, 'b')]
    case 'bmc, then outlet': return [[bmc], [{ name: 'outlet', ...stripOf(zone, 'a'), plug: node }]]
    case 'bmc, then two feeds': return [[bmc], feeds(zone, 'b')]
    case 'fabric, then bmc': return [[{ name: 'fabric', device: 'fabric', address: '10.2.2.1', plug: node, kind: 'port' }], [bmc]]
  }
}
