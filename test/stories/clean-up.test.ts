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
  assert.ok((await on.incidents()).some(({ status }) => status.holds.some(({ because, detail }) => because === 'waiting-for-clean' && detail.includes('staging'))))
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
