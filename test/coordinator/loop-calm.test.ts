import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { HoldAction } from '../../core/action.ts'
import type { Incident } from '../../core/incident.ts'
import type { BeatSeen, Method } from '../../core/model.ts'
import { defaultPolicy } from '../../core/policy.ts'
import { freshStatus } from '../../core/timeline.ts'
import { close, hand, listPods, times } from './loop-hand.ts'

const test = suite('loop-calm')

const boot = '0f0e0d0c-0b0a-4908-8706-050403020100/7'
const method: Method = { name: 'bmc', agent: 'redfish', device: 'bmc-1', digest: 'd', orderWithin: 20_000, statusWithin: 10_000, late: 60_000 }
const hold: HoldAction = { do: 'hold', node: 'node-1', because: 'blind', detail: '', lifts: '' }
const incident: Incident = {
  name: 'node-1-abc-1', uid: 'uid', resourceVersion: '1', nodeName: 'node-1', nodeUid: 'node-1', boot, machine: '', cause: 'silence', policy: { ...defaultPolicy, name: 'all' }, abort: false, status: freshStatus(1),
}

test('it decides once a second where nothing happens, and four times where something is wanted or an incident is open', async () => {
  const on = hand()
  const decisions = async (): Promise<number> => {
    on.decidedAt.splice(0)
    await on.clock.runFor(10_000)
    return on.decidedAt.length
  }
  const quiet = await decisions()
  assert.ok(quiet >= 9 && quiet <= 11, `${quiet}`)
  on.wanted = [hold]
  const held = await decisions()
  assert.ok(held >= 36 && held <= 41, `${held}`)
  on.wanted = []
  on.observation.incident(incident)
  const open = await decisions()
  assert.ok(open >= 36 && open <= 41, `${open}`)
  on.observation.incident({ ...incident, resourceVersion: '2', status: { ...incident.status, phase: 'Final' } })
  const over = await decisions()
  assert.ok(over >= 9 && over <= 12, `${over}`)
  on.loop.stop()
})

test('where nothing is wanted it decides all the same whenever a silence has come to mean more', async () => {
  for (const phase of [0, 130, 260, 390, 520, 650, 780, 910]) {
    const beat: BeatSeen & { at: number } = { boot, at: 0, since: 0, kubelet: 'ok' }
    const on = hand(() => beat)
    on.observation.seen.self.term = 1
    await on.clock.runFor(phase)
    for (let second = 0; second < 5; second += 1) {
      beat.at = on.clock.now()
      await on.clock.runFor(1_000)
    }
    const from = beat.at
    await on.clock.runFor(10_000)
    on.loop.stop()
    for (const ripe of [1_250, 1_500, 2_750, 3_000, 8_000, 10_000]) {
      assert.ok(on.decidedAt.some((at) => at >= from + ripe && at < from + ripe + 25), `${ripe} ms after the last beat, at phase ${phase}: ${on.decidedAt.map((at) => at - from).join()}`)
    }
    assert.ok(on.decidedAt.length < 40, `${on.decidedAt.length}`)
  }
})

test('where nothing happens it looks over all once a second; after an event, or where more audits may be begun, at once', async () => {
  const on = hand()
  on.wanted = [hold]
  await on.clock.runFor(10_000)
  const calm = (): readonly boolean[] => on.calm.splice(0)
  const quiet = calm().slice(1)
  assert.ok(quiet.length >= 39 && quiet.filter((one) => !one).length <= 11 && quiet.filter((one) => !one).length >= 9, quiet.join())
  on.wanted = []
  await on.clock.runFor(1_130)
  calm()
  on.loop.wake()
  await on.clock.runFor(30)
  assert.equal(calm(), [false])
  on.observation.seen.self.auditBudget = 1
  await on.clock.runFor(500)
  assert.equal(calm(), [false])
  on.wanted = [listPods]
  on.does = async () => await on.clock.wait(10)
  await on.clock.runFor(2_000)
  calm()
  await on.clock.runFor(1_000)
  assert.ok(calm().filter((one) => !one).length >= 4, 'each answer is an event')
})

test('it hurries while a look or a deed is under way, whatever becomes of it, and not for a program that only asks', async () => {
  const on = hand()
  on.does = async () => {
    await on.clock.wait(1_000)
    throw new Error('it failed')
  }
  for (const [action, hurries] of [[listPods, true], [close, true], [{ do: 'askDevice', node: 'node-1', method, purpose: 'incident' }, false]] as const) {
    on.wanted = [action]
    on.loop.wake()
    await on.clock.runFor(300)
    on.wanted = []
    assert.is(times(on, action.do).length, 1, action.do)
    assert.is(on.loop.hurries(), hurries, action.do)
    await on.clock.runFor(1_000)
    assert.is(on.loop.hurries(), false, action.do)
  }
  on.loop.stop()
})

test.run()
