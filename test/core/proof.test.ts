import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Attempt } from '../../core/incident.ts'
import type { Method, NodeSeen } from '../../core/model.ts'
import { contradicted, foundOff, proveOff, recall, stillOff, type Proven } from '../../core/proof.ts'
import { sameMachine } from '../../core/machine-id.ts'
import { twoOffs } from '../../core/reading.ts'
import { untrusted } from '../../core/path.ts'
import { attempt, beat, boot, foundOffNode, incident, method, newBoot, node, now, orderedOff, reading, record, seenOrder } from './world.ts'

const test = suite('proof')

const feedA: Method = { ...method, name: 'feed-a', agent: 'pdu', device: 'pdu-1:161', digest: 'da' }
const feedB: Method = { ...feedA, name: 'feed-b', device: 'pdu-2:161', digest: 'db' }
const known = record().paths[0] ?? { method: '', digest: '', boot, state: 'verified', identity: 'proven', at: '', evidence: '' }
const audited = (changes: Partial<typeof known>): Partial<NodeSeen> => ({ record: record({ paths: [{ ...known, ...changes }] }) })

function off(changes: Partial<NodeSeen> = {}, attempts: readonly Attempt[] = [attempt()], others: readonly NodeSeen[] = [], more: { round?: number } = {}): Proven {
  return proveOff(incident({ attempts, ...more }), node({ ...orderedOff, ...changes }), 0, others, now)
}

const found = (changes: Partial<NodeSeen> = {}): Proven => foundOff(boot, node({ ...foundOffNode, ...changes }), 0, now)

function proves(result: Proven, kind: 'off' | 'found-off', methods: readonly string[] = ['bmc-off']): void {
  if (!('proof' in result)) return assert.unreachable(`it lacks: ${result.lacks}`)
  assert.is(result.proof.kind, kind)
  assert.is(result.proof.boot, boot)
  assert.is(result.proof.nodeUid, 'uid-node-2')
  assert.equal(result.proof.methods, methods)
}

function lacks(result: Proven, what: RegExp): void {
  if ('proof' in result) return assert.unreachable(`proven all the same: ${JSON.stringify(result.proof)}`)
  assert.match(result.lacks, what)
}

// off: we ordered it.

test('a level ordered off and then read off twice, a second apart, is proven off', () => {
  proves(off(), 'off')
})

test('a proof tells what it was made from', () => {
  const result = off()
  assert.equal('proof' in result && result.proof.evidence.map((one) => `${one.source} ${one.word}`), ['order bmc-off off', 'status bmc-off off', 'status bmc-off off'])
})

const instants = (result: Proven) => 'proof' in result && result.proof.evidence.map((one) => [one.source, one.at])

test('each word of a proof bears its own instant: an order and an audit that of their record, what was asked that of its answer', () => {
  assert.equal(instants(off({}, [attempt({ endedAt: '2026-01-01T00:00:10.000Z' })])), [['order bmc-off', '2026-01-01T00:00:10.000Z'], ['status bmc-off', now - 2_200], ['status bmc-off', now - 800]])
  const { paths } = record()
  assert.equal(instants(foundOff(boot, node(foundOffNode), 0, now)), [
    ['audit bmc-off', paths[0]?.at], ['status bmc-off', now - 2_900], ['status bmc-off', now - 1_700], ['probe', now - 700], ['witness node-1', now - 1_000],
  ])
})

test('an order whose program failed proves as well as one that did not: the readings count, not the exit code', () => {
  proves(off({}, [attempt({ result: 'failed' })]), 'off')
  proves(off({}, [attempt({ result: 'unknown' })]), 'off')
})

/** Nobody who lives has read it on, and no record of an audit is there. */
const unrecorded: Partial<NodeSeen> = { record: record({ paths: [] }), readings: (orderedOff.readings ?? []).slice(1) }

test('an order off on the record tells that its path was read on in this boot, whoever deleted the records and whoever leads now', () => {
  proves(off(unrecorded, [attempt({ digest: 'd1' })]), 'off')
  for (const one of [attempt(), attempt({ digest: 'd1', method: 'feed-a' })]) lacks(off(unrecorded, [attempt(), one]), /never read on/)
  lacks(off({ ...unrecorded, ...audited({ state: 'mismatch' }) }, [attempt({ digest: 'd1' })]), /said off while/)
  lacks(off({ ...unrecorded, ...audited({ state: 'marked' }) }, [attempt({ digest: 'd1' })]), /shown false/)
})

const offBut: [string, Partial<NodeSeen>, readonly Attempt[], RegExp][] = [
  ['no order at all', {}, [], /not ordered off/],
  ['no readings', { readings: [] }, [attempt()], /read off twice/],
  ['one reading', { readings: [reading('off', now - 900)] }, [attempt()], /read off twice/],
  ['two readings less than a second apart', { readings: [reading('off', now - 1_800), reading('off', now - 900)] }, [attempt()], /read off twice/],
  ['readings taken before the order ended', { readings: [reading('off', now - 6_000), reading('off', now - 4_500)] }, [attempt()], /read off twice/],
  ['a first reading begun before the order ended', { readings: [reading('off', now - 4_050, now - 3_950), reading('off', now - 900)] }, [attempt()], /read off twice/],
  ['an on between the two', { readings: [reading('off', now - 3_500), reading('on', now - 2_200), reading('off', now - 900)] }, [attempt()], /read off twice/],
  ['an unknown between the two', { readings: [reading('off', now - 3_500), reading('unknown', now - 2_200), reading('off', now - 900)] }, [attempt()], /read off twice/],
  ['an unknown after the two', { readings: [reading('off', now - 3_500), reading('off', now - 2_200), reading('unknown', now - 900)] }, [attempt()], /read off twice/],
  ['an on after the two', { readings: [reading('off', now - 3_500), reading('off', now - 2_200), reading('on', now - 900)] }, [attempt()], /read off twice/],
  ['readings under another configuration', { readings: [reading('off', now - 2_300, now - 2_200, { digest: 'd0' }), reading('off', now - 900, now - 800, { digest: 'd0' })] }, [attempt()], /read off twice/],
  ['one reading under another configuration', { readings: [reading('off', now - 2_300, now - 2_200, { digest: 'd0' }), reading('off', now - 900)] }, [attempt()], /read off twice/],
  ['readings of another method', { readings: [reading('off', now - 2_300, now - 2_200, { method: 'x' }), reading('off', now - 900, now - 800, { method: 'x' })] }, [attempt()], /read off twice/],
  ['readings too old to be of now', { readings: [reading('off', now - 18_000), reading('off', now - 16_500)], firstSeen: new Map(seenOrder(now - 25_000, now - 20_000)) }, [attempt()], /read off twice/],
  ['an order whose end this replica never saw', { firstSeen: new Map(seenOrder(now - 6_000)) }, [attempt()], /read off twice/],
  ['a record this replica never saw', { firstSeen: new Map() }, [attempt()], /read off twice/],
  ['an order under way', {}, [attempt(), attempt({ id: 'node-2-abc-1.2', result: 'running' })], /under way/],
  ['an order of another level', {}, [attempt({ level: 1 })], /not ordered off/],
  ['an order by another configuration', {}, [attempt({ digest: 'd0' })], /not ordered off/],
  ['an order that was never given', {}, [attempt({ result: 'not-given' })], /not ordered off/],
  ['an order of an earlier round only', {}, [attempt({ round: 0 })], /not ordered off/],
  ['a path never read on in this boot', unrecorded, [attempt()], /never read on/],
  ['a path audited in another boot only', { ...audited({ boot: 'boot-0/1' }), readings: (orderedOff.readings ?? []).slice(1) }, [attempt()], /never read on/],
  ['a path audited under another configuration only', { ...audited({ digest: 'd0' }), readings: (orderedOff.readings ?? []).slice(1) }, [attempt()], /never read on/],
  ['a path that did not answer its audit', { ...audited({ state: 'unreachable' }), readings: (orderedOff.readings ?? []).slice(1) }, [attempt()], /never read on/],
  ['a path that said off while this boot was beating', audited({ state: 'mismatch' }), [attempt()], /said off while/],
  ['a path whose proof was shown false', audited({ state: 'marked' }), [attempt()], /shown false/],
  ['a path whose proof was shown false in an earlier boot', audited({ state: 'marked', boot: 'boot-0/1' }), [attempt()], /shown false/],
  ['a path that another machine answers', audited({ identity: 'mismatch' }), [attempt()], /another machine/],
  ['a seal of the node that others asked for since the first off', { witnesses: [{ witness: 'replica-1', kind: 'replica', askedAt: now - 1_500, answeredAt: now - 1_300, word: 'hears', proven: true }] }, [attempt()], /read off twice/],
  ['an on from before this boot', { record: record({ paths: [] }), beat: beat({ since: now - 12_000, at: now - 10_000 }), readings: [reading('on', now - 13_000), ...(orderedOff.readings ?? []).slice(1)] }, [attempt()], /never read on/],
]
for (const [but, changes, attempts, what] of offBut) test(`ordered off, but ${but}: no proof`, () => lacks(off(changes, attempts), what))

test('a reading in which the device names another machine is no reading of this one', () => {
  const [on, first, last] = orderedOff.readings ?? []
  if (on === undefined || first === undefined || last === undefined) return assert.unreachable()
  lacks(off({ readings: [on, first, { ...last, machine: 'machine-9' }] }), /another machine/)
  lacks(off({ readings: [on, { ...first, machine: 'machine-9' }, last] }), /another machine/)
  proves(off({ readings: [on, first, { ...last, machine: 'MACHINE-2' }] }), 'off')
})

/** Of one machine, as its firmware writes it and as a system reads it that takes the first three fields for little-endian. */
const [asTold, asRead] = ['4203942f-ce98-3f27-455c-463d34b8af41', '2f940342-98ce-273f-455c-463d34b8af41']

test('a UUID whose first three fields are written backwards is of the same machine, by either side', () => {
  for (const [one, other] of [[asTold, asRead], [asRead, asTold], [asTold, asTold], [asTold.toUpperCase(), asRead]] as const) assert.ok(sameMachine(one, other), `${one} ${other}`)
  proves(off({ machine: asRead, readings: (orderedOff.readings ?? []).map((one) => ({ ...one, machine: asTold })) }), 'off')
})

for (const [what, other] of [
  ['the first field alone turned', '2f940342-ce98-3f27-455c-463d34b8af41'], ['the second alone', '4203942f-98ce-3f27-455c-463d34b8af41'],
  ['the third alone', '4203942f-ce98-273f-455c-463d34b8af41'], ['the fourth turned too', '2f940342-98ce-273f-5c45-463d34b8af41'],
  ['all of it turned', '41afb834-3d46-5c45-273f-98ce2f940342'], ['its halves of bytes turned', '24304924-89ec-72f3-455c-463d34b8af41'],
  ['without its dashes turned', '2f94034298ce273f455c463d34b8af41'], ['nothing', ''],
] as const) {
  test(`another machine: ${what}`, () => {
    assert.not(sameMachine(asTold, other))
    assert.not(sameMachine(other, asTold))
  })
}

// Of 2^122 random UUIDs two at most pass for one machine: another machine is taken for it once in 2^121 draws.
test('a UUID is of two writings and of no third: every one a digit away from either is of another machine', () => {
  const digits = '0123456789abcdef'
  let tried = 0
  for (const writing of [asTold, asRead]) for (const [at, digit] of [...writing].entries()) for (const other of digit === '-' ? '' : digits.replace(digit, '')) {
    tried += 1
    assert.not(sameMachine(asTold, `${writing.slice(0, at)}${other}${writing.slice(at + 1)}`), `${at} ${other}`)
  }
  assert.is(tried, 2 * 32 * 15)
})

test('what is no UUID is compared letter by letter', () => {
  assert.not(sameMachine('machine-2', 'machine-3'))
  assert.not(sameMachine('abcdefgh-ijkl-mnop-qrst-uvwxyzabcdef', 'ghefcdab-klij-opmn-qrst-uvwxyzabcdef'))
})

test('a path never audited is trusted if it was read on in this incident', () => {
  proves(off({ record: record({ paths: [] }) }), 'off')
})

test('the first off may be any of an unbroken row: what was asked after it keeps counting', () => {
  const readings = [reading('off', now - 3_600), reading('off', now - 2_300), reading('off', now - 900)]
  assert.is(twoOffs(readings, now - 4_000, now)?.first.startedAt, now - 3_600)
  assert.is(twoOffs(readings, now - 3_000, now)?.first.startedAt, now - 2_300)
  assert.is(twoOffs([reading('on', now - 3_600), ...readings.slice(1)], now - 4_000, now)?.first.startedAt, now - 2_300)
})

test('an order on since, to any method, ends what was proven', () => {
  const on = attempt({ id: 'node-2-abc-1.2', action: 'on', result: 'on', startedAt: '2026-01-01T00:00:20.000Z' })
  lacks(off({}, [attempt(), on]), /ordered on since/)
})

test('which order came later is told by the record\'s order, not by clocks of two replicas', () => {
  const on = attempt({ id: 'node-2-abc-1.2', action: 'on', result: 'on', startedAt: '2026-01-01T00:00:01.000Z', replica: 'replica-1' })
  lacks(off({}, [attempt(), on]), /ordered on since/)
})

const seenOn = (began: number) => new Map([...seenOrder(now - 6_000, now - 4_000), ...seenOrder(began, began + 5_000, 'node-2-abc-1.0')])

test('no proof while an earlier on, to any level, may still land', () => {
  const on = attempt({ id: 'node-2-abc-1.0', level: 1, method: 'feed-a', action: 'on', result: 'failed', startedAt: '2026-01-01T00:00:01.000Z' })
  lacks(off({ firstSeen: seenOn(now - 89_000) }, [on, attempt()]), /may still land/)
  proves(off({ firstSeen: seenOn(now - 91_000) }, [on, attempt()]), 'off')
  proves(off({ firstSeen: seenOn(now - 89_000) }, [{ ...on, result: 'on' }, attempt()]), 'off')
  proves(off({ firstSeen: seenOn(now - 89_000) }, [{ ...on, result: 'not-given' }, attempt()]), 'off')
})

const at = (one: Method, ago: number) => reading('off', now - ago, now - ago + 100, { method: one.name, digest: one.digest })

test('of two feeds both must be ordered off and read off', () => {
  const two = { levels: [[feedA, feedB]], faults: [] }
  const paths = [{ ...known, method: 'feed-a', digest: 'da' }, { ...known, method: 'feed-b', digest: 'db' }]
  const readings = [at(feedA, 3_000), at(feedB, 2_900), at(feedA, 1_500), at(feedB, 1_400)]
  const orders = [attempt({ method: 'feed-a' }), attempt({ id: 'node-2-abc-1.2', method: 'feed-b' })]
  const firstSeen = new Map([...seenOrder(now - 9_000, now - 7_000), ...seenOrder(now - 6_000, now - 4_000, 'node-2-abc-1.2')])
  const both = { path: two, record: record({ paths }), readings, firstSeen }
  proves(off(both, orders), 'off', ['feed-a', 'feed-b'])
  lacks(off(both, orders.slice(0, 1)), /feed-b was not ordered off/)
  lacks(off({ ...both, readings: readings.filter((one) => one.method === 'feed-a') }, orders), /feed-b was not yet read off twice/)
  const struck = { ...both, path: { levels: [[feedA]], faults: [] } }
  lacks(off(struck, orders), /feed-b was of the level in this round, and is not configured any more/)
  lacks(off(struck, [attempt({ method: 'feed-a', beside: ['feed-b'] })]), /feed-b was of the level in this round/)
  proves(off(both, [attempt({ method: 'feed-a', beside: ['feed-b'] }), ...orders.slice(1)]), 'off', ['feed-a', 'feed-b'])
  proves(off(struck, orders.map((one) => (one.method === 'feed-b' ? { ...one, round: 0 } : one))), 'off', ['feed-a'])
  // The first feed read off before the second one was cut is a reading from before the sweep.
  lacks(off({ ...both, readings: [at(feedA, 6_500), at(feedA, 5_000), at(feedB, 2_900), at(feedB, 1_400)] }, orders), /feed-a was not yet read off twice/)
})

// off, on a path of unproven identity: the neighbours must speak up.

const unproven = audited({ identity: 'unproven' })
const neighbour = (changes: Partial<NodeSeen> = {}): NodeSeen => node({ name: 'node-3', ...changes })
const answered = (issuedAt: number, who = boot) => beat({ answered: { issuedAt, boot: who } })

test('identity unproven and no other node on the device: proven, and the proof says so', () => {
  const result = off(unproven)
  proves(result, 'off')
  assert.ok('proof' in result && result.proof.evidence.some((one) => one.source === 'identity bmc-off'))
})

test('identity unproven and every neighbour answered after the first off: proven', () => {
  proves(off(unproven, [attempt()], [neighbour({ beat: answered(now - 1_000) })]), 'off')
})

test('a neighbour that was struck may speak for a moment after its device says off: what it answers then tells nothing', () => {
  for (const after of [20, 400, 999]) lacks(off(unproven, [attempt()], [neighbour({ beat: answered(now - 2_300 + after) })]), /node-3/)
})

const apart = (heardAt: number): Proven => off(unproven, [attempt()], [neighbour({ path: { levels: [[{ ...method, device: 'bmc-3:443' }]], faults: [] }, beat: beat({ at: heardAt }) })])
test('a node of another device need not answer, only beat on', () => {
  proves(apart(now - 200), 'off')
  proves(apart(now - 30_000), 'off')
  lacks(apart(now - 5_500), /node-3 has not beaten since the first off/)
})

const inCloud = (device: string): Partial<NodeSeen> => ({ path: { levels: [[{ ...method, device, reach: 'aws' }]], faults: [] } })
const tellingAddresses = (...addresses: string[]): Partial<NodeSeen> => ({ readings: (orderedOff.readings ?? []).map((one) => ({ ...one, addresses })) })

test('two nodes of a cloud whose instances were exchanged: what could be struck is more than the one instance', () => {
  const silenced = neighbour({ ...inCloud('aws i-2'), beat: beat({ at: now - 5_500 }) })
  lacks(off({ ...unproven, ...inCloud('aws i-3') }, [attempt()], [silenced]), /node-3/)
  proves(off({ ...unproven, ...inCloud('aws i-3') }, [attempt()], [{ ...silenced, beat: answered(now - 1_000) }]), 'off')
  // A strip at the same site is no part of the cloud: its nodes are not asked.
  proves(off({ ...unproven, ...inCloud('aws i-3') }, [attempt()], [{ ...silenced, beat: beat(), path: { levels: [[feedA]], faults: [] } }]), 'off')
})

test('a device that tells the node\'s own address strikes no neighbour, and the proof says so', () => {
  const silenced = neighbour({ ...inCloud('aws i-3'), address: '10.0.0.3', beat: beat({ at: now - 5_500 }) })
  const result = off({ ...unproven, ...inCloud('aws i-2'), ...tellingAddresses('192.0.2.7', '10.0.0.2') }, [attempt()], [silenced])
  proves(result, 'off')
  assert.ok('proof' in result && result.proof.evidence.some(({ source, word }) => source === 'identity bmc-off' && word.includes('10.0.0.2')))
})

for (const [what, changes, other] of [
  ['tells another address', tellingAddresses('10.0.0.3'), {}],
  ['tells no address', tellingAddresses(), {}],
  ['tells the address only in its last reading', { readings: (orderedOff.readings ?? []).map((one, index, all) => (index === all.length - 1 ? { ...one, addresses: ['10.0.0.2'] } : one)) }, {}],
  ['tells an address that another Node claims too', tellingAddresses('10.0.0.2'), { address: '10.0.0.2' }],
  ['tells an address of a node that has none', { ...tellingAddresses(''), address: '' }, {}],
] as const) {
  test(`a device that ${what} may have struck the neighbour that fell silent`, () => {
    const silenced = neighbour({ ...inCloud('aws i-3'), address: '10.0.0.3', beat: beat({ at: now - 5_500 }), ...other })
    lacks(off({ ...unproven, ...inCloud('aws i-2'), ...changes }, [attempt()], [silenced]), /node-3/)
  })
}

test('the instance that a Node claims proves nothing until its cloud was seen to tell the address of its beats', () => {
  const claimed = { path: { levels: [[{ ...method, claimed: true } as const]], faults: [] } }
  for (const audit of [audited({ identity: 'mismatch' }), { record: record({ paths: [] }) }]) {
    lacks(off({ ...claimed, ...audit }), /Node's own claim/)
    assert.match(untrusted(node({ ...orderedOff, ...claimed, ...audit }), { ...method, claimed: true }, audit.record?.paths[0]) ?? '', /Node's own claim/)
  }
  proves(off({ ...claimed, ...unproven }), 'off')
})

test('two Nodes with one machine id: what tells it proves neither\'s identity, and each is the other\'s neighbour on whatever device', () => {
  const own = [neighbour({ machine: 'machine-2', path: { levels: [[{ ...method, device: 'bmc-3:443' }]], faults: [] }, beat: beat({ at: now - 5_500 }) })]
  proves(off({}, [attempt()], own), 'off')
  lacks(off({ twin: 'node-3' }, [attempt()], own), /unproven, and node-3 with the same machine id has not answered/)
  proves(off({ twin: 'node-3' }, [attempt()], [{ ...own[0] as NodeSeen, beat: answered(now - 1_000) }]), 'off')
  lacks(found({ twin: 'node-3' }), /identity of bmc-off is not proven: nothing proves that bmc-off leads to this machine: node-3 bears the same machine id/)
})

const unspoken = (changes: Partial<NodeSeen>) => neighbour({ readings: [now - 3_400, now - 2_000].map((began) => reading('off', began, began + 100, { machine: undefined as never })), ...changes })

test('a neighbour silent since long before the order was not silenced by it, and is waited for until it reads off as well', () => {
  const before = { beat: beat({ at: now - 30_000 }) }
  lacks(off(unproven, [attempt()], [neighbour(before)]), /node-3 on the same device was silent before the order/)
  proves(off(unproven, [attempt()], [unspoken(before)]), 'off')
})

const mute: [string, NodeSeen][] = [
  ['beats on but answered no challenge', neighbour()],
  ['answered before the first off only', neighbour({ beat: answered(now - 2_250) })],
  ['fell silent just after the order', neighbour({ beat: beat({ at: now - 5_500 }) })],
  ['fell silent with its last beat just before the order', neighbour({ beat: beat({ at: now - 7_500 }) })],
]
for (const [how, other] of mute) test(`identity unproven and a neighbour that ${how}: no proof`, () => lacks(off(unproven, [attempt()], [other]), /node-3/))

test('a neighbour that the first round silenced still counts in the second', () => {
  const orders = [attempt(), attempt({ id: 'node-2-abc-1.2', round: 2 })]
  const firstSeen = new Map([...seenOrder(now - 100_000, now - 98_000), ...seenOrder(now - 6_000, now - 4_000, 'node-2-abc-1.2')])
  const silenced = neighbour({ beat: beat({ at: now - 99_000 }) })
  lacks(off({ ...unproven, firstSeen }, orders, [silenced], { round: 2 }), /node-3/)
})

test('two nodes that fell silent together are proven once both read off, and neither before', () => {
  const together = { beat: beat({ at: now - 9_500 }) }
  lacks(off(unproven, [attempt()], [neighbour(together)]), /node-3/)
  proves(off(unproven, [attempt()], [unspoken(together)]), 'off')
})

test('of an order that an earlier leader gave less is known: the neighbour gets the benefit of the doubt for longer', () => {
  const together = neighbour({ beat: beat({ at: now - 9_500 }) })
  lacks(off(unproven, [attempt({ term: 2 })], [together]), /node-3/)
})

test('a leader that began after the order takes a neighbour it never heard for one that the order may have silenced', () => {
  const earlier = [attempt({ term: 2 })]
  const unheard = { beat: undefined, seenAt: now - 20_000 }
  const lost = { status: 'Unknown', postedAt: -Infinity, bootId: 'boot-1' } as const
  lacks(off(unproven, earlier, [neighbour(unheard)]), /node-3/)
  lacks(off(unproven, earlier, [neighbour({ ...unheard, ready: { ...lost, since: now - 5_000 } })]), /node-3/)
  lacks(off(unproven, earlier, [neighbour({ ...unheard, ready: { ...lost, since: now - 20_000 } })]), /node-3/)
  proves(off(unproven, earlier, [neighbour({ ...unheard, record: undefined as never })]), 'off')
  lacks(off(unproven, [attempt()], [neighbour(unheard)]), /silent before the order/)
})

const telling = (machine: string | undefined) => (orderedOff.readings ?? []).map((one) => ({ ...one, machine: machine as never }))
test('with the record gone, the machine id that the device tells in the incident is proof of identity; no id, another or a twin\'s is not', () => {
  const forgotten = { record: undefined as never }
  const silenced = [neighbour({ beat: beat({ at: now - 5_500 }) })]
  proves(off(forgotten, [attempt()], silenced), 'off')
  lacks(off({ ...forgotten, readings: telling(undefined) }, [attempt()], silenced), /identity of bmc-off is unproven/)
  lacks(off({ ...forgotten, readings: telling('machine-9') }, [attempt()], silenced), /another machine/)
  lacks(off({ ...forgotten, twin: 'node-9' }, [attempt()], silenced), /identity of bmc-off is unproven/)
  lacks(found(forgotten), /not read on at an audit/)
})

// found-off: nobody ordered it.

test('a level that reads off twice by itself, port silent and a witness deaf since, is found off', () => {
  proves(found(), 'found-off')
})

test('three offs in a row: a port asked after the first of them counts', () => {
  proves(found({ readings: [...(foundOffNode.readings ?? []), reading('off', now - 600)] }), 'found-off')
})

test('an audit that became stale after the node was last heard: no turn could ask it any more', () => {
  proves(found({ auditedUntil: now - 3_999 }), 'found-off')
})

const still = { askedAt: now - 500, readAt: now - 450, renewTime: 'x', unmovedSince: now - 20_000, moved: false }
test('of a node that this replica never heard, whose agent no peer can be asked for: its Lease must stand still for a whole interval, and no other replica hear it', () => {
  const unknown: Partial<NodeSeen> = { beat: undefined as never, witnesses: [], lease: still }
  proves(found(unknown), 'found-off')
  lacks(found({ ...unknown, lease: { ...still, unmovedSince: now - 12_000 } }), /whole interval/)
  lacks(found({ ...unknown, lease: { ...still, askedAt: now - 2_950 } }), /Lease was not read since/)
  lacks(found({ ...unknown, lease: undefined as never }), /Lease was not read/)
  lacks(found({ ...unknown, witnesses: [{ witness: 'replica-1', kind: 'replica', askedAt: now - 1_500, answeredAt: now - 1_400, word: 'hears', proven: true }] }), /hears/)
  lacks(found({ witnesses: [], lease: still }), /no witness/)
})

const pathTwo = { levels: [[method], [feedA]], faults: [] }
const foundBut: [string, Partial<NodeSeen>, RegExp][] = [
  ['one reading', { readings: [reading('off', now - 1_800)] }, /twice/],
  ['two readings less than a second apart', { readings: [reading('off', now - 2_700), reading('off', now - 1_800)] }, /twice/],
  ['an on between', { readings: [reading('off', now - 3_400), reading('on', now - 2_600), reading('off', now - 1_800)] }, /twice/],
  ['an unknown between', { readings: [reading('off', now - 3_400), reading('unknown', now - 2_600), reading('off', now - 1_800)] }, /twice/],
  ['a first reading from before the last beat', { readings: [reading('off', now - 4_100), reading('off', now - 1_800)] }, /twice/],
  ['readings under another configuration', { readings: (foundOffNode.readings ?? []).map((one) => ({ ...one, digest: 'd0' })) }, /twice/],
  ['a reading of another machine', { readings: (foundOffNode.readings ?? []).map((one) => ({ ...one, machine: 'machine-9' })) }, /another machine/],
  ['no audit', { record: record({ paths: [] }) }, /not read on at an audit/],
  ['an audit of another boot', audited({ boot: 'boot-0/1' }), /not read on at an audit/],
  ['an audit of another configuration', audited({ digest: 'd0' }), /not read on at an audit/],
  ['an audit that found it off', audited({ state: 'mismatch' }), /not read on at an audit/],
  ['an audit without an answer', audited({ state: 'unreachable' }), /not read on at an audit/],
  ['a path marked as wrong', audited({ state: 'marked' }), /not read on at an audit/],
  ['an audit that was stale before the node was last heard', { auditedUntil: now - 4_001 }, /stale/],
  ['an identity that nothing proves', audited({ identity: 'unproven' }), /identity/],
  ['an identity that is another machine\'s', audited({ identity: 'mismatch' }), /identity/],
  ['another path that says on', { path: pathTwo, readings: [...(foundOffNode.readings ?? []), reading('on', now - 1_000, now - 900, { method: 'feed-a', digest: 'da' })] }, /feed-a says on/],
  ['the port not asked', { probe: undefined as never }, /not asked/],
  ['the port asked before the first off was read', { probe: { askedAt: now - 2_950, answeredAt: now - 2_100, word: 'silent' } }, /not asked/],
  ['the port answering', { probe: { askedAt: now - 1_500, answeredAt: now - 1_400, word: 'answered' } }, /answers/],
  ['the port refusing', { probe: { askedAt: now - 1_500, answeredAt: now - 1_400, word: 'refused' } }, /answers/],
  ['no witness', { witnesses: [] }, /no witness/],
  ['witnesses asked before the first off only', { witnesses: (foundOffNode.witnesses ?? []).map((one) => ({ ...one, askedAt: now - 2_950 })) }, /no witness/],
  ['a witness that hears it, even without a seal', { witnesses: (foundOffNode.witnesses ?? []).map((one, index) => (index === 0 ? { ...one, word: 'hears' as const } : one)) }, /hears/],
]
for (const [but, changes, what] of foundBut) test(`found off, but ${but}: no proof`, () => lacks(found(changes), what))

test('another path that does not answer takes nothing from a level found off', () => {
  proves(found({ path: pathTwo, readings: [...(foundOffNode.readings ?? []), reading('unknown', now - 1_000, now - 900, { method: 'feed-a', digest: 'da' })] }), 'found-off')
})

test('one feed of two found off is not found off', () => {
  const two = { path: { levels: [[method, feedA]], faults: [] }, record: record({ paths: [known, { ...known, method: 'feed-a', digest: 'da' }] }) }
  lacks(found(two), /feed-a was not yet read off twice/)
})

test('no methods, no proof', () => {
  lacks(found({ path: { levels: [[]], faults: [] } }), /no methods/)
  lacks(found({ path: { levels: [], faults: [] } }), /no methods/)
  lacks(off({ path: { levels: [], faults: [] } }), /no methods/)
})

// What a standing proof rests on.

const proof = recall({ kind: 'off', at: '', boot, nodeUid: 'uid-node-2', level: 0, methods: ['bmc-off'], evidence: [] })
const both = recall({ kind: 'off', at: '', boot, nodeUid: 'uid-node-2', level: 0, methods: ['feed-a', 'feed-b'], evidence: [] })

const within = (...readings: NodeSeen['readings'][0][]) => stillOff(proof, node({ readings }), now)

test('a batch is covered by an off read within the last second, and by nothing else', () => {
  assert.ok(within(reading('off', now - 900, now - 800)))
  assert.not(within())
  assert.not(within(reading('off', now - 1_300, now - 1_100)))
  assert.not(within(reading('on', now - 900, now - 800)))
  assert.not(within(reading('off', now - 900, now - 800), reading('unknown', now - 500)))
  assert.not(within(reading('off', now - 900, now - 800), reading('on', now - 500)))
})

test('a batch needs every method of the proving level read, not one of two', () => {
  const a = reading('off', now - 900, now - 800, { method: 'feed-a', digest: 'da' })
  const b = reading('off', now - 900, now - 800, { method: 'feed-b', digest: 'db' })
  assert.ok(stillOff(both, node({ readings: [a, b] }), now))
  assert.not(stillOff(both, node({ readings: [a] }), now))
  assert.not(stillOff(both, node({ readings: [a, { ...b, endedAt: now - 1_100 }] }), now))
})

test('a batch is covered only by readings of the configuration that proved', () => {
  const bound = recall({ kind: 'off', at: '', boot, nodeUid: 'uid-node-2', level: 0, methods: ['bmc-off'], digests: ['d1'], evidence: [] })
  assert.ok(stillOff(bound, node({ readings: [reading('off', now - 900, now - 800)] }), now))
  assert.not(stillOff(bound, node({ readings: [reading('off', now - 900, now - 800, { digest: 'd9' })] }), now))
})

test('a proof without methods is covered by nothing', () => {
  assert.not(stillOff(recall({ kind: 'off', at: '', boot, nodeUid: '', level: 0, methods: [], evidence: [] }), node(), now))
})

test('any answer but off contradicts a proof; no answer yet does not', () => {
  assert.is(contradicted(proof, node({ readings: [] }), now), undefined)
  assert.is(contradicted(proof, node({ readings: [reading('on', now - 4_000), reading('off', now - 2_300), reading('off', now - 1_000)] }), now), undefined)
  assert.match(contradicted(proof, node({ readings: [reading('off', now - 2_000), reading('on', now - 1_000)] }), now) ?? '', /reads on/)
  assert.match(contradicted(proof, node({ readings: [reading('off', now - 2_000), reading('unknown', now - 1_000)] }), now) ?? '', /reads unknown/)
})

test('after an on one off is not enough to go on: it takes as many as the proof took', () => {
  const once = [reading('off', now - 4_000), reading('on', now - 2_300), reading('off', now - 1_000)]
  assert.match(contradicted(proof, node({ readings: once }), now) ?? '', /only once/)
  assert.match(contradicted(proof, node({ readings: [...once, reading('off', now - 500)] }), now) ?? '', /only once/)
  assert.is(contradicted(proof, node({ readings: [...once, reading('off', now + 200)] }), now + 300), undefined)
})

test('once the device names another machine, its word frees nothing more', () => {
  const swapped = node({ readings: [reading('off', now - 900, now - 800, { machine: 'machine-9' })] })
  assert.not(stillOff(proof, swapped, now))
  assert.match(contradicted(proof, swapped, now) ?? '', /another machine/)
  const own = node({ readings: [reading('off', now - 900, now - 800, { machine: node().machine.toUpperCase() })] })
  assert.ok(stillOff(proof, own, now))
  assert.is(contradicted(proof, own, now), undefined)
})

test('a machine that beats again in a new boot proves nothing by its old readings', () => {
  lacks(foundOff(newBoot, node(foundOffNode), 0, now), /not read on at an audit/)
})

test.run()
