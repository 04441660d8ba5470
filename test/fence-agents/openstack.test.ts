// The program against a Keystone and a Nova of our own, written from OpenStack's reference.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { X509Certificate } from 'node:crypto'
import { connect } from 'node:tls'
import { hush, inCloud, sameDemands, type Call, type Cloud, type CloudWorld, type Reply } from './cloud.ts'

const test = suite('openstack')
const id = '4c4c4544-0042-3510-8051-b7c04f4e3432'

interface Server {
  id: string
  status: string
  vm: string
  task: string | null
  power: number
  host?: string
  addresses?: object
  coming: Partial<Server>[]
}

interface OpenStack extends CloudWorld {
  readonly server: Server
  readonly logins: unknown[]
  readonly versions: Set<string>
  readonly regions: string[]
  refuse(status: number, message: string): void
  /** Another coordinator's order comes just before ours. */
  overtake(): void
}

const fault = (status: number, name: string, message: string): Reply => ({ status, body: { [name]: { code: status, message } } })
const complaint = (status: 429 | 500) => status === 500 ? fault(500, 'computeFault', 'Unexpected API Error.') : fault(429, 'overLimit', 'Too many requests')
const off: Partial<Server> = { status: 'SHUTOFF', vm: 'stopped', task: null, power: 4 }
const on: Partial<Server> = { status: 'ACTIVE', vm: 'active', task: null, power: 1 }

async function inWorld(work: (world: OpenStack) => Promise<void>): Promise<void> {
  const server: Server = { id, status: 'ACTIVE', vm: 'active', task: null, power: 1, coming: [] }
  const orders: string[] = []
  const logins: unknown[] = []
  const versions = new Set<string>()
  const regions = ['one']
  let refusal: Reply | undefined
  let ignoring = false
  let race = false
  const told = () => {
    Object.assign(server, server.coming.shift())
    return {
      id: server.id, name: 'node-1', status: server.status, 'OS-EXT-STS:vm_state': server.vm, 'OS-EXT-STS:task_state': server.task, 'OS-EXT-STS:power_state': server.power,
      ...(server.host === undefined ? {} : { host_status: server.host }), ...(server.addresses === undefined ? {} : { addresses: server.addresses }),
    }
  }
  const answer = (call: Call): Reply => {
    if (call.path === '/v3/auth/tokens') return token(call, logins, regions)
    if (call.headers['x-auth-token'] !== hush[1]) return fault(401, 'unauthorized', 'Unauthorized')
    versions.add(call.headers['openstack-api-version'] ?? '')
    if (call.path === '/compute/v2.1/servers') return { status: 200, body: { servers: call.query.get('marker') === null ? [{ id, name: 'node-1' }] : [] } }
    if (call.path === `/compute/v2.1/servers/${id}`) return { status: 200, body: { server: told() } }
    if (call.path !== `/compute/v2.1/servers/${id}/action`) return fault(404, 'itemNotFound', 'Instance could not be found.')
    if (refusal !== undefined) return refusal
    const [action = ''] = Object.keys(JSON.parse(call.body) as object) // what the program itself wrote
    if (race) server.task = 'powering-off'
    if (server.task !== null) return fault(409, 'conflictingRequest', `Cannot '${action}' instance ${id} while it is in task_state ${server.task}`)
    orders.push(action)
    if (!ignoring) server.coming = action === 'os-stop' ? [{ task: 'powering-off' }, off] : [{ task: 'powering-on' }, on]
    return { status: 202, body: '' }
  }
  await inCloud({ names: [], answer, complaint }, (cloud) => {
    const given = { stonith_status_sleep: '0.1', plug: id, auth_url: `${cloud.url}/v3`, application_credential_id: 'cred', application_credential_secret: hush[0] ?? '', ca: cloud.ca }
    return work({
      secret: { key: 'application_credential_secret', wrong: 'hush-guess' }, forbid: () => { refusal = fault(403, 'forbidden', 'Policy does not allow it') },
      cloud, agent: 'openstack', orders, server, logins, versions, regions, power: () => server.status, ignore: () => { ignoring = true }, with: (over = {}) => ({ ...given, ...over }),
      overtake: () => { race = true },
      refuse: (status, message) => { refusal = fault(status, 'conflictingRequest', message) },
    })
  })
}

function token(call: Call, logins: unknown[], regions: readonly string[]): Reply {
  const { auth } = JSON.parse(call.body) as { auth: { identity: { application_credential?: { secret: string }; password?: { user: { password: string } } } } } // what the program itself wrote
  logins.push(auth)
  const secret = auth.identity.application_credential?.secret ?? auth.identity.password?.user.password
  if (secret !== hush[0]) return { status: 401, body: { error: { code: 401, message: 'The request you have made requires authentication.', title: 'Unauthorized' } } }
  const endpoints = regions.flatMap((region) => ['public', 'internal'].map((side) => ({
    interface: side, region, region_id: region, url: `https://${call.headers['host'] ?? ''}${side === 'public' && region === 'one' ? '/compute/v2.1' : '/elsewhere'}/`,
  })))
  return { status: 201, body: { token: { methods: ['application_credential'], catalog: [{ type: 'image', endpoints: [] }, { type: 'compute', endpoints }] } }, headers: { 'x-subject-token': hush[1] ?? '' } }
}

sameDemands(test, inWorld, { on: 'ACTIVE', off: 'SHUTOFF' })

for (const [name, told] of [
  ['paused', { status: 'PAUSED', vm: 'paused', power: 3 }], ['suspended', { status: 'SUSPENDED', vm: 'suspended', power: 4 }], ['shelved', { status: 'SHELVED', vm: 'shelved', power: 4 }],
  ['shelved and offloaded', { status: 'SHELVED_OFFLOADED', vm: 'shelved_offloaded', power: 4 }], ['in error', { status: 'ERROR', vm: 'error', power: 4 }], ['rescued', { status: 'RESCUE', vm: 'rescued', power: 1 }],
  ['reset to active while it is shut down', { status: 'ACTIVE', vm: 'active', power: 4 }], ['shut off, and running', { status: 'SHUTOFF', vm: 'stopped', power: 1 }], ['shut off, and crashed', { status: 'SHUTOFF', vm: 'stopped', power: 6 }],
  ['shut off, with a task under way', { ...off, task: 'powering-on' }], ['shut off on a hypervisor that does not answer', { ...off, host: 'UNKNOWN' }], ['shut off on a hypervisor forced down', { ...off, host: 'DOWN' }],
  ['active on a hypervisor that does not answer', { ...on, host: 'UNKNOWN' }],
] as const) {
  test(`a server ${name} is unknown`, () => inWorld(async ({ cloud, server, with: at }) => {
    Object.assign(server, told)
    assert.is((await cloud.place.ask('openstack', 'status', at())).state, 'unknown')
  }))
}

test('a server shut off on a hypervisor that answers is off, and its id is the machine\'s UUID', () => inWorld(async ({ cloud, server, versions, with: at }) => {
  Object.assign(server, off, { host: 'UP' })
  const word = await cloud.place.ask('openstack', 'status', at())
  assert.equal([word.state, word.machine, [...versions]], ['off', id, ['compute 2.16']])
}))

test('an order under way is waited for and not given twice', () => inWorld(async ({ cloud, server, orders, with: at }) => {
  Object.assign(server, { task: 'powering-off', coming: [{}, {}, off] })
  assert.equal([(await cloud.place.ask('openstack', 'off', at())).state, orders], ['off', []])
}))

test('refused because another has just ordered the same, it waits for that', () => inWorld(async ({ cloud, overtake, server, orders, with: at }) => {
  overtake()
  server.coming = [{}, {}, off]
  assert.equal([(await cloud.place.ask('openstack', 'off', at())).state, orders], ['off', []])
}))

test('a dead nova-compute leaves powering-off for ever, which is not off', () => inWorld(async ({ cloud, server, with: at }) => {
  server.task = 'powering-off'
  const word = await cloud.place.ask('openstack', 'off', at({ power_timeout: '1' }))
  assert.is(word.state, 'failed')
  assert.match(word.reason, /^timeout .*task powering-off/)
}))

for (const [name, status, message, reason] of [
  ['a locked server', 409, 'Instance is locked', /^device \(Nova: Instance is locked \(it is locked, or in a state/], ['low privilege', 403, 'Policy doesn\'t allow os_compute_api:servers:stop', /^privilege/],
] as const) {
  test(`${name}: the order is refused, with its reason`, () => inWorld(async ({ cloud, refuse, server, with: at }) => {
    refuse(status, message)
    const word = await cloud.place.ask('openstack', 'off', at())
    assert.equal([word.state, server.status], ['failed', 'ACTIVE'])
    assert.match(word.reason, reason)
  }))
}

test('the state of a server is never reset, nor is it rebooted or deleted', () => inWorld(async ({ cloud, orders, with: at }) => {
  for (const action of ['off', 'on', 'off'] as const) await cloud.place.ask('openstack', action, at())
  assert.equal(orders, ['os-stop', 'os-start', 'os-stop'])
  assert.equal(cloud.calls.filter((call) => call.startsWith('DELETE')), [])
}))

test('an answer about another server says nothing about this one', () => inWorld(async ({ cloud, server, with: at }) => {
  Object.assign(server, off, { id: '00000000-0000-0000-0000-000000000001' })
  assert.is((await cloud.place.ask('openstack', 'status', at())).state, 'unknown')
}))

test('an unknown server is not found, which is not off', () => inWorld(async ({ cloud, with: at }) => {
  const word = await cloud.place.ask('openstack', 'off', at({ plug: '00000000-0000-0000-0000-000000000000' }))
  assert.is(word.state, 'failed')
  assert.match(word.reason, /^notfound/)
}))

test('a wrong secret is told as such, and nothing of it is shown', () => inWorld(async ({ cloud, orders, with: at }) => {
  const word = await cloud.place.ask('openstack', 'off', at({ application_credential_secret: 'hush-guess' }))
  assert.match(word.reason, /^auth/)
  assert.not.match(JSON.stringify(word), /hush/)
  assert.equal(orders, [])
}))

test('by a password, and all of it from the environment', () => inWorld(async ({ cloud, logins, with: at }) => {
  const environment = { OS_AUTH_URL: cloud.url, OS_USERNAME: 'u', OS_PASSWORD: hush[0] ?? '', OS_PROJECT_NAME: 'p', OS_USER_DOMAIN_NAME: 'd' }
  assert.is((await cloud.place.ask('openstack', 'status', { plug: id, ca: at()['ca'] ?? '' }, 20_000, environment)).state, 'on')
  assert.equal(logins, [{
    identity: { methods: ['password'], password: { user: { name: 'u', password: hush[0], domain: { name: 'd' } } } }, scope: { project: { name: 'p', domain: { name: 'Default' } } },
  }])
}))

test('where there are several regions one must be named, by the providerID at the latest', () => inWorld(async ({ cloud, regions, with: at }) => {
  regions.push('two')
  assert.match((await cloud.place.ask('openstack', 'status', at())).reason, /^config \(region_name= is missing: Nova stands in one, two/)
  assert.is((await cloud.place.ask('openstack', 'status', at({ plug: `openstack://one/${id}` }))).state, 'on')
  assert.match((await cloud.place.ask('openstack', 'status', at({ region_name: 'three' }))).reason, /^config \(Keystone knows no Nova in the region three/)
}))

test('a certificate of one\'s own is trusted by its fingerprint, and another is not', () => inWorld(async ({ cloud, with: at }) => {
  const pin = await fingerprintOf(cloud)
  assert.is((await cloud.place.ask('openstack', 'status', at({ ca: '', certificate_sha256: pin }))).state, 'on')
  const before = cloud.calls.length
  assert.match((await cloud.place.ask('openstack', 'status', at({ certificate_sha256: 'ab'.repeat(32) }))).reason, /^config \(.*not the pinned one/)
  assert.is(cloud.calls.length, before)
}))

function fingerprintOf(cloud: Cloud): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(cloud.url).port), rejectUnauthorized: false }, () => {
      const { raw } = socket.getPeerCertificate()
      socket.end()
      resolve(new X509Certificate(raw).fingerprint256)
    })
    socket.once('error', reject)
  })
}

test('half a credential, a name for a plug, no Keystone: refused before anybody is asked', () => inWorld(async ({ cloud, with: at }) => {
  for (const over of [{ application_credential_secret: '' }, { plug: 'node-1' }, { plug: `${id}/action` }, { auth_url: '' }, { auth_url: 'http://keystone.invalid:5000' }]) {
    assert.match((await cloud.place.ask('openstack', 'off', at(over))).reason, /^config/)
  }
  assert.equal(cloud.calls, [])
}))

test('the addresses of its ports are told, and none that is only led to it', () => inWorld(async ({ cloud, server, with: at }) => {
  const told = async () => (await cloud.place.ask('openstack', 'status', at())).addresses
  assert.is(await told(), undefined)
  server.addresses = {
    private: [{ addr: '10.0.0.5', version: 4, 'OS-EXT-IPS:type': 'fixed' }, { addr: '203.0.113.5', version: 4, 'OS-EXT-IPS:type': 'floating' }],
    storage: [{ addr: 'fd00::5', version: 6, 'OS-EXT-IPS:type': 'fixed' }],
  }
  assert.equal(await told(), ['10.0.0.5', 'fd00::5'])
  for (const strange of [{}, { private: 'none' }, { private: [{ addr: 5 }, {}] }]) {
    server.addresses = strange
    assert.is(await told(), undefined)
  }
}))

test.run()
