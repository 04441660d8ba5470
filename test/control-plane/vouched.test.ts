// Two documents on a real control plane. "Non graceful node shutdown" (SafeDetach): a machine that nothing proves off, and a driver that
// refuses to detach what is in use. "Node Failure Recovery with ForceEviction Taint": its three scenarios.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { evictedByKey, forceEvictionKey } from '../../core/acknowledge.ts'
import { outOfServiceKey, quarantineKey } from '../../core/clear.ts'
import type { Ms } from '../../core/model.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { isStaged } from '../../sim/mounts.ts'
import type { AttachmentObject, NodeObject, PodObject } from '../../sim/objects.ts'
import { apply, handleOf, volume, workImage } from '../../sim/world/objects.ts'
import { usualWorld } from '../../sim/world/settings.ts'
import { findings, rightsSuffice } from './lab-judge.ts'
import { ended, isReady, keepLab, ourTaints, theIncident, transcript, until, workload, workloadRuns, type Play } from './lab-play.ts'
import { watch, type Told, type Watch } from './lab-watch.ts'

const test = suite('what stands in for a power device, on a real control plane')
/** Nobody calls it safe to detach. */
const otherDriver = 'other.csi.holdfast.dev'
/** A volume that its driver never lets go of is not waited for longer. */
const clearPatience = '30s'
const keeper = keepLab({ driverApart: otherDriver, policy: { clearPatience } })

type Node = NodeObject

/** What the API server tells of a story: versions of all three are of one sequence. */
interface Account { readonly nodes: Watch<Node>; readonly pods: Watch<PodObject>; readonly attachments: Watch<AttachmentObject> }

async function account({ lab }: Play): Promise<Account> {
  const [nodes, pods, attachments] = await Promise.all([watch<Node>(lab, '/api/v1/nodes'), watch<PodObject>(lab, '/api/v1/pods'), watch<AttachmentObject>(lab, attachmentsPath)])
  return { nodes, pods, attachments }
}

function close({ nodes, pods, attachments }: Account): void {
  for (const one of [nodes, pods, attachments]) one.stop()
}

const attachmentsPath = '/apis/storage.k8s.io/v1/volumeattachments'
const hasTaint = ({ spec }: Node, wanted: string): boolean => spec?.taints?.some(({ key }) => key === wanted) === true
const readyOf = ({ status }: Node): string | undefined => status?.conditions?.find(({ type }) => type === 'Ready')?.status
const ofVictim = ({ nodes }: Account, { victim }: Play): readonly Told<Node>[] => nodes.told().filter(({ object }) => object.metadata.name === victim)

const harmed = ({ type, object }: Told<PodObject>): boolean => type === 'DELETED' || object.status?.phase === 'Failed' || object.metadata.deletionTimestamp !== undefined

/** When the first of the story's pods was touched: doomed, told to end, or gone. */
function firstHarm({ pods }: Account, play: Play): bigint {
  const first = pods.told().find((one) => play.pods.includes(one.object.metadata.uid ?? '') && harmed(one))
  if (first === undefined) throw new Error('no pod was touched')
  return first.version
}

/** When the last attachment of these volumes to the victim was gone. */
function lastDetach({ attachments }: Account, { victim }: Play, claims: readonly string[]): bigint {
  const volumes = claims.map((claim) => `pv-${claim}`)
  const gone = attachments.told().filter(({ type, object: { spec } }) =>
    type === 'DELETED' && spec.nodeName === victim && volumes.includes(spec.source.persistentVolumeName ?? ''))
  assert.is(gone.length, claims.length)
  return gone.at(-1)?.version ?? 0n
}

const nodePath = ({ victim }: Play): string => `/api/v1/nodes/${victim}`

async function taint(play: Play, set: boolean): Promise<void> {
  await until(`${forceEvictionKey} is ${set ? 'set' : 'lifted'}`, async () => {
    const node = await play.lab.api.get<Node>(nodePath(play))
    if (!node.ok) return false
    const others = (node.value.spec?.taints ?? []).filter(({ key }) => key !== forceEvictionKey)
    const taints = set ? [...others, { key: forceEvictionKey, effect: 'NoSchedule' }] : others
    return (await play.lab.api.patch(nodePath(play), 'merge', { metadata: { resourceVersion: node.value.metadata.resourceVersion }, spec: { taints } })).ok
  }, 10_000)
}

const bears = async (play: Play, wanted: string): Promise<boolean> => {
  const node = await play.lab.api.get<Node>(nodePath(play))
  return node.ok && hasTaint(node.value, wanted)
}

/** Its power device is away: nothing proves the machine off. */
function mute({ lab, victim }: Play): void {
  lab.devices.get(victim)?.fault('refuse')
}

const detail = (play: Play, because: string): string => theIncident(play)?.status.holds.find((hold) => hold.because === because)?.detail ?? ''

/** What of the story's volumes is attached to the victim. */
async function attachedTo({ lab, victim }: Play): Promise<readonly AttachmentObject[]> {
  const answer = await lab.api.get<{ items: AttachmentObject[] }>(attachmentsPath)
  if (!answer.ok) throw new Error(answer.error.message)
  return answer.value.items.filter(({ spec }) => spec.nodeName === victim && claims.some((claim) => spec.source.persistentVolumeName === `pv-${claim}`))
}

/** Of the pods with volumes of the usual driver. */
const claims = ['data-db-0', 'web'] as const
const spared = ['bare', 'shared', 'foreign', 'mixed'] as const
const sparedPath = '/api/v1/namespaces/spared/pods'

const isShared = (claim: string): boolean => claim === 'shared'
const isForeign = (claim: string): boolean => claim.endsWith('foreign')
const driverOf = (claim: string): string => (isForeign(claim) ? otherDriver : usualWorld.driver)

/** One for each condition: no volume, a ReadWriteMany one, one of another driver, and one of these beside one that is covered. */
function sparedObjects(victim: string): readonly object[] {
  const claimsOf = {
    bare: [], shared: ['shared'], foreign: ['foreign'], mixed: ['mixed-own', 'mixed-foreign'],
  } as const satisfies Readonly<Record<(typeof spared)[number], readonly string[]>>
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'spared' } },
    ...spared.flatMap((name) => [
      ...claimsOf[name].flatMap((claim) => volume(claim, 'spared', driverOf(claim), isShared(claim) ? 'ReadWriteMany' : 'ReadWriteOnce')),
      { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'spared' }, spec: {
        nodeName: victim, automountServiceAccountToken: false, containers: [{ name: 'main', image: workImage }],
        volumes: claimsOf[name].map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
      } },
    ]),
  ]
}

async function sparedPods({ lab }: Play): Promise<readonly PodObject[]> {
  const answer = await lab.api.get<{ items: PodObject[] }>(sparedPath)
  return answer.ok ? answer.value.items : []
}

/** To its driver the volume is in use by the machine still, as to a storage whose session nobody has ended, until the answer is called. */
function keepOpen({ lab: { world }, victim }: Play, claim: string): () => void {
  const write = world.storage.pen(handleOf(claim), { node: victim, boot: 'open session', pod: 'open session', podUid: 'open session' }, 'data')
  let open = true
  const again = (): void => {
    if (!open) return
    write()
    clock.after(writesEvery, again)
  }
  again()
  return () => { open = false }
}

const writesEvery: Ms = 200

let shut: { readonly play: Play; readonly told: Account; readonly letGo: () => void } | undefined

test('SafeDetach: the quarantine stands first, covered pods are freed and no others, and the volumes go without the kubelet\'s word', async () => {
  const play = await keeper.peace()
  const { lab, victim } = play
  const { world } = lab
  assert.ok((await lab.api.patch(`/apis/storage.k8s.io/v1/csidrivers/${usualWorld.driver}`, 'merge', { metadata: { annotations: { 'holdfast.dev/safe-detach': 'true' } } })).ok)
  for (const claim of ['shared', 'foreign', 'mixed-own', 'mixed-foreign']) world.storage.addVolume(handleOf(claim), { shared: isShared(claim), apart: isForeign(claim) })
  await apply(lab.api, sparedObjects(victim) as KubeObject[], (span) => clock.wait(span)) // each is more than the common type names
  await until('all of them run', async () => (await sparedPods(play)).filter(({ status }) => status?.phase === 'Running').length === spared.length, 90_000)
  const told = await account(play)
  const node = world.nodes.get(victim)
  assert.ok(node)
  node.faults.kept = 'staged mounts'
  world.csi.settings.refusesInUse = true
  mute(play)
  world.cutPower(victim)
  await clock.wait(writesEvery * 10)
  shut = { play, told, letGo: keepOpen(play, 'web') }
  await until('a proof of its drivers', () => theIncident(play)?.status.proof?.kind === 'safe-detach', 150_000)
  await until('a volume that nobody uses is released', async () => (await attachedTo(play)).length === 1, 60_000)
  await until('the refusal of the other one is quoted', () => /pv-web .*in use by open session/.test(detail(play, 'waiting-for-volumes')), 20_000)
  await until('the pod of the first runs elsewhere', async () =>
    (await workload(lab)).some((pod) => pod.metadata.labels?.['app'] === 'db' && pod.status.phase === 'Running' && pod.spec.nodeName !== victim), 60_000)
  const leftAlone = (): number => Number(/(\d+) pods stay: .*(no volume|not of a driver that refuses|ReadWriteMany)/.exec(detail(play, 'partial'))?.[1] ?? 0)
  await until('what is left alone is told, with reasons', () => leftAlone() >= spared.length, 60_000)
  const unharmed = (await sparedPods(play)).filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  assert.equal(unharmed.map(({ metadata }) => metadata.name).toSorted(), [...spared].toSorted(), 'left alone')
  const [first, of] = [firstHarm(told, play), ofVictim(told, play)]
  const stood = of.find(({ object }) => hasTaint(object, quarantineKey))
  assert.ok(stood !== undefined && stood.version < first, `quarantined at ${stood?.version}, first touched at ${first}`)
  const lost = of.find(({ object }) => readyOf(object) !== 'True')
  assert.ok(lost !== undefined && lost.version < first, `Ready lost at ${lost?.version}, first touched at ${first}`)
  assert.not(of.some(({ object }) => hasTaint(object, outOfServiceKey)), 'it would switch off the check of every driver')
  assert.equal(findings(play), [])
})

test('SafeDetach, the return: the quarantine stays while a mount is left, and while a VolumeAttachment is; then it goes', async () => {
  if (shut === undefined) throw new Error('the story before did not begin')
  const { play, told, letGo } = shut
  const { lab, victim } = play
  const machine = lab.world.nodes.get(victim)?.machine
  for (const name of spared) await lab.api.remove(`${sparedPath}/${name}`, { gracePeriodSeconds: 0 })
  lab.world.powerOn(victim)
  await until('a mount is named', () => /staging/.test(detail(play, 'waiting-for-clean')), 90_000)
  assert.ok(await bears(play, quarantineKey))
  for (const mount of machine?.mounts.values() ?? []) if (isStaged(mount)) machine?.mounts.delete(mount.path)
  await until('what is attached is named', () => detail(play, 'waiting-for-volumes').includes('still being detached'), 60_000)
  assert.equal([await bears(play, quarantineKey), (await attachedTo(play)).length], [true, 1])
  letGo()
  const incident = await ended(play, 400_000)
  assert.is(incident.status.outcome, 'Recovered', transcript(incident))
  const of = ofVictim(told, play)
  const lifted = of[of.findLastIndex(({ object }) => hasTaint(object, quarantineKey)) + 1]
  assert.ok(lifted !== undefined && lastDetach(told, play, claims) < lifted.version, 'nothing was attached any more')
  close(told)
  lab.world.csi.settings.refusesInUse = false
  const node = lab.world.nodes.get(victim)
  if (node !== undefined) node.faults.kept = 'nothing'
  lab.heal()
  assert.ok((await lab.api.patch(`/apis/storage.k8s.io/v1/csidrivers/${usualWorld.driver}`, 'merge', { metadata: { annotations: { 'holdfast.dev/safe-detach': null } } })).ok)
})

test('scenario 1: shut down, tainted, its pods evicted; a heartbeat in the middle of that takes the taint not off, and it goes when all is over', async () => {
  const play = await keeper.peace()
  const { lab, victim } = play
  const told = await account(play)
  mute(play)
  lab.world.csi.settings.detachFault = 'error'
  lab.world.cutPower(victim)
  await taint(play, true)
  const node = await lab.api.get<Node>(nodePath(play))
  assert.match(node.ok ? node.value.metadata.annotations?.[evictedByKey] ?? '' : '', /admin/, 'the API server wrote down who')
  await until('the word is a proof, once Ready is lost', () => theIncident(play)?.status.proof?.kind === 'vouched', 150_000)
  await until('the eviction has begun', () => theIncident(play)?.status.timeline.some(({ what }) => what === 'freed') === true, 60_000)
  lab.world.powerOn(victim)
  await until('it sends a heartbeat', () => isReady(lab, victim), 60_000)
  await until('a replica has heard it', () => detail(play, 'waiting-for-volumes').includes('still being detached'), 60_000)
  assert.equal([await bears(play, forceEvictionKey), (await attachedTo(play)).length], [true, claims.length], 'half-way')
  lab.world.csi.settings.detachFault = 'none'
  await until('the workload runs elsewhere', () => workloadRuns(lab, victim), 120_000)
  const incident = await ended(play, 180_000)
  assert.is(incident.status.outcome, 'Recovered', transcript(incident))
  const [from, to] = [firstHarm(told, play), lastDetach(told, play, claims)]
  const meanwhile = ofVictim(told, play).filter(({ version }) => version >= from && version <= to)
  assert.ok(meanwhile.some(({ object }) => readyOf(object) === 'True'), 'it was Ready in the middle')
  assert.equal(meanwhile.filter(({ object }) => !hasTaint(object, forceEvictionKey)), [], 'never removed half-way')
  close(told)
  assert.equal([findings(play), await ourTaints(lab)], [[], []])
})

test('scenario 2: restarted without reaching the API server: its pods go all the same, and nothing of them runs there', async () => {
  const play = await keeper.peace()
  const { lab, victim } = play
  mute(play)
  lab.world.cutPower(victim)
  await taint(play, true)
  const heal = lab.isolate(victim)
  lab.world.powerOn(victim)
  await until('the workload runs elsewhere', () => workloadRuns(lab, victim), 180_000)
  assert.equal(findings(play), [])
  heal()
  const incident = await ended(play, 180_000)
  assert.is(incident.status.outcome, 'Recovered', transcript(incident))
  assert.equal([findings(play), await ourTaints(lab)], [[], []])
})

test('scenario 3: the node is Ready when it is tainted: the taint goes, and nothing else', async () => {
  const play = await keeper.peace()
  const { lab, victim } = play
  assert.ok(await isReady(lab, victim))
  await taint(play, true)
  await until('the taint is taken off', async () => !await bears(play, forceEvictionKey), 30_000)
  await clock.wait(3_000)
  assert.is(theIncident(play), undefined)
  const uids = (await workload(lab)).map((pod) => pod.metadata.uid)
  assert.equal(play.pods.filter((uid) => !uids.includes(uid)), [], 'no pod went')
})

test('no replica lacked a right', async () => rightsSuffice((await keeper.peace()).lab))

test('the lab stops', async () => await keeper.stop())

test.run()
