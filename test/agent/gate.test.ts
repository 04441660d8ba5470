import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { GateWord } from '../../core/beat.ts'
import { checkFrames, frameOf, readAgentWord } from '../../core/frame.ts'
import type { GateFacts, PodAsked } from '../../core/gate.ts'
import type { Log } from '../../edge/log.ts'
import { silentLog } from '../../edge/log.ts'
import type { Link } from '../../edge/link.ts'
import { keepGate, type GateKeeper } from '../../agent/gate.ts'
import { virtualClock } from '../../sim/clock.ts'
import { createRuntimeNri } from '../../sim/runtime-nri.ts'
import { beatsWorld } from '../coordinator/beats-world.ts'

const test = suite('gate')

const boot = 'b007-0001/4711'
const pod = (change: Partial<PodAsked> = {}): PodAsked => ({ namespace: 'work', name: 'db-0', uid: 'u1', annotations: { 'kubernetes.io/config.source': 'api' }, ...change })
const word = (change: Partial<GateWord> = {}): GateWord => ({ say: 'gate', boot, accepted: true, reason: '', tolerating: [], ...change })

/** A gate before a runtime, on a machine whose every part can be changed. */
function gated(disk = new Map<string, string>(), save?: (name: string, text: string) => Promise<void>) {
  const clock = virtualClock()
  const runtime = createRuntimeNri(clock)
  const said: string[] = []
  const note = (facts: object, message: string) => { said.push(`${message} ${JSON.stringify(facts)}`) }
  const log: Log = { ...silentLog, info: note, warn: note, error: note }
  const known: { -readonly [K in 'boot' | 'node' | 'leaders']: GateFacts[K] } = { boot, node: 'node-2', leaders: [] }
  const node = { nri: 'well' as 'well' | 'away' }
  let connected = 0
  const gate: GateKeeper = keepGate({
    host: {
      clock, log, chance: () => 0.5,
      disk: { load: async (name) => disk.get(name), save: save ?? (async (name, text) => void disk.set(name, text)) },
      async connectNri() {
        connected += 1
        if (node.nri === 'away') throw new Error('nobody listens')
        return runtime.connect()
      },
    },
    exemptNamespaces: ['kube-system'], known: () => known,
  })
  return {
    clock, runtime, disk, said, known, node, gate, connected: () => connected,
    async ask(asked = pod()) {
      const answer = runtime.ask(asked)
      await clock.runFor(2_500)
      return await answer ?? 'runs'
    },
  }
}

test('a pod waits from the start of a boot until the leader has accepted it and the node was found clean', async () => {
  const { clock, known, gate, ask } = gated()
  await clock.runFor(100)
  assert.match(await ask(), /holdfast: node-2 starts nothing yet: no coordinator that leads has been heard in this boot$/)
  assert.is(await ask(pod({ namespace: 'kube-system' })), 'runs')
  known.leaders = [word({ accepted: false, reason: 'it is being cleared', tolerating: ['u9'] })]
  assert.match(await ask(), /holdfast: node-2 is quarantined: it is being cleared$/)
  assert.is(await ask(pod({ uid: 'u9' })), 'runs')
  known.leaders = [word()]
  assert.match(await ask(), /cannot tell whether it is clean/)
  assert.is(gate.word(), 'shut')
  gate.found({ state: 'clean' })
  assert.is(await ask(), 'runs')
  assert.is(gate.word(), 'open')
})

test('two words of a leader within a beat: the first one counts as well', async () => {
  const { clock, known, gate, ask } = gated()
  known.leaders = [word()]
  gate.found({ state: 'clean' })
  await clock.runFor(100)
  assert.is(await ask(), 'runs')
  known.leaders = [word({ accepted: false })]
  gate.told()
  known.leaders = [word()]
  gate.told()
  assert.match(await ask(), /nobody has looked since its gate was shut/)
})

test('what was found clean before the leader held the boot opens nothing after it', async () => {
  const { clock, known, gate, ask, disk } = gated()
  known.leaders = [word()]
  gate.found({ state: 'clean' })
  await clock.runFor(100)
  assert.is(await ask(), 'runs')
  assert.equal(JSON.parse(disk.get('gate.json') ?? ''), { boot, gate: 'open' })
  known.leaders = [word({ accepted: false, reason: 'its proof was false' })]
  assert.match(await ask(), /its proof was false/)
  assert.equal(JSON.parse(disk.get('gate.json') ?? ''), { boot, gate: 'shut' })
  known.leaders = [word()]
  assert.match(await ask(), /nobody has looked since its gate was shut/)
  gate.found({ state: 'clean' })
  assert.is(await ask(), 'runs')
})

test('an agent that is started again in the same boot goes on by the leader\'s word, and never by its disk alone', async () => {
  const disk = new Map([['gate.json', JSON.stringify({ boot, gate: 'open' })]])
  const { clock, known, ask } = gated(disk)
  await clock.runFor(100)
  assert.match(await ask(), /no coordinator that leads/)
  known.leaders = [word()]
  assert.is(await ask(), 'runs')
  for (const text of [JSON.stringify({ boot: 'b007-0000/4711', gate: 'open' }), JSON.stringify({ boot, gate: 'shut' }), '{', '5', '', '{"gate":"open","boot":7}']) {
    const other = gated(new Map([['gate.json', text]]))
    other.known.leaders = [word()]
    await other.clock.runFor(100)
    assert.match(await other.ask(), /cannot tell whether it is clean/, text)
  }
})

test('a disk that is full or cannot be read opens nothing and stops nothing', async () => {
  const { clock, known, gate, ask, said } = gated(undefined, () => Promise.reject(new Error('ENOSPC: no space left on device')))
  await clock.runFor(100)
  assert.match(await ask(), /no coordinator/)
  known.leaders = [word()]
  gate.found({ state: 'clean' })
  assert.is(await ask(), 'runs')
  assert.ok(said.some((line) => line.includes('could not be remembered') && line.includes('ENOSPC')))
})

test('a runtime that was started again is asked for within seconds, and its first pods after that are refused again', async () => {
  const { clock, runtime, gate, ask, said } = gated()
  await clock.runFor(100)
  assert.match(await ask(), /no coordinator/)
  runtime.drop()
  assert.is(gate.word(), 'absent')
  assert.is(await ask(), 'runs', 'nobody is asked: that is what the beat says meanwhile')
  await clock.runFor(2_000)
  assert.is(gate.word(), 'shut')
  assert.match(await ask(), /no coordinator/)
  assert.is(said.filter((line) => line.startsWith('the runtime does not ask the gate')).length, 1)
})

test('a runtime that asked before, and is away for long, is asked for as soon as it listens again', async () => {
  const { clock, node, runtime, gate, ask, connected } = gated()
  await clock.runFor(100)
  node.nri = 'away'
  runtime.drop()
  await clock.runFor(600_000)
  const tries = connected()
  node.nri = 'well'
  await clock.runFor(400)
  assert.equal([gate.word(), connected() - tries], ['shut', 1])
  assert.match(await ask(), /no coordinator/)
})

test('a runtime that lets go of the gate each time is left alone for longer and longer', async () => {
  const { clock, runtime, connected } = gated()
  await clock.runFor(100)
  const before = connected()
  for (let second = 0; second < 600; second += 1) {
    runtime.drop()
    await clock.runFor(1_000)
  }
  assert.ok(connected() - before < 200, `${connected() - before} times in ten minutes`)
})

test('a runtime without NRI is tried for ever, ever more slowly, and told of once', async () => {
  const { clock, node, runtime, gate, said, connected } = gated()
  node.nri = 'away'
  runtime.drop()
  await clock.runFor(600_000)
  assert.is(gate.word(), 'absent')
  assert.ok(connected() >= 100 && connected() <= 140, `${connected()} tries in ten minutes`)
  assert.is(said.filter((line) => line.includes('nobody listens')).length, 1)
  node.nri = 'well'
  await clock.runFor(10_000)
  assert.is(gate.word(), 'shut')
})

test('a gate that stops leaves no connection and no timer', async () => {
  const { clock, runtime, gate } = gated()
  await clock.runFor(100)
  gate.stop()
  await clock.runFor(10_000)
  assert.equal([runtime.asks(), clock.pending()], [false, 0])
})

/** A whole agent with a gate, linked to a replica in the test's hand. */
function linked(welcome: { gates?: true }) {
  const world = beatsWorld()
  const links: Link[] = []
  const beats: string[] = []
  world.network.listen('replica-a:7443', (link) => {
    links.push(link)
    link.listen({
      frame(frame) {
        const read = readAgentWord(frame)
        if (!('word' in read)) return
        if (read.word.say === 'hello') link.send(frameOf({ say: 'welcome', node: 'node-2', replica: 'replica-a', key: 'key', ...welcome }))
        if (read.word.say !== 'beat') return
        beats.push(read.word.gate ?? 'none')
        link.send(frameOf({ say: 'permit', count: read.word.count, leads: true, span: 20_000, replicas: [] }))
      },
      closed() {}, // it is dialled again
    })
  })
  const runtime = createRuntimeNri(world.clock)
  world.agent('node-2', { replicas: ['replica-a:7443'], gate: {}, connectNri: async () => runtime.connect() })
  const ask = async () => {
    const answer = runtime.ask(pod())
    await world.clock.runFor(2_500)
    return await answer ?? 'runs'
  }
  return { world, beats, ask, send: (frame: Uint8Array) => links.at(-1)?.send(frame) }
}

test('the words that come over the link open the gate, and each beat tells of it', async () => {
  const { world, beats, ask, send } = linked({ gates: true })
  await world.clock.runFor(3_000)
  assert.match(await ask(), /holdfast: node-2 starts nothing yet: the coordinator has not accepted this boot/)
  assert.is(beats.at(-1), 'shut')
  send(frameOf(word()))
  for (const frame of checkFrames([])) send(frame)
  await world.clock.runFor(1_000)
  assert.is(await ask(), 'runs')
  assert.is(beats.at(-1), 'open')
  send(frameOf(word({ accepted: false, reason: 'it is being cleared' })))
  await world.clock.runFor(1_000)
  assert.match(await ask(), /node-2 is quarantined: it is being cleared/)
})

test('a leader of a release without gates keeps none shut', async () => {
  const { world, ask } = linked({})
  await world.clock.runFor(3_000)
  assert.is(await ask(), 'runs')
})

test.run()
