// Carries out looks and puts the answers where the core sees them. A look that fails leaves things as they were: unknown.
import type { Look } from '../core/action.ts'
import type { Ms, NodeName, WitnessSeen } from '../core/model.ts'
import type { Log } from '../edge/log.ts'
import type { Api, KubeList, KubeObject } from './api.ts'
import type { Beats } from './beats.ts'
import type { FenceRunner } from './fence.ts'
import type { FencePaths } from './fence-paths.ts'
import { readingOf } from './fence.ts'
import type { CoordinatorHost } from './host.ts'
import { paths, readPod } from './kubernetes.ts'
import type { Observation } from './observe.ts'

export interface LookOptions {
  readonly api: Api
  readonly beats: Beats
  readonly fences: FencePaths
  readonly runner: FenceRunner
  readonly host: Pick<CoordinatorHost, 'clock' | 'probe'>
  readonly observation: Observation
  readonly log: Log
}

/** A kubelet that has not answered a TCP connection by then is silent for this time. */
const probeSpan: Ms = 800
const leaseDeadline: Ms = 2_000
const podsDeadline: Ms = 5_000

export function looker(options: LookOptions): (look: Look) => Promise<void> {
  const { api, beats, fences, runner, host, observation } = options
  const { clock } = host

  return (look) => {
    switch (look.do) {
      case 'probe': return probe(look.node)
      case 'askWitnesses': return askWitnesses(look)
      case 'readLease': return readLease(look.node)
      case 'listPods': return listPods(look.node)
      case 'askDevice': return askDevice(look)
      case 'challenge': return beats.challenge(look.node).then(() => undefined)
      case 'askClean': return askClean(look.node)
    }
  }

  async function probe(node: NodeName): Promise<void> {
    const row = observation.row(node)
    if (row === undefined || row.address === '') return
    const askedAt = clock.now()
    const word = await host.probe(row.address, row.kubeletPort, probeSpan)
    observation.probed(node, { askedAt, answeredAt: clock.now(), word })
  }

  async function askWitnesses(look: Extract<Look, { do: 'askWitnesses' }>): Promise<void> {
    const address = beats.agent(look.node)?.whisperAddress
    const askedAt = clock.now()
    await Promise.all(look.witnesses.map(async ({ name, kind }) => {
      const word = kind === 'replica' ? await beats.askReplica(name, look.node)
        : address === undefined ? undefined : await beats.ask(name, look.node, address, beats.nonce())
      // A witness that did not answer says nothing, neither way.
      if (word === undefined) return
      const seen: WitnessSeen = { witness: name, kind, askedAt, answeredAt: clock.now(), word: word.word, proven: word.proven }
      observation.witnessed(look.node, [seen])
    }))
  }

  async function readLease(node: NodeName): Promise<void> {
    const askedAt = clock.now()
    const answer = await api.get<{ spec?: { renewTime?: string } }>(paths.lease(node), { deadline: leaseDeadline })
    if (answer.ok) observation.leased(node, askedAt, answer.value.spec?.renewTime ?? '')
  }

  async function listPods(node: NodeName): Promise<void> {
    const askedAt = clock.now()
    const answer = await api.get<KubeList<KubeObject>>(paths.podsOf(node), { deadline: podsDeadline })
    // A node has at most some hundreds of pods; a list that would not fit in one page is not whole, and not used.
    if (!answer.ok || (answer.value.metadata.continue ?? '') !== '') return
    observation.listed(node, { askedAt, listedAt: clock.now(), items: answer.value.items.map(readPod) })
  }

  async function askDevice(look: Extract<Look, { do: 'askDevice' }>): Promise<void> {
    const method = fences.method(look.node, look.method)
    if (method === undefined) return
    const run = { node: look.node, method, action: 'status', purpose: look.purpose } as const
    observation.read(look.node, readingOf(run, await runner.runMethod(run)))
  }

  /** The pods that belong are told first; without them the agent could not say what is left over. */
  async function askClean(node: NodeName): Promise<void> {
    await listPods(node)
    const pods = observation.row(node)?.pods
    if (pods !== undefined) beats.check(node, pods.items.map((pod) => pod.folder ?? pod.uid))
  }
}
