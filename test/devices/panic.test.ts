// A kernel that really panics, under the whole product. In the machine is our agent with a container runtime and no kubelet; behind it a management controller,
// and in it a watchdog. What the machine does is told by its beats on its serial port, each with its boot id, and by its process: by no device.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import type { Incident } from '../../core/incident.ts'
import { configMap, inCluster, properties, type Cluster } from './cluster.ts'
import { startGuestAgent } from './guest-agent.ts'
import { startIpmiController, type IpmiController } from './ipmi-controller.ts'
import type { Machine } from './machine.ts'
import { inRack, until } from './rack.ts'

const test = suite('panic')
const node = 'node-1'
const others = ['node-2', 'node-3']
const patience = 400_000

interface Pod extends KubeObject { spec: { nodeName?: string } }
interface Attachment extends KubeObject { spec: { nodeName: string } }
interface NodeObject extends KubeObject { spec: { taints?: readonly { key: string }[] }; status: { nodeInfo?: { bootID: string } } }

interface Scene {
  readonly cluster: Cluster
  readonly machine: Machine
  readonly controller: IpmiController
  readonly boot: string
  /** On the node before anything happened to it. */
  readonly before: readonly string[]
}

const podsOn = (cluster: Cluster, where: string): readonly string[] => (
  cluster.objects<Pod>('pods').flatMap(({ metadata, spec }) => (metadata.namespace === 'work' && spec.nodeName === where ? [metadata.uid ?? ''] : []))
)
const volumesOn = (cluster: Cluster, where: string) => cluster.objects<Attachment>('volumeattachments.storage.k8s.io').filter(({ spec }) => spec.nodeName === where)
const incidentOf = (cluster: Cluster): Incident | undefined => cluster.incidents().find(({ nodeName }) => nodeName === node)
const transcript = (incident: Incident | undefined): string => (incident?.status.timeline ?? []).map(({ at, what, detail }) => `${at} ${what} | ${detail}`).join('\n')
/** The agent in the machine, by the leader's own ear. */
const heardIn = (cluster: Cluster, boot = ''): boolean => boot !== '' && cluster.leader()?.beats.heard(node)?.boot.startsWith(boot) === true

/** Its work on the machine, its path audited, its agent heard. */
async function inScene(policy: object, work: (scene: Scene) => Promise<void>): Promise<void> {
  await inRack(async (rack) => {
    const guest = await startGuestAgent(rack, { runtime: true })
    const { machine } = guest
    const boot = await machine.beats(patience)
    const controller = await startIpmiController(rack, 'controller', machine.feed)
    const objects = [
      configMap('fence-method-template-bmc', { 'template.properties': `${properties('ipmi', controller.login)}late=5s\n` }),
      configMap(`fence-config-${node}`, { 'config.properties': `node_name=${node}\npower_management=bmc-off\n`, 'fence-method-bmc-off': 'template=fence-method-template-bmc\naction=off\n' }),
      // Cordoned before their kubelets register them, so that the work begins on the machine.
      ...others.map((name) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name }, spec: { unschedulable: true } }) as KubeObject),
    ]
    // A machine without acceleration among others may beat late: no profile that takes seconds for a death.
    const settings = { nodes: [node, ...others], real: { [node]: machine }, guests: { [node]: guest }, hangsAfter: 1_500, objects, policy: { profile: 'balanced', ...policy } }
    await inCluster(rack, settings, async (cluster) => {
      await until('the agent in the machine to be heard', () => heardIn(cluster, boot), patience)
      await until('its path to be audited', () => cluster.records().get(node)?.paths.some(({ state }) => state === 'verified') === true && cluster.records().get(node)?.probe?.answered === true, patience)
      await until('volumes on it', () => volumesOn(cluster, node).length > 0, patience)
      for (const name of others) await cluster.world.api.patch(`/api/v1/nodes/${name}`, 'merge', { spec: { unschedulable: null } })
      await work({ cluster, machine, controller, boot, before: podsOn(cluster, node) })
      await until('the incident to be over', () => cluster.incidents().every(({ status }) => status.phase === 'Final'), patience)
      const incident = incidentOf(cluster)
      console.log(transcript(incident))
      assert.equal(cluster.incidents().map(({ nodeName }) => nodeName), [node], 'one incident, and that of the machine')
      const own = cluster.objects<NodeObject>('nodes').find(({ metadata: { name } }) => name === node)
      assert.is(own?.status.nodeInfo?.bootID, machine.boots.at(-1))
      assert.equal(own?.spec.taints?.filter(({ key }) => key.startsWith('holdfast.dev/') || key === 'node.kubernetes.io/out-of-service') ?? [], [])
      await until('its agent to be heard in the boot that it is in', () => heardIn(cluster, machine.boots.at(-1)), patience)
      assert.equal([cluster.world.judges.twoWriters(), cluster.world.judges.wroteAfterRelease()], [[], []])
    })
  })
}

test('a kernel panics: its power is cut before anything of it is freed, given back afterwards, and its agent brings the node back in a new boot', () => inScene({}, async ({ cluster, machine, boot, before }) => {
  machine.tell('echo c > /proc/sysrq-trigger')
  await machine.mustHang()
  await until('something of it to be freed', () => before.some((uid) => !podsOn(cluster, node).includes(uid)), patience)
  assert.is(machine.state(0), 'off', 'it has no process by then')
  assert.equal([incidentOf(cluster)?.status.proof?.kind, incidentOf(cluster)?.status.proof?.methods], ['off', ['bmc-off']])
  await until('its work to run elsewhere', () => others.flatMap((name) => volumesOn(cluster, name)).length > 0, patience)
  await until('it to beat in a new boot', () => machine.boots.length === 2, patience)
  await until('the incident to be over', () => incidentOf(cluster)?.status.phase === 'Final', patience)
  assert.is(incidentOf(cluster)?.status.outcome, 'Recovered')
  assert.equal([machine.boots.length, machine.boots[0]], [2, boot], 'it was cut off once')
  assert.equal(before.filter((uid) => podsOn(cluster, node).includes(uid)), [], 'each pod of it was freed')
}))

test('a kernel panics, and its controller is away: its watchdog resets it, nothing is freed, and its new boot ends the incident', () => inScene({ giveUp: 'watchdog' }, async ({ cluster, machine, controller, boot, before }) => {
  await until('its watchdog to be armed, and on record', () => cluster.records().get(node)?.watchdog?.state === 'armed', patience)
  assert.is(cluster.records().get(node)?.watchdog?.identity, 'i6300ESB timer')
  controller.fault = 'broken'
  machine.tell('echo c > /proc/sysrq-trigger')
  await until('an incident', () => incidentOf(cluster) !== undefined, patience)
  await until('the watchdog to reset it', () => machine.boots.length === 2, patience)
  assert.is(machine.feed.on(), true, 'nobody has touched its power')
  assert.equal(before.filter((uid) => !podsOn(cluster, node).includes(uid)), [], 'nothing of it was freed')
  controller.fault = undefined
  await until('the incident to be over', () => incidentOf(cluster)?.status.phase === 'Final', patience)
  assert.is(incidentOf(cluster)?.status.proof, undefined, 'the watchdog of a virtual machine proves nothing')
  assert.equal([machine.boots.length, machine.boots[0]], [2, boot], 'it was reset once')
  assert.equal(before.filter((uid) => !podsOn(cluster, node).includes(uid)), [], 'its work stayed where it was')
}))

test.run()
