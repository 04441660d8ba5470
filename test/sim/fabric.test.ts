import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createWorld } from '../../sim/world.ts'

const test = suite('fabric')

test('a machine whose port is shut runs on, and what it writes does not arrive; where it is wired is where it is cut', async () => {
  const world = await createWorld({ seed: 1, nodes: ['node-1', 'node-2'], power: 'fabric, then bmc', withWorkload: false })
  const fabric = world.devices.get('fabric')
  world.storage.addVolume('v')
  await world.turn().runFor(1_000)
  const write = (node: string) => world.storage.write('v', { node, boot: 'b', pod: 'work/x', podUid: node }, 'data')
  void fabric?.order('node-1', 'off')
  await world.turn().runFor(2_000)
  for (const node of ['node-1', 'node-2']) write(node)
  assert.equal([world.storage.log.map(({ node }) => node), world.nodes.get('node-1')?.machine.state()], [['node-2'], 'running'])
  const [one, two] = ['node-1', 'node-2'].map((node) => world.nodes.get(node)?.machine)
  fabric?.wire('node-1', two)
  fabric?.wire('node-2', one)
  assert.equal(['node-1', 'node-2'].map((node) => world.storage.reaches(node)), [true, false])
  fabric?.wire('node-1', one)
  fabric?.wire('node-2', two)
  void fabric?.order('node-1', 'on')
  await world.turn().runFor(2_000)
  write('node-1')
  assert.equal(world.storage.log.map(({ node }) => node), ['node-2', 'node-1'])
  world.stop()
})

test('a switch that has lost its own feed shuts every port', async () => {
  const world = await createWorld({ seed: 2, nodes: ['node-1', 'node-2'], power: 'fabric, then bmc', withWorkload: false })
  await world.turn().runFor(1_000)
  world.devices.get('fabric')?.mains(false)
  assert.equal(['node-1', 'node-2'].map((node) => world.storage.reaches(node)), [false, false])
  world.devices.get('fabric')?.mains(true)
  assert.equal(['node-1', 'node-2'].map((node) => world.storage.reaches(node)), [true, true])
  world.stop()
})

test.run()
