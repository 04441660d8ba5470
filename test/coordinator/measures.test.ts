import { readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Coordinator } from '../../coordinator/coordinator.ts'
import type { DrillTurnEnd } from '../../coordinator/drill-turns.ts'
import { answerWord, measures } from '../../coordinator/measures.ts'
import type { HoldAction } from '../../core/action.ts'
import type { Incident, IncidentStatus } from '../../core/incident.ts'
import type { Policy } from '../../core/policy.ts'
import { attempt, beat, incident, node, now, policy, proofRecord, record, seen, self } from '../core/world.ts'

const test = suite('measures')

const clock = { now: () => now, wall: () => 0, wait: async () => undefined, after: () => () => undefined }
const hold = (because: HoldAction['because'], name = 'node-2'): HoldAction => ({ do: 'hold', node: name, because, detail: '', lifts: '' })

const drilled: readonly DrillTurnEnd[] = [{ policy: 'usual', at: '1969-12-31T22:00:00Z', refused: { because: 'no-spare', detail: '' }, nodes: [{ node: 'node-1', because: 'not-drained', detail: '' }, { node: 'node-2', because: 'not-drained', detail: '' }] }]

const told = (second: number, what: string) => ({ at: new Date(second * 1_000).toISOString(), what, detail: '' })
const volume = { attachment: 'a', volume: 'pv-1', driver: 'd' }
const held = incident({ volumes: [{ ...volume, fate: 'attached' }], timeline: [told(10, 'opened')] })
const released: IncidentStatus = { ...held.status, volumes: [{ ...volume, fate: 'released' }], timeline: [...held.status.timeline, { at: '1970-01-01T00:00:13.100Z', what: 'volumes released', detail: '' }] }

function scraped(changes: Partial<Coordinator> = {}): string {
  const measured = measures('1.2.3')
  const coordinator = {
    seen: seen([node({ name: 'node-1', beat: beat({ permit: 'gave up', runtime: 'ill', storage: 'reached' }) }), node({ auditedUntil: now - 60_000, record: record({ strains: ['disk'], watchdog: { boot: 'b', state: 'armed', identity: 'i6300ESB timer', timeout: 30_000, panic: 0, machine: 'real', epoch: 1, memberships: [] } }) })], [
      incident({ phase: 'Running', timeline: [{ at: '1969-12-31T23:50:00Z', what: 'opened', detail: '' }] }), incident({ phase: 'New', timeline: [{ at: 'some day', what: 'opened', detail: '' }] }, { name: 'c' }), incident({ phase: 'Final', outcome: 'NodeDeleted' }, { name: 'a' }), incident({ phase: 'Final', voided: [{ proof: proofRecord(), at: '', evidence: '' }] }, { name: 'b' }),
    ]),
    policies: () => [{ ...policy, mode: 'dryRun' }], leads: () => 3, audited: () => ({ turn: 7, began: '1969-12-31T23:00:00Z', ended: '1969-12-31T23:01:00Z', stale: '1970-01-01T01:01:00Z', missed: [] }), drilled: () => drilled, beats: { linked: () => 2, tally: () => ({ late: 4, lost: 9 }) }, freshAt: () => now - 4_000, holds: () => [hold('storm'), hold('storm', 'node-3'), hold('blind')], ...changes,
  } as unknown as Coordinator // what is not measured is left out
  measured.watch(coordinator, clock)
  measured.decision.observe({}, 0.004)
  measured.request.observe({ verb: 'get', answer: '2xx' }, 0.02)
  measured.wrote(held, released, 4_600)
  return measured.metrics.render()
}

test('what a replica measures of itself, by name', () => {
  const text = scraped()
  for (const line of [
    'holdfast_build_info{version="1.2.3"} 1', 'holdfast_leader 1', 'holdfast_agents_linked 2', 'holdfast_nodes 2', 'holdfast_watch_age_seconds 4', 'holdfast_node_permits{state="gave up"} 1', 'holdfast_node_runtimes{state="ill"} 1', 'holdfast_node_storage{state="reached"} 1', 'holdfast_node_strains{vital="disk"} 1', 'holdfast_node_watchdogs{state="armed"} 1',
    'holdfast_incidents{phase="Running"} 1', 'holdfast_incident_age_seconds 600', 'holdfast_beats_late_total 4', 'holdfast_beats_lost_total 9', 'holdfast_release_seconds_sum{cause="silence"} 4.6', 'holdfast_orders_total{action="off",result="off"} 0', 'holdfast_incidents{phase="Final"} 2', 'holdfast_holds{because="storm"} 2', 'holdfast_holds{because="blind"} 1', 'holdfast_proofs_void 1', 'holdfast_nodes_swept 1', 'holdfast_paths{state="verified"} 1', 'holdfast_paths{state="stale"} 1', 'holdfast_audit_age_seconds 3600',
    'holdfast_drill_age_seconds{policy="usual"} 7200', 'holdfast_drill_refusals{because="no-spare"} 1', 'holdfast_drill_refusals{because="not-drained"} 2',
    'holdfast_nodes_governed{as="dryRun"} 2', 'holdfast_incident_seconds_bucket{until="released",cause="silence",le="4"} 1', 'holdfast_incident_seconds_bucket{until="released",cause="silence",le="2"} 0',
    'holdfast_decision_seconds_count 1', 'holdfast_api_request_seconds_count{verb="get",answer="2xx"} 1',
  ]) assert.ok(text.split('\n').includes(line), `${line} in:\n${text}`)
})

test('what a request came to is one of a few words, and the lack of a right is one of them', () => {
  assert.equal([0, 200, 404, 403, 409, 503].map(answerWord), ['none', '2xx', '4xx', '403', '4xx', '5xx'])
})

test('who does not lead says so; a watch that was never fresh is old, and no series is without a number', () => {
  const text = scraped({ leads: () => undefined, audited: () => undefined, drilled: () => [], freshAt: () => -Infinity, holds: () => [] })
  assert.ok(text.includes('holdfast_leader 0\n'))
  assert.not.match(text, /^holdfast_(paths|audit_age_seconds)[ {]/m)
  assert.ok(text.includes('holdfast_watch_age_seconds 86400\n'))
  assert.not.ok(/NaN|Inf\b(?!")/.test(text.replaceAll('le="+Inf"', '')))
})

const as = (policies: readonly Policy[], pause = {}) => /holdfast_nodes_governed\{as="([a-zA-Z-]+)"\} 1/.exec(scraped({ seen: seen([node()], [], self(pause)), policies: () => policies }))?.[1]

test('what may be done about a node is one word of it', () => {
  assert.equal([as([]), as([policy]), as([policy, { ...policy, name: 'other' }]), as([{ ...policy, pause: { by: 'me', reason: 'a look' } }]), as([policy], { pause: { by: 'me', reason: 'a look' } })], ['unselected', 'enforce', 'policy-conflict', 'paused', 'paused'])
})

/** What writes have made of incidents, as far as such a metric tells of it. */
function after(metric: string, ...writes: readonly (readonly [Incident, IncidentStatus, number?])[]): readonly string[] {
  const measured = measures('1')
  for (const [before, status, silence] of writes) measured.wrote(before, status, silence)
  return measured.metrics.render().split('\n').filter((line) => line.startsWith(metric) && !line.endsWith(' 0'))
}

test('a release is measured from the last beat on, where the node was not heard after its incident was opened, and where it ever was', () => {
  assert.equal(after('holdfast_release_seconds_sum', [held, released, 5_000], [held, released, 3_000], [held, released], [held, held.status, 9_000]), ['holdfast_release_seconds_sum{cause="silence"} 5'])
})

test('each order is counted once, when its end stands on the record, by what was asked and what came of it', () => {
  const running = attempt({ result: 'running' })
  const second = attempt({ id: 'node-2-abc-1.2', result: 'running' })
  const over = incident({ attempts: [{ ...running, result: 'failed' }, second] })
  assert.equal(after('holdfast_orders_total', [incident(), incident({ attempts: [running] }).status], [incident({ attempts: [running, second] }), over.status], [over, { ...over.status, attempts: [attempt({ result: 'failed' }), { ...second, result: 'off' }] }], [over, over.status]), [
    'holdfast_orders_total{action="off",result="off"} 1', 'holdfast_orders_total{action="off",result="failed"} 1',
  ])
})

test('every end that an order can have is there as a zero, so that the first one is seen to rise', () => {
  const lines = measures('1').metrics.render().split('\n').filter((line) => line.startsWith('holdfast_orders_total{'))
  assert.is(lines.length, 8)
  assert.ok(lines.every((line) => line.endsWith(' 0')))
})

test('docs/metrics.md lists what a replica measures, word for word as its own descriptions have it', () => {
  const measured = measures('1')
  measured.watch({} as Coordinator, clock) // nothing is read here
  const rows = measured.metrics.described().map(({ name, type, labels, help }) => `| \`${name}\` | ${type} | ${labels.join(', ')} | ${help} |`).toSorted()
  assert.equal(readFileSync('docs/metrics.md', 'utf8').split('\n').filter((line) => line.startsWith('| `')), rows)
})

test('a hold or a phase that is over is not shown any more', () => {
  const measured = measures('1')
  let holds: HoldAction[] = [hold('storm')]
  measured.watch({ seen: seen([]), policies: () => [], leads: () => 3, audited: () => undefined, drilled: () => [], beats: { linked: () => 0, tally: () => ({ late: 0, lost: 0 }) }, freshAt: () => now, holds: () => holds } as unknown as Coordinator, clock) // as above
  assert.ok(measured.metrics.render().includes('holdfast_holds{because="storm"}'))
  holds = []
  assert.not.ok(measured.metrics.render().includes('because="storm"'))
})

test.run()
