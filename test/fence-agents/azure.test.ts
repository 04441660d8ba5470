// The program against an Azure of our own, written from Microsoft's reference.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { hush, inCloud, sameDemands, type Call, type CloudWorld, type Reply } from './cloud.ts'

const test = suite('azure')
const names = ['login.microsoftonline.com', 'management.azure.com']
const group = '/subscriptions/0000-1/resourceGroups/rg/providers/Microsoft.Compute'
const scaleSet = `${group}/virtualMachineScaleSets/pool/virtualMachines/3`
const vmId = 'da560509-fad4-4f76-a9f1-63614eda019a'

interface Azure extends CloudWorld {
  readonly vm: { power: string; coming: string[]; more: string[]; hibernation: boolean; id: string; told?: string; interfaces: string[] }
  /** What is told of each network interface. */
  readonly wires: Record<string, Reply>
  readonly asked: string[]
  /** How the operation of the next order ends. */
  ends(how: 'Succeeded' | 'InProgress' | { code: string; message: string }): void
  refuse(status: number, code: string): void
  elsewhere(url: string): void
}

const error = (status: number, code: string, message: string): Reply => ({ status, body: { error: { code, message } } })

const complaint = (status: 429 | 500) => status === 500 ? error(500, 'InternalServerError', 'x') : error(429, 'SubscriptionRequestsThrottled', 'Number of requests exceeded the limit.')

async function inWorld(work: (world: Azure) => Promise<void>): Promise<void> {
  const vm: Azure['vm'] = { power: 'running', coming: [], more: [], hibernation: false, id: `${group}/virtualMachines/node-1`, interfaces: [] }
  const wires: Azure['wires'] = {}
  const orders: string[] = []
  const asked: string[] = []
  let how: Parameters<Azure['ends']>[0] = 'Succeeded'
  let refusal: Reply | undefined
  let ignoring = false
  let stand: string | undefined
  const told = () => {
    const next = vm.coming.shift()
    if (next !== undefined) vm.power = next
    const statuses = ['ProvisioningState/succeeded', `PowerState/${vm.power}`, ...vm.more].map((code) => ({ code, level: 'Info' }))
    return {
      id: (vm.told ?? vm.id).replace('resourceGroups/rg', 'resourceGroups/RG'), name: vm.id.split('/').at(-1), properties: {
        vmId, provisioningState: 'Succeeded', additionalCapabilities: { hibernationEnabled: vm.hibernation },
        instanceView: { statuses }, networkProfile: { networkInterfaces: vm.interfaces.map((id) => ({ id })) },
      },
    }
  }
  const answer = (call: Call): Reply => {
    if (call.path === '/tenant/oauth2/v2.0/token') return login(call)
    if (call.headers['authorization'] !== `Bearer ${hush[1]}`) return error(401, 'InvalidAuthenticationToken', 'The access token is invalid.')
    if (call.path === '/operations/o1') return { status: 200, body: typeof how === 'string' ? { status: how } : { status: 'Failed', error: how } }
    if (call.path === `${group}/virtualMachines`) return { status: 200, body: { value: [told()] } }
    const wire = wires[call.path]
    if (wire !== undefined) return wire
    if (!call.path.startsWith(vm.id)) return error(404, 'ResourceNotFound', `The Resource '${call.path}' was not found.`)
    const action = call.path.slice(vm.id.length + 1)
    if (action === '') return call.query.get('$expand') === 'instanceView' ? { status: 200, body: told() } : { status: 200, body: { ...told(), properties: {} } }
    if (refusal !== undefined) return refusal
    orders.push(action)
    asked.push(`${action}?${call.query.toString()}`)
    if (action === 'deallocate') vm.more = []
    if (!ignoring) vm.coming = { powerOff: ['stopping', 'stopped'], deallocate: ['deallocating', 'deallocated'], start: ['starting', 'running'] }[action] ?? []
    return { status: 202, body: '', headers: { 'azure-asyncoperation': `${stand ?? `https://${call.headers['host'] ?? ''}`}/operations/o1?api-version=1`, 'retry-after': '0' } }
  }
  await inCloud({ names, answer, complaint }, (cloud) => {
    const given = {
      stonith_status_sleep: '0.1', plug: 'node-1', resourceGroup: 'rg', subscriptionId: '0000-1', tenantId: 'tenant', username: 'app', password: hush[0] ?? '', endpoint: cloud.url, authority: cloud.url, ca: cloud.ca,
    }
    return work({
      secret: { key: 'password', wrong: 'hush-guess' }, forbid: () => { refusal = error(403, 'AuthorizationFailed', 'no') },
      cloud, agent: 'azure', orders, vm, wires, asked, power: () => vm.power, ignore: () => { ignoring = true }, with: (over = {}) => ({ ...given, ...over }),
      ends: (next) => { how = next }, refuse: (status, code) => { refusal = error(status, code, 'no') }, elsewhere: (url) => { stand = url },
    })
  })
}

function login(call: Call): Reply {
  const form = new URLSearchParams(call.body)
  const known = form.get('client_secret') === hush[0] || (form.get('client_assertion') === hush[0] && form.get('client_assertion_type') === 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
  const good = form.get('grant_type') === 'client_credentials' && form.get('client_id') === 'app' && form.get('scope')?.endsWith('/.default') === true
  if (known && good) return { status: 200, body: { token_type: 'Bearer', expires_in: 3_599, access_token: hush[1] } }
  return { status: 401, body: { error: 'invalid_client', error_description: `AADSTS7000215: Invalid client secret provided: ${form.get('client_secret') ?? ''}.\r\nTrace: x` } }
}

const wire = (name: string) => `/subscriptions/0000-1/resourceGroups/net/providers/Microsoft.Network/networkInterfaces/${name}`
const wired = (...addresses: readonly string[]): Reply => ({ status: 200, body: { properties: { ipConfigurations: addresses.map((privateIPAddress) => ({ properties: { privateIPAddress } })) } } })

test('the addresses of all its interfaces are told, or none', () => inWorld(async ({ cloud, vm, wires, with: at }) => {
  const addresses = async () => (await cloud.place.ask('azure', 'status', at())).addresses
  assert.is(await addresses(), undefined)
  vm.interfaces = [wire('one'), wire('two')]
  Object.assign(wires, { [wire('one')]: wired('10.1.0.4', 'fd00::4'), [wire('two')]: wired('10.2.0.4') })
  assert.equal(await addresses(), ['10.1.0.4', 'fd00::4', '10.2.0.4'])
  for (const refused of [error(403, 'AuthorizationFailed', 'no'), error(404, 'ResourceNotFound', 'no')]) {
    wires[wire('two')] = refused
    const word = await cloud.place.ask('azure', 'status', at())
    assert.equal([word.state, word.addresses], ['on', undefined])
  }
  for (const other of [[vm.id], Array.from({ length: 8 }, () => wire('one'))]) {
    vm.interfaces = [...other, wire('one')]
    assert.is(await addresses(), undefined)
  }
}))

sameDemands(test, inWorld, { on: 'running', off: 'stopped' })

test('powerOff skips the system\'s own shutdown; deallocate is ordered where it is wished for', () => inWorld(async ({ cloud, vm, asked, with: at }) => {
  assert.is((await cloud.place.ask('azure', 'off', at())).state, 'off')
  vm.power = 'running'
  assert.equal([(await cloud.place.ask('azure', 'off', at({ deallocate: '1' }))).state, vm.power], ['off', 'deallocated'])
  assert.equal(asked, ['powerOff?skipShutdown=true&api-version=2024-07-01', 'deallocate?api-version=2024-07-01'])
}))

for (const power of ['stopping', 'deallocating', 'starting', 'creating', 'unknown', 'dreaming']) {
  test(`${power} is not off`, () => inWorld(async ({ cloud, vm, with: at }) => {
    vm.power = power
    assert.is((await cloud.place.ask('azure', 'status', at())).state, 'unknown')
  }))
}

test('two power states are none', () => inWorld(async ({ cloud, vm, with: at }) => {
  Object.assign(vm, { power: 'stopped', more: ['PowerState/running'] })
  assert.is((await cloud.place.ask('azure', 'status', at())).state, 'unknown')
}))

test('a hibernated machine is unknown, is not resumed as if it were switched on, and is off once it was deallocated by order', () => inWorld(async ({ cloud, vm, orders, with: at }) => {
  Object.assign(vm, { power: 'deallocated', more: ['HibernationState/Hibernated'] })
  assert.is((await cloud.place.ask('azure', 'status', at())).state, 'unknown')
  assert.equal([(await cloud.place.ask('azure', 'on', at())).state, orders], ['failed', []])
  assert.equal([(await cloud.place.ask('azure', 'off', at())).state, orders], ['off', ['deallocate']])
}))

test('where it could hibernate, stopped is unknown, and off means deallocated', () => inWorld(async ({ cloud, vm, orders, with: at }) => {
  Object.assign(vm, { power: 'stopped', hibernation: true })
  assert.is((await cloud.place.ask('azure', 'status', at())).state, 'unknown')
  assert.equal([(await cloud.place.ask('azure', 'off', at())).state, orders, vm.power], ['off', ['deallocate'], 'deallocated'])
}))

test('while the operation runs it is not off, whatever the machine reads', () => inWorld(async ({ cloud, ends, with: at }) => {
  ends('InProgress')
  const word = await cloud.place.ask('azure', 'off', at({ power_timeout: '1' }))
  assert.is(word.state, 'failed')
  assert.match(word.reason, /^timeout \(the operation is still InProgress\)/)
}))

test('an operation that fails is failed at once, with its reason', () => inWorld(async ({ cloud, ends, with: at }) => {
  ends({ code: 'ScopeLocked', message: 'locked' })
  const word = await cloud.place.ask('azure', 'off', at())
  assert.is(word.state, 'failed')
  assert.match(word.reason, /^privilege \(ScopeLocked: locked \(a lock stands/)
}))

test('the token goes to the resource manager alone', () => inWorld(async ({ cloud, elsewhere, with: at }) => {
  elsewhere('https://elsewhere.invalid')
  assert.match((await cloud.place.ask('azure', 'off', at())).reason, /^device \(the operation is said to stand elsewhere/)
}))

test('the machine\'s UUID is told as Azure has it', () => inWorld(async ({ cloud, with: at }) => {
  assert.is((await cloud.place.ask('azure', 'status', at())).machine, vmId)
}))

for (const [name, status, code, wanted] of [
  ['low privilege', 403, 'AuthorizationFailed', /^privilege \(.*needs read, powerOff/], ['another tenant', 401, 'InvalidAuthenticationTokenTenant', /^auth/],
] as const) {
  test(`${name}: the order is refused, with its reason`, () => inWorld(async ({ cloud, refuse, vm, with: at }) => {
    refuse(status, code)
    const word = await cloud.place.ask('azure', 'off', at())
    assert.equal([word.state, vm.power], ['failed', 'running'])
    assert.match(word.reason, wanted)
  }))
}

test('an answer about another machine says nothing about this one', () => inWorld(async ({ cloud, vm, with: at }) => {
  Object.assign(vm, { power: 'stopped', told: `${group}/virtualMachines/node-2` })
  assert.is((await cloud.place.ask('azure', 'status', at())).state, 'unknown')
}))

test('an unknown machine is not found, which is not off', () => inWorld(async ({ cloud, with: at }) => {
  const word = await cloud.place.ask('azure', 'off', at({ plug: 'node-2' }))
  assert.is(word.state, 'failed')
  assert.match(word.reason, /^notfound/)
}))

test('a wrong secret is told as such, and nothing of it is shown', () => inWorld(async ({ cloud, orders, with: at }) => {
  const word = await cloud.place.ask('azure', 'off', at({ password: 'hush-guess' }))
  assert.match(word.reason, /^auth \(.*AADSTS7000215: Invalid client secret provided: \*\*\*\./)
  assert.not.match(JSON.stringify(word), /hush/)
  assert.equal(orders, [])
}))

test('an instance of a scale set by its providerID, with the pod\'s identity, by the real names through a proxy', () => inWorld(async ({ cloud, vm, with: at }) => {
  vm.id = scaleSet
  const file = join(cloud.place.folder, 'token')
  writeFileSync(file, `${hush[0]}\n`)
  const given = { plug: `azure://${scaleSet}`, ca: at()['ca'] ?? '', proxy: cloud.proxy }
  const word = await cloud.place.ask('azure', 'status', given, 20_000, { AZURE_FEDERATED_TOKEN_FILE: file, AZURE_CLIENT_ID: 'app', AZURE_TENANT_ID: 'tenant' })
  assert.is(word.state, 'on')
  assert.equal(cloud.calls, ['POST login.microsoftonline.com/tenant/oauth2/v2.0/token', `GET management.azure.com${scaleSet}`])
}))

test('with the identity of the machine it runs on', () => inWorld(async ({ cloud, with: at }) => {
  const asked: string[] = []
  const metadata = createServer((request, response) => {
    asked.push(`${request.headers['metadata'] === 'true'} ${new URL(request.url ?? '', 'http://x').searchParams.get('client_id')}`)
    response.end(JSON.stringify({ access_token: hush[1] }))
  })
  await new Promise<void>((resolve) => { metadata.listen(0, '127.0.0.1', resolve) })
  try {
    const environment = { AZURE_POD_IDENTITY_AUTHORITY_HOST: `http://127.0.0.1:${(metadata.address() as AddressInfo).port}` } // it listens on TCP
    assert.is((await cloud.place.ask('azure', 'status', at({ msi: '1' }), 20_000, environment)).state, 'on')
    assert.equal(asked, ['true app'])
  } finally {
    metadata.closeAllConnections()
    metadata.close()
  }
}))

test('a path for a name, a group that is none, an unknown cloud: refused before anybody is asked', () => inWorld(async ({ cloud, with: at }) => {
  for (const over of [{ plug: 'node-1/powerOff' }, { plug: '..' }, { plug: `${group}/disks/d` }, { plug: `${group.replace('/rg/', '/../')}/virtualMachines/node-1` }, { resourceGroup: '..' }, { subscriptionId: 'a/b' }, { cloud: 'moon' }, { tenantId: '' }]) {
    assert.match((await cloud.place.ask('azure', 'off', at(over))).reason, /^config/)
  }
  assert.equal(cloud.calls, [])
}))

test.run()
