import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { markOf, neverReached, productWords, union } from '../../../sim/search/coverage.ts'

const test = suite('search: coverage')

test('the product\'s words are read from its text', () => {
  const words = productWords()
  for (const word of ['hold blind', 'hold storm', 'hold order-may-land', 'proof off', 'proof found-off', 'outcome Recovered', 'outcome Void', 'moment proven', 'moment freed', 'moment proof void', 'refused the node is heard again', 'refused the incident is over']) {
    assert.ok(words.includes(word), `${word} is not among ${words.join(', ')}`)
  }
  assert.is(new Set(words).size, words.length)
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

test('a refusal is one that kept an order from being given, and a withdrawal for the same reason is none', () => {
  const because = 'the node is heard again'
  assert.is(markOf({ level: 'warn', message: 'order not given', because }), `refused ${because}`)
  assert.is(markOf({ level: 'info', message: 'incident withdrawn', because }), undefined)
  assert.is(markOf({ level: 'warn', message: 'held', because: 'blind' }), 'hold blind')
  assert.is(markOf({ level: 'warn', message: 'the lease cannot be read or written', because: 'x' }), 'said the lease cannot be read or written')
})

test.run()
