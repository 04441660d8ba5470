import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { keptCount, outlived } from '../../core/history.ts'
import type { Incident, IncidentStatus } from '../../core/incident.ts'
import { incident, proofRecord } from './world.ts'

const test = suite('history')

const day = 24 * 3_600_000
const now = Date.parse('2026-06-01T00:00:00Z')
const ago = (span: number, name = `f-${span}`, status: Partial<IncidentStatus> = {}, changes: Partial<Incident> = {}): Incident =>
  incident({ phase: 'Final', outcome: 'Recovered', timeline: [{ at: new Date(now - span).toISOString(), what: 'closed', detail: '' }], ...status }, { name, ...changes })
const names = (incidents: readonly Incident[], held = false): string[] => outlived(incidents, () => held, now).map(({ name }) => name)

test('an incident is kept for thirty days after its end', () => {
  assert.equal(names([ago(29 * day), ago(31 * day)]), [`f-${31 * day}`])
})

test('of a node the latest twenty are kept, and all of the last day', () => {
  const many = Array.from({ length: 25 }, (_, index) => ago(2 * day + index * 60_000, `old-${index}`))
  assert.equal(names(many), ['old-20', 'old-21', 'old-22', 'old-23', 'old-24'])
  assert.equal(names(Array.from({ length: 40 }, (_, index) => ago(index * 60_000, `new-${index}`))), [])
  assert.equal(names([...many.slice(0, keptCount), ago(3 * day, 'of another', {}, { nodeName: 'node-7' })]), [], 'each node has its own')
})

const kept: readonly (readonly [what: string, one: Incident])[] = [
  ['one that is open', ago(90 * day, 'f', { phase: 'Running' })],
  ['one whose proof was shown false: it marks its path', ago(90 * day, 'f', { voided: [{ proof: proofRecord(), at: 'then', evidence: '' }] })],
  ['one that does not tell when it ended', ago(90 * day, 'f', { timeline: [] })],
]
for (const [what, one] of kept) test(`kept however old: ${what}`, () => assert.equal(names([one]), []))

test('a proof that lapsed marks nothing', () => {
  assert.equal(names([ago(90 * day, 'f', { voided: [{ proof: proofRecord(), how: 'lapsed', at: 'then', evidence: '' }] })]), ['f'])
})

test('nothing of a node under quarantine is deleted', () => assert.equal(names([ago(90 * day)], true), []))

test.run()
