// A coordinator that is newer than the kinds of its cluster: the API server drops what they do not know, and says that all is well.
// What was not kept is not wanted again at each tick, whatever field it is, or the same would be written for ever.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decide } from '../../core/decide.ts'
import { join, recall } from '../../core/proof.ts'
import { attempt, boot, method, policy, proofRecord } from '../core/world.ts'
import { edgeWorld, fence, older, turned, victim, type EdgeWorld } from './edge-world.ts'

const test = suite('deed: older kinds')

/** The node is well, and its disk is full. */
function full(): EdgeWorld {
  const world = edgeWorld()
  world.plantNode()
  tick(world)
  return world
}

function tick({ clock, observation, beats }: EdgeWorld): void {
  const now = clock.now()
  beats.set(victim, { boot, since: now - 60_000, at: now, kubelet: 'ok', gate: 'open', gateSince: now - 60_000, vitals: { disk: 97 } })
  observation.probed(victim, { askedAt: now - 900, answeredAt: now - 800, word: 'answered' })
  observation.read(victim, { method: 'bmc-off', state: 'on', startedAt: now - 900, endedAt: now - 800, evidence: 'on', digest: 'd1', machine: 'machine-2' })
  Object.assign(observation.seen.self, { freshAt: now, apiAnsweredAt: now, term: 3, recordBudget: 60 })
}

async function ticks(world: EdgeWorld, many: number): Promise<number> {
  const before = world.writes.length
  for (let turn = 0; turn < many; turn += 1) {
    tick(world)
    for (const action of decide(world.observation.seen, world.clock.now(), [policy])) if (action.do === 'record') await turned(world.clock, world.do(action))
    await world.clock.runFor(250)
  }
  return world.writes.length - before
}

for (const [what, fields] of [['as they are', []], ['without strains', ['spec.strains']], ['without the gate', ['spec.gate']], ['without both', ['spec.strains', 'spec.gate']]] as const) {
  test(`a disk that fills up is written once, with kinds ${what}`, async () => {
    const world = full()
    await older(world, 'noderecords', fields)
    assert.is(await ticks(world, 40), 1)
    assert.is(world.logged.filter(({ message }) => message.includes('its kinds are older')).length, fields.some((field) => field === 'spec.strains') ? 1 : 0)
  })
}

test('what another fact changes is written all the same, and what was dropped is tried again ten minutes later', async () => {
  const world = full()
  await older(world, 'noderecords', ['spec.strains'])
  await ticks(world, 4)
  Object.assign(world.observation.row(victim) ?? {}, { machine: '' })
  assert.is(await ticks(world, 4), 1)
  await world.clock.runFor(600_000)
  await older(world, 'noderecords', [])
  assert.equal([await ticks(world, 4), world.record()?.strains], [1, ['disk']])
})

test('what was off at first is written down once, and where that is not kept, it is remembered that it is not', async () => {
  for (const fields of [[], ['status.offAtFirst']]) {
    const world = edgeWorld()
    const { metadata: { uid: nodeUid = '' } } = world.plantNode()
    await older(world, 'nodefences', fields)
    await turned(world.clock, world.plantFence({ phase: 'Running' }, { nodeUid }))
    for (const methods of [[method], [method, { ...method, digest: 'd2' }]]) assert.is(await turned(world.clock, world.do({ do: 'noteOff', node: victim, incident: fence, methods })), true)
    const { offAtFirst, timeline } = world.stored().status
    const kept = fields.length === 0
    assert.equal(offAtFirst?.map((one) => `${one.method} ${one.digest}`), kept ? ['bmc-off d1', 'bmc-off d2'] : undefined)
    assert.is(timeline.filter(({ what }) => what === 'off at first').length, 2)
    assert.equal(world.observation.row(victim)?.unkept, kept ? undefined : { at: world.clock.now(), offAtFirst: fence })
  }
})

test('two proofs that cannot be joined on record: what stands is told, and is not proven again at each tick', async () => {
  const world = edgeWorld()
  const { metadata: { uid: nodeUid = '' } } = world.plantNode()
  await older(world, 'nodefences', ['status.proof.joined'])
  const isolated = proofRecord({ kind: 'isolated', nodeUid, digests: ['d1'], at: '2026-01-01T00:00:14.000Z' })
  const refusing = recall(proofRecord({ kind: 'safe-detach', nodeUid, level: -1, methods: [], digests: [], evidence: [{ source: 'CSIDriver disk.example.com', word: 'refuses', at: '2026-01-01T00:00:14.000Z' }] }))
  await turned(world.clock, world.plantFence({ phase: 'Running', step: 'clear', attempts: [attempt()], proof: isolated }))
  await turned(world.clock, world.do({ do: 'prove', node: victim, incident: fence, proof: join(recall(isolated), refusing) }))
  assert.equal([world.stored().status.proof?.kind, world.stored().status.proof?.joined], ['isolated', undefined])
  assert.equal(world.observation.row(victim)?.unkept, { at: world.clock.now(), joined: fence })
})

test.run()
