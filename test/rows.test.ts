// docs/rows.md names a test for each line of the documents, and test/nodes/README.md one for each thing that real nodes taught: it must be there, under that title.
import { existsSync, readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

const test = suite('rows')

const text = readFileSync('docs/rows.md', 'utf8')
const [, taught = ''] = readFileSync('test/nodes/README.md', 'utf8').split('## What real nodes taught')
const rowsOf = (page: string): readonly string[] => page.split('\n').filter((line) => line.startsWith('| ') && !/^\| (line|pitfall|failure|what a real node does) \|/.test(line))
/** Titles of one file follow its name, with a comma between them. */
const named = [...`${text}\n${taught}`.matchAll(/`(test\/[^`]+\.ts)`((?:,? "[^"]*")+)/g)]
  .flatMap(([, file = '', titles = '']) => [...titles.matchAll(/"([^"]*)"/g)].map(([, title = '']) => ({ file, title })))

test('there are rows for each document, and each names a test or says that there is none', () => {
  assert.ok(named.length > 60, `${named.length}`)
  for (const row of rowsOf(text)) assert.ok(/`test\/|`docs\/|not there|not used|not kept|not a proof|printed by/.test(row), row)
})

test('each thing that real nodes taught names a test by its title, or says that there is none', () => {
  const rows = rowsOf(taught)
  assert.ok(rows.length > 15, `${rows.length}`)
  for (const row of rows) assert.ok(/`test\/[^`]+\.ts` "|no test is of that alone/.test(row), row)
})

for (const { file, title } of named) test(`${file} "${title}"`, () => {
  assert.match(title, /^(?=.{10}).*\S \S/, 'words enough to tell one test from the others')
  assert.ok(existsSync(file), `${file} is not there`)
  assert.ok(hasTest(file, title), `no test of ${file} is called so`)
})

/** What a test is called, where it stands as the title of a story, or begins the row of a table that titles are made of. */
const titled = /(?:\btest\(|\btitle: |^\s*\[)\s*(['"`])((?:\\.|(?!\1).)*)\1/gm

function hasTest(file: string, words: string): boolean {
  return [...readFileSync(file, 'utf8').matchAll(titled)].some(([, , title = '']) => title.replaceAll('\\', '').includes(words))
}

test('words that stand in a file, and in no title of it, name no test', () => {
  assert.is(hasTest('test/rows.test.ts', 'words that stand in a file'), true)
  assert.is(hasTest('test/rows.test.ts', 'readFileSync'), false)
})

const told = [...text.matchAll(/`(docs\/[^`]+\.md)` names `([^`]+)`/g)].map(([, file = '', what = '']) => ({ file, what }))

test('what a row says that a page names stands on that page', () => {
  assert.ok(told.length > 0)
  for (const { file, what } of told) assert.ok(readFileSync(file, 'utf8').includes(what), `${file} does not name ${what}`)
})

test.run()
