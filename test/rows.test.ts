// docs/rows.md names a test for each line of the documents: it must be there, under that title.
import { existsSync, readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

const test = suite('rows')

const text = readFileSync('docs/rows.md', 'utf8')
const named = [...text.matchAll(/`(test\/[^`]+\.ts)` "([^"]*)"/g)].map(([, file = '', title = '']) => ({ file, title }))

test('there are rows for each document, and each names a test or says that there is none', () => {
  assert.ok(named.length > 60, `${named.length}`)
  const rows = text.split('\n').filter((line) => line.startsWith('| ') && !/^\| (line|pitfall|failure) \|/.test(line))
  for (const row of rows) assert.ok(/`test\/|`docs\/|not there|not used|not kept|not a proof|printed by/.test(row), row)
})

for (const { file, title } of named) test(`${file} "${title}"`, () => {
  assert.ok(title.length > 3, 'a title')
  assert.ok(existsSync(file), `${file} is not there`)
  assert.ok(readFileSync(file, 'utf8').includes(title), `no test of ${file} is called so`)
})

const told = [...text.matchAll(/`(docs\/[^`]+\.md)` names `([^`]+)`/g)].map(([, file = '', what = '']) => ({ file, what }))

test('what a row says that a page names stands on that page', () => {
  assert.ok(told.length > 0)
  for (const { file, what } of told) assert.ok(readFileSync(file, 'utf8').includes(what), `${file} does not name ${what}`)
})

test.run()
