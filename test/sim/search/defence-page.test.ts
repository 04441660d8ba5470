import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { lacking, withRow } from '../../../sim/search/defence-page.ts'
import { defences } from '../../../sim/search/defences.ts'

const test = suite('search: the table of defences')

const page = 'before\n<!-- defences: written by npm run sim -- --defences -->\n<!-- defences end -->\nafter\n'
const [first, second] = defences.map(({ name }) => name)
const hidden = defences.find(({ unseen }) => unseen !== undefined)
const caught = { judge: 'safety', seed: 7, seeds: 5, what: 'two writers' } as const

test('a row is put in its place, the others stay, and what was not searched is said to be so', () => {
  const one = withRow(page, first ?? '', caught, 600)
  assert.ok(one.startsWith('before\n') && one.endsWith('\nafter\n'), one)
  assert.match(one, `| ${first} | ${defences[0]?.against} | safety | 5 (seed 7) |`)
  assert.is(lacking(one).length, defences.filter(({ unseen }) => unseen === undefined).length - 1)
  for (const { name, against, unseen } of defences) if (unseen !== undefined) assert.match(one, `- *${name}*, against ${against}: ${unseen} (not searched yet)`)
  const both = withRow(one, second ?? '', undefined, 600)
  assert.match(both, `| ${second} | ${defences[1]?.against} | none | more than 600 |`)
  assert.match(both, '5 (seed 7)')
  assert.not.match(withRow(both, second ?? '', caught, 600), 'more than 600')
  assert.throws(() => withRow('no table', first ?? '', caught, 1), /no table/)
})

test('what no judge can see stands below the table with its reason and what was searched, until a judge sees it', () => {
  if (hidden === undefined) throw new Error('every defence is seen')
  const { name, against, unseen } = hidden
  const one = withRow(withRow(page, name, undefined, 60), first ?? '', caught, 600)
  assert.match(one, `- *${name}*, against ${against}: ${unseen} (no judge failed in 60 seeds)`)
  assert.not.match(one, `| ${name} |`)
  assert.ok(one.indexOf(`- *${name}*`) > one.lastIndexOf('\n| '))
  const seen = withRow(withRow(one, name, caught, 60), first ?? '', caught, 600)
  assert.match(seen, `| ${name} | ${against} | safety | 5 (seed 7) |`)
  assert.not.match(seen, `- *${name}*`)
})

test('a row of a defence that has left the table goes with it, and so does that of one that is no more', () => {
  if (hidden === undefined) throw new Error('every defence is seen')
  const rows = `| ${hidden.name} | x | none: of old, ${hidden.unseen} | |\n| gone-by-now | x | safety | 1 (seed 1) |\n- *gone-too*, against x: y (not searched yet)\n`
  const now = withRow(page.replace('<!-- defences end -->', `${rows}<!-- defences end -->`), first ?? '', caught, 600)
  assert.not.match(now, 'of old')
  assert.not.match(now, 'gone-')
})

test.run()
