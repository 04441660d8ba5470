// The program against an EC2 of our own, written from AWS's reference and judged in the device tier by moto.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createPlainServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import { signed } from '../../fence-agents/aws/signature.ts'
import { parseXml, textAt } from '../../fence-agents/aws/xml.ts'
import { hush, inCloud, sameDemands, type Call, type CloudWorld, type Reply } from './cloud.ts'

const test = suite('aws')
const id = 'i-0123456789abcdef0'
const names = ['ec2.eu-west-1.amazonaws.com', 'sts.eu-west-1.amazonaws.com']

interface Instance {
  state: string
  /** The states that it passes through after an order, one each time it is asked for. */
  coming: string[]
  reason: string
  hibernates?: boolean
  lifecycle?: string
  /** Of which instances the answer tells, if not of the one that was asked for. */
  told?: string[]
}

interface Ec2 extends CloudWorld {
  readonly instance: Instance
  readonly asked: URLSearchParams[]
  /** Refuses every call of this name, with the code. */
  refuse(action: string, code: string, message?: string, status?: number): void
}

const error = (status: number, code: string, message: string): Reply => ({
  status, body: `<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error><Code>${code}</Code><Message>${message}</Message></Error></Errors><RequestID>r</RequestID></Response>`,
})

function described(told: Instance, which: string): string {
  return `<item><instanceId>${which}</instanceId><instanceState><code>16</code><name>${told.state}</name></instanceState>
    <privateIpAddress>10.0.0.5</privateIpAddress><networkInterfaceSet><item><privateIpAddress>10.0.0.5</privateIpAddress></item><item><privateIpAddress>10.0.1.5</privateIpAddress></item></networkInterfaceSet>
    ${told.reason === '' ? '' : `<stateReason><code>${told.reason}</code><message>m</message></stateReason>`}
    ${told.lifecycle === undefined ? '' : `<instanceLifecycle>${told.lifecycle}</instanceLifecycle>`}
    <hibernationOptions><configured>${told.hibernates === true}</configured></hibernationOptions>
    <tagSet><item><key>Name</key><value>node &amp; one</value></item></tagSet></item>`
}

async function inWorld(work: (world: Ec2) => Promise<void>): Promise<void> {
  const instance: Instance = { state: 'running', coming: [], reason: '' }
  const orders: string[] = []
  const asked: URLSearchParams[] = []
  const refused = new Map<string, Reply>()
  let ignoring = false
  const order = (action: string, coming: string[]): Reply => {
    orders.push(action)
    if (!ignoring) instance.coming = coming
    return { status: 200, body: `<${action}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId></${action}Response>` }
  }
  const answer = (call: Call): Reply => {
    const parameters = new URLSearchParams(call.body)
    const action = parameters.get('Action') ?? ''
    asked.push(parameters)
    if (call.host.startsWith('sts.')) return sts(parameters)
    const proof = authenticated(call)
    if (proof !== undefined) return proof
    const refusal = refused.get(action)
    if (refusal !== undefined) return refusal
    const wanted = parameters.get('InstanceId.1')
    if (wanted !== null && wanted !== id) return error(400, 'InvalidInstanceID.NotFound', `The instance ID '${wanted}' does not exist`)
    if (action === 'StopInstances') return order(action, instance.state === 'running' ? ['stopping', 'stopped'] : [])
    if (action === 'TerminateInstances') return order(action, instance.state === 'terminated' ? [] : ['shutting-down', 'terminated'])
    if (action === 'StartInstances') return order(action, instance.state === 'stopped' ? ['pending', 'running'] : [])
    const next = instance.coming.shift()
    if (next !== undefined) Object.assign(instance, { state: next, ...(next === 'stopped' ? { reason: 'Client.UserInitiatedShutdown' } : {}) })
    return { status: 200, body: `<?xml version="1.0" encoding="UTF-8"?><DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><reservationSet><item><instancesSet>${(instance.told ?? [id]).map((which) => described(instance, which)).join('')}</instancesSet></item></reservationSet></DescribeInstancesResponse>` }
  }
  await inCloud({ names, answer, complaint: (status) => status === 500 ? error(500, 'InternalError', 'x') : error(503, 'RequestLimitExceeded', 'Request limit exceeded.') }, (cloud) => {
    const login = { stonith_status_sleep: '0.1', plug: id, region: 'eu-west-1', access_key: 'AKIDEXAMPLE', secret_key: hush[0] ?? '', endpoint: cloud.url, ca: cloud.ca }
    return work({
      secret: { key: 'secret_key', wrong: 'hush-guess' }, forbid: () => { refused.set('StopInstances', error(403, 'UnauthorizedOperation', 'You are not authorized to perform this operation.')) },
      cloud, agent: 'aws', orders, instance, asked, power: () => instance.state, ignore: () => { ignoring = true },
      with: (over = {}) => ({ ...login, ...over }),
      refuse: (action, code, message = 'no', status = 400) => { refused.set(action, error(status, code, message)) },
    })
  })
}

/** As AWS does it: the same signature is made from what came and from the secret that is known here. */
function authenticated(call: Call): Reply | undefined {
  const { authorization = '', 'content-type': type = '', 'x-amz-date': date = '', 'x-amz-security-token': session } = call.headers
  const [, key, region, list = ''] = /Credential=([^/]+)\/\d+\/([^/]+)\/ec2\/aws4_request, SignedHeaders=([^,]+)/.exec(authorization) ?? []
  const at = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)/, '$1-$2-$3T$4:$5:'))
  const headers = signed(
    { method: 'POST', url: `https://${call.headers['host'] ?? ''}${call.path}`, headers: { 'content-type': type }, body: call.body },
    { accessKey: 'AKIDEXAMPLE', secretKey: hush[0] ?? '', ...(session === undefined ? {} : { sessionToken: session }) }, { region: 'eu-west-1', service: 'ec2', at },
  )
  if (key !== 'AKIDEXAMPLE' || region !== 'eu-west-1') return error(401, 'AuthFailure', 'AWS was not able to validate the provided access credentials')
  if (!list.split(';').includes('host') || headers['authorization'] !== authorization) {
    return error(403, 'SignatureDoesNotMatch', `The request signature we calculated does not match.\n\nThe Canonical String for this request should have been\n${'x'.repeat(47)}:${session ?? ''}`)
  }
  return undefined
}

function sts(parameters: URLSearchParams): Reply {
  if (parameters.get('WebIdentityToken') !== hush[1]) return { status: 403, body: '<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized</Message></Error></ErrorResponse>' }
  const given = `<Credentials><AccessKeyId>AKIDEXAMPLE</AccessKeyId><SecretAccessKey>${hush[0]}</SecretAccessKey><SessionToken>${hush[1]}</SessionToken></Credentials>`
  return { status: 200, body: `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult>${given}</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>` }
}

// The vectors that AWS publishes: its Signature Version 4 test suite, and the worked example of its manual.
const vectorKeys = { accessKey: 'AKIDEXAMPLE', secretKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
for (const [name, method, url, headers, body, service, wanted] of [
  ['get-vanilla', 'GET', 'https://example.amazonaws.com/', {}, '', 'service', '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
  ['post-vanilla', 'POST', 'https://example.amazonaws.com/', {}, '', 'service', '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b'],
  ['post-x-www-form-urlencoded', 'POST', 'https://example.amazonaws.com/', { 'Content-Type': 'application/x-www-form-urlencoded' }, 'Param1=value1', 'service', 'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a'],
  ['the manual\'s ListUsers', 'GET', 'https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08', { 'Content-Type': 'application/x-www-form-urlencoded; charset=utf-8' }, '', 'iam', '5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7'],
] as const) {
  test(`signs as AWS does: ${name}`, () => {
    const { authorization } = signed({ method, url, headers, body }, vectorKeys, { region: 'us-east-1', service, at: Date.UTC(2015, 7, 30, 12, 36) })
    assert.match(authorization ?? '', new RegExp(`Signature=${wanted}$`))
  })
}

sameDemands(test, inWorld, { on: 'running', off: 'stopped' })

test('off is forced and skips the system\'s own shutdown', () => inWorld(async ({ cloud, asked, with: at }) => {
  assert.is((await cloud.place.ask('aws', 'off', at())).state, 'off')
  const stop = asked.find((parameters) => parameters.get('Action') === 'StopInstances')
  assert.equal([stop?.get('Force'), stop?.get('SkipOsShutdown'), stop?.get('Hibernate')], ['true', 'true', null])
}))

test('an instance that stays stopping is not off, whoever stopped it', () => inWorld(async ({ cloud, instance, orders, with: at }) => {
  instance.state = 'stopping'
  assert.is((await cloud.place.ask('aws', 'status', at())).state, 'unknown')
  const word = await cloud.place.ask('aws', 'off', at({ power_timeout: '1' }))
  assert.equal([word.state, orders], ['failed', ['StopInstances']])
  assert.match(word.reason, /^timeout \(ordered off, and still: i-\w+ is stopping\)/)
}))

for (const [name, told, state] of [
  ['pending', { state: 'pending' }, 'unknown'], ['shutting-down', { state: 'shutting-down' }, 'unknown'], ['a state nobody knows', { state: 'dreaming' }, 'unknown'], ['no state', { state: '' }, 'unknown'],
  ['terminated', { state: 'terminated' }, 'off'], ['stopped by order', { state: 'stopped', reason: 'Client.UserInitiatedShutdown' }, 'off'],
  ['stopped from inside', { state: 'stopped', reason: 'Client.InstanceInitiatedShutdown' }, 'off'],
  ['hibernated', { state: 'stopped', reason: 'Client.UserInitiatedHibernate' }, 'unknown'],
  ['stopped from inside, where it could have hibernated', { state: 'stopped', reason: 'Client.InstanceInitiatedShutdown', hibernates: true }, 'unknown'],
  ['stopped by order, where it could have hibernated', { state: 'stopped', reason: 'Client.UserInitiatedShutdown', hibernates: true }, 'off'],
  ['stopped by the spot market', { state: 'stopped', reason: 'Server.SpotInstanceShutdown', lifecycle: 'spot' }, 'unknown'],
] as const) {
  test(`${name} is ${state}`, () => inWorld(async ({ cloud, instance, with: at }) => {
    Object.assign(instance, told)
    assert.is((await cloud.place.ask('aws', 'status', at())).state, state)
  }))
}

test('a hibernated instance is neither called off nor resumed as if it were switched on, and the way on is told', () => inWorld(async ({ cloud, instance, orders, with: at }) => {
  Object.assign(instance, { state: 'stopped', reason: 'Client.UserInitiatedHibernate' })
  for (const action of ['off', 'on'] as const) {
    const word = await cloud.place.ask('aws', action, at())
    assert.equal([word.state, orders], ['failed', []])
    assert.match(word.reason, /hibernated: start or terminate it/)
  }
}))

test('a terminated instance is off without an order, and nothing switches it on', () => inWorld(async ({ cloud, instance, orders, with: at }) => {
  instance.state = 'terminated'
  assert.is((await cloud.place.ask('aws', 'off', at())).state, 'off')
  assert.equal([(await cloud.place.ask('aws', 'on', at())).state, orders], ['failed', []])
}))

for (const state of ['running', 'stopped', 'stopping', 'pending']) {
  test(`terminate=1: ${state}, it is terminated, without being asked to shut down, and off when EC2 says so`, () => inWorld(async ({ cloud, instance, asked, orders, with: at }) => {
    instance.state = state
    const ends = at({ terminate: '1' })
    const before = await cloud.place.ask('aws', 'status', ends)
    assert.equal([before.state, before.addresses], [state === 'running' ? 'on' : 'unknown', ['10.0.0.5', '10.0.1.5']], 'by them the core knows that EC2 has answered')
    assert.equal([(await cloud.place.ask('aws', 'off', ends)).state, instance.state, orders], ['off', 'terminated', ['TerminateInstances']])
    const order = asked.find((parameters) => parameters.get('Action') === 'TerminateInstances')
    assert.equal(['InstanceId.1', 'Force', 'SkipOsShutdown'].map((key) => order?.get(key)), [id, 'true', 'true'])
    assert.is((await cloud.place.ask('aws', 'status', ends)).state, 'off')
    assert.equal([(await cloud.place.ask('aws', 'off', ends)).state, orders.length], ['off', 1], 'and no second time')
  }))
}

test('terminate=1: shutting down is waited for and not ordered again, what hibernated ends too, and nothing is switched on', () => inWorld(async ({ cloud, instance, orders, with: at }) => {
  const ends = at({ terminate: 'yes', power_timeout: '1' })
  instance.state = 'shutting-down'
  assert.equal([(await cloud.place.ask('aws', 'off', ends)).state, orders], ['failed', []])
  const word = await cloud.place.ask('aws', 'on', ends)
  assert.equal([word.state, orders], ['failed', []])
  assert.match(word.reason, /^config \(terminate= ends an instance for good/)
  Object.assign(instance, { state: 'stopped', reason: 'Client.UserInitiatedHibernate' })
  assert.equal([(await cloud.place.ask('aws', 'off', ends)).state, orders], ['off', ['TerminateInstances']])
}))

test('terminate=1: one that is protected, not permitted or not found is not off', () => inWorld(async ({ cloud, refuse, with: at }) => {
  assert.match((await cloud.place.ask('aws', 'off', at({ terminate: '1', plug: 'i-00000000000000000' }))).reason, /^notfound/)
  for (const [code, reason] of [['OperationNotPermitted', /^privilege \(.*or terminated/], ['UnauthorizedOperation', /^privilege \(.*ec2:TerminateInstances/]] as const) {
    refuse('TerminateInstances', code, 'no', 403)
    const word = await cloud.place.ask('aws', 'off', at({ terminate: '1' }))
    assert.is(word.state, 'failed')
    assert.match(word.reason, reason)
  }
}))

test('without terminate= nothing is ever terminated', () => inWorld(async ({ cloud, instance, orders, with: at }) => {
  for (const over of [{}, { terminate: '0' }, { terminate: 'no' }]) {
    instance.state = 'running'
    assert.is((await cloud.place.ask('aws', 'off', at(over))).state, 'off')
  }
  assert.equal(orders, ['StopInstances', 'StopInstances', 'StopInstances'])
}))

for (const [name, code, reason] of [
  ['low privilege', 'UnauthorizedOperation', /^privilege \(.*needs ec2:DescribeInstances/], ['a protected instance', 'OperationNotPermitted', /^privilege \(.*protected/],
  ['no EBS volume', 'UnsupportedOperation', /^config \(.*EBS/], ['a wrong clock', 'RequestExpired', /^auth \(.*clock/],
] as const) {
  test(`${name}: the order is refused, with its reason`, () => inWorld(async ({ cloud, refuse, instance, with: at }) => {
    refuse('StopInstances', code, 'no', 403)
    const word = await cloud.place.ask('aws', 'off', at())
    assert.equal([word.state, instance.state], ['failed', 'running'])
    assert.match(word.reason, reason)
  }))
}

test('an answer about another instance, or about none, says nothing about this one', () => inWorld(async ({ cloud, instance, with: at }) => {
  instance.state = 'stopped'
  for (const told of [['i-00000000000000001'], [], [id, id]]) {
    instance.told = told
    assert.is((await cloud.place.ask('aws', 'status', at())).state, 'unknown', told.join())
  }
}))

test('an unknown instance is not found, which is not off', () => inWorld(async ({ cloud, with: at }) => {
  for (const action of ['status', 'off'] as const) {
    const word = await cloud.place.ask('aws', action, at({ plug: 'i-00000000000000000' }))
    assert.equal(word.state, action === 'off' ? 'failed' : 'unknown')
    assert.match(word.reason, /^notfound/)
  }
}))

test('a wrong key is told as such; what AWS quotes of the request stays unsaid', () => inWorld(async ({ cloud, orders, with: at }) => {
  for (const over of [{ access_key: 'AKIDOTHER' }, { secret_key: 'hush-guess', session_token: hush[1] ?? '' }]) {
    const word = await cloud.place.ask('aws', 'off', at(over))
    assert.match(word.reason, /^auth/)
    assert.not.match(JSON.stringify(word), /hush/)
  }
  assert.equal(orders, [])
}))

test('a name, an address, another kind of thing for a plug is refused before anybody is asked', () => inWorld(async ({ cloud, with: at }) => {
  for (const plug of ['node-1', 'vol-0123456789abcdef0', 'aws:///eu-west-1a/i-0123456789abcdef0/x', 'i-0123456789abcdef0&InstanceId.2=i-1']) {
    assert.match((await cloud.place.ask('aws', 'off', at({ plug }))).reason, /^config/)
  }
  assert.equal(cloud.calls, [])
}))

test('a node\'s providerID names instance and region; the real name is reached through the proxy of the environment', () => inWorld(async ({ cloud, with: at }) => {
  const { region: _, endpoint: __, ...rest } = at({ plug: `aws:///eu-west-1a/${id}` })
  const word = await cloud.place.ask('aws', 'status', rest, 20_000, { HTTPS_PROXY: `http://user:hush-proxy@${cloud.proxy}` })
  assert.equal([word.state, cloud.calls], ['on', ['POST ec2.eu-west-1.amazonaws.com/']])
  assert.equal(cloud.proxied, [`ec2.eu-west-1.amazonaws.com:443 Basic ${Buffer.from('user:hush-proxy').toString('base64')}`])
}))

test('a host that NO_PROXY names is not asked for at the proxy', () => inWorld(async ({ cloud, with: at }) => {
  await cloud.place.ask('aws', 'status', at({ login_timeout: '1', shell_timeout: '1', endpoint: 'https://ec2.invalid/' }), 5_000, { HTTPS_PROXY: `http://${cloud.proxy}`, NO_PROXY: 'example.org,.invalid' })
  // An address of the documentation: nobody has it, and no network leads there.
  const there = at({ login_timeout: '1', shell_timeout: '1', endpoint: 'https://[2001:db8::5]/' })
  for (const NO_PROXY of ['2001:db8::5', '[2001:db8::5]', '[2001:db8::5]:443', '2001:db8::/32']) await cloud.place.ask('aws', 'status', there, 5_000, { HTTPS_PROXY: `http://${cloud.proxy}`, NO_PROXY })
  assert.equal(cloud.proxied, [])
}))

test('with a web identity: the role is taken first, and its token goes with each request', () => inWorld(async ({ cloud, asked, with: at }) => {
  const file = join(cloud.place.folder, 'token')
  writeFileSync(file, `${hush[1]}\n`)
  const { access_key: _, secret_key: __, endpoint: ___, ...rest } = at()
  const environment = { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: 'arn:aws:iam::1:role/fence', HTTPS_PROXY: `http://${cloud.proxy}` }
  assert.is((await cloud.place.ask('aws', 'off', rest, 20_000, environment)).state, 'off')
  assert.is(asked[0]?.get('RoleArn'), 'arn:aws:iam::1:role/fence')
  writeFileSync(file, 'hush-other')
  const word = await cloud.place.ask('aws', 'off', rest, 20_000, environment)
  assert.match(word.reason, /^auth \(.*AccessDenied/)
  assert.not.match(JSON.stringify(word), /hush/)
}))

test('without any credentials the operator is told where they come from', () => inWorld(async ({ cloud, orders, with: at }) => {
  const { access_key: _, secret_key: __, ...rest } = at()
  const word = await cloud.place.ask('aws', 'off', rest, 20_000, { AWS_EC2_METADATA_DISABLED: 'true' })
  assert.match(word.reason, /^auth \(no credentials: give access_key= and secret_key=/)
  assert.equal([orders, cloud.calls], [[], []])
}))

/** What AWS puts beside a workload: roles of the instance, credentials of the pod. */
async function besideWorkload(work: (base: string, asked: string[]) => Promise<void>): Promise<void> {
  const asked: string[] = []
  const keys = JSON.stringify({ Code: 'Success', AccessKeyId: 'AKIDEXAMPLE', SecretAccessKey: hush[0], Token: hush[1] })
  const answers: Readonly<Record<string, string>> = {
    'PUT /latest/api/token': 'hush-metadata', 'GET /latest/meta-data/placement/region': 'eu-west-1', 'GET /latest/meta-data/iam/security-credentials/': 'fence', 'GET /latest/meta-data/iam/security-credentials/fence': keys,
    'GET /v1/credentials': keys,
  }
  const server = createServer((request, response) => {
    const key = `${request.method ?? ''} ${request.url ?? ''}`
    asked.push(key)
    const allowed = key.startsWith('PUT') || request.headers['x-aws-ec2-metadata-token'] === 'hush-metadata' || request.headers.authorization === hush[1]
    response.writeHead(allowed && answers[key] !== undefined ? 200 : 401).end(allowed ? answers[key] : '')
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  try {
    await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked) // it listens on TCP
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

test('with the role of the instance, which also tells the region', () => inWorld(({ cloud, with: at }) => besideWorkload(async (base, asked) => {
  const { access_key: _, secret_key: __, region: ___, ...rest } = at()
  assert.is((await cloud.place.ask('aws', 'status', rest, 20_000, { AWS_EC2_METADATA_SERVICE_ENDPOINT: base })).state, 'on')
  assert.ok(asked.includes('GET /latest/meta-data/placement/region') && asked.includes('GET /latest/meta-data/iam/security-credentials/fence'), asked.join())
})))

test('with the identity of the pod', () => inWorld(({ cloud, with: at }) => besideWorkload(async (base, asked) => {
  const { access_key: _, secret_key: __, ...rest } = at()
  const file = join(cloud.place.folder, 'token')
  writeFileSync(file, hush[1] ?? '')
  const environment = { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${base}/v1/credentials`, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file }
  assert.is((await cloud.place.ask('aws', 'status', rest, 20_000, environment)).state, 'on')
  assert.equal(asked, ['GET /v1/credentials'])
})))

/** A server of plain TCP that says `words` to whoever comes, and nothing after that. */
async function saying(words: string, work: (port: number) => Promise<void>): Promise<void> {
  const sockets = new Set<Socket>()
  const server = createPlainServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).once('data', () => { socket.write(words) }) // whoever hung up: its affair
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  try {
    await work((server.address() as AddressInfo).port) // it listens on TCP
  } finally {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
}

for (const [name, words, over, reason] of [
  ['a server that never ends the handshake', '', (port: number) => ({ endpoint: `https://127.0.0.1:${port}/` }), /^timeout \(no connection to 127.0.0.1 within 500 ms/],
  ['a server that speaks something else', 'SSH-2.0-x\r\n', (port: number) => ({ endpoint: `https://127.0.0.1:${port}/` }), /^unreachable/],
  ['a mute proxy', '', (port: number) => ({ endpoint: '', proxy: `127.0.0.1:${port}` }), /^timeout \(no connection to ec2.eu-west-1.amazonaws.com through 127.0.0.1:\d+ within 500 ms/],
  ['a proxy that wants a login', 'HTTP/1.1 407 no\r\n\r\n', (port: number) => ({ endpoint: '', proxy: `127.0.0.1:${port}` }), /^auth \(the proxy 127.0.0.1:\d+ answers 407/],
  ['a proxy that cannot reach it', 'HTTP/1.1 502 no\r\n\r\n', (port: number) => ({ endpoint: '', proxy: `127.0.0.1:${port}` }), /^unreachable \(the proxy .* answers 502/],
  ['a proxy of another kind', '', () => ({ endpoint: '', proxy: 'socks5://127.0.0.1:1' }), /^config \(the proxy is not of the form/],
] as const) {
  test(`${name}: unknown, with its reason, in time`, () => inWorld(({ cloud, with: at }) => saying(words, async (port) => {
    const word = await cloud.place.ask('aws', 'status', at({ ...over(port), login_timeout: '0.5' }), 15_000)
    assert.equal([word.state, word.late], ['unknown', false])
    assert.match(word.reason, reason)
  })))
}

test('validate-all refuses what no instance is called, and asks nobody', () => inWorld(async ({ cloud, with: at }) => {
  const lines = (plug: string) => Object.entries(at({ plug })).map(([key, value]) => `${key}=${value}\n`).join('')
  assert.equal([(await cloud.place.raw('aws', `action=validate-all\n${lines(id)}`)).exitCode, (await cloud.place.raw('aws', `action=validate-all\n${lines('node-1')}`)).exitCode], [0, 1])
  assert.equal(cloud.calls, [])
}))

test('a secret goes over plain HTTP to nobody but this machine', () => inWorld(async ({ cloud, with: at }) => {
  const word = await cloud.place.ask('aws', 'status', at({ endpoint: 'http://ec2.invalid/' }))
  assert.match(word.reason, /^config \(ec2.invalid: a password is not sent in plain HTTP\)/)
}))

for (const [name, text, wanted] of [
  ['text and entities', '<?xml version="1.0"?><a x="1"><b>1 &lt; 2 &#65;&#x42;</b><c/></a>', '1 < 2 AB'], ['an end without a beginning', '<a><b>x</b></c></a>', undefined], ['a document cut short', '<a><b>stopped</b>', undefined],
  ['an unknown entity', '<a><b>&stop;</b></a>', undefined], ['two roots', '<a><b>x</b></a><a/>', undefined], ['a document type', '<!DOCTYPE a [<!ENTITY b "x">]><a><b>x</b></a>', undefined], ['nothing', '', undefined],
  ['the same twice', '<a><b>running</b><b>stopped</b></a>', undefined],
] as const) {
  test(`of XML: ${name}`, () => {
    const document = parseXml(text)
    assert.is(document === undefined ? undefined : textAt(document, 'b'), wanted)
  })
}

test.run()
