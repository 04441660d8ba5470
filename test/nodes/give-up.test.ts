// Cut off from everybody, and its management controller away: nobody can end what runs there from outside, so the node does it by itself. By the agent,
// which proves nothing to anybody: its work stays where it is. By its watchdog too, which does, once it must have fired.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { ProofRecord } from '../../core/incident.ts'
import type { Ms } from '../../core/model.ts'
import { gaveUpWithin } from '../../core/self-stop.ts'
import { endedWithin } from '../../core/watchdog.ts'
import { usualValues } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { until } from './cluster.ts'
import { running } from './containers.ts'
import { labWatchdog, labWatchdogs } from './lab-watchdog.ts'
import { say } from './room.ts'
import { recordsOf, startStage, uptime, type Stage } from './stage.ts'
import { begin, comesBack, ended, holding, incidentsOf, movedAway, tell, transcript, untouched, type Story } from './story.ts'
import { volumes } from './workload.ts'

const test = suite('give up')
const watchdogs = labWatchdogs()
let stage: Stage

const askedWithin = 60_000
/** Several times as long as a kubelet takes to start again what it finds ended. */
const watchedFor = 30_000
/** Longer than from one look of an agent at what runs to the next: what has begun since is not known to it. */
const known = 12_000
const provenWithin = 2 * endedWithin(labWatchdog)

const machines = () => [...stage.cluster.machines.values()]
const patch = (spec: object) => stage.cluster.kubectl('patch', 'holdfastpolicy', 'lab', '--type', 'merge', '--patch', JSON.stringify({ spec }))
const lastLine = ({ bootId }: Story): number => Math.max(...volumes.flatMap((volume) => stage.turns(volume).filter(({ boot }) => boot === bootId).map(({ last }) => last)))

/** As the agent keeps on its disk what it was asked for in this boot. */
function wasAsked(name: string): boolean {
  const machine = stage.cluster.machine(name)
  try {
    const kept = JSON.parse(readFileSync(join(machine.disk, 'var/lib/holdfast/self-stop.json'), 'utf8')) as { readonly boot: string; readonly node?: string }
    return kept.node === name && kept.boot.startsWith(machine.bootId())
  } catch {
    return false // nothing yet
  }
}

/** Once what runs there has run for so long. */
async function lost(age: Ms = 0): Promise<{ readonly story: Story; readonly cutAt: number; mend(): Promise<void> }> {
  const story = await begin(stage)
  await clock.wait(age)
  const controller = stage.management.of.get(story.machine.name)
  controller?.fault('refuse')
  await story.machine.cutCable()
  return {
    story, cutAt: uptime(),
    async mend() {
      await story.machine.mendCable()
      controller?.fault(undefined)
    },
  }
}

test('the stage is set, and while no policy asks for it nobody arms a watchdog', async () => {
  stage = await startStage(say, { values: { ...usualValues, freezer: 'on', watchdog: 'on' }, watchdogs })
  say('each machine has a lab watchdog: a pipe to the outside, where its power is cut when it is not fed')
})

test('self-stop: what it runs is gone in time, and nothing is moved; withdrawn once it is heard again', async () => {
  await patch({ giveUp: 'stop' })
  await until('every node is asked to give up', () => machines().every(({ name }) => wasAsked(name)), askedWithin)
  const { story, cutAt, mend } = await lost()
  await clock.wait(gaveUpWithin + watchedFor)
  const stopped = lastLine(story) - cutAt
  const [held, open] = [await holding(story), await incidentsOf(story)]
  say(`self-stop: the last line ${stopped.toFixed(1)} s after the cut, announced ${gaveUpWithin / 1_000}; held: ${held}`)
  assert.ok(stopped <= gaveUpWithin / 1_000, `the last line came ${stopped} s after the cut`)
  assert.is(await running(story.machine, story.pods), 0, 'ended, and not frozen')
  assert.equal(open.map(({ status }) => status.proof?.kind), [undefined], open.map(transcript).join('\n'))
  for (const volume of volumes) assert.is(stage.turns(volume).at(-1)?.boot, story.bootId)
  await mend()
  const incident = await ended(story)
  tell('cut off, self-stop', story, incident)
  assert.equal([incident.status.proof, incident.status.outcome], [undefined, 'Withdrawn'])
  await untouched(story, incident)
  assert.equal(machines().map(({ name }) => watchdogs.of(name).armed()), machines().map(() => false), 'nobody asked for watchdogs')
})

test('self-stop with a runtime that hangs: what nobody can stop stands still in time, and is ended without another line once the runtime goes on', async () => {
  const { story, cutAt, mend } = await lost(known)
  const { machine } = story
  const runtime = async (signal: 'STOP' | 'CONT'): Promise<void> => void await machine.run(['sh', '-c', `kill -${signal} $(cat /run/containerd.pid)`])
  try {
    await runtime('STOP')
    await clock.wait(gaveUpWithin + watchedFor)
    const stopped = lastLine(story) - cutAt
    say(`self-stop, and its runtime hangs: the last line ${stopped.toFixed(1)} s after the cut, announced ${gaveUpWithin / 1_000}`)
    assert.ok(stopped <= gaveUpWithin / 1_000, `the last line came ${stopped} s after the cut`)
    await runtime('CONT')
    await until('what was frozen is ended', async () => await running(machine, story.pods) === 0, askedWithin)
    await clock.wait(watchedFor)
    assert.is(lastLine(story) - cutAt, stopped, 'it wrote again while nobody permitted it')
    for (const volume of volumes) assert.is(stage.turns(volume).at(-1)?.boot, story.bootId)
  } finally {
    await runtime('CONT')
    await mend()
  }
  const incident = await ended(story)
  tell('cut off, self-stop, a runtime that hangs', story, incident)
  assert.equal([incident.status.proof, incident.status.outcome], [undefined, 'Withdrawn'])
  await untouched(story, incident)
})

test('self-fence: its lab watchdog resets it, the sum is waited out, and then its work is moved', async () => {
  await patch({ giveUp: 'watchdog', selfFenced: 'accept' })
  await until('every watchdog is armed, and on record', async () => {
    const records = await recordsOf(stage)
    return machines().every(({ name }) => watchdogs.of(name).armed() && records.get(name)?.watchdog?.state === 'armed' && (records.get(name)?.watchdog?.epoch ?? 0) > 0)
  }, askedWithin)
  const { story, cutAt, mend } = await lost()
  let proof: ProofRecord | undefined
  const proven = async (): Promise<boolean> => (proof = (await incidentsOf(story))[0]?.status.proof) !== undefined
  await until('it is proven', proven, provenWithin).catch(async (error: unknown) => { throw new Error(`${String(error)}\n${(await incidentsOf(story)).map(transcript).join('\n')}`, { cause: error }) })
  const [reset] = watchdogs.of(story.machine.name).resets
  assert.equal([proof?.kind, reset?.boot], ['self-fenced', story.bootId])
  await movedAway(story)
  await mend()
  const incident = await ended(story)
  tell('cut off, self-fence by the lab watchdog', story, incident)
  const at = (moment: string): number => Date.parse(incident.status.timeline.find(({ what }) => what === moment)?.at ?? '')
  say(`self-fence: the last line ${(lastLine(story) - cutAt).toFixed(1)} s after the cut, the lab watchdog's reset ${((reset?.at ?? 0) - cutAt).toFixed(1)}; the sum is ${endedWithin(labWatchdog) / 1_000} s, waited ${((at('proven') - at('permit revoked')) / 1_000).toFixed(1)}`)
  assert.ok(lastLine(story) <= (reset?.at ?? 0))
  // A record's instants are in whole seconds.
  assert.ok(at('proven') - at('permit revoked') > endedWithin(labWatchdog) - 1_000, transcript(incident))
  await comesBack(story, incident)
  assert.equal(machines().flatMap(({ name }) => watchdogs.of(name).resets.map(({ boot }) => boot)), [story.bootId], 'no other machine was reset, and this one once')
})

test('the stage is left', async () => await stage.stop())

test.run()
