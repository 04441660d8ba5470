// Who asks: an application with its secret, the pod's own identity (workload identity), or that of the machine this runs on.
import { Failure, environment, neverPrint, type Given } from '../contract.ts'
import { contentOf, excerpt, textOf, type Answer, type Web } from '../https.ts'

export interface Region {
  /** Of the resource manager, without a slash at its end. */
  readonly endpoint: string
  readonly authority: string
}

const clouds: ReadonlyMap<string, Region> = new Map([
  ['public', { endpoint: 'https://management.azure.com', authority: 'https://login.microsoftonline.com' }],
  ['usgov', { endpoint: 'https://management.usgovcloudapi.net', authority: 'https://login.microsoftonline.us' }],
  ['china', { endpoint: 'https://management.chinacloudapi.cn', authority: 'https://login.chinacloudapi.cn' }],
])

export function regionOf(given: Given): Region {
  const region = clouds.get(given.text('cloud').toLowerCase())
  if (region === undefined) throw new Failure('config', `cloud= is none of ${[...clouds.keys()].join(', ')}`)
  const [endpoint, authority] = [textOf(given.optional('endpoint')), textOf(given.optional('authority')) ?? textOf(environment()['AZURE_AUTHORITY_HOST'])]
  return { endpoint: trimmed(endpoint ?? region.endpoint), authority: trimmed(authority ?? region.authority) }
}

function trimmed(url: string): string {
  return url.replace(/\/+$/, '')
}

export async function tokenFor(region: Region, given: Given, web: Web): Promise<string> {
  const client = textOf(given.optional('username')) ?? textOf(environment()['AZURE_CLIENT_ID'])
  const tenant = textOf(given.optional('tenantId')) ?? textOf(environment()['AZURE_TENANT_ID'])
  const proof = given.yes('msi') ? undefined : proofOf(given)
  const answer = proof === undefined ? await fromMachine(region, client, web) : await fromTenant(region, { client, tenant, proof }, web)
  const token = textOf(answer.json()['access_token'])
  if (token === undefined) throw new Failure('auth', 'a token was promised and none came')
  neverPrint(token)
  return token
}

type Proof = Readonly<Record<string, string>>

/** What shows that we are the application. Undefined: nothing does, and the machine's identity is asked for. */
function proofOf(given: Given): Proof | undefined {
  const secret = textOf(given.optional('password')) ?? textOf(environment()['AZURE_CLIENT_SECRET'])
  const file = textOf(environment()['AZURE_FEDERATED_TOKEN_FILE'])
  if (secret !== undefined) {
    neverPrint(secret)
    return { client_secret: secret }
  }
  if (file === undefined) return undefined
  const assertion = contentOf(file, 'AZURE_FEDERATED_TOKEN_FILE').trim()
  neverPrint(assertion)
  return { client_assertion: assertion, client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer' }
}

async function fromTenant(region: Region, { client, tenant, proof }: { client: string | undefined; tenant: string | undefined; proof: Proof }, web: Web): Promise<Answer> {
  if (client === undefined) throw new Failure('config', 'username= is missing: the id of the application')
  if (tenant === undefined || !/^[A-Za-z0-9][A-Za-z0-9.-]*$/.test(tenant)) throw new Failure('config', 'tenantId= is missing, or is none')
  const answer = await web.ask({
    method: 'POST', url: `${region.authority}/${tenant}/oauth2/v2.0/token`, headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ grant_type: 'client_credentials', client_id: client, scope: `${region.endpoint}/.default`, ...proof }).toString(),
  })
  if (answer.status === 200) return answer
  const told = answer.json()
  const said = excerpt((textOf(told['error_description']) ?? textOf(told['error']) ?? `HTTP ${answer.status}`).split(/[\r\n]/)[0] ?? '')
  throw new Failure(answer.status >= 500 || answer.status === 429 ? 'busy' : 'auth', `no token for the application: ${said} (check tenantId=, username= and password=)`)
}

/** It answers within a second if it is there at all. */
const metadataPatience = 3_000

async function fromMachine(region: Region, client: string | undefined, web: Web): Promise<Answer> {
  const base = trimmed(textOf(environment()['AZURE_POD_IDENTITY_AUTHORITY_HOST']) ?? 'http://169.254.169.254')
  const query = new URLSearchParams({ 'api-version': '2018-02-01', resource: `${region.endpoint}/`, ...(client === undefined ? {} : { client_id: client }) })
  try {
    const answer = await web.ask({ method: 'GET', url: `${base}/metadata/identity/oauth2/token?${query.toString()}`, headers: { metadata: 'true' }, within: metadataPatience })
    if (answer.status === 200) return answer
    throw new Failure('auth', excerpt(textOf(answer.json()['error_description']) ?? `HTTP ${answer.status}`))
  } catch (error) {
    const why = error instanceof Failure ? error.message : 'no answer'
    throw new Failure('auth', `no credentials: give tenantId=, username= and password=, or an identity to this pod (the machine's own: ${why})`)
  }
}
