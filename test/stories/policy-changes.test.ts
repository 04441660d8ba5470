// Somebody takes the policy away in the middle of an incident, or the node out of it, or makes it a dry run, and puts it back: at each step the
// incident ends explained, and no taint stays.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { settled } from '../../sim/stage.ts'
import { ended, findings, happened, ourTaints, peace, programs, transcript, workload, workloadRuns, type Play } from './play.ts'

const test = suite('policy changes')

const collection = '/apis/holdfast.dev/v1alpha1/holdfastpolicies'
const fenced = 'example.com/fenced'

async function done(on: Play, what: Promise<{ readonly ok: boolean }>): Promise<void> {
  assert.ok((await settled(on.world, what)).ok)
}

/** Turns the world until the leader's own copy of the record has so many moments. */
async function untilMoment(on: Play, moment: number): Promise<void> {
  const has = (): boolean => [...on.coordinators.values()].some(({ seen }) => [...seen.incidents.values()].some(({ status }) => status.timeline.length >= moment))
  assert.ok(await on.world.turn().runWhen(has, 400_000), `the story has ${moment} moments`)
}

interface Change {
  readonly title: string
  begin(on: Play): Promise<void>
  end(on: Play): Promise<void>
  /** The incident waits meanwhile, for this reason; absent: it goes on by the policy that it began with. */
  readonly holds?: string
}

let taken: KubeObject | undefined

const changes: readonly Change[] = [
  {
    title: 'a dry run, and put back', holds: 'dry-run',
    begin: (on) => done(on, on.world.api.patch(`${collection}/all`, 'merge', { spec: { mode: 'dryRun' } })),
    end: (on) => done(on, on.world.api.patch(`${collection}/all`, 'merge', { spec: { mode: 'enforce' } })),
  },
  {
    title: 'deleted, and put back',
    async begin(on) {
      taken = on.world.server?.peek('holdfastpolicies.holdfast.dev')[0]
      await done(on, on.world.api.remove(`${collection}/all`))
    },
    async end(on) {
      const { apiVersion, kind, spec } = taken as KubeObject & { spec: object } // it stood there
      await done(on, on.world.api.create(collection, { apiVersion, kind, metadata: { name: 'all' }, spec } as KubeObject))
    },
  },
  {
    title: 'the node\'s label removed, for good',
    begin: (on) => done(on, on.world.api.patch(`/api/v1/nodes/${on.victim}`, 'merge', { metadata: { labels: { [fenced]: null } } })),
    end: async () => undefined,
  },
]

async function labelled(seed: number): Promise<Play> {
  const on = await peace({ seed })
  for (const name of on.world.nodes.keys()) await done(on, on.world.api.patch(`/api/v1/nodes/${name}`, 'merge', { metadata: { labels: { [fenced]: 'yes' } } }))
  await done(on, on.world.api.patch(`${collection}/all`, 'merge', { spec: { selector: { matchLabels: { [fenced]: 'yes' } } } }))
  await on.run(5_000)
  return on
}

async function momentsOf(seed: number): Promise<number> {
  const on = await labelled(seed)
  on.world.freeze(on.victim)
  return (await ended(on, 400_000)).status.timeline.length
}

/** What the coordinator has under way when it hears of the change goes on. */
const heardWithin = 3_000
const seed = 271
const moments = await momentsOf(seed)

for (const { title, begin, end, holds } of changes) {
  test(`${title}: at each step`, async () => {
    for (let moment = 1; moment < moments; moment += 1) {
      const on = await labelled(seed)
      on.world.freeze(on.victim)
      await untilMoment(on, moment)
      await begin(on)
      await on.run(heardWithin)
      const [orders, pods] = [programs(on, 'off') + programs(on, 'on'), workload(on).map(({ metadata }) => metadata.uid)]
      await on.run(60_000)
      if (holds !== undefined) {
        const open = (await on.incidents()).filter(({ status }) => status.phase !== 'Final')
        assert.equal(open.flatMap(({ status }) => status.holds.map(({ because }) => because)), open.map(() => holds), `moment ${moment}`)
        const since = workload(on).map(({ metadata }) => metadata.uid)
        assert.equal([programs(on, 'off') + programs(on, 'on'), pods.filter((uid) => !since.includes(uid))], [orders, []], `moment ${moment}: hands off`)
      }
      await end(on)
      const incident = await ended(on, 900_000)
      assert.is(incident.status.outcome, 'Recovered', `moment ${moment}: ${transcript(incident)}`)
      await on.until('the workload runs', () => workloadRuns(on), 60_000)
      assert.equal([findings(on), ourTaints(on), happened(on, 'machine lost its power').length], [[], [], 1], `moment ${moment}`)
    }
  })
}

test.run()
