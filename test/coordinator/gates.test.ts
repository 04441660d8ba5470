import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Beats } from '../../coordinator/beats.ts'
import { tellGates } from '../../coordinator/gates.ts'
import type { Observation } from '../../coordinator/observe.ts'
import type { Row } from '../../coordinator/row.ts'
import { quarantineKey } from '../../core/clear.ts'
import type { NodeSeen, Self } from '../../core/model.ts'
import { beat, incident, newBoot, node, now, policy, self, three } from '../core/world.ts'

const test = suite('gates')

const quarantine = { key: quarantineKey, value: 'holdfast', effect: 'NoSchedule' } as const

/** What the gates of three nodes are told. */
function told(changes: Partial<NodeSeen> = {}, own: Self = self(), incidents: Parameters<typeof three>[1] = [], guarding = policy): string[] {
  const seen = three(changes, incidents, own)
  const said: string[] = []
  // Of the observation only what is seen is asked, and of its rows only what the core sees.
  const observation = { seen, row: (name: string) => seen.nodes.get(name) } as unknown as Pick<Observation, 'seen' | 'row'> & { row(name: string): Row | undefined }
  const beats: Pick<Beats, 'nodes' | 'heard' | 'gate'> = {
    nodes: () => ['node-1', 'node-2', 'node-9'], heard: (name) => seen.nodes.get(name)?.beat, gate: (name, { accepted, reason }) => { said.push(`${name} ${accepted} ${reason}`.trim()) },
  }
  tellGates(observation, beats, [guarding], now)
  return said
}

test('every node that is heard and known is told, whether or not this replica leads', () => {
  const { term: _, ...follower } = self()
  for (const own of [self(), follower]) assert.equal(told({}, own), ['node-1 true', 'node-2 true'])
})

test('a node under quarantine, or in a new boot while an incident of the old one is open, is told why it must wait', () => {
  assert.match(told({ taints: [quarantine] })[1] ?? '', /^node-2 false \S/)
  assert.match(told({ beat: beat({ boot: newBoot }) }, self(), [incident()])[1] ?? '', /^node-2 false the incident/)
  assert.is(told({ beat: beat({ boot: newBoot }) }, self(), [incident({ phase: 'Final' })])[1], 'node-2 true')
})

test('while somebody has paused it nothing new is held against a node', () => {
  const cut = { beat: beat({ boot: newBoot, gate: 'shut', before: 'cut off' }) } as const
  const pause = { reason: 'maintenance', by: 'ops' }
  assert.match(told(cut)[1] ?? '', /false the boot before/)
  assert.is(told(cut, self({ pause }))[1], 'node-2 true')
  assert.is(told(cut, self(), [], { ...policy, pause })[1], 'node-2 true')
})

test('a replica that cannot trust its own view says nothing', () => {
  for (const own of [self({ freshAt: now - 11_000 }), self({ apiAnsweredAt: now - 11_000 }), self({ awakeSince: now - 500 })]) assert.equal(told({}, own), [])
})

test('of a node that is gone, or was never heard, nothing is said', () => {
  assert.equal(told({ gone: true }), ['node-1 true'])
  assert.equal(told({ beat: undefined }), ['node-1 true'])
  assert.is(node().gone, undefined)
})

test.run()
