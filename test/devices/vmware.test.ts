// Our `vmware` and Debian's fence_vmware_rest at a vCenter of ours, each in its own dialect, and the machine as the judge of both;
// and Ansible's collection for vCenter, in the dialect of ours.
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { saysOf, sameClaims, type CloudAtTest } from './cloud-claims.ts'
import { loose, startMachine } from './machine.ts'
import { inRack, installed, secret, type Rack } from './rack.ts'
import { machineId, machineName, startVCenter, vcenterName, type VCenter } from './vcenter-endpoint.ts'

const test = suite('vmware')

function atTest({ front, ours, theirs }: VCenter): CloudAtTest {
  return { program: 'vmware', front, login: ours, wrong: { password: 'wrong' }, unknown: { plug: 'node-9' }, others: ['fence_vmware_rest', theirs] }
}

sameClaims(test, 'fence_vmware_rest', async (rack, machine) => atTest(await startVCenter(rack, machine)))

/** One module of the collection vmware.vmware_rest, and what it made known. */
async function ansible(rack: Rack, { front, ours }: VCenter, module: string, parameters: object): Promise<unknown> {
  const file = join(rack.folder, 'module.json')
  const args = { vcenter_hostname: vcenterName, vcenter_username: ours['username'], vcenter_password: secret, ...parameters }
  writeFileSync(file, JSON.stringify({ ANSIBLE_MODULE_ARGS: args }))
  const said = await front.run('vsphere', join(installed('vsphere'), 'bin/python'), '-m', `ansible_collections.vmware.vmware_rest.plugins.modules.${module}`, file)
  return JSON.parse(said)
}

test('beside Ansible: it stops the machine and starts it, and finds it as ours left it', () => inRack(async (rack) => {
  const machine = await startMachine(rack, 'machine')
  const center = await startVCenter(rack, machine)
  const boot = await machine.beats()
  const power = async () => (await ansible(rack, center, 'vcenter_vm_power_info', { vm: machineId }) as { readonly value: { readonly state: string } }).value.state
  assert.is(await power(), 'POWERED_ON')
  await ansible(rack, center, 'vcenter_vm_power', { vm: machineId, state: 'stop' })
  assert.is((await rack.ask('vmware', 'status', center.ours)).state, 'off')
  await machine.mustBeDead()
  await ansible(rack, center, 'vcenter_vm_power', { vm: machineId, state: 'start' })
  assert.is.not(await machine.beats(), boot)
  assert.is((await rack.ask('vmware', 'off', center.ours)).state, 'off')
  assert.is(await power(), 'POWERED_OFF')
  await machine.mustBeDead()
  const found = await ansible(rack, center, 'vcenter_vm_info', { names: [machineName] }) as { readonly value: readonly { readonly vm: string; readonly power_state: string }[] }
  assert.equal(found.value.map(({ vm, power_state: state }) => [vm, state]), [[machineId, 'POWERED_OFF']])
}))

test('it tells the UUID of the machine; suspended, or on a host that vCenter has lost, is not off, whatever fence_vmware_rest says', () => inRack(async (rack) => {
  const uuid = randomUUID()
  const center = await startVCenter(rack, { uuid, feed: loose() })
  assert.is((await rack.ask('vmware', 'status', center.ours)).machine, uuid)
  center.says = 'SUSPENDED'
  assert.equal(await saysOf(rack, atTest(center)), { ours: 'unknown', theirs: 'off' })
  center.says = 'POWERED_OFF'
  center.lost = true
  assert.equal(await saysOf(rack, atTest(center)), { ours: 'unknown', theirs: 'off' })
}))

test.run()
