// An order stands on the record before its device is touched, and its end outlives what gave it.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { fenceRunner } from '../../coordinator/fence.ts'
import type { ProgramRun } from '../../coordinator/host.ts'
import { keepNode } from '../../coordinator/kubernetes.ts'
import type { Deed } from '../../core/action.ts'
import type { Attempt } from '../../core/incident.ts'
import type { Method } from '../../core/model.ts'
import { theirs } from '../core/states.ts'
import { attempt, beat, method, pod, policy } from '../core/world.ts'
import { silentLog } from '../../edge/log.ts'
import { attempts, fault, faulty, off, opened, switchOn } from './deed-world.ts'
import { configured, edgeWorld, fence, turned, victim, type EdgeWorld } from './edge-world.ts'

const test = suite('order')

test('an order stands on the record as running before the device is touched', async () => {
  const world = await opened()
  let seen: Attempt | undefined
  world.runMethod = async () => {
    seen = attempts(world)[0]
    return {}
  }
  assert.ok(await world.do(off))
  assert.equal(world.story, ['PUT node-2-abc-1/status', 'run off', 'PUT node-2-abc-1/status'])
  assert.equal([seen?.result, seen?.action, seen?.replica, seen?.term, seen?.within, seen?.late], ['running', 'off', 'replica-0', 3, 30_000, 60_000])
  assert.is(attempts(world)[0]?.result, 'off')
  assert.is(world.runs[0]?.attempt, `${fence}.1`)
})

test('an on stands on the record with the times that are written for it', async () => {
  const world = await opened()
  const timed = { ...method, onTimes: { orderWithin: 90_000, late: 120_000 } }
  for (const deed of [off, switchOn]) assert.ok(await world.do({ ...deed, method: timed }))
  assert.equal(attempts(world).map(({ action, within, late }) => [action, within, late]), [['off', 30_000, 60_000], ['on', 90_000, 120_000]])
})

test('it bears the other methods of its level, since one that is struck from the configuration may feed the machine still', async () => {
  const world = await opened()
  const one = async (levels: readonly (readonly Method[])[]) => {
    world.observation.path(victim, { levels, faults: [] })
    assert.ok(await world.do(off))
    return attempts(world).at(-1)?.beside
  }
  const [feed, other] = [{ ...method, name: 'feed-b' }, { ...method, name: 'outlet' }]
  assert.equal([await one([[method], [other]]), await one([[method, feed], [other]])], [undefined, ['feed-b']])
})

test('it says of itself that it was to end the machine for good: its configuration may be another one by the time that matters', async () => {
  const world = await opened()
  for (const ends of [undefined, true] as const) {
    assert.ok(await world.do({ ...off, method: { ...off.method, ...(ends === undefined ? {} : { ends }) } }))
    assert.is(attempts(world).at(-1)?.ends, ends)
  }
})

for (const does of faulty.filter((one) => one !== 'lose answer')) {
  test(`no record, no order: ${does}`, async () => {
    const world = await opened()
    fault(world, does, '/nodefences/')
    assert.is(await turned(world.clock, world.do(off)), false)
    assert.equal(world.runs, [])
  })
}

test('no record, no order: a newer leader\'s term stands there', async () => {
  const world = await opened()
  world.term = 2
  assert.is(await world.do(off), false)
  assert.equal([world.runs, world.writes], [[], []])
})

test('the lease lost between the record and the touch: the device is not touched, and the next leader finds the order running', async () => {
  for (const term of [undefined, 4]) {
    const world = await opened()
    world.asked = (request) => {
      if (request.method === 'PUT') world.term = term
    }
    assert.is(await world.do(off), false)
    assert.equal(world.runs, [])
    assert.is(attempts(world)[0]?.result, 'running')
  }
})

test('every answer to a write on its record is lost: the order stands there, and is given, once, and its end stands there too', async () => {
  const world = await opened()
  fault(world, 'lose answer', '/nodefences/')
  assert.ok(await turned(world.clock, world.do(off)))
  assert.equal([world.runs.length, attempts(world).map(({ result }) => result)], [1, ['off']])
})

test('an order that waits for its turn to be written when the lease is lost is never written', async () => {
  const world = await opened()
  world.lease.abort()
  assert.is(await world.do(off), false)
  assert.equal([world.writes, world.runs], [[], []])
})

test('a method whose configuration has changed since it was decided on is not asked', async () => {
  const world = await opened()
  assert.is(await world.do({ ...off, method: { ...method, digest: 'd0' } }), false)
  assert.equal([world.writes, world.runs], [[], []])
})

test('the node is heard again while its order is being written down: no device is touched', async () => {
  const world = await opened()
  world.server.faults.set([{ does: 'slow', by: 3_000, times: 1 }])
  const deed = world.do(off)
  await world.clock.runFor(1_000)
  world.beats.set(victim, beat({ at: world.clock.now() }))
  await turned(world.clock, deed)
  assert.equal(world.runs, [])
  assert.equal([attempts(world)[0]?.result, attempts(world)[0]?.reason], ['not-given', 'the node is heard again'])
})

test('what arrived while this replica slept over that write is read before the order: no device is touched', async () => {
  const world = await opened()
  world.drained = async () => void world.beats.set(victim, beat({ at: world.clock.now() + 1 }))
  await turned(world.clock, world.do(off))
  assert.equal([world.runs, attempts(world)[0]?.result], [[], 'not-given'])
})

test('a beat from before the decision keeps no order back, and what a person ordered is given though the node is heard', async () => {
  const world = await opened()
  world.beats.set(victim, beat({ at: world.clock.now() - 5_000 }))
  assert.ok(await world.do(off))
  assert.is(world.runs.length, 1)
  const other = edgeWorld()
  other.plantNode()
  await other.plantFence({}, { cause: 'by-hand' })
  other.asked = () => void other.beats.set(victim, beat({ at: other.clock.now() + 1 }))
  assert.ok(await other.do(off))
  assert.is(other.runs.length, 1)
})

test('nor does it keep back what is meant of a node that is heard; an abort does', async () => {
  for (const abort of [false, true]) {
    const world = await opened()
    world.drained = async () => {
      world.beats.set(victim, beat({ at: world.clock.now() + 1 }))
      const incident = world.observation.seen.incidents.get(fence)
      if (incident !== undefined) world.observation.incident({ ...incident, abort, resourceVersion: `${Number(incident.resourceVersion) + 1}` }, 'live')
    }
    await turned(world.clock, world.do({ ...off, alive: true }))
    assert.is(world.runs.length, abort ? 0 : 1, `abort ${abort}`)
  }
})

/** What becomes of it where its Node is deleted while it is being written down: how many programs ran, and why none did. */
async function whereDeleted(deed: Deed, cause: 'silence' | 'drill' = 'silence', also: (world: EdgeWorld) => void = () => undefined): Promise<readonly unknown[]> {
  const world = edgeWorld()
  world.plantNode()
  await world.plantFence({}, { cause })
  world.drained = async () => {
    world.observation.nodeGone(victim)
    also(world)
  }
  await turned(world.clock, world.do(deed))
  return [world.runs.length, attempts(world)[0]?.reason]
}

test('its Node is deleted: an off is given all the same, unless it is a drill\'s or its machine bears another Node by now; an on is not', async () => {
  assert.equal(await whereDeleted(off), [1, undefined])
  assert.equal(await whereDeleted(switchOn), [0, 'the Node is gone'])
  assert.equal(await whereDeleted(off, 'drill'), [0, 'the Node is gone'])
  assert.equal(await whereDeleted(off, 'silence', (world) => void world.plantNode('node-9')), [0, 'its machine bears another Node by now'])
})

test('another boot of it does, whatever was meant: that was of the one before', async () => {
  for (const [deed, cause] of [[{ ...off, alive: true }, 'silence'], [off, 'by-hand'], [off, 'leftover']] as const) {
    const world = edgeWorld()
    world.plantNode()
    await world.plantFence({}, { cause })
    world.drained = async () => void world.beats.set(victim, beat({ at: world.clock.now() + 1, boot: 'boot-2/9' }))
    await turned(world.clock, world.do(deed))
    assert.equal([world.runs.length, attempts(world).map(({ result, reason }) => [result, reason])], [0, [['not-given', 'another boot of the node is heard']]], cause)
  }
})

test('nor does it keep back what a person wants beside: that NodeFence is there, and not taken back', async () => {
  for (const abort of [false, true]) {
    const world = await opened()
    world.observation.incident({ ...world.stored(), name: 'a-person', uid: 'uid-person', cause: 'by-hand', abort, status: { ...world.stored().status, phase: 'New', attempts: [] } })
    world.asked = () => void world.beats.set(victim, beat({ at: world.clock.now() + 1 }))
    assert.ok(await world.do(off))
    assert.is(world.runs.length, abort ? 0 : 1, `abort ${abort}`)
  }
})

/** The real line before a device, in which another node's order is under way for `busy`. */
async function behindAnother(busy: number, cause: 'silence' | 'by-hand' = 'silence'): Promise<{ world: EdgeWorld; asked: ProgramRun[] }> {
  const world = edgeWorld()
  world.plantNode()
  await world.plantFence({}, { cause })
  const asked: ProgramRun[] = []
  const runner = fenceRunner({
    clock: world.clock, log: silentLog, secrets: () => 'text',
    programs: { async run(run) {
      asked.push(run)
      await world.clock.wait(run.environment['HOLDFAST_NODE'] === 'node-1' ? busy : 100)
      return { exitCode: 0, stdout: '', stderr: '', late: false, gone: true }
    } },
  })
  world.runMethod = (run) => runner.runMethod(run)
  void runner.runMethod({ node: 'node-1', method: configured, action: 'off', purpose: 'incident' })
  return { world, asked }
}

const nodesAsked = (asked: readonly ProgramRun[]): unknown[] => asked.map(({ environment }) => environment['HOLDFAST_NODE'])

for (const [what, happens] of [
  ['the node is heard again', (world: EdgeWorld) => void world.beats.set(victim, beat({ at: world.clock.now() }))],
  ['a person aborts it', (world: EdgeWorld) => {
    const incident = world.observation.seen.incidents.get(fence)
    if (incident !== undefined) world.observation.incident({ ...incident, abort: true, resourceVersion: `${Number(incident.resourceVersion) + 1}` }, 'live')
  }],
] as const) {
  test(`${what} while its order waits for the device, which another node's order has: no device is touched`, async () => {
    const { world, asked } = await behindAnother(20_000)
    const deed = world.do(off)
    await world.clock.runFor(5_000)
    assert.equal(nodesAsked(asked), ['node-1'], 'it waits')
    happens(world)
    await turned(world.clock, deed)
    assert.equal(nodesAsked(asked), ['node-1'])
  })
}

/** How the watch brings the Node anew. */
function nodeSays(world: EdgeWorld, metadata: object, spec: object = {}): void {
  const stands = world.server.peek('nodes').find((one) => one.metadata.name === victim)
  if (stands !== undefined) world.observation.node(keepNode({ ...stands, metadata: { ...stands.metadata, resourceVersion: '99999', ...metadata }, spec } as KubeObject)) // a Node has a spec
}

const hands: readonly (readonly [string, (world: EdgeWorld) => void, readonly Deed[]])[] = [
  ['a person pauses everything', (world) => { world.observation.seen.self.pause = { by: 'ada', reason: 'the rack is being moved' } }, [off, switchOn]],
  ['its policy becomes a dry run', (world) => { world.policies = [{ ...policy, mode: 'dryRun' }] }, [off, switchOn]],
  ['a person works on the node, and says so', (world) => nodeSays(world, { annotations: { 'holdfast.dev/maintenance': 'new memory' } }), [off, switchOn]],
  ['a person wants the machine to stay off', (world) => nodeSays(world, { annotations: { 'holdfast.dev/keep-off': 'new memory' } }), [switchOn]],
  ['a person puts out-of-service on the node', (world) => nodeSays(world, {}, { taints: [theirs] }), [switchOn]],
]
for (const [what, happens, deeds] of hands) {
  for (const deed of deeds) test(`${what} while its order ${deed.do === 'fence' ? 'off' : 'on'} waits for the device: no device is touched, and that is written`, async () => {
    const { world, asked } = await behindAnother(20_000)
    const order = world.do(deed)
    await world.clock.runFor(5_000)
    happens(world)
    await turned(world.clock, order)
    assert.equal([nodesAsked(asked), attempts(world).map(({ result }) => result)], [['node-1'], ['not-given']])
  })
}

test('others bring the seal of the node while its order waits for the device: no device is touched, unless a person wants it off', async () => {
  for (const [cause, touched] of [['silence', ['node-1']], ['by-hand', ['node-1', victim]]] as const) {
    const { world, asked } = await behindAnother(20_000, cause)
    const order = world.do(off)
    await world.clock.runFor(5_000)
    world.observation.witnessed(victim, [{ witness: 'replica-1', kind: 'replica', askedAt: world.clock.now(), answeredAt: world.clock.now(), word: 'hears', proven: true }])
    await turned(world.clock, order)
    assert.equal(nodesAsked(asked), touched, cause)
  }
})

test('an order that has waited for its device is given if nothing spoke against it meanwhile', async () => {
  const { world, asked } = await behindAnother(20_000)
  await turned(world.clock, world.do(off))
  assert.equal(nodesAsked(asked), ['node-1', victim])
})

const cordon = { taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] }
const left = { askedAt: 0, listedAt: 0, items: [pod('landed')] }

for (const cause of ['drill', 'scheduled-drill'] as const) {
  for (const [what, meanwhile, reason] of [
    ['nothing happened', () => undefined, undefined],
    ['somebody uncordoned it', (world: EdgeWorld) => world.observation.node({ ...keepNode({ metadata: { name: victim, uid: world.observation.row(victim)?.uid ?? '', resourceVersion: '9999' } }), machine: 'machine-2', taints: [] }), 'the node is not cordoned'],
    ['a pod was seen on it', (world: EdgeWorld) => world.observation.listed(victim, left), 'default/landed is on the node still: drain it first'],
  ] as const) {
    test(`${cause}: ${what} while its order was being written: ${reason === undefined ? 'it is given, though the node is heard' : 'no device is touched'}`, async () => {
      const world = edgeWorld()
      world.plantNode(victim, { spec: cordon })
      await world.plantFence({}, { cause })
      world.asked = () => {
        world.beats.set(victim, beat({ at: world.clock.now() + 1 }))
        if (world.runs.length === 0 && world.writes.length === 0) meanwhile(world)
      }
      await world.do(off)
      assert.is(world.runs.length, reason === undefined ? 1 : 0)
      assert.is(attempts(world)[0]?.reason || undefined, reason)
    })
  }
}

test('the incident was withdrawn while its order waited to be written: no device is touched', async () => {
  const world = await opened()
  const withdrawn = world.do({ do: 'withdraw', node: victim, incident: fence, because: 'heard' })
  const order = world.do(off)
  await Promise.all([withdrawn, order])
  assert.equal(world.runs, [])
  assert.is(world.stored().status.phase, 'Done')
})

for (const [machine, what, given] of [['machine-9', 'another machine came under the name', []], ['machine-2', 'the Node was made anew', ['on']], ['', 'a Node was made that no kubelet has posted to', ['on']]] as const) {
  test(`${what} while the order was being written: ${given.length === 0 ? 'no device is touched, neither off nor on' : 'nothing is ordered off, and what was cut is switched on'}`, async () => {
    const runs: string[] = []
    for (const deed of [off, switchOn]) {
      const world = await opened()
      const other = { ...keepNode({ metadata: { name: victim, uid: 'another', resourceVersion: '9999' } }), machine }
      world.asked = (request) => {
        if (request.method === 'PUT' && world.runs.length === 0) world.observation.node(other)
      }
      await world.do(deed)
      runs.push(...world.runs.map(({ action }) => action))
    }
    assert.equal(runs, given)
  })
}

test('what came of an order is written: off, failed where the device says otherwise, unknown', async () => {
  for (const [state, result] of [['off', 'off'], ['on', 'failed'], ['failed', 'failed'], ['unknown', 'unknown']] as const) {
    const world = await opened()
    world.runMethod = async () => ({ state, reason: state === 'off' ? '' : 'so it says' })
    assert.ok(await world.do(off))
    assert.is(attempts(world)[0]?.result, result)
    assert.is(world.said.at(-1)?.type, result === 'off' ? 'Normal' : 'Warning')
  }
})

test('an order that another machine answered for has not ended well, whatever it says', async () => {
  for (const [deed, state] of [[off, 'off'], [switchOn, 'on']] as const) {
    for (const [machine, result] of [['machine-9', 'failed'], ['MACHINE-2', state]] as const) {
      const world = await opened()
      world.runMethod = async () => ({ state, machine })
      assert.ok(await world.do(deed))
      assert.is(attempts(world)[0]?.result, result)
    }
  }
})

test('a program that was never started gave no order, and that is written', async () => {
  const world = await opened()
  world.runMethod = async () => ({ state: 'unknown', ran: false, reason: 'not started: there is no program redfish' })
  assert.ok(await world.do(off))
  assert.equal([attempts(world)[0]?.result, attempts(world)[0]?.reason], ['not-given', 'not started: there is no program redfish'])
  assert.is(world.said.at(-1)?.type, 'Warning')
})

test('an order bears the configuration by which it was given', async () => {
  const world = await opened()
  await world.do(off)
  assert.is(attempts(world)[0]?.digest, method.digest)
})

test('an order on is verified by on, and takes the incident into recovery', async () => {
  const world = await opened()
  assert.ok(await world.do(switchOn))
  assert.is(attempts(world)[0]?.result, 'on')
  assert.is(world.stored().status.step, 'recovery')
})

test('a program that cannot be ended: the order stays under way, here and on the record', async () => {
  const world = await opened()
  world.runMethod = async () => ({ gone: false })
  let over = false
  void world.do(off).finally(() => { over = true })
  await world.clock.runFor(600_000)
  assert.is(over, false)
  assert.is(attempts(world)[0]?.result, 'running')
})

test('an end that cannot be written at once is written later: a verified off must not become unknown', async () => {
  for (const does of ['lose answer', 'answer 429', 'answer 500', 'unreachable'] as const) {
    const world = await opened()
    world.runMethod = async () => {
      fault(world, does, '/nodefences/', 2)
      return {}
    }
    assert.ok(await turned(world.clock, world.do(off)))
    assert.equal(attempts(world).map((one) => one.result), ['off'])
    assert.is(world.stored().status.timeline.filter((moment) => moment.what === 'order ended').length, 1)
  }
})

test('whose lease is lost while the program runs writes no end', async () => {
  const world = await opened()
  world.runMethod = async () => {
    world.term = undefined
    return { state: 'unknown', reason: 'ended' }
  }
  await turned(world.clock, world.do(off))
  assert.is(attempts(world)[0]?.result, 'running')
  assert.is(world.writes.length, 1)
})

test('no two attempts bear one name, however many there were', async () => {
  const many = Array.from({ length: 200 }, (_, index) => attempt({ id: `${fence}.${index + 6}`, result: 'failed' }))
  const world = await opened({ attempts: many })
  await world.do(off)
  await world.do(off)
  const names = attempts(world).map((one) => one.id)
  assert.equal(names.slice(-2), [`${fence}.206`, `${fence}.207`])
  assert.is(new Set(names).size, names.length)
})

test('an order whose end nobody knows is settled as unknown, once', async () => {
  const world = await opened({ attempts: [attempt({ result: 'running' })] })
  const settle: Deed = { do: 'settle', node: victim, incident: fence, attempt: `${fence}.1` }
  assert.ok(await world.do(settle))
  assert.is(attempts(world)[0]?.result, 'unknown')
  assert.ok(await world.do(settle))
  assert.is(world.writes.length, 1)
})

test.run()
