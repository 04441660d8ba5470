// The program against a switch that a test can bend.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Ms } from '../../core/model.ts'
import { inPlace, type AgentPlace } from './place.ts'
import { startSnmpDevice, v2c, v3, type SnmpDevice, type Value } from './snmp-device.ts'

const test = suite('switch-snmp')

const integer = (value: number): Value => ({ type: 'Integer', value })
const text = (value: string): Value => ({ type: 'OctetString', value })
const ifDescr = (index: number) => `1.3.6.1.2.1.2.2.1.2.${index}`
const ifAdmin = (index: number) => `1.3.6.1.2.1.2.2.1.7.${index}`
const ifOper = (index: number) => `1.3.6.1.2.1.2.2.1.8.${index}`
const ifName = (index: number) => `1.3.6.1.2.1.31.1.1.1.1.${index}`

interface World {
  readonly device: SnmpDevice
  readonly place: AgentPlace
  readonly with: (over?: Readonly<Record<string, string>>) => Record<string, string>
  carries(index: number): boolean
}

/** Three ports, p1 to p3, at 11 to 13. `lag` is how long frames still go through after the port says down. */
async function inWorld(work: (world: World) => Promise<void>, lag: Ms | 'for ever' = 0): Promise<void> {
  const ports = [11, 12, 13]
  const values = Object.fromEntries(ports.flatMap((index) => [
    [ifDescr(index), text(`Ethernet${index - 10}`)], [ifAdmin(index), integer(1)], [ifOper(index), integer(1)], [ifName(index), text(`p${index - 10}`)],
  ] as const))
  const device = await startSnmpDevice(values, (oid, value, now) => {
    const index = Number(oid.split('.').at(-1))
    now.set(ifAdmin(index), integer(value))
    if (lag === 0) now.set(ifOper(index), integer(value))
    else if (lag !== 'for ever') setTimeout(() => now.set(ifOper(index), integer(value)), lag)
  })
  const login = { ip: '127.0.0.1', ipport: String(device.port), plug: 'p2', ...v2c }
  try {
    await inPlace((place) => work({ device, place, with: (over = {}) => ({ ...login, ...over }), carries: (index) => device.values.get(ifOper(index))?.value === 1 }))
  } finally {
    await device.close()
  }
}

for (const plug of ['p2', 'Ethernet2', '12'] as const) {
  test(`a port by ${plug}: off, off, status, on, each read back, and no other port is touched`, () => inWorld(async ({ place, device, carries, with: at }) => {
    const first = await place.ask('switch-snmp', 'status', at({ plug }))
    assert.equal([first.state, first.evidence], ['on', 'exit 0: port 12 "Ethernet2": admin up, oper up'])
    assert.is((await place.ask('switch-snmp', 'off', at({ plug }))).state, 'off')
    assert.equal([carries(11), carries(12), carries(13)], [true, false, true])
    assert.is((await place.ask('switch-snmp', 'off', at({ plug }))).state, 'off')
    assert.is((await place.ask('switch-snmp', 'status', at({ plug }))).state, 'off')
    assert.is((await place.ask('switch-snmp', 'on', at({ plug }))).state, 'on')
    assert.equal(device.orders, [`${ifAdmin(12)}=2`, `${ifAdmin(12)}=1`])
  }))
}

test('down in the book and up on the wire is not off; it is waited for', () => inWorld(async ({ place, device, carries, with: at }) => {
  device.values.set(ifAdmin(11), integer(2))
  assert.match((await place.ask('switch-snmp', 'status', at({ plug: 'p1' }))).reason, /^busy \(.*admin down, oper up/)
  assert.is((await place.ask('switch-snmp', 'off', at())).state, 'off')
  assert.is(carries(12), false)
}, 600))

test('a switch that says down and carries on is not off', () => inWorld(async ({ place, with: at }) => {
  const word = await place.ask('switch-snmp', 'off', at({ power_timeout: '1' }))
  assert.is(word.state, 'failed')
  assert.match(word.reason, /^timeout \(ordered off, and still: port 12 "Ethernet2": admin down, oper up/)
}, 'for ever'))

test('a port whose machine is gone is on: it is not we who hold it down', () => inWorld(async ({ place, device, with: at }) => {
  device.values.set(ifOper(12), integer(2))
  assert.is((await place.ask('switch-snmp', 'status', at())).state, 'on')
  device.values.set(ifAdmin(12), integer(2))
  for (const oper of [4, 5, 6, 7]) {
    device.values.set(ifOper(12), integer(oper))
    assert.is((await place.ask('switch-snmp', 'status', at())).state, 'unknown', `ifOperStatus ${oper}`)
  }
}))

for (const [name, bend, reason] of [
  ['no such ifIndex', (device: SnmpDevice) => { device.values.delete(ifAdmin(12)) }, /^notfound \(.*there is no such port \(NoSuchInstance\)/],
  ['a port without ifOperStatus', (device: SnmpDevice) => { device.values.delete(ifOper(12)) }, /^notfound \(port 12 "Ethernet2": ifOperStatus/],
  ['a text for a number', (device: SnmpDevice) => { device.values.set(ifAdmin(12), text('2')) }, /^device \(.*ifAdminStatus is text/],
  ['a number that is none of IF-MIB', (device: SnmpDevice) => { device.values.set(ifAdmin(12), integer(0)) }, /^device \(.*ifAdminStatus is 0/],
  ['a switch that does not answer', (device: SnmpDevice) => { device.fault = 'mute' }, /^unreachable/],
] as const) {
  test(`${name}: neither on nor off, and nothing is written`, () => inWorld(async ({ place, device, with: at }) => {
    bend(device)
    for (const action of ['status', 'off', 'on'] as const) {
      const word = await place.ask('switch-snmp', action, at({ plug: '12', shell_timeout: '0.6' }))
      assert.is(word.state, action === 'status' ? 'unknown' : 'failed')
      assert.match(word.reason, reason)
    }
    assert.equal(device.orders, [])
  }))
}

test('a name of no port or of two, a list, and an account that may only read: refused with the reason', () => inWorld(async ({ place, device, carries, with: at }) => {
  assert.match((await place.ask('switch-snmp', 'off', at({ plug: 'p9' }))).reason, /^notfound/)
  assert.match((await place.ask('switch-snmp', 'off', at({ plug: 'p1,p2' }))).reason, /^config/)
  device.values.set(ifName(13), text('p2'))
  assert.match((await place.ask('switch-snmp', 'off', at())).reason, /^config \(ports 12 and 13/)
  device.fault = { refuses: 'NoAccess' }
  assert.match((await place.ask('switch-snmp', 'off', at({ plug: 'p1' }))).reason, /^privilege/)
  assert.equal([carries(11), carries(12), carries(13), device.orders.length], [true, true, true, 0])
}))

test('over version 3 the same; list names every port', () => inWorld(async ({ place, carries, with: at }) => {
  const { community: _, ...rest } = at(v3)
  assert.is((await place.started.ask('switch-snmp', 'off', rest)).state, 'off')
  assert.is(carries(12), false)
  const { plug: __, ...login } = rest
  const stdin = Object.entries(login).map(([key, value]) => `${key}=${value}\n`).join('')
  assert.is((await place.raw('switch-snmp', `action=list\n${stdin}`)).stdout, '11,p1\n12,p2\n13,p3\n')
  assert.is((await place.raw('switch-snmp', `action=monitor\n${stdin}`)).exitCode, 0)
}))

test.run()
