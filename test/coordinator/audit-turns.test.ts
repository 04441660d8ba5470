import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { auditRate, auditTurnKey, auditTurns, readAuditTurn } from '../../coordinator/audit-turns.ts'
import type { ConfiguredMethod } from '../../coordinator/fence-config.ts'
import { fenceRunner } from '../../coordinator/fence.ts'
import type { ProgramEnd, ProgramRun } from '../../coordinator/host.ts'
import { keepNode } from '../../coordinator/kubernetes.ts'
import { looker } from '../../coordinator/look.ts'
import { runLoop } from '../../coordinator/loop.ts'
import { createObservation } from '../../coordinator/observe.ts'
import type { BeatSeen, NodeRecord } from '../../core/model.ts'
import { silentLog } from '../../edge/log.ts'
import { virtualClock } from '../../sim/clock.ts'
import { beat, boot, method, reading, record } from '../core/world.ts'

const test = suite('audit turns')

const hour = 3_600_000
const at = (wall: number): string => new Date(wall).toISOString()

function replica() {
  const clock = virtualClock(100_000)
  const beats = new Map<string, BeatSeen>()
  const observation = createObservation(clock, 'replica-0', { heard: (name) => beats.get(name), forget: () => undefined })
  const lead: { term?: number } = { term: 3 }
  const on = { clock, observation, lead, hear, asked, turns: auditTurns({ clock, log: silentLog, observation, leads: () => lead.term }) }
  for (const name of ['node-1', 'node-2']) {
    observation.record(name, record({ nodeUid: name }))
    observation.node(keepNode({ metadata: { name, uid: name, resourceVersion: '1' } }))
    observation.path(name, { levels: [[method]], faults: [] })
  }
  return on

  function hear(...names: readonly string[]): void {
    beats.clear()
    for (const name of names) beats.set(name, beat({ at: clock.now() }))
  }
  function asked(...names: readonly string[]): void {
    for (const name of names) observation.read(name, reading('on', clock.now()))
  }
}

/** Of each: a management controller, and two feeds, on two strips that twenty nodes share: one is configured by its number, the other by its name. A turn of five thousand comes to the same rate, and takes a minute. */
const nodes = 1_000
const outlets = 20
const [controllerTakes, stripTakes] = [300, 150]

const methodOf = (name: string, agent: string, device: string, parameters: object): ConfiguredMethod => ({
  ...method, name, agent, device, digest: `${name} ${JSON.stringify(parameters)}`, parameters, on: parameters,
} as unknown as ConfiguredMethod) // parameters that name no Secret are texts

function pathsOf(index: number): readonly ConfiguredMethod[] {
  const [strip, outlet] = [Math.floor(index / outlets), String((index % outlets) + 1)]
  return [
    methodOf('bmc', 'redfish', `bmc-${index}`, { ip: `bmc-${index}` }),
    ...[['left', outlet], ['right', `outlet-${outlet}`]].map(([side = '', plug]) => methodOf(side, 'pdu-snmp', `${side}-${strip}`, { ip: `${side}-${strip}`, plug })),
  ]
}

/** A replica that leads a cluster in which every path was verified once, and what its programs do in the turn that begins now. */
function turnOf() {
  const clock = virtualClock(100_000)
  const configured = new Map(Array.from({ length: nodes }, (_, index) => [`node-${index}`, pathsOf(index)]))
  const observation = createObservation(clock, 'replica-0', { heard: () => beat({ at: clock.now() }), forget: () => undefined })
  for (const [name, methods] of configured) {
    observation.node(keepNode({ metadata: { name, uid: name, resourceVersion: '1' }, status: { nodeInfo: { systemUUID: `machine-of-${name}` } } } as never)) // a Node is more
    observation.path(name, { levels: [methods], faults: [] })
    const paths = methods.map(({ name: of, digest }) => ({ ...record().paths[0], method: of, digest, boot, state: 'verified', identity: of === 'bmc' ? 'proven' : 'unproven' }))
    observation.record(name, record({ nodeUid: name, machine: `machine-of-${name}`, paths: paths as NodeRecord['paths'] }))
  }
  const sharing = Map.groupBy([...configured].flatMap(([node, methods]) => methods.map((one) => ({ node, method: one }))), (path) => path.method.device)
  const runs = { status: 0, list: 0, begun: [] as number[], under: new Map<string, number>(), atOnce: 0 }
  const audits = auditRate(clock)
  const on = { clock, runs, turns: auditTurns({ clock, log: silentLog, observation, leads: () => 3 }), paths: [...sharing.values()].flat().length, stop: () => loop.stop() }
  const runner = fenceRunner({ clock, log: silentLog, secrets: () => undefined, programs: { run } })
  const loop = runLoop({
    clock, log: silentLog, observation, policies: () => [], drained: async () => undefined, deed: async () => true, holds: () => undefined, decided: () => on.turns.now(),
    refresh() {
      Object.assign(observation.seen.self, { term: 3, ledSince: 0, freshAt: clock.now(), apiAnsweredAt: clock.now(), replicas: ['replica-1'], auditBudget: audits.available() })
    },
    look: looker({
      audits, observation, runner, log: silentLog, stopping: new AbortController().signal, beats: {} as never, api: {} as never, // no look of these is wanted here
      fences: { method: (node, { name }) => configured.get(node)?.find((one) => one.name === name), sharing: ({ device }) => sharing.get(device) ?? [] },
      host: { clock, probe: async () => 'answered' },
    }),
  })
  return on

  async function run({ agent, stdin }: ProgramRun): Promise<ProgramEnd> {
    const told = Object.fromEntries(stdin.trim().split('\n').map((line) => line.split('=')))
    if (told.action === 'metadata') return ended('<resource-agent><actions><action name="list-status"/></actions></resource-agent>')
    runs[told.action === 'status' ? 'status' : 'list'] += 1
    runs.begun.push(clock.now())
    const here = (runs.under.get(told.ip) ?? 0) + 1
    runs.under.set(told.ip, here)
    runs.atOnce = Math.max(runs.atOnce, here)
    await clock.wait(agent === 'redfish' ? controllerTakes : stripTakes)
    runs.under.set(told.ip, here - 1)
    return ended(told.action === 'status' ? `holdfast {"v":1${agent === 'redfish' ? `,"machine":"machine-of-${told.nodename}"` : ''}}\n` : Array.from({ length: outlets }, (_, index) => `${index + 1},outlet-${index + 1},ON\n`).join(''))
  }
}

function ended(stdout: string): ProgramEnd {
  return { exitCode: 0, stdout, stderr: '', late: false, gone: true }
}

/** From its beginning to its end, in which every path was asked. */
async function wholeTurn() {
  const on = turnOf()
  await on.clock.runFor(1_000)
  const beganAt = on.clock.now()
  on.turns.begin(hour)
  const over = await on.clock.runWhen(() => on.turns.last() !== undefined, 4 * hour)
  const took = on.clock.now() - beganAt
  on.stop()
  assert.ok(over, 'the turn came to its end')
  assert.equal(on.turns.last()?.missed, [])
  return { took, paths: on.paths, runs: on.runs }
}

test('a turn ends once every node that is heard was asked, with its number, its times and whom it missed', async () => {
  const on = replica()
  assert.ok(on.turns.begin(hour))
  await on.clock.runFor(5_000)
  on.hear('node-1')
  on.turns.now()
  assert.is(on.turns.last(), undefined, 'node-1 was not asked')
  await on.clock.runFor(5_000)
  on.hear('node-1')
  on.asked('node-1')
  on.turns.now()
  const began = on.clock.wall() - 10_000
  const told = { turn: 1, began: at(began), ended: at(began + 10_000), stale: at(began + 2 * hour + 10_000), missed: ['node-2'] }
  assert.equal(on.turns.last(), told)
  assert.equal(readAuditTurn(on.turns.note()), told)
  assert.is(on.observation.row('node-1')?.auditedUntil, 100_000 + 2 * hour + 10_000)
})

test('whoever hears nobody ends no turn', async () => {
  const on = replica()
  on.turns.begin(hour)
  await on.clock.runFor(5_000)
  on.turns.now()
  assert.is(on.turns.last(), undefined)
})

test('one turn at a time, and none but the leader\'s', () => {
  const on = replica()
  assert.equal([on.turns.begin(hour), on.turns.begin(hour)], [true, false])
  on.turns.lost()
  assert.is(on.observation.seen.self.turnAt, undefined)
  delete on.lead.term
  assert.is(on.turns.begin(hour), false)
})

test('the next leader counts on from what stands on the Lease, and writes nothing there before it has read it', async () => {
  const [first, second] = [replica(), replica()]
  first.hear('node-1', 'node-2')
  first.turns.begin(hour)
  first.asked('node-1', 'node-2')
  first.turns.now()
  assert.equal(second.turns.note(), {})
  await second.clock.runFor(7_000)
  second.turns.led(first.turns.note())
  assert.is(second.observation.row('node-1')?.auditedUntil, 100_000 + 2 * hour)
  second.hear('node-1', 'node-2')
  second.turns.begin(hour)
  second.asked('node-1', 'node-2')
  second.turns.now()
  assert.is(second.turns.last()?.turn, 2)
  second.turns.lost()
  assert.equal(second.turns.note(), {})
})

test('what a turn found holds for two periods; who is missed has only what was found before', async () => {
  const on = replica()
  const [wall, at0] = [on.clock.wall(), on.clock.now()]
  on.observation.record('node-2', record({ nodeUid: 'node-2', paths: record().paths.map((path) => ({ ...path, at: at(wall - 9 * hour) })) }))
  const until = (name: string): number => ((on.observation.row(name)?.auditedUntil ?? 0) - at0) / hour
  assert.is(on.observation.row('node-2')?.auditedUntil, undefined, 'no turn yet: nothing is too old')
  for (const [missed, one, two] of [[['node-2'], 2, -7], [[], 3, 3], [['node-2'], 4, 3], [['node-1', 'node-2'], 4, 3]] as const) {
    on.observation.audited({ beganAt: on.clock.now(), holds: 2 * hour, missed: new Set(missed) })
    assert.equal([until('node-1'), until('node-2')], [one, two])
    await on.clock.runFor(hour)
  }
})

test('no audit lies ahead: what a clock that was fast has written holds no longer than one of this instant', () => {
  const on = replica()
  const wall = on.clock.wall()
  const until = (name: string): number => ((on.observation.row(name)?.auditedUntil ?? 0) - on.clock.now()) / hour
  on.observation.record('node-2', record({ nodeUid: 'node-2', resourceVersion: '2', paths: record().paths.map((path) => ({ ...path, at: at(wall + 900 * hour) })) }))
  const turn = { turn: 1, began: at(wall + 800 * hour), ended: at(wall + 801 * hour), stale: at(wall + 802 * hour), missed: ['node-2'] }
  on.turns.led({ [auditTurnKey]: JSON.stringify(turn) })
  assert.equal([until('node-1'), until('node-2')], [2, 2])
})

test('what stands there and is no turn is as good as none', () => {
  const good = { turn: 1, began: '2026-01-01T00:00:00Z', ended: '2026-01-01T00:00:01Z', stale: '2026-01-01T02:00:00Z', missed: [] }
  assert.ok(readAuditTurn({ [auditTurnKey]: JSON.stringify(good) }))
  for (const text of ['', '{', '[]', JSON.stringify({ ...good, turn: 0 }), JSON.stringify({ ...good, stale: 'soon' }), JSON.stringify({ ...good, missed: [1] }), `${JSON.stringify(good)}${' '.repeat(40_000)}`]) {
    assert.is(readAuditTurn({ [auditTurnKey]: text }), undefined, text.slice(0, 60))
  }
  assert.is(readAuditTurn(undefined), undefined)
})

test('two programs a second, after the first thirty', async () => {
  const clock = virtualClock()
  const rate = auditRate(clock)
  assert.is(rate.take(40), 30)
  await clock.runFor(10_000)
  assert.is(rate.take(40), 20)
})

test('a controller and two feeds a node, where strips are asked once for all their outlets: above 10,000 paths an hour, never two programs at one device, at most two a second', async () => {
  const { paths, took, runs } = await wholeTurn()
  const hourly = Math.round((paths * hour) / took)
  console.log(`audit: ${paths} paths in ${Math.round(took / 1_000)} s by ${runs.status} programs that asked one path and ${runs.list} that asked a whole strip: ${hourly} paths an hour`)
  assert.equal([runs.status, runs.list, runs.atOnce], [nodes, (2 * nodes) / outlets, 1])
  assert.ok(hourly > 10_000, `${hourly} paths an hour`)
  const [first = 0] = runs.begun
  for (const [index, began] of runs.begun.entries()) assert.ok(index < 30 + (2 * (began - first)) / 1_000 + 1, `${index + 1} programs in ${began - first} ms`)
})

test.run()
