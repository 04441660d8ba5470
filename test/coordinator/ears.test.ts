import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { keepEars } from '../../coordinator/ears.ts'
import { virtualClock } from '../../sim/clock.ts'

const test = suite('ears')

/** Node x is asked about; who hears whom is up to the test, and who has no ear of its own. */
function room(heard: (witness: string, node: string) => boolean | undefined, mute: readonly string[] = []) {
  const clock = virtualClock(100_000)
  const asked: string[] = []
  const ears = keepEars({ clock, beats: {
    agent: (node) => (mute.includes(node) ? { } : { whisperAddress: `${node}:7000` }) as never, // only this of it is looked at
    nonce: () => 'n',
    async ask(witness, node) {
      asked.push(`${witness} of ${node}`)
      await clock.wait(10)
      const hears = heard(witness, node)
      return hears === undefined ? undefined : { word: hears ? 'hears' : 'deaf', proven: hears }
    },
  } })
  return { clock, asked, async ask(witness = 'w', since = clock.now() - 3_000, well: readonly string[] = ['a', 'b', 'c']) {
    asked.length = 0
    const said = ears.ask(witness, 'x', since, well)
    await clock.runFor(20)
    return (await said)?.word ?? 'nothing'
  } }
}

test('deaf to one node counts beside an answer of another; deaf to all it has said nothing', async () => {
  const cases: [string, (witness: string, node: string) => boolean | undefined, string][] = [
    ['it hears both others', (_, node) => node !== 'x', 'deaf'],
    ['one of the others died with it', (_, node) => node === 'b', 'deaf'],
    ['whispers are swallowed', () => false, 'nothing'],
    ['it does not answer', () => undefined, 'nothing'],
    ['it answers of that node alone', (_, node) => (node === 'x' ? false : undefined), 'nothing'],
    ['it hears the node, and nobody else', (_, node) => node === 'x', 'hears'],
  ]
  for (const [what, heard, wanted] of cases) assert.is(await room(heard).ask(), wanted, what)
})

test('two others are asked about beside, and none while it was heard to hear since that node fell silent, of late', async () => {
  const on = room((_, node) => node !== 'x')
  const fell = on.clock.now() - 3_000
  await on.ask('w', fell)
  assert.equal(on.asked, ['w of x', 'w of a', 'w of b'])
  assert.is(await on.ask('w', fell), 'deaf')
  assert.equal(on.asked, ['w of x'])
  await on.ask('w', on.clock.now())
  assert.equal(on.asked, ['w of x', 'w of a', 'w of b'], 'another node has fallen silent since')
  await on.ask('v', fell)
  assert.equal(on.asked, ['v of x', 'v of a', 'v of b'], 'another witness')
  await on.clock.runFor(10_000)
  await on.ask('w', fell)
  assert.is(on.asked.length, 3, 'that was long ago')
})

test('an ear that was good is not believed for ever: it is lost, and its word with it', async () => {
  let swallowed = false
  const on = room((_, node) => !swallowed && node !== 'x')
  const fell = on.clock.now()
  assert.is(await on.ask('w', fell), 'deaf')
  swallowed = true
  await on.clock.runFor(11_000)
  assert.is(await on.ask('w', fell), 'nothing')
})

test('where nobody else is there to be heard its word is all there is; of a node without an ear nobody is asked', async () => {
  assert.is(await room(() => false).ask('w', 0, []), 'deaf')
  assert.is(await room(() => false).ask('w', 0, ['x']), 'deaf')
  assert.is(await room(() => false, ['a', 'b', 'c']).ask(), 'deaf', 'none of the others has an ear')
  const on = room(() => true, ['x'])
  assert.equal([await on.ask(), on.asked], ['nothing', []])
})

test.run()
