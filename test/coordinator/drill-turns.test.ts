// Whose hour came, and what the Lease says of it.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { drillTurns, drillTurnsKey, readDrillTurns } from '../../coordinator/drill-turns.ts'
import { keepNode } from '../../coordinator/kubernetes.ts'
import { createObservation } from '../../coordinator/observe.ts'
import type { BeatSeen } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { silentLog } from '../../edge/log.ts'
import { virtualClock } from '../../sim/clock.ts'
import { beat, incident, method, podsOf, policy, reading, record } from '../core/world.ts'

const test = suite('drill turns')

const asking: Policy = { ...policy, drills: { schedule: '0 3 * * 6', again: 3_600_000 } }
const cordon = [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] as const

function replica(policies: readonly Policy[] = [asking]) {
  const clock = virtualClock(100_000)
  const beats = new Map<string, BeatSeen>([['node-1', beat({ at: 100_000 })]])
  const observation = createObservation(clock, 'replica-0', { heard: (name) => beats.get(name), forget: () => undefined })
  const lead: { term?: number } = { term: 3 }
  const own = record({ nodeUid: 'node-1' })
  observation.record('node-1', { ...own, paths: own.paths.map((path) => ({ ...path, identity: 'unproven' })) })
  observation.node({ ...keepNode({ metadata: { name: 'node-1', uid: 'node-1', resourceVersion: '1' } }), taints: [...cordon] })
  observation.path('node-1', { levels: [[method]], faults: [] })
  const { machine: _, ...told } = reading('on', clock.now())
  observation.read('node-1', told)
  const turns = drillTurns({ clock, log: silentLog, observation, leads: () => lead.term, policies: () => policies })
  async function look(): Promise<void> {
    await clock.runFor(1_000)
    beats.set('node-1', beat({ at: clock.now() }))
    turns.now()
  }
  return { clock, observation, lead, turns, look, asked: () => observation.seen.self.drillTurns?.map((turn) => turn.policy) ?? [] }
}

test('who does not lead, and a policy that asks for none or is not there, have no hour', () => {
  const on = replica([asking, { ...policy, name: 'quiet' }])
  assert.equal([on.turns.begin('quiet'), on.turns.begin('gone')], [false, false])
  delete on.lead.term
  assert.not(on.turns.begin('all'))
  assert.equal(on.asked(), [])
})

test('an hour goes on until somebody is chosen; the next one of that policy is no second', async () => {
  const on = replica()
  assert.ok(on.turns.begin('all'))
  assert.not(on.turns.begin('all'))
  assert.is(on.observation.seen.self.drillTurns?.[0]?.before, new Date(on.clock.wall() - 3_600_000).toISOString())
  await on.look()
  assert.equal([on.asked(), on.turns.last()], [['all'], []], 'its pods are not listed yet')
  on.observation.listed('node-1', { ...podsOf([]), askedAt: on.clock.now() })
  await on.look()
  assert.equal(on.asked(), ['all'], 'its NodeFence is not there yet')
  on.observation.incident(incident({}, { name: 'node-1-x-1', nodeName: 'node-1', nodeUid: 'node-1', cause: 'scheduled-drill', policy: asking }), 'live')
  await on.look()
  assert.equal([on.asked(), on.turns.last().map(({ policy: of, chosen, refused }) => [of, chosen, refused])], [[], [['all', { node: 'node-1', incident: 'node-1-x-1' }, undefined]]])
  assert.equal(readDrillTurns(on.turns.note()), on.turns.last())
})

test('nobody can be: why stands on the Lease, and the next leader knows it', async () => {
  const on = replica()
  on.observation.node({ ...keepNode({ metadata: { name: 'node-1', uid: 'node-1', resourceVersion: '2', labels: { 'node-role.kubernetes.io/control-plane': '' } } }), taints: [...cordon] })
  on.turns.begin('all')
  await on.look()
  const [end] = on.turns.last()
  assert.equal([end?.refused?.because, end?.nodes.map(({ because }) => because)], ['no-spare', ['control-plane']])
  const next = replica()
  next.turns.led(on.turns.note())
  assert.equal(next.turns.last(), on.turns.last())
  next.turns.lost()
  assert.equal(next.turns.note(), {})
})

test('what could not be told within a minute is told as that, and an hour dies with its leader', async () => {
  const on = replica()
  on.turns.begin('all')
  for (let turn = 0; turn < 62; turn += 1) await on.look()
  assert.match(on.turns.last()[0]?.refused?.detail ?? '', /could not be read/)
  on.turns.begin('all')
  on.turns.lost()
  assert.equal(on.asked(), [])
})

test('two policies at one hour: one after the other, and what one opened is not taken for the other\'s', async () => {
  const more: Policy = { ...asking, name: 'more', nodeLabels: { rack: 'r9' } }
  const on = replica([asking, more])
  on.turns.begin('all')
  on.turns.begin('more')
  on.observation.incident(incident({}, { name: 'node-1-x-1', nodeName: 'node-1', nodeUid: 'node-1', cause: 'scheduled-drill', policy: asking }), 'live')
  await on.look()
  assert.equal(on.asked(), ['more'])
  await on.look()
  assert.equal(on.turns.last().map(({ policy: of, chosen, refused }) => [of, chosen?.node, refused?.because]), [['all', 'node-1', undefined], ['more', undefined, 'incident']])
})

test('what a Lease bears that we do not understand is as good as nothing', () => {
  for (const text of ['', '{}', '[{}]', 'x'.repeat(70_000), JSON.stringify([{ policy: 'all', at: 'then', nodes: [] }])]) assert.equal(readDrillTurns({ [drillTurnsKey]: text }), [])
})

test.run()
