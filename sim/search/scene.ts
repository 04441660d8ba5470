// What a cluster is like before anything goes wrong in it: its size, its racks, and what its operator wants done.
import type { KubeObject } from '../../coordinator/api.ts'
import type { ProfileName } from '../../core/policy.ts'
import type { Chance } from '../chance.ts'
import type { StageSettings } from '../stage.ts'
import type { Power } from '../world/power.ts'
import { crashKernels, drawCrashKernels } from './crash-kernels.ts'
import { drawRemedy, remedyOf } from './remedies.ts'
import { drawWatchdog, watchdogs, type WatchdogKind } from './watchdogs.ts'
import { drawShared, drawWorkload, driverApart, workloads, type evictions } from './workloads.ts'

export interface Scene {
  readonly nodes: number
  readonly zones: number
  readonly replicas: number
  readonly profile: ProfileName
  /** A controller on the machine's own feed falls silent with it. */
  readonly feed: 'own' | 'machine'
  /** Without it each machine has a controller, and nothing else. */
  readonly power?: Power
  /** What the policy says beside its profile. */
  readonly wants?: keyof typeof wanted
  /** The profile of a second policy, for the nodes of the first zone. */
  readonly second?: ProfileName
  /** Deployments' pods alone are freed, and the others stay bound to their node. Not drawn: what it costs in time nobody judges. */
  readonly frees?: 'deployments'
  /** Runtimes ask the agents' gates, and start no pod unasked. */
  readonly gate?: true
  /** Nodes that nobody permits to run workloads stop them. */
  readonly givesUp?: true
  /** What is left over on a node under quarantine its agent ends. */
  readonly cleansUp?: true
  /** On this node no agent ever runs. */
  readonly bare?: string
  /** Each machine has such a watchdog. Nodes that nobody permits feed it no more, and what it proves is accepted. */
  readonly watchdog?: WatchdogKind
  /** Pods have volumes of another driver, which refuses to detach what is in use. */
  readonly apart?: true
  /** A person's fence begins with evictions, for so long, and a budget keeps a pod from going. */
  readonly evicts?: (typeof evictions)[number]
  /** Each minute a turn of the audit begins. */
  readonly audited?: true
  /** Machines have crash kernels, whose dumps are waited for; the policy takes their word, or it does not. */
  readonly dumps?: 'accepted' | 'refused'
  /** StatefulSets have volumes that several nodes may have at once: of the usual driver, and of the other one where there is one. */
  readonly shared?: true
  /** What a NodeRemedy has done about nodes that run, and are not well. */
  readonly remedy?: 'tell' | 'fence'
}

const wanted = {
  'identity required': { identity: 'require' },
  'what was found off is switched on': { powerOnFoundOff: true },
  'one try, a short rest': { retries: 1, restAfter: '10s' },
  'three at once, in a wider storm': { brakes: { concurrency: 3, stormPercent: 60, stormWindow: '60s' } },
  'volumes released one by one': { release: 'selective' },
  'only sets of pods': { nodeDownPodDeletionPolicy: 'DeleteBothStatefulsetAndDeploymentPod' },
  'only stateful sets': { nodeDownPodDeletionPolicy: 'DeleteStatefulSetPod' },
  'little patience': { bootWithin: '60s', returnPatience: '120s', afterPatience: 'fence', clearPatience: '60s' },
  'power after a while': { powerAfter: '40s' },
  'one restart': { retries: 1, restAfter: '10s', restarts: 1 },
} as const
/** What a machine that is isolated first wants drawn beside. */
const isolated: readonly (Scene['wants'] | undefined)[] = [undefined, 'power after a while', 'power after a while', 'one restart']

/** One that progress can judge has a path that outlives the machine and that its policy trusts, and no slow profile. */
export function drawScene(chance: Chance, size: Pick<Scene, 'nodes' | 'zones' | 'replicas' | 'profile'>, plain: boolean): Scene {
  const drawn = chance.pick<Power>(['bmc', 'bmc', 'bmc', 'enclosure', ...strips, ...levelled])
  // Of a generator of its own: what is drawn beside stays what it was.
  const isolates = drawn === 'bmc' ? chance.fork('isolation') : undefined
  const power = isolates?.yes(0.3) === true ? 'fabric, then bmc' : drawn
  const shared = levelled.includes(drawn) ? chance.yes(0.6) : drawn === 'bmc' && !plain && chance.yes(0.15)
  const usual = chance.yes(0.5) ? undefined : chance.pick(Object.keys(wanted).filter((key) => !isolated.some((one) => one === key)) as (keyof typeof wanted)[]) // its own keys
  const wants = power === 'fabric, then bmc' && isolates !== undefined && usual === undefined ? isolates.pick(isolated) : usual
  const distrusted = wants === 'identity required' && (strips.includes(power) || shared)
  const second = size.zones > 1 && chance.yes(0.2) ? chance.pick<ProfileName>(['fast', 'balanced', plain ? 'balanced' : 'conservative']) : undefined
  const none = chance.fork('agents')
  const scene: Scene = {
    ...size, feed: shared ? 'machine' : 'own', power,
    ...(!plain && chance.yes(0.1) ? { profile: 'conservative' } : {}),
    ...(wants === undefined || (plain && (distrusted || wants === 'only stateful sets')) ? {} : { wants }),
    ...(second === undefined ? {} : { second }),
    ...(chance.yes(0.5) ? { gate: true } : {}),
    ...(chance.yes(0.3) ? { givesUp: true } : {}),
    ...(chance.yes(0.3) ? { cleansUp: true } : {}),
  }
  // Where a runtime asks its gate no pod starts without an agent.
  const manned = plain || scene.gate === true || !none.yes(0.1) ? scene : { ...scene, bare: `node-${1 + none.below(size.nodes)}` }
  const guarded = drawWorkload(chance.fork('workload'), drawWatchdog(chance.fork('watchdog'), manned, plain))
  const audited: Scene = chance.fork('audit').yes(0.3) ? { ...guarded, audited: true } : guarded
  const dumping = drawCrashKernels(chance.fork('crash kernels'), audited, plain)
  return drawShared(chance.fork('shared'), drawRemedy(chance.fork('remedy'), dumping, plain))
}

const levelled: readonly Power[] = ['bmc, then outlet', 'bmc, then two feeds']
const strips: readonly Power[] = ['outlet', 'two feeds on one strip', 'two feeds on two strips']

/** Some device that is trusted answers when a machine has lost its power, nobody waits for longer than seconds, and no volume is left
 *  to Kubernetes, or out of the reach of what isolates. */
export function isClearedInSeconds({ profile, second, feed, power = 'bmc', wants, apart, dumps }: Scene): boolean {
  if (dumps !== undefined || wants === 'only stateful sets' || (apart === true && wants === 'power after a while')) return false
  const trusted = wants !== 'identity required' || (feed === 'own' && !strips.includes(power))
  return trusted && (feed === 'own' || levelled.includes(power) || (power === 'fabric, then bmc' && wants !== 'identity required')) && profile !== 'conservative' && second !== 'conservative'
}

export function stageOf(scene: Scene, seed: number): StageSettings {
  const { nodes, zones, replicas, profile, feed, power = 'bmc', wants, second, gate, frees, bare, watchdog, apart, evicts, audited, dumps, remedy } = scene
  const asked = askedOf(scene)
  return {
    ...(bare === undefined ? {} : { before: (world) => world.killAgent(bare) }),
    seed, nodes, zones, replicas, logFrom: 'info', power, gate: gate === true, policy: { profile, ...asked, ...(wants === undefined ? {} : wanted[wants]), ...(frees === undefined ? {} : { nodeDownPodDeletionPolicy: 'DeleteDeploymentPod' }) },
    device: { kind: 'chassis', feed, timing: { off: 2_000, on: 1_000, status: 200 } },
    objects: [...workloads(scene), ...(second === undefined ? [] : [secondPolicy(second, asked)]), ...(remedy === undefined ? [] : [remedyOf(remedy)])],
    ...(watchdog === undefined ? {} : { watchdog: watchdogs[watchdog] }), ...(apart === undefined ? {} : { driverApart }),
    ...(evicts === undefined ? {} : { controlLoops: { disruption: true } }), ...(audited === undefined ? {} : { auditEvery: 60_000 }),
    ...(dumps === undefined ? {} : { kdump: crashKernels.lines }),
  }
}

/** What every policy of the scene says. */
function askedOf({ givesUp, cleansUp, watchdog, apart, evicts, dumps }: Scene): object {
  return {
    ...(givesUp === undefined ? {} : { giveUp: 'stop' }), ...(watchdog === undefined ? {} : { giveUp: 'watchdog', selfFenced: 'accept' }),
    ...(cleansUp === undefined ? {} : { cleanUp: 'agent' }), ...(apart === undefined ? {} : { safeDetach: [driverApart] }), ...(evicts === undefined ? {} : { evictWithin: evicts }),
    ...(dumps === 'accepted' ? { kdump: 'accept' } : {}),
  }
}

function secondPolicy(profile: ProfileName, asked: object): KubeObject {
  return {
    apiVersion: 'holdfast.dev/v1alpha1', kind: 'HoldfastPolicy', metadata: { name: 'first-zone' },
    spec: { profile, ...asked, priority: 10, nodeDownPodDeletionPolicy: 'DeleteAllPods', selector: { matchLabels: { 'topology.kubernetes.io/zone': 'zone-1' } } },
  } as KubeObject // a kind of ours, written as a person would
}
