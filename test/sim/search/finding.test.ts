import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { excerpt, findingOf, type Play } from '../../../sim/search/finding.ts'
import { run } from '../../../sim/search/run.ts'
import type { Schedule } from '../../../sim/search/schedule.ts'

const test = suite('search: what is shown of a failure')

const scene: Schedule['scene'] = { nodes: 3, zones: 3, replicas: 2, profile: 'fast', feed: 'own' }
const schedule: Schedule = {
  seed: 5, scene, reliefAt: 30_000, shortest: 30_000,
  troubles: ['the kernel freezes for good', 'a replica is killed'].map((does, index) => ({ does, at: 1_000 + index, span: 900, on: index === 0 ? 'victim' : 'leader' })),
}
const stamped = (at: number, what: string): string => `${at.toFixed(4).padStart(10)}  ${what}`

test('what is left of the schedule, what happened under it, what the judge says, and the command that plays it again', async () => {
  let played: Schedule | undefined
  // As if a judge failed wherever the kernel freezes.
  const play: Play = async (one) => {
    const outcome = await run(one)
    played = one
    return { ...outcome, violations: one.troubles.some(({ does }) => does.startsWith('the kernel')) ? [{ judge: 'safety', what: 'two writers', from: 33_000 }] : [] }
  }
  const lines = await findingOf({ seed: 5, judge: 'safety', what: 'two writers', schedule }, { play })
  assert.is(lines[0], 'seed 5, for safety:')
  assert.equal(played?.troubles.map(({ does }) => does), ['the kernel freezes for good'], 'the last one played is the least')
  for (const words of ['  the kernel freezes for good (victim)', '  trouble  does=the kernel freezes for good', 'program runs', '  safety: two writers']) assert.ok(lines.some((line) => line.includes(words)), words)
  assert.not.ok(lines.some((line) => line.includes('a replica is killed')))
  assert.is(lines.at(-1), 'again, and whole: npm run sim -- --seed 5')
  assert.ok(lines.length < 350, String(lines.length))
})

test('where nobody plays it, or the run itself broke, it is told as it was drawn, and what was cut is part of the command', async () => {
  const cut = await findingOf({ seed: 5, judge: 'safety', what: 'two writers', schedule }, { without: 'two-readings' })
  assert.equal([cut.length, cut.at(-1)], [5, 'again, and whole: npm run sim -- --seed 5 --without two-readings'])
  const broke = await findingOf({ seed: 5, judge: 'broke', what: 'it threw' }, { play: () => Promise.reject(new Error('it threw')) })
  assert.is(broke.at(-1), 'again, and whole: npm run sim -- --seed 5')
})

test('of a long run the lines from the first trouble on and those up to the harm are shown, and how many are not', () => {
  const lines = Array.from({ length: 5_000 }, (_, index) => stamped(index / 10, index === 300 ? 'trouble  does=x' : `line ${index}`))
  const shown = excerpt(lines, 400_000)
  assert.equal([shown[0], shown[1]], ['… 300 lines', lines[300]])
  assert.ok(shown.includes(lines[449] ?? '') && !shown.includes(lines[450] ?? ''))
  assert.ok(shown.includes(lines[4_000] ?? '') && shown.includes(lines[3_900] ?? '') && !shown.includes(lines[4_020] ?? ''))
  assert.ok(shown.length < 320, String(shown.length))
  const hidden = shown.flatMap((line) => (line.startsWith('… ') ? [Number(line.split(' ')[1])] : [])).reduce((sum, count) => sum + count, 0)
  assert.is(hidden + shown.filter((line) => !line.startsWith('… ')).length, 5_000)
})

test('where nobody says when it went wrong the end of the run is shown; a short run is shown whole, and a long line is cut', () => {
  const lines = Array.from({ length: 1_000 }, (_, index) => stamped(index, 'x'))
  assert.is(excerpt(lines).at(-1), lines.at(-1))
  assert.equal(excerpt(lines.slice(0, 200)), lines.slice(0, 200))
  assert.ok((excerpt([stamped(1, 'y'.repeat(5_000))])[0] ?? '').length < 310)
})

test.run()
