// The program against the simulated controller, and the controller against a client that is none of ours.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { request } from 'node:https'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Ms } from '../../core/model.ts'
import { machineClock } from '../../edge/clock.ts'
import { startRedfish, type Redfish, type RedfishPower } from '../../sim/redfish.ts'
import { inPlace, type AgentPlace } from './place.ts'

const test = suite('redfish')
const uuid = (id: string) => `aaaaaaaa-0000-0000-0000-00000000000${id}`

interface World {
  readonly redfish: Redfish
  readonly power: Map<string, RedfishPower>
  readonly orders: string[]
  readonly place: AgentPlace
  readonly with: (over?: Readonly<Record<string, string>>) => Record<string, string>
}

/** Two machines behind one controller. `takes` is how long an order needs; for ever means it stays PoweringOff. */
async function inWorld(work: (world: World) => Promise<void>, takes: Ms | 'for ever' = 0): Promise<void> {
  const power = new Map<string, RedfishPower>([['1', 'On'], ['2', 'On']])
  const orders: string[] = []
  const redfish = await startRedfish({
    clock: machineClock, username: 'admin', password: 'hush"hush',
    systems: () => [...power.keys()].map((id) => ({ id, name: `node-${id}`, uuid: uuid(id) })),
    power: (id) => power.get(id) ?? 'Off',
    order(id, order) {
      orders.push(`${id} ${order}`)
      power.set(id, order === 'On' ? 'PoweringOn' : 'PoweringOff')
      const done = () => { power.set(id, order === 'On' ? 'On' : 'Off') }
      if (takes === 0) done()
      else if (takes !== 'for ever') machineClock.wait(takes).then(done)
    },
  })
  const login = { ip: redfish.host, ipport: String(redfish.port), username: 'admin', password: 'hush"hush', plug: '1', certificate_sha256: redfish.fingerprint }
  try {
    await inPlace((place) => work({ redfish, power, orders, place, with: (over = {}) => ({ ...login, ...over }) }))
  } finally {
    await redfish.close()
  }
}

test('status, off, status, on: ordered once, verified, with the machine\'s UUID', () => inWorld(async ({ place, orders, power, with: at }) => {
  const first = await place.ask('redfish', 'status', at())
  assert.equal(first, { state: 'on', reason: '', evidence: 'exit 0: PowerState On', machine: uuid('1'), late: false })
  assert.is((await place.started.ask('redfish', 'off', at())).state, 'off')
  assert.equal([power.get('1'), power.get('2')], ['Off', 'On'])
  assert.is((await place.ask('redfish', 'off', at())).state, 'off')
  assert.is((await place.ask('redfish', 'status', at())).state, 'off')
  assert.is((await place.ask('redfish', 'on', at())).state, 'on')
  assert.equal(orders, ['1 ForceOff', '1 On'])
}))

test('off waits until the controller reads Off', () => inWorld(async ({ place, power, with: at }) => {
  assert.is((await place.ask('redfish', 'off', at())).state, 'off')
  assert.is(power.get('1'), 'Off')
}, 700))

test('PoweringOff is not off', () => inWorld(async ({ place, with: at }) => {
  const word = await place.ask('redfish', 'off', at({ power_timeout: '1' }))
  assert.is(word.state, 'failed')
  assert.match(word.reason, /^timeout \(ordered off, and still: PowerState PoweringOff\)/)
  assert.is((await place.ask('redfish', 'status', at())).state, 'unknown')
}, 'for ever'))

test('an order that is taken and ignored is not off', () => inWorld(async ({ place, redfish, with: at }) => {
  redfish.fault('1', 'ignore')
  const word = await place.ask('redfish', 'off', at({ power_timeout: '1' }))
  assert.equal([word.state, word.machine], ['failed', uuid('1')])
}))

test('an order answered with 500 is failed, and may have landed all the same', () => inWorld(async ({ place, redfish, power, with: at }) => {
  // The status before the order breaks too, so the fault is set once that was read: here the order itself is the only call.
  redfish.fault('1', 'error')
  const word = await place.ask('redfish', 'off', at())
  assert.is(word.state, 'failed')
  const answer = await called(redfish, 'POST', '/redfish/v1/Systems/1/Actions/ComputerSystem.Reset', { ResetType: 'ForceOff' })
  assert.equal([answer.status, power.get('1')], [500, 'Off'])
}))

for (const [name, fault, reason] of [
  ['mute', 'mute', /^timeout/], ['refusing', 'refuse', /^unreachable/], ['broken', 'error', /^device \(.*HTTP 500/], ['of another password', 'wrong-password', /^auth \(.*HTTP 401/],
] as const) {
  test(`a controller that is ${name} is unknown, with its reason, in time`, () => inWorld(async ({ place, redfish, orders, with: at }) => {
    redfish.fault('all', fault)
    for (const action of ['status', 'off'] as const) {
      const word = await place.ask('redfish', action, at({ shell_timeout: '0.5', login_timeout: '0.5' }))
      assert.equal([word.state, word.late], [action === 'off' ? 'failed' : 'unknown', false])
      assert.match(word.reason, reason)
      assert.not.match(JSON.stringify(word), /hush/)
    }
    assert.equal(orders, [])
  }))
}

test('a slow controller is waited for', () => inWorld(async ({ place, redfish, with: at }) => {
  redfish.fault('1', { slow: 700 })
  assert.is((await place.ask('redfish', 'status', at())).state, 'on')
}))

test('a controller that is not there is unreachable', () => inWorld(async ({ place, redfish, with: at }) => {
  await redfish.close()
  assert.match((await place.ask('redfish', 'status', at())).reason, /^unreachable/)
}))

for (const [name, over, reason] of [
  ['a certificate nobody vouches for', { certificate_sha256: '' }, /^config \(.*is not trusted/],
  ['a certificate that is not the pinned one', { certificate_sha256: 'ab'.repeat(32) }, /^config \(.*not the pinned one/],
  ['a wrong password', { password: 'guess' }, /^auth/],
  ['an unknown system', { plug: '9' }, /^notfound/],
  ['an unknown system by its path', { plug: '/redfish/v1/Systems/9' }, /^notfound/],
  ['no system', { plug: '' }, /^config \(plug= is missing/],
  ['a collection', { plug: '/redfish/v1/Systems' }, /^config \(.*is a collection/],
  ['a list of systems', { plug: '1,2' }, /^config/],
] as const) {
  test(`${name}: nothing is ordered, and the reason is told`, () => inWorld(async ({ place, orders, with: at }) => {
    const { certificate_sha256: pin, ...rest } = at(over)
    const word = await place.ask('redfish', 'off', pin === '' || pin === undefined ? rest : { ...rest, certificate_sha256: pin })
    assert.is(word.state, 'failed')
    assert.match(word.reason, reason)
    assert.equal(orders, [])
  }))
}

test('the password goes to nobody whose certificate was not judged', () => inWorld(async ({ place, redfish, with: at }) => {
  const { certificate_sha256: _, ...untrusting } = at()
  redfish.fault('all', 'wrong-password')
  const word = await place.ask('redfish', 'status', untrusting)
  assert.match(word.reason, /is not trusted/, 'a 401 would mean that the password was sent')
}))

test('any certificate is trusted where the operator says so, and a pin may be written with colons', () => inWorld(async ({ place, redfish, with: at }) => {
  const { certificate_sha256: _, ...rest } = at()
  assert.is((await place.ask('redfish', 'status', { ...rest, ssl_insecure: '1' })).state, 'on')
  const written = redfish.fingerprint.toUpperCase().match(/../g)?.join(':') ?? ''
  assert.is((await place.ask('redfish', 'status', at({ certificate_sha256: written }))).state, 'on')
}))

test('with a session, by a whole path, by the ClusterLabs name of the path: the same', () => inWorld(async ({ place, with: at }) => {
  for (let turn = 0; turn < 6; turn += 1) assert.is((await place.ask('redfish', 'status', at({ session: '1' }))).state, 'on', 'sessions are given back')
  assert.is((await place.ask('redfish', 'status', at({ plug: '/redfish/v1/Systems/2' }))).machine, uuid('2'))
  const { plug: _, ...rest } = at()
  assert.is((await place.ask('redfish', 'status', { ...rest, systems_uri: '/redfish/v1/Systems/1' })).machine, uuid('1'))
}))

test('list names every system, and monitor asks for it', () => inWorld(async ({ place, redfish, with: at }) => {
  const stdin = Object.entries(at({ plug: '' })).map(([key, value]) => `${key}=${value}\n`).join('')
  assert.is((await place.raw('redfish', `action=list\n${stdin}`)).stdout, '/redfish/v1/Systems/1,node-1\n/redfish/v1/Systems/2,node-2\n')
  assert.is((await place.raw('redfish', `action=monitor\n${stdin}`)).exitCode, 0)
  redfish.fault('all', 'refuse')
  assert.is((await place.raw('redfish', `action=monitor\n${stdin}`)).exitCode, 1)
}))

// Its start is waited for twice before a node is proven off.
test('of Node it loads what speaks HTTPS, and no other client', () => {
  const program = fileURLToPath(new URL('../../fence-agents/redfish/redfish.ts', import.meta.url))
  const loaded = spawnSync(execPath, ['--input-type=module', '-e', `await import(${JSON.stringify(program)}); console.log(process.moduleLoadList.join('\\n'))`], { encoding: 'utf8' }).stdout.split('\n')
  assert.ok(loaded.includes('NativeModule https'), 'the list tells what was loaded')
  assert.equal(loaded.filter((name) => /undici|websocket|http2/i.test(name)), [])
})

test('the simulated controller serves a client that is not ours, over a certificate that it can check', () => inWorld(async ({ redfish, power }) => {
  assert.is(new X509Certificate(redfish.certificate).fingerprint256.replaceAll(':', '').toLowerCase(), redfish.fingerprint)
  assert.is((await called(redfish, 'GET', '/redfish/v1', undefined, '')).status, 200)
  assert.is((await called(redfish, 'GET', '/redfish/v1/Systems', undefined, '')).status, 401)
  assert.is((await called(redfish, 'GET', '/redfish/v1/Systems/9')).status, 404)
  const system = await called(redfish, 'GET', '/redfish/v1/Systems/1/')
  assert.equal([system.body['PowerState'], system.body['UUID']], ['On', uuid('1')])
  assert.is((await called(redfish, 'POST', '/redfish/v1/Systems/1/Actions/ComputerSystem.Reset', { ResetType: 'Nmi' })).status, 400)
  assert.is((await called(redfish, 'POST', '/redfish/v1/Systems/1/Actions/ComputerSystem.Reset', { ResetType: 'ForceOff' })).status, 204)
  assert.is(power.get('1'), 'Off')
}))

interface Called {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

function called(redfish: Redfish, method: string, path: string, body?: object, auth = 'admin:hush"hush'): Promise<Called> {
  return new Promise((resolve, reject) => {
    const asking = request(`${redfish.url}${path}`, { method, ca: redfish.certificate, agent: false, ...(auth === '' ? {} : { auth }) }, (response) => {
      let text = ''
      response.on('data', (piece: Buffer) => { text += piece.toString() })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: (text === '' ? {} : JSON.parse(text)) as Called['body'] })) // the controller answers JSON or nothing
    })
    asking.on('error', reject)
    asking.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

test.run()
