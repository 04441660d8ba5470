// Our `openstack` and Debian's fence_openstack, with OpenStack's own client in it, at a Nova of ours, and the machine as the
// judge of both.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startMachine, type Machine } from './machine.ts'
import { startOpenStack, type OpenStackEndpoint } from './openstack-endpoint.ts'
import { inRack, until, type Rack } from './rack.ts'
import { sideBySide } from './side-by-side.ts'

const test = suite('openstack')

async function withMachine(work: (rack: Rack, machine: Machine, nova: OpenStackEndpoint) => Promise<void>): Promise<void> {
  await inRack(async (rack) => {
    const machine = await startMachine(rack, 'machine')
    await work(rack, machine, await startOpenStack(rack, machine))
  })
}

test('beside fence_openstack: both stop the machine and start it, and ours tells its UUID', () => withMachine(async (rack, machine, { login }) => {
  await sideBySide(rack, machine, { openstack: login, fence_openstack: login })
  assert.is((await rack.ask('openstack', 'status', login)).machine, machine.uuid)
}))

test('a wrong password, an unknown server, too few rights, a hypervisor that is dead: nothing is off, and the machine goes on; what is slow is waited for, and what is late lands', () => withMachine(async (rack, machine, nova) => {
  const boot = await machine.beats()
  const fails = async (over: Readonly<Record<string, string>>, reason: RegExp) => {
    const word = await rack.ask('openstack', 'off', { ...nova.login, power_timeout: '2', login_timeout: '2', shell_timeout: '2', ...over })
    assert.equal([word.state, word.exitCode, word.late], ['failed', 1, false], `${JSON.stringify(over)}: ${word.text}`)
    assert.match(word.reason, reason)
    assert.not.match(word.text, /S3cret!|gAAAAAB/)
  }
  await fails({ password: 'wrong' }, /^auth/)
  await fails({ plug: '00000000-0000-4000-8000-000000000009' }, /^notfound/)
  nova.fault = 'forbidden'
  await fails({}, /^privilege/)
  nova.fault = 'mute'
  await fails({}, /^timeout|^unreachable/)
  nova.fault = 'broken'
  await fails({}, /^busy|^device/)
  nova.fault = { slow: 600 }
  assert.is((await rack.ask('openstack', 'status', nova.login)).state, 'on')
  const due = Promise.withResolvers<void>()
  nova.fault = { late: due.promise }
  await fails({}, /^timeout/)
  await machine.mustBeatOn(boot)
  nova.fault = undefined
  due.resolve()
  await until('the late off', async () => (await rack.ask('openstack', 'status', nova.login)).state === 'off')
  await machine.mustBeDead()
  await rack.ask('openstack', 'on', nova.login)
  const next = await machine.beats()
  nova.fault = 'dead compute'
  await fails({}, /^timeout/)
  await machine.mustBeatOn(next)
}))

test('a cloud that is gone in the middle of an order: whatever became of it, it is not off', () => withMachine(async (rack, machine, nova) => {
  const boot = await machine.beats()
  nova.fault = 'dead compute'
  const asked = rack.ask('openstack', 'off', { ...nova.login, power_timeout: '3', login_timeout: '2', shell_timeout: '2' })
  await nova.ordered()
  await nova.leave()
  const word = await asked
  assert.equal([word.state, word.exitCode], ['failed', 1], word.text)
  assert.match(word.reason, /ECONNREFUSED|unreachable/)
  assert.is((await rack.ask('openstack', 'status', nova.login)).state, 'unknown')
  await machine.mustBeatOn(boot)
}))

test('a server that is another machine: off of the wrong one, and its UUID is not that of the one that lives', () => inRack(async (rack) => {
  const [one, other] = [await startMachine(rack, 'one'), await startMachine(rack, 'other')]
  const { login } = await startOpenStack(rack, other)
  const boot = await one.beats()
  const word = await rack.ask('openstack', 'off', login)
  assert.is(word.state, 'off')
  assert.is.not(word.machine, one.uuid)
  await other.mustBeDead()
  await one.mustBeatOn(boot)
}))

test.run()
