// The crash kernel's word as ClusterLabs' own fence_kdump_send sends it, heard by the coordinator, and a real machine whose kernel
// has panicked: its power waits as long as its dump may take, and goes then.
import { spawnSync } from 'node:child_process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listenKdump } from '../../coordinator/kdump.ts'
import { freePorts } from '../control-plane/ports.ts'
import { configMap, inCluster, properties } from './cluster.ts'
import { startIpmiController } from './ipmi-controller.ts'
import { startMachine } from './machine.ts'
import { inRack, until } from './rack.ts'

const test = suite('kdump')
const patience = 240_000
const dumpsWithin = 30_000

function crashKernelSays(port: number): void {
  const sent = spawnSync('/usr/libexec/fence-agents/fence_kdump_send', ['-p', String(port), '-c', '1', '-i', '1', '127.0.0.1'], { encoding: 'utf8' })
  assert.is(sent.status, 0, sent.stderr)
}

test('the word of fence_kdump_send is understood, and its sender known', async () => {
  const heard: string[] = []
  const listener = await listenKdump({ bind: '127.0.0.1', port: 0 }, (from) => heard.push(from))
  try {
    crashKernelSays(listener.port)
    await until('the word', () => heard.length > 0)
    assert.equal(heard, ['127.0.0.1'])
  } finally {
    await listener.close()
  }
})

test('a panicked machine that announces its dump keeps its power for it, and loses it then', () => inRack(async (rack) => {
  const node = 'node-1'
  const machine = await startMachine(rack, 'machine')
  const boot = await machine.beats()
  const { login } = await startIpmiController(rack, 'controller', machine.feed)
  const { kdump } = await freePorts(['kdump'])
  const objects = [
    configMap('fence-method-template-bmc', { 'template.properties': properties('ipmi', login) }),
    configMap(`fence-config-${node}`, {
      'config.properties': `node_name=${node}\npower_management=bmc-off\nkdump=${dumpsWithin / 1_000}s\n`, 'fence-method-bmc-off': 'template=fence-method-template-bmc\naction=off\n',
    }),
  ]
  // Its packets come from loopback, as its address says.
  const settings = { nodes: [node, 'node-2', 'node-3'], real: { [node]: machine }, objects, nodeAddress: (index: number) => (index === 0 ? '127.0.0.1' : `10.0.0.${index + 11}`), kdump }
  await inCluster(rack, settings, async (cluster) => {
    await until('its path to be audited', () => cluster.records().get(node)?.paths.some(({ state }) => state === 'verified') === true && cluster.records().get(node)?.probe?.answered === true, patience)
    machine.tell('echo c > /proc/sysrq-trigger')
    // A crash kernel takes seconds to come up: by then nobody has heard its machine for as long.
    await until('it to hang', () => cluster.world.nodes.get(node)?.machine.frozen() === true, patience)
    crashKernelSays(kdump)
    const said = performance.now()
    const own = () => cluster.incidents().find(({ nodeName }) => nodeName === node)
    await until('it is waited for', () => own()?.status.holds.some(({ because }) => because === 'dumping') === true, patience)
    assert.equal(own()?.status.attempts, [])
    await until('its power is ordered off', () => (own()?.status.attempts.length ?? 0) > 0, patience)
    assert.ok(performance.now() - said >= dumpsWithin - 500, 'not before its time was over')
    await until('the incident to be over', () => own()?.status.phase === 'Final', patience)
    assert.is.not(await machine.beats(), boot)
    assert.is(own()?.status.proof?.kind, 'off')
  })
}))

test.run()
