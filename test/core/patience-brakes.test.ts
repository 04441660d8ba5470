// A node that is fenced for want of patience, and should not be.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { outOfServiceKey } from '../../core/clear.ts'
import { decide } from '../../core/decide.ts'
import type { BeatSeen, CleanSeen, NodeSeen } from '../../core/model.ts'
import type { Policy } from '../../core/policy.ts'
import { booted, quarantine, seenLongAgo, withdrawn } from './states.ts'
import { inState, wants } from './wishes.ts'
import { beat, incident, newBoot, node, now, policy, record, seen, seenOrder, three } from './world.ts'

const test = suite('brakes of patience')
const patience = 20_000
const fencing: Policy = { ...policy, returnPatience: patience, afterPatience: 'fence' }
const leftovers = [{ kind: 'staging', path: '/var/lib/kubelet/plugins/x' }] as const
const dirty = (since: number, at = now - 500): CleanSeen => ({ at, uncleanSince: since, report: { state: 'dirty', leftovers } })
const back = (ago: number, changes: Partial<BeatSeen> = {}): Partial<NodeSeen> => ({
  beat: beat({ boot: newBoot, since: now - ago, clean: dirty(now - ago), ...changes }),
  firstSeen: new Map([...seenLongAgo, ...seenOrder(now - 45_000, now - 44_000, 'node-2-abc-1.2'), [`gone ${outOfServiceKey}`, now - 43_000]]),
})
const inDoubt = (name: string): NodeSeen => node({ name, taints: [quarantine], bootId: 'boot-2', beat: beat({ boot: newBoot, since: now - 60_000, clean: { at: now - 500, uncleanSince: now - 60_000, report: { state: 'unknown', reason: 'the runtime could not be asked' } } }), ready: booted.node.ready ?? assert.unreachable() as never, record: record({ boot: newBoot, nodeUid: `uid-${name}`, machine: `machine-${name.slice(-1)}` }), firstSeen: new Map([[`gone ${outOfServiceKey}`, now - 90_000]]) })
const over = { phase: 'Final', outcome: 'Recovered' } as const

test('a person who aborts a fence for what is left over is not answered by another one', () => {
  const again = { name: 'node-2-xyz-1', boot: newBoot, cause: 'leftover', policy: fencing, abort: true } as const
  const here: Partial<NodeSeen> = { ...back(patience), taints: [quarantine], bootId: 'boot-2', ready: booted.node.ready ?? assert.unreachable() as never, record: record({ boot: newBoot }) }
  const step = (status: object) => wants(three(here, [incident(status, again)]), [fencing])
  assert.equal(step({}), ['withdraw'])
  assert.equal(step({ phase: 'Done', step: 'recovery' }), ['hold out-of-patience'], 'withdrawn')
  assert.equal(step({ phase: 'Final', step: 'recovery', outcome: 'Withdrawn' }), ['hold out-of-patience'], 'over')
})

test('a node whose agent was never asked successfully has left nothing over that anybody knows of', () => {
  const { clean: _, ...mute } = beat({ boot: newBoot, since: now - 40_000 })
  assert.not.ok(wants(inState(booted, { ...back(40_000), beat: mute }, over), [fencing]).includes('open leftover'))
})

test('a word of long ago is none on a quarantine of now', () => {
  const stale = beat({ since: now - 90_000, clean: dirty(now - 80_000, now - 79_000) })
  const got = wants(inState(withdrawn, { taints: [quarantine], beat: stale, firstSeen: new Map([[`gone ${outOfServiceKey}`, now - 95_000]]) }, {}), [fencing])
  assert.ok(got.every((want) => want.startsWith('hold ')), got.join(', '))
})

test('a clean word that answers a list of before the last deed is no leftover either', () => {
  const early = beat({ boot: newBoot, since: now - 60_000, clean: { at: now - 500, asOf: -Infinity, report: { state: 'clean' } } })
  assert.not.ok(wants(inState(booted, { ...back(60_000), beat: early }, over), [fencing]).includes('open leftover'))
})

test('what all have in common is no fault of each: nobody is fenced for it', () => {
  const opened = decide(seen(['node-1', 'node-2', 'node-3', 'node-4', 'node-5'].map(inDoubt)), now, [fencing]).filter((action) => action.do === 'open')
  assert.ok(opened.length < 2, `${opened.length} of 5 opened at once`)
})

test.run()
