// Agents of the version before, beside a coordinator of this one: as long as a rollout of the DaemonSet takes.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { AgentWord, NodeBoot } from '../../core/beat.ts'
import { frameOf } from '../../core/frame.ts'
import { beatsWorld } from './beats-world.ts'

const test = suite('beats: older agents')

const boot = 'b007-0001/4711'
const cutOff = (from: number, many: number): NodeBoot[] => Array.from({ length: many }, (_, index) => ({ node: `node-${from + index}`, boot: `${boot}${from + index}` }))

test('a member that takes each part of a long list for the whole of it is believed in what it said last, and counts for nobody else', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const dialling = world.network.dialer('node-1').dial(replica.address, 1_000)
  await world.clock.runFor(2)
  const link = await dialling
  const say = async (word: AgentWord): Promise<void> => {
    link.send(frameOf(word))
    await world.clock.runFor(20)
  }
  await say({ say: 'hello', version: 1, token: 'agent node-1 pod-1', agent: 'older', boot, uptime: 1_000, machine: 'uuid', whisperPort: 7_000 })
  await say({ say: 'beat', count: 1, kubelet: 'ok' })
  const revokes = () => replica.beats.heard('node-1')?.revokes ?? []
  await say({ say: 'revokes', boots: cutOff(100, 200) })
  const first = revokes()[0]?.at
  await say({ say: 'revokes', boots: cutOff(300, 40) })
  assert.equal(revokes().map(({ node }) => node), cutOff(300, 40).map(({ node }) => node))
  // Told anew, it says the first part once more: what it permitted in between it may have fed.
  await say({ say: 'revokes', boots: cutOff(100, 200) })
  assert.ok((revokes()[0]?.at ?? 0) > (first ?? Infinity))
})

test.run()
