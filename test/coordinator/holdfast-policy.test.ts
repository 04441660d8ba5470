import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { policyInForce, policyStatusBody, readPolicy, specOfPolicy } from '../../coordinator/holdfast-policy.ts'
import { defaultPolicy } from '../../core/policy.ts'

const test = suite('holdfast-policy')

const at = '2026-01-31T12:00:00.000Z'
const object = (spec: unknown, status?: unknown) => ({
  metadata: { name: 'usual', uid: 'u1', resourceVersion: '7', generation: 3 }, spec, ...(status === undefined ? {} : { status }),
})

function faults(spec: unknown): string[] {
  const read = readPolicy(object(spec))
  return read.ok ? [] : read.faults.map((fault) => `${fault.path}: ${fault.says}`)
}

test('an empty spec is the default policy: it selects every node and does nothing to it', () => {
  assert.equal(readPolicy(object({})), { ok: true, policy: { ...defaultPolicy, name: 'usual' } })
  assert.is(defaultPolicy.nodeDownPodDeletionPolicy, 'DoNothing')
})

test('durations and labels become what the core reads', () => {
  const read = readPolicy(object({ selector: { matchLabels: { rack: 'r4' } }, restAfter: '90s', powerAfter: '5m', restarts: 0, brakes: { stormWindow: '1m30s', etcd: 'external', skipIfStorageUnreachable: 'StorageUnreachable', skipIfStorageHears: 'StorageHears' }, pause: { reason: 'upgrade', by: 'an operator' } }))
  assert.ok(read.ok)
  if (!read.ok) return
  assert.equal(read.policy.nodeLabels, { rack: 'r4' })
  assert.equal([read.policy.restAfter, read.policy.powerAfter, read.policy.restarts, read.policy.brakes.stormWindow], [90_000, 300_000, 0, 90_000])
  assert.is(defaultPolicy.restarts, undefined, 'as many as it takes')
  assert.equal(read.policy.pause, { reason: 'upgrade', by: 'an operator' })
  assert.equal([read.policy.brakes.etcd, read.policy.brakes.skipIfStorageHears], ['external', 'StorageHears'])
  assert.equal(readPolicy(object(specOfPolicy(read.policy))), read)
})

test('a malformed policy lists every fault with its path', () => {
  assert.equal(faults({
    priority: 5_000, selector: { matchLabels: { a: 'b c' }, matchExpressions: [] }, mode: 'off', profile: 'quick', nodeDownPodDeletionPolicy: 'DeleteAll',
    retries: 0, restAfter: '10', bootWithin: '1ms', powerOnFoundOff: 'yes', identity: true, brakes: { stormPercent: 140, stormWindow: '', concurrency: -1 },
    pause: { reason: '' }, profle: 'fast',
  }), [
    'spec.priority: must be at most 1000, is 5000',
    'spec.selector.matchLabels.a: is not a label value',
    'spec.mode: must be one of enforce, dryRun; is "off"',
    'spec.profile: must be one of fast, balanced, conservative; is "quick"',
    'spec.nodeDownPodDeletionPolicy: must be one of DoNothing, DeleteStatefulSetPod, DeleteDeploymentPod, DeleteBothStatefulsetAndDeploymentPod, DeleteAllPods; is "DeleteAll"',
    'spec.retries: must be at least 1, is 0',
    'spec.restAfter: must be a duration such as 90s, 10m or 1h30m',
    'spec.bootWithin: must be at least 1s',
    'spec.powerOnFoundOff: must be true or false, is "yes"',
    'spec.identity: must be one of warn, require; is true',
    'spec.brakes.stormPercent: must be at most 100, is 140',
    'spec.brakes.stormWindow: must be a duration such as 90s, 10m or 1h30m',
    'spec.brakes.concurrency: must be at least 0, is -1',
    'spec.pause.reason: is empty',
    'spec.pause.by: is missing',
    'spec.selector.matchExpressions: is not a field; known are matchLabels',
    'spec.profle: is not a field; known are priority, selector, mode, profile, nodeDownPodDeletionPolicy, onlyTerminating, provisioners, volumeAttachmentRecovery, safeDetach, release, hungAfter, evictWithin, retries, powerAfter, restAfter, restarts, bootWithin, returnPatience, afterPatience, cleanUp, clearPatience, powerOnFoundOff, identity, cloudCredentials, cloudShutdown, giveUp, selfFenced, kdump, waitForPermit, brakes, drills, pause',
  ])
})

test('fields that contradict each other are faults, also beside faults of other fields', () => {
  assert.equal(faults({ powerOnFoundOff: true, profile: 'conservative', brakes: { stormWindow: '30s' }, retries: 99 }), [
    'spec.retries: must be at most 20, is 99',
    'spec.powerOnFoundOff: needs another nodeDownPodDeletionPolicy: under DoNothing no device is ever ordered',
    'spec.brakes.stormWindow: must be at least as long as the profile takes to call a node dead, or no storm is ever seen whole',
  ])
  assert.equal(faults({ powerOnFoundOff: true, nodeDownPodDeletionPolicy: 'DeleteAllPods', profile: 'conservative', brakes: { stormWindow: '45s' } }), [])
  assert.equal(faults({ profile: 'fast', brakes: { stormWindow: '3s' } }), [])
  assert.equal(faults({ selfFenced: 'accept', giveUp: 'stop' }), ['spec.selfFenced: needs giveUp: watchdog: a machine whose watchdog nobody arms is not reset by it'])
  assert.equal(faults({ selfFenced: 'accept', giveUp: 'watchdog' }), [])
})

test('cloudCredentials is the name of a Secret, or nothing', () => {
  const read = readPolicy(object({ cloudCredentials: 'ec2.keys-1' }))
  assert.ok(read.ok && read.policy.cloudCredentials === 'ec2.keys-1')
  assert.is(defaultPolicy.cloudCredentials, undefined)
  for (const wrong of ['Keys', 'a/b', '-a', 'a b']) assert.equal(faults({ cloudCredentials: wrong }), ['spec.cloudCredentials: must be the name of a Secret'], wrong)
})

test('drills are off until a policy asks for them, at an hour that cron knows', () => {
  const asks = { nodeDownPodDeletionPolicy: 'DeleteAllPods' }
  const read = readPolicy(object({ ...asks, drills: { schedule: '0 3 * * 6' } }))
  assert.ok(read.ok && read.policy.drills?.again === 90 * 24 * 3_600_000)
  assert.is(defaultPolicy.drills, undefined)
  const often = readPolicy(object({ ...asks, drills: { schedule: '*/5 * * * sat', again: '26280h' } }))
  assert.ok(often.ok)
  assert.equal(often.ok && readPolicy(object(specOfPolicy(often.policy))), often)
  assert.equal(faults({ drills: { schedule: '0 3 * * 6' } }), ['spec.drills: needs another nodeDownPodDeletionPolicy: under DoNothing no device is ever ordered, and none drilled'])
  for (const schedule of ['0 3 * *', '0 0 3 * * 6', '61 3 * * 6', '@weekly', '']) assert.match(faults({ ...asks, drills: { schedule } }).join(), /five fields|is empty/, schedule)
  assert.equal(faults({ ...asks, drills: { schedule: '0 3 31 2 *' } }), ['spec.drills.schedule: never comes'])
  assert.equal(faults({ ...asks, drills: { again: '1s' } }), ['spec.drills.schedule: is missing', 'spec.drills.again: must be at least 1h'])
})

test('no spec at all is a fault, not a policy for every node', () => {
  assert.equal(faults(undefined), ['spec: is missing'])
})

test('the last good version survives on the object, word for word', () => {
  const good = readPolicy(object({ profile: 'fast', restAfter: '90s', selector: { matchLabels: { rack: 'r4' } }, pause: { reason: 'r', by: 'b' } }))
  assert.ok(good.ok)
  if (!good.ok) return
  const body = Object(policyStatusBody(object({}), { inForce: good.policy, faults: [{ path: 'spec.profile', says: 'no' }], at }))
  assert.equal(body.metadata, { name: 'usual', uid: 'u1', resourceVersion: '7' })
  assert.equal(body.status.faults, [{ path: 'spec.profile', says: 'no' }])
  assert.equal(policyInForce(object({ profile: 'quick' }, body.status)), good.policy)
  assert.equal(body.status.conditions, [{
    type: 'Accepted', status: 'False', observedGeneration: 3, reason: 'LastGoodInForce', message: '1 fault: the last good version stays in force.', lastTransitionTime: at,
  }])
})

test('a policy that was never good has nothing in force', () => {
  const body = Object(policyStatusBody(object({ retries: 0 }), { inForce: undefined, faults: [{ path: 'spec.retries', says: 'no' }], at }))
  assert.is(body.status.inForce, undefined)
  assert.is(body.status.conditions[0].reason, 'Faulty')
  assert.is(policyInForce(object({}, body.status)), undefined)
  assert.is(policyInForce(object({})), undefined)
})

test('a condition keeps the time since which it stands', () => {
  const first = Object(policyStatusBody(object({}), { inForce: undefined, faults: [], at }))
  const later = Object(policyStatusBody(object({}, first.status), { inForce: undefined, faults: [], at: '2026-02-01T00:00:00.000Z' }))
  assert.is(later.status.conditions[0].lastTransitionTime, at)
})

test('a last good version that can no longer be read is none', () => {
  assert.is(policyInForce(object({}, { inForce: { profile: 'quick' } })), undefined)
})

test.run()
