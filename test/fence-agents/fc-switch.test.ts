// The program against a Fibre Channel switch that a test can bend, by SSH, and against the MIB of others.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { portsIn, powerOf } from '../../fence-agents/fc-switch/ports.ts'
import { testOver } from './agent-test.ts'
import { fabricLogin, startFabricOs, type FabricOs } from './fabric-os.ts'
import { inPlace, programsHere, type AgentPlace } from './place.ts'
import { startSnmpDevice, v2c, type SnmpDevice, type Value } from './snmp-device.ts'

const test = suite('fc-switch')

interface World {
  readonly fabric: FabricOs
  readonly place: AgentPlace
  readonly with: (over?: Readonly<Record<string, string>>) => Record<string, string>
  cut(port: string): boolean
}

async function inWorld(work: (world: World) => Promise<void>, head: FabricOs['head'] = 'fixed'): Promise<void> {
  const fabric = await startFabricOs(head)
  const login = { ip: '127.0.0.1', ipport: String(fabric.port), plug: head === 'fixed' ? '2' : '2/0', hostkey_sha256: fabric.fingerprint, ...fabricLogin }
  try {
    await inPlace((place) => work({ fabric, place, with: (over = {}) => ({ ...login, ...over }), cut: (port) => fabric.ports.get(port)?.cut !== 'no' }))
  } finally {
    await fabric.close()
  }
}

for (const [head, plug, other] of [['fixed', '2', '1'], ['director', '2/0', '1/0']] as const) {
  test(`a ${head} switch: off, off, status, on, each read back, and no other port is touched`, () => inWorld(async ({ place, fabric, cut, with: at }) => {
    const first = await place.ask('fc-switch', 'status', at())
    assert.equal([first.state, first.evidence], ['on', `exit 0: port ${plug}: Online F-Port 50:06:01:60:90:20:1e:7a`])
    assert.is((await place.started.ask('fc-switch', 'off', at())).state, 'off')
    assert.equal([cut(plug), cut(other)], [true, false])
    assert.is((await place.ask('fc-switch', 'off', at())).state, 'off')
    assert.is((await place.ask('fc-switch', 'status', at())).state, 'off')
    assert.is((await place.ask('fc-switch', 'on', at())).state, 'on')
    assert.equal(fabric.orders, [`persistent disable ${plug}`, `persistent enable ${plug}`])
  }, head))
}

test('every clause of the contract is kept', () => inPlace(async ({ folder }) => {
  const fabric = await startFabricOs('fixed', folder)
  try {
    const rows = await testOver(programsHere, 'fc-switch', [
      'ip=127.0.0.1', `ipport=${fabric.port}`, `username=${fabricLogin.username}`, `password=${fabricLogin.password}`, `hostkey_sha256=${fabric.fingerprint}`,
      'plug=1', 'other=2', 'unknown=99', 'wrong.password=guess', 'login_timeout=3', `truth=cat ${folder}/port-$PLUG`, `gone=touch ${folder}/gone`, `back=rm ${folder}/gone`,
    ].join('\n'), () => undefined)
    assert.equal(rows.filter(({ verdict }) => verdict !== 'kept'), [])
  } finally {
    await fabric.close()
  }
}))

test('a port whose machine is dark is on: nobody has cut it', () => inWorld(async ({ place, fabric, with: at }) => {
  const port = fabric.ports.get('2')
  if (port !== undefined) port.machine = 'dark'
  const word = await place.ask('fc-switch', 'status', at())
  assert.equal([word.state, word.evidence], ['on', 'exit 0: port 2: No_Light'])
  assert.is((await place.ask('fc-switch', 'off', at())).state, 'off')
  assert.is(fabric.orders.length, 1)
}))

test('a port that the next restart of the switch would give back is not off, unless that is what was asked for', () => inWorld(async ({ place, fabric, with: at }) => {
  const port = fabric.ports.get('2')
  if (port !== undefined) port.cut = 'till restart'
  assert.is((await place.ask('fc-switch', 'status', at())).state, 'unknown')
  assert.is((await place.ask('fc-switch', 'status', at({ persistent: '0' }))).state, 'off')
  assert.is((await place.ask('fc-switch', 'off', at())).state, 'off')
  assert.is(port?.cut, 'persistent')
  assert.is((await place.ask('fc-switch', 'on', at({ persistent: '0', power_timeout: '0.5' }))).state, 'failed', 'only what cut it persistently can enable it')
}))

for (const [state, remark] of [
  ['Online', 'Disabled (Segmented)'], ['Online', 'Disabled (Persistent)'], ['No_Module', '(No POD License) Disabled'], ['No_Module', 'Disabled (No ICL License)'],
  ['No_Sync', 'Disabled (Port Throttled)'], ['10', 'Disabled (Persistent)'], ['id', ''],
] as const) {
  test(`${state} ${JSON.stringify(remark)} is neither on nor off`, () => inWorld(async ({ place, fabric, with: at }) => {
    fabric.ports.set('2', { machine: 'lit', cut: 'no', row: { state, remark } })
    assert.is((await place.ask('fc-switch', 'status', at())).state, 'unknown')
  }))
}

test('the tables of old switches and of gateways are read too', () => {
  const old = 'Area Port Media Speed State\n==============================\n  0   0   id    N4   Online    F-Port  10:00:00:00:c9:2b:6a:1c\n  1   1   id    N4   No_Light  Disabled (Persistent)\n'
  const gateway = 'Index Port Address Media Speed State     Proto\n====\n  1   1   010100   cu     AN   No_Sync     FC  Disabled (Persistent) \n  2   2   010200   cu     N8   Online      FC  F-Port  20:01:00:0e:1e:30:18:6a 0x010013 \n'
  assert.equal(portsIn(old).map((port) => [port.plug, powerOf(port, true)]), [['0', 'on'], ['1', 'off']])
  assert.equal(portsIn(gateway).map((port) => [port.plug, powerOf(port, true)]), [['1', 'off'], ['2', 'on']])
  assert.equal(portsIn('Kernel panic\n 2 2 010200 id N8 No_Light FC Disabled (Persistent)\n'), [], 'a row without its head is nothing')
})

test('a table that breaks off anywhere calls no port off that is not cut', () => {
  const rows = ['Online      FC  F-Port  10:00:00:00:c9:2b:6a:1c', 'Online      FC  Disabled (Segmented)', 'No_Sync     FC  Disabled (Port Throttled)', 'No_Light    FC  Disabled (Persistent)', 'No_Light    FC']
  const table = `switchName: a\nIndex Port Address  Media Speed   State       Proto\n=====\n${rows.map((row, port) => `  ${port}   ${port}   010${port}00   id    N16     ${row}\n`).join('')}`
  for (let length = 0; length <= table.length; length += 1) {
    const off = portsIn(table.slice(0, length)).filter((port) => powerOf(port, false) === 'off').map(({ plug }) => plug)
    assert.ok(off.length === 0 || (off.length === 1 && off[0] === '3'), `${off.join(', ')} at ${length}`)
  }
})

test('an order that is taken and not carried out is not off; one that takes a while is waited for', () => inWorld(async ({ place, fabric, cut, with: at }) => {
  fabric.fault = 'disobedient'
  const word = await place.ask('fc-switch', 'off', at({ power_timeout: '0.8' }))
  assert.equal([word.state, cut('2')], ['failed', false])
  assert.match(word.reason, /^timeout \(ordered off, and still: port 2: Online/)
  fabric.fault = { lag: 600 }
  assert.is((await place.ask('fc-switch', 'off', at())).state, 'off')
}))

for (const [name, fault, over, reason] of [
  ['a wrong password', undefined, { password: 'guess guess' }, /^auth/],
  ['another key than the pinned one', undefined, { hostkey_sha256: 'SHA256:XYm9uOLHK0kkY2mW7vTH9wBRNm8bmHbWnN6n0l1Eo0c' }, /^config \(the key of .* is not the pinned one: it has SHA256:/],
  ['no pinned key', undefined, { hostkey_sha256: '' }, /^config \(hostkey_sha256= is missing/],
  ['a port that is not there', undefined, { plug: '9' }, /^notfound/],
  ['a slot on a switch without slots', undefined, { plug: '0/2' }, /^notfound/],
  ['a port with a command behind it', undefined, { plug: '2;reboot' }, /^config/],
  ['a list of ports', undefined, { plug: '1,2' }, /^config/],
  ['nobody there', undefined, { ipport: '1' }, /^unreachable/],
  ['a mute switch', 'mute', { login_timeout: '0.6' }, /^timeout/],
  ['a switch that hangs up', 'hangs up', {}, /^unreachable/],
  ['a shell that prints something else', { prints: 'switchd: not running\n' }, {}, /^device \(.*no table of ports/],
  ['a table without end', { prints: 'x'.repeat(2_000_000) }, {}, /^device/],
] as const) {
  test(`${name}: neither on nor off, and nothing is ordered`, () => inWorld(async ({ place, fabric, with: at }) => {
    fabric.fault = fault
    for (const action of ['status', 'off', 'on'] as const) {
      const word = await place.ask('fc-switch', action, at(over))
      assert.is(word.state, action === 'status' ? 'unknown' : 'failed')
      assert.match(word.reason, reason)
      assert.not.match(JSON.stringify(word), /hush/)
    }
    assert.equal(fabric.orders, [])
  }))
}

test('a user that may only look gets the reason; a password may be asked for at a keyboard', () => inWorld(async ({ place, fabric, with: at }) => {
  fabric.fault = 'not permitted'
  assert.match((await place.ask('fc-switch', 'off', at())).reason, /^privilege/)
  fabric.fault = 'keyboard'
  assert.is((await place.ask('fc-switch', 'status', at())).state, 'on')
}))

test('list names every port', () => inWorld(async ({ place, with: at }) => {
  const { plug: _, ...login } = at()
  const stdin = Object.entries(login).map(([key, value]) => `${key}=${value}\n`).join('')
  assert.is((await place.raw('fc-switch', `action=list\n${stdin}`)).stdout, '0,Online\n1,Online\n2,Online\n3,Online\n')
  assert.is((await place.raw('fc-switch', `action=monitor\n${stdin}`)).exitCode, 0)
}))

const integer = (value: number): Value => ({ type: 'Integer', value })
const admin = (port: number) => `1.3.6.1.2.1.75.1.2.2.1.1.1.${port}`
const oper = (port: number) => `1.3.6.1.2.1.75.1.2.2.1.2.1.${port}`
const sysObjectID = '1.3.6.1.2.1.1.2.0'

async function overMib(work: (device: SnmpDevice, place: AgentPlace, at: Record<string, string>) => Promise<void>, maker = '1.3.6.1.4.1.1663.1.1'): Promise<void> {
  const values = { [sysObjectID]: { type: 'OID', value: maker } as Value, ...Object.fromEntries([1, 2].flatMap((port) => [[admin(port), integer(1)], [oper(port), integer(1)]])) }
  const device = await startSnmpDevice(values, (oid, value, now) => {
    now.set(oid, integer(value))
    now.set(oper(Number(oid.split('.').at(-1))), integer(value))
  })
  try {
    await inPlace((place) => work(device, place, { protocol: 'snmp', ip: '127.0.0.1', ipport: String(device.port), plug: '1.2', ...v2c }))
  } finally {
    await device.close()
  }
}

test('by SNMP: off, status, on, read back; down in the book and up on the wire is not off', () => overMib(async (device, place, at) => {
  assert.is((await place.ask('fc-switch', 'off', at)).state, 'off')
  assert.is((await place.ask('fc-switch', 'status', at)).state, 'off')
  assert.is((await place.ask('fc-switch', 'on', at)).state, 'on')
  assert.equal(device.orders, [`${admin(2)}=2`, `${admin(2)}=1`])
  device.values.set(admin(2), integer(2))
  assert.is((await place.ask('fc-switch', 'status', at)).state, 'unknown')
  device.values.set(admin(2), integer(1)).set(oper(2), integer(4))
  assert.is((await place.ask('fc-switch', 'status', at)).state, 'on', 'a link that broke is not cut')
}))

test('by SNMP: no such port, a plug of another form, a mute device: neither on nor off', () => overMib(async (device, place, at) => {
  assert.match((await place.ask('fc-switch', 'off', { ...at, plug: '1.9' })).reason, /^notfound/)
  assert.match((await place.ask('fc-switch', 'off', { ...at, plug: '2' })).reason, /^config/)
  assert.match((await place.ask('fc-switch', 'off', { ...at, protocol: 'telnet' })).reason, /^config/)
  device.fault = 'mute'
  assert.match((await place.ask('fc-switch', 'off', { ...at, shell_timeout: '0.6' })).reason, /^unreachable/)
  assert.equal(device.orders, [])
}))

test('by SNMP: Fabric OS is refused, which calls a dark port offline', () => overMib(async (device, place, at) => {
  device.values.set(admin(2), integer(2)).set(oper(2), integer(2))
  for (const action of ['status', 'off', 'on'] as const) assert.match((await place.ask('fc-switch', action, at)).reason, /^config \(Fabric OS/)
  assert.equal(device.orders, [])
}, '1.3.6.1.4.1.1588.2.1.1.1.183'))

test.run()
