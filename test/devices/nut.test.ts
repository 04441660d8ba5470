// Our `nut` at Network UPS Tools themselves. There is no program of others to put beside it; NUT's own client is the judge.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { inRack, until } from './rack.ts'
import { startUpsServer } from './ups-server.ts'

const test = suite('nut')

test('off and on of one outlet, as upsc reads it, and of no other', () => inRack(async (rack) => {
  const { login, variable } = await startUpsServer(rack)
  const ask = (action: 'off' | 'on' | 'status') => rack.ask('nut', action, { ...login, plug: 'outlet-2' })
  assert.is((await ask('status')).exitCode, 0)
  assert.is((await ask('off')).exitCode, 0)
  assert.equal([variable('outlet.1.status'), variable('outlet.2.status')], ['on', 'off'])
  assert.is((await ask('off')).exitCode, 0)
  assert.is((await ask('status')).exitCode, 2)
  assert.is((await ask('on')).exitCode, 0)
  assert.is(variable('outlet.2.status'), 'on')
}))

test('each way of failing is told apart, and nothing is switched', () => inRack(async (rack) => {
  const server = await startUpsServer(rack)
  const off = (over: Readonly<Record<string, string>>) => rack.ask('nut', 'off', { ...server.login, plug: '1', power_timeout: '1', login_timeout: '2', shell_timeout: '2', ...over })
  const fails = async (over: Readonly<Record<string, string>>, reason: RegExp) => {
    const word = await off(over)
    assert.equal([word.state, word.exitCode, word.late], ['failed', 1, false], `${JSON.stringify(over)}: ${word.text}`)
    assert.match(word.reason, reason)
    assert.not.match(word.text, /S3cret!/)
  }
  await fails({ password: 'wrong' }, /^auth|^privilege/)
  await fails({ username: 'nobody' }, /^auth|^privilege/)
  await fails({ username: 'viewer' }, /^auth|^privilege/)
  await fails({ plug: '99' }, /^notfound/)
  await fails({ ups: 'nosuch' }, /^notfound/)
  await fails({ plug: '1,2' }, /^config/)
  await fails({ ipport: '1' }, /^unreachable/)
  assert.is(server.variable('outlet.1.status'), 'on')

  process.kill(server.process.pid, 'SIGSTOP')
  await fails({}, /^timeout|^unreachable/)
  process.kill(server.process.pid, 'SIGCONT')
  await until('upsd to be back', async () => (await rack.ask('nut', 'status', { ...server.login, plug: '1' })).state === 'on')
  // The driver is what reads the device: without it, what upsd still knows is no answer.
  await server.driver.crash()
  await until('upsd to miss its driver', async () => (await rack.ask('nut', 'status', { ...server.login, plug: '1' })).state === 'unknown')
  assert.is((await off({})).state, 'failed')
  await server.process.crash()
  await fails({}, /^unreachable/)
}))

test.run()
