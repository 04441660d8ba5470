// One node, volumes of two drivers: the switch of the one's network cuts the machine off, the other refuses to detach what is in use. What
// either is of is freed, and a pod with a volume of each as well, while the machine's power is left on.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { workImage, volume } from '../../sim/world/objects.ts'
import { usualWorld } from '../../sim/world/settings.ts'
import { ended, findings, ourTaints, peace, programs, theIncident, workload, type Play } from './play.ts'

const test = suite('joined')

const apart = 'csi.apart.dev'
const { driver, namespace } = usualWorld
/** Each app's claims, and the driver of each. */
const apps = { near: [['near', driver]], far: [['far', apart]], both: [['both-near', driver], ['both-far', apart]] } as const
type App = keyof typeof apps

function app(name: App): KubeObject {
  const labels = { app: name }
  const volumes = apps[name].map(([claimName]) => ({ name: claimName, persistentVolumeClaim: { claimName } }))
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace, labels }, spec: {
    replicas: 1, selector: { matchLabels: labels }, strategy: { type: 'Recreate' },
    template: { metadata: { labels }, spec: { terminationGracePeriodSeconds: 30, automountServiceAccountToken: false, containers: [{ name: 'main', image: workImage }], volumes } },
  } } as KubeObject // a Deployment is more than the fields that KubeObject names
}

const named = Object.keys(apps) as readonly App[] // by its type
const podOf = async (on: Play, name: App) => workload(on).find(({ metadata }) => metadata.labels?.['app'] === name && metadata.deletionTimestamp === undefined)

async function scene(seed: number): Promise<Play> {
  const on = await peace({
    seed, power: 'fabric, then bmc', policy: { powerAfter: '30m', safeDetach: [apart] }, driverApart: apart,
    objects: named.flatMap((name) => [...apps[name].flatMap(([claim, of]) => volume(claim, namespace, of)), app(name)]),
  })
  for (const name of named) assert.is((await podOf(on, name))?.spec.nodeName, on.victim, name)
  return on
}

async function runsElsewhere(on: Play, name: App): Promise<boolean> {
  const pod = await podOf(on, name)
  return pod?.status.phase === 'Running' && pod.spec.nodeName !== on.victim
}
const parts = async (on: Play): Promise<readonly (string | undefined)[]> => {
  const proof = (await theIncident(on))?.status.proof
  return [proof?.kind, proof?.joined?.kind]
}

test('a frozen machine: what is out of its reach goes at once, what its driver detaches a minute later, and so does what takes both', async () => {
  const on = await scene(1)
  on.world.freeze(on.victim)
  await on.until('what is out of reach runs elsewhere', () => runsElsewhere(on, 'near'), 60_000)
  assert.equal([await parts(on), await runsElsewhere(on, 'far'), await runsElsewhere(on, 'both')], [['isolated', undefined], false, false])
  await on.until('all of them run elsewhere', async () => await runsElsewhere(on, 'far') && runsElsewhere(on, 'both'), 180_000)
  assert.equal([await parts(on), programs(on, 'off') > 0, on.world.judges.isPoweredOn(on.victim)], [['isolated', 'safe-detach'], true, true])
  assert.equal((await theIncident(on))?.status.attempts.map(({ method, action }) => `${method} ${action}`), ['fabric-off off'])
  assert.match((await theIncident(on))?.status.holds.find(({ because }) => because === 'partial')?.detail ?? '', /free is what fabric-off put out of its reach, and what its drivers refuse to detach while it is in use; .*plain-\S+ \(it has no volume/)
  on.world.thaw(on.victim)
  const incident = await ended(on, 400_000)
  assert.equal([incident.status.outcome, findings(on), ourTaints(on)], ['Recovered', [], []])
})

test('a partition: what is written still stays with its writer, in the driver\'s own words, until it is heard and its agent has ended it', async () => {
  const on = await scene(1)
  const heal = on.world.isolate(on.victim)
  await on.until('both are proven', async () => (await parts(on)).join() === 'isolated,safe-detach', 180_000)
  await on.until('what is out of reach runs elsewhere', () => runsElsewhere(on, 'near'), 60_000)
  await on.run(30_000)
  assert.equal([await runsElsewhere(on, 'far'), await runsElsewhere(on, 'both')], [false, false])
  assert.match((await theIncident(on))?.status.holds.find(({ because }) => because === 'waiting-for-volumes')?.detail ?? '', /pv-\S*far \(the driver refused: vol-\S*far is in use by work\/\S+ on node/)
  heal()
  const incident = await ended(on, 400_000)
  await on.until('all of them run', async () => workload(on).filter(({ metadata, status }) => metadata.deletionTimestamp === undefined && status.phase === 'Running').length === 6, 120_000)
  assert.equal([incident.status.outcome, findings(on), ourTaints(on)], ['Recovered', [], []])
})

test('the leader is killed once both are proven: the next one frees by both', async () => {
  const on = await scene(1)
  on.world.freeze(on.victim)
  await on.until('both are proven', async () => (await parts(on)).join() === 'isolated,safe-detach', 180_000)
  on.world.killReplica(on.leader() ?? 0)
  await on.until('all of them run elsewhere', async () => await runsElsewhere(on, 'far') && runsElsewhere(on, 'both'), 180_000)
  on.world.thaw(on.victim)
  await ended(on, 400_000)
  assert.equal([findings(on), ourTaints(on)], [[], []])
})

test.run()
