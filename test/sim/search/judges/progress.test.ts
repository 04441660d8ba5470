import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { clearedWithin, progress } from '../../../../sim/search/judges/progress.ts'
import { quietWorld } from './quiet-world.ts'

const test = suite('search: the judge of progress')

test('a death whose volumes are never free, or free too late, is a violation; in time it is none', async () => {
  for (const [after, word] of [[Infinity, /never released/], [clearedWithin + 1, /released after 30\.0 s/], [clearedWithin, undefined]] as const) {
    const { world, victim, run } = await quietWorld()
    const since = world.clock.now()
    world.cutPower(victim)
    if (after !== Infinity) await run(after)
    const volumes = ['vol-data-db-0', 'vol-web'].filter((volume) => world.storage.attachedTo(volume).includes(victim))
    if (after !== Infinity) for (const volume of volumes) world.storage.detach(volume, victim)
    const found = progress(world, victim, since)
    if (word === undefined) assert.equal(found, [])
    else assert.match(found[0]?.what ?? '', word)
  }
})

test('one volume that stays behind is enough', async () => {
  const { world, victim, run } = await quietWorld()
  world.storage.attach('vol-web', victim)
  await run(1)
  const since = world.clock.now()
  world.freeze(victim)
  await run(5_000)
  world.storage.detach('vol-data-db-0', victim)
  assert.match(progress(world, victim, since)[0]?.what ?? '', /vol-web was never released$/)
})

test('what nobody died of, and who had no volume, is not judged; nor is a volume that was gone before', async () => {
  const { world, victim, run } = await quietWorld()
  const since = world.clock.now()
  assert.equal(progress(world, victim, since), [])
  for (const volume of ['vol-data-db-0', 'vol-web']) world.storage.detach(volume, victim)
  await run(1)
  world.cutPower(victim)
  assert.equal(progress(world, victim, since), [])
})

test.run()
