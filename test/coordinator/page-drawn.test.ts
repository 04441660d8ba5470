// What a reader of the page reads, of states that the product makes.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { pageState, type PageState } from '../../coordinator/page-state.ts'
import type { IncidentStatus } from '../../core/incident.ts'
import { incident, now, policy, proofRecord, three } from '../core/world.ts'
import { openPage } from './page-document.ts'

const test = suite('page drawn')

const opened = { at: '2026-01-01T00:00:10.000Z', what: 'opened', detail: 'beats silent' }
const levers = (node?: string) => (node === undefined ? [] : [{ name: 'cut-power', label: 'Cut power' }, { name: 'freeze', label: 'Freeze' }])

function state(status: Partial<IncidentStatus> = {}): PageState {
  const incidents = [incident({ phase: 'Running', step: 'clear', timeline: [opened], ...status })]
  return pageState({ seen: three({}, incidents), leads: () => 3, policies: () => [policy], holds: () => [], ready: () => true }, { now: () => now, wall: () => 1_800_000_000_000 }, { levers })
}

test('nodes with their buttons, and an incident with its proof and its timeline, are drawn', () => {
  const { body } = openPage(state({ proof: proofRecord() }))
  assert.equal(body.all('h3').map(({ textContent }) => textContent), ['node-1', 'node-2', 'node-3', 'node-2'])
  assert.equal(body.all('button').map(({ dataset: { lever, node } }) => `${lever} ${node}`), ['node-1', 'node-2', 'node-3'].flatMap((node) => [`cut-power ${node}`, `freeze ${node}`]))
  assert.match(body.textContent, /proven: off at \+4\.0 s, level 1 \(bmc-off\)/)
  assert.match(body.textContent, /Timeline, 1 moments/)
})

test('news are drawn into what stands there: what is the same stays, and what is over goes', () => {
  const page = openPage(state())
  const before = page.body.all('button')
  page.hears(state({ phase: 'Final', outcome: 'Recovered', proof: proofRecord(), holds: [], timeline: [opened, { at: '2026-01-01T00:00:30.000Z', what: 'closed', detail: '' }] }))
  assert.match(page.body.textContent, /Recovered.*took 20 s.*Timeline, 2 moments/)
  assert.ok(page.body.all('button').every((button, index) => button === before[index]), 'no button vanished under a finger')
  page.hears({ ...state(), incidents: [] })
  assert.equal(page.body.all('h3').map(({ textContent }) => textContent), ['node-1', 'node-2', 'node-3'])
})

for (const kind of ['vouched', 'kdump', 'self-fenced', 'safe-detach'] as const) {
  test(`a proof that no level gave (${kind}) is told without one`, () => {
    const { textContent } = openPage(state({ proof: proofRecord({ kind, level: -1, methods: [], evidence: [{ source: 'whoever', word: 'said so', at: '' }] }) })).body
    assert.match(textContent, new RegExp(`proven: ${kind} at \\+4\\.0 swhoever said so`))
  })
}

test.run()
