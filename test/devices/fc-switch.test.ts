// Our `fc-switch` and Debian's fence_brocade at one switch: what one orders the other reads, and no other port is touched.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startFcSwitch } from './fc-switch.ts'
import { inRack } from './rack.ts'

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

test.run()
