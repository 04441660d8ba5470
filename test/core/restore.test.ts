// In which order what was cut is given back.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decide } from '../../core/decide.ts'
import type { Method } from '../../core/model.ts'
import { recovering } from './states.ts'
import { attempt, incident, method, now, policy, reading, seenOrder, seenProof, three } from './world.ts'

const test = suite('restore')
const fc: Method = { ...method, name: 'fc-off', device: 'fabric', digest: 'd-fc', backAt: 2 }
const strip: Method = { ...method, name: 'eaton-off', device: 'strip', digest: 'd-eaton', backAt: 1 }
const cut = [fc, strip].map(({ name, digest }, index) => attempt({ id: `a${index}`, method: name, digest }))
const firstSeen = new Map([...cut.flatMap(({ id }) => seenOrder(now - 6_000, now - 4_000, id)), seenProof(now - 3_000)])
const readings = [fc, strip].map(({ name, digest }) => reading('off', now - 900, now - 800, { method: name, digest }))

function restored(busy: readonly string[] = [], more: readonly ReturnType<typeof attempt>[] = []): readonly string[] {
  const seen = three({ ...recovering.node, path: { levels: [[fc, strip]], faults: [] }, firstSeen: new Map([...firstSeen, ...more.flatMap(({ id }) => seenOrder(now - 2_000, now - 1_000, id))]), readings, busy: new Set(busy) },
    [incident({ ...recovering.status, attempts: [...cut, ...more] })])
  return decide(seen, now, [policy]).flatMap((action) => (action.do === 'restore' ? action.method.name : []))
}

test('as it is written, one after the other', () => {
  const on = attempt({ id: 'a2', method: 'eaton-off', digest: 'd-eaton', action: 'on', result: 'on' })
  assert.equal(restored(), ['eaton-off'])
  assert.equal(restored(['order node-2 eaton-off'], [{ ...on, result: 'running' }]), [], 'its power is only being asked for')
  assert.equal(restored([], [on]), ['fc-off'])
})

test('what comes first and fails keeps nothing else off', () => {
  assert.equal(restored([], [attempt({ id: 'a2', method: 'eaton-off', digest: 'd-eaton', action: 'on', result: 'failed' })]), ['fc-off'])
})

test.run()
