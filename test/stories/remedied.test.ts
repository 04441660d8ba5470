// A node whose disk is full runs on and says so: a remedy has it told, or fenced, as the operator wants it.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { remediesPath } from '../../coordinator/node-remedy.ts'
import { settled } from '../../sim/stage.ts'
import { ended, findings, killLeader, ourTaints, peace, programs, steps, workloadRuns, type Play } from './play.ts'

const test = suite('remedied')

const remedy = (does: 'tell' | 'fence'): KubeObject => ({
  apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeRemedy', metadata: { name: 'full-disks' },
  spec: { thresholds: [{ name: 'full', vital: 'disk', above: 95, period: '5m' }], remedy: does },
} as KubeObject)

/** Its next boot has an empty disk. */
function fill(on: Play): void {
  const node = on.world.nodes.get(on.victim)
  if (node === undefined) throw new Error(`there is no ${on.victim}`)
  node.faults.vitals = { disk: 97 }
  node.machine.atBoot(() => { delete node.faults.vitals })
}

const told = (on: Play): readonly string[] => on.coordinators.get(on.leader() ?? -1)?.holds().filter(({ because }) => because === 'ailing').map(({ node, detail }) => `${node} ${detail.replaceAll(/\d+\.\d s/g, '* s')}`) ?? []

test('it is fenced: its pods go in good order, its machine is switched off and on, and it is back', async () => {
  const on = await peace({ seed: 171, policy: { evictWithin: '2m' }, objects: [remedy('fence')] })
  fill(on)
  await on.run(290_000)
  assert.equal([(await on.incidents()).length, programs(on, 'off')], [0, 0], 'not before its time')
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 400_000)
  const incident = await ended(on, 600_000)
  assert.equal([incident.nodeName, incident.cause, incident.status.proof?.kind, incident.status.outcome], [on.victim, 'remedy', 'off', 'Recovered'])
  assert.ok(steps(incident).includes('evicting'))
  assert.equal(incident.status.pods.filter(({ fate }) => fate === 'freed'), [], 'nothing was deleted by force')
  assert.match(incident.status.timeline[0]?.detail ?? '', /NodeRemedy full-disks disk 97 %, above 95 for 3\d\d\.\d s/)
  await on.run(600_000)
  assert.equal([(await on.incidents()).length, findings(on), ourTaints(on)], [1, [], []])
})

test('told and not done: it is said as long as it lasts, by whoever leads', async () => {
  const on = await peace({ seed: 172, objects: [remedy('tell')] })
  fill(on)
  const says = `${on.victim} disk 97 %, above 95 for * s: NodeRemedy full-disks has it told, and nothing done`
  await on.until('it is told', async () => told(on).length > 0, 500_000)
  assert.equal(told(on), [says])
  killLeader(on)
  await on.until('another one tells it', async () => told(on).length > 0, 60_000)
  const node = on.world.nodes.get(on.victim)
  if (node !== undefined) node.faults.vitals = 'untold'
  await on.until('it is not told any more', async () => told(on).length === 0, 200_000)
  assert.equal([(await on.incidents()).length, programs(on, 'off')], [0, 0])
})

test('a remedy that is taken away while pods go in good order takes its fence with it', async () => {
  const budget = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'db', namespace: 'work' }, spec: { minAvailable: 1, selector: { matchLabels: { app: 'db' } } } }
  const on = await peace({ seed: 173, policy: { evictWithin: '10m' }, controlLoops: { disruption: true }, objects: [remedy('fence'), budget as KubeObject] })
  fill(on)
  await on.until('an incident is open', async () => (await on.incidents()).length > 0, 500_000)
  await on.run(20_000)
  await settled(on.world, on.world.api.remove(`${remediesPath}/full-disks`))
  const incident = await ended(on, 120_000)
  assert.equal([incident.status.outcome, programs(on, 'off')], ['Withdrawn', 0])
  assert.equal([findings(on), ourTaints(on)], [[], []])
})

test('a condition that outlives a boot has nobody fenced, until it is posted again', async () => {
  const deadlock = 'KernelDeadlock'
  const remedies = { ...remedy('fence'), spec: { thresholds: [{ name: 'stuck', condition: deadlock, period: '5m' }], remedy: 'fence' } }
  const on = await peace({ seed: 174, objects: [remedies] })
  const { world, victim } = on
  const post = () => settled(world, world.api.patch(`/api/v1/nodes/${victim}/status`, 'strategic', { status: { conditions: [{ type: deadlock, status: 'True', lastHeartbeatTime: new Date(world.clock.wall()).toISOString() }] } }))
  await post()
  await on.run(10_000)
  world.shutDown(victim, 'reboot')
  await on.until('it is said', async () => told(on).length > 0, 500_000)
  assert.match(told(on).join(), /KernelDeadlock is True for \* s: NodeRemedy full-disks would have it fenced; nobody was seen to post it in this boot/)
  const untouched = async () => assert.equal([(await on.incidents()).filter(({ cause }) => cause === 'remedy').length, programs(on, 'off')], [0, 0])
  await untouched()
  const killed = killLeader(on)
  world.startReplica(killed)
  await on.run(60_000)
  killLeader(on)
  await on.until('a leader that has just begun says it too', async () => told(on).length > 0, 500_000)
  await untouched()
  await post()
  await on.until('it is fenced', async () => programs(on, 'off') > 0, 60_000)
  await on.until('that is over', async () => (await on.incidents()).every(({ status }) => status.phase === 'Final'), 600_000)
  assert.equal([findings(on), ourTaints(on)], [[], []])
})

test('who beats has no crash kernel: where the fence waits for one, a node that runs is fenced all the same', async () => {
  const on = await peace({ seed: 178, kdump: 'kdump=100s\nkdump_within=20s\n', objects: [remedy('fence')] })
  fill(on)
  await on.until('it is ordered off', () => programs(on, 'off') === 1, 460_000)
  await ended(on, 200_000)
  assert.equal([workloadRuns(on), ourTaints(on), findings(on)], [true, [], []])
})

test.run()
