import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { pageState, type PageSource } from '../../coordinator/page-state.ts'
import { quarantineKey } from '../../core/clear.ts'
import type { HoldAction } from '../../core/action.ts'
import type { Hold, IncidentStatus } from '../../core/incident.ts'
import type { NodeSeen, Observed } from '../../core/model.ts'
import { beat, dead, incident, node, now, policy, seen, self, silent, three } from '../core/world.ts'

const test = suite('page-state')

const clock = { now: () => now, wall: () => 1_800_000_000_000 }

function source(observed: Observed, changes: Partial<PageSource> = {}): PageSource {
  return { seen: observed, leads: () => 3, policies: () => [policy], holds: () => [], ready: () => true, ...changes }
}

const state = (observed: Observed, changes: Partial<PageSource> = {}) => pageState(source(observed, changes), clock)
const cardOf = (observed: Observed, name = 'node-2') => state(observed).nodes.find((card) => card.name === name)
const hold = (because: Hold['because']): Hold => ({ because, detail: 'a sentence', lifts: 'something', since: '2026-01-01T00:00:00Z' })

function openedOn(day: number) {
  return [{ at: `2026-01-0${day}T00:00:00Z`, what: 'opened', detail: '' }]
}

test('at first glance it is well, or it is said what is not', () => {
  assert.equal(state(three()).glance, { is: 'well', sentence: 'All 3 nodes are well.' })
  assert.equal(state(three(dead)).glance, { is: 'trouble', sentence: '1 of 3 nodes is silent.' })
  assert.is(state(three(dead, [incident({ phase: 'Running', step: 'power-management' })])).glance.sentence, 'node-2 is being fenced.')
  assert.is(state(three({}), { ready: () => false }).glance.is, 'starting')
  assert.is(state(three({}, [], self({ apiAnsweredAt: now - 60_000 }))).glance.is, 'trouble')
})

test('a hold that needs somebody is told at first glance, the ordinary waits are not', () => {
  const storm = state(three(dead, [incident({ phase: 'Running', holds: [hold('storm')] })]))
  assert.equal([storm.glance, storm.counts.held], [{ is: 'held', sentence: 'node-2 is held: storm.' }, 1])
  const boot = state(three(dead, [incident({ phase: 'Running', step: 'recovery', holds: [hold('waiting-for-boot')] })]))
  assert.equal([boot.glance.is, boot.counts.held], ['acting', 0])
  assert.equal(boot.incidents[0]?.holds.map((one) => one.stuck), [false])
})

test('a node in a new boot is told from one that is still off', () => {
  const recovery = [incident({ phase: 'Running', step: 'recovery' })]
  assert.match(state(three(silent, recovery)).glance.sentence, /cleared and being brought back/)
  assert.match(state(three({ beat: beat({ boot: 'boot-2/900' }) }, recovery)).glance.sentence, /back in a new boot, under quarantine/)
})

test('a card says the verdict, the taints, and how far the fence path can be trusted', () => {
  const card = cardOf(three({ ...dead, taints: [{ key: quarantineKey, effect: 'NoSchedule' }] }))
  assert.equal([card?.verdict, card?.quarantine, card?.outOfService, card?.policy], ['dead', true, false, 'all'])
  assert.equal(card?.paths, [{ method: 'bmc-off', agent: 'redfish', level: 1, state: 'verified', identity: 'proven', evidence: 'on' }])
  const unaudited = cardOf(seen([Object.fromEntries(Object.entries(node({})).filter(([field]) => field !== 'record')) as unknown as NodeSeen])) // a node without a record
  assert.equal([unaudited?.paths[0]?.state, unaudited?.probe], ['unaudited', 'unasked'])
  assert.is(cardOf(three({ address: '' }))?.probe, 'nowhere')
})

test('a NodeFence that cannot be read is told at first glance, and by its node', () => {
  const holds: HoldAction[] = [{ do: 'hold', node: 'node-2', because: 'unreadable', detail: 'NodeFence node-2-abc-1 cannot be read', lifts: 'a person' }]
  const shown = state(three(), { holds: () => holds })
  assert.equal([shown.glance, shown.counts.held], [{ is: 'held', sentence: 'node-2 is held: unreadable.' }, 1])
  assert.equal(shown.nodes.find(({ name }) => name === 'node-2')?.holds.map(({ because, stuck }) => [because, stuck]), [['unreadable', true]])
})

test('nothing in it changes by itself while time goes on', () => {
  const later = { now: () => now + 40, wall: () => 1_800_000_000_040 }
  const observed = three({ beat: beat({ at: now - 2_700 }), probe: { askedAt: now - 2_000, answeredAt: now - 1_200, word: 'silent' } })
  assert.equal(pageState(source(observed), clock), pageState(source(observed), later))
})

test('of a cluster too large to show, those in trouble are shown', () => {
  const many = Array.from({ length: 1_000 }, (_, index) => node({ name: `node-${index}` }))
  const shown = state(seen([...many, node({ name: 'node-z', ...dead })]))
  assert.equal([shown.nodes.length, shown.nodesLeft], [200, 801])
  assert.ok(shown.nodes.some(({ name }) => name === 'node-z'))
})

test('open incidents come first, closed ones after them, newest first', () => {
  const shown = state(three({}, [
    incident({ phase: 'Final', timeline: openedOn(3) }, { name: 'closed-late' }), incident({ phase: 'Running', timeline: openedOn(1) }, { name: 'open' }),
    incident({ phase: 'Final', timeline: openedOn(2) }, { name: 'closed-early' }),
  ]))
  assert.equal(shown.incidents.map(({ name }) => name), ['open', 'closed-late', 'closed-early'])
})

const fates: Partial<IncidentStatus> = {
  pods: [{ namespace: 'work', name: 'db-0', uid: 'u1', fate: 'freed' }, { namespace: 'work', name: 'static', uid: 'u2', fate: 'left', reason: 'a static pod' }],
  volumes: [{ attachment: 'a', volume: 'pv-db', driver: 'd', fate: 'released' }],
}

test('where the pods are not known, the card of a node with an incident tells what became of those that the incident names', () => {
  const cards = state(three(dead, [incident({ phase: 'Running', step: 'clear', ...fates })])).nodes
  assert.equal(cards.map(({ name, fates: told, pods }) => [name, told, pods]), [
    ['node-1', undefined, undefined],
    ['node-2', [
      { is: 'pod', key: 'u1', name: 'work/db-0', fate: 'freed' }, { is: 'pod', key: 'u2', name: 'work/static', fate: 'left' }, { is: 'volume', key: 'a', name: 'pv-db', fate: 'released' },
    ], undefined],
    ['node-3', undefined, undefined],
  ])
})

test('nothing is told of pods where none is named, where the incident is over, and where they are known anyway', () => {
  assert.is(cardOf(three(dead, [incident({ phase: 'Running' })]))?.fates, undefined)
  assert.is(cardOf(three({}, [incident({ phase: 'Final', ...fates })]))?.fates, undefined)
  const known = pageState(source(three(dead, [incident({ phase: 'Running', ...fates })])), clock, { pods: () => [] }).nodes.find(({ name }) => name === 'node-2')
  assert.equal([known?.fates, known?.pods], [undefined, []])
})

test('a hold on a node without an incident stands on its card', () => {
  const holds: HoldAction[] = [{ do: 'hold', node: 'node-2', because: 'policy-conflict', detail: 'two of them', lifts: 'another priority' }]
  const shown = state(three(silent), { holds: () => holds })
  assert.equal(shown.nodes.find(({ name }) => name === 'node-2')?.holds, [{ because: 'policy-conflict', detail: 'two of them', lifts: 'another priority', stuck: true }])
  assert.is(shown.counts.held, 1)
})

test.run()
