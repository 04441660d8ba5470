// A person's word that a machine is off: when it proves, what speaks against it, and what it bears out.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Action } from '../../core/action.ts'
import { sourceOf } from '../../core/acknowledge.ts'
import { decide } from '../../core/decide.ts'
import type { Acknowledgement, Incident, IncidentStatus } from '../../core/incident.ts'
import type { NodeSeen } from '../../core/model.ts'
import { outOfService, quarantine } from './states.ts'
import { attempt, beat, boot, dead, incident, newBoot, now, pod, podsOf, policy, proofRecord, reading, seenOrder, seenProof, three } from './world.ts'

const test = suite('acknowledge')

const word: Acknowledgement = { boot, by: 'on call', reason: 'pulled both plugs', until: '2026-01-01T01:00:00Z' }
const saidAt = now - 20_000
const seenWord = (expires = now + 600_000) => [[`acknowledged node-2-abc-1 ${word.until}`, saidAt], [`expires node-2-abc-1 ${word.until}`, expires]] as const

/** Its devices answer nothing, its kubelet has been silent for long, and all of it was asked just now. */
const dark: Partial<NodeSeen> = {
  ...dead, beat: beat({ at: now - 90_000 }), ready: { status: 'Unknown', postedAt: now - 95_000, since: now - 40_000, bootId: 'boot-1' }, taints: [quarantine],
  readings: [reading('unknown', now - 1_000)], readAt: now - 500, firstSeen: new Map(seenWord()),
  lease: { askedAt: now - 500, readAt: now - 450, renewTime: 'x', unmovedSince: now - 60_000, moved: false },
}

const of = (changes: Partial<NodeSeen> = {}, status: Partial<IncidentStatus> = {}, more: Partial<Incident> = {}): readonly Action[] =>
  decide(three({ ...dark, ...changes }, [incident(status, { acknowledge: word, ...more })]), now, [policy]).filter((action) => action.node === 'node-2')
const proof = (actions: readonly Action[]) => actions.flatMap((action) => (action.do === 'prove' ? [action.proof] : []))[0]
const why = (actions: readonly Action[]): string => actions.flatMap((action) => (action.do === 'hold' && action.because === 'unvouched' ? [action.detail] : [])).join()

test('it proves, with a name on it, where nothing else can tell', () => {
  const made = proof(of())
  assert.equal([made?.kind, made?.boot, made?.level, made?.methods], ['vouched', boot, -1, []])
  assert.equal(made?.evidence.map(({ source, word: said }) => [source, said]), [
    ['acknowledged by on call until 2026-01-01T01:00:00Z', 'off: pulled both plugs'], ['Ready', 'Unknown'], ['Lease', 'not renewed for a whole interval'],
  ])
  assert.equal(proof(decide(three(dark, [incident()]), now, [policy])), undefined, 'without it nothing is proven')
})

const refusals: readonly (readonly [string, Partial<NodeSeen>, Partial<Incident>, RegExp])[] = [
  ['of another boot', {}, { acknowledge: { ...word, boot: newBoot } }, /it is of boot boot-2\/900/],
  ['that ran out', { firstSeen: new Map(seenWord(now)) }, {}, /it ran out at 2026/],
  ['for longer than a day', { firstSeen: new Map(seenWord(now + 86_400_001)) }, {}, /a day at most/],
  ['whose hour was never read', { firstSeen: new Map(seenWord().slice(0, 1)) }, {}, /it ran out/],
  ['that a device contradicts', { readings: [reading('on', now - 1_000)] }, {}, /bmc-off says on/],
  ['that a device contradicted before it stopped answering', { readings: [reading('on', now - 3_000), reading('unknown', now - 1_000)] }, {}, /bmc-off says on/],
  ['while a device was not asked since', { readings: [reading('unknown', saidAt - 1)] }, {}, /bmc-off was not asked/],
  ['while Ready is True', { ready: { status: 'True', postedAt: now - 95_000, since: 0, bootId: 'boot-1' } }, {}, /Ready has not left True/],
  ['before the Lease was watched for a whole interval', { lease: { askedAt: now - 500, readAt: now - 450, renewTime: 'x', unmovedSince: now - 12_000, moved: false } }, {}, /whole interval/],
  ['after which the Lease was renewed', { lease: { askedAt: now - 500, readAt: now - 450, renewTime: 'y', unmovedSince: now - 15_000, moved: true, movedAfter: saidAt } }, {}, /renewed its Lease|silent/],
  ['of a Node that tells of another boot', { bootId: 'boot-7' }, {}, /tells of boot boot-7/],
  ['while the Node was not read live', { readAt: now - 6_000 }, {}, /not read just now/],
  ['after which others heard the node', { witnesses: [{ witness: 'replica-1', kind: 'replica', askedAt: now - 15_100, answeredAt: now - 15_000, word: 'hears', proven: true }] }, {}, /replica-1 has heard the node itself after it/],
  ['after which the kubelet port answered', { probe: { askedAt: now - 900, answeredAt: now - 100, word: 'silent', spokeAt: now - 19_000 } }, {}, /port has answered/],
]
for (const [which, changes, more, says] of refusals) {
  test(`a word ${which} proves nothing, and says why`, () => {
    const actions = of(changes, {}, more)
    assert.is(proof(actions), undefined)
    assert.match(why(actions), says)
  })
}

test('a word from before this replica began proves nothing, since whoever heard the node after it may lead no more; the proof that it made stands', () => {
  const stood = new Map([[`acknowledged node-2-abc-1 ${word.until}`, -Infinity], [`expires node-2-abc-1 ${word.until}`, now + 600_000], seenProof(now - 15_000)] as const)
  const actions = of({ firstSeen: stood })
  assert.is(proof(actions), undefined)
  assert.match(why(actions), /nobody here knows what was heard after it/)
  const made = { ...vouched, proof: proofRecord({ kind: 'vouched', level: -1, methods: [], evidence: [{ source: sourceOf(word), word: 'off', at: 'then' }] }) }
  assert.equal(deeds(of({ ...clearing, beat: undefined, firstSeen: stood }, made)), ['delete'])
})

test('of a node that is heard, or whose machine answers, it proves nothing', () => {
  assert.is(proof(of({ beat: beat() }, {}, { cause: 'by-hand' })), undefined)
  assert.match(why(of({ beat: beat() }, {}, { cause: 'by-hand' })), /not known to be silent/)
  assert.match(why(of({ probe: { askedAt: now - 900, answeredAt: now - 890, word: 'refused', spokeAt: now - 890 } })), /a kernel runs there|not known to be silent/)
})

test('nothing is proven while an on of ours may still land', () => {
  const on = attempt({ action: 'on', result: 'failed' })
  assert.is(proof(of({ firstSeen: new Map([...seenWord(), ...seenOrder(now - 50_000, now - 40_000)]) }, { attempts: [on] })), undefined)
})

const afterOrder = (endedAt: number, readings: NodeSeen['readings']) => proof(of({ readings, firstSeen: new Map([...seenWord(), ...seenOrder(endedAt - 2_000, endedAt)]) }, { phase: 'Running', step: 'power-management', attempts: [attempt()] }))
test('what we have just switched off is proven by its devices, and is ours to give back; the word counts where they do not tell', () => {
  assert.is(afterOrder(now - 2_000, [reading('off', now - 1_000)]), undefined)
  assert.is(afterOrder(now - 4_000, [reading('off', now - 3_000), reading('off', now - 1_000)])?.kind, 'off')
  assert.is(afterOrder(now - 31_000, [reading('unknown', now - 1_000)])?.kind, 'vouched')
})

test('the word that a false proof was made of makes no other one', () => {
  const voided = [{ proof: proofRecord({ kind: 'vouched', level: -1, methods: [], evidence: [{ source: sourceOf(word), word: 'off', at: 'then' }] }), at: 'then', evidence: 'it answered' }]
  const actions = of({}, { voided })
  assert.is(proof(actions), undefined)
  assert.match(why(actions), /shown false/)
  const next = { ...word, until: '2026-01-01T02:00:00Z' }
  const seenNext = new Map([[`acknowledged node-2-abc-1 ${next.until}`, saidAt], [`expires node-2-abc-1 ${next.until}`, now + 600_000]] as const)
  assert.is(proof(of({ firstSeen: seenNext }, { voided }, { acknowledge: next }))?.kind, 'vouched')
})

// What follows from it.

const vouched: Partial<IncidentStatus> = { phase: 'Running', step: 'clear', proof: proofRecord({ kind: 'vouched', level: -1, methods: [] }) }
const clearing: Partial<NodeSeen> = { taints: [quarantine, outOfService], pods: podsOf([pod('web-0')]), firstSeen: new Map([...seenWord(), seenProof(now - 15_000)]) }
const deeds = (actions: readonly Action[]): readonly string[] => actions.map((action) => action.do).filter((name) => ['taint', 'untaint', 'delete', 'fence', 'restore', 'void', 'close'].includes(name))
const holds = (actions: readonly Action[]): readonly string[] => actions.flatMap((action) => (action.do === 'hold' ? [action.because] : []))

test('each batch stands on the Node and its Lease, read live within a second', () => {
  assert.equal(deeds(of(clearing, vouched)), ['delete'])
  const late = of({ ...clearing, readAt: now - 1_100 }, vouched)
  assert.equal([deeds(late), late.some((action) => action.do === 'readNode')], [[], true])
})

test('run out, taken back, or spoken against: nothing more is freed, and out-of-service comes off', () => {
  const firstSeen = new Map([...seenWord(now), seenProof(now - 15_000)])
  const { acknowledge: _, ...takenBack } = incident(vouched)
  const all = [
    of({ ...clearing, firstSeen }, vouched), decide(three({ ...dark, ...clearing }, [takenBack]), now, [policy]).filter(({ node }) => node === 'node-2'),
    of({ ...clearing, readings: [reading('on', now - 500)] }, vouched), of({ ...clearing, ready: { status: 'True', postedAt: now - 100, since: now - 100, bootId: 'boot-1' } }, vouched),
  ]
  for (const actions of all) assert.equal([deeds(actions), holds(actions)], [['untaint'], ['proof-doubted']])
})

test('heard after the proof: it is void once the boot answers', () => {
  const answered = { issuedAt: now - 500, boot }
  assert.equal(deeds(of({ ...clearing, beat: beat({ answered }) }, vouched)), ['void'])
})

const lapses = (changes: Partial<NodeSeen>): boolean => of({ ...clearing, ...changes }, vouched).some((action) => action.do === 'lapse')
test('heard once after the proof, and dead by all evidence again: it lapses, so that whoever leads next does not go on by that word', () => {
  assert.is(lapses({ beat: beat({ at: now - 10_000 }) }), true)
  assert.is(lapses({}), false)
  assert.is(lapses({ readings: [reading('on', now - 500)] }), false, 'a device that says on may say off again')
  assert.is(lapses({ firstSeen: new Map([...seenWord(now), seenProof(now - 15_000)]) }), false, 'nor has the node said anything where the word ran out')
})

test('cleared, the machine is left to whoever stands before it, though we had ordered it off', () => {
  const recovering = { ...vouched, step: 'recovery', attempts: [attempt({ result: 'failed' })] } as const
  const firstSeen = new Map([...seenWord(), seenProof(now - 15_000), ...seenOrder(now - 300_000, now - 290_000)])
  const actions = of({ taints: [quarantine], firstSeen }, recovering)
  assert.equal([deeds(actions), holds(actions)], [[], ['waiting-for-boot']])
})

test.run()
