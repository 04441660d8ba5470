// A person has a node fenced that still answers, and the policy gives its pods time: they go in good order first, as far as their
// disruption budgets let them.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { fencesPath } from '../../coordinator/node-fence.ts'
import { settled } from '../../sim/stage.ts'
import { budgetSaysNo } from './budget.ts'
import { stageGround } from './ground.ts'
import { ended, findings, happened, ourTaints, peace, programs, steps, theIncident, transcript, workload, workloadRuns, type Play } from './play.ts'

const test = suite('evicted')

const budgets = '/apis/policy/v1/namespaces/work/poddisruptionbudgets'

/** The set's one pod may not go. */
async function guarded(seed: number, evictWithin: string): Promise<Play> {
  const budget = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'db', namespace: 'work' }, spec: { minAvailable: 1, selector: { matchLabels: { app: 'db' } } } }
  return peace({ seed, policy: { evictWithin }, controlLoops: { disruption: true }, objects: [budget as KubeObject] })
}

async function fence(on: Play): Promise<void> {
  const made = await settled(on.world, on.world.api.create<KubeObject>(fencesPath, { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeFence', metadata: { name: 'by-hand' }, spec: { nodeName: on.victim } }))
  if (!made.ok) throw new Error(made.error.message)
}

const held = async (on: Play): Promise<string | undefined> => (await theIncident(on))?.status.holds.find(({ because }) => because === 'disruption-budget')?.detail
const runsStill = (on: Play, uid: string): boolean => on.world.nodes.get(on.victim)?.runtime.containers.get(uid)?.ended() === false
const setsPod = async (on: Play): Promise<string> => workload(on).find(({ metadata }) => metadata.name === 'db-0')?.metadata.uid ?? ''

async function heldByIts(on: Play): Promise<string> {
  const pod = await setsPod(on)
  await fence(on)
  await on.until('its budget holds it', async () => await held(on) !== undefined, 30_000)
  assert.is(await held(on), '1 pods may not go yet: work/db-0 (The disruption budget db needs 1 healthy pods and has 1 currently)')
  assert.equal([runsStill(on, pod), programs(on, 'off')], [true, 0])
  return pod
}

test(budgetSaysNo.title, async () => await budgetSaysNo.tell(await stageGround({ seed: 150, policy: { evictWithin: '5m' }, controlLoops: { disruption: true } })))

test('a budget says no, and nothing is ordered; lifted, the pod goes in good order, and then the node is switched off', async () => {
  const on = await guarded(151, '5m')
  const pod = await heldByIts(on)
  await on.run(30_000)
  assert.equal([runsStill(on, pod), programs(on, 'off'), ourTaints(on).length], [true, 0, 1], 'it runs on, under quarantine')
  await settled(on.world, on.world.api.remove(`${budgets}/db`))
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 120_000)
  const incident = await ended(on, 400_000)
  assert.equal([incident.status.outcome, incident.status.proof?.kind, incident.status.eviction?.over?.because], ['Recovered', 'off', 'all of its pods that were to go have gone'])
  const at = (what: string, fits: (facts: Readonly<Record<string, unknown>>) => boolean): number => on.world.truth.entries.find((entry) => entry.at >= on.beganAt && entry.what === what && fits(entry.facts))?.at ?? Infinity
  const endedAt = Math.max(...on.pods.map((uid) => at('container ended', (facts) => facts['uid'] === uid)))
  assert.ok(endedAt < at('machine lost its power', ({ node }) => node === on.victim), 'each of its pods was over before its power went')
  assert.equal(incident.status.pods.filter(({ fate }) => fate === 'freed'), [], 'and nothing was deleted by force')
  assert.equal([findings(on), ourTaints(on)], [[], []])
})

test('a budget that never allows it has an end: the pod is freed by the proof, and the record says so', async () => {
  const on = await guarded(152, '40s')
  const pod = await heldByIts(on)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 120_000)
  const incident = await ended(on, 400_000)
  assert.match(transcript(incident), /eviction over \| evictWithin \(\* s\) is over, and 1 pods are still there: work\/db-0 \(The disruption budget db needs 1 healthy pods/)
  assert.equal(incident.status.pods.filter(({ fate }) => fate === 'freed').map(({ uid }) => uid), [pod])
  assert.ok(steps(incident).indexOf('eviction over') < steps(incident).indexOf('ordered off'))
  assert.equal([incident.status.outcome, findings(on), ourTaints(on)], ['Recovered', [], []])
})

test('it dies while its budget says no: nobody waits for a dead node\'s budget', async () => {
  const on = await guarded(153, '30m')
  await heldByIts(on)
  on.world.freeze(on.victim)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 120_000)
  const incident = await ended(on, 400_000)
  assert.is(incident.status.eviction?.over?.because, 'the node does not answer: a budget cannot be kept by a dead node')
  assert.equal([incident.status.outcome, findings(on), ourTaints(on)], ['Recovered', [], []])
})

test('it loses its power while its budget says no: found off, and that is on the record', async () => {
  const on = await guarded(154, '30m')
  await heldByIts(on)
  on.world.cutPower(on.victim)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 120_000)
  const incident = await ended(on, 400_000)
  assert.match(incident.status.eviction?.over?.because ?? '', /a budget cannot be kept by a dead node/)
  assert.equal([findings(on), ourTaints(on)], [[], []])
})

test('aborted while its budget says no, it keeps its boot, its pod and its place', async () => {
  const on = await guarded(155, '30m')
  const pod = await heldByIts(on)
  const boot = on.world.nodes.get(on.victim)?.machine.boot()?.id
  await settled(on.world, on.world.api.patch(`${fencesPath}/by-hand`, 'merge', { spec: { abort: true } }))
  const incident = await ended(on, 120_000)
  assert.equal([incident.status.outcome, incident.status.eviction?.over?.because, programs(on, 'off')], ['Withdrawn', 'the incident is withdrawn', 0])
  assert.equal([on.world.nodes.get(on.victim)?.machine.boot()?.id, runsStill(on, pod), findings(on), ourTaints(on)], [boot, true, [], []])
})

test('the leader is killed meanwhile: the time goes on from when it began', async () => {
  const on = await guarded(156, '60s')
  await heldByIts(on)
  const since = on.world.clock.now()
  await on.run(30_000)
  on.world.killReplica(on.leader() ?? 0)
  await on.until('it is switched off', () => happened(on, 'machine lost its power').length > 0, 60_000)
  const span = on.world.clock.now() - since
  assert.ok(span > 45_000 && span < 75_000, `${span}`)
  await ended(on, 400_000)
  assert.equal([findings(on), ourTaints(on)], [[], []])
})

test.run()
