#!/usr/bin/env node
// Power of virtual machines of vSphere, by the REST API of vCenter (7.0 U2 and later). Off is a hard stop, and done only when
// vCenter reads POWERED_OFF and the host of the machine answers it: of a host that does not, vCenter goes on telling what it
// knew last. A suspended machine goes on in its old boot when it is started, so it is unknown.
import { isIP } from 'node:net'
import { sameMachine } from '../../core/machine-id.ts'
import { Failure, environment, neverPrint, runAgent, type AgentDescription, type DeviceWord, type Given, type Reason } from '../contract.ts'
import { excerpt, fieldsOf, itemsOf, openWeb, reasonOf, textOf, trustParameters, webParameters, type Answer, type Fields, type Web } from '../https.ts'
import { carryOut, orderParameters, patiently } from '../order.ts'

export const agent: AgentDescription = {
  name: 'vmware',
  says: 'Switches a virtual machine of VMware vSphere through vCenter. It needs VirtualMachine.Interact.PowerOn and PowerOff on it, and may read the hosts. Tells the UUID of the machine, so that the path can be proven to end at it; and, of one that its node\'s providerID names, the addresses that its VMware Tools tell.',
  vendor: 'https://developer.broadcom.com/xapis/vsphere-automation-api',
  parameters: [
    { name: 'ip', says: 'Address or name of vCenter', type: 'string', required: true, obsoletes: 'ipaddr', short: 'a' },
    { name: 'ipport', says: 'Its TCP port', type: 'integer', default: '443', short: 'u' },
    { name: 'username', says: 'Login name', type: 'string', required: true, obsoletes: 'login', short: 'l' },
    { name: 'password', says: 'Password', type: 'string', required: true, obsoletes: 'passwd', short: 'p' },
    { name: 'plug', says: 'The virtual machine: its id, as vm-1234, its name, or the whole spec.providerID of its node', type: 'string', required: true, obsoletes: 'port', short: 'n' },
    ...webParameters,
    ...trustParameters,
    ...orderParameters,
  ],
  status: (given) => loggedIn(given, (center) => patiently(given, () => status(center, given))),
  off: (given) => loggedIn(given, (center) => order(center, given, 'off')),
  on: (given) => loggedIn(given, (center) => order(center, given, 'on')),
  check: (given) => void uuidOf(given.text('plug')),
  list: (given) => loggedIn(given, (center) => patiently(given, () => list(center))),
}

interface Center {
  readonly web: Web
  readonly url: string
  readonly session: string
}

async function loggedIn<T>(given: Given, work: (center: Center) => Promise<T>): Promise<T> {
  const web = openWeb(given)
  try {
    const center = await patiently(given, () => logIn(web, given))
    try {
      return await work(center)
    } finally {
      // vCenter keeps few sessions for one user, and one left behind is one less for the next who must fence.
      await web.ask({ method: 'DELETE', url: `${center.url}/session`, headers: { 'vmware-api-session-id': center.session } }).catch(() => undefined)
    }
  } finally {
    web.close()
  }
}

async function logIn(web: Web, given: Given): Promise<Center> {
  const [ip, port, username, password] = [given.text('ip'), given.text('ipport'), given.text('username'), given.text('password')]
  const url = `https://${isIP(ip) === 6 ? `[${ip}]` : ip}:${port}/api`
  const login = Buffer.from(`${username}:${password}`).toString('base64')
  neverPrint(password)
  neverPrint(login)
  const answer = await web.ask({ method: 'POST', url: `${url}/session`, headers: { authorization: `Basic ${login}` }, body: '' })
  if (answer.status === 401) throw new Failure('auth', 'vCenter refuses username= and password= (is the account locked?)')
  if (answer.status === 404) throw new Failure('config', `${ip} has no /api: it takes vCenter 7.0 U2 or later, and not a single ESXi host`)
  const session = answer.status === 201 || answer.status === 200 ? /^"([\x21\x23-\x7e]{8,512})"$/.exec(answer.text.trim())?.[1] : undefined
  if (session === undefined) throw refusalOf(answer, 'the login')
  neverPrint(session)
  return { web, url, session }
}

interface Machine {
  readonly id: string
  readonly told: Fields
  readonly lost: boolean
}

async function status(center: Center, given: Given): Promise<DeviceWord> {
  const seen = await machine(center, await idOf(center, given))
  const word = wordOf(seen)
  // By a name or an id a person answers for it; what a Node says of itself is held against its addresses.
  const addresses = word.state === 'on' && uuidOf(given.text('plug')) !== undefined ? await addressesOf(center, seen.id) : []
  return addresses.length === 0 ? word : { ...word, addresses }
}

/** As its VMware Tools tell. Where none run nothing is known of them, and that is no fault of the machine's. */
async function addressesOf(center: Center, id: string): Promise<readonly string[]> {
  const told = await call(center, 'GET', `/vcenter/vm/${id}/guest/networking/interfaces`).catch(() => undefined)
  const own = itemsOf(told).flatMap((one) => itemsOf(fieldsOf(fieldsOf(one)['ip'])['ip_addresses'])).flatMap((one) => textOf(fieldsOf(one)['ip_address']) ?? [])
  return [...new Set(own.filter((address) => isIP(address) !== 0))].slice(0, mostAddresses)
}

const mostAddresses = 16

async function order(center: Center, given: Given, want: 'on' | 'off'): Promise<DeviceWord> {
  const plugged = await patiently(given, () => idOf(center, given))
  return carryOut(want, given, {
    look: () => machine(center, plugged),
    word: wordOf,
    async order({ id, told, lost }) {
      // One that is suspended is not started but resumed, in its old boot: what we switch on must have been off.
      if (lost || (want === 'on' && told['power_state'] === 'SUSPENDED')) throw new Failure('device', wordOf({ id, told, lost }).evidence)
      await patiently(given, () => call(center, 'POST', `/vcenter/vm/${id}/power?action=${want === 'off' ? 'stop' : 'start'}`))
    },
  })
}

async function machine(center: Center, id: string): Promise<Machine> {
  const told = fieldsOf(await call(center, 'GET', `/vcenter/vm/${id}`))
  return { id, told, lost: await isLost(center, id) }
}

/** Whether its host has stopped answering vCenter. The lists are of those few alone, and most often empty. */
async function isLost(center: Center, id: string): Promise<boolean> {
  const hosts = itemsOf(await call(center, 'GET', '/vcenter/host?connection_states=DISCONNECTED&connection_states=NOT_RESPONDING'))
    .map((host) => textOf(fieldsOf(host)['host'])).filter((host) => host !== undefined)
  if (hosts.length === 0) return false
  const query = new URLSearchParams([['vms', id], ...hosts.map((host) => ['hosts', host] as [string, string])])
  return itemsOf(await call(center, 'GET', `/vcenter/vm?${query.toString()}`)).length > 0
}

const idForm = /^vm-\d{1,12}$/

async function idOf(center: Center, given: Given): Promise<string> {
  const plug = given.text('plug')
  if (idForm.test(plug)) return plug
  const uuid = uuidOf(plug)
  if (uuid !== undefined) return byUuid(center, uuid)
  const [id, ...others] = await named(center, [plug])
  if (others.length > 0) throw new Failure('config', `${others.length + 1} machines are named ${plug}: name one by its id, as list tells it`)
  if (id === undefined) throw new Failure('notfound', `vCenter shows this user no machine named ${excerpt(plug)}`)
  return id
}

const providerForm = /^vsphere:\/\/([\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12})$/i

/** Undefined: it is an id, or a name. */
function uuidOf(plug: string): string | undefined {
  if (!plug.startsWith('vsphere:')) return undefined
  const uuid = providerForm.exec(plug)?.[1]
  if (uuid === undefined) throw new Failure('config', 'plug= is no providerID of a machine, as vsphere://UUID')
  return uuid
}

const mostLookedThrough = 100

/** vCenter's lists neither tell nor look for a UUID, so that each machine must be asked: first those that are named as the node is. */
async function byUuid(center: Center, uuid: string): Promise<string> {
  const node = textOf(environment()['HOLDFAST_NODE'])
  const likely = node === undefined ? [] : await named(center, [...new Set([node, node.split('.')[0] ?? node])])
  const own = await bearerOf(center, likely, uuid)
  if (own !== undefined) return own
  const others = idsOf(await call(center, 'GET', '/vcenter/vm')).filter((id) => !likely.includes(id))
  if (others.length > mostLookedThrough) {
    throw new Failure('config', `no machine with this UUID is named as the node is, and ${others.length} are too many to look through: let this user see the nodes alone, or write plug=vm-… for this node`)
  }
  const id = await bearerOf(center, others, uuid)
  if (id === undefined) throw new Failure('notfound', 'vCenter shows this user no machine with this UUID')
  return id
}

/** The only one of them. A copy, in another folder under the same name perhaps, is off while the machine runs. */
async function bearerOf(center: Center, ids: readonly string[], uuid: string): Promise<string | undefined> {
  const found: string[] = []
  for (const id of ids) if (await bears(center, id, uuid)) found.push(id)
  if (found.length > 1) throw new Failure('config', `${found.length} machines bear this UUID: write plug=vm-… for this node`)
  return found[0]
}

/** In either writing: what a Node says of itself may be vSphere's own, or its firmware's with some bytes turned round. */
async function bears(center: Center, id: string, uuid: string): Promise<boolean> {
  try {
    const bios = textOf(fieldsOf(fieldsOf(await call(center, 'GET', `/vcenter/vm/${id}`))['identity'])['bios_uuid'])
    return bios !== undefined && sameMachine(bios, uuid)
  } catch (error) {
    if (error instanceof Failure && error.reason === 'notfound') return false // deleted since the list
    throw error
  }
}

async function named(center: Center, names: readonly string[]): Promise<readonly string[]> {
  const found = itemsOf(await call(center, 'GET', `/vcenter/vm?${new URLSearchParams(names.map((name) => ['names', name])).toString()}`))
  return idsOf(found.filter((one) => names.includes(String(fieldsOf(one)['name']))))
}

function idsOf(told: unknown): readonly string[] {
  return itemsOf(told).flatMap((one) => textOf(fieldsOf(one)['vm']) ?? []).filter((id) => idForm.test(id))
}

function wordOf({ told, lost }: Machine): DeviceWord {
  const power = textOf(told['power_state']) ?? 'no power_state'
  const uuid = textOf(fieldsOf(told['identity'])['bios_uuid'])
  const evidence = `${excerpt(power)}${uuid === undefined ? '' : `, BIOS UUID ${excerpt(uuid)}`}`
  const of = uuid === undefined ? {} : { machine: uuid }
  if (lost) return { state: 'unknown', evidence: `${evidence}, but its host does not answer vCenter`, reason: 'device', ...of }
  if (power === 'POWERED_ON') return { state: 'on', evidence, ...of }
  if (power === 'POWERED_OFF') return { state: 'off', evidence, ...of }
  return { state: 'unknown', evidence, reason: 'device', ...of }
}

async function list(center: Center): Promise<readonly { plug: string; name: string }[]> {
  return itemsOf(await call(center, 'GET', '/vcenter/vm')).map(fieldsOf).map((one) => ({ plug: String(one['vm']), name: excerpt(String(one['name'])) }))
}

async function call({ web, url, session }: Center, method: 'GET' | 'POST', path: string): Promise<unknown> {
  const answer = await web.ask({ method, url: `${url}${path}`, headers: { 'vmware-api-session-id': session, accept: 'application/json' }, ...(method === 'POST' ? { body: '' } : {}) })
  if (answer.status === 204) return {}
  if (answer.status !== 200) throw refusalOf(answer, path.split('?')[0] ?? path)
  try {
    return JSON.parse(answer.text)
  } catch {
    throw new Failure('device', 'what came back is no answer of vCenter')
  }
}

const causes: ReadonlyMap<string, readonly [Reason, string]> = new Map([
  ['UNAUTHENTICATED', ['auth', '']],
  ['UNAUTHORIZED', ['privilege', ' (the user needs VirtualMachine.Interact.PowerOn and PowerOff, and to read the hosts)']],
  ['NOT_FOUND', ['notfound', ' (check plug=)']],
  ['RESOURCE_BUSY', ['busy', '']],
  ['SERVICE_UNAVAILABLE', ['busy', '']],
  // Not asked again: the machine's host or its files are out of vCenter's reach.
  ['RESOURCE_INACCESSIBLE', ['device', ' (vCenter cannot reach the machine\'s host or files)']],
  ['NOT_ALLOWED_IN_CURRENT_STATE', ['device', '']],
  // Somebody was quicker, or it is under way: the next look tells.
  ['ALREADY_IN_DESIRED_STATE', ['busy', '']],
])

function refusalOf(answer: Answer, what: string): Failure {
  const told = answer.json()
  const kind = textOf(told['error_type']) ?? ''
  const [message] = itemsOf(told['messages']).map((one) => textOf(fieldsOf(one)['default_message']))
  const [reason, advice] = causes.get(kind) ?? [reasonOf(answer.status), '']
  return new Failure(reason, `${what}: ${kind === '' ? `HTTP ${answer.status}` : excerpt(kind)}${message === undefined ? '' : `: ${excerpt(message)}`}${advice}`)
}

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) await runAgent(agent)
