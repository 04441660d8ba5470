// Fence programs that switch machines of a cloud: what tells one machine's place from another's in their parameters, and which
// variables of a pod's environment are their cloud's.

export interface CloudProgram {
  /** Parameters that, with the plug, name the machine. Where there is an address of its own (vCenter), that stands before them. */
  readonly place: readonly string[]
  /** Variables that a cloud itself, or an operator for it, gives to a pod. */
  readonly variables: RegExp
  /** What of a Secret of credentials it is told, parameters by their names. Of `oneOf` the first set that is whole, and what is there of `also`. */
  readonly credentials: { readonly oneOf: readonly (readonly string[])[]; readonly also: readonly string[] }
  /** Why it ends no machine for good, in half a sentence. Undefined: it can, by terminate=1. */
  readonly keeps?: string
}

const forgets = (cloud: string) => `${cloud} forgets a machine that was deleted, and what is not found is not off`

const aws: CloudProgram = { place: ['region', 'endpoint'], variables: /^AWS_/, credentials: { oneOf: [['access_key', 'secret_key']], also: ['session_token'] } }
const gce: CloudProgram = { place: ['project', 'zone', 'endpoint'], variables: /^(GOOGLE_|GCE_METADATA_)/, credentials: { oneOf: [['serviceaccount']], also: [] }, keeps: forgets('Compute Engine') }
const azure: CloudProgram = { place: ['subscriptionid', 'resourcegroup', 'endpoint'], variables: /^AZURE_/, credentials: { oneOf: [['username', 'password', 'tenantId']], also: [] }, keeps: forgets('Azure') }
const openstack: CloudProgram = {
  place: ['auth_url', 'project_name', 'region_name', 'compute_url'], variables: /^OS_/,
  credentials: {
    oneOf: [['application_credential_id', 'application_credential_secret'], ['username', 'password', 'project_name']],
    also: ['auth_url', 'user_domain_name', 'project_domain_name', 'ca'],
  },
  keeps: 'Nova forgets a server that was deleted, also where its hypervisor does not answer and it runs on',
}
const vmware: CloudProgram = { place: [], variables: /^$/, credentials: { oneOf: [['ip', 'username', 'password']], also: ['ca', 'certificate_sha256'] }, keeps: forgets('vCenter') }

export const cloudPrograms: ReadonlyMap<string, CloudProgram> = new Map([
  ['aws', aws], ['fence_aws', aws], ['gce', gce], ['fence_gce', gce], ['azure', azure], ['fence_azure_arm', azure],
  ['openstack', openstack], ['fence_openstack', openstack], ['vmware', vmware], ['fence_vmware_rest', vmware], ['fence_vmware_soap', vmware],
])
