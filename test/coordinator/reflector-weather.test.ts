// The reflector against the in-memory API server in bad weather: whatever was lost, cut, forgotten or stalled, the copy ends
// up equal to the truth, and what was told on the way makes sense object by object.
import fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createApi, type KubeObject } from '../../coordinator/api.ts'
import { reflect } from '../../coordinator/reflector.ts'
import { silentLog } from '../../edge/log.ts'
import { admin, createApiServer } from '../../sim/api-server/server.ts'
import { seededChance } from '../../sim/chance.ts'
import { virtualClock } from '../../sim/clock.ts'

const test = suite('reflector in bad weather')

const path = '/api/v1/namespaces/default/configmaps'
const observer = { name: 'observer', groups: ['system:masters', 'system:authenticated'] }

const names = ['a', 'b', 'c'] as const
const steps = fc.array(fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('create', 'change', 'delete', 'again', 'miss'), name: fc.constantFrom(...names) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('break', 'forget', 'away', 'refuse', 'stall', 'clear'), name: fc.constant('') }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('wait'), name: fc.constantFrom('0', '50', '900', '6000', '20000') }) },
), { minLength: 5, maxLength: 40 })

const strikes = ({ user }: { user: { name: string } }) => user.name === 'observer'
const versions = (objects: Iterable<KubeObject>) => [...objects].map(({ metadata: { name, uid, resourceVersion } }) => `${name} ${uid} ${resourceVersion}`).toSorted()

async function live(script: readonly { do: string; name: string }[], freshWithin: number | undefined) {
  const clock = virtualClock()
  const server = createApiServer({ clock, chance: seededChance('server').next })
  const admins = createApi({ transport: server.transportFor(admin), clock, rate: { perSecond: 1e6, burst: 1e6 } })
  const api = createApi({ transport: server.transportFor(observer), clock })
  const told = new Map<string, string | undefined>()
  const nonsense: string[] = []
  const reflector = reflect<KubeObject>({
    api, clock, chance: () => 0.5, path, log: silentLog, ...(freshWithin === undefined ? {} : { freshWithin }),
    changed({ type, key, object, previous }) {
      const known = told.get(key)
      const uid = object.metadata.uid ?? ''
      if (type === 'added' ? known !== undefined : known !== uid) nonsense.push(`${type} ${key} ${uid}, which was ${known}`)
      if (type === 'modified' && previous?.metadata.uid !== uid) nonsense.push(`modified ${key} across UIDs`)
      told.set(key, type === 'deleted' ? undefined : uid)
    },
  })
  let changes = 0
  for (const step of script) {
    const { name } = step
    const make = () => admins.create(path, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { changes: `${changes++}` } })
    switch (step.do) {
      case 'create': await make(); break
      case 'change': await admins.patch(`${path}/${name}`, 'merge', { data: { changes: `${changes++}` } }); break
      case 'delete': await admins.remove(`${path}/${name}`); break
      case 'again': await admins.remove(`${path}/${name}`); await make(); break
      case 'miss':
        // Made again while the observer was away, and the history is gone when he comes back.
        server.faults.set([{ does: 'unreachable', strikes }])
        server.faults.breakWatches(strikes)
        await clock.runFor(500)
        await admins.remove(`${path}/${name}`)
        await make()
        server.faults.compact()
        server.faults.clear()
        break
      case 'break': server.faults.breakWatches(strikes); break
      case 'forget': server.faults.compact(); break
      case 'away': server.faults.set([{ does: 'unreachable', strikes }]); break
      case 'refuse': server.faults.set([{ does: 'answer', status: 500, strikes, times: 3 }]); break
      case 'stall': server.faults.set([{ does: 'stall watch', strikes }]); break
      case 'clear': server.faults.clear(); break
      case 'wait': await clock.runFor(Number(name)); break
    }
  }
  server.faults.clear()
  await clock.runFor(40_000)
  const truth = server.peek('configmaps').filter(({ metadata }) => metadata.namespace === 'default')
  const [copy, real] = [versions(reflector.items.values()), versions(truth)]
  const age = clock.now() - (reflector.freshAt() ?? -Infinity)
  reflector.stop()
  await clock.runFor(0)
  return { copy, real, told, nonsense, age, left: clock.pending() }
}

for (const freshWithin of [undefined, 5_000]) {
  test(`the copy ends up equal to the truth, by ${freshWithin === undefined ? 'long' : 'short'} watches`, async () => {
    await fc.assert(fc.asyncProperty(steps, async (script) => {
      const { copy, real, told, nonsense, age, left } = await live(script, freshWithin)
      assert.equal(copy, real)
      assert.equal(nonsense, [])
      assert.equal([...told.values()].filter((uid) => uid !== undefined).length, real.length)
      assert.is(left, 0)
      if (freshWithin !== undefined) assert.ok(age <= freshWithin + 200, `${age} ms old`)
    }), { numRuns: 60 })
  })
}

test('watches that are stalled while all else works hold nothing back for longer than one of them lasts', async () => {
  const clock = virtualClock()
  const server = createApiServer({ clock, chance: seededChance('server').next })
  const api = createApi({ transport: server.transportFor(admin), clock })
  const reflector = reflect<KubeObject>({ api, clock, chance: () => 0.5, path, log: silentLog, freshWithin: 5_000, changed: () => undefined })
  await clock.runFor(20_000)
  server.faults.set([{ does: 'stall watch' }])
  assert.ok((await api.create(path, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } })).ok)
  await clock.runFor(30_000)
  assert.not(reflector.items.has('a'))
  server.faults.clear()
  await clock.runFor(8_500)
  assert.ok(reflector.items.has('default/a'))
  assert.ok(clock.now() - (reflector.freshAt() ?? 0) <= 5_200)
  reflector.stop()
})

test('the same script gives the same story', async () => {
  const script = [{ do: 'create', name: 'a' }, { do: 'wait', name: '900' }, { do: 'break', name: '' }, { do: 'again', name: 'a' }, { do: 'forget', name: '' }, { do: 'wait', name: '6000' }, { do: 'change', name: 'a' }]
  const [one, two] = [await live(script, 5_000), await live(script, 5_000)]
  assert.equal([one.copy.length, one.age, one.real.map((line) => line.split(' ')[2])], [two.copy.length, two.age, two.real.map((line) => line.split(' ')[2])])
})

test.run()
