// Two spells of bad weather may overlap, in any order of their ends.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Ground } from '../../../sim/search/trouble.ts'
import { networkTroubles } from '../../../sim/search/troubles-network.ts'
import { createNetwork } from '../../../sim/network.ts'
import { seededChance } from '../../../sim/chance.ts'
import { virtualClock } from '../../../sim/clock.ts'

const test = suite('search: weather')

for (const [order, ends] of [['the first', [0, 1]], ['the last', [1, 0]]] as const) {
  test(`of two spells ${order} ends first: what is left is the other's, and then the sky is clear`, () => {
    const network = createNetwork(virtualClock(), seededChance(1))
    const clear = { ...network.weather }
    const ground = { on: { world: { network } } } as unknown as Ground // all that weather is made of
    const spells = ['clogged', 'twice'].map((how) => networkTroubles['bad weather']?.begin(ground, { does: 'bad weather', at: 0, span: 0, on: '', how }))
    assert.equal([network.weather.clog > 0, network.weather.duplicate > 0], [true, true])
    const [first, second] = ends
    spells[first]?.()
    assert.equal([network.weather.clog > 0, network.weather.duplicate > 0], [first === 1, first === 0])
    spells[second]?.()
    assert.equal(network.weather, clear)
  })
}

test.run()
