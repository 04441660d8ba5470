// Pitfalls of Kubernetes, by their numbers in docs/rows.md, as far as a kubelet, an attacher and machines of ours can produce them on a real control plane. One lab, and
// three nodes of it: one dies, at first with nothing to prove it, with all on it that may keep a clear from its end, and comes back littered; one reboots too fast for
// anybody to see; one is deleted.
// What cannot be produced here is listed in docs/safety.md, with where it is tried instead.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { outOfServiceKey, quarantineKey } from '../../core/clear.ts'
import type { Incident } from '../../core/incident.ts'
import { usualValues, names } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { isStaged } from '../../sim/mounts.ts'
import type { AttachmentObject, NodeObject, PodObject } from '../../sim/objects.ts'
import { apply, handleOf, volume, workImage } from '../../sim/world/objects.ts'
import { usualWorld } from '../../sim/world/settings.ts'
import { findings, happened, rightsSuffice } from './lab-judge.ts'
import { keepLab, ourTaints, transcript, until, workload, workloadRuns, type Play } from './lab-play.ts'
import { watch, type Watch } from './lab-watch.ts'
import type { Lab } from './lab.ts'

const test = suite('pitfalls on a real control plane')
const keeper = keepLab({ nodes: 6, zones: 3 })

const namespace = 'pitfalls'
const pods = `/api/v1/namespaces/${namespace}/pods`
const attachments = '/apis/storage.k8s.io/v1/volumeattachments'
const finalizer = 'example.com/backup'

/** `dies` bears the workload of the lab as well. */
interface Scene {
  readonly play: Play
  readonly dies: string
  readonly reboots: string
  readonly isDeleted: string
  readonly nodes: Watch<NodeObject>
  /** Of the pods below, by their names. */
  readonly uids: ReadonlyMap<string, string>
}

let scene: Scene | undefined

function the(): Scene {
  if (scene === undefined) throw new Error('the scene is not set, see the first test')
  return scene
}

async function get<T>({ api }: Lab, path: string): Promise<T> {
  const answer = await api.get<T>(path)
  if (!answer.ok) throw new Error(`${path}: ${answer.error.message}`)
  return answer.value
}

const isKept = ({ metadata: { deletionTimestamp, finalizers = [] } }: AttachmentObject): boolean =>
  deletionTimestamp !== undefined && finalizers.some((one) => one.startsWith('external-attacher/'))
const podsOf = async (lab: Lab, app: string): Promise<readonly PodObject[]> => (await get<{ items: PodObject[] }>(lab, `${pods}?labelSelector=app%3D${app}`)).items
const podOf = async (app: string): Promise<PodObject | undefined> => (await podsOf(the().play.lab, app)).find(({ metadata }) => metadata.uid === the().uids.get(app))
const attachmentsOf = async (lab: Lab, node: string): Promise<readonly AttachmentObject[]> =>
  (await get<{ items: AttachmentObject[] }>(lab, attachments)).items.filter(({ spec }) => spec.nodeName === node)
const incidentsOf = ({ play: { lab, before } }: Scene, node: string): readonly Incident[] => lab.incidents().filter(({ name, nodeName }) => nodeName === node && !before.has(name))
const isHeld = (because: string, told: RegExp): boolean => theDeath()?.status.holds.some((hold) => hold.because === because && told.test(hold.detail)) === true
const bears = (node: NodeObject | undefined, wanted: string): boolean => node?.spec?.taints?.some(({ key }) => key === wanted) === true
const theDeath = (): Incident | undefined => incidentsOf(the(), the().dies)[0]

const container = { automountServiceAccountToken: false, terminationGracePeriodSeconds: 5, containers: [{ name: 'main', image: workImage }] }
const of = (app: string): object => ({ name: app, namespace, labels: { app } })
const bare = (app: string, nodeName: string, more: object = {}, spec: object = {}): object =>
  ({ apiVersion: 'v1', kind: 'Pod', metadata: { ...of(app), ...more }, spec: { nodeName, ...container, ...spec } })
const withVolume = (claimName: string): object => ({ volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }] })
const on = (node: string): object => ({ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] })

/** A disk in the machine: no driver, no attachment, and no other node that could have it. */
function localVolume(claim: string, node: string): readonly object[] {
  const [accessModes, storage] = [['ReadWriteOnce'], { storage: '1Gi' }]
  return [
    { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: `pv-${claim}` }, spec: {
      capacity: storage, accessModes, persistentVolumeReclaimPolicy: 'Retain', storageClassName: '', 
      local: { path: '/mnt/disk' }, nodeAffinity: { required: { nodeSelectorTerms: [on(node)] } },
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name: claim },
    } },
    { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: claim, namespace }, spec: {
      accessModes, storageClassName: '', resources: { requests: storage }, volumeName: `pv-${claim}`,
    } },
  ]
}

function objects(dies: string, reboots: string, isDeleted: string): readonly object[] {
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    bare('kept', dies, { finalizers: [finalizer] }),
    { apiVersion: 'batch/v1', kind: 'Job', metadata: of('sum'), spec: { podReplacementPolicy: 'Failed', template: { metadata: { labels: { app: 'sum' } }, spec: {
      ...container, restartPolicy: 'Never', affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference: on(dies) }] } },
    } } } },
    ...localVolume('disk', dies), bare('local', dies, {}, withVolume('disk')),
    ...[['beside', reboots], ['left', isDeleted]].flatMap(([app = '', node = '']) => [...volume(app, namespace, usualWorld.driver), bare(app, node, {}, withVolume(app))]),
  ]
}

test('the scene is set', async () => {
  const play = await keeper.peace()
  const { lab, victim: dies } = play
  const [reboots = '', isDeleted = ''] = [...lab.nodes.keys()].filter((name) => name !== dies)
  for (const claim of ['beside', 'left']) lab.world.storage.addVolume(handleOf(claim))
  await apply(lab.api, objects(dies, reboots, isDeleted) as KubeObject[], (span) => clock.wait(span)) // each is more than the common type names
  const wanted = new Map([['kept', dies], ['sum', dies], ['local', dies], ['beside', reboots], ['left', isDeleted]])
  const all = () => Promise.all([...wanted].map(async ([app, node]) =>
    ({ app, pod: (await podsOf(lab, app)).find(({ spec, status }) => spec.nodeName === node && status?.phase === 'Running') })))
  await until('each pod runs where it belongs', async () => (await all()).every(({ pod }) => pod !== undefined), 90_000)
  scene = { play, dies, reboots, isDeleted, nodes: await watch(lab, '/api/v1/nodes'), uids: new Map((await all()).map(({ app, pod }) => [app, pod?.metadata.uid ?? ''])) }
})

test('10: a VolumeAttachment deleted by hand while nothing proves its node dead: it is made anew for that node, no other is given its volume, and no pod is freed', async () => {
  const { play: { lab, pods: running }, dies } = the()
  lab.world.cutPower(dies)
  lab.devices.get(dies)?.fault('refuse')
  await until('it is taken for dead, and no device answers', () => (theDeath()?.status.holds.length ?? 0) > 0, 60_000)
  const told = await watch<AttachmentObject>(lab, attachments)
  const [taken] = await attachmentsOf(lab, dies)
  assert.ok(taken)
  const isOfIt = ({ spec }: AttachmentObject): boolean => spec.source.persistentVolumeName === taken?.spec.source.persistentVolumeName
  assert.ok((await lab.api.remove(`${attachments}/${taken?.metadata.name}`)).ok)
  await until('the attach/detach controller has missed it', async () =>
    (await attachmentsOf(lab, dies)).some((one) => isOfIt(one) && one.metadata.uid !== taken?.metadata.uid && one.status?.attached === true), missedWithin)
  assert.equal([...new Set(told.told().filter(({ object }) => isOfIt(object)).map(({ object }) => object.spec.nodeName))], [dies])
  told.stop()
  const bound = (await workload(lab)).filter(({ metadata }) => metadata.deletionTimestamp === undefined).map(({ metadata }) => metadata.uid)
  assert.equal(running.filter((uid) => !bound.includes(uid)), [])
  assert.equal([theDeath()?.status.proof, theDeath()?.status.pods], [undefined, []])
})

/** It looks once a minute whether what it attached is attached still. */
const missedWithin = 150_000

test('9: a driver that fails to detach: its own words stand in the hold, nobody strips its finalizer, and the machine stays off', async () => {
  const { play: { lab, victim }, dies } = the()
  lab.world.csi.settings.detachFault = 'error'
  const node = lab.world.nodes.get(dies)
  assert.ok(node)
  node.faults.kept = 'staged mounts'
  lab.devices.get(dies)?.fault(undefined)
  await until('the attachments tell of the failure', async () => (await attachmentsOf(lab, victim)).filter(({ status }) => status?.detachError !== undefined).length === 2, 90_000)
  await until('and so does the hold', () => isHeld('waiting-for-volumes', /the driver refused: simulated fault/), 20_000)
  const stuck = await attachmentsOf(lab, dies)
  assert.ok(stuck.every(isKept), JSON.stringify(stuck))
})

test('18: a finalizer keeps the object of a freed pod, which is told and not stripped; a Job that replaces what has failed, and nothing else, has its replacement', async () => {
  const { play: { lab }, dies, uids } = the()
  await until('the replacement of the Job runs elsewhere', async () =>
    (await podsOf(lab, 'sum')).some(({ metadata, spec, status }) => metadata.uid !== uids.get('sum') && spec.nodeName !== dies && status?.phase === 'Running'), 60_000)
  await until('the hold names the finalizer', () => isHeld('finalizer', /pitfalls\/kept \(example\.com\/backup\)/), 20_000)
  const kept = await podOf('kept')
  assert.equal([kept?.status?.phase, kept?.metadata.finalizers], ['Failed', [finalizer]])
  assert.ok(kept?.status?.conditions?.some(({ type, reason }) => type === 'DisruptionTarget' && reason === 'HoldfastFenced'), 'whoever cleans up can see why')
})

test('19: a pod whose disk is in the dead machine is left alone: no other node could run it, and its name would be lost', async () => {
  const local = await podOf('local')
  assert.ok(local !== undefined && local.metadata.deletionTimestamp === undefined, 'it is there')
  assert.is(local?.status?.phase, 'Running', 'as it was last told')
})

test('9, 18: once the driver works and the owner of the finalizer has taken it off, the clear ends', async () => {
  const { play: { lab }, dies } = the()
  const dark = (): boolean => lab.world.nodes.get(dies)?.machine.state() === 'off'
  assert.ok(dark() && theDeath()?.status.attempts.every(({ action }) => action === 'off'), 'it was not switched on in the meantime')
  lab.world.csi.settings.detachFault = 'none'
  assert.ok((await lab.api.patch(`${pods}/kept`, 'merge', { metadata: { finalizers: null } })).ok)
  await until('nothing of it is left', async () => lab.attachments(dies).length === 0 && await podOf('kept') === undefined, 60_000)
})

test('3, 4: no pod of before is left in the API, and a staged mount is on the machine that is back: its quarantine stays, and says for what', async () => {
  const { play: { lab }, dies } = the()
  await until('the hold names the mount', () => isHeld('waiting-for-clean', /staging/), 90_000)
  assert.ok((await ourTaints(lab)).includes(`${dies} ${quarantineKey}`))
  const machine = lab.world.nodes.get(dies)?.machine
  for (const mount of machine?.mounts.values() ?? []) if (isStaged(mount)) machine?.mounts.delete(mount.path)
})

test('20: a reboot too fast for Ready to flip: quarantined until it is clean, nothing is ordered off or freed, and its pods go on where they were', async () => {
  const { play: { lab, beganAt }, reboots, nodes, uids } = the()
  const runs = (): number => lab.world.truth.entries.filter(({ what, facts }) => what === 'container runs' && facts['uid'] === uids.get('beside')).length
  const [since, before] = [nodes.told().length, runs()]
  lab.world.reboot(reboots, 500)
  const told = () => nodes.told().slice(since).filter(({ object }) => object.metadata.name === reboots).map(({ object }) => object)
  await until('it was quarantined', () => told().some((node) => bears(node, quarantineKey)), 30_000)
  await until('its pod runs again, and the quarantine is lifted', () => runs() > before && !bears(told().at(-1), quarantineKey), 90_000)
  const readiness = new Set(told().map(({ status }) => status?.conditions?.find(({ type }) => type === 'Ready')?.status))
  assert.equal([...readiness], ['True'], 'nothing of it showed')
  // A machine that is slow to start its agent may be taken for dead, until that is heard.
  await until('no incident of it is open', () => incidentsOf(the(), reboots).every(({ status }) => status.phase === 'Final'), 30_000)
  for (const { status } of incidentsOf(the(), reboots)) assert.equal([status.outcome, status.attempts, status.pods], ['Withdrawn', [], []])
  assert.is((await podOf('beside'))?.metadata.deletionTimestamp, undefined, 'the same pod')
  assert.is(lab.world.truth.entries.filter(({ at, what, facts }) => at >= beganAt && what === 'volume released' && facts['node'] === reboots).length, 0)
})

test('5, 8: a Node that is deleted instead of tainted, and nothing proves it dead: no pod of it and no volume is ours to take, and its incident ends', async () => {
  const { play: { lab, beganAt }, isDeleted, uids } = the()
  lab.devices.get(isDeleted)?.fault('refuse')
  lab.world.freeze(isDeleted)
  await until('it is taken for dead, and no device answers', () => incidentsOf(the(), isDeleted).some(({ status }) => status.holds.length > 0), 60_000)
  assert.ok((await lab.api.remove(`/api/v1/nodes/${isDeleted}`)).ok)
  // Longer than a proof would take; Kubernetes itself takes forty seconds.
  await clock.wait(10_000)
  const [incident] = incidentsOf(the(), isDeleted)
  assert.equal([incident?.status.phase === 'Final', incident?.status.proof, incident?.status.attempts, incident?.status.pods], [false, undefined, [], []], 'it goes on')
  const left = await podOf('left')
  assert.ok(left !== undefined && left.metadata.deletionTimestamp === undefined && left.metadata.uid === uids.get('left'), 'a container of it may run on')
  assert.is((await attachmentsOf(lab, isDeleted)).filter(({ metadata }) => metadata.deletionTimestamp === undefined).length, 1)
  lab.world.thaw(isDeleted)
  await until('it is heard again, and its incident is over', () => incidentsOf(the(), isDeleted).every(({ status }) => status.phase === 'Final'), 60_000)
  lab.devices.get(isDeleted)?.fault(undefined)
  await until('it is registered anew', async () => (await lab.api.get(`/api/v1/nodes/${isDeleted}`)).ok, 30_000)
  assert.is(lab.world.truth.entries.filter(({ at, what, facts }) => at >= beganAt && what === 'machine lost its power' && facts['node'] === isDeleted).length, 0)
})

for (const [number, says, verb, resource, group] of [['8', 'delete a Node', 'delete', 'nodes', ''], ['10', 'change a VolumeAttachment', 'patch', 'volumeattachments', 'storage.k8s.io']] as const) {
  test(`${number}: the API server itself says that the coordinator may not ${says}`, async () => {
    const [user, groups] = [`system:serviceaccount:${usualValues.namespace}:${names.coordinator}`, ['system:serviceaccounts', 'system:authenticated']]
    const asked = await the().play.lab.api.create<{ status: { allowed: boolean } }>('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
      apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec: { user, groups, resourceAttributes: { group, resource, verb } },
    })
    assert.is(asked.ok && asked.value.status.allowed, false)
  })
}

test('1, 2: out-of-service is gone before the machine has power again, and the quarantine outlives it by what caches do', async () => {
  const { play, dies, nodes } = the()
  await until('its incident is over', () => theDeath()?.status.phase === 'Final', 120_000)
  const incident = theDeath()
  assert.is(incident?.status.outcome, 'Recovered', incident === undefined ? '' : transcript(incident))
  const told = nodes.told().filter(({ object }) => object.metadata.name === dies)
  /** The last change that took it off. */
  const gone = (wanted: string): number => told[told.findLastIndex(({ object }) => bears(object, wanted)) + 1]?.at ?? Infinity
  const booted = happened(play, 'machine powered on').find(({ facts }) => facts['node'] === dies)
  assert.ok(told.some(({ object }) => bears(object, outOfServiceKey)), 'it stood')
  assert.ok(gone(outOfServiceKey) <= (booted?.at ?? -Infinity), 'gone while the machine was off')
  assert.ok(gone(quarantineKey) - gone(outOfServiceKey) > cachesOutlive, `${gone(quarantineKey) - gone(outOfServiceKey)} ms`)
  await until('the workload runs', () => workloadRuns(play.lab), 60_000)
  assert.equal([findings(play), await ourTaints(play.lab)], [[], []])
})

/** The thirty seconds that are kept, less what either word may have been under way. */
const cachesOutlive = 29_000

test('no replica lacked a right, and the lab stops', async () => {
  const { play: { lab }, nodes } = the()
  rightsSuffice(lab)
  nodes.stop()
  await keeper.stop()
})

test.run()
