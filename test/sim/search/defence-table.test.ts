import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { lean } from '../../../sim/search/defence-table.ts'
import { defences } from '../../../sim/search/defences.ts'
import { draw, isPlain, kinds } from '../../../sim/search/schedule.ts'

const test = suite('search: without a defence')

test('where nothing else goes wrong, there is what was aimed and nothing beside it, in every seed', () => {
  const troubles = [{ does: 'power is lost', on: 'victim', at: [1_000, 2_000], span: [500, 600] }] as const
  for (const one of Array.from({ length: 20 }, (_, index) => lean(draw(index + 1), { alone: true, scene: { nodes: 3 }, troubles }))) {
    assert.equal([one.troubles.map(({ does }) => does), one.scene], [['power is lost'], { nodes: 3, zones: 3, replicas: 2, profile: 'fast', feed: 'own', power: 'bmc' }])
  }
})

test('every kind of trouble that a defence names is one, and its schedules have it; a plain one stays plain', () => {
  for (const { name, troubles = [] } of defences) for (const one of troubles) assert.ok(kinds[typeof one === 'string' ? one : one.does] !== undefined, `${name}: ${JSON.stringify(one)}`)
  const troubles = ['a device acts late']
  const seeds = Array.from({ length: 60 }, (_, index) => draw(index + 1))
  assert.ok(seeds.filter((one) => lean(one, { troubles }).troubles.some(({ does }) => does === troubles[0])).length > 25)
  for (const one of seeds.filter(isPlain)) assert.equal(lean(one, { troubles }), one)
  for (const one of seeds) assert.equal(lean(one, { troubles }), lean(one, { troubles }), 'drawn from the seed alone')
})

test('an aimed trouble keeps its time, place, manner and cue, takes the place of the drawn death, and a scene is laid over the drawn one', () => {
  const freeze = { does: 'the kernel freezes and thaws', on: 'victim', at: [2_000, 3_000], span: [9_000, 9_500] } as const
  const late = { does: 'a device acts late', after: 'an off begins', at: [0, 0], how: '1 device bmc' } as const
  const seeds = Array.from({ length: 60 }, (_, index) => draw(index + 1)).filter((one) => !isPlain(one))
  const all = seeds.map((one) => lean(one, { troubles: [freeze, late], scene: { power: 'bmc', nodes: 5 } }))
  for (const { scene } of all) assert.equal([scene.power, scene.nodes], ['bmc', 5])
  const alone = all.filter(({ troubles }) => troubles.every(({ does }) => does === freeze.does || does === late.does))
  assert.ok(alone.length > seeds.length / 2)
  for (const { troubles } of alone) for (const { on, at, span } of troubles.filter(({ does }) => does === freeze.does)) {
    assert.ok(on === 'victim' && at >= 2_000 && at <= 3_000 && span >= 9_000 && span <= 9_500)
  }
  for (const { troubles } of alone) for (const { after, at, how } of troubles.filter(({ does }) => does === late.does)) assert.equal([after, at, how], [late.after, 0, late.how])
})

test.run()
