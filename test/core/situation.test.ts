import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Ms, NodeSeen } from '../../core/model.ts'
import { situationOf, type Situation } from '../../core/situation.ts'
import { survey } from '../../core/survey.ts'
import { beat, boot, incident, newBoot, node, now, policy, self, seen } from './world.ts'

const test = suite('situation')

function heard(spoken: string, at: Ms, awakeSince: Ms): Situation['heard'] {
  const target = node({ beat: beat({ boot: spoken, at }) })
  const on = survey(seen([target], [incident()], self({ awakeSince })), now, [policy])
  assert.not(on.verdicts.has('node-2'), 'nothing is held against it')
  return situationOf(on, incident(), target).heard
}

test('whoever beats is heard; a beat from before our own stall is not, though nothing is held against its node yet', () => {
  for (const [spoken, word] of [[boot, 'old boot'], [newBoot, 'new boot']] as const) {
    assert.is(heard(spoken, now - 1_000, now - 1_100), word)
    assert.is(heard(spoken, now - 3_000, now - 1_100), 'nothing')
  }
})

/** Nobody ever heard an agent of it; its Lease was seen to move four seconds ago, or its kubelet posts. */
function heardAlone(changes: Partial<NodeSeen>, awakeSince: Ms = now - 900_000): Situation['heard'] {
  const { beat: _, record: __, ...target } = { ...node({ seenAt: now - 900_000, ...changes }) }
  const on = survey(seen([target], [incident()], self({ awakeSince })), now, [policy])
  return situationOf(on, incident(), target).heard
}
const posted = (at: Ms, bootId = 'boot-1') => ({ bootId, ready: { status: 'True', postedAt: at, since: at, bootId } }) as const
const moved = (at: Ms): NonNullable<NodeSeen['lease']> => ({ askedAt: now - 500, readAt: now - 400, renewTime: 'x', unmovedSince: at, moved: true, movedAfter: at - 100 })

test('a node without an agent is heard by its Lease, or by its kubelet', () => {
  assert.is(heardAlone({ ...posted(now - 60_000), lease: moved(now - 4_000) }), 'old boot')
  assert.is(heardAlone(posted(now - 4_000)), 'old boot')
  assert.is(heardAlone(posted(now - 4_000, 'boot-2')), 'new boot')
  assert.is(heardAlone(posted(now - 60_000)), 'nothing')
  assert.is(heardAlone(posted(now - 60_000), now - 2_000), 'nothing', 'that we woke just now is no word of its')
})

test.run()
