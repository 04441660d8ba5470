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
  const begin = (identity: string, address: string, lookEvery = 10_000): { kept?: Authority } => {
    const begun: { kept?: Authority } = {}
    void keepAuthority({ api, clock, log: silentLog, namespace: 'system', agentNamespace: 'agents', identity, address, lookEvery, renewed: (serving) => renewed.push(serving) })
      .then((authority) => { begun.kept = authority })
    return begun
  }
  const keptBy = async (begun: { kept?: Authority }): Promise<Authority> => {
    await clock.runWhen(() => begun.kept !== undefined, 60_000)
    if (begun.kept === undefined) throw new Error('no authority within a minute')
    return begun.kept
  }
  const keep = (identity: string, address: string, lookEvery?: number): Promise<Authority> => keptBy(begin(identity, address, lookEvery))
  const map = (): Record<string, string> => {
    const found = server.peek('configmaps').find((object) => object.metadata.name === 'holdfast-authority')
    return (found as KubeObject & { data?: Record<string, string> } | undefined)?.data ?? {} // it is a ConfigMap
  }
  const removeSecret = async (): Promise<void> => {
    const gone = api.remove('/api/v1/namespaces/system/secrets/holdfast-authority')
    await clock.runFor(1_000)
    assert.ok((await gone).ok)
  }
  return { clock, begin, keptBy, keep, map, renewed, server, api, removeSecret }
}

/** Whether whoever believes these certificates believes what this replica serves by. */
function believes(certificates: string | undefined, one: Authority): boolean {
  const pems = certificates?.match(/-----BEGIN[\s\S]*?-----END CERTIFICATE-----/g) ?? []
  return pems.some((pem) => new X509Certificate(one.serving().certificate).verify(new X509Certificate(pem).publicKey))
}

test('two replicas that come first at the same moment end with one authority', async () => {
  const { begin, keptBy, renewed } = cluster()
  const begun = [begin('a', '10.0.0.1'), begin('b', '10.0.0.2')] as const
  const [one, two] = [await keptBy(begun[0]), await keptBy(begun[1])]
  assert.is(one.authorities(), two.authorities())
  assert.is(one.salt, two.salt)
  const authority = new X509Certificate(one.authorities())
  for (const kept of [one, two]) assert.ok(new X509Certificate(kept.serving().certificate).verify(authority.publicKey))
  assert.equal(renewed, [], 'neither had begun with another one')
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

test('while two replicas go through a rotation, what agents read of it a look ago lets them believe both', async () => {
  const { keep, clock, map } = cluster()
  const kept = [await keep('a', '10.0.0.1', day / 4), await keep('b', '10.0.0.2', day / 4)]
  const first = map()['ca.crt']
  let read = first
  while (clock.now() < 400 * day) {
    await clock.runFor(day / 4)
    for (const one of kept) assert.ok(believes(read, one), `on day ${clock.now() / day}`)
    read = map()['ca.crt']
  }
  assert.is.not(read, first)
  for (const one of kept) one.stop()
})

test('of two authorities, since the Secret was deleted and one replica began anew, the one in the Secret holds, for both', async () => {
  const { keep, clock, map, removeSecret } = cluster()
  const [one, two] = [await keep('a', '10.0.0.1'), await keep('b', '10.0.0.2')]
  const before = one.authorities()
  two.stop()
  await removeSecret()
  const anew = await keep('b-2', '10.0.0.2')
  await clock.runFor(20_000)
  assert.is.not(anew.authorities(), before, 'a new one was made')
  for (let looks = 0; looks < 20; looks += 1) {
    await clock.runFor(7_000)
    for (const kept of [one, anew]) assert.ok(believes(map()['ca.crt'], kept), `look ${looks}`)
  }
  assert.is(one.authorities(), anew.authorities())
  one.stop()
  anew.stop()
})

test('a Secret that is gone is written again from what the replicas hold', async () => {
  const { keep, clock, removeSecret } = cluster()
  const [one, two] = [await keep('a', '10.0.0.1', day / 8), await keep('b', '10.0.0.2', day / 8)]
  const before = one.authorities()
  await removeSecret()
  await clock.runFor(2 * day)
  two.stop()
  const anew = await keep('b-2', '10.0.0.2')
  assert.equal([one.authorities(), anew.authorities(), anew.salt], [before, before, one.salt])
  one.stop()
  anew.stop()
})

test('nothing is written over another authority while the Secret cannot be read', async () => {
  const { keep, clock, map, server, api } = cluster()
  const one = await keep('a', '10.0.0.1')
  const found = server.peek('configmaps').find((object) => object.metadata.name === 'holdfast-authority') as KubeObject & { data: Record<string, string> } // it was made above
  const foreign = api.replace('/api/v1/namespaces/agents/configmaps/holdfast-authority', { ...found, data: { ...found.data, 'ca.crt': 'another' } })
  await clock.runFor(1_000)
  assert.ok((await foreign).ok)
  server.faults.set([{ does: 'answer', status: 503, strikes: ({ path }) => path.includes('/secrets/') }])
  await clock.runFor(60_000)
  assert.is(map()['ca.crt'], 'another')
  server.faults.clear()
  await clock.runFor(60_000)
  assert.is(map()['ca.crt'], one.authorities())
  one.stop()
})

test.run()
