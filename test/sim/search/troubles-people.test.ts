// Hands in the configuration: what is edited, by however many at once, stands at the end as it was written.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { peopleTroubles } from '../../../sim/search/troubles-people.ts'
import type { Ground, Trouble } from '../../../sim/search/trouble.ts'
import { quietWorld, type Quiet } from './judges/quiet-world.ts'

const test = suite('search: people')

const groundOf = ({ on }: Quiet): Ground => ({ on, api: { add: () => () => undefined }, node: (trouble) => trouble.on, replica: () => undefined, strikes: () => undefined })

function begin(quiet: Quiet, does: string, how?: string): () => void {
  const trouble: Trouble = { does, at: 0, span: 0, on: 'node-2', ...(how === undefined ? {} : { how }) }
  const end = peopleTroubles[does]?.begin(groundOf(quiet), trouble)
  assert.ok(end !== undefined, `${does} ${how} did not take effect`)
  return end as () => void // as was just seen
}

const contents = ({ world }: Quiet, collection: string, names: string) => (world.server?.peek(collection) ?? [])
  .filter(({ metadata }) => metadata.name.startsWith(names)).map(({ metadata: { name }, ...rest }) => JSON.stringify([name, 'spec' in rest ? rest.spec : undefined, 'data' in rest ? rest.data : undefined])).toSorted()

/** Each begins before the one before it has ended. */
async function overlap(quiet: Quiet, does: string, hows: readonly string[], stands: () => readonly string[]): Promise<void> {
  const before = stands()
  const ends: (() => void)[] = []
  for (const how of hows) {
    ends.push(begin(quiet, does, how))
    await quiet.run(1_000)
    assert.is.not(stands().join(), before.join(), `${does} ${how}`)
  }
  for (const end of ends) {
    end()
    await quiet.run(1_000)
  }
  assert.equal(stands(), before, `${does} ${hows.join()}`)
}

test('the fence configuration: of one node alone, and the one that all nodes share', async () => {
  for (const power of ['bmc', 'two feeds on one strip'] as const) {
    const quiet = await quietWorld({ power })
    const stands = () => contents(quiet, 'configmaps', 'fence-config-')
    assert.is(stands().some((text) => text.includes('fence-config-default')), power !== 'bmc')
    for (const hows of [['taken away'], ['mistyped', 'changed'], ['changed', 'mistyped', 'taken away']]) await overlap(quiet, 'the fence configuration is edited', hows, stands)
  }
})

test('the policy keeps its profile and whatever else its operator wrote', async () => {
  const quiet = await quietWorld({ policy: { profile: 'balanced', retries: 1 } })
  const stands = () => contents(quiet, 'holdfastpolicies.holdfast.dev', 'all')
  assert.match(stands().join(), /balanced/)
  await overlap(quiet, 'the policy is edited', ['to conservative', 'to conservative', 'to a pause', 'to select nobody', 'to DoNothing'], stands)
  await overlap(quiet, 'the policy is deleted', [''], stands)
})

test.run()
