import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readFenceConfigs, sentenceOf, timesOf, type FenceConfigMap, type NodeWords } from '../../coordinator/fence-config.ts'
import { readProperties, readSpan } from '../../coordinator/fence-config-text.ts'
import type { SecretLookup } from '../../coordinator/fence-config-secret.ts'
import { bmc, configOf, names, one, secrets, told } from './fence-maps.ts'

const test = suite('fence-config')

/** The maps of the proposal, letter for letter, for a node; only the templates' own parameters are chosen here. */
const seed: readonly FenceConfigMap[] = [
  {
    name: 'fence-config-node-1',
    data: {
      'config.properties': 'node_name=[NODE_NAME]\nisolation=fc-off\npower_management=eaton-off eaton-on\nrecovery=fc-on',
      'fence-method-fc-on': 'template=fence-method-template-fc-switch-brocade\nplug=2\naction=on',
      'fence-method-fc-off': 'template=fence-method-template-fc-switch-brocade\nplug=2\naction=off',
      'fence-method-eaton-on': 'template=fence-method-template-eaton-pdu\nplug=1\naction=on',
      'fence-method-eaton-off': 'template=fence-method-template-eaton-pdu\nplug=1\naction=off',
    },
  },
  { name: 'fence-method-template-fc-switch-brocade', data: { 'template.properties': 'agent_name=fence_brocade\nip=10.0.0.8\nusername=admin\npassword=secret:fc/password' } },
  { name: 'fence-method-template-eaton-pdu', data: { 'template.properties': 'agent_name=fence_eaton_snmp\n# the strip in rack 4\nip=10.0.0.9\nipport=161\n\npower_wait=2' } },
]

test('the maps of the proposal are read unchanged', () => {
  const config = configOf(seed)
  assert.equal(told(config), [])
  assert.equal(names(config), [['fc-off'], ['eaton-off']])
  assert.equal(Object.values(config.methods).map(({ name, isolates }) => [name, isolates]), [['fc-off', []], ['eaton-off', undefined]])
  const eaton = config.methods['eaton-off']
  assert.equal(eaton?.parameters, { ip: '10.0.0.9', ipport: '161', power_wait: '2', plug: '1' })
  assert.equal([eaton?.agent, eaton?.device, eaton?.orderWithin, eaton?.statusWithin, eaton?.late], ['fence_eaton_snmp', '10.0.0.9:161', 30_000, 10_000, 60_000])
  assert.equal(config.methods['fc-off']?.parameters['password'], { secret: 'fc', key: 'password' })
  assert.not.match(JSON.stringify(config), /hush/)
})

const rack4: NodeWords = { labels: { rack: '4', kind: 'bare-metal' }, annotations: { 'holdfast.dev/outlet': '7' } }
const setMap = (name: string, selector: string, properties: string, methods: Readonly<Record<string, string>> = {}): FenceConfigMap => ({
  name: `fence-config-${name}`, data: { 'config.properties': `node_selector=${selector}\n${properties}`, ...Object.fromEntries(Object.entries(methods).map(([method, text]) => [`fence-method-${method}`, text])) },
})
const methodAt = (ip: string) => ({ bmc: `agent_name=redfish\nip=${ip}\nplug=1\naction=off` })
const ofWords = (maps: readonly FenceConfigMap[], words: NodeWords, node = 'node-1') => readFenceConfigs(maps, secrets, 'salt').forNode(node, undefined, undefined, words)

test('labels and annotations of ours fill a parameter once, whatever they hold', () => {
  const parameters = (text: string, words: NodeWords) => ofWords(one('power_management=bmc', { bmc: `${bmc}\nname=${text}` }), words).methods['bmc']?.parameters['name']
  assert.is(parameters('r{label:rack}-{annotation:holdfast.dev/outlet}-{node}', rack4), 'r4-7-node-1')
  assert.is(parameters('{label:rack}', { labels: { rack: '{node}' }, annotations: {} }), '{node}')
  assert.is(parameters('{annotation:holdfast.dev/x}', { labels: {}, annotations: { 'holdfast.dev/x': 'secret:fc/password' } }), 'secret:fc/password', 'a Node asks for no Secret')
  assert.match(told(ofWords(one('power_management=bmc', { bmc: `${bmc.replace('plug=1', 'plug={label:rack}')}` }), { labels: { rack: '3,4' }, annotations: {} })).join(), /names more than one outlet/)
})

const cutOff = (cidrs: string) => one('isolation=storage-off\npower_management=bmc', { bmc, 'storage-off': `agent_name=storage\nplug={node}\nclass=rbd\ncidrs=${cidrs}\naction=off` })
const addressed = (addresses: readonly string[], cidrs = '{addresses}') => ofWords(cutOff(cidrs), { labels: {}, annotations: {}, addresses })

test('the addresses on record stand with blanks between them, beside what is written', () => {
  assert.is(addressed(['10.0.0.7', 'fd00::7']).methods['storage-off']?.parameters['cidrs'], '10.0.0.7 fd00::7')
  assert.is(addressed(['10.0.0.7', 'fd00::7'], '{addresses} 192.0.2.7/32').methods['storage-off']?.parameters['cidrs'], '10.0.0.7 fd00::7 192.0.2.7/32')
  const filled = ofWords(cutOff('{label:cidrs}'), { labels: { cidrs: '{addresses}' }, annotations: {}, addresses: ['10.0.0.7'] })
  assert.is(filled.methods['storage-off']?.parameters['cidrs'], '{addresses}', 'a Node asks for nothing')
})

test('a method that asks for addresses while none are on record is a fault and no method, whatever stands beside', () => {
  for (const cidrs of ['{addresses}', '{addresses} 192.0.2.7']) {
    const config = addressed([], cidrs)
    assert.equal([names(config), Object.keys(config.methods)], [[], []])
    assert.equal(told(config), ['ConfigMap fence-config-node-1, fence-method-storage-off, line 4: method storage-off: cidrs: asks for the addresses of node-1, and its NodeRecord has none'])
  }
})

test('other addresses are another configuration, the same ones are not', () => {
  const digest = (...addresses: string[]) => addressed(addresses).methods['storage-off']?.digest
  assert.is(digest('10.0.0.7', 'fd00::7'), digest('10.0.0.7', 'fd00::7'))
  assert.is.not(digest('10.0.0.7', 'fd00::7'), digest('10.0.0.7'))
  assert.is(addressed(['10.0.0.7']).methods['bmc']?.digest, addressed(['10.0.0.8']).methods['bmc']?.digest, 'what asks for none has not changed')
})

test('a ConfigMap of a set lies between the default and the node\'s own, the more labels it asks for the higher', () => {
  const maps = [
    setMap('z-rack', 'rack=4', 'power_management=bmc', methodAt('10.0.0.4')), setMap('a-metal', 'kind=bare-metal,rack', '', methodAt('10.0.0.5')), setMap('other', 'rack=5', '', methodAt('10.0.0.6')),
    { name: 'fence-config-default', data: { 'config.properties': 'power_management=none', 'fence-method-bmc': 'agent_name=redfish\nip=10.0.0.3\nplug=1\naction=off' } },
  ]
  const device = (more: readonly FenceConfigMap[] = [], words = rack4) => ofWords([...maps, ...more], words).methods['bmc']?.device
  assert.is(device(), '10.0.0.5')
  assert.is(device([], { labels: { rack: '4' }, annotations: {} }), '10.0.0.4')
  assert.is(device([], { labels: { rack: '6' }, annotations: {} }), undefined)
  assert.is(device(one('', { bmc: 'agent_name=redfish\nip=10.0.0.9\nplug=1\naction=off' })), '10.0.0.9')
  assert.is(ofWords([setMap('node-1', 'rack=5', 'power_management=bmc', methodAt('10.0.0.6'))], rack4).path.levels.length, 0, 'of its set, whatever its name')
})

test('two sets of which neither asks for more, a selector that is none, one on the default: faults with their line', () => {
  const two = [setMap('a', 'rack=4', 'power_management=bmc', { bmc }), setMap('b', 'kind', 'power_management=bmc', { bmc })]
  assert.match(told(ofWords(two, rack4)).join(), /fence-config-b, config.properties, line 1: node_selector= takes node-1 in, as fence-config-a does/)
  assert.equal(told(ofWords(two, { labels: { rack: '4' }, annotations: {} })), [])
  for (const wrong of ['', 'rack=4,rack=5', 'a b', '=4', 'rack=a b', 'rack,']) {
    assert.match(readFenceConfigs([setMap('a', wrong, '')], secrets, 'salt').faults.map(sentenceOf).join(), /line 1: node_selector= is not of the form/, wrong)
  }
  assert.match(told(ofWords([setMap('a', 'rack=4', 'node_name=node-1')], rack4)).join(), /line 1: node_selector= stands beside node_name=/)
  assert.match(told(ofWords([setMap('default', 'rack=4', 'power_management=bmc', { bmc })], rack4)).join(), /node_selector= is not for fence-config-default/)
})

const atOnce = (text: string) => configOf(one('power_management=bmc', { bmc: `${bmc}${text}` }))

test('concurrency= is a number of runs, and one where nothing is said; the core sees none of it', () => {
  assert.equal(['', '\nconcurrency=1', '\nconcurrency=4'].map((text) => atOnce(text).methods['bmc']?.atOnce), [undefined, undefined, 4])
  assert.equal(Object.keys(atOnce('\nconcurrency=4').path.levels[0]?.[0] ?? {}).includes('atOnce'), false)
  for (const wrong of ['0', '17', '1.5', 'many', '']) assert.match(told(atOnce(`\nconcurrency=${wrong}`)).join(), /line 5: method bmc: concurrency= is not a number from 1 to 16/, wrong)
})

test('verify= is how long after an order its device may take to say off, and nothing where nothing is said', () => {
  assert.equal(['', '\nverify=90s', '\nverify=5'].map((text) => atOnce(text).path.levels[0]?.[0]?.verifyWithin), [undefined, 90_000, 5_000])
  assert.equal(atOnce('\nverify=90s').methods['bmc']?.parameters, atOnce('').methods['bmc']?.parameters, 'no program is told')
  assert.is(atOnce('\nverify=90s').methods['bmc']?.digest, atOnce('').methods['bmc']?.digest, 'the same path, as far as its audit goes')
  for (const wrong of ['4s', '11m', 'status', '']) assert.match(told(atOnce(`\nverify=${wrong}`)).join(), /line 5: method bmc: verify= is not a time from 5000 ms to 600000 ms/, wrong)
})

test('a selector that is none may be of any node: what was in force before stays, and says so', () => {
  const good = ofWords([setMap('a', 'rack=4', 'power_management=bmc', { bmc })], rack4)
  const faulty = readFenceConfigs([setMap('a', 'rack=4,', 'power_management=bmc', { bmc })], secrets, 'salt')
  for (const [before, levels] of [[good, [['bmc']]], [undefined, []]] as const) {
    const config = faulty.forNode('node-1', before, undefined, rack4)
    assert.equal([names(config), config.path.faults.length], [levels, 1])
  }
})

const dumps = (text: string) => configOf(one(`power_management=off\nkdump=${text}`, { off: bmc }))
test('kdump= is how long a dump may take', () => {
  assert.is(dumps('5m').path.dumpsWithin, 300_000)
  assert.is(dumps('5m\nkdump_within=30s').path.announcesWithin, 30_000, 'and kdump_within= how long its kernel may take to come up')
  assert.match(told(dumps('5m\nkdump_within=yes')).join(), /line 3: kdump_within= is not a time/)
  assert.match(told(configOf(one('power_management=off\nkdump_within=30s', { off: bmc }))).join(), /line 2: kdump_within= waits for .*: kdump= is missing/)
  for (const wrong of ['yes', '0', '2h']) assert.match(told(dumps(wrong)).join(), /line 2: kdump= is not a time/)
  const among: FenceConfigMap = { name: 'fence-config-default', data: { 'config.properties': 'power_management=off\nkdump=5m\nkdump_within=30s', 'fence-method-off': bmc } }
  const without = configOf([among, { name: 'fence-config-node-1', data: { 'config.properties': 'kdump=' } }])
  assert.equal([told(without), without.path.dumpsWithin], [[], undefined], 'written empty, it takes back what underlies the node')
  assert.is(configOf([among]).path.dumpsWithin, 300_000)
  const before = dumps('5m')
  assert.is(configOf(one('power_management=off\nkdump=yes', { off: bmc }), 'node-1', before).path.dumpsWithin, 300_000, 'the last good one')
})

const back = (properties: string, methods: Readonly<Record<string, string>>) => {
  const { methods: read, faults } = configOf(one(properties, methods))
  assert.equal(faults, [])
  return Object.values(read).toSorted((first, second) => (first.backAt ?? 0) - (second.backAt ?? 0)).map(({ name }) => name)
}
test('what is cut is given back in the order that is written, power before what it was cut off from where nothing is', () => {
  const fc = 'agent_name=fence_brocade\nip=10.0.0.8\nplug=2\n'
  const strip = 'agent_name=pdu-snmp\nip=10.0.0.9\nplug=1\n'
  const offs = { 'fc-off': `${fc}action=off`, 'eaton-off': `${strip}action=off` }
  const both = { ...offs, 'fc-on': `${fc}action=on`, 'eaton-on': `${strip}action=on` }
  const { methods } = configOf(seed)
  assert.ok((methods['eaton-off']?.backAt ?? 0) < (methods['fc-off']?.backAt ?? 0))
  assert.equal(back('isolation=fc-off\npower_management=eaton-off', offs), ['eaton-off', 'fc-off'])
  assert.equal(back('isolation=fc-off\npower_management=eaton-off\nrecovery=eaton-on fc-on', both), ['eaton-off', 'fc-off'])
  assert.equal(back('isolation=fc-off\npower_management=eaton-off\nrecovery=fc-on eaton-on', both), ['fc-off', 'eaton-off'])
})

test('a method\'s own keys override its template\'s, - and _ alike', () => {
  const template = { 'fence-method-template-x': 'agent_name=redfish\nip=10.0.0.1\npower-wait=2\ntimeout=40s' }
  const config = configOf(one('power_management=off', { off: 'template=fence-method-template-x\naction=off\nplug=1\npower_wait=5\ntimeout=90' }, template))
  assert.equal(told(config), [])
  assert.equal(config.methods['off']?.parameters, { ip: '10.0.0.1', power_wait: '5', plug: '1' })
  assert.is(config.methods['off']?.orderWithin, 90_000)
})

test('what is ours is ours in each writing of its name, and no program is told of it', () => {
  const config = configOf(one('power_management=off', { off: 'Template=fence-method-template-x\nACTION=off\nplug=1\nstatus-timeout=5s' }, { 'fence-method-template-x': 'Agent-Name=redfish\nip=10.0.0.1\nLate=90s' }))
  assert.equal(told(config), [])
  const { agent, statusWithin, late, parameters } = config.methods['off'] ?? {}
  assert.equal([agent, statusWithin, late, parameters], ['redfish', 5_000, 90_000, { ip: '10.0.0.1', plug: '1' }])
  const read = readFenceConfigs(one('power_management=off', { off: 'Template=fence-method-template-x\naction=off' }, { 'fence-method-template-x': 'agent_name=redfish' }), secrets, 'salt')
  assert.equal(read.sources('node-1').map(({ name }) => name), ['fence-config-node-1', 'fence-method-template-x'])
})

test('the on of an off is what is written for the same outlet, else the same device', () => {
  const template = { 'fence-method-template-x': 'agent_name=redfish\nip=10.0.0.1' }
  const off = 'template=fence-method-template-x\naction=off\nplug=1'
  const on = 'template=fence-method-template-x\naction=on\nplug=1\npower_wait=9'
  const other = 'template=fence-method-template-x\naction=on\nplug=2\npower_wait=7'
  assert.is(configOf(one('power_management=off\nrecovery=on', { off, on }, template)).methods['off']?.on['power_wait'], '9')
  assert.is(configOf(one('power_management=off', { off }, template)).methods['off']?.on['plug'], '1')
  const stranger = configOf(one('power_management=off\nrecovery=other', { off, other }, template))
  assert.is(stranger.methods['off']?.on['power_wait'], undefined)
  assert.match(told(stranger).join(), /fence-method-other, line 1: method other has the outlet of no off method/)
  assert.not.ok(stranger.outdated)
})

function timesIn(ofOff: string, ofOn: string): readonly (readonly number[])[] | undefined {
  const { methods, path } = configOf(one('power_management=bmc\nrecovery=start', { bmc: `${bmc}${ofOff}`, start: `${bmc.replace('action=off', 'action=on')}${ofOn}` }))
  const [method] = Object.values(methods)
  assert.equal(['onTimes', 'on'].filter((key) => key in (path.levels[0]?.[0] ?? {})), [], 'the core sees none of it')
  return method && (['off', 'on'] as const).map((action) => [timesOf(method, action).orderWithin, timesOf(method, action).late])
}

test('how long an on may take, and may land after, is what is written for it, and never less than for its off', () => {
  assert.equal(timesIn('', '\ntimeout=2m\nlate=3m'), [[30_000, 60_000], [120_000, 180_000]])
  assert.equal(timesIn('\ntimeout=2m\nlate=3m', ''), [[120_000, 180_000], [120_000, 180_000]])
  const alone = configOf(one('power_management=bmc', { bmc: `${bmc}\ntimeout=40s` })).methods['bmc']
  assert.is(alone && timesOf(alone, 'on').orderWithin, 40_000)
})

test('two strips of one kind with the same outlet number: each off has the on of its own strip', () => {
  const template = { 'fence-method-template-strip': 'agent_name=fence_apc\nusername=a' }
  const methods = Object.fromEntries(['a', 'b'].flatMap((strip) => ['off', 'on'].map((action) => [
    `${strip}-${action}`, `template=fence-method-template-strip\nip=10.9.0.${strip === 'a' ? 1 : 2}\nplug=7\naction=${action}`,
  ])))
  const config = configOf(one('power_management=a-off b-off\nrecovery=a-on b-on', methods, template))
  assert.equal(told(config), [])
  assert.equal(['a-off', 'b-off'].map((name) => config.methods[name]?.on['ip']), ['10.9.0.1', '10.9.0.2'])
})

/** Of the only method of the node, by its own text and its template's. */
function deviceIn(own: string, template: string): { device: string | undefined; reach: string | undefined } {
  const config = configOf(one('power_management=off', { off: `template=fence-method-template-x\naction=off\n${own}` }, { 'fence-method-template-x': template }))
  assert.equal(told(config), [])
  const { device, reach } = config.path.levels[0]?.[0] ?? {}
  return { device, reach }
}

for (const [what, template, own, device, reach] of [
  ['an instance of EC2', 'agent_name=aws\nregion=eu-west-1', 'plug=i-0a1', 'aws eu-west-1 i-0a1', 'aws'],
  ['an instance by its providerID', 'agent_name=aws', 'plug=aws:///eu-west-1a/i-0a1', 'aws aws:///eu-west-1a/i-0a1', 'aws'],
  ['an instance of Compute Engine', 'agent_name=gce\nproject=prod\nzone=b', 'plug={node}', 'gce prod b node-1', 'gce'],
  ['a machine of Azure', 'agent_name=azure\nsubscriptionId=s\nresourceGroup=g', 'plug=vm1', 'azure s g vm1', 'azure'],
  ['a server of OpenStack', 'agent_name=openstack\nauth_url=https://keystone\nproject_name=p\nregion_name=r', 'plug=uuid', 'openstack https://keystone p r uuid', 'openstack'],
  ['a server of OpenStack by a URL with a password in it', 'agent_name=openstack\nauth_url=https://u:hunter2@keystone', 'plug=uuid', 'openstack https://keystone uuid', 'openstack'],
  ['a machine of vSphere', 'agent_name=vmware\nip=vc.example', 'plug=vm-7', 'vmware vc.example vm-7', 'vc.example'],
  ['by a ClusterLabs program', 'agent_name=fence_aws\nregion=eu-west-1', 'port=i-0a1', 'fence_aws eu-west-1 i-0a1', 'fence_aws'],
] as const) {
  test(`${what} is a device of its own, and a wrong plug could be any other machine of that cloud`, () => assert.equal(deviceIn(own, template), { device, reach }))
}

for (const [what, template, own, device] of [
  ['a strip', 'agent_name=pdu-snmp\nip=10.0.0.9', 'plug=7', '10.0.0.9'],
  ['a strip without an address', 'agent_name=fence_relay', 'plug=7', 'fence-method-template-x'],
  ['a chassis', 'agent_name=redfish\nip=10.0.0.8', 'plug=/redfish/v1/Systems/3', '10.0.0.8'],
  ['a service by its URL, without the password in it', 'agent_name=redfish\nurl=https://admin:hunter2@bmc.example/redfish/v1?key=hunter2', 'plug=1', 'https://bmc.example/redfish/v1'],
  ['a service by its URL, with an @ in the password', 'agent_name=redfish\nurl=https://admin:hunt@er2/@bmc.example', 'plug=1', 'https://bmc.example'],
  ['a hypervisor by its URI, whichever template names it', 'agent_name=libvirt\nuri=qemu+ssh://root@host-7/system?keyfile=/k', 'plug=node-1', 'qemu+ssh://host-7/system'],
  ['an address behind a user', 'agent_name=redfish\nip=admin:hunter2@10.0.0.8', 'plug=1', '10.0.0.8'],
] as const) {
  test(`${what} is one device with all its outlets`, () => assert.equal(deviceIn(own, template), { device, reach: undefined }))
}

test('| begins the next level, a space joins methods, and the levels that isolate come first', () => {
  const methods = Object.fromEntries(['cut', 'a', 'b', 'c'].map((name) => [name, `agent_name=redfish\nip=${name}\nplug=1\naction=off`]))
  assert.equal(names(configOf(one('power_management=a | b c', methods))), [['a'], ['b', 'c']])
  assert.equal(names(configOf(one('isolation=cut\npower_management=a|b c', methods))), [['cut'], ['a'], ['b', 'c']])
})

test('what a step of power switches anyway is the machine\'s, wherever else it is named', () => {
  const config = configOf(one('isolation=bmc\npower_management=bmc', { bmc }))
  assert.equal([told(config), names(config), config.methods['bmc']?.isolates], [[], [['bmc']], undefined])
})

const port = 'agent_name=fc-switch\nip=10.0.0.8\nplug=2\naction=off'
test('drivers= says whose volumes a method puts out of the machine\'s reach, and with it isolation may stand alone', () => {
  const config = configOf(one('isolation=port', { port: `${port}\ndrivers=rbd.csi.ceph.com  cephfs.csi.ceph.com` }))
  assert.equal([told(config), names(config), config.methods['port']?.isolates], [[], [['port']], ['rbd.csi.ceph.com', 'cephfs.csi.ceph.com']])
  assert.equal(config.path.levels[0]?.[0]?.isolates, ['rbd.csi.ceph.com', 'cephfs.csi.ceph.com'])
  assert.is(config.methods['port']?.parameters['drivers'], undefined, 'it is not told to the program')
  assert.match(told(configOf(one('isolation=port | bare', { port: `${port}\ndrivers=a.b`, bare: port }))).join(), /isolation= alone proves nothing/)
})

test('fence-config-default underlies every node, key by key, with its name put in', () => {
  const maps: FenceConfigMap[] = [
    { name: 'fence-config-default', data: { 'config.properties': 'power_management=bmc', 'fence-method-bmc': 'agent_name=redfish\nip={node}.bmc\nplug=[NODE_NAME]\naction=off\ntimeout=20s' } },
    { name: 'fence-config-node-2', data: { 'fence-method-bmc': 'ip=10.9.9.9' } },
  ]
  assert.equal(configOf(maps, 'node-1').methods['bmc']?.parameters, { ip: 'node-1.bmc', plug: 'node-1' })
  assert.equal(configOf(maps, 'node-2').methods['bmc']?.parameters, { ip: '10.9.9.9', plug: 'node-2' })
  assert.is(configOf(maps, 'node-2').methods['bmc']?.orderWithin, 20_000)
})

test('without any map a node has no path and no faults', () => {
  assert.equal(configOf([]), { path: { levels: [], faults: [] }, methods: {}, faults: [], outdated: false })
})

for (const [name, properties, methods, fault] of [
  ['an unknown step', 'power_managment=bmc', { bmc }, /config.properties, line 1: power_managment= is not known/],
  ['a method that is not there', 'power_management=nobody', { bmc }, /line 1: power_management=: method 1 is written nowhere: there is no fence-method-NAME of its name/],
  ['a template that is not there', 'power_management=bmc', { bmc: 'action=off\ntemplate=fence-method-template-none' }, /fence-method-bmc, line 2: method bmc: template= names no ConfigMap that is there/],
  ['an action that is missing', 'power_management=bmc', { bmc: 'agent_name=redfish\nplug=1' }, /action= is missing/],
  ['a reboot', 'power_management=bmc', { bmc: 'agent_name=redfish\naction=reboot' }, /line 2: method bmc: action= is neither off nor on; a reboot is never a fence/],
  ['a cycle', 'power_management=bmc', { bmc: `${bmc}\nmethod=cycle` }, /line 5: .*may not be cycle/],
  ['a list of plugs', 'power_management=bmc', { bmc: 'agent_name=redfish\naction=off\nplug=1,2' }, /line 3: .*more than one outlet/],
  ['a program by its path', 'power_management=bmc', { bmc: 'agent_name=../../bin/sh\naction=off' }, /line 1: method bmc: agent_name= is not the name of a program/],
  ['a Secret written wrongly', 'power_management=bmc', { bmc: `${bmc}\npassword=secret:bmc` }, /line 5: .*not of the form secret:NAME\/KEY/],
  ['a placeholder that is not known', 'power_management=bmc', { bmc: `${bmc}\nname={rack}` }, /line 5: method bmc: name: has a word in braces that is not known; \{node\}, \{addresses\}, \{label:KEY\} and \{annotation:KEY\} are/],
  ['a label that the Node does not bear', 'power_management=bmc', { bmc: `${bmc}\nname={label:rack}` }, /line 5: method bmc: name: asks for a label or an annotation that node-1 does not bear/],
  ['an annotation that is not ours', 'power_management=bmc', { bmc: `${bmc}\nname={annotation:example.org/bmc}` }, /line 5: method bmc: name: asks for an annotation that does not begin with holdfast.dev\//],
  ['a time-out beyond reason', 'power_management=bmc', { bmc: `${bmc}\ntimeout=2h` }, /timeout= is not a time/],
  ['a lateness below what ending a program takes', 'power_management=bmc', { bmc: `${bmc}\nlate=1s` }, /late= is not a time/],
  ['a line that is no property', 'power_management=bmc', { bmc: `${bmc}\nhush hush` }, /fence-method-bmc, line 5: is not of the form key=value/],
  ['a key twice', 'power_management=bmc', { bmc: `${bmc}\nplug=2` }, /line 5: plug stands in line 3 already/],
  ['a key twice, in two writings', 'power_management=bmc', { bmc: `${bmc}\nPlug=2` }, /line 5: Plug stands in line 3 already/],
  ['an empty level', 'power_management=bmc |', { bmc }, /has an empty level/],
  ['a level that only switches on', 'power_management=bmc | start', { bmc, start: 'agent_name=redfish\naction=on' }, /has no method with action=off/],
  ['a method twice in a level', 'power_management=bmc bmc', { bmc }, /names a method twice/],
  ['an off in the recovery', 'power_management=bmc\nrecovery=bmc', { bmc }, /recovery= names bmc, which switches off/],
  ['isolation alone', 'isolation=bmc', { bmc }, /isolation= alone proves nothing about the machine/],
  ['drivers of a method that switches power', 'power_management=bmc', { bmc: `${bmc}\ndrivers=rbd.csi.ceph.com` }, /power_management= names bmc, whose drivers= is for a method that isolates/],
  ['a driver that is none', 'isolation=port\npower_management=bmc', { bmc, port: `${bmc}\ndrivers=rbd/ceph` }, /line 5: .*drivers=: word 1 is not the name of a CSI driver/],
  ['no driver', 'isolation=port\npower_management=bmc', { bmc, port: `${bmc}\ndrivers=` }, /drivers= names 0 CSI drivers/],
  ['a switch port taken for power', 'power_management=port', { port: 'agent_name=fence_ifmib\nplug=p1\naction=off' }, /fence_ifmib does not switch a machine's power/],
  ['a switch port of ours taken for power', 'power_management=port', { port: 'agent_name=switch-snmp\nip=10.0.0.9\nplug=p1\naction=off' }, /switch-snmp does not switch a machine's power/],
  ['another node\'s name', 'node_name=node-2\npower_management=bmc', { bmc }, /node_name= is not node-1, whose configuration this is/],
  ['a cloud method without a cloud', 'power_management=restart-instance', {}, /needs a Node whose spec.providerID/],
] as const) {
  test(`a fault with its place, and nothing in force: ${name}`, () => {
    const config = configOf(one(properties, methods as Readonly<Record<string, string>>))
    assert.ok(told(config).some((sentence) => fault.test(sentence)), told(config).join('\n'))
    assert.equal(config.path.levels, [])
    assert.ok(config.path.faults.length > 0)
    assert.not.match(told(config).join(), /hush/)
  })
}

for (const [where, properties, method] of [
  ['after the action in its line', 'power_management=bmc', 'agent_name=redfish\naction=off password=hunter2'],
  ['after the name of the program', 'power_management=bmc', 'agent_name=redfish password=hunter2\naction=off'],
  ['after the name of the template', 'power_management=bmc', 'template=x password=hunter2\naction=off'],
  ['with a word in braces', 'power_management=bmc', `${bmc}\npassword=pre{hunter}2post`],
  ['with a comma, taken for an outlet', 'power_management=bmc', 'agent_name=redfish\nplug=hunter2,post\naction=off'],
  ['that is taken for a Secret', 'power_management=bmc', `${bmc}\npassword=secret:hunter2`],
  ['in a parameter that is forbidden', 'power_management=bmc', `${bmc}\npasswd_script=hunter2`],
  ['in a time-out', 'power_management=bmc', `${bmc}\ntimeout=hunter2`],
  ['among drivers', 'isolation=bmc', `${bmc}\ndrivers=a.b password=hunter2`],
  ['after a step', 'power_management=bmc password=hunter2', bmc],
  ['after the name of the node', 'power_management=bmc\nnode_name=node-1 password=hunter2', bmc],
  ['after the time of a dump', 'power_management=bmc\nkdump=5m password=hunter2', bmc],
] as const) {
  test(`a password ${where} is a fault with its place, and no word of it is told`, () => {
    const sentences = told(configOf(one(properties, { bmc: method })))
    assert.ok(sentences.some((sentence) => /^ConfigMap fence-config-node-1, (config\.properties|fence-method-bmc), line \d: /.test(sentence)), sentences.join('\n'))
    assert.not.match(sentences.join('\n'), /hunter/)
  })
}

test('every fault is told at once', () => {
  const config = configOf(one('power_management=a b\nisolaton=c', { a: 'agent_name=redfish\nplug=1,2\naction=off\ntimeout=x', b: 'plug=3' }))
  assert.is(told(config).length, 5)
})

test('a fault of one method hides none of how the steps fit together', () => {
  const sentences = told(configOf(one('power_management=bmc nobody\nrecovery=bmc', { bmc, other: 'template=nowhere\naction=off' })))
  for (const fault of [/fence-method-other, line 1: .*names no ConfigMap/, /config.properties, line 1: power_management=: method 2 is written nowhere/, /config.properties, line 2: recovery= names bmc, which switches off/]) {
    assert.ok(sentences.some((sentence) => fault.test(sentence)), `${fault}\n${sentences.join('\n')}`)
  }
})

test('the literal example of the proposal is obeyed: marking is no program', () => {
  const config = configOf(one('isolation=mark-unschedulable\npower_management=bmc\nrecovery=mark-unschedulable', { bmc }))
  assert.equal([told(config), names(config), config.path.cordons], [[], [['bmc']], true])
})

const cordons = (steps: string) => configOf(one(`power_management=bmc\n${steps}`, { bmc })).path.cordons

test('marked unschedulable at the end alone is more than the quarantine does', () => {
  assert.equal(['isolation=mark-unschedulable', 'isolation=mark-unschedulable\nrecovery=mark-schedulable', 'recovery=mark-unschedulable mark-schedulable', ''].map(cordons), [undefined, undefined, undefined, undefined])
  assert.equal(['recovery=mark-unschedulable', 'recovery=mark-schedulable mark-unschedulable'].map(cordons), [true, true])
  const good = configOf(one('power_management=bmc\nrecovery=mark-unschedulable', { bmc }))
  assert.is(configOf(one('power_management=nobody', { bmc }), 'node-1', good).path.cordons, true, 'the last good one stays in force')
})

test('the last good configuration stays in force, with the faults of the new one beside it', () => {
  const good = configOf(one('power_management=bmc', { bmc }))
  const bad = configOf(one('power_management=bmc', { bmc: `${bmc}\nplug=9\ndelay=3` }), 'node-1', good)
  assert.equal([names(bad), bad.outdated, bad.methods['bmc']], [[['bmc']], true, good.methods['bmc']])
  assert.is(bad.path.faults.length, 2)
  const worse = configOf(one('power_management=nobody', { bmc }), 'node-1', bad)
  assert.equal([names(worse), worse.outdated, worse.path.faults.length], [[['bmc']], true, 1])
  const mended = configOf(one('power_management=bmc', { bmc: bmc.replace('10.0.0.1', '10.0.0.2') }), 'node-1', worse)
  assert.equal([mended.outdated, mended.path.faults, mended.methods['bmc']?.device], [false, [], '10.0.0.2'])
})

const byTemplate = (text: string) => {
  return one('power_management=bmc', { bmc: 'template=fence-method-template-x\naction=off' }, { 'fence-method-template-x': text })
}

test('a broken template takes no good configuration out of force', () => {
  const good = configOf(byTemplate('agent_name=redfish\nip=10.0.0.1'))
  const bad = configOf(byTemplate('agent_name=redfish\nip=10.0.0.1\noops'), 'node-1', good)
  assert.equal([names(bad), bad.outdated], [[['bmc']], true])
  assert.match(told(bad).join(), /fence-method-template-x, template.properties, line 3/)
})

test('a node\'s fault is no other node\'s', () => {
  const maps = [...one('power_management=nobody', {}), { name: 'fence-config-node-2', data: { 'config.properties': 'power_management=bmc', 'fence-method-bmc': bmc } }]
  const read = readFenceConfigs(maps, secrets, 'salt')
  assert.is(read.forNode('node-1').path.faults.length, 1)
  assert.equal([read.forNode('node-2').path.faults, names(read.forNode('node-2'))], [[], [['bmc']]])
})

test('a configuration that is taken away is gone', () => {
  const good = configOf(one('power_management=bmc', { bmc }))
  assert.equal(configOf([], 'node-1', good).path, { levels: [], faults: [] })
})

const digest = (maps: readonly FenceConfigMap[], lookup: SecretLookup = secrets, salt = 'salt') => readFenceConfigs(maps, lookup, salt).forNode('node-1').methods['fc-off']?.digest
test('the digest follows what the program would be told, a secret\'s value included, and nothing else', () => {
  const first = digest(seed)
  assert.match(first ?? '', /^[0-9a-f]{32}$/)
  assert.is(digest(seed), first)
  assert.is(digest(seed.toReversed()), first)
  assert.is.not(digest(seed, () => 'another'), first)
  assert.is.not(digest(seed, () => undefined), first)
  assert.is.not(digest(seed, secrets, 'another cluster'), first)
  const moved = seed.map((map) => ({ ...map, data: Object.fromEntries(Object.entries(map.data).map(([key, text]) => [key, text.replaceAll('plug=2', 'plug=3')])) }))
  assert.is.not(digest(moved), first)
  const commented = seed.map((map) => ({ ...map, data: Object.fromEntries(Object.entries(map.data).map(([key, text]) => [key, `# note\n${text}`])) }))
  assert.is(digest(commented), first)
})

test('a changed secret changes the digest of a last good configuration too', () => {
  const good = configOf(seed)
  const broken = seed.map((map) => (map.name === 'fence-config-node-1' ? { ...map, data: { ...map.data, 'config.properties': 'oops' } } : map))
  const then = configOf(broken, 'node-1', good, () => 'rotated')
  assert.ok(then.outdated)
  assert.is.not(then.methods['fc-off']?.digest, good.methods['fc-off']?.digest)
})

test('a Secret that is not there is told and takes nothing out of force', () => {
  const config = configOf(seed, 'node-1', undefined, () => undefined)
  assert.equal(names(config), [['fc-off'], ['eaton-off']])
  assert.equal(told(config), ['ConfigMap fence-method-template-fc-switch-brocade, template.properties, line 4: method fc-off: password: Secret fc key password is not there'])
  assert.equal(config.path.faults, [])
})

test('it is told where this node has it from: not where another node writes a method of that name, nor where a layer below does', () => {
  const maps = ['node-0', 'node-1', 'node-2'].map((node) => ({ name: `fence-config-${node}`, data: { 'config.properties': 'power_management=bmc', 'fence-method-bmc': `${bmc}\npassword=secret:${node}/password` } }))
  const missing = (more: readonly FenceConfigMap[] = []) => told(configOf([...maps, ...more], 'node-1', undefined, ({ secret }) => (secret === 'node-1' ? undefined : 'hush')))
  const sentence = 'ConfigMap fence-config-node-1, fence-method-bmc, line 5: method bmc: password: Secret node-1 key password is not there'
  assert.equal(missing(), [sentence])
  assert.equal(missing([{ name: 'fence-config-default', data: { 'fence-method-bmc': `${bmc}\npassword=secret:node-1/password` } }]), [sentence])
})

test('what only the method asks for that switches on again is told where that is written', () => {
  const on = `${bmc.replace('action=off', 'action=on')}\n\npassword=secret:later/password`
  const config = configOf(one('power_management=bmc start', { bmc, start: on }), 'node-1', undefined, () => undefined)
  assert.equal(told(config), ['ConfigMap fence-config-node-1, fence-method-start, line 6: method bmc: password: Secret later key password is not there'])
})

test('a method that no step names is told with the ConfigMap that writes it', () => {
  const maps = [...one('power_management=bmc', { bmc }), { name: 'fence-config-default', data: { 'fence-method-spare': bmc } }]
  assert.equal(told(configOf(maps)), ['ConfigMap fence-config-default, fence-method-spare, line 1: method spare is named by no step'])
})

test('whatever text stands in the maps, reading ends without an exception', () => {
  const texts = ['', '=', '|||', '\0', '={}', 'a=b'.repeat(50_000), 'secret:', '\r\n\r\n', '# only', 'template=template', 'action=off action=on', '[NODE_NAME]=[NODE_NAME]', '__proto__=x', 'constructor=y']
  for (const first of texts) {
    for (const second of texts) {
      const maps = one(first, { bmc: second, __proto__: second }, { 'fence-method-template-x': first })
      assert.ok(Array.isArray(configOf([...maps, ...one(`power_management=bmc\n${first}`, { bmc: second })]).faults))
    }
  }
})

test('times are read with and without their unit', () => {
  assert.equal(['30', '30s', '500ms', '2m', '', '-1', '1h', '1.5s', '99999999999'].map(readSpan), [30_000, 30_000, 500, 120_000, undefined, undefined, undefined, undefined, undefined])
})

test('lines are counted as an editor counts them', () => {
  assert.equal(readProperties('# a\r\n\n  key = value = more \n').entries, [{ key: 'key', value: 'value = more', line: 3 }])
})

test.run()
