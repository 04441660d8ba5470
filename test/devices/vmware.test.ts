// Our `vmware` and Debian's fence_vmware_rest at a vCenter of ours, each in its own dialect, and the machine as the judge of both;
// and Ansible's collection for vCenter, in the dialect of ours.
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { saysOf, sameClaims, type CloudAtTest } from './cloud-claims.ts'
import { inCluster, secretOf, type Cluster } from './cluster.ts'
import { loose, startMachine } from './machine.ts'
import { inRack, installed, secret, until, type Rack } from './rack.ts'
import { machineId, machineName, otherId, startVCenter, vcenterName, type VCenter } from './vcenter-endpoint.ts'
import { audited, cordoned, held, nodeOf, patience, uncordon, volumesOn } from './victim.ts'

const test = suite('vmware')
const [victim, others] = [machineName, ['node-2', 'node-3']]
const address = '10.20.0.1'

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

async function powerOf(rack: Rack, center: VCenter, vm: string): Promise<string> {
  return (await ansible(rack, center, 'vcenter_vm_power_info', { vm }) as { readonly value: { readonly state: string } }).value.state
}

/** By the machine's own BIOS UUID, in Ansible's reading of it. */
async function uuidOf(rack: Rack, center: VCenter, vm: string): Promise<string> {
  return (await ansible(rack, center, 'vcenter_vm_info', { vm }) as { readonly value: { readonly identity: { readonly bios_uuid: string } } }).value.identity.bios_uuid
}

test('beside Ansible: it stops the machine and starts it, and finds it as ours left it', () => inRack(async (rack) => {
  const machine = await startMachine(rack, 'machine')
  const center = await startVCenter(rack, machine)
  const boot = await machine.beats()
  const power = () => powerOf(rack, center, machineId)
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

/** Its first three fields from their other end, as the firmware of newer machines tells it. */
function turned(uuid: string): string {
  const [low = '', middle = '', high = '', ...rest] = uuid.split('-')
  return [...[low, middle, high].map((field) => (field.match(/../g) ?? []).toReversed().join('')), ...rest].join('-')
}

test('by what its Node says of it: the one machine that Ansible reads this UUID of, whatever it is named, in either writing; no other', () => inRack(async (rack) => {
  const feeds = [loose(), loose()] as const
  const center = await startVCenter(rack, { uuid: randomUUID(), feed: feeds[0] })
  center.name = 'named otherwise'
  center.addresses = ['10.0.0.7']
  center.others.push({ name: machineName, uuid: randomUUID(), feed: feeds[1] })
  const uuid = await uuidOf(rack, center, machineId)
  for (const [written, action, power] of [[uuid, 'off', 'POWERED_OFF'], [turned(uuid).toUpperCase(), 'on', 'POWERED_ON']] as const) {
    const word = await rack.ask('vmware', action, { ...center.ours, plug: `vsphere://${written}` })
    assert.equal([word.state, word.machine], [action, uuid], word.text)
    assert.equal([await powerOf(rack, center, machineId), await powerOf(rack, center, otherId(0))], [power, 'POWERED_ON'])
  }
  const interfaces = await ansible(rack, center, 'vcenter_vm_guest_networking_interfaces_info', { vm: machineId }) as { readonly value: readonly { readonly ip: { readonly ip_addresses: readonly { readonly ip_address: string }[] } }[] }
  assert.equal((await rack.ask('vmware', 'status', { ...center.ours, plug: `vsphere://${uuid}` })).addresses, interfaces.value.flatMap(({ ip }) => ip.ip_addresses.map((one) => one.ip_address)))
}))

test('a UUID that no machine bears, or two do, is nobody\'s: refused, and whatever Ansible reads runs on', () => inRack(async (rack) => {
  const [uuid, feeds] = [randomUUID(), [loose(), loose(), loose()] as const]
  const center = await startVCenter(rack, { uuid, feed: feeds[0] })
  const refused = async (written: string, reason: RegExp) => {
    for (const action of ['status', 'off', 'on'] as const) {
      const word = await rack.ask('vmware', action, { ...center.ours, plug: `vsphere://${written}` })
      assert.is(word.state, action === 'status' ? 'unknown' : 'failed', `${action}: ${word.text}`)
      assert.match(word.reason, reason)
    }
    for (const vm of [machineId, ...center.others.map((_, index) => otherId(index))]) assert.is(await powerOf(rack, center, vm), 'POWERED_ON', vm)
  }
  await refused(randomUUID(), /^notfound \(.*no machine with this UUID/)
  // A copy in another folder, and one whose maker wrote the same UUID as firmware tells it.
  for (const [index, twin] of [{ name: machineName, uuid }, { name: 'a copy', uuid: turned(uuid) }].entries()) {
    center.others.splice(0, center.others.length, { ...twin, feed: feeds[index + 1] ?? loose() })
    await refused(uuid, /^config \(2 machines bear this UUID/)
  }
  // Its UUID was given to another: what was the machine's own is nobody's now.
  center.others.length = 0
  center.uuid = randomUUID()
  await refused(uuid, /^notfound/)
}))

const incidentOf = (cluster: Cluster) => cluster.incidents().find(({ nodeName }) => nodeName === victim)?.status

test('no configuration but the providerID of its Node, with the whole product: a kernel that hangs is switched off, and boots; with a twin of its UUID nothing is ordered', () => inRack(async (rack) => {
  const machine = await startMachine(rack, 'machine')
  const boot = await machine.beats()
  const center = await startVCenter(rack, machine)
  center.addresses = ['fe80::1', address]
  center.others.push({ name: 'another', uuid: randomUUID(), feed: loose() })
  const { ip = '', username = '', password = '' } = center.ours
  const objects = [secretOf('vcenter', { ip, username, password }), nodeOf(victim, { providerID: `vsphere://${turned(machine.uuid)}` }), ...cordoned(others)]
  const settings = { nodes: [victim, ...others], real: { [victim]: machine }, objects, policy: { cloudCredentials: 'vcenter' } }
  await inCluster(rack, { ...settings, nodeAddress: (index) => (index === 0 ? address : `10.20.0.${index + 1}`) }, async (cluster) => {
    await audited(cluster, [victim])
    assert.equal(cluster.records().get(victim)?.paths.map(({ method, identity }) => [method, identity]), [['restart-instance', 'proven']])
    await volumesOn(cluster, victim)
    await uncordon(cluster, others)
    const before = held(cluster, victim)
    center.others.push({ name: machineName, uuid: machine.uuid, feed: loose() })
    machine.tell('echo c > /proc/sysrq-trigger')
    await until('a hold that names the path', () => incidentOf(cluster)?.holds.some(({ detail }) => detail.includes('restart-instance')) === true, patience)
    assert.equal([incidentOf(cluster)?.proof, incidentOf(cluster)?.attempts, held(cluster, victim)], [undefined, [], before])
    await machine.mustHang()
    center.others.pop()
    await until('the incident to be over', () => incidentOf(cluster)?.phase === 'Final', patience)
    const { proof, outcome } = incidentOf(cluster) ?? {}
    assert.equal([proof?.kind, proof?.methods, outcome], ['off', ['restart-instance'], 'Recovered'])
    assert.is.not(await machine.beats(), boot)
    assert.equal([center.others[0]?.feed.on(), await powerOf(rack, center, machineId)], [true, 'POWERED_ON'])
    assert.equal([cluster.world.judges.twoWriters(), cluster.world.judges.wroteAfterRelease()], [[], []])
  })
}))

test.run()
