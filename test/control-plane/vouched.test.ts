// Two documents on a real control plane. "Non graceful node shutdown" (SafeDetach): a machine that nothing proves off, and a driver that
// refuses to detach what is in use. "Node Failure Recovery with ForceEviction Taint": its three scenarios.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { evictedByKey, forceEvictionKey } from '../../core/acknowledge.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { usualWorld } from '../../sim/world/settings.ts'
import { findings, rightsSuffice } from './lab-judge.ts'
import { ended, isReady, keepLab, ourTaints, theIncident, transcript, until, workload, workloadRuns, type Play } from './lab-play.ts'

const test = suite('what stands in for a power device, on a real control plane')
const keeper = keepLab()

interface Node extends KubeObject { readonly spec?: { readonly taints?: readonly { readonly key: string }[] } }

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
  return node.ok && (node.value.spec?.taints ?? []).some(({ key }) => key === wanted)
}

/** Its power device is away: nothing proves the machine off. */
function mute({ lab, victim }: Play): void {
  lab.devices.get(victim)?.fault('refuse')
}

const detail = (play: Play, because: string): string => theIncident(play)?.status.holds.find((hold) => hold.because === because)?.detail ?? ''
const moment = (play: Play, what: string): string => theIncident(play)?.status.timeline.find((one) => one.what === what)?.at ?? ''

let shut: Play | undefined

test('SafeDetach: the quarantine stands first, covered pods are freed and no others, and the volumes go without the kubelet\'s word', async () => {
  const play = await keeper.peace()
  shut = play
  const { lab, victim } = play
  assert.ok((await lab.api.patch(`/apis/storage.k8s.io/v1/csidrivers/${usualWorld.driver}`, 'merge', { metadata: { annotations: { 'holdfast.dev/safe-detach': 'true' } } })).ok)
  const spared = await lab.api.create<KubeObject>('/api/v1/namespaces/work/pods', { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'bare', labels: { app: 'bare' } }, spec: { nodeName: victim, automountServiceAccountToken: false, containers: [{ name: 'main', image: 'holdfast.dev/sim/writer:1' }] } })
  assert.ok(spared.ok)
  mute(play)
  lab.world.cutPower(victim)
  await until('a proof of its drivers', () => theIncident(play)?.status.proof?.kind === 'safe-detach', 150_000)
  await until('the volumes are released', () => lab.attachments(victim).length === 0, 60_000)
  const node = await lab.api.get<Node>(nodePath(play))
  assert.equal(node.ok && (node.value.spec?.taints ?? []).some(({ key }) => key.endsWith('/out-of-service')), false)
  await until('the pods with volumes run elsewhere', async () => (await workload(lab)).filter((pod) => ['db', 'web'].includes(pod.metadata.labels?.['app'] ?? '') && pod.status.phase === 'Running' && pod.spec.nodeName !== victim).length === 2, 60_000)
  const pods = await workload(lab)
  assert.ok(pods.some((pod) => pod.metadata.name === 'bare'), 'a pod without a volume is left alone')
  assert.ok(moment(play, 'tainted') <= moment(play, 'freed') && moment(play, 'tainted') !== '', transcriptOf(play))
  assert.match(detail(play, 'partial'), /bare .*no volume/)
  assert.equal(findings(play), [])
})

const transcriptOf = (play: Play): string => {
  const incident = theIncident(play)
  return incident === undefined ? '' : transcript(incident)
}

test('SafeDetach, the return: the machine boots, and the quarantine goes once it is clean', async () => {
  if (shut === undefined) throw new Error('the story before did not begin')
  const { lab, victim } = shut
  lab.world.powerOn(victim)
  await lab.api.remove('/api/v1/namespaces/work/pods/bare', { gracePeriodSeconds: 0 })
  const incident = await ended(shut, 180_000)
  assert.is(incident.status.outcome, 'Recovered', transcript(incident))
  assert.not(await bears(shut, 'holdfast.dev/quarantine'))
  lab.heal()
  assert.ok((await lab.api.patch(`/apis/storage.k8s.io/v1/csidrivers/${usualWorld.driver}`, 'merge', { metadata: { annotations: { 'holdfast.dev/safe-detach': null } } })).ok)
})

test('scenario 1: shut down, tainted, its pods evicted; it sends a heartbeat again, and the taint goes when all is over', async () => {
  const play = await keeper.peace()
  const { lab, victim } = play
  mute(play)
  lab.world.cutPower(victim)
  await taint(play, true)
  const node = await lab.api.get<Node>(nodePath(play))
  assert.match(node.ok ? node.value.metadata.annotations?.[evictedByKey] ?? '' : '', /admin/, 'the API server wrote down who')
  await until('the word is a proof, once Ready is lost', () => theIncident(play)?.status.proof?.kind === 'vouched', 150_000)
  await until('the workload runs elsewhere', () => workloadRuns(lab, victim), 90_000)
  assert.ok(await bears(play, forceEvictionKey))
  lab.world.powerOn(victim)
  const incident = await ended(play, 180_000)
  assert.is(incident.status.outcome, 'Recovered', transcript(incident))
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
