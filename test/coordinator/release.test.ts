// The selective release: exactly the volumes that it names, and the pods that stay.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createApi, type KubeObject } from '../../coordinator/api.ts'
import { attachmentOf, keepAttachment, keepNode, readPod } from '../../coordinator/kubernetes.ts'
import type { Deed } from '../../core/action.ts'
import type { PodSeen, VolumeSeen } from '../../core/model.ts'
import { admin } from '../../sim/api-server/server.ts'
import { beat } from '../core/world.ts'
import { fenced, freeing, phases, podWrites, proofOf } from './deed-world.ts'
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

for (const [why, does] of unproven.filter(([what]) => !what.startsWith('its reading'))) test(`nor if, while what is to be written over is being read, ${why}`, async () => {
  const { world, shell, detaching } = await using()
  for (const [reads, deed] of [['/pods/shell', { ...detaching, pods: [shell], volumes: [] }], [`/nodes/${victim}`, detaching]] as const) {
    let once = false
    world.asked = ({ method, path }) => {
      if (method === 'GET' && path.endsWith(reads) && !once) {
        once = true
        void does(world)
      }
    }
    assert.not(await turned(world.clock, world.do(deed)))
    assert.equal([once, stillUsed(world), podWrites(world)], [true, inUse, []])
    world.term = 3
    world.beats.clear()
    world.read('off')
  }
})

test('a pod that changed since it was listed is not told anything', async () => {
  const { world, shell, detaching } = await using()
  assert.not(await turned(world.clock, world.do({ ...detaching, pods: [{ ...shell, resourceVersion: '1' }], volumes: [] })))
  assert.equal(podWrites(world), [])
})

/** Its Node is deleted, and the VolumeAttachments of both its volumes are there still. */
async function bereft(): Promise<{ world: EdgeWorld; detaching: Extract<Deed, { do: 'detach' }>; held(): readonly string[] }> {
  const world = await fenced()
  const proof = proofOf(world)
  const volumes = [first, second].map((name = '', index) => {
    const planted = world.server.plant({
      apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata: { name }, spec: { attacher: 'csi.example.com', nodeName: victim, source: { persistentVolumeName: `pv-${index + 1}` } },
    } as unknown as KubeObject) // a VolumeAttachment is more than the common type tells
    world.observation.attachment(keepAttachment(planted))
    return keepAttachment(planted).seen
  })
  assert.ok((await turned(world.clock, person(world).remove(`/api/v1/nodes/${victim}`))).ok)
  world.observation.nodeGone(victim)
  world.writes.length = 0
  world.read('off')
  return {
    world, detaching: { do: 'detach', node: victim, incident: fence, pods: [], volumes, proof },
    held: () => world.server.peek('volumeattachments.storage.k8s.io').map(({ metadata }) => metadata.name),
  }
}

const person = ({ clock, server }: EdgeWorld) => createApi({ clock, transport: server.transportFor(admin) })

test('of a Node that is gone the VolumeAttachments that it names are deleted, each under its uid, and no other', async () => {
  const { world, detaching, held } = await bereft()
  assert.ok(await turned(world.clock, world.do({ ...detaching, volumes: detaching.volumes.slice(0, 1) })))
  assert.equal(held(), [second])
  const deletions = world.writes.filter(({ method }) => method === 'DELETE')
  assert.equal(deletions.map(({ path, body }) => [path, body]), [[`/apis/storage.k8s.io/v1/volumeattachments/${first}`, { preconditions: { uid: detaching.volumes[0]?.uid } }]])
  assert.ok(world.stored().status.timeline.some(({ what, detail }) => what === 'detached' && detail === 'pv-1'))
  assert.equal(world.said.filter(({ reason }) => reason === 'VolumesReleased').map(({ note }) => note), ['pv-1'])
})

test('the next VolumeAttachment of the name is not hit', async () => {
  const { world, detaching, held } = await bereft()
  assert.not(await turned(world.clock, world.do({ ...detaching, volumes: detaching.volumes.map((volume) => ({ ...volume, uid: 'of the one before' })) })))
  assert.is(held().length, 2)
})

const anew = (world: EdgeWorld) => person(world).create<KubeObject>('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: victim } })
const against: readonly (readonly [string, (world: EdgeWorld) => unknown])[] = [
  ...unproven,
  ['a Node of its name is there again, and no watch has brought it', (world) => turned(world.clock, anew(world))],
  ['a Node of its name is there again', async (world) => {
    const made = await turned(world.clock, anew(world))
    if (made.ok) world.observation.node(keepNode(made.value))
  }],
  ['whether its Node is there cannot be read', (world) => world.server.faults.set([{ does: 'unreachable', strikes: ({ method, path }) => method === 'GET' && path.endsWith(`/nodes/${victim}`) }])],
]
for (const [why, does] of against) test(`of a Node that is gone no VolumeAttachment is deleted if ${why}`, async () => {
  const { world, detaching, held } = await bereft()
  await does(world)
  assert.not(await turned(world.clock, world.do(detaching)))
  assert.is(held().length, 2)
})

test('its pods are freed as those of any other are, and none of them once a Node of its name is there again', async () => {
  const { world, detaching: { proof } } = await bereft()
  const [db, later] = [world.plantPod('db-0'), world.plantPod('db-1')]
  assert.ok(await world.do(freeing(world, [db], proof)))
  world.observation.node(keepNode({ metadata: { name: victim, uid: 'another', resourceVersion: '9999' } }))
  world.read('off')
  assert.not(await world.do(freeing(world, [later], proof)))
  assert.equal(phases(world), ['db-1 Running'])
})

test.run()
