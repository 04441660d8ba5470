// Four policies, two kinds of owner: whose pod is freed when its node loses power, and whose stays. What was written before is
// there afterwards, byte for byte.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineClock as clock } from '../../edge/clock.ts'
import { until } from './cluster.ts'
import { secondWriters } from './judge.ts'
import { say } from './room.ts'
import { startStage, writes, type Stage } from './stage.ts'
import { begin, ended, incidentsOf, tell, transcript } from './story.ts'
import { bound, claims, logFile, volumes, workNamespace } from './workload.ts'
import { handleOf } from '../../sim/world/objects.ts'

const test = suite('policies')
let stage: Stage

type Owner = keyof typeof claims

const cases: readonly { readonly policy: string; readonly freed: readonly Owner[] }[] = [
  { policy: 'DoNothing', freed: [] },
  { policy: 'DeleteStatefulSetPod', freed: ['db'] },
  { policy: 'DeleteDeploymentPod', freed: ['web'] },
  { policy: 'DeleteBothStatefulsetAndDeploymentPod', freed: ['db', 'web'] },
]
const within = 180_000
/** Longer than any of ours takes to free what it frees. */
const watchedFor = 45_000

const contents = (owner: Owner): Buffer => readFileSync(join(stage.cluster.storage, handleOf(claims[owner]), logFile))
const checksum = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

/** `web` is rolled for it, and comes to where `db` is. */
async function bind(how: Parameters<typeof bound>[0]): Promise<void> {
  await stage.cluster.kubectl('patch', 'deployment', 'web', '--namespace', workNamespace, '--type', 'merge', '--patch', JSON.stringify(bound(how)))
  await stage.cluster.kubectl('rollout', 'status', 'deployment/web', '--namespace', workNamespace, '--timeout=120s')
}

async function uidOf(owner: Owner): Promise<string | undefined> {
  return (await stage.pods(workNamespace)).find(({ metadata: { labels, deletionTimestamp } }) => labels?.['app'] === owner && deletionTimestamp === undefined)?.metadata.uid
}

test('the stage is set', async () => {
  stage = await startStage(say)
})

for (const { policy, freed } of cases) {
  const stays = (['db', 'web'] as const).filter((owner) => !freed.includes(owner))
  test(`${policy}: ${freed.join(' and ') || 'nobody'} is freed, ${stays.join(' and ') || 'nobody'} stays`, async () => {
    await stage.cluster.kubectl('patch', 'holdfastpolicy', 'lab', '--type', 'merge', '--patch', JSON.stringify({ spec: { nodeDownPodDeletionPolicy: policy } }))
    // Freed alone it may go where `db` is not, or nothing would have been moved before the node is back.
    await bind(freed.join() === 'web' ? 'if it can' : 'always')
    const story = await begin(stage)
    const uids = { db: await uidOf('db'), web: await uidOf('web') }
    await story.machine.powerOff()
    const before = { db: contents('db'), web: contents('web') }
    await until('an incident', async () => (await incidentsOf(story)).length > 0, within)
    for (const owner of freed) {
      await until(`${owner} writes elsewhere`, () => stage.turns(handleOf(claims[owner])).at(-1)?.node !== story.machine.name, within)
      assert.is.not(await uidOf(owner), uids[owner])
    }
    if (freed.length === 0) {
      await clock.wait(watchedFor)
      assert.equal(stage.management.of.get(story.machine.name)?.orders.slice(story.orders), [], 'no device was asked for anything')
      await story.machine.powerOn()
    }
    const incident = await ended(story)
    await stage.peace()
    for (const owner of stays) assert.is(await uidOf(owner), uids[owner], `${owner} is the pod that it was\n${transcript(incident)}`)
    for (const owner of ['db', 'web'] as const) assert.is(checksum(contents(owner).subarray(0, before[owner].length)), checksum(before[owner]), `what ${owner} had written`)
    for (const volume of volumes) assert.ok(writes(stage, volume))
    tell(policy, story, incident)
    // Since it began: who was moved in good order before may come back to a boot in which he wrote.
    assert.equal(volumes.flatMap((volume) => secondWriters(stage.turns(volume).filter(({ last }) => last >= story.beganAt))), [])
    // One stayed where it was while the other went: the next story wants both in one place.
    await stage.cluster.kubectl('delete', 'pod', '--namespace', workNamespace, '--selector', 'app=web')
  })
}

test('the stage is left', async () => await stage.stop())

test.run()
