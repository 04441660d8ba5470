// What a Node's providerID names, and what a cloud's machines share.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readFenceConfigs, type FenceConfigMap, type NodeFenceConfig } from '../../coordinator/fence-config.ts'
import { readMetadata } from '../../core/agent-metadata.ts'
import { bmc, configOf, names, one, secrets, told } from './fence-maps.ts'

const test = suite('fence-config: instance')

/** Nodes of one template of EC2, each with the instance that it names. */
function inCloud(plugs: Readonly<Record<string, string>>): FenceConfigMap[] {
  return [
    { name: 'fence-method-template-x', data: { 'template.properties': 'agent_name=aws\nregion=eu-west-1' } },
    ...Object.entries(plugs).map(([node, plug]) => ({
      name: `fence-config-${node}`, data: { 'config.properties': 'power_management=off', 'fence-method-off': `template=fence-method-template-x\naction=off\nplug=${plug}` },
    })),
  ]
}

const cloudDevices = (plugs: Readonly<Record<string, string>>) => Object.keys(plugs).map((node) => configOf(inCloud(plugs), node).methods['off']?.device)

test('nodes of one cloud do not wait for one another, and two that name one instance do', () => {
  assert.is(new Set(cloudDevices({ 'node-1': 'i-1', 'node-2': 'i-2' })).size, 2)
  assert.is(new Set(cloudDevices({ 'node-1': 'i-1', 'node-2': 'i-1' })).size, 1)
})

const claiming = (maps: readonly FenceConfigMap[], providerID: string, twins: readonly string[] = [], before?: NodeFenceConfig) =>
  readFenceConfigs(maps, secrets, 'salt').forNode('node-1', before, { providerID, twins })
/** Of a Node whose policy names the Secret `cloud`, in which this stands. */
const paying = (providerID: string, cloud: Readonly<Record<string, string>>, before?: NodeFenceConfig) =>
  readFenceConfigs([], ({ secret, key }) => (secret === 'cloud' ? cloud[key] : undefined), 'salt').forNode('node-1', before, { providerID, twins: [], credentials: { policy: 'usual', secret: 'cloud' } })
const ofAws = 'aws:///eu-west-1a/i-0123456789abcdef0'

for (const [providerID, agent] of [
  [ofAws, 'aws'], ['gce://prod/europe-west1-b/node-1', 'gce'], ['openstack:///11111111-2222-3333-4444-555555555555', 'openstack'],
  ['openstack://one/11111111-2222-3333-4444-555555555555', 'openstack'],
  ['azure:///subscriptions/0000-1/resourceGroups/Nodes_1/providers/Microsoft.Compute/virtualMachines/node-1', 'azure'],
  ['azure:///subscriptions/0000-1/resourceGroups/nodes/providers/Microsoft.Compute/virtualMachineScaleSets/pool/virtualMachines/3', 'azure'],
] as const) {
  test(`no configuration is needed by a Node that names ${providerID}`, () => {
    const config = claiming([], providerID)
    assert.equal(told(config), [])
    assert.equal(names(config), [['restart-instance']])
    const method = config.path.levels[0]?.[0]
    assert.equal([method?.agent, method?.claimed, method?.device, method?.reach], [agent, true, `${agent} ${providerID}`, agent])
    assert.equal(config.methods['restart-instance']?.parameters, { plug: providerID })
    assert.equal(config.methods['restart-instance']?.on, { plug: providerID })
  })
}

for (const [providerID, cloud, keys] of [
  [ofAws, { access_key: 'a', secret_key: 'hush', plug: 'i-1', action: 'on' }, ['access_key', 'secret_key']],
  [ofAws, { access_key: 'a', secret_key: 'hush', session_token: 'hush' }, ['access_key', 'secret_key', 'session_token']],
  ['gce://prod/europe-west1-b/node-1', { serviceaccount: 'hush', access_key: 'a' }, ['serviceaccount']],
  ['azure:///subscriptions/0000-1/resourceGroups/nodes/providers/Microsoft.Compute/virtualMachines/node-1', { username: 'u', password: 'hush', tenantId: 't' }, ['username', 'password', 'tenantId']],
  ['vsphere://4203942F-ce98-3f27-455c-463d34b8af41', { ip: 'vcenter.example', username: 'u', password: 'hush', ca: 'hush', ssl_insecure: '1' }, ['ip', 'username', 'password', 'ca']],
  ['openstack:///11111111-2222-3333-4444-555555555555', { username: 'u', password: 'hush', project_name: 'p', auth_url: 'https://keystone' }, ['username', 'password', 'project_name', 'auth_url']],
  ['openstack:///11111111-2222-3333-4444-555555555555', { username: 'u', password: 'hush', project_name: 'p', application_credential_id: 'i', application_credential_secret: 'hush' }, ['application_credential_id', 'application_credential_secret']],
] as const) {
  test(`the program of ${providerID.split(':')[0]} is told what the policy's Secret has of it, ${keys.join(' ')}, and nothing else of it`, () => {
    const config = paying(providerID, cloud)
    assert.equal(told(config), [])
    const wanted = { plug: providerID, ...Object.fromEntries(keys.map((key) => [key, { secret: 'cloud', key }])) }
    assert.equal([config.methods['restart-instance']?.parameters, config.methods['restart-instance']?.on], [wanted, wanted])
    assert.not.match(JSON.stringify(config), /hush/)
  })
}

const firstDigest = (config: NodeFenceConfig) => config.path.levels[0]?.[0]?.digest

test('a Secret of the policy that changes is another path; one that is not there, or lacks a key, is a fault with its place', () => {
  const keys = { access_key: 'a', secret_key: 'one' }
  const good = paying(ofAws, keys)
  assert.is(firstDigest(paying(ofAws, keys)), firstDigest(good))
  assert.is.not(firstDigest(paying(ofAws, { ...keys, secret_key: 'two' })), firstDigest(good))
  assert.is.not(firstDigest(claiming([], ofAws)), firstDigest(good))
  for (const [cloud, says] of [
    [{}, /HoldfastPolicy usual, spec.cloudCredentials: Secret cloud is not there, or does not bear the label holdfast.dev\/fence-secret, or has nothing that aws knows: it needs access_key, secret_key/],
    [{ access_key: 'hush' }, /HoldfastPolicy usual, spec.cloudCredentials: Secret cloud lacks secret_key: aws needs access_key, secret_key$/],
    [{ secret_key: 'hush', session_token: 'hush' }, /Secret cloud lacks access_key: aws needs/],
  ] as const) {
    const config = paying(ofAws, cloud)
    assert.equal([names(config), config.path.faults.length], [[], 1])
    assert.match(told(config).join(), says)
    assert.not.match(told(config).join(), /hush/)
    assert.equal([names(paying(ofAws, cloud, good)), paying(ofAws, cloud, good).outdated], [[['restart-instance']], true], 'the last good one stays')
  }
  assert.match(told(paying('openstack:///11111111-2222-3333-4444-555555555555', { username: 'u', password: 'p' })).join(), /lacks project_name: openstack needs application_credential_id, application_credential_secret; or username, password, project_name$/)
})

for (const providerID of [
  '', 'kind://docker/c/n', 'aws:///eu-west-1a/i-1,i-2', 'aws:///eu-west-1a/i-0123456789abcdef0,i-1', 'aws:///eu-west-1a/i-0123456789abcdef0\nplug=i-1', 'aws://x', 'gce://prod/europe-west1-b/',
  'gce://prod/b/node-1/../node-2', 'azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/v,w', 'azure:///subscriptions/s/resourceGroups/../providers/Microsoft.Compute/virtualMachines/v',
  'azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/v/powerOff', 'vsphere://4203942f-ce98-3f27-455c-463d34b8af41',
]) {
  test(`${JSON.stringify(providerID)} names no instance that could be switched unwritten`, () => {
    assert.equal([names(claiming([], providerID)), told(claiming([], providerID))], [[], []])
    assert.match(told(claiming(one('power_management=restart-instance', {}), providerID)).join(), /needs a Node whose spec.providerID/)
  })
}

test('an instance that another Node names too is nobody\'s, whatever was in force', () => {
  const alone = claiming([], ofAws)
  for (const config of [claiming([], ofAws, ['node-2'], alone), claiming(one('power_management=restart-instance', {}), ofAws, ['node-2'], alone)]) {
    assert.equal([names(config), config.methods], [[], {}])
    assert.match(told(config).join(), /is named by node-2 too/)
  }
  // What a person wrote does not ask the Node.
  const written = one('power_management=off', { off: bmc })
  assert.equal(names(claiming(written, ofAws, ['node-2'])), [['off']])
})

test('nor does it become one node\'s because the other has no credentials for it, or has lost them', () => {
  const providerID = 'vsphere://4203942f-ce98-3f27-455c-463d34b8af41'
  const there: Readonly<Record<string, string>> = { ip: 'vcenter.example', username: 'u', password: 'hush' }
  const read = (maps: readonly FenceConfigMap[], credentials: boolean, twins: readonly string[], before?: NodeFenceConfig) =>
    readFenceConfigs(maps, ({ secret, key }) => (secret === 'cloud' ? there[key] : undefined), 'salt')
      .forNode('node-1', before, { providerID, twins, ...(credentials ? { credentials: { policy: 'usual', secret: 'cloud' } } : {}) })
  for (const maps of [[], one('power_management=restart-instance', {})]) {
    const alone = read(maps, true, [])
    assert.equal(names(alone), [['restart-instance']])
    for (const credentials of [true, false]) {
      const config = read(maps, credentials, ['node-2'], alone)
      assert.equal([names(config), config.methods], [[], {}], `credentials: ${credentials}`)
      assert.match(told(config).join(), /is named by node-2 too/)
    }
  }
  assert.equal([names(read([], false, [])), told(read([], false, []))], [[], []], 'alone, and without credentials, it names no vCenter')
})

test('the default of the proposal is obeyed: isolation, the instance, recovery', () => {
  const config = claiming(one('node_name=[NODE_NAME]\nisolation=mark-unschedulable\npower_management=restart-instance\nrecovery=mark-unschedulable', {}), ofAws)
  assert.equal(told(config), [])
  assert.equal([names(config), config.path.cordons], [[['restart-instance']], true])
})

test('a method of that name that a person wrote is taken instead, and is nobody\'s claim', () => {
  const config = claiming(one('power_management=restart-instance', { 'restart-instance': 'agent_name=aws\nplug=i-0a1\naction=off' }), ofAws)
  assert.equal([told(config), config.methods['restart-instance']?.parameters, config.methods['restart-instance']?.claimed], [[], { plug: 'i-0a1' }, undefined])
})

test('a configuration of other devices is not joined by the instance', () => {
  assert.equal(names(claiming(one('power_management=off', { off: bmc }), ofAws)), [['off']])
})

const cannotEnd: readonly (readonly [string, RegExp])[] = [
  ['gce://prod/europe-west1-b/node-1', /line 1: terminate-instance is not for gce: Compute Engine forgets a machine that was deleted, and what is not found is not off/],
  ['azure:///subscriptions/0000-1/resourceGroups/nodes/providers/Microsoft.Compute/virtualMachines/node-1', /is not for azure: Azure forgets/],
  ['openstack:///11111111-2222-3333-4444-555555555555', /is not for openstack: Nova forgets/], ['kind://docker/c/n', /terminate-instance needs a Node whose spec.providerID names an instance of aws/],
]

test('terminate-instance is taken where a step names it and nowhere else, beside the method that restarts', () => {
  for (const maps of [[], one('power_management=restart-instance', {})]) assert.equal(Object.keys(claiming(maps, ofAws).methods), ['restart-instance'])
  const config = claiming(one('power_management=restart-instance | terminate-instance', {}), ofAws)
  assert.equal([told(config), names(config)], [[], [['restart-instance'], ['terminate-instance']]])
  const [restart, terminate] = config.path.levels.flat()
  assert.equal([restart?.ends, terminate?.ends, terminate?.claimed, terminate?.device], [undefined, true, true, restart?.device])
  assert.equal(config.methods['terminate-instance']?.parameters, { plug: ofAws, terminate: '1' })
  assert.is.not(restart?.digest, terminate?.digest)
})

test('terminate-instance is refused with its reason: a cloud that cannot, a program that does not offer it, company in its level, another step, another Node of the same', () => {
  const asked = (text: string, providerID = ofAws, twins: readonly string[] = []) => told(claiming(one(text, {}), providerID, twins)).join()
  for (const [providerID, why] of cannotEnd) assert.match(asked('power_management=terminate-instance', providerID), why)
  assert.match(asked('power_management=restart-instance terminate-instance'), /line 1: what ends the machine for good stands alone in its level/)
  assert.match(asked('isolation=terminate-instance\npower_management=restart-instance'), /line 1: isolation= names terminate-instance, which ends the machine for good/)
  assert.match(asked('power_management=restart-instance\nrecovery=terminate-instance'), /recovery= names terminate-instance, which switches off/)
  assert.match(asked('power_management=terminate-instance', ofAws, ['node-2']), /is named by node-2 too/)
  const older = readMetadata('<resource-agent><parameters><parameter name="plug" required="1"><content type="string"/></parameter></parameters></resource-agent>')
  const config = readFenceConfigs(one('power_management=terminate-instance', {}), secrets, 'salt', () => older).forNode('node-1', undefined, { providerID: ofAws, twins: [] })
  assert.equal([names(config), told(config)], [[], ['ConfigMap fence-config-node-1, config.properties, line 1: terminate-instance: this aws offers no terminate=']])
})

const terminating = (text: string) => configOf(one('power_management=off', { off: `agent_name=aws\nplug=i-0a1\naction=off\n${text}` }))
test('a written method that terminates ends the machine for good as well, and says so in the open', () => {
  assert.equal(['', 'terminate=0', 'terminate=1', 'terminate=Yes'].map((text) => terminating(text).path.levels[0]?.[0]?.ends), [undefined, undefined, true, true])
  assert.match(told(terminating('terminate=secret:fc/password')).join(), /line 4: method off: terminate= stands in a Secret/)
  const on = configOf(one('power_management=off\nrecovery=on', { off: 'agent_name=aws\nplug=i-0a1\naction=off', on: 'agent_name=aws\nplug=i-0a1\naction=on\nterminate=1' }))
  assert.match(told(on).join(), /line 4: method on: terminate= ends a machine for good, and is no action=on/)
})

test.run()
