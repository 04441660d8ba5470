// What each of our accounts may do, and why: a right that no call needs is not here. Rights of one name only (our Lease, our
// certificate authority) are given by that name, except `create`, of which the API server does not know the name yet.
import { keptName } from '../coordinator/fence-kept.ts'
import { group } from '../coordinator/schema-kind.ts'
import type { Manifest } from './manifest.ts'
import { names, type Values } from './values.ts'

export interface Right {
  readonly group: string
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
  readonly only?: readonly string[]
  readonly because: string
}

/** Where an account has its rights: the whole cluster, or one namespace. */
export interface Grant {
  readonly account: 'coordinator' | 'agent'
  readonly namespace?: string
  readonly rights: readonly Right[]
}

export function grants(values: Values): readonly Grant[] {
  const { namespace, agentNamespace } = values
  const events: Right = { group: 'events.k8s.io', resources: ['events'], verbs: ['create', 'patch'], because: 'to say why, and to count what is said again' }
  return [
    {
      account: 'coordinator',
      rights: [
        { group: '', resources: ['nodes'], verbs: ['get', 'list', 'watch', 'patch'], because: 'to see them, to set and lift our taints, and to cordon one that is back where its operator wants that' },
        { group: '', resources: ['nodes/status'], verbs: ['patch'], because: 'to strike volumes of freed pods from what a dead node is said to use, and to say that a quarantined one is being worked on' },
        { group: '', resources: ['pods'], verbs: ['get', 'list', 'delete'], because: 'to list those of one node and to free them once it is proven unable to write' },
        { group: '', resources: ['pods/eviction'], verbs: ['create'], because: 'to ask those of a node that a person wants fenced to go in good order, while it answers' },
        { group: '', resources: ['pods/status'], verbs: ['patch'], because: 'to give the reason (DisruptionTarget) and the phase before the deletion, and to say that nothing runs of a pod that stays' },
        { group: '', resources: ['persistentvolumeclaims', 'persistentvolumes'], verbs: ['get'], because: 'to see which volumes a pod has, and of which driver' },
        { group: 'storage.k8s.io', resources: ['volumeattachments'], verbs: ['list', 'watch', 'delete'], because: 'to see volumes released, and to release those of a machine that was proven off once its Node object is gone' },
        { group: 'storage.k8s.io', resources: ['csidrivers'], verbs: ['list', 'watch'], because: 'to see which drivers refuse to detach what is in use' },
        { group: 'authentication.k8s.io', resources: ['tokenreviews'], verbs: ['create'], because: 'the API server alone says who an agent is' },
        { group, resources: ['holdfastpolicies'], verbs: ['list', 'watch'], because: 'what the operator wants' },
        { group, resources: ['holdfastpolicies/status'], verbs: ['update'], because: 'to tell its faults and keep the last good version' },
        { group, resources: ['noderemedies'], verbs: ['list', 'watch'], because: 'what the operator wants done about nodes that run and are not well' },
        { group, resources: ['nodefences'], verbs: ['get', 'list', 'watch', 'create', 'delete'], because: 'to open an incident, and to delete it long after its end' },
        { group, resources: ['nodefences/status'], verbs: ['update'], because: 'to write down each step before it is taken' },
        { group, resources: ['noderecords'], verbs: ['get', 'list', 'watch', 'create', 'update', 'delete'], because: 'what must outlive a leader, and not its node' },
      ],
    },
    {
      account: 'coordinator', namespace: 'kube-node-lease',
      rights: [{ group: 'coordination.k8s.io', resources: ['leases'], verbs: ['get'], because: 'a suspect node\'s Lease is read live' }],
    },
    // Where Events of things without a namespace are kept.
    { account: 'coordinator', namespace: 'default', rights: [events] },
    {
      account: 'coordinator', namespace,
      rights: [
        events,
        { group: 'coordination.k8s.io', resources: ['leases'], verbs: ['create'], because: 'the Lease of the leader, once' },
        { group: 'coordination.k8s.io', resources: ['leases'], verbs: ['get', 'update'], only: [names.coordinator], because: 'who leads' },
        { group: '', resources: ['configmaps'], verbs: ['list', 'watch'], because: 'fence paths, and the pause' },
        { group: '', resources: ['configmaps'], verbs: ['create'], because: 'the last good fence paths of nodes whose present ones have faults, once' },
        { group: '', resources: ['configmaps'], verbs: ['update'], only: [keptName], because: 'to keep them for the next replica' },
        { group: '', resources: ['secrets'], verbs: ['list', 'watch'], because: 'what devices ask for' },
        { group: '', resources: ['secrets'], verbs: ['create'], because: 'the keys of our own certificate authority, once' },
        { group: '', resources: ['secrets'], verbs: ['get', 'update'], only: [names.authority], because: 'to use and renew them' },
      ],
    },
    {
      account: 'coordinator', namespace: agentNamespace,
      rights: [
        { group: '', resources: ['pods'], verbs: ['list', 'watch'], because: 'a beat is believed only while its pod exists' },
        { group: '', resources: ['configmaps'], verbs: ['create'], because: 'the certificate that agents mount, once' },
        { group: '', resources: ['configmaps'], verbs: ['get', 'update'], only: [names.authority], because: 'to renew it' },
      ],
    },
    // RBAC cannot limit an account of many pods to each one's own node. Incidents are listed by their node's name, because their own
    // names, which `get` would need, bear a number that only whoever has seen the others knows.
    {
      account: 'agent',
      rights: [
        { group: '', resources: ['nodes'], verbs: ['get'], because: 'a cold start: whether its boot is the one on record, and not under quarantine' },
        { group, resources: ['nodefences'], verbs: ['list'], because: 'a cold start: whether an incident of its node is open' },
      ],
    },
  ]
}

export function rightsManifests(values: Values): readonly Manifest[] {
  return grants(values).flatMap((grant) => {
    const of = grant.account === 'coordinator' ? { name: names.coordinator, namespace: values.namespace } : { name: names.agent, namespace: values.agentNamespace }
    const where = grant.namespace === undefined ? {} : { namespace: grant.namespace }
    const kind = grant.namespace === undefined ? 'ClusterRole' : 'Role'
    const metadata = { name: of.name, ...where, labels: { 'app.kubernetes.io/name': of.name } }
    return [
      { apiVersion: 'rbac.authorization.k8s.io/v1', kind, metadata, rules: grant.rights.map(ruleOf) },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1', kind: `${kind}Binding`, metadata,
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: of.name },
        subjects: [{ kind: 'ServiceAccount', ...of }],
      },
    ]
  })
}

function ruleOf({ group: apiGroup, resources, verbs, only }: Right): object {
  return { apiGroups: [apiGroup], resources, verbs, ...(only === undefined ? {} : { resourceNames: only }) }
}
