import fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { at, map, maps, pod, serverWorld } from './server-world.ts'

const test = suite('list')

const names = (body: unknown) => (at(body, 'items') as { metadata: { name: string } }[]).map((item) => item.metadata.name)
const our = `${maps}?labelSelector=ours`

const nameOf = (place: number) => `m${String(place).padStart(2, '0')}`

/** Each step is done between two pages. The pages together must be the list as it was before all steps. */
const steps = fc.array(fc.record({ do: fc.constantFrom('create', 'change', 'delete'), place: fc.nat(19) }), { maxLength: 12 })

test('pages are the one moment of the first, whatever is written between them', async () => {
  await fc.assert(fc.asyncProperty(fc.subarray(Array.from({ length: 20 }, (_, index) => index), { minLength: 1 }), steps, fc.integer({ min: 1, max: 4 }), async (there, script, limit) => {
    const { ask } = serverWorld()
    for (const place of there) await ask('POST', maps, map(nameOf(place), { a: 'first' }, { ours: '' }))
    const before = await ask('GET', our)
    const seen: unknown[] = []
    let page = await ask('GET', `${our}&limit=${limit}`)
    const todo = [...script]
    for (let count = 0; count < 40; count += 1) {
      seen.push(...(at(page.body, 'items') as unknown[]))
      const token = at(page.body, 'metadata.continue')
      if (typeof token !== 'string') break
      const step = todo.shift()
      if (step?.do === 'create') await ask('POST', maps, map(nameOf(step.place), { a: 'later' }, { ours: '' }))
      if (step?.do === 'change') await ask('PATCH', `${maps}/${nameOf(step.place)}`, { data: { a: 'changed' } }, { type: 'application/merge-patch+json' })
      if (step?.do === 'delete') await ask('DELETE', `${maps}/${nameOf(step.place)}`)
      page = await ask('GET', `${our}&limit=${limit}&continue=${token}`)
      assert.is(page.status, 200)
    }
    assert.equal(seen, at(before.body, 'items'))
  }), { numRuns: 60 })
})

test('what remains is counted for that moment, not for now', async () => {
  const { ask } = serverWorld()
  for (const name of ['a', 'b', 'c', 'd', 'e']) await ask('POST', maps, map(name))
  const first = await ask('GET', `${maps}?limit=1`)
  assert.is(at(first.body, 'metadata.remainingItemCount'), 4)
  await ask('DELETE', `${maps}/d`)
  await ask('POST', maps, map('f'))
  await ask('POST', maps, map('aa'))
  const second = await ask('GET', `${maps}?limit=2&continue=${String(at(first.body, 'metadata.continue'))}`)
  assert.equal(names(second.body), ['b', 'c'])
  assert.is(at(second.body, 'metadata.remainingItemCount'), 2)
})

test('a page asked for after history was forgotten is a 410 with a token that goes on from now', async () => {
  const { ask, server } = serverWorld()
  for (const name of ['a', 'b', 'c']) await ask('POST', maps, map(name))
  const first = await ask('GET', `${maps}?limit=1`)
  await ask('DELETE', `${maps}/b`)
  server.faults.compact()
  const late = await ask('GET', `${maps}?limit=5&continue=${String(at(first.body, 'metadata.continue'))}`)
  assert.is(late.status, 410)
  assert.is(late.body['reason'], 'Expired')
  const rest = await ask('GET', `${maps}?limit=5&continue=${String(at(late.body, 'metadata.continue'))}`)
  assert.equal(names(rest.body), ['c'])
})

test('the pods of a node at an earlier moment are those bound to it then', async () => {
  const { ask } = serverWorld()
  const all = '/api/v1/namespaces/default/pods'
  for (const name of ['a', 'b', 'c']) await ask('POST', all, pod(name, 'n1'))
  const ofNode = `${all}?fieldSelector=spec.nodeName=n1`
  const first = await ask('GET', `${ofNode}&limit=1`)
  await ask('DELETE', `${all}/b`, { gracePeriodSeconds: 0 })
  await ask('POST', all, pod('bb', 'n1'))
  const second = await ask('GET', `${ofNode}&continue=${String(at(first.body, 'metadata.continue'))}`)
  assert.equal(names(second.body), ['b', 'c'])
})

test('a list waits up to three seconds for a version that is not reached, and answers as soon as it is', async () => {
  const { ask, clock, server } = serverWorld()
  const asked = ask('GET', `${maps}?resourceVersion=${server.revision() + 1}&resourceVersionMatch=NotOlderThan`)
  await ask('POST', maps, map('a'))
  await clock.runFor(3_000)
  const answer = await asked
  assert.is(answer.status, 200)
  assert.equal(names(answer.body), ['a'])
})

test.run()
