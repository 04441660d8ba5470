import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readCluster } from '../../cli/cluster.ts'
import { gaveUpReason } from '../../coordinator/self-stop.ts'
import type { Answer, Api, KubeObject } from '../../coordinator/api.ts'
import { policiesPath } from '../../coordinator/holdfast-policy.ts'
import { fencesPath, incidentBody, statusBody } from '../../coordinator/node-fence.ts'
import { manifests } from '../../deploy/manifests.ts'
import { usualValues } from '../../deploy/values.ts'
import { incident } from '../core/world.ts'

const test = suite('cluster')

/** An API server that has NodeFences and nothing else. */
function withFences(items: readonly unknown[] | undefined): Api {
  const get = async (path: string): Promise<Answer<unknown>> => (path.startsWith(fencesPath) && items !== undefined
    ? { ok: true, value: { metadata: {}, items } } : { ok: false, error: { kind: 'forbidden', message: 'no rights' } })
  return { get } as Partial<Api> as Api // reading asks for nothing else
}

const { name, uid, status } = incident({ phase: 'Running' })
const known = Object.assign(incidentBody(incident()) as KubeObject, statusBody(name, '9', uid, status))

test('an incident that can be read is one; one that holds what this version does not know is told apart, with its node', async () => {
  const strange = { metadata: { name: 'node-3-abc-1' }, spec: { ...Object(known).spec, nodeName: 'node-3', weather: 'fine' } }
  const { incidents, unreadable } = await readCluster(withFences([known, strange, { metadata: { name: 'empty' } }]), 'holdfast-system')
  assert.equal(incidents.ok && incidents.value.map(({ nodeName }) => nodeName), ['node-2'])
  assert.equal(unreadable.map((one) => [one.name, one.node]), [['node-3-abc-1', 'node-3'], ['empty', 'a node that it does not name']])
  assert.match(unreadable[0]?.faults ?? '', /spec\.weather/)
})

test('where NodeFences may not be read, none of them is called unreadable', async () => {
  const { incidents, unreadable } = await readCluster(withFences(undefined), 'holdfast-system')
  assert.equal([incidents.ok, unreadable], [false, []])
})

test('of a policy with faults the version in force is known, the last good one, beside its faults', async () => {
  const faulty = { metadata: { name: 'all' }, spec: { profile: 'no such' }, status: { inForce: { nodeDownPodDeletionPolicy: 'DeleteAllPods' } } }
  const get = async (path: string): Promise<Answer<unknown>> => (path.startsWith(policiesPath)
    ? { ok: true, value: { metadata: {}, items: [faulty, { ...faulty, status: {} }] } } : { ok: false, error: { kind: 'forbidden', message: 'no rights' } })
  const { policies } = await readCluster({ get } as Partial<Api> as Api, 'holdfast-system') // reading asks for nothing else
  assert.equal(policies.ok && policies.value.map((one) => [one.policy?.nodeDownPodDeletionPolicy, one.faults !== '']), [['DeleteAllPods', true], [undefined, true]])
})

const list = (items: readonly unknown[]): Answer<unknown> => ({ ok: true, value: { metadata: {}, items } })
const stork = (called: string, ...command: readonly string[]) => ({ metadata: { namespace: 'kube-system', name: called }, spec: { template: { spec: { containers: [{ command }] } } } })

test('Longhorn and Stork are known by their own objects, and where there are none there are none', async () => {
  const read = (settings: Answer<unknown>) => readCluster({
    get: async (path: string): Promise<Answer<unknown>> => (path.startsWith('/apis/longhorn.io/') ? settings : path.startsWith('/apis/apps/v1/deployments')
      ? list([stork('stork', '/stork', '--driver=pxd'), stork('quiet', '/stork', '--health-monitor=false'), stork('web', '/serve'), { metadata: { name: 'bare' } }])
      : { ok: false, error: { kind: 'forbidden', message: 'no rights' } }),
  } as Partial<Api> as Api, 'holdfast-system') // reading asks for nothing else
  const there = await read(list([{ metadata: { name: 'node-drain-policy' }, value: 'always-allow' }, { metadata: { name: 'node-down-pod-deletion-policy' }, value: 'delete-statefulset-pod' }]))
  assert.equal([there.longhorn, there.storks], [{ ok: true, value: 'delete-statefulset-pod' }, { ok: true, value: ['kube-system/stork'] }])
  assert.equal((await read({ ok: false, error: { kind: 'notFound', message: 'no such group' } })).longhorn, { ok: true, value: undefined })
  assert.not.ok((await read({ ok: false, error: { kind: 'forbidden', message: 'no rights' } })).longhorn.ok)
})

test('who has given up is read of the Events that say so', async () => {
  const { gaveUp } = await readCluster({
    get: async (path: string): Promise<Answer<unknown>> => (path.startsWith(`/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=reason%3D${gaveUpReason}&`)
      ? list([{ metadata: { name: 'e' }, regarding: { kind: 'Node', name: 'node-2' } }, { metadata: { name: 'f' }, regarding: { kind: 'Pod', name: 'db-0' } }, { metadata: { name: 'g' } }])
      : { ok: false, error: { kind: 'forbidden', message: 'no rights' } }),
  } as Partial<Api> as Api, 'holdfast-system') // reading asks for nothing else
  assert.equal(gaveUp, { ok: true, value: ['node-2'] })
})

test('how the agents keep their gates, and what must start before, is read of the manifests as they are applied', async () => {
  const agent = manifests({ ...usualValues, gateExemptNamespaces: ['cni'] }).find(({ kind }) => kind === 'DaemonSet')
  const mirror = { metadata: { name: 'etcd-1', annotations: { 'kubernetes.io/config.mirror': 'x', 'holdfast.dev/tolerate-gate': 'true' } } }
  const { daemonSets, staticPods } = await readCluster({
    get: async (path: string): Promise<Answer<unknown>> => (path.startsWith('/apis/apps/v1/daemonsets') ? list([agent, { metadata: { namespace: 'x', name: 'plain' } }])
      : path.startsWith('/api/v1/namespaces/kube-system/pods') ? list([mirror, { metadata: { name: 'no-mirror' } }]) : { ok: false, error: { kind: 'forbidden', message: 'no rights' } }),
  } as Partial<Api> as Api, 'holdfast-system') // reading asks for nothing else
  assert.equal(daemonSets.ok && daemonSets.value.map(({ name: called, critical, passes, gate }) => ({ called, critical, passes, gate })), [
    { called: 'holdfast-agents/holdfast-agent', critical: true, passes: true, gate: { on: true, exemptNamespaces: ['cni', 'holdfast-system', 'holdfast-agents'], fromBoot: false } },
    { called: 'x/plain', critical: false, passes: false, gate: undefined },
  ])
  assert.equal(staticPods, { ok: true, value: [{ name: 'kube-system/etcd-1', passes: true }] })
})

test.run()
