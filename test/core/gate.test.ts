import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import fc from 'fast-check'
import type { CleanReport, GateWord } from '../../core/beat.ts'
import { admit, gateOf, tolerateGate, type Exemptions, type Gate, type GateFacts, type PodAsked } from '../../core/gate.ts'

const test = suite('gate')

const boot = 'b007-0002/4711'
const before = 'b007-0001/4711'
const clean: CleanReport = { state: 'clean' }
const dirty: CleanReport = { state: 'dirty', leftovers: [
  { kind: 'mount', path: '/var/lib/kubelet/pods/p1/volumes/kubernetes.io~csi/pvc-1/mount', pod: 'p1', volume: 'pvc-1' },
  { kind: 'mount', path: '/var/lib/kubelet/pods/p2/volumes/kubernetes.io~csi/pvc-2/mount', pod: 'p2', volume: 'pvc-2' },
] }
const unknown: CleanReport = { state: 'unknown', reason: 'the mount table of the host cannot be read' }

function word(change: Partial<GateWord> = {}): GateWord {
  return { say: 'gate', boot, accepted: true, reason: '', tolerating: [], ...change }
}

/** A node in its new boot, accepted by its leader and clean. */
function gate(change: Partial<GateFacts> = {}, standing?: Gate): Gate {
  return gateOf(standing, { boot, node: 'node-2', leaders: [word()], clean, opened: undefined, ...change })
}

const reason = (of: Gate) => (of.open ? 'open' : of.reason)
const open: Gate = { open: true, boot }
const shut: Gate = { open: false, reason: 'holdfast: node-2 starts nothing yet' }

test('the gate of a boot, by who has spoken and what was found', () => {
  const held = word({ accepted: false, reason: 'node-2-4f6e is being cleared' })
  const cases: [string, Partial<GateFacts>, Gate | undefined, string][] = [
    ['accepted by the leader, and clean', {}, undefined, 'open'],
    ['the boot cannot be read', { boot: undefined }, undefined, 'holdfast: node-2 starts nothing: which boot of the machine this is cannot be read'],
    ['the boot cannot be read any more', { boot: undefined }, open, 'holdfast: node-2 starts nothing: which boot of the machine this is cannot be read'],
    // KEP-36: the condition of the node cannot be retrieved.
    ['no leader is heard', { leaders: [] }, undefined, 'holdfast: node-2 starts nothing yet: no coordinator that leads has been heard in this boot'],
    ['no leader is heard, and the node has no name yet', { leaders: [], node: '' }, undefined, 'holdfast: this node starts nothing yet: no coordinator that leads has been heard in this boot'],
    // KEP-36: the heartbeat of this boot has not been sent out.
    ['the leader has not spoken', { leaders: ['silent'] }, undefined, 'holdfast: node-2 starts nothing yet: the coordinator has not accepted this boot'],
    ['the leader accepted the boot before', { leaders: [word({ boot: before })] }, undefined, 'holdfast: node-2 starts nothing yet: the coordinator has not accepted this boot'],
    // KEP-36: the node has the taint.
    ['the leader holds it', { leaders: [held] }, undefined, 'holdfast: node-2 is quarantined: node-2-4f6e is being cleared'],
    ['the leader held the boot before, and has not spoken of this one', { leaders: [word({ ...held, boot: before })] }, undefined, 'holdfast: node-2 starts nothing yet: the coordinator has not accepted this boot'],
    ['of two that say they lead one holds it', { leaders: [word(), held] }, undefined, 'holdfast: node-2 is quarantined: node-2-4f6e is being cleared'],
    ['of two that say they lead one has not spoken', { leaders: ['silent', word()] }, undefined, 'open'],
    // The non-graceful shutdown KEP: what was left is cleaned first, after a power cut and after a partition alike.
    ['two volumes are mounted still', { clean: dirty }, undefined, 'holdfast: node-2 is not clean: 2 mounts left of pods that do not belong here (pvc-1 of pod p1; pvc-2 of pod p2)'],
    ['nobody can tell what is mounted', { clean: unknown }, undefined, 'holdfast: node-2 starts nothing yet: it cannot tell whether it is clean: the mount table of the host cannot be read'],
    // KEP-36, scenario 3: back before anything was done about it, and accepted.
    ['accepted again after it was held, and clean', {}, shut, 'open'],
    ['accepted again after it was held, and not clean', { clean: unknown }, shut, 'holdfast: node-2 starts nothing yet: it cannot tell whether it is clean: the mount table of the host cannot be read'],
    // Once open for this boot.
    ['open, and the leader falls silent', { leaders: [] }, open, 'open'],
    ['open, and a new leader has not spoken yet', { leaders: ['silent'] }, open, 'open'],
    ['open, and an old list of pods accuses others', { clean: dirty }, open, 'open'],
    ['open, and the leader holds it', { leaders: [held] }, open, 'holdfast: node-2 is quarantined: node-2-4f6e is being cleared'],
    ['open, and the node has given up', { gaveUp: 'its permit was revoked' }, open, 'holdfast: node-2 has given up: its permit was revoked'],
    ['open for the boot before', { leaders: [] }, { open: true, boot: before }, 'holdfast: node-2 starts nothing yet: no coordinator that leads has been heard in this boot'],
    // An agent that was started again in the same boot.
    ['the disk says open, and the leader accepts it', { opened: boot, clean: unknown }, undefined, 'open'],
    ['the disk says open, and nobody speaks', { opened: boot, leaders: [] }, undefined, 'holdfast: node-2 starts nothing yet: no coordinator that leads has been heard in this boot'],
    ['the disk says open, and the leader holds it', { opened: boot, leaders: [held] }, undefined, 'holdfast: node-2 is quarantined: node-2-4f6e is being cleared'],
    ['the disk says open of the boot before', { opened: before, clean: unknown }, undefined, 'holdfast: node-2 starts nothing yet: it cannot tell whether it is clean: the mount table of the host cannot be read'],
    // Neighbours of another release.
    ['a leader that knows no gate', { leaders: ['older'], clean: unknown }, undefined, 'open'],
    ['a leader that knows no gate beside one that holds it', { leaders: ['older', held] }, open, 'holdfast: node-2 is quarantined: node-2-4f6e is being cleared'],
  ]
  for (const [what, facts, standing, wanted] of cases) assert.is(reason(gate(facts, standing)), wanted, what)
})

const api = { 'kubernetes.io/config.source': 'api' }
const none: Exemptions = { namespaces: new Set(), tolerating: new Set() }

function pod(change: Partial<PodAsked> = {}): PodAsked {
  return { namespace: 'work', name: 'db-0', uid: 'u1', annotations: api, ...change }
}

test('who passes a gate that is shut, and who nearly does', () => {
  const cases: [string, PodAsked | undefined, Exemptions, string][] = [
    ['a pod of the API', pod(), none, 'refused'],
    ['a pod that cannot be read', undefined, { namespaces: new Set(['']), tolerating: new Set(['']) }, 'refused'],
    ['a static pod from a file', pod({ annotations: { 'kubernetes.io/config.source': 'file' } }), none, 'static'],
    ['a static pod from an address', pod({ annotations: { 'kubernetes.io/config.source': 'http' } }), none, 'static'],
    ['a pod of no source', pod({ annotations: {} }), none, 'refused'],
    ['a pod that bears a static pod\'s hash', pod({ annotations: { ...api, 'kubernetes.io/config.hash': 'abc', 'kubernetes.io/config.mirror': 'abc' } }), none, 'refused'],
    ['a pod that tolerates the gate', pod({ annotations: { ...api, [tolerateGate]: 'true' } }), none, 'annotation'],
    ['a pod that says it does not', pod({ annotations: { ...api, [tolerateGate]: 'false' } }), none, 'refused'],
    ['a pod of an exempt namespace', pod({ namespace: 'kube-system' }), { ...none, namespaces: new Set(['kube-system']) }, 'namespace'],
    ['a pod of a namespace that begins so', pod({ namespace: 'kube-system-2' }), { ...none, namespaces: new Set(['kube-system']) }, 'refused'],
    ['a pod that tolerates the quarantine', pod(), { ...none, tolerating: new Set(['u1']) }, 'tolerates'],
    ['a pod while another one tolerates it', pod(), { ...none, tolerating: new Set(['u2']) }, 'refused'],
    ['a pod without a uid', pod({ uid: '' }), { ...none, tolerating: new Set(['']) }, 'refused'],
  ]
  for (const [what, asked, exempt, wanted] of cases) {
    const answer = admit(shut, asked, exempt)
    assert.is(answer.admit ? answer.because : 'refused', wanted, what)
    if (!answer.admit) assert.is(answer.reason, shut.open ? '' : shut.reason, what)
    assert.equal(admit(open, asked, exempt), { admit: true, because: 'open' }, what)
  }
})

test('a refusal is one short line that names the node, however much is left on it', () => {
  const many: CleanReport = { state: 'dirty', leftovers: Array.from({ length: 100 }, (_, index) => ({ kind: 'pod directory', path: `/x/${'y'.repeat(300)}\n${index}`, pod: `p${index}` })) }
  const told = reason(gate({ clean: many }))
  assert.ok(told.startsWith('holdfast: node-2 is not clean: 100 pod directories left of pods that do not belong here (/x/yyy'))
  assert.ok(told.length <= 600 && !told.includes('\n') && told.endsWith('…'))
})

test('each kind of leftover is counted by its name', () => {
  const report: CleanReport = { state: 'dirty', leftovers: [
    { kind: 'staging', path: '/s1' }, { kind: 'staging', path: '/s2' }, { kind: 'container', path: 'c1', pod: 'p1' }, { kind: 'loop device', path: '/dev/loop7' },
  ] }
  assert.is(reason(gate({ clean: report })), 'holdfast: node-2 is not clean: 2 staging mounts, 1 container and 1 loop device left of pods that do not belong here (/s1; /s2; c1 of pod p1; …)')
})

test('whatever is said and found, no gate opens for a boot that was not accepted by name', () => {
  const someBoot = fc.constantFrom(boot, before)
  const someWord = fc.oneof(fc.constant('silent' as const), fc.record({ say: fc.constant('gate' as const), boot: someBoot, accepted: fc.boolean(), reason: fc.string(), tolerating: fc.constant([]) }))
  const standing = fc.oneof(fc.constant(undefined), fc.constant(shut), fc.constant({ open: true as const, boot: before }))
  fc.assert(fc.property(
    fc.record({ boot: fc.oneof(fc.constant(undefined), someBoot), node: fc.string(), leaders: fc.array(someWord, { maxLength: 3 }), clean: fc.constantFrom(clean, dirty, unknown), opened: fc.oneof(fc.constant(undefined), someBoot) }),
    standing,
    (facts, from) => {
      const after = gateOf(from, facts)
      if (!after.open) return assert.ok(after.reason.startsWith('holdfast: '))
      assert.is(after.boot, facts.boot)
      const words = facts.leaders.filter((leader) => typeof leader !== 'string')
      assert.not(words.some((one) => one.boot === facts.boot && !one.accepted))
      const accepted = words.some((one) => one.boot === facts.boot && one.accepted) && (facts.clean.state === 'clean' || facts.opened === facts.boot)
      assert.ok(accepted || (from?.open === true && from.boot === facts.boot))
    },
  ), { numRuns: 500 })
})

test.run()
