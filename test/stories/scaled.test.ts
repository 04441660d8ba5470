import { suite } from 'uvu'
import { usualWorld } from '../../sim/world/settings.ts'
import { volume } from '../../sim/world/objects.ts'
import { stageGround } from './ground.ts'
import { scaled } from './scaled.ts'

const test = suite('scaled in an incident')

const more = ['data-db-1', 'data-db-2'].flatMap((claim) => volume(claim, usualWorld.namespace, usualWorld.driver))

for (const [index, { title, tell }] of scaled.entries()) {
  test(title, async () => await tell(await stageGround({ seed: 250 + index, nodes: 5, zones: 3, objects: more })))
}

test.run()
