#!/usr/bin/env node
// Power of Azure virtual machines, alone or of a scale set. Off is powerOff without the system's own shutdown, or deallocate,
// and done only when the operation has ended well and the machine itself reads stopped or deallocated. One that hibernated is
// deallocated too and goes on in its old boot when it is started: it is unknown until it was deallocated by order. Where a
// machine could hibernate a plain stop may have been one from inside, so there only deallocated counts.
import { Failure, runAgent, type AgentDescription, type DeviceWord, type Given, type Reason } from '../contract.ts'
import { excerpt, fieldsOf, itemsOf, openWeb, reasonOf, textOf, webParameters, type Answer, type Fields, type Web } from '../https.ts'
import { carryOut, lookPause, orderParameters, patiently } from '../order.ts'
import { regionOf, tokenFor } from './token.ts'

export const agent: AgentDescription = {
  name: 'azure',
  says: 'Switches a virtual machine of Azure, alone or of a scale set. It needs the actions read, powerOff, deallocate and start on it. Tells the UUID of the machine, so that the path can be proven to end at it; and its addresses, if it may read its network interfaces.',
  vendor: 'https://azure.microsoft.com/products/virtual-machines',
  parameters: [
    { name: 'plug', says: 'The machine: its name, its whole resource id, or the spec.providerID of its node', type: 'string', required: true, obsoletes: 'port', short: 'n' },
    { name: 'resourceGroup', says: 'Its resource group, where plug is a name alone', type: 'string' },
    { name: 'subscriptionId', says: 'Its subscription, where plug is a name alone', type: 'string' },
    { name: 'tenantId', says: 'The tenant of the application; else AZURE_TENANT_ID', type: 'string' },
    { name: 'username', says: 'The id of the application, or of a machine\'s own identity; else AZURE_CLIENT_ID', type: 'string', obsoletes: 'login', short: 'l' },
    { name: 'password', says: 'The application\'s secret; else AZURE_CLIENT_SECRET, the pod\'s identity, or the machine\'s', type: 'string', obsoletes: 'passwd', short: 'p' },
    { name: 'msi', says: 'Use the identity of the machine this runs on', type: 'boolean' },
    { name: 'deallocate', says: 'Give the machine\'s place back instead of only stopping it: slower, and it costs no more', type: 'boolean' },
    { name: 'cloud', says: 'public, usgov or china', type: 'string', default: 'public' },
    { name: 'endpoint', says: 'Address of the resource manager, where it is not the cloud\'s own', type: 'string' },
    { name: 'authority', says: 'Address of the login, likewise; else AZURE_AUTHORITY_HOST', type: 'string' },
    ...webParameters,
    ...orderParameters,
  ],
  status: (given) => loggedIn(given, (manager) => patiently(given, async () => {
    const told = await machine(manager)
    const addresses = await addressesOf(manager, told)
    return { ...wordOf(told), ...(addresses.length === 0 ? {} : { addresses }) }
  })),
  off: (given) => loggedIn(given, (manager) => order(manager, given, 'off')),
  on: (given) => loggedIn(given, (manager) => order(manager, given, 'on')),
  check(given) {
    placeOf(given)
    regionOf(given)
  },
  list: (given) => loggedIn(given, (manager) => patiently(given, () => list(manager))),
}

interface Manager {
  readonly web: Web
  readonly endpoint: string
  readonly token: string
  readonly place: Place
}

async function loggedIn<T>(given: Given, work: (manager: Manager) => Promise<T>): Promise<T> {
  const place = placeOf(given)
  const region = regionOf(given)
  const web = openWeb(given)
  try {
    return await work({ web, place, endpoint: region.endpoint, token: await patiently(given, () => tokenFor(region, given, web)) })
  } finally {
    web.close()
  }
}

function order(manager: Manager, given: Given, want: 'on' | 'off'): Promise<DeviceWord> {
  return carryOut(want, given, {
    look: () => machine(manager),
    word: wordOf,
    async order(before) {
      if (want === 'on' && isHibernated(before)) throw new Failure('device', wordOf(before).evidence)
      const wholly = given.yes('deallocate') || couldHibernate(before) || isHibernated(before)
      const path = want === 'on' ? '/start?' : wholly ? '/deallocate?' : '/powerOff?skipShutdown=true&'
      await ended(manager, given, await patiently(given, () => call(manager, 'POST', `${manager.place.machine}${path}${version}`)))
    },
  })
}

const version = 'api-version=2024-07-01'
const longestPause = 5_000

/** An operation that failed says why; the machine would only go on reading running. */
async function ended(manager: Manager, given: Given, accepted: Answer): Promise<void> {
  const url = accepted.header('azure-asyncoperation')
  if (url === undefined) return
  // The token goes with the question, so it is asked of the resource manager and of nobody else.
  if (!URL.canParse(url) || new URL(url).origin !== new URL(manager.endpoint).origin) throw new Failure('device', 'the operation is said to stand elsewhere')
  const until = performance.now() + Math.min(given.ms('power_timeout'), given.left())
  for (let answer = accepted; ;) {
    const pause = Math.min(longestPause, Math.max(lookPause(given), Number(answer.header('retry-after') ?? 0) * 1_000 || 0))
    if (performance.now() + pause >= until) throw new Failure('timeout', `the operation is still ${excerpt(textOf(answer.json()['status']) ?? 'InProgress')}`)
    await new Promise((resolve) => { setTimeout(resolve, pause) })
    answer = await patiently(given, () => call(manager, 'GET', url.slice(new URL(url).origin.length)))
    const { status, error } = answer.json()
    if (status === 'Succeeded') return
    if (status === 'Failed' || status === 'Canceled') throw failureOf(fieldsOf(error), 409, `the operation is ${status}`)
  }
}

/** The one that was asked for and no other: an answer about something else says nothing about it. */
async function machine(manager: Manager): Promise<Fields> {
  const told = (await call(manager, 'GET', `${manager.place.machine}?$expand=instanceView&${version}`)).json()
  if (String(told['id']).toLowerCase() !== manager.place.machine.toLowerCase()) throw new Failure('device', `what came back is not about ${manager.place.name}`)
  return told
}

const interfaceForm = /^\/subscriptions\/[A-Za-z0-9-]+\/resourceGroups\/[\w.()-]+\/providers\/Microsoft\.(?:Network|Compute\/virtualMachineScaleSets\/[\w.-]+\/virtualMachines\/\d+)\/networkInterfaces\/[\w.-]+$/i
const mostInterfaces = 8

/** Of all its interfaces, or none: half of them would tell a machine that it is another one. So it is, too, where they may not be read. */
async function addressesOf(manager: Manager, told: Fields): Promise<readonly string[]> {
  const ids = itemsOf(fieldsOf(fieldsOf(told['properties'])['networkProfile'])['networkInterfaces']).map((one) => textOf(fieldsOf(one)['id']) ?? '')
  if (ids.length > mostInterfaces || ids.some((id) => !interfaceForm.test(id) || /\/\.+\//.test(id))) return []
  try {
    const interfaces = await Promise.all(ids.map(async (id) => (await call(manager, 'GET', `${id}?api-version=${id.includes('/virtualMachineScaleSets/') ? '2018-10-01' : '2024-05-01'}`)).json()))
    const configurations = interfaces.flatMap((one) => itemsOf(fieldsOf(one['properties'])['ipConfigurations']))
    return configurations.flatMap((one) => textOf(fieldsOf(fieldsOf(one)['properties'])['privateIPAddress']) ?? [])
  } catch (error) {
    if (error instanceof Failure && (error.reason === 'privilege' || error.reason === 'notfound')) return []
    throw error
  }
}

function codesOf(told: Fields): readonly string[] {
  return itemsOf(fieldsOf(fieldsOf(told['properties'])['instanceView'])['statuses']).map((status) => textOf(fieldsOf(status)['code']) ?? '')
}

function isHibernated(told: Fields): boolean {
  return codesOf(told).some((code) => /^HibernationState\//i.test(code))
}

function couldHibernate(told: Fields): boolean {
  return fieldsOf(fieldsOf(told['properties'])['additionalCapabilities'])['hibernationEnabled'] === true
}

function wordOf(told: Fields): DeviceWord {
  const powers = codesOf(told).filter((code) => code.startsWith('PowerState/'))
  const [power] = powers.length === 1 ? powers : []
  const uuid = textOf(fieldsOf(told['properties'])['vmId'])
  const word = (state: DeviceWord['state'], evidence: string): DeviceWord => ({ state, evidence, ...(state === 'unknown' ? { reason: 'device' } : {}), ...(uuid === undefined ? {} : { machine: uuid }) })
  if (isHibernated(told)) return word('unknown', 'it hibernated: order it off, or start it')
  switch (power) {
    case 'PowerState/running': return word('on', power)
    case 'PowerState/deallocated': return word('off', power)
    case 'PowerState/stopped': return couldHibernate(told) ? word('unknown', `${power}, but it may have hibernated: order it off`) : word('off', power)
    // starting, stopping, deallocating, unknown, and what Azure may yet think of: it runs, or may.
    default: return word('unknown', power === undefined ? 'no one PowerState' : excerpt(power))
  }
}

const mostPages = 20

async function list(manager: Manager): Promise<readonly { plug: string; name: string }[]> {
  const outlets: { plug: string; name: string }[] = []
  let path: string | undefined = `${manager.place.collection}?${version}`
  for (let page = 0; page < mostPages && path !== undefined; page += 1) {
    const told: Fields = (await call(manager, 'GET', path)).json()
    for (const one of itemsOf(told['value']).map(fieldsOf)) outlets.push({ plug: String(one['name']), name: textOf(one['id']) ?? '' })
    const next = URL.parse(textOf(told['nextLink']) ?? '')
    path = next === null || next.origin !== new URL(manager.endpoint).origin ? undefined : `${next.pathname}${next.search}`
  }
  return outlets
}

async function call({ web, endpoint, token }: Manager, method: 'GET' | 'POST', path: string): Promise<Answer> {
  const answer = await web.ask({ method, url: `${endpoint}${path}`, headers: { authorization: `Bearer ${token}`, accept: 'application/json' }, ...(method === 'POST' ? { body: '' } : {}) })
  if (answer.status === 200 || answer.status === 202) return answer
  throw failureOf(fieldsOf(answer.json()['error']), answer.status, `HTTP ${answer.status}`)
}

const causes: readonly (readonly [RegExp, Reason, string])[] = [
  [/Throttl|TooManyRequests|RetryableError|OperationPreempted|^Conflict$/i, 'busy', ''],
  [/AuthorizationFailed|LinkedAuthorizationFailed|RoleAssignment/i, 'privilege', 'the identity needs read, powerOff, deallocate and start on the machine'],
  [/ScopeLocked/i, 'privilege', 'a lock stands on the machine or its group'],
  [/NotFound/i, 'notfound', 'check plug=, resourceGroup= and subscriptionId='],
  [/AuthenticationToken|AuthenticationFailed/i, 'auth', 'is the identity of this tenant?'],
]

function failureOf(error: Fields, status: number, otherwise: string): Failure {
  const code = textOf(error['code']) ?? ''
  const cause = causes.find(([pattern]) => pattern.test(code)) ?? causes.find(([, reason]) => reason === reasonOf(status))
  const advice = cause === undefined || cause[2] === '' ? '' : ` (${cause[2]})`
  return new Failure(cause?.[1] ?? reasonOf(status), `${code === '' ? '' : `${excerpt(code)}: `}${excerpt(textOf(error['message']) ?? otherwise)}${advice}`)
}

interface Place {
  /** Its path below the resource manager. */
  readonly machine: string
  /** Of all that stand beside it. */
  readonly collection: string
  readonly name: string
}

const idForm = /^(?:azure:\/\/)?(\/subscriptions\/[A-Za-z0-9-]+\/resourceGroups\/[\w.()-]+\/providers\/Microsoft\.Compute\/(?:virtualMachineScaleSets\/[\w.-]+\/)?virtualMachines)\/([\w.-]+)$/i
const nameForm = /^[A-Za-z0-9][\w.-]{0,79}$/

function placeOf(given: Given): Place {
  const plug = given.optional('plug') ?? ''
  // An address would be folded at such a segment, and name something else.
  const [, collection, name] = /\/\.+\//.test(plug) ? [] : idForm.exec(plug) ?? []
  if (collection !== undefined && name !== undefined && nameForm.test(name)) return { machine: `${collection}/${name}`, collection, name }
  // A list is of the whole group and names no machine.
  if (plug !== '' && !nameForm.test(plug)) throw new Failure('config', 'plug= is no name, resource id or providerID of a machine')
  const [group, subscription] = [given.text('resourceGroup'), given.text('subscriptionId')]
  if (!/^[\w.()-]{1,90}$/.test(group) || /^\.+$/.test(group)) throw new Failure('config', 'resourceGroup= is none')
  if (!/^[A-Za-z0-9-]{1,64}$/.test(subscription)) throw new Failure('config', 'subscriptionId= is none')
  const beside = `/subscriptions/${subscription}/resourceGroups/${group}/providers/Microsoft.Compute/virtualMachines`
  return { machine: `${beside}/${plug}`, collection: beside, name: plug }
}

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) await runAgent(agent)
