// That a node is being worked on is one condition among its others', written under its uid, and seen again as ours by its reason.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { keepNode } from '../../coordinator/kubernetes.ts'
import type { Condition, NodeObject } from '../../sim/objects.ts'
import { edgeWorld, turned, victim, type EdgeWorld } from './edge-world.ts'

const test = suite('declare')

const declare = (world: EdgeWorld, maintenance: boolean): Promise<boolean> => turned(world.clock, world.do({ do: 'declare', node: victim, maintenance }))
const conditions = (world: EdgeWorld): readonly Condition[] => (world.server.peek('nodes')[0] as NodeObject).status?.conditions ?? [] // a Node
const told = (world: EdgeWorld): readonly string[] => conditions(world).map(({ type, status, reason }) => `${type} ${status}${reason === undefined ? '' : ` ${reason}`}`).toSorted()

test('said and taken back, beside what its kubelet says', async () => {
  const world = edgeWorld()
  world.plantNode()
  assert.ok(await declare(world, true))
  assert.equal([told(world), world.observation.row(victim)?.maintenance], [['MaintenanceInProgress True HoldfastQuarantine', 'Ready True'], 'ours'])
  assert.ok(await declare(world, false))
  assert.equal([told(world), world.observation.row(victim)?.maintenance], [['MaintenanceInProgress False HoldfastQuarantineLifted', 'Ready True'], undefined])
})

test('of another Node of the name nothing is said, nor by who leads no more', async () => {
  const world = edgeWorld()
  world.plantNode()
  const { metadata } = world.server.peek('nodes')[0] as KubeObject // planted above
  world.observation.node({ ...keepNode({ metadata }), metadata: { ...metadata, uid: 'another' } })
  assert.is(await declare(world, true), false)
  world.term = undefined
  assert.is(await declare(world, true), false)
  assert.equal(told(world), ['Ready True'])
})

for (const [status, reason, whose] of [['True', 'HoldfastQuarantine', 'ours'], ['True', 'Upgrade', 'others'], ['False', 'HoldfastQuarantine', undefined], ['Unknown', 'Upgrade', undefined]] as const) {
  test(`${status}, ${reason}: ${whose ?? 'nobody'} says so`, () => {
    const node = { metadata: { name: victim }, status: { conditions: [{ type: 'MaintenanceInProgress', status, reason }] } } as KubeObject // a Node has a status
    assert.is(keepNode(node).maintenance, whose)
  })
}

test.run()
