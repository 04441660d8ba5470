import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { noCatalogue, type AgentCatalogue } from '../../coordinator/agent-catalogue.ts'
import { createApi, type KubeObject } from '../../coordinator/api.ts'
import { fencesKept, keptName } from '../../coordinator/fence-kept.ts'
import { fencePaths, type FencePaths } from '../../coordinator/fence-paths.ts'
import { wordless } from '../../coordinator/fence-config-node.ts'
import { readMetadata } from '../../core/agent-metadata.ts'
import type { FencePath, Method } from '../../core/model.ts'
import { silentLog } from '../../edge/log.ts'
import { admin, createApiServer, type ApiServer } from '../../sim/api-server/server.ts'
import { seededChance } from '../../sim/chance.ts'
import { virtualClock, type VirtualClock } from '../../sim/clock.ts'

const test = suite('fence paths')

interface Small {
  readonly clock: VirtualClock
  readonly server: ApiServer
  readonly paths: FencePaths
  readonly nodes: Set<string>
  readonly inForce: Map<string, FencePath>
  readonly changed: string[]
  readonly told: { sentences: readonly string[]; map: string; holds: string }[]
  readonly logged: string[]
  term: number | undefined
}

function small(...nodes: readonly string[]): Small {
  const clock = virtualClock()
  const chance = seededChance(3)
  return replica(clock, createApiServer({ clock, chance: () => chance.next() }), nodes)
}

/** Its watch is the test: what the server holds is brought by `kept`. */
function replica(clock: VirtualClock, server: ApiServer, nodes: readonly string[], catalogue = noCatalogue): Small {
  const api = createApi({ clock, transport: server.transportFor(admin) })
  const on: Omit<Small, 'paths'> = { clock, server, nodes: new Set(nodes), inForce: new Map(), changed: [], told: [], logged: [], term: 3 }
  const note = (facts: { holds?: string }, message: string): void => void on.logged.push(facts.holds === undefined ? message : `${message}: ${facts.holds}`)
  const paths = fencePaths({
    catalogue, clock, log: { ...silentLog, info: note, warn: note }, salt: 'salt', nodes: () => on.nodes,
    changed(node, config) {
      on.inForce.set(node, config.path)
      on.changed.push(node)
    },
    leads: () => world.term, ready: () => true,
    kept: fencesKept({ api, clock, log: silentLog, namespace: 'default' }),
    faults: (sentences, map, holds) => on.told.push({ sentences, map, holds }),
  })
  const world: Small = { ...on, paths }
  return world
}

const map = (name: string, data: Record<string, string>): KubeObject => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data } as KubeObject) // a ConfigMap has data
const own = (node: string, plug = '1'): KubeObject => map(`fence-config-${node}`, {
  'config.properties': `node_name=${node}\npower_management=bmc-off\n`, 'fence-method-bmc-off': `template=fence-method-template-bmc\nip=10.2.0.1\nplug=${plug}\naction=off\n`,
})
const template = (password = 'secret:bmc/password'): KubeObject => map('fence-method-template-bmc', { 'template.properties': `agent_name=redfish\nusername=admin\npassword=${password}\n` })
const secret = (text: string): KubeObject => map('bmc', { password: Buffer.from(text).toString('base64') })
const only = (path: FencePath | undefined): Method => path?.levels[0]?.[0] as Method // asserted by whoever uses it

test('a dozen edited maps are one reading, a moment after they were seen', async () => {
  const { clock, paths, changed, inForce } = small('node-1')
  paths.configMap(template())
  paths.secret(secret('x'))
  for (let edit = 1; edit <= 12; edit += 1) paths.configMap(own('node-1', String(edit)))
  await clock.runFor(100)
  assert.equal(changed, [])
  await clock.runFor(400)
  assert.equal(changed, ['node-1'])
  assert.is(only(inForce.get('node-1')).name, 'bmc-off')
})

test('a node\'s own map concerns that node; a template and a Secret concern all', async () => {
  const { clock, paths, changed } = small('node-1', 'node-2')
  for (const object of [template(), own('node-1'), own('node-2')]) paths.configMap(object)
  paths.secret(secret('x'))
  await clock.runFor(1_000)
  changed.length = 0
  paths.configMap(own('node-2', '4'))
  await clock.runFor(1_000)
  assert.equal(changed, ['node-2'])
  changed.length = 0
  paths.configMap(template())
  await clock.runFor(1_000)
  assert.equal(changed.toSorted(), ['node-1', 'node-2'])
  changed.length = 0
  paths.secret(secret('y'))
  await clock.runFor(1_000)
  assert.equal(changed.toSorted(), ['node-1', 'node-2'])
})

const rack = (selector: string) => map('fence-config-rack-4', {
  'config.properties': `${selector}\npower_management=bmc-off\n`, 'fence-method-bmc-off': 'template=fence-method-template-bmc\nip={label:example.org/bmc}\nplug=1\naction=off\n',
})

test('a map of a set concerns all: who is in it has its path, and who leaves it by his labels has it no more', async () => {
  const { clock, paths, inForce } = small('node-1', 'node-2')
  for (const object of [template('plain'), rack('node_selector=example.org/rack=4')]) paths.configMap(object)
  const bears = (node: string, labels: Record<string, string>) => paths.nodeSeen(node, '', { labels, annotations: {} })
  bears('node-1', { 'example.org/rack': '4', 'example.org/bmc': '10.2.0.1' })
  bears('node-2', { 'example.org/rack': '5', 'example.org/bmc': '10.2.0.2' })
  const devices = () => ['node-1', 'node-2'].map((node) => inForce.get(node)?.levels[0]?.[0]?.device)
  await clock.runFor(1_000)
  assert.equal(devices(), ['10.2.0.1', undefined])
  bears('node-1', { 'example.org/rack': '4', 'example.org/bmc': '10.2.0.9' })
  bears('node-2', { 'example.org/rack': '4', 'example.org/bmc': '10.2.0.2' })
  await clock.runFor(1_000)
  assert.equal(devices(), ['10.2.0.9', '10.2.0.2'])
  paths.configMap(rack('node_selector=example.org/rack=5'))
  await clock.runFor(1_000)
  assert.equal(devices(), [undefined, undefined])
  bears('node-2', { 'example.org/rack': '5', 'example.org/bmc': '10.2.0.2' })
  await clock.runFor(1_000)
  assert.equal(devices(), [undefined, '10.2.0.2'])
  paths.configMapGone('fence-config-rack-4')
  await clock.runFor(1_000)
  assert.equal(devices(), [undefined, undefined])
})

const redfish = readMetadata('<parameter name="ip" required="1"><content type="string" /></parameter><parameter name="plug" required="0"><content type="integer" /></parameter><parameter name="username" required="0"></parameter><parameter name="password" required="0"></parameter>') ?? 'unknown'

test('a program that has not said what it is is waited for; by what it says a change is refused, and the last good one stays', async () => {
  const said: { word: ReturnType<AgentCatalogue['of']> } = { word: 'pending' }
  const clock = virtualClock()
  const chance = seededChance(3)
  const { paths, inForce, told } = replica(clock, createApiServer({ clock, chance: () => chance.next() }), ['node-1'], { of: () => said.word })
  for (const object of [template('plain'), own('node-1')]) paths.configMap(object)
  await clock.runFor(5_000)
  assert.is(inForce.get('node-1'), undefined)
  said.word = redfish
  paths.learned()
  await clock.runFor(1_000)
  const good = only(inForce.get('node-1'))
  assert.is(good.name, 'bmc-off')
  paths.configMap(own('node-1', 'seven'))
  await clock.runFor(1_000)
  assert.equal([only(inForce.get('node-1')), inForce.get('node-1')?.faults], [good, ['ConfigMap fence-config-node-1, fence-method-bmc-off, line 3: method bmc-off: plug is no whole number']])
  paths.settle()
  assert.match(told.at(-1)?.holds ?? '', /^the last good one stays in force/)
})

test('a Node that was deleted, and outlived that for an incident, has a path again when it is made anew', async () => {
  const { clock, paths, nodes, changed } = small('node-1')
  for (const object of [template(), own('node-1')]) paths.configMap(object)
  paths.secret(secret('x'))
  paths.nodeSeen('node-1', '', wordless)
  await clock.runFor(1_000)
  paths.nodeGone('node-1')
  await clock.runFor(1_000)
  nodes.delete('node-1')
  await clock.runFor(1_000)
  changed.length = 0
  nodes.add('node-1')
  paths.nodeSeen('node-1', '', wordless)
  await clock.runFor(1_000)
  assert.equal(changed, ['node-1'])
})

test('another password is another configuration: a method that the core saw before is not run with it', async () => {
  const { clock, paths, inForce } = small('node-1')
  for (const object of [template(), own('node-1')]) paths.configMap(object)
  paths.secret(secret('old'))
  await clock.runFor(1_000)
  const before = only(inForce.get('node-1'))
  assert.is(paths.method('node-1', before)?.name, 'bmc-off')
  paths.secret(secret('new'))
  await clock.runFor(1_000)
  assert.is(paths.method('node-1', before), undefined)
  assert.is(paths.method('node-1', only(inForce.get('node-1')))?.name, 'bmc-off')
})

test('a Secret that is deleted is another configuration: what the core saw before is not run without it', async () => {
  const { clock, paths, inForce } = small('node-1')
  for (const object of [template(), own('node-1')]) paths.configMap(object)
  paths.secret(secret('old'))
  await clock.runFor(1_000)
  const before = only(inForce.get('node-1'))
  assert.is(paths.method('node-1', before)?.name, 'bmc-off')
  paths.secretGone('bmc')
  await clock.runFor(1_000)
  assert.is(paths.method('node-1', before), undefined)
  assert.is.not(only(inForce.get('node-1')).digest, before.digest)
})

test('a method of another node is not found', async () => {
  const { clock, paths, inForce } = small('node-1', 'node-2')
  for (const object of [template('plain'), own('node-1')]) paths.configMap(object)
  await clock.runFor(1_000)
  assert.is(paths.method('node-2', only(inForce.get('node-1'))), undefined)
})

test('a node that appears later has its path, and so has one that went and came back', async () => {
  const { clock, paths, nodes, inForce } = small()
  for (const object of [template('plain'), own('node-1')]) paths.configMap(object)
  await clock.runFor(1_000)
  for (let times = 0; times < 2; times += 1) {
    nodes.add('node-1')
    paths.nodeSeen('node-1', '', wordless)
    await clock.runFor(1_000)
    assert.is(inForce.get('node-1')?.levels.length, 1)
    nodes.delete('node-1')
    paths.nodeGone('node-1')
    inForce.clear()
  }
})

const instance = 'aws:///eu-west-1a/i-0123456789abcdef0'

test('a node that names its instance has a path without any map, and none while another names the same', async () => {
  const { clock, paths, nodes, inForce, told } = small('node-1')
  paths.nodeSeen('node-1', instance, wordless)
  await clock.runFor(1_000)
  assert.equal([only(inForce.get('node-1')).agent, only(inForce.get('node-1')).claimed], ['aws', true])
  nodes.add('node-2')
  paths.nodeSeen('node-2', instance, wordless)
  await clock.runFor(1_000)
  for (const node of ['node-1', 'node-2']) assert.equal(inForce.get(node)?.levels, [], node)
  assert.match(told.at(-1)?.sentences.join() ?? '', /is named by node-2 too/)
  nodes.delete('node-2')
  paths.nodeGone('node-2')
  await clock.runFor(2_000)
  assert.is(inForce.get('node-1')?.levels.length, 1)
})

test('a node that is gone and not forgotten yet keeps the path to its instance', async () => {
  const { clock, paths, inForce } = small('node-1')
  paths.nodeSeen('node-1', instance, wordless)
  await clock.runFor(1_000)
  paths.nodeGone('node-1')
  paths.configMap(template('plain'))
  await clock.runFor(1_000)
  assert.is(inForce.get('node-1')?.levels.length, 1)
})

test('a Node whose providerID comes later has its path then', async () => {
  const { clock, paths, inForce } = small('node-1')
  paths.nodeSeen('node-1', '', wordless)
  await clock.runFor(1_000)
  assert.equal(inForce.get('node-1')?.levels, [])
  paths.nodeSeen('node-1', instance, wordless)
  await clock.runFor(1_000)
  assert.is(inForce.get('node-1')?.levels.length, 1)
})

test('a map that is deleted takes its path with it; maps and Secrets of other names are none of ours', async () => {
  const { clock, paths, inForce, changed } = small('node-1')
  for (const object of [template('plain'), own('node-1')]) paths.configMap(object)
  await clock.runFor(1_000)
  paths.configMapGone('fence-config-node-1')
  await clock.runFor(1_000)
  assert.equal(inForce.get('node-1'), { levels: [], faults: [] })
  changed.length = 0
  paths.configMap(map('kube-root-ca.crt', { 'ca.crt': 'x' }))
  paths.configMapGone('kube-root-ca.crt')
  paths.secretGone('never seen')
  await clock.runFor(1_000)
  assert.equal(changed, [])
})

test('the faults of all maps are told at once and once, the last good path stays in force, and their end is told', async () => {
  const { clock, paths, inForce, told, logged } = small('node-1', 'node-2')
  for (const object of [template('plain'), own('node-1'), own('node-2')]) paths.configMap(object)
  await clock.runFor(1_000)
  const good = only(inForce.get('node-1'))
  for (const node of ['node-1', 'node-2']) paths.configMap(map(`fence-config-${node}`, { 'config.properties': `node_name=${node}\npower_management=nothing\n` }))
  await clock.runFor(1_000)
  assert.is(told.length, 1)
  assert.ok(told[0]?.sentences.some((one) => one.includes('fence-config-node-1')))
  assert.ok(told[0]?.sentences.some((one) => one.includes('fence-config-node-2')))
  assert.is(only(inForce.get('node-1')).digest, good.digest)
  assert.ok((inForce.get('node-1')?.faults.length ?? 0) > 0)
  paths.configMap(map('fence-config-default', {}))
  await clock.runFor(1_000)
  assert.is(told.length, 1)
  for (const node of ['node-1', 'node-2']) paths.configMap(own(node))
  await clock.runFor(1_000)
  assert.is(logged.at(-1), 'the fence configuration is without faults')
})

test('faults that were read while another led are said once in each term of our own', async () => {
  const world = small('node-1', 'node-2')
  const { clock, paths, told } = world
  world.term = undefined
  for (const object of [template('plain'), own('node-1')]) paths.configMap(object)
  await clock.runFor(1_000)
  for (const node of ['node-1', 'node-2']) paths.configMap(map(`fence-config-${node}`, { 'config.properties': 'oops' }))
  await clock.runFor(1_000)
  paths.settle()
  assert.equal(told, [])
  for (const term of [4, undefined, 6]) {
    world.term = term
    for (let times = 0; times < 2; times += 1) paths.settle()
  }
  assert.is(told.length, 2)
  for (const { sentences } of told) assert.match(sentences.join(), /fence-config-node-1, config.properties, line 1/)
})

test('that a last good one stays in force is said only where there is one', async () => {
  const { clock, paths, told, logged } = small('node-1', 'node-2')
  paths.configMap(map('fence-config-node-2', { 'config.properties': 'oops' }))
  await clock.runFor(1_000)
  assert.is(told.at(-1)?.holds, 'there is no good one for node-2')
  assert.match(logged.join(), /has faults: there is no good one for node-2$/)
  for (const object of [template('plain'), own('node-1')]) paths.configMap(object)
  await clock.runFor(1_000)
  paths.configMap(map('fence-config-node-1', { 'config.properties': 'oops' }))
  await clock.runFor(1_000)
  assert.is(told.at(-1)?.holds, 'the last good one stays in force, and there is no good one for node-2')
  paths.configMap(own('node-1'))
  paths.configMap(map('fence-config-node-2', { 'note.txt': 'x' }))
  await clock.runFor(1_000)
  assert.is(told.at(-1)?.holds, 'they keep no node from its fence path')
})

const kept = (server: ApiServer): KubeObject | undefined => server.peek('configmaps').find(({ metadata }) => metadata.name === keptName)
const faulty = (name: string, key = 'config.properties'): KubeObject => map(name, { [key]: 'oops' })

/** A leader that saw all of these good, and then some faulty; and what it kept. */
async function keptBy(good: readonly KubeObject[], bad: readonly KubeObject[], ...nodes: readonly string[]): Promise<Small & { readonly kept: KubeObject }> {
  const leader = small(...nodes)
  for (const object of good) leader.paths.configMap(object)
  await leader.clock.runFor(1_000)
  leader.paths.settle()
  assert.is(kept(leader.server), undefined)
  for (const object of bad) leader.paths.configMap(object)
  await leader.clock.runFor(1_000)
  leader.paths.settle()
  await leader.clock.runFor(1_000)
  leader.paths.stop()
  return { ...leader, kept: kept(leader.server) as KubeObject } // asserted by whoever reads it
}

for (const [what, bad] of [['own map', faulty('fence-config-node-1')], ['template', faulty('fence-method-template-bmc', 'template.properties')]] as const) {
  test(`a replica that never saw it well has the last good path of a node whose ${what} is faulty`, async () => {
    const before = await keptBy([template('plain'), own('node-1', '7')], [bad], 'node-1')
    const after = replica(before.clock, before.server, ['node-1'])
    const present = new Map([template('plain'), own('node-1', '7'), bad].map((object) => [object.metadata.name, object]))
    for (const object of present.values()) after.paths.configMap(object)
    await after.clock.runFor(1_000)
    assert.equal(after.inForce.get('node-1')?.levels, [])
    after.paths.configMap(before.kept)
    await after.clock.runFor(1_000)
    assert.is(only(after.inForce.get('node-1')).digest, only(before.inForce.get('node-1')).digest)
    assert.ok((after.inForce.get('node-1')?.faults.length ?? 0) > 0)
  })
}

test('what was kept goes with the ConfigMap that somebody deletes, and is struck out once all is well', async () => {
  const before = await keptBy([template('plain'), own('node-1')], [faulty('fence-method-template-bmc', 'template.properties')], 'node-1')
  const after = replica(before.clock, before.server, ['node-1'])
  for (const object of [faulty('fence-method-template-bmc', 'template.properties'), own('node-1'), before.kept]) after.paths.configMap(object)
  await after.clock.runFor(1_000)
  assert.is(after.inForce.get('node-1')?.levels.length, 1)
  after.paths.configMapGone('fence-method-template-bmc')
  await after.clock.runFor(1_000)
  assert.equal(after.inForce.get('node-1')?.levels, [])
  after.paths.settle()
  await after.clock.runFor(1_000)
  assert.not.match(JSON.stringify(kept(after.server)), /node-1/)
})

test('what nobody can read, or has no right to stand there, is no configuration', async () => {
  for (const text of ['oops', '{}', '{"texts":[],"nodes":{"node-1":[5]}}', '{"texts":[{"name":"fence-config-node-1","data":{"config.properties":"oops"}}],"nodes":{"node-1":[0]}}']) {
    const { clock, paths, inForce } = small('node-1')
    for (const object of [template('plain'), faulty('fence-config-node-1'), map(keptName, { 'in-force.json': text })]) paths.configMap(object)
    await clock.runFor(1_000)
    assert.equal(inForce.get('node-1')?.levels, [], text)
    assert.is(inForce.get('node-1')?.faults.length, 1, text)
  }
})

test('who does not lead keeps nothing', async () => {
  const world = small('node-1')
  world.term = undefined
  for (const object of [template('plain'), own('node-1')]) world.paths.configMap(object)
  await world.clock.runFor(1_000)
  world.paths.configMap(faulty('fence-config-node-1'))
  await world.clock.runFor(1_000)
  world.paths.settle()
  await world.clock.runFor(1_000)
  assert.is(kept(world.server), undefined)
})

test('a faulty map of no node, and a faulty template in a cluster without nodes, are told all the same', async () => {
  const { clock, paths, told } = small()
  paths.configMap(map('fence-config-node-9', { 'config.properties': 'no equals sign' }))
  paths.configMap(map('fence-method-template-bmc', { 'template.properties': 'nor here' }))
  await clock.runFor(1_000)
  const sentences = told.at(-1)?.sentences.join() ?? ''
  assert.ok(sentences.includes('fence-config-node-9') && sentences.includes('fence-method-template-bmc'), sentences)
})

test('no password stands in a told fault', async () => {
  const { clock, paths, told } = small('node-1')
  paths.configMap(map('fence-method-template-bmc', { 'template.properties': 'agent_name=redfish\npassword=hunter2\npassword=hunter2\npasswd hunter2\n' }))
  paths.configMap(own('node-1'))
  await clock.runFor(1_000)
  assert.is(told.length, 1)
  assert.not.ok(JSON.stringify(told).includes('hunter2'), JSON.stringify(told))
})

test('of five thousand nodes only some are read in one go, and in the end all', async () => {
  const names = Array.from({ length: 5_000 }, (_, index) => `node-${index}`)
  const { clock, paths, changed } = small(...names)
  paths.configMap(template('plain'))
  for (const name of names) paths.configMap(own(name))
  let most = 0
  let before = 0
  while (changed.length < names.length && clock.now() < 10_000) {
    await clock.runFor(1)
    most = Math.max(most, changed.length - before)
    before = changed.length
  }
  assert.is(new Set(changed).size, names.length)
  assert.ok(most <= 200, `${most} at once`)
})

test('after the stop nothing is read and no timer is left', async () => {
  const { clock, paths, changed } = small('node-1')
  paths.configMap(template('plain'))
  paths.stop()
  paths.configMap(own('node-1'))
  assert.is(clock.pending(), 0)
  await clock.runFor(5_000)
  assert.equal(changed, [])
})

test('who shares a device is told: by the same words but for the outlet, and by no others', async () => {
  const { clock, paths, inForce } = small('node-1', 'node-2', 'node-3', 'node-4')
  const other = map('fence-config-node-4', { 'config.properties': 'node_name=node-4\npower_management=bmc-off\n', 'fence-method-bmc-off': 'template=fence-method-template-bmc\nip=10.2.0.9\nplug=1\naction=off\n' })
  const loud = map('fence-config-node-3', { 'config.properties': 'node_name=node-3\npower_management=bmc-off\n', 'fence-method-bmc-off': 'template=fence-method-template-bmc\nip=10.2.0.1\nplug=3\nusername=other\naction=off\n' })
  for (const object of [template(), own('node-1', '1'), own('node-2', '2'), loud, other]) paths.configMap(object)
  paths.secret(secret('x'))
  await clock.runFor(1_000)
  const first = paths.method('node-1', only(inForce.get('node-1')))
  assert.ok(first)
  assert.equal(paths.sharing(first).map(({ node, method: { name } }) => [node, name]), [['node-1', 'bmc-off'], ['node-2', 'bmc-off']])
})

test.run()
