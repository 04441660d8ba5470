import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { markBoot } from '../../agent/boot-mark.ts'
import { silentLog } from '../../edge/log.ts'
import { virtualClock } from '../../sim/clock.ts'
import { beatsWorld } from '../coordinator/beats-world.ts'

const test = suite('boot-mark')

function disk(held = new Map<string, string>()) {
  const clock = virtualClock()
  return { held, start: (boot: string) => markBoot({ clock, log: silentLog, disk: { load: async (name) => held.get(name), save: async (name, text) => void held.set(name, text) } }, boot) }
}

test('a boot after an orderly shutdown knows it, and one after a power cut knows that', async () => {
  const { start } = disk()
  const first = await start('b1')
  assert.is(first.told.before, undefined)
  await first.shutDown()
  assert.is((await start('b2')).told.before, 'shut down')
  assert.is((await start('b3')).told.before, 'cut off')
})

test('an agent that is started again in a boot still knows how the one before ended', async () => {
  const { start } = disk()
  await start('b1')
  assert.is((await start('b2')).told.before, 'cut off')
  assert.is((await start('b2')).told.before, 'cut off')
  const last = await start('b2')
  await last.shutDown()
  // The shutdown was called off: the agent runs on in the same boot, which then loses its power.
  assert.is((await start('b2')).told.before, 'cut off')
  assert.is((await start('b3')).told.before, 'cut off')
})

test('a mark that is spoilt, or was never written, is no word of order', async () => {
  for (const text of ['', '{', 'null', '7', '{"boot":"b1"}', '{"ended":true}', '{"boot":1,"ended":true}']) {
    assert.is((await disk(new Map([['boot.json', text]])).start('b2')).told.before, undefined, text)
  }
  assert.is((await disk(new Map([['boot.json', '{"boot":"b1","ended":"yes"}']])).start('b2')).told.before, 'cut off')
})

const refuse = async () => Promise.reject(new Error('EROFS: read-only file system'))
const never = () => new Promise<never>(() => undefined)

test('a disk that is full, read-only, gone or hanging tells nothing and holds nothing up for long', async () => {
  const clock = virtualClock()
  const readOnly = await markBoot({ clock, log: silentLog, disk: { load: refuse, save: refuse } }, 'b1')
  assert.equal(readOnly.told, {})
  await readOnly.shutDown()
  const hanging = markBoot({ clock, log: silentLog, disk: { load: never, save: never } }, 'b1')
  await clock.runFor(4_100)
  assert.equal((await hanging).told, {})
})

test('a boot whose disk takes nothing leaves the mark of the one before it, and the next one says whose that is', async () => {
  const clock = virtualClock()
  const { held, start } = disk()
  const first = await start('b1')
  await first.shutDown()
  const readOnly = await markBoot({ clock, log: silentLog, disk: { load: async (name) => held.get(name), save: refuse } }, 'b2')
  assert.equal(readOnly.told, { before: 'shut down', beforeBoot: 'b1' })
  assert.equal((await start('b3')).told, { before: 'shut down', beforeBoot: 'b1' })
  assert.equal((await start('b3')).told, { before: 'shut down', beforeBoot: 'b1' }, 'an agent that is started again says the same')
  assert.equal((await start('b4')).told, { before: 'cut off', beforeBoot: 'b3' })
})

test('the hello tells it to every replica', async () => {
  const world = beatsWorld()
  world.replica('replica-a')
  const first = world.agent('node-1')
  await world.clock.runFor(3_000)
  await first.agent.stop('shutdown')
  assert.equal(JSON.parse(first.disk.get('boot.json') ?? ''), { boot: 'b007-0001/4711', ended: true })
  const second = world.agent('node-1', { boot: 'b007-0002', disk: first.disk })
  await world.clock.runFor(3_000)
  assert.equal(JSON.parse(second.disk.get('boot.json') ?? ''), { boot: 'b007-0002/4711', ended: false, before: 'shut down', beforeBoot: 'b007-0001/4711' })
  await second.agent.stop('restart')
  assert.is(JSON.parse(second.disk.get('boot.json') ?? '').ended, false)
})

test.run()
