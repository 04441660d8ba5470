// A node's death from the first silence to the last taint, in the core alone: deeds and looks are carried out by a world of a few
// lines, in which nothing fails that a test does not let fail. Here a leader can be replaced at every single tick.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { isLook, keyOf, type Action, type Deed, type Look } from '../../core/action.ts'
import { outOfServiceKey, quarantineKey } from '../../core/clear.ts'
import { decide } from '../../core/decide.ts'
import { proofKey, type Incident } from '../../core/incident.ts'
import type { BeatSeen, Ms, NodeSeen, PodSeen, PowerState, Reading, Taint, VolumeSeen, WitnessSeen } from '../../core/model.ts'
import * as timeline from '../../core/timeline.ts'
import { method, node, pod, policy, record, self, volume } from './world.ts'

const test = suite('journey')

const tick: Ms = 200
const statusTakes: Ms = 200
const orderTakes: Ms = 2_000
const probeTakes: Ms = 800
const bootTakes: Ms = 20_000

type Changing<T> = { -readonly [Key in keyof T]: T[Key] }

/** What is under way. */
type Later = { at: Ms; run: () => void }[]

interface World {
  at: Ms
  /** The machine as it is. */
  power: boolean
  frozen: boolean
  reachable: boolean
  agent: boolean
  port: 'well' | 'refuses'
  boots: number
  bootedAt: Ms
  /** What the device answers instead of the truth. */
  lie?: (truth: PowerState) => PowerState
  /** What becomes of an order: it is obeyed, fails and says so, or is said to be done and is not. */
  orders: 'obeyed' | 'failed' | 'pretended'
  pods: PodSeen[]
  volumes: VolumeSeen[]
  row: Changing<NodeSeen> & { busy: Set<string>; firstSeen: Map<string, Ms>; readings: Reading[]; witnesses: WitnessSeen[]; taints: Taint[] }
  incidents: Map<string, Incident>
  term: number
  told: string[]
  /** Pods freed by force while the machine ran. */
  wrong: string[]
}

const others = ['node-1', 'node-3', 'node-4']
const settled: Ms = 200_000

function begin(): World {
  const { record: _record, ...rest } = node({ seenAt: settled - 100_000 })
  return {
    at: settled, power: true, frozen: false, reachable: true, agent: true, port: 'well', boots: 1, bootedAt: 0, orders: 'obeyed', pods: [pod('web-0'), pod('api-x', { owner: 'ReplicaSet' })],
    volumes: [volume('pv-1')], incidents: new Map(), term: 1, told: [], wrong: [],
    row: {
      ...rest, record: record(), busy: new Set(), firstSeen: new Map([[`gone ${outOfServiceKey}`, settled - 100_000]]), readings: [], witnesses: [], taints: [], volumes: [],
      beat: heardNow(settled, 1, settled - 90_000), probe: { askedAt: settled - 80_000, answeredAt: settled - 79_990, word: 'answered', spokeAt: settled - 79_990 },
      ready: { status: 'True', postedAt: settled - 90_000, since: settled - 90_000, bootId: 'boot-1' },
    },
  }
}

function heardNow(at: Ms, boots: number, since: Ms): BeatSeen {
  return { boot: `boot-${boots}/100`, since, at, kubelet: 'ok', clean: { at, report: { state: 'clean' } } }
}

const runs = (world: World): boolean => world.power && !world.frozen && world.at - world.bootedAt > bootTakes

/** One step of the machine, then one tick of the leader. */
function turn(world: World, later: Later): void {
  world.at += tick
  const { row } = world
  for (const due of later.splice(0).toSorted((one, other) => one.at - other.at)) {
    if (due.at <= world.at) due.run()
    else later.push(due)
  }
  if (runs(world) && world.agent && world.reachable && world.at % 1_000 < tick) {
    const boot = `boot-${world.boots}/100`
    if (row.beat?.boot !== boot) row.ready = { status: 'True', postedAt: world.at, since: world.at, bootId: `boot-${world.boots}` }
    row.beat = heardNow(world.at, world.boots, row.beat?.boot === boot ? row.beat.since : world.at)
  }
  row.volumes = world.volumes
  if (row.taints.some((taint) => taint.key === outOfServiceKey)) row.firstSeen.delete(`gone ${outOfServiceKey}`)
  else if (!row.firstSeen.has(`gone ${outOfServiceKey}`)) row.firstSeen.set(`gone ${outOfServiceKey}`, world.at)
  notice(world)
  for (const action of decide(seenBy(world), world.at, [policy])) carryOut(world, action, later)
}

const well = others.map((name) => node({
  name, probe: { askedAt: 1_000, answeredAt: 1_010, word: 'answered' }, readings: [], path: { levels: [[{ ...method, device: `${name}:443` }]], faults: [] },
}))

function seenBy({ at, row, incidents, term }: World): Parameters<typeof decide>[0] {
  const beat = heardNow(at, 1, 1_000)
  return {
    self: { ...self(), term, ledSince: 0, freshAt: at, apiAnsweredAt: at, replica: `replica-${term}`, replicas: ['replica-x'] },
    nodes: new Map([row, ...well.map((one) => ({ ...one, beat }))].map((one) => [one.name, one])), incidents,
  }
}

function notice({ at, row, incidents }: World): void {
  const first = (key: string): void => {
    if (!row.firstSeen.has(key)) row.firstSeen.set(key, at)
  }
  for (const { name, status } of incidents.values()) {
    for (const attempt of status.attempts) {
      first(`began ${attempt.id}`)
      if (attempt.result !== 'running') first(`ended ${attempt.id}`)
    }
    if (status.proof !== undefined) first(proofKey(name, status.voided.length, status.proof))
  }
}

function carryOut(world: World, action: Action, later: Later): void {
  if (action.do === 'hold' || action.node !== 'node-2' || world.row.busy.has(keyOf(action))) return
  const { term } = world
  const key = keyOf(action)
  const until = (span: Ms, run: () => void): void => {
    world.row.busy.add(key)
    later.push({
      at: world.at + span,
      run: () => {
        // What a leader that is gone had under way is nobody's any more.
        if (world.term !== term) return
        world.row.busy.delete(key)
        run()
      },
    })
  }
  if (isLook(action)) look(world, action, until)
  else deed(world, action, until)
}

function look(world: World, action: Look, until: (span: Ms, run: () => void) => void): void {
  const { row, at: askedAt } = world
  const hears = runs(world) && world.reachable
  switch (action.do) {
    case 'probe': return until(hears ? 10 : probeTakes, () => {
      const word = !hears ? 'silent' : world.port === 'refuses' ? 'refused' : 'answered'
      row.probe = { askedAt, answeredAt: world.at, word, ...(word === 'silent' ? {} : { spokeAt: world.at }) }
    })
    case 'askWitnesses': return until(300, () => {
      row.witnesses = action.witnesses.map(({ name, kind }) => ({ witness: name, kind, askedAt, answeredAt: world.at, word: hears && world.agent ? 'hears' : 'deaf', proven: hears && world.agent }))
    })
    case 'readLease': return until(20, () => {
      row.lease = { askedAt, readAt: world.at, renewTime: hears ? String(askedAt - (askedAt % 10_000)) : row.lease?.renewTime ?? 'x', unmovedSince: hears ? world.at : row.lease?.unmovedSince ?? world.at, moved: hears }
    })
    case 'listPods': return until(20, () => { row.pods = { askedAt, listedAt: world.at, items: world.pods } })
    case 'askDevice': return until(statusTakes, () => {
      const truth: PowerState = world.power ? 'on' : 'off'
      const state = world.lie?.(truth) ?? truth
      row.readings = [...row.readings.slice(-5), { method: 'bmc-off', state, startedAt: askedAt, endedAt: world.at, evidence: state, digest: 'd1', machine: 'machine-2' }]
    })
    case 'challenge': return until(20, () => {
      if (hears && world.agent && row.beat !== undefined) row.beat = { ...row.beat, answered: { issuedAt: askedAt, boot: row.beat.boot } }
    })
    case 'askClean': return undefined
  }
}

function deed(world: World, action: Deed, until: (span: Ms, run: () => void) => void): void {
  const { row } = world
  const at = String(world.at)
  const change = (name: string, ...changes: timeline.Change[]): void => {
    const incident = world.incidents.get(name)
    if (incident !== undefined) world.incidents.set(name, { ...incident, status: changes.reduce((status, one) => one(status), incident.status) })
    notice(world)
  }
  const tell = (what: string): number => world.told.push(what)
  switch (action.do) {
    case 'open':
      tell(`open ${action.cause}`)
      world.incidents.set(action.name, {
        name: action.name, uid: 'u', resourceVersion: '1', nodeName: 'node-2', nodeUid: row.uid, boot: action.boot, machine: row.machine, cause: action.cause, policy: action.policy, abort: false,
        status: timeline.opened(world.term, 'replica', action.cause, action.evidence, at)(timeline.freshStatus(world.term)),
      })
      return
    case 'adopt': return change(action.incident, timeline.adopted(world.term, 'replica', at))
    case 'settle': return change(action.incident, timeline.settled(action.attempt, at))
    case 'fence': case 'restore': {
      const wanted = action.do === 'fence' ? 'off' : 'on'
      const id = `${action.incident}.${(world.incidents.get(action.incident)?.status.attempts.length ?? 0) + 1}`
      tell(wanted)
      change(action.incident, timeline.ordered({
        id, round: action.round, level: action.level, method: action.method.name, agent: 'x', action: wanted, replica: 'r', term: world.term, startedAt: at,
        within: action.method.orderWithin, late: action.method.late, result: 'running',
      }))
      if (world.orders === 'obeyed') power(world, wanted)
      return until(orderTakes, () => change(action.incident, timeline.ended(id, world.orders === 'failed' ? 'failed' : wanted, '', String(world.at))))
    }
    case 'prove': tell(`prove ${action.proof.kind}`); return change(action.incident, timeline.proved(action.proof, at))
    case 'void': tell('void'); return change(action.incident, timeline.shownFalse(action.evidence, at))
    case 'taint':
      tell(action.outOfService ? 'out-of-service' : 'quarantine')
      for (const key of action.outOfService ? [quarantineKey, outOfServiceKey] : [quarantineKey]) {
        if (!row.taints.some((taint) => taint.key === key)) row.taints = [...row.taints, { key, value: 'holdfast', effect: 'NoSchedule' }]
      }
      return
    case 'untaint':
      tell(`no ${action.key === quarantineKey ? 'quarantine' : 'out-of-service'}`)
      row.taints = row.taints.filter((taint) => taint.key !== action.key)
      return action.incident === undefined ? undefined : change(action.incident, timeline.untainted(action.key, action.because, action.recovers, at))
    case 'delete':
      tell(`delete ${action.pods.map((one) => one.name).join(' ')}`)
      if (world.power) world.wrong.push(...action.pods.map((one) => one.name))
      change(action.incident, timeline.freed(action.pods, at))
      world.pods = world.pods.filter((one) => !action.pods.some((freed) => freed.uid === one.uid))
      delete row.pods
      return until(500, () => { world.volumes = [] })
    case 'withdraw': tell('withdraw'); return change(action.incident, timeline.withdrawn(action.because, at))
    case 'close': tell(`close ${action.outcome}`); return change(action.incident, timeline.closed(action.outcome, action.because, at))
    case 'record': row.record = { ...action.record, resourceVersion: '2' }
  }
}

function power(world: World, wanted: PowerState): void {
  if (wanted === 'on' && !world.power) {
    world.boots += 1
    world.bootedAt = world.at
    world.frozen = false
    world.reachable = true
  }
  world.power = wanted === 'on'
}

/** A leader of a new term; a cold one has heard, read and seen nothing yet. */
function succeed(world: World, cold: boolean): void {
  const { row } = world
  world.term += 1
  row.busy.clear()
  row.readings = []
  if (!cold) return
  row.firstSeen.clear()
  row.witnesses = []
  for (const key of ['probe', 'lease', 'pods'] as const) delete row[key]
}

/** Whatever is changed in place has a copy of its own. */
function sameAs(world: World): World {
  const { row, incidents, told, wrong } = world
  return { ...world, row: { ...row, busy: new Set(row.busy), firstSeen: new Map(row.firstSeen) }, incidents: new Map(incidents), told: [...told], wrong: [...wrong] }
}

const over = (world: World): boolean => world.incidents.size > 0 && [...world.incidents.values()].every((incident) => incident.status.phase === 'Final')

function play(world: World, span: Ms, each: (world: World) => void = () => undefined, later: Later = []): World {
  const end = world.at + span
  while (world.at < end && !over(world)) {
    turn(world, later)
    each(world)
  }
  return world
}

const faults: readonly (readonly [string, (world: World) => void, readonly string[]])[] = [
  ['power loss', (world) => { world.power = false }, ['open found-off', 'prove found-off', 'out-of-service', 'delete web-0 api-x', 'off', 'no out-of-service', 'on', 'no quarantine', 'close Recovered']],
  ['a kernel freeze', (world) => { world.frozen = true }, ['open silence', 'quarantine', 'off', 'prove off', 'out-of-service', 'delete web-0 api-x', 'no out-of-service', 'on', 'no quarantine', 'close Recovered']],
  ['a network partition', (world) => { world.reachable = false }, ['open silence', 'quarantine', 'off', 'prove off', 'out-of-service', 'delete web-0 api-x', 'no out-of-service', 'on', 'no quarantine', 'close Recovered']],
]

for (const [fault, strike, path] of faults) {
  test(`${fault} goes its whole way, each step once and in order`, () => {
    const world = begin()
    strike(world)
    play(world, 600_000)
    assert.equal(world.told, path)
    assert.equal(world.wrong, [])
    assert.equal(world.row.taints, [])
  })

  for (const [how, cold] of [['warm', false], ['cold', true]] as const) {
    test(`${fault}: a new leader, ${how}, at any moment finishes it, and frees nothing of a machine that runs`, () => {
      const whole = begin()
      strike(whole)
      const length = play(whole, 600_000).at - settled
      const stride = Math.max(tick * 3, Math.floor(length / 45))
      // Until its moment each is the story of one leader, played once; what that one had under way is nobody's any more.
      const first = begin()
      strike(first)
      const later: Later = []
      // The moments of the one lie between those of the other.
      for (let moment = 1_000 + (cold ? 0 : stride / 2); moment < length; moment += stride) {
        play(first, settled + Math.floor(moment / tick) * tick - first.at, undefined, later)
        const world = sameAs(first)
        succeed(world, cold)
        play(world, 900_000)
        assert.ok(over(world), `a leader replaced after ${moment} ms left it open: ${world.told.join(', ')}`)
        assert.equal(world.wrong, [], `${moment}`)
        assert.equal(world.row.taints, [], `${moment}`)
        assert.is(world.told.filter((one) => one.startsWith('delete')).length, 1, `${moment}: ${world.told.join(', ')}`)
      }
    })
  }
}

const calm: readonly (readonly [string, (world: World) => void])[] = [
  ['the agent alone dies', (world) => { world.agent = false }],
  ['the agent dies and the port refuses', (world) => { world.agent = false; world.port = 'refuses' }],
]
for (const [what, strike] of calm) {
  test(`if ${what}, nothing is opened in ten minutes`, () => {
    const world = begin()
    strike(world)
    play(world, 600_000)
    assert.equal(world.told, [])
  })
}

const stuck: readonly (readonly [string, (world: World) => void])[] = [
  ['the order fails and the machine stays on', (world) => { world.frozen = true; world.orders = 'failed' }],
  ['the device says off once and on again', (world) => {
    world.frozen = true
    world.orders = 'failed'
    let count = 0
    world.lie = () => ((count += 1) % 2 === 0 ? 'on' : 'off')
  }],
  ['the device does not answer', (world) => { world.frozen = true; world.lie = () => 'unknown' }],
]
for (const [what, strike] of stuck) {
  test(`if ${what}, nothing is proven and nothing is freed in ten minutes`, () => {
    const world = begin()
    strike(world)
    play(world, 600_000)
    assert.not(world.told.some((one) => /prove|delete|out-of-service/.test(one)), world.told.join(', '))
  })
}

test('a device that lies about a partitioned node: once the node is heard the proof is void, nothing more is freed', () => {
  const world = begin()
  world.reachable = false
  world.orders = 'pretended'
  world.lie = (truth) => (world.told.includes('off') ? 'off' : truth)
  play(world, 600_000, () => {
    if (world.told.includes('prove off')) world.reachable = true
  })
  assert.ok(world.told.includes('void'), world.told.join(', '))
  assert.not(world.told.slice(world.told.indexOf('void')).some((one) => /delete|^out-of-service/.test(one)), world.told.join(', '))
  assert.is(world.told.at(-1), 'close Void')
  assert.equal(world.row.taints, [])
})

test.run()
