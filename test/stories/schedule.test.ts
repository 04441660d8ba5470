// Where the seconds go. What a proof must wait for by law it waits for; nothing else takes its time. Each span is of virtual
// time, in which a decision costs none: what is left is what the product itself lets pass.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Ms } from '../../core/model.ts'
import { apart } from '../../core/reading.ts'
import { peace, theIncident, type Play } from './play.ts'

const test = suite('schedule')

/** From what makes a step due to its beginning, at most: a timer's grain, and a turn that came just before. */
const atOnce: Ms = 50
/** A few writes to the API server, one after the other. */
const written: Ms = 100

interface Run { readonly action: string; readonly at: Ms; readonly ended: Ms }

interface Course {
  /** The last beat that the leader heard: every instant here is counted from it. */
  readonly status: readonly Run[]
  readonly off: Run | undefined
  /** The incident's own moments. */
  readonly steps: Readonly<Record<string, Ms>>
  readonly proof: string | undefined
}

/** Power or kernel of the victim fails at some phase of its beat. */
async function course(seed: number, fault: 'power' | 'freeze'): Promise<Course> {
  const on = await peace({ seed, bootTime: [60_000, 60_000] })
  await on.run((seed * 237) % 1_000)
  if (fault === 'power') on.world.cutPower(on.victim)
  else on.world.freeze(on.victim)
  await on.run(200) // what was on its way when it failed has arrived
  const heardAt = on.coordinators.get(on.leader() ?? -1)?.seen.nodes.get(on.victim)?.beat?.at ?? NaN
  const wallAt = on.world.clock.wall() - (on.world.clock.now() - heardAt)
  await on.run(12_000)
  const incident = await theIncident(on)
  const steps: Record<string, Ms> = {}
  for (const { what, at } of incident?.status.timeline ?? []) steps[what] ??= Date.parse(at) - wallAt
  const all = runs(on, heardAt)
  return { status: all.filter(({ action }) => action === 'status'), off: all.find(({ action }) => action === 'off'), steps, proof: incident?.status.proof?.kind }
}

/** Programs that ran since the failure, one after the other: there is one device. */
function runs(on: Play, since: Ms): Run[] {
  const begun: Run[] = []
  for (const { at, what, facts } of on.world.truth.entries.filter((entry) => entry.at >= since)) {
    if (what === 'program runs') begun.push({ action: String(facts['action']), at: at - since, ended: NaN })
    const last = begun.at(-1)
    if (what === 'program ended' && last !== undefined) begun[begun.length - 1] = { ...last, ended: at - since }
  }
  return begun
}

function soon(at: Ms | undefined, due: Ms | undefined, within: Ms, what: string): void {
  assert.ok(at !== undefined && due !== undefined && at >= due && at - due < within, `${what}: due ${due}, came ${at}`)
}

for (const seed of [1, 2, 3, 4, 5]) {
  test(`power loss ${seed}: a first word before the suspicion, the second as soon as it counts, then nothing but writes`, async () => {
    const { status: [first, second], steps, proof } = await course(seed, 'power')
    assert.is(proof, 'found-off')
    soon(first?.at, 1_250, atOnce, 'the first reading begins when the beat is late')
    soon(second?.at, (first?.ended ?? NaN) + apart, atOnce, 'the second begins when it counts')
    soon(steps['opened'], second?.ended, atOnce, 'the incident is opened')
    soon(steps['proven'], second?.ended, written, 'the proof is on record')
    soon(steps['freed'], second?.ended, 2 * written, 'the pods are freed')
  })

  test(`kernel freeze ${seed}: ordered off when it is dead, read when the order ended, again as soon as it counts`, async () => {
    const { status, off, steps, proof } = await course(seed, 'freeze')
    assert.is(proof, 'off')
    const [first, second] = status.filter(({ at }) => at > (off?.at ?? Infinity))
    soon(steps['opened'], 3_000, atOnce, 'the incident is opened')
    soon(off?.at, 3_000, written, 'the order is given')
    soon(first?.at, off?.ended, atOnce, 'the first reading begins when the order has ended')
    soon(second?.at, (first?.ended ?? NaN) + apart, atOnce, 'the second begins when it counts')
    soon(steps['proven'], second?.ended, atOnce, 'it is proven')
    soon(steps['freed'], second?.ended, written, 'the pods are freed')
  })
}

test('while all is well no device is asked: a beat is not late by the network\'s usual delay', async () => {
  const on = await peace({ seed: 6, nodes: 12 })
  await on.run(60_000)
  const before = on.world.truth.entries.length
  await on.run(600_000)
  assert.equal(on.world.truth.entries.slice(before).filter(({ what }) => what === 'program runs').map(({ facts }) => facts), [])
})

test.run()
