import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { AgentCatalogue } from '../../coordinator/agent-catalogue.ts'
import { wordless } from '../../coordinator/fence-config-node.ts'
import { readMetadata } from '../../core/agent-metadata.ts'
import { createApiServer } from '../../sim/api-server/server.ts'
import { seededChance } from '../../sim/chance.ts'
import { virtualClock } from '../../sim/clock.ts'
import { map, only, own, replica, secret, small, template } from './fence-paths-world.ts'

const test = suite('fence paths')

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

const cutOff = (cidrs = '{addresses}', more = '') => map('fence-config-node-1', {
  'config.properties': `node_name=node-1\nisolation=storage-off${more}\n`, 'fence-method-storage-off': `agent_name=storage\nplug={node}\nclass=rbd\ncidrs=${cidrs}\ndrivers=rbd.csi.ceph.com\naction=off\n`,
})

test('the addresses are those on record, and those alone: none of them, no path; others, another configuration', async () => {
  const { clock, paths, inForce, told } = small('node-1')
  paths.configMap(cutOff())
  const cidrs = () => paths.method('node-1', only(inForce.get('node-1')))?.parameters['cidrs']
  const seen = (address: string) => paths.nodeSeen('node-1', '', { ...wordless, addresses: [address] })
  seen('10.0.0.7')
  await clock.runFor(1_000)
  assert.equal(inForce.get('node-1')?.levels, [])
  assert.match(told.at(-1)?.sentences.join() ?? '', /asks for the addresses of node-1, and its NodeRecord has none/)
  paths.recorded('node-1', ['10.0.0.7', 'fd00::7'])
  await clock.runFor(1_000)
  const before = only(inForce.get('node-1'))
  assert.is(cidrs(), '10.0.0.7 fd00::7')
  seen('10.0.0.66')
  await clock.runFor(1_000)
  assert.equal([only(inForce.get('node-1')), cidrs()], [before, '10.0.0.7 fd00::7'], 'whatever its Node names by now')
  paths.recorded('node-1', ['10.0.0.8'])
  await clock.runFor(1_000)
  assert.is(cidrs(), '10.0.0.8')
  assert.is.not(only(inForce.get('node-1')).digest, before.digest)
  assert.is(paths.method('node-1', before), undefined)
  paths.recorded('node-1', [])
  await clock.runFor(1_000)
  assert.equal(inForce.get('node-1')?.levels, [], 'nor do those count that were on record')
})

test('the last good configuration stays in force with the addresses of now, and with none where none are on record', async () => {
  const { clock, paths, inForce } = small('node-1')
  paths.configMap(cutOff())
  paths.recorded('node-1', ['10.0.0.7'])
  await clock.runFor(1_000)
  paths.configMap(cutOff('{addresses}', ' nobody'))
  await clock.runFor(1_000)
  const cidrs = () => inForce.get('node-1')?.levels.flat().map((method) => paths.method('node-1', method)?.parameters['cidrs'])
  assert.equal([inForce.get('node-1')?.faults.length, cidrs()], [1, ['10.0.0.7']])
  paths.recorded('node-1', ['10.0.0.8'])
  await clock.runFor(1_000)
  assert.equal([inForce.get('node-1')?.faults.length, cidrs()], [1, ['10.0.0.8']], 'by the others somebody else would be cut off')
  paths.recorded('node-1', [])
  await clock.runFor(1_000)
  assert.equal(cidrs(), [])
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
