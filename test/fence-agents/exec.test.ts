// A person's script behind the program: a good one, and such as break in the ways that scripts do.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { chmodSync, existsSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { linesOf, testOver } from './agent-test.ts'
import { inPlace } from './place.ts'
import { relay } from './relay.ts'

const test = suite('exec')

test('off, off, status, on: each by the script, and read back in a run of its own', () => inPlace(async (place) => {
  const { at, environment, told, power } = relay(place)
  const ask = (action: 'on' | 'off' | 'status') => place.ask('exec', action, at, undefined, environment)
  assert.is((await ask('status')).state, 'on')
  assert.is((await place.started.ask('exec', 'off', at, undefined, environment)).state, 'off')
  assert.equal([power('1'), power('2')], ['off', 'on'])
  assert.is((await ask('off')).state, 'off')
  assert.is((await ask('on')).state, 'on')
  const actions = told().split('\n').filter((line) => line.startsWith('action='))
  assert.equal(actions.slice(1, 4), ['action=status', 'action=off', 'action=status'])
  assert.is(actions.filter((line) => line !== 'action=status').length, 2, 'off once and on once')
  assert.match(told(), /action=off\nplug=1\npassword=hush hush\nboard=2\ninvert=0\n/)
}))

test('every clause of the contract is kept', () => inPlace(async (place) => {
  const { params, environment } = relay(place)
  const rows = await testOver({ run: (asked) => place.raw(asked.agent, asked.stdin, asked.within, { ...asked.environment, ...environment }) }, 'exec', linesOf(params), () => undefined)
  assert.equal(rows.filter(({ verdict }) => verdict !== 'kept').map(({ clause, verdict }) => [clause, verdict]), [
    ['off at a device that never answers: exit 1, by itself, within 30 s', 'not run'], ['status where nobody listens: exit 1', 'not run'],
  ], 'the address is the script\'s own affair')
}))

for (const [name, script, reason] of [
  ['a script that says done and did nothing', { off: 'exit 0' }, /^timeout \(ordered off, and still: exit 0/],
  ['a script that fails at the order', { off: 'echo "relay stuck" >&2; exit 7' }, /^device \(the script ends 7 on off: relay stuck/],
  ['a script that switched and then could not say so', { off: 'echo gone > "$outlet"' }, /^timeout/],
  ['a script that dies', { off: 'kill -9 $$' }, /^device \(the script was ended by a signal/],
  ['a script that hangs at the order', { off: 'exec sleep 600' }, /^timeout \(relay gave no answer/],
  ['a script that hangs and whose child holds on', { off: 'sleep 600 & sleep 600' }, /^timeout \(relay gave no answer/],
] as const) {
  test(`${name} is not off`, () => inPlace(async (place) => {
    const { at, environment } = relay(place, script)
    const word = await place.started.ask('exec', 'off', { ...at, power_timeout: '2' }, undefined, environment)
    assert.equal([word.state, word.late], ['failed', false])
    assert.match(word.reason, reason)
    assert.not.match(JSON.stringify(word), /hush/)
  }))
}

for (const [name, status, state, reason] of [
  ['an exit that means nothing', 'exit 3', 'unknown', /^device \(the script ends 3 on status/],
  ['a word that contradicts the exit', 'echo \'holdfast {"v":1,"state":"on","evidence":"x"}\'; exit 2', 'unknown', /says on/],
  ['its own reason', 'echo \'holdfast {"v":1,"state":"unknown","evidence":"the bus is silent","reason":"unreachable"}\'; exit 1', 'unknown', /^unreachable \(.*the bus is silent/],
  ['a line that is none', 'echo "holdfast {"; exit 2', 'off', /^/],
  ['output without end', 'head -c 3000000 /dev/zero | tr "\\0" x; exit 0', 'on', /^/],
] as const) {
  test(`${name}: ${state}`, () => inPlace(async (place) => {
    const { at, environment } = relay(place, { status })
    const word = await place.ask('exec', 'status', at, undefined, environment)
    assert.is(word.state, state)
    assert.match('reason' in word ? String(word.reason) : '', reason)
    assert.ok(JSON.stringify(word).length < 2_000)
  }))
}

test('a machine that the script knows is handed on', () => inPlace(async (place) => {
  const machine = '4c4c4544-0042-3510-8051-b7c04f4e3432'
  const { at, environment } = relay(place, { status: `echo 'holdfast {"v":1,"state":"on","evidence":"led is green","machine":"${machine}"}'; exit 0` })
  const word = await place.ask('exec', 'status', at, undefined, environment)
  assert.equal([word.machine, word.evidence], [machine, 'exit 0: exit 0: led is green'])
}))

test('what the operator has not written down, or others may write, is not run', () => inPlace(async (place) => {
  const { at, environment } = relay(place)
  const { folder } = place
  const refused = async (over: Readonly<Record<string, string>>, why: RegExp, by = environment) => {
    const word = await place.ask('exec', 'off', { ...at, ...over }, undefined, by)
    assert.equal([word.state, word.reason.split(' ')[0]], ['failed', 'config'])
    assert.match(word.reason, why)
  }
  await refused({ program: '/bin/sh' }, /is not in/)
  await refused({ program: 'scripts/relay' }, /not a whole path/)
  await refused({ program: `${folder}/scripts/../scripts/relay` }, /is not in/)
  await refused({}, /is not in \/etc\/holdfast\/exec-allowed/, {})
  chmodSync(join(folder, 'scripts', 'relay'), 0o775)
  await refused({}, /may be written by others/)
  chmodSync(join(folder, 'scripts', 'relay'), 0o755)
  chmodSync(join(folder, 'scripts'), 0o777)
  await refused({}, /may be written by others/)
  chmodSync(join(folder, 'scripts'), 0o755)
  chmodSync(join(folder, 'allowed'), 0o666)
  await refused({}, /may be written by others/)
  chmodSync(join(folder, 'allowed'), 0o644)
  symlinkSync(join(folder, 'nowhere'), join(folder, 'dangling'))
  writeFileSync(join(folder, 'allowed'), `${folder}/dangling\n`)
  await refused({ program: `${folder}/dangling` }, /not there/)
  assert.not.ok(existsSync(join(folder, 'told')))
}))

test('a script whose own interpreter is not there is told for what it is', () => inPlace(async (place) => {
  const { at, environment } = relay(place)
  writeFileSync(join(place.folder, 'scripts', 'relay'), '#!/nonexistent/python\n')
  assert.match((await place.ask('exec', 'off', at, undefined, environment)).reason, /^config \(relay is not installed/)
}))

test('no parameter becomes an action, a line, or a word of a shell', () => inPlace(async (place) => {
  const { at, environment, told } = relay(place)
  for (const parameters of ['action=off', 'ACTION=off', 'plug=2', 'board', '=2', 'board=2 pass-word=x password=y']) {
    assert.match((await place.ask('exec', 'status', { ...at, parameters }, undefined, environment)).reason, /^config/, parameters)
  }
  assert.is((await place.ask('exec', 'status', { ...at, parameters: 'x=$(touch${IFS}evil) y=`id`;z' }, undefined, environment)).state, 'on')
  assert.match(told(), /\nx=\$\(touch\$\{IFS\}evil\)\ny=`id`;z\n/)
}))

test.run()
