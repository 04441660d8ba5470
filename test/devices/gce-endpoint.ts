// Compute Engine of our own, as far as an instance is stopped and started, with a machine behind it. That it speaks as Google's does
// is shown by Google's own library for Python, in fence_gce, which is driven by it under the real names.
import { generateKeyPairSync, verify, type KeyObject } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startCloudFront, type Call, type CloudFront, type Reply } from './cloud-front.ts'
import type { Feed } from './machine.ts'
import type { Parameters, Rack } from './rack.ts'

export interface ComputeEngine {
  readonly front: CloudFront
  readonly login: Parameters
  /** As login, with a key that is not the account's. */
  readonly wrong: Parameters
  /** What it tells of the instance, whatever its machine does. */
  says: string | undefined
}

const [project, zone] = ['nodes', 'europe-west1-b']
export const instanceName = 'node-1'
const email = `holdfast@${project}.iam.gserviceaccount.com`
const token = 'ya29.token-of-the-account'

type Order = 'stop' | 'start' | 'reset'

/** What the instance reads while the order is under way. */
const coming: Readonly<Record<Order, string>> = { stop: 'STOPPING', start: 'STAGING', reset: 'RUNNING' }

interface Operation {
  readonly name: string
  readonly kind: Order
  done: boolean
}

export async function startComputeEngine(rack: Rack, feed: Feed): Promise<ComputeEngine> {
  const [account, stranger] = [generateKeyPairSync('rsa', { modulusLength: 2_048 }), generateKeyPairSync('rsa', { modulusLength: 2_048 })]
  const keyFile = (name: string, pair: typeof account) => {
    const file = join(rack.folder, `${name}.json`)
    const private_key = pair.privateKey.export({ type: 'pkcs8', format: 'pem' })
    writeFileSync(file, JSON.stringify({ type: 'service_account', project_id: project, private_key_id: 'k', client_id: '1', client_email: email, private_key, token_uri: 'https://oauth2.googleapis.com/token' }))
    return file
  }
  const own: { says: string | undefined } = { says: undefined }
  const operations: Operation[] = []
  const told = () => {
    const underWay = operations.find(({ done }) => !done)
    const status = own.says ?? (underWay === undefined ? (feed.on() ? 'RUNNING' : 'TERMINATED') : coming[underWay.kind])
    return { kind: 'compute#instance', id: '1001', name: instanceName, status, zone: `https://www.googleapis.com/compute/v1/projects/${project}/zones/${zone}`, networkInterfaces: [{ networkIP: '10.0.0.7' }] }
  }
  const order = (kind: Order): Reply => {
    if (front.fault === 'forbidden') return refusal(403, 'forbidden', `Required 'compute.instances.${kind}' permission for 'projects/${project}/zones/${zone}/instances/${instanceName}'`)
    const operation: Operation = { name: `operation-${Date.now()}-${operations.length}`, kind, done: false }
    operations.push(operation)
    // A reset is one operation there, and the instance reads as running all the while.
    const done = kind === 'reset' ? front.carryOut(feed, false).then(() => front.carryOut(feed, true)) : front.carryOut(feed, kind === 'start')
    void done.then(() => { operation.done = true })
    return { status: 200, body: tellOperation(operation) }
  }
  const below = (path: string, method: string): Reply => {
    const [, operation] = /^\/operations\/(.+)$/.exec(path) ?? []
    const known = operations.find(({ name }) => name === operation)
    if (known !== undefined) return { status: 200, body: tellOperation(known) }
    if (path === '/operations') return { status: 200, body: { kind: 'compute#operationList', items: operations.filter(({ done }) => !done).map(tellOperation) } }
    if (path === '/instances') return { status: 200, body: { kind: 'compute#instanceList', items: [told()] } }
    const [, name, action] = /^\/instances\/([^/]+)(?:\/(stop|start|reset))?$/.exec(path) ?? []
    if (name !== instanceName) return refusal(404, 'notFound', `The resource 'projects/${project}/zones/${zone}/instances/${name}' was not found`)
    if (method !== 'POST') return { status: 200, body: told() }
    return order(action as Order) // the form names no other
  }
  const front = await startCloudFront(rack, 'compute-engine', ['oauth2.googleapis.com', 'compute.googleapis.com', 'www.googleapis.com'], (call) => {
    if (call.host === 'oauth2.googleapis.com' && call.path === '/token') return grant(call, account.publicKey)
    const root = `/compute/v1/projects/${project}/zones/${zone}`
    if (call.host !== 'compute.googleapis.com' || !call.path.startsWith(root)) return refusal(404, 'notFound', `${call.host}${call.path} is not known`)
    return call.authorization === `Bearer ${token}` ? below(call.path.slice(root.length), call.method) : refusal(401, 'authError', 'Invalid Credentials')
  })
  front.wrap('gce')
  front.wrapOthers('fence_gce', 'gce')
  const login = { project, zone, plug: instanceName, serviceaccount: keyFile('account', account) }
  return Object.assign(own, { front, login, wrong: { ...login, serviceaccount: keyFile('stranger', stranger) } })
}

function tellOperation({ name, kind, done }: Operation): object {
  return { kind: 'compute#operation', name, operationType: kind, status: done ? 'DONE' : 'RUNNING' }
}

/** As RFC 7523 has it: an assertion signed by the account's key, for a token. */
function grant(call: Call, publicKey: KeyObject): Reply {
  const assertion = new URLSearchParams(call.body).get('assertion') ?? ''
  const [head = '', claims = '', seal = ''] = assertion.split('.')
  const good = verify('sha256', Buffer.from(`${head}.${claims}`), publicKey, Buffer.from(seal, 'base64url'))
  return good ? { status: 200, body: { access_token: token, expires_in: 3_599, token_type: 'Bearer' } } : { status: 400, body: { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' } }
}

function refusal(status: number, reason: string, message: string): Reply {
  return { status, body: { error: { code: status, message, errors: [{ reason, message, domain: 'global' }] } } }
}
