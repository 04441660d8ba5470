import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createApi } from '../../coordinator/api.ts'
import type { NodeRecord } from '../../core/model.ts'
import { customResourceDefinitions } from '../../deploy/crd.ts'
import { admin } from '../../sim/api-server/server.ts'
import { boot, record as recordOf } from '../core/world.ts'
import { edgeWorld, turned, victim, type EdgeWorld } from './edge-world.ts'

const test = suite('record-write')

/** As the core makes them: the edge adds the time. */
function facts(changes: Partial<NodeRecord> = {}): NodeRecord {
  const made = recordOf(changes)
  return { ...made, paths: made.paths.map((path) => ({ ...path, at: '' })), probe: { boot, answered: true, at: '' } }
}

function known(): EdgeWorld {
  const world = edgeWorld()
  world.plantNode()
  return world
}

type Schema = { properties: Record<string, Schema>; enum?: string[] }

/** The kinds of a cluster that knows only these words for a gate. */
async function gates(world: EdgeWorld, words: string[]): Promise<void> {
  const [definition] = structuredClone(customResourceDefinitions().filter(({ metadata }) => metadata.name.startsWith('noderecords'))) as unknown as { metadata: { name: string }; spec: { versions: { schema: { openAPIV3Schema: Schema } }[] } }[] // what a person applies
  const gate = definition?.spec.versions[0]?.schema.openAPIV3Schema.properties['spec']?.properties['gate']
  if (definition === undefined || gate === undefined) throw new Error('NodeRecord has no gate')
  gate.enum = words
  const person = createApi({ clock: world.clock, transport: world.server.transportFor(admin) })
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${definition.metadata.name}`
  assert.ok((await turned(world.clock, person.patch(path, 'merge', { spec: definition.spec }))).ok)
}

const write = (world: EdgeWorld): Promise<boolean> => turned(world.clock, world.do({ do: 'record', node: victim, record: facts({ gate: 'asks' }) }))

test('a record that the API server refuses is remembered as refused, and a person is told why', async () => {
  const world = known()
  await gates(world, ['off'])
  assert.equal([await write(world), await write(world)], [false, false])
  const { recordWrite } = world.observation.row(victim) ?? {}
  assert.equal([recordWrite?.at, recordWrite?.refused?.times, recordWrite?.refused?.wanted.boot], [world.clock.now(), 2, boot])
  assert.match(world.said.map(({ reason, note }) => `${reason} ${note}`).join(), /RecordRefused its NodeRecord is not written, and no audit of it outlives this replica: .*spec\.gate/)
  assert.ok(world.logged.some(({ level, message }) => level === 'warn' && message === 'its NodeRecord could not be written'))
})

test('a server that is ill is no word against the record: it rests, and nobody is told', async () => {
  const world = known()
  world.server.faults.set([{ does: 'answer', status: 500, strikes: ({ method, path }) => method !== 'GET' && path.includes('/noderecords') }])
  assert.is(await write(world), false)
  assert.is(world.observation.row(victim)?.recordWrite?.refused?.times, 1)
  assert.equal(world.said, [])
})

test('somebody else wrote it: there is nothing to rest for', async () => {
  const world = known()
  world.plantRecord(facts({ machine: 'theirs' }))
  world.observation.record(victim, undefined)
  assert.is(await write(world), false)
  assert.is(world.observation.row(victim)?.recordWrite, undefined)
})

test('what stands there was written by a later version, and cannot be read: it is in the way of every write, which rests', async () => {
  const world = known()
  await gates(world, ['asks', 'off', 'later'])
  world.plantRecord(facts({ gate: 'later' as 'off' })) // no word of ours
  world.observation.record(victim, undefined)
  assert.equal([await write(world), await write(world)], [false, false])
  assert.is(world.observation.row(victim)?.recordWrite?.refused?.times, 2)
})

test('once it is taken the refusals are forgotten, and when it was written is known', async () => {
  const world = known()
  await gates(world, ['off'])
  await write(world)
  await gates(world, ['asks', 'off'])
  await world.clock.runFor(1_000)
  assert.ok(await write(world))
  assert.equal(world.observation.row(victim)?.recordWrite, { at: world.clock.now() })
})

test.run()
