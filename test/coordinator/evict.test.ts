// Asking pods to go: on record first, under their uid, with their own grace; what was answered stands on the node's row.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createApi, type KubeObject } from '../../coordinator/api.ts'
import { fencesPath } from '../../coordinator/node-fence.ts'
import type { Deed } from '../../core/action.ts'
import { evictedKey, type PodSeen } from '../../core/model.ts'
import { admin } from '../../sim/api-server/server.ts'
import { edgeWorld, fence, victim, type EdgeWorld } from './edge-world.ts'

const test = suite('evict')

async function asked(): Promise<EdgeWorld> {
  const world = edgeWorld()
  world.plantNode()
  await world.plantFence({}, { cause: 'by-hand' })
  return world
}

/** The watch has not brought it yet. */
async function abort({ clock, server }: EdgeWorld): Promise<void> {
  const person = createApi({ clock, transport: server.transportFor(admin) })
  assert.ok((await person.patch<KubeObject>(`${fencesPath}/${fence}`, 'merge', { spec: { abort: true } })).ok)
}

const evict = (...pods: readonly PodSeen[]): Deed => ({ do: 'evict', node: victim, incident: fence, pods })
const labelled = (name: string) => ({ metadata: { name, namespace: 'work', labels: { app: name }, uid: `uid-${name}` }, status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } })
const going = (world: EdgeWorld): readonly string[] => world.pods().filter(({ metadata }) => metadata.deletionTimestamp !== undefined).map(({ metadata }) => metadata.name)

function refuse(world: EdgeWorld, app: string): void {
  world.server.plant({
    apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: `${app}-budget`, namespace: 'work', generation: 1 }, spec: { minAvailable: 1, selector: { matchLabels: { app } } },
    status: { observedGeneration: 1, desiredHealthy: 1, currentHealthy: 1, disruptionsAllowed: 0 },
  } as KubeObject) // as the disruption controller counts it
}

test('a pod is written down, then evicted under its uid, with its own grace', async () => {
  const world = await asked()
  const pod = world.plantPod('web-0', labelled('web-0'))
  assert.ok(await world.do(evict(pod)))
  assert.equal(world.story, [`PUT ${fence}/status`, 'POST web-0/eviction'])
  assert.equal(world.writes[1]?.body, { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'web-0', namespace: 'work' }, deleteOptions: { preconditions: { uid: pod.uid } } })
  assert.equal(going(world), ['web-0'])
  assert.equal(world.stored().status.pods.map(({ name, fate }) => `${name} ${fate}`), ['web-0 evicted'])
  assert.is(world.observation.row(victim)?.firstSeen.get(evictedKey(fence)), world.clock.now())
  assert.equal(world.said.map(({ reason, note }) => `${reason} ${note}`), ['PodsEvicted work/web-0'])
})

test('a person pauses everything in the middle: nobody else is asked to go', async () => {
  const world = await asked()
  const pods = ['web-0', 'web-1', 'web-2'].map((name) => world.plantPod(name, labelled(name)))
  world.asked = ({ path }) => {
    if (path.endsWith('/eviction')) world.observation.seen.self.pause = { by: 'ada', reason: 'a look' }
  }
  assert.ok(await world.do(evict(...pods)))
  assert.equal(going(world), ['web-0'])
})

test('what a budget says stands on the row, costs nothing of the rate, and the pod stays', async () => {
  const world = await asked()
  const pods = [world.plantPod('web-0', labelled('web-0')), world.plantPod('db-0', labelled('db-0'))]
  refuse(world, 'web-0')
  for (let times = 0; times < 200; times += 1) assert.ok(await world.do(evict(...pods)))
  assert.equal(going(world), ['db-0'])
  const seen = world.observation.row(victim)?.evictions
  assert.equal(seen?.get(pods[0]?.uid ?? '')?.refused, { by: 'budget', says: 'The disruption budget web-0-budget needs 1 healthy pods and has 1 currently' })
  assert.is(seen?.get(pods[1]?.uid ?? '')?.refused, undefined)
  assert.is(world.writes.filter(({ path }) => path.endsWith('/status')).length, 1, 'written down once')
})

test('an eviction that the API server cannot do is told in its words; a pod that is gone, or another one, is no refusal', async () => {
  const world = await asked()
  const pod = world.plantPod('web-0', labelled('web-0'))
  const other = { ...world.plantPod('db-0', labelled('db-0')), uid: 'another' }
  refuse(world, 'web-0')
  world.server.plant({ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'second', namespace: 'work' }, spec: { selector: { matchLabels: { app: 'web-0' } } } } as KubeObject) // as a person has it
  await world.do(evict(pod, other, { ...pod, name: 'gone', uid: 'gone' }))
  const seen = world.observation.row(victim)?.evictions
  assert.is(seen?.get(pod.uid)?.refused?.by, 'server')
  assert.match(seen?.get(pod.uid)?.refused?.says ?? '', /more than one PodDisruptionBudget/)
  assert.equal([seen?.get('another')?.refused, seen?.get('gone')?.refused, going(world)], [undefined, undefined, []])
})

test('nobody is asked by who leads no more, by a leader that was deposed, after an abort, nor once their time is over', async () => {
  for (const [before, change] of [
    ['leads no more', (world: EdgeWorld) => { world.term = undefined }], ['deposed', (world: EdgeWorld) => { world.term = 2 }], ['aborted', abort],
    ['over', async (world: EdgeWorld) => { await world.do({ do: 'endEviction', node: victim, incident: fence, because: 'enough' }) }],
  ] as const) {
    const world = await asked()
    const pod = world.plantPod('web-0', labelled('web-0'))
    await change(world)
    await world.do(evict(pod))
    assert.equal(going(world), [], before)
  }
})

test('the end of their time is written once, with its reason', async () => {
  const world = await asked()
  const over: Deed = { do: 'endEviction', node: victim, incident: fence, because: 'the node does not answer' }
  assert.ok(await world.do(over) && await world.do({ ...over, because: 'another' }))
  assert.is(world.stored().status.eviction?.over?.because, 'the node does not answer')
  assert.equal(world.stored().status.timeline.map(({ what, detail }) => `${what} | ${detail}`), ['eviction over | the node does not answer'])
})

test('what was answered of pods that are not there any more is forgotten', async () => {
  const world = await asked()
  const pod = world.plantPod('web-0', labelled('web-0'))
  await world.do(evict(pod))
  world.observation.listed(victim, { askedAt: 1, listedAt: 2, items: [pod] })
  assert.is(world.observation.row(victim)?.evictions?.size, 1)
  world.observation.listed(victim, { askedAt: 3, listedAt: 4, items: [] })
  assert.is(world.observation.row(victim)?.evictions, undefined)
})

test.run()
