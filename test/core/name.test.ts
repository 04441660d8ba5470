// The name of an incident, for whatever name a node may legally have.
import fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { incidentName } from '../../core/name.ts'
import { incident, node, seen } from './world.ts'

const test = suite('incident name')

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
/** What the API server takes, and what is left of it for an attempt, whose own name is the incident's and a number. */
const longest = 253
const attempt = '.99999999'

const inner = fc.constantFrom(...'abcxyz0189-'.split(''))
const edge = fc.constantFrom(...'abz09'.split(''))
const label = (least: number, most: number) => fc.tuple(edge, fc.string({ unit: inner, minLength: least, maxLength: most }), edge).map((parts) => parts.join(''))
const labels = fc.oneof(
  fc.array(label(0, 20), { minLength: 1, maxLength: 4 }),
  fc.array(fc.oneof(label(20, 70), edge), { minLength: 20, maxLength: 30 }),
  fc.array(edge, { minLength: 130, maxLength: 130 }),
)
/** Legal names of every length; most of them near the limit, where the cut falls on letters, dashes and dots alike. */
const nodeName = fc.tuple(labels, fc.constantFrom(253, 252, 240, 222, 221, 220, 219, 63))
  .map(([parts, most]) => parts.join('.').slice(0, most).replace(/[^a-z0-9]+$/, ''))

const nameOf = (name: string, boot: string, earlier: readonly string[] = []): string =>
  incidentName(seen([], earlier.map((one) => incident({}, { name: one }))), node({ name, uid: `uid-${name}` }), boot)

test('the names of nodes that the others are tried with are legal, and most are long', () => {
  let long = 0
  fc.assert(fc.property(nodeName, (name) => {
    assert.match(name, subdomain)
    assert.ok(name.length <= longest)
    if (name.length > 215) long += 1
  }), { numRuns: 1_000, seed: 3 })
  assert.ok(long > 200, `${long}`)
})

test('it is legal, and leaves room for the name of an attempt', () => {
  fc.assert(fc.property(nodeName, fc.constantFrom(0, 8, 99, 9_999, 9_999_998), (name, number) => {
    const first = nameOf(name, 'boot-1/1')
    const given = number === 0 ? first : nameOf(name, 'boot-1/1', [first.replace(/1$/, String(number))])
    assert.match(given, subdomain)
    assert.ok(given.length + attempt.length <= longest, `${given.length} characters`)
    assert.ok(given.endsWith(`-${number + 1}`), given)
  }), { numRuns: 1_000, seed: 4 })
})

test('two nodes, two boots and two incidents of one boot never share one', () => {
  fc.assert(fc.property(fc.uniqueArray(nodeName, { minLength: 2, maxLength: 20 }), (names) => {
    const given = names.flatMap((name) => {
      const first = nameOf(name, 'boot-1/1')
      return [first, nameOf(name, 'boot-1/1', [first]), nameOf(name, 'boot-2/1')]
    })
    assert.is(new Set(given).size, given.length)
  }), { numRuns: 500, seed: 5 })
})

test('nodes whose names differ only in what is cut off do not share one', () => {
  const long = 'a'.repeat(252)
  assert.is.not(nameOf(`${long}b`, 'boot-1/1'), nameOf(`${long}c`, 'boot-1/1'))
})

test('a name of ordinary length is kept whole', () => {
  assert.match(nameOf('ip-10-0-0-7.eu-west-1.compute.internal', 'boot-1/1'), /^ip-10-0-0-7\.eu-west-1\.compute\.internal-[0-9a-f]{10}-1$/)
})

test.run()
