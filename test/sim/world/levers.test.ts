import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { minute, settledWorld } from '../settled-world.ts'

const test = suite('levers')

/** An agent that only says what it is told. */
const quietAgent = (said: string[]) => ({
  startAgent: (_host: unknown, { node }: { node: string }) => {
    said.push(`${node} runs`)
    return { stop: async (why: string) => void said.push(`${node} says ${why}`) }
  },
})

test('a machine that is shut down says goodbye first, and one that reboots comes back in a new boot', async () => {
  const said: string[] = []
  const { world, pass, when } = await settledWorld(1, quietAgent(said))
  const machine = world.nodes.get('node-1')?.machine
  const boot = machine?.boot()?.id
  world.shutDown('node-1', 'reboot')
  await pass(1_000)
  assert.ok(said.includes('node-1 says reboot'))
  assert.is(machine?.state(), 'running')
  assert.ok(await when(() => machine?.boot() !== undefined && machine.boot()?.id !== boot, minute))
  world.shutDown('node-1', 'off')
  await pass(minute)
  assert.is(machine?.state(), 'off')
})

test('an agent that is restarted in order says goodbye and is started again', async () => {
  const said: string[] = []
  const { world, pass } = await settledWorld(2, quietAgent(said))
  world.restartAgent('node-2')
  await pass(20_000)
  assert.equal(said.filter((line) => line.startsWith('node-2')), ['node-2 runs', 'node-2 says restart', 'node-2 runs'])
})

test('a hibernated machine reads off and goes on in the same boot', async () => {
  const { world, nodeOf, pass } = await settledWorld(3)
  const victim = nodeOf('db')
  const machine = world.nodes.get(victim)?.machine
  const boot = machine?.boot()?.id
  world.hibernate(victim)
  let says: string | undefined
  void world.devices.get(`bmc-${victim}`)?.read('1').then((answer) => { says = answer.says })
  await pass(20_000)
  assert.is(says, 'off')
  assert.is(world.judges.writersOf('vol-data-db-0').length, 0)
  world.powerOn(victim)
  await pass(1_000)
  assert.is(machine?.boot()?.id, boot)
  assert.is(world.judges.writersOf('vol-data-db-0')[0]?.node, victim)
})

test('another machine under the name registers as what it is', async () => {
  const { world, node, when } = await settledWorld(4)
  const uid = node('node-3').metadata.uid
  world.replaceMachine('node-3', '11111111-2222-4333-8444-555555555555')
  world.powerOn('node-3')
  assert.ok(await when(() => node('node-3').status?.nodeInfo?.systemUUID === '11111111-2222-4333-8444-555555555555', minute))
  assert.is(node('node-3').metadata.uid, uid)
})

test('controllers that restart begin their waits anew', async () => {
  const { world, nodeOf, pods, pass, when } = await settledWorld(5)
  world.cutPower(nodeOf('db'))
  await pass(5 * minute)
  world.restartControllers()
  const restartedAt = world.clock.now()
  assert.ok(await when(() => pods().some(({ metadata }) => metadata.deletionTimestamp !== undefined), 10 * minute))
  assert.ok(world.clock.now() - restartedAt >= 5 * minute, `${world.clock.now() - restartedAt} ms`)
})

test('what is left mounted is seen by the machine, and forgotten by a kubelet that lost it', async () => {
  const { world, podOf, remove, node, pass } = await settledWorld(6)
  const pod = podOf('db')
  assert.ok(pod !== undefined)
  const on = pod.spec.nodeName ?? ''
  const there = world.nodes.get(on)
  assert.ok(there !== undefined)
  there.faults.unmount = 'forgets staging'
  // The successor must not land here, or the volume would be in use again.
  await world.api.patch(`/api/v1/nodes/${on}`, 'merge', { spec: { unschedulable: true } })
  void remove(pod)
  await pass(minute)
  assert.ok([...there.machine.mounts.values()].some(({ volume, path }) => volume === 'vol-data-db-0' && path.endsWith('globalmount')))
  assert.not.ok((node(on).status?.volumesInUse ?? []).some((name) => name.endsWith('^vol-data-db-0')))
})

test('an unmount that hangs keeps the pod and the volume where they are', async () => {
  const { world, podOf, pods, remove, attachments, pass, when } = await settledWorld(7)
  const pod = podOf('db')
  assert.ok(pod !== undefined)
  const there = world.nodes.get(pod.spec.nodeName ?? '')
  assert.ok(there !== undefined)
  there.faults.unmount = 'hangs'
  void remove(pod)
  await pass(2 * minute)
  assert.ok(pods().some(({ metadata }) => metadata.uid === pod.metadata.uid))
  assert.ok(attachments().some(({ spec }) => spec.nodeName === pod.spec.nodeName))
  there.faults.unmount = 'well'
  assert.ok(await when(() => !pods().some(({ metadata }) => metadata.uid === pod.metadata.uid), minute))
})

test('a partition cuts what it names, in the direction and on the planes that it names', async () => {
  const { world } = await settledWorld(8)
  const reach = (from: string, to: string, plane: 'api' | 'watch' | 'link') => {
    const [sender, receiver] = [world.network.find(from), world.network.find(to)]
    assert.ok(sender !== undefined && receiver !== undefined)
    return world.network.reach(sender, receiver, plane)
  }
  const end = world.partition({ from: ['node-1'], to: ['*'], oneWay: true, planes: ['api'] })
  assert.equal([reach('node-1', 'api', 'api'), reach('node-1', 'api', 'watch'), reach('api', 'node-1', 'api'), reach('node-1', 'api', 'link')], ['silent', 'silent', 'open', 'open'])
  end()
  assert.is(reach('node-1', 'api', 'api'), 'open')
  world.isolate('node-1')
  assert.equal([reach('api', 'node-1', 'api'), reach('node-2', 'node-1', 'link'), reach('node-2', 'api', 'api')], ['silent', 'silent', 'open'])
  world.heal()
  assert.is(reach('node-2', 'node-1', 'link'), 'open')
})

test('a button that is pressed twice is a boot', async () => {
  const { world, pass } = await settledWorld(9)
  const machine = world.nodes.get('node-1')?.machine
  const boot = machine?.boot()?.id
  world.pressPowerButton('node-1')
  assert.is(machine?.state(), 'off')
  world.pressPowerButton('node-1')
  await pass(minute)
  assert.ok(machine?.boot() !== undefined && machine.boot()?.id !== boot)
})

test('a virtual machine that migrates stands still for a moment and keeps its boot', async () => {
  const { world, pass } = await settledWorld(11)
  const machine = world.nodes.get('node-1')?.machine
  const boot = machine?.boot()?.id
  world.migrate('node-1', 2_000)
  await pass(1_000)
  assert.ok(machine?.frozen())
  await pass(2_000)
  assert.not.ok(machine?.frozen())
  assert.is(machine?.boot()?.id, boot)
})

test('a machine that is slow hands over late, in order, and no more once it is not', async () => {
  const { world, pass } = await settledWorld(12)
  const machine = world.nodes.get('node-1')?.machine
  assert.ok(machine !== undefined)
  world.slow('node-1', 4_000)
  const process = machine.start('counter', 'system')
  const came: number[] = []
  let least = Infinity
  for (let count = 0; count < 20; count += 1) world.clock.after(count * 10, () => process.deliver(() => came.push(count)))
  const began = world.clock.now()
  process.clock.after(100, () => { least = world.clock.now() - began })
  await pass(300)
  assert.ok(came.length < 20, 'late')
  await pass(8_000)
  assert.equal(came, Array.from({ length: 20 }, (_, count) => count))
  assert.ok(least > 100 && least < 8_000, String(least))
  world.unslow('node-1')
  process.deliver(() => came.push(20))
  assert.is(came.at(-1), 20)
})

test('a runtime that is not there stops nothing and starts nothing, and its kubelet says so', async () => {
  const { world, podOf, pods, remove, node, ready, pass, when } = await settledWorld(13)
  const pod = podOf('db')
  assert.ok(pod !== undefined)
  const [uid, on] = [pod.metadata.uid ?? '', pod.spec.nodeName ?? '']
  world.failRuntime(on, 'dead')
  void remove(pod)
  await pass(minute)
  assert.ok(world.nodes.get(on)?.runtime.containers.has(uid), 'it runs on')
  assert.is(ready(node(on)), 'False')
  world.mendRuntime(on)
  assert.ok(await when(() => !pods().some(({ metadata }) => metadata.uid === uid), minute))
  assert.ok(await when(() => ready(node(on)) === 'True', minute))
})

test('a replica dies at the very await that it was doomed at, and what its chain does after that reaches nobody', async () => {
  const reached: string[] = []
  const { world, pass } = await settledWorld(14, {
    replicas: 1,
    startReplica: async (host) => {
      const write = (name: string) => host.transport({ method: 'POST', path: '/api/v1/namespaces/work/configmaps', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } }) }, new AbortController().signal)
      const chain = async () => {
        await host.clock.wait(40_000)
        for (const name of ['one', 'two', 'three']) {
          reached.push(name)
          await write(name)
          reached.push(`${name} answered`)
        }
      }
      void chain()
      return { stop: async () => undefined }
    },
  })
  world.doomReplica(0, { at: 'write', nth: 2, when: 'sent', later: 0, turns: 1 })
  await pass(minute)
  assert.equal(reached, ['one', 'one answered', 'two'])
  assert.not.ok(world.replicas.running.has(0))
  const there = world.server?.peek('configmaps').map(({ metadata: { name } }) => name) ?? []
  assert.equal([there.includes('one'), there.includes('two'), there.includes('three')], [true, true, false])
})

test('a replica that is killed, paused, stopped and started is a new process each time it starts', async () => {
  const seen: string[] = []
  const { world, pass } = await settledWorld(10, {
    replicas: 2,
    startReplica: async (host, place) => {
      seen.push(place.identity)
      place.replicas((await host.listen(() => undefined)).address, (addresses) => seen.push(`${place.identity}: ${addresses.length}`))
      return { stop: async () => void seen.push(`${place.identity} stops`) }
    },
  })
  assert.equal(world.replicas.addresses(), ['10.1.0.10:7443', '10.1.0.11:7443'])
  world.killReplica(0)
  assert.not.ok(world.replicas.running.has(0))
  world.startReplica(0)
  await pass(100)
  assert.ok(seen.includes('replica-0-3'))
  world.pauseReplica(0, 5_000)
  assert.not.ok(world.replicas.running.get(0)?.process.running())
  await pass(6_000)
  assert.ok(world.replicas.running.get(0)?.process.running())
  world.stopReplica(0)
  await pass(100)
  assert.ok(seen.includes('replica-0-3 stops'))
  assert.not.ok(world.replicas.running.has(0))
})

test.run()
