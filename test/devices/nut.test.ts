// Our `nut` at Network UPS Tools themselves. There is no program of others to put beside it; NUT's own client is the judge.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { execFileSync } from 'node:child_process'
import { inRack, pause, until } from './rack.ts'
import { startUpsServer, type UpsServer } from './ups-server.ts'

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
  // Without its driver, what upsd still knows is no answer.
  await server.backEnd.vanish()
  assert.is((await rack.ask('nut', 'status', { ...server.login, plug: '1' })).state, 'unknown')
  assert.is((await off({})).state, 'failed')
  await server.process.crash()
  await fails({}, /^unreachable/)
}))

test('slow is waited for; an off that comes late is failed first, and then lands', () => inRack(async (rack) => {
  const server = await startUpsServer(rack)
  const ask = (action: 'off' | 'status', over = {}) => rack.ask('nut', action, { ...server.login, plug: '1', ...over })
  process.kill(server.process.pid, 'SIGSTOP')
  const slow = ask('status')
  await pause(700)
  process.kill(server.process.pid, 'SIGCONT')
  assert.is((await slow).state, 'on')

  // upsd takes the order, and its driver does not stir.
  process.kill(server.driver.pid, 'SIGSTOP')
  const word = await ask('off', { power_timeout: '1' })
  assert.equal([word.state, word.exitCode, server.variable('outlet.1.status')], ['failed', 1, 'on'], word.text)
  assert.match(word.reason, /^timeout \(ordered off, and still/)
  process.kill(server.driver.pid, 'SIGCONT')
  await until('the late off', () => server.variable('outlet.1.status') === 'off')
  assert.is((await ask('status')).state, 'off')
}))

for (const [who, leave] of [['a driver', (server: UpsServer) => server.backEnd.vanish()], ['upsd', (server: UpsServer) => server.process.crash()]] as const) {
  test(`${who} that goes in the middle of an order: whatever became of it, it is not off`, () => inRack(async (rack) => {
    const server = await startUpsServer(rack)
    const spoken = () => execFileSync('ss', ['-Htn', 'state', 'established', 'sport', '=', `:${server.login['ipport']}`], { encoding: 'utf8' }) !== ''
    process.kill(server.driver.pid, 'SIGSTOP')
    const asked = rack.ask('nut', 'off', { ...server.login, plug: '1', power_timeout: '6' })
    await until('upsd to be spoken to', spoken)
    await leave(server)
    const word = await asked
    assert.equal([word.state, word.exitCode, word.late], ['failed', 1, false], word.text)
  }))
}

test.run()
