// The answers in docs/production-readiness.md name metrics and tests: each of them must be there.
import { existsSync, readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

const test = suite('production readiness')

const text = readFileSync('docs/production-readiness.md', 'utf8').replaceAll(/\s+/g, ' ')
const measured = readFileSync('coordinator/measures.ts', 'utf8')
const holdReasons = readFileSync('coordinator/node-fence-status.ts', 'utf8')

test('every metric that is named is measured', () => {
  const named = new Set([...text.matchAll(/holdfast_[a-z_]+/g)].map(([name]) => name.replace(/_count$/, '')))
  assert.ok(named.size >= 8)
  for (const name of named) assert.ok(measured.includes(`'${name}'`), name)
})

test('every reason that is named is one that a hold can have', () => {
  for (const [, reason = ''] of text.matchAll(/\{because="([a-z-]+)"\}/g)) assert.match(holdReasons, new RegExp(`['\\s]${reason}'?: '`), reason)
})

test('every file that is named is there', () => {
  for (const [, file = ''] of text.matchAll(/`((?:test|docs|deploy)\/[a-z0-9/.-]+)`/g)) assert.ok(existsSync(file), file)
})

test('every test whose title is quoted is in the file that is named before it', () => {
  const quoted = [...text.matchAll(/`(test\/[a-z0-9/.-]+)`, "([^"]+)"/g)]
  assert.ok(quoted.length >= 6)
  for (const [, file = '', title = ''] of quoted) assert.ok(readFileSync(file, 'utf8').replaceAll('\\\'', '\'').includes(title), `${file}: ${title}`)
})

test.run()
