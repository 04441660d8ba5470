import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { pageState, type PageSource } from '../../coordinator/page-state.ts'
import { quarantineKey } from '../../core/clear.ts'
import type { HoldAction } from '../../core/action.ts'
import type { Hold, IncidentStatus } from '../../core/incident.ts'
import type { NodeSeen, Observed, PathAudit } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { beat, dead, incident, method, node, now, policy, record, seen, self, silent, three } from '../core/world.ts'

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

test('a card says of a node that it gave up its workloads, for as long as it says so', () => {
  assert.equal([cardOf(three({ beat: beat({ permit: 'gave up' }) }))?.gaveUp, cardOf(three({ beat: beat({ permit: 'running' }) }))?.gaveUp, cardOf(three())?.gaveUp], [true, false, false])
})

test('a card says the vitals that its agent told, and which of them are beyond their limits', () => {
  const card = cardOf(three({ beat: beat({ vitals: { disk: 93, load: 0.5 } }), record: record({ strains: ['disk'] }) }))
  assert.equal([card?.vitals, card?.strains], [{ disk: 93, load: 0.5 }, ['disk']])
  assert.equal([cardOf(three())?.vitals, cardOf(three())?.strains], [undefined, []])
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

const sentenceOf = (changes: Partial<NodeSeen>, policies: readonly Policy[] = [policy]) => state(three(changes), { policies: () => policies }).glance
const audited = (changes: Partial<PathAudit>) => ({ record: record({ paths: record().paths.map((path) => ({ ...path, ...changes })) }) })
const noPath = { path: { levels: [], faults: [] } } as const

test('a node that could not be proven off is not called well, and the first glance says why', () => {
  assert.equal(sentenceOf(noPath), { is: 'trouble', sentence: 'node-2 has no usable fence path: none is configured.' })
  assert.equal(sentenceOf({ path: { levels: [], faults: ['ConfigMap fence-config-node-2, line 1: no'] } }).sentence, 'node-2 has no usable fence path: ConfigMap fence-config-node-2, line 1: no.')
  assert.equal(sentenceOf({ path: { ...node().path, faults: ['ConfigMap fence-config-node-2, line 1: no'] } }), { is: 'trouble', sentence: 'node-2 has faults in its fence configuration: ConfigMap fence-config-node-2, line 1: no.' })
  assert.match(sentenceOf(audited({ state: 'unreachable' })).sentence, /^node-2 has no usable fence path: bmc-off /)
  assert.match(sentenceOf(audited({ identity: 'mismatch' })).sentence, /^node-2 has no usable fence path: /)
  assert.is(sentenceOf(audited({ identity: 'unproven' })).is, 'well', 'a warning is not trouble')
  assert.equal(sentenceOf(audited({ identity: 'unproven' }), [{ ...policy, identity: 'require' }]).sentence, 'node-2 has no usable fence path: nothing proves that bmc-off leads to this machine.')
})

test('one level that could be ordered is enough, and nothing is wanted of a node on which nothing is enforced', () => {
  const other = { ...method, name: 'pdu-off', digest: 'd2' }
  assert.is(sentenceOf({ path: { levels: [[other], [method]], faults: [] } }).is, 'well')
  assert.is(sentenceOf({ path: { levels: [[other, method]], faults: [] } }).is, 'trouble')
  assert.equal(sentenceOf(noPath, [{ ...policy, mode: 'dryRun' }]), { is: 'held', sentence: 'node-1, node-2, node-3 are only watched: policy all is a dry run.' })
})

test('what a node ought to have is counted: its methods, and one where none is configured', () => {
  assert.equal(state(three(noPath)).counts.paths, { verified: 2, all: 3 })
  assert.equal(state(three()).counts.paths, { verified: 3, all: 3 })
})

test('nodes that nobody acts for are told at first glance', () => {
  const twin = { ...policy, name: 'twin' }
  assert.equal(sentenceOf({}, [policy, twin]), { is: 'held', sentence: 'node-1, node-2, node-3 are only watched: policies all and twin select them with one priority.' })
  assert.equal(sentenceOf({}, []), { is: 'held', sentence: 'node-1, node-2, node-3 are only watched: no policy selects them.' })
  assert.equal(sentenceOf({ labels: { disk: 'ssd' } }, [policy, { ...twin, nodeLabels: { disk: 'ssd' } }]), { is: 'held', sentence: 'node-2 is only watched: policies all and twin select it with one priority.' })
})

test('a pause stands at first glance, and with its policy', () => {
  const pause = { reason: 'new switches', by: 'ops' }
  const whole = state(three({}, [], self({ pause })))
  assert.equal([whole.pause, whole.glance], [pause, { is: 'held', sentence: 'Nothing is done for any node: paused by ops.' }])
  const some = state(three(), { policies: () => [{ ...policy, pause }] })
  assert.equal([some.policies[0]?.pause, some.glance], [pause, { is: 'held', sentence: 'Nothing is done for the nodes of policy all: paused by ops.' }])
})

test.run()
