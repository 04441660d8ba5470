// A world with the whole product in it, as a story needs it: three nodes with agents, two replicas, a StatefulSet and a
// Deployment with volumes, every node's own power controller configured, and a policy that frees all pods.
import { startAgent } from '../agent/agent.ts'
import { startCoordinator, type Coordinator, type CoordinatorSettings } from '../coordinator/coordinator.ts'
import type { KubeObject } from '../coordinator/api.ts'
import { audience } from '../coordinator/beats-review.ts'
import { readIncident } from '../coordinator/node-fence.ts'
import type { Incident } from '../core/incident.ts'
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import { customResourceDefinitions } from '../deploy/crd.ts'
import { createWorld, type World } from './world.ts'
import { fenceObjects } from './world/fence-objects.ts'
import { usualWorld, type WorldSettings } from './world/settings.ts'

export interface Stage {
  readonly world: World
  /** Replicas by number, as long as their process lives. */
  readonly coordinators: ReadonlyMap<number, Coordinator>
  leader(): number | undefined
  incidents(): Promise<readonly Incident[]>
  /** Turns the world until it is so, at most for the span. */
  until(what: string, so: () => boolean | Promise<boolean>, within: Ms): Promise<void>
  run(span: Ms): Promise<void>
}

export interface StageSettings extends Partial<WorldSettings> {
  readonly policy?: object
  /** Turns of the audit begin at these times of the day, as main.ts has them begun. */
  readonly auditEvery?: Ms
  /** Of each replica, as main.ts has it measured. */
  readonly wrote?: CoordinatorSettings['wrote']
  /** What every node's fence configuration says of crash kernels. */
  readonly kdump?: string
  /** The kinds as the cluster has them, and whose code each replica runs: another release's, where two stand side by side. */
  readonly kinds?: readonly KubeObject[]
  readonly codeOf?: (replica: number) => typeof startCoordinator
  /** Done to the world before anything of it has run. */
  readonly before?: (world: World) => void
}

/** Who waits for something asks so often: each time the world stops for it. */
const askedEvery: Ms = 200

export async function stage(settings: StageSettings = {}): Promise<Stage> {
  const coordinators = new Map<number, Coordinator>()
  const nodes = typeof settings.nodes === 'number' ? Array.from({ length: settings.nodes }, (_, index) => `node-${index + 1}`) : settings.nodes ?? ['node-1', 'node-2', 'node-3']
  const namespace = 'holdfast-system'
  const zones = settings.zones ?? usualWorld.zones
  const placed = nodes.map((node, index) => ({ node, index, zone: index % zones }))
  let token: Promise<string> | undefined
  const world: World = await createWorld({
    seed: 1, nodes, startAgent: (host, { node }) => startAgent(host, {
      version: 'test', kubeletRoot: '/var/lib/kubelet', whisperPort: 7_416, exemptNamespaces: [namespace], ...(settings.gate === true ? { gate: { node } } : {}),
    }),
    startReplica: async (host, place) => {
      const coordinator = await (settings.codeOf?.(place.number) ?? startCoordinator)(host, {
        namespace, agentNamespace: namespace, identity: place.identity, salt: 'salt',
        token: () => (token ??= tokenOf(world)), replicas: place.replicas, ...(settings.wrote === undefined ? {} : { wrote: settings.wrote }),
      })
      coordinators.set(place.number, coordinator)
      if (settings.auditEvery !== undefined) auditEvery(host.clock, settings.auditEvery, coordinator)
      place.process.onEnd(() => coordinators.delete(place.number))
      return coordinator
    },
    ...settings,
    objects: [...(settings.kinds ?? customResourceDefinitions() as unknown as KubeObject[]), thePolicy(settings.policy), ...fenceObjects(namespace, settings.power ?? 'bmc', placed, settings.kdump), ...settings.objects ?? []],
  })
  settings.before?.(world)
  const read = readOnce()
  return {
    world, coordinators,
    leader: () => [...coordinators].find(([, coordinator]) => coordinator.leads() !== undefined)?.[0],
    async incidents() {
      if (world.server === undefined) throw new Error('a stage stands in a world of its own')
      return world.server.peek('nodefences.holdfast.dev').flatMap((object) => read(object) ?? [])
    },
    async until(what, so, within) {
      const end = world.clock.now() + within
      while (!await so()) {
        if (world.clock.now() >= end) throw new Error(`not within ${within} ms: ${what}`)
        await world.turn().runFor(askedEvery)
      }
    },
    run: (span) => world.turn().runFor(span),
  }
}

function auditEvery(clock: Clock, period: Ms, coordinator: Coordinator): void {
  clock.after(period - (clock.wall() % period), () => {
    coordinator.auditAll(period)
    auditEvery(clock, period, coordinator)
  })
}

/** What is asked of changes seldom. */
function readOnce(): (object: KubeObject) => Incident | undefined {
  const known = new WeakMap<KubeObject, Incident | 'unreadable'>()
  return (object) => {
    const before = known.get(object)
    if (before !== undefined) return before === 'unreadable' ? undefined : before
    const read = readIncident(object)
    known.set(object, read.ok ? read.incident : 'unreadable')
    return read.ok ? read.incident : undefined
  }
}

/** What a kubelet has put into the replicas' pods: there before they are, and good for longer than any story lasts. */
async function tokenOf({ api }: World): Promise<string> {
  const answer = await api.create<{ status: { token: string } }>('/api/v1/namespaces/holdfast-system/serviceaccounts/holdfast-coordinator/token', {
    apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: [audience], expirationSeconds: 1_000_000 },
  })
  if (!answer.ok) throw new Error(answer.error.message)
  return answer.value.status.token
}

/** Turns the world until the promise has an answer. */
export async function settled<T>(world: World, promise: Promise<T>): Promise<T> {
  let over = false
  void promise.finally(() => { over = true })
  if (!await world.turn().runWhen(() => over, 20_000)) throw new Error('no answer within 20 s of the world')
  return promise
}

function thePolicy(changes: object = {}): KubeObject {
  return {
    apiVersion: 'holdfast.dev/v1alpha1', kind: 'HoldfastPolicy', metadata: { name: 'all' },
    spec: { profile: 'fast', nodeDownPodDeletionPolicy: 'DeleteAllPods', ...changes },
  } as KubeObject // a kind of ours, written as a person would
}
