// Machines behind strips: two feeds that must both be off, and a controller with its outlet as the next level.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ended, findings, happened, ourTaints, peace, workloadRuns } from './play.ts'

const test = suite('story: racks')

const timing = { off: 2_000, on: 1_000, status: 200 }

test('of two feeds both are ordered off before anything is freed, and both are on again at the end', async () => {
  const on = await peace({ seed: 31, power: 'two feeds on two strips' })
  on.world.freeze(on.victim)
  const incident = await ended(on, 180_000)
  assert.equal([incident.status.proof?.kind, incident.status.proof?.methods], ['off', ['feed-a-off', 'feed-b-off']])
  const off = happened(on, 'device switched').filter(({ to }) => to === 'off').map(({ device, machine }) => [device, machine])
  assert.equal(off, [['pdu-a-1', on.victim], ['pdu-b-1', on.victim]])
  assert.ok(['pdu-a-1', 'pdu-b-1'].every((strip) => on.world.devices.get(strip)?.plugs.get(on.victim)?.switched === 'on'))
  assert.ok(workloadRuns(on))
  assert.equal([findings(on), ourTaints(on)], [[], []])
})

test('with one feed stuck the machine runs on, and nothing of it is freed', async () => {
  const on = await peace({ seed: 32, power: 'two feeds on two strips' })
  on.world.devices.get('pdu-b-1')?.setPlugFault(on.victim, { does: 'ignore' })
  on.world.isolate(on.victim)
  await on.run(120_000)
  const [incident] = await on.incidents()
  assert.ok(incident?.status.attempts.some(({ method, result }) => method === 'feed-a-off' && result === 'off'))
  assert.is(incident?.status.proof, undefined)
  assert.is(workloadRuns(on, on.victim), false)
  assert.equal(findings(on), [])
})

// Behind a controller that has switched its machine off the outlet stays on. Taken for a word against the off, it made the first
// level fail each time; the order to the second then took the power of the controller, by which the node had just been proven.
for (const feed of ['own', 'machine'] as const) {
  test(`a controller with an outlet as the next level, fed ${feed === 'own' ? 'apart' : 'by that outlet'}: the first level is enough`, async () => {
    const on = await peace({ seed: 33, power: 'bmc, then outlet', device: { kind: 'chassis', feed, timing } })
    on.world.freeze(on.victim)
    const incident = await ended(on, 180_000)
    assert.equal([incident.status.proof?.kind, incident.status.proof?.methods], ['off', ['bmc-off']])
    assert.equal(happened(on, 'device switched').filter(({ to }) => to === 'off').map(({ device }) => device), [`bmc-${on.victim}`], 'the outlet is left alone')
    assert.ok(workloadRuns(on))
    assert.equal(findings(on), [])
  })
}

test('a controller that died with its machine\'s power gives way to the outlet', async () => {
  const on = await peace({ seed: 34, power: 'bmc, then outlet', device: { kind: 'chassis', feed: 'machine', timing } })
  on.world.cutPower(on.victim)
  await on.until('proven by the outlet', async () => (await on.incidents())[0]?.status.proof?.methods[0] === 'outlet-off', 60_000)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 60_000)
  assert.equal(findings(on), [])
})

// A supply holds its machine up for a moment, and what was struck answers in it.
test('outlets that changed places: the wrong machine goes dark a moment after the device says so, and that is no proof', async () => {
  const on = await peace({ seed: 35, power: 'outlet', nodes: 5, zones: 1 })
  const strip = on.world.devices.get('pdu-a-1')
  strip?.setPlugFault(on.victim, { does: 'early', by: 800 })
  const other = on.victim === 'node-1' ? 'node-2' : 'node-1'
  strip?.wire(on.victim, on.world.nodes.get(other)?.machine)
  strip?.wire(other, on.world.nodes.get(on.victim)?.machine)
  on.world.isolate(on.victim)
  await on.until('the neighbour is dark', () => on.world.nodes.get(other)?.machine.state() === 'off', 60_000)
  const named = async () => (await on.incidents()).find(({ nodeName }) => nodeName === on.victim)?.status.holds.find(({ because }) => because === 'identity-unproven')?.detail
  await on.until('it is told whom the order may have struck', async () => (await named())?.includes(`${other} on the same device has not answered since the first off`) === true, 10_000)
  await on.until('the neighbour has its power again', () => on.world.nodes.get(other)?.machine.state() === 'running', 120_000)
  await on.run(600_000)
  const own = (await on.incidents()).find(({ nodeName }) => nodeName === on.victim)
  assert.is(own?.status.proof, undefined)
  assert.equal(happened(on, 'device ordered').filter(({ to, plug }) => to === 'off' && plug === on.victim).length, 1, 'that outlet is not tried again')
  assert.is(on.world.nodes.get(other)?.machine.state(), 'running')
  assert.ok(own?.status.holds.some(({ because }) => because === 'identity-unproven'))
  assert.equal(findings(on), [])
})

test('outlets that changed places: once the machine that was meant is heard, its path is marked, and never strikes the neighbour again', async () => {
  const on = await peace({ seed: 38, power: 'outlet', nodes: 5, zones: 1 })
  const strip = on.world.devices.get('pdu-a-1')
  const other = on.victim === 'node-1' ? 'node-2' : 'node-1'
  strip?.wire(on.victim, on.world.nodes.get(other)?.machine)
  strip?.wire(other, on.world.nodes.get(on.victim)?.machine)
  const heal = on.world.isolate(on.victim)
  await on.until('the neighbour is dark', () => on.world.nodes.get(other)?.machine.state() === 'off', 60_000)
  await on.until('the neighbour has its power again', () => on.world.nodes.get(other)?.machine.state() === 'running', 120_000)
  heal()
  const record = () => on.world.server?.peek('noderecords.holdfast.dev').find(({ metadata }) => metadata.name === on.victim)
  await on.until('its path is marked', () => JSON.stringify(record()).includes('it leads to another machine'), 60_000)
  await on.until('everything is over', async () => (await on.incidents()).every(({ status }) => status.phase === 'Final'), 400_000)
  const offs = () => happened(on, 'device ordered').filter(({ to, plug }) => to === 'off' && plug === on.victim).length
  assert.is(offs(), 1)
  on.world.isolate(on.victim)
  await on.run(120_000)
  assert.is(offs(), 1, 'not ordered again')
  const open = (await on.incidents()).find(({ nodeName, status }) => nodeName === on.victim && status.phase !== 'Final')
  assert.match(open?.status.holds.find(({ because }) => because === 'path-unverified')?.detail ?? '', /an off by it struck another machine/)
  assert.equal(findings(on), [])
})

for (const concurrency of [1, 3]) {
  test(`outlets that changed places, ${concurrency} fenced at once: the neighbour that went dark is not fenced itself, and comes back with its power`, async () => {
    const on = await peace({ seed: 37, power: 'outlet', nodes: 7, zones: 1, policy: { brakes: { concurrency, stormPercent: 60, stormWindow: '60s' } } })
    const strip = on.world.devices.get('pdu-a-1')
    const other = on.victim === 'node-1' ? 'node-2' : 'node-1'
    const machine = on.world.nodes.get(other)?.machine
    strip?.wire(on.victim, machine)
    strip?.wire(other, on.world.nodes.get(on.victim)?.machine)
    on.world.isolate(on.victim)
    await on.until('the neighbour is dark', () => machine?.state() === 'off', 60_000)
    const ofOther = async () => (await on.incidents()).find(({ nodeName }) => nodeName === other)
    await on.until('it is waited for', async () => (await ofOther())?.status.holds.some(({ because, detail }) => because === 'concurrency' && detail.startsWith(`${on.victim} is being fenced`)) === true, 60_000)
    await on.until('it is back', async () => (await ofOther())?.status.phase === 'Final', 240_000)
    assert.equal([(await ofOther())?.status.outcome, (await ofOther())?.status.attempts, machine?.state()], ['Withdrawn', [], 'running'])
    assert.is(on.world.nodes.get(on.victim)?.machine.state(), 'running', 'whom the order of the neighbour would have struck')
    assert.equal(findings(on), [])
  })
}

test('another node of the strip dies beside the order: nothing is proven, and the machine that was switched off boots anew', async () => {
  const on = await peace({ seed: 36, power: 'two feeds on two strips', nodes: 5, zones: 1 })
  const other = on.victim === 'node-1' ? 'node-2' : 'node-1'
  on.world.freeze(on.victim)
  await on.until('it is off', () => on.world.nodes.get(on.victim)?.machine.state() === 'off', 60_000)
  on.world.cutPower(other)
  await on.until('it is back', async () => (await on.incidents()).some(({ nodeName, status }) => nodeName === on.victim && status.phase === 'Final'), 240_000)
  const own = (await on.incidents()).find(({ nodeName }) => nodeName === on.victim)
  assert.equal([own?.status.proof, own?.status.outcome], [undefined, 'Withdrawn'])
  assert.ok(['pdu-a-1', 'pdu-b-1'].every((strip) => on.world.devices.get(strip)?.plugs.get(on.victim)?.switched === 'on'))
  await on.until('the other one is fenced and freed', async () => (await on.incidents()).some(({ nodeName, status }) => nodeName === other && status.proof !== undefined), 120_000)
  assert.equal(findings(on), [])
})

test.run()
