import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { inputOf, offersOutlets, readEnd, readOutlets, type AgentEnd, type AgentParameters } from '../../core/contract.ts'

const test = suite('contract')

function ended(over: Partial<AgentEnd>): AgentEnd {
  return { stdout: '', stderr: '', late: false, gone: true, ...over }
}

/** exactOptionalPropertyTypes: an exit code that is not there is a key that is not there. */
const noCode = ended({})

function refusals(parameters: AgentParameters): string[] {
  const input = inputOf('off', parameters)
  return 'refused' in input ? input.refused.map((refusal) => refusal.says) : []
}

test('the action stands first, exactly once, and the node name last', () => {
  assert.equal(inputOf('off', { ip: '10.0.0.1', plug: '3' }, 'node-1'), { text: 'action=off\nip=10.0.0.1\nplug=3\nnodename=node-1\n' })
})

test('a value that programs would strip is given a pair of quotes to lose', () => {
  assert.equal(inputOf('status', { password: ' a b ', user: '"x"', empty: '' }), { text: 'action=status\npassword=" a b "\nuser=""x""\nempty=\n' })
})

for (const [name, parameters, pattern] of [
  ['a line break in a value', { plug: '1', password: 'a\naction=on' }, /line break/],
  ['a carriage return in a value', { password: 'a\raction=on' }, /line break/],
  ['a NUL in a value', { password: 'a\0b' }, /NUL/],
  ['a blank in a key', { 'action ': 'status' }, /not a name/],
  ['an equals sign in a key', { 'a=b': 'c' }, /not a name/],
  ['an action among the parameters', { action: 'status' }, /coordinator alone/],
  ['an action in capitals', { ACTION: 'reboot' }, /coordinator alone/],
  ['the old name of action', { option: 'reboot' }, /coordinator alone/],
  ['a list of plugs', { plug: '3,4' }, /more than one/],
  ['a list of plugs by the old name', { port: '3,4' }, /more than one/],
  ['a list of plugs by its own separator', { plug: '3;4', plug_separator: ';' }, /more than one/],
  ['an empty plug', { plug: ' ' }, /empty/],
  ['two names of the outlet', { plug: '1', port: '2' }, /both name the outlet/],
  ['one parameter twice', { 'power-wait': '1', power_wait: '2' }, /twice/],
  ['a cycle', { method: 'cycle' }, /cycle/],
  ['a cycle in capitals', { METHOD: ' Cycle' }, /cycle/],
  ['a delay', { delay: '5' }, /delay/],
  ['missing as off', { missing_as_off: '1' }, /cannot be found/],
  ['missing as off, written otherwise', { 'missing-as-off': 'true' }, /cannot be found/],
  ['no time-outs', { disable_timeout: '1' }, /for ever/],
  ['help, which ends 0', { help: '1' }, /without doing/],
  ['version, which ends 0', { version: '1' }, /without doing/],
  ['a debug file, which takes secrets down', { debug_file: '/tmp/x' }, /secrets/],
  ['a script by its path', { password_script: '/bin/x' }, /path/],
  ['a script of variables, which is run for them', { openrc: '/bin/x' }, /a shell would run/],
  ['a log, which takes secrets down', { logfile: '/tmp/x' }, /secrets/],
] as const) {
  test(`refused: ${name}`, () => {
    const found = refusals(parameters)
    assert.ok(found.some((says) => pattern.test(says)), found.join('; '))
  })
}

test('every refusal is listed at once, and none repeats a value', () => {
  const found = refusals({ plug: '1,2', password: 'hush\nhush', delay: '3' })
  assert.is(found.length, 3)
  assert.not.match(found.join(' '), /hush/)
})

test('a program is never named by its path, whichever tool of another one it is', () => {
  for (const key of ['passwd_script', 'password-script', 'snmp_priv_passwd_script', 'ipmitool_path', 'ssh-path', 'sudo_path', 'snmpset_path', 'Telnet_Path', 'sg_persist_path']) {
    assert.equal(refusals({ [key]: '/tmp/hush' }), [`${key} names a program by its path`])
  }
  assert.equal(refusals({ api_path: '/api', store_path: '/var/lib/keys', vboxmanage_path: '/usr/local/bin/VBoxManage', identity_file: '/k' }), [], 'no program of this machine')
})

test('a refused node name starts nothing', () => {
  assert.ok('refused' in inputOf('off', {}, 'a\nb'))
})

test('what is harmless passes', () => {
  assert.equal(refusals({ ip: '::1', plug: 'node-1', method: 'onoff', missing_as_off: '0', disable_timeout: 'false', 'power-wait': '2' }), [])
})

for (const [action, end, state] of [
  ['status', ended({ exitCode: 0 }), 'on'],
  ['status', ended({ exitCode: 2 }), 'off'],
  ['status', ended({ exitCode: 1 }), 'unknown'],
  ['status', ended({ exitCode: 3 }), 'unknown'],
  ['status', ended({ exitCode: 127 }), 'unknown'],
  ['status', noCode, 'unknown'],
  ['status', ended({ exitCode: 2, late: true }), 'unknown'],
  ['status', ended({ exitCode: 2, gone: false }), 'unknown'],
  ['status', ended({ exitCode: 1, stdout: 'Status: OFF' }), 'unknown'],
  ['status', ended({ exitCode: 1, stdout: 'holdfast {"v":1,"state":"off"}' }), 'unknown'],
  ['status', ended({ refused: 'there is no program' }), 'unknown'],
  ['off', ended({ exitCode: 0 }), 'off'],
  ['off', ended({ exitCode: 2 }), 'failed'],
  ['off', ended({ exitCode: 1, stdout: 'Success: Powered OFF' }), 'failed'],
  ['off', noCode, 'unknown'],
  ['off', ended({ late: true }), 'unknown'],
  ['off', ended({ exitCode: 0, gone: false }), 'unknown'],
  ['off', ended({ refused: 'no' }), 'unknown'],
  ['on', ended({ exitCode: 0 }), 'on'],
  ['on', ended({ exitCode: 2 }), 'failed'],
] as const) {
  test(`${action} that ended with ${JSON.stringify(end)} is ${state}`, () => {
    assert.is(readEnd(action, end).state, state)
  })
}

test('a program that contradicts its own exit code is not believed', () => {
  const word = readEnd('status', ended({ exitCode: 2, stdout: 'Status: OFF\nholdfast {"v":1,"state":"on"}\n' }))
  assert.is(word.state, 'unknown')
  assert.match(word.reason, /contradicts itself/)
  assert.is(readEnd('off', ended({ exitCode: 0, stdout: 'holdfast {"v":1,"state":"unknown"}\n' })).state, 'unknown')
})

test('the last line tells evidence, reason and the machine', () => {
  const line = 'holdfast {"v":1,"state":"off","evidence":"PowerState Off","machine":"AAAAAAAA-0000-0000-0000-000000000001"}'
  const word = readEnd('status', ended({ exitCode: 2, stdout: `Status: OFF\n${line}\n` }))
  assert.equal(word, { state: 'off', reason: '', evidence: 'exit 2: PowerState Off', machine: 'aaaaaaaa-0000-0000-0000-000000000001' })
  const failed = readEnd('off', ended({ exitCode: 1, stdout: 'holdfast {"v":1,"state":"unknown","evidence":"401","reason":"auth"}' }))
  assert.match(failed.reason, /^auth \(401\)\. See the user and the password/)
})

for (const [name, line] of [
  ['broken', 'holdfast {"state":'], ['not an object', 'holdfast {}[]'], ['with other types', 'holdfast {"state":5,"evidence":{},"machine":true}'],
  ['with a machine that is no UUID', 'holdfast {"machine":"any"}'], ['not the last', 'holdfast {"state":"on","machine":"aaaaaaaa-0000-0000-0000-000000000001"}\nmore'],
  ['endless', `holdfast {"state":"on","evidence":"${'x'.repeat(5_000)}"}`],
] as const) {
  test(`a last line that is ${name} leaves the exit code alone`, () => {
    const word = readEnd('status', ended({ exitCode: 2, stdout: line }))
    assert.is(word.state, 'off')
    assert.is(word.machine, undefined)
  })
}

for (const [text, reason] of [
  ['Error: RAKP 2 HMAC is invalid', /^auth: wrong password \(.*\)\. See the user and the password in the Secret/],
  ['Unable to connect/login to fencing device', /^auth, or unreachable \(.*\)\. See the user.* See whether address and port are right/],
  ['Timed out waiting to power OFF', /^timeout: .*may still land.*give it more time\.$/], ['Returned 1: Timeout: No Response', /^unreachable, or auth: wrong community/],
  ['Error in packet: noAccess', /^privilege, or notfound: .*Give this user the right to switch.*See whether plug=/], ['Traceback (most recent call last):', /^program: it broke/],
  ['something new', /^program \(something new\)\. Read its own words/], ["something new\nERROR: Please use '-h' for usage", /^program \(something new\)\./],
] as const) {
  test(`the reason of "${text}" is told`, () => {
    assert.match(readEnd('off', ended({ exitCode: 1, stderr: `x\n${text}\n` })).reason, reason)
  })
}

for (const [what, end, reason] of [
  ['its deadline', { late: true }, /^timeout: ended at its deadline\. See why the device is slow/],
  ['a signal', {}, /^program: ended by a signal\. Read its own words/],
  ['nothing, since something of it runs on', { gone: false }, /^program: something of it still runs and cannot be ended\. /],
  ['no start', { refused: 'there is no program redfish' }, /^config: not started: there is no program redfish\. Correct the ConfigMap/],
  ['no seat', { refused: '32 programs were running all the while', refusedFor: 'busy' }, /^busy: not started: 32 programs/],
  ['two words', { exitCode: 0, stdout: 'holdfast {"state":"unknown"}' }, /^program: contradicts itself: .*\. Read its own words/],
] as const) {
  test(`what its runner tells of an end by ${what} has a type and says what a person can do`, () => assert.match(readEnd('off', ended(end)).reason, reason))
}

test('a type that the program gives without advice is given ours, and a word that is no type none', () => {
  const told = ['busy', 'weather', 'toString'].map((reason) => readEnd('off', ended({ exitCode: 1, stdout: `holdfast ${JSON.stringify({ evidence: 'e', reason })}` })).reason)
  assert.match(told[0] ?? '', /^busy \(e\)\. See what else asks this device/)
  assert.equal(told.slice(1), ['weather (e)', 'toString (e)'])
})

test('what a person can do stands after the reason, wherever that goes', () => {
  const line = 'holdfast {"v":1,"state":"unknown","evidence":"401","reason":"auth","advice":"See the password\\nin the Secret."}'
  assert.is(readEnd('off', ended({ exitCode: 1, stdout: line })).reason, 'auth (401). See the password in the Secret.')
  assert.is(readEnd('status', ended({ exitCode: 1, stdout: line })).reason, 'auth (401). See the password in the Secret.')
  assert.is(readEnd('status', ended({ exitCode: 2, stdout: 'holdfast {"advice":"All is well."}' })).reason, '')
  assert.ok(readEnd('off', ended({ exitCode: 1, stdout: `holdfast {"advice":"${'x'.repeat(2_000)}"}` })).reason.length < 800)
  assert.is(readEnd('off', ended({ exitCode: 1, stderr: 'no', stdout: 'holdfast {"advice":5}' })).reason, 'program (no). Read its own words, and try the program by itself with the same parameters.')
})

const addressesIn = (exitCode: number, addresses: unknown) => readEnd('status', ended({ exitCode, stdout: `holdfast ${JSON.stringify({ v: 1, addresses })}` })).addresses

test('a GUID of its controller\'s own is kept apart from the machine\'s UUID', () => {
  for (const [said, controller] of [['AAAAAAAA-0000-0000-0000-000000000001', 'aaaaaaaa-0000-0000-0000-000000000001'], ['any', undefined]] as const) {
    const word = readEnd('status', ended({ exitCode: 0, stdout: `holdfast ${JSON.stringify({ state: 'on', controller: said })}` }))
    assert.equal([word.controller, word.machine], [controller, undefined])
  }
})

test('the addresses that the device gives the machine are kept, whatever its power', () => {
  for (const exitCode of [0, 1, 2]) assert.equal(addressesIn(exitCode, ['10.0.0.5', 'FD00::5']), ['10.0.0.5', 'fd00::5'])
  for (const none of [undefined, [], '10.0.0.5', { 0: '10.0.0.5' }, [5], ['a name'], ['10.0.0.5', 'x'], Array.from({ length: 65 }, () => '10.0.0.5')]) assert.is(addressesIn(2, none), undefined)
})

test('an excerpt is short and has no control characters', () => {
  const word = readEnd('off', ended({ exitCode: 1, stderr: `\u001b[31m${'x'.repeat(2_000)}` }))
  assert.ok(word.reason.length < 400)
  assert.not.match(word.reason, /\p{Cc}/u)
})

const outlets = (over: Partial<AgentEnd>): string => [...readOutlets(ended({ exitCode: 0, stdout: '1,web,ON\n2,db,OFF\n', ...over }))].map((pair) => pair.join(' ')).join(', ')

test('a list of outlets with their states is read line by line, and what is doubtful is not known', () => {
  assert.is(outlets({}), 'web on, db off, 1 on, 2 off')
  assert.is(outlets({ stdout: '1,a, b,ON\r\n2,,UNKNOWN\n3,c,on\n4,d\nNOTICE: List option is not working on this device yet\nN/A\n' }), 'a, b on, c on, 1 on, 2 unknown, 3 on')
  assert.is(outlets({ stdout: '1,,ON\n1,,ON\n' }), '1 unknown', 'told twice')
  for (const over of [{ exitCode: 1 }, { late: true }, { gone: false }, { refused: 'no such program' }] as const) assert.is(outlets(over), '', JSON.stringify(over))
  assert.is([...readOutlets(ended({ exitCode: 0, stdout: Array.from({ length: 5_000 }, (_, index) => `${index},,ON`).join('\n') }))].length, 4_096)
})

test('an outlet goes by its name in a list as well, where that is its alone and no number', () => {
  assert.is(outlets({ stdout: '1,web,ON\n2,web,ON\n' }), 'web unknown, 1 on, 2 on', 'two of one name')
  assert.is(outlets({ stdout: '1,2,ON\n2,1.1,OFF\n3,4,OFF\n' }), '1 on, 2 off, 3 off', 'a number is an outlet\'s own')
  assert.is(outlets({ stdout: 'web,db,ON\ndb,web,OFF\n' }), 'db off, web on')
})

test('only who says so tells the states of all outlets: a plain list has none', () => {
  assert.equal(['list', 'list-status'].map((name) => offersOutlets(`<actions><action name="status" /><action name="${name}" /></actions>`)), [false, true])
})

test.run()
