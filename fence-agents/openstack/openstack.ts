#!/usr/bin/env node
// Power of OpenStack servers. Off is os-stop, and done only when all that Nova says of the server agrees: SHUTOFF, stopped,
// no task under way, power_state shut down, and a hypervisor that answers. One word alone is not enough: the status is Nova's
// own record, which os-resetState rewrites without touching the machine, and which a dead nova-compute leaves as it was. A
// server that is paused, suspended, shelved or in error is not off. Its state is never reset here.
import { Failure, runAgent, type AgentDescription, type DeviceWord, type Given, type Reason } from '../contract.ts'
import { excerpt, fieldsOf, itemsOf, openWeb, reasonOf, textOf, trustParameters, webParameters, type Fields } from '../https.ts'
import { carryOut, orderParameters, patiently } from '../order.ts'
import { logIn, type Nova } from './keystone.ts'

export const agent: AgentDescription = {
  name: 'openstack',
  says: 'Switches a server of OpenStack. Nova first asks the system to shut down and cuts the power after a minute, if that hangs: give the method time. Tells the UUID of the server, which its machine bears too where it runs on libvirt.',
  vendor: 'https://docs.openstack.org/nova/latest/',
  parameters: [
    { name: 'plug', says: 'The server: its id, or the whole spec.providerID of its node', type: 'string', required: true, obsoletes: 'port', short: 'n' },
    { name: 'auth_url', says: 'Address of Keystone; else OS_AUTH_URL, as all below that are not given are taken from OS_…', type: 'string' },
    { name: 'application_credential_id', says: 'Id of an application credential', type: 'string' },
    { name: 'application_credential_secret', says: 'Its secret', type: 'string' },
    { name: 'username', says: 'Login name, where there is no application credential', type: 'string', obsoletes: 'login', short: 'l' },
    { name: 'password', says: 'Password', type: 'string', obsoletes: 'passwd', short: 'p' },
    { name: 'project_name', says: 'Project', type: 'string' },
    { name: 'user_domain_name', says: 'Domain of the user; else Default', type: 'string' },
    { name: 'project_domain_name', says: 'Domain of the project; else Default', type: 'string' },
    { name: 'region_name', says: 'Region, where there are several', type: 'string' },
    { name: 'interface', says: 'Side from which Nova is spoken to: public, internal or admin; else public', type: 'string' },
    { name: 'compute_url', says: 'Address of Nova, where Keystone\'s own is not to be used', type: 'string' },
    ...webParameters,
    ...trustParameters,
    ...orderParameters,
  ],
  status: (given) => loggedIn(given, (nova) => patiently(given, async () => wordOf(await server(nova, given)))),
  off: (given) => loggedIn(given, (nova) => order(nova, given, 'off')),
  on: (given) => loggedIn(given, (nova) => order(nova, given, 'on')),
  check: (given) => void placeOf(given),
  list: (given) => loggedIn(given, (nova) => patiently(given, () => list(nova))),
}

async function loggedIn<T>(given: Given, work: (nova: Nova) => Promise<T>): Promise<T> {
  const { region } = placeOf(given)
  const web = openWeb(given)
  try {
    return await work(await patiently(given, () => logIn(given, web, region)))
  } finally {
    web.close()
  }
}

const tasks = { off: 'powering-off', on: 'powering-on' } as const
const orders = { off: 'os-stop', on: 'os-start' } as const

function order(nova: Nova, given: Given, want: 'on' | 'off'): Promise<DeviceWord> {
  const path = `/servers/${placeOf(given).id}/action`
  return carryOut(want, given, {
    look: () => server(nova, given),
    word: wordOf,
    async order(before) {
      if (stateOf(before).task === tasks[want]) return // somebody's order is under way, perhaps our own of an earlier run
      try {
        await patiently(given, () => call(nova, 'POST', path, { [orders[want]]: null }))
      } catch (error) {
        // Two coordinators may order at once, and the second is refused for what the first has begun.
        const { task } = stateOf(await server(nova, given))
        if (task !== tasks[want]) throw error
      }
    },
  })
}

/** The one that was asked for and no other: an answer about something else says nothing about it. */
async function server(nova: Nova, given: Given): Promise<Fields> {
  const { id } = placeOf(given)
  const told = fieldsOf((await call(nova, 'GET', `/servers/${id}`))['server'])
  if (String(told['id']).toLowerCase() !== id.toLowerCase()) throw new Failure('device', `what came back is not about ${id}`)
  return told
}

interface ServerState {
  readonly status: string
  readonly vm: unknown
  readonly task: unknown
  readonly power: unknown
  readonly host: string | undefined
}

function stateOf(told: Fields): ServerState {
  return {
    status: textOf(told['status']) ?? 'none', vm: told['OS-EXT-STS:vm_state'], task: told['OS-EXT-STS:task_state'], power: told['OS-EXT-STS:power_state'], host: textOf(told['host_status']),
  }
}

const running = 1
const shutDown = 4

function wordOf(told: Fields): DeviceWord {
  const { status, vm, task, power, host } = stateOf(told)
  const evidence = `status ${excerpt(status)}, vm_state ${excerpt(String(vm))}, power_state ${excerpt(String(power))}${task === null ? '' : `, task ${excerpt(String(task))}`}${host === undefined ? '' : `, host ${excerpt(host)}`}`
  const of = { machine: String(told['id']), ...addressesOf(told) }
  // Told only to those who may see it. A hypervisor that does not answer has told Nova nothing of late.
  if (host !== undefined && host !== 'UP' && host !== 'MAINTENANCE') return { state: 'unknown', evidence: `${evidence}: its hypervisor does not answer`, reason: 'device', ...of }
  if (status === 'ACTIVE' && vm === 'active' && task === null && power === running) return { state: 'on', evidence, ...of }
  if (status === 'SHUTOFF' && vm === 'stopped' && task === null && power === shutDown) return { state: 'off', evidence, ...of }
  return { state: 'unknown', evidence, reason: 'device', ...of }
}

const mostAddresses = 16

/** Of its own ports, network by network. A floating one is led to it from elsewhere, and may be led to another tomorrow. */
function addressesOf(told: Fields): Pick<DeviceWord, 'addresses'> {
  const own = Object.values(fieldsOf(told['addresses'])).flatMap((network) => itemsOf(network).map(fieldsOf))
    .filter((one) => one['OS-EXT-IPS:type'] !== 'floating').map((one) => textOf(one['addr'])).filter((address) => address !== undefined)
  return own.length === 0 ? {} : { addresses: own.slice(0, mostAddresses) }
}

const pageSize = 500
const mostPages = 20

async function list(nova: Nova): Promise<readonly { plug: string; name: string }[]> {
  const outlets: { plug: string; name: string }[] = []
  for (let page = 0; page < mostPages; page += 1) {
    const last = outlets.at(-1)
    const servers = itemsOf((await call(nova, 'GET', `/servers?limit=${pageSize}${last === undefined ? '' : `&marker=${encodeURIComponent(last.plug)}`}`))['servers']).map(fieldsOf)
    for (const one of servers) outlets.push({ plug: String(one['id']), name: excerpt(String(one['name'])) })
    if (servers.length < pageSize) break
  }
  return outlets
}

/** From 2.16 on Nova tells, to those who may know, whether the hypervisor answers. */
const version = 'compute 2.16'

async function call({ web, url, token }: Nova, method: 'GET' | 'POST', path: string, body?: object): Promise<Fields> {
  const answer = await web.ask({
    method, url: `${url}${path}`, headers: { 'x-auth-token': token, accept: 'application/json', 'openstack-api-version': version, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (answer.status === 200 || answer.status === 202) return answer.json()
  // Nova wraps its own words in the name of the fault: itemNotFound, conflictingRequest, forbidden, …
  const said = Object.values(answer.json()).map((fault) => textOf(fieldsOf(fault)['message'])).find((message) => message !== undefined)
  const [reason, advice] = causes.get(answer.status) ?? [reasonOf(answer.status), '']
  throw new Failure(reason, `Nova: ${excerpt(said ?? `HTTP ${answer.status}`)}${advice}`)
}

const causes: ReadonlyMap<number, readonly [Reason, string]> = new Map([
  [401, ['auth', ' (is the credential still good?)']],
  [403, ['privilege', ' (the credential needs the role member in the server\'s project; or the rate is limited)']],
  [404, ['notfound', ' (check plug=, region_name= and the project)']],
  // Not asked again: a lock, a pause or a shelf does not pass by itself.
  [409, ['device', ' (it is locked, or in a state from which Nova does not stop or start it)']],
  [413, ['busy', '']],
])

const idForm = /^(?:openstack:\/\/([^/]*)\/)?([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})$/i

function placeOf(given: Given): { readonly id: string; readonly region: string | undefined } {
  const plug = given.optional('plug') ?? ''
  const [, region, id] = idForm.exec(plug) ?? []
  // A list is of the whole project and names no server.
  if (plug !== '' && id === undefined) throw new Failure('config', 'plug= is no id of a server, nor a providerID')
  return { id: id ?? '', region: textOf(region) }
}

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) await runAgent(agent)
