import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readSettings } from '../../coordinator/settings.ts'

const test = suite('settings')
const least = { HOLDFAST_IDENTITY: 'holdfast-coordinator-0', HOLDFAST_ADDRESS: '10.1.0.4' }

test('identity and address are enough', () => {
  const read = readSettings(least)
  assert.ok(read.ok)
  assert.is(read.settings.beatsPort, 7_414)
  assert.equal([read.settings.auditAt, read.settings.pruneAt], ['0 * * * *', '17 3 * * *'])
  assert.equal(read.settings.fenceAgents, ['/holdfast/fence-agents', '/usr/sbin/fence_*'])
})

test('every fault is listed at once, by its variable', () => {
  const read = readSettings({ HOLDFAST_IDENTITY: ' ', HOLDFAST_BEATS_PORT: 'many', HOLDFAST_HTTP_PORT: '70000', HOLDFAST_AUDIT_AT: 'now and then', HOLDFAST_PRUNE_AT: 'at night', HOLDFAST_LOG_LEVEL: 'loud' })
  assert.not.ok(read.ok)
  const told = read.ok ? '' : read.faults.join('\n')
  for (const name of ['IDENTITY', 'ADDRESS', 'BEATS_PORT', 'HTTP_PORT', 'AUDIT_AT', 'PRUNE_AT', 'LOG_LEVEL']) assert.ok(told.includes(`HOLDFAST_${name}`), `${name} in ${told}`)
})

test.run()
