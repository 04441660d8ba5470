import * as assert from 'uvu/assert'
import { buoy, configMap, make, maps, pod, pods } from '../objects.ts'
import { at, expect, listAt, textAt, versionOf } from '../world.ts'
import type { Answer, Case, World } from '../world.ts'

const names = (answer: Answer) => listAt(answer.body, 'items').map((item) => textAt(item, 'metadata.name'))

/** Five config maps under a label of their own. */
async function five(world: World): Promise<{ list: string; all: string[] }> {
  const label = world.name('five')
  const all = ['a', 'b', 'c', 'd', 'e'].map((letter) => world.name(`l-${letter}`))
  for (const [index, name] of all.entries()) {
    const object = { ...configMap(name), metadata: { name, labels: { five: label, place: String(index), ...(index % 2 === 0 ? { even: 'yes' } : {}) } } }
    await make(world, maps(world), object)
  }
  return { list: `${maps(world)}?labelSelector=five=${label}`, all }
}

export const listCases: readonly Case[] = [
  {
    name: 'a list is in the order of names and carries a resourceVersion',
    async run(world) {
      const { list, all } = await five(world)
      const answer = expect(await world.get(list), 200)
      assert.equal(names(answer), all)
      assert.match(versionOf(answer), /^\d+$/)
    },
  },
  {
    name: 'a list in pages shows each object once',
    async run(world) {
      const { list, all } = await five(world)
      const seen: string[] = []
      let token = ''
      let pages = 0
      do {
        const page = expect(await world.get(`${list}&limit=2${token === '' ? '' : `&continue=${encodeURIComponent(token)}`}`), 200)
        seen.push(...names(page))
        token = textAt(page.body, 'metadata.continue')
        pages += 1
      } while (token !== '' && pages < 10)
      assert.equal(seen, all)
      assert.is(pages, 3)
    },
  },
  {
    name: 'all pages show the one moment of the first, whatever happens between',
    async run(world) {
      const { list, all } = await five(world)
      const first = expect(await world.get(`${list}&limit=2`), 200)
      expect(await world.remove(`${maps(world)}/${all[3]}`), 200)
      expect(await world.merge(`${maps(world)}/${all[4]}`, { data: { changed: 'yes' } }), 200)
      const token = textAt(first.body, 'metadata.continue')
      const second = expect(await world.get(`${list}&limit=10&continue=${encodeURIComponent(token)}`), 200)
      assert.equal(names(second), all.slice(2))
      assert.is(at(second.body, 'items', 2, 'data'), undefined)
      assert.is(versionOf(second), versionOf(first))
    },
  },
  {
    name: 'a page that is not selective says how many remain',
    async run(world) {
      await five(world)
      const page = expect(await world.get(`${maps(world)}?limit=1`), 200)
      assert.ok(Number(at(page.body, 'metadata.remainingItemCount')) >= 4)
    },
  },
  {
    name: 'a continue token that is none is refused with 400',
    async run(world) {
      expect(await world.get(`${maps(world)}?limit=2&continue=nonsense`), 400, 'BadRequest')
    },
  },
  {
    name: 'a label selector by equality, inequality, set, absence and presence',
    async run(world) {
      const { list, all } = await five(world)
      const selected = async (selector: string) => names(expect(await world.get(`${list},${encodeURIComponent(selector)}`), 200))
      assert.equal(await selected('place=1'), all.slice(1, 2))
      assert.equal(await selected('place!=1'), all.filter((_, index) => index !== 1))
      assert.equal(await selected('place in (0,4)'), [all[0], all[4]])
      assert.equal(await selected('place notin (0,4)'), all.slice(1, 4))
      assert.equal(await selected('even'), [all[0], all[2], all[4]])
      assert.equal(await selected('!even'), [all[1], all[3]])
    },
  },
  {
    name: 'a label selector that cannot be parsed is refused with 400',
    async run(world) {
      expect(await world.get(`${maps(world)}?labelSelector=${encodeURIComponent('a in (')}`), 400, 'BadRequest')
    },
  },
  {
    name: 'any kind is listed by the field metadata.name',
    async run(world) {
      const { all } = await five(world)
      assert.equal(names(expect(await world.get(`${maps(world)}?fieldSelector=metadata.name=${all[2]}`), 200)), [all[2]])
      const name = world.name('b')
      await make(world, world.buoys, buoy(world, name))
      assert.equal(names(expect(await world.get(`${world.buoys}?fieldSelector=metadata.name=${name}`), 200)), [name])
    },
  },
  {
    name: 'pods are listed by the node they are bound to, across namespaces',
    async run(world) {
      const node = world.name('nobody')
      const bound = [world.name('p1'), world.name('p2')]
      for (const name of bound) await make(world, pods(world), pod(name, node))
      await make(world, pods(world), pod(world.name('p3'), world.name('another')))
      assert.equal(names(expect(await world.get(`/api/v1/pods?fieldSelector=spec.nodeName=${node}`), 200)), bound)
    },
  },
  {
    name: 'pods are listed by phase together with the node',
    async run(world) {
      const node = world.name('nobody')
      const { path } = await make(world, pods(world), pod(world.name('p1'), node))
      await make(world, pods(world), pod(world.name('p2'), node))
      expect(await world.merge(`${path}/status`, { status: { phase: 'Failed' } }), 200)
      const selector = encodeURIComponent(`spec.nodeName=${node},status.phase!=Failed`)
      assert.equal(names(expect(await world.get(`/api/v1/pods?fieldSelector=${selector}`), 200)), [world.name('p2')])
    },
  },
  {
    name: 'an unknown field in a selector is refused with 400',
    async run(world) {
      expect(await world.get('/api/v1/pods?fieldSelector=spec.colour=red'), 400, 'BadRequest')
      expect(await world.get('/api/v1/nodes?fieldSelector=status.phase=Ready'), 400, 'BadRequest')
    },
  },
  {
    name: 'a custom kind is listed by the fields its definition allows, and by no other',
    async run(world) {
      const red = world.name('red')
      await make(world, world.buoys, buoy(world, red, { colour: 'red' }))
      await make(world, world.buoys, buoy(world, world.name('green'), { colour: 'green' }))
      const found = names(expect(await world.get(`${world.buoys}?fieldSelector=spec.colour=red`), 200))
      assert.ok(found.includes(red) && !found.includes(world.name('green')), found.join())
      expect(await world.get(`${world.buoys}?fieldSelector=spec.depth=10`), 400, 'BadRequest')
    },
  },
  {
    name: 'a list at resourceVersion 0 answers from what is at hand',
    async run(world) {
      const { list, all } = await five(world)
      await world.eventually('the cache', async () => names(await world.get(`${list}&resourceVersion=0`)).length === 5)
      assert.equal(names(expect(await world.get(`${list}&resourceVersion=0`), 200)), all)
    },
  },
  {
    name: 'a list not older than a version holds what was written by then',
    async run(world) {
      const { answer, path } = await make(world, maps(world), configMap(world.name('m')))
      const list = expect(await world.get(`${maps(world)}?resourceVersion=${versionOf(answer)}&resourceVersionMatch=NotOlderThan`), 200)
      assert.ok(names(list).includes(path.split('/').at(-1) ?? ''))
      assert.ok(Number(versionOf(list)) >= Number(versionOf(answer)))
    },
  },
  {
    name: 'a list at exactly a version shows that moment',
    async run(world) {
      const { list, all } = await five(world)
      const then = versionOf(expect(await world.get(list), 200))
      expect(await world.remove(`${maps(world)}/${all[0]}`), 200)
      const past = expect(await world.get(`${list}&resourceVersion=${then}&resourceVersionMatch=Exact`), 200)
      assert.equal(names(past), all)
      assert.is(versionOf(past), then)
    },
  },
  {
    name: 'a list not older than the future is a 504 that says so',
    async run(world) {
      const answer = await world.get(`${maps(world)}?resourceVersion=9000000000&resourceVersionMatch=NotOlderThan`)
      expect(answer, 504, 'Timeout')
      assert.match(textAt(answer.body, 'message'), 'Too large resource version')
    },
  },
  {
    name: 'resourceVersionMatch without a version is refused with 422',
    async run(world) {
      expect(await world.get(`${maps(world)}?resourceVersionMatch=Exact`), 422, 'Invalid')
    },
  },
  {
    name: 'a resourceVersion that is no number is refused',
    async run(world) {
      const answer = await world.get(`${maps(world)}?resourceVersion=tomorrow`)
      expect(answer, 400)
    },
  },
  {
    name: 'a list of a custom kind says the kind of each item',
    async run(world) {
      const name = world.name('b')
      await make(world, world.buoys, buoy(world, name))
      const list = expect(await world.get(`${world.buoys}?fieldSelector=metadata.name=${name}`), 200)
      assert.is(textAt(list.body, 'kind'), 'BuoyList')
      assert.is(textAt(list.body, 'items', 0, 'kind'), 'Buoy')
      assert.is(textAt(list.body, 'items', 0, 'apiVersion'), `${world.group}/v1`)
    },
  },
]
