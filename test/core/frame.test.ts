import fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { AgentWord, CleanReport, PeerWord, ReplicaWord } from '../../core/beat.ts'
import {
  checkFrames, frameLimit, frameOf, framesOf, memberFrame, mostLeftovers, mostPanic, mostPods, mostReplicas, permitAgain, podsAFrame, readAgentWord, readFirstWord, readMemberAnswer, readMemberQuestion, readPeerWord, readReplicaWord,
  readWhisper, readWhisperAnswer, whisperOf,
} from '../../core/frame.ts'

const test = suite('frame')

const text = fc.string({ unit: 'grapheme', maxLength: 60 })
const address = fc.string({ unit: fc.constantFrom(...'abcdef0123456789.:[]'), maxLength: 60 })
const whole = fc.nat()
const count = fc.integer({ min: 0, max: 2 ** 32 - 1 })
const seal = fc.option(text, { nil: undefined }).map((value) => (value === undefined ? {} : { seal: value }))
const boot = fc.option(text, { nil: undefined }).map((value) => (value === undefined ? {} : { boot: value }))
const memberSays = fc.constantFrom('permitted' as const, 'revoked' as const, 'unknown' as const)
const hearing = fc.constantFrom('hears' as const, 'deaf' as const)
const say = <const S extends string>(word: S) => fc.constant(word)

const report: fc.Arbitrary<CleanReport> = fc.oneof(
  fc.record({ state: say('clean') }),
  fc.record({ state: say('unknown'), reason: text }),
  fc.record({
    state: say('dirty'),
    leftovers: fc.array(fc.record({ kind: fc.constantFrom('mount' as const, 'staging' as const, 'pod directory' as const, 'block volume' as const, 'container' as const, 'leaked mount' as const, 'loop device' as const), path: text, pod: text, volume: text, driver: text, since: fc.nat() }, { requiredKeys: ['kind', 'path'] }), { maxLength: 5 }),
  }),
)

const hello = fc.record({ say: say('hello'), version: fc.constant(1 as const), token: text, agent: text, boot: text, uptime: whole, machine: text, whisperPort: fc.integer({ min: 0, max: 65_535 }), before: fc.constantFrom('shut down' as const, 'cut off' as const), beforeBoot: text, places: fc.record({ kubelet: text, runtime: text, gate: text }) }, {
  requiredKeys: ['say', 'version', 'token', 'agent', 'boot', 'uptime', 'machine', 'whisperPort'],
})

const vitals = fc.record({ disk: fc.nat(100), inodes: fc.nat(100), memory: fc.nat(100), temperature: fc.integer({ min: -50, max: 200 }), load: fc.nat(254).map((tenths) => tenths / 10) }, { requiredKeys: [] })
  .filter((told) => Object.keys(told).length > 0)

const agentWord: fc.Arbitrary<AgentWord> = fc.oneof(
  hello,
  fc.record({
    say: say('beat'), count, kubelet: fc.constantFrom('ok' as const, 'ill' as const, 'unknown' as const),
    gate: fc.constantFrom('off' as const, 'shut' as const, 'open' as const, 'absent' as const), permit: fc.constantFrom('off' as const, 'running' as const, 'gave up' as const, 'resumed' as const),
    runtime: fc.constantFrom('ok' as const, 'ill' as const, 'unknown' as const), storage: fc.constantFrom('reached' as const, 'unreached' as const, 'unknown' as const),
    pressure: fc.record({ cpu: fc.nat(100), memory: fc.nat(100), io: fc.nat(100) }), vitals,
  }, { requiredKeys: ['say', 'count', 'kubelet'] }),
  fc.record({ say: say('clean'), report, list: text }, { requiredKeys: ['say', 'report'] }),
  fc.record({ say: say('watchdog'), state: fc.constantFrom('armed' as const, 'unarmed' as const), identity: text, timeout: fc.nat(86_400_000), panic: fc.integer({ min: -mostPanic, max: mostPanic }), machine: fc.constantFrom('real' as const, 'virtual' as const, 'unknown' as const), epoch: whole, why: text, disarm: whole }, { requiredKeys: ['say', 'state', 'identity', 'timeout', 'panic', 'machine', 'epoch'] }),
  fc.record({ say: say('revokes'), boots: fc.array(fc.record({ node: text, boot: text }), { maxLength: 5 }) }),
  fc.record({ say: say('goodbye'), why: fc.constantFrom('restart' as const, 'reboot' as const, 'shutdown' as const) }),
  fc.tuple(fc.record({ say: say('answer'), nonce: text, boot: text }), seal).map(([word, more]) => ({ ...word, ...more })),
  fc.tuple(fc.record({ say: say('witness'), id: whole, word: hearing }), boot, seal).map(([word, one, other]) => ({ ...word, ...one, ...other })),
)

const replicaWord: fc.Arbitrary<ReplicaWord> = fc.oneof(
  fc.record({ say: say('welcome'), node: text, replica: text, key: text, gates: fc.constant(true as const) }, { requiredKeys: ['say', 'node', 'replica', 'key'] }),
  fc.record({ say: say('gate'), boot: text, accepted: fc.boolean(), reason: text, tolerating: fc.array(text.filter((pod) => pod.length <= 64), { maxLength: 5 }) }),
  fc.record({ say: say('refused'), reason: text }),
  fc.record({ say: say('permit'), count, leads: fc.boolean(), span: count, replicas: fc.array(address, { maxLength: mostReplicas }), says: memberSays }, { requiredKeys: ['say', 'count', 'leads', 'span', 'replicas'] }),
  fc.record({ say: say('self-stop'), node: text, giveUp: fc.constantFrom('never' as const, 'stop' as const), members: fc.array(address, { maxLength: 10 }), membership: fc.record({ epoch: whole, agents: fc.array(text, { maxLength: 10 }), replicas: fc.array(text, { maxLength: 3 }) }), key: text }, { requiredKeys: ['say', 'node', 'giveUp', 'members'] }),
  fc.record({ say: say('revoked'), term: whole, boots: fc.array(fc.record({ node: text, boot: text }), { maxLength: 5 })}, { requiredKeys: ['say', 'boots'] }),
  fc.record({ say: say('disarm'), boot: text, disarm: whole }),
  fc.record({ say: say('challenge'), nonce: text }),
  fc.record({ say: say('ask'), id: whole, node: text, address: text, nonce: text }),
  fc.record({ say: say('check'), pods: fc.array(text, { maxLength: 5 }), list: text }, { requiredKeys: ['say', 'pods'] }),
)

const peerWord: fc.Arbitrary<PeerWord> = fc.oneof(
  fc.record({ say: say('hello-replica'), version: fc.constant(1 as const), token: text, replica: text }),
  fc.record({ say: say('hears'), id: whole, node: text }),
  fc.tuple(fc.record({ say: say('heard'), id: whole, word: hearing }), boot).map(([word, one]) => ({ ...word, ...one })),
)

/** fast-check's records have no prototype, which the comparison minds. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))
const goodHello = { say: 'hello', version: 1, token: 't', agent: 'a', boot: 'b', uptime: 1, machine: 'm', whisperPort: 1 }

test('every word of an agent is read as it was said', () => {
  fc.assert(fc.property(agentWord, (word) => assert.equal(readAgentWord(frameOf(word)), { word: plain(word) })))
})

test('every word of a replica to an agent is read as it was said', () => {
  fc.assert(fc.property(replicaWord, (word) => assert.equal(readReplicaWord(frameOf(word)), { word: plain(word) })))
})

test('every word between replicas is read as it was said', () => {
  fc.assert(fc.property(peerWord, (word) => assert.equal(readPeerWord(frameOf(word)), { word: plain(word) })))
})

test('a question to a member and its answer are read as they were said, and neither is taken for a whisper', () => {
  fc.assert(fc.property(fc.record({ node: text, boot: text, nonce: text, member: text }, { requiredKeys: ['node', 'boot', 'nonce'] }), (question) => {
    assert.equal(readMemberQuestion(memberFrame(question)), { word: plain(question) })
    assert.ok('unknown' in readWhisper(memberFrame(question)))
  }))
  fc.assert(fc.property(fc.record({ nonce: text, says: memberSays, seals: fc.array(text, { maxLength: 3 }) }, { requiredKeys: ['nonce', 'says'] }), (answer) => {
    assert.equal(readMemberAnswer(memberFrame(answer)), { word: plain(answer) })
    assert.ok('unknown' in readWhisperAnswer(memberFrame(answer)))
  }))
})

test('whatever bytes come, each reader answers with a value and never throws', () => {
  const bytes = fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.json().map((value) => new TextEncoder().encode(value)), fc.object().map((value) => json({ say: 'hello', ...value })))
  fc.assert(fc.property(bytes, (frame) => {
    for (const read of [readAgentWord, readReplicaWord, readPeerWord, readFirstWord, readWhisper, readWhisperAnswer, readMemberQuestion, readMemberAnswer]) {
      const answer = read(frame)
      assert.ok('word' in answer || 'unknown' in answer || 'garbage' in answer)
    }
  }), { numRuns: 300 })
})

test('a word of a later version is unknown, not garbage', () => {
  assert.equal(readAgentWord(json({ say: 'vitals', load: 3 })), { unknown: 'vitals' })
  assert.equal(readAgentWord(Uint8Array.of(77, 1, 2)), { unknown: 'kind 77' })
  assert.equal(readReplicaWord(json({ say: 'orders' })), { unknown: 'orders' })
})

function vitalsIn(frame: Uint8Array): unknown {
  const read = readAgentWord(frame)
  return 'word' in read && read.word.say === 'beat' ? read.word.vitals : undefined
}

const watchdogOf = (changes: object) => readAgentWord(json({ say: 'watchdog', state: 'armed', identity: 'i', timeout: 30_000, panic: 0, machine: 'real', epoch: 1, ...changes }))

test('what an agent says of its watchdog that no record takes is garbage', () => {
  assert.ok('word' in watchdogOf({}))
  for (const changes of [{ panic: 1e300 }, { panic: 2_000_000_000 }, { panic: -2_000_000_000 }, { panic: 0.5 }, { epoch: Number.MAX_SAFE_INTEGER }, { timeout: 1e12 }]) assert.ok('garbage' in watchdogOf(changes), JSON.stringify(changes))
})

test('vitals are a byte each: rounded, cut at what a byte can tell, and no less told by a neighbour that knows none', () => {
  const full = frameOf({ say: 'beat', count: 7, kubelet: 'ok', vitals: { disk: 40.4, inodes: 100, memory: -3, temperature: 71.5, load: 400 } })
  assert.is(full.length, 18)
  assert.equal(vitalsIn(full), { disk: 40, inodes: 100, memory: 0, temperature: 72, load: 25.4 })
  assert.equal(vitalsIn(full.subarray(0, 15)), { disk: 40, inodes: 100 })
  assert.is(vitalsIn(full.subarray(0, 13)), undefined)
  assert.equal(vitalsIn(frameOf({ say: 'beat', count: 7, kubelet: 'ok', vitals: { load: Number.NaN, disk: 1 } })), { disk: 1 })
})

test('a beat is a few bytes, whatever it tells, and a share that is none tells nothing', () => {
  const full = frameOf({ say: 'beat', count: 7, kubelet: 'ok', gate: 'open', permit: 'running', runtime: 'ok', pressure: { cpu: 1.6, memory: 120, io: -3 }, storage: 'reached' })
  assert.is(full.length, 13)
  const read = readAgentWord(full)
  assert.equal('word' in read && read.word.say === 'beat' && read.word.pressure, { cpu: 2, memory: 100, io: 0 })
  for (const at of [9, 10, 11]) for (const share of [0, 102]) {
    const other = readAgentWord(full.with(at, share))
    assert.equal('word' in other && [other.word.say === 'beat' && other.word.pressure, 'storage' in other.word && other.word.storage], [undefined, 'reached'], `${at} ${share}`)
  }
})

test('a permit that is said again differs in its count alone, and leaves the one before as it was', () => {
  fc.assert(fc.property(fc.record({ say: say('permit'), count, leads: fc.boolean(), span: count, replicas: fc.array(address, { maxLength: mostReplicas }), says: memberSays }), count, (permit, next) => {
    const frame = frameOf(permit)
    assert.equal(permitAgain(frame, next), frameOf({ ...permit, count: next }))
    assert.equal(frame, frameOf(permit))
  }))
})

test('fields and bytes that a later version adds are passed over', () => {
  assert.equal(readAgentWord(json({ ...goodHello, color: 'red' })), { word: goodHello })
  const beat = frameOf({ say: 'beat', count: 7, kubelet: 'ill' })
  assert.equal(readAgentWord(Uint8Array.of(...beat, 9, 9)), { word: { say: 'beat', count: 7, kubelet: 'ill' } })
  const permit = frameOf({ say: 'permit', count: 7, leads: true, span: 20_000, replicas: ['a:1'] })
  assert.equal(readReplicaWord(Uint8Array.of(...permit, 9)), { word: { say: 'permit', count: 7, leads: true, span: 20_000, replicas: ['a:1'] } })
})

test('what a neighbour of the next minor version names, and this one does not know, ends no link', () => {
  assert.equal(readAgentWord(json({ say: 'clean', report: { state: 'dirty', leftovers: [{ kind: 'dust', path: '/' }] } })), {
    word: { say: 'clean', report: { state: 'dirty', leftovers: [{ kind: 'other', path: '/' }] } },
  })
  assert.equal(readAgentWord(json({ ...goodHello, before: 'hibernated' })), { word: goodHello })
  assert.equal(readAgentWord(Uint8Array.of(...frameOf({ say: 'beat', count: 1, kubelet: 'ok' }), 200)), { word: { say: 'beat', count: 1, kubelet: 'ok' } })
  assert.equal(readAgentWord(Uint8Array.of(1, 3, 0, 0, 0, 1)), { word: { say: 'beat', count: 1, kubelet: 'unknown' } })
})

test('a state of the next minor version is taken for the one that promises least, so that nothing better that was said before it stands', () => {
  assert.equal(readAgentWord(json({ say: 'clean', report: { state: 'tidy' } })), { word: { say: 'clean', report: { state: 'unknown', reason: 'its agent tells it in a word of a later version' } } })
  assert.equal(readAgentWord(json({ say: 'goodbye', why: 'boredom' })), { word: { say: 'goodbye', why: 'restart' } })
  const read = watchdogOf({ state: 'disarming', machine: 'lent' })
  assert.equal('word' in read && read.word.say === 'watchdog' && [read.word.state, read.word.machine], ['unarmed', 'unknown'])
  assert.equal(readMemberAnswer(json({ say: 'member', nonce: 'n', says: 'perhaps' })), { word: { nonce: 'n', says: 'unknown' } })
})

test('a field that a later version adds anywhere in a word changes nothing of what is read', () => {
  const also = (value: unknown): unknown => Array.isArray(value) ? value.map(also)
    : typeof value === 'object' && value !== null ? { ...Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, also(inner)])), weather: 'fine' } : value
  for (const [words, read] of [[agentWord, readAgentWord], [replicaWord, readReplicaWord], [peerWord, readPeerWord]] as const) {
    fc.assert(fc.property(words as fc.Arbitrary<{ readonly say: string }>, (word) => { // each reader gets its own words
      assert.equal(read(json(also(word))), read(json(word)))
    }))
  }
})

test('a hello whose places are not as they should be is garbage that says so', () => {
  const places = { kubelet: '/var/lib/kubelet', runtime: '', gate: '' }
  assert.equal(readAgentWord(json({ ...goodHello, places: { ...places, attic: '/' } })), { word: { ...goodHello, places } })
  assert.equal(readAgentWord(json({ ...goodHello, places: '/' })), { garbage: 'hello: places is not an object' })
  assert.equal(readAgentWord(json({ ...goodHello, places: { ...places, runtime: 7 } })), { garbage: 'hello: places is not right: runtime is not a text of at most 256 characters' })
})

test('a hello of another major version is garbage that says so', () => {
  assert.equal(readAgentWord(json({ ...goodHello, version: 2 })), { garbage: 'hello: version is not 1' })
})

test('garbage is told by field', () => {
  assert.equal(readAgentWord(json({ ...goodHello, token: 5 })), { garbage: 'hello: token is not a text of at most 16384 characters' })
  assert.equal(readAgentWord(json({ ...goodHello, uptime: -1 })), { garbage: `hello: uptime is not a whole number up to ${Number.MAX_SAFE_INTEGER}` })
  assert.equal(readAgentWord(json({ say: 'goodbye', why: 3 })), { garbage: 'goodbye: why is not a text of at most 64 characters' })
  assert.equal(readAgentWord(json({ say: 'witness', id: 1, word: 'dreams' })), { garbage: 'witness: word is not one of hears, deaf' })
  assert.equal(readAgentWord(json({ say: 'clean' })), { garbage: 'clean: report is not a report' })
  assert.equal(readAgentWord(json({ say: 'clean', report: { state: 'dirty', leftovers: [{ path: '/' }] } })), {
    garbage: 'clean: report: leftovers: kind is not a text of at most 64 characters',
  })
  assert.equal(readAgentWord(json({ say: 'clean', report: { state: 'dirty', leftovers: [{ kind: 'mount', path: '/', since: 8.64e15 }] } })), {
    garbage: 'clean: report: leftovers: since is not a whole number up to 253402300799999',
  })
  assert.equal(readReplicaWord(json({ say: 'gate', boot: 'b', accepted: 'yes', reason: '', tolerating: [] })), { garbage: 'gate: accepted is not yes or no' })
  assert.equal(readReplicaWord(json({ say: 'check', pods: [1] })), { garbage: 'check: pods is not uids' })
  assert.equal(readAgentWord(new Uint8Array()), { garbage: 'an empty frame' })
  assert.equal(readAgentWord(Uint8Array.of(0x7b, 0xff)), { garbage: 'neither a known kind nor JSON' })
})

test('a short beat or permit, or one that lies about its length, is garbage', () => {
  assert.equal(readAgentWord(Uint8Array.of(1, 1)), { garbage: 'a beat of 2 bytes' })
  const permit = frameOf({ say: 'permit', count: 1, leads: false, span: 1, replicas: ['10.0.0.1:7443'] })
  assert.equal(readReplicaWord(permit.subarray(0, permit.length - 1)), { garbage: 'a permit that ends within an address' })
  assert.equal(readReplicaWord(permit.with(10, 17)), { garbage: 'a permit with 17 replicas' })
})

test('lists have limits, and the longest list still fits a frame', () => {
  const uid = '12345678-1234-1234-1234-123456789012'
  assert.ok('garbage' in readReplicaWord(json({ say: 'check', pods: Array.from({ length: podsAFrame + 1 }, () => uid) })))
  const leftover = { kind: 'mount', path: '/var/lib/kubelet/pods/'.padEnd(300, 'x'), pod: uid, volume: 'v'.repeat(100) } as const
  const longest = frameOf({ say: 'clean', report: { state: 'dirty', leftovers: Array.from({ length: mostLeftovers }, () => leftover) } })
  assert.ok(longest.length <= frameLimit && 'word' in readAgentWord(longest))
})

for (const [what, node, of] of [
  ['as they are', 'node', 'b007-0001/4711'], ['as long as they may be', 'n'.repeat(256), 'b'.repeat(256)], ['that JSON writes six times as long', '\u0001'.repeat(256), '\u0001'.repeat(256)],
] as const) {
  test(`boots in any number come whole, in frames that a link carries: names ${what}`, () => {
    for (const many of [0, 1, 200, 201, 1_000]) {
      const boots = Array.from({ length: many }, (_, index) => ({ node: `${index}${node}`.slice(0, 256), boot: of }))
      for (const [named, read] of [['revoked', readReplicaWord], ['revokes', readAgentWord]] as const) {
        const frames = framesOf({ say: named, boots })
        const words = frames.flatMap((frame) => {
          const one = read(frame)
          return 'word' in one && (one.word.say === 'revoked' || one.word.say === 'revokes') ? [one.word] : []
        })
        assert.equal(words.flatMap((word) => word.boots), boots)
        assert.equal(words.map(({ more }) => more === true), words.map((_, index) => index < frames.length - 1))
        assert.ok(frames.every((frame) => frame.length <= frameLimit))
      }
    }
  })
}

test('a list of pods longer than a frame holds comes in parts, each but the last saying that more follow', () => {
  const longest = Array.from({ length: mostPods }, (_, index) => String(index).padStart(60, '0'))
  const read = checkFrames(longest, { list: 'list-1' }).map((frame) => {
    assert.ok(frame.length <= frameLimit)
    const one = readReplicaWord(frame)
    if (!('word' in one) || one.word.say !== 'check') throw new Error(JSON.stringify(one))
    return one.word
  })
  assert.equal(read.flatMap(({ pods }) => pods), longest)
  assert.equal(read.map(({ more }) => more === true), read.map((_, index) => index < read.length - 1))
  assert.equal(read.map(({ list }) => list), read.map((_, index) => (index < read.length - 1 ? undefined : 'list-1')))
  assert.equal(checkFrames([]).map(readReplicaWord), [{ word: { say: 'check', pods: [] } }])
  assert.is(checkFrames(longest.slice(0, podsAFrame)).length, 1)
})

test('a name that no folder of kubelet bears is not told: it could make a frame too long, or garbage', () => {
  assert.equal(checkFrames(['x'.repeat(61), 'a/b', '\u0000', '', 'uid-1']).map(readReplicaWord), [{ word: { say: 'check', pods: ['uid-1'] } }])
})

test('a frame beyond the limit is garbage before it is parsed', () => {
  assert.equal(readAgentWord(new Uint8Array(frameLimit + 1).fill(0x7b)), { garbage: `a frame of ${frameLimit + 1} bytes, the limit is ${frameLimit}` })
})

test('the first word on a link may be an agent\'s or a replica\'s', () => {
  assert.equal(readFirstWord(json(goodHello)), { word: goodHello })
  const replica = { say: 'hello-replica', version: 1, token: 't', replica: 'r' }
  assert.equal(readFirstWord(json(replica)), { word: replica })
})

test('a whisper and its answer are read as they were said, and neither is taken for the other', () => {
  const answer = { nonce: 'n', boot: 'b/1', seal: 's' }
  assert.equal(readWhisper(whisperOf({ replica: 'r', nonce: 'n' })), { word: { replica: 'r', nonce: 'n' } })
  assert.equal(readWhisperAnswer(whisperOf(answer)), { word: answer })
  assert.equal(readWhisper(whisperOf(answer)), { unknown: 'whispered' })
  assert.ok('garbage' in readWhisper(json({ say: 'whisper', replica: 'r', nonce: 'n', filler: 'x'.repeat(1_000) })))
})

test('a beat weighs six bytes', () => {
  assert.is(frameOf({ say: 'beat', count: 4_000_000_000, kubelet: 'ok' }).length, 6)
  assert.is(frameOf({ say: 'beat', count: 4_000_000_000, kubelet: 'ok', gate: 'open' }).length, 7)
})

test.run()
