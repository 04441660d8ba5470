// What a cluster of the search may be like: each part is drawn by some seeds and missing in most, and is what it says.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { seededChance } from '../../../sim/chance.ts'
import { calm, draw, kinds, type Scene, type Schedule } from '../../../sim/search/schedule.ts'
import { stageOf } from '../../../sim/search/scene.ts'
import { run } from '../../../sim/search/run.ts'
import type { Trouble } from '../../../sim/search/trouble.ts'
import { watchdogs } from '../../../sim/search/watchdogs.ts'

const test = suite('search: scenes')

const usual: Scene = { nodes: 5, zones: 3, replicas: 2, profile: 'fast', feed: 'own' }
const drawn = Array.from({ length: 1_500 }, (_, index) => draw(index + 1))
const trouble = (does: string, wanted: Partial<Trouble> = {}): Trouble => ({ does, at: 1_000, span: 20_000, on: 'victim', ...wanted })

async function plays(scene: Scene, span: number, ...troubles: readonly Trouble[]) {
  const schedule: Schedule = { seed: 5, scene, reliefAt: span, shortest: span, troubles }
  return run(schedule)
}

test('each part is drawn by a share of the seeds, and left out by most', () => {
  for (const part of ['watchdog', 'apart', 'evicts', 'audited', 'gate', 'givesUp', 'cleansUp', 'bare', 'dumps', 'remedy', 'shared'] as const) {
    const share = drawn.filter(({ scene }) => scene[part] !== undefined).length / drawn.length
    assert.ok(share > 0.02 && share < 0.6, `${part}: ${share}`)
  }
  assert.equal(new Set(drawn.flatMap(({ scene: { watchdog } }) => watchdog ?? [])), new Set(Object.keys(watchdogs)))
})

test('nodes give up in one way; and where a watchdog proves, nothing stands still that must not', () => {
  for (const { scene, troubles } of drawn.filter((one) => one.scene.watchdog !== undefined)) {
    assert.is(scene.givesUp, undefined)
    assert.not.ok(troubles.some(({ does }) => does === 'a replica stands still, its clocks too'))
    if (scene.watchdog !== 'of a virtual machine') assert.not.ok(troubles.some(({ does }) => does === 'the machine migrates'))
  }
})

test('every policy of a scene says what it asks of nodes', () => {
  const { policy, objects = [] } = stageOf({ ...usual, second: 'balanced', watchdog: 'ten seconds', apart: true, evicts: '20s' }, 1)
  const asked = { giveUp: 'watchdog', selfFenced: 'accept', safeDetach: ['csi.apart.dev'], evictWithin: '20s' }
  const second = objects.find(({ kind }) => kind === 'HoldfastPolicy') as unknown as { spec: object } // by its kind
  for (const spec of [policy, second.spec]) assert.equal(Object.fromEntries(Object.entries(spec ?? {}).filter(([key]) => key in asked)), asked)
})

test('a node that is cut off with its devices is ended by its watchdog, and that is a proof; by one that never fires, an excuse at most', async () => {
  const cut = trouble('a node is cut off with its devices', { span: 200_000 })
  const { effects, violations, excused } = await plays({ ...usual, watchdog: 'ten seconds' }, 210_000, cut)
  assert.equal(['a watchdog is armed', 'a watchdog resets its machine', 'a watchdog proves'].filter((name) => !effects.includes(name)), [])
  assert.equal([violations, excused], [[], []])
  const wrong = await plays({ ...usual, watchdog: 'wrongly wired' }, 210_000, cut)
  assert.equal(['a watchdog does not fire', 'a watchdog proves'].filter((name) => !wrong.effects.includes(name)), [])
  assert.equal(wrong.violations, [])
  assert.ok(wrong.excused.every(({ because }) => because.includes('did not fire')))
})

test('a person has a node fenced that is well: its pods are asked to go, and a budget says no; nobody is blamed', async () => {
  const { effects, violations, struck, incidents } = await plays({ ...usual, evicts: '20s' }, 90_000, trouble('a person fences the node', { how: 'and stands by it' }))
  assert.equal([struck, incidents, violations], [['a person fences the node'], 1, []])
  assert.equal(['evictions begin', 'a budget says no'].filter((name) => !effects.includes(name)), [])
})

test('where the machine\'s own device does not answer, what is of two drivers is freed by two proofs; and a turn of the audit ends', async () => {
  const scene: Scene = { ...usual, nodes: 3, apart: true, audited: true, power: 'fabric, then bmc' }
  const { effects, violations } = await plays(scene, 180_000, trouble('a device does not answer', { at: 500, span: 175_000, how: '0 device bmc' }), trouble('the kernel freezes for good'))
  assert.equal(['a driver proves', 'a pod with volumes of two drivers is freed', 'a turn of the audit ends'].filter((name) => !effects.includes(name)), [])
  assert.equal(violations, [])
})

test('a machine whose crash kernel dumps: its word proves where it is taken, its power waits in either case, and one that hangs is ordered off', async () => {
  for (const dumps of ['accepted', 'refused'] as const) {
    for (const [does, how] of [['the kernel panics, and dumps', '4000 2000 80000'], ['the kernel panics, and its crash kernel hangs', '4000 2000']] as const) {
      const { effects, violations, marks } = await plays({ ...usual, dumps }, 130_000, trouble(does, { how }))
      assert.equal([violations, effects.includes('a dump is waited for'), effects.includes('a crash kernel proves')], [[], true, dumps === 'accepted'], `${does}, ${dumps}`)
      assert.is(marks.includes('proof off'), does !== 'the kernel panics, and dumps', `${does}, ${dumps}`)
    }
  }
})

test('a node whose disk is full is fenced by a remedy, or it is told; where many ail alike nobody is fenced', async () => {
  for (const [remedy, how, effect, incidents] of [['fence', '1 until they boot', 'a remedy fences', 1], ['tell', '1 for good', 'a remedy is told', 0], ['fence', '7 for good', undefined, 0]] as const) {
    const said = await plays({ ...usual, remedy }, 560_000, trouble('disks fill up', { how, span: 550_000 }))
    assert.equal([said.violations, said.incidents, effect === undefined || said.effects.includes(effect), said.marks.includes('hold storm')], [[], incidents, true, effect === undefined], `${remedy}, ${how}`)
  }
})

test('a node problem is fenced as long as somebody posts it in the boot that it is about', async () => {
  const said = await plays({ ...usual, remedy: 'fence' }, 560_000, trouble('a node problem is posted', { how: 'again and again', span: 550_000 }))
  assert.equal([said.violations, said.effects.includes('a remedy fences')], [[], true])
})

test('where a remedy stands what goes wrong is given the time to meet it', () => {
  for (const { scene, troubles, reliefAt } of drawn.filter(({ scene: { remedy } }) => remedy !== undefined)) {
    assert.ok(troubles.some(({ does }) => kinds[does]?.class === 'ailment') && reliefAt > 600_000, JSON.stringify(scene))
  }
})

test('a drill shows where a cable leads, and that is believed when the node freezes with the workload on it', async () => {
  const { effects, violations, transcript } = await plays({ ...usual, power: 'outlet' }, 130_000, trouble('a node is drilled', { span: 125_000, how: 'and it freezes' }))
  assert.ok(effects.includes('a drill passes'))
  assert.match(transcript(), /a drill passed {2}node=(\S+)[^]*machine froze {2}node=\1[^]*proof=off/)
  assert.equal(violations, [])
})

test('a trouble that has spans of its own lasts for one of them', () => {
  const long = drawn.flatMap(({ troubles }) => troubles).filter(({ does }) => does === 'a node is cut off with its devices')
  assert.ok(long.length > 5 && long.every(({ span }) => span >= 30_000) && long.some(({ span }) => span >= 120_000))
  assert.ok(kinds['a node is cut off with its devices']?.draw(seededChance(1), usual) !== undefined && calm > 0)
})

test.run()
