import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import fc from 'fast-check'
import { strangersAmong } from '../../agent/strangers.ts'
import { beatsWorld } from '../coordinator/beats-world.ts'
import type { ContainerSeen } from '../../core/mounts.ts'

const test = suite('strangers')

const uid = (digit: number): string => `${String(digit).repeat(8)}-1111-4111-8111-111111111111`
const [mine, gone, other] = [1, 2, 3].map(uid) as [string, string, string] // three in, three out
const old = 1_000
const seen = (id: string, pod: string, more: Partial<ContainerSeen> = {}): ContainerSeen => ({ id, name: id, pod, since: old, ...more })

test('what runs of pods that do not belong is a stranger, unless it is too young for the list', () => {
  const all = [seen('a', mine), seen('b', gone), seen('c', gone, { sandbox: true }), seen('d', other, { since: 90_000 }), seen('e', other, { since: 90_001 })]
  assert.equal(strangersAmong(all, new Set([mine]), 90_001, 100_001).map(({ id }) => id), ['b', 'c', 'd'])
})

test('a static pod, a container of nobody and one of a name that no pod of the API has are never strangers', () => {
  for (const pod of ['0123456789abcdef0123456789abcdef', '', 'u1', `${gone}x`]) assert.equal(strangersAmong([seen('a', pod)], new Set(), Infinity, Infinity), [], pod)
  fc.assert(fc.property(fc.string(), (pod) => { assert.equal(strangersAmong([seen('a', pod)], new Set(), Infinity, Infinity), []) }))
})

/** A node on which a pod runs that is gone, told by two replicas of which one leads. */
async function node(age = Infinity) {
  const world = beatsWorld()
  const [leader, follower] = [world.replica('replica-a', true), world.replica('replica-b')]
  const running = new Map([mine, gone].map((pod) => [pod, seen(`c-${pod}`, pod, { since: world.clock.wall() - age })]))
  const stopped: string[] = []
  const one = world.agent('node-1', {
    containers: async () => [...running.values()],
    stopContainer: async ({ id, pod }) => {
      stopped.push(id)
      return running.delete(pod) ? undefined : 'it is gone'
    },
  })
  one.podFolders = []
  await world.clock.runFor(3_000)
  return { world, leader, follower, stopped, report: () => leader.beats.heard('node-1')?.clean?.report.state }
}

test('the leader\'s word stops them at once, and the node is clean after it', async () => {
  const { world, leader, stopped, report } = await node()
  leader.beats.check('node-1', [mine], { stop: true })
  await world.clock.runFor(1_000)
  assert.equal([stopped, report()], [[`c-${gone}`], 'clean'])
})

test('a question alone stops nothing, nor does the word of a replica that does not lead', async () => {
  const { world, leader, follower, stopped, report } = await node()
  leader.beats.check('node-1', [mine])
  await world.clock.runFor(1_000)
  follower.beats.check('node-1', [mine], { stop: true })
  await world.clock.runFor(10_000)
  assert.equal([stopped, report()], [[], 'dirty'])
})

test('what has only just begun is left to its kubelet', async () => {
  const { world, leader, stopped } = await node(0)
  leader.beats.check('node-1', [mine], { stop: true })
  await world.clock.runFor(10_000)
  assert.equal(stopped, [])
})

test.run()
