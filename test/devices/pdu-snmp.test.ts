// Our `pdu-snmp` and Debian's fence_apc_snmp at a strip behind snmpd, and the machine that hangs on it as the judge of both.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startMachine } from './machine.ts'
import { startPowerStrip } from './power-strip.ts'
import { inRack, until } from './rack.ts'
import { sideBySide } from './side-by-side.ts'

const test = suite('pdu-snmp')

test('beside fence_apc_snmp: both cut the machine off and feed it again, ours in less time; and so over version 3', () => inRack(async (rack) => {
  const machine = await startMachine(rack, 'machine')
  const { v2c, v3 } = await startPowerStrip(rack, 'strip', { 3: machine.feed })
  const taken = await sideBySide(rack, machine, { 'pdu-snmp': { ...v2c, plug: '3' }, fence_apc_snmp: { ...v2c, plug: '3' } })
  assert.ok(taken('pdu-snmp', 'off') < taken('fence_apc_snmp', 'off'), 'off, verified')
  assert.is((await rack.ask('pdu-snmp', 'off', { ...v3, plug: 'outlet-3' })).state, 'off')
  await machine.mustBeDead()
}))

test('two feeds of one machine: each alone, one after the other, leaves it running; both off is off', () => inRack(async (rack) => {
  const machine = await startMachine(rack, 'machine', { feeds: 2 })
  const [left, right] = machine.feeds
  assert.ok(left && right)
  const one = await startPowerStrip(rack, 'left', { 1: left })
  const two = await startPowerStrip(rack, 'right', { 1: right })
  const boot = await machine.beats()
  const off = (strip: typeof one) => rack.ask('pdu-snmp', 'off', { ...strip.v2c, plug: '1' })

  assert.is((await off(one)).state, 'off')
  await machine.mustBeatOn(boot)
  await rack.ask('pdu-snmp', 'on', { ...one.v2c, plug: '1' })
  assert.is((await off(two)).state, 'off')
  await machine.mustBeatOn(boot)

  assert.is((await off(one)).state, 'off')
  await machine.mustBeDead()
}))

test('each way of failing is told apart, and the machine goes on', () => inRack(async (rack) => {
  const machine = await startMachine(rack, 'machine')
  const strip = await startPowerStrip(rack, 'strip', { 3: machine.feed })
  const boot = await machine.beats()
  const off = (over: Readonly<Record<string, string>>) => rack.ask('pdu-snmp', 'off', { ...strip.v2c, plug: '3', power_timeout: '1', ...over })
  for (const [over, reason] of [
    [{ plug: '99' }, /^notfound/],
    [{ plug: 'nosuch' }, /^notfound/],
    [{ plug: '3,4' }, /^config/],
    [{ community: 'reads-only' }, /^privilege/],
    [{ community: 'wrong' }, /^unreachable/],
    [{ ipport: '1' }, /^unreachable/],
    [{ ...strip.v3, password: 'another-password' }, /^auth/],
    [{ ...strip.v3, username: 'nobody' }, /^auth/],
    [{ ...strip.v3, username: 'reader' }, /^privilege/],
    [{ ...strip.v3, snmp_priv_passwd: 'another-password' }, /^auth|^unreachable/],
  ] as const) {
    const word = await off(over)
    assert.equal([word.state, word.exitCode], ['failed', 1], `${JSON.stringify(over)}: ${word.text}`)
    assert.match(word.reason, reason)
    assert.not.match(word.text, /S3cret!/)
  }
  strip.fault = 'ignores'
  assert.match((await off({})).reason, /^timeout \(ordered off, and still: outlet 3 "outlet-3" reads on/)
  strip.fault = undefined
  await machine.mustBeatOn(boot)
}))

test('a mute strip, then one without a back end, then a dead one: the machine lives, and nothing says off', () => inRack(async (rack) => {
  const machine = await startMachine(rack, 'machine')
  const { v2c, process: snmpd, backEnd } = await startPowerStrip(rack, 'strip', { 3: machine.feed })
  const boot = await machine.beats()
  const ask = (action: 'off' | 'status') => rack.ask('pdu-snmp', action, { ...v2c, plug: '3' })
  process.kill(snmpd.pid, 'SIGSTOP')
  const mute = await ask('off')
  assert.equal([mute.exitCode, mute.late], [1, false], mute.text)
  process.kill(snmpd.pid, 'SIGCONT')
  await until('the strip to be back', async () => (await ask('status')).state === 'on')

  await backEnd.vanish()
  assert.is((await ask('status')).state, 'unknown')
  assert.is((await ask('off')).state, 'failed')
  await backEnd.open()
  await until('the back end to be back', async () => (await ask('status')).state === 'on')

  await snmpd.crash()
  assert.is((await ask('status')).state, 'unknown')
  assert.is((await ask('off')).state, 'failed')
  await machine.mustBeatOn(boot)
}))

test('a back end that goes in the middle of an order: whatever became of it, it is not off', () => inRack(async (rack) => {
  const machine = await startMachine(rack, 'machine')
  const strip = await startPowerStrip(rack, 'strip', { 3: machine.feed })
  const boot = await machine.beats()
  strip.fault = 'ignores'
  const asked = rack.ask('pdu-snmp', 'off', { ...strip.v2c, plug: '3', power_timeout: '4' })
  await strip.ordered()
  await strip.backEnd.vanish()
  const word = await asked
  assert.equal([word.state, word.exitCode], ['failed', 1], word.text)
  await machine.mustBeatOn(boot)
}))

test('slow is waited for; an off that comes late is failed first, and then lands', () => inRack(async (rack) => {
  const machine = await startMachine(rack, 'machine')
  const strip = await startPowerStrip(rack, 'strip', { 3: machine.feed })
  const ask = (action: 'off' | 'status', over = {}) => rack.ask('pdu-snmp', action, { ...strip.v2c, plug: '3', ...over })
  const boot = await machine.beats()
  strip.fault = { slow: 300 }
  assert.is((await ask('status')).state, 'on')
  const due = Promise.withResolvers<void>()
  strip.fault = { late: due.promise }
  assert.is((await ask('off', { power_timeout: '1' })).state, 'failed')
  await machine.mustBeatOn(boot)
  due.resolve()
  await until('the late off', async () => (await ask('status')).state === 'off')
  await machine.mustBeDead()
}))

test('two machines whose outlets are exchanged: off of the one is off of the other, and no word of the strip tells it', () => inRack(async (rack) => {
  const [one, other] = [await startMachine(rack, 'one'), await startMachine(rack, 'other')]
  const { v2c } = await startPowerStrip(rack, 'strip', { 1: other.feed, 2: one.feed })
  const boot = await one.beats()
  await other.beats()
  const word = await rack.ask('pdu-snmp', 'off', { ...v2c, plug: '1' })
  assert.equal([word.state, word.machine], ['off', undefined])
  await other.mustBeDead()
  await one.mustBeatOn(boot)
}))

test.run()
