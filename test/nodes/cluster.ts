// A cluster of machines that can really die: the real control plane of test/control-plane, and on each machine a kubelet and
// containerd as anybody runs them. What stands in it is up to whoever starts it.
import { copyFileSync, linkSync, mkdirSync, mkdtempSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { randomUUID } from 'node:crypto'
import { env, execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { createApi, type Api, type KubeObject } from '../../coordinator/api.ts'
import type { HttpsTransport } from '../../coordinator/https.ts'
import type { Ms } from '../../core/model.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { createCertificates } from '../control-plane/certificates.ts'
import { startComponent } from '../control-plane/component.ts'
import { startControlPlane, type ControlPlane } from '../control-plane/control-plane.ts'
import { kubeconfigText } from '../control-plane/kubeconfig.ts'
import { transportTo } from '../control-plane/transport.ts'
import { journalFlags } from './api-journal.ts'
import { command } from './command.ts'
import { makeDisk, type Runtime } from './disk.ts'
import { writeLabImage } from './lab-image.ts'
import { createMachine, type Machine } from './machine.ts'
import { gateway, serviceAddress } from './network.ts'
import { theRoom } from './room.ts'

export interface Cluster {
  readonly plane: ControlPlane
  readonly transport: HttpsTransport
  /** As an administrator. */
  readonly api: Api
  readonly machines: ReadonlyMap<string, Machine>
  /** For disks, logs and whatever a test keeps; goes with the room. */
  readonly folder: string
  /** The storage's folder, the same on every machine as /san. */
  readonly storage: string
  machine(name: string): Machine
  kubectl(...words: readonly string[]): Promise<string>
  node(name: string): Promise<Node>
  stop(): Promise<void>
}

export interface Node extends KubeObject {
  readonly spec?: { readonly taints?: readonly { readonly key: string; readonly effect: string }[] }
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
    readonly nodeInfo?: { readonly bootID: string; readonly systemUUID: string; readonly kubeletVersion: string; readonly containerRuntimeVersion: string }
  }
}

export interface ClusterSettings {
  readonly nodes: number
  /** Archives that every machine imports at its first boot, beside the lab's own. */
  readonly images: readonly string[]
  /** Of machines by name, where it is not today's. */
  readonly runtimes?: Readonly<Record<string, Runtime>>
}

/** What build.sh has made. */
export function binaries(): string {
  return join(env['HOLDFAST_CACHE'] || join(homedir(), '.cache', 'holdfast'), 'nodes', `v${(env['HOLDFAST_KUBERNETES'] ?? '1.36.4').replace(/^v/, '')}`)
}

export async function startCluster({ nodes, images, runtimes = {} }: ClusterSettings): Promise<Cluster> {
  const { folder: roomFolder, lab } = theRoom()
  const folder = mkdtempSync(join(roomFolder, 'cluster-'))
  const [shelf, storage, logs] = ['images', 'storage', 'logs'].map((name) => join(folder, name)) as [string, string, string] // as many as named
  for (const one of [shelf, storage, logs]) mkdirSync(one)
  const programs = binaries()
  const visitors = createCertificates(join(folder, 'visitors'))
  visitors.credentials('admin')
  const plane = await startPlane(folder)
  const service = await startComponent({
    name: 'service address', file: execPath, args: [fileURLToPath(new URL('service-address.ts', import.meta.url)), serviceAddress, String(plane.port)],
    logFile: join(logs, 'service-address.log'),
  })
  await writeLabImage(programs, folder, join(shelf, 'lab.tar'))
  images.forEach((archive, index) => place(archive, join(shelf, `${index}.tar`)))

  const machines = new Map<string, Machine>()
  for (let index = 0; index < nodes; index++) {
    const name = `node-${index + 1}`
    const disk = join(folder, 'disks', name)
    const [machineId, user] = [randomUUID(), `system:node:${name}` as const]
    const kubeconfig = kubeconfigText(user, `https://${serviceAddress}:${plane.port}`, plane.credentials(user))
    makeDisk(disk, { name, index, machineId, kubeconfig, clientAuthority: visitors.ca, binaries: programs, runtime: runtimes[name] ?? 'containerd-2.3' })
    machines.set(name, createMachine({ name, index, machineId, lab, disk, binaries: programs, images: shelf, storage, logFile: join(logs, `${name}.log`) }))
  }
  const transport = transportTo(plane, 'admin')
  const api = createApi({ transport, clock, userAgent: 'lab', rate: { perSecond: 10_000, burst: 20_000 } })
  return {
    plane, transport, api, machines, folder, storage,
    machine(name) {
      const machine = machines.get(name)
      if (machine === undefined) throw new Error(`no machine is named ${name}`)
      return machine
    },
    kubectl: (...words) => command(plane.kubectl, [`--kubeconfig=${plane.kubeconfig('admin')}`, ...words], 120_000),
    async node(name) {
      const read = await api.get<Node>(`/api/v1/nodes/${name}`)
      if (!read.ok) throw new Error(`node ${name}: ${read.error.message}`)
      return read.value
    },
    async stop() {
      await Promise.all([...machines.values()].map((machine) => machine.powerOff()))
      transport.close()
      await service.stop()
      await plane.stop()
    },
  }
}

/** Reached by the machines at the switch's first address. Its visits to kubelets (logs, exec) are signed by an authority of their
 *  own, since it reads its certificate for them before its own authority exists. */
function startPlane(folder: string): Promise<ControlPlane> {
  const client = join(folder, 'visitors', 'client-admin')
  return startControlPlane({
    dir: join(folder, 'control-plane'),
    flags: { 'kube-apiserver': [
      '--bind-address=0.0.0.0', `--advertise-address=${gateway}`, '--kubelet-preferred-address-types=InternalIP',
      `--kubelet-client-certificate=${client}.crt`, `--kubelet-client-key=${client}.key`,
      ...journalFlags(folder),
    ] },
  })
}

/** The same file under another name where the file system can do that. */
function place(archive: string, to: string): void {
  try {
    linkSync(archive, to)
  } catch {
    copyFileSync(archive, to) // another file system
  }
}

export const ready = (node: Node): boolean => node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false

export async function until(what: string, so: () => boolean | Promise<boolean>, within: Ms): Promise<Ms> {
  const began = clock.now()
  while (!await so()) {
    if (clock.now() - began > within) throw new Error(`not within ${within / 1_000} s: ${what}`)
    await clock.wait(50)
  }
  return clock.now() - began
}
