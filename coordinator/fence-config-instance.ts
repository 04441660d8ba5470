// What a Node's spec.providerID says of where its machine runs: the built-in method that switches that instance. The providerID
// is the Node's own claim, so such a method is `claimed`: nothing is ordered by it until the cloud's own record was seen to bear
// the address that the node's beats come from. Only programs that tell addresses can be used so.
import type { NodeName } from '../core/model.ts'
import type { MethodSpec } from './fence-config-method.ts'

/** A Node's spec.providerID, with the other Nodes that name the same instance. */
export interface Claim {
  readonly providerID: string
  readonly twins: readonly NodeName[]
}

export type Instance = { readonly spec: MethodSpec } | { readonly refused: string }

export const restartInstance = 'restart-instance'

const forms: readonly (readonly [RegExp, string])[] = [
  [/^aws:\/\/\/[a-z0-9-]+\/i-[0-9a-f]{8,17}$/, 'aws'],
  [/^gce:\/\/[a-z0-9.:-]+\/[a-z0-9-]+\/[a-z0-9-]+$/, 'gce'],
  [/^azure:\/\/\/subscriptions\/[A-Za-z0-9-]+\/resourceGroups\/[\w()-][\w.()-]*\/providers\/Microsoft\.Compute\/(virtualMachineScaleSets\/[A-Za-z0-9][\w.-]*\/)?virtualMachines\/[A-Za-z0-9][\w.-]*$/i, 'azure'],
  [/^openstack:\/\/[^/\s,]*\/[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/, 'openstack'],
]

/** Undefined: it names no instance of a cloud whose program can be used so. */
export function instanceOf(claim: Claim | undefined): Instance | undefined {
  const agent = forms.find(([form]) => form.test(claim?.providerID ?? ''))?.[1]
  if (claim === undefined || agent === undefined) return undefined
  const { providerID, twins } = claim
  if (twins.length > 0) return { refused: `${providerID} is named by ${twins.join(', ')} too: whose machine it is, nobody can tell` }
  return {
    spec: {
      name: restartInstance, action: 'off', agent, outlet: JSON.stringify([agent, providerID]), device: `${agent} ${providerID}`, reach: agent,
      parameters: { plug: providerID }, orderWithin: 180_000, statusWithin: 10_000, late: 60_000, claimed: true,
    },
  }
}
