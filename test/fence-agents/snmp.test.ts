// What every program that speaks SNMP shares, by the one for power strips: who is believed, and what is no answer.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { spawnSync } from 'node:child_process'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { inPlace, type AgentPlace } from './place.ts'
import { startSnmpDevice, v2c, v3, type SnmpDevice } from './snmp-device.ts'

const test = suite('snmp')

const state = '1.3.6.1.4.1.318.1.1.12.3.5.1.1.4.3'

interface World {
  readonly strip: SnmpDevice
  readonly place: AgentPlace
  readonly with: (over?: Readonly<Record<string, string>>) => Record<string, string>
  power(): 'on' | 'off'
}

/** A strip whose third outlet is on. */
async function inWorld(work: (world: World) => Promise<void>): Promise<void> {
  const strip = await startSnmpDevice({ [state]: { type: 'Integer', value: 1 } }, (_, value, values) => { values.set(state, { type: 'Integer', value }) })
  const login = { ip: '127.0.0.1', ipport: String(strip.port), plug: '3', model: 'apc-rpdu', ...v2c }
  try {
    await inPlace((place) => work({ strip, place, with: (over = {}) => ({ ...login, ...over }), power: () => (strip.values.get(state)?.value === 1 ? 'on' : 'off') }))
  } finally {
    await strip.close()
  }
}

for (const [name, over, reason] of [
  ['another community', { community: 'guess' }, /^unreachable \(no answer.*or another community/],
  ['another user', { ...v3, username: 'nobody' }, /^auth \(.*Unknown User Name/],
  // snmpd says which of the two is wrong where it is that of authentication; this device says nothing.
  ['another password', { ...v3, password: 'guessguess' }, /^unreachable \(no answer.*or a wrong password/],
  ['another password of encryption', { ...v3, snmp_priv_passwd: 'guessguess' }, /^unreachable \(no answer.*or a wrong password/],
] as const) {
  test(`${name}: no state, and nothing is written`, () => inWorld(async ({ place, strip, with: at }) => {
    for (const action of ['status', 'off'] as const) {
      const word = await place.ask('pdu-snmp', action, at({ ...over, shell_timeout: '0.6' }))
      assert.equal([word.state, word.late], [action === 'off' ? 'failed' : 'unknown', false])
      assert.match(word.reason, reason)
      assert.not.match(JSON.stringify(word), /hush|guess/)
    }
    assert.equal(strip.orders, [])
  }))
}

for (const [name, fault, reason] of [
  ['mute', 'mute', /^unreachable \(no answer/], ['sending garbage', 'garbage', /^unreachable|^device/], ['answering another question', 'another answer', /^device/],
] as const) {
  test(`a strip that is ${name} has no state, and the program ends in time`, () => inWorld(async ({ place, strip, with: at }) => {
    strip.fault = fault
    const word = await place.ask('pdu-snmp', 'status', at({ shell_timeout: '0.6' }))
    assert.equal([word.state, word.late], ['unknown', false])
    assert.match(word.reason, reason)
  }))
}

test('a slow strip is waited for', () => inWorld(async ({ place, strip, with: at }) => {
  strip.fault = { slow: 700 }
  assert.is((await place.ask('pdu-snmp', 'status', at())).state, 'on')
}))

test('nobody at the port is told at once', () => inWorld(async ({ place, strip, with: at }) => {
  await strip.close()
  assert.match((await place.ask('pdu-snmp', 'status', at())).reason, /^unreachable \(.*ECONNREFUSED/)
  strip.close = () => Promise.resolve()
}))

test('over version 3 the same, authenticated and encrypted', () => inWorld(async ({ place, power, with: at }) => {
  const { community: _, ...rest } = at(v3)
  assert.is((await place.ask('pdu-snmp', 'status', rest)).state, 'on')
  assert.is((await place.started.ask('pdu-snmp', 'off', rest)).state, 'off')
  assert.is(power(), 'off')
}))

test('over version 3 an answer without a seal is nobody\'s word', () => inWorld(async ({ place, strip, with: at }) => {
  strip.values.set(state, { type: 'Integer', value: 2 })
  strip.fault = 'unsealed'
  const word = await place.ask('pdu-snmp', 'status', at(v3))
  assert.is(word.state, 'unknown')
  assert.match(word.reason, /^auth \(an answer that is not sealed/)
}))

test('metadata and a refusal need no SNMP', () => {
  const program = fileURLToPath(new URL('../../fence-agents/pdu-snmp/pdu-snmp.ts', import.meta.url))
  const loaded = (more: string) => spawnSync(execPath, ['--input-type=module', '-e', `await import(${JSON.stringify(program)})${more}; console.log(process.moduleLoadList.join('\\n'))`], { encoding: 'utf8' }).stdout
  assert.not.match(loaded(''), /NativeModule crypto$/m)
  assert.match(loaded('; await import("net-snmp")'), /NativeModule crypto$/m, 'the list tells what was loaded')
})

test.run()
