// The step isolation of the node fencing proposal: a machine is cut off from its storage first, its power is left on for as long as the
// policy wants, and what lay on that storage alone is freed meanwhile.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Action } from '../../core/action.ts'
import { decide } from '../../core/decide.ts'
import type { Incident, IncidentStatus, ProofRecord } from '../../core/incident.ts'
import type { Method, NodeSeen, PathAudit, PodSeen, PodVolume, Reading } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { extentOf, foundOff, proveByWord, proveOff, recall } from '../../core/proof.ts'
import { survey } from '../../core/survey.ts'
import { quarantine } from './states.ts'
import { attempt, beat, boot, dead, foundOffNode, incident, method as bmc, newBoot, node, now, pod, podsOf, policy, proofRecord, reading, record, seenOrder, seenProof, three, volume } from './world.ts'

const test = suite('isolation')

const driver = 'csi.example.com'
const fc: Method = { name: 'fc-off', agent: 'fc-switch', device: 'fc-1', digest: 'df', orderWithin: 30_000, statusWithin: 10_000, late: 60_000, backAt: 1_000, isolates: [driver] }
const bare: Method = { ...fc, isolates: [] }
const path = (isolates: Method = fc, ...power: readonly Method[]): NodeSeen['path'] => ({ levels: [[isolates], ...(power.length === 0 ? [[bmc]] : [power])], faults: [] })
const audit = (method: string, digest: string): PathAudit => ({ method, digest, boot, state: 'verified', identity: 'proven', at: 'then', evidence: 'on' })
const audits = record({ paths: [audit('fc-off', 'df'), audit('bmc-off', 'd1')] })
const port = (state: Reading['state'], at: number, changes: Partial<Reading> = {}): Reading => {
  const { machine: _, ...rest } = reading(state, at)
  return { ...rest, method: 'fc-off', digest: 'df', ...changes }
}
const cut = attempt({ id: 'node-2-abc-1.1', method: 'fc-off', agent: 'fc-switch', level: 0, digest: 'df' })

/** Dead by all evidence; both devices answer on. */
const silent: Partial<NodeSeen> = { ...dead, path: path(), record: audits, readings: [port('on', now - 900), reading('on', now - 900)] }
/** Its port was ordered off, and read off twice since. */
const offTwice = [port('on', now - 8_000), port('off', now - 2_300), port('off', now - 900), reading('on', now - 900)]
const wasCut: Partial<NodeSeen> = { ...silent, beat: beat({ at: now - 10_000 }), taints: [quarantine], firstSeen: new Map(seenOrder(now - 6_000, now - 4_000)), readings: offTwice }
const ordered: Partial<IncidentStatus> = { phase: 'Running', step: 'isolation', attempts: [cut] }

const isolated: ProofRecord = proofRecord({ kind: 'isolated', methods: ['fc-off'], digests: ['df'], evidence: [{ source: `CSIDriver ${driver}`, word: 'its volumes are out of reach', at: 'then' }] })
const proven: Partial<IncidentStatus> = { ...ordered, step: 'clear', proof: isolated }
const seenIsolated = new Map([...seenOrder(now - 6_000, now - 4_000), seenProof(now - 800, 0, 'isolated')])
const isCut: Partial<NodeSeen> = { ...wasCut, firstSeen: seenIsolated }

const patient: Policy = { ...policy, powerAfter: 300_000 }
const of = (changes: Partial<NodeSeen>, status: Partial<IncidentStatus> = {}, more: Partial<Incident> = {}, policies: readonly Policy[] = [policy]): readonly Action[] =>
  decide(three(changes, [incident(status, more)]), now, policies).filter((action) => action.node === 'node-2')
const orders = (actions: readonly Action[]): string[] => actions.flatMap((action) => (action.do === 'fence' || action.do === 'restore' ? [`${action.do} ${action.method.name}`] : []))
const proofs = (actions: readonly Action[]) => actions.flatMap((action) => (action.do === 'prove' ? [action.proof.kind] : []))
const holds = (actions: readonly Action[]): string[] => actions.flatMap((action) => (action.do === 'hold' ? [action.because] : []))
const has = (actions: readonly Action[], what: Action['do']): boolean => actions.some((action) => action.do === what)

test('it is cut off first, under quarantine, and its power waits for that', () => {
  const first = of(silent)
  assert.equal([orders(first), has(first, 'taint')], [['fence fc-off'], true])
  assert.equal(orders(of({ ...wasCut, readings: offTwice.slice(0, 2) }, ordered)), [], 'read back once')
})

test('read back twice it is a proof of the volumes of its drivers, and of nothing else', () => {
  const actions = of(wasCut, ordered)
  assert.equal([proofs(actions), orders(actions)], [['isolated'], []])
  const seen = three(wasCut)
  const made = proveOff(incident(ordered), seen.nodes.get('node-2') ?? node(), 0, [...seen.nodes.values()], now)
  assert.equal('proof' in made && [extentOf(made.proof), made.proof.evidence.slice(0, 2).map(({ source, word }) => `${source}: ${word}`)],
    [{ drivers: [driver], outOfReach: [driver] }, [`CSIDriver ${driver}: its volumes are out of reach`, 'order fc-off: off']])
})

const swapped = path({ ...fc, digest: 'other' })
const nearly: readonly (readonly [string, Partial<NodeSeen>, Partial<IncidentStatus>])[] = [
  ['it was read back once', { readings: offTwice.slice(0, 2) }, {}],
  ['both readings are of one moment', { readings: [port('off', now - 1_200), port('off', now - 900)] }, {}],
  ['it was read off before the order had ended', { readings: [port('off', now - 5_000), port('off', now - 900)] }, {}],
  ['it reads on since', { readings: [...offTwice, port('on', now - 300)] }, {}],
  ['it does not answer since', { readings: [...offTwice, port('unknown', now - 300)] }, {}],
  ['nobody has ordered it', {}, { attempts: [{ ...cut, result: 'not-given' }] }],
  ['its order runs still', { busy: new Set(['order node-2 fc-off']) }, { attempts: [{ ...cut, result: 'running' }] }],
  ['it was switched on since', {}, { attempts: [cut, attempt({ id: 'node-2-abc-1.2', method: 'fc-off', digest: 'df', action: 'on', result: 'on' })] }],
  ['it was ordered by another configuration', { path: swapped }, {}],
  ['it said off while this boot was beating', { record: record({ paths: [{ ...audit('fc-off', 'df'), state: 'mismatch' }, audit('bmc-off', 'd1')] }) }, {}],
  ['a proof made by it was shown false before', { record: record({ paths: [{ ...audit('fc-off', 'df'), state: 'marked' }, audit('bmc-off', 'd1')] }) }, {}],
  ['no driver is named', { path: path(bare) }, {}],
]
for (const [why, changes, status] of nearly) test(`no such proof if ${why}`, () => assert.equal(proofs(of({ ...wasCut, ...changes }, { ...ordered, ...status })), []))

test('where a method leads to nobody knows whom, every neighbour on its switch must answer first', () => {
  const unproven: Partial<NodeSeen> = { ...wasCut, record: record({ paths: [{ ...audit('fc-off', 'df'), identity: 'unproven' }, audit('bmc-off', 'd1')] }) }
  const beside = (answeredAt: number): readonly NodeSeen[] => [node({ ...unproven }), node({ name: 'node-3', path: path(), beat: beat({ answered: { issuedAt: answeredAt, boot } }) })]
  const prove = (answeredAt: number) => proveOff(incident(ordered), beside(answeredAt)[0] ?? node(), 0, beside(answeredAt), now)
  assert.equal(['astray' in prove(now - 50_000), 'proof' in prove(now - 1_000)], [true, true])
})

const bound = (name: string, changes: Partial<PodVolume> = {}): PodVolume => ({ claim: `default/${name}`, is: 'bound', volume: name, driver, provisioner: '', shared: false, local: false, ...changes })
const selection: readonly (readonly [string, PodSeen, boolean])[] = [
  ['all of whose volumes are out of reach', pod('p', { volumes: [bound('pv-1'), bound('pv-2')] }), true],
  ['on a ReadWriteMany volume that is out of reach', pod('p', { volumes: [bound('pv-1', { shared: true })] }), true],
  ['with another volume beside', pod('p', { volumes: [bound('pv-1'), bound('pv-2', { driver: 'other.example.com' })] }), false],
  ['without a volume, which may run on', pod('p'), false],
  ['with a network volume of its own beside', pod('p', { volumes: [bound('pv-1')], beside: 'nfs' }), false],
  ['whose volume could not be read', pod('p', { volumes: [bound('', { is: 'unread', driver: '' })] }), false],
]
for (const [which, one, chosen] of selection) test(`of a node that is isolated a pod ${which} is ${chosen ? 'freed' : 'left'}`, () => {
  const actions = of({ ...isCut, path: path(fc, { ...bmc, digest: 'd9' }), pods: podsOf([one]) }, proven, { policy: patient })
  assert.is(has(actions, 'delete'), chosen)
})

test('volumes are struck one by one, and out-of-service never stands', () => {
  const actions = of({ ...isCut, taints: [], pods: podsOf([]), volumes: [volume('pv-1')] }, proven, { policy: patient })
  assert.equal([has(actions, 'taint'), actions.some((action) => action.do === 'taint' && action.outOfService)], [true, false])
  const later = of({ ...isCut, pods: podsOf([]), volumes: [volume('pv-1'), volume('pv-2', { driver: 'other.example.com' })], inUse: new Set(['csi-pv-1', 'csi-pv-2']) },
    { ...proven, volumes: ['pv-1', 'pv-2'].map((name) => ({ attachment: `csi-${name}`, volume: name, driver: name === 'pv-1' ? driver : 'other.example.com', fate: 'attached' })) }, { policy: patient })
  assert.equal(later.flatMap((action) => (action.do === 'detach' ? action.volumes.map((one) => one.volume) : [])), ['pv-1'])
})

test('what it does not cover is freed by its power: that is ordered off while the rest is being freed', () => {
  const actions = of({ ...isCut, pods: podsOf([pod('p', { volumes: [bound('pv-1')] }), pod('q')]) }, proven)
  assert.equal([orders(actions), actions.flatMap((action) => (action.do === 'delete' ? action.pods.map(({ name }) => name) : []))], [['fence bmc-off'], ['p']])
})

const off = attempt({ id: 'node-2-abc-1.2', level: 1, digest: 'd1' })
const bothOff = [...offTwice.slice(0, 3), reading('off', now - 1_900), reading('off', now - 600)]
const bothSeen = new Map([...seenIsolated, ...seenOrder(now - 3_500, now - 2_500, 'node-2-abc-1.2')])

test('a proof of the machine takes its place, and counts from when it was made', () => {
  assert.equal(proofs(of({ ...isCut, readings: bothOff, firstSeen: bothSeen }, { ...proven, attempts: [cut, off] })), ['off'])
  // A word of the isolated machine from before its power went says nothing of what came after.
  const answered = beat({ at: now - 5_000, answered: { issuedAt: now - 5_500, boot } })
  const since = new Map([...bothSeen, seenProof(now - 200), seenProof(now - 9_000, 0, 'isolated')])
  const after = of({ ...isCut, beat: answered, readings: bothOff, firstSeen: since }, { ...proven, attempts: [cut, off], proof: proofRecord({ level: 1 }) })
  assert.not.ok(has(after, 'void'))
})

test('powerAfter: its power is left on meanwhile, and a device that calls it off ends that', () => {
  const waits = of(isCut, proven, { policy: patient })
  assert.equal([orders(waits), holds(waits).includes('power-after')], [[], true])
  const bareWaits = of({ ...wasCut, path: path(bare) }, ordered, { policy: patient })
  assert.equal([orders(bareWaits), holds(bareWaits)], [[], ['power-after']], 'also where it frees nothing')
  const over = new Map([...seenOrder(now - 400_000, now - 300_000), seenProof(now - 298_000, 0, 'isolated')])
  assert.equal(orders(of({ ...isCut, firstSeen: over }, proven, { policy: patient })), ['fence bmc-off'])
  assert.equal(orders(of({ ...isCut, readings: [...offTwice, reading('off', now - 400)] }, proven, { policy: patient })), ['fence bmc-off'])
})

const mutePort = [...offTwice.slice(0, 3), ...[3_300, 2_100, 900].map((ago) => port('unknown', now - ago)), reading('on', now - 900)]
const longCut = new Map([...seenOrder(now - 60_000, now - 58_000), seenProof(now - 50_000, 0, 'isolated')])

test('powerAfter: a switch that answers nothing has let nobody in, and the power is left on all the same', () => {
  const waits = of({ ...isCut, readings: mutePort }, proven, { policy: patient })
  assert.equal([orders(waits), holds(waits).includes('power-after')], [[], true])
  const bareWaits = of({ ...wasCut, path: path(bare), readings: mutePort }, ordered, { policy: patient })
  assert.equal([orders(bareWaits), holds(bareWaits)], [[], ['power-after']], 'also where it frees nothing')
})

test('powerAfter: one that said on before it fell silent leaves nothing cut off, and neither does a proof that has lapsed', () => {
  const on = [port('off', now - 9_000), port('on', now - 4_500), ...mutePort.slice(3)]
  assert.equal(orders(of({ ...isCut, firstSeen: longCut, readings: on }, proven, { policy: patient })), ['fence bmc-off'])
  const lapsed: Partial<IncidentStatus> = { ...ordered, step: 'isolation', voided: [{ proof: isolated, how: 'lapsed', at: 'then', evidence: 'it does not answer' }] }
  assert.equal(orders(of({ ...isCut, readings: mutePort }, lapsed, { policy: patient })), ['fence bmc-off'])
})

/** Its power failed to be cut, its round is over, and so is the rest after it. */
const inVain = [cut, attempt({ id: 'node-2-abc-1.2', level: 1, digest: 'd1', result: 'failed' })]
const restOver = policy.restAfter + 30_000
const rested = new Map([...seenOrder(now - restOver - 9_000, now - restOver - 8_000), ...seenOrder(now - restOver - 5_000, now - restOver, 'node-2-abc-1.2'), seenProof(now - restOver - 6_000, 0, 'isolated')])
const nextRound: Partial<NodeSeen> = { ...isCut, beat: beat({ at: now - restOver - 12_000 }), firstSeen: rested }
const onceEach: Partial<Incident> = { policy: { ...policy, retries: 1 } }

test('a new round does not order again what is cut off still, and begins with the power', () => {
  assert.equal(orders(of(nextRound, { ...proven, attempts: inVain }, onceEach)), ['fence bmc-off'])
  const mute: Partial<NodeSeen> = { ...nextRound, readings: [...offTwice.slice(0, 3), reading('unknown', now - 900)] }
  const waits = of(mute, { ...proven, attempts: inVain }, onceEach)
  assert.equal([orders(waits), holds(waits).includes('path-unverified')], [[], true], 'its power does not answer')
  const free = { ...ordered, attempts: inVain }
  assert.equal(orders(of({ ...nextRound, path: path(bare) }, free, onceEach)), ['fence bmc-off'], 'also where it frees nothing')
})

test('a new round orders again what reads on since, and what came to no proof', () => {
  const on: Partial<NodeSeen> = { ...nextRound, readings: [port('off', now - 2_300), port('on', now - 900), reading('on', now - 900)] }
  assert.equal(orders(of(on, { ...proven, attempts: inVain }, onceEach)), ['fence fc-off'])
  const once: Partial<NodeSeen> = { ...nextRound, readings: [port('off', now - 900), reading('on', now - 900)] }
  assert.equal(orders(of(once, { ...ordered, attempts: inVain }, onceEach)), ['fence fc-off'])
})

test('while its power is left on it holds no slot, and the node beside it can be fenced', () => {
  const waiting = survey(three(isCut, [incident(proven, { policy: patient })]), now, [patient])
  assert.equal([...waiting.fencing], [])
})

test('one that cannot be isolated loses its power at once', () => {
  const failed = [attempt({ ...cut, result: 'failed' }), attempt({ ...cut, id: 'node-2-abc-1.3', result: 'failed' })]
  const seen = new Map([...seenOrder(now - 9_000, now - 8_000), ...seenOrder(now - 7_000, now - 6_000, 'node-2-abc-1.3')])
  assert.equal(orders(of({ ...silent, beat: beat({ at: now - 10_000 }), firstSeen: seen }, { ...ordered, attempts: failed }, { policy: patient })), ['fence bmc-off'])
  assert.equal(orders(of({ ...silent, readings: [port('unknown', now - 900), reading('on', now - 900)] }, {}, { policy: patient })), ['fence bmc-off'])
})

test('heard again before there is a proof it is withdrawn, whatever it was cut off from', () => {
  const back = of({ ...wasCut, path: path(bare), beat: beat() }, ordered, { policy: patient })
  assert.equal([has(back, 'withdraw'), orders(back)], [true, []])
  assert.equal(orders(of({ ...wasCut, path: path(bare), beat: beat() }, { ...ordered, phase: 'Done', step: 'recovery' })), ['restore fc-off'])
})

test('an abort after it is refused, and its power is not ordered any more', () => {
  const actions = of(isCut, proven, { abort: true })
  assert.equal([orders(actions), holds(actions).includes('abort-refused')], [[], true])
})

test('fenced by hand its power is not waited for, and a beat does not bring it back', () => {
  const byHand = of({ ...isCut, beat: beat(), pods: podsOf([pod('p', { volumes: [bound('pv-1')] })]) }, proven, { policy: patient, cause: 'by-hand' })
  assert.equal([orders(byHand), has(byHand, 'delete')], [['fence bmc-off'], false])
  assert.equal(orders(of({ ...isCut, beat: clean(now - 300), pods: podsOf([]) }, proven, { policy: patient, cause: 'by-hand', abort: true })), ['restore fc-off'])
})

test('a port that is off is no machine that is off, and one that is on is no word for the machine', () => {
  const both = (state: Reading['state']): NodeSeen => node({ ...foundOffNode, path: path(), record: audits, readings: [port(state, now - 3_000), port(state, now - 1_800), ...foundOffNode.readings ?? []] })
  assert.equal([0, 1].map((level) => 'proof' in foundOff(boot, both('off'), level, now)), [false, true])
  assert.ok('proof' in foundOff(boot, both('on'), 1, now))
  const word = { boot, by: 'an operator', reason: 'pulled the plug', until: 'then' }
  const lost: Partial<NodeSeen> = {
    ready: { status: 'Unknown', postedAt: now - 95_000, since: now - 40_000, bootId: 'boot-1' }, readAt: now - 500, lease: { askedAt: now - 500, readAt: now - 450, renewTime: 'x', unmovedSince: now - 60_000, moved: false },
    firstSeen: new Map([['acknowledged node-2-abc-1 then', now - 20_000], ['expires node-2-abc-1 then', now + 60_000]]),
  }
  const vouched = proveByWord(incident({}, { acknowledge: word }), node({ ...silent, ...lost, beat: beat({ at: now - 60_000 }), readings: [port('on', now - 900), reading('unknown', now - 900)] }), now)
  assert.ok('proof' in vouched, 'lacks' in vouched ? vouched.lacks : '')
})

test('a port that says on again stops what is being freed, and a machine that beats does not', () => {
  const pods = podsOf([pod('p', { volumes: [bound('pv-1')] })])
  const open = of({ ...isCut, pods, readings: [...offTwice, port('on', now - 300)] }, proven, { policy: patient })
  assert.equal([has(open, 'delete'), holds(open).includes('proof-doubted')], [false, true])
  const heard = of({ ...isCut, beat: beat() }, proven)
  assert.equal([has(heard, 'void'), has(heard, 'challenge'), has(heard, 'withdraw'), orders(heard)], [false, false, false, []])
})

const clean = (at: number): NonNullable<NodeSeen['beat']> => beat({ clean: { at, report: { state: 'clean' } } })
const dirty = beat({ clean: { at: now - 300, report: { state: 'dirty', leftovers: [{ kind: 'mount', path: '/var/lib/kubelet/x' }] } } })

test('what it was cut off from is given back once its agent finds nothing left of what was freed, and not before', () => {
  for (const one of [dirty, clean(now - 3_000)]) {
    const kept = of({ ...isCut, beat: one, pods: podsOf([]) }, proven)
    assert.equal([orders(kept), holds(kept)], [[], ['still-cut']])
  }
  assert.ok(of({ ...isCut, beat: clean(now - 6_000), firstSeen: new Map([...seenIsolated, seenProof(now - 3_000, 0, 'isolated')]), pods: podsOf([]) }, proven).some((action) => action.do === 'askClean' && action.stop === true), 'its agent ends what runs of pods that are gone')
  assert.equal(orders(of({ ...isCut, beat: clean(now - 300), pods: podsOf([]) }, proven)), ['restore fc-off'])
})

test('nor when its Node is made anew: the machine that was cut off goes on', () => {
  const anew = of({ ...isCut, uid: 'another' }, { ...proven, phase: 'Done', step: 'recovery' })
  assert.equal([orders(anew), holds(anew)], [[], ['still-cut']])
})

test('another machine that bears the name is not given what this one was cut off from, and the end of the incident says so', () => {
  const [end] = of({ ...isCut, taints: [], machine: 'machine-9' }, proven).filter((action) => action.do === 'close')
  assert.match(end?.do === 'close' ? `${end.outcome}: ${end.because}` : '', /^Replaced: another machine bears the name; fc-off was ordered off and stays so/)
})

// Heard, and not clean: by its policy it waits, or its power goes.

const fencing: Policy = { ...patient, returnPatience: 20_000, afterPatience: 'fence' }
const cutLongAgo = new Map([...seenOrder(now - 100_000, now - 90_000), seenProof(now - 88_000, 0, 'isolated')])
const untidy = (ago: number, changes: Partial<NonNullable<NodeSeen['beat']>> = {}): Partial<NodeSeen> => ({
  ...isCut, firstSeen: cutLongAgo, pods: podsOf([]),
  beat: beat({ lapse: { from: now - 120_000, to: now - 60_000 }, clean: { at: now - 500, uncleanSince: now - ago, report: { state: 'dirty', leftovers: [{ kind: 'mount', path: '/var/lib/kubelet/x' }] } }, ...changes }),
})
const wanted = (changes: Partial<NodeSeen>, one: Policy = fencing, more: Partial<Incident> = {}, status: Partial<IncidentStatus> = {}) => orders(of(changes, { ...proven, ...status }, more, [one]))

test('past its patience its power is ordered off though it is heard and powerAfter is not over, and its agent is asked on', () => {
  assert.equal(wanted(untidy(20_000)), ['fence bmc-off'])
  const actions = of(untidy(20_000, { clean: { at: now - 6_000, uncleanSince: now - 20_000, report: { state: 'unknown', reason: 'it hangs' } } }), proven, {}, [fencing])
  assert.equal([actions.flatMap((action) => (action.do === 'fence' ? [action.alive] : [])), has(actions, 'askClean'), has(actions, 'restore')], [[true], true, false])
})

const heldBack: readonly (readonly [string, Partial<NodeSeen>, Policy?, Partial<Incident>?])[] = [
  ['within its patience', untidy(19_999)],
  ['which is counted from its last silence', untidy(80_000, { lapse: { from: now - 40_000, to: now - 19_000 } })],
  ['or from the cut', { ...untidy(80_000), firstSeen: new Map([...seenOrder(now - 30_000, now - 19_500), seenProof(now - 19_000, 0, 'isolated')]) }],
  ['by a word that is old', untidy(80_000, { clean: { at: now - 31_000, uncleanSince: now - 80_000, report: { state: 'unknown', reason: 'it hangs' } } })],
  ['where its policy waits', untidy(80_000), { ...fencing, afterPatience: 'wait' }],
  ['where nothing switches its power', { ...untidy(80_000), path: { levels: [[fc]], faults: [] } }],
  ['once a person has aborted it', untidy(80_000), fencing, { abort: true }],
]
for (const [when, changes, one, more] of heldBack) test(`its power stays on, and it stays cut off: ${when}`, () => {
  const actions = of(changes, proven, more, [one ?? fencing])
  assert.equal([orders(actions), actions.flatMap((action) => (action.do === 'hold' && action.because === 'still-cut' ? [action.lifts] : []))], [[], ['a clean report of its agent, or its next boot']])
})

test('nor is it ordered off under keep-off', () => {
  assert.equal(wanted({ ...untidy(80_000), annotations: { 'holdfast.dev/keep-off': 'hands' } }), [])
})

test('clean, it is given back, however long it took', () => {
  assert.equal(wanted({ ...untidy(80_000), beat: beat({ lapse: { from: now - 120_000, to: now - 60_000 }, clean: { at: now - 300, report: { state: 'clean' } } }) }), ['restore fc-off'])
})

test('one feed of two that is off begins no new patience: the other follows', () => {
  const [feedA, feedB] = (['feed-a', 'feed-b'] as const).map((name) => ({ ...bmc, name, device: name }))
  assert.ok(feedA && feedB)
  const twoFeeds: Partial<NodeSeen> = {
    ...untidy(20_000), path: path(fc, feedA, feedB), record: record({ paths: [audit('fc-off', 'df'), audit('feed-a', 'd1'), audit('feed-b', 'd1')] }),
    firstSeen: new Map([...cutLongAgo, ...seenOrder(now - 6_000, now - 4_000, 'node-2-abc-1.2')]),
    readings: [...offTwice.slice(0, 3), reading('off', now - 900, now - 800, { method: 'feed-a' }), reading('on', now - 900, now - 800, { method: 'feed-b' })],
  }
  const first = attempt({ id: 'node-2-abc-1.2', method: 'feed-a', level: 1, digest: 'd1' })
  assert.equal(wanted(twoFeeds, fencing, {}, { attempts: [cut, first], level: 1 }), ['fence feed-b'])
})

test('a new boot needs what it was cut off from, and gets it', () => {
  const booted = of({ ...isCut, beat: beat({ boot: newBoot, since: now - 2_000 }), bootId: 'boot-2', ready: { status: 'True', postedAt: now - 1_000, since: now - 1_000, bootId: 'boot-2' } }, proven)
  assert.equal(orders(booted), ['restore fc-off'])
})

test('a boot that runs waits for a port that was ordered off until that says how it stands: it reaches no storage meanwhile', () => {
  const unanswered = [port('unknown', now - 3_800), port('unknown', now - 2_900), reading('on', now - 900)]
  const lapsed: Partial<IncidentStatus> = { ...ordered, step: 'isolation', voided: [{ proof: isolated, how: 'lapsed', at: 'then', evidence: 'it does not answer' }] }
  for (const one of [
    of({ ...isCut, readings: unanswered, beat: beat({ boot: newBoot, since: now - 2_000 }), bootId: 'boot-2', ready: { status: 'True', postedAt: now - 1_000, since: now - 1_000, bootId: 'boot-2' } }, proven),
    of({ ...isCut, readings: unanswered, beat: clean(now - 300), ready: { status: 'True', postedAt: now - 1_000, since: now - 1_000, bootId: '' }, pods: podsOf([]) }, lapsed),
  ]) assert.equal([holds(one), one.some((action) => action.do === 'askDevice' && action.method.name === 'fc-off')], [['still-cut'], true])
})

test('and given back to a boot that falls silent it starts nothing that would have to be waited for', () => {
  const on = attempt({ id: 'node-2-abc-1.2', method: 'fc-off', agent: 'fc-switch', digest: 'df', action: 'on', result: 'on' })
  const given = new Map([...seenIsolated, ...seenOrder(now - 2_500, now - 2_000, 'node-2-abc-1.2')])
  const silentAgain = of({
    ...isCut, firstSeen: given, readings: [...offTwice.slice(0, 1), port('on', now - 900), reading('on', now - 900)], beat: beat({ boot: newBoot, since: now - 9_000, at: now - 4_000 }),
    record: record({ ...audits, boot: newBoot, probe: { boot: newBoot, answered: true, at: '' } }),
  }, { ...proven, attempts: [cut, on] })
  assert.equal(silentAgain.flatMap((action) => (action.do === 'close' ? [action.outcome] : [])), ['Recovered'])
})

test('and gets it though its controller, whose order failed, tells nothing of it any more', () => {
  const failed = attempt({ id: 'node-2-abc-1.2', level: 1, digest: 'd1', result: 'failed' })
  const long = new Map([...seenOrder(now - 309_000, now - 308_000), ...seenOrder(now - 305_000, now - 300_000, 'node-2-abc-1.2'), seenProof(now - 306_000, 0, 'isolated')])
  const booted = (readings: readonly Reading[]) => of({ ...isCut, firstSeen: long, readings, beat: beat({ boot: newBoot, since: now - 2_000 }), bootId: 'boot-2', ready: { status: 'True', postedAt: now - 1_000, since: now - 1_000, bootId: 'boot-2' } },
    { ...proven, attempts: [cut, failed] })
  const waits = booted(offTwice.slice(0, 3))
  assert.equal([orders(waits), holds(waits)], [[], ['order-may-land']], 'nobody has asked it yet')
  const mute = booted([...offTwice.slice(0, 3), reading('unknown', now - 900)])
  assert.equal([orders(mute), holds(mute)], [['restore fc-off'], ['still-cut', 'order-may-land']])
})

test('off and cleared it is switched on, and what it was cut off from follows', () => {
  const seen = new Map([...bothSeen, seenProof(now - 2_000)])
  const status: Partial<IncidentStatus> = { ...proven, step: 'recovery', proof: proofRecord({ level: 1 }) }
  assert.equal(orders(of({ ...isCut, readings: bothOff, firstSeen: seen }, { ...status, attempts: [cut, off] })), ['restore bmc-off'])
  const on = attempt({ id: 'node-2-abc-1.3', level: 1, digest: 'd1', action: 'on', result: 'on' })
  const since = new Map([...seen, ...seenOrder(now - 1_000, now - 500, 'node-2-abc-1.3')])
  assert.equal(orders(of({ ...isCut, readings: [...offTwice.slice(0, 3), reading('on', now - 300)], firstSeen: since }, { ...status, attempts: [cut, off, on] })), ['restore fc-off'])
})

test('vouched for by a person, its power is left to that person, and what it was cut off from is given back', () => {
  const vouched = proofRecord({ kind: 'vouched', level: -1, methods: [] })
  assert.equal(orders(of({ ...isCut, firstSeen: new Map([...seenIsolated, seenProof(now - 500)]) }, { ...proven, step: 'recovery', proof: vouched })), ['restore fc-off'])
})

test('with nothing that switches its power it stays cut off, says so, and no new round begins', () => {
  const alone = of({ ...isCut, path: { levels: [[fc]], faults: [] }, firstSeen: new Map([...seenOrder(now - 400_000, now - 390_000), seenProof(now - 380_000, 0, 'isolated')]), pods: podsOf([]) }, proven)
  assert.equal([orders(alone), holds(alone).toSorted()], [[], ['partial', 'still-cut']])
})

const failures = [1, 2].map((nth) => attempt({ id: `node-2-abc-1.${nth}`, result: 'failed', digest: 'd1', round: 3 }))
const tired: Partial<NodeSeen> = { ...dead, beat: beat({ at: now - 200_000 }), taints: [quarantine], readings: [reading('on', now - 900)], firstSeen: new Map(failures.flatMap(({ id }) => seenOrder(now - 190_000, now - 180_000, id))) }
const thirdRound: Partial<IncidentStatus> = { phase: 'Running', step: 'power-management', attempts: failures, round: 3 }
const bounded: Policy = { ...policy, restarts: 2 }

test('once every restart is used up the incident is in error, and holds', () => {
  const spent = of(tired, thirdRound, { policy: bounded }, [bounded])
  assert.equal([orders(spent), has(spent, 'exhaust'), holds(spent)], [[], true, ['exhausted']])
  const error = of(tired, { ...thirdRound, phase: 'Error' }, { policy: bounded }, [bounded])
  assert.equal([orders(error), has(error, 'exhaust'), holds(error)], [[], false, ['exhausted']])
  assert.equal(orders(of(tired, { ...thirdRound, round: 2, attempts: failures.map((one) => ({ ...one, round: 2 })) }, { policy: bounded }, [bounded])), ['fence bmc-off'], 'one is left')
  assert.equal(orders(of(tired, thirdRound)), ['fence bmc-off'], 'as many as it takes')
})

test('a beat lifts that of what fell silent, and not of what a person wants fenced though it is heard', () => {
  for (const [more, byBeat] of [[{}, true], [{ cause: 'by-hand' } as const, false]] as const) {
    const lifts = of(tired, thirdRound, { policy: bounded, ...more }, [bounded]).flatMap((action) => (action.do === 'hold' ? [action.lifts] : []))
    assert.equal(lifts.map((words) => words.endsWith(', or a beat of the node')), [byBeat])
  }
})

test('a policy that allows more restarts lets it go on, one that allows fewer does not stop it', () => {
  const error: Partial<IncidentStatus> = { ...thirdRound, phase: 'Error' }
  assert.equal(orders(of(tired, error, { policy: bounded }, [{ ...bounded, restarts: 3 }])), ['fence bmc-off'])
  assert.equal(orders(of(tired, thirdRound, { policy: { ...bounded, restarts: 3 } }, [{ ...bounded, restarts: 0 }])), ['fence bmc-off'])
})

test('in error it is proven all the same, withdrawn when the node is heard, and ended by an abort', () => {
  const error: Partial<IncidentStatus> = { ...thirdRound, phase: 'Error' }
  const ended = { ...tired, readings: [reading('off', now - 2_300), reading('off', now - 900)] }
  assert.equal(proofs(of(ended, { ...error, attempts: [...failures.slice(0, 1), { ...failures[1] ?? off, result: 'off' }] }, { policy: bounded }, [bounded])), ['off'])
  assert.ok(has(of({ ...tired, beat: beat() }, error, { policy: bounded }, [bounded]), 'withdraw'))
  assert.ok(has(of(tired, error, { policy: bounded, abort: true }, [bounded]), 'withdraw'))
})

test('the proof on record says how far it goes, for the next leader', () => {
  assert.equal(extentOf(recall(isolated)), { drivers: [driver], outOfReach: [driver] })
})

test.run()
