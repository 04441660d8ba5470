// Turns of the audit: what went wrong with a fence path while all was well is told before it is needed.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { readAuditTurn } from '../../coordinator/audit-turns.ts'
import { ended, findings, killLeader, peace, programs, type Play } from './play.ts'

const test = suite('story: audited again')

const hour = 3_600_000

function turn(on: Play): void {
  const leader = on.leader()
  assert.ok(leader !== undefined && on.coordinators.get(leader)?.auditAll(hour), 'a turn begins')
}

function peek(on: Play, kind: string): readonly KubeObject[] {
  assert.ok(on.world.server)
  return on.world.server.peek(kind)
}

const latest = (on: Play) => readAuditTurn(peek(on, 'leases.coordination.k8s.io').find(({ metadata }) => metadata.name === 'holdfast-coordinator')?.metadata.annotations)
const records = (on: Play): readonly KubeObject[] => peek(on, 'noderecords.holdfast.dev')
const stateOf = (on: Play, node: string) => (records(on).find(({ metadata }) => metadata.name === node) as { spec?: { paths?: { state: string }[] } } | undefined)?.spec?.paths?.map(({ state }) => state).join()

test('a quiet turn asks each path once, writes no record, and leaves its number on the Lease', async () => {
  const on = await peace({ seed: 41 })
  const before = records(on).map(({ metadata }) => metadata.resourceVersion)
  assert.is(latest(on), undefined)
  turn(on)
  await on.until('its number stands there', () => latest(on)?.turn === 1, 20_000)
  assert.is(programs(on, 'status'), 3)
  assert.equal(latest(on)?.missed, [])
  assert.equal(records(on).map(({ metadata }) => metadata.resourceVersion), before)
  await on.run(60_000)
  assert.is(programs(on, 'status'), 3, 'and no more until the next one')
})

test('a device that answers no more is found, told, and found mended', async () => {
  const on = await peace({ seed: 42 })
  const device = on.world.devices.get(`bmc-${on.victim}`)
  assert.ok(device)
  device.fault = { does: 'hang' }
  turn(on)
  await on.until('the record says so', () => stateOf(on, on.victim) === 'unreachable', 90_000)
  assert.is(on.world.truth.entries.some(({ what }) => what === 'device ordered'), false)
  device.heal()
  await on.until('the record says that it answers', () => stateOf(on, on.victim) === 'verified', 90_000)
  assert.equal(await on.incidents(), [])
})

const portOf = (on: Play, node: string) => (records(on).find(({ metadata }) => metadata.name === node) as { spec?: { probe?: { answered: boolean } } } | undefined)?.spec?.probe?.answered

test('a kubelet port that a firewall closes in the middle of a boot is found: its silence speaks for no death then, and the Lease of a node whose agent dies keeps it from being fenced', async () => {
  const on = await peace({ seed: 46 })
  on.world.firewallKubeletPort(on.victim)
  turn(on)
  await on.until('the record says so', () => portOf(on, on.victim) === false, 60_000)
  assert.is([...on.world.nodes.keys()].filter((node) => portOf(on, node) !== true).join(), on.victim)
  on.world.killAgent(on.victim)
  await on.run(120_000)
  assert.equal([await on.incidents(), findings(on), programs(on, 'off')], [[], [], 0])
})

test('a port that is open again answers in the record, too', async () => {
  const on = await peace({ seed: 47 })
  const open = on.world.firewallKubeletPort(on.victim)
  turn(on)
  await on.until('the record says that it does not answer', () => portOf(on, on.victim) === false, 60_000)
  open()
  await on.until('the record says that it answers', () => portOf(on, on.victim) === true, 60_000)
})

test('the turn of a leader that is killed is begun anew by the next one, which counts on', async () => {
  const on = await peace({ seed: 43 })
  turn(on)
  await on.until('the first turn', () => latest(on)?.turn === 1, 20_000)
  turn(on)
  const leader = killLeader(on)
  await on.until('another one leads', () => on.leader() !== undefined && on.leader() !== leader, 20_000)
  await on.run(10_000)
  assert.is(latest(on)?.turn, 1, 'nobody says that it came to its end')
  turn(on)
  await on.until('the second turn', () => latest(on)?.turn === 2, 20_000)
})

test('a node that dies in the middle of a turn is fenced as ever, and the turn says that it missed it', async () => {
  const on = await peace({ seed: 44 })
  on.world.cutPower(on.victim)
  // Another one's device keeps the turn waiting: it ends when the victim is silent for good.
  const slow = on.world.devices.get(`bmc-${[...on.world.nodes.keys()].find((node) => node !== on.victim)}`)
  assert.ok(slow)
  slow.fault = { does: 'hang' }
  turn(on)
  await on.until('the turn is over', () => latest(on)?.turn === 1, 30_000)
  slow.heal()
  assert.equal(latest(on)?.missed, [on.victim])
  const incident = await ended(on, 400_000)
  assert.is(incident.status.proof?.kind, 'found-off')
  assert.equal(findings(on), [])
})

test('a strip is asked once for all its outlets; one that is off while its machine runs is asked by itself, and told', async () => {
  const on = await peace({ seed: 45, power: 'two feeds on two strips', nodes: 4, zones: 1 })
  turn(on)
  await on.until('the first turn', () => latest(on)?.turn === 1, 20_000)
  assert.equal([programs(on, 'list-status'), programs(on, 'status')], [2, 0])
  // The cable was put into another socket, and this one is dark.
  const strip = on.world.devices.get('pdu-a-1')
  assert.ok(strip)
  strip.wire(on.victim, undefined)
  const dark = strip.order(on.victim, 'off')
  await on.run(5_000)
  await dark
  turn(on)
  await on.until('the second turn', () => latest(on)?.turn === 2, 20_000)
  assert.is(programs(on, 'list-status'), 4)
  await on.until('the record says so', () => stateOf(on, on.victim) === 'mismatch,verified', 60_000)
  assert.equal([findings(on), await on.incidents()], [[], []])
})

test.run()
