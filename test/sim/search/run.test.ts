import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { calm, draw, isPlain, kinds, type Schedule } from '../../../sim/search/schedule.ts'
import { run } from '../../../sim/search/run.ts'
import type { Trouble } from '../../../sim/search/trouble.ts'

const test = suite('search: a run')

const usual: Schedule['scene'] = { nodes: 5, zones: 3, replicas: 2, profile: 'fast', feed: 'own' }
/** Each trouble alone is over in a minute. */
const brief = { reliefAt: 60_000, shortest: 60_000 }
const trouble = (does: string, wanted: Partial<Trouble> = {}): Trouble => ({ does, at: 1_000, span: 20_000, on: 'victim', ...wanted })

test('a run is a function of its seed alone: twice the same, byte for byte', async () => {
  const seed = 22
  assert.ok(draw(seed).troubles.length > 2, 'a seed with troubles')
  const [one, other] = [await run(draw(seed)), await run(draw(seed))]
  assert.ok(one.transcript().split('\n').length > 200, 'something happened')
  assert.is(one.transcript(), other.transcript())
})

test('a schedule is plain words and numbers: written down and read again it is the same one', () => {
  for (let seed = 1; seed <= 50; seed += 1) {
    const schedule = draw(seed)
    assert.equal(JSON.parse(JSON.stringify(schedule)), schedule)
    assert.equal(draw(seed), schedule)
  }
})

test('seeds differ, and every kind of trouble is drawn by one of a hundred and more', () => {
  const drawn = Array.from({ length: 4_000 }, (_, index) => draw(index + 1))
  const share = (name: string): number => drawn.filter(({ troubles }) => troubles.some(({ does }) => does === name)).length / drawn.length
  assert.equal(Object.keys(kinds).filter((name) => share(name) < 0.01), [])
  assert.ok(drawn.filter(isPlain).length > 50)
  assert.ok(drawn.every(({ troubles, reliefAt }) => troubles.every(({ at }) => at < reliefAt)))
})

test('a death and nothing else is cleared, and counted as plain', async () => {
  const schedule: Schedule = { ...brief, seed: 3, scene: usual, troubles: [trouble('power is lost')] }
  assert.ok(isPlain(schedule))
  const { violations, incidents, marks, simulated } = await run(schedule)
  assert.equal(violations, [])
  assert.is(incidents, 1)
  assert.ok(marks.includes('proof found-off') && marks.includes('outcome Recovered'), marks.join())
  for (const mark of ['phase New', 'phase New to Running', 'phase Running to Final', 'moment ordered on']) assert.ok(marks.includes(mark), `${mark} is not among ${marks.join(', ')}`)
  assert.ok(simulated >= calm + brief.shortest)
})

test.run()
