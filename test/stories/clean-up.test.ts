// What a boot finds of pods before it, where the policy has the agent end it, and where not.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findings, happened, ourTaints, peace, workloadRuns, type Play } from './play.ts'

const test = suite('clean-up')

/** A node that died, was cleared, and is back with its staged mounts: somebody beside the kubelet makes them again. */
async function littered(seed: number, policy: object): Promise<Play> {
  const on = await peace({ seed, policy: { profile: 'fast', returnPatience: '60s', ...policy } })
  const node = on.world.nodes.get(on.victim)
  if (node !== undefined) node.faults.kept = 'staged mounts'
  on.world.cutPower(on.victim)
  await on.until('the workload runs elsewhere', () => workloadRuns(on, on.victim), 60_000)
  on.world.powerOn(on.victim)
  await on.until('it boots', () => node?.machine.state() === 'running', 120_000)
  return on
}

const staged = (on: Play) => [...on.world.nodes.get(on.victim)?.machine.mounts.values() ?? []].filter(({ path }) => path.includes('/plugins/')).length

test('a node that is back with staged mounts of nobody has them ended by its agent, and takes workloads again', async () => {
  const on = await littered(130, { cleanUp: 'agent' })
  assert.ok(staged(on) > 0)
  await on.until('the quarantine is lifted', () => ourTaints(on).length === 0, 180_000)
  assert.is(staged(on), 0)
  assert.ok(happened(on, 'agent unmounts').every(({ node, path }) => node === on.victim && String(path).includes('/plugins/')))
  assert.equal(findings(on), [])
  assert.ok((await on.incidents()).every(({ status }) => status.phase === 'Final'))
})

test('by the usual policy they stay, and so does the quarantine, which says for what', async () => {
  const on = await littered(131, {})
  await on.run(180_000)
  assert.ok(staged(on) > 0)
  assert.equal([ourTaints(on), happened(on, 'agent unmounts')], [[`${on.victim} holdfast.dev/quarantine`], []])
  assert.ok((await on.incidents()).some(({ status }) => status.holds.some(({ because, detail }) => because === 'out-of-patience' && detail.includes('staging') && detail.includes('longer than returnPatience (60.0 s)'))))
})

test('where nobody ends them, and the policy wants that, it is fenced for it once its patience is over, and its next boot has none of it', async () => {
  const on = await littered(133, { afterPatience: 'fence' })
  const node = on.world.nodes.get(on.victim)
  if (node !== undefined) node.faults.kept = 'nothing'
  await on.run(50_000)
  assert.equal([staged(on) > 0, happened(on, 'machine booted').length], [true, 1], 'within its patience it is waited for')
  await on.until('it is as it was', async () => workloadRuns(on) && ourTaints(on).length === 0 && (await on.incidents()).every(({ status }) => status.phase === 'Final'), 400_000)
  assert.equal([staged(on), happened(on, 'machine booted').length, findings(on)], [0, 2, []])
  assert.equal((await on.incidents()).map(({ cause, status }) => [cause, status.proof?.kind, status.outcome]).toSorted(), [['found-off', 'found-off', 'Recovered'], ['leftover', 'off', 'Recovered']])
})

test('what comes back with each boot is not fenced twice: it waits, and says that it did not help', async () => {
  const on = await littered(134, { afterPatience: 'fence' })
  await on.until('it says so', async () => (await on.incidents()).some(({ status }) => status.holds.some(({ because, detail }) => because === 'out-of-patience' && detail.includes('fenced for that already'))), 400_000)
  await on.run(180_000)
  assert.equal([happened(on, 'machine booted').length, ourTaints(on), findings(on)], [2, [`${on.victim} holdfast.dev/quarantine`], []])
})

test('one whose unmount hangs says so, and stays under quarantine', async () => {
  const on = await littered(132, { cleanUp: 'agent' })
  const node = on.world.nodes.get(on.victim)
  if (node !== undefined) node.faults.unmount = 'hangs'
  await on.run(120_000)
  assert.equal(ourTaints(on), [`${on.victim} holdfast.dev/quarantine`])
  assert.ok((await on.incidents()).some(({ status }) => status.holds.some(({ detail }) => detail.includes('it did not end within'))))
})

test.run()
