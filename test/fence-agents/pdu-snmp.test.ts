// The program against a strip that a test can bend. What is asked of it first of all: that nothing but
// the strip's own number for off is ever off.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { outletTables, tableOfDevice } from '../../fence-agents/pdu-snmp/outlets.ts'
import { inPlace, type AgentPlace } from './place.ts'
import { startSnmpDevice, v2c, v3, type SnmpDevice, type Value } from './snmp-device.ts'

const test = suite('pdu-snmp')

const integer = (value: number): Value => ({ type: 'Integer', value })
const text = (value: string): Value => ({ type: 'OctetString', value })
const sysObjectID = '1.3.6.1.2.1.1.2.0'

/** One strip of each kind: how it names itself, and what its numbers are. Written from the vendors' MIBs, apart from the program's table. */
const strips = {
  'apc-rpdu': {
    id: '1.3.6.1.4.1.318.1.3.4.5', state: '1.3.6.1.4.1.318.1.1.12.3.5.1.1.4', name: '1.3.6.1.4.1.318.1.1.12.3.5.1.1.2', pending: '1.3.6.1.4.1.318.1.1.12.3.5.1.1.5',
    unit: '', on: 1, off: 2, orders: { on: ['1.3.6.1.4.1.318.1.1.12.3.3.1.1.4', 1], off: ['1.3.6.1.4.1.318.1.1.12.3.3.1.1.4', 2] },
  },
  'apc-rpdu2': {
    id: '1.3.6.1.4.1.318.1.3.4.6', state: '1.3.6.1.4.1.318.1.1.26.9.2.3.1.5', name: '1.3.6.1.4.1.318.1.1.26.9.2.3.1.3', pending: '1.3.6.1.4.1.318.1.1.26.9.2.3.1.6',
    unit: '', on: 2, off: 1, orders: { on: ['1.3.6.1.4.1.318.1.1.26.9.2.4.1.5', 1], off: ['1.3.6.1.4.1.318.1.1.26.9.2.4.1.5', 2] },
  },
  'apc-masterswitch': {
    id: '1.3.6.1.4.1.318.1.3.4.2', state: '1.3.6.1.4.1.318.1.1.4.4.2.1.3', name: '1.3.6.1.4.1.318.1.1.4.4.2.1.4', pending: '1.3.6.1.4.1.318.1.1.4.4.2.1.2',
    unit: '', on: 1, off: 2, orders: { on: ['1.3.6.1.4.1.318.1.1.4.4.2.1.3', 1], off: ['1.3.6.1.4.1.318.1.1.4.4.2.1.3', 2] },
  },
  eaton: {
    id: '1.3.6.1.4.1.534.6.6.7', state: '1.3.6.1.4.1.534.6.6.7.6.6.1.2', name: '1.3.6.1.4.1.534.6.6.7.6.1.1.3', pending: '',
    unit: '0.', on: 1, off: 0, orders: { on: ['1.3.6.1.4.1.534.6.6.7.6.6.1.4', 0], off: ['1.3.6.1.4.1.534.6.6.7.6.6.1.3', 0] },
  },
  'eaton-managed': {
    id: '1.3.6.1.4.1.534.6.6.6', state: '1.3.6.1.4.1.534.6.6.6.1.2.2.1.3', name: '1.3.6.1.4.1.534.6.6.6.1.2.2.1.1', pending: '',
    unit: '', on: 1, off: 0, orders: { on: ['1.3.6.1.4.1.534.6.6.6.1.2.2.1.3', 1], off: ['1.3.6.1.4.1.534.6.6.6.1.2.2.1.3', 0] },
  },
  raritan: {
    id: '1.3.6.1.4.1.13742.6', state: '1.3.6.1.4.1.13742.6.4.1.2.1.3', name: '1.3.6.1.4.1.13742.6.3.5.3.1.3', pending: '',
    unit: '1.', on: 7, off: 8, orders: { on: ['1.3.6.1.4.1.13742.6.4.1.2.1.2', 1], off: ['1.3.6.1.4.1.13742.6.4.1.2.1.2', 0] },
  },
} as const

type Kind = keyof typeof strips

/** As the device counts it: one kind begins at 0. */
const indexOf = (kind: Kind, outlet: number): string => `${strips[kind].unit}${kind === 'eaton-managed' ? outlet - 1 : outlet}`

interface World {
  readonly strip: SnmpDevice
  readonly place: AgentPlace
  readonly with: (over?: Readonly<Record<string, string>>) => Record<string, string>
  power(outlet: number): 'on' | 'off'
  bend(outlet: number, column: 'state' | 'name' | 'pending', value: Value | undefined): void
}

/** Four outlets, all on. `obeys` false: an order is taken, and nothing happens. */
async function inWorld(work: (world: World) => Promise<void>, { kind = 'apc-rpdu', obeys = true }: { kind?: Kind; obeys?: boolean } = {}): Promise<void> {
  const { id, state, name, pending, on, off, orders } = strips[kind]
  const values: Record<string, Value> = { [sysObjectID]: { type: 'OID', value: id } }
  for (const outlet of [1, 2, 3, 4]) {
    values[`${state}.${indexOf(kind, outlet)}`] = integer(on)
    values[`${name}.${indexOf(kind, outlet)}`] = text(`node-${outlet}`)
    if (pending !== '') values[`${pending}.${indexOf(kind, outlet)}`] = integer(2)
  }
  const strip = await startSnmpDevice(values, (oid, value, now) => {
    if (!obeys) return
    for (const want of ['on', 'off'] as const) {
      const [column, number] = orders[want]
      if (oid.startsWith(`${column}.`) && value === number) now.set(`${state}${oid.slice(column.length)}`, integer(want === 'on' ? on : off))
    }
  })
  const login = { ip: '127.0.0.1', ipport: String(strip.port), plug: '3', ...v2c }
  try {
    await inPlace((place) => work({
      strip, place, with: (over = {}) => ({ ...login, ...over }),
      power: (outlet) => (strip.values.get(`${state}.${indexOf(kind, outlet)}`)?.value === on ? 'on' : 'off'),
      bend(outlet, column, value) {
        const oid = `${{ state, name, pending }[column]}.${indexOf(kind, outlet)}`
        if (value === undefined) strip.values.delete(oid)
        else strip.values.set(oid, value)
      },
    }))
  } finally {
    await strip.close()
  }
}

for (const kind of Object.keys(strips) as Kind[]) {
  test(`${kind}: told by the device or by the operator, its outlet goes off and on, and no other does`, () => inWorld(async ({ place, strip, power, with: at }) => {
    const { orders } = strips[kind]
    assert.is((await place.ask('pdu-snmp', 'status', at())).state, 'on')
    const off = await place.ask('pdu-snmp', 'off', at())
    assert.equal([off.state, power(3), power(1), power(2), power(4)], ['off', 'off', 'on', 'on', 'on'])
    assert.match(off.evidence, /^exit 0: outlet [\d.]+ "node-3" reads off/)
    assert.is((await place.ask('pdu-snmp', 'status', at({ model: kind }))).state, 'off')
    assert.is((await place.ask('pdu-snmp', 'on', at({ model: kind }))).state, 'on')
    assert.equal(strip.orders, [`${orders.off[0]}.${indexOf(kind, 3)}=${orders.off[1]}`, `${orders.on[0]}.${indexOf(kind, 3)}=${orders.on[1]}`])
  }, { kind }))
}

test('one number means on in one table of a vendor and off in another', () => {
  assert.equal([outletTables['apc-rpdu']?.states.get(1), outletTables['apc-rpdu2']?.states.get(1)], ['on', 'off'])
  for (const [name, { states }] of Object.entries(outletTables)) {
    assert.equal([...states.values()].filter((word) => word !== 'changing').toSorted(), ['off', 'on'], name)
  }
})

test('a device that calls itself something else is asked nothing more', () => inWorld(async ({ place, strip, with: at }) => {
  assert.throws(() => tableOfDevice('1.3.6.1.4.1.318.1.3.4.55'), /is not known/)
  strip.values.set(sysObjectID, { type: 'OID', value: '1.3.6.1.4.1.99999.1' })
  const word = await place.ask('pdu-snmp', 'off', at())
  assert.match(word.reason, /^config \(the device calls itself 1\.3\.6\.1\.4\.1\.99999\.1/)
  assert.equal(strip.orders, [])
}))

test('by its name an outlet is found; a name of none or of two switches nothing', () => inWorld(async ({ place, strip, power, bend, with: at }) => {
  assert.is((await place.ask('pdu-snmp', 'off', at({ plug: 'node-2' }))).state, 'off')
  assert.equal([power(2), power(3)], ['off', 'on'])
  assert.match((await place.ask('pdu-snmp', 'off', at({ plug: 'node-9' }))).reason, /^notfound \(no outlet is named/)
  bend(4, 'name', text('node-3'))
  assert.match((await place.ask('pdu-snmp', 'off', at({ plug: 'node-3' }))).reason, /^config \(outlets 3 and 4 are both named/)
  assert.is(strip.orders.length, 1)
}))

for (const [name, value, reason] of [
  ['there is no such outlet', undefined, /^notfound \(the device has no outlet 3 \(NoSuchInstance\)/],
  ['there is no such column', { type: 'NoSuchObject', value: null }, /^notfound \(.*NoSuchObject/],
  ['a text in the place of the number', text('2'), /^device \(.*is no number but text/],
  ['a counter in the place of the number', { type: 'Counter64', value: Buffer.from([2]) }, /^device \(.*is no number but Counter64/],
] as const satisfies readonly (readonly [string, Value | undefined, RegExp])[]) {
  test(`${name}: neither on nor off, and nothing is written`, () => inWorld(async ({ place, strip, bend, with: at }) => {
    bend(3, 'state', value)
    for (const action of ['status', 'off', 'on'] as const) {
      const word = await place.ask('pdu-snmp', action, at())
      assert.is(word.state, action === 'status' ? 'unknown' : 'failed')
      assert.match(word.reason, reason)
    }
    assert.equal(strip.orders, [])
  }))
}

test('a number that the table does not know is neither on nor off; an order makes it one', () => inWorld(async ({ place, power, bend, with: at }) => {
  bend(3, 'state', integer(4))
  assert.match((await place.ask('pdu-snmp', 'status', at())).reason, /^device \(.*state 4, which is neither on nor off/)
  assert.is((await place.ask('pdu-snmp', 'off', at())).state, 'off')
  assert.is(power(3), 'off')
}))

test('off in the midst of a reboot is not off', () => inWorld(async ({ place, bend, with: at }) => {
  bend(3, 'state', integer(2))
  bend(3, 'pending', integer(1))
  assert.match((await place.ask('pdu-snmp', 'status', at())).reason, /^busy \(.*reads off, but a command is pending/)
  assert.is((await place.ask('pdu-snmp', 'off', at({ power_timeout: '1' }))).state, 'failed')
  bend(3, 'pending', integer(3))
  assert.is((await place.ask('pdu-snmp', 'status', at())).state, 'unknown', 'whether one is pending is not known')
  bend(3, 'pending', undefined)
  assert.is((await place.ask('pdu-snmp', 'status', at())).state, 'off', 'a strip without the column has no opinion')
}))

test('an Eaton that is about to switch is neither on nor off', () => inWorld(async ({ place, bend, with: at }) => {
  for (const state of [2, 3]) {
    bend(3, 'state', integer(state))
    assert.match((await place.ask('pdu-snmp', 'status', at())).reason, /^busy/)
  }
}, { kind: 'eaton' }))

test('off is ordered of what is off: it overrides what would switch it on again', () => inWorld(async ({ place, strip, bend, with: at }) => {
  bend(3, 'state', integer(8))
  assert.is((await place.ask('pdu-snmp', 'off', at())).state, 'off')
  assert.is(strip.orders.length, 1)
}, { kind: 'raritan' }))

test('a strip that takes the order and does not obey is not off', () => inWorld(async ({ place, strip, with: at }) => {
  const word = await place.ask('pdu-snmp', 'off', at({ power_timeout: '1' }))
  assert.equal([word.state, strip.orders.length], ['failed', 1])
  assert.match(word.reason, /^timeout \(ordered off, and still: outlet 3 "node-3" reads on/)
}, { obeys: false }))

test('a strip whose agent goes away after the order is not off', () => inWorld(async ({ place, strip, with: at }) => {
  const asking = place.ask('pdu-snmp', 'off', at({ power_timeout: '1.5' }))
  while (strip.orders.length === 0) await new Promise((resolve) => { setTimeout(resolve, 1) })
  for (const oid of strip.values.keys()) strip.values.delete(oid)
  const word = await asking
  assert.is(word.state, 'failed')
  assert.match(word.reason, /NoSuchInstance/)
}, { obeys: false }))

for (const refuses of ['NoAccess', 'NotWritable', 'ReadOnly', 'AuthorizationError'] as const) {
  test(`a right too low (${refuses}) says so, and the outlet stays on`, () => inWorld(async ({ place, strip, power, with: at }) => {
    strip.fault = { refuses }
    const word = await place.ask('pdu-snmp', 'off', at())
    assert.equal([word.state, power(3)], ['failed', 'on'])
    assert.match(word.reason, /^privilege/)
  }))
}

for (const [name, over] of [
  ['a list of outlets', { plug: '3,4' }], ['version 1', { snmp_version: '1' }], ['no community', { community: '' }], ['an unknown model', { model: 'apc' }],
  ['a model named after what every object has', { model: 'constructor' }],
  ['a short password', { ...v3, snmp_priv_passwd: 'short' }], ['an unknown protocol', { ...v3, snmp_auth_prot: 'crc' }], ['a port that is none', { ipport: '99999' }],
  ['a generic strip without its columns', { model: 'generic' }],
] as const) {
  test(`${name}: config, before anything is asked`, () => inWorld(async ({ place, strip, with: at }) => {
    strip.fault = 'mute'
    const word = await place.ask('pdu-snmp', 'off', at(over))
    assert.is(word.state, 'failed')
    assert.match(word.reason, /^config/)
    if (name !== 'a list of outlets') {
      const stdin = Object.entries(at(over)).map(([key, value]) => `${key}=${value}\n`).join('')
      assert.is((await place.raw('pdu-snmp', `action=validate-all\n${stdin}`)).exitCode, 1)
    }
  }))
}

test('any other strip by its columns', () => inWorld(async ({ place, power, with: at }) => {
  const { state, name, orders } = strips['apc-rpdu']
  const generic = { model: 'generic', state_oid: `.${state}`, state_on: '1', state_off: '2', order_on_oid: orders.on[0], order_on: '1', order_off_oid: orders.off[0], order_off: '2' }
  assert.is((await place.ask('pdu-snmp', 'off', at(generic))).state, 'off')
  assert.is(power(3), 'off')
  assert.match((await place.ask('pdu-snmp', 'off', at({ ...generic, plug: 'node-4' }))).reason, /^config \(plug= is a name/)
  assert.is((await place.ask('pdu-snmp', 'off', at({ ...generic, plug: 'node-4', name_oid: name }))).state, 'off')
  assert.match((await place.ask('pdu-snmp', 'status', at({ ...generic, state_off: '1' }))).reason, /^config \(.*one number/)
}))

test('list names every outlet; monitor fails where there are none', () => inWorld(async ({ place, strip, with: at }) => {
  const { plug: _, ...rest } = at()
  const stdin = Object.entries(rest).map(([key, value]) => `${key}=${value}\n`).join('')
  assert.is((await place.raw('pdu-snmp', `action=list\n${stdin}`)).stdout, '1,node-1\n2,node-2\n3,node-3\n4,node-4\n')
  assert.match((await place.raw('pdu-snmp', 'action=metadata\n')).stdout, /<action name="list-status" \/>/)
  const states = async (): Promise<string> => (await place.raw('pdu-snmp', `action=list-status\n${stdin}`)).stdout
  assert.is(await states(), '1,node-1,ON\n2,node-2,ON\n3,node-3,ON\n4,node-4,ON\n')
  await place.ask('pdu-snmp', 'off', at({ plug: '3' }))
  assert.is(await states(), '1,node-1,ON\n2,node-2,ON\n3,node-3,OFF\n4,node-4,ON\n')
  assert.is((await place.raw('pdu-snmp', `action=monitor\n${stdin}`)).exitCode, 0)
  for (const oid of strip.values.keys()) if (oid !== sysObjectID) strip.values.delete(oid)
  assert.is((await place.raw('pdu-snmp', `action=monitor\n${stdin}`)).exitCode, 1)
}))

for (const kind of ['eaton', 'eaton-managed', 'raritan'] as const) {
  test(`${kind}: its outlets are listed as a person names them, by the numbers on its front`, () => inWorld(async ({ place, bend, with: at }) => {
    const { plug: _, ...rest } = at()
    const stdin = Object.entries(rest).map(([key, value]) => `${key}=${value}\n`).join('')
    bend(3, 'state', integer(strips[kind].off))
    assert.is((await place.raw('pdu-snmp', `action=list\n${stdin}`)).stdout, '1,node-1\n2,node-2\n3,node-3\n4,node-4\n')
    assert.is((await place.raw('pdu-snmp', `action=list-status\n${stdin}`)).stdout, '1,node-1,ON\n2,node-2,ON\n3,node-3,OFF\n4,node-4,ON\n')
  }, { kind }))
}

test.run()
