// What the program makes of a storage that obeys, fails, lags or is not asked at all.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { filled, wordless } from '../../coordinator/fence-config-node.ts'
import { linesOf, testOver } from './agent-test.ts'
import { inStorage, type Driver } from './network-fences.ts'
import { programsHere } from './place.ts'

const test = suite('storage')

test('off, off, status, on, each read back; lifted before it is deleted', () => inStorage(async ({ cluster, at, refused, fences: all }) => {
  const { ask } = cluster.place
  assert.is((await ask('storage', 'status', at)).state, 'on')
  assert.is((await cluster.place.started.ask('storage', 'off', at)).state, 'off')
  assert.equal([...refused], ['10.0.0.7/32', 'fd00::7/128'])
  assert.is((await ask('storage', 'off', at)).state, 'off')
  const word = await ask('storage', 'status', { ...at, cidrs: 'FD00::7 10.0.0.7/32' })
  assert.is(word.state, 'off', 'the same addresses, written otherwise')
  assert.match(word.evidence ?? '', /Fenced of 10\.0\.0\.7\/32 fd00::7\/128, Succeeded: fencing operation successful/)
  assert.is((await ask('storage', 'on', at)).state, 'on')
  assert.equal([[...refused], all()], [[], []])
  assert.is((await ask('storage', 'status', at)).state, 'on')
}))

test('{addresses} of a method is what it takes for cidrs=, of either family and beside others', () => inStorage(async ({ cluster, at, refused }) => {
  const node = { ...wordless, name: 'n1', addresses: ['10.0.0.7', 'fd00::7'] }
  for (const [cidrs, told] of [['{addresses}', []], ['{addresses} 192.0.2.7/32', ['192.0.2.7/32']]] as const) {
    const params = { ...at, cidrs: String(filled(cidrs, node)) }
    assert.is((await cluster.place.ask('storage', 'off', params)).state, 'off')
    assert.equal([...refused].toSorted(), ['10.0.0.7/32', ...told, 'fd00::7/128'])
    assert.is((await cluster.place.ask('storage', 'on', params)).state, 'on')
  }
}))

test('every clause of the contract is kept', () => inStorage(async ({ params }) => {
  const rows = await testOver(programsHere, 'storage', linesOf(params), () => undefined)
  assert.equal(rows.filter(({ verdict }) => verdict !== 'kept').map(({ clause, verdict }) => [clause, verdict]), [
    ['off at a device that never answers: exit 1, by itself, within 30 s', 'not run'], ['status where nobody listens: exit 1', 'not run'],
  ], 'the address is in server=')
}))

test('a driver that is slow is waited for; one that fails at first is too', async () => {
  await inStorage(async ({ cluster, at, refused }) => {
    assert.is((await cluster.place.ask('storage', 'off', at)).state, 'off')
    assert.is(refused.size, 2)
  }, { lag: 700, away: false, fails: 0 })
  await inStorage(async ({ cluster, at, refused }) => {
    assert.is((await cluster.place.ask('storage', 'off', at)).state, 'off')
    assert.is(refused.size, 2)
  }, { lag: 0, away: false, fails: 3 })
})

test('a controller that does not run, or a driver that goes on failing, is not off', async () => {
  await inStorage(async ({ cluster, at }) => {
    const word = await cluster.place.ask('storage', 'off', { ...at, power_timeout: '0.5' })
    assert.is(word.state, 'failed')
    assert.match(word.reason, /^timeout \(ordered off, and still: .*no result yet/)
    assert.is((await cluster.place.ask('storage', 'status', at)).state, 'unknown')
  }, { lag: 0, away: true, fails: 0 })
  await inStorage(async ({ cluster, at }) => {
    assert.match((await cluster.place.ask('storage', 'off', { ...at, power_timeout: '0.5' })).reason, /no monitor answers/)
  }, { lag: 0, away: false, fails: 99 })
})

test('what stands for a wish that was turned back is never taken for the new one', async () => {
  const driver: Driver = { lag: 0, away: false, fails: 0 }
  await inStorage(async ({ cluster, at, refused, fences: all }) => {
    const { ask } = cluster.place
    assert.is((await ask('storage', 'off', at)).state, 'off')
    driver.away = true
    assert.is((await ask('storage', 'on', { ...at, power_timeout: '0.3' })).state, 'failed')
    // Its status is still the word on the fence, and it is ordered off again before anybody has lifted it.
    assert.equal(all().map(({ spec, status }) => [spec?.['fenceState'], status?.['message']]), [['Unfenced', 'fencing operation successful']])
    assert.is((await ask('storage', 'status', at)).state, 'unknown')
    assert.is((await ask('storage', 'off', { ...at, power_timeout: '0.3' })).state, 'failed')
    driver.away = false
    refused.clear()
    assert.is((await ask('storage', 'off', at)).state, 'off')
    assert.is(refused.size, 2)
  }, driver)
})

test('a fence of other addresses, or one that somebody deletes, is neither on nor off, and is lifted with the others', () => inStorage(async ({ cluster, at, refused, fences: all }) => {
  const { ask } = cluster.place
  assert.is((await ask('storage', 'off', { ...at, cidrs: '10.0.0.8' })).state, 'off')
  assert.match((await ask('storage', 'status', at)).reason, /^config \(a NetworkFence stands for other addresses/)
  assert.is((await ask('storage', 'off', at)).state, 'off')
  assert.is(all().length, 2)
  for (const object of all()) object.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'
  assert.is((await ask('storage', 'status', at)).state, 'unknown')
  for (const object of all()) delete object.metadata.deletionTimestamp
  assert.is((await ask('storage', 'on', at)).state, 'on')
  assert.equal([[...refused], all()], [[], []])
}))

test('of two classes each is its own', () => inStorage(async ({ cluster, at, fences: all }) => {
  const { ask } = cluster.place
  for (const name of ['rbd', 'cephfs']) assert.is((await ask('storage', 'off', { ...at, class: name })).state, 'off')
  assert.is((await ask('storage', 'on', { ...at, class: 'cephfs' })).state, 'on')
  assert.equal(all().map(({ spec }) => spec?.['networkFenceClassName']), ['rbd'])
  assert.is((await ask('storage', 'status', at)).state, 'off')
}))

for (const [name, over, reason] of [
  ['a node that is not there', { plug: 'n9' }, /^notfound/],
  ['a class that is not there', { class: 'nfs' }, /^config \(there is no NetworkFenceClass nfs/],
  ['a range that others live in', { cidrs: '10.0.0.0/24' }, /^config \(cidrs=/],
  ['no address', { cidrs: 'n1' }, /^config/],
  ['a path for a node', { plug: '../pods' }, /^config/],
  ['a server without TLS', { server: 'http://127.0.0.1:8080' }, /^config/],
  ['nobody there', { server: 'https://127.0.0.1:1' }, /^unreachable/],
  ['no token', { token_file: '/nonexistent' }, /^config \(token_file=/],
] as const) {
  test(`${name}: refused with the reason, and nobody is cut off`, () => inStorage(async ({ cluster, at, refused, fences: all }) => {
    const word = await cluster.place.ask('storage', 'off', { ...at, ...over, power_timeout: '1' })
    assert.is(word.state, 'failed')
    assert.match(word.reason, reason)
    assert.not.match(JSON.stringify(word), /hush/)
    assert.equal([refused.size, all().length], [0, 0])
  }))
}

test('an account that may not, a cluster without csi-addons, and one that is mute: neither on nor off', () => inStorage(async ({ cluster, at }) => {
  const { ask, folder } = cluster.place
  assert.match((await ask('storage', 'status', { ...at, token_file: join(folder, 'wrong-token') })).reason, /^auth/)
  writeFileSync(join(folder, 'gone'), '')
  assert.match((await ask('storage', 'status', at)).reason, /^config \(.*does the cluster know this kind/)
  cluster.fault('mute')
  const word = await ask('storage', 'status', { ...at, shell_timeout: '0.3', login_timeout: '0.3' })
  assert.equal([word.state, word.reason.split(' ')[0]], ['unknown', 'timeout'])
}))

test.run()
