// Last good configurations, which outlive the replica that read them.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { keptName } from '../../coordinator/fence-kept.ts'
import type { ApiServer } from '../../sim/api-server/server.ts'
import { map, only, own, replica, small, template, type Small } from './fence-paths-world.ts'

const test = suite('fence paths: kept')

const kept = (server: ApiServer): KubeObject | undefined => server.peek('configmaps').find(({ metadata }) => metadata.name === keptName)
const faulty = (name: string, key = 'config.properties'): KubeObject => map(name, { [key]: 'oops' })

/** A leader that saw all of these good, and then some faulty; and what it kept. */
async function keptBy(good: readonly KubeObject[], bad: readonly KubeObject[], ...nodes: readonly string[]): Promise<Small & { readonly kept: KubeObject }> {
  const leader = small(...nodes)
  for (const object of good) leader.paths.configMap(object)
  await leader.clock.runFor(1_000)
  leader.paths.settle()
  assert.is(kept(leader.server), undefined)
  for (const object of bad) leader.paths.configMap(object)
  await leader.clock.runFor(1_000)
  leader.paths.settle()
  await leader.clock.runFor(1_000)
  leader.paths.stop()
  return { ...leader, kept: kept(leader.server) as KubeObject } // asserted by whoever reads it
}

for (const [what, bad] of [['own map', faulty('fence-config-node-1')], ['template', faulty('fence-method-template-bmc', 'template.properties')]] as const) {
  test(`a replica that never saw it well has the last good path of a node whose ${what} is faulty`, async () => {
    const before = await keptBy([template('plain'), own('node-1', '7')], [bad], 'node-1')
    const after = replica(before.clock, before.server, ['node-1'])
    const present = new Map([template('plain'), own('node-1', '7'), bad].map((object) => [object.metadata.name, object]))
    for (const object of present.values()) after.paths.configMap(object)
    await after.clock.runFor(1_000)
    assert.equal(after.inForce.get('node-1')?.levels, [])
    after.paths.configMap(before.kept)
    await after.clock.runFor(1_000)
    assert.is(only(after.inForce.get('node-1')).digest, only(before.inForce.get('node-1')).digest)
    assert.ok((after.inForce.get('node-1')?.faults.length ?? 0) > 0)
  })
}

test('what was kept goes with the ConfigMap that somebody deletes, and is struck out once all is well', async () => {
  const before = await keptBy([template('plain'), own('node-1')], [faulty('fence-method-template-bmc', 'template.properties')], 'node-1')
  const after = replica(before.clock, before.server, ['node-1'])
  for (const object of [faulty('fence-method-template-bmc', 'template.properties'), own('node-1'), before.kept]) after.paths.configMap(object)
  await after.clock.runFor(1_000)
  assert.is(after.inForce.get('node-1')?.levels.length, 1)
  after.paths.configMapGone('fence-method-template-bmc')
  await after.clock.runFor(1_000)
  assert.equal(after.inForce.get('node-1')?.levels, [])
  after.paths.settle()
  await after.clock.runFor(1_000)
  assert.not.match(JSON.stringify(kept(after.server)), /node-1/)
})

test('what nobody can read, or has no right to stand there, is no configuration', async () => {
  for (const text of ['oops', '{}', '{"texts":[],"nodes":{"node-1":[5]}}', '{"texts":[{"name":"fence-config-node-1","data":{"config.properties":"oops"}}],"nodes":{"node-1":[0]}}']) {
    const { clock, paths, inForce } = small('node-1')
    for (const object of [template('plain'), faulty('fence-config-node-1'), map(keptName, { 'in-force.json': text })]) paths.configMap(object)
    await clock.runFor(1_000)
    assert.equal(inForce.get('node-1')?.levels, [], text)
    assert.is(inForce.get('node-1')?.faults.length, 1, text)
  }
})

test('who does not lead keeps nothing', async () => {
  const world = small('node-1')
  world.term = undefined
  for (const object of [template('plain'), own('node-1')]) world.paths.configMap(object)
  await world.clock.runFor(1_000)
  world.paths.configMap(faulty('fence-config-node-1'))
  await world.clock.runFor(1_000)
  world.paths.settle()
  await world.clock.runFor(1_000)
  assert.is(kept(world.server), undefined)
})

test.run()
