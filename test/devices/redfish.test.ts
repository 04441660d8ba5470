// Our `redfish` and Debian's fence_redfish at sushy-tools, and fence_redfish at our own service: an emulator counts once a
// program that is not ours was driven by it, and an agent once a server that is not ours was.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineClock } from '../../edge/clock.ts'
import { startRedfish } from '../../sim/redfish.ts'
import { overhear } from '../fence-agents/overheard.ts'
import { configMap, inCluster, properties, secretOf } from './cluster.ts'
import { deaf, startMachine, type Machine } from './machine.ts'
import { placesOf } from './overheard.ts'
import { inRack, secret, until, type Rack } from './rack.ts'
import { startRedfishController, type RedfishController } from './redfish-controller.ts'
import { sideBySide } from './side-by-side.ts'
import { audited, cordoned, patience, uncordon, volumesOn } from './victim.ts'

const test = suite('redfish')

async function withMachine(work: (rack: Rack, machine: Machine, controller: RedfishController, plug: string) => Promise<void>): Promise<void> {
  await inRack(async (rack) => {
    const machine = await startMachine(rack, 'machine')
    const controller = await startRedfishController(rack, [{ machine, feed: machine.feed }])
    await work(rack, machine, controller, machine.uuid)
  })
}

test('beside fence_redfish: both kill the machine and start it, ours in less time, and tells the UUID that the machine reads', () => withMachine(async (rack, machine, { login, pin }, plug) => {
  const taken = await sideBySide(rack, machine, {
    redfish: { ...login, ...pin, plug },
    fence_redfish: { ...login, ssl_insecure: '1', systems_uri: `/redfish/v1/Systems/${plug}` },
  })
  assert.ok(taken('redfish', 'off') < taken('fence_redfish', 'off'), 'off, verified')
  assert.is((await rack.ask('redfish', 'status', { ...login, ...pin, plug })).machine, machine.uuid)
}))

test('our own service is understood by fence_redfish', () => inRack(async (rack) => {
  const machine = await startMachine(rack, 'machine')
  const service = await startRedfish({
    clock: machineClock, username: 'admin', password: secret, systems: () => [{ id: 'one', name: 'one', uuid: machine.uuid }],
    power: () => (machine.feed.on() ? 'On' : 'Off'), order: (_, order) => { void machine.feed.switchTo(order === 'On') },
  })
  try {
    const login = { ip: service.host, ipport: String(service.port), username: 'admin', password: secret }
    await sideBySide(rack, machine, { fence_redfish: { ...login, ssl_insecure: '1', systems_uri: '/redfish/v1/Systems/one' } })
  } finally {
    await service.close()
  }
}))

test('each way of failing is told apart, and the machine goes on', () => withMachine(async (rack, machine, controller, plug) => {
  const { login, pin } = controller
  const boot = await machine.beats()
  const off = (over: Readonly<Record<string, string>>) => rack.ask('redfish', 'off', { ...login, ...pin, plug, ...over })
  for (const [over, reason] of [
    [{ password: 'wrong' }, /^auth/],
    [{ username: 'nobody' }, /^auth/],
    [{ plug: '00000000-0000-4000-8000-000000000000' }, /^notfound/],
    [{ certificate_sha256: '00'.repeat(32) }, /^config/],
    [{ certificate_sha256: '' }, /^config/],
    [{ ipport: '1' }, /^unreachable/],
    [{ plug: '/redfish/v1/Systems' }, /^config/],
  ] as const) {
    const word = await off(over)
    assert.equal([word.state, word.exitCode], ['failed', 1], `${JSON.stringify(over)}: ${word.text}`)
    assert.match(word.reason, reason)
    assert.not.match(word.text, /S3cret!/)
  }
  for (const [fault, reason] of [
    ['broken', /^device/],
    ['forbidden', /^privilege/],
    ['ignores', /^timeout \(ordered off, and still: PowerState On/],
    [{ says: 'PoweringOff' }, /^timeout \(ordered off, and still: PowerState PoweringOff/],
  ] as const) {
    controller.fault = fault
    assert.match((await off({ power_timeout: '1' })).reason, reason)
    if (typeof fault === 'string') await machine.mustBeatOn(boot)
  }
}))

test('a mute controller, then one without a back end, then a dead one: the machine lives, and nothing says off', () => withMachine(async (rack, machine, { login, pin, process: server, backEnd }, plug) => {
  const boot = await machine.beats()
  const ask = (action: 'off' | 'status') => rack.ask('redfish', action, { ...login, ...pin, plug, login_timeout: '2', shell_timeout: '2' })
  process.kill(server.pid, 'SIGSTOP')
  const mute = await ask('off')
  assert.equal([mute.exitCode, mute.late], [1, false], mute.text)
  assert.match(mute.reason, /^timeout|^unreachable/)
  process.kill(server.pid, 'SIGCONT')
  await until('the controller to be back', async () => (await ask('status')).state === 'on')

  await backEnd.vanish()
  assert.is((await ask('status')).state, 'unknown')
  assert.is((await ask('off')).state, 'failed')
  await backEnd.open()
  assert.is((await ask('status')).state, 'on')

  await server.crash()
  assert.is((await ask('status')).state, 'unknown')
  assert.is((await ask('off')).state, 'failed')
  await machine.mustBeatOn(boot)
}))

test('a back end that goes in the middle of an order: whatever became of it, it is not off', () => inRack(async (rack) => {
  const machine = await startMachine(rack, 'machine')
  const { feed, ordered } = deaf(machine.feed)
  const { login, pin, backEnd } = await startRedfishController(rack, [{ machine, feed }])
  const boot = await machine.beats()
  const asked = rack.ask('redfish', 'off', { ...login, ...pin, plug: machine.uuid, power_timeout: '4' })
  await ordered
  await backEnd.vanish()
  const word = await asked
  assert.equal([word.state, word.exitCode, word.late], ['failed', 1, false], word.text)
  await machine.mustBeatOn(boot)
}))

test('slow is waited for; an off that comes late is failed first, and then lands', () => withMachine(async (rack, machine, controller, plug) => {
  const ask = (action: 'off' | 'status', over = {}) => rack.ask('redfish', action, { ...controller.login, ...controller.pin, plug, ...over })
  const boot = await machine.beats()
  controller.fault = { slow: 1_500 }
  assert.is((await ask('status')).state, 'on')
  const due = Promise.withResolvers<void>()
  controller.fault = { late: due.promise }
  assert.is((await ask('off', { power_timeout: '1' })).state, 'failed')
  await machine.mustBeatOn(boot)
  due.resolve()
  await until('the late off', async () => (await ask('status')).state === 'off')
  await machine.mustBeDead()
}))

test('a system wired to another machine: it says off of the wrong one, and its UUID is not that of the one that lives', () => inRack(async (rack) => {
  const [one, other] = [await startMachine(rack, 'one'), await startMachine(rack, 'other')]
  const { login, pin } = await startRedfishController(rack, [{ machine: other, feed: other.feed }])
  const boot = await one.beats()
  const word = await rack.ask('redfish', 'off', { ...login, ...pin, plug: other.uuid })
  assert.is(word.state, 'off')
  assert.is.not(word.machine, one.uuid)
  await other.mustBeDead()
  await one.mustBeatOn(boot)
}))

test('with the whole product: a machine that hangs is ended once its controller permits it, and no secret stands in an argument list, log line, Event or status', () => withMachine(async (rack, machine, controller, plug) => {
  const { login, pin } = controller
  const [node, others] = ['node-1', ['node-2', 'node-3']]
  const boot = await machine.beats()
  const objects = [
    secretOf('bmc', { password: secret }),
    configMap('fence-method-template-bmc', { 'template.properties': properties('redfish', { ...login, ...pin, password: 'secret:bmc/password', timeout: '15s', late: '5s' }) }),
    configMap(`fence-config-${node}`, { 'config.properties': `node_name=${node}\npower_management=bmc-off\n`, 'fence-method-bmc-off': `template=fence-method-template-bmc\nplug=${plug}\naction=off\n` }),
  ]
  await inCluster(rack, { nodes: [node, ...others], real: { [node]: machine }, objects: [...objects, ...cordoned(others)] }, async (cluster) => {
    await audited(cluster, [node])
    await volumesOn(cluster, node)
    await uncordon(cluster, others)
    const overheard = overhear()
    const own = () => cluster.incidents().find(({ nodeName }) => nodeName === node)?.status
    controller.fault = 'forbidden'
    machine.tell('echo c > /proc/sysrq-trigger')
    await until('an order that was refused', () => own()?.attempts.some(({ result }) => result === 'failed') === true, patience)
    controller.fault = undefined
    await until('the incident to be over', () => own()?.phase === 'Final', patience)
    assert.equal([own()?.proof?.kind, own()?.outcome], ['off', 'Recovered'])
    assert.is.not(await machine.beats(), boot)
    const told = cluster.objects('events').map((event) => JSON.stringify(event))
    assert.ok(told.some((text) => text.includes(node)), 'there are Events to look at')
    assert.match(JSON.stringify(own()), /privilege/, 'and a refusal in the status')
    assert.equal(placesOf([secret], overheard, cluster), [])
    assert.ok([...overheard.programs].some((name) => name.startsWith('redfish')), [...overheard.programs].join())
  })
}))

test.run()
