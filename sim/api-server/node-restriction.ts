// What a kubelet's identity may do: the Node authorizer (what it may ask for at all) and the NodeRestriction admission (what
// it may write). A node may say what it likes of itself in its status, but not take off its own taints.
import type { Asked } from './asked.ts'
import { verbOf } from './asked.ts'
import { collectionOf } from './ground.ts'
import type { Ground } from './ground.ts'
import { at, same, textAt } from './json.ts'
import type { Resource } from './json.ts'
import { storeKey } from './kind.ts'
import { forbidden } from './refusal.ts'
import type { Refusal } from './refusal.ts'
import type { User } from './user.ts'

export function nodeOf(user: User): string | undefined {
  return user.groups.includes('system:nodes') && user.name.startsWith('system:node:') ? user.name.slice('system:node:'.length) : undefined
}

/** Before the request is looked at any closer. */
export function nodeMayNot(ground: Ground, asked: Asked): Refusal | undefined {
  const node = nodeOf(asked.user)
  if (node === undefined) return undefined
  const why = verdict(ground, asked, node)
  if (why === undefined) return undefined
  const { kind, namespace, name, subresource } = asked.target
  if (why.admission) return forbidden(kind, name, why.sentence)
  const scope = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`
  const what = subresource === '' ? kind.plural : `${kind.plural}/${subresource}`
  return forbidden(kind, name, `User "${asked.user.name}" cannot ${verbOf(asked)} resource "${what}" in API group "${kind.group}" ${scope}${why.sentence === '' ? '' : `: ${why.sentence}`}`)
}

interface Why { readonly sentence: string; readonly admission: boolean }

/** An empty sentence: the role simply does not name it. */
const unauthorised = (sentence: string): Why => ({ sentence, admission: false })
const unadmitted = (sentence: string): Why => ({ sentence, admission: true })

function verdict(ground: Ground, asked: Asked, node: string): Why | undefined {
  const verb = verbOf(asked)
  const { name, namespace } = asked.target
  const reads = verb === 'get' || verb === 'list' || verb === 'watch'
  switch (asked.target.kind.collection) {
    case 'nodes':
      if (verb === 'delete' || verb === 'deletecollection') return unauthorised('')
      if (!reads) return verb === 'create' || name === node ? undefined : unadmitted(`node "${node}" is not allowed to modify node "${name}"`)
      return name === node || selects(asked, 'metadata.name', node) ? undefined : unauthorised(`node '${node}' cannot read ${name === '' ? 'all nodes' : `'${name}'`}, only its own Node object`)
    case 'pods':
      return podVerdict(ground, asked, node, reads)
    case 'leases.coordination.k8s.io':
      if (namespace !== 'kube-node-lease') return unauthorised(`can only access leases in the "kube-node-lease" system namespace`)
      return verb === 'create' || name === node ? undefined : unauthorised('can only access node lease with the same name as the requesting node')
    case 'csinodes.storage.k8s.io':
      return verb === 'create' || name === node ? undefined : unauthorised('can only access CSINode with the same name as the requesting node')
    case 'events':
      return reads || verb === 'delete' || verb === 'deletecollection' ? unauthorised('nodes may only write events') : undefined
    case 'volumeattachments.storage.k8s.io': {
      if (verb !== 'get') return unauthorised('')
      const attachment = ground.store.find('volumeattachments.storage.k8s.io')?.read(name)
      return textAt(attachment, 'spec', 'nodeName') === node ? undefined : unauthorised(`no relationship found between node '${node}' and this object`)
    }
    case 'serviceaccounts':
      return asked.target.subresource === 'token' && verb === 'create' ? undefined : unauthorised('nodes may only request tokens')
    case 'csidrivers.storage.k8s.io':
    case 'services':
      return reads ? undefined : unauthorised('read only')
    case 'configmaps':
    case 'secrets':
    case 'persistentvolumes':
    case 'persistentvolumeclaims':
      // The real one allows what a pod of this node refers to; nobody here needs the difference.
      return verb === 'get' ? undefined : unauthorised(`can only read resources of this type that pods of node '${node}' refer to`)
    case '':
      return undefined
  }
  return unauthorised(`no rule allows it to node '${node}'`)
}

function podVerdict(ground: Ground, asked: Asked, node: string, reads: boolean): Why | undefined {
  const { kind, namespace, name, subresource } = asked.target
  const verb = verbOf(asked)
  if (verb === 'list' || verb === 'watch') return selects(asked, 'spec.nodeName', node) ? undefined : unauthorised(`can only list/watch pods with spec.nodeName field selector`)
  if (verb === 'create' && subresource === '') return undefined
  const pod = collectionOf(ground, kind).read(storeKey(namespace, name))
  const own = pod !== undefined && textAt(pod, 'spec', 'nodeName') === node
  if (reads) return own ? undefined : unauthorised(`no relationship found between node '${node}' and this object`)
  if (verb === 'delete') return own || pod === undefined ? undefined : unadmitted(`node "${node}" can only delete pods with spec.nodeName set to itself`)
  if (subresource === 'status') return own || pod === undefined ? undefined : unadmitted(`node "${node}" can only update pod status for pods with spec.nodeName set to itself`)
  if (subresource === 'eviction') return own || pod === undefined ? undefined : unadmitted(`node "${node}" can only evict pods with spec.nodeName set to itself`)
  return unauthorised('nodes may not change pods')
}

function selects(asked: Asked, field: string, node: string): boolean {
  return (asked.call.query.get('fieldSelector') ?? '').split(',').some((part) => part === `${field}=${node}` || part === `${field}==${node}`)
}

/** What a write may say, once it is known. */
export function admitNode(asked: Asked): (next: Resource, old: Resource | undefined) => Refusal | undefined {
  const node = nodeOf(asked.user)
  if (node === undefined) return () => undefined
  const { kind } = asked.target
  return (next, old) => {
    const name = next.metadata.name ?? ''
    const why = kind.collection === 'nodes' ? nodeFault(node, name, next, old) : old === undefined ? creationFault(kind.collection, node, name, next) : undefined
    return why === undefined ? undefined : forbidden(kind, name, why)
  }
}

function nodeFault(node: string, name: string, next: Resource, old: Resource | undefined): string | undefined {
  if (name !== node) return `node "${node}" is not allowed to modify node "${name}"`
  if (old === undefined) return undefined
  if (!same(at(next, 'spec', 'taints') ?? [], at(old, 'spec', 'taints') ?? [])) return `node "${node}" is not allowed to modify taints`
  if (!same(next.metadata.ownerReferences ?? [], old.metadata.ownerReferences ?? [])) return `node "${node}" is not allowed to modify ownerReferences`
  const labels = changedLabels(next, old).filter((label) => label.startsWith('node-restriction.kubernetes.io/'))
  return labels.length === 0 ? undefined : `is not allowed to modify labels: ${labels.join(', ')}`
}

function changedLabels(next: Resource, old: Resource): string[] {
  const before = old.metadata.labels ?? {}
  const after = next.metadata.labels ?? {}
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((key) => before[key] !== after[key])
}

function creationFault(collection: string, node: string, name: string, next: Resource): string | undefined {
  if (collection === 'pods') {
    const mirror = next.metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined
    if (!mirror) return `pod does not have "kubernetes.io/config.mirror" annotation, node "${node}" can only create mirror pods`
    return textAt(next, 'spec', 'nodeName') === node ? undefined : `node "${node}" can only create pods with spec.nodeName set to itself`
  }
  if (collection === 'leases.coordination.k8s.io' && name !== node) return 'can only access node lease with the same name as the requesting node'
  if (collection === 'csinodes.storage.k8s.io' && name !== node) return 'can only access CSINode with the same name as the requesting node'
  return undefined
}
