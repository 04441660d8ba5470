import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { auditLists } from '../../coordinator/audit-list.ts'
import { keepNode } from '../../coordinator/kubernetes.ts'
import { createObservation, type Observation } from '../../coordinator/observe.ts'
import type { BeatSeen, PathAudit, PowerState, Reading } from '../../core/model.ts'
import { virtualClock, type VirtualClock } from '../../sim/clock.ts'
import { beat, newBoot, reading, record } from '../core/world.ts'
import { configured } from './edge-world.ts'

const test = suite('audit list')

const names = ['node-1', 'node-2', 'node-3']
const outletOf = (name: string) => ({ ...configured, digest: name, device: 'strip', parameters: { ip: '10.0.0.9', plug: name } })

interface Strip {
  readonly clock: VirtualClock
  readonly observation: Observation
  readonly beats: Map<string, BeatSeen>
  readonly lists: string[]
  states: ReadonlyMap<string, PowerState> | undefined
  listed(...names: readonly string[]): Promise<readonly boolean[]>
  asked(): readonly string[]
  keep(name: string, changes: Partial<PathAudit>): void
}

/** Three nodes on one strip, verified before, in a turn that began just now. */
function strip(told: Partial<Reading> | 'nothing' = {}): Strip {
  const clock = virtualClock(100_000)
  const beats = new Map(names.map((name) => [name, beat({ at: clock.now() })]))
  const observation = createObservation(clock, 'replica-0', { heard: (name) => beats.get(name), forget: () => undefined })
  const lists: string[] = []
  const lookup = auditLists({
    clock, observation, stopping: new AbortController().signal,
    fences: { sharing: () => names.map((node) => ({ node, method: outletOf(node) })) },
    runner: {
      async listOutlets({ node }) {
        lists.push(node)
        await clock.wait(10)
        return on.states === undefined ? undefined : { states: on.states, startedAt: clock.now() - 10, endedAt: clock.now() }
      },
    },
  })
  const on: Strip = {
    clock, observation, beats, lists, states: new Map(names.map((name) => [name, 'on'])),
    async listed(...wanted) {
      const answers = Promise.all(wanted.map((name) => lookup(name, outletOf(name))))
      await clock.runFor(20)
      return await answers
    },
    asked: () => names.filter((name) => (observation.row(name)?.readings.at(-1)?.startedAt ?? 0) >= 100_000),
    keep(name, changes) {
      const [path] = record().paths
      if (path !== undefined) observation.record(name, record({ nodeUid: name, paths: [{ ...path, method: configured.name, digest: name, identity: 'unproven', ...changes }] }))
    },
  }
  for (const name of names) {
    on.keep(name, {})
    observation.node(keepNode({ metadata: { name, uid: name, resourceVersion: '1' }, status: { nodeInfo: { systemUUID: `machine-of-${name}` } } } as never)) // a Node is more
    const { machine: _, ...plain } = reading('on', 90_000)
    if (told !== 'nothing') observation.read(name, { ...plain, method: configured.name, digest: name, ...told })
  }
  observation.seen.self.turnAt = 100_000
  return on
}

test('one question stands for every outlet that is on', async () => {
  const on = strip()
  assert.equal(await on.listed('node-1'), [true])
  assert.equal([on.lists, on.asked()], [['node-1'], names])
  assert.equal(await on.listed('node-2'), [false], 'it needs no other word in this turn')
  assert.is(on.lists.length, 1)
})

test('two that are asked at once wait for one list', async () => {
  const on = strip()
  assert.equal(await on.listed('node-1', 'node-2'), [true, true])
  assert.is(on.lists.length, 1)
})

test('an outlet that is not plainly on is asked by itself, and the list is not asked for again', async () => {
  for (const state of ['off', 'unknown', undefined] as const) {
    const on = strip()
    on.states = new Map<string, PowerState>([['node-2', 'on'], ['node-3', 'on'], ...(state === undefined ? [] : [['node-1', state] as const])])
    assert.equal(await on.listed('node-1'), [false])
    assert.equal(on.asked(), ['node-2', 'node-3'])
    assert.equal(await on.listed('node-1'), [false])
    assert.is(on.lists.length, 1)
  }
})

test('a new leader lists what its record shows that no device tells the machine of', async () => {
  const on = strip('nothing')
  on.keep('node-3', { identity: 'proven' })
  assert.equal(await on.listed('node-1'), [true])
  assert.equal(on.asked(), ['node-1', 'node-2'], 'the device of node-3 may have told its machine, and is to tell it again')
})

const unlisted: readonly (readonly [string, (on: Strip) => void])[] = [
  ['no turn goes on', (on) => { delete on.observation.seen.self.turnAt }],
  ['it was not verified', (on) => on.keep('node-1', { state: 'unreachable' })],
  ['it was verified in another configuration', (on) => on.keep('node-1', { digest: 'before' })],
  ['its machine booted anew', (on) => void on.beats.set('node-1', beat({ boot: newBoot, at: 100_000 }))],
  ['its node is silent', (on) => void on.beats.set('node-1', beat({ at: 90_000 }))],
  ['the other outlets\' nodes are silent', (on) => { for (const name of ['node-2', 'node-3']) on.beats.set(name, beat({ at: 90_000 })) }],
  ['it said otherwise last', (on) => on.observation.read('node-1', { ...reading('unknown', 95_000), method: configured.name, digest: 'node-1' })],
]
for (const [why, change] of unlisted) {
  test(`asked by itself, because ${why}`, async () => {
    const on = strip()
    change(on)
    assert.equal(await on.listed('node-1'), [false])
    assert.equal(on.lists, [])
  })
}

test('what tells its machine, or its addresses, by status is asked by status', async () => {
  for (const told of [{ machine: 'machine-of-node-1' }, { addresses: ['10.0.0.1'] }]) assert.equal(await strip(told).listed('node-1'), [false])
})

test('a program that tells of one outlet at a time is asked outlet by outlet', async () => {
  const on = strip()
  on.states = undefined
  assert.equal(await on.listed('node-1'), [false])
  assert.equal(on.asked(), [])
})

test.run()
