import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { grants, rightsManifests, type Right } from '../../deploy/rights.ts'
import { usualValues } from '../../deploy/values.ts'

const test = suite('rights')

const system = usualValues.namespace
const agents = usualValues.agentNamespace
const ours = 'holdfast.dev'

/** verb, resource, group, namespace (none: of the cluster, or all namespaces), name. */
type Call = readonly [verb: string, resource: string, group: string, namespace?: string, name?: string]

/** What the coordinator's code asks of the API server. */
const calls: readonly Call[] = [
  ['list', 'nodes', ''], ['watch', 'nodes', ''], ['get', 'nodes', ''], ['patch', 'nodes', ''], ['patch', 'nodes/status', ''],
  ['list', 'pods', ''], ['get', 'pods', '', 'shop', 'db-0'], ['get', 'persistentvolumeclaims', '', 'shop', 'data-db-0'], ['get', 'persistentvolumes', ''], ['delete', 'pods', '', 'shop', 'db-0'], ['patch', 'pods/status', '', 'shop', 'db-0'], ['create', 'pods/eviction', '', 'shop', 'db-0'],
  ['list', 'volumeattachments', 'storage.k8s.io'], ['watch', 'volumeattachments', 'storage.k8s.io'], ['delete', 'volumeattachments', 'storage.k8s.io'], ['list', 'csidrivers', 'storage.k8s.io'], ['watch', 'csidrivers', 'storage.k8s.io'],
  ['create', 'tokenreviews', 'authentication.k8s.io'],
  ['list', 'noderemedies', ours], ['watch', 'noderemedies', ours],
  ['list', 'holdfastpolicies', ours], ['watch', 'holdfastpolicies', ours], ['update', 'holdfastpolicies/status', ours],
  ['list', 'nodefences', ours], ['watch', 'nodefences', ours], ['get', 'nodefences', ours], ['create', 'nodefences', ours], ['delete', 'nodefences', ours], ['update', 'nodefences/status', ours],
  ['list', 'noderecords', ours], ['watch', 'noderecords', ours], ['get', 'noderecords', ours], ['create', 'noderecords', ours], ['update', 'noderecords', ours], ['delete', 'noderecords', ours],
  ['get', 'leases', 'coordination.k8s.io', 'kube-node-lease', 'node-1'],
  ['create', 'leases', 'coordination.k8s.io', system], ['get', 'leases', 'coordination.k8s.io', system, 'holdfast-coordinator'],
  ['update', 'leases', 'coordination.k8s.io', system, 'holdfast-coordinator'],
  ['create', 'events', 'events.k8s.io', 'default'], ['patch', 'events', 'events.k8s.io', 'default'],
  ['create', 'events', 'events.k8s.io', system], ['patch', 'events', 'events.k8s.io', system],
  ['list', 'configmaps', '', system], ['watch', 'configmaps', '', system], ['create', 'configmaps', '', system], ['update', 'configmaps', '', system, 'holdfast-fence-in-force'],
  ['list', 'secrets', '', system], ['watch', 'secrets', '', system], ['create', 'secrets', '', system],
  ['get', 'secrets', '', system, 'holdfast-authority'], ['update', 'secrets', '', system, 'holdfast-authority'],
  ['list', 'pods', '', agents], ['watch', 'pods', '', agents],
  ['create', 'configmaps', '', agents], ['get', 'configmaps', '', agents, 'holdfast-authority'], ['update', 'configmaps', '', agents, 'holdfast-authority'],
]

const covers = (right: Right, [verb, resource, group, , name]: Call): boolean =>
  right.group === group && right.resources.includes(resource) && right.verbs.includes(verb)
  && (right.only === undefined || (name !== undefined && right.only.includes(name)))

function allowed(account: 'coordinator' | 'agent', call: Call): boolean {
  return grants(usualValues).some((grant) => grant.account === account && (grant.namespace === undefined || grant.namespace === call[3])
    && grant.rights.some((right) => covers(right, call)))
}

test('the coordinator may do what its code asks', () => {
  for (const call of calls) assert.ok(allowed('coordinator', call), call.join(' '))
})

test('no right is there that no call needs', () => {
  for (const { namespace, rights } of grants(usualValues).filter(({ account }) => account === 'coordinator')) {
    for (const right of rights) for (const resource of right.resources) for (const verb of right.verbs) {
      const needed = calls.some((call) => call[0] === verb && call[1] === resource && (namespace === undefined || call[3] === namespace) && covers(right, call))
      assert.ok(needed, `${verb} ${resource} in ${namespace ?? 'the cluster'}`)
    }
  }
})

for (const [says, call] of [
  ['delete a Node', ['delete', 'nodes', '']],
  ['change a volume', ['patch', 'persistentvolumes', '']],
  ['change a VolumeAttachment', ['patch', 'volumeattachments', 'storage.k8s.io']],
  ['say that a volume is attached', ['create', 'volumeattachments', 'storage.k8s.io']],
  ['watch the pods of the whole cluster', ['watch', 'pods', '']],
  ['create a pod', ['create', 'pods', '', 'shop']],
  ['run something in a pod', ['create', 'pods/exec', '', 'shop', 'db-0']],
  ['read a Secret of another namespace', ['get', 'secrets', '', 'shop', 'db']],
  ['list the Secrets of another namespace', ['list', 'secrets', '', agents]],
  ['write a Secret that is not its own', ['update', 'secrets', '', system, 'redfish']],
  ['write a fence ConfigMap', ['update', 'configmaps', '', system, 'fence-config-default']],
  ['delete what it keeps of fence ConfigMaps', ['delete', 'configmaps', '', system, 'holdfast-fence-in-force']],
  ['move a node\'s Lease', ['update', 'leases', 'coordination.k8s.io', 'kube-node-lease', 'node-1']],
  ['change what made an incident', ['update', 'nodefences', ours]],
  ['delete a policy', ['delete', 'holdfastpolicies', ours]],
  ['change a policy', ['update', 'holdfastpolicies', ours]],
] as const satisfies readonly (readonly [string, Call])[]) {
  test(`the coordinator may not ${says}`, () => assert.not.ok(allowed('coordinator', call)))
}

test('the agent may read Nodes by their names and list incidents, and nothing else', () => {
  const [grant, ...more] = grants(usualValues).filter(({ account }) => account === 'agent')
  assert.equal(more, [])
  assert.equal(grant?.rights.map(({ group, resources, verbs }) => `${verbs.join()} ${resources.join()} ${group}`), ['get nodes ', `list nodefences ${ours}`])
})

test('no right is given by a star, and each says why', () => {
  for (const { rights } of grants(usualValues)) for (const right of rights) {
    assert.not.match([right.group, ...right.resources, ...right.verbs].join(), /\*/)
    assert.ok(right.because.length > 5)
  }
})

test('every role is bound to the account it is for, where it is for', () => {
  const made = rightsManifests(usualValues)
  const bindings = made.filter((manifest) => manifest.kind.endsWith('Binding'))
  assert.is(bindings.length * 2, made.length)
  for (const binding of bindings) {
    const account = binding.metadata.name === 'holdfast-agent' ? { name: 'holdfast-agent', namespace: agents } : { name: 'holdfast-coordinator', namespace: system }
    assert.equal(Object(binding['subjects'])[0], { kind: 'ServiceAccount', ...account })
    const { kind, name } = Object(binding['roleRef'])
    assert.ok(made.some((role) => role.kind === kind && role.metadata.name === name && role.metadata.namespace === binding.metadata.namespace))
  }
})

test.run()
