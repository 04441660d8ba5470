// Our `aws` and Debian's fence_aws at moto, which is neither's, and boto3 as the judge of both.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { configMap, inCluster, secretOf, type Cluster } from './cluster.ts'
import { startEc2Endpoint, type Ec2Endpoint, type InstanceBody } from './ec2-endpoint.ts'
import { inRack, pause, until, type Rack } from './rack.ts'
import { audited, cordoned, held, nodeOf, patience, uncordon, volumesOn } from './victim.ts'

const test = suite('aws')
const [victim, others] = ['node-1', ['node-2', 'node-3']]
/** So long nothing may come of it: in less than that an incident whose device answers is proven. */
const notFoundFor = 15_000

test('beside fence_aws: both stop the instance and start it, and no other', () => inRack(async (rack) => {
  const { ours, theirs, instances: [plug, other], state } = await startEc2Endpoint(rack)
  for (const [program, login] of [['aws', ours], ['fence_aws', theirs]] as const) {
    const taken: string[] = []
    for (const [action, exitCode, is] of [['status', 0, 'running'], ['off', 0, 'stopped'], ['off', 0, 'stopped'], ['status', 2, 'stopped'], ['on', 0, 'running']] as const) {
      const answer = await rack.ask(program, action, { ...login, plug })
      assert.is(answer.exitCode, exitCode, `${program} ${action}: ${answer.text}`)
      assert.equal([state(plug), state(other)], [is, 'running'], `${program} ${action}`)
      taken.push(`${action} ${answer.took} ms`)
    }
    console.log(`${program.padEnd(18)} ${taken.join(', ')}`)
  }
}))

test('an unknown instance, a list, a mute endpoint and a dead one: nothing is off, and nothing is stopped', () => inRack(async (rack) => {
  const { ours, instances: [plug, other], process: moto, state } = await startEc2Endpoint(rack)
  const fails = async (over: Readonly<Record<string, string>>, reason: RegExp) => {
    const word = await rack.ask('aws', 'off', { ...ours, plug, login_timeout: '2', shell_timeout: '2', ...over })
    assert.equal([word.state, word.exitCode, word.late], ['failed', 1, false], `${JSON.stringify(over)}: ${word.text}`)
    assert.match(word.reason, reason)
    assert.not.match(word.text, /S3cret!/)
  }
  await fails({ plug: 'i-0123456789abcdef0' }, /^notfound/)
  await fails({ plug: `${plug},${other}` }, /^config/)
  process.kill(moto.pid, 'SIGSTOP')
  await fails({}, /^timeout|^unreachable/)
  process.kill(moto.pid, 'SIGCONT')
  assert.equal([state(plug), state(other)], ['running', 'running'])
  await moto.crash()
  await fails({}, /^unreachable/)
}))

test('a wrong key, an unknown one and one that may only read are told apart; with the rights that the docs name it is stopped; slow is waited for', () => inRack(async (rack) => {
  const { ours, instances: [plug, other], process: moto, state, guard } = await startEc2Endpoint(rack)
  const { fencer, reader } = guard()
  const asked = (action: 'status' | 'off', over: Readonly<Record<string, string>>) => rack.ask('aws', action, { ...ours, ...fencer, plug, ...over })
  for (const [over, reason] of [[{ secret_key: 'wrong' }, /^auth/], [{ access_key: 'AKIANOBODY' }, /^auth/], [reader, /^privilege/]] as const) {
    const word = await asked('off', over)
    assert.equal([word.state, word.exitCode, word.late], ['failed', 1, false], `${JSON.stringify(over)}: ${word.text}`)
    assert.match(word.reason, reason)
    assert.not.ok(word.text.includes(reader['secret_key'] ?? ''), word.text)
  }
  assert.is((await asked('status', reader)).state, 'on')
  process.kill(moto.pid, 'SIGSTOP')
  const slow = asked('status', {})
  await pause(1_000)
  process.kill(moto.pid, 'SIGCONT')
  assert.is((await slow).state, 'on')
  assert.is((await asked('off', {})).state, 'off')
  assert.equal([state(plug), state(other)], ['stopped', 'running'])
}))

test('terminate=1: what boto3 reads as terminated is off, for good; stopped is not, and what EC2 does not tell of is never', () => inRack(async (rack) => {
  const { ours, instances: [plug, other], state, protect, forget } = await startEc2Endpoint(rack)
  const says = async (action: 'status' | 'off' | 'on', over: Readonly<Record<string, string>>) => rack.ask('aws', action, { ...ours, plug, ...over })
  const ends = { terminate: '1' }
  assert.is((await says('status', ends)).state, 'on')
  assert.is((await says('off', {})).state, 'off')
  assert.equal([(await says('status', ends)).state, state(plug)], ['unknown', 'stopped'])
  for (const time of ['once', 'again']) {
    const word = await says('off', ends)
    assert.equal([word.state, word.exitCode, state(plug)], ['off', 0, 'terminated'], `${time}: ${word.text}`)
  }
  assert.equal([(await says('status', ends)).state, (await says('status', {})).state], ['off', 'off'])
  // moto starts what was terminated, where it is asked to: it must not be asked.
  for (const [over, reason] of [[{}, /^device/], [ends, /^config/]] as const) {
    const word = await says('on', over)
    assert.equal([word.state, state(plug)], ['failed', 'terminated'], word.text)
    assert.match(word.reason, reason)
  }
  protect(other)
  const refused = await says('off', { ...ends, plug: other })
  assert.equal([refused.state, state(other)], ['failed', 'running'])
  assert.match(refused.reason, /^privilege \(.*protected against being stopped, or terminated/)
  const elsewhere = await says('off', { ...ends, plug: other, region: 'us-east-1' })
  assert.equal([elsewhere.state, state(other)], ['failed', 'running'])
  assert.match(elsewhere.reason, /^notfound/)
  forget()
  for (const over of [{}, ends]) {
    assert.is((await says('status', over)).state, 'unknown')
    const word = await says('off', over)
    assert.is(word.state, 'failed')
    assert.match(word.reason, /^notfound/)
  }
}))

const incidentOf = (cluster: Cluster) => cluster.incidents().find(({ nodeName }) => nodeName === victim)?.status

/** A Node that names its instance, and is to be fenced by ending it; its work on it, and every path audited. */
async function withNode(rack: Rack, work: (on: { readonly cluster: Cluster; readonly cloud: Ec2Endpoint; readonly body: InstanceBody; readonly instance: string }) => Promise<void>): Promise<void> {
  const cloud = await startEc2Endpoint(rack)
  const [instance] = cloud.instances
  const { providerID, address } = cloud.node(instance)
  const body = await cloud.body(instance)
  const { access_key = '', secret_key = '' } = cloud.ours
  const objects = [
    secretOf('ec2', { access_key, secret_key }), nodeOf(victim, { providerID }), ...cordoned(others),
    configMap(`fence-config-${victim}`, { 'config.properties': `node_name=${victim}\npower_management=terminate-instance\n` }),
  ]
  const settings = { nodes: [victim, ...others], real: { [victim]: body }, objects, policy: { cloudCredentials: 'ec2' } }
  await inCluster(rack, { ...settings, nodeAddress: (index) => (index === 0 ? address : `192.168.0.${index}`) }, async (cluster) => {
    await audited(cluster, [victim])
    await volumesOn(cluster, victim)
    await uncordon(cluster, others)
    await work({ cluster, cloud, body, instance })
  })
}

test('a Node that hangs, with the whole product: its own instance is terminated by boto3\'s word, its work goes elsewhere, and nothing is switched on', () => inRack((rack) => withNode(rack, async ({ cluster, cloud, body, instance }) => {
  const [, other] = cloud.instances
  body.hang()
  await until('the Node to be cleared', () => incidentOf(cluster)?.proof !== undefined && held(cluster, victim).length === 0, patience)
  assert.equal([cloud.state(instance), cloud.state(other)], ['terminated', 'running'])
  await until('a hold that says why it stays off', () => incidentOf(cluster)?.holds.some(({ because, detail }) => because === 'waiting-for-boot' && detail.includes('has ended the machine for good')) === true, patience)
  assert.ok((await cluster.world.api.remove(`/api/v1/nodes/${victim}`)).ok)
  await until('the incident to be over', () => incidentOf(cluster)?.phase === 'Final', patience)
  const { proof, outcome, attempts } = incidentOf(cluster) ?? {}
  assert.equal([proof?.kind, proof?.methods, outcome], ['off', ['terminate-instance'], 'NodeDeleted'])
  assert.equal(attempts?.filter(({ action }) => action === 'on'), [])
  assert.equal([cloud.state(instance), cloud.state(other)], ['terminated', 'running'])
  assert.equal([cluster.world.judges.twoWriters(), cluster.world.judges.wroteAfterRelease()], [[], []])
})))

test('a Node that hangs, whose instance EC2 does not tell of any more: no order, no proof, and it keeps what it has', () => inRack((rack) => withNode(rack, async ({ cluster, cloud, body }) => {
  const before = held(cluster, victim)
  cloud.forget()
  body.hang()
  await until('a hold of the incident', () => (incidentOf(cluster)?.holds.length ?? 0) > 0, patience)
  await pause(notFoundFor)
  const { proof, attempts, holds = [] } = incidentOf(cluster) ?? {}
  assert.equal([proof, attempts], [undefined, []])
  assert.ok(holds.some(({ detail }) => detail.includes('terminate-instance')), JSON.stringify(holds))
  assert.equal(held(cluster, victim), before)
})))

test.run()
