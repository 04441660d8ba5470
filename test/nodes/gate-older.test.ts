// The gate before the older generation of NRI: one node of the cluster runs containerd 1.7, whose NRI tells a sandbox as a change of state and knows
// neither the check of a container's creation nor plugins that are required. So what holds there, whatever becomes of the agent, is the gate of the
// boot; and where that is not there either, nothing does but the taint. Kubelet 1.36 is the last that takes such a runtime.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { usualValues } from '../../deploy/values.ts'
import { until } from './cluster.ts'
import { killContainer } from './containers.ts'
import { bootGateOf, guardedNode, type GuardedNode } from './guarded-node.ts'
import { say } from './room.ts'
import { nodesOf, startStage, type Stage } from './stage.ts'

const test = suite('gate of an older runtime')
const guarded = 'node-2'
const within = 120_000
const noSandbox = 'NRI RunPodSandbox failed'
/** Of a container, in a sandbox that stands since before. */
const notCreated = 'failed to get NRI adjustment for container'
const bootGateSays = 'holdfast: this node starts nothing yet: its agent has not opened its gate again'
let stage: Stage
let node: GuardedNode

test('a cluster with an older runtime on one node: that asks the gate as the others do, and lets pass who may start', async () => {
  stage = await startStage(say, { runtimes: { [guarded]: 'containerd-1.7' }, values: { ...usualValues, gateFromBoot: 'on' } })
  const runtimes = (await nodesOf(stage)).map(({ metadata: { name }, status }) => `${name} ${/\d+\.\d+/.exec(status?.nodeInfo?.containerRuntimeVersion ?? '')?.[0]}`)
  assert.equal(runtimes.toSorted(), ['node-1 2.3', 'node-2 1.7', 'node-3 2.3'])
  node = await guardedNode(stage, guarded)
  await until('it asks', node.asks, within)
  await node.arrive(node.guest('lodger'))
  await node.run('lodger')
})

test('shut, it refuses a sandbox in our words, and a container in a sandbox that stands; an agent that is killed goes on with that', async () => {
  await node.quarantine()
  const [lodger] = await node.guests()
  if (lodger === undefined) throw new Error('the lodger is gone')
  await killContainer(stage, lodger)
  await node.arrive(node.guest('guest'))
  await node.held(node.words, 'guest')
  await node.told(noSandbox, 'guest')
  await node.told(notCreated, 'lodger')
  await node.told(node.words, 'lodger')
  await node.killAgent()
  await node.arrive(node.guest('after-the-agent'))
  // Who tried in between may have passed: against that there is the gate of the boot.
  await node.held(node.words, 'after-the-agent')
})

test('without an agent, and before its runtime has started the gate of the boot: nothing can be required of it, and who is bound past the scheduler starts', async () => {
  assert.is(await bootGateOf(node.machine), '')
  await node.agents('elsewhere')
  await node.run('lodger', 'guest', 'after-the-agent')
  say('containerd 1.7, without an agent and the gate of the boot: a pod that is bound past the scheduler starts under quarantine, as docs/install.md says')
  await node.leave()
})

test('without an agent, its runtime started again: the gate of the boot holds', async () => {
  await node.restartRuntime()
  await until('the gate of the boot runs', async () => await bootGateOf(node.machine) !== '', within)
  await node.arrive(node.guest('alone'))
  await node.held(bootGateSays, 'alone')
  await node.stayHeld('alone')
})

test('with both, its runtime killed again: each is asked anew, and the one is not needed for the other', async () => {
  await node.agents('everywhere')
  await node.restartRuntime()
  await until('the gate of the boot runs', async () => await bootGateOf(node.machine) !== '', within)
  await node.arrive(node.guest('after-the-runtime'))
  // That of the boot is asked last: the agent knows why.
  await node.held(node.words, 'alone', 'after-the-runtime')
  await node.machine.run(['kill', '-KILL', await bootGateOf(node.machine)])
  await node.arrive(node.guest('by-the-agent'))
  await node.held(node.words, 'by-the-agent')
})

test('opened, all that waited start', async () => {
  const opened = await node.release()
  const ran = await node.run('alone', 'after-the-runtime', 'by-the-agent')
  say(`containerd 1.7: open ${(opened / 1_000).toFixed(1)} s after the pause was lifted, all run ${(ran / 1_000).toFixed(1)} s later`)
  await node.leave()
  await stage.peace()
})

test('the stage is left', async () => await stage.stop())

test.run()
