// The program against a vCenter of our own, written from the vSphere Automation API's reference.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { hush, inCloud, sameDemands, type Call, type CloudWorld, type Reply } from './cloud.ts'

const test = suite('vmware')
const id = 'vm-1001'
const uuid = '4203942f-ce98-3f27-455c-463d34b8af41'

interface VCenter extends CloudWorld {
  readonly vm: { power: string; coming: string[] }
  /** Hosts that do not answer, and whether the machine is on one of them. */
  readonly hosts: { lost: string[]; here: boolean }
  readonly names: string[]
  /** What vCenter tells of each: its UUID, and what its VMware Tools tell, if they run. */
  readonly uuids: string[]
  readonly told: { addresses: string[] | undefined }
  readonly sessions: Set<string>
  refuse(status: number, kind: string): void
}

const fault = (status: number, kind: string, message: string): Reply => ({ status, body: { error_type: kind, messages: [{ args: [], default_message: message, id: 'x' }] } })
const complaint = (status: 429 | 500) => status === 500 ? fault(500, 'INTERNAL_SERVER_ERROR', 'x') : fault(503, 'SERVICE_UNAVAILABLE', 'x')

async function inWorld(work: (world: VCenter) => Promise<void>): Promise<void> {
  const vm = { power: 'POWERED_ON', coming: [] as string[] }
  const hosts = { lost: [] as string[], here: false }
  const names = ['node 1']
  const uuids = [uuid]
  const told: VCenter['told'] = { addresses: ['10.0.0.7', 'fe80::1'] }
  const orders: string[] = []
  const sessions = new Set<string>()
  let refusal: Reply | undefined
  let ignoring = false
  const answer = (call: Call): Reply => {
    if (call.path === '/api/session') return session(call, sessions)
    if (!sessions.has(call.headers['vmware-api-session-id'] ?? '')) return fault(401, 'UNAUTHENTICATED', 'Authentication required.')
    const summaries = names.map((name, index) => ({ vm: `vm-${1001 + index}`, name, power_state: vm.power, cpu_count: 2 }))
    if (call.path === '/api/vcenter/host') {
      assert.equal(call.query.getAll('connection_states'), ['DISCONNECTED', 'NOT_RESPONDING'])
      return { status: 200, body: hosts.lost.map((host) => ({ host, name: host, connection_state: 'NOT_RESPONDING' })) }
    }
    if (call.path === '/api/vcenter/vm') {
      const [wanted, where, which] = [call.query.getAll('names'), call.query.getAll('hosts'), call.query.getAll('vms')]
      // Looser with names than vCenter, so that who trusts it blindly is found out.
      const fits = summaries.filter((one) => (wanted.length === 0 || wanted.some((name) => one.name.startsWith(name))) && (which.length === 0 || which.includes(one.vm)))
      return { status: 200, body: where.length > 0 && !(hosts.here && where.some((host) => hosts.lost.includes(host))) ? [] : fits }
    }
    const [, nth, rest] = /^\/api\/vcenter\/vm\/vm-1(\d{3})(\/guest\/networking\/interfaces)?$/.exec(call.path) ?? []
    const other = nth === undefined ? undefined : uuids[Number(nth) - 1]
    if (rest !== undefined && other !== undefined) {
      if (told.addresses === undefined) return fault(503, 'SERVICE_UNAVAILABLE', 'VMware Tools is not running.')
      return { status: 200, body: [{ nic: '4000', ip: { ip_addresses: told.addresses.map((address) => ({ ip_address: address, prefix_length: 24, state: 'PREFERRED' })) } }, { nic: '4001' }] }
    }
    if (call.method === 'GET' && other !== undefined && nth !== '001') return { status: 200, body: { name: 'x', power_state: 'POWERED_ON', identity: { bios_uuid: other, instance_uuid: uuid } } }
    if (!call.path.startsWith(`/api/vcenter/vm/${id}`)) return fault(404, 'NOT_FOUND', `The object '${call.path}' has been deleted or is not known.`)
    if (call.method === 'GET') {
      vm.power = vm.coming.shift() ?? vm.power
      return { status: 200, body: { name: 'node 1', power_state: vm.power, identity: { bios_uuid: uuids[0], instance_uuid: uuid, name: 'node 1' }, hardware: { version: 'VMX_19' } } }
    }
    if (refusal !== undefined) return refusal
    const action = call.query.get('action') ?? ''
    orders.push(action)
    if (!ignoring) vm.coming = [vm.power, action === 'stop' ? 'POWERED_OFF' : 'POWERED_ON']
    return { status: 204, body: '' }
  }
  await inCloud({ names: [], answer, complaint }, (cloud) => {
    const given = { stonith_status_sleep: '0.1', ip: '127.0.0.1', ipport: new URL(cloud.url).port, username: 'fence@vsphere.local', password: hush[0] ?? '', plug: id, ca: cloud.ca }
    return work({
      secret: { key: 'password', wrong: 'hush-guess' }, forbid: () => { refusal = fault(403, 'UNAUTHORIZED', 'no') },
      cloud, agent: 'vmware', orders, vm, hosts, names, uuids, told, sessions, power: () => vm.power, ignore: () => { ignoring = true }, with: (over = {}) => ({ ...given, ...over }),
      refuse: (status, kind) => { refusal = fault(status, kind, 'no') },
    })
  })
}

function session(call: Call, sessions: Set<string>): Reply {
  if (call.method === 'DELETE') {
    sessions.delete(call.headers['vmware-api-session-id'] ?? '')
    return { status: 204, body: '' }
  }
  if (call.headers['authorization'] !== `Basic ${Buffer.from(`fence@vsphere.local:${hush[0]}`).toString('base64')}`) return fault(401, 'UNAUTHENTICATED', 'Invalid credentials.')
  sessions.add(hush[1] ?? '')
  return { status: 201, body: JSON.stringify(hush[1]) }
}

sameDemands(test, inWorld, { on: 'POWERED_ON', off: 'POWERED_OFF' })

test('each session is given back, also after a failure', () => inWorld(async ({ cloud, sessions, refuse, with: at }) => {
  await cloud.place.ask('vmware', 'status', at())
  refuse(403, 'UNAUTHORIZED')
  await cloud.place.ask('vmware', 'off', at())
  assert.is(sessions.size, 0)
  assert.is(cloud.calls.filter((call) => call.startsWith('DELETE ')).length, 2)
}))

for (const power of ['SUSPENDED', 'DREAMING', '']) {
  test(`${power === '' ? 'no power state' : power} is not off`, () => inWorld(async ({ cloud, vm, with: at }) => {
    vm.power = power
    assert.is((await cloud.place.ask('vmware', 'status', at())).state, 'unknown')
  }))
}

test('a suspended machine is stopped by order, and never resumed as if it were switched on', () => inWorld(async ({ cloud, vm, orders, with: at }) => {
  vm.power = 'SUSPENDED'
  assert.equal([(await cloud.place.ask('vmware', 'on', at())).state, orders], ['failed', []])
  assert.equal([(await cloud.place.ask('vmware', 'off', at())).state, orders], ['off', ['stop']])
}))

test('a machine whose host does not answer vCenter is unknown whatever is told of it, and nothing is ordered', () => inWorld(async ({ cloud, vm, hosts, orders, with: at }) => {
  Object.assign(hosts, { lost: ['host-7', 'host-9'], here: true })
  for (const power of ['POWERED_OFF', 'POWERED_ON']) {
    vm.power = power
    const word = await cloud.place.ask('vmware', 'off', at())
    assert.equal([word.state, orders], ['failed', []])
    assert.match(word.reason, /its host does not answer vCenter/)
  }
}))

test('another host that does not answer is no matter', () => inWorld(async ({ cloud, hosts, with: at }) => {
  hosts.lost.push('host-7')
  assert.is((await cloud.place.ask('vmware', 'off', at())).state, 'off')
}))

test('by name, if it is the name of one machine alone', () => inWorld(async ({ cloud, names, orders, with: at }) => {
  assert.is((await cloud.place.ask('vmware', 'status', at({ plug: 'node 1' }))).state, 'on')
  assert.match((await cloud.place.ask('vmware', 'status', at({ plug: 'node' }))).reason, /^notfound/)
  names.push('node 1')
  assert.match((await cloud.place.ask('vmware', 'off', at({ plug: 'node 1' }))).reason, /^config \(2 machines are named node 1/)
  assert.equal(orders, [])
}))

/** As its own firmware reads it, since hardware version 13. */
const turned = '2f940342-98ce-273f-455c-463d34b8af41'

for (const written of [uuid, uuid.toUpperCase(), turned, turned.toUpperCase()]) {
  test(`the machine of vsphere://${written}`, () => inWorld(async ({ cloud, orders, with: at }) => {
    const word = await cloud.place.ask('vmware', 'status', at({ plug: `vsphere://${written}` }))
    assert.equal([word.state, word.machine, word.addresses], ['on', uuid, ['10.0.0.7', 'fe80::1']])
    assert.equal([(await cloud.place.ask('vmware', 'off', at({ plug: `vsphere://${written}` }))).state, orders], ['off', ['stop']])
  }))
}

test('by its UUID the machine is found whatever it is named, at once where it is named as the node is', () => inWorld(async ({ cloud, names, uuids, with: at }) => {
  const others = Array.from({ length: 99 }, (_, nth) => `${String(nth).padStart(8, '0')}-0000-0000-0000-000000000000`)
  names.push(...others)
  uuids.push(...others)
  const asked = () => cloud.calls.filter((call) => /GET .*\/vcenter\/vm\/vm-1\d+$/.test(call)).length
  assert.is((await cloud.place.ask('vmware', 'status', at({ plug: `vsphere://${uuid}` }))).state, 'on')
  assert.ok(asked() >= 100, `${asked()} machines were asked`)
  const before = asked()
  names[0] = 'node-1'
  assert.is((await cloud.place.ask('vmware', 'status', at({ plug: `vsphere://${uuid}` }), 20_000, { HOLDFAST_NODE: 'node-1.example.com' })).state, 'on')
  assert.is(asked() - before, 2, 'whether it bears it, and how it stands')
  names.push('one', 'too many')
  const word = await cloud.place.ask('vmware', 'status', at({ plug: `vsphere://${uuid}` }))
  assert.match(word.reason, /^config \(.*102 are too many to look through/)
}))

test('a machine of the node\'s name with another UUID is not the one; nor is one of two that bear it', () => inWorld(async ({ cloud, names, uuids, orders, with: at }) => {
  names[0] = 'node-1'
  uuids[0] = '11111111-2222-3333-4444-555555555555'
  const plug = { plug: `vsphere://${uuid}` }
  assert.match((await cloud.place.ask('vmware', 'off', at(plug), 20_000, { HOLDFAST_NODE: 'node-1' })).reason, /^notfound \(.*no machine with this UUID/)
  names.push('a', 'b')
  uuids.push(uuid, turned)
  assert.match((await cloud.place.ask('vmware', 'off', at(plug), 20_000, { HOLDFAST_NODE: 'node-1' })).reason, /^config \(2 machines bear this UUID/)
  for (const wrong of ['vsphere://x', `vsphere://${uuid}/1`, `vsphere://${uuid},${uuid}`]) assert.match((await cloud.place.ask('vmware', 'off', at({ plug: wrong }))).reason, /config/, wrong)
  assert.equal(orders, [])
}))

test('nor is one of two that bear it in two folders, under the node\'s own name', () => inWorld(async ({ cloud, names, uuids, orders, with: at }) => {
  names.splice(0, 1, 'node-1', 'node-1.example.com', 'node-1')
  uuids.push('11111111-2222-3333-4444-555555555555', turned)
  for (const action of ['status', 'off'] as const) {
    const word = await cloud.place.ask('vmware', action, at({ plug: `vsphere://${uuid}` }), 20_000, { HOLDFAST_NODE: 'node-1.example.com' })
    assert.match(word.reason, /^config \(2 machines bear this UUID/, action)
  }
  assert.equal(orders, [])
}))

test('where no VMware Tools run no address is told, and none of a machine that a person names', () => inWorld(async ({ cloud, told, with: at }) => {
  assert.is((await cloud.place.ask('vmware', 'status', at())).addresses, undefined)
  told.addresses = undefined
  const word = await cloud.place.ask('vmware', 'status', at({ plug: `vsphere://${uuid}` }))
  assert.equal([word.state, word.addresses], ['on', undefined])
}))

test('the machine\'s UUID is told as vCenter has it, whatever its power', () => inWorld(async ({ cloud, vm, with: at }) => {
  const word = await cloud.place.ask('vmware', 'status', at())
  assert.equal([word.evidence, word.machine], [`exit 0: POWERED_ON, BIOS UUID ${uuid}`, uuid])
  vm.power = 'SUSPENDED'
  assert.is((await cloud.place.ask('vmware', 'status', at())).machine, uuid)
}))

for (const [name, status, kind, reason] of [
  ['low privilege', 403, 'UNAUTHORIZED', /^privilege \(.*needs VirtualMachine.Interact/], ['a host out of reach', 500, 'RESOURCE_INACCESSIBLE', /^device \(.*cannot reach/],
  ['a state that forbids it', 400, 'NOT_ALLOWED_IN_CURRENT_STATE', /^device/],
] as const) {
  test(`${name}: the order is refused, with its reason`, () => inWorld(async ({ cloud, refuse, vm, with: at }) => {
    refuse(status, kind)
    const word = await cloud.place.ask('vmware', 'off', at())
    assert.equal([word.state, vm.power], ['failed', 'POWERED_ON'])
    assert.match(word.reason, reason)
  }))
}

test('an unknown machine is not found, which is not off', () => inWorld(async ({ cloud, with: at }) => {
  const word = await cloud.place.ask('vmware', 'off', at({ plug: 'vm-7' }))
  assert.is(word.state, 'failed')
  assert.match(word.reason, /^notfound/)
}))

test('a wrong password is told as such, and nothing of it is shown', () => inWorld(async ({ cloud, orders, with: at }) => {
  const word = await cloud.place.ask('vmware', 'off', at({ password: 'hush-guess' }))
  assert.match(word.reason, /^auth/)
  assert.not.match(JSON.stringify(word), /hush/)
  assert.equal(orders, [])
}))

test('any certificate is trusted where the operator says so', () => inWorld(async ({ cloud, with: at }) => {
  assert.is((await cloud.place.ask('vmware', 'status', at({ ca: '', ssl_insecure: '1' }))).state, 'on')
}))

test.run()
