// Whose hand it is that switches: named in the method, or found where AWS itself puts it. In that order: parameters, the
// environment, a web identity (IRSA), the container's agent (EKS Pod Identity, ECS), the instance's own role.
import { Failure, environment, neverPrint, type Given } from '../contract.ts'
import { contentOf, excerpt, reasonOf, textOf, type Answer, type Web } from '../https.ts'
import type { Credentials } from './signature.ts'
import { parseXml, textAt } from './xml.ts'

export async function credentialsOf(given: Given, web: Web, region: string): Promise<Credentials> {
  const found = fromParameters(given) ?? fromEnvironment() ?? await fromWebIdentity(web, region) ?? await fromContainer(web) ?? await fromInstance(web)
  neverPrint(found.secretKey)
  if (found.sessionToken !== undefined) neverPrint(found.sessionToken)
  return found
}

function fromParameters(given: Given): Credentials | undefined {
  const [accessKey, secretKey] = [textOf(given.optional('access_key')), textOf(given.optional('secret_key'))]
  if (accessKey === undefined && secretKey === undefined) return undefined
  if (accessKey === undefined || secretKey === undefined) throw new Failure('config', 'access_key= and secret_key= belong together')
  return credentials(accessKey, secretKey, given.optional('session_token'))
}

function fromEnvironment(): Credentials | undefined {
  const [accessKey, secretKey] = [textOf(environment()['AWS_ACCESS_KEY_ID']), textOf(environment()['AWS_SECRET_ACCESS_KEY'])]
  return accessKey === undefined || secretKey === undefined ? undefined : credentials(accessKey, secretKey, environment()['AWS_SESSION_TOKEN'])
}

/** A token of the pod's service account for the credentials of a role. It is the one call that is not signed. */
async function fromWebIdentity(web: Web, region: string): Promise<Credentials | undefined> {
  const [file, role] = [textOf(environment()['AWS_WEB_IDENTITY_TOKEN_FILE']), textOf(environment()['AWS_ROLE_ARN'])]
  if (file === undefined || role === undefined) return undefined
  const token = contentOf(file, 'AWS_WEB_IDENTITY_TOKEN_FILE').trim()
  neverPrint(token)
  const answer = await web.ask({
    method: 'POST', url: endpointOf('sts', region), headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
    body: new URLSearchParams({ Action: 'AssumeRoleWithWebIdentity', Version: '2011-06-15', RoleArn: role, RoleSessionName: 'holdfast', WebIdentityToken: token }).toString(),
  })
  const document = parseXml(answer.text)
  if (answer.status !== 200 || document === undefined) {
    const said = document === undefined ? `HTTP ${answer.status}` : textAt(document, 'Error', 'Code') ?? `HTTP ${answer.status}`
    throw new Failure(answer.status >= 500 ? 'busy' : 'auth', `the role ${role} cannot be taken: ${excerpt(said)}; does it trust this service account?`)
  }
  const at = (name: string) => textAt(document, 'AssumeRoleWithWebIdentityResult', 'Credentials', name)
  return complete(at('AccessKeyId'), at('SecretAccessKey'), at('SessionToken'), 'STS')
}

async function fromContainer(web: Web): Promise<Credentials | undefined> {
  const relative = textOf(environment()['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'])
  const url = relative === undefined ? textOf(environment()['AWS_CONTAINER_CREDENTIALS_FULL_URI']) : `http://169.254.170.2${relative}`
  if (url === undefined) return undefined
  const file = textOf(environment()['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE'])
  const token = file === undefined ? textOf(environment()['AWS_CONTAINER_AUTHORIZATION_TOKEN']) : contentOf(file, 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE').trim()
  if (token !== undefined) neverPrint(token)
  const answer = await web.ask({ method: 'GET', url, within: metadataPatience, ...(token === undefined ? {} : { headers: { authorization: token } }) })
  return fromJson(answer, 'the container\'s credentials')
}

/** It answers within milliseconds, or, from a pod behind a hop limit of 1, never. */
export const metadataPatience = 2_000

async function fromInstance(web: Web): Promise<Credentials> {
  try {
    const role = (await instanceMetadata(web, '/latest/meta-data/iam/security-credentials/')).text.trim().split('\n')[0] ?? ''
    return fromJson(await instanceMetadata(web, `/latest/meta-data/iam/security-credentials/${encodeURIComponent(role)}`), `the role ${role}`)
  } catch (error) {
    const why = error instanceof Failure ? error.message : 'no answer'
    throw new Failure('auth', `no credentials: give access_key= and secret_key=, or a role to this pod (the instance's own role: ${why})`)
  }
}

/** Version 2 alone: a token first, then the question with it. */
export async function instanceMetadata(web: Web, path: string): Promise<Answer> {
  if (environment()['AWS_EC2_METADATA_DISABLED'] === 'true') throw new Failure('config', 'AWS_EC2_METADATA_DISABLED is set')
  const base = (textOf(environment()['AWS_EC2_METADATA_SERVICE_ENDPOINT']) ?? 'http://169.254.169.254').replace(/\/+$/, '')
  const token = must(await web.ask({ method: 'PUT', url: `${base}/latest/api/token`, headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '60' }, body: '', within: metadataPatience }))
  neverPrint(token.text)
  return must(await web.ask({ method: 'GET', url: `${base}${path}`, headers: { 'x-aws-ec2-metadata-token': token.text }, within: metadataPatience }))
}

function must(answer: Answer): Answer {
  if (answer.status === 200) return answer
  throw new Failure(reasonOf(answer.status), `the metadata service answers HTTP ${answer.status}`)
}

function fromJson(answer: Answer, whence: string): Credentials {
  if (answer.status !== 200) throw new Failure('auth', `${whence}: HTTP ${answer.status}`)
  const told = answer.json()
  return complete(textOf(told['AccessKeyId']), textOf(told['SecretAccessKey']), textOf(told['Token']), whence)
}

function complete(accessKey: string | undefined, secretKey: string | undefined, sessionToken: string | undefined, whence: string): Credentials {
  if (accessKey === undefined || secretKey === undefined) throw new Failure('auth', `${whence}: no whole credentials`)
  return credentials(accessKey, secretKey, sessionToken)
}

function credentials(accessKey: string, secretKey: string, sessionToken: string | undefined): Credentials {
  return { accessKey, secretKey, ...(sessionToken === undefined || sessionToken === '' ? {} : { sessionToken }) }
}

/** Where the service stands, unless AWS's own variables say otherwise. */
export function endpointOf(service: 'ec2' | 'sts', region: string): string {
  const named = textOf(environment()[`AWS_ENDPOINT_URL_${service.toUpperCase()}`]) ?? textOf(environment()['AWS_ENDPOINT_URL'])
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com'
  return named ?? `https://${service}.${region}.${domain}/`
}
