// Our `fc-switch` and Debian's fence_brocade at one switch: what one orders the other reads, and no other port is touched.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { FabricOs } from '../fence-agents/fabric-os.ts'
import { startFcSwitch } from './fc-switch.ts'
import { inRack, until, type Parameters } from './rack.ts'

const test = suite('fc-switch')

test('beside fence_brocade: what one cuts the other reads off, and gives back', () => inRack(async (rack) => {
  const { fabric, ours, theirs } = await startFcSwitch(rack)
  const plug = '2'
  const asked = async (agent: 'fc-switch' | 'fence_brocade', action: 'status' | 'off' | 'on') => {
    const answer = await rack.ask(agent, action, { ...(agent === 'fc-switch' ? ours : theirs), plug })
    console.log(`${agent.padEnd(14)} ${action.padEnd(6)} ${answer.took} ms: ${answer.state}`)
    return answer.state
  }
  const cut = () => [...fabric.ports].filter(([, port]) => port.cut !== 'no').map(([name]) => name)
  for (const [one, other] of [['fc-switch', 'fence_brocade'], ['fence_brocade', 'fc-switch']] as const) {
    assert.is(await asked(other, 'status'), 'on')
    assert.is(await asked(one, 'off'), 'off')
    assert.equal(cut(), [plug])
    assert.is(await asked(other, 'status'), 'off')
    assert.is(await asked(other, 'on'), 'on')
    assert.is(await asked(one, 'status'), 'on')
    assert.equal(cut(), [])
  }
  assert.equal(fabric.orders, ['persistent disable 2', 'persistent enable 2', 'persistent disable 2', 'persistent enable 2'])
}))

test('a wrong password and a port that is not there: both fail, and nothing is cut', () => inRack(async (rack) => {
  const { fabric, ours, theirs } = await startFcSwitch(rack)
  for (const over of [{ plug: '2', password: 'wrong' }, { plug: '99' }]) {
    for (const [agent, login] of [['fc-switch', ours], ['fence_brocade', theirs]] as const) {
      const answer = await rack.ask(agent, 'off', { ...login, ...over })
      assert.equal([answer.state, answer.exitCode], ['failed', 1], `${agent}: ${answer.text}`)
      assert.not.match(answer.text, /hush hush/)
    }
  }
  assert.equal(fabric.orders, [])
}))

/** What the switch is like, what is asked besides, and the reason. */
const faults: readonly (readonly [FabricOs['fault'], Parameters, RegExp])[] = [
  ['mute', { shell_timeout: '2', login_timeout: '2' }, /^timeout|^unreachable/],
  ['hangs up', {}, /^unreachable|^device/],
  ['not permitted', {}, /^privilege/],
  ['disobedient', { power_timeout: '1' }, /^timeout \(ordered off, and still/],
  [{ prints: 'switchd: not running\n' }, {}, /^device|^config/],
]

test('each way of failing is told apart; a mute switch and a dead one are not off, and nothing is cut', () => inRack(async (rack) => {
  const { fabric, ours } = await startFcSwitch(rack)
  for (const [fault, over, reason] of faults) {
    fabric.fault = fault
    const word = await rack.ask('fc-switch', 'off', { ...ours, plug: '2', ...over })
    assert.equal([word.state, word.exitCode, word.late], ['failed', 1, false], `${JSON.stringify(fault)}: ${word.text}`)
    assert.match(word.reason, reason)
    assert.is((await rack.ask('fc-switch', 'status', { ...ours, plug: '2', ...over })).state, fault === 'not permitted' || fault === 'disobedient' ? 'on' : 'unknown')
  }
  await fabric.close()
  for (const action of ['off', 'status'] as const) assert.match((await rack.ask('fc-switch', action, { ...ours, plug: '2' })).reason, /^unreachable/)
  assert.is(fabric.ports.get('2')?.cut, 'no')
}))

test('a switch that hangs up in the middle of an order: whatever became of it, it is not off', () => inRack(async (rack) => {
  const { fabric, ours } = await startFcSwitch(rack)
  fabric.fault = 'disobedient'
  fabric.heard = () => queueMicrotask(() => { fabric.fault = 'hangs up' }) // once it has not obeyed
  const word = await rack.ask('fc-switch', 'off', { ...ours, plug: '2', power_timeout: '3' })
  assert.equal([word.state, word.exitCode, word.late, fabric.orders], ['failed', 1, false, ['persistent disable 2']], word.text)
  assert.is(fabric.ports.get('2')?.cut, 'no')
}))

test('slow is waited for; an off that comes late is failed first, and then lands', () => inRack(async (rack) => {
  const { fabric, ours } = await startFcSwitch(rack)
  const ask = (action: 'off' | 'on' | 'status', over: Parameters = {}) => rack.ask('fc-switch', action, { ...ours, plug: '2', ...over })
  fabric.fault = { lag: 1_500 }
  assert.is((await ask('off')).state, 'off')
  fabric.fault = undefined
  assert.is((await ask('on')).state, 'on')
  fabric.fault = { lag: 4_000 }
  const word = await ask('off', { power_timeout: '1' })
  assert.equal([word.state, fabric.ports.get('2')?.cut], ['failed', 'no'], word.text)
  await until('the late off', async () => (await ask('status')).state === 'off')
  assert.is(fabric.ports.get('2')?.cut, 'persistent')
}))

test.run()
