import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { quarantineKey } from '../../core/clear.ts'
import { frameOf, readReplicaWord } from '../../core/frame.ts'
import type { AgentWord, PeerWord, ReplicaWord } from '../../core/beat.ts'
import { sealOf } from '../../edge/link-seal.ts'
import type { Link } from '../../edge/link.ts'
import { settled, stage } from '../../sim/stage.ts'
import { createRuntimeNri } from '../../sim/runtime-nri.ts'
import { beatsWorld, type World } from './beats-world.ts'

const test = suite('beats')

const boot = 'b007-0001/4711'

/** An agent that says only what the test says. */
interface Puppet {
  readonly link: Link
  readonly heard: ReplicaWord[]
  readonly ended: string[]
  say(word: AgentWord | PeerWord): void
  key(): string
}

const hello: AgentWord = { say: 'hello', version: 1, token: 'agent node-1 pod-1', agent: 'puppet', boot, uptime: 1_000, machine: 'uuid', whisperPort: 7_000 }

async function puppet(world: World, address: string, first: AgentWord | PeerWord | 'nothing' = hello): Promise<Puppet> {
  const dialling = world.network.dialer('node-1').dial(address, 1_000)
  await world.clock.runFor(2)
  const link = await dialling
  const heard: ReplicaWord[] = []
  const ended: string[] = []
  link.listen({
    frame(frame) {
      const read = readReplicaWord(frame)
      if ('word' in read) heard.push(read.word)
    },
    closed: (reason) => ended.push(reason),
  })
  const say = (word: AgentWord | PeerWord) => link.send(frameOf(word))
  if (first !== 'nothing') say(first)
  await world.clock.runFor(20)
  return { link, heard, ended, say, key: () => heard.flatMap((word) => (word.say === 'welcome' ? [word.key] : [])).at(-1) ?? '' }
}

function refusals(one: Puppet): readonly string[] {
  return one.heard.flatMap((word) => (word.say === 'refused' ? [word.reason] : []))
}

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

test('a token that is not believed is refused with the reason, and the node is not heard', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address, { ...hello, token: 'stolen goods' })
  one.say({ say: 'beat', count: 1, kubelet: 'ok' })
  await world.clock.runFor(10)
  assert.equal(refusals(one), ['the token is not valid: unknown token'])
  assert.is(one.ended.length, 1)
  assert.is(replica.beats.heard('node-1'), undefined)
})

test('who says no hello, or something else first, is refused', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const silent = await puppet(world, replica.address, 'nothing')
  await world.clock.runFor(5_000)
  assert.equal(refusals(silent), ['no hello within five seconds'])
  const rash = await puppet(world, replica.address, { say: 'beat', count: 1, kubelet: 'ok' })
  assert.equal(refusals(rash), ['a link cannot begin with beat'])
  const posing = await puppet(world, replica.address, { say: 'hello-replica', version: 1, token: 'agent node-1 pod-1', replica: 'me' })
  assert.equal(refusals(posing), ['an agent is no replica'])
  assert.equal(refusals(await puppet(world, replica.address, { ...hello, token: 'replica x' })), ['a replica is no agent'])
  assert.is(world.reviewed.length, 1)
})

test('garbage ends the link with the reason; an unknown word does not', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address)
  one.link.send(new TextEncoder().encode('{"say":"vitals"}'))
  await world.clock.runFor(10)
  assert.is(one.ended.length, 0)
  one.link.send(Uint8Array.of(1))
  await world.clock.runFor(10)
  assert.equal(refusals(one), ['a beat of 1 bytes'])
  assert.is(one.ended.length, 1)
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

test('the first beat and then every fifth is answered by a permit that says who leads and where all replicas are', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a', true)
  const one = await puppet(world, replica.address)
  for (let count = 1; count <= 11; count += 1) {
    one.say({ say: 'beat', count, kubelet: 'ok' })
    await world.clock.runFor(1_000)
    if (count === 6) replica.beats.setLeading(false)
  }
  const permits = one.heard.flatMap((word) => (word.say === 'permit' ? [word] : []))
  assert.equal(permits.map(({ count, leads }) => ({ count, leads })), [{ count: 1, leads: true }, { count: 6, leads: true }, { count: 11, leads: false }])
  assert.equal(permits[0]?.replicas, ['replica-a:7443'])
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

test('a challenge counts only when its own nonce comes back under a seal that holds', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address)
  one.say({ say: 'beat', count: 1, kubelet: 'ok' })
  await world.clock.runFor(10)
  const issuedAt = world.clock.now()
  const good = replica.beats.challenge('node-1')
  await world.clock.runFor(10)
  const nonce = one.heard.flatMap((word) => (word.say === 'challenge' ? [word.nonce] : [])).at(-1) ?? ''
  one.say({ say: 'answer', nonce, boot, seal: sealOf(one.key(), nonce, boot) })
  await world.clock.runFor(10)
  assert.equal(await good, { issuedAt, boot })
  assert.equal(replica.beats.heard('node-1')?.answered, { issuedAt, boot })

  for (const forge of [(next: string) => sealOf(one.key(), nonce, next === '' ? '' : boot), () => sealOf('AAAA', nonce, boot), () => '']) {
    const bad = replica.beats.challenge('node-1')
    await world.clock.runFor(10)
    const asked = one.heard.flatMap((word) => (word.say === 'challenge' ? [word.nonce] : [])).at(-1) ?? ''
    one.say({ say: 'answer', nonce: asked, boot, seal: forge(asked) })
    await world.clock.runFor(10)
    assert.is(await bad, undefined)
  }
  const silent = replica.beats.challenge('node-1')
  await world.clock.runFor(1_000)
  assert.is(await silent, undefined)
  assert.is(replica.beats.heard('node-1')?.answered?.issuedAt, issuedAt)
  assert.is(await replica.beats.challenge('nobody'), undefined)
})

test('an answer names the boot that sealed it, also when an older boot of the node answers', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address)
  one.say({ say: 'beat', count: 1, kubelet: 'ok' })
  const asked = replica.beats.challenge('node-1')
  await world.clock.runFor(10)
  const nonce = one.heard.flatMap((word) => (word.say === 'challenge' ? [word.nonce] : [])).at(-1) ?? ''
  one.say({ say: 'answer', nonce, boot: 'frozen/1', seal: sealOf(one.key(), nonce, 'frozen/1') })
  await world.clock.runFor(10)
  assert.is((await asked)?.boot, 'frozen/1')
})

test('a witness proves that it hears with the node\'s own seal; a bare or forged word is not proven', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const node = await puppet(world, replica.address)
  const witness = await puppet(world, replica.address, { ...hello, token: 'agent node-2 pod-2' })
  const nonce = replica.beats.nonce()
  const cases: readonly [Partial<AgentWord & { say: 'witness' }>, object][] = [
    [{ word: 'hears', boot, seal: sealOf(node.key(), nonce, boot) }, { word: 'hears', proven: true, boot }],
    [{ word: 'hears', boot, seal: sealOf(witness.key(), nonce, boot) }, { word: 'hears', proven: false, boot }],
    [{ word: 'hears', boot }, { word: 'hears', proven: false, boot }],
    [{ word: 'hears' }, { word: 'hears', proven: false }],
    [{ word: 'deaf', boot, seal: sealOf(node.key(), nonce, boot) }, { word: 'deaf', proven: false }],
  ]
  for (const [said, right] of cases) {
    const asked = replica.beats.ask('node-2', 'node-1', 'node-1:7000', nonce)
    await world.clock.runFor(10)
    const question = witness.heard.flatMap((word) => (word.say === 'ask' ? [word] : [])).at(-1)
    assert.equal({ node: question?.node, address: question?.address, nonce: question?.nonce }, { node: 'node-1', address: 'node-1:7000', nonce })
    witness.say({ say: 'witness', id: question?.id ?? 0, word: 'deaf', ...said })
    await world.clock.runFor(10)
    assert.equal(await asked, right)
  }
})

test('a witness that does not answer has said nothing, and nobody answers for another', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const node = await puppet(world, replica.address)
  await puppet(world, replica.address, { ...hello, token: 'agent node-2 pod-2' })
  const asked = replica.beats.ask('node-2', 'node-1', 'node-1:7000', replica.beats.nonce())
  await world.clock.runFor(10)
  for (let id = 0; id < 5; id += 1) node.say({ say: 'witness', id, word: 'deaf' })
  await world.clock.runFor(2_000)
  assert.is(await asked, undefined)
  assert.is(await replica.beats.ask('node-3', 'node-1', 'node-1:7000', 'nonce'), undefined)
})

test('an agent pod that ended takes its link along, and its token is believed no more', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address)
  one.say({ say: 'beat', count: 1, kubelet: 'ok' })
  await world.clock.runFor(10)
  replica.beats.drop('another pod')
  await world.clock.runFor(10)
  assert.is(one.ended.length, 0)
  replica.beats.drop('pod-1')
  await world.clock.runFor(10)
  assert.is(one.ended.length, 1)
  assert.ok(replica.beats.heard('node-1'))
  assert.equal(refusals(await puppet(world, replica.address)), ['the pod of this token has ended'])
})

test('a token is reviewed once for links that come and go, and again after a minute', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  await puppet(world, replica.address)
  await puppet(world, replica.address)
  assert.is(world.reviewed.length, 1)
  await world.clock.runFor(60_000)
  await puppet(world, replica.address)
  assert.is(world.reviewed.length, 2)
})

test('while the API server is away a link waits; it is welcomed when the API server is back, and refused after a minute', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  world.api = 'away'
  const one = await puppet(world, replica.address)
  await world.clock.runFor(20_000)
  assert.is(one.heard.length + one.ended.length, 0)
  world.api = 'well'
  await world.clock.runFor(5_000)
  assert.equal(one.heard.map((word) => word.say), ['welcome'])
  world.api = 'away'
  const other = await puppet(world, replica.address, { ...hello, token: 'agent node-2 pod-2' })
  await world.clock.runFor(70_000)
  assert.equal(refusals(other), ['the token could not be reviewed: nobody answers'])
})

test('at most thirty-two tokens are reviewed at once, and a link that ended meanwhile costs none', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const dialled = Promise.all(Array.from({ length: 100 }, (_, index) => world.network.dialer(`node-${index}`).dial(replica.address, 1_000)))
  await world.clock.runFor(2)
  const crowd = await dialled
  for (const [index, link] of crowd.entries()) {
    link.listen({ frame: () => undefined, closed: () => undefined })
    link.send(frameOf({ ...hello, token: `agent node-${index} pod-${index}` }))
  }
  await world.clock.runFor(1)
  for (const link of crowd.slice(90)) link.close('changed my mind')
  await world.clock.runFor(100)
  assert.is(world.reviewedAtOnce, 32)
  assert.is(world.reviewed.length, 90)
  assert.is(replica.beats.linked(), 90)
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
  assert.equal(one.heard.at(-1), { say: 'check', pods: ['a', 'b'] })
  assert.not.ok(replica.beats.check('node-2', []))
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
  assert.equal(replica.beats.heard('node-1')?.clean, { at: world.clock.now() - 10, report: { state: 'unknown', reason: '15001 pods are bound to it, and its agent can be told of 15000 at most' } })
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

/** A machine with a runtime that asks its plugins, and the agent that is one. */
function gated(world: ReturnType<typeof beatsWorld>, node: string) {
  const runtime = createRuntimeNri(world.clock)
  const one = world.agent(node, { gate: {}, connectNri: async () => runtime.connect() })
  return {
    ...one,
    async starts(uid = 'u1') {
      const answer = runtime.ask({ namespace: 'work', name: 'db-0', uid, annotations: {} })
      await world.clock.runFor(100)
      return await answer ?? 'starts'
    },
  }
}

const yes = { accepted: true, reason: '' }

test('a gate opens once the leader accepts the boot and the agent, told what belongs, finds its node clean', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a', true)
  const one = gated(world, 'node-1')
  await world.clock.runFor(3_000)
  assert.is(replica.beats.heard('node-1')?.gate, 'shut')
  assert.match(await one.starts(), /the coordinator has not accepted this boot/)
  replica.beats.gate('node-1', yes, undefined)
  await world.clock.runFor(100)
  assert.match(await one.starts(), /cannot tell whether it is clean/)
  replica.beats.check('node-1', [])
  await world.clock.runFor(2_000)
  assert.is(await one.starts(), 'starts')
  assert.is(replica.beats.heard('node-1')?.gate, 'open')
  assert.ok(replica.changes.some(({ what }) => what === 'gate'))
})

test('a quarantine shuts a gate that was open, but for pods that tolerate it, and says why', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a', true)
  const one = gated(world, 'node-1')
  await world.clock.runFor(3_000)
  replica.beats.gate('node-1', yes, undefined)
  replica.beats.check('node-1', [])
  await world.clock.runFor(2_000)
  assert.is(await one.starts(), 'starts')
  const item = { namespace: 'work', name: 'csi', uid: 'u9', resourceVersion: '1', owner: 'DaemonSet', priority: 0, terminating: false, phase: 'Running', finalizers: [], volumes: [], grace: 0, ended: true, toleratesEviction: false } as const
  replica.beats.gate('node-1', { accepted: false, reason: '2 left over on node-1' }, { askedAt: 0, listedAt: 0, items: [{ ...item, tolerates: true }, { ...item, uid: 'u1' }] })
  await world.clock.runFor(100)
  assert.match(await one.starts(), /node-1 is quarantined: 2 left over on node-1/)
  assert.is(await one.starts('u9'), 'starts')
})

test('the word of a replica that does not lead opens nothing', async () => {
  const world = beatsWorld()
  world.replica('replica-a', true)
  const follower = world.replica('replica-b')
  const one = gated(world, 'node-1')
  await world.clock.runFor(3_000)
  follower.beats.gate('node-1', yes, undefined)
  follower.beats.check('node-1', [])
  await world.clock.runFor(3_000)
  assert.match(await one.starts(), /has not accepted/)
})

test('a gate is told once what stays so, a reason with its numbers every five seconds, and another verdict at once', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a', true)
  const one = await puppet(world, replica.address, hello)
  replica.beats.gate('node-1', yes, undefined)
  one.say({ say: 'beat', count: 1, kubelet: 'ok', gate: 'shut' })
  await world.clock.runFor(10)
  const words = () => one.heard.flatMap((word) => (word.say === 'gate' ? [`${word.accepted} ${word.reason}`] : []))
  assert.equal(words(), [])
  const say = async (accepted: boolean, reason: string) => {
    replica.beats.gate('node-1', { accepted, reason }, undefined)
    await world.clock.runFor(10)
  }
  await say(false, '1 s')
  await say(false, '1 s')
  await say(false, '2 s')
  assert.equal(words(), ['false 1 s'])
  await say(true, '')
  await say(true, '')
  assert.equal(words(), ['false 1 s', 'true '])
  await say(false, '3 s')
  await world.clock.runFor(5_000)
  await say(false, '8 s')
  assert.equal(words().slice(2), ['false 3 s', 'false 8 s'])
})

test('how the boot before ended is kept from the hello of its boot', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const one = await puppet(world, replica.address, { ...hello, before: 'cut off' })
  one.say({ say: 'beat', count: 1, kubelet: 'ok', gate: 'open' })
  await world.clock.runFor(10)
  const { before, gate } = replica.beats.heard('node-1') ?? {}
  assert.equal({ before, gate }, { before: 'cut off', gate: 'open' })
  one.say({ say: 'beat', count: 2, kubelet: 'ok' })
  one.say({ say: 'beat', count: 3, kubelet: 'ok' })
  await world.clock.runFor(10)
  assert.is(replica.beats.heard('node-1')?.gate, undefined)
  assert.equal(replica.changes.filter(({ what }) => what === 'gate').length, 1)
})

test.run()
