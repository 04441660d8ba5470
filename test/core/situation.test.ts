import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Ms } from '../../core/model.ts'
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

test.run()
