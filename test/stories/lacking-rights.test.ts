// Somebody took a right from the coordinator's account: the API server answers, and says no. That is lifted by no waiting, so it is told.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { happened, peace, theIncident, type Play } from './play.ts'

const test = suite('a right that is lacking')

/** A node freezes while the coordinator may not read what lies at these paths. */
async function without(seed: number, fits: (path: string) => boolean): Promise<Play> {
  const on = await peace({ seed })
  on.world.server?.faults.set([{ does: 'answer', status: 403, strikes: ({ method, path, user }) => method === 'GET' && user.name.endsWith(':holdfast-coordinator') && fits(path) }])
  on.world.freeze(on.victim)
  await on.run(60_000)
  return on
}

const ofPods = (path: string): boolean => path === '/api/v1/pods'

for (const [what, right, fits] of [
  ['its Lease', 'get leases in kube-node-lease', (path) => path.includes('/kube-node-lease/')],
  ['a claim of its pods', 'get persistentvolumeclaims in work', (path) => path.includes('/persistentvolumeclaims/')],
  ['a volume of them', 'get persistentvolumes', (path) => path.includes('/persistentvolumes/')],
  ['its pods', 'list pods', ofPods],
] as [string, string, (path: string) => boolean][]) {
  test(`a replica that may not read ${what} says so in its log, once`, async () => {
    const on = await without(271, fits)
    const lines = happened(on, 'log').filter((line) => /forbidden/.test(JSON.stringify(line)) && line['right'] !== undefined)
    const who = [...new Set(lines.map((line) => line['who']))]
    assert.equal(lines.map((line) => line['right']), who.map(() => right))
    assert.is.not(who.length, 0)
  })
}

test('a node is proven off and its pods may not be listed: the hold says what is refused, and the right, once it is there, lifts it', async () => {
  const on = await without(271, ofPods)
  const hold = (await theIncident(on))?.status.holds.find(({ because }) => because === 'blind')
  assert.match(hold?.detail ?? '', /refuses to list the pods of .* 403 forbidden/)
  assert.is(hold?.lifts, 'the right to list pods')
  on.world.server?.faults.clear()
  await on.until('its volumes are released', async () => (await theIncident(on))?.status.timeline.some(({ what }) => what === 'volumes released') === true, 30_000)
  await on.run(5_000)
  assert.not.ok((await theIncident(on))?.status.holds.some(({ because }) => because === 'blind'))
})

test.run()
