import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { halfFed, leftInTheDark, unfinished } from '../../../../sim/search/judges/liveness.ts'
import { look } from '../../../../sim/search/judges/sight.ts'
import { judgeTaints, ownerlessFor } from '../../../../sim/search/judges/taints.ts'
import { quietWorld, type Quiet } from './quiet-world.ts'

const test = suite('search: the judge of liveness')

const quarantine = { key: 'holdfast.dev/quarantine', effect: 'NoSchedule' }

test('everything has ended where nothing happened, and each thing that has not is told', async () => {
  const { on, world, victim, taint, plantFence, run, done, product, pod } = await quietWorld()
  assert.equal(unfinished(on), [])
  plantFence('a-1', victim, { phase: 'Final' })
  assert.equal(unfinished(on), [])
  plantFence('a-2', victim, { phase: 'Done' })
  assert.match(unfinished(on).join('\n'), /^a-2 is Done/)
  await taint(victim, quarantine)
  assert.match(unfinished(on).join('\n'), new RegExp(`^${victim} bears holdfast.dev/quarantine`, 'm'))
  await done(world.api.remove('/apis/holdfast.dev/v1alpha1/nodefences/a-2'))
  await taint(victim, { key: 'node.kubernetes.io/out-of-service', value: 'anybody', effect: 'NoSchedule' })
  assert.equal(unfinished(on), [`${victim} bears node.kubernetes.io/out-of-service`])
  await taint(victim)
  await done(product.patch('/api/v1/namespaces/work/pods/db-0/status', 'strategic', { metadata: { uid: pod().metadata.uid ?? '' }, status: { phase: 'Failed' } }))
  assert.match(unfinished(on).join('\n'), /the workload does not run/)
  world.cutPower(victim)
  await run(10)
  assert.match(unfinished(on).join('\n'), new RegExp(`^${victim} is off$`, 'm'))
})

test('a machine that an order switched off is dark, one that lost its power otherwise is not ours', async () => {
  const { world, history, victim, run, plantFence, done } = await quietWorld()
  const [other = ''] = [...world.nodes.keys()].filter((name) => name !== victim)
  void world.devices.get(`bmc-${victim}`)?.order('1', 'off')
  world.cutPower(other)
  plantFence('a-1', victim, { phase: 'Running' })
  await run(10_000)
  assert.equal(leftInTheDark(history).map(({ what }) => what), [`${victim} was switched off by us and is off still`])
  for (const [kind, phase, dark] of [['vouched', 'Running', 0], ['off', 'Running', 1], ['vouched', 'Final', 1]] as const) {
    await done(world.api.remove('/apis/holdfast.dev/v1alpha1/nodefences/a-1'))
    plantFence('a-1', victim, { phase, proof: { kind, boot: 'b', methods: [] } })
    assert.is(leftInTheDark(history).length, dark, `by a person's word it stays off: ${kind}, ${phase}`)
  }
  world.powerOn(victim)
  await run(1_000)
  assert.equal(leftInTheDark(history), [])
})

test('a crash kernel that hangs is to have a word about it, but where it refused before a silence could be seen', async () => {
  for (const [profile, after, dark] of [['fast', 8_000, 1], ['fast', 1_500, 0], ['balanced', 6_000, 0], ['conservative', 13_000, 0], ['conservative', 20_000, 1]] as const) {
    const { world, history, victim, run } = await quietWorld({ policy: { profile } })
    world.panic(victim, { after, speaksAfter: 50 })
    await run(30_000)
    assert.is(leftInTheDark(history).length, dark, `${profile}, ${after}`)
  }
})

const forgotten = 'bmc-off was ordered off, and is not configured any more as it was then: nothing here can switch it on'

test('one that an order switched off by a configuration that is not there any more is dark as long as nobody is told so, and no longer than it is so', async () => {
  const { world, history, victim, run, plantFence, done } = await quietWorld()
  const config = `/api/v1/namespaces/holdfast-system/configmaps/fence-config-${victim}`
  const edit = (more: string | null) => done(world.api.patch(config, 'merge', { data: { 'fence-method-other': more } }))
  const [cut] = look(history).switches(victim).flat()
  const dark = () => leftInTheDark(history).length
  await edit('agent=none\n')
  world.truth.note('program runs', { replica: 'replica-0-1', action: 'off', ip: cut?.address, plug: cut?.plug })
  void world.devices.get(`bmc-${victim}`)?.order('1', 'off')
  plantFence('a-1', victim, { phase: 'Running' })
  await run(10_000)
  await edit(null)
  assert.is(dark(), 1, 'nobody is told')
  plantFence('a-2', victim, { phase: 'Running', holds: [{ because: 'still-cut', detail: forgotten, lifts: 'y', since: '2026-01-01T00:00:00.000Z' }] })
  assert.is(dark(), 0)
  await edit('agent=none\n')
  assert.is(dark(), 1, 'it is there again')
})

test('a dead machine with volumes about which nobody has a word; an incident is one, and so is a hold', async () => {
  for (const death of ['freeze', 'cutPower'] as const) {
    const { world, history, victim, plantFence, beside } = await quietWorld()
    assert.equal(leftInTheDark(history), [])
    world[death](victim)
    assert.equal(leftInTheDark(history).map(({ what, node }) => [what.endsWith('with volumes attached, and nobody has a word about it'), node]), [[true, victim]])
    beside.push({ do: 'hold', node: victim, because: 'storm', detail: 'x', lifts: 'y' })
    assert.equal(leftInTheDark(history), [])
    beside.pop()
    plantFence('a-1', victim, { phase: 'Running' })
    assert.equal(leftInTheDark(history), [])
  }
})

test('a machine that runs on one of its feeds: told where an order of ours cut the other', async () => {
  const { world, history, victim, run } = await quietWorld({ power: 'two feeds on two strips' })
  const [cut, pressed] = look(history).switches(victim).flat()
  world.devices.get(pressed?.device ?? '')?.turn(pressed?.plug ?? '', 'off')
  await run(1_000)
  assert.equal(halfFed(history), [], 'somebody pressed the button of an outlet')
  world.devices.get(pressed?.device ?? '')?.turn(pressed?.plug ?? '', 'on')
  world.truth.note('program runs', { replica: 'replica-0-1', action: 'off', ip: cut?.address, plug: cut?.plug })
  void world.devices.get(cut?.device ?? '')?.order(cut?.plug ?? '', 'off')
  await run(10_000)
  assert.equal(halfFed(history).map(({ what }) => what), [`${victim} runs, and ${cut?.device}/${cut?.plug} that feeds it was switched off by us and is off still`])
  void world.devices.get(cut?.device ?? '')?.order(cut?.plug ?? '', 'on')
  await run(10_000)
  assert.equal(halfFed(history), [])
})

test('a machine that an order of ours cut off from its storage, and that nobody gave back', async () => {
  const { world, history, victim, run } = await quietWorld({ power: 'fabric, then bmc' })
  const [[port] = []] = look(history).switches(victim)
  world.truth.note('program runs', { replica: 'replica-0-1', action: 'off', ip: port?.address, plug: port?.plug })
  void world.devices.get('fabric')?.order(victim, 'off')
  await run(2_000)
  assert.equal(halfFed(history).map(({ what }) => what), [`${victim} runs, and fabric/${victim} that it reaches its storage by was switched off by us and is off still`])
  void world.devices.get('fabric')?.order(victim, 'on')
  await run(2_000)
  assert.equal(halfFed(history), [])
})

const turns = async ({ history, run }: Quiet, judge: ReturnType<typeof judgeTaints>, span: number) => {
  for (let count = 0; count < span / 5_000; count += 1) {
    judge.look(look(history))
    await run(5_000)
  }
}

test('a taint of ours that stands without an owner is a violation after its while', async () => {
  const quiet = await quietWorld()
  const judge = judgeTaints()
  await quiet.taint(quiet.victim, quarantine, { key: 'node.kubernetes.io/out-of-service', value: 'holdfast', effect: 'NoSchedule' })
  await turns(quiet, judge, ownerlessFor - 5_000)
  assert.equal(judge.found(), [])
  await turns(quiet, judge, 15_000)
  assert.equal(judge.found().map(({ judge: whose, node }) => [whose, node]), [['liveness', quiet.victim], ['liveness', quiet.victim]])
})

test('an incident that is not over owns it, a hold owns it; one that is over, or of another node, does not; another\'s taint needs no owner', async () => {
  const quiet = await quietWorld()
  const { taint, victim, plantFence, done, world, beside } = quiet
  const judge = judgeTaints()
  await taint(victim, quarantine)
  plantFence('a-1', victim, { phase: 'Running' })
  await turns(quiet, judge, 2 * ownerlessFor)
  await done(world.api.remove('/apis/holdfast.dev/v1alpha1/nodefences/a-1'))
  beside.push({ do: 'hold', node: victim, because: 'waiting-for-clean', detail: 'x', lifts: 'y' })
  await turns(quiet, judge, 2 * ownerlessFor)
  await taint(victim, { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' })
  beside.pop()
  await turns(quiet, judge, 2 * ownerlessFor)
  assert.equal(judge.found(), [])
  await taint(victim, quarantine)
  plantFence('a-2', victim, { phase: 'Final' })
  plantFence('a-3', [...world.nodes.keys()].find((name) => name !== victim) ?? '', { phase: 'Running' })
  await turns(quiet, judge, ownerlessFor + 10_000)
  assert.is(judge.found().length, 1)
})

test('time in which nobody can lead is not counted', async () => {
  const quiet = await quietWorld()
  const judge = judgeTaints()
  await quiet.taint(quiet.victim, quarantine)
  quiet.world.server?.faults.set([{ does: 'answer', status: 503, strikes: () => false }])
  await turns(quiet, judge, 2 * ownerlessFor)
  quiet.world.server?.faults.clear()
  await turns(quiet, judge, ownerlessFor - 5_000)
  assert.equal(judge.found(), [])
  await turns(quiet, judge, 15_000)
  assert.is(judge.found().length, 1)
})

test.run()
