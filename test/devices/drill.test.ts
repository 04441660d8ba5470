// A drill on real machines: two kernels on one strip, whose outlets are exchanged. What the strip says is the same either way; whose
// beats stop is not.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { carryOutDrill, drillOf, type Drilled } from '../../cli/drill.ts'
import { readCluster } from '../../cli/cluster.ts'
import type { KubeObject } from '../../coordinator/api.ts'
import { paths } from '../../coordinator/kubernetes.ts'
import { machineClock } from '../../edge/clock.ts'
import { configMap, inCluster, namespace, properties, type Cluster } from './cluster.ts'
import { startMachine } from './machine.ts'
import { startPowerStrip } from './power-strip.ts'
import { inRack, until } from './rack.ts'

const test = suite('drill')
const patience = 240_000
const fallsSilent = 4_000

const config = (node: string, plug: number) => ({
  'config.properties': `node_name=${node}\npower_management=outlet-off\n`,
  'fence-method-outlet-off': `template=fence-method-template-strip\nplug=${plug}\naction=off\n`,
})

const pathsOf = (cluster: Cluster, node: string) => cluster.records().get(node)?.paths.map(({ state, identity }) => `${state} ${identity}`)

async function drill(cluster: Cluster, node: string): Promise<Drilled> {
  const asked = drillOf(await readCluster(cluster.world.api, namespace), node)
  if ('refused' in asked) throw new Error(asked.refused)
  return carryOutDrill(cluster.world.api, machineClock, asked.draft, (line) => console.log(line))
}

test('two machines whose outlets are exchanged: a drill finds it by whose beats stop, gives the power back, and proves the cables once they are right', () => inRack(async (rack) => {
  const own = await startMachine(rack, 'one')
  const others = await startMachine(rack, 'two')
  const boots = { own: await own.beats(), others: await others.beats() }
  const strip = await startPowerStrip(rack, 'strip', { 1: others.feed, 2: own.feed })
  const log: string[] = []
  strip.heard = (order) => log.push(order)
  const objects = [
    configMap('fence-method-template-strip', { 'template.properties': `${properties('pdu-snmp', strip.v2c)}late=5s\n` }),
    configMap('fence-config-node-1', config('node-1', 1)), configMap('fence-config-node-2', config('node-2', 2)),
    // Cordoned before its kubelet registers it, so that nothing ever lands there.
    { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' }, spec: { unschedulable: true } } as KubeObject,
  ]
  await inCluster(rack, { nodes: ['node-1', 'node-2', 'node-3', 'node-4', 'node-5'], real: { 'node-1': own, 'node-2': others }, objects }, async (cluster) => {
    const audited = (node: string) => until(`the path of ${node} to be audited`, () => pathsOf(cluster, node)?.join() === 'verified unproven', patience)
    await audited('node-1')
    await audited('node-2')

    const wrong = await drill(cluster, 'node-1')
    assert.is(wrong.passed, false)
    assert.match(wrong.because, /node-1 beats on: the path leads to another machine|node-2 fell silent with it/)
    await until('the neighbour to beat again', () => others.boots.length === 2 && others.state(fallsSilent) === 'beating', patience)
    assert.equal(log, ['off 1', 'on 1'])
    assert.is(await own.beats(), boots.own)
    await until('its path to be marked', () => pathsOf(cluster, 'node-1')?.join() === 'marked mismatch', patience)
    await until('peace', () => cluster.incidents().every(({ status }) => status.phase === 'Final'), patience)
    assert.ok(cluster.incidents().every(({ status }) => status.proof === undefined), 'nothing was proven by it')

    for (const [node, plug] of [['node-1', 2], ['node-2', 1]] as const) {
      const told = await cluster.world.api.patch(`${paths.configMaps(namespace)}/fence-config-${node}`, 'merge', { data: config(node, plug) })
      assert.ok(told.ok, node)
    }
    await audited('node-1')
    const right = await drill(cluster, 'node-1')
    assert.equal([right.passed, log.slice(2)], [true, ['off 2', 'on 2']], right.because)
    await until('its path to be proven', () => pathsOf(cluster, 'node-1')?.join() === 'verified proven', patience)
    assert.is.not(await own.beats(), boots.own)
    assert.is(others.boots.length, 2, 'its neighbour has run on')
    assert.equal([cluster.world.judges.twoWriters(), cluster.world.judges.wroteAfterRelease()], [[], []])
  })
}))

test.run()
