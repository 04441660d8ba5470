// Keystone, version 3: an application credential, or a password, for a token and the address of Nova.
import { Failure, environment, neverPrint, type Given } from '../contract.ts'
import { excerpt, fieldsOf, itemsOf, reasonOf, textOf, type Fields, type Web } from '../https.ts'

export interface Nova {
  readonly web: Web
  readonly token: string
  /** Without a slash at its end. */
  readonly url: string
}

export async function logIn(given: Given, web: Web, region: string | undefined): Promise<Nova> {
  const base = setting(given, 'auth_url')
  if (base === undefined) throw new Failure('config', 'auth_url= is missing: the address of Keystone')
  const root = base.replace(/\/+$/, '').replace(/\/v3$/, '')
  const answer = await web.ask({ method: 'POST', url: `${root}/v3/auth/tokens`, headers: { 'content-type': 'application/json', accept: 'application/json' }, body: JSON.stringify({ auth: loginOf(given) }) })
  if (answer.status !== 201) {
    const said = excerpt(textOf(fieldsOf(answer.json()['error'])['message']) ?? `HTTP ${answer.status}`)
    throw new Failure(reasonOf(answer.status), `Keystone: ${said} (check auth_url= and the credential; has it expired?)`)
  }
  const token = answer.header('x-subject-token')
  if (token === undefined) throw new Failure('auth', 'Keystone answered without a token')
  neverPrint(token)
  return { web, token, url: textOf(given.optional('compute_url'))?.replace(/\/+$/, '') ?? computeIn(fieldsOf(answer.json()['token']), region ?? setting(given, 'region_name'), setting(given, 'interface') ?? 'public') }
}

/** As the method says, else as OpenStack's own variables do. */
function setting(given: Given, name: string): string | undefined {
  return textOf(given.optional(name)) ?? textOf(environment()[`OS_${name.toUpperCase()}`])
}

function loginOf(given: Given): object {
  const [id, secret] = [setting(given, 'application_credential_id'), setting(given, 'application_credential_secret')]
  if (id !== undefined && secret !== undefined) {
    neverPrint(secret)
    return { identity: { methods: ['application_credential'], application_credential: { id, secret } } }
  }
  if (id !== undefined || secret !== undefined) throw new Failure('config', 'application_credential_id= and application_credential_secret= belong together')
  const [name, password, project] = [setting(given, 'username'), setting(given, 'password'), setting(given, 'project_name')]
  if (name === undefined || password === undefined || project === undefined) throw new Failure('config', 'application_credential_id= and application_credential_secret= are missing, or username=, password= and project_name=')
  neverPrint(password)
  const domain = (parameter: string) => ({ name: setting(given, parameter) ?? 'Default' })
  return {
    identity: { methods: ['password'], password: { user: { name, password, domain: domain('user_domain_name') } } },
    scope: { project: { name: project, domain: domain('project_domain_name') } },
  }
}

function computeIn(token: Fields, region: string | undefined, side: string): string {
  const services = itemsOf(token['catalog']).map(fieldsOf).filter((service) => service['type'] === 'compute')
  const all = services.flatMap((service) => itemsOf(service['endpoints']).map(fieldsOf)).filter((endpoint) => endpoint['interface'] === side)
  const [only, ...others] = all.filter((endpoint) => region === undefined || endpoint['region_id'] === region || endpoint['region'] === region)
  const url = textOf(only?.['url'])
  if (url === undefined) throw new Failure('config', `Keystone knows no Nova${region === undefined ? '' : ` in the region ${region}`}: check region_name= and interface=`)
  if (others.length > 0) throw new Failure('config', `region_name= is missing: Nova stands in ${[...new Set(all.map((endpoint) => String(endpoint['region_id'])))].join(', ')}`)
  return url.replace(/\/+$/, '')
}
