import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readFenceConfigs, type FenceConfigMap } from '../../../coordinator/fence-config.ts'
import { powers, switchesOf } from '../../../sim/world/power.ts'
import { fenceObjects } from '../../../sim/world/fence-objects.ts'
import { createWorld } from '../../../sim/world.ts'

const test = suite('world: power')

const placed = ['node-1', 'node-2', 'node-3', 'node-4'].map((node, index) => ({ node, index, zone: index % 3 }))

for (const power of powers) {
  test(`${power}: the product reads of the configuration what was built`, () => {
    const maps = fenceObjects('system', power, placed).map((object) => ({ name: object.metadata.name, data: (object as unknown as FenceConfigMap).data })) // ConfigMaps
    const configs = readFenceConfigs(maps, () => undefined, 'salt')
    assert.equal(configs.faults, [])
    for (const place of placed) {
      const { path, methods, faults } = configs.forNode(place.node)
      assert.equal([path.faults, faults], [[], []])
      const built = switchesOf(power, place)
      assert.equal(path.levels.map((level) => level.map(({ name, device }) => [name, device])), built.map((level) => level.map(({ name, address }) => [`${name}-off`, address])))
      for (const { name, plug, address } of built.flat()) {
        const { parameters, on } = methods[`${name}-off`] ?? {}
        assert.equal([parameters?.['plug'], on?.['plug'], on?.['ip']], [plug, plug, address], 'its on leads to the same outlet')
      }
    }
  })

  test(`${power}: every plug leads to its own machine, and no two nodes share one`, async () => {
    const world = await createWorld({ seed: 1, nodes: placed.map(({ node }) => node), power, withWorkload: false })
    const plugs = placed.flatMap(({ node }) => world.switches(node).flat().map(({ device, plug }) => ({ node, device, plug })))
    for (const { node, device, plug } of plugs) assert.is(world.devices.get(device)?.plugs.get(plug)?.machine?.name, node)
    assert.is(new Set(plugs.map(({ device, plug }) => `${device} ${plug}`)).size, plugs.length)
    await world.turn().runFor(1_000)
    assert.ok(placed.every(({ node }) => world.nodes.get(node)?.machine.state() === 'running'), 'they start')
    world.stop()
  })
}

test('a machine starts by its button only where something feeds it', async () => {
  const world = await createWorld({ seed: 2, nodes: ['node-1'], power: 'two feeds on two strips', withWorkload: false })
  await world.turn().runFor(1_000)
  const machine = world.nodes.get('node-1')?.machine
  for (const strip of ['pdu-a-1', 'pdu-b-1']) world.devices.get(strip)?.turn('node-1', 'off')
  assert.is(machine?.state(), 'off')
  world.powerOn('node-1')
  assert.is(machine?.state(), 'off')
  world.devices.get('pdu-b-1')?.turn('node-1', 'on')
  assert.is(machine?.state(), 'booting')
  world.stop()
})

test('a strip that is fed again brings back what hangs on it: the machine, and the controller on the machine\'s own feed', async () => {
  const device = { kind: 'chassis', feed: 'machine', timing: { off: 1_000, on: 1_000, status: 100 } } as const
  const world = await createWorld({ seed: 3, nodes: ['node-1'], power: 'bmc, then outlet', device, withWorkload: false })
  await world.turn().runFor(1_000)
  const strip = world.devices.get(world.switches('node-1')[1]?.[0]?.device ?? '')
  world.cutPower('node-1')
  strip?.mains(false)
  await world.turn().runFor(1_000)
  strip?.mains(true)
  let says: string | undefined
  void world.devices.get('bmc-node-1')?.read('1').then((answer) => { says = 'says' in answer ? answer.says : undefined })
  await world.turn().runFor(5_000)
  assert.is(says, 'on')
  world.stop()
})

test('a machine that is rebooted where its power was gone has its mains again, and its controller with it', async () => {
  const device = { kind: 'chassis', feed: 'machine', timing: { off: 1_000, on: 1_000, status: 100 } } as const
  const world = await createWorld({ seed: 4, nodes: ['node-1'], device, withWorkload: false })
  await world.turn().runFor(1_000)
  world.cutPower('node-1')
  world.reboot('node-1', 1_000)
  let says: string | undefined
  await world.turn().runFor(60_000)
  void world.devices.get('bmc-node-1')?.read('1').then((answer) => { says = answer.says })
  await world.turn().runFor(5_000)
  assert.is(says, 'on')
  world.stop()
})

test.run()
