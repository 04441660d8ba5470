import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { AgentHost } from '../../agent/host.ts'
import type { SelfStopWord } from '../../core/beat.ts'
import type { Ms } from '../../core/model.ts'
import type { ContainerSeen } from '../../core/mounts.ts'
import { gaveUpWithin } from '../../core/self-stop.ts'
import type { Clock } from '../../edge/clock.ts'
import { beatsWorld, type AgentChange, type Replica, type World } from '../coordinator/beats-world.ts'

const test = suite('self-stop')

const uid = (digit: number): string => `${String(digit).repeat(8)}-1111-4111-8111-111111111111`
const boot = 'b007-0001/4711'
const peers = ['node-2', 'node-3', 'node-4']

/** What runs on a node, and what was done to it. */
function runtime(clock: Clock) {
  const running = new Map<string, ContainerSeen>([
    ['c1', { id: 'c1', name: 'work/db-0 main', pod: uid(1) }], ['c2', { id: 'c2', name: 'work/web-1 main', pod: uid(2) }],
    ['s1', { id: 's1', name: 'work/db-0', pod: uid(1), sandbox: true }], ['k1', { id: 'k1', name: 'kube-system/proxy main', pod: uid(3) }],
  ])
  const frozen: string[] = []
  /** `hangs`: whoever asks waits for as long as he likes. `garbled`: it does what it is told, and nobody can read its list. */
  const state: { answers: boolean; hangs: boolean; garbled: boolean; stillAt: Ms; readonly stubborn: Set<string> } = { answers: true, hangs: false, garbled: false, stillAt: -Infinity, stubborn: new Set() }
  const host: Pick<AgentHost, 'containers' | 'stopContainer' | 'freezeContainer'> = {
    containers: async (span) => {
      if (state.hangs) await clock.wait(span)
      return state.answers && !state.hangs && !state.garbled ? [...running.values()] : { failed: 'it does not answer' }
    },
    stopContainer: async ({ id }, span) => {
      if (state.hangs) await clock.wait(span)
      return state.answers && !state.hangs && !state.stubborn.has(id) && running.delete(id) ? undefined : 'it does not end'
    },
    freezeContainer: async ({ id }) => {
      if (state.hangs) await clock.wait(1_000)
      state.stillAt = clock.now()
      frozen.push(id)
      return undefined
    },
  }
  return { running, frozen, state, host, ids: () => [...running.keys()].join(' ') }
}

/** Where members answer: their own ports for whispers. */
const at = (node: string) => `${node}:7000`

function word(change: Partial<SelfStopWord> = {}): SelfStopWord {
  return { say: 'self-stop', node: 'node-1', giveUp: 'stop', members: peers.map(at), ...change }
}

interface Stage {
  readonly world: World
  readonly leader: Replica
  readonly follower: Replica
  readonly runs: ReturnType<typeof runtime>
  readonly agent: ReturnType<World['agent']>
  /** Cuts the node off from everybody, and joins it to them again. */
  alone(): void
  together(): void
}

/** One node under test, asked to stop, its members, a leader and a follower. */
async function stage(change: Partial<AgentChange> = {}, asked: SelfStopWord = word()): Promise<Stage> {
  const world = beatsWorld()
  const [leader, follower] = [world.replica('replica-a', true), world.replica('replica-b')]
  for (const peer of peers) world.agent(peer)
  const runs = runtime(world.clock)
  const agent = world.agent('node-1', { exemptNamespaces: ['kube-system'], ...runs.host, ...change })
  await world.clock.runFor(3_000)
  for (const { beats } of [leader, follower]) for (const node of ['node-1', ...peers]) beats.permits(node, boot, 'permitted')
  leader.beats.say('node-1', asked)
  for (const peer of peers) leader.beats.say(peer, { say: 'revoked', boots: [] })
  await world.clock.runFor(10_000)
  return { world, leader, follower, runs, agent, alone: () => world.network.cut('node-1'), together: () => world.network.join('node-1') }
}

const permit = ({ leader }: Stage) => leader.beats.heard('node-1')?.permit

test('a node that is permitted runs on, and says so in its beats', async () => {
  const on = await stage()
  await on.world.clock.runFor(120_000)
  assert.equal([on.runs.ids(), permit(on)], ['c1 c2 s1 k1', 'running'])
})

test('a node that nobody asked runs on whatever happens', async () => {
  const on = await stage({}, word({ giveUp: 'never', members: [] }))
  assert.is(permit(on), 'off')
  on.alone()
  await on.world.clock.runFor(300_000)
  assert.is(on.runs.ids(), 'c1 c2 s1 k1')
})

test('cut off from everybody it stops its workloads once its permit has run out, not sooner, and leaves what is exempt', async () => {
  const on = await stage()
  on.alone()
  await on.world.clock.runFor(14_000)
  assert.is(on.runs.ids(), 'c1 c2 s1 k1')
  await on.world.clock.runFor(9_000)
  assert.is(on.runs.ids(), 's1 k1')
})

test('what its kubelet starts again is stopped again', async () => {
  const on = await stage()
  on.alone()
  await on.world.clock.runFor(25_000)
  on.runs.running.set('c3', { id: 'c3', name: 'work/db-0 main', pod: uid(1) })
  await on.world.clock.runFor(5_000)
  assert.is(on.runs.ids(), 's1 k1')
})

test('without a leader most of its members keep it running, for as long as it takes', async () => {
  const on = await stage()
  on.leader.stop()
  await on.world.clock.runFor(600_000)
  assert.is(on.runs.ids(), 'c1 c2 s1 k1')
})

test('fewer than most of them do not', async () => {
  const on = await stage()
  on.leader.stop()
  // Five were named: three members and two replicas. Two members and the follower are three; with one less it is no majority.
  on.world.network.cut('node-2')
  await on.world.clock.runFor(120_000)
  assert.is(on.runs.ids(), 'c1 c2 s1 k1')
  on.world.network.cut('node-3')
  await on.world.clock.runFor(30_000)
  assert.is(on.runs.ids(), 's1 k1')
})

test('a member that was told that the permit is revoked keeps nobody running', async () => {
  const on = await stage()
  on.leader.beats.say('node-2', { say: 'revoked', boots: [{ node: 'node-1', boot }] })
  await on.world.clock.runFor(1_000)
  on.leader.stop()
  await on.world.clock.runFor(30_000)
  assert.is(on.runs.ids(), 's1 k1')
})

test('members that no leader has told anything permit nobody', async () => {
  const on = await stage({}, word({ members: [...peers.map(at), ...['node-5', 'node-6', 'node-7', 'node-8'].map(at)] }))
  for (const peer of ['node-5', 'node-6', 'node-7', 'node-8']) on.world.agent(peer)
  await on.world.clock.runFor(5_000)
  on.leader.stop()
  await on.world.clock.runFor(30_000)
  assert.is(on.runs.ids(), 's1 k1')
})

/** The API server's own word, in which nothing speaks against the node, or a proof does. */
function api(proof?: object): Pick<AgentChange, 'askApi'> {
  const node = { metadata: { name: 'node-1' }, spec: {}, status: { nodeInfo: { bootID: 'b007-0001' } } }
  const fences = { metadata: {}, items: proof === undefined ? [] : [{ metadata: { name: 'node-1-abc-1' }, spec: { nodeName: 'node-1' }, status: { phase: 'Running', proof } }] }
  return { askApi: async (path) => ({ status: 200, body: JSON.stringify(path.startsWith('/api/v1/') ? node : fences) }) }
}

test('the API server\'s own word keeps it running too', async () => {
  const on = await stage(api())
  on.alone()
  await on.world.clock.runFor(300_000)
  assert.is(on.runs.ids(), 'c1 c2 s1 k1')
})

test('the API server\'s word that it was proven off stops it at once', async () => {
  const on = await stage(api({ kind: 'off', boot }))
  on.alone()
  await on.world.clock.runFor(17_000)
  assert.is(on.runs.ids(), 's1 k1', 'before its permit has run out')
})

test('the leader\'s word that its permit is revoked stops it at once, and its next permit lets it run again', async () => {
  const on = await stage()
  on.leader.beats.permits('node-1', boot, 'revoked')
  await on.world.clock.runFor(7_000)
  assert.equal([on.runs.ids(), permit(on)], ['s1 k1', 'gave up'])
  on.leader.beats.permits('node-1', boot, 'permitted')
  await on.world.clock.runFor(7_000)
  on.runs.running.set('c4', { id: 'c4', name: 'work/db-0 main', pod: uid(1) })
  await on.world.clock.runFor(30_000)
  assert.equal([on.runs.ids(), permit(on)], ['s1 k1 c4', 'running'])
})

test('one that was permitted again before anybody heard it says so, until a leader has answered that', async () => {
  let reached = false
  const { askApi } = api()
  const on = await stage({ askApi: async (path, span) => (reached && askApi !== undefined ? askApi(path, span) : { failed: 'no route' }) })
  const words: string[] = []
  const hear = async (span: number): Promise<void> => {
    for (let waited = 0; waited < span; waited += 250) {
      await on.world.clock.runFor(250)
      const said = permit(on) ?? 'nothing'
      if (words.at(-1) !== said) words.push(said)
    }
  }
  await hear(5_000)
  on.alone()
  await hear(40_000)
  reached = true
  await hear(120_000)
  on.together()
  await hear(40_000)
  assert.equal(words, ['running', 'resumed', 'running'])
})

test('a revocation is not talked over with anybody', async () => {
  const on = await stage({ askApi: () => new Promise(() => undefined) })
  for (const peer of peers) on.world.network.cut(peer)
  on.leader.beats.permits('node-1', boot, 'revoked')
  await on.world.clock.runFor(7_000)
  assert.is(on.runs.ids(), 's1 k1')
})

test('an API server that never answers keeps nobody running', async () => {
  const on = await stage({ askApi: () => new Promise(() => undefined) })
  on.alone()
  await on.world.clock.runFor(26_000)
  assert.is(on.runs.ids(), 's1 k1')
})

test('its members do not let a node run again that has given up', async () => {
  const on = await stage()
  on.alone()
  await on.world.clock.runFor(25_000)
  on.leader.stop()
  on.together()
  on.runs.running.set('c4', { id: 'c4', name: 'work/db-0 main', pod: uid(1) })
  await on.world.clock.runFor(60_000)
  assert.is(on.runs.ids(), 's1 k1')
})

test('what will not stop is frozen, once, and stopped as soon as that works; until then it is never let go', async () => {
  const on = await stage()
  on.runs.state.stubborn.add('c1')
  on.alone()
  await on.world.clock.runFor(30_000)
  assert.equal([on.runs.ids(), on.runs.frozen], ['c1 s1 k1', ['c1']])
  on.together()
  await on.world.clock.runFor(30_000)
  assert.equal([permit(on), on.runs.ids()], ['running', 'c1 s1 k1'])
  on.runs.state.stubborn.clear()
  await on.world.clock.runFor(5_000)
  assert.equal([on.runs.ids(), on.runs.frozen], ['s1 k1', ['c1']])
})

test('what was frozen is stopped also where nobody asks for anything any more', async () => {
  const on = await stage()
  on.runs.state.stubborn.add('c1')
  on.leader.beats.permits('node-1', boot, 'revoked')
  await on.world.clock.runFor(15_000)
  on.leader.beats.say('node-1', word({ giveUp: 'never', members: [] }))
  await on.world.clock.runFor(5_000)
  assert.equal([on.runs.ids(), permit(on)], ['c1 s1 k1', 'off'])
  on.runs.state.stubborn.clear()
  await on.world.clock.runFor(5_000)
  assert.is(on.runs.ids(), 's1 k1')
})

test('of a runtime that does not answer, what it was known to run is frozen, and what is exempt is not', async () => {
  const on = await stage()
  on.runs.state.answers = false
  on.alone()
  await on.world.clock.runFor(30_000)
  assert.equal(on.runs.frozen.toSorted(), ['c1', 'c2'])
})

test('one that has given up and was permitted again is no slower the next time, however long it was alone', async () => {
  for (let alone = 40_000; alone < 400_000; alone += 30_000) {
    const on = await stage()
    on.alone()
    await on.world.clock.runFor(alone)
    assert.is(on.runs.ids(), 's1 k1')
    on.together()
    await on.world.clock.runFor(30_000)
    assert.is(permit(on), 'running')
    on.runs.running.set('c3', { id: 'c3', name: 'work/db-0 main', pod: uid(1) })
    await on.world.clock.runFor(5_000)
    on.alone()
    await on.world.clock.runFor(gaveUpWithin)
    assert.is(on.runs.ids(), 's1 k1', `alone for ${alone} ms before`)
  }
})

test('with a runtime that hangs all of it stands still in time, whenever it is cut off, and is ended once the runtime goes on', async () => {
  const forSlowMachines = 5_000
  for (let phase = 0; phase < 35_000; phase += 1_500) {
    const on = await stage()
    await on.world.clock.runFor(phase)
    const cutAt = on.world.clock.now()
    on.alone()
    on.runs.state.hangs = true
    await on.world.clock.runFor(45_000)
    assert.equal(on.runs.frozen.toSorted(), ['c1', 'c2'])
    assert.ok(on.runs.state.stillAt - cutAt <= gaveUpWithin - forSlowMachines, `cut off ${phase} ms later: it ran for ${on.runs.state.stillAt - cutAt} ms`)
    on.runs.state.hangs = false
    await on.world.clock.runFor(5_000)
    assert.equal([on.runs.ids(), on.runs.frozen.length], ['s1 k1', 2])
  }
})

test('what its kubelet started again a moment before the runtime hangs is known, and stands still', async () => {
  for (let phase = 0; phase < 35_000; phase += 2_500) {
    const on = await stage()
    await on.world.clock.runFor(phase)
    on.runs.running.delete('c1')
    on.runs.running.set('c3', { id: 'c3', name: 'work/db-0 main', pod: uid(1) })
    await on.world.clock.runFor(12_000)
    on.alone()
    on.runs.state.hangs = true
    await on.world.clock.runFor(30_000)
    assert.equal(on.runs.frozen.toSorted(), ['c2', 'c3'], `it began ${phase} ms later`)
  }
})

test('where the runtime\'s list cannot be read, what cannot be frozen is stopped by it all the same', async () => {
  const on = await stage({ freezeContainer: async () => 'read-only file system' })
  on.runs.state.garbled = true
  on.alone()
  await on.world.clock.runFor(30_000)
  assert.is(on.runs.ids(), 's1 k1')
})

test('what could not even be frozen is said, and tried again', async () => {
  const on = await stage({ freezeContainer: async () => 'read-only file system' })
  on.runs.state.stubborn.add('c1')
  on.alone()
  await on.world.clock.runFor(30_000)
  assert.ok(on.agent.said.some((line) => line.startsWith('neither stopped nor frozen') && line.includes('read-only file system')))
  on.runs.state.stubborn.clear()
  await on.world.clock.runFor(5_000)
  assert.is(on.runs.ids(), 's1 k1')
})

test('an agent that is started again in the same boot goes on where it was: asked to stop, or given up', async () => {
  const on = await stage()
  on.alone()
  await on.agent.agent.stop('restart')
  const again = () => on.world.agent('node-1', { exemptNamespaces: ['kube-system'], ...on.runs.host, disk: on.agent.disk })
  const second = again()
  await on.world.clock.runFor(15_000)
  assert.is(on.runs.ids(), 'c1 c2 s1 k1', 'somebody may speak first')
  await on.world.clock.runFor(10_000)
  assert.is(on.runs.ids(), 's1 k1')
  await second.agent.stop('restart')
  on.runs.running.set('c4', { id: 'c4', name: 'work/db-0 main', pod: uid(1) })
  again()
  await on.world.clock.runFor(3_000)
  assert.is(on.runs.ids(), 's1 k1')
})

test('in the next boot nobody has asked for anything yet', async () => {
  const on = await stage()
  on.alone()
  await on.agent.agent.stop('restart')
  on.world.agent('node-1', { boot: 'b007-0002', exemptNamespaces: ['kube-system'], ...on.runs.host, disk: on.agent.disk })
  await on.world.clock.runFor(60_000)
  assert.is(on.runs.ids(), 'c1 c2 s1 k1')
})

test('a follower asks a node for nothing', async () => {
  const on = await stage({}, word({ giveUp: 'never', members: [] }))
  on.follower.beats.say('node-1', word())
  await on.world.clock.runFor(10_000)
  assert.is(permit(on), 'off')
})

test('a memory that is spoilt is none, and harms nothing', async () => {
  for (const text of ['{', '[]', '{"boot":"b007-0001/4711","node":7,"members":"all","frozen":{}}']) {
    const on = await stage({ disk: new Map([['self-stop.json', text]]) })
    assert.equal([on.runs.ids(), permit(on)], ['c1 c2 s1 k1', 'running'], text)
  }
})

const cutOff = (many: number) => Array.from({ length: many }, (_, index) => ({ node: index === 0 ? 'node-1' : `other-${index}`, boot: `${boot}${index === 0 ? '' : index}` }))

test('members are told of a whole cluster that is revoked, keep their links, confirm all of it, and permit none of it', async () => {
  const on = await stage()
  const boots = cutOff(5_000)
  on.leader.beats.say('node-1', word())
  for (const peer of peers) on.leader.beats.say(peer, { say: 'revoked', term: 3, boots })
  await on.world.clock.runFor(3_000)
  assert.equal(peers.map((peer) => [on.leader.beats.agent(peer)?.linked, on.leader.beats.heard(peer)?.revokes?.length]), peers.map(() => [true, 5_000]))
  on.leader.stop()
  await on.world.clock.runFor(25_000)
  assert.is(on.runs.ids(), 's1 k1', 'no member permits it')
})

test('members that are told of more than they can keep permit nobody', async () => {
  const on = await stage()
  for (const peer of peers) on.leader.beats.say(peer, { say: 'revoked', term: 3, boots: cutOff(10_002).toReversed() })
  await on.world.clock.runFor(3_000)
  assert.equal(peers.map((peer) => on.leader.beats.agent(peer)?.linked), [true, true, true])
  on.leader.stop()
  await on.world.clock.runFor(25_000)
  assert.is(on.runs.ids(), 's1 k1')
})

test.run()
