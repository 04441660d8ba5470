import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { RevokedWord, SelfStopWord } from '../../core/beat.ts'
import type { WatchdogKept, WatchdogSaid } from '../../core/watchdog.ts'
import type { Observed, NodeSeen } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import type { Beats } from '../../coordinator/beats.ts'
import type { Recorder } from '../../coordinator/events.ts'
import type { Observation } from '../../coordinator/observe.ts'
import type { Row } from '../../coordinator/row.ts'
import { selfStopTeller } from '../../coordinator/self-stop.ts'
import { silentLog } from '../../edge/log.ts'
import { beat, boot, incident, node, now as start, policy, proofRecord, record, self, seen as seenOf } from '../core/world.ts'

const test = suite('self-stop')

const stopping: Policy = { ...policy, giveUp: 'stop' }
const names = ['node-1', 'node-2', 'node-3', 'node-4']
const able: Partial<NodeSeen> = { beat: beat({ permit: 'running' }) }
const all = (changes: Partial<NodeSeen> = {}) => names.map((name) => node({ name, zone: `zone-${name}`, ...able, ...(name === 'node-2' ? changes : {}) }))
const proven = () => incident({ phase: 'Running', proof: proofRecord() })

/** What the agents are told, one after the other, of what is seen then. */
function teller() {
  let seen: Observed = seenOf(all())
  let at = start
  let nonces = 0
  const permits = new Map<string, string>()
  const words = new Map<string, Parameters<Beats['say']>[1]>()
  // Of the observation only what is seen is asked, and of its rows only what the core sees.
  const observation = { get seen() { return seen }, row: (name: string) => seen.nodes.get(name) } as unknown as Pick<Observation, 'seen' | 'row'> & { row(name: string): Row | undefined }
  const beats: Pick<Beats, 'nodes' | 'heard' | 'agent' | 'permits' | 'say' | 'nonce'> = {
    nonce: () => `key ${(nonces += 1)}`,
    nodes: () => names, heard: (name) => seen.nodes.get(name)?.beat,
    agent: (name) => ({ nodeUid: '', pod: '', podUid: '', agent: '', boot, machine: '', uptime: 0, helloAt: 0, remote: '', whisperAddress: `${name}:7416`, linked: true }),
    permits: (name, _, says) => void permits.set(name, says),
    say: (name, word) => void words.set(`${name} ${word.say}`, word),
  }
  const said: string[] = []
  const events: string[] = []
  const recorder: Recorder = { say: ({ regarding, reason, type }) => void events.push(`${type} ${reason} on ${regarding.kind} ${regarding.name}`), close: async () => undefined }
  const one = selfStopTeller({ observation, beats, recorder, now: () => at, log: { ...silentLog, warn: (facts, message) => { said.push(`${JSON.stringify(facts)} ${message}`) } } })
  return {
    permits, words, said, events,
    /** A second later. */
    tell(next: Observed, policies: readonly Policy[] = [stopping]) {
      at += 1_000
      seen = { ...next, self: { ...next.self, freshAt: at, apiAnsweredAt: at } }
      one.now(policies)
    },
    asked: (name: string) => words.get(`${name} self-stop`) as SelfStopWord | undefined, // said under that name
    revoked: (name: string) => words.get(`${name} revoked`) as RevokedWord | undefined, // likewise
  }
}

test('where no policy asks for it nobody is told anything, and each permit still says what it is worth', () => {
  const on = teller()
  on.tell(seenOf(all(), [proven()]), [policy])
  assert.equal([...on.words.keys()], [])
  assert.equal([on.permits.get('node-1'), on.permits.get('node-2')], ['permitted', 'revoked'])
})

test('each node is told what is asked of it, and where its members answer', () => {
  const on = teller()
  on.tell(seenOf(all()))
  assert.equal(on.asked('node-2'), { say: 'self-stop', node: 'node-2', giveUp: 'stop', members: ['node-1:7416', 'node-3:7416', 'node-4:7416'] })
  assert.equal(on.revoked('node-1'), { say: 'revoked', term: 3, boots: [] })
})

test('a node that no policy selects, or one that is a dry run or paused, is asked for nothing', () => {
  for (const own of [{ ...stopping, nodeLabels: { rack: 'other' } }, { ...stopping, mode: 'dryRun' as const }, { ...stopping, pause: { reason: 'hands', by: 'ops' } }]) {
    const on = teller()
    on.tell(seenOf(all()), [own])
    assert.equal(on.asked('node-2'), { say: 'self-stop', node: 'node-2', giveUp: 'never', members: [] })
  }
  const on = teller()
  on.tell(seenOf(all(), [], self({ pause: { reason: 'hands', by: 'ops' } })))
  assert.is(on.asked('node-2')?.giveUp, 'never')
})

test('a policy that does not ask for it any more takes it back', () => {
  const on = teller()
  on.tell(seenOf(all()))
  on.tell(seenOf(all()), [policy])
  assert.is(on.asked('node-2')?.giveUp, 'never')
})

test('an agent that is silent, or cannot give up itself, is nobody\'s member', () => {
  for (const silent of [{ beat: beat({ permit: 'running', at: start - 11_000 }) }, { beat: beat() }, { gone: true }] satisfies Partial<NodeSeen>[]) {
    const on = teller()
    on.tell(seenOf(all(silent)))
    assert.equal(on.asked('node-1')?.members, ['node-3:7416', 'node-4:7416'])
  }
})

test('a proof revokes the permit of its boot, with the node\'s members too, also of a node that is gone, until the incident is over', () => {
  const on = teller()
  on.tell(seenOf(all()))
  on.tell(seenOf(all(), [proven()]))
  const boots = [{ node: 'node-2', boot }]
  assert.equal(names.map((name) => on.revoked(name)?.boots), [boots, [], boots, boots])
  on.tell(seenOf(all({ gone: true }), [proven()]))
  for (let second = 0; second < 10; second += 1) on.tell(seenOf(all({ gone: true }), [proven()]))
  assert.equal(on.revoked('node-1')?.boots, boots)
  on.tell(seenOf(all(), [incident({ phase: 'Final', proof: proofRecord() })]))
  assert.equal([on.revoked('node-1')?.boots, on.permits.get('node-2')], [[], 'permitted'])
})

test('that a node has given up is said once, and again when it does so again', () => {
  const on = teller()
  const gaveUp = all({ beat: beat({ permit: 'gave up' }) })
  for (const nodes of [all(), gaveUp, gaveUp]) on.tell(seenOf(nodes))
  assert.equal(on.said, ['{"node":"node-2"} the node has given up its workloads, for want of a permit'])
  for (const nodes of [all(), gaveUp]) on.tell(seenOf(nodes))
  assert.is(on.said.length, 2)
  assert.equal(on.events, ['Warning GaveUp on Node node-2', 'Warning GaveUp on Node node-2'])
  const again = teller()
  for (const permit of ['running', 'resumed', 'running', 'gave up', 'resumed'] as const) again.tell(seenOf(all({ beat: beat({ permit }) })))
  assert.is(again.events.length, 2, 'one that is permitted again before it is heard, and one that is told to go on')
  const { term: _, ...follower } = self()
  const other = teller()
  other.tell(seenOf(gaveUp, [], follower))
  assert.equal([other.said.length, other.events], [1, []], 'whoever does not lead writes nothing')
})

const dogged: Policy = { ...policy, giveUp: 'watchdog' }
const keptDog = (changes: Partial<WatchdogKept> = {}): WatchdogKept => ({ boot, state: 'armed', identity: 'i6300ESB timer', timeout: 30_000, panic: 0, machine: 'real', epoch: 1, memberships: [{ epoch: 1, agents: ['node-1', 'node-9'], replicas: ['replica-0'] }], ...changes })
const withDog = (watchdog: WatchdogKept, said: Partial<WatchdogSaid> = {}) => all({ record: record({ watchdog }), beat: beat({ permit: 'running', watchdog: { ...watchdog, ...said } }) })

test('with a watchdog a node is told of the members that stand on its record, and of those alone', () => {
  const on = teller()
  on.tell(seenOf(all()), [dogged])
  assert.equal(on.asked('node-2'), { say: 'self-stop', node: 'node-2', giveUp: 'stop', members: ['node-1:7416', 'node-3:7416', 'node-4:7416'] }, 'none are on record yet')
  on.tell(seenOf(withDog(keptDog())), [dogged])
  assert.equal(on.asked('node-2'), { say: 'self-stop', node: 'node-2', giveUp: 'stop', members: ['node-1:7416', 'node-9:7416'], membership: keptDog().memberships[0], key: 'key 1' })
  const given = (name: string) => JSON.stringify(on.words.get(`${name} keys`) ?? '').includes('{"node":"node-2","key":"key 1"}')
  assert.equal([given('node-1'), given('node-3')], [true, false], 'its members alone have its key')
  on.tell(seenOf(withDog(keptDog({ boot: 'another/1' }))), [dogged])
  assert.is(on.asked('node-2')?.membership, undefined, 'the record is of another boot')
})

test('whom this replica would name is told to the record, for as long as a watchdog is wanted', () => {
  const on = teller()
  const nodes = all()
  on.tell(seenOf(nodes), [dogged])
  assert.equal(nodes[1]?.members, { agents: ['node-1', 'node-3', 'node-4'], replicas: ['replica-0', 'replica-1'] })
  on.tell(seenOf(nodes), [stopping])
  assert.is(nodes[1]?.members, undefined)
})

test('that a permit is revoked is told to everybody whom the node may go by, also by a replica that never told it of them', () => {
  const memberships = [{ epoch: 1, agents: ['node-1'], replicas: [] }, { epoch: 2, agents: ['node-4'], replicas: [] }]
  const on = teller()
  on.tell(seenOf(all(), [incident({ phase: 'Running', revoked: { boot, at: '', watchdog: keptDog({ memberships }) } })]), [policy])
  assert.equal([names.map((name) => on.revoked(name)?.boots.length), on.permits.get('node-2')], [[1, 0, 0, 1], 'revoked'])
  on.tell(seenOf(all(), [incident({ phase: 'Done', revoked: { boot, at: '', watchdog: keptDog({ memberships }) } })]), [dogged])
  assert.equal([names.map((name) => on.revoked(name)?.boots.length), on.permits.get('node-2')], [[0, 0, 0, 0], 'permitted'], 'the need is over')
})

/** To node-2, which asks to disarm. */
function answered(watchdog: WatchdogKept, said: Partial<WatchdogSaid>, busy: readonly string[] = [], own = self()): unknown {
  const on = teller()
  on.tell(seenOf(withDog(watchdog, said).map((one) => ({ ...one, busy: new Set(busy) })), [], own), [dogged])
  return on.words.get('node-2 disarm')
}

test('a watchdog may be closed once it stands on record as unarmed, and nothing is being written there', () => {
  const unarmed = keptDog({ state: 'unarmed' })
  assert.equal(answered(unarmed, { state: 'armed', disarm: 2 }), { say: 'disarm', boot, disarm: 2 })
  assert.is(answered(keptDog(), { disarm: 2 }), undefined, 'armed on record')
  assert.is(answered(unarmed, { state: 'armed' }), undefined, 'nobody asks')
  assert.is(answered(keptDog({ state: 'unarmed', boot: 'another/1' }), { state: 'armed', disarm: 2 }), undefined, 'of another boot')
  assert.is(answered(unarmed, { state: 'armed', disarm: 2 }, ['record node-2']), undefined, 'a record is being written')
  const { term: _, ...follower } = self()
  assert.is(answered(unarmed, { state: 'armed', disarm: 2 }, [], follower), undefined, 'this replica does not lead')
})

test('a replica that cannot trust its own view says nothing new', () => {
  const on = teller()
  on.tell(seenOf(all()))
  on.tell(seenOf(all(), [proven()], self({ awakeSince: start + 2_000 - 500 })))
  assert.equal([on.revoked('node-1')?.boots, on.permits.get('node-2')], [[], 'permitted'])
})

test.run()
