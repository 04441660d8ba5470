// What a replica measures of itself, by name. The names are a promise to whoever alerts on them.
import type { Coordinator } from './coordinator.ts'
import { shownFalse } from '../core/incident.ts'
import { pathState } from '../core/path.ts'
import { policyOf } from '../core/policy.ts'
import type { Clock } from '../edge/clock.ts'
import { metrics, type Histogram, type Metrics } from './metrics.ts'

export interface Measures {
  readonly metrics: Metrics
  readonly decision: Histogram<never>
  readonly request: Histogram<'verb' | 'answer'>
  readonly incident: Histogram<'until' | 'cause'>
  /** What is asked of the replica whenever somebody reads. */
  watch(coordinator: Coordinator, clock: Clock): void
}

export function measures(version: string): Measures {
  const registry = metrics()
  registry.gaugeOf('holdfast_build_info', 'Which release this is; always 1.', ['version'], () => [[{ version }, 1]])
  return {
    metrics: registry,
    decision: registry.histogram('holdfast_decision_seconds', 'How long one decision over all nodes took.', [0.001, 0.003, 0.01, 0.02, 0.05, 0.1]),
    request: registry.histogram('holdfast_api_request_seconds', 'Requests to the API server, by verb and by what became of them.', [0.01, 0.05, 0.25, 1, 5], ['verb', 'answer']),
    incident: registry.histogram('holdfast_incident_seconds', 'How long incidents took, from when they were opened until proven, released (the last volume) or recovered, by cause; as whoever led then wrote it down.', [1, 2, 4, 6, 10, 30, 60, 120, 600], ['until', 'cause']),
    watch(coordinator, clock) {
      const incidents = () => [...coordinator.seen.incidents.values()]
      registry.gaugeOf('holdfast_leader', '1 while this replica leads.', [], () => [[{}, coordinator.leads() === undefined ? 0 : 1]])
      registry.gaugeOf('holdfast_agents_linked', 'Agents with an open link to this replica.', [], () => [[{}, coordinator.beats.linked()]])
      registry.gaugeOf('holdfast_nodes', 'Nodes this replica knows.', [], () => [[{}, coordinator.seen.nodes.size]])
      const beats = () => [...coordinator.seen.nodes.values()].flatMap(({ beat }) => beat ?? [])
      registry.gaugeOf('holdfast_node_permits', 'Nodes that were heard, by what their agents said last of their permit: off, running, gave up, or resumed after that.', ['state'], () => [...count(beats().flatMap(({ permit }) => permit ?? []))].map(([state, value]) => [{ state }, value] as const))
      registry.gaugeOf('holdfast_node_runtimes', 'Nodes that were heard, by whether their container runtime answers.', ['state'], () => [...count(beats().flatMap(({ runtime }) => runtime ?? []))].map(([state, value]) => [{ state }, value] as const))
      registry.gaugeOf('holdfast_node_storage', 'Nodes whose agents probe their storage, by whether they reach it.', ['state'], () => [...count(beats().flatMap(({ storage }) => storage ?? []))].map(([state, value]) => [{ state }, value] as const))
      const strains = () => [...coordinator.seen.nodes.values()].flatMap(({ record }) => record?.strains ?? [])
      registry.gaugeOf('holdfast_node_strains', 'Nodes with a vital beyond its limit, by which: disk, inodes, memory, temperature or load.', ['vital'], () => [...count(strains())].map(([vital, value]) => [{ vital }, value] as const))
      registry.gaugeOf('holdfast_node_watchdogs', 'Nodes whose watchdog stands on record, by how: armed or unarmed.', ['state'], () => [...count([...coordinator.seen.nodes.values()].flatMap(({ record }) => record?.watchdog?.state ?? []))].map(([state, value]) => [{ state }, value] as const))
      registry.gaugeOf('holdfast_watch_age_seconds', 'Since when the oldest watch that decisions rely on was last known fresh.', [], () => [[{}, Math.min(86_400, (clock.now() - coordinator.freshAt()) / 1000)]])
      // Of the leader alone: nobody else knows what is stale.
      registry.gaugeOf('holdfast_paths', 'Fence paths of all nodes, as the leader has it, by what their audits found: verified, mismatch, unreachable, marked, stale or unaudited.', ['state'], () => (coordinator.leads() === undefined ? [] : [...count(pathStates(coordinator))].map(([state, value]) => [{ state }, value] as const)))
      registry.gaugeOf('holdfast_audit_age_seconds', 'Since the beginning of the latest turn of the audit that came to its end, as the leader has it.', [], () => {
        const turn = coordinator.audited()
        return turn === undefined ? [] : [[{}, Math.max(0, (clock.wall() - Date.parse(turn.began)) / 1000)]]
      })
      registry.gaugeOf('holdfast_drill_age_seconds', 'Since the latest hour at which a policy asked for a drill, whatever came of it, as the leader has it.', ['policy'], () => coordinator.drilled().map(({ policy, at }) => [{ policy }, Math.max(0, (clock.wall() - Date.parse(at)) / 1000)] as const))
      const refused = () => coordinator.drilled().flatMap(({ refused: whole, nodes }) => [...(whole === undefined ? [] : [whole.because]), ...nodes.map(({ because }) => because)])
      registry.gaugeOf('holdfast_drill_refusals', 'Why no node was drilled at the latest hour of each policy, of the whole and of cordoned nodes, by reason.', ['because'], () => [...count(refused())].map(([because, value]) => [{ because }, value] as const))
      registry.gaugeOf('holdfast_incidents', 'Incidents kept, by phase.', ['phase'], () => [...count(incidents().map((one) => one.status.phase))].map(([phase, value]) => [{ phase }, value] as const))
      registry.gaugeOf('holdfast_nodes_governed', 'Nodes by what may be done about them: enforce, dryRun, paused, unselected, or policy-conflict.', ['as'], () => [...count(governed(coordinator))].map(([as, value]) => [{ as }, value] as const))
      registry.gaugeOf('holdfast_holds', 'Decisions not to act that stand now, by reason.', ['because'], () => [...count(coordinator.holds().map((hold) => hold.because))].map(([because, value]) => [{ because }, value] as const))
      registry.gaugeOf('holdfast_proofs_void', 'Proofs that were shown false, of all incidents kept.', [], () => [[{}, incidents().reduce((sum, one) => sum + shownFalse(one.status).length, 0)]])
    },
  }
}

function governed({ seen, policies }: Coordinator): string[] {
  const inForce = policies()
  return [...seen.nodes.values()].flatMap((node) => {
    if (node.gone === true) return []
    const chosen = policyOf(node, inForce)
    if (!('policy' in chosen)) return [chosen.none]
    return [seen.self.pause !== undefined || chosen.policy.pause !== undefined ? 'paused' : chosen.policy.mode]
  })
}

function pathStates({ seen }: Coordinator): string[] {
  return [...seen.nodes.values()].flatMap((node) => (node.gone === true ? [] : node.path.levels.flat().map((method) => pathState(node, method))))
}

function count<T extends string>(values: Iterable<T>): Map<T, number> {
  const counted = new Map<T, number>()
  for (const value of values) counted.set(value, (counted.get(value) ?? 0) + 1)
  return counted
}
