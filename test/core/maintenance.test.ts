// A node under our quarantine says by a condition that it is being worked on, where the API server knows that condition.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decide } from '../../core/decide.ts'
import type { NodeSeen, Self } from '../../core/model.ts'
import { booted, opened, ordering, quarantine, recovering, type State } from './states.ts'
import { beat, incident, now, policy, record, self, three } from './world.ts'

const test = suite('maintenance')

const knows: Self = self({ knowsMaintenance: true })
const unclean = { state: 'dirty', leftovers: [{ kind: 'mount', path: '/x', pod: 'p' }] } as const
/** Quarantined, well, and not clean: nothing else is to be done. */
const rests: Partial<NodeSeen> = { taints: [quarantine], beat: beat({ clean: { at: now - 1_000, report: unclean } }) }

function declared(node: Partial<NodeSeen>, own: Self = knows, state?: State): readonly boolean[] {
  const seen = state === undefined ? three(node, [], own) : three({ ...state.node, ...node }, [incident(state.status)], own)
  return decide(seen, now, [policy]).flatMap((action) => (action.do === 'declare' && action.node === 'node-2' ? [action.maintenance] : []))
}

const rows: readonly (readonly [string, readonly boolean[], readonly boolean[]])[] = [
  ['quarantined by us: said', declared(rests), [true]],
  ['said already', declared({ ...rests, maintenance: 'ours' }), []],
  ['said by somebody else, whose word it is', declared({ ...rests, maintenance: 'others' }), []],
  ['not quarantined: nothing to say', declared({}), []],
  ['the quarantine is gone: taken back', declared({ maintenance: 'ours' }), [false]],
  ['gone, and somebody else says so: theirs', declared({ maintenance: 'others' }), []],
  ['an older server: nothing is said', declared(rests, self()), []],
  ['an older server than before: taken back', declared({ maintenance: 'ours' }, self()), [false]],
  ['everything is paused', declared(rests, self({ knowsMaintenance: true, pause: { reason: 'a look', by: 'me' } })), []],
  ['a person keeps us off it', declared({ ...rests, annotations: { 'holdfast.dev/exclude': 'mine' } }), []],
  ['an order runs', declared({}, knows, ordering), []],
  ['it is to be quarantined first', declared({}, knows, opened), []],
  ['switched off, and waited for', declared({ readings: recovering.node.readings ?? [], busy: new Set(['deed node-2']) }, knows, recovering), []],
  ['its quarantine comes off now', declared({ maintenance: 'ours' }, knows, booted), []],
]
for (const [says, found, wanted] of rows) test(says, () => assert.equal(found, wanted))

test('of a whole cluster a few at a time', () => {
  const { nodes, ...rest } = three({}, [], knows)
  const [one] = nodes.values()
  assert.ok(one)
  const many = new Map(Array.from({ length: 50 }, (_, index): [string, NodeSeen] => [`n-${index}`, { ...one, ...rests, name: `n-${index}`, record: record() }]))
  assert.is(decide({ ...rest, nodes: many }, now, [policy]).filter((action) => action.do === 'declare').length, 8)
})

test.run()
