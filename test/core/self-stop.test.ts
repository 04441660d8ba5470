import fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decide } from '../../core/decide.ts'
import type { NodeSeen } from '../../core/model.ts'
import type { ContainerSeen } from '../../core/mounts.ts'
import type { Policy } from '../../core/policy.ts'
import {
  clusterSays, gaveUpWithin, isRevoked, mayFeed, membersAmong, mostPermit, permitSpan, reasonToGiveUp, selfStop, standingAfter, standingSince, workloads, type MemberSays, type PermitHeard, type Standing,
} from '../../core/self-stop.ts'
import { attempts, proven, seenAll } from './states.ts'
import { incident, now, policy as usual, proofRecord, self, seenProof, three } from './world.ts'

const test = suite('self-stop')

const boot = 'b007-0001/4711'
const second = 1_000

/** Of an agent that began at 0 and heard these words. */
function hearing(...words: readonly PermitHeard[]): Standing {
  return words.reduce(standingAfter, standingSince(0))
}

const word = (from: PermitHeard['from'], at: number, says: PermitHeard['says'] = 'permitted'): PermitHeard => ({ from, askedAt: at * second, says })
const gaveUp = (at: number, ...words: readonly PermitHeard[]): Standing => words.reduce(standingAfter, { ...hearing(word('leader', 100)), gaveUp: { at: at * second, reason: 'nobody' } })

test('what a node does at an instant, by the words that it has heard', () => {
  const cases: [string, Standing, number, string][] = [
    ['just begun', hearing(), 0, 'run'],
    ['begun, and nobody has spoken for half a span', hearing(), 10, 'ask'],
    ['begun, and nobody has spoken for a span', hearing(), 20, 'give up'],
    ['permitted a while ago', hearing(word('leader', 100)), 109.9, 'run'],
    ['its permit is half over', hearing(word('leader', 100)), 110, 'ask'],
    ['its permit is all but over', hearing(word('leader', 100)), 119.9, 'ask'],
    ['its permit is over', hearing(word('leader', 100)), 120, 'give up'],
    ['most of its members stand in for the leader', hearing(word('leader', 100), word('members', 112)), 121, 'run'],
    ['the API server does', hearing(word('leader', 100), word('API server', 118)), 137, 'ask'],
    ['a word that came late counts from when it was asked for', hearing(word('leader', 100), word('members', 90)), 119, 'ask'],
    ['revoked by the leader', hearing(word('leader', 100), word('leader', 105, 'revoked')), 105, 'give up'],
    ['revoked by the API server', hearing(word('members', 100), word('API server', 112, 'revoked')), 112, 'give up'],
    ['what was asked for before it was revoked', hearing(word('leader', 105, 'revoked'), word('members', 104)), 106, 'give up'],
    ['permitted again after it was revoked', hearing(word('leader', 105, 'revoked'), word('leader', 110)), 111, 'run'],
    ['a revocation that was asked for before the permit came after it', hearing(word('leader', 110), word('API server', 105, 'revoked')), 111, 'run'],
    ['given up', gaveUp(120), 121, 'give up'],
    ['given up, and most of its members permit it again', gaveUp(120, word('members', 130)), 131, 'give up'],
    ['given up, and the leader permits it again', gaveUp(120, word('leader', 130)), 131, 'run'],
    ['given up, and the API server permits it', gaveUp(120, word('API server', 130)), 131, 'run'],
    ['given up, and a word comes that was asked for before', gaveUp(120, word('leader', 119)), 121, 'give up'],
    ['given up, and revoked, and permitted by a word from in between', gaveUp(120, word('leader', 140, 'revoked'), word('API server', 130)), 141, 'give up'],
  ]
  for (const [what, standing, at, wanted] of cases) assert.is(selfStop(standing, at * second), wanted, what)
})

test('how long a watchdog is fed: for the permit and the time to stop, and by a word that was heard alone', () => {
  const cases: [string, Standing, number, boolean][] = [
    ['an agent that has just begun', hearing(), 0, false],
    ['permitted just now', hearing(word('leader', 100)), 100, true],
    ['the last instant', hearing(word('leader', 100)), 129.9, true],
    ['past it', hearing(word('leader', 100)), 130, false],
    ['by its members', hearing(word('leader', 100), word('members', 118)), 147, true],
    ['revoked', hearing(word('leader', 100), word('leader', 105, 'revoked')), 105, false],
    ['revoked, and permitted again', hearing(word('leader', 105, 'revoked'), word('leader', 106)), 107, true],
    ['revoked, and permitted by a word from before', hearing(word('leader', 105, 'revoked'), word('members', 104)), 106, false],
    ['given up, and permitted by its members alone', gaveUp(120, word('members', 128)), 135, false],
    ['given up, and permitted again', gaveUp(120, word('leader', 128)), 135, true],
  ]
  for (const [what, standing, at, wanted] of cases) assert.is(mayFeed(standing, at * second), wanted, what)
})

test('why it gives up', () => {
  assert.match(reasonToGiveUp(hearing(word('leader', 100))), /^neither a coordinator that leads, nor the API server, nor most of its members/)
  assert.match(reasonToGiveUp(hearing(word('leader', 100), word('leader', 105, 'revoked'))), /^its permit was revoked/)
})

const heard = fc.record({ from: fc.constantFrom('leader' as const, 'API server' as const, 'members' as const), askedAt: fc.nat(100_000), says: fc.constantFrom('permitted' as const, 'revoked' as const) })

test('whatever is heard, in whatever order: it runs only within one span of a word that permits, asked for after every revocation', () => {
  fc.assert(fc.property(fc.array(heard, { maxLength: 12 }), fc.nat(140_000), (words, instant) => {
    const known = words.filter(({ askedAt }) => askedAt <= instant)
    const revokedAt = Math.max(-Infinity, ...known.filter(({ says }) => says === 'revoked').map(({ askedAt }) => askedAt))
    const good = known.some(({ says, askedAt }) => says === 'permitted' && askedAt > revokedAt && instant < askedAt + permitSpan)
    const begun = revokedAt === -Infinity && instant < permitSpan
    assert.is(selfStop(hearing(...known), instant) !== 'give up', good || begun)
    const fed = known.some(({ says, askedAt }) => says === 'permitted' && askedAt > revokedAt && instant < askedAt + gaveUpWithin)
    assert.is(mayFeed(hearing(...known), instant), fed)
  }), { numRuns: 2_000 })
})

const say = (permitted: number, revoked = 0, unknown = 0): MemberSays[] => [...Array(permitted).fill('permitted'), ...Array(revoked).fill('revoked'), ...Array(unknown).fill('unknown')]

test('which members make most of them', () => {
  const cases: [string, MemberSays[], MemberSays[], number, boolean][] = [
    ['all of them', say(10), say(3), 13, true],
    ['just more than half', say(7), [], 13, true],
    ['half of them', say(6), [], 12, false],
    ['a zone that is cut off with its replica', say(4), say(1), 13, false],
    ['replicas alone', [], say(3), 3, false],
    ['one replica, of one', [], say(1), 1, false],
    ['one member and most of the replicas', say(1), say(2), 5, true],
    ['one that was told that the permit is revoked', say(9, 1), say(3), 13, false],
    ['a replica that knows it as revoked', say(10), say(2, 1), 13, false],
    ['members that no leader has told anything', say(0, 0, 10), say(3), 13, false],
    ['nobody', [], [], 13, false],
    ['nobody, of nobody', [], [], 0, false],
  ]
  for (const [what, agents, replicas, named, wanted] of cases) assert.is(mostPermit({ agents, replicas, named }), wanted, what)
})

test('a permit is revoked by a proof of that very boot, and by nothing less', () => {
  const proof = proofRecord()
  const of = (change: object, status: object = {}) => incident({ proof: { ...proof, ...change }, phase: 'Running', ...status })
  assert.is(isRevoked(proof.boot, of({})), true)
  assert.is(isRevoked(proof.boot, undefined), false)
  assert.is(isRevoked('another/1', of({})), false, 'the next boot')
  assert.is(isRevoked(proof.boot, of({ kind: 'safe-detach' })), false, 'a driver\'s refusal takes nothing from the machine')
  assert.is(isRevoked(proof.boot, of({ kind: 'isolated' })), false, 'nor does a fence of its storage')
  assert.is(isRevoked(proof.boot, of({ kind: 'vouched' })), true)
  assert.is(isRevoked(proof.boot, of({}, { phase: 'Final' })), false, 'an incident that is over')
  assert.is(isRevoked(proof.boot, incident({ phase: 'Running', attempts })), false, 'ordered off, and not proven')
  const revoked = { boot: proof.boot, at: '', watchdog: { boot: proof.boot, state: 'armed', identity: '', timeout: 0, panic: 0, machine: 'real', epoch: 1, memberships: [] } } as const
  assert.is(isRevoked(proof.boot, incident({ phase: 'Running', revoked })), true, 'its watchdog is to end it')
  assert.is(isRevoked('another/1', incident({ phase: 'Running', revoked })), false)
  assert.is(isRevoked(proof.boot, incident({ phase: 'Done', revoked })), false, 'it was withdrawn')
})

const fence = (kind: string, phase = 'Running', of = boot) => ({ name: 'node-1-abc-1', phase, proof: { kind, boot: of } })

test('what the API server\'s own word is worth', () => {
  const cases: [string, object, MemberSays][] = [
    ['nothing against it', {}, 'permitted'],
    ['an incident without a proof', { fences: [{ name: 'node-1-abc-1', phase: 'Running' }] }, 'permitted'],
    ['a proof of this boot', { fences: [fence('off')] }, 'revoked'],
    ['a revocation of this boot', { fences: [{ name: 'node-1-abc-1', phase: 'Running', revoked: { boot } }] }, 'revoked'],
    ['a revocation of another boot', { fences: [{ name: 'node-1-abc-1', phase: 'Running', revoked: { boot: 'another/1' } }] }, 'permitted'],
    ['a revocation that was withdrawn', { fences: [{ name: 'node-1-abc-1', phase: 'Done', revoked: { boot } }] }, 'permitted'],
    ['one that is over', { fences: [fence('off', 'Final')] }, 'permitted'],
    ['one of the boot before', { fences: [fence('off', 'Running', 'b007-0000/1')] }, 'permitted'],
    ['a driver\'s refusal', { fences: [fence('safe-detach')] }, 'permitted'],
    ['quarantine', { taints: ['holdfast.dev/quarantine'] }, 'permitted'],
    ['out-of-service, whoever set it', { taints: ['node.kubernetes.io/out-of-service'] }, 'revoked'],
    ['its kubelet has told of another boot', { bootId: 'b007-0002' }, 'unknown'],
    ['its kubelet has told of none', { bootId: '' }, 'unknown'],
  ]
  for (const [what, change, wanted] of cases) assert.is(clusterSays(boot, { bootId: 'b007-0001', taints: [], fences: [], ...change }), wanted, what)
})

const uid = (digit: number): string => `${String(digit).repeat(8)}-1111-4111-8111-111111111111`

test('what a node that gives up stops', () => {
  const exempt = { namespaces: new Set(['kube-system']), tolerating: new Set([uid(7)]) }
  const one = (change: Partial<ContainerSeen>): ContainerSeen => ({ id: 'c1', name: 'work/db-0 main', pod: uid(1), ...change })
  const cases: [string, ContainerSeen, boolean][] = [
    ['a workload', one({}), true],
    ['a pod\'s sandbox, which runs nothing of anybody', one({ sandbox: true }), false],
    ['a static pod', one({ pod: '0123456789abcdef0123456789abcdef' }), false],
    ['a container of no pod', one({ pod: '' }), false],
    ['a pod annotated to pass the gate', one({ tolerates: true }), false],
    ['a pod that tolerates the quarantine', one({ pod: uid(7) }), false],
    ['a pod of an exempt namespace', one({ name: 'kube-system/proxy-1 main' }), false],
    ['a pod of a namespace that only begins like it', one({ name: 'kube-system-2/proxy-1 main' }), true],
    ['a pod that is called like it', one({ name: 'work/kube-system main' }), true],
    ['a name that is none', one({ name: 'db' }), true],
  ]
  for (const [what, container, wanted] of cases) assert.is(workloads([container], exempt).length === 1, wanted, what)
})

const cluster = (sizes: readonly number[]) => sizes.flatMap((size, zone) => Array.from({ length: size }, (_, index) => ({ name: `node-${zone}-${index}`, zone: `zone-${zone}` })))

test('each node has ten members, of every zone as many, and never itself', () => {
  for (const sizes of [[40, 40, 40], [200], [60, 60], [3, 50, 50], [12, 12, 12, 12]]) {
    const nodes = cluster(sizes)
    const members = membersAmong(nodes)
    for (const { name } of nodes) {
      const own = members(name)
      const zones = Object.values(Object.groupBy(own, (member) => member.split('-')[1] ?? ''))
      assert.ok(own.length <= 10 && own.length >= Math.min(10, nodes.length) - 1, `${name}: ${own.length} of ${sizes}`)
      assert.is(new Set(own).size, own.length)
      assert.not(own.includes(name))
      assert.ok(zones.every((zone) => (zone?.length ?? 0) <= Math.ceil(10 / sizes.length)), `${name} of ${sizes}`)
    }
  }
})

test('in a small cluster all others are members, and alone there is none', () => {
  const nodes = cluster([2, 2, 1])
  const members = membersAmong(nodes)
  for (const { name } of nodes) assert.equal([...members(name)].toSorted(), nodes.map((node) => node.name).filter((other) => other !== name).toSorted())
  assert.equal(membersAmong(cluster([1]))('node-0-0'), [])
  assert.equal(membersAmong([])('node-0-0'), [])
})

test('when one node goes, most keep their members', () => {
  const nodes = cluster([30, 30, 30])
  const [before, gone] = [membersAmong(nodes), membersAmong(nodes.slice(1))]
  const changed = nodes.slice(1).filter(({ name }) => before(name).join() !== gone(name).join())
  assert.ok(changed.length < 30, `${changed.length}`)
})

const waiting: Policy = { ...usual, giveUp: 'stop', waitForPermit: true }

/** What becomes of a node that is proven off, its pods not freed yet. */
function freeing(policy: Policy, changes: Partial<NodeSeen> = {}, proof = proofRecord()): string[] {
  const observed = three({ ...proven.node, ...changes }, [incident({ ...proven.status, proof }, { policy })], self())
  return decide(observed, now, [policy]).filter(({ node, do: does }) => node === 'node-2' && ['taint', 'delete', 'detach', 'hold'].includes(does)).map((action) => (action.do === 'hold' ? `hold ${action.because}` : action.do))
}

const provenAt = (ago: number): Partial<NodeSeen> => ({ firstSeen: new Map([...seenAll, seenProof(now - ago)]) })

test('where the policy waits for the permit, nothing is freed of a node that was ordered off until it had time to give up', () => {
  assert.equal(freeing(waiting), ['hold permit'])
  assert.equal(freeing(waiting, provenAt(29_999)), ['hold permit'])
  assert.equal(freeing(waiting, provenAt(30_000)), ['taint'])
  assert.equal(freeing({ ...waiting, waitForPermit: false }), ['taint'])
  assert.equal(freeing({ ...waiting, giveUp: 'never' }), ['taint'], 'a node that does not give up is not waited for')
  assert.equal(freeing(waiting, {}, proofRecord({ kind: 'found-off' })), ['taint'], 'what was off by itself had nobody to deceive')
})

test.run()
