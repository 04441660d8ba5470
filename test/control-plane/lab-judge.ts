// What is asked of a story in the lab once it is told: what the world's judges found, what was freed, what came back. The world
// answers, not the product; only what the product has to account for is read from its own record.
import * as assert from 'uvu/assert'
import type { Incident } from '../../core/incident.ts'
import type { Ms } from '../../core/model.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import type { TruthEntry } from '../../sim/truth.ts'
import type { Lab } from './lab.ts'
import { incidents, ourTaints, transcript, until, workload, workloadRuns, type Play } from './lab-play.ts'

export function happened({ lab, beganAt, alone, victim }: Play, what: string): readonly TruthEntry[] {
  return lab.world.truth.entries.filter((entry) => entry.at >= beganAt && entry.what === what && (alone || entry.facts['node'] === victim))
}

/** What the world's own judges found since the play began. Empty: no promise was broken. */
export function findings(play: Play): readonly string[] {
  return found(play, () => true)
}

/** Of these, what goes on at this moment. */
export function lasting(play: Play): readonly string[] {
  const lately = clock.now() - writesWithin
  return found(play, (end) => end === undefined || end >= lately)
}

/** Whoever has a volume writes into it far more often. */
const writesWithin: Ms = 1_000

function found({ lab: { world: { judges } }, beganAt }: Play, counts: (end: Ms | undefined) => boolean): readonly string[] {
  const fits = (one: { readonly from: Ms; readonly until: Ms | undefined }): boolean => one.from >= beganAt && counts(one.until)
  return [
    ...judges.twoWriters().filter(fits).map((one) => `two writers on ${one.volume}: ${one.one} and ${one.other}`),
    ...judges.wroteAfterRelease().filter(fits).map((one) => `${one.writer} wrote ${one.volume} after its release`),
    ...judges.twins().filter(fits).map((one) => `twins: ${JSON.stringify(one)}`),
  ]
}

/** No incident, no order, no taint, every pod where it was. */
export async function untouched(play: Play): Promise<void> {
  assert.equal(incidents(play).map(({ name }) => name), [])
  assert.is(happened(play, 'device ordered').length, 0)
  assert.equal(await ourTaints(play.lab), [])
  await nothingFreed(play)
}

export async function nothingFreed(play: Play): Promise<void> {
  const uids = (await workload(play.lab)).map((pod) => pod.metadata.uid)
  assert.equal(play.pods.filter((uid) => !uids.includes(uid)), [])
  assert.is(happened(play, 'volume released').length, 0)
  assert.equal(findings(play), [])
}

/** The incident ended well: nothing was lost, nothing was done twice, and the node is back. */
export async function comesBack(play: Play, incident: Incident): Promise<void> {
  assert.is(incident.status.outcome, 'Recovered', transcript(incident))
  assert.equal(findings(play), [])
  assert.equal((await ourTaints(play.lab)).filter((taint) => play.alone || taint.startsWith(`${play.victim} `)), [])
  if (play.alone) await until('the workload runs', () => workloadRuns(play.lab), 60_000)
  assert.is(happened(play, 'machine booted').length, 1, 'the machine booted once')
  assert.is(happened(play, 'machine lost its power').length, 1, 'it lost its power once')
  const freed = incident.status.pods.filter((pod) => pod.fate === 'freed').map((pod) => pod.uid)
  assert.equal(freed.toSorted(), [...new Set(freed)].toSorted(), 'freed once each')
  // A scheduler that has not seen the taint yet may send one to the dead node, where nothing begins.
  const ran = new Set(happened(play, 'container runs').map(({ facts }) => facts['uid']))
  assert.equal(freed.filter((uid) => !play.pods.includes(uid) && ran.has(uid)), [], 'no successor that ever ran was freed')
}

/** Nothing that a replica asked for was refused for want of a right: a look that is refused stands in its log like a write. */
export function rightsSuffice(lab: Lab): void {
  assert.equal(lab.replicaLog().map((line) => JSON.stringify(line)).filter((line) => /forbidden|"status":403/i.test(line)), [])
}
