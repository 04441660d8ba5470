import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { attachmentName } from '../../../sim/mounts.ts'
import type { NodeObject } from '../../../sim/objects.ts'
import { workloads } from '../../../sim/search/workloads.ts'
import { minute, settledWorld } from '../settled-world.ts'

const test = suite('attach-detach')

const outOfService = { key: 'node.kubernetes.io/out-of-service', effect: 'NoSchedule' } as const
const volumeOf = (attachment: { spec: { source: { persistentVolumeName?: string } } }) => attachment.spec.source.persistentVolumeName

const isTold = (node: NodeObject) => node.status?.volumesAttached?.some(({ name }) => name.endsWith('^vol-data-db-0')) === true

async function lostWorld(seed: number) {
  const made = await settledWorld(seed)
  const victim = made.nodeOf('db')
  const pod = made.podOf('db')
  assert.ok(pod !== undefined)
  made.world.cutPower(victim)
  await made.pass(1_000)
  const held = () => made.attachments().some((attachment) => attachment.spec.nodeName === victim && volumeOf(attachment) === 'pv-data-db-0')
  return { ...made, victim, pod, held }
}

test('an attachment bears the name that every kubelet computes', async () => {
  const { attachments, nodeOf } = await settledWorld(1)
  const there = attachments().find((attachment) => volumeOf(attachment) === 'pv-data-db-0')
  assert.is(there?.metadata.name, attachmentName('vol-data-db-0', 'csi.holdfast.dev', nodeOf('db')))
})

test('a terminating pod whose last status says Running keeps its volume for ever', async () => {
  const { remove, pod, held, pass } = await lostWorld(2)
  void remove(pod)
  await pass(13 * minute)
  assert.ok(held())
})

test('a node that reports the volume in use keeps it although its pod is gone', async () => {
  const { remove, pod, held, pass } = await lostWorld(3)
  void remove(pod, 0)
  await pass(minute)
  assert.ok(held())
})

test('six minutes after it was last wanted the volume is taken from a node that is not Ready', async () => {
  const { remove, pod, held, when, world } = await lostWorld(4)
  void remove(pod, 0)
  const began = world.clock.now()
  assert.ok(await when(() => !held(), 8 * minute))
  const span = world.clock.now() - began
  assert.ok(span > 6 * minute && span < 7 * minute, `${span} ms`)
})

test('with out-of-service the volume goes at once, the node Ready or not', async () => {
  const { taint, remove, pod, held, when, victim, ready, node } = await lostWorld(5)
  void taint(victim, outOfService)
  void remove(pod, 0)
  assert.ok(await when(() => !held(), 2_000))
  assert.is(ready(node(victim)), 'True')
})

test('a volume struck from volumesInUse is freed at once, and no other', async () => {
  const { world, remove, pod, held, when, victim, node, attachments, nodeOf } = await lostWorld(6)
  void remove(pod, 0)
  const others = (node(victim).status?.volumesInUse ?? []).filter((name) => !name.endsWith('^vol-data-db-0'))
  void world.api.patch(`/api/v1/nodes/${victim}/status`, 'merge', { status: { volumesInUse: others } })
  assert.ok(await when(() => !held(), 2_000))
  if (nodeOf('web') === victim) assert.ok(attachments().some((attachment) => volumeOf(attachment) === 'pv-web' && attachment.spec.nodeName === victim))
})

test('a VolumeAttachment deleted by hand is missed within a minute or so, and made again on the node that wants it', async () => {
  const { world, attachments, nodeOf, when } = await settledWorld(7)
  const there = attachments().find((attachment) => volumeOf(attachment) === 'pv-data-db-0')
  void world.api.remove(`/apis/storage.k8s.io/v1/volumeattachments/${there?.metadata.name}`)
  const again = () => attachments().find((attachment) => volumeOf(attachment) === 'pv-data-db-0')
  assert.ok(await when(() => again() === undefined, 5_000))
  assert.ok(await when(() => again()?.status?.attached === true, 90_000))
  assert.is(again()?.spec.nodeName, nodeOf('db'))
})

test('of a Node that was deleted a volume stays for six minutes more than its pod, or until the sync after its VolumeAttachment was deleted', async () => {
  const waits = await lostWorld(12)
  void waits.world.api.remove(`/api/v1/nodes/${waits.victim}`)
  assert.ok(await waits.when(() => waits.podOf('db')?.metadata.uid !== waits.pod.metadata.uid, 2 * minute))
  const began = waits.world.clock.now()
  assert.ok(await waits.when(() => !waits.held(), 8 * minute))
  assert.ok(waits.world.clock.now() - began > 5.5 * minute)

  const { world, remove, pod, held, when, victim, attachments } = await lostWorld(13)
  const there = attachments().find((attachment) => attachment.spec.nodeName === victim && volumeOf(attachment) === 'pv-data-db-0')
  const deleteIt = () => void world.api.remove(`/apis/storage.k8s.io/v1/volumeattachments/${there?.metadata.name}`)
  void world.api.remove(`/api/v1/nodes/${victim}`)
  void remove(pod, 0)
  await when(() => false, 2_000)
  deleteIt()
  const moved = () => attachments().some((attachment) => attachment.spec.nodeName !== victim && volumeOf(attachment) === 'pv-data-db-0')
  assert.ok(await when(() => moved() && !held(), 90_000))
})

test('a volume waits for its other node, and says so in an Event', async () => {
  const { taint, podOf, remove, pass, world, attachments, victim, peek } = await lostWorld(8)
  const web = podOf('web')
  assert.ok(web !== undefined)
  if (web.spec.nodeName !== victim) return
  void taint(victim, { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' })
  void remove(web)
  await pass(30_000)
  assert.equal(attachments().filter((attachment) => volumeOf(attachment) === 'pv-web').map(({ spec }) => spec.nodeName), [victim])
  assert.ok((peek('events') as unknown as { message?: string }[]).some(({ message }) => message?.startsWith('Multi-Attach error')))
  assert.equal(world.judges.twoWriters(), [])
})

test('controllers that die between an attachment and its word to the node say it after they were started again', async () => {
  const { world, taint, remove, pod, attachments, victim, node, podOf, when } = await lostWorld(10)
  void taint(victim, outOfService)
  void remove(pod, 0)
  const moved = () => attachments().find((attachment) => attachment.spec.nodeName !== victim && volumeOf(attachment) === 'pv-data-db-0')
  const told = () => node(moved()?.spec.nodeName ?? victim).status?.volumesAttached?.some(({ name }) => name.endsWith('^vol-data-db-0')) === true
  assert.ok(await when(() => moved() !== undefined, minute))
  assert.not(told())
  world.restartControllers()
  assert.ok(await when(told, 10_000))
  assert.ok(await when(() => podOf('db')?.status?.phase === 'Running', minute))
})

test('controllers that die between a word to the node and the detachment end what they began', async () => {
  const { world, taint, remove, pod, held, victim, node, when } = await lostWorld(11)
  world.csi.settings.detachFault = 'error'
  void taint(victim, outOfService)
  void remove(pod, 0)
  const told = () => node(victim).status?.volumesAttached?.some(({ name }) => name.endsWith('^vol-data-db-0')) === true
  assert.ok(await when(() => !told(), minute))
  world.restartControllers()
  world.csi.settings.detachFault = 'none'
  assert.ok(await when(() => !held(), minute))
})

test('what a node is told of volumes that are not attached is taken back within a minute of a start', async () => {
  const { world, victim, node, when } = await lostWorld(12)
  const stale = { name: 'kubernetes.io/csi/csi.holdfast.dev^vol-nobody', devicePath: '' }
  void world.api.patch(`/api/v1/nodes/${victim}/status`, 'merge', { status: { volumesAttached: [...node(victim).status?.volumesAttached ?? [], stale] } })
  const told = () => node(victim).status?.volumesAttached?.some(({ name }) => name === stale.name) === true
  assert.ok(await when(told, 5_000))
  world.restartControllers()
  assert.ok(await when(() => !told(), 90_000))
})

test('a volume whose detach failed is nobody\'s for the controller: what failed stays on the object, and another node gets it', async () => {
  const { world, taint, remove, pod, held, when, victim, node, attachments, podOf, nodeOf } = await lostWorld(9)
  world.csi.settings.detachFault = 'error'
  void taint(victim, outOfService)
  void remove(pod, 0)
  const ofVolume = () => attachments().filter((attachment) => volumeOf(attachment) === 'pv-data-db-0')
  assert.ok(await when(() => ofVolume().some(({ spec, status }) => spec.nodeName !== victim && status?.attached === true), minute))
  const stuck = ofVolume().find(({ spec }) => spec.nodeName === victim)
  assert.match(stuck?.status?.detachError?.message ?? '', 'refused')
  assert.is(stuck?.status?.attached, true)
  assert.ok(stuck?.metadata.deletionTimestamp)
  assert.ok(stuck?.metadata.finalizers?.includes('external-attacher/csi.holdfast.dev'))
  assert.not(isTold(node(victim)))
  assert.ok(await when(() => podOf('db')?.status?.phase === 'Running', minute))
  assert.ok(held())
  assert.ok(isTold(node(nodeOf('db'))))
  world.csi.settings.detachFault = 'none'
  assert.ok(await when(() => !held(), 3 * minute))
})

test('a detach without an answer is waited for for two minutes, and then another node gets the volume', async () => {
  const { world, taint, remove, pod, when, victim, attachments } = await lostWorld(13)
  world.csi.settings.detachFault = 'stuck'
  void taint(victim, outOfService)
  void remove(pod, 0)
  const began = world.clock.now()
  assert.ok(await when(() => attachments().some(({ spec }) => spec.nodeName !== victim && spec.source.persistentVolumeName === 'pv-data-db-0'), 4 * minute))
  const span = world.clock.now() - began
  assert.ok(span > 2 * minute && span < 2.2 * minute, `${span} ms`)
})

test('a volume that the node\'s live status still names is not detached, and for all that another node gets it', async () => {
  const { world, remove, pod, held, when, pass, victim, node, attachments } = await lostWorld(14)
  const inUse = node(victim).status?.volumesInUse ?? []
  world.loops()?.caches.nodes.setLag(2_000)
  void remove(pod, 0)
  void world.api.patch(`/api/v1/nodes/${victim}/status`, 'merge', { status: { volumesInUse: inUse.filter((name) => !name.endsWith('^vol-data-db-0')) } })
  await pass(500)
  void world.api.patch(`/api/v1/nodes/${victim}/status`, 'merge', { status: { volumesInUse: inUse } })
  const elsewhere = () => attachments().some(({ spec, status }) => spec.nodeName !== victim && spec.source.persistentVolumeName === 'pv-data-db-0' && status?.attached === true)
  assert.ok(await when(elsewhere, minute))
  assert.ok(held())
  assert.not(isTold(node(victim)))
})

test('what is ReadWriteMany waits for no other node: it is attached to the next one while the lost one has it still', async () => {
  const { world, node, nodeOf, podOf, remove, when, attachments } = await settledWorld(15, { objects: workloads({ shared: true }) })
  const holders = () => attachments().filter((attachment) => volumeOf(attachment) === 'pv-many' && attachment.status?.attached === true).map(({ spec }) => spec.nodeName)
  const pod = podOf('many')
  const lost = nodeOf('many')
  assert.ok(pod !== undefined)
  world.cutPower(lost)
  void world.api.patch(`/api/v1/nodes/${lost}`, 'merge', { spec: { unschedulable: true } })
  void remove(pod, 0)
  assert.ok(await when(() => holders().length === 2, 30_000))
  assert.ok(holders().includes(lost))
  assert.ok(await when(() => podOf('many')?.status?.phase === 'Running', minute))
  assert.ok(node(lost).status?.volumesAttached?.some(({ name }) => name.endsWith('^vol-many')))
})

test.run()
