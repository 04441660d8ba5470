// One of two feeds is left off when its incident ends. Nobody else would switch it on, so an incident of its own does, once the machine runs.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { settled } from '../../sim/stage.ts'
import { findings, happened, ourTaints, peace, programs, steps, workloadRuns, type Play } from './play.ts'

const test = suite('story: owed')

/** Every incident of the victim there was, the earliest first. */
async function incidentsOf(on: Play) {
  const own = (await on.incidents()).filter(({ nodeName }) => nodeName === on.victim)
  return own.toSorted((one, other) => Date.parse(one.status.timeline[0]?.at ?? '') - Date.parse(other.status.timeline[0]?.at ?? ''))
}

const firstOver = async (on: Play) => (await incidentsOf(on))[0]?.status.phase === 'Final'
const switchedOn = (on: Play, plug: string) => happened(on, 'device switched').some((facts) => facts['plug'] === plug && facts['to'] === 'on')
const switched = (on: Play, strip: string, plug: string) => on.world.devices.get(strip)?.plugs.get(plug)?.switched

async function givenBack(on: Play, strip: string, plug: string): Promise<void> {
  await on.until('the other feed is on', () => switched(on, strip, plug) === 'on', 60_000)
  await on.until('everything is over', async () => (await incidentsOf(on)).every(({ status }) => status.phase === 'Final'), 60_000)
  const last = (await incidentsOf(on)).at(-1)
  assert.equal([last?.cause, last?.status.outcome, last?.status.attempts.map(({ action, result }) => [action, result])], ['owed', 'Recovered', [['on', 'on']]])
  assert.not.ok(last !== undefined && steps(last).includes('tainted'), 'a node that is well is not quarantined for it')
  await on.run(60_000)
  assert.is((await incidentsOf(on)).at(-1)?.name, last?.name, 'nothing follows')
  assert.ok(workloadRuns(on))
  assert.equal([findings(on), ourTaints(on)], [[], []])
}

test('the configuration was away when the other feed was to be switched on: it is, when that is back', async () => {
  const on = await peace({ seed: 41, power: 'two feeds on one strip' })
  const config = (on.world.server?.peek('configmaps') ?? []).find(({ metadata }) => metadata.name === 'fence-config-default') as (KubeObject & { data: object }) | undefined // one of all nodes
  assert.ok(config)
  const path = '/api/v1/namespaces/holdfast-system/configmaps'
  on.world.freeze(on.victim)
  await on.until('one feed is on', () => switchedOn(on, `${on.victim}-a`), 60_000)
  await settled(on.world, on.world.api.remove(`${path}/${config.metadata.name}`))
  await on.until('its incident is over', () => firstOver(on), 180_000)
  await on.run(60_000)
  assert.equal([switched(on, 'pdu-a-1', `${on.victim}-b`), programs(on, 'on')], ['off', 1])
  await settled(on.world, on.world.api.create(path, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: config.metadata.name, namespace: 'holdfast-system' }, data: config.data }))
  await givenBack(on, 'pdu-a-1', `${on.victim}-b`)
})

test('the other strip was without power, and the next boot fell silent: the feed is given back once that boot speaks', async () => {
  const on = await peace({ seed: 42, power: 'two feeds on two strips' })
  const strip = on.world.devices.get('pdu-b-1')
  assert.ok(strip)
  on.world.freeze(on.victim)
  await on.until('one feed is on', () => switchedOn(on, on.victim), 60_000)
  strip.mains(false)
  await on.until('the next boot is heard', () => happened(on, 'agent runs').some(({ node }) => node === on.victim), 60_000)
  await on.run(1_000)
  on.world.freeze(on.victim)
  await on.until('its incident is over', () => firstOver(on), 240_000)
  strip.mains(true)
  assert.is(switched(on, 'pdu-b-1', on.victim), 'off')
  on.world.thaw(on.victim)
  await givenBack(on, 'pdu-b-1', on.victim)
  assert.equal((await incidentsOf(on)).map(({ cause }) => cause), ['silence', 'silence', 'owed'])
})

test.run()
