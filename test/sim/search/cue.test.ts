import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { virtualClock } from '../../../sim/clock.ts'
import { seededChance } from '../../../sim/chance.ts'
import { cues, drawnCue, onCue } from '../../../sim/search/cue.ts'
import { draw } from '../../../sim/search/schedule.ts'
import { run } from '../../../sim/search/run.ts'
import type { Schedule } from '../../../sim/search/schedule.ts'
import type { Trouble } from '../../../sim/search/trouble.ts'
import { createTruth } from '../../../sim/truth.ts'

const test = suite('search: a cue')

const scene: Schedule['scene'] = { nodes: 5, zones: 3, replicas: 2, profile: 'fast', feed: 'own' }
const freeze: Trouble = { does: 'the kernel freezes for good', at: 1_000, span: 20_000, on: 'victim' }
const waiting: Trouble = { does: 'a replica is killed', after: 'an off begins', at: 500, span: 5_000, on: 'leader' }

test('a trouble comes so long after its cue, not before and not twice', async () => {
  const { struck, transcript } = await run({ seed: 5, scene, reliefAt: 60_000, shortest: 60_000, troubles: [freeze, waiting] })
  assert.ok(struck.includes(waiting.does))
  const lines = transcript().split('\n')
  const at = (words: RegExp): number => Number.parseFloat(lines.find((line) => words.test(line)) ?? '')
  const [ordered, came] = [at(/program runs .*action=off/), at(/trouble .*does=a replica is killed/)]
  assert.ok(Math.abs(came - ordered - 0.5) < 0.001, `${ordered} and ${came}`)
  assert.is(lines.filter((line) => /trouble {2}does=a replica is killed/.test(line)).length, 1)
})

test('a trouble whose cue never comes never comes, nor one whose cue comes after the relief', async () => {
  const still = await run({ seed: 5, scene, reliefAt: 30_000, shortest: 30_000, troubles: [waiting] })
  assert.equal(still.struck, [])
  const early = await run({ seed: 5, scene, reliefAt: 4_000, shortest: 30_000, troubles: [freeze, { ...waiting, at: 4_000 }] })
  assert.equal(early.struck, [freeze.does])
})

test('a cue is told once, and forgotten when it is called off', () => {
  const truth = createTruth(virtualClock())
  let told = 0
  onCue(truth, 'a volume is released', () => { told += 1 })
  onCue(truth, 'a volume is released', () => { told += 10 })()
  truth.note('volume attached')
  assert.is(told, 0)
  truth.note('volume released')
  truth.note('volume released')
  assert.is(told, 1)
})

test('every cue is drawn, and some troubles of some seeds wait for one', () => {
  const chance = seededChance(1)
  const drawn = new Set(Array.from({ length: 200 }, () => drawnCue(chance).after))
  assert.equal(cues.filter((cue) => !drawn.has(cue)), [])
  const troubles = Array.from({ length: 200 }, (_, index) => draw(index + 1)).flatMap((one) => one.troubles)
  const share = troubles.filter(({ after }) => after !== undefined).length / troubles.length
  assert.ok(share > 0.1 && share < 0.4, String(share))
})

test.run()
