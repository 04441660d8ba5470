import { readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { cutOut, replaceOnce } from '../../../sim/search/cut.ts'
import { defences } from '../../../sim/search/defences.ts'
import { cutsOfPlant, planted } from '../../../sim/search/planted.ts'

const test = suite('search: cutting defences out')

test('each cut still finds its one place in the product, and leaves something that differs', () => {
  assert.ok(defences.length >= 20, `${defences.length} defences`)
  for (const { name, cuts } of [...defences, ...planted.map((plant) => ({ name: plant.name, cuts: cutsOfPlant(plant) }))]) {
    assert.ok(cuts.length > 0, name)
    for (const { file, take, put } of cuts) {
      const text = readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8')
      assert.is.not(replaceOnce(text, take, put, file), text, name)
    }
  }
})

test('names are told apart, and an unknown one is refused', () => {
  assert.is(new Set(defences.map(({ name }) => name)).size, defences.length)
  assert.throws(() => cutOut('no such defence'), /there is no defence no such defence/)
})

test('a place that is not there, or there twice, is refused', () => {
  assert.throws(() => replaceOnce('a b', 'c', 'd', 'x.ts'), /x\.ts has 0 places/)
  assert.throws(() => replaceOnce('c b c', 'c', 'd', 'x.ts'), /x\.ts has 2 places/)
})

test.run()
