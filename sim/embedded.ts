// The embedded world: the simulated cluster in real time, in this one process, with the product on real sockets. Two replicas
// and the agents are the product's own code, unmodified; they link over TLS, whisper over UDP, probe kubelet ports, ask the API
// server over HTTPS, and run fence agents as processes against Redfish services. Everything is on loopback, on free ports.
import { randomBytes, randomInt } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { startAgent } from '../agent/agent.ts'
import { audience } from '../coordinator/beats-review.ts'
import { startCoordinator, type Coordinator } from '../coordinator/coordinator.ts'
import type { CoordinatorHost } from '../coordinator/host.ts'
import { measures, type Measures } from '../coordinator/measures.ts'
import { createPage, type Page } from '../coordinator/page.ts'
import type { Ms } from '../core/model.ts'
import type { Policy } from '../core/policy.ts'
import { makeAuthority, makeServer } from '../edge/certificate.ts'
import { machineClock, type Clock } from '../edge/clock.ts'
import { replicaName } from '../edge/tls-link.ts'
import { openApi, type EmbeddedApi } from './embedded-api.ts'
import { openDevices, embeddedPrograms, type EmbeddedPrograms } from './embedded-devices.ts'
import { openDoors, type EmbeddedDoors } from './embedded-doors.ts'
import { openFront, type Front } from './embedded-front.ts'
import { embeddedLinks, type EmbeddedLinks } from './embedded-links.ts'
import { driver, embeddedObjects, settle, systemNamespace, workNamespace } from './embedded-objects.ts'
import { embeddedWhispers, type EmbeddedWhispers } from './embedded-whispers.ts'
import { createWorld, type ReplicaPlace, type World } from './world.ts'

export interface EmbeddedSettings {
  /** For everything that is written: kubeconfig, the folder that programs run in. The caller takes it away. */
  readonly folder: string
  readonly profile: Policy['profile']
  /** From power on to pid 1. */
  readonly bootTime: readonly [Ms, Ms]
  readonly seed?: number
}

export interface Embedded {
  readonly world: World
  readonly nodes: readonly string[]
  /** Where the pods with volumes begin. */
  readonly home: string
  /** A file for a person's own kubectl. */
  readonly kubeconfig: string
  /** The page's address. */
  readonly page: string
  leader(): Coordinator | undefined
  stop(): Promise<void>
}

const nodes = ['node-1', 'node-2', 'node-3']
const home = 'node-2'
const day: Ms = 24 * 3_600_000

interface Ground {
  readonly world: World
  readonly links: EmbeddedLinks
  readonly whispers: EmbeddedWhispers
  readonly doors: EmbeddedDoors
  readonly api: EmbeddedApi
}

export async function startEmbedded(settings: EmbeddedSettings): Promise<Embedded> {
  const clock = machineClock
  const authority = makeAuthority({ name: 'holdfast', from: clock.wall() - day, until: clock.wall() + 30 * day })
  const serving = makeServer({ ...authority, name: 'holdfast' }, { name: replicaName, names: [replicaName], from: clock.wall() - day, until: clock.wall() + 30 * day })
  const empty = join(settings.folder, 'empty')
  mkdirSync(empty, { recursive: true })
  const salt = randomBytes(16).toString('hex')
  const coordinators = new Map<number, { readonly coordinator: Coordinator; readonly page: Page; readonly measured: Measures }>()
  const programs = new Set<EmbeddedPrograms>()
  const devices = await openDevices(clock, nodes)
  let opened: ((ground: Ground) => void) | undefined
  const ready = new Promise<Ground>((resolve) => { opened = resolve })
  let ground: Ground | undefined
  let front: Front | undefined

  const world = await createWorld({
    seed: settings.seed ?? randomInt(2 ** 32), clock, nodes, bootTime: settings.bootTime, replicas: 2,
    namespace: workNamespace, systemNamespace, driver, agentAudience: audience, withWorkload: false, controlLoops: { disruption: true },
    objects: [...embeddedObjects(settings.profile, nodes, home), ...devices.objects(systemNamespace)],
    startReplica: (host, place) => ready.then((on) => replica(on, host, place)),
    startAgent(host, { node }) {
      const process = ground?.world.nodes.get(node)?.agent()
      const machine = ground?.world.nodes.get(node)?.machine
      if (ground === undefined || process === undefined || machine === undefined) throw new Error(`${node} runs before the world does`)
      const { links, whispers } = ground
      return startAgent(
        { ...host, dialer: links.dialer(machine.host, process), whispers: whispers.of(machine.host, process) },
        { version: 'embedded', kubeletRoot: '/var/lib/kubelet', whisperPort: 0 },
      )
    },
  })
  const hosts = [...world.nodes.values()].map(({ machine }) => machine.host)
  const api = await openApi(world, clock)
  const kubeconfig = join(settings.folder, 'kubeconfig')
  api.writeKubeconfig(kubeconfig)
  ground = {
    world, api, links: embeddedLinks(world.network, clock, authority.certificate), whispers: embeddedWhispers(world.network, clock),
    doors: await openDoors(world.network, hosts),
  }
  for (const [name, { machine }] of world.nodes) {
    const device = world.devices.get(`bmc-${name}`)
    if (device !== undefined) devices.wire(name, machine, device)
  }
  opened?.(ground)
  const stop = async (): Promise<void> => {
    for (const { coordinator, page } of coordinators.values()) {
      page.close()
      await Promise.race([coordinator.stop(), clock.wait(2_000)])
    }
    world.stop()
    await Promise.all([...programs].map((one) => one.close()))
    ground?.whispers.close()
    await Promise.all([front?.close(), ground?.links.close(), ground?.doors.close(), devices.close(), api.close()])
  }
  try {
    front = await openFront({
      world, page: () => [...coordinators.values()].toSorted(leadingFirst)[0]?.page,
      metrics: () => [...coordinators.values()].toSorted(leadingFirst)[0]?.measured.metrics.render() ?? '',
      leader: () => [...coordinators].find(([, { coordinator }]) => coordinator.leads() !== undefined)?.[0],
    })
    await settle(world.api, clock, nodes, home)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    world, nodes, home, kubeconfig, page: front.address, stop,
    leader: () => [...coordinators.values()].find(({ coordinator }) => coordinator.leads() !== undefined)?.coordinator,
  }

  async function replica(on: Ground, host: CoordinatorHost, place: ReplicaPlace): Promise<{ stop(): Promise<void> }> {
    const at = on.world.replicas.host(place.number)
    const { process } = place
    const own = embeddedPrograms(clock, process, empty)
    programs.add(own)
    const measured = measures('embedded')
    const coordinator = await startCoordinator({
      ...host, programs: own, transport: on.api.transport(at, process),
      dialer: on.links.dialer(at, process),
      listen: (accept) => on.links.listen(at, process, serving, accept),
      probe: (address, port, span) => process.hold(on.doors.probe(at, address, port, span)),
    }, {
      namespace: systemNamespace, agentNamespace: systemNamespace, identity: place.identity, salt,
      token: () => tokenOf(on.world, process.clock), replicas: place.replicas,
      decided: (span) => measured.decision.observe({}, span / 1_000), requested: (verb, answer, span) => measured.request.observe({ verb, answer }, span / 1_000),
      wrote: measured.wrote,
    })
    measured.watch(coordinator, process.clock)
    // The front opens while the first replicas start.
    const page = createPage({
      source: coordinator, clock: process.clock,
      extras: { pods: (node) => front?.extras.pods(node), levers: (node) => front?.extras.levers(node) ?? [] },
    })
    coordinators.set(place.number, { coordinator, page, measured })
    process.onEnd(() => {
      page.close()
      coordinators.delete(place.number)
      programs.delete(own)
    })
    return coordinator
  }
}

function leadingFirst(one: { coordinator: Coordinator }, other: { coordinator: Coordinator }): number {
  return Number(other.coordinator.leads() !== undefined) - Number(one.coordinator.leads() !== undefined)
}

/** What a kubelet would have put into the replica's pod. */
async function tokenOf(world: World, clock: Clock): Promise<string | undefined> {
  const answer = await world.api.create<{ status: { token: string } }>(`/api/v1/namespaces/${systemNamespace}/serviceaccounts/holdfast-coordinator/token`, {
    apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: [audience], expirationSeconds: 3_600 },
  })
  if (!answer.ok) await clock.wait(500)
  return answer.ok ? answer.value.status.token : undefined
}
