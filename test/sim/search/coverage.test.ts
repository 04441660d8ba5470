import { readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findings, markOf, moments, neverReached, productWords, sentences, union } from '../../../sim/search/coverage.ts'

const test = suite('search: coverage')

test('the product\'s words are read from its text', () => {
  const words = productWords()
  for (const word of [
    'hold blind', 'hold storm', 'hold order-may-land', 'proof off', 'proof found-off', 'outcome Recovered', 'outcome Void', 'phase New', 'phase New to Running', 'phase Done to Final',
    'moment proven', 'moment freed', 'moment proof void', 'moment ordered off', 'moment ordered on', 'moment withdrawn', 'moment drill passed', 'moment drill failed',
    'refused the node is heard again', 'refused the incident is over', 'refused the node is not cordoned', 'refused … is on the node still: drain it first', 'refused … is attached to the node still: drain it first',
    'not freed: the node is heard again', 'not freed: its proof is not borne out', 'not set: its proof does not stand on the record', 'not written: a later leader has written on it', 'permit stays: the node is heard again', 'permit stays: no watchdog of this boot is on record',
  ]) assert.ok(words.includes(word), `${word} is not among ${words.join(', ')}`)
  assert.is(new Set(words).size, words.length)
})

test('every phase of an incident is in some turn of it, and Final is in none that goes on', () => {
  const [, phases = ''] = /readonly phase: (.*)/.exec(readFileSync(new URL('../../../core/incident.ts', import.meta.url), 'utf8')) ?? []
  const turns = productWords().filter((word) => word.startsWith('phase '))
  for (const [, phase] of phases.matchAll(/'(\w+)'/g)) assert.ok(turns.some((turn) => turn.endsWith(` ${phase}`)), phase)
  assert.not.ok(turns.some((turn) => turn.includes('Final to')))
})

test('a moment that stands in a choice, or is made of parts, is read as well; one whose parts nobody knows is a fault', () => {
  assert.equal(moments("tell(status, at, 'one', x)\n const what = a ? 'two' : b ? 'three' : 'four'\n tell(status, at, what, x)\n tell(status, attempt.startedAt, `so ${attempt.action}`, x)"), ['one', 'two', 'three', 'four', 'so off', 'so on'])
  assert.throws(() => moments('tell(status, at, `so ${other}`, x)'), /nobody knows what stands in so/)
})

test('a function\'s sentences are those that it answers with, through a name and a choice; one without any is a fault', () => {
  const source = "const name = 'by a name'\n\nexport function one(x: string): string | undefined {\n  if (x) return name\n  return x ? 'plain words' : `${x} in parts`\n}\n\nfunction other() {\n  return 'not ours'\n}\n"
  assert.equal([...sentences(source, 'one', 'x.ts')].toSorted(), ['by a name', 'plain words', '… in parts'].toSorted())
  assert.throws(() => sentences(source, 'none', 'x.ts'), /x\.ts has no sentences of none/)
})

test('a union is read whole, over several lines and past its comments', () => {
  const source = "export type A =\n  | 'one' | 'two'\n  /** 'not a word' */\n  | 'three'\n\nexport type B = 'four'\n"
  assert.equal(union(source, 'A'), ['one', 'two', 'three'])
  assert.equal(union(source, 'B'), ['four'])
  assert.throws(() => union(source, 'C'), /no words of C/)
})

test('what no mark tells of was never reached', () => {
  const marks = new Set(['hold blind', 'proof off', 'refused the node is heard again', 'said the incident is over'])
  assert.equal(neverReached(['hold blind', 'hold storm', 'proof off', 'refused the node is heard again', 'refused the incident is over'], marks), ['hold storm', 'refused the incident is over'])
})

test('a search of ten thousand seeds tells of what it never reached, unasked; a shorter one only if it is asked', () => {
  const marks = productWords().filter((word) => word !== 'hold storm')
  assert.equal(findings({ seeds: 10_000, marks, asked: false }), ['hold storm'])
  assert.equal(findings({ seeds: 9_999, marks, asked: false }), [])
  assert.equal(findings({ seeds: 1, marks, asked: true }), ['hold storm'])
})

test('a refusal is one that kept an order from being given, and a withdrawal for the same reason is none', () => {
  const because = 'the node is heard again'
  assert.is(markOf({ level: 'warn', message: 'order not given', because }), `refused ${because}`)
  assert.is(markOf({ level: 'info', message: 'incident withdrawn', because }), undefined)
  assert.is(markOf({ level: 'warn', message: 'held', because: 'blind' }), 'hold blind')
  assert.is(markOf({ level: 'warn', message: 'order not given', because: 'work/db-0 is on the node still: drain it first' }), 'refused … is on the node still: drain it first')
  assert.is(markOf({ level: 'warn', message: 'nothing more is freed', because }), `not freed: ${because}`)
  assert.is(markOf({ level: 'warn', message: 'permit not taken back', because }), `permit stays: ${because}`)
  assert.is(markOf({ level: 'warn', message: 'the lease cannot be read or written', because: 'x' }), 'said the lease cannot be read or written')
})

test.run()
