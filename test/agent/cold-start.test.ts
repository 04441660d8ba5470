import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import fc from 'fast-check'
import { keepColdStart, readSaid } from '../../agent/cold-start.ts'
import type { ApiAnswer } from '../../agent/host.ts'
import type { ColdWord } from '../../core/cold-start.ts'
import type { Boot } from '../../core/model.ts'
import { silentLog } from '../../edge/log.ts'
import { virtualClock } from '../../sim/clock.ts'
import { createRuntimeNri } from '../../sim/runtime-nri.ts'
import { beatsWorld, type AgentChange } from '../coordinator/beats-world.ts'

const test = suite('cold start')

const node = { metadata: { name: 'node-1' }, spec: {}, status: { nodeInfo: { bootID: 'b007-0001' } } }
const fences = (...items: object[]) => ({ metadata: {}, items })
const fence = (phase?: string, of = 'node-1') => ({ metadata: { name: 'node-1-abc-1' }, spec: { nodeName: of }, ...(phase === undefined ? {} : { status: { phase } }) })
const said = (own: unknown, list: unknown) => readSaid('node-1', JSON.stringify(own), JSON.stringify(list))

test('what the API server says is read with its taints and its incidents', () => {
  assert.equal(said({ ...node, spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } }, fences(fence('Final'))), { bootId: 'b007-0001', taints: ['a'], fences: [{ name: 'node-1-abc-1', phase: 'Final' }] })
})

const revoked = (value: unknown) => fences({ ...fence(), status: { phase: 'Running', revoked: value } })

test('a permit that was taken back is read, and one that cannot be read is no word at all', () => {
  assert.equal(said(node, revoked({ boot: 'b007-0001/4711', at: 'then' })), { bootId: 'b007-0001', taints: [], fences: [{ name: 'node-1-abc-1', phase: 'Running', revoked: { boot: 'b007-0001/4711' } }] })
  for (const odd of [{}, null, 'yes', { boot: 7 }]) assert.ok('failed' in said(node, revoked(odd)))
})

test('an incident without a status is one that has just begun', () => {
  assert.equal(said(node, fences(fence())), { bootId: 'b007-0001', taints: [], fences: [{ name: 'node-1-abc-1', phase: 'New' }] })
})

test('what is missing, of another kind, of another node or not whole is no word at all', () => {
  const odd: [unknown, unknown][] = [
    [{}, fences()], [{ ...node, metadata: { name: 'node-2' } }, fences()], [{ ...node, status: {} }, fences()], [{ ...node, spec: { taints: 'none' } }, fences()],
    [{ ...node, spec: { taints: [{}] } }, fences()], [node, {}], [node, { metadata: { continue: 'more' }, items: [] }], [node, fences(fence('Final', 'node-2'))], [node, fences({})],
    [node, fences({ ...fence(), status: { phase: 7 } })], [null, null],
  ]
  for (const [own, list] of odd) assert.ok('failed' in said(own, list), JSON.stringify([own, list]))
  assert.ok('failed' in readSaid('node-1', JSON.stringify(node).slice(0, -3), JSON.stringify(fences())))
})

test('garbage is never a word', () => {
  fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), fc.oneof(fc.string(), fc.json()), (own, list) => { assert.ok('failed' in readSaid('node-1', own, list)) }))
})

/** The keeper before an API server that answers as it is told. */
function keeper(answer: () => ApiAnswer) {
  const clock = virtualClock()
  const asked: number[] = []
  const told: ColdWord[] = []
  const state: { boot: Boot | undefined } = { boot: 'b007-0001/4711' }
  const over = new AbortController()
  void keepColdStart({
    host: { clock, chance: () => 0.5, log: silentLog, askApi: async (path) => {
      asked.push(clock.now())
      await clock.wait(10)
      return path.startsWith('/api/v1/nodes/') ? answer() : { status: 200, body: JSON.stringify(fences()) }
    } },
    node: 'node-1', waits: () => state.boot, told: (_, word) => void told.push(word), signal: over.signal,
  })
  return { clock, asked, told, state, over }
}

const good: ApiAnswer = { status: 200, body: JSON.stringify(node) }

test('nobody is asked as long as somebody leads', async () => {
  const one = keeper(() => good)
  one.state.boot = undefined
  await one.clock.runFor(600_000)
  assert.equal(one.asked, [])
})

test('it is asked after a quarter of a minute, and then ever more seldom', async () => {
  const one = keeper(() => good)
  await one.clock.runFor(600_000)
  assert.equal(one.asked.filter((_, index) => index % 2 === 0).slice(0, 4).map((at) => Math.round(at / 1_000)), [15, 45, 105, 225])
  assert.equal(one.told[0], { clear: true })
})

test('a refusal and a silence are no word, and say so', async () => {
  for (const [answer, says] of [[{ status: 403, body: '' }, /answers 403/], [{ failed: 'no answer within 5000 ms' }, /no answer/]] as const) {
    const one = keeper(() => answer)
    await one.clock.runFor(20_000)
    assert.match(one.told[0]?.clear === false ? one.told[0].reason : '', says)
  }
})

test('whoever leads by the time that the answer comes has the word', async () => {
  const one = keeper(() => {
    one.state.boot = undefined
    return good
  })
  await one.clock.runFor(60_000)
  assert.equal([one.asked.length, one.told], [2, []])
})

/** A whole agent on a node whose runtime asks its gate, and no coordinator anywhere. */
async function alone(change: { disk?: Map<string, string>; since?: number; own?: object; list?: object } = {}) {
  const world = beatsWorld()
  const runtime = createRuntimeNri(world.clock)
  const given: Partial<AgentChange> = {
    gate: { node: 'node-1' }, connectNri: async () => runtime.connect(), ...(change.disk === undefined ? {} : { disk: change.disk }),
    askApi: async (path) => ({ status: 200, body: JSON.stringify(path.startsWith('/api/v1/') ? change.own ?? node : change.list ?? fences()) }),
    containers: async () => [{ id: 'c1', name: 'work/db-0 main', pod: 'u7', since: change.since ?? world.clock.wall() }],
  }
  world.agent('node-1', given)
  await world.clock.runFor(40_000)
  const answer = runtime.ask({ namespace: 'work', name: 'web', uid: 'u1', annotations: {} })
  await world.clock.runFor(100)
  return await answer ?? 'starts'
}

test('a node of a cluster that starts cold opens by the API server\'s word and its own', async () => {
  assert.is(await alone(), 'starts')
})

test('it stays shut, and says why, under a quarantine, with an open incident, or where something is older than its boot', async () => {
  assert.match(await alone({ own: { ...node, spec: { taints: [{ key: 'holdfast.dev/quarantine' }] } } }), /no coordinator that leads has been heard in this boot, and it bears holdfast\.dev\/quarantine/)
  assert.match(await alone({ list: fences(fence('Running')) }), /node-1-abc-1 is open/)
  assert.match(await alone({ since: 0 }), /older than its boot/)
})

const disk = (gate: string, boot = 'b007-0001/4711') => new Map([['gate.json', JSON.stringify({ boot, gate })]])

test('after a restart of the agent it goes on with what its disk holds of this boot', async () => {
  assert.is(await alone({ disk: disk('open'), since: 0 }), 'starts')
  assert.match(await alone({ disk: disk('shut') }), /it was held before in this boot/)
  assert.match(await alone({ disk: disk('open', 'b007-0000/1'), since: 0 }), /older than its boot/)
})

test.run()
