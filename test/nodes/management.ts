// The machines' management controllers: a Redfish service each, at the switch's first address, on power of their own. What they
// say of a machine's power is the truth, and what they are ordered is done, unless a story says otherwise.
import { randomBytes } from 'node:crypto'
import type { KubeObject } from '../../coordinator/api.ts'
import type { Ms } from '../../core/model.ts'
import { machineClock } from '../../edge/clock.ts'
import { startRedfish, type Redfish, type RedfishFault, type RedfishOrder } from '../../sim/redfish.ts'
import type { Machine } from './machine.ts'
import { gateway } from './network.ts'

export interface Controller {
  /** Undefined: it behaves. */
  fault(fault: RedfishFault | undefined): void
  /** From the order to the deed; it has said yes long before. */
  takes(span: Ms): void
  /** From then on it says yes to each order, and of the power what it was ordered, and does nothing. `false`: the truth again. */
  lies(does: boolean): void
  /** By other hands than the product's. */
  order(order: RedfishOrder): void
  /** What it was ordered since it was built, in order. */
  readonly orders: readonly Order[]
}

export interface Order {
  readonly order: RedfishOrder
  /** By the wall clock. */
  readonly at: number
}

export interface Management {
  readonly of: ReadonlyMap<string, Controller>
  /** What an operator would write: a Secret, a template, a ConfigMap for each node. */
  objects(namespace: string): readonly KubeObject[]
  close(): Promise<void>
}

export async function openManagement(machines: Iterable<Machine>): Promise<Management> {
  const [username, password] = ['operator', randomBytes(12).toString('hex')]
  const services = new Map<string, Redfish>()
  const controllers = new Map<string, Controller>()
  for (const machine of machines) {
    const orders: Order[] = []
    let lies = false
    let claims: 'On' | 'Off' | undefined
    // One after the other: an *on* that overtakes an *off* is a machine in two boots.
    let last = Promise.resolve()
    let takes: Ms = 0
    const obey = (order: RedfishOrder): void => {
      orders.push({ order, at: machineClock.wall() })
      if (lies) claims = order === 'On' ? 'On' : 'Off'
      else last = last.then(() => machineClock.wait(takes)).then(() => (order === 'On' ? machine.powerOn() : machine.powerOff()))
    }
    const redfish = await startRedfish({
      clock: machineClock, username, password, host: gateway,
      systems: () => [{ id: '1', name: machine.name, uuid: machine.machineId }],
      power: () => claims ?? (machine.power() === 'on' ? 'On' : 'Off'),
      order: (_, order) => obey(order),
    })
    services.set(machine.name, redfish)
    controllers.set(machine.name, {
      orders,
      order: obey,
      fault: (fault) => redfish.fault('all', fault),
      takes: (span) => { takes = span },
      lies: (does) => {
        lies = does
        claims = undefined
      },
    })
  }
  return {
    of: controllers,
    objects: (namespace) => [secret(namespace, username, password), template(namespace), ...[...services].map(([node, redfish]) => fencePath(namespace, node, redfish))],
    close: async () => void await Promise.all([...services.values()].map((redfish) => redfish.close())),
  }
}

function secret(namespace: string, username: string, password: string): KubeObject {
  const metadata = { name: 'redfish', namespace, labels: { 'holdfast.dev/fence-secret': 'true' } }
  return { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', stringData: { username, password } } as KubeObject // a kind with data, as the next two
}

function template(namespace: string): KubeObject {
  const properties = ['agent_name=redfish', 'username=secret:redfish/username', 'password=secret:redfish/password', 'plug=1', 'timeout=20s', 'late=10s', 'power_timeout=10']
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'fence-method-template-redfish', namespace }, data: { 'template.properties': `${properties.join('\n')}\n` } } as KubeObject
}

function fencePath(namespace: string, node: string, { host, port, fingerprint }: Redfish): KubeObject {
  return {
    apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `fence-config-${node}`, namespace },
    data: {
      'config.properties': `node_name=${node}\npower_management=bmc\n`,
      'fence-method-bmc': `template=fence-method-template-redfish\nip=${host}\nipport=${port}\ncertificate_sha256=${fingerprint}\naction=off\n`,
    },
  } as KubeObject
}
