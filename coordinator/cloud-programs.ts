// Fence programs that switch machines of a cloud: what tells one machine's place from another's in their parameters, and which
// variables of a pod's environment are their cloud's.

export interface CloudProgram {
  /** Parameters that, with the plug, name the machine. Where there is an address of its own (vCenter), that stands before them. */
  readonly place: readonly string[]
  /** Variables that a cloud itself, or an operator for it, gives to a pod. */
  readonly variables: RegExp
}

const aws: CloudProgram = { place: ['region', 'endpoint'], variables: /^AWS_/ }
const gce: CloudProgram = { place: ['project', 'zone', 'endpoint'], variables: /^(GOOGLE_|GCE_METADATA_)/ }
const azure: CloudProgram = { place: ['subscriptionid', 'resourcegroup', 'endpoint'], variables: /^AZURE_/ }
const openstack: CloudProgram = { place: ['auth_url', 'project_name', 'region_name', 'compute_url'], variables: /^OS_/ }
const vmware: CloudProgram = { place: [], variables: /^$/ }

export const cloudPrograms: ReadonlyMap<string, CloudProgram> = new Map([
  ['aws', aws], ['fence_aws', aws], ['gce', gce], ['fence_gce', gce], ['azure', azure], ['fence_azure_arm', azure],
  ['openstack', openstack], ['fence_openstack', openstack], ['vmware', vmware], ['fence_vmware_rest', vmware], ['fence_vmware_soap', vmware],
])
