import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { AgentHost } from '../../agent/host.ts'
import type { SelfStopWord } from '../../core/beat.ts'
import { beatsWorld, type AgentChange, type Replica, type TestAgent, type World } from '../coordinator/beats-world.ts'

const test = suite('watchdog-feed')

const boot = 'b007-0001/4711'
const peers = ['node-2', 'node-3', 'node-4']
const key = Buffer.from('a key of this replica').toString('base64url')
const keys = [{ node: 'node-1', key }]

/** A device, and all that was done to it. */
function device(timeout = 30_000) {
  const state = { open: false, opened: 0, fed: [] as number[], disarmed: 0 }
  let clock: { now(): number } = { now: () => 0 }
  const watchdog: AgentHost['watchdog'] = {
    look: async () => ({ identity: 'i6300ESB timer', timeout }),
    open() {
      if (state.open) return { failed: 'EBUSY' }
      Object.assign(state, { open: true, opened: state.opened + 1 })
      state.fed.push(clock.now())
      return {
        feed() {
          state.fed.push(clock.now())
          return undefined
        },
        disarm() {
          Object.assign(state, { open: false, disarmed: state.disarmed + 1 })
          return undefined
        },
      }
    },
  }
  return { state, watchdog, by: (now: { now(): number }) => { clock = now } }
}

function word(change: Partial<SelfStopWord> = {}): SelfStopWord {
  return { say: 'self-stop', node: 'node-1', giveUp: 'stop', members: peers.map((name) => `${name}:7000`), membership: { epoch: 3, agents: peers, replicas: ['replica-a', 'replica-b'] }, key, ...change }
}

interface Stage {
  readonly world: World
  readonly leader: Replica
  readonly follower: Replica
  readonly dog: ReturnType<typeof device>
  readonly agent: TestAgent
  readonly peers: readonly TestAgent[]
  begin(change?: Partial<AgentChange>): TestAgent
  /** Seconds since it was fed last. */
  hungry(): number
  told(): unknown
}

async function stage(asked: SelfStopWord = word(), dog = device()): Promise<Stage> {
  const world = beatsWorld()
  dog.by(world.clock)
  const [leader, follower] = [world.replica('replica-a', true), world.replica('replica-b')]
  const others = peers.map((peer) => world.agent(peer))
  const disk = new Map<string, string>()
  const begin = (change: Partial<AgentChange> = {}): TestAgent => world.agent('node-1', { disk, watchdog: dog.watchdog, ...change })
  const agent = begin()
  await world.clock.runFor(3_000)
  for (const { beats } of [leader, follower]) for (const node of ['node-1', ...peers]) beats.permits(node, boot, 'permitted')
  leader.beats.say('node-1', asked)
  for (const peer of peers) leader.beats.say(peer, { say: 'revoked', term: 3, boots: [] })
  for (const peer of peers) leader.beats.say(peer, { say: 'keys', keys })
  await world.clock.runFor(15_000)
  return {
    world, leader, follower, dog, agent, peers: others, begin,
    hungry: () => Math.floor((world.clock.now() - (dog.state.fed.at(-1) ?? -Infinity)) / 1_000), told: () => leader.beats.heard('node-1')?.watchdog,
  }
}

const armed = { state: 'armed', identity: 'i6300ESB timer', timeout: 30_000, panic: 10, machine: 'real', epoch: 3 }

test('where it is asked for it is armed, announced, and fed each second', async () => {
  const on = await stage()
  assert.equal([on.dog.state.opened, on.told()], [1, armed])
  await on.world.clock.runFor(60_000)
  assert.equal([on.dog.state.opened, on.hungry()], [1, 0])
  assert.ok(on.dog.state.fed.every((at, index, all) => index === 0 || at - (all[index - 1] ?? 0) <= 2_000))
})

test('nobody arms it who is not asked, or is asked to stop alone, or told of no membership', async () => {
  const { membership: _, ...without } = word()
  for (const asked of [word({ giveUp: 'never' }), without]) {
    const on = await stage(asked)
    assert.equal([on.dog.state.opened, on.told()], [0, undefined])
  }
})

test('one that the agent before still has open is taken over soon after it ends', async () => {
  const dog = device()
  dog.state.open = true
  const on = await stage(word(), dog)
  assert.equal([dog.state.opened, on.told()], [0, { ...armed, state: 'unarmed', why: 'EBUSY' }])
  assert.is(on.agent.said.filter((line) => line.startsWith('the watchdog is not armed')).length, 1, 'said once')
  dog.state.open = false
  await on.world.clock.runFor(6_000)
  assert.equal([dog.state.opened, on.told()], [1, armed])
})

test('one that is too quick, or is not there, stays as it is, and that is announced', async () => {
  const quick = await stage(word(), device(6_000))
  assert.equal([quick.dog.state.opened, quick.told()], [0, { ...armed, state: 'unarmed', timeout: 6_000, why: 'its time-out is 6 s, and less than 10 s is shorter than a busy machine may stand still' }])
})

test('cut off from everybody it is fed for the permit and the time to stop, and never after', async () => {
  const on = await stage()
  on.world.network.cut('node-1')
  const at = on.world.clock.now()
  await on.world.clock.runFor(120_000)
  const last = (on.dog.state.fed.at(-1) ?? 0) - at
  assert.ok(last > 20_000 && last < 30_000, `${last}`)
  assert.equal([on.dog.state.disarmed, on.dog.state.opened], [0, 1])
})

test('revoked by the leader it is fed no more at once', async () => {
  const on = await stage()
  on.leader.beats.permits('node-1', boot, 'revoked')
  await on.world.clock.runFor(20_000)
  assert.ok(on.hungry() >= 10, `${on.hungry()}`)
})

test('without a leader most of its members keep it fed for as long as it takes, and fewer do not', async () => {
  const on = await stage()
  on.leader.stop()
  await on.world.clock.runFor(300_000)
  assert.is(on.hungry(), 0)
  on.world.network.cut('node-3')
  on.world.network.cut('node-4')
  await on.world.clock.runFor(60_000)
  assert.ok(on.hungry() >= 20)
})

test('a member that says it is revoked outweighs the others, and one that another name answers for is none', async () => {
  const on = await stage()
  for (const peer of peers) on.leader.beats.say(peer, { say: 'revoked', term: 3, boots: peer === 'node-2' ? [{ node: 'node-1', boot }] : [] })
  await on.world.clock.runFor(2_000)
  assert.equal(on.leader.beats.heard('node-2')?.revokes?.map(({ node, boot: of }) => ({ node, boot: of })), [{ node: 'node-1', boot }])
  on.leader.stop()
  await on.world.clock.runFor(60_000)
  assert.ok(on.hungry() >= 20)
  const moved = await stage(word({ membership: { epoch: 3, agents: ['node-7', 'node-8', 'node-9'], replicas: ['replica-a', 'replica-b'] } }))
  moved.leader.stop()
  await moved.world.clock.runFor(60_000)
  assert.ok(moved.hungry() >= 20)
})

test('a member that was not given the key counts for nothing, nor one that was given another; keys of earlier leaders do', async () => {
  const other = Buffer.from('another key').toString('base64url')
  for (const [given, fed] of [[other, false], [key, true]] as const) {
    const on = await stage(word({ key: given }))
    for (const later of ['b', 'c']) for (const peer of peers) on.leader.beats.say(peer, { say: 'keys', keys: [{ node: 'node-1', key: Buffer.from(later).toString('base64url') }] })
    await on.world.clock.runFor(2_000)
    on.leader.stop()
    await on.world.clock.runFor(90_000)
    assert.is(on.hungry() === 0, fed, given)
  }
  const { key: _, ...without } = word()
  const on = await stage(without)
  on.leader.stop()
  await on.world.clock.runFor(90_000)
  assert.ok(on.hungry() > 20, 'it was given none itself')
})

test('a leader that was deposed does not have its members permit again what the next one has revoked', async () => {
  const on = await stage()
  const boots = [{ node: 'node-1', boot }]
  on.follower.beats.setLeading(true)
  for (const peer of peers) on.follower.beats.say(peer, { say: 'revoked', term: 4, boots })
  await on.world.clock.runFor(10_000)
  for (const peer of peers) on.leader.beats.say(peer, { say: 'revoked', term: 3, boots: [] })
  await on.world.clock.runFor(10_000)
  assert.equal(peers.map((peer) => on.follower.beats.heard(peer)?.revokes?.map(({ node, boot: of }) => ({ node, boot: of }))), [boots, boots, boots])
})

test('what a member permits no more is forgotten when its agent begins anew, until it says so again', async () => {
  const on = await stage()
  on.leader.beats.say('node-2', { say: 'revoked', term: 3, boots: [{ node: 'node-1', boot }] })
  await on.world.clock.runFor(2_000)
  const at = on.leader.beats.heard('node-2')?.revokes?.[0]?.at
  assert.type(at, 'number')
  on.leader.beats.say('node-2', { say: 'revoked', term: 3, boots: [{ node: 'node-1', boot }, { node: 'node-3', boot }] })
  await on.world.clock.runFor(2_000)
  assert.is(on.leader.beats.heard('node-2')?.revokes?.[0]?.at, at, 'since when it was first said')
  void on.peers[0]?.agent.stop('restart')
  on.world.agent('node-2')
  await on.world.clock.runFor(5_000)
  assert.is(on.leader.beats.heard('node-2')?.revokes, undefined)
})

test('an agent that is started again, cut off, does not feed what the one before it left open', async () => {
  const on = await stage()
  on.world.network.cut('node-1')
  await on.world.clock.runFor(25_000)
  on.dog.state.open = false // as a kernel has it once that process is gone: armed, and closed
  const before = on.dog.state.opened
  const again = on.begin()
  await on.world.clock.runFor(60_000)
  assert.equal([on.dog.state.opened, again.agent.boot()], [before, boot])
})

test('started again among its members it feeds it by their word, before any leader is there', async () => {
  const on = await stage()
  on.leader.stop()
  const over = on.agent.agent.stop('restart')
  await on.world.clock.runFor(5_000)
  await over
  const before = on.dog.state.opened
  on.dog.state.open = false
  on.begin()
  await on.world.clock.runFor(25_000)
  assert.equal([on.dog.state.opened, on.hungry()], [before + 1, 0])
})

test('what the agent before left open is fed and let go of also where nobody wants it any more', async () => {
  const on = await stage()
  const over = on.agent.agent.stop('restart')
  await on.world.clock.runFor(5_000)
  await over
  on.dog.state.open = false
  on.leader.beats.say('node-1', word({ giveUp: 'never', members: [] }))
  on.begin()
  for (let tries = 0; tries < 80 && on.dog.state.disarmed === 0; tries += 1) {
    on.leader.beats.say('node-1', word({ giveUp: 'never', members: [] }))
    const { disarm } = on.leader.beats.heard('node-1')?.watchdog ?? {}
    if (disarm !== undefined) on.leader.beats.say('node-1', { say: 'disarm', boot, disarm })
    await on.world.clock.runFor(500)
  }
  assert.equal([on.dog.state.opened, on.dog.state.disarmed], [2, 1])
  const last = on.dog.state.fed.at(-1)
  await on.world.clock.runFor(30_000)
  assert.equal([on.dog.state.opened, on.dog.state.fed.at(-1)], [2, last], 'and not opened again')
})

test('an agent that ends disarms it once the leader has it on record', async () => {
  const on = await stage()
  const over = on.agent.agent.stop('restart')
  await on.world.clock.runFor(500)
  assert.equal([on.dog.state.disarmed, on.told()], [0, { ...armed, disarm: 1 }])
  on.leader.beats.say('node-1', { say: 'disarm', boot, disarm: 1 })
  await on.world.clock.runFor(500)
  await over
  assert.equal([on.dog.state.disarmed, on.leader.beats.heard('node-1')?.goodbye?.why], [1, 'restart'])
})

test('where no leader answers nothing is closed, and its goodbye is said all the same', async () => {
  const on = await stage()
  const over = on.agent.agent.stop('restart')
  await on.world.clock.runFor(5_000)
  await over
  assert.equal([on.dog.state.disarmed, on.leader.beats.heard('node-1')?.goodbye?.why, on.told()], [0, 'restart', armed])
})

test('an answer to another wish, of another boot, or of a replica that does not lead disarms nothing', async () => {
  const on = await stage()
  void on.agent.agent.stop('restart')
  await on.world.clock.runFor(300)
  on.leader.beats.say('node-1', { say: 'disarm', boot, disarm: 9 })
  on.leader.beats.say('node-1', { say: 'disarm', boot: 'another/1', disarm: 1 })
  on.follower.beats.say('node-1', { say: 'disarm', boot, disarm: 1 })
  await on.world.clock.runFor(5_000)
  assert.is(on.dog.state.disarmed, 0)
})

test('where the policy wants it no more it is fed, and its members count, until that is on record', async () => {
  const on = await stage()
  on.leader.beats.say('node-1', word({ giveUp: 'never', members: [] }))
  await on.world.clock.runFor(12_000)
  assert.equal([on.hungry(), on.leader.beats.heard('node-1')?.permit, on.dog.state.disarmed], [0, 'running', 0])
  for (let tries = 0; tries < 60 && on.dog.state.disarmed === 0; tries += 1) {
    const { disarm } = on.leader.beats.heard('node-1')?.watchdog ?? {}
    if (disarm !== undefined) on.leader.beats.say('node-1', { say: 'disarm', boot, disarm })
    await on.world.clock.runFor(500)
  }
  await on.world.clock.runFor(2_000)
  assert.equal([on.dog.state.disarmed, on.leader.beats.heard('node-1')?.permit, on.told()], [1, 'off', { ...armed, state: 'unarmed', epoch: 0 }])
})

test('a membership that was confirmed is not gone back on', async () => {
  const on = await stage()
  on.leader.beats.say('node-1', word({ membership: { epoch: 2, agents: ['node-9'], replicas: [] }, members: ['node-9:7000'] }))
  await on.world.clock.runFor(3_000)
  assert.equal(on.told(), armed)
  on.leader.beats.say('node-1', word({ membership: { epoch: 4, agents: peers, replicas: [] } }))
  await on.world.clock.runFor(3_000)
  assert.equal(on.told(), { ...armed, epoch: 4 })
})

test.run()
