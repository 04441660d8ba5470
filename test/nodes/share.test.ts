// What a commit runs of this folder: never nothing, never all, and over the commits everything.
import { globSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readWords, type Asked } from './share.ts'

const test = suite('share')
const every = globSync('test/nodes/*.test.ts')

function asked(words: readonly string[], commit = '0badc0de', all = false): Asked {
  const read = readWords(words, commit, all)
  if (typeof read === 'string') throw new Error(read)
  return read
}

test('a commit runs the fixed part and one longer file, and names what it leaves', () => {
  for (const commit of ['00000000', '00000100', 'ffffffff']) {
    const { files, left, chaos } = asked([], commit)
    assert.equal([...files, ...left].toSorted(), every.toSorted())
    assert.ok(files.includes('test/nodes/chaos.test.ts') && left.length > 0)
    assert.equal(chaos, { minutes: 2, seed: commit })
  }
})

test('in turns every file comes', () => {
  const run = Array.from({ length: 64 }, (_, turn) => asked([], turn.toString(16).padStart(6, '0'))).flatMap(({ files }) => files)
  assert.equal([...new Set(run)].toSorted(), every.toSorted())
})

test('everything, one file, or a long run where that is asked for', () => {
  assert.equal(asked([], '0badc0de', true).files.toSorted(), every.toSorted())
  assert.equal(asked(['test/nodes/judge.test.ts']).files, ['test/nodes/judge.test.ts'])
  const { files, left, chaos, kubernetes } = asked(['--chaos', '60m', '--seed', '7', '--kubernetes', '1.36.4'])
  assert.equal([files, left, chaos, kubernetes], [['test/nodes/chaos.test.ts'], [], { minutes: 60, seed: '7' }, '1.36.4'])
})

test('of everything the longest is begun first, and the one whose tests are moments last', () => {
  const { files } = asked([], '0badc0de', true)
  assert.equal([files[0], files.at(-1)], ['test/nodes/chaos.test.ts', 'test/nodes/share.test.ts'])
})

test('words that make no sense are told, not guessed at', () => {
  for (const words of [['--chaos'], ['--chaos', '1h'], ['--chaos', '5m', '--seed'], ['--kubernetes'], ['test/nodes/nobody.test.ts'], ['--nope']]) {
    assert.match(String(readWords(words, '0badc0de', false)), /^npm run test:nodes -- /, words.join(' '))
  }
})

test.run()
