// What the stories share: a victim, the times of what happened to it, and what is asked of every story once it is told.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { gateMemory, stateIn } from '../../agent/gate-memory.ts'
import type { Hold, HoldReason, Incident } from '../../core/incident.ts'
import type { Ms } from '../../core/model.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { until } from './cluster.ts'
import { requestsIn, writing } from './api-journal.ts'
import { callsOf } from './journal.ts'
import { secondWriters, type Turn } from './judge.ts'
import type { Machine } from './machine.ts'
import { say } from './room.ts'
import { nodesOf, ourTaint, uptime, type Pod, type Stage } from './stage.ts'
import { volumes, workNamespace } from './workload.ts'

export interface Story {
  readonly stage: Stage
  /** The victim. */
  readonly machine: Machine
  readonly bootId: string
  /** Of the workload, on this machine. */
  readonly pods: readonly Pod[]
  /** Names of the incidents that were there before. */
  readonly before: ReadonlySet<string>
  /** In the words of the writers, and of the incidents. */
  readonly beganAt: number
  readonly beganWall: number
  /** Orders to the victim's controller that were there before. */
  readonly orders: number
}

const movedWithin: Ms = 120_000
const endedWithin: Ms = 240_000
/** Longer than every profile's patience and every hold of an agent that starts anew. */
const quietFor: Ms = 20_000

/** The machine of the workload is the victim, unless another is named. */
export async function begin(stage: Stage, victim?: Machine): Promise<Story> {
  await stage.peace()
  const pods = await stage.pods(workNamespace)
  const nodes = new Set(pods.map(({ spec }) => spec.nodeName ?? ''))
  assert.is(nodes.size, 1, `the workload is on ${[...nodes].join(' and ')}`)
  const machine = victim ?? stage.cluster.machine([...nodes][0] ?? '')
  return {
    stage, machine, pods: pods.filter(({ spec }) => spec.nodeName === machine.name), bootId: machine.bootId(), before: new Set((await stage.incidents()).map(({ name }) => name)),
    beganAt: uptime(), beganWall: clock.wall(), orders: stage.management.of.get(machine.name)?.orders.length ?? 0,
  }
}

/** Since the story began. */
export const incidentsOf = async ({ stage, before }: Story): Promise<readonly Incident[]> => (await stage.incidents()).filter(({ name }) => !before.has(name))

/** Another machine writes every volume. */
export async function movedAway(story: Story): Promise<void> {
  await written('the workload writes elsewhere', story, ({ node }) => node !== story.machine.name)
}

/** Another boot does, be it the same machine's: which of them comes first is not the product's to say. */
export async function goesOn(story: Story): Promise<void> {
  await written('the workload writes in another boot', story, ({ boot }) => boot !== story.bootId)
}

async function written(what: string, story: Story, so: (turn: Turn) => boolean): Promise<void> {
  const all = (): boolean => volumes.every((volume) => story.stage.turns(volume).slice(-1).some(so))
  await until(what, all, movedWithin)
    .catch(async (error: unknown) => { throw new Error(`${String(error)}\n${(await incidentsOf(story)).map(transcript).join('\n')}`, { cause: error }) })
}

export async function ended(story: Story): Promise<Incident> {
  let found: readonly Incident[] = []
  await until('one incident, and that is Final', async () => (found = await incidentsOf(story)).length > 0 && found.every(({ status }) => status.phase === 'Final'), endedWithin)
    .catch((error: unknown) => { throw new Error(`${String(error)}\n${found.map(transcript).join('\n')}`, { cause: error }) })
  const [incident, ...others] = found
  assert.equal(others.map(transcript), [])
  if (incident === undefined) throw new Error('no incident') // the wait above saw one
  return incident
}

export function transcript({ name, status }: Incident): string {
  return [name, ...status.timeline.map(({ at, what, detail }) => `${at} ${what} | ${detail}`), JSON.stringify(status.holds)].join('\n')
}

/** The product's own moments, each when it first came, and that of the file: when somebody wrote again. */
export function tell(what: string, story: Story, incident: Incident): void {
  const moments = new Map<string, string>()
  for (const { what: moment, at } of incident.status.timeline) if (!moments.has(moment)) moments.set(moment, ((Date.parse(at) - story.beganWall) / 1_000).toFixed(1))
  say(`${what}: ${[...moments].map(([moment, at]) => `${moment} ${at}`).join(', ')}; ${writtenAgain(story)}`)
}

/** When another boot first wrote, volume by volume; nothing where the victim's was not the last to write. */
export function writtenAgain({ stage, bootId, beganAt }: Story): string {
  return volumes.flatMap((volume) => {
    const found = stage.turns(volume)
    const last = found.findLastIndex(({ boot }) => boot === bootId)
    const after = last === -1 ? undefined : found[last + 1]
    return after === undefined ? [] : [`${volume} written again ${(after.first - beganAt).toFixed(1)}`]
  }).join(', ')
}

export function neverTwoWriters({ stage }: Story): void {
  assert.equal(volumes.flatMap((volume) => secondWriters(stage.turns(volume))), [])
}

/** By its own journal the storage took each volume from the victim, gave it to another, and refused nobody: nothing but the product kept two nodes from writing. */
export function refusedNobody({ stage, machine, beganAt }: Story): void {
  for (const volume of volumes) {
    const calls = callsOf(stage.cluster.storage, volume).filter(({ at }) => at >= beganAt)
    assert.equal(calls.filter(({ refused }) => refused !== undefined), [])
    const first = (method: string, by: (who: string) => boolean): number => calls.findIndex((call) => call.method === method && by(call.who))
    const steps = [
      first('ControllerUnpublishVolume', (who) => who === 'controller'),
      first('ControllerPublishVolume', (who) => who === 'controller'),
      first('NodeStageVolume', (who) => who !== machine.name),
    ]
    assert.not(steps.includes(-1), `${volume}: ${JSON.stringify(calls)}`)
    assert.equal(steps.toSorted((one, other) => one - other), steps, `${volume}: ${JSON.stringify(calls)}`)
  }
}

/** Of the boot that the machine is in, as its agent has it on its disk. Undefined: nothing of this boot. */
export function gateOf({ disk, bootId }: Machine): 'open' | 'shut' | undefined {
  const file = join(disk, 'var/lib/holdfast', gateMemory)
  const kept = stateIn(existsSync(file) ? readFileSync(file, 'utf8') : undefined)
  return kept?.boot.startsWith(bootId()) === true ? kept.gate : undefined
}

/** However it went, no agent asked the API server to write. */
export function agentsOnlyRead({ stage }: Story): void {
  assert.equal(requestsIn(stage.cluster.folder).filter(writing), [])
}

/** Nothing was lost and nothing done twice: the machine in another boot, and nothing of ours left on any node. */
export async function comesBack(story: Story, incident: Incident): Promise<void> {
  assert.is(incident.status.outcome, 'Recovered', transcript(incident))
  neverTwoWriters(story)
  await story.stage.peace()
  assert.is.not(story.machine.bootId(), story.bootId)
  assert.equal((await nodesOf(story.stage)).flatMap(({ spec }) => spec?.taints?.filter(ourTaint) ?? []), [])
  const freed = incident.status.pods.filter(({ fate }) => fate === 'freed').map(({ uid }) => uid)
  assert.equal(story.pods.map(({ metadata: { uid = '' } }) => uid).filter((uid) => !freed.includes(uid)), [], 'each pod of the workload was freed')
  neverTwoWriters(story)
  agentsOnlyRead(story)
}

/** Why its incident does not go on, once there is such a hold. */
export async function holding(story: Story, because?: HoldReason): Promise<string> {
  let holds: readonly Hold[] = []
  const looked = async (): Promise<boolean> => {
    holds = (await incidentsOf(story)).flatMap(({ status }) => status.holds).filter((hold) => because === undefined || hold.because === because)
    return holds.length > 0
  }
  await until(`a hold ${because ?? ''}`, looked, endedWithin)
  return [...new Set(holds.map((hold) => `${hold.because}: ${hold.detail}`))].join('; ')
}

/** What is said of it since the story began, where there is no incident to say it on. */
export async function heldBecause({ stage, beganWall }: Story, because: HoldReason): Promise<string | undefined> {
  const events = JSON.parse(await stage.cluster.kubectl('get', 'events.events.k8s.io', '--all-namespaces', '--output', 'json')) as { items: { eventTime?: string; reason?: string; note?: string }[] } // as kubectl prints them
  return events.items.find(({ reason, note, eventTime }) => reason === 'Held' && note?.startsWith(`${because}: `) && Date.parse(eventTime ?? '') >= beganWall)?.note
}

/** No incident but the one that is known of, nothing cut, every pod where it was. */
export async function untouched(story: Story, known?: Incident): Promise<void> {
  await clock.wait(quietFor)
  await leftAlone(story, known)
  await story.stage.peace()
}

/** So far, while the trouble may still go on. */
export async function leftAlone(story: Story, known?: Incident): Promise<void> {
  assert.equal((await incidentsOf(story)).filter(({ name }) => name !== known?.name).map(transcript), [])
  assert.equal(story.stage.management.of.get(story.machine.name)?.orders.slice(story.orders).filter(({ order }) => order === 'ForceOff'), [])
  const pods = (await story.stage.pods(workNamespace)).filter(({ spec }) => spec.nodeName === story.machine.name)
  assert.equal(pods.map(({ metadata: { uid } }) => uid).toSorted(), story.pods.map(({ metadata: { uid } }) => uid).toSorted())
  assert.is(story.machine.bootId(), story.bootId)
  for (const volume of volumes) assert.is(story.stage.turns(volume).at(-1)?.boot, story.bootId)
  neverTwoWriters(story)
  agentsOnlyRead(story)
}
