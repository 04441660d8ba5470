// Our `ipmi` and Debian's fence_ipmilan at one controller, ipmi_sim, and the machine behind it as the judge of both.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readFileSync, readdirSync } from 'node:fs'
import { sameMachine } from '../../core/machine-id.ts'
import { inRack, pause, secret, until, type Rack } from './rack.ts'
import { startIpmiController, type IpmiController } from './ipmi-controller.ts'
import { deaf, loose, startMachine, type Machine } from './machine.ts'
import { sideBySide } from './side-by-side.ts'

const test = suite('ipmi')

async function withMachine(work: (rack: Rack, machine: Machine, controller: IpmiController) => Promise<void>): Promise<void> {
  await inRack(async (rack) => {
    const machine = await startMachine(rack, 'machine')
    const controller = await startIpmiController(rack, 'controller', machine.feed)
    await work(rack, machine, controller)
  })
}

test('beside fence_ipmilan: both kill the machine and start it, ours in less time', () => withMachine(async (rack, machine, { login }) => {
  const taken = await sideBySide(rack, machine, {
    ipmi: login,
    fence_ipmilan: { ...login, lanplus: '1' },
  })
  assert.ok(taken('ipmi', 'off') < taken('fence_ipmilan', 'off'), 'off, verified')
}))

test('a machine whose kernel hangs is still on, and off is off', () => withMachine(async (rack, machine, { login }) => {
  const boot = await machine.beats()
  machine.tell('echo c > /proc/sysrq-trigger')
  await machine.mustHang()
  assert.is((await rack.ask('ipmi', 'status', login)).state, 'on')
  assert.is((await rack.ask('ipmi', 'off', login)).state, 'off')
  await machine.mustBeDead()
  assert.is((await rack.ask('ipmi', 'on', login)).state, 'on')
  assert.is.not(await machine.beats(), boot)
}))

test('each way of failing is told apart, and the machine goes on', () => withMachine(async (rack, machine, controller) => {
  const { login } = controller
  const boot = await machine.beats()
  const off = (over: Readonly<Record<string, string>>) => rack.ask('ipmi', 'off', { ...login, ...over })
  for (const [over, reason] of [
    [{ password: 'wrong' }, /^auth \(wrong password/],
    [{ username: 'nobody' }, /^auth \(unknown user/],
    [{ username: 'viewer', privlvl: 'user' }, /^privilege/],
    [{ cipher: '17' }, /^config/],
    [{ ipport: '1' }, /^unreachable|^timeout/],
  ] as const) {
    const word = await off(over)
    assert.equal([word.state, word.exitCode], ['failed', 1], `${JSON.stringify(over)}: ${word.text}`)
    assert.match(word.reason, reason)
    assert.not.match(word.text, /S3cret!/)
  }
  controller.fault = 'broken'
  assert.match((await off({})).reason, /^device/)
  assert.is((await rack.ask('ipmi', 'status', login)).state, 'unknown')
  controller.fault = 'ignores'
  const ignored = await off({ power_timeout: '2' })
  assert.match(ignored.reason, /^timeout \(ordered off, and still: Chassis Power is on/)
  controller.fault = undefined
  await machine.mustBeatOn(boot)
}))

test('a mute controller, then a dead one, then one without a back end: the machine lives, and nothing says off', () => withMachine(async (rack, machine, { login, process: sim, backEnd }) => {
  const boot = await machine.beats()
  process.kill(sim.pid, 'SIGSTOP')
  const mute = await rack.ask('ipmi', 'off', login)
  assert.equal([mute.exitCode, mute.late], [1, false], mute.text)
  assert.match(mute.reason, /^unreachable|^timeout/)
  process.kill(sim.pid, 'SIGCONT')
  await until('the controller to be back', async () => (await rack.ask('ipmi', 'status', login)).state === 'on')

  await backEnd.vanish()
  assert.is((await rack.ask('ipmi', 'status', login)).state, 'unknown')
  assert.is((await rack.ask('ipmi', 'off', login)).state, 'failed')
  await backEnd.open()
  assert.is((await rack.ask('ipmi', 'status', login)).state, 'on')

  await sim.crash()
  assert.is((await rack.ask('ipmi', 'status', login)).state, 'unknown')
  assert.is((await rack.ask('ipmi', 'off', login)).state, 'failed')
  await machine.mustBeatOn(boot)
}))

test('a back end that goes in the middle of an order: whatever became of it, it is not off', () => inRack(async (rack) => {
  const machine = await startMachine(rack, 'machine')
  const { feed, ordered } = deaf(machine.feed)
  const { login, backEnd } = await startIpmiController(rack, 'controller', feed)
  const boot = await machine.beats()
  const asked = rack.ask('ipmi', 'off', { ...login, power_timeout: '4' })
  await ordered
  await backEnd.vanish()
  const word = await asked
  assert.equal([word.state, word.exitCode, word.late], ['failed', 1, false], word.text)
  await machine.mustBeatOn(boot)
}))

test('slow is waited for; an off that comes late is failed first, and then lands', () => withMachine(async (rack, machine, controller) => {
  const boot = await machine.beats()
  controller.fault = { slow: 1_500 }
  assert.is((await rack.ask('ipmi', 'status', controller.login)).state, 'on')
  const due = Promise.withResolvers<void>()
  controller.fault = { late: due.promise }
  const failed = await rack.ask('ipmi', 'off', { ...controller.login, power_timeout: '1' })
  assert.equal([failed.state, failed.exitCode], ['failed', 1])
  await machine.mustBeatOn(boot)
  // The order stands: this is why one that failed is held to be under way for as long as the device's `late`.
  due.resolve()
  await until('the late off', async () => (await rack.ask('ipmi', 'status', controller.login)).state === 'off')
  await machine.mustBeDead()

  assert.is((await rack.ask('ipmi', 'on', controller.login)).state, 'on')
  controller.fault = { late: pause(1_000) }
  assert.is((await rack.ask('ipmi', 'off', controller.login)).state, 'off')
  await machine.mustBeDead()
}))

test('the password stands in no argument list while the tool runs', () => inRack(async (rack) => {
  const { login } = await startIpmiController(rack, 'controller', loose())
  const seen: string[] = []
  const done = new AbortController()
  const asked = rack.ask('ipmi', 'off', login).finally(() => done.abort())
  for (; !done.signal.aborted; await pause(5)) seen.push(...argumentLists().filter((words) => words.includes('ipmi')))
  assert.is((await asked).exitCode, 0)
  assert.ok(seen.some((words) => words.startsWith('ipmitool ')), 'the tool was seen')
  assert.equal(seen.filter((words) => words.includes(secret)), [])
}))

test('its controller\'s GUID is told as that alone, in a writing that the machine may know', () => inRack(async (rack) => {
  const { login } = await startIpmiController(rack, 'controller', loose(), '4c4c454400423510a051b7c04f4e3432')
  const { state, controller, machine } = await rack.ask('ipmi', 'status', login)
  assert.equal([state, machine, sameMachine(controller ?? '', '4c4c4544-0042-3510-a051-b7c04f4e3432')], ['on', undefined, true], controller)
}))

function argumentLists(): readonly string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
    } catch {
      return '' // it has just ended
    }
  })
}

test('a controller wired to another machine says off of the wrong one: it cannot know', () => inRack(async (rack) => {
  const [one, other] = [await startMachine(rack, 'one'), await startMachine(rack, 'other')]
  const { login } = await startIpmiController(rack, 'controller', other.feed)
  const boot = await one.beats()
  const word = await rack.ask('ipmi', 'off', login)
  assert.equal([word.state, word.machine], ['off', undefined])
  await other.mustBeDead()
  await one.mustBeatOn(boot)
}))

test.run()
