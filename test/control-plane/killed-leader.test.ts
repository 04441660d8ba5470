// The leader is killed as a step comes onto the record, and the next one finishes: nothing is lost, and nothing is done twice
// that must not be. Between any two changes, in the same five stories, on the in-memory server at each run; here as one of its moments
// is on the record, between two of which there may be several writes: ten of them, others with each commit, and all with HOLDFAST_ALL=1.
// A kill that comes when the story is over shows nothing, and is counted as skipped. And the API server is away for a minute in the middle.
//
// A story goes on while its node is brought back, which takes half a minute of waiting: the next one begins meanwhile, on
// another node, so its kills meet the last steps of those before it as well.
import { execFileSync } from 'node:child_process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { fencesPath } from '../../coordinator/node-fence.ts'
import type { Incident } from '../../core/incident.ts'
import { usualValues } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { comesBack, findings, happened, lasting, rightsSuffice } from './lab-judge.ts'
import { ended, keepLab, theIncident, times, transcript, until, workloadRuns, type Play } from './lab-play.ts'
import { skip } from './said.ts'

const test = suite('killed leader on a real control plane')
const keeper = keepLab({ nodes: 6, zones: 3 })

interface Story {
  readonly name: string
  /** No more than it has before its last one, if it is said once for what it waits. */
  readonly moments: number
  /** So many are on its record before it is Final, whatever is said of its waiting: a kill as one of these comes is one in its middle, or a fault. */
  readonly surely: number
  /** It breaks a promise on purpose, and who judges a story that is not over yet would count that against it. */
  readonly breaks?: true
  begin(play: Play): Promise<void>
  /** What must come to pass before the next one may begin. */
  passes(play: Play): Promise<void>
  judge(play: Play, incident: Incident): Promise<void>
}

async function cleared(play: Play): Promise<void> {
  const { lab, victim } = play
  await until('the volumes are released', () => lab.attachments(victim).length === 0, 120_000)
  await until('the workload runs elsewhere', () => workloadRuns(lab, victim), 60_000)
  await until('the machine is on again', () => happened(play, 'machine booted').length > 0, 180_000)
}

const over = async (play: Play): Promise<void> => void await ended(play, 300_000)
const maps = `/api/v1/namespaces/${usualValues.namespace}/configmaps`
let fences = 0

const stories: readonly Story[] = [
  { name: 'cutPower', moments: 14, surely: 10, begin: async ({ lab, victim }) => lab.world.cutPower(victim), passes: cleared, judge: comesBack },
  { name: 'freeze', moments: 15, surely: 10, begin: async ({ lab, victim }) => lab.world.freeze(victim), passes: cleared, judge: comesBack },
  {
    name: 'a fence by hand', moments: 16, surely: 10, passes: cleared, judge: comesBack,
    async begin({ lab, victim }) {
      fences += 1
      const fence = { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeFence', metadata: { name: `by-hand-${fences}` }, spec: { nodeName: victim } }
      assert.ok((await lab.api.create<KubeObject>(fencesPath, fence as KubeObject)).ok) // a kind of ours, as a person would write it
    },
  },
  {
    name: 'a partition that heals under way', moments: 5, surely: 3, passes: over,
    async begin({ lab, victim }) {
      lab.devices.get(victim)?.fault('ignore')
      const heal = lab.isolate(victim)
      await clock.wait(8_000)
      heal()
      lab.devices.get(victim)?.fault(undefined)
    },
    async judge(play, { status }) {
      assert.equal([status.outcome, happened(play, 'machine lost its power').length, happened(play, 'volume released').length, findings(play)], ['Withdrawn', 0, 0, []])
    },
  },
  {
    name: 'a proof that is shown false', moments: 12, surely: 7, passes: over, breaks: true,
    async begin(play) {
      const { lab, victim } = play
      lab.devices.get(victim)?.lie(true)
      const heal = lab.isolate(victim)
      await until('the workload runs elsewhere', () => workloadRuns(lab, victim), 120_000)
      heal()
      await until('the proof is void', () => (theIncident(play)?.status.voided.length ?? 0) > 0, 60_000)
      lab.devices.get(victim)?.lie(false)
    },
    async judge(play, { status }) {
      assert.is(status.outcome, 'Void')
      await clock.wait(2_000)
      assert.equal(lasting(play), [], 'nobody writes beside another any more')
      // Its path is marked until its program is told otherwise, and the next story may want this node.
      const map = await play.lab.api.get<{ data: Record<string, string> }>(`${maps}/fence-config-${play.victim}`)
      assert.ok(map.ok)
      const told = map.value.data['fence-method-bmc'] ?? ''
      const method = `${told.replaceAll(/^power_timeout=.*\n/gm, '')}power_timeout=${told.includes('power_timeout=12\n') ? 11 : 12}\n`
      assert.ok((await play.lab.api.patch(`${maps}/fence-config-${play.victim}`, 'merge', { data: { 'fence-method-bmc': method } })).ok)
    },
  },
]

const some = 10
const all = stories.flatMap((story) => Array.from({ length: story.moments }, (_, index) => ({ story, moment: index + 1 })))
/** From one of those that a run tells to the next: each run tells of every story. */
const stride = 7
/** Both replicas at work again before the next kill. */
const startedAgain = 3_000
const ends: Promise<string | undefined>[] = []

function chosen(): typeof all {
  if (process.env['HOLDFAST_ALL'] === '1') return all
  const commit = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' })
  const first = Number.parseInt(commit.slice(0, 8), 16) % all.length
  return Array.from({ length: some }, (_, index) => all[(first + index * stride) % all.length]).filter((one) => one !== undefined)
}

for (const { story, moment } of chosen()) {
  test(`${story.name}: the leader is killed as moment ${moment} is on the record`, async () => {
    if (story.breaks === true) await Promise.all(ends)
    const play = await keeper.next()
    const { lab } = play
    const told = `${story.name}, killed at moment ${moment}`
    const begun = story.begin(play)
    ends.push(endOf(play, story, told))
    await until('the story has that many moments, or is over', () => {
      const status = theIncident(play)?.status
      return status !== undefined && (status.phase === 'Final' || status.timeline.length >= moment)
    }, 180_000)
    const leader = await lab.replicas.leader()
    assert.ok(leader !== undefined, 'somebody leads')
    await lab.replicas.kill(leader ?? 0)
    const { phase, step, timeline } = theIncident(play)?.status ?? {}
    console.log(`${told}: it stands at ${phase}, ${step}, with ${timeline?.length} moments`)
    const late = phase === 'Final'
    assert.ok(!late || moment > story.surely, `${told}: it was over before anybody died`)
    await clock.wait(startedAgain)
    await lab.replicas.start(leader ?? 0)
    await begun
    await story.passes(play)
    if (late) skip(`${told}: it was over with ${timeline?.length} moments before anybody died`)
  })
}

test('every one of these stories ends well', async () => {
  assert.equal((await Promise.all(ends)).filter((fault) => fault !== undefined), [])
})

/** What was wrong with it, once it is over: judged then, because a later story may have the same victim. */
async function endOf(play: Play, { judge }: Story, told: string): Promise<string | undefined> {
  try {
    const incident = await ended(play, 300_000)
    console.log(`${told}: ${times(play, incident)}`)
    await judge(play, incident)
    return undefined
  } catch (error) {
    return `${told}: ${error instanceof Error ? error.message : String(error)}`
  }
}

test('the API server is away for a minute in the middle: the story is finished all the same', async () => {
  const play = await keeper.peace()
  play.lab.world.freeze(play.victim)
  await until('an order on the record', () => (theIncident(play)?.status.attempts.length ?? 0) > 0, 60_000)
  await play.lab.plane.stopApiServer()
  await clock.wait(60_000)
  await play.lab.plane.startApiServer()
  const incident = await ended(play, 300_000)
  console.log(`the API server away for a minute: ${times(play, incident)}`)
  assert.is(incident.status.outcome, 'Recovered', transcript(incident))
  await comesBack(play, incident)
})

test('no replica lacked a right', async () => {
  const { lab } = await keeper.peace()
  rightsSuffice(lab)
})

test('the lab stops', async () => await keeper.stop())

test.run()
