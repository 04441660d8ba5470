// The machines' power controllers: a Redfish service each, on loopback, driven by the product's own fence agent as a real
// program. What an order does, and how long it takes, is the simulated device's affair; what the service says of the power is
// the machine's truth, unless it is told to lie.
import { randomBytes } from 'node:crypto'
import type { KubeObject } from '../../coordinator/api.ts'
import type { Ms } from '../../core/model.ts'
import { machineClock } from '../../edge/clock.ts'
import type { PowerDevice } from '../../sim/device.ts'
import type { Machine } from '../../sim/machine.ts'
import { startRedfish, type Redfish, type RedfishFault } from '../../sim/redfish.ts'

export interface PowerController {
  /** Undefined: it behaves, at the pace it was made with. */
  fault(fault: RedfishFault | undefined): void
  /** Takes each order, does nothing, and says that it was done, until told to stop. */
  lie(lies: boolean): void
}

export interface PowerControllers {
  readonly of: ReadonlyMap<string, PowerController>
  /** The Secret, the template and each node's own ConfigMap: what an operator would write. */
  objects(namespace: string): KubeObject[]
  wire(node: string, machine: Machine, device: PowerDevice): void
  close(): Promise<void>
}

interface Service {
  readonly redfish: Redfish
  machine: Machine | undefined
  device: PowerDevice | undefined
  said: 'On' | 'Off' | undefined
  lies: boolean
}

/** `status`: how long each answer takes. `called`: the name of their Secret, and of their template. */
export async function openPowerControllers(nodes: readonly string[], status: Ms, called = 'redfish'): Promise<PowerControllers> {
  const [username, password] = ['operator', randomBytes(12).toString('hex')]
  const services = new Map<string, Service>()
  for (const node of nodes) {
    const redfish: Redfish = await startRedfish({
      clock: machineClock, username, password,
      systems: () => (service.machine === undefined ? [] : [{ id: '1', name: node, uuid: service.machine.settings.machineId }]),
      power: () => service.said ?? (service.machine?.state() === 'off' ? 'Off' : 'On'),
      order(_, order) {
        if (service.lies) service.said = order === 'On' ? 'On' : 'Off'
        else void service.device?.order('1', order === 'On' ? 'on' : 'off')
      },
    })
    const service: Service = { redfish, machine: undefined, device: undefined, said: undefined, lies: false }
    redfish.fault('all', { slow: status })
    services.set(node, service)
  }
  const controller = (service: Service): PowerController => ({
    fault: (fault) => service.redfish.fault('all', fault ?? { slow: status }),
    lie(lies) {
      service.lies = lies
      service.said = undefined
    },
  })
  return {
    of: new Map([...services].map(([node, service]) => [node, controller(service)])),
    objects: (namespace) => [
      {
        apiVersion: 'v1', kind: 'Secret', metadata: { name: called, namespace, labels: { 'holdfast.dev/fence-secret': 'true' } },
        type: 'Opaque', data: { username: base64(username), password: base64(password) },
      },
      {
        apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `fence-method-template-${called}`, namespace },
        data: { 'template.properties': `agent_name=redfish\nusername=secret:${called}/username\npassword=secret:${called}/password\nplug=1\ntimeout=20s\nlate=10s\npower_timeout=10\n` },
      },
      ...[...services].map(([node, { redfish: { host, port, fingerprint } }]) => ({
        apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `fence-config-${node}`, namespace },
        data: {
          'config.properties': `node_name=${node}\npower_management=bmc\n`,
          'fence-method-bmc': `template=fence-method-template-${called}\nip=${host}\nipport=${port}\ncertificate_sha256=${fingerprint}\naction=off\n`,
        },
      })),
    ] as KubeObject[], // kinds with data, written as an operator would
    wire(node, machine, device) {
      const service = services.get(node)
      if (service === undefined) return
      service.machine = machine
      service.device = device
    },
    close: async () => void await Promise.all([...services.values()].map(({ redfish }) => redfish.close())),
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
