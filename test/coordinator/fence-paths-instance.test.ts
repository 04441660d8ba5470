// Paths of nodes that name their instance, and the Secrets of their clouds.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { wordless } from '../../coordinator/fence-config-node.ts'
import { defaultPolicy, type Policy } from '../../core/policy.ts'
import { map, only, small, template } from './fence-paths-world.ts'

const test = suite('fence paths: instance')

const instance = 'aws:///eu-west-1a/i-0123456789abcdef0'

test('a node that names its instance has a path without any map, and none while another names the same', async () => {
  const { clock, paths, nodes, inForce, told } = small('node-1')
  paths.nodeSeen('node-1', instance, wordless)
  await clock.runFor(1_000)
  assert.equal([only(inForce.get('node-1')).agent, only(inForce.get('node-1')).claimed], ['aws', true])
  nodes.add('node-2')
  paths.nodeSeen('node-2', instance, wordless)
  await clock.runFor(1_000)
  for (const node of ['node-1', 'node-2']) assert.equal(inForce.get(node)?.levels, [], node)
  assert.match(told.at(-1)?.sentences.join() ?? '', /is named by node-2 too/)
  nodes.delete('node-2')
  paths.nodeGone('node-2')
  await clock.runFor(2_000)
  assert.is(inForce.get('node-1')?.levels.length, 1)
})

for (const [what, one, other] of [
  ['a UUID of vSphere, as its firmware turns it', 'vsphere://4203942f-ce98-3f27-455c-463d34b8af41', 'vsphere://2F940342-98CE-273F-455C-463D34B8AF41'],
  ['an instance of EC2 in another zone', instance, 'aws:///eu-west-1b/i-0123456789abcdef0'],
  ['a server in a region that is named once', 'openstack:///11111111-2222-3333-4444-555555555555', 'openstack://one/11111111-2222-3333-4444-555555555555'],
  ['a machine of Azure in other letters', 'azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/v', 'azure:///subscriptions/s/resourceGroups/G/providers/Microsoft.Compute/virtualMachines/V'],
] as const) {
  test(`${what} is the same instance`, async () => {
    const { clock, paths, inForce, told } = small('node-1', 'node-2')
    paths.policies([{ ...defaultPolicy, name: 'all', cloudCredentials: 'cloud' }])
    paths.secret(map('cloud', Object.fromEntries(['ip', 'access_key', 'secret_key', 'username', 'password', 'tenantId', 'application_credential_id', 'application_credential_secret'].map((key) => [key, '']))))
    paths.nodeSeen('node-1', one, wordless)
    await clock.runFor(1_000)
    assert.is(inForce.get('node-1')?.levels.length, 1)
    paths.nodeSeen('node-2', other, wordless)
    await clock.runFor(1_000)
    for (const node of ['node-1', 'node-2']) assert.equal(inForce.get(node)?.levels, [], node)
    assert.match(told.at(-1)?.sentences.join() ?? '', /is named by node-2 too/)
    paths.nodeSeen('node-2', '', wordless)
    await clock.runFor(1_000)
    assert.is(inForce.get('node-1')?.levels.length, 1)
  })
}

test('two nodes that name one machine of vSphere are both told, though the policy of one alone names a Secret', async () => {
  const { clock, paths, inForce } = small('node-1', 'node-2')
  paths.policies([{ ...defaultPolicy, name: 'paying', priority: 1, nodeLabels: { pool: 'paying' }, cloudCredentials: 'cloud' }])
  paths.secret(map('cloud', { ip: '', username: '', password: '' }))
  const ofVsphere = 'vsphere://4203942f-ce98-3f27-455c-463d34b8af41'
  paths.nodeSeen('node-1', ofVsphere, { ...wordless, labels: { pool: 'paying' } })
  await clock.runFor(1_000)
  assert.is(inForce.get('node-1')?.levels.length, 1)
  paths.nodeSeen('node-2', ofVsphere, wordless)
  await clock.runFor(1_000)
  for (const node of ['node-1', 'node-2']) {
    assert.equal(inForce.get(node)?.levels, [], node)
    assert.match(inForce.get(node)?.faults.join() ?? '', /is named by node-[12] too/, node)
  }
})

test('a node that is gone and not forgotten yet keeps the path to its instance', async () => {
  const { clock, paths, inForce } = small('node-1')
  paths.nodeSeen('node-1', instance, wordless)
  await clock.runFor(1_000)
  paths.nodeGone('node-1')
  paths.configMap(template('plain'))
  await clock.runFor(1_000)
  assert.is(inForce.get('node-1')?.levels.length, 1)
})

const ec2Keys = (text: string): KubeObject => map('ec2', { access_key: Buffer.from('AKIA').toString('base64'), secret_key: Buffer.from(text).toString('base64') })

test('a policy names the Secret of its nodes\' clouds, and what changes in either is a new path', async () => {
  const { clock, paths, inForce, changed, told } = small('node-1', 'node-2')
  paths.nodeSeen('node-1', instance, { labels: { pool: 'cloud' }, annotations: {} })
  paths.nodeSeen('node-2', 'aws:///eu-west-1a/i-0a1b2c3d', wordless)
  await clock.runFor(1_000)
  const [first, other] = [only(inForce.get('node-1')).digest, only(inForce.get('node-2')).digest]
  const policy: Policy = { ...defaultPolicy, name: 'cloud', priority: 1, nodeLabels: { pool: 'cloud' }, cloudCredentials: 'ec2' }
  paths.policies([{ ...defaultPolicy, name: 'all' }, policy])
  await clock.runFor(1_000)
  assert.equal(inForce.get('node-1')?.levels.length, 1, 'the last good one')
  assert.match(told.at(-1)?.sentences.join() ?? '', /HoldfastPolicy cloud, spec.cloudCredentials: Secret ec2 is not there/)
    paths.secret(ec2Keys('one'))
  await clock.runFor(1_000)
  const second = only(inForce.get('node-1')).digest
  paths.secret(ec2Keys('two'))
  await clock.runFor(1_000)
  const third = only(inForce.get('node-1')).digest
  assert.is(new Set([first, second, third]).size, 3)
  assert.is(only(inForce.get('node-2')).digest, other, 'which no such policy selects')
  assert.equal(inForce.get('node-1')?.faults, [])
  changed.length = 0
  paths.policies([{ ...defaultPolicy, name: 'all', retries: 5 }, { ...policy, retries: 5 }])
  await clock.runFor(1_000)
  assert.equal(changed, [], 'what else a policy says is nothing to a path')
  paths.policies([])
  await clock.runFor(1_000)
  assert.is(only(inForce.get('node-1')).digest, first)
})

test('a Node whose providerID comes later has its path then', async () => {
  const { clock, paths, inForce } = small('node-1')
  paths.nodeSeen('node-1', '', wordless)
  await clock.runFor(1_000)
  assert.equal(inForce.get('node-1')?.levels, [])
  paths.nodeSeen('node-1', instance, wordless)
  await clock.runFor(1_000)
  assert.is(inForce.get('node-1')?.levels.length, 1)
})

test.run()
