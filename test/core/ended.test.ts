// A machine that was ended for good: nothing is switched on again after it, and its incident ends with its Node.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decide } from '../../core/decide.ts'
import type { Attempt, Incident, IncidentStatus } from '../../core/incident.ts'
import { goneKey, type Method, type NodeSeen, type Observed, type PowerState, type Reading } from '../../core/model.ts'
import { cleared, recovering, seenAll } from './states.ts'
import { foundOffCleared, wants } from './wishes.ts'
import { attempt, beat, incident, method, node, now, policy, proofRecord, reading, record, seen, seenOrder, seenProof, three } from './world.ts'

const test = suite('ended for good')

const ending: Method = { ...method, name: 'terminate-instance', agent: 'aws', digest: 'd9', ends: true }
const paths = [...record().paths, { method: ending.name, digest: 'd9', boot: record().boot, state: 'verified', identity: 'proven', at: 'then', evidence: 'on' }] as const
const both: Partial<NodeSeen> = { path: { levels: [[method], [ending]], faults: [] }, record: record({ paths }) }
const says = (state: PowerState, at: number): Reading => reading(state, at, at + 100, { method: ending.name, digest: 'd9' })
const restart = attempt({ id: 'r', digest: 'd1', result: 'failed' })
const ended = attempt({ id: 't', method: ending.name, digest: 'd9', level: 1 })
const known = new Map([...seenAll, ...seenOrder(now - 300_000, now - 290_000, 'r'), ...seenOrder(now - 6_000, now - 4_000, 't'), seenProof(now - 500)])
const proof = proofRecord({ level: 1, methods: [ending.name], digests: ['d9'] })

function after(changes: Partial<NodeSeen> = {}, status: Partial<IncidentStatus> = {}, its: Partial<Incident> = {}): Observed {
  const base = { ...recovering.node, ...both, firstSeen: known, readings: [reading('off', now - 2_000), says('off', now - 2_300), says('off', now - 900)] }
  return three({ ...base, ...changes }, [incident({ ...recovering.status, attempts: [restart, ended], proof, ...status }, its)])
}
const details = (observed: Observed): readonly string[] => decide(observed, now, [policy]).flatMap((action) => (action.do === 'hold' && action.node === 'node-2' ? [action.detail] : []))

test('what was ordered off before it is not switched on either, and the incident says what it waits for', () => {
  assert.equal(wants(after()), ['hold waiting-for-boot'])
  assert.match(details(after()).join(), /^terminate-instance has ended the machine for good, and nothing switches it on again$/)
  const bold = after({}, {}, { policy: { ...policy, powerOnFoundOff: true } })
  assert.equal(wants(bold), ['hold waiting-for-boot'])
})

test('a cloud forgets the instance within the hour: the record tells the next leader', () => {
  for (const readings of [[], [says('unknown', now - 900)]]) assert.equal(wants(after({ readings: [reading('off', now - 2_000), ...readings] })), ['hold waiting-for-boot'])
  const unverified: readonly Attempt[] = [{ ...restart, result: 'off' }, { ...ended, result: 'unknown' }]
  assert.equal(wants(after({ readings: [reading('off', now - 2_000)], firstSeen: new Map([...known, ...seenOrder(now - 300_000, now - 290_000, 't')]) }, { attempts: unverified })), ['hold waiting-for-boot'], 'by its proof')
})

test('found off because it was ended, it is not ordered off once more, and not switched on', () => {
  const found = after({}, { ...foundOffCleared.status, proof: { ...proof, kind: 'found-off' } }, { policy: { ...policy, powerOnFoundOff: true } })
  assert.equal(wants(found), ['hold waiting-for-boot'])
  assert.equal(wants(after({ ...cleared.node, ...both, firstSeen: known, readings: [reading('off', now - 2_000), says('off', now - 900)] }, { ...cleared.status, attempts: [], proof: { ...proof, kind: 'found-off' } })).filter((one) => one.startsWith('fence')), [])
})

test('an order to end it that did nothing keeps nothing from being switched on', () => {
  const stopped = { readings: [reading('off', now - 900), says('unknown', now - 800)], firstSeen: new Map([...known, ...seenOrder(now - 300_000, now - 290_000, 't')]) }
  const attempts = [attempt({ id: 'r', digest: 'd1' }), { ...ended, result: 'failed' }] as const
  assert.equal(wants(after(stopped, { attempts, proof: proofRecord() })), ['restore bmc-off', 'hold waiting-for-boot'])
})

test('heard again, the incident ends without it being asked on', () => {
  const heard = { ...both, beat: beat(), taints: [], readings: [reading('on', now - 900), says('on', now - 900)], firstSeen: new Map(seenOrder(now - 300_000, now - 290_000, 't')) }
  const status = { phase: 'Done', step: 'recovery', attempts: [{ ...ended, result: 'failed' }] } as const
  assert.equal(wants(three(heard, [incident(status)])).filter((one) => one.startsWith('restore') || one.includes('still-cut')), [])
})

const failedToEnd: Attempt = { ...ended, result: 'failed', ends: true }
const rotated: Method = { ...ending, digest: 'd10' }

test('heard again after its path was configured otherwise, or taken away: what ends a machine for good leaves nothing cut', () => {
  for (const levels of [[[method], [rotated]], [[method]]]) {
    const heard = { ...both, path: { levels, faults: [] }, beat: beat(), taints: [], readings: [reading('on', now - 900)], firstSeen: new Map(seenOrder(now - 300_000, now - 290_000, 't')) }
    const holdsOf = (attempts: readonly Attempt[]) => wants(three(heard, [incident({ phase: 'Done', step: 'recovery', attempts })])).filter((one) => one.includes('still-cut'))
    assert.equal(holdsOf([failedToEnd]), [])
    assert.equal(holdsOf([attempt({ id: 't', digest: 'other', result: 'failed' })]), ['hold still-cut'], 'what switches a machine off is owed to it all the same')
  }
})

test('ended by a path that is not configured any more it is ended all the same, and is not switched on', () => {
  const readings = [reading('off', now - 2_000)]
  const gone = { path: { levels: [[method]], faults: [] }, readings }
  const attempts = [{ ...restart, result: 'off' }, { ...ended, ends: true }] as const
  assert.equal(wants(after(gone, { attempts })), ['hold waiting-for-boot'])
  assert.match(details(after(gone, { attempts })).join(), /^terminate-instance has ended the machine for good/)
  assert.equal(wants(after({ ...gone, firstSeen: new Map([...known, ...seenOrder(now - 300_000, now - 290_000, 't')]) }, { attempts: [{ ...restart, result: 'off' }, failedToEnd], proof: proofRecord() })), ['restore bmc-off', 'hold waiting-for-boot'], 'one that failed has not')
  const again = { ...gone, path: { levels: [[method], [rotated]], faults: [] }, readings: [...readings, { ...says('on', now - 900), digest: 'd10' }] }
  assert.equal(wants(after(again, { attempts })).filter((one) => one.startsWith('restore')), ['restore bmc-off'], 'its own word under another configuration counts for more')
})

test('aborted before a proof, it is not given back either what was cut before it', () => {
  const attempts = [{ ...restart, result: 'off' }, ended] as const
  const silent = { taints: [], firstSeen: new Map([...known].filter(([key]) => !key.startsWith('proof'))) }
  const { proof: _, ...unproven } = recovering.status
  const withdrawn = (readings: readonly Reading[]) => three({ ...recovering.node, ...both, ...silent, readings }, [incident({ ...unproven, phase: 'Done', step: 'recovery', attempts })])
  const reads = [reading('off', now - 2_000), says('off', now - 900)]
  assert.equal(wants(withdrawn(reads)).filter((one) => one.startsWith('restore')), [])
  assert.match(details(withdrawn(reads)).join(), /has ended the machine for good/)
  assert.equal(wants(withdrawn([reading('off', now - 2_000), says('on', now - 900)])).filter((one) => one.startsWith('restore')), ['restore bmc-off'])
})

test('what tells of another machine has not ended this one', () => {
  const reads = [reading('off', now - 2_000), { ...says('off', now - 900), machine: 'machine-9' }]
  const firstSeen = new Map([...known, ...seenOrder(now - 300_000, now - 290_000, 't')])
  assert.equal(wants(after({ readings: reads, firstSeen }, { attempts: [attempt({ id: 'r', digest: 'd1' }), { ...ended, result: 'failed' }], proof: proofRecord() })), ['restore bmc-off', 'hold waiting-for-boot'])
})

test('nor has what is heard, whatever a path says of it: it is given back what it was cut off from', () => {
  const attempts = [{ ...restart, result: 'off' }, ended] as const
  const firstSeen = new Map([...seenOrder(now - 300_000, now - 290_000, 'r'), ...seenOrder(now - 299_000, now - 289_000, 't')])
  const heard = { ...both, beat: beat(), firstSeen, readings: [reading('off', now - 900), says('off', now - 900)] }
  assert.equal(wants(three(heard, [incident({ phase: 'Done', step: 'recovery', attempts })])).filter((one) => one.startsWith('restore')), ['restore bmc-off'])
})

test('where nothing was proven by it and its device tells nothing to a new leader, the end of its order tells', () => {
  const { proof: _, ...unproven } = recovering.status
  const done = { ...unproven, phase: 'Done', step: 'recovery' } as const
  const told = (result: Attempt['result']) => {
    const seenBy = { ...recovering.node, ...both, taints: [], firstSeen: new Map([...seenOrder(now - 300_000, now - 290_000, 'r'), ...seenOrder(now - 299_000, now - 289_000, 't')]), readings: [reading('off', now - 900)] }
    return wants(three(seenBy, [incident({ ...done, attempts: [{ ...restart, result: 'off' }, { ...ended, result }] })])).filter((one) => one.startsWith('restore'))
  }
  assert.equal([told('off'), told('failed')], [[], ['restore bmc-off']])
})

test('the incident ends with its Node, or when another machine bears the name', () => {
  const gone = after({ gone: true, taints: [], firstSeen: new Map([...known, [goneKey, now - 60_000]]) })
  assert.equal(wants(gone), ['close NodeDeleted'])
  const other = after({ machine: 'machine-9', taints: [], beat: beat({ boot: 'boot-9/100' }) })
  assert.equal(wants(other), ['close Replaced'])
})

function ordered(attempts: readonly Attempt[]): readonly string[] {
  const readings = [reading('on', now - 900, now - 800), says('on', now - 900)]
  const target = { ...recovering.node, ...both, readings, firstSeen: new Map([...seenOrder(now - 9_000, now - 8_000, 'r'), ...seenOrder(now - 7_000, now - 6_000, 's')]) }
  const its = incident({ phase: 'Running', step: 'power-management', attempts })
  const actions = decide(seen([node({ name: 'node-1' }), node(target), node({ name: 'node-3' })], [its]), now, [policy])
  return actions.flatMap((action) => (action.do === 'fence' ? [action.method.name] : []))
}

test('it is ordered where its level comes, and not before', () => {
  assert.equal(ordered([restart]), ['bmc-off'])
  assert.equal(ordered([restart, attempt({ id: 's', result: 'failed' })]), ['terminate-instance'])
})

test.run()
