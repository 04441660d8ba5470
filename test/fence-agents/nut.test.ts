// The program against an upsd that a test can bend.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServer, type AddressInfo } from 'node:net'
import { inPlace, type AgentPlace } from './place.ts'
import { closed, startUpsd, upsdLogin, type Upsd } from './upsd.ts'

const test = suite('nut')

interface World {
  readonly upsd: Upsd
  readonly place: AgentPlace
  readonly with: (over?: Readonly<Record<string, string>>) => Record<string, string>
}

async function inWorld(work: (world: World) => Promise<void>, { obeys = true } = {}): Promise<void> {
  const upsd = await startUpsd({ obeys })
  const login = { ip: '127.0.0.1', ipport: String(upsd.port), plug: '2', ...upsdLogin }
  try {
    await inPlace((place) => work({ upsd, place, with: (over = {}) => ({ ...login, ...over }) }))
  } finally {
    await upsd.close()
  }
}

for (const plug of ['2', 'node "2"'] as const) {
  test(`an outlet by ${plug}: off, off, status, on; OK is not off, the driver's next look is`, () => inWorld(async ({ place, upsd, with: at }) => {
    assert.is((await place.ask('nut', 'status', at({ plug }))).state, 'on')
    const off = await place.ask('nut', 'off', at({ plug }))
    assert.equal([off.state, off.evidence, upsd.variables.get('outlet.1.status')], ['off', 'exit 0: outlet.2.status is "off"', 'on'])
    assert.is((await place.ask('nut', 'off', at({ plug }))).state, 'off')
    assert.is((await place.ask('nut', 'status', at({ plug }))).state, 'off')
    assert.is((await place.ask('nut', 'on', at({ plug }))).state, 'on')
    assert.equal(upsd.orders, ['outlet.2.load.off', 'outlet.2.load.off', 'outlet.2.load.on'])
  }))
}

test('where there is no command the variable is written, if it may be; else nothing', () => inWorld(async ({ place, upsd, with: at }) => {
  upsd.commands.clear()
  const word = await place.ask('nut', 'off', at())
  assert.match(word.reason, /^config \(the driver of this device offers neither/)
  upsd.writable.add('outlet.2.status')
  assert.is((await place.ask('nut', 'off', at())).state, 'off')
  upsd.writable.add('outlet.2.switch')
  assert.is((await place.ask('nut', 'on', at())).state, 'on')
  assert.equal(upsd.orders, ['outlet.2.status=off', 'outlet.2.switch=on'])
}))

test('all that a UPS feeds: OFF is off, past the UPS it is not', () => inWorld(async ({ place, upsd, with: at }) => {
  assert.is((await place.ask('nut', 'off', at({ plug: 'load' }))).state, 'off')
  assert.equal(upsd.orders, ['load.off'])
  for (const [status, state] of [['OL OFF', 'off'], ['ALARM OFF', 'off'], ['OFF BYPASS', 'unknown'], ['OL BYPASS', 'unknown'], ['OB LB', 'on'], ['FSD OL', 'on'], ['WAIT', 'unknown'], ['', 'unknown'], ['off', 'unknown'], ['OFFLINE', 'unknown']] as const) {
    upsd.variables.set('ups.status', status)
    assert.is((await place.ask('nut', 'status', at({ plug: 'load' }))).state, state, status)
  }
}))

test('an order that is taken and not carried out is not off', () => inWorld(async ({ place, upsd, with: at }) => {
  const word = await place.ask('nut', 'off', at({ power_timeout: '1' }))
  assert.equal([word.state, upsd.orders.length], ['failed', 1])
  assert.match(word.reason, /^timeout \(ordered off, and still: outlet\.2\.status is "on"/)
}, { obeys: false }))

test('off, and a start is due: not off', () => inWorld(async ({ place, upsd, with: at }) => {
  upsd.variables.set('outlet.2.status', 'off').set('outlet.2.timer.start', '20')
  assert.match((await place.ask('nut', 'status', at())).reason, /^busy \(.*but start is due in 20 s/)
  upsd.variables.set('outlet.2.timer.start', '-1')
  assert.is((await place.ask('nut', 'status', at())).state, 'off')
}))

for (const [name, over, fault, reason] of [
  ['an outlet that is not there', { plug: '9' }, undefined, /^notfound \(.*VAR-NOT-SUPPORTED/],
  ['a name of no outlet', { plug: 'node-9' }, undefined, /^notfound/],
  ['a device that upsd does not have', { ups: 'nosuch' }, undefined, /^notfound \(upsd has no device of this name/],
  ['a list of outlets', { plug: '1,2' }, undefined, /^config/],
  ['a device name with a blank', { ups: 'pdu outlet.1.status' }, undefined, /^config/],
  ['a driver that lost its device', {}, { to: /^GET/, says: 'ERR DATA-STALE' }, /^unreachable \(upsd has no fresh word/],
  ['a driver that does not run', {}, { to: /^GET/, says: 'ERR DRIVER-NOT-CONNECTED' }, /^unreachable/],
  ['a state that is neither', {}, { to: /^GET/, says: 'VAR pdu outlet.2.status "unknown"' }, /^device \(outlet.2.status is "unknown"/],
  ['an answer to another question', {}, { to: /^GET/, says: 'VAR pdu outlet.1.status "off"' }, /^device/],
  ['an answer of another device', {}, { to: /^GET/, says: 'VAR ups outlet.2.status "off"' }, /^device/],
  ['no upsd at all', {}, { to: /^GET/, says: 'HTTP/1.1 400 Bad Request' }, /^device/],
  ['an upsd that does not answer', {}, { to: /./, says: undefined }, /^timeout/],
] as const) {
  test(`${name}: neither on nor off, and nothing is ordered`, () => inWorld(async ({ place, upsd, with: at }) => {
    upsd.fault = fault
    for (const action of ['status', 'off'] as const) {
      const word = await place.ask('nut', action, at({ shell_timeout: '0.5', power_timeout: '0.5', ...over }))
      // A state that is a word, though neither on nor off, shows that the outlet is there: it is ordered, and stays unknown.
      if (action === 'off' && name === 'a state that is neither') return
      assert.equal([word.state, word.late], [action === 'off' ? 'failed' : 'unknown', false])
      assert.match(word.reason, reason)
    }
    assert.equal(upsd.orders, [])
  }))
}

for (const over of [{ password: 'guess' }, { username: 'viewer' }]) {
  test(`${Object.keys(over).join()} is another: refused, nothing switched, no secret told`, () => inWorld(async ({ place, upsd, with: at }) => {
    const word = await place.ask('nut', 'off', at(over))
    assert.is(word.state, 'failed')
    assert.match(word.reason, /^auth \(upsd refuses/)
    assert.not.match(JSON.stringify(word), /hush|guess/)
    assert.equal([upsd.orders.length, upsd.variables.get('outlet.2.status')], [0, 'on'])
  }))
}

test('an upsd that is not there is unreachable; one that hangs up in the middle is too', () => inWorld(async ({ place, upsd, with: at }) => {
  await upsd.close()
  assert.match((await place.ask('nut', 'status', at())).reason, /^unreachable \(.*ECONNREFUSED/)
  const rude = createServer((socket) => socket.once('data', () => socket.destroy()))
  await new Promise<void>((resolve) => { rude.listen(0, '127.0.0.1', () => resolve()) })
  const { port } = rude.address() as AddressInfo // it listens on a port
  assert.match((await place.ask('nut', 'status', at({ ipport: String(port) }))).reason, /^unreachable \(.*(hung up|ECONNRESET)/)
  await closed(rude)
}))

test('an upsd that does not stop talking is no answer', () => inWorld(async ({ place, upsd, with: at }) => {
  upsd.fault = { to: /^GET/, says: 'x'.repeat(2 * 1024 * 1024) }
  assert.match((await place.ask('nut', 'status', at())).reason, /^device \(.*does not stop talking/)
}))

test('list names every outlet, and monitor asks for it', () => inWorld(async ({ place, upsd, with: at }) => {
  const { plug: _, ...rest } = at()
  const stdin = Object.entries(rest).map(([key, value]) => `${key}=${value}\n`).join('')
  assert.is((await place.raw('nut', `action=list\n${stdin}`)).stdout, '1,node-1\n2,node "2"\nload,all that the UPS feeds\n')
  assert.is((await place.raw('nut', `action=monitor\n${stdin}`)).exitCode, 0)
  await upsd.close()
  assert.is((await place.raw('nut', `action=monitor\n${stdin}`)).exitCode, 1)
}))

test.run()
