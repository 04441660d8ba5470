// The whole replica on the in-memory API server, with real agents on a network in memory, on a clock turned by hand: how it begins,
// how it ends, and what it leaves behind.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startAgent, type Agent } from '../../agent/agent.ts'
import { createApi, type KubeObject } from '../../coordinator/api.ts'
import { audience } from '../../coordinator/beats-review.ts'
import { startCoordinator, type Coordinator } from '../../coordinator/coordinator.ts'
import type { ProgramEnd, ProgramRun } from '../../coordinator/host.ts'
import { fencesPath, incidentBody, readIncident } from '../../coordinator/node-fence.ts'
import type { ApiRequest, Transport } from '../../coordinator/transport.ts'
import { fencedFor } from '../../core/deleted.ts'
import type { Incident } from '../../core/incident.ts'
import type { Ms } from '../../core/model.ts'
import { customResourceDefinitions } from '../../deploy/crd.ts'
import { silentLog } from '../../edge/log.ts'
import { admin, createApiServer, type ApiServer } from '../../sim/api-server/server.ts'
import { seededChance } from '../../sim/chance.ts'
import { virtualClock, type VirtualClock } from '../../sim/clock.ts'
import { boot, policy } from '../core/world.ts'
import { memoryNetwork } from '../edge/link-pair.ts'
import { happened, peace, programs as programsRun } from '../stories/play.ts'
import { idleMachine } from './beats-world.ts'
import { turned } from './edge-world.ts'

const test = suite('coordinator')

const namespace = 'holdfast-system'

interface Cluster {
  readonly clock: VirtualClock
  readonly server: ApiServer
  readonly requests: { readonly replica: string; readonly at: Ms; readonly request: ApiRequest }[]
  readonly programs: ProgramRun[]
  /** What a device says; by default it never answers. */
  run: (run: ProgramRun) => Promise<ProgramEnd>
  start(name: string): Promise<Coordinator>
  /** How many decisions its replicas have made. */
  decisions: number
  agent(node: string): Agent
  watches(): number
  incidents(): readonly Incident[]
}

const nodes = ['node-1', 'node-2', 'node-3']

function cluster(): Cluster {
  const clock = virtualClock()
  const chance = seededChance(7)
  const server = createApiServer({ clock, chance: () => chance.next() })
  const network = memoryNetwork(clock)
  const addresses: string[] = []
  const ears = new Set<(addresses: readonly string[]) => void>()
  for (const definition of customResourceDefinitions()) server.plant(definition as unknown as KubeObject) // as a person would apply it
  server.plant({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
  const plant = (object: object): unknown => server.plant(object as KubeObject) // written as a person would
  plant({ apiVersion: 'holdfast.dev/v1alpha1', kind: 'HoldfastPolicy', metadata: { name: 'all' }, spec: { profile: 'fast', nodeDownPodDeletionPolicy: 'DeleteAllPods' } })
  for (const [index, name] of nodes.entries()) {
    plant({
      apiVersion: 'v1', kind: 'Node', metadata: { name },
      status: { addresses: [{ type: 'InternalIP', address: `10.0.0.${index}` }], nodeInfo: { bootID: `b007-000${index + 1}`, systemUUID: name }, conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: '2026-01-01T00:00:00Z' }] },
    })
    plant({
      apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `fence-config-${name}`, namespace },
      data: { 'config.properties': `node_name=${name}\npower_management=bmc\n`, 'fence-method-bmc': `agent_name=redfish\nip=10.2.0.${index}\nplug=1\naction=off\n` },
    })
  }

  const world: Cluster = {
    clock, server, requests: [], programs: [], decisions: 0,
    run: () => new Promise(() => undefined),
    async start(name) {
      const inner = server.transportFor({ ...admin, name: 'system:serviceaccount:holdfast-system:holdfast-coordinator' })
      const transport: Transport = async (request, signal) => {
        world.requests.push({ replica: name, at: clock.now(), request })
        return request.path.endsWith('/tokenreviews') ? reviewed(request) : await inner(request, signal)
      }
      const address = `${name}:7443`
      const own = chance.fork(name)
      return await turned(clock, startCoordinator({
        clock, transport, log: silentLog, chance: () => own.next(), secret: (bytes) => own.bytes(bytes), dialer: network.dialer(name),
        async listen(accept) {
          const shut = network.listen(address, accept)
          return { address, close: async () => shut() }
        },
        programs: {
          run(run) {
            world.programs.push(run)
            const ended = new Promise<ProgramEnd>((resolve) => {
              run.signal?.addEventListener('abort', () => resolve({ stdout: '', stderr: '', late: false, gone: true }), { once: true })
            })
            return Promise.race([world.run(run), ended])
          },
        },
        probe: async () => 'answered',
      }, {
        namespace, agentNamespace: namespace, identity: name, salt: 'salt', token: async () => `replica ${name}`, decided: () => void (world.decisions += 1),
        replicas(given, changed) {
          addresses.push(given)
          ears.add(changed)
          for (const ear of ears) ear([...addresses])
          return () => void ears.delete(changed)
        },
      }))
    },
    agent(node) {
      const podUid = server.peek('pods').find((pod) => pod.metadata.name === `agent-${node}`)?.metadata.uid ?? `pod-${node}`
      const disk = new Map<string, string>()
      return startAgent({
        clock, chance: () => 0.5, log: silentLog, dialer: network.dialer(node), whispers: network.whispers(node),
        disk: { load: async (name) => disk.get(name), save: async (name, text) => void disk.set(name, text) },
        read: async (file) => ({ 'boot-id': `b007-000${node.slice(-1)}\n`, 'pid-1-stat': '1 (init) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9', uptime: '100.00 200.00\n', machine: `${node}\n`, mounts: '22 1 8:1 / / rw - ext4 /dev/sda1 rw\n', token: `agent ${node} ${podUid}`, 'pressure-cpu': undefined, 'pressure-memory': undefined, 'pressure-io': undefined, panic: undefined, cpuinfo: undefined }[file]),
        podFolders: async () => [], kubeletHealth: async () => 'ok', resolveReplicas: async () => [...addresses], ...idleMachine,
      }, { version: 'test', kubeletRoot: '/var/lib/kubelet', whisperPort: 7_000 })
    },
    watches() {
      let count = 0
      server.faults.breakWatches(() => {
        count += 1
        return false
      })
      return count
    },
    incidents: () => server.peek('nodefences.holdfast.dev').flatMap((object) => {
      const read = readIncident(object)
      return read.ok ? [read.incident] : []
    }),
  }
  return world
}

const key = (what: string): string => `authentication.kubernetes.io/${what}`

async function reviewed(request: ApiRequest): ReturnType<Transport> {
  const { token } = (JSON.parse(request.body ?? '') as { spec: { token: string } }).spec // a TokenReview
  const [kind, name = '', podUid = `pod-${name}`] = token.split(' ')
  const user = kind === 'agent'
    ? { username: `system:serviceaccount:${namespace}:holdfast-agent`, extra: { [key('node-name')]: [name], [key('node-uid')]: [`uid-${name}`], [key('pod-name')]: [`agent-${name}`], [key('pod-uid')]: [podUid] } }
    : { username: `system:serviceaccount:${namespace}:holdfast-coordinator`, extra: { [key('pod-uid')]: [`pod-${name}`] } }
  async function* body(): AsyncGenerator<string> {
    yield JSON.stringify({ status: { authenticated: true, audiences: [audience], user } })
  }
  return { status: 201, headers: {}, body: body() }
}

const end = (exitCode: number, stdout: string): ProgramEnd => ({ exitCode, stdout, stderr: '', late: false, gone: true })

async function fence(world: Cluster, name: string, nodeName: string): Promise<void> {
  const person = createApi({ clock: world.clock, transport: world.server.transportFor(admin) })
  const made = await person.create(fencesPath, incidentBody({ name, nodeName, nodeUid: 'uid-of-old', boot, machine: '', cause: 'silence', policy }))
  if (!made.ok) throw new Error(made.error.message)
}

test('a replica that is stopped in the middle of everything leaves no timer, no watch and no program', async () => {
  const world = cluster()
  const { clock } = world
  await fence(world, 'node-1-abc-1', 'node-1')
  const one = await world.start('replica-1')
  const agents = nodes.map((node) => world.agent(node))
  await clock.runFor(12_000)
  assert.ok(one.leads() !== undefined && one.ready())
  assert.is(one.beats.linked(), 3)
  assert.ok(world.programs.length > 0, 'devices are being asked')
  world.server.faults.set([{ does: 'slow', by: 2_500, strikes: (call) => !call.path.includes('leases') }])
  await clock.runFor(1_000)
  await turned(clock, one.stop())
  world.server.faults.clear()
  await Promise.all(agents.map((agent) => agent.stop('shutdown')))
  await clock.runFor(5)
  assert.is(world.watches(), 0)
  const asked = world.requests.length
  await clock.runFor(120_000)
  assert.is(world.requests.length, asked, 'nothing is asked of the server any more')
  assert.is(clock.pending(), 0)
})

test('no timer is left at the very moment at which the stop is done, whatever was under way', async () => {
  const world = cluster()
  await fence(world, 'gone-abc-1', 'gone')
  world.server.faults.set([{ does: 'slow', by: 9_000, strikes: (call) => !call.watch && !call.path.includes('leases') }])
  const one = await world.start('replica-1')
  await world.clock.runFor(8_000)
  assert.ok(one.leads() !== undefined)
  world.server.plant({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'fence-config-node-9', namespace } })
  await world.clock.runFor(20)
  await turned(world.clock, one.stop())
  assert.is(world.clock.pending(), 0)
})

test('a replica that cannot listen does not begin: it stands for no election and watches nothing', async () => {
  const world = cluster()
  const failed = await startCoordinator({
    clock: world.clock, log: silentLog, chance: () => 0.5, secret: (bytes) => new Uint8Array(bytes), dialer: { dial: () => Promise.reject(new Error('no')) },
    transport: (request, signal) => {
      world.requests.push({ replica: 'x', at: 0, request })
      return world.server.transportFor(admin)(request, signal)
    },
    listen: () => Promise.reject(new Error('the port is taken')), programs: { run: world.run }, probe: async () => 'silent',
  }, { namespace, agentNamespace: namespace, identity: 'x', salt: 's', token: async () => undefined, replicas: () => () => undefined }).then(() => undefined, (error: unknown) => String(error))
  assert.ok(failed?.includes('the port is taken'))
  await world.clock.runFor(30_000)
  assert.equal([world.requests, world.watches(), world.clock.pending()], [[], 0, 0])
})

const digest = (replica: Coordinator | undefined): string | undefined => replica?.seen.nodes.get('node-1')?.path.levels[0]?.[0]?.digest

test('a fence ConfigMap that became faulty stays in force in its last good form when every replica is another', async () => {
  const world = cluster()
  const { clock, server } = world
  const person = createApi({ clock, transport: server.transportFor(admin) })
  const olds = [await world.start('replica-1'), await world.start('replica-2')]
  await clock.runFor(10_000)
  const good = digest(olds[0])
  assert.ok(good !== undefined)
  const map = `/api/v1/namespaces/${namespace}/configmaps/fence-config-node-1`
  const faulty = await turned(clock, person.patch(map, 'merge', { data: { 'config.properties': 'node_name=node-1\npower_managment=bmc\n' } }))
  assert.ok(faulty.ok)
  await clock.runFor(5_000)
  for (const old of olds) await turned(clock, old.stop())
  const news = [await world.start('replica-3'), await world.start('replica-4')]
  await clock.runFor(30_000)
  assert.ok(news.some((replica) => replica.leads() !== undefined))
  for (const replica of news) {
    assert.is(digest(replica), good)
    assert.match(replica.seen.nodes.get('node-1')?.path.faults.join() ?? '', /power_managment/)
  }
  assert.equal(server.peek('events').filter((event) => Object(event).reason === 'FenceConfigInvalid').map((event) => Object(event).message.split(':')[0]), ['the last good one stays in force', 'the last good one stays in force'])
  const removed = await turned(clock, person.remove(map))
  assert.ok(removed.ok)
  await clock.runFor(5_000)
  for (const replica of news) assert.equal(replica.seen.nodes.get('node-1')?.path.levels, [])
  for (const replica of news) await turned(clock, replica.stop())
})

test('a leader that stops gives up its lease, and the other one leads at once, warm', async () => {
  const world = cluster()
  const { clock } = world
  const [one, two] = [await world.start('replica-1'), await world.start('replica-2')]
  const agents = nodes.map((node) => world.agent(node))
  await clock.runFor(10_000)
  const [leader, other] = one.leads() === undefined ? [two, one] : [one, two]
  assert.is(other.leads(), undefined)
  assert.is(other.beats.linked(), 3)
  await turned(clock, leader.stop())
  const began = clock.now()
  assert.ok(await clock.runWhen(() => other.leads() !== undefined, 3_000), 'within three seconds')
  assert.ok(clock.now() - began < 1_500)
  await turned(clock, other.stop())
  await Promise.all(agents.map((agent) => agent.stop('shutdown')))
})

test('who does not lead writes nothing but its bid for the lease, and runs nothing', async () => {
  const world = cluster()
  world.run = async () => end(0, 'Status: ON\n')
  const [one, two] = [await world.start('replica-1'), await world.start('replica-2')]
  const agents = nodes.map((node) => world.agent(node))
  await world.clock.runFor(20_000)
  const follower = one.leads() === undefined ? 'replica-1' : 'replica-2'
  const programs = world.programs.length
  assert.ok(programs > 0, 'the leader audits')
  const written = world.requests.filter(({ replica, request }) => replica === follower && request.method !== 'GET' && !request.path.endsWith('/tokenreviews')).map(({ request }) => request.path)
  assert.equal(written.filter((path) => !path.includes('/leases')), [])
  await turned(world.clock, Promise.all([one.stop(), two.stop()]))
  await Promise.all(agents.map((agent) => agent.stop('shutdown')))
})

test('an incident whose Node was deleted before this leader ever saw it is closed all the same, once nothing proved it for five minutes', async () => {
  const world = cluster()
  await fence(world, 'gone-abc-1', 'gone')
  const one = await world.start('replica-1')
  await world.clock.runFor(fencedFor)
  assert.equal(world.incidents().map((incident) => incident.status.phase), ['New'])
  await world.clock.runFor(15_000)
  assert.equal(world.incidents().map((incident) => [incident.status.phase, incident.status.outcome]), [['Final', 'NodeDeleted']])
  await turned(world.clock, one.stop())
})

test('a server that refuses every NodeRecord is asked a few times, not a hundred times a second', async () => {
  const world = cluster()
  world.run = async () => end(0, 'Status: ON\n')
  world.server.faults.set([{ does: 'answer', status: 500, strikes: (call) => call.path.includes('noderecords') && !call.watch }])
  const one = await world.start('replica-1')
  const agents = nodes.map((node) => world.agent(node))
  await world.clock.runFor(60_000)
  const asked = world.requests.filter(({ request }) => request.path.includes('noderecords') && request.method === 'POST').length
  assert.ok(asked > 5 && asked < 80, `${asked} in a minute`)
  await turned(world.clock, one.stop())
  await Promise.all(agents.map((agent) => agent.stop('shutdown')))
})

test('what is in force of a policy is written in the end though the first writes were refused', async () => {
  const world = cluster()
  world.server.faults.set([{ does: 'answer', status: 429, times: 3, strikes: (call) => call.method === 'PUT' && call.path.includes('holdfastpolicies') }])
  const one = await world.start('replica-1')
  await world.clock.runFor(40_000)
  const [kept] = world.server.peek('holdfastpolicies.holdfast.dev') as (KubeObject & { status?: { inForce?: { profile?: string } } })[] // a kind of ours
  assert.is(kept?.status?.inForce?.profile, 'fast')
  await turned(world.clock, one.stop())
})

test('the Secret that a policy names goes to the program of a node\'s own instance, on its stdin alone, and one without our label to nobody', async () => {
  const world = cluster()
  world.run = async () => end(0, 'Status: ON\n')
  const plant = (object: object): unknown => world.server.plant(object as KubeObject) // written as a person would
  const keysOf = (name: string, text: string, labels: Readonly<Record<string, string>>) => plant({
    apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace, labels }, data: { access_key: Buffer.from('AKIA').toString('base64'), secret_key: Buffer.from(text).toString('base64') },
  })
  const pays = (name: string, zone: string, cloudCredentials: string) => plant({
    apiVersion: 'holdfast.dev/v1alpha1', kind: 'HoldfastPolicy', metadata: { name }, spec: { priority: 5, selector: { matchLabels: { zone } }, nodeDownPodDeletionPolicy: 'DeleteAllPods', cloudCredentials },
  })
  for (const [name, zone] of [['node-4', 'a'], ['node-5', 'b']] as const) {
    plant({
      apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { zone } }, spec: { providerID: `aws:///eu-west-1${zone}/i-0a1b2c3${zone}` },
      status: { addresses: [{ type: 'InternalIP', address: `10.0.1.${name.slice(-1)}` }], nodeInfo: { bootID: `b007-000${name.slice(-1)}`, systemUUID: name }, conditions: [{ type: 'Ready', status: 'True' }] },
    })
  }
  keysOf('ec2', 'hush-hush', { 'holdfast.dev/fence-secret': 'true' })
  keysOf('unlabelled', 'never-seen', {})
  pays('cloud-a', 'a', 'ec2')
  pays('cloud-b', 'b', 'unlabelled')
  const one = await world.start('replica-1')
  const agents = ['node-4', 'node-5'].map((node) => world.agent(node))
  await world.clock.runFor(60_000)
  const asked = world.programs.filter(({ agent, environment }) => agent === 'aws' && environment['HOLDFAST_NODE'] !== undefined)
  assert.equal([...new Set(asked.map(({ stdin, environment }) => [environment['HOLDFAST_NODE'], stdin].join(' ')))], ['node-4 action=status\nplug=aws:///eu-west-1a/i-0a1b2c3a\naccess_key=AKIA\nsecret_key=hush-hush\nnodename=node-4\n'])
  assert.not.match(JSON.stringify(world.programs.map(({ environment, files }) => [environment, files])), /hush-hush/)
  assert.not.match(JSON.stringify(['noderecords.holdfast.dev', 'events', 'nodefences.holdfast.dev', 'configmaps'].map((kind) => world.server.peek(kind))), /hush-hush|never-seen/)
  assert.match(one.seen.nodes.get('node-5')?.path.faults.join() ?? '', /HoldfastPolicy cloud-b, spec.cloudCredentials: Secret unlabelled is not there, or does not bear the label/)
  await turned(world.clock, one.stop())
  await Promise.all(agents.map((agent) => agent.stop('shutdown')))
})

test('when nothing happens a replica asks little: its lease, and short watches', async () => {
  const world = cluster()
  world.run = async () => end(0, 'Status: ON\n')
  const one = await world.start('replica-1')
  const agents = nodes.map((node) => world.agent(node))
  await world.clock.runFor(60_000)
  const before = world.requests.length
  await world.clock.runFor(60_000)
  const paths = world.requests.slice(before).map(({ request }) => request.path.split('?')[0] ?? '').filter((path) => !path.includes('/leases'))
  assert.ok(paths.length <= 60, `${paths.length} in a minute: ${[...new Set(paths)].join(' ')}`)
  await turned(world.clock, one.stop())
  await Promise.all(agents.map((agent) => agent.stop('shutdown')))
})

const leases = (call: { path: string }): boolean => call.path.includes('/leases')

test('a leader that loses its lease while a device is being asked off ends that program at once, and wants nothing more', async () => {
  const on = await peace({ seed: 61, device: { kind: 'chassis', feed: 'own', timing: { off: 25_000, on: 1_000, status: 200 } } })
  const leader = on.coordinators.get(on.leader() ?? -1)
  assert.ok(leader)
  on.world.freeze(on.victim)
  await on.until('the device is being asked off', async () => programsRun(on, 'off') > 0, 30_000)
  await on.until('it wants something', async () => leader.wanted().length > 0, 5_000)
  assert.is(happened(on, 'program ended').filter(({ action }) => action === 'off').length, 0)
  on.world.server?.faults.set([{ does: 'unreachable', strikes: leases }])
  await on.until('it leads no more', async () => leader.leads() === undefined, 20_000)
  await on.run(1_000)
  assert.equal(happened(on, 'program ended').filter(({ action }) => action === 'off').map(({ exit }) => exit), ['signal'])
  assert.equal(leader.wanted(), [])
})

test('agents are told by the next permit that a replica leads no more', async () => {
  const world = cluster()
  const one = await world.start('replica-1')
  const agent = world.agent('node-1')
  await world.clock.runFor(12_000)
  assert.equal(agent.links().map((link) => link.leads), [true])
  world.server.faults.set([{ does: 'unreachable', strikes: leases }])
  await world.clock.runFor(30_000)
  assert.is(one.leads(), undefined)
  assert.equal(agent.links().map((link) => link.leads), [false])
  await turned(world.clock, Promise.all([one.stop(), agent.stop('shutdown')]))
})

for (const collection of ['nodes', 'nodefences', 'volumeattachments']) {
  test(`a view is as old as its oldest watch: that of ${collection} alone stands still`, async () => {
    const world = cluster()
    const one = await world.start('replica-1')
    await world.clock.runFor(12_000)
    assert.ok(world.clock.now() - one.freshAt() < 10_000)
    world.server.faults.set([{ does: 'stall watch', strikes: (call) => call.path.split('?')[0]?.endsWith(`/${collection}`) === true }])
    await world.clock.runFor(20_000)
    assert.ok(world.clock.now() - one.freshAt() > 10_000)
    assert.is(one.seen.self.freshAt, one.freshAt())
    await turned(world.clock, one.stop())
  })
}

test('an agent pod that is deleted takes its link along; the others keep theirs', async () => {
  const world = cluster()
  const path = `/api/v1/namespaces/${namespace}/pods`
  for (const node of nodes) {
    world.server.plant({
      apiVersion: 'v1', kind: 'Pod', metadata: { name: `agent-${node}`, namespace, labels: { 'app.kubernetes.io/name': 'holdfast-agent' } },
      spec: { nodeName: node, containers: [{ name: 'c', image: 'i' }] }, status: { phase: 'Running' },
    } as KubeObject) // a Pod is more than the common type tells
  }
  const one = await world.start('replica-1')
  const agents = nodes.map((node) => world.agent(node))
  await world.clock.runFor(12_000)
  assert.is(one.beats.linked(), 3)
  const person = createApi({ clock: world.clock, transport: world.server.transportFor(admin) })
  assert.ok((await turned(world.clock, person.remove(`${path}/agent-node-1`, { gracePeriodSeconds: 0 }))).ok)
  await world.clock.runFor(1_000)
  assert.equal(nodes.map((node) => one.beats.agent(node)?.linked), [false, true, true])
  await turned(world.clock, one.stop())
  await Promise.all(agents.map((agent) => agent.stop('shutdown')))
})

test('whoever measures is told with each write how long the boot that failed was not heard by then, and nothing of a boot that this replica never heard', async () => {
  const told: { readonly at: Ms; readonly silence: Ms | undefined }[] = []
  const on = await peace({ seed: 63, wrote: (_before, _after, silence) => void told.push({ at: on.world.clock.now(), silence }) })
  const cut = on.world.clock.now()
  on.world.cutPower(on.victim)
  await on.until('a volume is released', async () => (await on.incidents())[0]?.status.timeline.some(({ what }) => what === 'volumes released') === true, 60_000)
  assert.ok(told.length > 3)
  // A beat a second, and the way of the last one.
  for (const { at, silence } of told) assert.ok(silence !== undefined && Math.abs(at - cut - silence) <= 1_100, `${at - cut} ms after the cut: ${silence}`)
  for (const number of on.coordinators.keys()) on.world.killReplica(number)
  told.length = 0
  for (const number of [0, 1]) on.world.startReplica(number)
  await on.until('the next ones write', async () => told.length > 0, 60_000)
  assert.equal(told.map(({ silence }) => silence).filter((silence) => silence !== undefined), [])
})

test('the core is shown how many pods the rate has left', async () => {
  const on = await peace({ seed: 62 })
  const leader = on.coordinators.get(on.leader() ?? -1)
  assert.is(leader?.seen.self.podBudget, 150)
  on.world.cutPower(on.victim)
  await on.until('pods are freed, and the rate has fewer left', async () => (leader?.seen.self.podBudget ?? 0) < 150, 60_000)
  assert.is.not((await on.incidents())[0]?.status.pods.length, 0)
})

test('kubelets that merely say again that they are there make nobody decide; one that says something new does', async () => {
  const world = cluster()
  const { clock } = world
  const one = await world.start('replica-1')
  await clock.runFor(30_000)
  const person = createApi({ clock, transport: world.server.transportFor(admin) })
  const post = (condition: object): Promise<unknown> => turned(clock, person.patch(`/api/v1/nodes/node-1/status`, 'strategic', { status: { conditions: [{ type: 'Ready', ...condition }] } }))
  const during = async (work: () => Promise<void>): Promise<number> => {
    const before = world.decisions
    await work()
    return world.decisions - before
  }
  const posting = (status: (count: number) => string): Promise<number> => during(async () => {
    for (let count = 0; count < 20; count += 1) {
      await post({ status: status(count), lastHeartbeatTime: `2026-01-01T00:00:${10 + count}Z` })
      await clock.runFor(100)
    }
  })
  const rhythm = await during(() => clock.runFor(2_000))
  assert.is(await posting(() => 'True'), rhythm)
  assert.is(one.seen.nodes.get('node-1')?.ready.postedAt, clock.now() - 100, 'it was seen all the same')
  assert.ok(await posting((count) => (count % 2 === 0 ? 'False' : 'True')) > rhythm * 2)
  await turned(clock, one.stop())
})

test('of Secrets only those that are marked as fences\' are read', async () => {
  const world = cluster()
  const one = await world.start('replica-1')
  await world.clock.runFor(12_000)
  const asked = world.requests.map(({ request }) => new URL(request.path, 'http://x')).filter((url) => url.pathname.endsWith('/secrets'))
  assert.ok(asked.length > 0)
  for (const url of asked) assert.is(url.searchParams.get('labelSelector'), 'holdfast.dev/fence-secret')
  await turned(world.clock, one.stop())
})

test.run()
