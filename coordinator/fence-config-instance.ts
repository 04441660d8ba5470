// What a Node's spec.providerID says of where its machine runs: the built-in method that switches that instance. The providerID
// is the Node's own claim, so such a method is `claimed`: nothing is ordered by it until the cloud's own record was seen to bear
// the address that the node's beats come from. Only programs that tell addresses can be used so.
import { machineKey } from '../core/machine-id.ts'
import type { NodeName } from '../core/model.ts'
import { policyOf, type Policy } from '../core/policy.ts'
import { cloudPrograms } from './cloud-programs.ts'
import type { ConfiguredParameters, SecretLookup } from './fence-config-secret.ts'
import type { Described, MethodSpec } from './fence-config-method.ts'

/** A Node's spec.providerID, with the other Nodes that name the same instance. */
export interface Claim {
  readonly providerID: string
  readonly twins: readonly NodeName[]
  readonly credentials?: Credentials
}

/** The Secret that the Node's policy names for the programs of clouds. */
export interface Credentials {
  readonly policy: string
  readonly secret: string
}

/** `disputed`: not only is it not to be had now, what it was before is wrong too. */
export type Instance = { readonly spec: MethodSpec } | { readonly refused: string; readonly disputed: boolean }

export const restartInstance = 'restart-instance'
export const terminateInstance = 'terminate-instance'

/** A machine's UUID as vSphere writes it, or as its own firmware does: one machine either way. */
const vsphereForm = /^vsphere:\/\/([\da-f]{8}-([\da-f]{4}-){3}[\da-f]{12})$/i

const forms: readonly (readonly [RegExp, string])[] = [
  [/^aws:\/\/\/[a-z0-9-]+\/i-[0-9a-f]{8,17}$/, 'aws'],
  [/^gce:\/\/[a-z0-9.:-]+\/[a-z0-9-]+\/[a-z0-9-]+$/, 'gce'],
  [/^azure:\/\/\/subscriptions\/[A-Za-z0-9-]+\/resourceGroups\/[\w()-][\w.()-]*\/providers\/Microsoft\.Compute\/(virtualMachineScaleSets\/[A-Za-z0-9][\w.-]*\/)?virtualMachines\/[A-Za-z0-9][\w.-]*$/i, 'azure'],
  [/^openstack:\/\/[^/\s,]*\/[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/, 'openstack'],
  [vsphereForm, 'vmware'],
]

/** One for all that name the same instance: two Nodes need not write it alike. */
export function instanceKey(providerID: string): string {
  const uuid = vsphereForm.exec(providerID)?.[1]
  if (uuid !== undefined) return `vsphere://${machineKey(uuid)}`
  // Zones and regions that stand before an id make no other instance of it.
  const [, cloud, id] = /^(aws|openstack):\/\/.*\/([^/]+)$/.exec(providerID) ?? []
  if (cloud !== undefined && id !== undefined) return `${cloud}://${id}`
  return providerID.startsWith('azure:') ? providerID.toLowerCase() : providerID
}

/** Of the one policy that the node has. */
export function credentialsOf(labels: Readonly<Record<string, string>>, policies: readonly Policy[]): Credentials | undefined {
  const chosen = policyOf({ labels }, policies)
  return 'policy' in chosen && chosen.policy.cloudCredentials !== undefined ? { policy: chosen.policy.name, secret: chosen.policy.cloudCredentials } : undefined
}

/** Undefined: it names no instance of a cloud whose program can be used so. */
export function instanceOf(claim: Claim | undefined, lookup: SecretLookup): Instance | undefined {
  const agent = forms.find(([form]) => form.test(claim?.providerID ?? ''))?.[1]
  if (claim === undefined || agent === undefined) return undefined
  const { providerID, twins, credentials } = claim
  // Asked before the credentials: a node that has lost them would go on with what was in force before, and strike one of the two.
  if (twins.length > 0) return { refused: `${providerID} is named by ${twins.join(', ')} too: whose machine it is, nobody can tell`, disputed: true }
  // It names a machine, and no vCenter: that stands beside the password.
  if (agent === 'vmware' && credentials === undefined) return undefined
  const told = credentials === undefined ? {} : toldOf(agent, credentials, lookup)
  if (typeof told === 'string') return { refused: told, disputed: false }
  return {
    spec: {
      name: restartInstance, action: 'off', agent, outlet: JSON.stringify([agent, providerID]), device: `${agent} ${providerID}`, reach: agent,
      parameters: { plug: providerID, ...told }, orderWithin: 180_000, statusWithin: 10_000, late: 60_000, claimed: true,
    },
  }
}

/** What of the Secret the program is told, or what is wrong with it, in a sentence that repeats no value. */
function toldOf(agent: string, { policy, secret }: Credentials, lookup: SecretLookup): ConfiguredParameters | string {
  const { oneOf = [], also = [] } = cloudPrograms.get(agent)?.credentials ?? {}
  const there = new Set([...oneOf.flat(), ...also].filter((key) => lookup({ secret, key }) !== undefined))
  const set = oneOf.find((keys) => keys.every((key) => there.has(key)))
  if (set !== undefined) return Object.fromEntries([...set, ...also.filter((key) => there.has(key))].map((key) => [key, { secret, key }]))
  const wanted = oneOf.map((keys) => keys.join(', ')).join('; or ')
  const at = `HoldfastPolicy ${policy}, spec.cloudCredentials: Secret ${secret}`
  if (there.size === 0) return `${at} is not there, or does not bear the label holdfast.dev/fence-secret, or has nothing that ${agent} knows: it needs ${wanted}`
  const [nearest = []] = oneOf.toSorted((one, other) => lackingOf(one).length - lackingOf(other).length)
  return `${at} lacks ${lackingOf(nearest).join(', ')}: ${agent} needs ${wanted}`

  function lackingOf(keys: readonly string[]): readonly string[] {
    return keys.filter((key) => !there.has(key))
  }
}

/** The same instance, ended for good; or why its program cannot. Never taken unless a step names it. */
export function terminating({ spec }: { readonly spec: MethodSpec }, described: Described): MethodSpec | string {
  const { agent, parameters } = spec
  const keeps = cloudPrograms.get(agent)?.keeps
  if (keeps !== undefined) return `${terminateInstance} is not for ${agent}: ${keeps}`
  if (described(agent)?.has('terminate') === false) return `${terminateInstance}: this ${agent} offers no terminate=`
  return { ...spec, name: terminateInstance, parameters: { ...parameters, terminate: '1' }, ends: true }
}
