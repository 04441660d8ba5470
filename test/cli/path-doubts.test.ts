import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { doubtsOf } from '../../cli/path-doubts.ts'
import type { FenceConfigMap } from '../../coordinator/fence-config.ts'
import { kept } from './cluster-seen.ts'

const test = suite('path doubts')

const map = (node: string, levels: string, methods: Readonly<Record<string, string>>): FenceConfigMap => ({
  name: `fence-config-${node}`, data: { 'config.properties': levels, ...Object.fromEntries(Object.entries(methods).map(([name, text]) => [`fence-method-${name}`, `${text}\naction=off`])) },
})
const bmc = 'agent_name=ipmi\nip=10.2.0.1'
const outlet = (ip = '10.2.0.20') => `agent_name=pdu-snmp\nip=${ip}\nplug=1`
const doubts = (...maps: readonly FenceConfigMap[]) => doubtsOf(maps, maps.map(({ name }) => kept(name.slice('fence-config-'.length), { address: '10.0.0.1' })), [])

test('a strip beside the controller, or below it, leaves no doubt; the controller alone does', () => {
  assert.equal(doubts(map('node-1', 'power_management=bmc | feed', { bmc, feed: outlet() })), [])
  assert.equal(doubts(map('node-1', 'power_management=feed', { feed: outlet() })), [])
  assert.match(doubts(map('node-1', 'power_management=bmc', { bmc })).join(), /^node-1 has no level without the controller in the machine/)
  assert.match(doubts(map('node-1', 'power_management=bmc feed', { bmc, feed: outlet() })).join(), /^node-1 has no level without/, 'the level needs both')
  assert.match(doubts(map('node-1', 'isolation=port\npower_management=bmc', { bmc, port: 'agent_name=switch-snmp\nip=10.2.0.3\nplug=p1' })).join(), /^node-1 has no level without/, 'what isolates is no power')
})

test('a device at the node\'s own address, and a program that the machine itself must have run, need what they are to cut', () => {
  assert.match(doubts(map('node-1', 'power_management=feed', { feed: outlet('10.0.0.1') })).join(), /^node-1 feed needs the machine itself: its device is at the node's own address/)
  assert.match(doubts(map('node-1', 'power_management=feed', { feed: `${outlet('10.0.0.1')}\nipport=1161` })).join(), /^node-1 feed needs the machine itself/)
  assert.equal(doubts(map('node-1', 'power_management=feed', { feed: outlet('10.0.0.10') })), [], 'an address that only begins so')
  for (const place of ['ip=node-1', 'ip=10.1.0.1', 'ip=fd00::1\nipport=443', 'url=https://10.1.0.1/redfish', 'uri=qemu+ssh://root@10.0.0.1/system', 'uri=qemu+ssh://root@[fd00::1]/system']) {
    const maps = [map('node-1', 'power_management=own', { own: `agent_name=exec\n${place}\nplug=1` })]
    assert.match(doubtsOf(maps, [kept('node-1', { address: '10.0.0.1', addresses: ['10.0.0.1', '10.1.0.1', 'fd00::1'] })], []).join(), /^node-1 own needs the machine itself: its device is at the node's own address/, place)
  }
  for (const place of ['ip=node-1.bmc', 'ip=10.1.0.11', 'url=https://10.1.0.11/redfish']) assert.equal(doubts(map('node-1', 'power_management=feed', { feed: `agent_name=exec\n${place}\nplug=1` })), [], place)
  assert.match(doubts(map('node-1', 'isolation=keys\npower_management=feed', { feed: outlet(), keys: 'agent_name=fence_scsi\ndevices=/dev/sda\nplug=node-1' })).join(), /^node-1 keys needs the machine itself: fence_scsi/)
})

const on = (count: number, levels: string, methods: Readonly<Record<string, string>>) => doubts(...Array.from({ length: count }, (_, index) => map(`node-${index + 1}`, levels, methods)))

test('many nodes on one device and no other are told; three are not, nor those of a cloud, nor those with a second device', () => {
  assert.equal(on(4, 'power_management=feed', { feed: outlet() }), ['4 nodes hang on 10.2.0.20 alone: where it fails, none of them can be fenced'])
  assert.equal(on(3, 'power_management=feed', { feed: outlet() }), [])
  assert.equal(on(4, 'power_management=feed | other', { feed: outlet(), other: outlet('10.2.0.21') }), [])
  assert.equal(on(4, 'power_management=instance', { instance: 'agent_name=aws\nplug=i-0123456789abcdef0\nregion=eu-west-1' }), [])
})

test.run()
