// The power controllers of the embedded world: each machine has a real Redfish service on loopback, whose power is the simulated
// machine's, and the replicas run the product's own fence agent against it, as a process. What a power order does, and how long
// it takes, is the world's device's affair.
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import type { KubeObject } from '../coordinator/api.ts'
import type { Programs } from '../coordinator/host.ts'
import { machinePrograms } from '../coordinator/programs.ts'
import type { Clock } from '../edge/clock.ts'
import type { PowerDevice } from './device.ts'
import type { Machine } from './machine.ts'
import type { Process } from './process.ts'
import { startRedfish, type Redfish } from './redfish.ts'

export interface EmbeddedDevices {
  /** The Secret, the template and each node's own ConfigMap: what an operator would write. */
  objects(namespace: string): KubeObject[]
  /** From now on orders reach this device, and readings tell of this machine. Until then its controller answers no system. */
  wire(node: string, machine: Machine, device: PowerDevice): void
  close(): Promise<void>
}

interface Wired { readonly machine: Machine; readonly device: PowerDevice }

export async function openDevices(clock: Clock, nodes: readonly string[]): Promise<EmbeddedDevices> {
  const wired = new Map<string, Wired>()
  const [username, password] = ['operator', randomBytes(12).toString('hex')]
  const services = new Map<string, Redfish>()
  for (const node of nodes) {
    services.set(node, await startRedfish({
      clock, username, password,
      systems: () => {
        const there = wired.get(node)
        return there === undefined ? [] : [{ id: '1', name: node, uuid: there.machine.settings.machineId }]
      },
      power: () => (wired.get(node)?.machine.state() === 'off' ? 'Off' : 'On'),
      order: (_, order) => void wired.get(node)?.device.order('1', order === 'On' ? 'on' : 'off'),
    }))
  }
  return {
    objects: (namespace) => [
      {
        apiVersion: 'v1', kind: 'Secret', metadata: { name: 'redfish', namespace, labels: { 'holdfast.dev/fence-secret': 'true' } },
        type: 'Opaque', data: { username: base64(username), password: base64(password) },
      },
      {
        apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'fence-method-template-redfish', namespace },
        data: { 'template.properties': 'agent_name=redfish\nusername=secret:redfish/username\npassword=secret:redfish/password\nplug=1\ntimeout=40s\n' },
      },
      ...[...services].map(([node, { host, port, fingerprint }]) => ({
        apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `fence-config-${node}`, namespace },
        data: {
          'config.properties': `node_name=${node}\npower_management=bmc\n`,
          'fence-method-bmc': `template=fence-method-template-redfish\nip=${host}\nipport=${port}\ncertificate_sha256=${fingerprint}\naction=off\n`,
        },
      })),
    ] as KubeObject[], // kinds with data, written as an operator would
    wire: (node, machine, device) => void wired.set(node, { machine, device }),
    close: async () => void await Promise.all([...services.values()].map((service) => service.close())),
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

export interface EmbeddedPrograms extends Programs {
  close(): Promise<void>
}

/** A replica's fence programs: real processes, ended with the replica's own. */
export function embeddedPrograms(clock: Clock, process: Process, emptyFolder: string): EmbeddedPrograms {
  const programs = machinePrograms({ folders: [fileURLToPath(new URL('../fence-agents', import.meta.url))], clock, emptyFolder, width: 4 })
  process.onEnd(() => void programs.close())
  return {
    run: (run) => process.hold(programs.run(run)),
    close: () => programs.close(),
  }
}
