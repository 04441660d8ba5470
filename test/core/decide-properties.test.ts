// Whatever the snapshot: what must never be wanted is not wanted. Snapshots are the states of an incident with a few things
// about them changed at random, so that most are near a state in which something is allowed, and not in it. What is checked is
// worked out here a second time, and dumber.
import fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { isLook, keyOf, type Action } from '../../core/action.ts'
import { outOfServiceKey, quarantineKey } from '../../core/clear.ts'
import { decide } from '../../core/decide.ts'
import type { Attempt, Incident, IncidentStatus } from '../../core/incident.ts'
import { goneKey, type BeatSeen, type NodeSeen, type Observed, type Reading, type Self } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { survey } from '../../core/survey.ts'
import { attempts, booted, bootedReady, cleared, clearing, freed, lifted, littered, on, opened, ordered, ordering, outOfService, proven, quarantine, recovering, seenLongAgo, switchedOn, theirs, withdrawn, type State } from './states.ts'
import { attempt, beat, boot, dead, foundOffNode, incident, method, newBoot, node, now, pod, podsOf, policy, proofRecord, reading, record, seen, seenOrder, seenProof, self, silent, volume } from './world.ts'

const test = suite('decide, whatever the snapshot')

const plug = { ...method, name: 'plug-off', agent: 'pdu', device: 'pdu-1:161', digest: 'd2' }
/** The time of the first order passed a few seconds ago. */
const seenPassed = new Map(seenOrder(now - 95_000, now - 93_000))
const states: readonly State[] = [
  opened, opened, opened, ordering, ordered, proven, clearing, freed, cleared, recovering, switchedOn, booted, littered, lifted, withdrawn, { node: foundOffNode, status: {} },
  { node: clearing.node, status: { ...clearing.status, attempts: [], proof: proofRecord({ kind: 'found-off' }) } },
  ...[opened, clearing, freed].map((state) => ({ ...state, node: { ...state.node, gone: true, taints: [], firstSeen: new Map([...state.node.firstSeen ?? [], seenProof(now - 600), [goneKey, now - 1_000] as [string, number]]) } })),
  { node: { ...clearing.node, beat: beat({ answered: { issuedAt: now - 400, boot } }) }, status: clearing.status },
  { node: { ...withdrawn.node, taints: [quarantine], firstSeen: seenLongAgo }, status: { ...withdrawn.status, attempts: [attempt({ result: 'failed' }), on] } },
  { node: { ...withdrawn.node, taints: [quarantine], firstSeen: seenPassed, readings: [reading('on', now - 1_500)] }, status: { ...withdrawn.status, attempts: [attempt({ result: 'failed' })] } },
  { node: { ...lifted.node, firstSeen: new Map([...lifted.node.firstSeen ?? [], ...seenPassed]), readings: [reading('on', now - 1_500)] }, status: { ...lifted.status, attempts: [attempt({ result: 'failed' }), on] } },
  { node: { ...withdrawn.node, taints: [quarantine], firstSeen: seenLongAgo }, status: { ...withdrawn.status, voided: [{ proof: proofRecord(), at: '', evidence: '' }], attempts: [...attempts, on] } },
]

const ago = fc.constantFrom(50, 200, 700, 1_050, 1_600, 2_500, 3_500, 4_500, 6_000, 9_000, 14_000, 31_000, 62_000, 95_000)
const when = ago.map((span) => now - span)
const someBoot = fc.constantFrom(boot, boot, newBoot, 'boot-1/900')
const seldom = <T>(arbitrary: fc.Arbitrary<T>) => fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })

const someReading: fc.Arbitrary<Reading> = fc.record({
  method: fc.constantFrom('bmc-off', 'bmc-off', 'plug-off'), state: fc.constantFrom('off', 'off', 'on', 'unknown'), at: when,
  took: fc.constantFrom(10, 100, 900), machine: fc.constantFrom('machine-2', 'machine-2', undefined, 'machine-9'), digest: fc.constantFrom('own', 'own', 'own', 'd0'),
}).map(({ method: name, state, at, took, machine, digest }) => ({
  ...reading(state, at - took, at), method: name, digest: digest === 'own' ? (name === 'bmc-off' ? 'd1' : 'd2') : digest, ...(machine === undefined ? { machine: undefined as never } : { machine }),
}))
const readings = fc.array(someReading, { maxLength: 6 }).map((all) => all.toSorted((one, other) => one.endedAt - other.endedAt))

const someBeat: fc.Arbitrary<BeatSeen | undefined> = fc.option(fc.record({
  boot: someBoot, at: when, since: fc.constantFrom(now - 99_000, now - 20_000, now - 3_000), kubelet: fc.constantFrom('ok', 'ill', 'unknown'),
  clean: seldom(fc.record({ at: when, report: fc.constantFrom({ state: 'clean' as const }, { state: 'dirty' as const, leftovers: [] }, { state: 'unknown' as const, reason: 'x' }) })),
  goodbye: seldom(fc.record({ at: when, why: fc.constantFrom('restart', 'reboot', 'shutdown') })),
  answered: seldom(fc.record({ issuedAt: when, boot: someBoot })),
}).map(({ clean, goodbye, answered, ...rest }) => beat({ ...rest, ...(clean && { clean }), ...(goodbye && { goodbye }), ...(answered && { answered }) })), { nil: undefined, freq: 6 })

const probes = fc.record({ askedAt: when, word: fc.constantFrom('silent', 'silent', 'answered', 'refused', 'open'), spoke: fc.boolean() })
  .map(({ askedAt, word, spoke }) => ({ askedAt, answeredAt: askedAt + 40, word, ...(spoke || word !== 'silent' ? { spokeAt: askedAt + 40 } : {}) }))
const witnesses = fc.array(fc.record({ witness: fc.constantFrom('node-1', 'node-3', 'replica-1'), askedAt: when, word: fc.constantFrom('deaf', 'deaf', 'hears'), proven: fc.boolean() })
  .map((one) => ({ ...one, kind: one.witness.startsWith('node') ? 'agent' as const : 'replica' as const, answeredAt: one.askedAt + 40 })), { maxLength: 3 })
const records = fc.record({
  boot: someBoot, state: fc.constantFrom('verified', 'verified', 'mismatch', 'unreachable', 'marked'), identity: fc.constantFrom('proven', 'proven', 'unproven', 'mismatch'), answered: fc.boolean(),
}).map((one) => record({
  boot: one.boot, probe: { boot: one.boot, answered: one.answered, at: '' },
  paths: [['bmc-off', 'd1'], ['plug-off', 'd2']].map(([name, digest]) => ({ method: name ?? '', digest: digest ?? '', boot: one.boot, state: one.state, identity: one.identity, at: '', evidence: '' })),
}))
const busy = fc.subarray(['order node-2 bmc-off', 'order node-2 plug-off', 'askDevice node-2 bmc-off', 'deed node-2', 'probe node-2', 'listPods node-2']).map((keys) => new Set(keys))
const ids = ['node-2-abc-1.1', 'node-2-abc-1.2', 'node-2-abc-1.3']
const firstSeen = fc.record({ orders: fc.array(fc.tuple(fc.constantFrom(...ids), when, when), { maxLength: 3 }), proof: when, void: when, gone: when, deleted: when }).map(({ orders, proof, void: later, gone, deleted }) => new Map([
  ...orders.flatMap(([id, one, other]) => seenOrder(Math.min(one, other), Math.max(one, other), id)), seenProof(proof), seenProof(later, 1), [`gone ${outOfServiceKey}`, gone] as [string, number], [goneKey, deleted] as [string, number],
]))

const nodeChanges = fc.record({
  beat: someBeat, probe: probes, witnesses, record: records, readings, busy, firstSeen,
  ready: fc.record({ status: fc.constantFrom('True', 'False', 'Unknown'), postedAt: when, since: when, bootId: fc.constantFrom('boot-1', 'boot-2', '') }),
  lease: fc.record({ at: when, unmovedSince: when, moved: fc.boolean() }).map(({ at, unmovedSince, moved }) => ({ askedAt: at, readAt: at + 20, renewTime: 'x', unmovedSince: Math.min(at, unmovedSince), moved })),
  path: fc.constantFrom({ levels: [[method]], faults: [] }, { levels: [[method], [plug]], faults: [] }, { levels: [[method, plug]], faults: [] }, { levels: [], faults: ['fence-config-node-2: no such template'] }),
  taints: fc.subarray([quarantine, outOfService, theirs, { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' as const }]),
  pods: fc.option(fc.record({ at: when, some: fc.subarray([pod('web-0'), pod('api-x', { owner: 'ReplicaSet' }), pod('kept', { finalizers: ['x'], terminating: true }), pod('ds', { exempt: 'DaemonSet' }), pod('over', { phase: 'Failed' }), pod('done', { phase: 'Succeeded' })]) }).map(({ at, some }) => podsOf(some, at)), { nil: undefined as never }),
  volumes: fc.subarray([volume('pv-1'), volume('pv-2', { deleting: true })]), gone: fc.constantFrom(false, false, true), uid: fc.constantFrom('uid-node-2', 'uid-node-2', 'uid-other'),
  machine: fc.constantFrom('machine-2', 'machine-2', 'machine-9'), bootId: fc.constantFrom('boot-1', 'boot-2'), controlPlane: fc.boolean(),
}, { requiredKeys: [] })

const someAttempt: fc.Arbitrary<Attempt> = fc.record({
  id: fc.constantFrom(...ids), method: fc.constantFrom('bmc-off', 'bmc-off', 'plug-off'), action: fc.constantFrom('off', 'off', 'on'), term: fc.constantFrom(3, 3, 2),
  result: fc.constantFrom('off', 'off', 'on', 'failed', 'unknown', 'running', 'not-given'), round: fc.constantFrom(1, 1, 2), level: fc.constantFrom(0, 0, 1),
}).map((one) => attempt({ ...one, result: one.result === 'off' || one.result === 'on' ? one.action : one.result }))

const statusChanges = fc.record({
  phase: fc.constantFrom('New', 'Running', 'Done', 'Final'), step: fc.constantFrom('none', 'power-management', 'clear', 'recovery'), round: fc.constantFrom(1, 2), term: fc.constantFrom(3, 3, 3, 2),
  attempts: fc.uniqueArray(someAttempt, { maxLength: 3, selector: (one) => one.id }), proof: fc.record({ kind: fc.constantFrom('off', 'found-off'), boot: fc.constantFrom(boot, boot, newBoot), nodeUid: fc.constantFrom('uid-node-2', 'uid-node-2', 'uid-other') }).map((one) => proofRecord(one)),
  pods: fc.subarray(['web-0', 'over', 'kept']).map((names) => names.map((name) => ({ namespace: 'default', name, uid: `uid-${name}`, fate: 'freed' as const }))),
  voided: fc.array(fc.constant({ proof: proofRecord(), at: '', evidence: '' }), { maxLength: 1 }),
}, { requiredKeys: [] })

const policies: fc.Arbitrary<Policy> = fc.record({
  mode: fc.constantFrom('enforce', 'enforce', 'enforce', 'dryRun'), nodeDownPodDeletionPolicy: fc.constantFrom('DeleteAllPods', 'DeleteAllPods', 'DoNothing'),
  identity: fc.constantFrom('warn', 'require'), powerOnFoundOff: fc.boolean(), profile: fc.constantFrom('fast', 'fast', 'balanced', 'conservative'),
}, { requiredKeys: [] }).map((changes) => ({ ...policy, ...changes }))

const selves: fc.Arbitrary<Self> = fc.record({
  freshAt: fc.constantFrom(now - 500, now - 500, now - 11_000), awakeSince: fc.constantFrom(0, 0, 0, now - 500, now - 2_000), podBudget: fc.constantFrom(150, 150, 1, 0), auditBudget: fc.constantFrom(30, 30, 1, 0), recordBudget: fc.constantFrom(60, 60, 1, 0),
  pause: fc.constantFrom(undefined, undefined, undefined, { reason: 'x', by: 'y' }), replicas: fc.constantFrom(['replica-1'], []),
}, { requiredKeys: [] }).map(({ pause, ...rest }) => self({ ...rest, ...(pause === undefined ? {} : { pause }) }))

/** Nodes beside: well, dead, or silent on the same device. */
const others = fc.array(fc.constantFrom<Partial<NodeSeen>>({}, {}, {}, silent, dead, { beat: undefined }, { controlPlane: true }, { zone: 'b' }), { minLength: 2, maxLength: 6 })
  .map((all) => all.map((changes, index) => node({ name: `node-${index + 3}`, ...changes })))

interface World {
  readonly observed: Observed
  readonly incident: Incident
  readonly policies: readonly Policy[]
  readonly node: NodeSeen
}

const few = <T extends object>(arbitrary: fc.Arbitrary<T>, most: number): fc.Arbitrary<Partial<T>> =>
  fc.tuple(arbitrary, fc.array(fc.nat(), { maxLength: most })).map(([all, picks]) => {
    const entries = Object.entries(all)
    return Object.fromEntries(entries.length === 0 ? [] : picks.flatMap((pick) => entries.slice(pick % entries.length, (pick % entries.length) + 1))) as Partial<T> // entries of a T
  })

const worlds: fc.Arbitrary<World> = fc.record({
  state: fc.constantFrom(...states), changes: few(nodeChanges, 3), status: few(statusChanges, 2), own: policies, chosen: policies, by: selves, others,
  open: fc.constantFrom(true, true, true, true, false), cause: fc.constantFrom('silence', 'silence', 'found-off', 'by-hand'),
}).map(({ state, changes, status, own, chosen, by, others: rest, open, cause }) => {
  const target = node({ ...state.node, ...changes })
  const its = incident({ ...state.status, ...status }, { policy: own, cause })
  return { observed: seen([target, ...rest], open ? [its] : [], by), incident: its, policies: [chosen], node: target }
})

const runs = 3_000
const draw = (claim: (world: World, actions: readonly Action[]) => void) =>
  fc.assert(fc.property(worlds, (world) => claim(world, decide(world.observed, now, world.policies))), { numRuns: runs, seed: 11 })
const drawn: (readonly [World, readonly Action[]])[] = []

/** Of the same worlds for every claim, so they are drawn once, which is most of the work. A claim that fails draws them again, and
 *  has the world made smaller that it failed in. */
function check(claim: (world: World, actions: readonly Action[]) => void): void {
  if (drawn.length === 0) draw((world, actions) => { drawn.push([world, actions]) })
  try {
    for (const [world, actions] of drawn) claim(world, actions)
  } catch (error) {
    draw(claim)
    throw error
  }
}

type Deeds<Kind extends Action['do']> = Extract<Action, { do: Kind }>
const of = <Kind extends Action['do']>(actions: readonly Action[], kind: Kind): Deeds<Kind>[] =>
  actions.filter((action): action is Deeds<Kind> => action.do === kind && action.node === 'node-2')

const windowOver = (world: World, action: 'off' | 'on'): boolean => world.incident.status.attempts
  .filter((one) => one.action === action && one.result !== action && one.result !== 'not-given')
  .every((one) => now >= (world.node.firstSeen.get(`began ${one.id}`) ?? Infinity) + one.within + one.late)

/** Whether a method with a loose *off* said on or off, asked after the last instant at which that might have landed. */
function toldSince({ incident: { status }, node: target }: World, name: string): boolean {
  const ends = status.attempts.filter((one) => one.method === name && one.action === 'off' && (one.result === 'failed' || one.result === 'unknown' || one.result === 'running'))
    .map((one) => (target.firstSeen.get(`began ${one.id}`) ?? Infinity) + one.within + one.late)
  const digest = target.path.levels.flat().find((one) => one.name === name)?.digest
  return ends.length === 0 || target.readings.some((one) => one.method === name && one.digest === digest && one.state !== 'unknown' && one.startedAt >= Math.max(...ends))
}

test('the worlds are not vacuous: every deed is wanted in many of them, and none in many more', () => {
  const counts = new Map<string, number>()
  check((_, actions) => {
    for (const action of actions) if (action.node === 'node-2' && !isLook(action)) counts.set(action.do, (counts.get(action.do) ?? 0) + 1)
  })
  for (const kind of ['open', 'adopt', 'fence', 'restore', 'settle', 'prove', 'void', 'taint', 'untaint', 'delete', 'bury', 'withdraw', 'close', 'hold']) {
    assert.ok((counts.get(kind) ?? 0) >= 10, `${kind}: ${counts.get(kind) ?? 0} of ${runs}`)
  }
})

test('only what was doomed on the record, and is over, is buried', () => {
  check((world, actions) => {
    for (const { pods } of of(actions, 'bury')) for (const one of pods) {
      assert.ok(world.incident.status.pods.some(({ uid, fate }) => uid === one.uid && fate === 'freed'))
      assert.ok((one.phase === 'Failed' || one.phase === 'Succeeded') && !one.terminating)
    }
  })
})

test('the same snapshot gives the same answer, and is left as it was', () => {
  check((world, actions) => {
    const before = JSON.stringify([...world.observed.nodes, ...world.observed.incidents])
    assert.equal(decide(world.observed, now, world.policies), actions)
    assert.is(JSON.stringify([...world.observed.nodes, ...world.observed.incidents]), before)
  })
})

test('nothing is freed without a proof on the record, of this boot and this node, over devices that just said off', () => {
  check((world, actions) => {
    const { proof } = world.incident.status
    const last = (name: string) => world.node.readings.findLast((one) => one.method === name)
    for (const freeing of [...of(actions, 'delete'), ...of(actions, 'detach'), ...of(actions, 'taint').filter((one) => one.outOfService)]) {
      assert.ok(proof !== undefined && proof.boot === world.incident.boot && proof.nodeUid === world.node.uid && world.node.uid === world.incident.nodeUid)
      assert.equal([freeing.proof?.boot, freeing.proof?.nodeUid, freeing.proof?.methods], [proof?.boot, proof?.nodeUid, proof?.methods])
      for (const name of proof?.methods ?? []) {
        assert.is(last(name)?.state, 'off')
        assert.ok(now - (last(name)?.endedAt ?? -Infinity) <= (freeing.do === 'delete' ? 1_000 : 15_000))
      }
      const { beat: heard, ready } = world.node
      assert.not(heard !== undefined && heard.boot !== boot && heard.at >= ready.postedAt, 'a later boot was heard')
      assert.is(world.incident.policy.nodeDownPodDeletionPolicy, 'DeleteAllPods')
    }
    for (const { pods } of of(actions, 'delete')) for (const one of pods) assert.is(one.exempt, undefined)
  })
})

test('a proof is made only of two offs in a row on every method of its level', () => {
  check((world, actions) => {
    for (const { proof } of of(actions, 'prove')) {
      const { attempts: orders, round } = world.incident.status
      const ordersOff = orders.filter((one) => one.action === 'off')
      if (proof.kind === 'found-off') assert.is(ordersOff.filter(({ result }) => result !== 'not-given').length, 0)
      for (const wanted of world.node.path.levels[proof.level] ?? []) {
        const own = world.node.readings.filter((one) => one.method === wanted.name && one.digest === wanted.digest)
        const [last] = own.slice(-1)
        const first = own.slice(0, -1).findLast((one) => (last?.startedAt ?? 0) - one.endedAt >= 1_000)
        assert.ok(last?.state === 'off' && first?.state === 'off')
        assert.ok(own.slice(own.indexOf(first)).every((one) => one.state === 'off'))
        assert.ok([first, last].every((one) => one.machine === undefined || one.machine === world.node.machine))
        const audit = world.node.record?.paths.find((one) => one.method === wanted.name)
        assert.ok(audit?.identity !== 'mismatch' && audit?.state !== 'marked' && audit?.state !== 'mismatch')
        if (proof.kind === 'found-off') assert.ok(audit?.identity === 'proven' && audit.state === 'verified' && first.startedAt >= (world.node.beat?.at ?? -Infinity))
        else assert.ok(ordersOff.some((one) => one.method === wanted.name && one.round === round && first.startedAt >= (world.node.firstSeen.get(`ended ${one.id}`) ?? Infinity)))
      }
      assert.not(orders.some((one) => one.result === 'running' && one.level === proof.level))
      assert.is(proof.boot, world.incident.boot)
    }
  })
})

test('a device is ordered off only for a node that is dead, or in a round that was begun, or by hand, or to secure a found-off', () => {
  check((world, actions) => {
    const { status, cause, policy: own } = world.incident
    const verdict = survey(world.observed, now, world.policies).verdicts.get('node-2')
    for (const fence of of(actions, 'fence')) {
      const begun = status.attempts.some((one) => one.action === 'off' && one.round === status.round)
      assert.ok(verdict?.is === 'dead' || begun || cause === 'by-hand' || status.proof?.kind === 'found-off', `ordered off: ${verdict?.is}`)
      assert.ok(world.policies[0]?.mode === 'enforce' && own.nodeDownPodDeletionPolicy === 'DeleteAllPods' && world.observed.self.pause === undefined)
      assert.not(status.attempts.some((one) => one.result === 'running'))
      assert.not(world.node.busy.has(`order node-2 ${fence.method.name}`))
    }
  })
})

test('a storm orders nothing', () => {
  check((world, actions) => {
    const { storms } = survey(world.observed, now, world.policies)
    if (storms.cluster !== undefined) assert.is(actions.filter((action) => action.do === 'fence').length, 0)
  })
})

/** Several incidents in one small cluster, of nodes that are no storm together: one or two that wait for their order, and
 *  perhaps one that has had it. */
const crowds = fc.record({ waiting: fc.integer({ min: 1, max: 2 }), holder: fc.constantFrom(undefined, ordering, ordered, proven, clearing), well: fc.integer({ min: 4, max: 6 }) })
  .map(({ waiting, holder, well }) => {
    const ill = [...Array.from({ length: waiting }, () => opened), ...(holder === undefined ? [] : [holder])]
      .map((state, index) => ({ name: `ill-${index}`, state }))
    const incidents = ill.map(({ name, state }) => incident(state.status, { name: `${name}-abc-1`, nodeName: name, nodeUid: `uid-${name}`, machine: '' }))
    const nodes = ill.map(({ name, state }) => node({ ...state.node, name, machine: '' }))
    const beside = Array.from({ length: well }, (_, index) => node({ name: `well-${index}` }))
    return { holds: holder !== undefined, waiting, observed: seen([...beside, ...nodes], incidents) }
  })

test('a small cluster is fenced one node at a time: who has had its order keeps the others waiting', () => {
  let given = 0
  let waited = 0
  fc.assert(fc.property(crowds, ({ holds, waiting, observed }) => {
    const fenced = new Set(decide(observed, now, [policy]).flatMap((action) => (action.do === 'fence' ? [action.node] : [])))
    const fresh = [...fenced].filter((name) => name !== `ill-${waiting}`) // whoever has the slot may be ordered again
    assert.ok(fresh.length <= (holds ? 0 : 1), fresh.join())
    if (fresh.length === 1) given += 1
    if (holds || waiting > 1) waited += 1
  }), { numRuns: 200, seed: 13 })
  assert.ok(given >= 20 && waited >= 20, `${given} ordered, ${waited} waited`)
})

test('nothing is switched on, and nothing ends, while an off may still land', () => {
  check((world, actions) => {
    for (const { method: { name } } of of(actions, 'restore')) assert.ok(toldSince(world, name), `${name} was not read since`)
    const told = world.node.gone === true || world.node.path.levels.flat().every((one) => toldSince(world, one.name))
    if (!told) assert.is(of(actions, 'close').length, 0)
    if (windowOver(world, 'off')) return
    assert.is(of(actions, 'restore').length, 0)
    assert.is(of(actions, 'close').length, 0)
  })
})

test('no incident ends while an order runs, nor while an on may still land', () => {
  check((world, actions) => {
    const underWay = world.incident.status.attempts.some((one) => one.result === 'running') || [...world.node.busy].some((key) => key.startsWith('order '))
    if (underWay || !windowOver(world, 'on')) assert.is(of(actions, 'close').length, 0)
  })
})

test('what nobody here switched off is switched on only by a policy that says so', () => {
  check((world, actions) => {
    for (const _ of of(actions, 'restore')) {
      const { status, policy: own } = world.incident
      assert.ok(status.attempts.some((one) => one.action === 'off') || own.powerOnFoundOff)
      assert.is.not(world.node.beat?.goodbye?.why === 'shutdown' && status.phase !== 'Done', true)
    }
  })
})

test('the quarantine comes off only a node that beats, in a boot it was judged clean in, or that is another machine', () => {
  check((world, actions) => {
    const verdict = survey(world.observed, now, world.policies).verdicts.get('node-2')
    for (const { key } of of(actions, 'untaint')) {
      if (key !== quarantineKey || world.node.uid !== world.incident.nodeUid || world.node.machine !== world.incident.machine) continue
      assert.is(verdict, undefined)
      assert.is(world.node.ready.status, 'True')
      assert.is(world.node.beat?.clean?.report.state, 'clean')
      assert.ok((world.node.beat?.clean?.at ?? -Infinity) >= (world.node.beat?.since ?? Infinity))
      assert.not(world.node.taints.some((one) => one.key === outOfServiceKey || one.key === 'node.kubernetes.io/unreachable'))
    }
  })
})

test('nothing is switched on while anybody\'s out-of-service stands, and another\'s is no reason for a taint of ours', () => {
  check((world, actions) => {
    const stands = world.node.taints.filter((one) => one.key === outOfServiceKey)
    if (stands.length > 0) assert.is(of(actions, 'restore').length, 0)
    for (const { key, recovers } of of(actions, 'untaint')) assert.ok(key === quarantineKey || recovers || stands.includes(outOfService))
    if (stands.length > 0) assert.not(of(actions, 'taint').some((one) => one.outOfService && world.node.taints.includes(quarantine)))
  })
})

test('no two wishes of one answer have one key: each can be carried out', () => {
  check((_, actions) => {
    const keys = actions.map(keyOf)
    assert.is(new Set(keys).size, keys.length, keys.join('; '))
  })
})

test('nothing is wanted that is under way', () => {
  check((world, actions) => {
    for (const action of actions) if (isLook(action) && action.node === 'node-2') assert.not(world.node.busy.has(keyOf(action)), keyOf(action))
  })
})

test('hands off, or blind: nothing but holds, looks at others, and out-of-service coming off', () => {
  check((world, actions) => {
    const open = world.observed.incidents.size > 0 && world.incident.status.phase !== 'Final'
    const away = world.observed.self.pause !== undefined || (open && world.policies[0]?.mode === 'dryRun')
    const mine = actions.filter((action) => action.node === 'node-2' && !isLook(action))
    if (away && open && world.node.uid === world.incident.nodeUid && world.node.machine === world.incident.machine && world.node.gone !== true && world.incident.status.term === 3) {
      assert.ok(mine.every((one) => one.do === 'hold' || one.do === 'record' || (one.do === 'untaint' && one.key === outOfServiceKey)), mine.map((one) => one.do).join())
    }
    if (now - world.observed.self.freshAt > 10_000 || now - world.observed.self.awakeSince < 1_000) assert.ok(actions.every((one) => one.do === 'hold'))
  })
})

test('a Node that is gone: nothing is written on it, nothing is switched on for it, and nothing of it goes in good order', () => {
  check((world, actions) => {
    if (world.node.gone !== true) return
    const wanted = actions.filter((action) => action.node === 'node-2')
    for (const { volumes } of of(wanted, 'detach')) assert.ok(volumes.length > 0 && volumes.every((one) => !one.deleting))
    assert.not(wanted.some(({ do: what }) => ['taint', 'untaint', 'restore', 'evict', 'declare', 'open', 'withdraw'].includes(what)), wanted.map((one) => one.do).join())
  })
})

test('an open incident always does something, asks something or says what it waits for', () => {
  check((world, actions) => {
    if (world.observed.incidents.size === 0 || world.incident.status.phase === 'Final' || world.node.busy.size > 0) return
    if (actions.some((action) => action.node === 'node-2' && action.do !== 'record')) return
    // Looks keep a pace: at the latest a moment later there is something again.
    const later = { ...world.observed, self: { ...world.observed.self, freshAt: now + 1_000, apiAnsweredAt: now + 1_000 } }
    assert.ok(decide(later, now + 1_300, world.policies).some((action) => action.node === 'node-2' && action.do !== 'record'), 'it hangs in silence')
  })
})

test('every hold says why and what would lift it', () => {
  check((_, actions) => {
    for (const hold of actions) if (hold.do === 'hold') assert.ok(hold.detail.length > 5 && hold.lifts.length > 3, JSON.stringify(hold))
  })
})

const freeing = (all: readonly Action[]): Action[] => [...of(all, 'delete'), ...of(all, 'prove'), ...of(all, 'taint').filter((one) => one.outOfService)]

// What takes a permission away, added to any world in which it was given.

const spoils: readonly (readonly [string, (target: NodeSeen) => Partial<NodeSeen>])[] = [
  ['a device that does not answer', (target) => ({ readings: [...target.readings, reading('unknown', now - 20, now - 10)] })],
  ['a device that says on', (target) => ({ readings: [...target.readings, reading('on', now - 20, now - 10)] })],
  ['a beat of the fenced boot', () => ({ beat: beat({ at: now - 10 }) })],
  ['a beat of a new boot', () => ({ beat: beat({ at: now - 10, since: now - 10, boot: newBoot }) })],
  ['a status posted from a new boot', () => ({ ready: { ...bootedReady, postedAt: now - 10 } })],
  ['another Node object under the name', () => ({ uid: 'uid-new' })],
]
for (const [what, spoil] of spoils) {
  test(`${what} stops every deletion, every proof and every out-of-service`, () => {
    let spoilt = 0
    check((world, actions) => {
      const before = freeing(actions)
      if (before.length === 0 || !JSON.stringify(before).includes('bmc-off')) return
      spoilt += 1
      const target = { ...world.node, ...spoil(world.node) }
      const nodes = new Map([...world.observed.nodes, ['node-2', target]])
      const after = freeing(decide({ ...world.observed, nodes }, now, world.policies))
      // A person's fence is not withdrawn by a beat; its proof rests on the devices.
      if (what.startsWith('a beat of the fenced') && world.incident.cause === 'by-hand' && after.every((one) => one.do === 'prove')) return
      assert.equal(after.map((one) => one.do), [])
    })
    assert.ok(spoilt >= 20, `only ${spoilt} worlds were spoilt`)
  })
}

test('whatever the incident says, a replica that does not lead wants nothing', () => {
  check((world) => {
    const { term: _term, ...follower } = world.observed.self
    assert.equal(decide({ ...world.observed, self: follower }, now, world.policies), [])
  })
})

test('a status of any kind gives an answer', () => {
  const any: fc.Arbitrary<Partial<IncidentStatus>> = statusChanges
  fc.assert(fc.property(worlds, any, nodeChanges, (world, status, changes) => {
    const its = { ...world.incident, status: { ...world.incident.status, ...status } }
    const target = { ...world.node, ...changes }
    decide({ ...world.observed, nodes: new Map([...world.observed.nodes, ['node-2', target]]), incidents: new Map([[its.name, its]]) }, now, world.policies)
  }), { numRuns: runs, seed: 12 })
})

test.run()
