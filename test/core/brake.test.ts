import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { blind, handsOff, loosened, noOrders, storm, type Brake, type Silent } from '../../core/brake.ts'
import type { Verdict } from '../../core/judge.ts'
import type { NodeSeen, ReadySeen } from '../../core/model.ts'
import { isPauseOver, type Policy } from '../../core/policy.ts'
import { beat, incident, method, node, now, policy, record, self } from './world.ts'

const test = suite('brake')

// Blind: our own view is no ground to act on.

test('a replica that has just looked is not blind', () => {
  assert.is(blind(self(), now), undefined)
})

const blindness: [string, Partial<ReturnType<typeof self>>, RegExp][] = [
  ['has just woken from a stall', { awakeSince: now - 999 }, /stood still/],
  ['has not had an answer of the API server for ten seconds', { apiAnsweredAt: now - 10_001 }, /API server has not answered/],
  ['has a watch not known fresh for ten seconds', { freshAt: now - 10_001 }, /watch/],
]
for (const [how, own, what] of blindness) test(`a replica that ${how} is blind`, () => {
  const brake = blind(self(own), now)
  assert.is(brake?.because, 'blind')
  assert.match(brake?.detail ?? '', what)
})

test('blindness ends exactly when its span is over', () => {
  assert.is(blind(self({ awakeSince: now - 1_000, apiAnsweredAt: now - 10_000, freshAt: now - 10_000 }), now), undefined)
})

// Hands off.

test('a pause, of the cluster or of the policy, takes hands off, and names who and why', () => {
  const pause = { reason: 'moving the rack', by: 'ada' }
  assert.match(handsOff(self({ pause }), policy)?.detail ?? '', /ada: moving the rack/)
  assert.is(handsOff(self(), { ...policy, pause })?.because, 'pause')
  assert.is(handsOff(self(), policy), undefined)
})

test('a pause that names an hour says so, and that it ends with it', () => {
  const pause = { reason: 'moving the rack', by: 'ada', until: '2026-01-31T12:00:00Z' }
  assert.match(handsOff(self({ pause }), policy)?.detail ?? '', /ada until 2026-01-31T12:00:00Z: moving the rack/)
  assert.match(handsOff(self(), { ...policy, pause })?.lifts ?? '', /^that hour, or spec\.pause/)
})

test('a pause is over from its hour on; one without an hour, or with one that nobody can read, is not', () => {
  const pause = { reason: 'moving the rack', by: 'ada' }
  const until = '2026-01-31T12:00:00Z'
  const hour = Date.parse(until)
  assert.equal([isPauseOver({ ...pause, until }, hour - 1), isPauseOver({ ...pause, until }, hour)], [false, true])
  assert.equal([isPauseOver(pause, hour), isPauseOver({ ...pause, until: 'tomorrow' }, hour)], [false, false])
})

test('a dry run takes hands off', () => {
  assert.is(handsOff(self(), { ...policy, mode: 'dryRun' })?.because, 'dry-run')
})

// Storm: what falls silent together is rarely the nodes' own fault.

const fleet = (count: number, zone = 'a', from = 0): NodeSeen[] => Array.from({ length: count }, (_, index) => node({ name: `${zone}-${from + index}`, zone }))
const fall = (nodes: readonly NodeSeen[], since: (index: number) => number = () => now - 5_000): Silent[] => nodes.map((one, index) => ({ node: one, since: since(index) }))
const limits = (changes: Partial<Policy['brakes']> = {}): Policy => ({ ...policy, brakes: { ...policy.brakes, ...changes } })

function stormy(count: number, silent: number, policies: readonly Policy[] = [limits()]): Brake | undefined {
  const nodes = fleet(count)
  return storm(nodes, fall(nodes.slice(0, silent)), policies).cluster
}

const shares: [number, number, boolean][] = [
  // nodes, silent, storm at 40 %
  [1, 1, false], [2, 1, false], [2, 2, true], [3, 1, false], [3, 2, true], [4, 1, false], [4, 2, true], [5, 2, false], [5, 3, true],
  [10, 4, false], [10, 5, true], [100, 40, false], [100, 41, true],
]
for (const [count, silent, expected] of shares) {
  test(`${silent} of ${count} nodes silent together is ${expected ? 'a storm' : 'no storm'}`, () => assert.is(stormy(count, silent) !== undefined, expected))
}

test('one silent node is never a storm, however small the share allowed', () => {
  assert.is(stormy(100, 1, [limits({ stormPercent: 0 })]), undefined)
  assert.ok(stormy(100, 2, [limits({ stormPercent: 0 })]))
})

test('two nodes that fell silent an hour apart did not fall silent together, however small the share allowed', () => {
  const nodes = fleet(100)
  assert.is(storm(nodes, fall(nodes.slice(0, 2), (index) => now - 1_000 - index * 3_600_000), [limits({ stormPercent: 0 })]).cluster, undefined)
})

test('nodes that fell silent one window apart are no storm; within it they are', () => {
  const nodes = fleet(5)
  const spread = (step: number) => storm(nodes, fall(nodes.slice(0, 3), (index) => now - 200_000 + index * step), [limits({ stormWindow: 60_000 })]).cluster
  assert.ok(spread(30_000))
  assert.is(spread(30_001), undefined)
  assert.is(spread(60_000), undefined)
})

test('a storm of hours ago that nobody resolved is a storm still', () => {
  const nodes = fleet(5)
  assert.ok(storm(nodes, fall(nodes.slice(0, 3), () => now - 7_200_000), [limits()]).cluster)
})

test('the most careful of all policies sets the storm\'s limits', () => {
  assert.is(stormy(10, 3, [limits()]), undefined)
  assert.ok(stormy(10, 3, [limits(), limits({ stormPercent: 20 })]))
  const nodes = fleet(5)
  assert.ok(storm(nodes, fall(nodes.slice(0, 3), (index) => now - 200_000 + index * 90_000), [limits(), limits({ stormWindow: 180_000 })]).cluster)
})

test('a storm says what a person can do who knows that they are dead: with a greater share in every policy it is over', () => {
  assert.match(stormy(5, 3)?.lifts ?? '', /a greater brakes\.stormPercent in every policy/)
  assert.equal([stormy(5, 3, [limits({ stormPercent: 100 }), limits()]) !== undefined, stormy(5, 3, [limits({ stormPercent: 100 })])], [true, undefined])
})

test('a zone of three or more that falls silent is a storm of that zone alone', () => {
  const here = fleet(3, 'a')
  const there = fleet(7, 'b')
  const storms = storm([...here, ...there], fall(here.slice(0, 2)), [limits()])
  assert.is(storms.cluster, undefined)
  assert.equal([...storms.zones.keys()], ['a'])
  assert.match(storms.zones.get('a')?.detail ?? '', /2 of 3 nodes in zone a/)
})

test('a zone of two is too small to be judged by itself', () => {
  const here = fleet(2, 'a')
  assert.is(storm([...here, ...fleet(8, 'b')], fall(here), [limits()]).zones.size, 0)
})

test('two silent nodes in two zones of three are no storm of either', () => {
  const [here, there] = [fleet(3, 'a'), fleet(3, 'b')]
  const storms = storm([...here, ...there], fall([here[0], there[0]].filter((one) => one !== undefined)), [limits()])
  assert.is(storms.zones.size, 0)
  assert.is(storms.cluster, undefined)
})

// No orders.

const calm = { zones: new Map<string, Brake>() }
const brakeOf = (nodes: readonly NodeSeen[], target: NodeSeen, fencing: readonly string[] = [], own: Policy = policy, silent?: ReadonlyMap<string, Verdict>) =>
  noOrders(new Map(nodes.map((one) => [one.name, one])), target, incident({}, { policy: own }), calm, new Set(fencing), now, silent)

function braked(brake: Brake | undefined, because: Brake['because'] | undefined, what = /./): void {
  assert.is(brake?.because, because, JSON.stringify(brake))
  if (brake !== undefined) assert.match(brake.detail, what)
}

test('a storm of the cluster, or of the node\'s own zone, forbids orders; another zone\'s does not', () => {
  const target = node({ zone: 'a' })
  const brake: Brake = { because: 'storm', detail: 'x', lifts: 'y' }
  const under = (storms: Parameters<typeof noOrders>[3]) => noOrders(new Map([[target.name, target]]), target, incident(), storms, new Set(), now)?.because
  assert.is(under({ cluster: brake, zones: new Map() }), 'storm')
  assert.is(under({ zones: new Map([['a', brake]]) }), 'storm')
  assert.is(under({ zones: new Map([['b', brake]]) }), undefined)
})

const slots: [number, number, number][] = [
  // nodes, policy's number (0: by size), slots
  [3, 0, 1], [9, 0, 1], [10, 0, 1], [19, 0, 1], [20, 0, 2], [49, 0, 4], [50, 0, 5], [5_000, 0, 5], [3, 2, 2], [5_000, 8, 8],
]
for (const [count, concurrency, expected] of slots) {
  test(`${count} nodes and concurrency ${concurrency} give ${expected} ${expected === 1 ? 'slot' : 'slots'}`, () => {
    const nodes = fleet(count)
    const [target, ...others] = nodes
    if (target === undefined) return assert.unreachable()
    const taken = Array.from({ length: expected }, (_, index) => others[index]?.name ?? `gone-${index}`)
    braked(brakeOf(nodes, target, taken.slice(1), limits({ concurrency })), undefined)
    braked(brakeOf(nodes, target, taken, limits({ concurrency })), 'concurrency', /being fenced/)
  })
}

test('a node that holds a slot is not held back by its own', () => {
  const nodes = fleet(3)
  braked(brakeOf(nodes, nodes[0] as NodeSeen, ['a-0']), undefined)
})

const apart = (count: number) => fleet(10).map((one, index) => (index < count ? { ...one, conditions: new Map([['StorageUnreachable', { heartbeat: 'then', postedAt: 0 }]]) } : one))
const last = (nodes: readonly NodeSeen[]): NodeSeen => nodes[9] as NodeSeen
const skips: Policy = { ...policy, brakes: { ...policy.brakes, skipIfStorageUnreachable: 'StorageUnreachable' } }

test('a node that said that it cannot reach its storage is not fenced, nor any while many say so, where the policy asks for that', () => {
  const one = apart(1)
  braked(brakeOf(one, one[0] as NodeSeen, [], skips), 'storage', /said StorageUnreachable when it fell silent/)
  braked(brakeOf(one, last(one), [], skips), undefined)
  const [four, five] = [apart(4), apart(5)]
  braked(brakeOf(four, last(four), [], skips), undefined)
  braked(brakeOf(five, last(five), [], skips), 'storage', /5 of 10 nodes say StorageUnreachable, or their agents that they do not reach it, more than 40 %/)
  braked(brakeOf(five, five[0] as NodeSeen), undefined, /not asked for/)
})

const mute = (count: number, storage: 'unreached' | 'unknown') => fleet(10).map((one, index): NodeSeen => (index < count ? { ...one, beat: { ...beat(), storage } } : one))

test('what an agent said of the storage that it probes counts as much', () => {
  const one = mute(1, 'unreached')
  braked(brakeOf(one, one[0] as NodeSeen, [], skips), 'storage', /did not reach its storage when its agent fell silent/)
  braked(brakeOf(one, one[0] as NodeSeen), undefined, /not asked for/)
  braked(brakeOf(mute(5, 'unreached'), last(mute(5, 'unreached')), [], skips), 'storage', /5 of 10 nodes say StorageUnreachable, or their agents/)
  braked(brakeOf(mute(5, 'unknown'), last(mute(5, 'unknown')), [], skips), undefined)
})

const lost: ReadySeen = { status: 'Unknown', postedAt: 0, since: 0, bootId: 'boot-1' }
const members = { 'node-role.kubernetes.io/etcd': 'true' }
const masters = (...well: boolean[]) => well.map((fine, index) => node({ name: `cp-${index}`, controlPlane: true, labels: members, ...(fine ? {} : { ready: lost }) }))

const majorities: [string, boolean[], boolean][] = [
  ['the only one', [false], false], ['one of two', [false, true], false], ['one of three', [false, true, true], true],
  ['one of three with another lost', [false, false, true], false], ['one of four with another lost', [false, false, true, true], false],
  ['one of five', [false, true, true, true, true], true], ['one of five with another lost', [false, false, true, true, true], true],
  ['one of five with two others lost', [false, false, false, true, true], false],
]
for (const [what, well, allowed] of majorities) {
  test(`${what} of the control plane ${allowed ? 'may be fenced: a majority stands' : 'is not fenced'}`, () => {
    const nodes = [...masters(...well), ...fleet(20)]
    braked(brakeOf(nodes, nodes[0] as NodeSeen), allowed ? undefined : 'control-plane', /majority/)
  })
}

test('a control-plane node that has fallen silent does not stand, though it is Ready still', () => {
  const nodes = [...masters(true, true, true), ...fleet(20)]
  const target = nodes[0] as NodeSeen
  const silent = new Map<string, Verdict>([['cp-0', { is: 'suspect', since: 0, lacks: '' }]])
  braked(brakeOf(nodes, target, [], policy, silent), undefined)
  braked(brakeOf(nodes, target, [], policy, new Map([...silent, ['cp-1', { is: 'suspect', since: 0, lacks: '' }]])), 'control-plane', /majority/)
})

test('of the control plane one is fenced at a time', () => {
  const nodes = [...masters(false, true, true, true, true), ...fleet(50)]
  braked(brakeOf(nodes, nodes[0] as NodeSeen, ['cp-1']), 'control-plane', /cp-1/)
  braked(brakeOf(nodes, nodes[0] as NodeSeen, ['a-1']), undefined)
})

test('where nothing tells where the members of etcd are no control-plane node is fenced, unless the policy says that each bears one', () => {
  const nodes = [...masters(false, true, true).map((one) => ({ ...one, labels: {} })), ...fleet(20)]
  const target = nodes[0] as NodeSeen
  braked(brakeOf(nodes, target), 'control-plane', /nothing tells where the members of etcd are/)
  braked(brakeOf(nodes, target, [], { ...policy, brakes: { ...policy.brakes, etcd: 'stacked' } }), undefined)
  braked(brakeOf(nodes, nodes[3] as NodeSeen), undefined, /a worker/)
})

test('an etcd on no node of the cluster is none that an order could end: the control plane alone is counted, and where a label tells otherwise that counts too', () => {
  const external: Policy = { ...policy, brakes: { ...policy.brakes, etcd: 'external' } }
  const plane = (...well: boolean[]) => [...masters(...well).map((one) => ({ ...one, labels: {} })), ...fleet(20)]
  const [well, bare] = [plane(false, true, true), plane(false, false, true)]
  braked(brakeOf(well, well[0] as NodeSeen, [], external), undefined)
  braked(brakeOf(bare, bare[0] as NodeSeen, [], external), 'control-plane', /1 of 3 control-plane nodes would stand/)
  const labelled = [...masters(false, false, true), ...fleet(20)]
  braked(brakeOf(labelled, labelled[0] as NodeSeen, [], external), 'control-plane', /majority/)
})

test('who says now where etcd is means the incident that is open, too', () => {
  const target = node({ controlPlane: true })
  const etcd = (today: Policy['brakes']['etcd'], then: Policy['brakes']['etcd'] = 'byLabel') => loosened(incident({}, { policy: { ...policy, brakes: { ...policy.brakes, etcd: then } } }), target, [{ ...policy, brakes: { ...policy.brakes, etcd: today } }]).policy.brakes.etcd
  assert.equal([etcd('external'), etcd('stacked'), etcd('byLabel'), etcd('byLabel', 'external')], ['external', 'stacked', 'byLabel', 'external'])
})

test('a node that bears a member of etcd and is none of the control plane is fenced only while a majority of them stands', () => {
  const bearers = (...well: boolean[]) => masters(...well).map((one, index) => ({ ...one, controlPlane: false, name: `etcd-${index}` }))
  const nodes = [...bearers(false, false, true), ...masters(true, true, true).map((one) => ({ ...one, labels: {} })), ...fleet(20)]
  braked(brakeOf(nodes, nodes[0] as NodeSeen), 'control-plane', /1 of 3 members of etcd would stand: no majority/)
  const well = [...bearers(false, true, true), ...nodes.slice(3)]
  braked(brakeOf(well, well[0] as NodeSeen), undefined)
  braked(brakeOf(well, well[3] as NodeSeen, ['etcd-1']), 'control-plane', /etcd-1/)
})

test('a worker is fenced whatever becomes of the control plane', () => {
  const nodes = [...fleet(20), ...masters(false, false, false)]
  braked(brakeOf(nodes, nodes[0] as NodeSeen), undefined)
})

const spare = { ...method, name: 'plug-off', device: 'pdu-1:161', digest: 'd2' }
const path = { levels: [[method], [spare]], faults: [] }
const proven = record().paths[0]
const identity = (...states: ('proven' | 'unproven')[]) => record({
  paths: states.map((state, index) => ({ ...proven as NonNullable<typeof proven>, method: index === 0 ? 'bmc-off' : 'plug-off', digest: index === 0 ? 'd1' : 'd2', identity: state })),
})

const targetWith = (...states: ('proven' | 'unproven')[]) => node({ path, record: identity(...states) })

test('where the policy requires identity, a node is not fenced if no level of it has that', () => {
  const strict = { ...policy, identity: 'require' } as const
  for (const target of [targetWith('proven', 'proven'), targetWith('proven', 'unproven'), targetWith('unproven', 'proven')]) braked(brakeOf([target, ...fleet(3)], target, [], strict), undefined)
  const target = targetWith('unproven', 'unproven')
  braked(brakeOf([target, ...fleet(3)], target, [], strict), 'identity-unproven', /bmc-off/)
  braked(brakeOf([target, ...fleet(3)], target), undefined)
})

test('an identity proven in another boot is none', () => {
  const target = node({ record: record({ paths: [{ ...proven as NonNullable<typeof proven>, boot: 'boot-0/1' }] }), beat: beat() })
  braked(brakeOf([target, ...fleet(3)], target, [], { ...policy, identity: 'require' }), 'identity-unproven')
})

test('every brake says what would lift it', () => {
  const nodes = [...masters(false, false, false), ...fleet(3)]
  const target = nodes[0] as NodeSeen
  const all = [
    blind(self({ freshAt: 0 }), now), blind(self({ apiAnsweredAt: 0 }), now), blind(self({ awakeSince: now }), now),
    handsOff(self(), { ...policy, mode: 'dryRun' }), handsOff(self({ pause: { reason: '', by: '' } }), policy),
    stormy(2, 2), brakeOf(nodes, target), brakeOf(nodes, target, ['a-1']), brakeOf(nodes, target, ['cp-1'], limits({ concurrency: 5 })),
  ]
  for (const brake of all) assert.ok(brake !== undefined && brake.lifts.length > 3 && brake.detail.length > 10, JSON.stringify(brake))
})

test.run()
