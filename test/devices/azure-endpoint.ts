// Azure's resource manager and its login of our own, as far as a machine is stopped and started, with one behind it. That they speak
// as Microsoft's do is shown by Microsoft's own libraries for Python, in fence_azure_arm, driven by them under the real names.
import { randomUUID } from 'node:crypto'
import { startCloudFront, type Call, type CloudFront, type Reply } from './cloud-front.ts'
import type { Machine } from './machine.ts'
import { secret, type Parameters, type Rack } from './rack.ts'

export interface AzureEndpoint {
  readonly front: CloudFront
  readonly login: Parameters
  /** What it tells of the machine, whatever that does. */
  says: readonly string[] | undefined
}

const [login, manager] = ['login.microsoftonline.com', 'management.azure.com']
const [tenant, subscription, group, name] = ['8f3c1f0e-0000-4000-8000-00000000000a', '8f3c1f0e-0000-4000-8000-00000000000b', 'nodes', 'node-1']
const collection = `/subscriptions/${subscription}/resourceGroups/${group}/providers/Microsoft.Compute/virtualMachines`
const token = 'eyJ-token-of-the-application'

interface Operation {
  readonly kind: string
  done: boolean
}

export async function startAzure(rack: Rack, machine: Pick<Machine, 'uuid' | 'feed'>): Promise<AzureEndpoint> {
  const own: { says: readonly string[] | undefined } = { says: undefined }
  const operations = new Map<string, Operation>()
  const told = () => {
    const underWay = [...operations.values()].find(({ done }) => !done)
    const power = underWay === undefined ? (machine.feed.on() ? 'running' : 'stopped') : underWay.kind === 'start' ? 'starting' : 'stopping'
    const codes = own.says ?? [`PowerState/${power}`]
    return {
      id: `${collection}/${name}`, name, location: 'westeurope', type: 'Microsoft.Compute/virtualMachines',
      properties: { vmId: machine.uuid, provisioningState: 'Succeeded', instanceView: { statuses: ['ProvisioningState/succeeded', ...codes].map((code) => ({ code, level: 'Info' })) } },
    }
  }
  const order = (kind: string): Reply => {
    if (front.fault === 'forbidden') return refusal(403, 'AuthorizationFailed', `The client does not have authorization to perform action 'Microsoft.Compute/virtualMachines/${kind}/action'`)
    const id = randomUUID()
    const operation: Operation = { kind, done: false }
    operations.set(id, operation)
    void front.carryOut(machine.feed, kind === 'start').then(() => { operation.done = true })
    const at = `https://${manager}/subscriptions/${subscription}/providers/Microsoft.Compute/locations/westeurope/operations/${id}?api-version=2024-07-01`
    return { status: 202, headers: { 'Azure-AsyncOperation': at, Location: at, 'Retry-After': '1' } }
  }
  const managed = ({ path, method }: Call): Reply => {
    const operation = operations.get(/\/operations\/([^/]+)$/.exec(path)?.[1] ?? '')
    if (operation !== undefined) return { status: 200, body: { status: operation.done ? 'Succeeded' : 'InProgress' }, headers: { 'Retry-After': '1' } }
    if (path === collection) return { status: 200, body: { value: [told()] } }
    const [, wanted, action] = new RegExp(`^${collection}/([^/]+)(?:/(powerOff|deallocate|start))?$`).exec(path) ?? []
    if (wanted !== name) return refusal(404, 'ResourceNotFound', `The Resource 'Microsoft.Compute/virtualMachines/${wanted}' under resource group '${group}' was not found.`)
    return method === 'POST' ? order(action ?? '') : { status: 200, body: told() }
  }
  const front = await startCloudFront(rack, 'azure', [login, manager], (call) => {
    if (call.host === login) return loggedIn(call)
    return call.authorization === `Bearer ${token}` ? managed(call) : refusal(401, 'InvalidAuthenticationToken', 'The access token is invalid.')
  })
  front.wrap('azure')
  front.wrapOthers('fence_azure_arm', 'azure')
  return Object.assign(own, { front, login: { tenantId: tenant, subscriptionId: subscription, resourceGroup: group, username: 'application', password: secret, plug: name } })
}

function loggedIn({ path, body }: Call): Reply {
  const base = `https://${login}/${tenant}`
  // What Microsoft's library asks before it trusts an address with a secret.
  if (path.endsWith('/discovery/instance')) {
    return { status: 200, body: { tenant_discovery_endpoint: `${base}/v2.0/.well-known/openid-configuration`, metadata: [{ preferred_network: login, preferred_cache: login, aliases: [login] }] } }
  }
  if (path.endsWith('/.well-known/openid-configuration')) {
    return { status: 200, body: { token_endpoint: `${base}/oauth2/v2.0/token`, authorization_endpoint: `${base}/oauth2/v2.0/authorize`, issuer: `${base}/v2.0`, device_authorization_endpoint: `${base}/oauth2/v2.0/devicecode` } }
  }
  if (path !== `/${tenant}/oauth2/v2.0/token`) return { status: 404, body: {} }
  if (new URLSearchParams(body).get('client_secret') !== secret) return { status: 401, body: { error: 'invalid_client', error_description: 'AADSTS7000215: Invalid client secret provided.' } }
  return { status: 200, body: { token_type: 'Bearer', expires_in: 3_599, ext_expires_in: 3_599, access_token: token } }
}

function refusal(status: number, code: string, message: string): Reply {
  return { status, body: { error: { code, message } } }
}
