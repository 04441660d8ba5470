// `recovery=mark-unschedulable`, as the node fencing proposal prints it: what was fenced comes back, and stays closed to workloads until somebody has looked at it.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { settled } from '../../sim/stage.ts'
import { findings, ourTaints, peace, workload, type Play } from './play.ts'

const test = suite('story: cordoned')
const properties = 'config.properties'
const objects = <T>(on: Play, collection: string): readonly (KubeObject & T)[] => (on.world.server?.peek(collection) ?? []) as readonly (KubeObject & T)[] // the caller knows the kind

/** Of every node of the world. */
async function endsWith(on: Play, mark: string): Promise<void> {
  const maps = objects<{ data?: Record<string, string> }>(on, 'configmaps').filter(({ data }) => data?.[properties]?.includes('recovery=') === true)
  assert.ok(maps.length > 0)
  for (const { metadata: { name, namespace }, data } of maps) {
    const text = data?.[properties]?.replace(/^recovery=.*$/m, (line) => `${line} ${mark}`)
    const patched = await settled(on.world, on.world.api.patch(`/api/v1/namespaces/${namespace}/configmaps/${name}`, 'merge', { data: { [properties]: text } }))
    assert.ok(patched.ok)
  }
  await on.run(10_000)
}

const cordoned = (on: Play): readonly string[] => objects<{ spec?: { unschedulable?: boolean } }>(on, 'nodes').filter(({ spec }) => spec?.unschedulable === true).map(({ metadata }) => metadata.name)


for (const [mark, closed] of [['mark-unschedulable', true], ['mark-schedulable', false]] as const) {
  test(`recovery=… ${mark}: the node is back${closed ? ', and cordoned with the end of its quarantine' : ', as it was'}`, async () => {
    const on = await peace({ seed: 81, nodes: 5, zones: 1 })
    await endsWith(on, mark)
    on.world.freeze(on.victim)
    await on.until('it is fenced', async () => (await on.incidents()).some(({ status }) => status.proof !== undefined), 60_000)
    assert.equal(cordoned(on), [], 'until then the quarantine does it')
    await on.until('it is over', async () => (await on.incidents()).every(({ status }) => status.phase === 'Final'), 240_000)
    const expected = closed ? [on.victim] : []
    assert.equal([(await on.incidents()).map(({ status }) => status.outcome), cordoned(on), ourTaints(on)], [['Recovered'], expected, []])
    await on.run(60_000)
    assert.equal(cordoned(on), expected)
    if (closed) assert.equal(workload(on).filter(({ spec }) => spec.nodeName === on.victim).map(({ metadata }) => metadata.name), [])
    assert.equal(findings(on), [])

    const opened = await settled(on.world, on.world.api.patch(`/api/v1/nodes/${on.victim}`, 'merge', { spec: { unschedulable: null } }))
    assert.ok(opened.ok)
    await on.run(60_000)
    assert.equal(cordoned(on), [], 'a person opens it, and nobody closes it again')
  })
}

test.run()
