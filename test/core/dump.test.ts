// Power waits for a dump, as long as the operator allows, and for nothing else.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decide } from '../../core/decide.ts'
import type { NodeSeen } from '../../core/model.ts'
import { opened } from './states.ts'
import { incident, method, now, policy, silentAt, three } from './world.ts'

const test = suite('dump')
const path = { levels: [[method]], faults: [], dumpsWithin: 20_000 }

function of(changes: Partial<NodeSeen>): readonly string[] {
  return decide(three({ ...opened.node, path, ...changes }, [incident(opened.status)]), now, [policy])
    .flatMap((action) => (action.node !== 'node-2' ? [] : action.do === 'fence' ? ['ordered'] : action.do === 'hold' ? [action.because] : []))
}

test('a crash kernel that announced itself is waited for, and then its power goes', () => {
  assert.equal(of({ dump: { since: silentAt + 2_000 } }), ['dumping'])
  assert.equal(of({ dump: { since: now - 20_000 } }), ['ordered'])
})

test('nobody waits without a word, without kdump= in the configuration, or for a word from before the last beat', () => {
  assert.equal(of({}), ['ordered'])
  assert.equal(of({ path: { levels: [[method]], faults: [] }, dump: { since: silentAt + 2_000 } }), ['ordered'])
  assert.equal(of({ dump: { since: silentAt - 1 } }), ['ordered'])
})

test.run()
