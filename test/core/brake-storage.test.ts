// Storage that hears a node which nobody else hears: what runs there may be well.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decide } from '../../core/decide.ts'
import type { Incident } from '../../core/incident.ts'
import type { NodeSeen } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { beat, dead, incident, now, policy, reading, three } from './world.ts'

const test = suite('brake: storage')

const asks: Policy = { ...policy, brakes: { ...policy.brakes, skipIfStorageHears: 'StorageHears' } }
const fenceable: Partial<NodeSeen> = { ...dead, readings: [reading('on', now - 1_000)] }
const heard = (ago: number): Partial<NodeSeen> => ({ ...fenceable, conditions: new Map([['StorageHears', { heartbeat: 'then', postedAt: now - ago }]]) })

function ordersOf(changes: Partial<NodeSeen>, policies: readonly Policy[] = [asks], own: Partial<Incident> = {}): readonly string[] {
  const open = incident({}, { policy: policies[0] ?? asks, ...own })
  return decide(three(changes, [open]), now, policies).filter(({ node }) => node === 'node-2').flatMap((action) => {
    if (action.do === 'fence') return ['ordered off']
    return action.do === 'hold' ? [`${action.because}: ${action.detail}; lifts: ${action.lifts}`] : []
  })
}

test('a silent node that its storage hears is not ordered off, and the hold says by what, and what lifts it', () => {
  assert.equal(ordersOf(fenceable), ['ordered off'], 'without the condition')
  const [held, ...more] = ordersOf(heard(12_000))
  assert.equal(more, [])
  assert.match(held ?? '', /^storage: its storage still hears node-2: StorageHears was posted 12\.0 s ago; lifts: StorageHears no more True, or not posted anew for 30\.0 s; .* by a person/)
})

test('the word is worth something for half a minute: who says it may be dead itself', () => {
  assert.match(ordersOf(heard(30_000)).join(), /^storage/)
  assert.equal(ordersOf(heard(30_001)), ['ordered off'])
})

test('it is asked for by the policy alone, and who takes it out of the policy means the incident that is open, too', () => {
  assert.equal(ordersOf(heard(1_000), [policy]), ['ordered off'])
  assert.equal(ordersOf(heard(1_000), [policy], { policy: asks }), ['ordered off'])
  assert.equal(ordersOf(heard(1_000), [asks], { policy }), ['ordered off'], 'nor does it come upon an incident that began without it')
})

test('of a node that a person wants off it is no news', () => {
  assert.equal(ordersOf({ ...heard(1_000), beat: beat({ at: now - 100 }) }, [asks], { cause: 'by-hand' }), ['ordered off'])
})

test('nor where a remedy wants it off while it beats; once it is silent, it is some', () => {
  const remedied: Partial<Incident> = { cause: 'remedy' }
  assert.equal(ordersOf({ ...heard(1_000), beat: beat({ at: now - 100 }) }, [asks], remedied), ['ordered off'])
  assert.match(ordersOf(heard(1_000), [asks], remedied).join(), /^storage/)
})

test('what the devices prove by themselves is a proof all the same: nothing is ordered for it', () => {
  const readings = [now - 3_000, now - 1_800].map((at) => reading('off', at))
  const asked = { probe: { askedAt: now - 1_500, answeredAt: now - 700, word: 'silent' } as const, witnesses: (dead.witnesses ?? []).map((one) => ({ ...one, askedAt: now - 1_500 })) }
  const actions = decide(three({ ...heard(1_000), ...asked, readings }, [incident({}, { policy: asks, cause: 'found-off' })]), now, [asks])
  assert.ok(actions.some((action) => action.do === 'prove' && action.proof.kind === 'found-off'), actions.map((action) => action.do).join())
})

test.run()
