// Against a stand-in for ipmitool: what the program tells the tool, and what it makes of the tool's answers. Whether a real
// controller understands it is the device tier's question.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inPlace, type AgentPlace } from './place.ts'

const test = suite('ipmi')
const login = { ip: '10.0.0.1', username: 'admin', password: 'hush hush' }

/** The tool keeps the power in a file; `order` and `status` are lines of shell that may change what it does. */
function tool(place: AgentPlace, { order = 'echo "$word" > "$power"; echo "Chassis Power Control: $word"', status = 'echo "Chassis Power is $(cat "$power")"', guid = 'echo "Get GUID command failed" >&2; exit 1' } = {}): { power: string; log: string } {
  const power = join(place.folder, 'power')
  const log = join(place.folder, 'log')
  writeFileSync(power, 'on\n')
  writeFileSync(join(place.folder, 'ipmitool'), [
    '#!/bin/sh', `power=${power}`, `echo "$IPMI_PASSWORD|$*" >> ${log}`, 'for word; do :; done', 'case $word in',
    `status) ${status} ;;`, `guid) ${guid} ;;`, `*) ${order} ;;`, 'esac', '',
  ].join('\n'))
  chmodSync(join(place.folder, 'ipmitool'), 0o755)
  return { power, log }
}

test('off is ordered once, and verified by asking; the password is in the environment alone', () => inPlace(async (place) => {
  const { power, log } = tool(place)
  assert.is((await place.ask('ipmi', 'status', login)).state, 'on')
  assert.is((await place.started.ask('ipmi', 'off', login)).state, 'off')
  assert.is(readFileSync(power, 'utf8'), 'off\n')
  assert.is((await place.ask('ipmi', 'status', login)).state, 'off')
  assert.is((await place.ask('ipmi', 'off', login)).state, 'off')
  assert.is((await place.ask('ipmi', 'on', login)).state, 'on')
  const calls = readFileSync(log, 'utf8').trim().split('\n')
  assert.is(calls.filter((call) => call.endsWith('chassis power off')).length, 1)
  const session = 'hush hush|-I lanplus -H 10.0.0.1 -p 623 -U admin -E -C 17 -L ADMINISTRATOR -N 1 -R 2 -v '
  assert.ok(calls.every((call) => call.startsWith(session)), calls[0])
}))

const uuid = '4c4c4544-0042-3510-8051-b7c04f4e3432'

for (const [name, guid, controller] of [
  ['its GUID', `echo "System GUID  : ${uuid}"; echo "Timestamp    : 02/15/1998 05:07:16"`, uuid],
  ['its GUID as later versions print it', `echo "System GUID   : ${uuid.toUpperCase()}"; echo "GUID Encoding : SMBIOS"`, uuid],
  ['one that nobody has set', 'echo "System GUID  : 00000000-0000-0000-0000-000000000000"', undefined],
  ['none', 'echo "Get GUID command failed: Invalid command" >&2; exit 1', undefined],
  ['nothing at all', 'exec sleep 600', undefined],
] as const) {
  test(`a controller that tells ${name}: the power is told all the same, and no GUID passes for the machine's UUID`, () => inPlace(async (place) => {
    const { log } = tool(place, { guid })
    const word = await place.started.ask('ipmi', 'status', login)
    assert.equal([word.state, word.controller, word.machine], ['on', controller, undefined], word.reason)
    await place.started.ask('ipmi', 'off', login)
    assert.is((await place.ask('ipmi', 'status', login)).state, 'off')
    assert.is(readFileSync(log, 'utf8').split('\n').filter((call) => call.endsWith('mc guid')).length, 1, 'it is asked by a status, of a machine that is on')
  }))
}

test('an order that is accepted and not carried out is not off', () => inPlace(async (place) => {
  const { power } = tool(place, { order: 'echo "Chassis Power Control: Down/Off"' })
  const word = await place.ask('ipmi', 'off', { ...login, power_timeout: '1' })
  assert.equal([word.state, readFileSync(power, 'utf8')], ['failed', 'on\n'])
  assert.match(word.reason, /^timeout \(ordered off, and still: Chassis Power is on\)/)
}))

for (const [name, status, reason] of [
  ['a wrong password', 'echo "> RAKP 2 HMAC is invalid" >&2; exit 1', /^auth \(wrong password/],
  ['an unknown user', 'echo "RAKP 2 message indicates an error : unauthorized name" >&2; exit 1', /^auth \(unknown user/],
  ['a silent controller', 'echo "Get Auth Capabilities error" >&2; echo "Error: Unable to establish IPMI v2 / RMCP+ session" >&2; exit 1', /^unreachable/],
  ['a cipher suite that is not known', 'echo "Error in open session response message : invalid authentication algorithm" >&2; echo "Error: Unable to establish IPMI v2 / RMCP+ session" >&2; exit 1', /^config \(the controller does not know this cipher suite \(ipmitool: Error in open session/],
  ['a privilege too low', 'echo "Set Session Privilege Level to ADMINISTRATOR failed: insufficient privilege" >&2; exit 1', /^privilege/],
  ['an answer that is neither on nor off', 'echo "Chassis Power is unknown"', /^device \(Chassis Power is unknown\)/],
  ['no answer, well ended', 'exit 0', /^device \(ipmitool told no chassis power\)/],
  ['a crash after the word off', 'echo "Chassis Power is off"; exit 139', /^device/],
] as const) {
  test(`${name} is unknown, with its reason`, () => inPlace(async (place) => {
    tool(place, { status })
    const word = await place.ask('ipmi', 'status', login)
    assert.is(word.state, 'unknown')
    assert.match(word.reason, reason)
    assert.not.match(JSON.stringify(word), /hush/)
  }))
}

test('a tool that hangs is ended, and the program says so before its deadline', () => inPlace(async (place) => {
  tool(place, { status: 'exec sleep 600' })
  const word = await place.started.ask('ipmi', 'status', { ...login, login_timeout: '0.5' })
  assert.equal([word.state, word.late], ['unknown', false])
  assert.match(word.reason, /^timeout/)
}))

for (const [name, over] of [
  ['an option for an address', { ip: '-H10.0.0.2' }], ['an option for a name', { username: '-f/etc/shadow' }], ['a port that is no number', { ipport: '623 -v' }],
  ['an unknown level', { privlvl: 'oem' }], ['a missing password', { password: '' }],
] as const) {
  test(`${name} never reaches the tool`, () => inPlace(async (place) => {
    const { log } = tool(place)
    const word = await place.ask('ipmi', 'off', { ...login, ...over })
    assert.is(word.state, 'failed')
    assert.match(word.reason, /^config/)
    assert.not.ok(existsSync(log))
  }))
}

test.run()
