// When an incident ends, and as what.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decide } from '../../core/decide.ts'
import type { Attempt, IncidentStatus } from '../../core/incident.ts'
import { goneKey, type NodeSeen } from '../../core/model.ts'
import { attempts, booted, bootedReady, cleared, clearing, freed, lifted, littered, on, opened, ordered, proven, quarantine, recovering, seenLongAgo, switchedOn, withdrawn, type State } from './states.ts'
import { holds, inState, looks, loose, passed, wants, wishes } from './wishes.ts'
import { attempt, beat, dead, incident, method, newBoot, node, now, policy, proofRecord, reading, record, seen, seenOrder, seenProof, silentAt } from './world.ts'

const test = suite('decide: close')

test('the node is back, in a new boot and clean: the quarantine is lifted, then the incident closes', () => {
  assert.equal(wants(inState(booted)), ['untaint quarantine'])
  assert.equal(wants(inState(lifted)), ['close Recovered'])
})

test('where its operator wants it so, the node is cordoned in the very write that lifts its quarantine; a drill cordons nobody', () => {
  const path = { levels: [[method]], faults: [], cordons: true } as const
  const { proof: _, ...unproven } = booted.status
  const drilled = { ...unproven, phase: 'Done', step: 'recovery', drill: { passed: true, detail: '' } } as const
  for (const [changes, cause, status, cordons] of [[{}, 'silence', booted.status, undefined], [{ path }, 'silence', booted.status, true], [{ path }, 'drill', drilled, undefined]] as const) {
    const nodes = [node({ name: 'node-1' }), node({ ...booted.node, ...changes }), node({ name: 'node-3' })]
    const untaints = decide(seen(nodes, [incident(status, { cause })]), now, [policy]).flatMap((action) => (action.do === 'untaint' ? [action.cordons] : []))
    assert.equal(untaints, [cordons], cause)
  }
})

test('a pod that was doomed and never deleted goes before the quarantine does', () => {
  assert.equal(wants(inState(littered)), ['hold waiting-for-clean', 'bury web-0'])
})

test('back, and its agent cannot be asked whether it is clean, since its pods may not be listed: that is said', () => {
  const podsRefused = '403 pods is forbidden'
  const { clean: _, ...unasked } = beat({ boot: newBoot, since: now - 10_000 })
  assert.equal(holds(inState(booted, { beat: unasked, podsRefused })), [['waiting-for-clean', 'node-2 is not asked whether it is clean: the API server refuses to list the pods of node-2: 403 pods is forbidden', 'the right to list pods']])
  assert.equal(wants(inState(booted, { podsRefused })), wants(inState(booted)), 'what it told before is known')
})

const notClosed: [string, Partial<NodeSeen>, Partial<IncidentStatus>, readonly string[]][] = [
  ['it is not clean', { beat: beat({ boot: newBoot, since: now - 10_000, clean: { at: now - 2_000, report: { state: 'dirty', leftovers: [{ kind: 'mount', path: '/x' }] } } }) }, {}, ['hold waiting-for-clean']],
  ['it is not Ready', { ready: { ...bootedReady, status: 'False' } }, {}, ['hold waiting-for-kubelet']],
  ['an off may still land', {}, { attempts: [attempt({ result: 'unknown' }), on] }, ['hold order-may-land']],
]
for (const [how, changes, status, wished] of notClosed) {
  test(`back, but ${how}: the quarantine stays`, () => assert.equal(wants(inState(booted, changes, status)), wished))
  test(`back, but ${how}: nothing is closed`, () => assert.not(wants(inState(lifted, changes, status)).some((one) => one.startsWith('close'))))
}

test('an incident is not closed while an order on runs or may still land: it would land on the next one\'s proof', () => {
  const later = { firstSeen: new Map([...(lifted.node.firstSeen ?? []), ...seenOrder(now - 2_000, undefined, 'late')]), busy: new Set(['order node-2 bmc-off']) }
  const running = attempt({ id: 'late', action: 'on', result: 'running' })
  assert.equal(wants(inState(lifted, later, { attempts: [...attempts, running] })), ['hold order-may-land'])
  const readings = [reading('on', now - 400)]
  assert.equal(wants(inState(lifted, { firstSeen: new Map([...later.firstSeen, ...seenOrder(now - 20_000, now - 15_000, 'late')]), readings }, { attempts: [...attempts, { ...running, result: 'failed' }] })), ['hold order-may-land'])
  const over = { readings, firstSeen: new Map([...(lifted.node.firstSeen ?? []), ...seenOrder(now - 91_000, now - 80_000, 'late')]) }
  assert.equal(wants(inState(lifted, over, { attempts: [...attempts, { ...running, result: 'failed' }] })), ['close Recovered'])
})

test('a quarantine that somebody took off is put on again until the node is clean', () => {
  assert.equal(wants(inState(lifted, { beat: beat({ boot: newBoot, since: now - 10_000 }), ready: { ...bootedReady, status: 'False' } })), ['taint quarantine'])
  assert.equal(wants(inState(recovering, { taints: [] })), ['taint quarantine'])
})

test('a new boot that falls silent is another incident\'s: this one closes once it is dead', () => {
  const silentAgain = { ...dead, beat: beat({ boot: newBoot, since: now - 20_000, at: silentAt }), record: record({ boot: newBoot, probe: { boot: newBoot, answered: true, at: '' } }) }
  const suspect = { ...silentAgain, witnesses: [] }
  assert.equal(wants(inState(switchedOn, suspect)), ['hold waiting-for-boot'])
  assert.ok(looks(inState(switchedOn, suspect)).includes('askWitnesses'), 'it is asked about')
  assert.equal(wants(inState(switchedOn, silentAgain)), ['close Recovered'])
  assert.equal(wants(inState(clearing, silentAgain)), ['untaint out-of-service'])
})

test('a new boot that falls silent, and whose device says off by our order, is switched on: the order may have landed on it', () => {
  const silentAgain = { ...dead, beat: beat({ boot: newBoot, since: now - 20_000, at: silentAt }), record: record({ boot: newBoot, probe: { boot: newBoot, answered: true, at: '' } }) }
  for (const state of [clearing, recovering]) {
    const again = inState(state, { ...silentAgain, taints: [quarantine] })
    assert.equal(wants(again), ['restore bmc-off', 'hold still-cut'])
    assert.ok(looks(again).includes('askWitnesses'), 'it is asked about')
    const readings = [...(state.node.readings ?? []), reading('on', now - 100)]
    assert.equal(wants(inState(state, { ...silentAgain, taints: [quarantine], readings })), ['close Recovered'])
  }
})

test('what was just switched on is given the time to boot, unless it was heard since', () => {
  const firstSeen = new Map([...(switchedOn.node.firstSeen ?? []), ...seenOrder(now - 6_000, now - 5_000, 'node-2-abc-1.2')])
  const silentSince = (at: number) => ({ ...dead, firstSeen, beat: beat({ boot: newBoot, since: at - 1_000, at }), record: record({ boot: newBoot, probe: { boot: newBoot, answered: true, at: '' } }) })
  assert.equal(wants(inState(switchedOn, silentSince(now - 20_000))), ['hold waiting-for-boot'])
  assert.equal(wants(inState(switchedOn, silentSince(now - 4_000))), ['close Recovered'])
})

test('a next boot that beat while it was being switched on was up by then, and its silence is another one', () => {
  const silentAgain = { ...dead, beat: beat({ boot: newBoot, since: silentAt - 1_000, at: silentAt }), record: record({ boot: newBoot, probe: { boot: newBoot, answered: true, at: '' } }) }
  const since = (began: number) => wants(inState(switchedOn, { ...silentAgain, firstSeen: new Map([...(switchedOn.node.firstSeen ?? []), ...seenOrder(began, silentAt + 1_000, 'node-2-abc-1.2')]) }))
  assert.equal(since(silentAt - 5_000), ['close Recovered'])
  assert.equal(since(silentAt + 500), ['hold waiting-for-boot'], 'before that')
})

test('of a Node that is gone nobody has to answer: there is nobody to switch on', () => {
  assert.equal(wants(inState(ordered, { ...passed, firstSeen: new Map([...passed.firstSeen, [goneKey, now - 300_000]]), gone: true, readings: [] }, { attempts: [loose] })), ['close NodeDeleted'])
})

test('an incident of a boot that only kubelet told of is not taken for over by the agent\'s last word of an earlier one', () => {
  const earlier = { beat: beat({ boot: 'boot-0/1', at: now - 20_000 }), ready: { status: 'True', postedAt: now - 15_000, since: 0, bootId: 'boot-1' } } as const
  assert.equal(wants(inState(clearing, earlier, { proof: proofRecord({ boot: 'boot-1' }) }, { boot: 'boot-1' })), ['delete web-0 api-x'])
})

test('another machine under the name: our taints come off, then the incident ends', () => {
  for (const other of [{ machine: 'machine-9' }, { uid: 'uid-other', machine: 'machine-9' }]) {
    assert.equal(wants(inState(clearing, other)), ['untaint out-of-service'])
    assert.equal(wants(inState(proven, other)), ['untaint quarantine'])
    assert.equal(wants(inState(proven, { ...other, taints: [] })), ['close Replaced'])
  }
})

const exchangedSays = (changes: Partial<NodeSeen>) => wishes(inState(proven, { machine: 'machine-9', taints: [], ...changes }), [policy], now).flatMap((wish) => (wish.do === 'close' ? wish.because : []))
test('another machine under the name: what was ordered off, and does not say on again, is left to a person by its name', () => {
  assert.equal(exchangedSays({}), ['another machine bears the name; bmc-off was ordered off and stays so, until a person knows what is behind it'])
  assert.equal(exchangedSays({ readings: [reading('on', now - 400, now - 300, { machine: 'machine-9' })] }), ['another machine bears the name'])
})

for (const [what, anew] of [['by the same machine\'s kubelet', { uid: 'uid-other' }], ['by a person, and no kubelet has posted yet', { uid: 'uid-other', machine: '', bootId: '' }]] as const) {
  test(`a Node made anew ${what}: nothing more is freed or ordered off, and what was cut is given back`, () => {
    for (const state of [opened, ordered, proven, clearing, freed, recovering, switchedOn]) {
      assert.equal(wants(inState(state, anew)), ['withdraw'])
    }
    const done = (state: State, more: Partial<NodeSeen> = {}) => wants(inState({ ...state, status: { ...state.status, phase: 'Done', step: 'recovery' } }, { ...anew, readings: [], ...more }))
    assert.equal(done(clearing), ['untaint out-of-service'], 'copied from the Node before')
    assert.ok(done(proven, { taints: [] }).includes('restore bmc-off'))
    assert.ok(done(ordered).includes('restore bmc-off'))
    assert.not(done(freed, { taints: [] }).some((wish) => wish.startsWith('delete') || wish.startsWith('fence')))
    const back = { ...booted.node, ...anew, machine: 'machine-2', bootId: 'boot-2' }
    assert.equal(done({ node: back, status: switchedOn.status }, { taints: [quarantine] }), ['untaint quarantine'])
    assert.equal(done({ node: back, status: switchedOn.status }, { taints: [] }), ['close Recovered'])
  })
}

test('a Node made anew of a machine that a person vouched off: it ends, and is left to the hands in it', () => {
  const vouchedOff = { ...proven.status, proof: proofRecord({ kind: 'vouched', level: -1, methods: [] }) }
  assert.equal(wants(inState(proven, { uid: 'uid-other', taints: [] }, vouchedOff)), ['close Replaced'])
})

const goneFor = (ago: number, state: State) => wants(inState(state, { gone: true, firstSeen: new Map([...seenLongAgo, [goneKey, now - ago]]) }))
test('a Node object that is gone may be made anew: what we cut is remembered for half a minute', () => {
  assert.equal(goneFor(29_999, cleared), ['hold still-cut'])
  assert.equal(goneFor(30_000, cleared), ['close NodeDeleted'])
  assert.equal(goneFor(1_000, switchedOn), ['close NodeDeleted'], 'nothing is cut')
})

/** The machine may be there all the same, and its next Node is about another boot, which the order would hit. */
const endings: readonly (readonly [string, Partial<NodeSeen>, string, State])[] = [
  ['a Node object that is gone', { gone: true, firstSeen: new Map([seenProof(now - 55_000), [goneKey, now - 60_000]]) }, 'close NodeDeleted', cleared],
  ['another machine under the name', { machine: 'machine-9', taints: [], readings: [reading('on', now - 500)] }, 'close Replaced', proven],
]
for (const [what, changes, close, state] of endings) {
  const at = (began: number, ended?: number): Partial<NodeSeen> => ({ ...changes, firstSeen: new Map([...changes.firstSeen ?? [], ...seenOrder(began, ended)]) })
  test(`${what} ends nothing while an order runs, may still land, or is being written down`, () => {
    const order = { busy: new Set(['order node-2 bmc-off']) }
    for (const action of ['off', 'on'] as const) {
      const one = (result: Attempt['result']) => ({ attempts: [attempt({ action, result })] })
      assert.equal(wants(inState(state, { ...at(now - 1_000), ...order }, one('running'))), ['hold order-may-land'])
      assert.equal(wants(inState(state, { ...changes, ...order }, { attempts: [] })), ['hold order-may-land'])
      assert.equal(wants(inState(state, at(now - 1_000), one('running'))), ['settle'])
      for (const result of ['failed', 'unknown'] as const) {
        assert.equal(wants(inState(state, at(now - 89_000, now - 80_000), one(result))), ['hold order-may-land'])
        assert.equal(wants(inState(state, at(now - 91_000, now - 80_000), one(result))), [close])
      }
      assert.equal(wants(inState(state, at(now - 1_000, now - 500), one(action))), [close])
      assert.equal(wants(inState(state, at(now - 1_000, now - 500), one('not-given'))), [close])
    }
  })
}

test('an incident of whose node nothing is known yet is not closed', () => {
  assert.equal(wants(seen([node({ name: 'node-1' })], [incident(clearing.status)])), ['hold blind'])
})

test('an incident is not closed while an order on is being written down', () => {
  assert.equal(wants(inState(lifted, { busy: new Set(['order node-2 bmc-off']) })), ['hold order-may-land'])
  assert.equal(wants(inState(withdrawn, { busy: new Set(['order node-2 bmc-off']) })), ['hold order-may-land'])
})

test.run()
