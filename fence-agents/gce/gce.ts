#!/usr/bin/env node
// Power of Compute Engine instances. Off is a stop without the graceful shutdown, and done only when its operation has ended
// well and the instance itself reads TERMINATED, which is Google's word for stopped. A suspended one goes on in its old boot
// when it is resumed, so it is unknown, like everything else that is neither RUNNING nor TERMINATED.
import { Failure, runAgent, type AgentDescription, type DeviceWord, type Given, type Reason } from '../contract.ts'
import { excerpt, fieldsOf, itemsOf, openWeb, reasonOf, textOf, webParameters, type Answer, type Fields, type Web } from '../https.ts'
import { carryOut, lookPause, orderParameters, patiently } from '../order.ts'
import { accountOf } from './token.ts'

export const agent: AgentDescription = {
  name: 'gce',
  says: 'Switches an instance of Google Compute Engine. It needs compute.instances.get, .stop, .start, .list and compute.zoneOperations.get. Compute Engine tells no UUID of the machine, only its addresses.',
  vendor: 'https://cloud.google.com/compute',
  parameters: [
    { name: 'plug', says: 'The instance: its name, or the whole spec.providerID of its node', type: 'string', required: true, obsoletes: 'port', short: 'n' },
    { name: 'zone', says: 'Its zone; else that of its providerID', type: 'string' },
    { name: 'project', says: 'Its project; else that of its providerID, or of the account', type: 'string' },
    { name: 'serviceaccount', says: 'The key of a service account: its JSON in one line, or a file of it; else GOOGLE_APPLICATION_CREDENTIALS, or the metadata service', type: 'string' },
    { name: 'discard_local_ssd', says: 'Give up what stands on local SSDs: an instance that has some cannot be stopped otherwise', type: 'boolean' },
    { name: 'endpoint', says: 'Address of the API', type: 'string', default: 'https://compute.googleapis.com/compute/v1' },
    ...webParameters,
    ...orderParameters,
  ],
  status: (given) => inProject(given, (project) => patiently(given, async () => wordOf(await instance(project, given)))),
  off: (given) => inProject(given, (project) => order(project, given, 'off')),
  on: (given) => inProject(given, (project) => order(project, given, 'on')),
  check: (given) => void place(given),
  list: (given) => inProject(given, (project) => patiently(given, () => list(project))),
}

interface Project {
  readonly web: Web
  readonly token: string
  /** The address of the zone in which the instance is. */
  readonly zone: string
}

async function inProject<T>(given: Given, work: (project: Project) => Promise<T>): Promise<T> {
  const named = place(given)
  const web = openWeb(given)
  try {
    const account = await patiently(given, () => accountOf(given, web))
    const project = named.project ?? account.project
    if (project === undefined || !projectForm.test(project)) throw new Failure('config', 'project= is missing, or is none')
    return await work({ web, token: account.token, zone: `${given.text('endpoint').replace(/\/+$/, '')}/projects/${project}/zones/${named.zone}` })
  } finally {
    web.close()
  }
}

function order(project: Project, given: Given, want: 'on' | 'off'): Promise<DeviceWord> {
  return carryOut(want, given, {
    look: () => instance(project, given),
    word: wordOf,
    async order(before) {
      const query = want === 'on' ? '' : `?noGracefulShutdown=true${given.yes('discard_local_ssd') ? '&discardLocalSsd=true' : ''}`
      // One that was suspended is not started but resumed, in its old boot: what we switch on must have been off.
      if (want === 'on' && String(before['status']).startsWith('SUSPEND')) throw new Failure('device', wordOf(before).evidence)
      const path = `/instances/${place(given).name}/${want === 'off' ? 'stop' : 'start'}${query}`
      await ended(project, given, await patiently(given, () => call(project, 'POST', path)))
    },
  })
}

/** An operation that failed says why; the instance would only go on reading RUNNING. */
async function ended(project: Project, given: Given, accepted: Fields): Promise<void> {
  const name = textOf(accepted['name'])
  const [pause, until] = [lookPause(given), performance.now() + Math.min(given.ms('power_timeout'), given.left())]
  for (let operation = accepted; ;) {
    const [error] = itemsOf(fieldsOf(operation['error'])['errors']).map(fieldsOf)
    if (error !== undefined) throw failureOf(textOf(error['code']) ?? '', textOf(error['message']) ?? 'it failed', 200)
    if (operation['status'] === 'DONE') return
    if (name === undefined || !nameForm.test(name)) throw new Failure('device', 'the order was answered with no operation')
    if (performance.now() + pause >= until) throw new Failure('timeout', `the operation ${name} is still ${excerpt(String(operation['status']))}`)
    await new Promise((resolve) => { setTimeout(resolve, pause) })
    operation = await patiently(given, () => call(project, 'GET', `/operations/${name}`))
  }
}

/** The one that was asked for and no other: an answer about something else says nothing about it. */
async function instance(project: Project, given: Given): Promise<Fields> {
  const { name } = place(given)
  const told = await call(project, 'GET', `/instances/${name}`)
  if (told['name'] !== name) throw new Failure('device', `what came back is not about ${name}`)
  return told
}

function wordOf(told: Fields): DeviceWord {
  const status = textOf(told['status']) ?? 'in no state'
  const evidence = `${String(told['name'])} is ${excerpt(status)}`
  const addresses = itemsOf(told['networkInterfaces']).map(fieldsOf)
    .flatMap((one) => [textOf(one['networkIP']), textOf(one['ipv6Address'])]).filter((address) => address !== undefined).slice(0, mostAddresses)
  const at = addresses.length === 0 ? {} : { addresses }
  if (status === 'RUNNING') return { state: 'on', evidence, ...at }
  if (status === 'TERMINATED') return { state: 'off', evidence, ...at }
  const advice = status === 'SUSPENDED' ? ': resume it, or order it off' : ''
  return { state: 'unknown', evidence: `${evidence}${advice}`, reason: 'device', ...at }
}

const mostAddresses = 16
const pageSize = 500
const mostPages = 20

async function list(project: Project): Promise<readonly { plug: string; name: string }[]> {
  const outlets: { plug: string; name: string }[] = []
  let next = ''
  for (let page = 0; page < mostPages; page += 1) {
    const told = await call(project, 'GET', `/instances?maxResults=${pageSize}${next}`)
    for (const one of itemsOf(told['items']).map(fieldsOf)) outlets.push({ plug: String(one['name']), name: textOf(one['id']) ?? '' })
    const token = textOf(told['nextPageToken'])
    if (token === undefined) break
    next = `&pageToken=${encodeURIComponent(token)}`
  }
  return outlets
}

async function call({ web, token, zone }: Project, method: 'GET' | 'POST', path: string): Promise<Fields> {
  const answer = await web.ask({ method, url: `${zone}${path}`, headers: { authorization: `Bearer ${token}`, accept: 'application/json' }, ...(method === 'POST' ? { body: '' } : {}) })
  if (answer.status === 200) return answer.json()
  throw refusalOf(answer)
}

function refusalOf(answer: Answer): Failure {
  const error = fieldsOf(answer.json()['error'])
  const [first] = itemsOf(error['errors']).map(fieldsOf)
  return failureOf(textOf(first?.['reason']) ?? '', textOf(error['message']) ?? `HTTP ${answer.status}`, answer.status)
}

const causes: readonly (readonly [RegExp, Reason, string])[] = [
  [/rateLimitExceeded|RATE_LIMIT_EXCEEDED|quotaExceeded|resourceNotReady|RESOURCE_NOT_READY|RESOURCE_IN_USE|ZONE_RESOURCE_POOL_EXHAUSTED|backendError/i, 'busy', ''],
  [/forbidden|accessNotConfigured|PERMISSION/i, 'privilege', 'the account needs compute.instances.get, .stop, .start and compute.zoneOperations.get'],
  [/notFound/i, 'notfound', 'check plug=, zone= and project='],
  [/authError|required/i, 'auth', 'is the account still good?'],
]

function failureOf(code: string, message: string, status: number): Failure {
  const cause = causes.find(([pattern]) => pattern.test(code)) ?? causes.find(([, reason]) => reason === reasonOf(status))
  const ssd = /local ssd/i.test(message) ? 'set discard_local_ssd=1' : cause?.[2]
  return new Failure(cause?.[1] ?? (status === 200 ? 'device' : reasonOf(status)), `${code === '' ? '' : `${excerpt(code)}: `}${excerpt(message)}${ssd === undefined || ssd === '' ? '' : ` (${ssd})`}`)
}

const nameForm = /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$|^operation-[a-z0-9-]{1,100}$/
const zoneForm = /^[a-z][a-z0-9-]{0,62}$/
/** Old ones bear the name of a domain: example.com:name. */
const projectForm = /^([a-z0-9.-]+:)?[a-z][a-z0-9-]{0,62}$/
const providerForm = /^gce:\/\/([^/]+)\/([^/]+)\/([^/]+)$/

interface Place {
  readonly project: string | undefined
  readonly zone: string
  readonly name: string
}

function place(given: Given): Place {
  const plug = given.optional('plug') ?? ''
  const [, project, zone, name = plug] = providerForm.exec(plug) ?? []
  const named = { project: textOf(given.optional('project')) ?? project, zone: textOf(given.optional('zone')) ?? zone ?? '', name }
  // A list is of the whole zone and names no instance.
  if (plug !== '' && !nameForm.test(named.name)) throw new Failure('config', 'plug= is no name of an instance')
  if (!zoneForm.test(named.zone)) throw new Failure('config', named.zone === '' ? 'zone= is missing' : 'zone= is no zone, as europe-west1-b')
  return named
}

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) await runAgent(agent)
