// The remedies in force as their objects come and go, and since when nodes ail by what their agents tell.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { BeatSeen } from '../../core/model.ts'
import { keepNode } from '../../coordinator/kubernetes.ts'
import { createObservation } from '../../coordinator/observe.ts'
import { keepRemedies } from '../../coordinator/remedies.ts'
import { silentLog } from '../../edge/log.ts'
import { virtualClock } from '../../sim/clock.ts'
import { beat } from '../core/world.ts'

const test = suite('remedies')

const object = (name: string, thresholds: unknown) => ({ metadata: { name, uid: `uid-${name}` }, spec: { thresholds } })
const full = [{ name: 'full', vital: 'disk', above: 95, period: '5m' }]

function small(leads = true) {
  const clock = virtualClock(100_000)
  let told: BeatSeen | undefined
  const observation = createObservation(clock, 'replica-0', { heard: () => told, forget: () => undefined })
  observation.node(keepNode({ metadata: { name: 'node-2', uid: 'uid-node-2', resourceVersion: '1' } }))
  const said: string[] = []
  const on = { leads, ready: false }
  const remedies = keepRemedies({
    log: silentLog, observation, leads: () => (on.leads ? 3 : undefined), ready: () => on.ready,
    recorder: { say: ({ regarding, reason, note }) => void said.push(`${regarding.kind} ${regarding.name} ${reason}: ${note}`) },
  })
  return {
    on, remedies, said, clock, inForce: () => observation.seen.remedies?.map(({ name }) => name), ailing: () => observation.row('node-2')?.ailing,
    async tick(vitals: BeatSeen['vitals']): Promise<void> {
      told = beat({ at: clock.now(), ...(vitals === undefined ? {} : { vitals }) })
      remedies.now(clock.now())
      await clock.runFor(1_000)
    },
  }
}

test('none is known before they were read, and then none is in force', async () => {
  const { on, tick, inForce } = small()
  await tick(undefined)
  assert.is(inForce(), undefined)
  on.ready = true
  await tick(undefined)
  assert.equal(inForce(), [])
})

test('one that comes is in force, and one that goes is not', () => {
  const { remedies, inForce } = small()
  remedies.seen(object('disks', full))
  remedies.seen(object('heat', full))
  assert.equal(inForce(), ['disks', 'heat'])
  remedies.gone('disks')
  assert.equal(inForce(), ['heat'])
})

test('one that is rewritten with a fault is in force no more, and whoever leads says so once', async () => {
  const { on, remedies, tick, said, inForce } = small(false)
  remedies.seen(object('disks', full))
  remedies.seen(object('disks', [{ name: 'full', vital: 'disk', period: '5m' }]))
  assert.equal(inForce(), [])
  await tick(undefined)
  assert.equal(said, [])
  on.leads = true
  await tick(undefined)
  await tick(undefined)
  assert.equal(said, ['NodeRemedy disks RemedyInvalid: this remedy is not in force: spec.thresholds[0]: vital and above go together'])
})

test('a node ails from when it was first told until it is told otherwise, or not told', async () => {
  const { remedies, tick, ailing } = small()
  remedies.seen(object('disks', full))
  await tick({ disk: 90 })
  assert.is(ailing(), undefined)
  await tick({ disk: 96 })
  await tick({ disk: 99 })
  assert.equal([...ailing() ?? []], [['disks full disk 95', 101_000]])
  await tick(undefined)
  assert.is(ailing(), undefined)
  await tick({ disk: 99 })
  assert.equal([...ailing() ?? []], [['disks full disk 95', 104_000]])
})

test.run()
