// The API server of the cluster that we run in, asked with the pod's own account. That a thing is not there and that the
// cluster knows no such kind of things are two answers, though both are a 404.
import { environment, Failure, neverPrint, type Given, type ParameterDescription, type Reason } from './contract.ts'
import { contentOf, excerpt, fieldsOf, itemsOf, openWeb, reasonOf, textOf, type Answer, type Asking, type Fields } from './https.ts'

export interface Cluster {
  get(path: string): Promise<Fields | undefined>
  list(path: string, labels: Readonly<Record<string, string>>): Promise<readonly Fields[]>
  create(path: string, object: object): Promise<Fields>
  /** With the resourceVersion that was read: one that was written since is refused as busy. */
  update(path: string, object: object): Promise<Fields>
  /** Only the object of this UID; that it is gone already is well. */
  remove(path: string, seen: Fields): Promise<void>
}

const account = '/var/run/secrets/kubernetes.io/serviceaccount'

export const clusterParameters: readonly ParameterDescription[] = [
  { name: 'server', says: 'The API server, as https://HOST:PORT; else that of the cluster that this pod is of', type: 'string' },
  { name: 'ca', says: 'A file of its authority', type: 'string', default: `${account}/ca.crt`, obsoletes: 'cacert' },
  { name: 'token_file', says: 'A file with the token of an account', type: 'string', default: `${account}/token` },
  { name: 'login_timeout', says: 'For connecting', type: 'second', default: '5' },
  { name: 'shell_timeout', says: 'For each answer', type: 'second', default: '5' },
]

export async function overCluster<T>(given: Given, work: (cluster: Cluster) => Promise<T>): Promise<T> {
  const web = openWeb(given)
  const server = serverOf(given)
  // Read for each run: it is renewed every hour.
  const token = contentOf(given.text('token_file'), 'token_file=').trim()
  neverPrint(token)
  const ask = async (method: Asking['method'], path: string, body?: object) => {
    const headers = { authorization: `Bearer ${token}`, accept: 'application/json', ...(body === undefined ? {} : { 'content-type': 'application/json' }) }
    return web.ask({ method, url: `${server}${path}`, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
  }
  try {
    return await work({
      async get(path) {
        const answer = await ask('GET', path)
        return isMissing(answer) ? undefined : objectIn(answer, path)
      },
      async list(path, labels) {
        const selector = new URLSearchParams({ labelSelector: Object.entries(labels).map(([key, value]) => `${key}=${value}`).join(',') })
        const answer = await ask('GET', `${path}?${selector.toString()}`)
        return itemsOf(objectIn(answer, path)['items']).map(fieldsOf)
      },
      create: async (path, object) => objectIn(await ask('POST', path, object), path),
      update: async (path, object) => objectIn(await ask('PUT', path, object), path),
      async remove(path, seen) {
        const { uid } = fieldsOf(seen['metadata'])
        const answer = await ask('DELETE', path, { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background', preconditions: { uid } })
        if (!isMissing(answer)) objectIn(answer, path)
      },
    })
  } finally {
    web.close()
  }
}

export function checkCluster(given: Given): void {
  serverOf(given)
}

function serverOf(given: Given): string {
  const [host, port] = [environment()['KUBERNETES_SERVICE_HOST'], environment()['KUBERNETES_SERVICE_PORT']]
  const own = host === undefined || port === undefined ? 'https://kubernetes.default.svc' : `https://${host.includes(':') ? `[${host}]` : host}:${port}`
  const url = URL.parse(textOf(given.optional('server')) ?? own)
  if (url === null || url.protocol !== 'https:' || url.pathname !== '/') throw new Failure('config', 'server= is not of the form https://HOST:PORT')
  return url.origin
}

/** A Status of the API that names the object. Of a kind that it does not serve, it knows no name, and says so in plain text. */
function isMissing(answer: Answer): boolean {
  const told = answer.json()
  return answer.status === 404 && told['kind'] === 'Status' && told['reason'] === 'NotFound' && textOf(fieldsOf(told['details'])['name']) !== undefined
}

const reasons: ReadonlyMap<number, Reason> = new Map([[404, 'config'], [422, 'config']])

function objectIn(answer: Answer, path: string): Fields {
  const told = answer.json()
  if (answer.status >= 200 && answer.status <= 299) {
    if (textOf(told['kind']) === undefined) throw new Failure('device', `${path}: what came back is no object of the API`)
    return told
  }
  const says = excerpt(textOf(told['message']) ?? answer.text)
  const unknown = answer.status === 404 ? ' (does the cluster know this kind, and is it there?)' : ''
  throw new Failure(reasons.get(answer.status) ?? reasonOf(answer.status), `${path}: HTTP ${answer.status}${says === '' ? '' : `: ${says}`}${unknown}`)
}
