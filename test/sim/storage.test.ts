import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { virtualClock } from '../../sim/clock.ts'
import { createStorage } from '../../sim/storage.ts'

const test = suite('storage')

function world() {
  const clock = virtualClock()
  const noted: string[] = []
  const storage = createStorage(clock, (what) => noted.push(what))
  storage.addVolume('v')
  const writer = { node: 'n1', boot: 'b1', pod: 'work/db-0', podUid: 'u1' }
  return { clock, storage, noted, writer }
}

test('the storage takes a write from a node that it was never attached to', () => {
  const { storage, noted, writer } = world()
  storage.write('v', writer, 'data')
  assert.is(storage.log[0]?.writes, 1)
  assert.is(storage.log[0]?.late?.writes, 1)
  assert.ok(noted.includes('volume written after its release'))
})

test('writes without a gap are one stretch, after a pause another', async () => {
  const { clock, storage, writer } = world()
  storage.attach('v', 'n1')
  for (let count = 0; count < 5; count++) {
    storage.write('v', writer, 'data')
    await clock.runFor(100)
  }
  await clock.runFor(5_000)
  storage.write('v', writer, 'data')
  assert.equal(storage.log.map(({ writes, firstAt, lastAt }) => [writes, firstAt, lastAt]), [[5, 0, 400], [1, 5_500, 5_500]])
})

test('a release is known until the volume is attached again', async () => {
  const { clock, storage } = world()
  storage.attach('v', 'n1')
  assert.is(storage.releasedAt('v', 'n1'), undefined)
  await clock.runFor(70)
  storage.detach('v', 'n1')
  assert.is(storage.releasedAt('v', 'n1'), 70)
  storage.attach('v', 'n1')
  assert.is(storage.releasedAt('v', 'n1'), undefined)
  assert.equal(storage.attachedTo('v'), ['n1'])
})

test('a volume that lies apart is written only where it is attached, and whatever port is shut', () => {
  const { clock, writer } = world()
  const storage = createStorage(clock, () => undefined, () => false)
  storage.addVolume('v')
  storage.addVolume('w', { apart: true })
  for (const volume of ['v', 'w']) storage.attach(volume, 'n1')
  for (const volume of ['v', 'w']) storage.write(volume, writer, 'data')
  assert.equal([storage.reaches('n1'), storage.reaches('n1', 'w'), storage.log.map(({ volume, writes }) => [volume, writes])], [false, true, [['w', 1]]])
  storage.detach('w', 'n1')
  storage.write('w', writer, 'data')
  assert.equal(storage.log.map(({ writes }) => writes), [1])
})

test('an unknown volume is a mistake of the world, and said so', () => {
  const { storage, writer } = world()
  assert.throws(() => storage.write('w', writer, 'data'))
})

test.run()
