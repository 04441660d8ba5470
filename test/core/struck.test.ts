import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { proofKey, type Incident, type ProofRecord } from '../../core/incident.ts'
import type { NodeSeen } from '../../core/model.ts'
import { neighbourDoubt } from '../../core/struck.ts'
import { attempt, beat, boot, incident, method, newBoot, node, now, orderedOff, proofRecord, reading, record, seenOrder } from './world.ts'

const test = suite('struck')

/** Ordered off six seconds ago, silent since ten, and first read off here. */
const first = reading('off', now - 2_300)
const earlier = attempt({ term: 2 })

/** Of a node of the same device: it may have been struck, it was silent before and its own off is waited for, or neither. */
function said(other: Partial<NodeSeen>, its: Partial<NodeSeen> = {}, order = attempt(), own?: Incident): 'struck' | 'waits' | 'no doubt' {
  const neighbour = node({ name: 'node-3', ...other })
  const doubt = neighbourDoubt(incident({ attempts: [order] }), node({ ...orderedOff, ...its }), method, first, [neighbour], new Map(own === undefined ? [] : [['node-3', own]]), now)
  if (doubt === undefined) return 'no doubt'
  return doubt.waitsFor.includes('node-3') ? 'waits' : 'struck'
}

const doubtOf = (...words: Parameters<typeof said>): boolean => said(...words) === 'struck'
const waits = (...words: Parameters<typeof said>): boolean => said(...words) === 'waits'

const silentSince = (at: number, changes: Partial<NonNullable<NodeSeen['beat']>> = {}): Partial<NodeSeen> => ({ beat: beat({ at, ...changes }) })
const seal = (askedAt: number, proven = true) => ({ witness: 'node-1', kind: 'agent', askedAt, answeredAt: askedAt + 50, word: 'hears', proven } as const)
const lease = (movedAfter: number) => ({ askedAt: now, readAt: now, renewTime: 'then', unmovedSince: movedAfter + 2_000, moved: true, movedAfter })
const port = (spokeAt: number) => ({ askedAt: spokeAt, answeredAt: spokeAt, word: 'answered', spokeAt } as const)

/** An outlet cannot tell whose it is. */
const outlet = (state: 'on' | 'off' | 'unknown', at: number) => reading(state, at, at + 100, { machine: undefined as never })
const its = (readings: NodeSeen['readings']): Partial<NodeSeen> => ({ ...silentSince(now - 60_000), readings })
const gone = its([outlet('off', now - 3_400), outlet('off', now - 2_000)])

test('silent for long before the order, and nothing of it speaks: it was not silenced by it, and may be what it struck, until it reads off as well', () => {
  assert.is(said(silentSince(now - 60_000)), 'waits')
  assert.is(said(gone), 'no doubt')
  assert.is(said(its([outlet('off', now - 3_400), outlet('off', now - 2_400)])), 'waits', 'last read before the first off here')
  assert.is(said(its([outlet('off', now - 2_000)])), 'waits', 'once is not twice')
  assert.is(said(its([outlet('off', now - 3_400), outlet('off', now - 2_000), outlet('on', now - 800)])), 'waits')
  assert.is(said(its([outlet('off', now - 3_400), outlet('off', now - 2_000), outlet('unknown', now - 800)])), 'waits')
  assert.is(said({ ...gone, readings: [...gone.readings ?? []].map((one) => ({ ...one, machine: 'machine-9' })) }), 'waits', 'its device speaks of another machine')
  assert.is(said({ ...gone, beat: beat({ at: now - 5_500 }) }), 'struck', 'both may name one outlet')
})

test('of one that was silent before, everything that hangs on the device must be off, and nothing else', () => {
  const feed = { ...method, name: 'feed-b', digest: 'd2' }
  const two = (device: string): Partial<NodeSeen> => ({ ...gone, path: { levels: [[method, { ...feed, device }]], faults: [] } })
  assert.equal([said(two(method.device)), said(two('pdu-b'))], ['waits', 'no doubt'])
})

function ring(askedAt: number, second: Partial<NodeSeen>): readonly string[] | undefined {
  const others = [node({ name: 'node-3', ...second }), node({ name: 'node-1', ...silentSince(now - 60_000), witnesses: [seal(askedAt)] })]
  return neighbourDoubt(incident({ attempts: [attempt()] }), node(orderedOff), method, first, others, new Map(), now)?.waitsFor
}

test('in a ring of three the third must have lived on when the second went off, not only the first', () => {
  const later = its([outlet('off', now - 2_100), outlet('off', now - 900)])
  assert.equal([ring(now - 1_150, gone), ring(now - 1_050, later), ring(now - 900, later)], [undefined, [], undefined])
})

const freed = (changes: Partial<ProofRecord>): Incident => incident({ proof: proofRecord({ nodeUid: 'uid-node-3', ...changes }) }, { name: 'node-3-abc-1', nodeName: 'node-3', nodeUid: 'uid-node-3' })
const unidentified = { record: record({ paths: record().paths.map((path) => ({ ...path, identity: 'unproven' })) }) }
const provenAt = (at: number) => ({ firstSeen: new Map([[proofKey('node-3-abc-1', 0, { kind: 'off' }), at]]) })

test('one that another proof shows to be off is not waited for; one that an outlet like this one proved is, unless the node lived on past that', () => {
  const dark = silentSince(now - 60_000)
  assert.is(said(dark, {}, attempt(), freed({})), 'no doubt', 'its device tells its machine')
  assert.is(said(dark, {}, attempt(), freed({ kind: 'vouched', level: -1, methods: [] })), 'no doubt')
  assert.is(said(dark, {}, attempt(), freed({ kind: 'isolated' })), 'waits')
  assert.is(said({ ...dark, beat: beat({ at: now - 40_000, boot: newBoot }) }, {}, attempt(), freed({})), 'waits', 'it has booted since')
  const unknown = { ...dark, ...unidentified }
  assert.is(said({ ...unknown, ...provenAt(now - 30_000) }, {}, attempt(), freed({})), 'no doubt')
  assert.is(said({ ...unknown, ...provenAt(now - 9_000) }, {}, attempt(), freed({})), 'waits', 'the node was silent by then')
  assert.is(said({ ...unknown, ...provenAt(now - 30_000) }, { beat: beat({ at: now - 10_000, since: now - 20_000 }) }, attempt(), freed({})), 'waits', 'the node has booted since')
  assert.is(said({ ...unknown, ...provenAt(now - 30_000) }, {}, attempt(), freed({ digests: ['d0'] })), 'waits', 'by another outlet of that name')
  const both = { path: { levels: [[{ ...method, name: 'console', device: 'console-3', digest: 'd3' }], [method]], faults: [] } }
  assert.is(said({ ...unknown, ...both, ...provenAt(now - 30_000) }, {}, attempt(), freed({ methods: ['console'] })), 'waits', 'its outlet was on all the while')
})

test('an agent that said goodbye is away for a moment, on a machine that runs', () => {
  assert.ok(doubtOf(silentSince(now - 60_000, { goodbye: { at: now - 60_000, why: 'restart' } })))
  assert.ok(waits(silentSince(now - 70_000, { goodbye: { at: now - 70_000, why: 'restart' } })))
  assert.is('no doubt', said(silentSince(now - 900, { goodbye: { at: now - 60_000, why: 'restart' }, answered: { issuedAt: now - 1_000, boot } })), 'it is back, and has answered')
})

test('whom the leader does not hear, and who spoke up to the order to others, must speak after it', () => {
  const mute = silentSince(now - 60_000)
  for (const spoke of [{ witnesses: [seal(now - 8_000)] }, { probe: port(now - 8_000) }, { lease: lease(now - 15_000) }]) assert.ok(doubtOf({ ...mute, ...spoke }), JSON.stringify(spoke))
  assert.ok(waits({ ...mute, witnesses: [seal(now - 8_000, false)] }), 'without a seal anybody could have said it')
  assert.ok(waits({ ...mute, probe: port(now - 30_000) }), 'it had fallen silent by then')
  assert.is(said({ ...mute, probe: port(now - 8_000), witnesses: [seal(now - 1_000)] }), 'no doubt')
  assert.is(said({ ...mute, probe: port(now - 8_000), lease: lease(now - 1_000) }), 'no doubt')
  assert.ok(doubtOf({ ...mute, probe: port(now - 8_000), witnesses: [seal(now - 1_300)] }), 'a supply may have held it up')
  assert.ok(doubtOf({ ...mute, probe: port(now - 1_000) }), 'proxies answer for the dead')
})

test('two that died together: what the other\'s machine said before its last beat is no word after it', () => {
  assert.ok(waits({ ...silentSince(now - 10_000), probe: port(now - 12_000), lease: lease(now - 11_000) }))
})

test('an order that another leader gave began when its node was silent, whenever the watch has brought it', () => {
  const late = { firstSeen: new Map(seenOrder(now - 3_000, now - 3_000)), beat: beat({ at: now - 40_000 }) }
  assert.ok(doubtOf(silentSince(now - 38_000), late, earlier))
  assert.ok(waits(silentSince(now - 38_000), late), 'of its own this replica knows when it was')
  assert.ok(waits(silentSince(now - 45_000), late, earlier), 'it was silent before the node was')
  assert.ok(doubtOf(silentSince(now - 90_000), { ...late, beat: undefined }, earlier), 'who never heard the node cannot tell')
})

test('whom a leader that began after the order never heard may have been struck, however it stood when that leader began', () => {
  const unheard: Partial<NodeSeen> = { beat: undefined, seenAt: now - 20_000, ready: { status: 'Unknown', postedAt: -Infinity, since: now - 20_000, bootId: 'boot-1' } }
  assert.ok(doubtOf(unheard, {}, earlier))
  assert.is(said({ ...unheard, record: undefined as never }, {}, earlier), 'no doubt', 'it has no agent that could answer')
  assert.ok(waits(unheard))
})

test('a node of another device fell silent with the order: a cable may lead there', () => {
  const apart: Partial<NodeSeen> = { path: { levels: [[{ ...method, device: 'bmc-3:443' }]], faults: [] } }
  for (const at of [now - 8_000, now - 5_000, now - 2_200, now - 1_300]) assert.ok(doubtOf({ ...apart, ...silentSince(at) }), `${now - at}`)
  for (const at of [now - 9_000, now - 1_100]) assert.is('no doubt', said({ ...apart, ...silentSince(at) }), `${now - at}`)
  assert.is('no doubt', said({ ...apart, ...silentSince(now - 5_000, { goodbye: { at: now - 5_000, why: 'restart' } }) }), 'it said why')
  assert.is('no doubt', said({ ...apart, beat: undefined }))
  const late = { firstSeen: new Map(seenOrder(now - 3_000, now - 3_000)), beat: beat({ at: now - 40_000 }) }
  assert.ok(doubtOf({ ...apart, ...silentSince(now - 38_000) }, late, earlier), 'another leader gave it')
  assert.is('no doubt', said({ ...apart, ...silentSince(now - 60_000) }, { ...late, beat: undefined, seenAt: now - 20_000 }, earlier), 'silent before this replica was there')
})

test.run()
