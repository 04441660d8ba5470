// Carries out looks and puts the answers where the core sees them. A look that fails leaves things as they were: unknown; it
// answers false, and whoever wanted it waits a little before it is asked again.
import type { Look } from '../core/action.ts'
import { isOver } from '../core/clear.ts'
import { sameBoot, type Ms, type NodeName, type PodSeen, type WitnessSeen } from '../core/model.ts'
import type { Log } from '../edge/log.ts'
import type { Allowance } from './allowance.ts'
import { auditLists } from './audit-list.ts'
import type { Api, KubeList, KubeObject } from './api.ts'
import type { Beats } from './beats.ts'
import { keepEars } from './ears.ts'
import type { FenceRunner } from './fence.ts'
import type { FencePaths } from './fence-paths.ts'
import { readingOf } from './fence.ts'
import type { CoordinatorHost } from './host.ts'
import { keepNode, paths, readPod } from './kubernetes.ts'
import type { Observation } from './observe.ts'
import { podVolumes } from './pod-volumes.ts'
import { tellingRefusals } from './rights.ts'

export interface LookOptions {
  readonly api: Pick<Api, 'get'>
  readonly beats: Pick<Beats, 'agent' | 'ask' | 'askReplica' | 'challenge' | 'check' | 'nonce'>
  readonly fences: Pick<FencePaths, 'method' | 'sharing'>
  readonly runner: FenceRunner
  /** How many programs audits may begin. */
  readonly audits: Pick<Allowance, 'take'>
  readonly host: Pick<CoordinatorHost, 'clock' | 'probe'>
  readonly observation: Observation
  readonly log: Log
  /** Aborts when the replica stops. */
  readonly stopping: AbortSignal
}

/** A kubelet that has not answered a TCP connection by then is silent for this time. */
const probeSpan: Ms = 800
const leaseDeadline: Ms = 2_000
const podsDeadline: Ms = 5_000
/** The API server keeps at most 12,500 pods that are over; all of them could have been of one node. Twice what an agent can be
 *  told of, so that there is somebody to say that it is too much. */
const mostPages = 60

export function looker(options: LookOptions): (look: Look) => Promise<boolean> {
  const { beats, fences, runner, host, observation, stopping } = options
  const { clock } = host
  const api = tellingRefusals(options.api, options.log)
  const volumes = podVolumes(api)
  const ears = keepEars({ beats, clock })
  const listed = auditLists({ fences, runner, observation, clock, stopping })

  return async (look) => {
    switch (look.do) {
      case 'probe': return probe(look.node)
      case 'askWitnesses': return askWitnesses(look)
      case 'readLease': return readLease(look.node)
      case 'readNode': return readNode(look.node)
      case 'listPods': return await listPods(look.node) !== undefined
      case 'askDevice': return askDevice(look)
      case 'challenge': return await beats.challenge(look.node) !== undefined
      case 'askClean': return askClean(look)
    }
  }

  async function probe(node: NodeName): Promise<boolean> {
    const row = observation.row(node)
    if (row === undefined || row.address === '') return false
    const { address } = row
    const askedAt = clock.now()
    const word = await host.probe(address, row.kubeletPort, probeSpan)
    // Another Node of this name, or another address: what was asked was not this one.
    if (observation.row(node) !== row || row.address !== address) return false
    observation.probed(node, { askedAt, answeredAt: clock.now(), word })
    return true
  }

  async function askWitnesses(look: Extract<Look, { do: 'askWitnesses' }>): Promise<boolean> {
    const row = observation.row(look.node)
    const agents = look.witnesses.filter(({ kind }) => kind === 'agent').map(({ name }) => name)
    const askedAt = clock.now()
    const answered = await Promise.all(look.witnesses.map(async ({ name, kind }) => {
      // Each is asked beside about those that come after it in the row: not all about the same two.
      const word = kind === 'replica' ? await beats.askReplica(name, look.node)
        : await ears.ask(name, look.node, row?.beat?.at ?? -Infinity, [...agents.slice(agents.indexOf(name) + 1), ...agents.slice(0, agents.indexOf(name))])
      // A witness that did not answer says nothing, neither way.
      if (word === undefined || observation.row(look.node) !== row) return false
      const seen: WitnessSeen = { witness: name, kind, askedAt, answeredAt: clock.now(), word: word.word, proven: word.proven, ...(word.boot === undefined ? {} : { boot: word.boot }) }
      observation.witnessed(look.node, [seen])
      return true
    }))
    return answered.includes(true)
  }

  async function readLease(node: NodeName): Promise<boolean> {
    const row = observation.row(node)
    const askedAt = clock.now()
    const answer = await api.get<{ spec?: { renewTime?: string } }>(paths.lease(node), { deadline: leaseDeadline })
    if (!answer.ok || observation.row(node) !== row) return false
    observation.leased(node, askedAt, answer.value.spec?.renewTime ?? '')
    return true
  }

  async function readNode(node: NodeName): Promise<boolean> {
    const row = observation.row(node)
    const askedAt = clock.now()
    const answer = await api.get<KubeObject>(paths.node(node), { deadline: leaseDeadline })
    if (!answer.ok || row === undefined || observation.row(node) !== row) return false
    observation.node(keepNode(answer.value), 'live')
    // Another Node of this name has a row of its own by now, of which nothing was read.
    row.readAt = askedAt
    return true
  }

  /** All of them, or nothing: a list that is not whole is not used. */
  async function listPods(node: NodeName): Promise<readonly PodSeen[] | undefined> {
    const row = observation.row(node)
    const askedAt = clock.now()
    const objects: KubeObject[] = []
    let after: string | undefined
    for (let page = 0; page < mostPages && after !== ''; page += 1) {
      const deadline = podsDeadline - (clock.now() - askedAt)
      if (deadline <= 0) return undefined
      const answer = await api.get<KubeList<KubeObject>>(paths.podsOf(node, after), { deadline })
      if (row !== undefined) row.podsRefused = answer.ok || answer.error.kind !== 'forbidden' ? undefined : answer.error.message
      if (!answer.ok) return undefined
      objects.push(...answer.value.items)
      after = answer.value.metadata.continue ?? ''
    }
    if (after !== '' || observation.row(node) !== row) return undefined
    const items = await Promise.all(objects.map(async (object) => readPod(object, await volumes.of(object))))
    if (observation.row(node) !== row) return undefined
    observation.listed(node, { askedAt, listedAt: clock.now(), items })
    return items
  }

  async function askDevice(look: Extract<Look, { do: 'askDevice' }>): Promise<boolean> {
    const method = fences.method(look.node, look.method)
    if (method === undefined) return false
    if (look.purpose === 'audit' && options.audits.take(1) === 0) return false
    if (look.purpose === 'audit' && await listed(look.node, method)) return true
    const run = { node: look.node, method, action: 'status', purpose: look.purpose, signal: stopping } as const
    const end = await runner.runMethod(run)
    // An audit that an incident ended says nothing of the device.
    if (end.gaveWay) return false
    observation.read(look.node, readingOf(run, end))
    return true
  }

  /** The pods that belong are told first; without them, or with those of a while ago, the agent could not say what is left over. */
  async function askClean({ node, stop, cleanUp }: Extract<Look, { do: 'askClean' }>): Promise<boolean> {
    const askedAt = options.host.clock.now()
    const bound = await listPods(node)
    if (bound === undefined) return false
    const doomed = doomedOn(node)
    const belong = bound.filter((pod) => !(doomed.has(pod.uid) && isOver(pod)))
    return beats.check(node, belong.map((pod) => pod.folder ?? pod.uid), { ...(stop === undefined ? {} : { stop }), ...(cleanUp === undefined ? {} : { cleanUp }) }, askedAt)
  }

  /** What was to be freed of the boot that is heard: whoever led may have been killed between dooming a pod and deleting it. Its
   *  owner has replaced it, and it runs here as long as its object stands. In another boot it runs no more. */
  function doomedOn(node: NodeName): ReadonlySet<string> {
    const boot = observation.row(node)?.beat?.boot
    const open = [...observation.seen.incidents.values()]
      .filter((incident) => incident.nodeName === node && incident.status.phase !== 'Final' && boot !== undefined && sameBoot(boot, incident.boot))
    return new Set(open.flatMap(({ status }) => status.pods.filter(({ fate }) => fate === 'freed').map(({ uid }) => uid)))
  }
}
