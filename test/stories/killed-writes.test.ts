// The leader is killed between any two of the changes that it makes, in five incidents: the next one reads the same facts, and finishes. Nothing is lost,
// and nothing is done twice that must not be.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { fencesPath } from '../../coordinator/node-fence.ts'
import type { Incident, IncidentStatus } from '../../core/incident.ts'
import { settled } from '../../sim/stage.ts'
import { ended, findings, happened, lasting, ourTaints, peace, workloadRuns, type Play } from './play.ts'

const test = suite('killed between two writes')

interface Told {
  readonly title: string
  readonly seed: number
  /** So many at least. */
  readonly changes: number
  begin(on: Play): Promise<void>
  /** What is asked of it beyond that its taints are gone, and that the workload runs. */
  judge(on: Play, incident: Incident): void
}

const offs = (on: Play): number => happened(on, 'machine lost its power').length

/** Nothing was lost, and nothing was done twice. */
function recovered(on: Play, { status }: Incident): void {
  assert.is(status.outcome, 'Recovered')
  assert.equal(findings(on), [])
  assert.equal([offs(on), happened(on, 'machine booted').length], [1, 1])
  const freed = freedOf(status)
  assert.equal(freed.toSorted(), [...new Set(freed)].toSorted(), 'freed once each')
  assert.equal(freed.filter((uid) => !on.pods.includes(uid)), [], 'no successor was freed')
}

const freedOf = (status: IncidentStatus): readonly string[] => status.pods.filter(({ fate }) => fate === 'freed').map(({ uid }) => uid)

/** Notes what the coordinator asks of the API server that dooms a pod: its record would tell only what it wrote down. */
function noteDoomed({ world: { server, truth } }: Play): void {
  server?.faults.set([{
    does: 'slow', by: 0,
    strikes({ method, path, user }) {
      if (method === 'PATCH' && /\/pods\/[^/]+\/status$/.test(path) && user.name.endsWith(':holdfast-coordinator')) truth.note('pod doomed', { path })
      return false
    },
  }])
}

/** Nothing more was freed from when the proof was known to be false, and nobody is left that writes beside another. */
function voided(on: Play, { status }: Incident): void {
  assert.equal([status.outcome, offs(on)], ['Void', 0])
  const { clock, truth } = on.world
  const voidAt = Date.parse(status.voided[0]?.at ?? '') - clock.wall() + clock.now()
  assert.ok(voidAt > on.beganAt, 'it is said when')
  assert.equal(truth.entries.filter(({ what, at }) => what === 'pod doomed' && at > voidAt), [], 'nothing was freed after that')
  assert.equal(freedOf(status).filter((uid) => !on.pods.includes(uid)), [], 'no successor was freed')
  assert.equal(lasting(on), [], 'nobody writes beside another any more')
}

const incidents: readonly Told[] = [
  { title: 'a power loss', seed: 261, changes: 24, begin: async ({ world, victim }) => world.cutPower(victim), judge: recovered },
  { title: 'a kernel that froze', seed: 262, changes: 24, begin: async ({ world, victim }) => world.freeze(victim), judge: recovered },
  {
    title: 'a partition that heals while its order is under way', seed: 263, changes: 10,
    async begin(on) {
      const device = on.world.devices.get(`bmc-${on.victim}`)
      if (device !== undefined) device.fault = { does: 'ignore' }
      const heal = on.world.isolate(on.victim)
      on.world.clock.after(8_000, () => {
        heal()
        if (device !== undefined) device.fault = undefined
      })
    },
    judge(on, { status }) {
      assert.equal([status.outcome, findings(on), happened(on, 'volume released').length], ['Withdrawn', [], 0])
    },
  },
  {
    title: 'a fence by hand of a node that runs', seed: 264, changes: 24,
    async begin(on) {
      const made = await settled(on.world, on.world.api.create<KubeObject>(fencesPath, { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeFence', metadata: { name: 'by-hand' }, spec: { nodeName: on.victim } }))
      assert.ok(made.ok)
    },
    judge: recovered,
  },
  {
    title: 'a proof that is shown false', seed: 265, changes: 24,
    async begin(on) {
      const device = on.world.devices.get(`bmc-${on.victim}`)
      noteDoomed(on)
      if (device !== undefined) device.fault = { does: 'lie' }
      const heal = on.world.isolate(on.victim)
      on.world.clock.after(25_000, () => {
        heal()
        if (device !== undefined) device.fault = undefined
      })
    },
    judge: voided,
  },
]

const startsAgain = 20_000

/** The leader dies as it is told that its nth change came to be; the other one leads, and it comes back later. False: it made fewer. */
async function dies({ title, seed, begin, judge }: Told, nth: number): Promise<boolean> {
  const on = await peace({ seed })
  const leader = on.leader()
  assert.ok(leader !== undefined, 'somebody leads')
  on.world.doomReplica(leader, { at: 'change', nth, when: 'answered', later: 0, turns: 0 })
  await begin(on)
  const isDead = (): boolean => !on.world.replicas.running.has(leader)
  await on.until('it is dead, or all is over', async () => isDead() || ((await on.incidents()).length > 0 && (await on.incidents()).every(({ status }) => status.phase === 'Final')), 600_000)
  const died = isDead()
  if (died) on.world.clock.after(startsAgain, () => on.world.startReplica(leader))
  try {
    judge(on, await ended(on, 600_000))
    await on.until('the workload runs', () => workloadRuns(on), 60_000)
    assert.equal(ourTaints(on), [])
  } catch (error) {
    throw new Error(`${title}, killed after change ${nth}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
  return died
}

for (const told of incidents) {
  test(`${told.title}: the leader is killed after each change that it makes`, async () => {
    let nth = 1
    while (await dies(told, nth)) nth += 1
    assert.ok(nth > told.changes, `${nth - 1} changes`)
  })
}

test.run()
