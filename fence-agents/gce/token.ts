// Who asks: a service account by its key, or the account of the machine this runs on. Either way a token that lives an hour.
import { sign } from 'node:crypto'
import { Failure, environment, neverPrint, type Given } from '../contract.ts'
import { contentOf, excerpt, fieldsOf, reasonOf, textOf, type Answer, type Web } from '../https.ts'

const scope = 'https://www.googleapis.com/auth/compute'

export interface Account {
  readonly token: string
  /** The one the account belongs to. */
  readonly project?: string
}

export async function accountOf(given: Given, web: Web): Promise<Account> {
  const key = keyOf(given)
  const account = key === undefined ? await fromMetadata(web) : await fromKey(key, web)
  neverPrint(account.token)
  return account
}

interface Key {
  readonly email: string
  readonly id: string | undefined
  readonly privateKey: string
  readonly tokenUri: string
  readonly project: string | undefined
}

/** The key's JSON itself, or a file of it. Undefined: none is named. */
function keyOf(given: Given): Key | undefined {
  const named = textOf(given.optional('serviceaccount')) ?? textOf(environment()['GOOGLE_APPLICATION_CREDENTIALS'])
  if (named === undefined) return undefined
  const told = parsed(named.trimStart().startsWith('{') ? named : contentOf(named, 'serviceaccount='))
  if (told['type'] !== 'service_account') throw new Failure('config', 'serviceaccount= holds no key of a service account')
  const [email, privateKey] = [textOf(told['client_email']), textOf(told['private_key'])]
  if (email === undefined || privateKey === undefined) throw new Failure('config', 'serviceaccount= lacks client_email or private_key')
  neverPrint(privateKey)
  return { email, privateKey, id: textOf(told['private_key_id']), tokenUri: textOf(told['token_uri']) ?? 'https://oauth2.googleapis.com/token', project: textOf(told['project_id']) }
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return fieldsOf(JSON.parse(text))
  } catch {
    throw new Failure('config', 'serviceaccount= is no JSON') // the parser's own words would quote the key
  }
}

/** RFC 7523: an assertion that the key signs, for a token. */
async function fromKey(key: Key, web: Web): Promise<Account> {
  const now = Math.floor(Date.now() / 1_000)
  const head = { alg: 'RS256', typ: 'JWT', ...(key.id === undefined ? {} : { kid: key.id }) }
  const claims = { iss: key.email, scope, aud: key.tokenUri, iat: now, exp: now + 3_600 }
  const unsigned = [head, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  const assertion = `${unsigned}.${signature(unsigned, key.privateKey)}`
  neverPrint(assertion)
  const answer = await web.ask({
    method: 'POST', url: key.tokenUri, headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion }).toString(),
  })
  if (answer.status !== 200) {
    const said = excerpt(textOf(answer.json()['error_description']) ?? textOf(answer.json()['error']) ?? `HTTP ${answer.status}`)
    throw new Failure(answer.status >= 500 || answer.status === 429 ? 'busy' : 'auth', `no token for ${key.email}: ${said} (is the key still good, and this machine's clock right?)`)
  }
  return tokenIn(answer, key.project)
}

function signature(text: string, privateKey: string): string {
  try {
    return sign('sha256', Buffer.from(text), privateKey).toString('base64url')
  } catch {
    throw new Failure('config', 'serviceaccount= holds a private_key that is none')
  }
}

/** It answers within milliseconds if it is there at all. */
const metadataPatience = 2_000

async function fromMetadata(web: Web): Promise<Account> {
  const base = `http://${textOf(environment()['GCE_METADATA_HOST']) ?? 'metadata.google.internal'}/computeMetadata/v1`
  const ask = (path: string) => web.ask({ method: 'GET', url: `${base}${path}`, headers: { 'metadata-flavor': 'Google' }, within: metadataPatience })
  try {
    const token = await ask('/instance/service-accounts/default/token')
    if (token.status !== 200) throw new Failure(reasonOf(token.status), `HTTP ${token.status}`)
    const project = await ask('/project/project-id')
    return tokenIn(token, project.status === 200 ? project.text.trim() : undefined)
  } catch (error) {
    const why = error instanceof Failure ? error.message : 'no answer'
    throw new Failure('auth', `no credentials: give serviceaccount=, or an account to this pod (the metadata service: ${why})`)
  }
}

function tokenIn(answer: Answer, project: string | undefined): Account {
  const token = textOf(answer.json()['access_token'])
  if (token === undefined) throw new Failure('auth', 'a token was promised and none came')
  return { token, ...(project === undefined ? {} : { project }) }
}
