import * as assert from 'uvu/assert'
import { make, node } from '../objects.ts'
import { at, expect, faults, listAt, textAt, versionOf } from '../world.ts'
import type { Case, World } from '../world.ts'

const nodes = '/api/v1/nodes'
const ours = { key: 'holdfast.dev/quarantine', effect: 'NoSchedule' }

async function makeNode(world: World, more: object = {}) {
  return make(world, nodes, { ...node(world.name('n')), ...more })
}

const keysOf = (body: unknown) => listAt(body, 'spec.taints').map((taint) => `${textAt(taint, 'key')}:${textAt(taint, 'effect')}`)

export const nodeCases: readonly Case[] = [
  {
    name: 'a new node is tainted not-ready at once',
    async run(world) {
      const { answer } = await makeNode(world)
      assert.ok(keysOf(answer.body).includes('node.kubernetes.io/not-ready:NoSchedule'), keysOf(answer.body).join())
    },
  },
  {
    name: 'a node keeps the status it is made with',
    async run(world) {
      const { answer } = await makeNode(world, { status: { nodeInfo: nodeInfo('boot-1') } })
      assert.is(at(answer.body, 'status.nodeInfo.bootID'), 'boot-1')
    },
  },
  {
    name: 'taints are added by a JSON patch that tests the version',
    async run(world) {
      const { path } = await makeNode(world)
      await world.eventually('a patch between two writes of controllers', async () => {
        const read = await world.get(path)
        const patched = await world.json(path, [
          { op: 'test', path: '/metadata/resourceVersion', value: versionOf(read) },
          { op: 'add', path: '/spec/taints', value: [...listAt(read.body, 'spec.taints'), ours] },
        ])
        return patched.status === 200 && keysOf(patched.body).includes(`${ours.key}:${ours.effect}`)
      })
    },
  },
  {
    name: 'an unknown taint effect is refused with 422',
    async run(world) {
      const { path } = await makeNode(world)
      expect(await world.merge(path, { spec: { taints: [{ key: 'example.com/a', effect: 'NoThing' }] } }), 422, 'Invalid')
    },
  },
  {
    name: 'a taint without an effect is refused with 422',
    async run(world) {
      const { path } = await makeNode(world)
      expect(await world.merge(path, { spec: { taints: [{ key: 'example.com/a' }] } }), 422, 'Invalid')
    },
  },
  {
    name: 'the same taint twice is refused with 422',
    async run(world) {
      const { path } = await makeNode(world)
      expect(await world.merge(path, { spec: { taints: [ours, { ...ours, value: 'other' }] } }), 422, 'Invalid')
    },
  },
  {
    name: 'one key with two effects is two taints',
    async run(world) {
      const { path } = await makeNode(world)
      const next = expect(await world.merge(path, { spec: { taints: [ours, { ...ours, effect: 'PreferNoSchedule' }] } }), 200)
      assert.is(keysOf(next.body).filter((key) => key.startsWith(ours.key)).length, 2)
    },
  },
  {
    name: 'a node status write does not reach its taints',
    async run(world) {
      const { path } = await makeNode(world, { spec: { taints: [ours] } })
      const next = expect(await world.merge(`${path}/status`, { spec: { taints: null }, status: { nodeInfo: nodeInfo('boot-2') } }), 200)
      assert.ok(keysOf(next.body).includes(`${ours.key}:${ours.effect}`))
      assert.is(at(next.body, 'status.nodeInfo.bootID'), 'boot-2')
    },
  },
  {
    name: 'a node status write may annotate the node',
    async run(world) {
      const { path } = await makeNode(world)
      const next = expect(await world.merge(`${path}/status`, { metadata: { annotations: { 'example.com/a': 'b' } }, status: {} }), 200)
      assert.is(at(next.body, 'metadata', 'annotations', 'example.com/a'), 'b')
    },
  },
  {
    name: 'volumesInUse is written by a merge patch of the status and empties to nothing',
    async run(world) {
      const { path } = await makeNode(world)
      const used = expect(await world.merge(`${path}/status`, { status: { volumesInUse: ['kubernetes.io/csi/d^v1', 'kubernetes.io/csi/d^v2'] } }), 200)
      assert.is(listAt(used.body, 'status.volumesInUse').length, 2)
      const one = expect(await world.merge(`${path}/status`, { status: { volumesInUse: ['kubernetes.io/csi/d^v2'] } }), 200)
      assert.equal(at(one.body, 'status.volumesInUse'), ['kubernetes.io/csi/d^v2'])
      const none = expect(await world.merge(`${path}/status`, { status: { volumesInUse: [] } }), 200)
      assert.is(at(none.body, 'status.volumesInUse'), undefined)
    },
  },
  {
    name: 'a node is cordoned by spec.unschedulable',
    async run(world) {
      const { path } = await makeNode(world)
      assert.is(at(expect(await world.merge(path, { spec: { unschedulable: true } }), 200).body, 'spec.unschedulable'), true)
    },
  },
  {
    name: 'a provider id, once given, does not change',
    async run(world) {
      const { path } = await makeNode(world, { spec: { providerID: 'cloud://one' } })
      expect(await world.merge(path, { spec: { providerID: 'cloud://two' } }), 422, 'Invalid')
    },
  },
  {
    name: 'a node without finalizers is gone at once, its pods are not asked',
    async run(world) {
      const { path } = await makeNode(world)
      expect(await world.remove(path), 200)
      expect(await world.get(path), 404)
    },
  },
  {
    name: 'a node has no generation',
    async run(world) {
      const { answer } = await makeNode(world)
      assert.is(at(answer.body, 'metadata.generation'), undefined)
    },
  },
  {
    name: 'a taint whose key is no key is refused with 422',
    async run(world) {
      const { path } = await makeNode(world)
      const refused = expect(await world.merge(path, { spec: { taints: [{ key: 'not a key', effect: 'NoSchedule' }] } }), 422, 'Invalid')
      assert.ok(faults(refused).every((field) => field === 'metadata.taints[0].key'), faults(refused).join())
    },
  },
]

function nodeInfo(bootID: string) {
  return {
    bootID, machineID: 'm', systemUUID: 's', kernelVersion: 'k', osImage: 'o', containerRuntimeVersion: 'c://1', kubeletVersion: 'v1.36.4',
    kubeProxyVersion: '', operatingSystem: 'linux', architecture: 'amd64',
  }
}
