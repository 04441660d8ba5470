import fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Attempt, Incident } from '../../core/incident.ts'
import { kubeletsBootKey, type FencePath, type Method, type Ms, type NodeSeen, type PathAudit, type PowerState, type Reading } from '../../core/model.ts'
import { lastOffKey, offSinceKey } from '../../core/path.ts'
import { mayLand, nextOrder, type Next } from '../../core/plan.ts'
import { defaultPolicy } from '../../core/policy.ts'

const test = suite('plan')
const now: Ms = 1_000_000

function method(name: string): Method {
  return { name, agent: 'test-device', device: name, digest: `digest-${name}`, orderWithin: 30_000, statusWithin: 10_000, late: 60_000 }
}

/** One whose configuration says `verify=1m`. */
function slowMethod(name: string): Method {
  return { ...method(name), verifyWithin: 60_000 }
}

interface World {
  readonly levels: readonly (readonly string[])[]
  readonly attempts: readonly Attempt[]
  readonly readings: readonly Reading[]
  readonly busy: readonly string[]
  /** When attempts were first seen, and seen ended. */
  readonly seen: Readonly<Record<string, Ms>>
  readonly round: number
  readonly audits: Readonly<Record<string, Partial<PathAudit>>>
  readonly identity: 'warn' | 'require'
  readonly retries: number
  readonly voidedLevel: number | undefined
  readonly faults: readonly string[]
  /** When the kubelet port was asked last. */
  readonly probedAt: Ms | undefined
}

const plain: World = {
  levels: [['bmc'], ['feed-1', 'feed-2']], attempts: [], readings: [], busy: [], seen: {}, round: 0, audits: {}, identity: 'warn', retries: 2,
  voidedLevel: undefined, faults: [], probedAt: undefined,
}

function reading(name: string, state: PowerState, endedAt: Ms = now - 500): Reading {
  return { method: name, state, startedAt: endedAt - 100, endedAt, evidence: 'told', digest: `digest-${name}` }
}

let count = 0
function attempt(name: string, result: Attempt['result'], over: Partial<Attempt> = {}): Attempt {
  count += 1
  return {
    id: `a${count}`, round: 0, level: name === 'bmc' ? 0 : 1, method: name, agent: 'test-device', action: 'off', replica: 'r', term: 1, startedAt: '',
    within: 30_000, late: 60_000, result, ...over,
  }
}

function seenAs(over: Partial<World>): { incident: Incident; node: NodeSeen } {
  const world = { ...plain, ...over }
  const path: FencePath = { levels: world.levels.map((level) => level.map(method)), faults: world.faults }
  const paths = world.levels.flat().map((name): PathAudit => ({
    method: name, digest: `digest-${name}`, boot: 'b/1', state: 'verified', identity: 'proven', at: '', evidence: '', ...world.audits[name],
  }))
  const node = {
    name: 'n1', machine: 'machine-1', path, readings: world.readings, busy: new Set(world.busy), firstSeen: new Map(Object.entries(world.seen)),
    ...(world.probedAt === undefined ? {} : { probe: { word: 'silent', askedAt: world.probedAt, answeredAt: world.probedAt } }),
    record: { resourceVersion: '1', nodeUid: 'u', boot: 'b/1', machine: 'm', paths },
  } as unknown as NodeSeen // the plan looks at nothing else of a node
  const voided = world.voidedLevel === undefined ? [] : [{ at: '', evidence: '', proof: { level: world.voidedLevel } }]
  const incident = {
    nodeName: 'n1', boot: 'b/1', policy: { name: 'p', ...defaultPolicy, identity: world.identity, retries: world.retries, restAfter: 60_000 },
    status: { attempts: world.attempts, round: world.round, voided },
  } as unknown as Incident // nor of an incident
  return { incident, node }
}

function next(over: Partial<World>, at: Ms = now): Next {
  const { incident, node } = seenAs(over)
  return nextOrder(incident, node, at)
}

/** Every device answers on. */
const allOn = [reading('bmc', 'on'), reading('feed-1', 'on'), reading('feed-2', 'on')]

function said(step: Next): string {
  switch (step.next) {
    case 'order': return `order ${step.method.name} level ${step.level} round ${step.round}`
    case 'verify': return `verify ${step.level}`
    case 'wait': return 'wait'
    case 'spare': return `spare until ${step.until - now}`
    case 'rest': return `rest until ${step.until - now}`
    case 'none': return `none ${step.because}`
  }
}

const failed = attempt('bmc', 'failed')
const failedAgain = attempt('bmc', 'failed')
const unknown = attempt('bmc', 'unknown')
const notGiven = attempt('bmc', 'not-given')
const notGivenAgain = attempt('bmc', 'not-given')
const off = attempt('bmc', 'off')
const feedOff = attempt('feed-1', 'off')
const otherFeedOff = attempt('feed-2', 'off')
const feedFailed = [attempt('feed-1', 'failed'), attempt('feed-1', 'failed')]
const orphan = attempt('bmc', 'running')
const lastEnded = (attempts: readonly Attempt[], at: Ms) => Object.fromEntries(attempts.map((one) => [`ended ${one.id}`, at]))

/** First mute, then twice with an answer. */
const back = [reading('bmc', 'unknown', now - 3_500), reading('bmc', 'on', now - 2_300), reading('bmc', 'on', now - 1_100)]

const table: readonly (readonly [string, Partial<World>, string])[] = [
  ['without a path nothing is ordered', { levels: [] }, 'none no-path'],
  ['a path that is kept out by its faults is named', { levels: [], faults: ['ConfigMap x, line 3'] }, 'none config-invalid'],
  ['the first method of the first level comes first', { readings: allOn }, 'order bmc level 0 round 0'],
  ['a device that was not asked yet is asked first', { readings: [] }, 'wait'],
  ['an answer of long ago is no answer', { readings: [reading('bmc', 'on', now - 20_000)] }, 'wait'],
  ['a level whose device does not answer gives way to the next', { readings: [reading('bmc', 'unknown'), ...allOn.slice(1)] }, 'order feed-1 level 1 round 0'],
  ['that a device does not answer is known until the next question could have been missed too', { readings: [reading('bmc', 'unknown', now - 15_000), ...allOn.slice(1)] }, 'order feed-1 level 1 round 0'],
  ['and no longer', { readings: [reading('bmc', 'unknown', now - 25_000), ...allOn.slice(1)] }, 'wait'],
  ['one feed that does not answer keeps the other from being ordered', { levels: [['feed-1', 'feed-2']], readings: [reading('feed-1', 'on'), reading('feed-2', 'unknown')] }, 'none path-unverified'],
  ['of a device that answers again after it did not the node is asked first', { readings: back, probedAt: now - 2_400 }, 'wait'],
  ['and be it never', { readings: back }, 'wait'],
  ['asked since, and silent still, it is ordered off', { readings: back, probedAt: now - 2_300 }, 'order bmc level 0 round 0'],
  ['a port that nobody can ask keeps nothing waiting for long', { readings: [reading('bmc', 'unknown', now - 9_000), reading('bmc', 'on', now - 5_100), reading('bmc', 'on')] }, 'order bmc level 0 round 0'],
  ['on a level that is begun the other feed is ordered off as soon as it answers again', {
    attempts: [feedOff], seen: lastEnded([feedOff], now - 4_000), readings: [reading('feed-1', 'off'), reading('feed-2', 'unknown', now - 3_000), reading('feed-2', 'on', now - 1_400)],
  }, 'order feed-2 level 1 round 0'],
  ['a path never audited and never read on is not ordered', { readings: allOn.map((one) => ({ ...one, state: 'off' as const })), audits: { bmc: { state: 'unreachable' } } }, 'order feed-1 level 1 round 0'],
  ['a path by which an off of this incident was given was read on then', { levels: [['bmc']], readings: [reading('bmc', 'off')], audits: { bmc: { boot: 'b/2' } }, attempts: [attempt('bmc', 'unknown', { digest: 'digest-bmc' })] }, 'order bmc level 0 round 0'],
  ['and is not by an off of another configuration', { levels: [['bmc']], readings: [reading('bmc', 'off')], audits: { bmc: { boot: 'b/2' } }, attempts: [attempt('bmc', 'unknown', { digest: 'other' })] }, 'rest until 60000'],
  ['an audit of another configuration is none', { levels: [['bmc']], readings: [reading('bmc', 'off')], audits: { bmc: { digest: 'other' } } }, 'none path-unverified'],
  ['an audit of another boot is none', { levels: [['bmc']], readings: [reading('bmc', 'off')], audits: { bmc: { boot: 'b/2' } } }, 'none path-unverified'],
  ['a reading of another configuration is none', { levels: [['bmc']], readings: [{ ...reading('bmc', 'on'), digest: 'other' }] }, 'wait'],
  ['a path read on in this incident needs no audit', { readings: allOn, audits: { bmc: { state: 'unreachable' } } }, 'order bmc level 0 round 0'],
  ['a device that said off before it says on tells of another boot, or of another machine: it is not ordered', { levels: [['bmc']], readings: allOn, audits: { bmc: { boot: 'b/2' } }, seen: { [lastOffKey('bmc', 'digest-bmc')]: now - 60_000 } }, 'none path-unverified'],
  ['one that said on before it said off was read on in this boot', { levels: [['bmc']], readings: [reading('bmc', 'on', now - 3_000), reading('bmc', 'off')], audits: { bmc: { boot: 'b/2' } }, seen: { [lastOffKey('bmc', 'digest-bmc')]: now - 500 } }, 'order bmc level 0 round 0'],
  ['an off by another configuration is none of this one', { levels: [['bmc']], readings: allOn, audits: { bmc: { boot: 'b/2' } }, seen: { [lastOffKey('bmc', 'other')]: now - 60_000 } }, 'order bmc level 0 round 0'],
  ['an off of an earlier boot takes nothing from this one', { levels: [['bmc']], readings: allOn, audits: { bmc: { boot: 'b/2' } }, seen: { [lastOffKey('bmc', 'digest-bmc')]: now - 60_000, [kubeletsBootKey]: now - 50_000 } }, 'order bmc level 0 round 0'],
  ['where an audit of this boot said on, an off since does no harm', { levels: [['bmc']], readings: allOn, seen: { [lastOffKey('bmc', 'digest-bmc')]: now - 60_000 } }, 'order bmc level 0 round 0'],
  ['a device that names another machine now is not ordered, whatever its audit said', { levels: [['bmc']], readings: [{ ...reading('bmc', 'on'), machine: 'machine-9' }] }, 'none path-unverified'],
  ['a device that names this machine is ordered, however it spells the name', { levels: [['bmc']], readings: [{ ...reading('bmc', 'on'), machine: 'MACHINE-1' }] }, 'order bmc level 0 round 0'],
  ['a path that leads to another machine is never ordered', { levels: [['bmc']], readings: allOn, audits: { bmc: { identity: 'mismatch' } } }, 'none path-unverified'],
  ['a path that said off while this boot was beating is never ordered', { levels: [['bmc']], readings: allOn, audits: { bmc: { state: 'mismatch' } } }, 'none path-unverified'],
  ['a marked path is never ordered', { levels: [['bmc']], readings: allOn, audits: { bmc: { state: 'marked' } } }, 'none path-unverified'],
  ['an unproven identity is ordered where the policy only warns', { readings: allOn, audits: { bmc: { identity: 'unproven' } } }, 'order bmc level 0 round 0'],
  ['an unproven identity is refused where the policy requires it', { levels: [['bmc']], readings: allOn, audits: { bmc: { identity: 'unproven' } }, identity: 'require' }, 'none identity-unproven'],
  ['nothing is ordered while an order runs here', { readings: allOn, busy: ['order n1 bmc'], attempts: [orphan] }, 'wait'],
  ['nothing is ordered while an attempt is being written', { readings: allOn, busy: ['order n1 feed-2'] }, 'wait'],
  ['another node\'s order is none of ours', { readings: allOn, busy: ['order n11 bmc', 'askDevice n1 bmc'] }, 'order bmc level 0 round 0'],
  ['a successor orders again what another leader left running', { readings: allOn, attempts: [orphan] }, 'order bmc level 0 round 0'],
  ['what failed is tried again', { readings: allOn, attempts: [failed] }, 'order bmc level 0 round 0'],
  ['what has an unknown end is tried again', { readings: allOn, attempts: [unknown] }, 'order bmc level 0 round 0'],
  ['an order by another configuration is none of this one\'s', { readings: allOn, attempts: [attempt('bmc', 'off', { digest: 'other' })] }, 'order bmc level 0 round 0'],
  ['tries with another configuration are none of this one\'s', { readings: allOn, attempts: [attempt('bmc', 'failed', { digest: 'other' }), attempt('bmc', 'failed', { digest: 'other' })] }, 'order bmc level 0 round 0'],
  ['what was never given is tried again', { readings: allOn, attempts: [notGiven] }, 'order bmc level 0 round 0'],
  ['what was never given counts as a try', { readings: allOn, attempts: [notGiven, notGivenAgain] }, 'order feed-1 level 1 round 0'],
  ['what failed as often as the policy says gives way to the next level', { readings: allOn, attempts: [failed, failedAgain] }, 'order feed-1 level 1 round 0'],
  ['off by its own word is verified', { readings: allOn, attempts: [off], seen: lastEnded([off], now - 200) }, 'verify 0'],
  ['off by its own word, then read on, is ordered again', { readings: [reading('bmc', 'on', now - 100)], attempts: [off], seen: lastEnded([off], now - 5_000) }, 'order bmc level 0 round 0'],
  ['a reading from before the order does not contradict it', { readings: [reading('bmc', 'on', now - 1_000)], attempts: [off], seen: lastEnded([off], now - 1_050) }, 'verify 0'],
  ['off by its own word, and not proven for long, gives way', { readings: [reading('bmc', 'off'), ...allOn.slice(1)], attempts: [off], seen: lastEnded([off], now - 40_000) }, 'order feed-1 level 1 round 0'],
  ['both feeds are ordered before the level is verified', { readings: allOn, attempts: [failed, failedAgain, feedOff], seen: lastEnded([feedOff], now - 200) }, 'order feed-2 level 1 round 0'],
  ['one feed that keeps failing ends the level, and the other is not touched', { readings: allOn, attempts: [failed, failedAgain, ...feedFailed], seen: lastEnded([failed, failedAgain, ...feedFailed], now - 1_000) }, 'rest until 59000'],
  ['after the rest a new round begins at the first level', { readings: allOn, attempts: [failed, failedAgain, ...feedFailed], seen: lastEnded([failed, failedAgain, ...feedFailed], now - 60_000) }, 'order bmc level 0 round 1'],
  ['a level that was passed over is not gone back to within the round', { readings: allOn, attempts: [attempt('feed-1', 'failed')] }, 'order feed-1 level 1 round 0'],
  ['one lost answer on a level under way is waited for', { readings: [reading('feed-1', 'off'), reading('feed-2', 'unknown')], attempts: [feedOff], seen: lastEnded([feedOff], now - 5_000) }, 'wait'],
  ['a level whose proof was shown false is not tried again', { readings: allOn, voidedLevel: 0 }, 'order feed-1 level 1 round 0'],
  ['after the last level was shown false nothing is ordered', { readings: allOn, voidedLevel: 1 }, 'none out-of-levels'],
  ['an off read by itself is ordered off too', { readings: [reading('bmc', 'off')] }, 'order bmc level 0 round 0'],
]

for (const [name, over, wanted] of table) {
  test(name, () => assert.is(said(next(over)), wanted))
}

/** Of bmc: how long ago it first and last said off, where its readings tell that no more. */
type Said = readonly [Ms | undefined, Ms]

const slowTable: readonly (readonly [string, readonly Reading[], Ms, string, Said?])[] = [
  ['what it says on still is what it said before', [reading('bmc', 'on')], 50_000, 'verify 0'],
  ['and is not for ever', [reading('bmc', 'on')], 60_000, 'order bmc level 0 round 0'],
  ['once it has said off an on is news', [reading('bmc', 'on')], 50_000, 'order bmc level 0 round 0', [undefined, 40_000]],
  ['what it said before the order is none of it', [reading('bmc', 'on')], 50_000, 'verify 0', [undefined, 50_001]],
  ['an off that is not there twice is waited for', [reading('bmc', 'off')], 59_000, 'verify 0', [500, 500]],
  ['and from then on no longer than any, though it goes on saying off', [reading('bmc', 'off', now - 2_000), reading('bmc', 'off')], 50_000, 'order feed-1 level 1 round 0', [30_001, 500]],
  ['whenever it came', [reading('bmc', 'off')], 80_000, 'verify 0', [29_000, 500]],
  ['or since the order, where it said off before that', [reading('bmc', 'off')], 29_000, 'verify 0', [90_000, 500]],
  ['a device that says neither is given up then', [reading('bmc', 'unknown')], 60_001, 'order feed-1 level 1 round 0'],
  ['a device that answers nothing at all is not waited for', [3, 2, 1].map((ago) => reading('bmc', 'unknown', now - ago * 500)), 50_000, 'order feed-1 level 1 round 0'],
]

for (const [name, readings, ago, wanted, offs] of slowTable) {
  test(`verify=1m: ${name}`, () => {
    assert.is(said(slowly(readings, ago, offs)), wanted)
  })
}

function slowly(readings: readonly Reading[], ago: Ms, [since, last]: Said | readonly [] = []): Next {
  const seen = {
    ...lastEnded([off], now - ago), ...(since === undefined ? {} : { [offSinceKey('bmc', 'digest-bmc')]: now - since }), ...(last === undefined ? {} : { [lastOffKey('bmc', 'digest-bmc')]: now - last }),
  }
  const { incident, node } = seenAs({ attempts: [off], readings: [...readings, ...allOn.slice(1)], seen })
  return nextOrder(incident, { ...node, path: { ...node.path, levels: [[slowMethod('bmc')], ...node.path.levels.slice(1)] } }, now)
}

test('verify=: what is waited for is told once the device says otherwise, and only then', () => {
  const step = slowly([reading('bmc', 'on')], 5_000)
  assert.match('detail' in step ? step.detail ?? '' : '', /^bmc was ordered off, reads otherwise, and may take another 55\.0 s to say so \(verify\)$/)
  for (const readings of [[reading('bmc', 'off')], []]) assert.equal(slowly(readings, 5_000), { next: 'verify', level: 0 })
})

/** What its device says of a machine that hangs on its way down. */
const hangs = (endedAt?: Ms): Reading => ({ ...reading('bmc', 'unknown', endedAt), addresses: ['10.0.0.2'] })

for (const [name, readings, ends, wanted] of [
  ['a machine that hangs on its way down is ended', [hangs()], true, 'order bmc level 0 round 0'],
  ['and is not restarted', [hangs()], false, 'none path-unverified'],
  ['a cloud that does not answer is not ordered', [reading('bmc', 'unknown')], true, 'none path-unverified'],
  ['once it answers again the node is asked first', [reading('bmc', 'unknown', now - 2_000), hangs()], true, 'wait'],
] as const) {
  test(`for good: ${name}`, () => {
    const { incident, node } = seenAs({ levels: [['bmc']], readings })
    const path = { ...node.path, levels: [[{ ...method('bmc'), ...(ends ? { ends } : {}) }]] }
    assert.is(said(nextOrder(incident, { ...node, path }, now)), wanted)
  })
}

test('a program that does not end is told apart from one that takes its time', () => {
  for (const [ago, overdue] of [[39_000, false], [41_000, true]] as const) {
    const step = next({ readings: allOn, busy: ['order n1 bmc'], attempts: [orphan], seen: { [`began ${orphan.id}`]: now - ago } })
    assert.is(step.next === 'wait' && step.overdue, overdue)
  }
})

test('an on from before this boot says nothing of this boot\'s path', () => {
  const { incident, node } = seenAs({ levels: [['bmc']], readings: [reading('bmc', 'on', now - 5_000), reading('bmc', 'off')], audits: { bmc: { state: 'unreachable' } } })
  const heardSince = (since: Ms) => ({ ...node, beat: { boot: 'b/1', since, at: now - 4_000, kubelet: 'ok' as const } })
  assert.is(nextOrder(incident, heardSince(now - 9_000), now).next, 'order')
  assert.is(nextOrder(incident, heardSince(now - 4_500), now).next, 'none')
})

test('three lost answers on a level under way end it', () => {
  const silence = [3, 2, 1].map((ago) => reading('feed-2', 'unknown', now - ago * 500))
  const step = next({ readings: [reading('feed-1', 'off'), ...silence], attempts: [feedOff], seen: lastEnded([feedOff], now - 5_000) })
  assert.is(step.next, 'rest')
})

test('a level that is done and read off goes on being verified', () => {
  const readings = [reading('feed-1', 'off'), reading('feed-2', 'off')]
  const attempts = [feedOff, otherFeedOff]
  assert.equal(next({ readings, attempts, seen: lastEnded(attempts, now - 2_000) }), { next: 'verify', level: 1 })
})

test('the reasons of every level are told', () => {
  const step = next({ readings: [reading('bmc', 'unknown'), reading('feed-1', 'on'), reading('feed-2', 'unknown')] })
  assert.is(step.next, 'none')
  assert.match('detail' in step ? step.detail : '', /level 1: bmc does not answer: told; level 2: feed-2 does not answer/)
})

test('an order that did not end verified may land for its length and the device\'s lateness, from when we first saw it', () => {
  for (const result of ['failed', 'unknown', 'running'] as const) {
    const one = attempt('bmc', result)
    const { incident, node } = seenAs({ attempts: [one], seen: { [`began ${one.id}`]: now - 10_000 } })
    assert.is(mayLand(incident, node, now)?.until, now + 80_000)
    assert.is(mayLand(incident, node, now + 79_999)?.until, now + 80_000)
    assert.is(mayLand(incident, node, now + 80_000), undefined)
  }
})

test('an order that was never given lands never', () => {
  const { incident, node } = seenAs({ attempts: [notGiven], seen: { [`began ${notGiven.id}`]: now - 10_000 } })
  assert.is(mayLand(incident, node, now), undefined)
})

test('a record that is seen for the first time counts from now, however old it says it is', () => {
  const { incident, node } = seenAs({ attempts: [attempt('bmc', 'running', { startedAt: '2001-01-01T00:00:00Z' })] })
  assert.is(mayLand(incident, node, now)?.until, now + 90_000)
})

test('what still runs here past its time can land for as long as it runs', () => {
  const one = attempt('bmc', 'running')
  const { incident, node } = seenAs({ attempts: [one], busy: ['order n1 bmc'], seen: { [`began ${one.id}`]: now - 500_000 } })
  assert.is(mayLand(incident, node, now)?.until, now + 60_000)
})

test('the latest of several orders counts, of every round; a verified off and an on do not', () => {
  const early = attempt('bmc', 'failed')
  const late = attempt('feed-1', 'unknown', { round: 1, late: 100_000 })
  const seen = { [`began ${early.id}`]: now - 50_000, [`began ${late.id}`]: now - 60_000 }
  const { incident, node } = seenAs({ attempts: [early, late, attempt('bmc', 'off'), attempt('bmc', 'on', { action: 'on' }), attempt('bmc', 'failed', { action: 'on' })], seen })
  const pending = mayLand(incident, node, now)
  assert.is(pending?.until, now + 70_000)
  assert.match(pending?.detail ?? '', /feed-1/)
})

/** A world in which devices answer as they like and programs end as they like, played with the plan for sixty turns. */
test('whatever devices and programs do: one order at a time, levels in order, no more tries than allowed, no order on a level that does not answer', () => {
  const turn = fc.record({
    states: fc.array(fc.constantFrom<PowerState>('on', 'on', 'off', 'unknown'), { minLength: 4, maxLength: 4 }),
    end: fc.constantFrom<Attempt['result'] | 'not yet'>('off', 'off', 'failed', 'unknown', 'not yet', 'not yet'),
    step: fc.integer({ min: 100, max: 20_000 }),
    leaderDies: fc.integer({ min: 0, max: 19 }).map((one) => one === 0),
  })
  const levels = fc.constantFrom<string[][]>([['bmc']], [['bmc'], ['feed-1', 'feed-2']], [['feed-1', 'feed-2'], ['bmc'], ['scsi']])
  let orders = 0
  fc.assert(fc.property(levels, fc.array(turn, { minLength: 60, maxLength: 60 }), (order, turns) => {
    const names = order.flat()
    let at = now
    let round = 0
    const attempts: Attempt[] = []
    const readings: Reading[] = []
    const seen: Record<string, Ms> = {}
    let running: string | undefined
    const close = (result: Attempt['result']) => {
      const index = attempts.findLastIndex((one) => one.result === 'running')
      const open = attempts[index]
      if (open === undefined) return
      attempts[index] = { ...open, result }
      seen[`ended ${open.id}`] = at
      running = undefined
    }
    for (const { states, end, step, leaderDies } of turns) {
      at += step
      if (leaderDies && running !== undefined) close('unknown')
      if (running !== undefined && end !== 'not yet') close(end)
      for (const [index, name] of names.entries()) readings.push(reading(name, states[index] ?? 'unknown', at))
      const busy = running === undefined ? [] : [`order n1 ${running}`]
      const chosen = next({ levels: order, attempts, readings, seen, busy, round }, at)
      if (running !== undefined) assert.is(chosen.next, 'wait')
      if (chosen.next !== 'order') continue
      orders += 1
      const { method: { name }, level, round: chosenRound } = chosen
      assert.ok(order[level]?.includes(name))
      assert.ok(chosenRound === round || chosenRound === round + 1)
      const inRound = attempts.filter((one) => one.round === chosenRound)
      assert.ok(inRound.every((one) => one.level <= level), 'never back')
      assert.ok(inRound.filter((one) => one.method === name && one.level === level).length < 2, 'no more tries than allowed')
      for (const other of order[level] ?? []) assert.is.not(readings.findLast((one) => one.method === other)?.state, 'unknown')
      if (chosenRound > round) {
        const lastEnd = Math.max(...attempts.map((one) => seen[`ended ${one.id}`] ?? 0))
        assert.ok(at >= lastEnd + 60_000, 'a rest lies between two rounds')
        round = chosenRound
      }
      const one = attempt(name, 'running', { level, round: chosenRound })
      attempts.push(one)
      seen[`began ${one.id}`] = at
      running = name
    }
  }), { numRuns: 300, seed: 7 })
  assert.ok(orders > 1_000, `only ${orders} orders were given: the world is too quiet to prove anything`)
})

test.run()
