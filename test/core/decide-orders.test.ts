// When an order to a device is given, and when not: over a word of life, beside another order, on old readings, under a pause.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Action } from '../../core/action.ts'
import { decide } from '../../core/decide.ts'
import type { Incident } from '../../core/incident.ts'
import type { NodeSeen, Self } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { proveOff } from '../../core/proof.ts'
import { booted, clearing, on, ordered, proven } from './states.ts'
import { attempt, beat, dead, foundOffNode, incident, method, node, now, orderedOff, podsOf, policy, proofRecord, reading, seen, seenOrder, seenProof, self, three, volume } from './world.ts'

const test = suite('decide: orders')
const quarantine = { key: 'holdfast.dev/quarantine', effect: 'NoSchedule' } as const
const failed = { phase: 'Running', step: 'power-management', attempts: [attempt({ result: 'failed' })] } as const

function of(target: Partial<NodeSeen>, its: Incident, own: Self = self(), policies: readonly Policy[] = [policy]): readonly Action[] {
  return decide(three(target, [its], own), now, policies).filter((action) => action.node === 'node-2')
}
const fences = (actions: readonly Action[]): readonly string[] => actions.filter(({ do: does }) => does === 'fence').map((action) => action.node)
const because = (actions: readonly Action[]): readonly string[] => actions.flatMap((action) => (action.do === 'hold' ? [action.because] : []))

test('an order that failed is not followed by another once the machine answers, though the round was begun', () => {
  const answers = {
    ...dead, beat: beat({ at: now - 20_000 }), firstSeen: new Map(seenOrder(now - 9_000, now - 4_000)), readings: [reading('on', now - 900, now - 800)], taints: [quarantine],
    probe: { askedAt: now - 600, answeredAt: now - 590, word: 'answered', spokeAt: now - 590 }, ready: { status: 'True', postedAt: now - 500, since: 10_000, bootId: 'boot-1' },
  } as const
  const actions = of(answers, incident(failed))
  assert.equal([fences(actions), because(actions)], [[], ['not-dead']])
  assert.equal(fences(of({ ...dead, firstSeen: answers.firstSeen, readings: answers.readings, taints: [quarantine] }, incident(failed))), ['node-2'], 'silent still, it goes on')
})

test('a device that may take its time to say off is not ordered again meanwhile, and the incident says what it waits for', () => {
  const contradicted = { ...orderedOff, readings: [reading('on', now - 8_000), reading('on', now - 900)], taints: [quarantine] }
  const its = incident({ phase: 'Running', step: 'power-management', attempts: [attempt()] })
  const slow = { ...contradicted, path: { levels: [[{ ...method, verifyWithin: 60_000 }]], faults: [] } }
  assert.equal([fences(of(slow, its)), because(of(slow, its))], [[], ['order-may-land']])
  assert.equal([fences(of(contradicted, its)), because(of(contradicted, its))], [['node-2'], []])
})

test('a new round wants the verdict anew', () => {
  const failures = [attempt({ id: 'a1', result: 'failed' }), attempt({ id: 'a2', result: 'failed' })]
  const firstSeen = new Map([...seenOrder(now - 99_000, now - 98_000, 'a1'), ...seenOrder(now - 97_000, now - 96_000, 'a2')])
  const rested = { firstSeen, readings: [reading('on', now - 900, now - 800)], taints: [quarantine] }
  assert.equal(fences(of({ ...dead, ...rested }, incident({ ...failed, attempts: failures }))), ['node-2'])
  assert.equal(fences(of({ ...dead, witnesses: [], ...rested }, incident({ ...failed, attempts: failures }))), [], 'suspect is not dead')
})

test('a node that this leader never heard, and whose Lease moves, gets no second order', () => {
  const leased = {
    seenAt: -200_000, firstSeen: new Map(seenOrder(now - 90_000, now - 80_000)), readings: [reading('on', now - 900, now - 800)], taints: [quarantine],
    lease: { askedAt: now - 500, readAt: now - 450, renewTime: 'b', unmovedSince: now - 450, moved: true, movedAfter: now - 3_000 },
    ready: { status: 'True', postedAt: now - 500, since: 10_000, bootId: 'boot-1' },
  } as const
  const { beat: _, ...silent } = node(leased)
  assert.equal(fences(of(silent, incident(failed), self({ awakeSince: -200_000 }))), [])
})

const calm: Policy = { ...policy, brakes: { ...policy.brakes, stormPercent: 100 } }
const others = ['node-1', 'node-4', 'node-5', 'node-6'].map((name) => node({ name }))
const itsOwn = (name: string) => ({ ...method, device: `${name}-bmc` })
const victim = (name: string, busy: readonly string[] = []) => node({
  name, ...dead, path: { levels: [[itsOwn(name)]], faults: [] }, readings: [reading('on', now - 900, now - 800, { machine: `machine-${name.slice(-1)}` })], busy: new Set(busy), taints: [quarantine],
})
const fenceOf = (name: string, status: Partial<Incident['status']> = { phase: 'Running' }) => incident(status, { name: `${name}-abc-1`, nodeName: name, nodeUid: `uid-${name}`, machine: `machine-${name.slice(-1)}`, policy: calm })

const both = (busy: readonly string[]) => fences(decide(seen([victim('node-2', busy), victim('node-3'), ...others], [fenceOf('node-2'), fenceOf('node-3')]), now, [calm]))

test('an order that is just being written down holds its slot already', () => {
  assert.equal(both([]), ['node-2'])
  assert.equal(both(['order node-2 bmc-off']), [])
})

test('an incident that can only hold keeps no slot from a node that could be fenced', () => {
  const { proof = proofRecord() } = proven.status
  const stuck = node({ ...proven.node, path: { levels: [[{ ...method, digest: 'd9' }]], faults: [] } })
  const its = incident({ ...proven.status, proof: { ...proof, digests: ['d1'] } })
  assert.equal(fences(decide(seen([stuck, victim('node-3'), ...others], [its, fenceOf('node-3')]), now, [calm])), ['node-3'])
})

const found = { ...clearing.status, attempts: [], proof: proofRecord({ kind: 'found-off' }) }
const waits = { ...clearing.node, firstSeen: new Map([seenProof(now - 70_000)]), pods: podsOf([]), volumes: [volume('pv-1')] }

test('the securing off is not ordered on a reading of a minute ago; while volumes are waited for the devices are asked', () => {
  const old = of({ ...waits, readings: [reading('off', now - 62_000), reading('off', now - 60_000)] }, incident(found))
  assert.equal(fences(old), [])
  assert.ok(old.some(({ do: does }) => does === 'askDevice'))
  assert.equal(fences(of({ ...waits, readings: [reading('off', now - 3_000), reading('off', now - 900, now - 800)] }, incident(found))), ['node-2'])
})

test('a securing off that a brake kept back is ordered once the brake is gone, though the node is cleared', () => {
  const cleared = { ...waits, volumes: [], taints: [quarantine], readings: [reading('off', now - 3_000), reading('off', now - 900, now - 800)] }
  const status = { ...found, step: 'recovery' } as const
  assert.equal(fences(of(cleared, incident(status))), ['node-2'])
  assert.equal(fences(of({ ...cleared, readings: [reading('off', now - 60_000)] }, incident(status))), [])
  assert.equal(fences(of({ ...cleared, beat: beat({ at: now - 90_000, goodbye: { at: now - 90_000, why: 'shutdown' } }) }, incident(status))), [], 'it said that it shuts down')
})

const since = (ago: number) => new Map([...(clearing.node.firstSeen ?? []), seenProof(now - ago)])

test('pods that cannot be listed after the proof are named as what is waited for', () => {
  const { pods: _, ...unlisted } = clearing.node
  assert.equal(because(of({ ...unlisted, firstSeen: since(10_000) }, incident(clearing.status))), [])
  assert.equal(because(of({ ...unlisted, firstSeen: since(31_000) }, incident(clearing.status))), ['blind'])
})

test('a pause of the policy, or its dry run, stops an incident that is under way', () => {
  const { node: target, status } = ordered
  assert.not.ok(because(of(target, incident(status))).includes('pause'))
  assert.equal(because(of(target, incident(status), self(), [{ ...policy, pause: { reason: 'x', by: 'y' } }])), ['pause'])
  assert.equal(because(of(target, incident(status), self(), [{ ...policy, mode: 'dryRun' }])), ['dry-run'])
})

test('no proof while another path of the node says on', () => {
  const low = { ...method, name: 'strip', device: 'strip', digest: 'ds' }
  const levels = [[method], [low]]
  const orders = [attempt({ result: 'failed' }), attempt({ id: 's', level: 1, method: 'strip', digest: 'ds' })]
  const offs = [reading('off', now - 3_000, now - 2_900), reading('off', now - 900, now - 800)].map((one) => ({ ...one, method: 'strip', digest: 'ds' }))
  const firstSeen = new Map([...seenOrder(now - 20_000, now - 15_000), ...seenOrder(now - 9_000, now - 5_000, 's')])
  const known = node().record?.paths ?? []
  const record = { ...node().record, paths: [...known, ...known.map((path) => ({ ...path, method: 'strip', digest: 'ds' }))] } as NodeSeen['record'] // of both levels
  const its = (readings: NodeSeen['readings']) => proveOff(incident({ attempts: orders }), node({ ...orderedOff, path: { levels, faults: [] }, firstSeen, record, readings: [...readings, ...offs] } as Partial<NodeSeen>), 1, [], now)
  assert.ok('proof' in its([]))
  assert.ok('proof' in its([reading('on', now - 6_000)]), 'from before the order')
  assert.ok('proof' in its([reading('off', now - 2_000)]))
  const said = its([reading('on', now - 2_000, now - 1_900)])
  assert.match('lacks' in said ? said.lacks : '', /bmc-off says on/)
})

const strip = { ...method, name: 'strip', device: 'strip', digest: 'ds' }
const ofStrip = { method: 'strip', digest: 'ds' }
/** A controller that tells its machine's UUID unless told otherwise, and the outlet behind it on the next level. */
const levelled = (readings: NodeSeen['readings'], attempts = [attempt()], firstSeen: NodeSeen['firstSeen'] = new Map(seenOrder(now - 9_000, now - 5_000))) => {
  const known = node().record?.paths ?? []
  const record = { ...node().record, paths: [...known, ...known.map((path) => ({ ...path, ...ofStrip }))] } as NonNullable<NodeSeen['record']> // of both levels
  const target = node({ ...orderedOff, path: { levels: [[method], [strip]], faults: [] }, firstSeen, record, readings })
  return [0, 1].map((level) => { const said = proveOff(incident({ attempts }), target, level, [], now); return 'proof' in said ? 'proven' : said.lacks })
}
/** It answers, and tells no UUID. */
const mute = ({ machine: _machine, ...rest }: NodeSeen['readings'][number]): NodeSeen['readings'][number] => rest
const landed = (ended: number) => new Map([...seenOrder(now - 40_000, now - 35_000), ...seenOrder(now - 9_000, ended, 's')])
const controllerOff = [reading('off', now - 3_000, now - 2_900), reading('off', now - 900, now - 800)]
const outletOn = { ...mute(reading('on', now - 2_000, now - 1_900)), ...ofStrip }

test('the outlet behind a controller stays on: that does not outweigh an off of this very machine', () => {
  assert.is(levelled([outletOn, ...controllerOff])[0], 'proven')
  assert.match(levelled([outletOn, ...controllerOff.map(mute)])[0] ?? '', /strip says on/)
  assert.match(levelled([{ ...outletOn, machine: 'machine-2' }, ...controllerOff])[0] ?? '', /strip says on/)
})

test('what a controller said before its outlet was ordered off proves nothing: it may hang on that outlet', () => {
  const orders = [attempt(), attempt({ id: 's', level: 1, ...ofStrip })]
  assert.is(levelled(controllerOff, orders, landed(now - 5_000))[0], 'proven')
  assert.match(levelled(controllerOff, orders, landed(now - 2_000))[0] ?? '', /bmc-off was not yet read off twice since the order/)
  const running = [attempt(), attempt({ id: 's', level: 1, ...ofStrip, result: 'running' })]
  assert.match(levelled(controllerOff, running, landed(now - 5_000))[0] ?? '', /strip is under way/)
})

test('a node that is back keeps its quarantine while an on may still land: the incident stands, and would put it on again at the first pod', () => {
  const late = { ...on, result: 'failed' } as const
  const firstSeen = new Map([...booted.node.firstSeen ?? [], ...seenOrder(now - 40_000, now - 5_000, late.id)])
  const back = (given: Partial<NodeSeen>) => of({ ...booted.node, firstSeen, readings: [reading('on', now - 600, now - 500)], ...given }, incident({ ...booted.status, attempts: [attempt(), late] }))
  assert.equal([because(back({})), back({}).filter(({ do: does }) => does === 'untaint')], [['order-may-land'], []])
  const over = new Map([...firstSeen, ...seenOrder(now - 200_000, now - 150_000, late.id)])
  assert.equal(back({ firstSeen: over }).filter(({ do: does }) => does === 'untaint').length, 1)
})

test('a device by which another machine may have been struck is asked once, not once for each reason to ask it', () => {
  const attempts = [attempt({ id: 'node-2-abc-1.2', action: 'on', result: 'on' }), attempt()]
  const asked = decide(three(foundOffNode, [incident({ attempts })]), now, [policy]).filter((action) => action.do === 'askDevice')
  assert.equal(asked.map(({ node: name }) => name), ['node-2'])
})

test.run()
