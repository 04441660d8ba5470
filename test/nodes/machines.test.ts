// What the stories stand on: machines that come up as nodes, die at once, come back as another boot, stand still, and lose their
// cable without losing what runs on them.
import { readFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineClock as clock } from '../../edge/clock.ts'
import { ready, startCluster, until, type Cluster } from './cluster.ts'
import type { Machine } from './machine.ts'
import { say } from './room.ts'

const test = suite('machines')
const seconds = (ms: number): string => (ms / 1_000).toFixed(1)
let cluster: Cluster

/** What comes back from kubelet's port. A refusal is the word of a kernel that runs. */
function heardFrom({ address }: Machine): Promise<'answer' | 'refusal' | 'silence'> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: address, port: 10_250, timeout: 1_000 })
    const end = (word: Awaited<ReturnType<typeof heardFrom>>): void => {
      socket.destroy()
      resolve(word)
    }
    socket.on('connect', () => end('answer'))
    socket.on('timeout', () => end('silence'))
    socket.on('error', (error) => end('code' in error && (error.code === 'EHOSTUNREACH' || error.code === 'ENETUNREACH') ? 'silence' : 'refusal'))
  })
}

const answers = async (machine: Machine): Promise<boolean> => await heardFrom(machine) === 'answer'

/** Read from its disk, since a frozen machine can be asked nothing. */
const steps = ({ disk }: Machine): readonly string[] => readFileSync(join(disk, 'mnt/steps'), 'utf8').split('\n')

const isReady = async (name: string): Promise<boolean> => (await cluster.api.get(`/api/v1/nodes/${name}`)).ok && ready(await cluster.node(name))

test('three machines come up as Ready nodes, each with a boot id and a machine id of its own', async () => {
  const began = clock.now()
  cluster = await startCluster({ nodes: 3, images: [] })
  say(`control plane after ${seconds(clock.now() - began)} s`)
  await Promise.all([...cluster.machines.values()].map((machine) => machine.powerOn()))
  await until('three nodes are Ready', async () => (await Promise.all([...cluster.machines.keys()].map(isReady))).every(Boolean), 120_000)
  say(`three nodes Ready after ${seconds(clock.now() - began)} s`)
  for (const machine of cluster.machines.values()) {
    const info = (await cluster.node(machine.name)).status?.nodeInfo
    assert.is(info?.bootID, machine.bootId())
    assert.is(info?.systemUUID, machine.machineId)
    assert.match(info?.containerRuntimeVersion ?? '', /^containerd:\/\/v?2\./)
  }
})

test('without power nothing of a machine runs, nor refuses a connection; with power it is the same machine in another boot', async () => {
  const machine = cluster.machine('node-2')
  const before = machine.bootId()
  await machine.run(['touch', '/var/lib/kept'])
  const began = clock.now()
  await machine.powerOff()
  say(`dead after ${seconds(clock.now() - began)} s`)
  assert.is(machine.power(), 'off')
  assert.is(await heardFrom(machine), 'silence')
  await machine.powerOn()
  const back = clock.now()
  await until('the node tells its new boot', async () => (await cluster.node('node-2')).status?.nodeInfo?.bootID === machine.bootId(), 60_000)
  await until('the node is Ready', () => isReady('node-2'), 60_000)
  say(`Ready ${seconds(clock.now() - back)} s after power on`)
  assert.is.not(machine.bootId(), before)
  await machine.run(['test', '-e', '/var/lib/kept'])
  assert.is((await machine.run(['cat', '/proc/sys/kernel/random/boot_id'])).trim(), machine.bootId())
})

test('a frozen machine does nothing and answers nobody, and goes on where it was', async () => {
  const machine = cluster.machine('node-3')
  // Twice a second it says how far it is, whoever watches.
  await machine.run(['sh', '-c', '(while :; do echo on >> /mnt/steps; sleep 0.5; done) >/dev/null 2>&1 &'])
  await machine.freeze()
  const stood = steps(machine).length
  await clock.wait(2_000)
  assert.is(steps(machine).length, stood)
  assert.is(await heardFrom(machine), 'silence')
  assert.is(machine.power(), 'on')
  await machine.thaw()
  await until('it goes on', () => steps(machine).length > stood, 10_000)
  await until('it answers', () => answers(machine), 10_000)
  assert.is((await cluster.node('node-3')).status?.nodeInfo?.bootID, machine.bootId())
})

test('a frozen machine can lose its power too, and does nothing more on its way', async () => {
  const machine = cluster.machine('node-3')
  await machine.freeze()
  const before = steps(machine).length
  await machine.powerOff()
  assert.is(steps(machine).length, before)
  await machine.powerOn()
  await until('the node is Ready in its new boot', async () => (await cluster.node('node-3')).status?.nodeInfo?.bootID === machine.bootId() && await isReady('node-3'), 60_000)
})

test('without its cable a machine runs on unheard', async () => {
  const machine = cluster.machine('node-1')
  await machine.cutCable()
  assert.is(await heardFrom(machine), 'silence')
  assert.match(await machine.run(['cat', '/run/kubelet.pid']), /^\d+$/m)
  await machine.mendCable()
  await until('it answers', () => answers(machine), 10_000)
})

test('a service that is killed is started again by its machine, unless it was switched off', async () => {
  const machine = cluster.machine('node-1')
  await machine.killService('kubelet', 'stays away')
  await clock.wait(2_000)
  assert.is(await heardFrom(machine), 'refusal')
  await machine.startService('kubelet')
  await until('it answers', () => answers(machine), 30_000)
  await machine.killService('kubelet', 'starts again')
  await until('it answers', () => answers(machine), 30_000)
})

test('the cluster stops', async () => await cluster.stop())

test.run()
