// Everything that is applied to a cluster, in the order in which it must be.
import { admissionManifests } from './admission.ts'
import { agentManifests } from './agent.ts'
import { coordinatorManifests } from './coordinator.ts'
import { customResourceDefinitions } from './crd.ts'
import type { Manifest } from './manifest.ts'
import { rightsManifests } from './rights.ts'
import type { Values } from './values.ts'

export function manifests(values: Values): readonly Manifest[] {
  return [
    namespace(values.namespace, 'restricted'),
    namespace(values.agentNamespace, 'privileged'),
    ...customResourceDefinitions(),
    ...admissionManifests(values),
    ...rightsManifests(values),
    ...coordinatorManifests(values),
    ...agentManifests(values),
  ]
}

/** Two namespaces, so that the host folders of the agents do not loosen what is allowed beside the devices' passwords. */
function namespace(name: string, level: 'restricted' | 'privileged'): Manifest {
  const security = Object.fromEntries(['enforce', 'audit', 'warn'].map((mode) => [`pod-security.kubernetes.io/${mode}`, level]))
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { 'app.kubernetes.io/name': 'holdfast', ...security } } }
}
