// The crash kernel's word as ClusterLabs' own fence_kdump_send sends it, heard by the coordinator; what its probe is answered before it, by a
// kernel that has lost its kubelet alone and by one that was gone; and a real machine whose kernel has panicked: its power waits as long as its dump may
// take, and goes then.
import { spawnSync } from 'node:child_process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { listenKdump } from '../../coordinator/kdump.ts'
import { keepNode } from '../../coordinator/kubernetes.ts'
import { createObservation } from '../../coordinator/observe.ts'
import { doubtOfDump } from '../../core/dump.ts'
import type { ProbeWord } from '../../core/model.ts'
import { machineClock } from '../../edge/clock.ts'
import { freePorts } from '../control-plane/ports.ts'
import { configMap, inCluster, properties } from './cluster.ts'
import { startIpmiController } from './ipmi-controller.ts'
import { startMachine } from './machine.ts'
import { startNamespace } from './namespace.ts'
import { startOutpost } from './outpost.ts'
import { inRack, until } from './rack.ts'

const test = suite('kdump')
const patience = 240_000
const dumpsWithin = 30_000
const kubeletPort = 10_250

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

test('a machine that loses its network, and has it back with nothing on it: answered, silent, refused, and a word from its address', () => inRack(async (rack) => {
  const [replicas, machine] = [await startNamespace(rack, 'replicas'), await startNamespace(rack, 'machine')]
  const [ours, its] = ['10.77.0.1', '10.77.0.2']
  replicas.run('ip', 'link', 'add', 'name', 'wire', 'type', 'veth', 'peer', 'name', 'wire', 'netns', machine.holder)
  for (const [network, address] of [[replicas, ours], [machine, its]] as const) {
    network.run('ip', 'address', 'add', `${address}/24`, 'dev', 'wire')
    for (const device of ['lo', 'wire']) network.run('ip', 'link', 'set', device, 'up')
  }
  const outpost = await startOutpost(rack, replicas, [its])
  const kubelet = await rack.start('kubelet', machine.command('socat', `TCP-LISTEN:${kubeletPort},reuseaddr,fork`, 'EXEC:echo kubelet'))
  const { observation, beats } = watching(its)
  const ask = async (): Promise<ProbeWord> => {
    const askedAt = machineClock.now()
    const word = await outpost.probe(its, kubeletPort, 800)
    observation.probed('node-1', { askedAt, answeredAt: machineClock.now(), word })
    return word
  }
  const listener = await outpost.kdump((from) => observation.dumped(new Map([[from, machineClock.now()]])))
  const told = () => {
    const row = observation.row('node-1')
    return row === undefined ? 'no node' : doubtOfDump(row, observation.seen.self)
  }
  const send = () => machine.run('/usr/libexec/fence-agents/fence_kdump_send', '-c', '1', '-i', '1', ours)

  await until('its kubelet to answer', async () => await ask() === 'answered')
  beats.at = machineClock.now()
  await kubelet.crash()
  await until('its port to refuse', async () => await ask() === 'refused')
  send()
  await until('a word', () => outpost.heard.length === 1)
  assert.match(told() ?? '', /what refuses may be the kernel that ran/, 'a kernel that only lost its kubelet')

  beats.at = machineClock.now()
  machine.run('ip', 'link', 'set', 'wire', 'down')
  for (let times = 0; times < 3; times += 1) assert.is(await ask(), 'silent')
  machine.run('ip', 'link', 'set', 'wire', 'up')
  await until('its port to refuse', async () => await ask() === 'refused')
  assert.match(told() ?? '', /heard after its crash kernel/, 'the word from before is none any more')
  send()
  await until('another word', () => outpost.heard.length === 2)
  assert.equal([outpost.heard[1]?.from, told()], [its, undefined])
  await listener.close()
}))

/** One node at this address, as a replica observes it that has heard it and has audited its port. */
function watching(address: string) {
  const beats = { at: 0 }
  const boot = 'boot-1/1'
  const observation = createObservation(machineClock, 'replica-0', { heard: () => ({ boot, since: 0, at: beats.at, kubelet: 'ok' }), forget: () => undefined })
  Object.assign(observation.seen.self, { awakeSince: -Infinity })
  observation.node(keepNode({ metadata: { name: 'node-1', uid: 'uid-1', resourceVersion: '1' }, status: { addresses: [{ type: 'InternalIP', address }] } } as KubeObject)) // a Node is more than the common type tells
  observation.record('node-1', { resourceVersion: '1', nodeUid: 'uid-1', boot, machine: '', paths: [], probe: { boot, answered: true, at: '' } })
  observation.path('node-1', { levels: [], faults: [], dumpsWithin: 60_000 })
  return { observation, beats }
}

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
