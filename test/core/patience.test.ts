// A node that is back and does not become clean: within its patience it is waited for; after that it says so, or is fenced for it.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { outOfServiceKey } from '../../core/clear.ts'
import type { IncidentStatus } from '../../core/incident.ts'
import type { BeatSeen, CleanSeen, Method, NodeSeen } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { attempts, booted, lifted, on, quarantine, seenAll, seenLongAgo } from './states.ts'
import { held, inState, lead, looks, wants, wishes } from './wishes.ts'
import { beat, boot, dead, incident, method, newBoot, now, policy, proofRecord, reading, record, seenOrder, seenProof, three } from './world.ts'

const test = suite('patience')

const patience = 20_000
const waiting: Policy = { ...policy, returnPatience: patience }
const fencing: Policy = { ...waiting, afterPatience: 'fence' }
const leftovers = [{ kind: 'staging', path: '/var/lib/kubelet/plugins/x' }] as const

/** What its agent has told since then, without a break. */
const dirty = (since: number): CleanSeen => ({ at: now - 500, uncleanSince: since, report: { state: 'dirty', leftovers } })
const back = (ago: number, changes: Partial<BeatSeen> = {}): Partial<NodeSeen> => ({
  beat: beat({ boot: newBoot, since: now - ago, clean: dirty(now - ago), ...changes }),
  firstSeen: new Map([...seenLongAgo, ...seenOrder(now - 45_000, now - 44_000, 'node-2-abc-1.2'), [`gone ${outOfServiceKey}`, now - 43_000]]),
})

test('within its patience a node is waited for; past it, it says so, what lifts it, and for how long', () => {
  assert.equal(wants(inState(booted, back(patience - 1)), [waiting]), ['hold waiting-for-clean'])
  assert.equal(wants(inState(booted, back(patience)), [waiting]), ['hold out-of-patience'])
  assert.match(held(inState(booted, back(patience)), 'out-of-patience', [waiting]), /1 left over on node-2: staging .*; that is so for 20\.0 s, longer than returnPatience \(20\.0 s\)/)
  assert.ok(looks(inState(booted, back(patience, { clean: { ...dirty(now - patience), at: now - 10_000 } })), [waiting]).includes('askClean'), 'and is asked on')
})

const since = (changes: Partial<NodeSeen>) => wants(inState(booted, changes), [waiting])
test('it is counted from when there was nothing else to wait for: its boot, its last silence, the last order, the proof, its first such word', () => {
  const late = now - patience + 1
  assert.equal(since(back(30_000)), ['hold out-of-patience'])
  assert.equal(since(back(30_000, { clean: dirty(late) })), ['hold waiting-for-clean'])
  assert.equal(since(back(30_000, { lapse: { from: late - 5_000, to: late } })), ['hold waiting-for-clean'])
  assert.equal(since({ ...back(30_000), firstSeen: new Map([...seenLongAgo, ...seenOrder(late - 1_000, late, 'node-2-abc-1.2'), [`gone ${outOfServiceKey}`, now - 43_000]]) }), ['hold waiting-for-clean'])
  assert.equal(since({ ...back(30_000), firstSeen: new Map([...(booted.node.firstSeen ?? []), seenProof(late)]) }), ['hold waiting-for-clean'])
})

test('what else keeps it waits without an end: its kubelet, its volumes, its agent', () => {
  assert.equal(wants(inState(booted, { ...back(30_000), ready: { status: 'Unknown', postedAt: 0, since: 0, bootId: 'boot-1' } }), [fencing]), ['hold waiting-for-kubelet'])
})

test('where the policy wants it fenced its incident ends, and another one begins, from the same facts for whoever leads', () => {
  assert.equal(wants(inState(booted, back(patience - 1)), [fencing]), ['hold waiting-for-clean'])
  assert.equal(wants(inState(booted, back(patience)), [fencing]), ['close Recovered'])
  const over = { phase: 'Final', outcome: 'Recovered' } as const
  assert.equal(wants(inState(booted, back(patience), over), [fencing]), ['open leftover'])
  const opened = wishes(inState(booted, back(patience), over), [fencing], now).find((action) => action.do === 'open')
  assert.equal(opened?.do === 'open' ? [opened.boot, opened.policy.afterPatience] : undefined, [newBoot, 'fence'])
  assert.equal(wants(three({ ...back(patience), taints: [quarantine], bootId: 'boot-2', ready: booted.node.ready ?? assert.unreachable() as never, record: record({ boot: newBoot }) }), [fencing]), ['open leftover'], 'nothing is kept of an incident')
})

test('what keeps hands off keeps it waiting, and the hold says what', () => {
  const keeps = (changes: Partial<NodeSeen>, policies: readonly Policy[] = [fencing], status: Partial<IncidentStatus> = {}, own = lead({})) => held(inState(booted, { ...back(patience), ...changes }, status, {}, own), 'out-of-patience', policies)
  assert.match(keeps({}, [{ ...fencing, nodeDownPodDeletionPolicy: 'DoNothing' }]), /DoNothing/)
  assert.match(keeps({ path: { levels: [], faults: [] } }), /no fence path/)
  assert.match(keeps({ annotations: { 'holdfast.dev/keep-off': 'hands' } }), /hands/)
  assert.equal(wants(inState(booted, back(patience), { phase: 'Final', outcome: 'Recovered' }, {}, lead({ pause: { reason: 'look', by: 'me' } })), [fencing]), ['hold pause'])
})

/** The node runs in its next boot, and is to be fenced for what is left over. */
const again = { name: 'node-2-xyz-1', boot: newBoot, cause: 'leftover', policy: fencing } as const
const begun: Partial<NodeSeen> = { ...back(patience), taints: [quarantine], bootId: 'boot-2', readings: [reading('on', now - 1_000)], record: record({ boot: newBoot, paths: record().paths.map((one) => ({ ...one, boot: newBoot })) }) }

test('it is ordered off while it runs, by every brake that a fence has', () => {
  assert.equal(wants(three(begun, [incident({}, again)]), [fencing]), ['fence bmc-off'])
  assert.ok(wishes(three({ ...begun, beat: beat({ boot: newBoot, since: now - patience, clean: { ...dirty(now - patience), at: now - 10_000 } }) }, [incident({}, again)]), [fencing], now).some((action) => action.do === 'askClean' && action.stop === true), 'and told to end what does not belong')
})

test('clean before anything was ordered it is withdrawn', () => {
  const clean = beat({ boot: newBoot, since: now - patience, clean: { at: now - 500, report: { state: 'clean' } } })
  assert.equal(wants(three({ ...begun, beat: clean }, [incident({}, again)]), [fencing]), ['withdraw'])
})

test('one that fell silent since is judged like every other', () => {
  assert.ok(!wants(three({ ...begun, beat: beat({ boot: newBoot, since: now - 50_000, at: now - 2_000, clean: dirty(now - 50_000) }) }, [incident({}, again)]), [fencing]).includes('fence bmc-off'))
})

test('fenced for it once, and not clean in the next boot either, it waits', () => {
  const before = { ...booted.status, attempts: [...attempts, on] }
  assert.match(held(inState(booted, back(patience), before, { cause: 'leftover' }), 'out-of-patience', [fencing]), /fenced for that already/)
  assert.match(held(inState(lifted, { ...back(patience), taints: [quarantine] }, { ...before, phase: 'Final', outcome: 'Recovered' }, { cause: 'leftover' }), 'out-of-patience', [fencing]), /fenced for that already/)
})

// A proof shown false: what was freed runs elsewhere by now, and perhaps here as well.

const answered = { issuedAt: now - 40_000, boot }
const voided: Partial<IncidentStatus> = { phase: 'Done', step: 'recovery', attempts: [...attempts, on], voided: [{ proof: proofRecord(), at: '', evidence: '' }] }
const alive = (ago: number): Partial<NodeSeen> => ({
  beat: beat({ answered, lapse: { from: now - 90_000, to: now - 42_000 }, clean: dirty(now - ago) }), taints: [quarantine],
  firstSeen: new Map([...seenAll, seenProof(now - 50_000), ...seenOrder(now - 59_000, now - 58_000), ...seenOrder(now - 44_000, now - 43_000, 'node-2-abc-1.2'), [`gone ${outOfServiceKey}`, now - 41_000]]),
})

test('a fenced boot that lives and does not become clean is fenced by the next level, whatever the policy says of patience', () => {
  assert.equal(wants(inState({ node: alive(patience - 1), status: voided }), [waiting]), ['hold waiting-for-clean'])
  assert.equal(wants(inState({ node: alive(patience), status: voided }), [waiting]), ['close Void'])
  const over = { ...voided, phase: 'Final', outcome: 'Void' } as const
  assert.equal(wants(inState({ node: alive(patience), status: over }), [waiting]), ['open leftover'])
  assert.equal(wants(inState({ node: alive(patience), status: over }, {}, {}, { cause: 'leftover' }), [waiting]), ['open leftover'], 'the second level lied as well')
})

test('the path that lied is not the one: the next level is, and without one it is held, and the path named', () => {
  const plug: Method = { ...method, name: 'plug-off', device: 'pdu-1:161', digest: 'd2' }
  const marked = record().paths.map((one) => ({ ...one, state: 'marked' as const }))
  const paths = [...marked, ...record().paths.map((one) => ({ ...one, method: 'plug-off', digest: 'd2' }))]
  const lied = incident({ ...voided, phase: 'Final', outcome: 'Void' })
  const next = incident({}, { ...again, boot, policy: waiting })
  const readings = [reading('on', now - 1_000), reading('on', now - 900, now - 800, { method: 'plug-off', digest: 'd2' })]
  const two = three({ ...alive(patience), path: { levels: [[method], [plug]], faults: [] }, record: record({ paths }), readings }, [lied, next])
  assert.equal(wants(two, [waiting]), ['fence plug-off'])
  const one = three({ ...alive(patience), record: record({ paths: marked }), readings }, [lied, next])
  assert.equal(wants(one, [waiting]), ['hold path-unverified'])
})

test('a node that is dead again has another incident, as ever', () => {
  const silence = { ...dead, beat: beat({ boot: newBoot, since: now - 30_000, at: now - 6_000, clean: dirty(now - 30_000) }), record: record({ boot: newBoot, probe: { boot: newBoot, answered: true, at: '' } }) }
  assert.equal(wants(inState(booted, silence), [fencing]), ['close Recovered'])
})

test('nothing of it concerns a node that bears no quarantine of ours', () => {
  assert.equal(wants(three({ beat: beat({ clean: dirty(now - 80_000) }) }), [fencing]), [])
})

test.run()
