import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { judgeDumps, type DumpJudge } from '../../../../sim/search/judges/dumps.ts'
import { crashKernels } from '../../../../sim/search/crash-kernels.ts'
import { quietWorld, type Quiet } from './quiet-world.ts'

const test = suite('search: the judge of dumps')

const { dumpsWithin, announcesWithin } = crashKernels

/** As the product's program would be seen to run. */
function order({ world, victim }: Quiet, replica = 0): void {
  const [one] = world.switches(victim).flat()
  world.truth.note('program runs', { action: 'off', ip: one?.address, plug: one?.plug, replica: world.replicas.running.get(replica)?.identity })
}

/** Its crash kernel is up two seconds after the panic, and tells after another one. */
async function crashed(after = 2_000): Promise<{ readonly quiet: Quiet; readonly judge: DumpJudge }> {
  const quiet = await quietWorld()
  const judge = judgeDumps(quiet.history)
  judge.look(quiet.sight())
  quiet.world.panic(quiet.victim, { after, speaksAfter: 1_000 })
  return { quiet, judge }
}

const said = (judge: DumpJudge) => judge.found().map(({ judge: whose, what }) => `${whose}: ${what.replaceAll(/\d+\.\d s/g, '* s')}`)

test('power that is taken while the dump is written, by whoever has heard of it, is needless; when its time is over it is not', async () => {
  for (const [waited, found] of [[10_000, 1], [dumpsWithin - 5_000, 1], [dumpsWithin + 5_000, 0]] as const) {
    const { quiet, judge } = await crashed()
    await quiet.run(3_000 + waited)
    order(quiet)
    assert.is(judge.found().length, found, `${waited}`)
    if (found === 1) assert.match(said(judge)[0] ?? '', /^restraint: \S+ was ordered off, and its crash kernel had told replica-0-\d of its dump \* s before$/)
  }
})

test('a word that has just come could not be known', async () => {
  const { quiet, judge } = await crashed(announcesWithin)
  await quiet.run(announcesWithin + 2_000)
  order(quiet)
  assert.equal(said(judge), [])
})

test('before any word its time to come is waited for; of a node that was silent before, or that a person wants fenced, it is not', async () => {
  for (const [how, found] of [['well', 1], ['silent before', 0], ['by hand', 0], ['later', 0]] as const) {
    const quiet = await quietWorld()
    const judge = judgeDumps(quiet.history)
    judge.look(quiet.sight())
    if (how === 'silent before') {
      quiet.world.isolate(quiet.victim)
      judge.look(quiet.sight())
    }
    if (how === 'by hand') {
      await quiet.done<unknown>(quiet.world.api.create('/apis/holdfast.dev/v1alpha1/nodefences', { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeFence', metadata: { name: 'by-hand' }, spec: { nodeName: quiet.victim, cause: 'by-hand' } }))
    }
    quiet.world.panic(quiet.victim, { after: 60_000, speaksAfter: 1_000 })
    await quiet.run(how === 'later' ? announcesWithin : 5_000)
    order(quiet)
    assert.is(judge.found().length, found, how)
  }
})

test('what was ordered before the crash goes its way, and the next boot owes nothing to the one before', async () => {
  const before = await quietWorld()
  const judge = judgeDumps(before.history)
  judge.look(before.sight())
  order(before)
  before.world.panic(before.victim, { after: 2_000, speaksAfter: 1_000 })
  await before.run(13_000)
  order(before)
  assert.equal(said(judge), [])
  const { quiet, judge: other } = await crashed()
  await quiet.run(5_000)
  quiet.world.reboot(quiet.victim, 1_000)
  await quiet.run(30_000)
  order(quiet)
  assert.equal(said(other), [])
})

test.run()
