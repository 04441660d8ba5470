// Challenges to a node and questions to witnesses: only what bears the seal of the node proves that it lives.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { AgentWord } from '../../core/beat.ts'
import { sealOf } from '../../edge/link-seal.ts'
import { beatsWorld } from './beats-world.ts'
import { boot, hello, puppet } from './puppet.ts'

const test = suite('beats: challenge')

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

test.run()
