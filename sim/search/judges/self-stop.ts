// Where nodes are asked to give up: does one run its workloads on that has been cut off from everybody for long, and does one give up that
// a leader, the API server or most of the others would have permitted to run? What is said about a node is known here by who could reach
// whom, and when; only the moment of giving up is the product's own word. Where a watchdog does the rest, does it reset a machine that is permitted?
import type { Ms } from '../../../core/model.ts'
import type { Host, Plane } from '../../network.ts'
import type { Process } from '../../process.ts'
import type { World } from '../../world.ts'
import type { Violation } from '../judgement.ts'
import { bootId, seconds } from './facts.ts'
import type { Fence, History } from './sight.ts'

export interface SelfStopJudge {
  found(): readonly Violation[]
  stop(): void
}

const lookEvery: Ms = 1_000
/** A permit, the time to stop by a runtime that hangs, and the turns of a machine that is busy. */
const overBy: Ms = 60_000
/** Its kubelet starts it again and again. */
const restartTakes: Ms = 15_000
/** From the first packet that passes to a link, a review of its token and a permit. */
const surelyPermitted: Ms = 40_000
/** By then an agent has been told who its members are, and what they must not permit. */
const toldWithin: Ms = 15_000
/** An agent that does not know what runs cannot freeze it. */
const knowsBy: Ms = 40_000

/** What is known of one node, as of the latest look. */
interface Watched {
  boot?: string
  agent?: Process
  agentSince: Ms
  aloneSince?: Ms
  permittedSince?: Ms
  /** It was asked to give up in this boot. */
  asked: boolean
  /** Who could stand in for a leader when it last spoke with one. */
  members: readonly Process[]
}

/** Listens and looks from now on. */
export function judgeSelfStop({ on, wellness, ears }: Pick<History, 'on' | 'wellness' | 'ears'>): SelfStopJudge {
  const { world } = on
  const violations = new Map<string, Violation>()
  const nodes = new Map<string, Watched>()
  const runs = new Map<Process, Ms>()
  if (![...world.server?.peek('holdfastpolicies.holdfast.dev') ?? []].some((policy) => /"giveUp":"(?:stop|watchdog)"/.test(JSON.stringify(policy)))) return { found: () => [], stop: () => undefined }
  let cancel = world.clock.after(0, turn)
  const unlisten = world.truth.listen(({ at, what, facts }) => {
    if (what === 'watchdog resets the machine') wasReset(String(facts['node']), at)
    if (what === 'log' && facts['message'] === 'this node gives up its workloads') gaveUp(String(facts['who']).split('/')[0] ?? '', at)
  })
  return {
    found: () => [...violations.values()],
    stop() {
      cancel()
      unlisten()
    },
  }

  function turn(): void {
    for (const name of world.nodes.keys()) look(name)
    cancel = world.clock.after(lookEvery, turn)
  }

  function look(name: string): void {
    const now = world.clock.now()
    const node = world.nodes.get(name)
    const boot = node?.machine.boot()?.id
    const agent = node?.agent()
    const before = nodes.get(name)
    if (node === undefined || boot === undefined || agent?.running() !== true || node.machine.state() !== 'running' || node.machine.frozen() || node.machine.stuck()) return void nodes.delete(name)
    const sameBoot = before?.boot === boot
    const spoke = leads() && wellness.speaksFor(name) >= toldWithin
    const watched: Watched = {
      boot, agent, agentSince: before?.agent === agent ? before.agentSince : now,
      asked: (sameBoot && before.asked) || spoke,
      members: spoke ? informed(name) : sameBoot ? before.members : [],
    }
    if (isAlone(world, node.machine.host)) watched.aloneSince = before?.aloneSince ?? now
    if (isPermitted(name, watched)) watched.permittedSince = before?.permittedSince ?? now
    nodes.set(name, watched)
    if (watched.asked && watched.aloneSince !== undefined && now - Math.max(watched.aloneSince, watched.agentSince) >= overBy) runsOn(name, watched.aloneSince)
  }

  function runsOn(name: string, since: Ms): void {
    const node = world.nodes.get(name)
    const { agentSince = Infinity } = nodes.get(name) ?? {}
    const fault = node?.runtime.fault
    if (node === undefined || (fault !== undefined && fault.since - agentSince < knowsBy)) return
    const now = world.clock.now()
    for (const { pod, process } of node.runtime.containers.values()) {
      if (pod.namespace === world.settings.systemNamespace || !process.running()) continue
      const began = runs.get(process) ?? now
      runs.set(process, began)
      if (now - began < restartTakes || (fault !== undefined && began > fault.since)) continue
      const what = `${pod.namespace}/${pod.name} runs on ${name}, which nobody could have permitted for ${seconds(now - since)}`
      violations.set(`${name} ${pod.uid}`, { judge: 'safety', what, node: name, from: since })
    }
  }

  function gaveUp(name: string, at: Ms): void {
    const { permittedSince, boot } = nodes.get(name) ?? {}
    if (permittedSince === undefined || at - permittedSince < surelyPermitted || wasWanted(name, boot)) return
    violations.set(`${name} gave up`, { judge: 'restraint', what: `${name} gave up its workloads, and for ${seconds(at - permittedSince)} somebody would have permitted them`, node: name, from: at })
  }

  /** Its agent runs all the while, and its kernel. */
  function wasReset(name: string, at: Ms): void {
    const { permittedSince, agentSince = at } = nodes.get(name) ?? {}
    if (permittedSince === undefined || at - Math.max(permittedSince, agentSince) < surelyPermitted || wasWanted(name, nodes.get(name)?.boot)) return
    violations.set(`${name} was reset`, { judge: 'restraint', what: `${name} was reset by its watchdog, and for ${seconds(at - permittedSince)} somebody would have permitted it`, node: name, from: at })
  }

  /** It is proven off, or a person wants it fenced though it lives. */
  function wasWanted(name: string, boot: string | undefined): boolean {
    const fences = (world.server?.peek('nodefences.holdfast.dev') ?? []) as readonly Fence[] // that collection's kind
    return ears.asked(name) || fences.some(({ spec, status }) => spec.nodeName === name && bootId(spec.boot) === boot && (status?.proof !== undefined || (status?.voided ?? []).length > 0))
  }

  function leads(): boolean {
    const number = on.leader()
    const api = world.network.find('api')
    if (number === undefined || api === undefined || ears.apiFaulty() || world.replicas.running.get(number)?.process.running() !== true) return false
    return reaches(world, world.replicas.host(number), api, 'api') && reaches(world, world.replicas.host(number), api, 'watch')
  }

  function isPermitted(name: string, { members }: Watched): boolean {
    const host = world.nodes.get(name)?.machine.host
    const api = world.network.find('api')
    if (host === undefined || api === undefined) return false
    const leader = on.leader()
    if (leads() && leader !== undefined && reaches(world, host, world.replicas.host(leader), 'link')) return true
    if (!ears.apiFaulty() && reaches(world, host, api, 'api')) return true
    const ayes = members.filter((process) => process.running() && reachable(host, process))
    const all = world.nodes.size - 1 + world.settings.replicas
    return ayes.length * 2 > all && ayes.some((process) => agents().has(process))
  }

  /** Agents that a leader has told of what is revoked, and replicas. */
  function informed(name: string): readonly Process[] {
    const others = [...world.nodes].flatMap(([other, node]) => (other !== name && wellness.speaksFor(other) >= toldWithin ? node.agent() ?? [] : []))
    return [...others, ...[...world.replicas.running.values()].map(({ process }) => process)]
  }

  function agents(): ReadonlySet<Process> {
    return new Set([...world.nodes.values()].flatMap((node) => node.agent() ?? []))
  }

  function reachable(host: Host, process: Process): boolean {
    for (const node of world.nodes.values()) if (node.agent() === process) return reaches(world, host, node.machine.host, 'whisper')
    for (const [number, replica] of world.replicas.running) if (replica.process === process) return reaches(world, host, world.replicas.host(number), 'link')
    return false
  }
}

/** No word of any kind can come from anybody. */
function isAlone(world: World, host: Host): boolean {
  const others = [...[...world.nodes.values()].map(({ machine }) => machine.host), ...Array.from({ length: world.settings.replicas }, (_, number) => world.replicas.host(number)), ...[world.network.find('api') ?? []].flat()]
  return others.every((other) => other === host || (['link', 'whisper', 'api'] as const).every((plane) => !reaches(world, host, other, plane)))
}

/** Both ways. */
function reaches({ network }: World, one: Host, other: Host, plane: Plane): boolean {
  return network.reach(one, other, plane) === 'open' && network.reach(other, one, plane) === 'open'
}
