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

test('a wrong password, an unknown server, a hypervisor that is dead: nothing is off, and the machine goes on; what is late lands', () => withMachine(async (rack, machine, nova) => {
  const boot = await machine.beats()
  const fails = async (over: Readonly<Record<string, string>>, reason: RegExp) => {
    const word = await rack.ask('openstack', 'off', { ...nova.login, power_timeout: '2', login_timeout: '2', shell_timeout: '2', ...over })
    assert.equal([word.state, word.exitCode, word.late], ['failed', 1, false], `${JSON.stringify(over)}: ${word.text}`)
    assert.match(word.reason, reason)
    assert.not.match(word.text, /S3cret!|gAAAAAB/)
  }
  await fails({ password: 'wrong' }, /^auth/)
  await fails({ plug: '00000000-0000-4000-8000-000000000009' }, /^notfound/)
  nova.fault = 'mute'
  await fails({}, /^timeout|^unreachable/)
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

test.run()
