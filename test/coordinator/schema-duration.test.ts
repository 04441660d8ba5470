import fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { longestDuration, readDuration, showDuration } from '../../coordinator/schema-duration.ts'

const test = suite('schema-duration')

test('a span that is written down reads back as itself', () => {
  fc.assert(fc.property(fc.integer({ min: 0, max: longestDuration }), (span) => readDuration(showDuration(span)) === span))
})

for (const [text, span] of [['90s', 90_000], ['1h30m', 5_400_000], ['1.5h', 5_400_000], ['250ms', 250], ['1m30s500ms', 90_500], ['0s', 0]] as const) {
  test(`${text} is ${span} ms`, () => assert.is(readDuration(text), span))
}

for (const [span, text] of [[90_000, '1m30s'], [5_400_000, '1h30m'], [0, '0s'], [1_500, '1s500ms']] as const) {
  test(`${span} ms is written ${text}`, () => assert.is(showDuration(span), text))
}

test('a fraction of a millisecond never cuts a wait short', () => {
  assert.is(showDuration(40_000.2), '40s1ms')
})

test.run()
