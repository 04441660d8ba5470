import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { pressureIn, watchHealth } from '../../agent/health.ts'
import type { AgentHost } from '../../agent/host.ts'
import { silentLog } from '../../edge/log.ts'
import { virtualClock } from '../../sim/clock.ts'

const test = suite('health')

function watched(targets: readonly string[] = [], change: Partial<AgentHost> = {}) {
  const clock = virtualClock()
  const over = new AbortController()
  const said: string[] = []
  const health = watchHealth({
    clock, log: { ...silentLog, warn: (_, message) => { said.push(message) }, info: (_, message) => { said.push(message) } },
    read: async (file) => `some avg10=${{ 'pressure-cpu': '1.50', 'pressure-memory': '0.00', 'pressure-io': '99.99' }[String(file)]} avg60=0.00 avg300=0.00 total=1\n`,
    runtimeHealth: async () => 'ok', reachStorage: async () => 'reached', vitals: async () => undefined, ...change,
  }, targets, over.signal)
  return { clock, health, said, over }
}

test('a beat tells of the runtime, of what waits, and of the storage where some was named', async () => {
  const plain = watched()
  const named = watched(['tcp://10.0.0.5:3260'])
  for (const { clock } of [plain, named]) await clock.runFor(100)
  assert.equal(plain.health.word(), { runtime: 'ok', pressure: { cpu: 1.5, memory: 0, io: 99.99 } })
  assert.is(named.health.word().storage, 'reached')
})

const never = () => new Promise<never>(() => undefined)
const fails = async () => Promise.reject(new Error('gone'))

test('before the first answer nothing is known, and a host that never answers or fails leaves it so or ill', async () => {
  for (const [how, runtime, storage] of [[never, 'ill', 'unreached'], [fails, 'unknown', 'unknown']] as const) {
    const { clock, health } = watched(['/mnt/a'], { runtimeHealth: how, read: how, reachStorage: how })
    assert.equal(health.word(), { runtime: 'unknown', storage: 'unknown' })
    await clock.runFor(60_000)
    assert.equal(health.word(), { runtime, storage })
  }
})

test('one miss is not told, two in a row are, once, and so is the end of it', async () => {
  let reached: 'reached' | 'unreached' = 'reached'
  const { clock, health, said } = watched(['/mnt/a', '/mnt/b'], { reachStorage: async (target) => (target === '/mnt/a' ? reached : 'reached') })
  await clock.runFor(1_000)
  reached = 'unreached'
  await clock.runFor(15_000)
  assert.equal([health.word().storage, said], ['unknown', []])
  reached = 'reached'
  await clock.runFor(15_000)
  assert.is(health.word().storage, 'reached')
  reached = 'unreached'
  await clock.runFor(90_000)
  assert.equal([health.word().storage, said], ['unreached', ['storage is not reached']])
  reached = 'reached'
  await clock.runFor(15_000)
  assert.equal([health.word().storage, said], ['reached', ['storage is not reached', 'storage is reached again']])
})

test('what cannot be told of one storage is no word on another', async () => {
  const { clock, health } = watched(['/mnt/a', '/mnt/b'], { reachStorage: async (target) => (target === '/mnt/a' ? 'unknown' : 'reached') })
  await clock.runFor(60_000)
  assert.is(health.word().storage, 'unknown')
})

test('pressure as kernels write it, and as they do not', () => {
  const cases: [string | undefined, number | undefined][] = [
    ['some avg10=1.53 avg60=0.87 avg300=0.27 total=113536149\nfull avg10=0.40 avg60=0.00 avg300=0.00 total=15394414\n', 1.53],
    ['some avg10=100.00 avg60=0.00 avg300=0.00 total=1\n', 100], ['some avg10=0 avg60=0 ', 0],
    [undefined, undefined], ['', undefined], ['full avg10=1.00 avg60=0.00 ', undefined], ['some avg10=101.00 avg60=0.00 ', undefined], ['some avg10=-1 ', undefined], ['some avg10=x ', undefined],
  ]
  for (const [text, wanted] of cases) assert.is(pressureIn(text), wanted, text)
})

test('vitals are asked for once the agent has begun, every other minute, and the latest answer alone is told', async () => {
  const answers = [{ disk: 40 }, undefined, { disk: 41 }]
  const asked: number[] = []
  const { clock, health } = watched([], { vitals: async () => answers[asked.push(clock.now()) - 1] })
  const told: unknown[] = []
  for (const span of [10_000, 15_000, 120_000, 120_000]) {
    await clock.runFor(span)
    told.push(health.word().vitals)
  }
  assert.equal([told, asked], [[undefined, { disk: 40 }, undefined, { disk: 41 }], [20_000, 140_000, 260_000]])
})

test('it asks no more once the agent has stopped', async () => {
  let asked = 0
  const { clock, over } = watched([], { runtimeHealth: async () => { asked += 1; return 'ok' } })
  await clock.runFor(1_000)
  over.abort()
  await clock.runFor(60_000)
  assert.is(asked, 1)
})

test.run()
