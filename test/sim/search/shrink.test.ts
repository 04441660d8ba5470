import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Schedule } from '../../../sim/search/schedule.ts'
import { shrink } from '../../../sim/search/shrink.ts'

const test = suite('search: shrinking')

const failing: Schedule = {
  seed: 1, reliefAt: 0, shortest: 0,
  scene: { nodes: 7, zones: 3, replicas: 3, profile: 'fast', feed: 'own', power: 'two feeds on two strips', wants: 'little patience', second: 'balanced' },
  troubles: ['a', 'b', 'c', 'd'].map((does, index) => ({ does, at: index * 1_000, span: 8_000, on: 'victim' })),
}
const does = (schedule: Schedule): string => schedule.troubles.map((trouble) => trouble.does).join('')

test('what is left fails still, and nothing of it can be spared', async () => {
  const least = await shrink(failing, 'safety', async (schedule) => (does(schedule).includes('b') && does(schedule).includes('d') ? ['safety'] : []))
  assert.is(does(least), 'bd')
  assert.equal(least.scene, { nodes: 3, zones: 3, replicas: 2, profile: 'fast', feed: 'own' })
  assert.ok(least.troubles.every(({ span }) => span <= 1_000))
})

test('of whatever else its cluster has, what the failure does not need goes; a node that is gone is not named', async () => {
  const scene: Schedule['scene'] = {
    ...failing.scene, gate: true, givesUp: true, cleansUp: true, bare: 'node-7', watchdog: 'ten seconds', apart: true, evicts: '20s', audited: true, dumps: 'accepted', shared: true, remedy: 'fence',
  }
  const least = await shrink({ ...failing, scene }, 'safety', async ({ scene: { dumps } }) => (dumps !== undefined ? ['safety'] : []))
  assert.equal(least.scene, { nodes: 3, zones: 3, replicas: 2, profile: 'fast', feed: 'own', dumps: 'accepted' })
  const tried: Schedule['scene'][] = []
  await shrink({ ...failing, scene }, 'safety', async (schedule) => {
    tried.push(schedule.scene)
    return schedule.scene.bare === undefined ? [] : ['safety']
  })
  assert.equal(tried.filter(({ bare = 'node-1', nodes }) => Number(bare.slice(5)) > nodes), [])
})

test('another judge\'s word is another failure, and not followed', async () => {
  const least = await shrink(failing, 'safety', async (schedule) => (schedule.troubles.length === 4 && schedule.scene.nodes === 7 ? ['safety'] : ['liveness']))
  assert.is(does(least), 'abcd')
})

test('what the failure needs of the racks and the policies stays', async () => {
  const least = await shrink(failing, 'safety', async ({ scene: { power, wants, second } }) => (power !== undefined && wants !== undefined && second !== undefined ? ['safety'] : []))
  assert.equal([does(least), least.scene], ['', { ...failing.scene, nodes: 3, replicas: 2 }])
})

test('it gives up after a while', async () => {
  let tries = 0
  await shrink({ ...failing, troubles: Array.from({ length: 200 }, (_, at) => ({ does: 'a', at, span: 1_000_000, on: '' })) }, 'safety', async () => ((tries += 1) % 2 === 0 ? ['safety'] : []))
  assert.ok(tries <= 100, String(tries))
})

test.run()
