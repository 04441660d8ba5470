// The program against a Compute Engine of our own, written from Google's reference.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { generateKeyPairSync, verify } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { hush, inCloud, sameDemands, type Call, type CloudWorld, type Reply } from './cloud.ts'

const test = suite('gce')
const names = ['oauth2.googleapis.com', 'compute.googleapis.com']
const pair = generateKeyPairSync('rsa', { modulusLength: 2_048 })
const other = generateKeyPairSync('rsa', { modulusLength: 2_048 })
const pem = (key: typeof pair.privateKey) => key.export({ type: 'pkcs8', format: 'pem' }).toString()

interface Gce extends CloudWorld {
  readonly instance: { name: string; status: string; coming: string[] }
  readonly queries: string[]
  /** How the operation of the next order ends. */
  ends(how: 'at once' | 'never' | { code: string; message: string }): void
  refuse(status: number, reason: string, message?: string): void
  readonly key: (over?: object) => string
}

const error = (status: number, reason: string, message: string): Reply => ({ status, body: { error: { code: status, message, errors: [{ reason, message, domain: 'global' }] } } })

async function inWorld(work: (world: Gce) => Promise<void>): Promise<void> {
  const instance = { name: 'node-1', status: 'RUNNING', coming: [] as string[] }
  const orders: string[] = []
  const queries: string[] = []
  let how: Parameters<Gce['ends']>[0] = 'at once'
  let refusal: Reply | undefined
  let ignoring = false
  let looks = 0
  const operation = (): Reply => {
    const base = { kind: 'compute#operation', name: 'operation-1-2-ab' }
    looks += 1
    if (typeof how === 'object') return { status: 200, body: { ...base, status: 'DONE', error: { errors: [how] } } }
    // The instance may read as ordered before the operation has ended.
    if (how === 'never') instance.status = 'TERMINATED'
    return { status: 200, body: { ...base, status: how === 'at once' && looks > 1 ? 'DONE' : 'RUNNING' } }
  }
  const told = () => {
    const next = instance.coming.shift()
    if (next !== undefined) instance.status = next
    return { kind: 'compute#instance', id: '1001', name: instance.name, status: instance.status, networkInterfaces: [{ networkIP: '10.0.0.7' }] }
  }
  const answer = (call: Call): Reply => {
    if (call.path === '/token') return token(call)
    if (call.headers['authorization'] !== `Bearer ${hush[1]}`) return error(401, 'authError', 'Invalid Credentials')
    const [, path] = /^\/compute\/v1\/projects\/p\/zones\/europe-west1-b(\/.*)$/.exec(call.path) ?? []
    if (path === '/instances') return { status: 200, body: { items: [told()] } }
    if (path === '/operations/operation-1-2-ab') return operation()
    const [, name, action] = /^\/instances\/([^/]+)(?:\/(\w+))?$/.exec(path ?? '') ?? []
    if (name !== 'node-1') return error(404, 'notFound', `The resource 'projects/p/zones/europe-west1-b/instances/${name}' was not found`)
    if (call.method === 'GET') return { status: 200, body: told() }
    if (refusal !== undefined) return refusal
    orders.push(action ?? '')
    queries.push(call.query.toString())
    looks = 0
    if (!ignoring && how === 'at once') instance.coming = action === 'stop' ? ['STOPPING', 'TERMINATED'] : ['STAGING', 'RUNNING']
    return operation()
  }
  await inCloud({ names, answer, complaint: (status) => error(status, status === 500 ? 'backendError' : 'rateLimitExceeded', 'x') }, (cloud) => {
    const key = (over = {}) => JSON.stringify({
      type: 'service_account', project_id: 'p', private_key_id: 'k', client_email: 'f@p.iam.gserviceaccount.com', private_key: pem(pair.privateKey), token_uri: `${cloud.url}/token`, ...over,
    })
    const login = { stonith_status_sleep: '0.1', plug: 'node-1', zone: 'europe-west1-b', serviceaccount: key(), endpoint: `${cloud.url}/compute/v1`, ca: cloud.ca }
    return work({
      secret: { key: 'serviceaccount', wrong: key({ private_key: pem(other.privateKey) }) }, forbid: () => { refusal = error(403, 'forbidden', 'Required permission') },
      cloud, agent: 'gce', orders, instance, queries, key, power: () => instance.status, ignore: () => { ignoring = true },
      with: (over = {}) => ({ ...login, ...over }), ends: (next) => { how = next },
      refuse: (status, reason, message = 'no') => { refusal = error(status, reason, message) },
    })
  })
}

/** As RFC 7523 has it: an assertion for us, of now, signed by the account's key. */
function token(call: Call): Reply {
  const form = new URLSearchParams(call.body)
  const [head = '', claims = '', seal = ''] = (form.get('assertion') ?? '').split('.')
  const said = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, unknown> // what the program itself wrote
  const good = form.get('grant_type') === 'urn:ietf:params:oauth:grant-type:jwt-bearer' && verify('sha256', Buffer.from(`${head}.${claims}`), pair.publicKey, Buffer.from(seal, 'base64url'))
    && said['iss'] === 'f@p.iam.gserviceaccount.com' && String(said['aud']).endsWith('/token') && Number(said['exp']) - Number(said['iat']) <= 3_600
  return good ? { status: 200, body: { access_token: hush[1], expires_in: 3_599, token_type: 'Bearer' } } : { status: 400, body: { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' } }
}

sameDemands(test, inWorld, { on: 'RUNNING', off: 'TERMINATED' })

test('a stop skips the graceful shutdown, and gives local SSDs up only where that is allowed', () => inWorld(async ({ cloud, instance, queries, with: at }) => {
  assert.is((await cloud.place.ask('gce', 'off', at())).state, 'off')
  instance.status = 'RUNNING'
  assert.is((await cloud.place.ask('gce', 'off', at({ discard_local_ssd: '1' }))).state, 'off')
  assert.equal(queries, ['noGracefulShutdown=true', 'noGracefulShutdown=true&discardLocalSsd=true'])
}))

for (const status of ['STOPPING', 'PENDING_STOP', 'SUSPENDED', 'SUSPENDING', 'REPAIRING', 'PROVISIONING', 'STAGING', 'DEPROVISIONING', 'STOPPED', 'DREAMING', '']) {
  test(`${status === '' ? 'no status' : status} is not off`, () => inWorld(async ({ cloud, instance, with: at }) => {
    instance.status = status
    assert.is((await cloud.place.ask('gce', 'status', at())).state, 'unknown')
  }))
}

test('while the operation runs it is not off, whatever the instance reads', () => inWorld(async ({ cloud, ends, instance, with: at }) => {
  ends('never')
  const word = await cloud.place.ask('gce', 'off', at({ power_timeout: '1' }))
  assert.equal([word.state, instance.status], ['failed', 'TERMINATED'])
  assert.match(word.reason, /^timeout \(the operation operation-1-2-ab is still RUNNING\)/)
}))

test('an operation that ends with an error is failed at once, with its reason', () => inWorld(async ({ cloud, ends, with: at }) => {
  ends({ code: 'PERMISSIONS_ERROR', message: 'no right to that' })
  const word = await cloud.place.ask('gce', 'off', at())
  assert.is(word.state, 'failed')
  assert.match(word.reason, /^privilege \(PERMISSIONS_ERROR: no right to that/)
}))

test('a suspended instance is stopped by order, and never resumed as if it were switched on', () => inWorld(async ({ cloud, instance, orders, with: at }) => {
  instance.status = 'SUSPENDED'
  assert.equal([(await cloud.place.ask('gce', 'on', at())).state, orders], ['failed', []])
  assert.equal([(await cloud.place.ask('gce', 'off', at())).state, orders], ['off', ['stop']])
}))

for (const [name, status, reason, message, wanted] of [
  ['low privilege', 403, 'forbidden', 'Required \'compute.instances.stop\' permission', /^privilege \(.*needs compute.instances.get/],
  ['local SSDs', 400, 'invalid', 'VMs with Local SSD need discard-local-ssd', /^config \(.*set discard_local_ssd=1/],
] as const) {
  test(`${name}: the order is refused, with its reason`, () => inWorld(async ({ cloud, refuse, instance, with: at }) => {
    refuse(status, reason, message)
    const word = await cloud.place.ask('gce', 'off', at())
    assert.equal([word.state, instance.status], ['failed', 'RUNNING'])
    assert.match(word.reason, wanted)
  }))
}

test('an answer about another instance says nothing about this one', () => inWorld(async ({ cloud, instance, with: at }) => {
  Object.assign(instance, { name: 'node-2', status: 'TERMINATED' })
  assert.is((await cloud.place.ask('gce', 'status', at())).state, 'unknown')
}))

test('an unknown instance is not found, which is not off', () => inWorld(async ({ cloud, with: at }) => {
  const word = await cloud.place.ask('gce', 'off', at({ plug: 'node-2' }))
  assert.is(word.state, 'failed')
  assert.match(word.reason, /^notfound/)
}))

test('a wrong key, no key, half a key: told as such, and nothing of it is shown', () => inWorld(async ({ cloud, orders, key, with: at }) => {
  for (const [serviceaccount, reason] of [
    [key({ private_key: pem(other.privateKey) }), /^auth \(.*Invalid JWT Signature/], [key({ private_key: 'hush-none' }), /^config/], [key({ type: 'authorized_user' }), /^config/],
    [key().slice(0, -9), /^config \(serviceaccount= is no JSON/], ['/nowhere/key.json', /^config \(.*cannot be read \(ENOENT\)/],
  ] as const) {
    const word = await cloud.place.ask('gce', 'off', at({ serviceaccount }))
    assert.match(word.reason, reason)
    assert.not.match(JSON.stringify(word), /hush|PRIVATE KEY/)
  }
  assert.equal(orders, [])
}))

test('a key in a file, an instance by its providerID, the real names through a proxy', () => inWorld(async ({ cloud, key, with: at }) => {
  const file = join(cloud.place.folder, 'key.json')
  writeFileSync(file, key({ token_uri: 'https://oauth2.googleapis.com/token' }))
  const { zone: _, endpoint: __, serviceaccount: ___, ...rest } = at({ plug: 'gce://p/europe-west1-b/node-1', proxy: cloud.proxy })
  const word = await cloud.place.ask('gce', 'status', rest, 20_000, { GOOGLE_APPLICATION_CREDENTIALS: file })
  assert.is(word.state, 'on')
  assert.equal(cloud.calls, ['POST oauth2.googleapis.com/token', 'GET compute.googleapis.com/compute/v1/projects/p/zones/europe-west1-b/instances/node-1'])
}))

test('without a key the metadata service is asked, which tells the project too', () => inWorld(async ({ cloud, with: at }) => {
  const asked: string[] = []
  const metadata = createServer((request, response) => {
    asked.push(`${request.headers['metadata-flavor'] ?? ''} ${request.url ?? ''}`)
    response.end(request.url?.endsWith('/token') === true ? JSON.stringify({ access_token: hush[1] }) : 'p')
  })
  await new Promise<void>((resolve) => { metadata.listen(0, '127.0.0.1', resolve) })
  try {
    const { serviceaccount: _, ...rest } = at()
    const environment = { GCE_METADATA_HOST: `127.0.0.1:${(metadata.address() as AddressInfo).port}` } // it listens on TCP
    assert.is((await cloud.place.ask('gce', 'status', rest, 20_000, environment)).state, 'on')
    assert.equal(asked, ['Google /computeMetadata/v1/instance/service-accounts/default/token', 'Google /computeMetadata/v1/project/project-id'])
  } finally {
    metadata.closeAllConnections()
    metadata.close()
  }
}))

test('no zone, no name, a path for a name: refused before anybody is asked', () => inWorld(async ({ cloud, with: at }) => {
  for (const over of [{ zone: '' }, { zone: '../..' }, { plug: 'node-1/stop' }, { plug: '..' }, { plug: 'gce://p/zone' }, { project: 'p/zones/x' }]) {
    assert.match((await cloud.place.ask('gce', 'off', at(over))).reason, /^config/)
  }
  assert.equal(cloud.calls.filter((call) => !call.includes('/token')), [])
}))

test.run()
