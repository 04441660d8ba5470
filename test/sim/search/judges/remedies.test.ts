import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { judgeHands } from '../../../../sim/search/judges/hands.ts'
import { judgeRemedies, type RemedyJudge } from '../../../../sim/search/judges/remedies.ts'
import { judgeRestraint } from '../../../../sim/search/judges/restraint.ts'
import { condition, fullDisk, remedyOf } from '../../../../sim/search/remedies.ts'
import { quietWorld, type Quiet } from './quiet-world.ts'

const test = suite('search: the judge of remedies')

const path = '/apis/holdfast.dev/v1alpha1/nodefences'
const minutes = 60_000

async function ill(does: 'tell' | 'fence' = 'fence'): Promise<{ readonly quiet: Quiet; readonly judge: RemedyJudge }> {
  const quiet = await quietWorld({ objects: [remedyOf(does)] })
  const judge = judgeRemedies(quiet.history)
  judge.look(quiet.sight())
  return { quiet, judge }
}

function fill({ world }: Quiet, ...nodes: readonly string[]): void {
  for (const name of nodes) {
    const node = world.nodes.get(name)
    if (node !== undefined) node.faults.vitals = { disk: fullDisk }
  }
}

const empty = ({ world }: Quiet, node: string) => delete world.nodes.get(node)?.faults.vitals
const complain = ({ world, done }: Quiet, node: string) => done<unknown>(world.api.patch(`/api/v1/nodes/${node}/status`, 'strategic', { status: { conditions: [{ type: condition, status: 'True' }] } }))

/** As the product opens one. */
function open({ product, done, world }: Quiet, node: string, name = 'r-1') {
  return done<unknown>(product.create(path, {
    apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeFence', metadata: { name },
    spec: { nodeName: node, nodeUid: 'u', boot: `${world.nodes.get(node)?.machine.boot()?.id}/1`, machine: 'm', cause: 'remedy', policy: { name: 'all' } },
  }))
}

const attempt = { id: 'r-2.1', round: 1, level: 0, method: 'bmc-off', agent: 'redfish', action: 'off', replica: 'replica-0-1', term: 1, startedAt: '2026-01-01T00:00:00.000Z', within: '30s', late: '60s', result: 'off' }

const said = (judge: RemedyJudge) => judge.found().map(({ what }) => what.replaceAll(/\d+\.\d s/g, '* s').replaceAll(/node-\d/g, 'NODE'))

test('a node whose disk was full for as long as the remedy says, the only one: nobody is blamed, not for the order either', async () => {
  const { quiet, judge } = await ill()
  const restraint = judgeRestraint(quiet.world, quiet.wellness, quiet.ears)
  fill(quiet, quiet.victim)
  await quiet.run(6 * minutes)
  await open(quiet, quiet.victim)
  void quiet.world.devices.get(`bmc-${quiet.victim}`)?.order('1', 'off')
  assert.equal([said(judge), restraint.found()], [[], []])
})

test('one that nothing ails, not yet, not any more or not in its boot, is fenced for nothing', async () => {
  const [healthy, early, cured, booted] = [await ill(), await ill(), await ill(), await ill()]
  await healthy.quiet.run(6 * minutes)
  await early.quiet.run(2 * minutes)
  for (const { quiet } of [early, cured, booted]) fill(quiet, quiet.victim)
  await early.quiet.run(4 * minutes)
  await cured.quiet.run(6 * minutes)
  empty(cured.quiet, cured.quiet.victim)
  await cured.quiet.run(4 * minutes)
  await booted.quiet.run(5 * minutes)
  booted.quiet.world.reboot(booted.quiet.victim, 1_000)
  await booted.quiet.run(1 * minutes)
  for (const [{ quiet, judge }, why] of [[healthy, /nothing at all/], [early, /nothing had ailed it for/], [cured, /nothing had ailed it for/], [booted, /its boot was \* s old/]] as const) {
    await open(quiet, quiet.victim)
    assert.is(judge.found().length, 1)
    assert.match(said(judge)[0] ?? '', why)
  }
})

test('a condition that nobody posted in the present boot', async () => {
  const { quiet, judge } = await ill()
  await complain(quiet, quiet.victim)
  await quiet.run(6 * minutes)
  await open(quiet, quiet.victim)
  assert.equal(said(judge), ['a remedy began on NODE, and nobody had posted that in its boot'])
})

test('beside another one, while many ail alike, and once more', async () => {
  const { quiet, judge } = await ill()
  const [first = '', second = ''] = quiet.world.nodes.keys()
  fill(quiet, first, second)
  await quiet.run(6 * minutes)
  const many = 'a remedy began on NODE, and 2 of 3 ailed alike'
  await open(quiet, first)
  assert.equal(said(judge), [many])
  await open(quiet, second, 'r-2')
  assert.equal(said(judge).slice(1), ['a remedy began on NODE, and NODE was under one still', many])
  const { quiet: other, judge: later } = await ill()
  fill(other, other.victim)
  await other.run(6 * minutes)
  for (const [name, status] of [['r-1', { phase: 'Final' }], ['r-2', { phase: 'Final', attempts: [attempt] }], ['r-3', {}]] as const) {
    assert.equal(said(later), [], 'what ended before it began on anything is none')
    await open(other, other.victim, name)
    assert.ok((await other.done(other.world.api.patch(`${path}/${name}/status`, 'merge', { status }))).ok)
  }
  assert.equal(said(later), ['a remedy began on NODE, and one had begun on it * s before'])
})

test('one that ailed alike until a moment ago ails no more', async () => {
  const { quiet, judge } = await ill()
  const [first = '', second = ''] = quiet.world.nodes.keys()
  fill(quiet, first, second)
  await quiet.run(6 * minutes)
  empty(quiet, second)
  await open(quiet, first)
  assert.equal(said(judge), [])
})

test('a remedy that only tells has nobody fenced; and none is begun on a node that a person has in hand', async () => {
  const { quiet, judge } = await ill('tell')
  const hands = judgeHands(quiet.history)
  await quiet.done(quiet.world.api.patch(`/api/v1/nodes/${quiet.victim}`, 'merge', { metadata: { annotations: { 'holdfast.dev/maintenance': 'new disks' } } }))
  fill(quiet, quiet.victim)
  await quiet.run(5_000)
  hands.look(quiet.sight())
  await quiet.run(6 * minutes)
  await open(quiet, quiet.victim)
  assert.equal(said(judge), ['a remedy began on NODE, and no remedy has anything fenced'])
  assert.equal(hands.found().map(({ what }) => what), [`a remedy began on ${quiet.victim}, and maintenance stood there`])
})

test.run()
