import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { HoldAction } from '../../core/action.ts'
import type { IncidentStatus } from '../../core/incident.ts'
import { foundOff } from '../../core/proof.ts'
import * as timeline from '../../core/timeline.ts'
import { attempt, boot, foundOffNode, node, now, pod, proofRecord, record, volume } from './world.ts'

const test = suite('timeline')

const at = '2026-01-01T00:01:00.000Z'
const later = '2026-01-01T00:02:00.000Z'
const fresh = timeline.freshStatus(3)
const apply = (status: IncidentStatus, ...changes: timeline.Change[]): IncidentStatus => changes.reduce((before, change) => change(before), status)
const told = (status: IncidentStatus): string[] => status.timeline.map((moment) => moment.what)
const hold = (because: HoldAction['because'], detail = 'x'): HoldAction => ({ do: 'hold', node: 'node-2', incident: 'i', because, detail, lifts: 'y' })
const running = attempt({ result: 'running' })

test('an opened incident bears the leader\'s term and what it was opened for', () => {
  const status = apply(fresh, timeline.opened(5, 'replica-0', 'silence', [{ source: 'probe', word: 'silent', at }], at))
  assert.is(status.term, 5)
  assert.match(status.timeline[0]?.detail ?? '', /silence, by replica-0: probe silent/)
})

test('a new leader writes its term', () => {
  assert.is(apply(fresh, timeline.adopted(9, 'replica-1', at)).term, 9)
})

test('an order is written before it is given, and takes the incident to work', () => {
  const status = apply(fresh, timeline.ordered(running))
  assert.equal([status.phase, status.step, status.level, status.round, status.attempts.length], ['Running', 'power-management', 0, 1, 1])
})

test('the securing off after found-off leaves the incident where it was', () => {
  const status = apply({ ...fresh, step: 'clear', proof: proofRecord({ kind: 'found-off' }) }, timeline.ordered(running))
  assert.is(status.step, 'clear')
})

test('an order on is recovery', () => {
  assert.is(apply({ ...fresh, step: 'clear', proof: proofRecord() }, timeline.ordered(attempt({ action: 'on', result: 'running' }))).step, 'recovery')
})

test('an order ends once: what came first stays', () => {
  const status = apply({ ...fresh, attempts: [running] }, timeline.settled(running.id, at), timeline.ended(running.id, 'off', '', later))
  assert.equal([status.attempts[0]?.result, status.attempts[0]?.endedAt], ['unknown', at])
  assert.equal(told(status), ['order ended'])
  assert.is(timeline.ended('nobody', 'off', '', at)(fresh), fresh)
})

test('a proof is kept with its evidence and the time of each piece', () => {
  const result = foundOff(boot, node(foundOffNode), 0, now)
  if (!('proof' in result)) return assert.unreachable()
  const status = apply(fresh, timeline.proved(result.proof, at, (instant) => new Date(Date.parse(at) - (now - instant)).toISOString()))
  assert.equal([status.phase, status.step, status.proof?.kind, status.proof?.boot, status.proof?.nodeUid, status.proof?.methods], ['Running', 'clear', 'found-off', boot, 'uid-node-2', ['bmc-off']])
  assert.equal(status.proof?.evidence.map((one) => `${one.source} ${one.at}`), [
    `audit bmc-off ${record().paths[0]?.at}`, 'status bmc-off 2026-01-01T00:00:57.100Z', 'status bmc-off 2026-01-01T00:00:58.300Z', 'probe 2026-01-01T00:00:59.300Z', 'witness node-1 2026-01-01T00:00:59.000Z',
  ])
})

test('a proof shown false is taken off and kept among the void ones', () => {
  const status = apply({ ...fresh, step: 'clear', proof: proofRecord() }, timeline.shownFalse('it answered', at))
  assert.is(status.proof, undefined)
  assert.equal(status.voided, [{ proof: proofRecord(), at, evidence: 'it answered' }])
  assert.is(timeline.shownFalse('again', at)(status), status, 'once is enough')
})

test('every freed pod is on the record once, and freeing does not bring an incident back from a later step unseen', () => {
  const status = apply(fresh, timeline.freed([pod('web-0'), pod('web-1')], at), timeline.freed([pod('web-0')], later))
  assert.equal(status.pods.map((fate) => [fate.name, fate.fate]).toSorted(), [['web-0', 'freed'], ['web-1', 'freed']])
})

test('volumes are told as released when they are gone, once', () => {
  const one = apply(fresh, timeline.volumesSeen([volume('pv-1'), volume('pv-2')], at))
  assert.equal([one.volumes.map((fate) => fate.fate), told(one)], [['attached', 'attached'], []])
  const two = apply(one, timeline.volumesSeen([volume('pv-2')], later))
  assert.equal(two.volumes.map((fate) => [fate.volume, fate.fate]), [['pv-1', 'released'], ['pv-2', 'attached']])
  const three = apply(two, timeline.volumesSeen([volume('pv-2')], later))
  assert.equal(told(three), ['volumes released'])
})

test('what a driver says of a volume that it does not let go of stays on the record, also when it has let go', () => {
  const one = apply(fresh, timeline.volumesSeen([volume('pv-1'), volume('pv-2')], at), timeline.refused([volume('pv-1', { error: 'in use by node-2' }), volume('pv-2')]))
  assert.equal(one.volumes.map(({ fate, reason }) => [fate, reason]), [['attached', 'in use by node-2'], ['attached', undefined]])
  const two = apply(one, timeline.refused([volume('pv-1')]), timeline.volumesSeen([], later), timeline.closed('Recovered', 'back', later))
  assert.equal(two.volumes.map(({ fate, reason }) => [fate, reason]), [['released', 'in use by node-2'], ['released', undefined]])
})

test('a volume that is left attached has a reason: its driver\'s own, else why the clear or the incident ended', () => {
  const left = [volume('pv-1', { error: 'in use by node-2' }), volume('pv-2')]
  const ends = [timeline.untainted('k', 'its patience ran out', true, later), timeline.closed('NodeDeleted', 'its Node is gone', later)]
  assert.equal(ends.map((end) => apply(fresh, timeline.volumesSeen(left, at), end).volumes.map(({ reason }) => reason)), [['in use by node-2', 'its patience ran out'], ['in use by node-2', 'its Node is gone']])
  assert.equal(apply(fresh, timeline.volumesSeen(left, at), timeline.untainted('k', 'doubted', false, at)).volumes[1]?.reason, undefined)
})

test('the end of the clear is a step; another taint coming off is none', () => {
  const clear = { ...fresh, step: 'clear' } as const
  assert.is(apply(clear, timeline.untainted('k', 'cleared', true, at)).step, 'recovery')
  assert.is(apply(clear, timeline.untainted('k', 'doubted', false, at)).step, 'clear')
})

test('withdrawn is done, closed is final and holds nothing', () => {
  assert.is(apply(fresh, timeline.withdrawn('heard', at)).phase, 'Done')
  const status = apply(fresh, timeline.held([hold('storm')], at), timeline.closed('Recovered', 'back', later))
  assert.equal([status.phase, status.outcome, status.holds], ['Final', 'Recovered', []])
})

test('a hold keeps the instant since which it stands, and is told when it begins', () => {
  const status = apply(fresh, timeline.held([hold('storm', 'three')], at), timeline.held([hold('storm', 'four'), hold('concurrency')], later))
  assert.equal(status.holds.map((one) => [one.because, one.detail, one.since]), [['storm', 'four', at], ['concurrency', 'x', later]])
  assert.equal(told(status), ['held: storm', 'held: concurrency'])
})

test('holds differ by their reasons, not by a counting detail', () => {
  const status = apply(fresh, timeline.held([hold('storm', 'three'), hold('concurrency')], at))
  assert.ok(timeline.sameHolds([hold('concurrency'), hold('storm', 'four')], status))
  assert.not(timeline.sameHolds([hold('storm')], status))
  assert.not(timeline.sameHolds([], status))
})

test('the timeline of one incident has an end', () => {
  let status: IncidentStatus = fresh
  for (let nth = 0; nth < 1_000; nth += 1) status = timeline.adopted(nth, 'r', at)(status)
  assert.is(status.timeline.length, 400)
})

test('a change leaves the status it was made from as it was, so that it can be made again from a newer one', () => {
  const before = JSON.stringify(fresh)
  apply(fresh, timeline.ordered(running), timeline.freed([pod('a')], at), timeline.held([hold('storm')], at), timeline.withdrawn('x', at))
  assert.is(JSON.stringify(fresh), before)
})

test.run()
