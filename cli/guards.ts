// The admission policies that come with the product, as the API server has them. One without a binding that denies guards nothing.
import type { KubeObject } from '../coordinator/api.ts'

/** By name. */
export const guardNames = [
  'holdfast-taints', 'holdfast-coordinator-nodes', 'holdfast-coordinator-node-status', 'holdfast-coordinator-pod-status', 'holdfast-coordinator-pod-deletion',
  'holdfast-coordinator-attachment-deletion', 'holdfast-coordinator-eviction', 'holdfast-node-fences', 'holdfast-coordinator-fence-deletion', 'holdfast-records', 'holdfast-fence-paths',
] as const

const group = '/apis/admissionregistration.k8s.io/v1'
const ours = '?labelSelector=app.kubernetes.io%2Fname%3Dholdfast'
export const guardsPath = `${group}/validatingadmissionpolicies${ours}`
export const bindingsPath = `${group}/validatingadmissionpolicybindings${ours}`

export const guardOf = ({ metadata }: KubeObject): string => metadata.name

/** Undefined: it warns, or audits, and lets pass. */
export function denyingOf(object: KubeObject): string | undefined {
  const { spec } = object as KubeObject & { spec?: { policyName?: string; validationActions?: string[] } } // every field of it is optional here
  return spec?.validationActions?.includes('Deny') === true ? spec.policyName : undefined
}
