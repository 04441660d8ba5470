import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Scene } from '../../../../sim/search/schedule.ts'
import { judgeSafety } from '../../../../sim/search/judges/safety.ts'
import { workloads } from '../../../../sim/search/workloads.ts'
import { quietWorld, type Quiet } from './quiet-world.ts'

const test = suite('search: the judge of safety')

const outOfService = { key: 'node.kubernetes.io/out-of-service', value: 'holdfast', effect: 'NoSchedule' }
const said = (judge: ReturnType<typeof judgeSafety>) => judge.found().map(({ what }) => what.replaceAll(/ \(.*?\)|, boot [^,\n ]+/g, '')).join('\n')
const podPath = '/api/v1/namespaces/work/pods/db-0'

/** What a product would do that takes silence for proof: the pod's object goes, and Kubernetes may detach by force. */
async function freeByForce({ victim, product, pod, taint, done }: Quiet): Promise<void> {
  await taint(victim, outOfService)
  await done(product.remove(podPath, { gracePeriodSeconds: 0, preconditions: { uid: pod().metadata.uid ?? '' } }))
}

test('in a cluster where nothing happens it has nothing to say', async () => {
  const { world, ears, run } = await quietWorld()
  const judge = judgeSafety(world, ears)
  await run(60_000)
  assert.equal(judge.found(), [])
})

test('a pod is freed while its container stands frozen: told before anybody writes twice', async () => {
  const quiet = await quietWorld()
  const { world, ears, run, victim } = quiet
  const judge = judgeSafety(world, ears)
  world.freeze(victim)
  await freeByForce(quiet)
  assert.match(said(judge), new RegExp(`work/db-0 was freed from ${victim} while it ran there`))
  assert.not.match(said(judge), /two writers/)
  await run(20_000)
  assert.match(said(judge), new RegExp(`vol-data-db-0 was taken from ${victim} under our out-of-service while it was mounted there`))
})

test('a machine that was cut loose alive and thaws: two writers, writes after the release, twins', async () => {
  const quiet = await quietWorld()
  const { world, ears, run, victim } = quiet
  const judge = judgeSafety(world, ears)
  const { uid } = quiet.pod().metadata
  world.freeze(victim)
  await freeByForce(quiet)
  await run(60_000)
  assert.not.match(said(judge), /two writers|after its release/)
  world.thaw(victim)
  await run(2_000)
  assert.match(said(judge), new RegExp(`two writers on vol-data-db-0: work/db-0 on ${victim}, work/db-0 on node-`))
  assert.match(said(judge), new RegExp(`work/db-0 on ${victim} wrote vol-data-db-0 after its release`))
  assert.match(said(judge), new RegExp(`twins of work/db-0: ${victim} `))
  assert.equal(judge.found().filter(({ what }) => what.startsWith('two writers on vol-data')).map(({ parties }) => parties?.[0]), [{ node: victim, boot: world.nodes.get(victim)?.machine.boot()?.id, podUid: uid }])
})

test('the same deeds upon a machine without power are no harm', async () => {
  const quiet = await quietWorld()
  const { world, ears, run, victim } = quiet
  const judge = judgeSafety(world, ears)
  world.cutPower(victim)
  await freeByForce(quiet)
  await run(60_000)
  world.powerOn(victim)
  await run(60_000)
  assert.equal(judge.found(), [])
  assert.is.not(quiet.pod().spec.nodeName, victim)
})

test('a write that was under way when the volume was taken is seen, if it is one', async () => {
  const { world, ears, run, victim, pod } = await quietWorld()
  const judge = judgeSafety(world, ears)
  const writer = { node: victim, boot: world.nodes.get(victim)?.machine.boot()?.id ?? '', pod: 'work/db-0', podUid: pod().metadata.uid ?? '' }
  world.cutPower(victim)
  world.storage.detach('vol-data-db-0', victim)
  await run(3)
  assert.not.match(said(judge), /work\/db-0 on .* after its release/)
  world.storage.write('vol-data-db-0', writer, 'data')
  assert.match(said(judge), /work\/db-0 on .* wrote vol-data-db-0 after its release/)
})

test('a journal replayed by the next boot while the successor writes is a second writer', async () => {
  const quiet = await quietWorld()
  const { world, ears, run, victim, pod } = quiet
  const judge = judgeSafety(world, ears)
  world.cutPower(victim)
  await freeByForce(quiet)
  await run(60_000)
  world.storage.write('vol-data-db-0', { node: victim, boot: 'the next', pod: 'work/db-0', podUid: 'an old one' }, 'mount')
  await run(1_000)
  assert.is.not(pod().spec.nodeName, victim)
  assert.match(said(judge), /two writers on vol-data-db-0/)
})

test('a pod that runs may be freed where each of its volumes guards itself, and where one of them does not it may not', async () => {
  const scene: Scene = { nodes: 3, zones: 3, replicas: 2, profile: 'fast', feed: 'own', apart: true }
  const quiet = await quietWorld({ driverApart: 'csi.apart.dev', objects: workloads(scene) })
  const { world, ears, product, done } = quiet
  const judge = judgeSafety(world, ears)
  const pods = (world.server?.peek('pods') ?? []).filter(({ metadata }) => /^(far|both)-/.test(metadata.name))
  assert.is(pods.length, 2)
  for (const { metadata: { name, uid = '' } } of pods) await done(product.remove(`/api/v1/namespaces/work/pods/${name}`, { gracePeriodSeconds: 0, preconditions: { uid } }))
  assert.equal(judge.found().map(({ what }) => what.replace(/-\S+ was freed .*/, '')), ['work/both'])
})

test('a detach that the kubelet let happen takes nothing from under anybody', async () => {
  const { world, ears, run, done, taint, victim, pod } = await quietWorld()
  const judge = judgeSafety(world, ears)
  await taint(victim, outOfService)
  await done(world.api.remove(podPath, {}))
  await run(120_000)
  assert.is.not(pod().spec.nodeName, victim)
  assert.not.ok(world.storage.attachedTo('vol-data-db-0').includes(victim))
  assert.equal(judge.found(), [])
})

test.run()
