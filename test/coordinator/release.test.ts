// The selective release: exactly the volumes that it names, and the pods that stay.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { attachmentOf, keepNode, readPod } from '../../coordinator/kubernetes.ts'
import type { Deed } from '../../core/action.ts'
import type { PodSeen, VolumeSeen } from '../../core/model.ts'
import { beat } from '../core/world.ts'
import { fenced, podWrites, proofOf } from './deed-world.ts'
import { fence, turned, victim, type EdgeWorld } from './edge-world.ts'

const test = suite('release')

const inUse = ['kubernetes.io/csi/csi.example.com^vol-1', 'kubernetes.io/csi/csi.example.com^vol-2']
const [first, second] = inUse.map((unique) => attachmentOf(unique, victim) ?? '')
const volumeOf = (attachment = first, volume = 'pv-1'): VolumeSeen => ({ attachment: attachment ?? '', uid: 'u', driver: 'csi.example.com', volume, attached: true, deleting: false })
const running = { name: 'c', ready: true, restartCount: 0, image: 'i', imageID: 'i', state: { running: { startedAt: '2026-01-01T00:00:00Z' } } }

/** A node that is said to use two volumes, and a terminating pod on it that is said to run. */
async function using(): Promise<{ world: EdgeWorld; shell: PodSeen; detaching: Extract<Deed, { do: 'detach' }> }> {
  const world = await fenced()
  const there = await world.api.patch<KubeObject>(`/api/v1/nodes/${victim}/status`, 'merge', { status: { volumesInUse: inUse } })
  if (there.ok) world.observation.node(keepNode(there.value))
  world.observation.attachment({ metadata: { name: first ?? '' }, node: victim, seen: volumeOf() })
  const shell = world.plantPod('shell', { metadata: { name: 'shell', namespace: 'work', deletionTimestamp: '2026-01-01T00:05:00Z', deletionGracePeriodSeconds: 30 }, status: { phase: 'Running', containerStatuses: [running] } })
  const volumes = [{ claim: 'work/data', is: 'bound', volume: 'pv-1', driver: 'csi.example.com', provisioner: '', shared: false, local: false }] as const
  world.writes.length = 0
  return { world, shell: { ...shell, terminating: true, volumes }, detaching: { do: 'detach', node: victim, incident: fence, pods: [], volumes: [volumeOf()], proof: proofOf(world) } }
}

const stillUsed = (world: EdgeWorld): unknown => (world.server.peek('nodes')[0] as KubeObject & { status: { volumesInUse: string[] } }).status.volumesInUse // a Node has it

test('the selective release strikes exactly the volumes that it names from what the node is said to use, over that very version', async () => {
  const { world, detaching } = await using()
  assert.ok(await turned(world.clock, world.do(detaching)))
  assert.equal(stillUsed(world), [inUse[1]])
  assert.equal([...world.observation.row(victim)?.inUse ?? []], [second])
  assert.ok(world.stored().status.timeline.some((moment) => moment.what === 'detached' && moment.detail === 'pv-1'))
})

test('a pod that stays is told that nothing of it runs, is not deleted, and its volumes come onto the record', async () => {
  const { world, shell, detaching } = await using()
  assert.ok(await turned(world.clock, world.do({ ...detaching, pods: [shell], volumes: [] })))
  const [pod] = world.pods() as readonly (KubeObject & { status: { phase: string; containerStatuses: { state: { terminated?: { exitCode: number } } }[] } })[] // a Pod has it
  assert.equal([pod?.status.phase, pod?.status.containerStatuses.map((one) => one.state.terminated?.exitCode)], ['Running', [137]])
  assert.ok(readPod(pod ?? world.plantNode()).ended)
  assert.equal(world.stored().status.volumes.map((one) => [one.volume, one.fate]), [['pv-1', 'attached']])
  assert.equal(podWrites(world).map((write) => write.method), ['PATCH'])
})

const unproven: [string, (world: EdgeWorld) => unknown][] = [
  ['its device says on', (world) => world.read('on')],
  ['its reading is older than a second', (world) => world.clock.runFor(1_100)],
  ['the node was heard since', (world) => void world.beats.set(victim, beat({ at: world.clock.now() + 10 }))],
  ['this replica leads no more', (world) => { world.term = undefined }],
]
for (const [why, does] of unproven) test(`nothing is released if ${why}`, async () => {
  const { world, shell, detaching } = await using()
  await does(world)
  assert.not(await turned(world.clock, world.do({ ...detaching, pods: [shell] })))
  assert.equal([stillUsed(world), podWrites(world)], [inUse, []])
})

test('a pod that changed since it was listed is not told anything', async () => {
  const { world, shell, detaching } = await using()
  assert.not(await turned(world.clock, world.do({ ...detaching, pods: [{ ...shell, resourceVersion: '1' }], volumes: [] })))
  assert.equal(podWrites(world), [])
})

test.run()
