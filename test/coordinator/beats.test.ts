// What agents say, and what is kept of it.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import type { AgentWord, CleanReport } from '../../core/beat.ts'
import { quarantineKey } from '../../core/clear.ts'
import { settled, stage } from '../../sim/stage.ts'
import { beatsWorld } from './beats-world.ts'
import { boot, hello, puppet } from './puppet.ts'

const test = suite('beats')

test('a node is heard from its first beat on, under the name that its token bears', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address, { ...hello, machine: 'uuid-1' })
  assert.is(replica.beats.heard('node-1'), undefined)
  one.say({ say: 'beat', count: 1, kubelet: 'ok' })
  await world.clock.runFor(10)
  assert.equal(replica.changes.map(({ node, what }) => ({ node, what })), [{ node: 'node-1', what: 'boot' }])
  assert.equal([replica.beats.heard('node-1')?.boot, replica.beats.heard('node-1')?.from], [boot, 'node-1'])
  const { nodeUid, podUid, machine, whisperAddress, linked } = replica.beats.agent('node-1') ?? {}
  assert.equal({ nodeUid, podUid, machine, whisperAddress, linked }, { nodeUid: 'uid-of-node-1', podUid: 'pod-1', machine: 'uuid-1', whisperAddress: 'node-1:7000', linked: true })
})

test('peers reach an agent at the address of its Node, also where it comes from another one; on loopback at what it comes from', async () => {
  const cases = [['10.244.2.1', '10.99.0.12', '10.99.0.12:7000'], ['10.244.2.1', 'fd00::12', '[fd00::12]:7000'], ['10.244.2.1', '', '10.244.2.1:7000'], ['[fd00::2]', undefined, '[fd00::2]:7000'],
    ['127.0.0.1', '10.99.0.12', '127.0.0.1:7000'], ['[::1]', '10.99.0.12', '[::1]:7000'], ['[::ffff:127.0.0.1]', '10.99.0.12', '[::ffff:127.0.0.1]:7000']] as const
  for (const [from, address, reached] of cases) {
    const world = beatsWorld()
    const replica = world.replica('replica-a', false, () => address)
    await puppet(world, replica.address, hello, from)
    assert.is(replica.beats.agent('node-1')?.whisperAddress, reached)
  }
})

test('an ordinary beat moves one number and tells nobody', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address)
  one.say({ say: 'beat', count: 1, kubelet: 'ok' })
  await world.clock.runFor(10)
  const seen = replica.beats.heard('node-1')
  const before = { ...seen }
  await world.clock.runFor(990)
  one.say({ say: 'beat', count: 2, kubelet: 'ok' })
  await world.clock.runFor(10)
  assert.is(replica.beats.heard('node-1'), seen)
  assert.equal({ ...seen, at: 0 }, { ...before, at: 0 })
  assert.is((seen?.at ?? 0) - (before.at ?? 0), 1_000)
  assert.is(replica.changes.length, 1)
})

test('when a boot began is told by the uptime of the hello, and counts from when that came, however long its token is reviewed', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address, { ...hello, uptime: 40_000 })
  const welcomedAt = world.clock.now()
  one.say({ say: 'beat', count: 1, kubelet: 'ok' })
  await world.clock.runFor(3_000)
  one.say({ say: 'beat', count: 2, kubelet: 'ok' })
  await world.clock.runFor(10)
  const bootedAt = replica.beats.heard('node-1')?.bootedAt ?? NaN
  assert.ok(bootedAt <= welcomedAt - 40_000 && bootedAt > welcomedAt - 41_000, `${bootedAt}`)
})

test('a beat of another boot begins a new record; what the old boot said is gone', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const old = await puppet(world, replica.address)
  old.say({ say: 'beat', count: 1, kubelet: 'ok' })
  old.say({ say: 'clean', report: { state: 'clean' } })
  await world.clock.runFor(10)
  const before = replica.beats.heard('node-1')
  assert.is(before?.clean?.report.state, 'clean')
  const fresh = await puppet(world, replica.address, { ...hello, boot: 'b007-0002/9' })
  assert.is(old.ended.length, 1)
  assert.is(replica.beats.heard('node-1'), before)
  fresh.say({ say: 'beat', count: 1, kubelet: 'ok' })
  await world.clock.runFor(10)
  const after = replica.beats.heard('node-1')
  assert.is(after?.boot, 'b007-0002/9')
  assert.is(after?.clean, undefined)
  assert.is.not(after, before)
})

test('a report that comes before the boot\'s first beat is not taken for the old boot\'s', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const old = await puppet(world, replica.address)
  old.say({ say: 'beat', count: 1, kubelet: 'ok' })
  await world.clock.runFor(10)
  const fresh = await puppet(world, replica.address, { ...hello, boot: 'b007-0002/9' })
  fresh.say({ say: 'clean', report: { state: 'clean' } })
  await world.clock.runFor(10)
  assert.is(replica.beats.heard('node-1')?.clean, undefined)
})

test('the newer of two links of one node is heard, the older is closed and has no say', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const older = await puppet(world, replica.address)
  const newer = await puppet(world, replica.address)
  assert.equal(older.ended, ['closed by the other end'])
  assert.is(replica.beats.linked(), 1)
  newer.say({ say: 'beat', count: 1, kubelet: 'ok' })
  await world.clock.runFor(10)
  assert.is(replica.beats.agent('node-1')?.linked, true)
  newer.link.close('enough')
  await world.clock.runFor(10)
  assert.is(replica.beats.agent('node-1')?.linked, false)
  assert.ok(replica.beats.heard('node-1'))
})

test('the first beat and then every fifth is answered by a permit that says who leads, where all replicas are and what is permitted', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a', true)
  const one = await puppet(world, replica.address)
  for (let count = 1; count <= 21; count += 1) {
    one.say({ say: 'beat', count, kubelet: 'ok' })
    await world.clock.runFor(1_000)
    if (count === 6) replica.beats.setLeading(false)
    if (count === 11) replica.beats.setReplicas(['replica-b:7443'])
    if (count === 16) replica.beats.permits('node-1', hello.boot, 'revoked')
  }
  const permits = one.heard.flatMap((word) => (word.say === 'permit' ? [word] : []))
  assert.equal(permits.map(({ count, leads, replicas, says }) => [count, leads, replicas.join(), says]), [
    [1, true, 'replica-a:7443', 'unknown'], [6, true, 'replica-a:7443', 'unknown'], [11, false, 'replica-a:7443', 'unknown'], [16, false, 'replica-b:7443', 'unknown'], [21, false, 'replica-b:7443', 'revoked'],
  ])
  assert.is(permits[0]?.span, 20_000)
})

test('kubelet\'s health, a goodbye and the return from it are told, each once', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address)
  const words: AgentWord[] = [
    { say: 'beat', count: 1, kubelet: 'ok' }, { say: 'beat', count: 2, kubelet: 'ill' }, { say: 'beat', count: 3, kubelet: 'ill' },
    { say: 'goodbye', why: 'reboot' },
  ]
  for (const word of words) one.say(word)
  await world.clock.runFor(10)
  assert.is(replica.beats.heard('node-1')?.goodbye?.why, 'reboot')
  one.say({ say: 'beat', count: 4, kubelet: 'ill' })
  await world.clock.runFor(10)
  assert.is(replica.beats.heard('node-1')?.goodbye, undefined)
  assert.equal(replica.changes.map(({ what }) => what), ['boot', 'kubelet', 'goodbye', 'back'])
})

test('a silence between two beats is a lapse, one that was announced is none', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address)
  one.say({ say: 'beat', count: 1, kubelet: 'ok' })
  one.say({ say: 'goodbye', why: 'restart' })
  await world.clock.runFor(10_000)
  one.say({ say: 'beat', count: 2, kubelet: 'ok' })
  await world.clock.runFor(4_000)
  assert.is(replica.beats.heard('node-1')?.goodbye, undefined)
  assert.is(replica.beats.heard('node-1')?.lapse, undefined)
  const from = replica.beats.heard('node-1')?.at
  one.say({ say: 'beat', count: 3, kubelet: 'ok' })
  await world.clock.runFor(10)
  assert.equal(replica.beats.heard('node-1')?.lapse, { from, to: replica.beats.heard('node-1')?.at })
})

test('a link without a beat for a minute is closed; what was heard stays', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address)
  one.say({ say: 'beat', count: 1, kubelet: 'ok' })
  await world.clock.runFor(55_000)
  assert.is(one.ended.length, 0)
  await world.clock.runFor(20_000)
  assert.is(one.ended.length, 1)
  assert.ok(replica.beats.heard('node-1'))
})

test('a node that is forgotten was never heard', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address)
  one.say({ say: 'beat', count: 1, kubelet: 'ok' })
  await world.clock.runFor(10)
  replica.beats.forget('node-1')
  await world.clock.runFor(10)
  assert.is(replica.beats.heard('node-1'), undefined)
  assert.is(one.ended.length, 1)
  assert.equal([...replica.beats.nodes()], [])
})

test('a check reaches the agent with the pods that belong, and is refused where it cannot', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address)
  assert.ok(replica.beats.check('node-1', ['a', 'b']))
  await world.clock.runFor(10)
  const last = one.heard.at(-1)
  assert.equal(last, { say: 'check', pods: ['a', 'b'], list: last?.say === 'check' ? last.list : '' })
  assert.not.ok(replica.beats.check('node-2', []))
})

test('a report is of the list that it answers: of the latest that was told here, and of none that was told before, elsewhere or on another link', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  let one = await puppet(world, replica.address)
  const dial = async (): Promise<void> => {
    one = await puppet(world, replica.address)
    one.say({ say: 'beat', count: 1, kubelet: 'ok' })
    await world.clock.runFor(10)
  }
  const told = async (asOf: number): Promise<string> => {
    replica.beats.check('node-1', [], {}, asOf)
    await world.clock.runFor(10)
    const last = one.heard.at(-1)
    return last?.say === 'check' ? last.list ?? '' : ''
  }
  const clean = async (list?: string): Promise<number | undefined> => {
    one.say({ say: 'clean', report: { state: 'clean' }, ...(list === undefined ? {} : { list }) })
    await world.clock.runFor(10)
    return replica.beats.heard('node-1')?.clean?.asOf
  }
  await dial()
  const first = await told(3)
  assert.is(await clean(first), 3)
  const second = await told(7)
  assert.is.not(first, second)
  assert.equal([await clean(first), await clean('another replica\'s'), await clean(second)], [-Infinity, -Infinity, 7])
  assert.is(await clean(), undefined, 'an agent of the version before does not say')
  await dial()
  assert.is(await clean(second), -Infinity)
})

test('since when a node is not clean is kept through one such word after the other, and forgotten with a clean one', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address)
  one.say({ say: 'beat', count: 1, kubelet: 'ok' })
  const since = async (report: CleanReport): Promise<number | undefined> => {
    one.say({ say: 'clean', report })
    await world.clock.runFor(10)
    return replica.beats.heard('node-1')?.clean?.uncleanSince
  }
  const dirty: CleanReport = { state: 'dirty', leftovers: [{ kind: 'mount', path: '/x' }] }
  const first = await since(dirty)
  assert.ok(first !== undefined && first > 0)
  assert.equal([await since({ state: 'unknown', reason: 'no list' }), await since(dirty), await since({ state: 'clean' })], [first, first, undefined])
  const again = await since(dirty)
  assert.ok(again !== undefined && again > first)
  await world.clock.runFor(60_000)
  const later = await since(dirty)
  assert.ok(later !== undefined && later > again + 50_000, 'nobody asked it meanwhile')
})

test('more pods than an agent can be told of are the reason that stands as its report', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address)
  one.say({ say: 'beat', count: 1, kubelet: 'ok' })
  await world.clock.runFor(10)
  const heard = one.heard.length
  assert.not.ok(replica.beats.check('node-1', Array.from({ length: 15_001 }, String)))
  await world.clock.runFor(10)
  assert.is(one.heard.length, heard)
  assert.equal(replica.beats.heard('node-1')?.clean, { at: world.clock.now() - 10, uncleanSince: world.clock.now() - 10, report: { state: 'unknown', reason: '15001 pods are bound to it, and its agent can be told of 15000 at most' } })
})

test('in the whole world a quarantined node with five thousand pods that are over, folder and all, becomes clean', async () => {
  const on = await stage()
  await on.run(60_000)
  const { machine } = on.world.nodes.get('node-2') ?? {}
  for (let index = 0; index < 5_000; index += 1) {
    const pod = on.world.server?.plant({
      apiVersion: 'v1', kind: 'Pod', metadata: { name: `job-${index}`, namespace: 'work' }, spec: { nodeName: 'node-2', containers: [{ name: 'c', image: 'i' }] }, status: { phase: 'Succeeded' },
    } as KubeObject) // whole enough for whoever lists it
    machine?.podFolders.add(pod?.metadata.uid ?? '')
  }
  const tainted = await settled(on.world, on.world.api.patch('/api/v1/nodes/node-2', 'merge', { spec: { taints: [{ key: quarantineKey, effect: 'NoSchedule' }] } }))
  assert.ok(tainted.ok)
  const lifted = async () => {
    const node = await settled(on.world, on.world.api.get<{ spec: { taints?: unknown[] } }>('/api/v1/nodes/node-2'))
    return node.ok && (node.value.spec.taints ?? []).length === 0
  }
  await on.until('the quarantine is lifted', lifted, 60_000)
})

test('a replica that stops closes every link and leaves no timer behind', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address)
  const waiting = await puppet(world, replica.address, 'nothing')
  replica.stop()
  await world.clock.runFor(10)
  assert.is(one.ended.length, 1)
  assert.is(waiting.ended.length, 1)
  assert.is(world.clock.pending(), 0)
})

test('how the boot before ended is kept from the hello of its boot', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address, { ...hello, before: 'cut off', beforeBoot: 'b007-0000/17' })
  one.say({ say: 'beat', count: 1, kubelet: 'ok', gate: 'open' })
  await world.clock.runFor(10)
  const { before, beforeBoot, gate } = replica.beats.heard('node-1') ?? {}
  assert.equal({ before, beforeBoot, gate }, { before: 'cut off', beforeBoot: 'b007-0000/17', gate: 'open' })
  one.say({ say: 'beat', count: 2, kubelet: 'ok' })
  one.say({ say: 'beat', count: 3, kubelet: 'ok' })
  await world.clock.runFor(10)
  assert.is(replica.beats.heard('node-1')?.gate, undefined)
  assert.equal(replica.changes.filter(({ what }) => what === 'gate').length, 1)
})

test.run()
