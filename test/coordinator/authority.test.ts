import { X509Certificate } from 'node:crypto'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createApi, type KubeObject } from '../../coordinator/api.ts'
import { keepAuthority, type Authority } from '../../coordinator/authority.ts'
import { silentLog } from '../../edge/log.ts'
import type { Serving } from '../../edge/tls-link.ts'
import { admin, createApiServer } from '../../sim/api-server/server.ts'
import { seededChance } from '../../sim/chance.ts'
import { virtualClock } from '../../sim/clock.ts'

const test = suite('authority')
const day = 86_400_000

function cluster() {
  const clock = virtualClock()
  const chance = seededChance(1)
  const server = createApiServer({ clock, chance: () => chance.next() })
  const api = createApi({ transport: server.transportFor(admin), clock })
  for (const name of ['system', 'agents']) server.plant({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  const renewed: Serving[] = []
  const keep = async (identity: string, address: string, lookEvery = 10_000): Promise<Authority> => {
    let kept: Authority | undefined
    void keepAuthority({ api, clock, log: silentLog, namespace: 'system', agentNamespace: 'agents', identity, address, lookEvery, renewed: (serving) => renewed.push(serving) })
      .then((authority) => { kept = authority })
    await clock.runWhen(() => kept !== undefined, 60_000)
    if (kept === undefined) throw new Error('no authority within a minute')
    return kept
  }
  const map = (): Record<string, string> => {
    const found = server.peek('configmaps').find((object) => object.metadata.name === 'holdfast-authority')
    return (found as KubeObject & { data?: Record<string, string> } | undefined)?.data ?? {} // it is a ConfigMap
  }
  return { clock, keep, map, renewed, server, api }
}

test('two replicas that come first together end with one authority', async () => {
  const { keep } = cluster()
  const [one, two] = [await keep('a', '10.0.0.1'), await keep('b', '10.0.0.2')]
  assert.is(one.authorities(), two.authorities())
  assert.is(one.salt, two.salt)
  const authority = new X509Certificate(one.authorities())
  for (const kept of [one, two]) assert.ok(new X509Certificate(kept.serving().certificate).verify(authority.publicKey))
  one.stop()
  two.stop()
})

test('the ConfigMap bears what agents must know and no key', async () => {
  const { keep, map, clock } = cluster()
  const one = await keep('a', '10.0.0.1')
  one.replicas('10.0.0.1:7414', () => undefined)
  await clock.runFor(1_000)
  assert.is(map()['ca.crt'], one.authorities())
  assert.ok(map()['replicas']?.includes('10.0.0.1:7414'))
  assert.not.ok(JSON.stringify(map()).includes('PRIVATE'))
  one.stop()
})

test('replicas learn of each other', async () => {
  const { keep, clock } = cluster()
  const [one, two] = [await keep('a', '10.0.0.1'), await keep('b', '10.0.0.2')]
  let told: readonly string[] = []
  one.replicas('10.0.0.1:7414', (addresses) => { told = addresses })
  two.replicas('10.0.0.2:7414', () => undefined)
  await clock.runFor(30_000)
  assert.equal(told, ['10.0.0.1:7414', '10.0.0.2:7414'])
  one.stop()
  two.stop()
})

test('a replica that returns under the same address takes its old entry\'s place', async () => {
  const { keep, map, clock } = cluster()
  const one = await keep('a-1', '10.0.0.1')
  one.replicas('10.0.0.1:7414', () => undefined)
  await clock.runFor(1_000)
  one.stop()
  const again = await keep('a-2', '10.0.0.1')
  again.replicas('10.0.0.1:7414', () => undefined)
  await clock.runFor(1_000)
  assert.is(map()['replicas']?.match(/10\.0\.0\.1:7414/g)?.length, 1)
  again.stop()
})

test('a replica that stops is dialled by nobody any more', async () => {
  const { keep, map, clock } = cluster()
  const [one, two] = [await keep('a', '10.0.0.1'), await keep('b', '10.0.0.2')]
  const end = one.replicas('10.0.0.1:7414', () => undefined)
  two.replicas('10.0.0.2:7414', () => undefined)
  await clock.runFor(30_000)
  end()
  await clock.runFor(5)
  one.stop()
  await clock.runFor(30_000)
  assert.not.ok(map()['replicas']?.includes('10.0.0.1'))
  assert.ok(map()['replicas']?.includes('10.0.0.2:7414'))
  two.stop()
})

test('the Secret is looked at once a day, not every ten seconds', async () => {
  const { keep, clock, server } = cluster()
  const one = await keep('a', '10.0.0.1', 60_000)
  await clock.runFor(2 * day)
  let reads = 0
  server.faults.set([{ does: 'slow', by: 0, strikes: (call) => {
    if (call.path.includes('/secrets/')) reads += 1
    return false
  } }])
  await clock.runFor(day)
  assert.ok(reads <= 2, `${reads} in a day`)
  one.stop()
})

test('a Secret that somebody spoiled ends no replica: it serves by what it has', async () => {
  const { keep, map, clock, server, api } = cluster()
  const one = await keep('a', '10.0.0.1', day / 8)
  const [before, believed] = [one.serving().certificate, one.authorities()]
  const secret = server.peek('secrets').find((object) => object.metadata.name === 'holdfast-authority') as KubeObject & { data: Record<string, string> } // it was made above
  const spoiled = api.replace('/api/v1/namespaces/system/secrets/holdfast-authority', { ...secret, data: { ...secret.data, 'current.crt': Buffer.from('nothing').toString('base64') } })
  await clock.runFor(1_000)
  assert.ok((await spoiled).ok)
  await clock.runFor(5 * day)
  assert.equal([one.serving().certificate, one.authorities(), map()['ca.crt']], [before, believed, believed])
  one.stop()
})

test('a new authority is believed two days before anybody serves by it, and the old one as long after', async () => {
  const { keep, clock, renewed } = cluster()
  const one = await keep('a', '10.0.0.1', day / 4)
  const first = new X509Certificate(one.authorities())
  const servedBy = (authority: X509Certificate): boolean => new X509Certificate(one.serving().certificate).verify(authority.publicKey)
  const believed = (): string[] => one.authorities().match(/-----BEGIN/g) ?? []
  while (believed().length < 2) {
    await clock.runFor(day)
    assert.ok(servedBy(first))
    assert.ok(clock.now() < 400 * day, 'half a life is over')
  }
  await clock.runFor(day)
  assert.ok(servedBy(first), 'not yet by the new one')
  await clock.runFor(2 * day)
  assert.not.ok(servedBy(first), 'by the new one')
  assert.is(believed().length, 2, 'the old one is still believed')
  assert.ok(renewed.length > 0)
  one.stop()
})

test.run()
