// What a replica measures of itself, by name. The names are a promise to whoever alerts on them.
import type { Coordinator } from './coordinator.ts'
import { ordersEnded, shownFalse, sweptUnproven, type Attempt, type Incident, type IncidentStatus } from '../core/incident.ts'
import { milestones } from '../core/milestone.ts'
import type { Ms } from '../core/model.ts'
import { pathState } from '../core/path.ts'
import { policyOf } from '../core/policy.ts'
import type { Clock } from '../edge/clock.ts'
import { metrics, type Histogram, type Metrics } from './metrics.ts'

export interface Measures {
  readonly metrics: Metrics
  readonly decision: Histogram<never>
  readonly request: Histogram<'verb' | 'answer'>
  /** A write has made this of an incident whose boot was not heard for `silence`. */
  wrote(before: Incident, after: IncidentStatus, silence: Ms | undefined): void
  /** What is asked of the replica whenever somebody reads. */
  watch(coordinator: Coordinator, clock: Clock): void
}

type Result = Exclude<Attempt['result'], 'running'>

/** Each series is there before its first order: what appears with a one in it never rose. */
const results: Readonly<Record<Attempt['action'], readonly Result[]>> = { off: ['off', 'failed', 'unknown', 'not-given'], on: ['on', 'failed', 'unknown', 'not-given'] }

export function measures(version: string): Measures {
  const registry = metrics()
  registry.gaugeOf('holdfast_build_info', 'Which release this is; always 1.', ['version'], () => [[{ version }, 1]])
  const incident = registry.histogram('holdfast_incident_seconds', 'How long incidents took, from when they were opened until proven, released (the last volume) or recovered, by cause; as whoever led then wrote it down.', [1, 2, 4, 6, 10, 30, 60, 120, 600], ['until', 'cause'])
  const release = registry.histogram('holdfast_release_seconds', 'From the last beat of a node that failed to the last of its volumes released, by cause; as whoever led then heard it. Of nodes that were heard after their incident was opened, or never, nothing is counted.', [2, 4, 6, 10, 15, 30, 60, 120, 600], ['cause'])
  const orders = registry.counter('holdfast_orders_total', 'Orders to fence devices that came to an end, by what was asked and what came of it: off, on, failed, unknown or not-given; as whoever led then wrote it down.', ['action', 'result'])
  for (const action of ['off', 'on'] as const) for (const result of results[action]) orders.add({ action, result }, 0)
  return {
    metrics: registry,
    decision: registry.histogram('holdfast_decision_seconds', 'How long one decision over all nodes took.', [0.001, 0.003, 0.01, 0.02, 0.05, 0.1]),
    request: registry.histogram('holdfast_api_request_seconds', 'Requests to the API server, by verb and by what became of them: none (no answer), 2xx to 5xx, or 403, which 4xx leaves out.', [0.01, 0.05, 0.25, 1, 5], ['verb', 'answer']),
    wrote({ status: before, cause }, after, silence) {
      for (const { until, span } of milestones(before, after)) {
        incident.observe({ until, cause }, span / 1000)
        // What was heard since had not failed by then.
        if (until === 'released' && silence !== undefined && silence > span) release.observe({ cause }, silence / 1000)
      }
      for (const { action, result } of ordersEnded(before, after)) orders.add({ action, result })
    },
    watch(coordinator, clock) {
      const incidents = () => [...coordinator.seen.incidents.values()]
      registry.gaugeOf('holdfast_leader', '1 while this replica leads.', [], () => [[{}, coordinator.leads() === undefined ? 0 : 1]])
      registry.gaugeOf('holdfast_agents_linked', 'Agents with an open link to this replica.', [], () => [[{}, coordinator.beats.linked()]])
      registry.counterOf('holdfast_beats_late_total', 'Beats that came to this replica a second and a half after the one before them, or later, whatever made them late: the network, the node, or this replica.', [], () => [[{}, coordinator.beats.tally().late]])
      registry.counterOf('holdfast_beats_lost_total', 'Beats that agents sent, by their own count, and that never came to this replica.', [], () => [[{}, coordinator.beats.tally().lost]])
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
      registry.gaugeOf('holdfast_incident_age_seconds', 'Since the oldest incident that is not over was opened; 0 where none is open.', [], () => [[{}, Math.max(0, ...incidents().map((one) => openFor(one, clock.wall()) / 1000))]])
      registry.gaugeOf('holdfast_nodes_governed', 'Nodes by what may be done about them: enforce, dryRun, paused, unselected, or policy-conflict.', ['as'], () => [...count(governed(coordinator))].map(([as, value]) => [{ as }, value] as const))
      registry.gaugeOf('holdfast_holds', 'Decisions not to act that stand now, by reason.', ['because'], () => [...count(coordinator.holds().map((hold) => hold.because))].map(([because, value]) => [{ because }, value] as const))
      registry.gaugeOf('holdfast_nodes_swept', 'Incidents kept that ended with their Node deleted and nothing proven: Kubernetes has deleted the pods of a machine that may run.', [], () => [[{}, incidents().filter((one) => sweptUnproven(one.status)).length]])
      registry.gaugeOf('holdfast_proofs_void', 'Proofs that were shown false, of all incidents kept.', [], () => [[{}, incidents().reduce((sum, one) => sum + shownFalse(one.status).length, 0)]])
    },
  }
}

/** Of a status line, 0 where none came. What lacks a right is told from what was gone, or written by another: no waiting mends it. */
export function answerWord(status: number): string {
  if (status === 0) return 'none'
  return status === 403 ? '403' : `${Math.floor(status / 100)}xx`
}

function openFor({ status: { phase, timeline } }: Incident, wall: number): Ms {
  const opened = Date.parse(timeline[0]?.at ?? '')
  return phase === 'Final' || Number.isNaN(opened) ? 0 : wall - opened
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
