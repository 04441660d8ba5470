// An outlet tells no machine. A fence by it that ends in a new boot of its node, and of no other, shows whose it is; one by a wrong cable must not.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readRecord } from '../../coordinator/node-record.ts'
import type { PathAudit } from '../../core/model.ts'
import { findings, ourTaints, peace, type Play } from './play.ts'

const test = suite('story: a fence proves')

function identities(on: Play, node: string): readonly PathAudit['identity'][] {
  const object = on.world.server?.peek('noderecords.holdfast.dev').find(({ metadata }) => metadata.name === node)
  const read = object === undefined ? undefined : readRecord(object)
  return read?.ok === true ? read.record.paths.map(({ identity }) => identity) : []
}

const own = async (on: Play) => (await on.incidents()).find(({ nodeName }) => nodeName === on.victim)
const over = (on: Play) => on.until('it is over', async () => (await own(on))?.status.phase === 'Final', 240_000)

for (const power of ['outlet', 'two feeds on two strips'] as const) {
  test(`${power}: the kernel stands still, it is fenced, and back in a new boot: its identity is proven by that, and stays so`, async () => {
    const on = await peace({ seed: 71, power, nodes: 5, zones: 1 })
    on.world.freeze(on.victim)
    await over(on)
    const { outcome, proof, identity } = (await own(on))?.status ?? {}
    assert.equal([outcome, proof?.kind, identity?.proven], ['Recovered', 'off', true], identity?.detail)
    await on.until('it is on record', () => identities(on, on.victim).every((one) => one === 'proven'), 60_000)
    on.world.reboot(on.victim, 1_000)
    await on.run(180_000)
    assert.ok(identities(on, on.victim).every((one) => one === 'proven'))
    assert.equal([ourTaints(on), findings(on)], [[], []])
  })
}

test('outlets that changed places: whatever comes of it, nothing is called proven', async () => {
  const on = await peace({ seed: 72, power: 'outlet', nodes: 7, zones: 1, policy: { profile: 'balanced', brakes: { concurrency: 3, stormPercent: 60, stormWindow: '60s' } } })
  const other = on.victim === 'node-1' ? 'node-2' : 'node-1'
  const strip = on.world.devices.get('pdu-a-1')
  strip?.wire(on.victim, on.world.nodes.get(other)?.machine)
  strip?.wire(other, on.world.nodes.get(on.victim)?.machine)
  const heals = [on.victim, other].map((node) => on.world.isolate(node))
  await on.until('both are dark', () => [on.victim, other].every((node) => on.world.nodes.get(node)?.machine.state() === 'off'), 60_000)
  for (const heal of heals) heal()
  await on.until('both are over', async () => {
    const all = await on.incidents()
    return all.length >= 2 && all.every(({ status }) => status.phase === 'Final')
  }, 100_000)
  await on.run(60_000)
  const both = (await on.incidents()).filter(({ status }) => status.proof !== undefined)
  assert.equal([both.length, both.map(({ status }) => status.identity?.proven)], [2, [false, false]])
  assert.ok([on.victim, other].flatMap((node) => identities(on, node)).every((one) => one !== 'proven'))
  assert.equal(findings(on), [])
})

test.run()
