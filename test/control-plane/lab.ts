// A cluster in which everything is real but the machines: a real control plane, the product as processes of the system with the
// rights of their own accounts, fence agents as programs against power controllers over HTTPS. The machines, their kubelets
// (with node identities, under NodeRestriction), the CSI attacher and the storage are the simulated world's, in real time. What
// the storage was sent is the judge of everything.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApi, type Api, type KubeObject } from '../../coordinator/api.ts'
import type { HttpsTransport } from '../../coordinator/https.ts'
import { fencesPath, readIncident } from '../../coordinator/node-fence.ts'
import { readRecord, recordsPath } from '../../coordinator/node-record.ts'
import { reflect, type Reflector } from '../../coordinator/reflector.ts'
import type { Incident } from '../../core/incident.ts'
import type { Ms, NodeRecord } from '../../core/model.ts'
import { yamlOf } from '../../deploy/manifest.ts'
import { manifests } from '../../deploy/manifests.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { silentLog } from '../../edge/log.ts'
import { agentImage } from '../../sim/world/objects.ts'
import { createWorld, type World } from '../../sim/world.ts'
import { startControlPlane, type ControlPlane } from './control-plane.ts'
import { createLabNode, type LabNode } from './lab-node.ts'
import { policy, steadyWorkload, workNamespace } from './lab-objects.ts'
import { freePorts } from './ports.ts'
import { openPowerControllers, type PowerControllers } from './power-controllers.ts'
import { createReplicas, labValues, type Replicas } from './replicas.ts'
import { transportTo } from './transport.ts'
import type { NodeUser } from './certificates.ts'

export interface LabSettings {
  readonly nodes: number
  readonly zones: number
  /** Written over the policy's spec. */
  readonly policy: object
  /** Instead of that policy and the usual workload. */
  readonly objects?: readonly KubeObject[]
  /** From power on to pid 1. */
  readonly bootTime: readonly [Ms, Ms]
  readonly deviceStatus: Ms
  readonly deviceOff: Ms
  readonly detach: Ms
  /** Of another driver beside the usual one. */
  readonly driverApart: string
  /** What an agent does whose cable is out: nothing, so that its host need not be asked what it does; or it goes on, and nobody hears it. */
  readonly cutOff: 'stands still' | 'runs on'
  readonly logLevel: string
  /** Where logs are kept; a temporary folder otherwise, which goes at the end. */
  readonly folder?: string
}

const usualLab: LabSettings = {
  nodes: 4, zones: 2, policy: {}, bootTime: [3_000, 4_000], deviceStatus: 200, deviceOff: 2_000, detach: 500, driverApart: '', cutOff: 'stands still', logLevel: 'info',
}

export interface Lab {
  readonly plane: ControlPlane
  readonly world: World
  /** As an administrator. */
  readonly api: Api
  readonly nodes: ReadonlyMap<string, LabNode>
  readonly devices: PowerControllers['of']
  readonly replicas: Replicas
  /** Where a fence program of an operator's own is found. */
  readonly programs: string
  /** As they are in the cluster now, finished ones too. */
  incidents(): readonly Incident[]
  records(): ReadonlyMap<string, NodeRecord>
  /** VolumeAttachments of the node, by name. */
  attachments(node: string): readonly string[]
  /** Each change of NodeFences and VolumeAttachments, until the answer is called. */
  listen(ear: () => void): () => void
  /** The node's cable: its kubelet loses the API server, nobody hears its agent or its port; what runs on it runs on. */
  isolate(node: string): () => void
  /** Whatever was done to devices, cables and replicas is undone; machines stay as they are. */
  heal(): void
  /** Every line that every replica has logged. */
  replicaLog(): readonly Readonly<Record<string, unknown>>[]
  /** What made this lab untrustworthy, if anything. */
  broken(): unknown
  stop(): Promise<void>
}

export async function startLab(wanted: Partial<LabSettings> = {}): Promise<Lab> {
  const settings: LabSettings = { ...usualLab, ...wanted }
  const folder = settings.folder ?? mkdtempSync(join(tmpdir(), 'holdfast-lab-'))
  mkdirSync(folder, { recursive: true })
  const programs = join(folder, 'programs')
  mkdirSync(programs, { recursive: true })
  const plane = await startControlPlane({ dir: join(folder, 'control-plane') })
  const transports = new Map<string, HttpsTransport>()
  const transportFor = (user: string): HttpsTransport => {
    const who = user.startsWith('system:node:') ? user as NodeUser : 'admin' // the attacher's account is the administrator's here
    const known = transports.get(who) ?? transportTo(plane, who)
    transports.set(who, known)
    return known
  }
  const api = createApi({ transport: transportFor('admin'), clock, userAgent: 'lab', rate: { perSecond: 10_000, burst: 20_000 } })
  const names = Array.from({ length: settings.nodes }, (_, index) => `node-${index + 1}`)
  const controllers = await openPowerControllers(names, settings.deviceStatus)
  const ports = await freePorts([...names.map((name) => `whispers ${name}`), 'kubelet', 'health', 'beats', 'http'])
  const portOf = (name: string): number => ports[name] ?? 0

  const values = labValues(agentImage)
  const manifest = join(folder, 'holdfast.yaml')
  writeFileSync(manifest, yamlOf(manifests(values)))
  execFileSync(plane.kubectl, [`--kubeconfig=${plane.kubeconfig('admin')}`, 'apply', '--server-side', '-f', manifest], { timeout: 60_000, stdio: 'pipe' })
  const replicas = await createReplicas({
    api, values, url: plane.url, ca: plane.ca, folder, programs, count: 2, ports: { beats: portOf('beats'), http: portOf('http') }, logLevel: settings.logLevel,
  })

  const nodes = new Map<string, LabNode>()
  let broke: unknown
  const world = await createWorld({
    seed: Date.now(), clock, nodes: names, zones: settings.zones, nodeAddress: (index) => `127.0.1.${index + 1}`, kubeletPort: portOf('kubelet'), replicas: 0,
    namespace: workNamespace, systemNamespace: values.agentNamespace, withWorkload: false, bootTime: settings.bootTime, transportFor, logFrom: 'warn',
    device: { kind: 'chassis', feed: 'own', timing: { off: settings.deviceOff, on: 500, status: 0 } }, csi: { detachTime: settings.detach }, driverApart: settings.driverApart,
    objects: [...controllers.objects(values.namespace), ...settings.objects ?? [policy(settings.policy), ...steadyWorkload()]],
    startAgent(host, { node }) {
      const container = world.nodes.get(node)?.agent()
      const lab = nodes.get(node)
      if (container === undefined || lab === undefined) throw new Error(`${node} runs before the lab does`)
      return lab.runAgent(host, container)
    },
  })
  const authorityFile = join(folder, 'ca.crt')
  writeFileSync(authorityFile, '')
  for (const [name, { machine, runtime }] of world.nodes) {
    const device = world.devices.get(`bmc-${name}`)
    if (device !== undefined) controllers.wire(name, machine, device)
    nodes.set(name, createLabNode({
      machine, runtime, folder: join(folder, name), kubeletPort: portOf('kubelet'), healthPort: portOf('health'), whisperPort: portOf(`whispers ${name}`),
      authorityFile, replicas: replicas.addresses, exemptNamespaces: [values.agentNamespace], cutOff: settings.cutOff, logLevel: settings.logLevel,
      broke(error) {
        broke ??= error
        console.log(`${name}: ${String(error)}`)
      },
    }))
  }
  world.truth.listen((entry) => {
    const { node } = entry.facts
    if (typeof node === 'string') nodes.get(node)?.happened(entry)
  })

  const cut: (() => void)[] = []
  const ears = new Set<() => void>()
  const tell = () => {
    for (const ear of ears) ear()
  }
  const incidents = new Map<string, Incident>()
  const records = new Map<string, NodeRecord>()
  const attachments = new Map<string, string>()
  const common = { api, clock, chance: Math.random, log: silentLog }
  const reflectors: Reflector<KubeObject>[] = [
    reflect<KubeObject>({ ...common, path: fencesPath, changed({ type, object }) {
      const read = readIncident(object)
      if (type === 'deleted') incidents.delete(object.metadata.name)
      else if (read.ok) incidents.set(object.metadata.name, read.incident)
      tell()
    } }),
    reflect<KubeObject>({ ...common, path: '/apis/storage.k8s.io/v1/volumeattachments', changed({ type, object }) {
      const { spec } = object as KubeObject & { spec: { nodeName: string } } // the API server sees to it
      if (type === 'deleted') attachments.delete(object.metadata.name)
      else attachments.set(object.metadata.name, spec.nodeName)
      tell()
    } }),
    reflect<KubeObject>({ ...common, path: recordsPath, changed({ type, object }) {
      const read = readRecord(object)
      if (type === 'deleted') records.delete(object.metadata.name)
      else if (read.ok) records.set(object.metadata.name, read.record)
    } }),
    reflect<KubeObject>({
      ...common, path: `/api/v1/namespaces/${values.agentNamespace}/configmaps`, query: { fieldSelector: 'metadata.name=holdfast-authority' },
      changed({ object }) {
        const { data } = object as KubeObject & { data?: Record<string, string> } // a ConfigMap has it, or leaves it out
        writeFileSync(authorityFile, data?.['ca.crt'] ?? '')
      },
    }),
  ]

  return {
    plane, world, api, nodes, devices: controllers.of, replicas, programs,
    incidents: () => [...incidents.values()],
    records: () => records,
    attachments: (node) => [...attachments].filter(([, of]) => of === node).map(([name]) => name),
    listen(ear) {
      ears.add(ear)
      return () => ears.delete(ear)
    },
    isolate(node) {
      const [cable, real] = [world.isolate(node), nodes.get(node)?.cutCable()]
      const end = (): void => {
        cable()
        real?.()
      }
      cut.push(end)
      return end
    },
    heal() {
      for (const [name, controller] of controllers.of) {
        controller.fault(undefined)
        controller.lie(false)
        const device = world.devices.get(`bmc-${name}`)
        device?.heal()
      }
      for (const end of cut.splice(0)) end()
      for (const replica of replicas.running.values()) replica.resume()
    },
    replicaLog: () => replicas.logs.flatMap((file) => readFileSync(file, 'utf8').split('\n').flatMap(lineOf)),
    broken: () => broke,
    async stop() {
      for (const reflector of reflectors) reflector.stop()
      await replicas.stop()
      world.stop()
      await Promise.all([...nodes.values()].map((node) => node.close()))
      await controllers.close()
      for (const transport of transports.values()) transport.close()
      await plane.stop()
      if (settings.folder === undefined) rmSync(folder, { recursive: true, force: true })
    },
  }
}

function lineOf(line: string): Readonly<Record<string, unknown>>[] {
  if (line === '') return []
  try {
    return [JSON.parse(line) as Record<string, unknown>] // the logger writes objects, a line each
  } catch {
    return [{ text: line }] // words of Node itself, such as a stack
  }
}
