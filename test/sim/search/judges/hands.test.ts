import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { judgeHands, type HandsJudge } from '../../../../sim/search/judges/hands.ts'
import { quietWorld, type Quiet } from './quiet-world.ts'

const test = suite('search: the judge of hands')

/** A court looks every five seconds. */
async function stand(quiet: Quiet, judge: HandsJudge, seconds: number): Promise<void> {
  for (let passed = 0; passed < seconds; passed += 5) {
    judge.look(quiet.sight())
    await quiet.run(5_000)
  }
}

/** As the product's program would be seen to run. */
function order({ world, victim }: Quiet, action: 'on' | 'off'): void {
  const [one] = world.switches(victim).flat()
  world.truth.note('program runs', { action, ip: one?.address, plug: one?.plug, replica: 'replica-0' })
}

const annotate = ({ world, victim, done }: Quiet, word: string) => done(world.api.patch(`/api/v1/nodes/${victim}`, 'merge', { metadata: { annotations: { [`holdfast.dev/${word}`]: 'hands off' } } }))
const pause = ({ world, done }: Quiet) => done<unknown>(world.api.create('/api/v1/namespaces/holdfast-system/configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'holdfast-pause', namespace: 'holdfast-system' } }))
const said = (judge: HandsJudge) => judge.found().map(({ judge: whose, what }) => `${whose}: ${what.replace(/ had stood there for .*/, '')}`)

test('an order to a node that a person has in hand is needless, once the leader must have read that; of another node it is not', async () => {
  for (const word of ['exclude', 'maintenance', 'a pause'] as const) {
    const quiet = await quietWorld()
    const judge = judgeHands(quiet.history)
    order(quiet, 'off')
    if (word === 'a pause') await pause(quiet)
    else await annotate(quiet, word)
    order(quiet, 'off')
    await stand(quiet, judge, 5)
    order(quiet, 'off')
    assert.equal(said(judge), [], word)
    await stand(quiet, judge, 15)
    order(quiet, 'off')
    order(quiet, 'on')
    order({ ...quiet, victim: [...quiet.world.nodes.keys()].find((name) => name !== quiet.victim) ?? '' }, 'off')
    const wanted = [`restraint: bmc of ${quiet.victim} was ordered off, and ${word}`, `restraint: bmc of ${quiet.victim} was ordered on, and ${word}`]
    assert.equal(said(judge).slice(0, 2), wanted, word)
    assert.is(said(judge).length, word === 'a pause' ? 3 : 2)
  }
})

test('who keeps a machine off keeps us from switching it on, and from nothing else', async () => {
  const quiet = await quietWorld()
  const judge = judgeHands(quiet.history)
  await annotate(quiet, 'keep-off')
  await stand(quiet, judge, 20)
  order(quiet, 'off')
  order(quiet, 'on')
  assert.equal(said(judge), [], 'it runs')
  quiet.world.cutPower(quiet.victim)
  order(quiet, 'on')
  assert.equal(said(judge), [`restraint: bmc of ${quiet.victim} was ordered on, and keep-off`])
})

test('an abort that came in time keeps us from switching off, and from nothing else; one that came after the proof keeps us from nothing', async () => {
  for (const [proof, wanted] of [[undefined, 1], [{ kind: 'off' }, 0]] as const) {
    const quiet = await quietWorld()
    const judge = judgeHands(quiet.history)
    quiet.plantFence('a-1', quiet.victim, { phase: 'Running', ...(proof === undefined ? {} : { proof }) }, { abort: true })
    order(quiet, 'off')
    await stand(quiet, judge, 5)
    order(quiet, 'off')
    assert.equal(said(judge), [], 'nobody can have known it')
    await stand(quiet, judge, 15)
    order(quiet, 'on')
    order(quiet, 'off')
    assert.equal(said(judge), [`restraint: bmc of ${quiet.victim} was ordered off, and an abort`].slice(0, wanted))
  }
})

test('a pod that is freed under it is named; and what was said while the leader could not read is no word yet', async () => {
  const quiet = await quietWorld()
  const judge = judgeHands(quiet.history)
  await annotate(quiet, 'maintenance')
  const heal = quiet.world.partition({ from: ['replica-0'], to: ['api'] })
  await stand(quiet, judge, 20)
  order(quiet, 'off')
  heal()
  await stand(quiet, judge, 5)
  order(quiet, 'off')
  assert.equal(said(judge), [])
  await stand(quiet, judge, 15)
  await quiet.done(quiet.product.remove('/api/v1/namespaces/work/pods/db-0', { gracePeriodSeconds: 0, preconditions: { uid: quiet.pod().metadata.uid ?? '' } }))
  judge.look(quiet.sight())
  assert.equal(said(judge), [`restraint: work/db-0 was freed from ${quiet.victim}, and maintenance stood there`])
})

test('so is one that is asked to go', async () => {
  const quiet = await quietWorld()
  const judge = judgeHands(quiet.history)
  await annotate(quiet, 'exclude')
  await stand(quiet, judge, 20)
  await quiet.done(quiet.product.create('/api/v1/namespaces/work/pods/db-0/eviction', { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'db-0', namespace: 'work' } } as never))
  judge.look(quiet.sight())
  assert.equal(said(judge), [`restraint: work/db-0 was evicted from ${quiet.victim}, and exclude stood there`])
})

test('what nobody here switched off is not switched on, unless the policy has it so', async () => {
  for (const [what, found] of [['never ordered off', 1], ['ordered off before', 0], ['wanted', 0]] as const) {
    const quiet = await quietWorld(what === 'wanted' ? { policy: { powerOnFoundOff: true } } : {})
    const judge = judgeHands(quiet.history)
    if (what === 'ordered off before') order(quiet, 'off')
    order(quiet, 'on')
    assert.is(said(judge).filter((one) => one.includes('nobody here had ever')).length, found, what)
  }
})

test('an off that stands on record counts where its leader leads no more, and cannot tell whether it was given; by the one that leads, or never given, it does not', async () => {
  for (const [earlier, result, found] of [[1, 'unknown', 0], [1, 'not-given', 1], [0, 'unknown', 1]] as const) {
    const quiet = await quietWorld()
    const judge = judgeHands(quiet.history)
    const attempt = { id: 'a', round: 1, level: 0, method: 'bmc-off', digest: '', agent: 'redfish', action: 'off', replica: 'replica-0-1', term: quiet.sight().term() - earlier, startedAt: '2026-01-01T00:00:00Z', within: '10s', late: '60s', result }
    quiet.plantFence(`${quiet.victim}-x-1`, quiet.victim, { phase: 'Running', attempts: [attempt] })
    order(quiet, 'on')
    assert.is(said(judge).length, found, `${earlier} ${result}`)
  }
})

test('what is off by a person\'s word alone is not switched on by us, though an order of ours came before it; what runs again may be given back the rest, and a port that was put down is no power', async () => {
  for (const [kind, runs, found, power] of [['vouched', false, 1, 'bmc'], ['off', false, 0, 'bmc'], ['vouched', true, 0, 'bmc'], ['vouched', false, 0, 'fabric, then bmc']] as const) {
    const quiet = await quietWorld({ power })
    const judge = judgeHands(quiet.history)
    order(quiet, 'off')
    quiet.plantFence(`${quiet.victim}-x-1`, quiet.victim, { phase: 'Running', proof: { kind, boot: 'b', methods: [] } })
    if (!runs) quiet.world.cutPower(quiet.victim)
    order(quiet, 'on')
    assert.is(said(judge).length, found, `${kind} ${runs} ${power}`)
  }
})

test.run()
