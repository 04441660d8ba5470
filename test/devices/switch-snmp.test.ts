// Our `switch-snmp` and Debian's fence_ifmib at a bridge of Linux behind snmpd, and the frames as the judge of both.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startNetworkSwitch } from './network-switch.ts'
import { inRack, pause, until } from './rack.ts'

const test = suite('switch-snmp')

test('beside fence_ifmib: both cut the port and give it back, and the frames stop and come again', () => inRack(async (rack) => {
  const bridge = await startNetworkSwitch(rack)
  await until('frames', () => bridge.carries('p1', 'p2'))
  for (const program of ['switch-snmp', 'fence_ifmib']) {
    const ask = async (action: 'off' | 'on' | 'status', exitCode: number) => {
      const answer = await rack.ask(program, action, { ...bridge.v2c, plug: 'p1' })
      assert.is(answer.exitCode, exitCode, `${program} ${action}: ${answer.text}`)
      return answer.took
    }
    await ask('status', 0)
    const took = await ask('off', 0)
    assert.is(bridge.carries('p2', 'p1'), false, program)
    assert.is(bridge.carries('p2', 'p3'), true, `${program}: the other ports are as they were`)
    await ask('off', 0)
    await ask('status', 2)
    await ask('on', 0)
    await until(`frames after ${program}`, () => bridge.carries('p2', 'p1'))
    console.log(`${program.padEnd(18)} off ${took} ms`)
  }
  assert.is((await rack.ask('switch-snmp', 'off', { ...bridge.v3, plug: 'p1' })).state, 'off')
  assert.is(bridge.carries('p2', 'p1'), false)
}))

test('each way of failing is told apart, and the frames go on; a mute switch and a dead one are not off', () => inRack(async (rack) => {
  const bridge = await startNetworkSwitch(rack)
  const off = (over: Readonly<Record<string, string>>) => rack.ask('switch-snmp', 'off', { ...bridge.v2c, plug: 'p1', power_timeout: '1', ...over })
  const fails = async (over: Readonly<Record<string, string>>, reason: RegExp) => {
    const word = await off(over)
    assert.equal([word.state, word.exitCode, word.late], ['failed', 1, false], `${JSON.stringify(over)}: ${word.text}`)
    assert.match(word.reason, reason)
    assert.not.match(word.text, /S3cret!/)
  }
  await fails({ plug: '99' }, /^notfound/)
  await fails({ plug: 'nosuch' }, /^notfound/)
  await fails({ plug: 'p1,p2' }, /^config/)
  await fails({ community: 'reads-only' }, /^privilege/)
  await fails({ community: 'wrong' }, /^unreachable/)
  await fails({ ipport: '1' }, /^unreachable/)
  await fails({ ...bridge.v3, password: 'another-password' }, /^auth/)
  process.kill(bridge.process.pid, 'SIGSTOP')
  await fails({}, /^unreachable|^timeout/)
  process.kill(bridge.process.pid, 'SIGCONT')
  await bridge.process.crash()
  await fails({}, /^unreachable|^timeout/)
  assert.is(bridge.carries('p2', 'p1'), true)
}))

test('slow is waited for; a port wired to another machine cuts that one, and no word of the switch tells it', () => inRack(async (rack) => {
  const bridge = await startNetworkSwitch(rack)
  const ask = (action: 'off' | 'status', plug: string) => rack.ask('switch-snmp', action, { ...bridge.v2c, plug })
  process.kill(bridge.process.pid, 'SIGSTOP')
  const slow = ask('status', 'p1')
  await pause(700)
  process.kill(bridge.process.pid, 'SIGCONT')
  assert.is((await slow).state, 'on')
  await until('frames', () => bridge.carries('p1', 'p3'))
  // Meant was the machine on p1.
  const word = await ask('off', 'p2')
  assert.equal([word.state, word.machine], ['off', undefined])
  assert.equal([bridge.carries('p1', 'p3'), bridge.carries('p2', 'p3')], [true, false])
}))

test.run()
