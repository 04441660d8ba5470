// What a crash kernel's word is worth: a wait, as long as the operator allows, and where the policy accepts it a proof. Each row of the table changes
// one thing of a node that is proven, and says what is lacking then.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Action } from '../../core/action.ts'
import { decide } from '../../core/decide.ts'
import { dumpKey } from '../../core/dump.ts'
import type { Attempt, DumpHeard, Incident, IncidentStatus } from '../../core/incident.ts'
import type { FencePath, NodeSeen, ProbeSeen, Self } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { borneOut, doubtOf, proveDumped, recall } from '../../core/proof.ts'
import { opened, outOfService, quarantine } from './states.ts'
import { attempt, beat, boot, dead, incident, method, newBoot, node, now, pod, podsOf, policy as usual, proofRecord, reading, record, seenOrder, seenProof, self, silentAt, three } from './world.ts'

const test = suite('dump')
const path: FencePath = { levels: [[method]], faults: [], dumpsWithin: 20_000 }
const word = (since: number, at = since) => ({ since, at, from: '10.0.0.2' })
const heard: DumpHeard = { at: 'then', by: 'replica-0', from: '10.0.0.2', afterSilence: false }
const policy: Policy = { ...usual, kdump: 'accept' }
const key = dumpKey('node-2-abc-1')

function waits(changes: Partial<NodeSeen>, of: Partial<Incident> = {}): readonly string[] {
  return decide(three({ ...opened.node, path, ...changes }, [incident({ ...opened.status, dump: heard }, of)]), now, [usual])
    .flatMap((action) => (action.node !== 'node-2' ? [] : action.do === 'fence' ? ['ordered'] : action.do === 'hold' ? [action.because] : []))
}

test('a crash kernel that announced itself is waited for, and then its power goes', () => {
  assert.equal(waits({ dump: word(silentAt + 2_000) }), ['dumping'])
  assert.equal(waits({ dump: word(now - 20_000, now - 500), beat: beat({ at: now - 21_000 }) }), ['ordered'], 'counted from the first word')
})

test('nobody waits without a word, without kdump= in the configuration, or for a word from before the last beat', () => {
  assert.equal(waits({}), ['ordered'])
  assert.equal(waits({ path: { levels: [[method]], faults: [] }, dump: word(silentAt + 2_000) }), ['ordered'])
  assert.equal(waits({ dump: word(silentAt - 1) }), ['ordered'])
})

test('a word that another leader wrote down is waited for as one that was heard here, unless the node beat since', () => {
  assert.equal(waits({ firstSeen: new Map([[key, silentAt + 2_000]]) }), ['dumping'])
  assert.equal(waits({ firstSeen: new Map([[key, silentAt - 1]]) }), ['ordered'])
  assert.equal(waits({ firstSeen: new Map([[key, now - 20_000]]), dump: word(now - 1_000), beat: beat({ at: now - 21_000 }) }), ['ordered'], 'counted from the first of them')
})

test('with kdump_within= the word itself is waited for, as long as that, unless the node is to be fenced though it is heard', () => {
  const early = { ...path, announcesWithin: 5_000 }
  assert.equal(waits({ path: early }), ['dumping'])
  assert.equal(waits({ path: { ...path, announcesWithin: 4_000 } }), ['ordered'])
  assert.equal(waits({ path: early }, { cause: 'by-hand' }), ['ordered'])
  const beats = { path: early, beat: beat({ clean: { at: now - 500, report: { state: 'dirty', leftovers: [] } } }), witnesses: [] }
  for (const cause of ['remedy', 'leftover'] as const) assert.equal([waits(beats, { cause }), waits({ path: early }, { cause })], [['ordered'], ['dumping']], cause)
  assert.equal(waits({ path: early, dump: word(silentAt + 1) }), ['dumping'], 'and then the dump')
})

/** Panicked a minute ago: silent for eight seconds, then its crash kernel came up, and refuses. */
const crashed: Partial<NodeSeen> = {
  ...dead, beat: beat({ at: now - 60_000 }), path: { ...path, dumpsWithin: 300_000 }, readings: [reading('on', now - 1_000)], dump: word(now - 50_000, now - 5_000),
  probe: { askedAt: now - 900, answeredAt: now - 890, word: 'refused', spokeAt: now - 890, fell: { at: now - 58_000, until: now - 52_000, spokeAt: now - 70_000 } },
  ready: { status: 'Unknown', postedAt: now - 65_000, since: now - 15_000, bootId: 'boot-1' }, readAt: now - 500,
  lease: { askedAt: now - 500, readAt: now - 400, renewTime: 'then', unmovedSince: now - 57_000, moved: false },
}
const probe = (changes: Partial<ProbeSeen>): Partial<NodeSeen> => ({ probe: { askedAt: now - 900, answeredAt: now - 890, word: 'refused', spokeAt: now - 890, fell: { at: now - 58_000, until: now - 52_000, spokeAt: now - 70_000 }, ...changes } })

interface Scene {
  readonly node?: Partial<NodeSeen>
  readonly status?: Partial<IncidentStatus>
  readonly policy?: Policy
  readonly self?: Partial<Self>
}

function proven({ node: changes = {}, status = {}, policy: own = policy, self: us = {} }: Scene) {
  return proveDumped(incident({ phase: 'Running', ...status }, { policy: own }), node({ ...crashed, ...changes }), self(us), now)
}

test('it fell silent, its crash kernel was heard, and nothing else speaks of it: it is proven, and says by what', () => {
  const result = proven({})
  assert.ok('proof' in result, JSON.stringify(result))
  if (!('proof' in result)) return
  const { kind, boot: of, level, methods, evidence } = result.proof
  assert.equal([kind, of, level, methods], ['kdump', boot, -1, []])
  assert.equal(evidence.map(({ source, at }) => [source, at]).slice(0, 3), [['crash kernel', now - 5_000], ['beat', now - 60_000], ['probe', now - 58_000]])
  assert.is(evidence[0]?.word, 'announced itself from 10.0.0.2, heard by replica-0')
})

const seal = (answeredAt: number): Partial<NodeSeen> => ({ witnesses: [{ witness: 'node-1', kind: 'agent', askedAt: answeredAt - 100, answeredAt, word: 'hears', proven: true }] })

/** Of a witness that hears something, and no seal of the node. */
const bare: Partial<NodeSeen> = { witnesses: [{ witness: 'node-1', kind: 'agent', askedAt: now - 1_100, answeredAt: now - 1_000, word: 'hears', proven: false }] }

const lacking: readonly (readonly [string, Scene, RegExp])[] = [
  ['a policy that does not accept it', { policy: { ...policy, kdump: 'refuse' } }, /policy does not accept/],
  ['a node of which none is waited for', { node: { path: { levels: [[method]], faults: [] } } }, /kdump=/],
  ['a replica that never heard the node', { node: { beat: undefined } }, /never heard the node/],
  ['a replica that heard another boot of it last', { node: { beat: beat({ boot: newBoot, at: now - 60_000 }), record: record({ probe: { boot: newBoot, answered: true, at: 'then' } }) } }, /another boot/],
  ['a word from before its last beat', { node: { beat: beat({ at: now - 4_999 }) } }, /heard after its crash kernel/],
  ['a word that was heard as this replica woke', { self: { awakeSince: now - 5_900 } }, /woke from a stall/],
  ['a port that never answered', { node: { record: record({ probe: { boot, answered: false, at: 'then' } }) } }, /not heard to answer at its last audit/],
  ['a port that answered in another boot', { node: { record: record({ probe: { boot: newBoot, answered: true, at: 'then' } }) } }, /not heard to answer at its last audit/],
  ['a kernel that refused all along', { node: { probe: { askedAt: now - 900, answeredAt: now - 890, word: 'refused', spokeAt: now - 890 } } }, /not silent between/],
  ['a silence from before its last beat', { node: probe({ fell: { at: now - 61_000, until: now - 52_000, spokeAt: now - 70_000 } }) }, /not silent between/],
  ['a silence of one lost question', { node: probe({ fell: { at: now - 58_000, until: now - 58_000, spokeAt: now - 70_000 } }) }, /not silent between/],
  ['a silence that came after the word', { node: { ...probe({ fell: { at: now - 4_000, until: now - 1_000, spokeAt: now - 70_000 } }) } }, /not silent between/],
  ['a port that refused first, and fell silent then', { node: probe({ fell: { at: now - 55_000, until: now - 52_000, spokeAt: now - 58_000 } }) }, /spoke after its last beat/],
  ['a port that accepts since', { node: probe({ acceptedAt: now - 58_999 }) }, /no crash kernel does/],
  ['a witness that brought its seal since', { node: seal(now - 58_999) }, /node-1 has heard the node itself/],
  ['a node of which its kubelet tells another boot', { node: { bootId: 'boot-2' } }, /tells of boot boot-2/],
  ['Ready that is True', { node: { ready: { status: 'True', postedAt: now - 65_000, since: now - 65_000, bootId: 'boot-1' } } }, /Ready has not left True/],
  ['a Lease that was renewed since', { node: { lease: { askedAt: now - 500, readAt: now - 400, renewTime: 'then', unmovedSince: now - 30_000, moved: true, movedAfter: now - 40_000 } } }, /renewed its Lease/],
  ['a Lease that was not watched for a whole interval', { node: { lease: { askedAt: now - 500, readAt: now - 400, renewTime: 'then', unmovedSince: now - 12_000, moved: false } } }, /not yet watched/],
  ['a Node that was not read just now', { node: { readAt: now - 60_000 } }, /was not read just now/],
  ['an earlier one that was shown false', { status: { voided: [{ proof: proofRecord({ kind: 'kdump', level: -1 }), at: 'then', evidence: 'it answered' }] } }, /shown false/],
  ['an order that may switch it on still', { status: { attempts: [attempt({ action: 'on', result: 'failed' })] }, node: { firstSeen: new Map(seenOrder(now - 6_000, now - 4_000)) } }, /may still land/],
]

for (const [what, scene, lacks] of lacking) {
  test(`no proof from ${what}`, () => {
    const result = proven(scene)
    assert.match('lacks' in result ? result.lacks : 'proven', lacks)
  })
}

test('what an earlier leader saw of the silence counts, as long as the node has not beaten since it was written down', () => {
  const { fell: _, ...unseen } = crashed.probe ?? { askedAt: 0, answeredAt: 0, word: 'refused' }
  const told = (afterSilence: boolean, at: number | undefined, dump = crashed.dump) => proven({
    status: { dump: { ...heard, by: 'replica-1', afterSilence } }, node: { probe: unseen, firstSeen: new Map(at === undefined ? [] : [[key, at]]), ...(dump === undefined ? {} : { dump }) },
  })
  const result = told(true, now - 50_000)
  assert.ok('proof' in result, JSON.stringify(result))
  if ('proof' in result) assert.match(result.proof.evidence[2]?.word ?? '', /as replica-1 wrote it down/)
  for (const lacks of [told(false, now - 50_000), told(true, now - 60_000), told(true, undefined)]) assert.match('lacks' in lacks ? lacks.lacks : 'proven', /not silent between/)
  assert.match(JSON.stringify(told(true, now - 50_000, word(now - 61_000))), /heard after its crash kernel/, 'a word of its own it needs all the same')
})

test('no proof without a word', () => {
  const { dump: _, ...unheard } = node(crashed)
  const result = proveDumped(incident({}, { policy }), unheard, self(), now)
  assert.match('lacks' in result ? result.lacks : 'proven', /no crash kernel was heard/)
})

test('what was a moment too late, and a word a stall before, are proven an instant later', () => {
  for (const scene of [
    { self: { awakeSince: now - 6_001 } }, { node: probe({ fell: { at: now - 58_000, until: now - 57_000, spokeAt: now - 70_000 } }) },
    { node: probe({ fell: { at: now - 58_000, until: now - 52_000, spokeAt: now - 59_000 } }) }, { node: seal(now - 59_000) }, { node: bare }, { node: probe({ word: 'silent' }) },
  ]) {
    const result = proven(scene)
    assert.ok('proof' in result, JSON.stringify(result))
  }
})

/** What is done about it. */
function done(changes: Partial<NodeSeen>, status: Partial<IncidentStatus> = {}, own: Policy = policy, of: Partial<Incident> = {}, us: Partial<Self> = {}): readonly Action[] {
  return decide(three({ ...crashed, taints: [quarantine], ...changes }, [incident({ phase: 'Running', dump: heard, ...status }, { policy: own, ...of })], self(us)), now, [own]).filter((one) => one.node === 'node-2')
}
const deeds = (actions: readonly Action[]) => actions.flatMap((one) => (['announce', 'prove', 'fence', 'taint', 'untaint', 'delete', 'void', 'withdraw', 'restore'].includes(one.do) ? [one.do] : []))
const holds = (actions: readonly Action[]) => actions.flatMap((one) => (one.do === 'hold' ? [one.because] : []))

test('the first word is written down, once, and never where the API server does not keep it', () => {
  const { dump: _, ...unheard } = incident().status
  assert.equal(deeds(done({ ready: { status: 'True', postedAt: now - 65_000, since: now - 65_000, bootId: 'boot-1' } })), [])
  const first = decide(three({ ...crashed, ready: { status: 'True', postedAt: now - 65_000, since: now - 65_000, bootId: 'boot-1' } }, [incident({ ...unheard, phase: 'Running' }, { policy })]), now, [policy])
  assert.equal(deeds(first), ['announce'])
  const dropped = decide(three({ ...crashed, ready: { status: 'True', postedAt: now - 65_000, since: now - 65_000, bootId: 'boot-1' }, unkept: { at: now - 1_000, dump: 'node-2-abc-1' } }, [incident({ ...unheard, phase: 'Running' }, { policy })]), now, [policy])
  assert.equal(deeds(dropped), [])
})

test('what its crash kernel refuses keeps nobody from calling it dead, also where no incident is open yet', () => {
  assert.equal(deeds(done({})), ['prove'])
  for (const own of [policy, usual]) assert.is(decide(three(crashed), now, [own]).filter((one) => one.do === 'open').length, 1)
})

test('a policy that does not accept its word has no proof from it, and its power goes when the time of its dump is over', () => {
  assert.equal([deeds(done({}, {}, usual)), holds(done({}, {}, usual))], [[], ['dumping']])
  assert.equal(deeds(done(over, {}, usual)), ['fence'])
  for (const changes of [{ dump: undefined }, { probe: { ...over.probe, fell: undefined } }, { probe: { ...over.probe, acceptedAt: now - 200_000 } }] as Partial<NodeSeen>[]) {
    assert.equal([deeds(done({ ...over, ...changes }, {}, usual)), holds(done({ ...over, ...changes }, {}, usual))], [[], ['not-dead']], 'without the word, and the silence before it, it is ill')
  }
})

test('so does a leader that began after the crash, by what stands on record', () => {
  const { fell: _, spokeAt: __, ...unseen } = over.probe
  const own = { ...over, beat: undefined, dump: undefined, seenAt: now - 400_000, probe: { ...unseen, spokeAt: now - 890 }, firstSeen: new Map([[key, now - 390_000]]) }
  const ordered = (afterSilence: boolean, changes: Partial<NodeSeen> = {}) => deeds(done({ ...own, ...changes }, { dump: { ...heard, afterSilence } }, usual, {}, { awakeSince: now - 400_000 }))
  assert.equal([ordered(true), ordered(false)], [['fence'], []])
  assert.equal(ordered(true, { probe: { ...unseen, acceptedAt: now - 380_000 } }), [], 'its port has accepted since')
  assert.equal(ordered(true, seal(now - 2_000)), [], 'a witness has heard it since')
  assert.equal(ordered(true, { path: { levels: [[method]], faults: [] } }), [], 'nobody waits for a crash kernel of it')
})

test('also by a leader that saw no silence itself, and goes by what stands on record', () => {
  const { fell: _, ...unseen } = crashed.probe ?? { askedAt: 0, answeredAt: 0, word: 'refused' }
  const told = (afterSilence: boolean) => deeds(done({ probe: unseen, firstSeen: new Map([[key, now - 50_000]]) }, { dump: { ...heard, afterSilence } }))
  assert.equal([told(true), told(false)], [['prove'], []])
})

const proof = proofRecord({ kind: 'kdump', level: -1, methods: [] })
const provenAt = now - 4_000
const standing: Partial<IncidentStatus> = { step: 'clear', proof }
const clearing = (changes: Partial<NodeSeen> = {}): Partial<NodeSeen> => ({ firstSeen: new Map([seenProof(provenAt, 0, 'kdump')]), pods: podsOf([pod('db-0')]), taints: [quarantine, outOfService], ...changes })
const over = { dump: word(now - 301_000, now - 2_000), beat: beat({ at: now - 400_000 }), probe: { ...node(crashed).probe ?? { askedAt: 0, answeredAt: 0, word: 'refused' as const }, fell: { at: now - 390_000, until: now - 380_000, spokeAt: now - 410_000 } } }

test('its pods go while its dump is being written, and its power stays on for that', () => {
  const actions = done(clearing(), standing)
  assert.equal([deeds(actions), holds(actions)], [['delete'], ['dumping']])
  assert.equal(deeds(done(clearing({ taints: [quarantine] }), standing)), ['taint'], 'out of service first')
})

test('cleared, its power waits for the dump still, and goes then; read off, the incident is one like any other', () => {
  const cleared = clearing({ taints: [quarantine], pods: podsOf([]) })
  const waiting = done(cleared, { ...standing, step: 'recovery' })
  assert.equal([deeds(waiting), holds(waiting)], [[], ['dumping']])
  assert.equal(deeds(done({ ...cleared, ...over }, { ...standing, step: 'recovery' })), ['fence'])
  assert.equal(deeds(done({ ...clearing(), ...over }, standing)), ['fence', 'delete'], 'both at once, where it took longer')
  const off = done({ ...cleared, ...over, firstSeen: new Map([seenProof(provenAt, 0, 'kdump'), ...seenOrder(now - 6_000, now - 4_000)]), readings: [reading('on', now - 8_000), reading('off', now - 2_300), reading('off', now - 900)] }, { ...standing, step: 'recovery', attempts: [attempt()] })
  assert.ok(off.some((one) => one.do === 'prove' && one.proof.kind === 'off'))
  const aborted = done({ ...cleared, ...over }, { ...standing, step: 'recovery' }, policy, { abort: true })
  assert.equal([deeds(aborted), holds(aborted)], [[], ['waiting-for-boot', 'abort-refused']])
})

test('while it is ordered off it holds a slot, also when its pods are free already, and none when it rests', () => {
  const third: Partial<NodeSeen> = { ...dead, name: 'node-3', uid: 'uid-node-3', machine: 'machine-3', readings: [reading('on', now - 1_000, now - 900, { machine: 'machine-3' })], record: record({ nodeUid: 'uid-node-3', machine: 'machine-3' }) }
  const calm: Policy = { ...policy, brakes: { ...policy.brakes, stormPercent: 100 } }
  const beside = (attempts: readonly Attempt[], own: Partial<NodeSeen>) => {
    const ordering = { ...clearing({ taints: [quarantine], pods: podsOf([]) }), ...over, ...own }
    const { nodes, ...rest } = three({ ...crashed, ...ordering }, [
      incident({ phase: 'Running', ...standing, step: 'recovery', dump: heard, attempts }, { policy }),
      incident({}, { name: 'node-3-abc-1', nodeName: 'node-3', nodeUid: 'uid-node-3', machine: 'machine-3' }),
    ])
    const actions = decide({ ...rest, nodes: new Map([...nodes, ['node-3', node(third)]]) }, now, [calm]).filter((one) => one.node === 'node-3')
    return [...deeds(actions), ...holds(actions)]
  }
  const seenOff = new Map([seenProof(provenAt, 0, 'kdump'), ...seenOrder(now - 6_000, now - 4_000)])
  assert.equal(beside([attempt()], { firstSeen: seenOff, readings: [reading('on', now - 8_000), reading('off', now - 900)] }), ['concurrency'])
  const failed = [attempt({ result: 'failed', reason: 'no' }), attempt({ id: 'node-2-abc-1.2', result: 'failed', reason: 'no' })]
  assert.equal(beside(failed, { firstSeen: new Map([...seenOff, ...seenOrder(now - 6_000, now - 4_000, 'node-2-abc-1.2')]) }), ['taint', 'fence'])
})

test('its power goes in time also where a leader never heard its word, or has its doubts', () => {
  const { dump: _, ...unheard } = node({ ...crashed, ...clearing({ taints: [quarantine] }), ...over, firstSeen: new Map([seenProof(provenAt, 0, 'kdump'), [key, now - 300_000]]) })
  const actions = decide({ ...three({}, [incident({ phase: 'Running', ...standing, step: 'recovery', dump: { ...heard, by: 'replica-1' } }, { policy })]), nodes: new Map([['node-2', unheard]]) }, now, [policy])
  assert.equal(deeds(actions), ['fence'])
})

test('it is not proven before it is dead by all evidence, and its Node is read live for it', () => {
  const patient: Policy = { ...policy, profile: 'conservative' }
  assert.equal(deeds(done({}, {}, patient)), ['prove'])
  assert.equal(deeds(done(bare, {}, patient)), [], 'a bare word delays it')
  assert.ok(done({ readAt: now - 3_000 }).some((one) => one.do === 'readNode'))
})

test('the proof that it is off counts from when that was made', () => {
  assert.is.not(seenProof(0, 0, 'kdump')[0], seenProof(0)[0])
})

test('each batch follows what was read live a moment ago; a refusal is no word against it, and any other is', () => {
  const of = incident({ phase: 'Running', ...standing }, { policy })
  const at = (changes: Partial<NodeSeen> = {}): NodeSeen => node({ ...crashed, ...clearing(), ...changes })
  assert.is(borneOut(recall(proof), of, at(), now), true)
  assert.is(borneOut(recall(proof), of, at({ readAt: now - 1_500 }), now), false, 'its Node was read too long ago')
  for (const spoken of [
    { beat: beat({ at: provenAt + 1 }) }, { bootId: 'boot-2' }, { ready: { status: 'True' as const, postedAt: provenAt + 1, since: provenAt + 1, bootId: 'boot-1' } },
    probe({ word: 'answered', acceptedAt: provenAt + 1, spokeAt: provenAt + 1 }),
  ]) {
    assert.ok(doubtOf(recall(proof), of, at(spoken), now) !== undefined, JSON.stringify(spoken))
    const actions = done(clearing(spoken), standing)
    assert.not.ok(actions.some((one) => one.do === 'delete'))
  }
  const answers = done(clearing(probe({ word: 'answered', acceptedAt: now - 500, spokeAt: now - 500 })), standing)
  assert.ok(answers.some((one) => one.do === 'untaint' && one.key === outOfService.key), 'and out-of-service comes off')
})

test('a beat before the proof takes it all back; one after it asks for its answer, and that shows the proof false', () => {
  assert.equal(deeds(done({ beat: beat() })), ['withdraw'])
  const doubted = done(clearing({ beat: beat() }), standing)
  assert.equal([doubted.some((one) => one.do === 'challenge'), deeds(doubted).includes('delete')], [true, false])
  assert.ok(deeds(done(clearing({ beat: beat({ answered: { issuedAt: now - 300, boot } }) }), standing)).includes('void'))
})

test('where nodes give up, and the policy wants that waited for, a crash kernel\'s word waits as well', () => {
  const patient: Policy = { ...policy, giveUp: 'stop', waitForPermit: true }
  assert.ok(holds(done(clearing(), standing, patient)).includes('permit'))
  assert.equal(deeds(done(clearing(), standing, patient)), [])
})

test.run()
