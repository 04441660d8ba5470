import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { setImmediate as turned } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { keepNaps, napEvery } from '../../coordinator/naps.ts'
import type { Ms } from '../../core/model.ts'

const test = suite('naps')

interface Napping {
  time: Ms
  wanted: boolean
  readonly slept: Ms[]
  end(): void
}

function napping(): Napping {
  const one: Napping = { time: 0, wanted: true, slept: [], end: () => over() }
  const over = keepNaps({
    now: () => one.time,
    wanted: () => one.wanted,
    sleep(span) {
      one.slept.push(span)
      one.time += span
    },
  })
  return one
}

test('each turn of the event loop is followed by one nap, shorter by what the turn took, and by none if it took as long', async () => {
  const one = napping()
  for (const took of [0, 3, napEvery - 0.5, napEvery * 4, 1, 0]) {
    one.time += took
    await turned()
  }
  one.end()
  assert.equal(one.slept, [napEvery, napEvery - 3, napEvery - 1, napEvery])
})

test('nobody naps while it is not wanted, or once it was ended', async () => {
  const one = napping()
  one.wanted = false
  await turned()
  assert.equal(one.slept, [])
  one.wanted = true
  one.time += napEvery / 2
  await turned()
  assert.is(one.slept.length, 1)
  one.end()
  await turned()
  await turned()
  assert.is(one.slept.length, 1)
})

test('a nap stops the whole process, and naps keep none alive that has nothing else to do', () => {
  const script = `
    import { keepNaps, napEvery } from ${JSON.stringify(join(import.meta.dirname, '../../coordinator/naps.ts'))}
    const began = performance.now()
    keepNaps({ now: () => performance.now(), wanted: () => true })
    setImmediate(() => setImmediate(() => console.log(performance.now() - began >= napEvery / 2 ? 'stood' : 'ran on')))
  `
  const ran = spawnSync(execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  assert.equal([ran.stdout.trim(), ran.stderr, ran.status], ['stood', '', 0])
})

test.run()
