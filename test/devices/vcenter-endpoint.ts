// vCenter of our own, as far as machines are found, stopped and started, with one behind it and others in its books alone, in both of
// its REST dialects: /rest, of before 7.0 U2, and /api. That it speaks as vCenter does is shown by programs of others, driven by it:
// fence_vmware_rest by the old one, the collection vmware.vmware_rest of Ansible, made from VMware's own description, by the new one.
import { randomUUID } from 'node:crypto'
import { startCloudFront, type Call, type CloudFront, type Reply } from './cloud-front.ts'
import type { Feed, Machine } from './machine.ts'
import { secret, type Parameters, type Rack } from './rack.ts'

export interface VCenter {
  readonly front: CloudFront
  readonly ours: Parameters
  readonly theirs: Parameters
  /** What it tells of the machine, whatever that does. */
  says: string | undefined
  /** The machine's host has stopped answering it. */
  lost: boolean
  /** What the machine's VMware Tools tell, where they run. */
  addresses: readonly string[] | undefined
  /** Its UUID in the books of vCenter, and how the machine is named in them. */
  uuid: string
  name: string
  /** Further machines of the same host: of the next ids, in this order. */
  readonly others: { readonly name: string; readonly uuid: string; readonly feed: Feed }[]
}

export const vcenterName = 'vcenter.test'
export const [machineId, machineName] = ['vm-1001', 'node-1']
const [username, host] = ['holdfast@vsphere.local', 'host-12']

export async function startVCenter(rack: Rack, machine: Pick<Machine, 'uuid' | 'feed'>): Promise<VCenter> {
  const own: Omit<VCenter, 'front' | 'ours' | 'theirs'> = { says: undefined, lost: false, addresses: undefined, uuid: machine.uuid, name: machineName, others: [] }
  const sessions = new Set<string>()
  const booked = (): readonly Booked[] => [
    { vm: machineId, name: own.name, uuid: own.uuid, feed: machine.feed, power: own.says ?? powerOf(machine.feed) },
    ...own.others.map(({ name, uuid, feed }, index) => ({ vm: otherId(index), name, uuid, feed, power: powerOf(feed) })),
  ]
  const listed = (query: URLSearchParams, prefix: string) => {
    const fits = (key: string, value: string) => !query.has(`${prefix}${key}`) || query.getAll(`${prefix}${key}`).includes(value)
    return booked().filter(({ vm, name }) => fits('names', name) && fits('vms', vm) && fits('hosts', host)).map(summary)
  }
  const hosts = (query: URLSearchParams) => {
    const connection_state = own.lost ? 'NOT_RESPONDING' : 'CONNECTED'
    return !query.has('connection_states') || query.getAll('connection_states').includes(connection_state) ? [{ host, name: 'host', connection_state, power_state: 'POWERED_ON' }] : []
  }
  // As vCenter does it, it is answered when it is done.
  const order = async ({ feed, power }: Booked, action: string): Promise<Fault | undefined> => {
    if (front.fault === 'forbidden') return { status: 403, kind: 'UNAUTHORIZED', says: 'Permission to perform this operation was denied.' }
    if (power === (action === 'start' ? 'POWERED_ON' : 'POWERED_OFF')) return { status: 400, kind: 'ALREADY_IN_DESIRED_STATE', says: `Virtual machine is already powered ${action === 'start' ? 'on' : 'off'}.` }
    await front.carryOut(feed, action === 'start')
    return undefined
  }
  const old = async (call: Call): Promise<Reply> => {
    if (call.path === '/rest/com/vmware/cis/session') return call.method === 'POST' ? open((id) => ({ status: 200, body: { value: id } }), call, oldFault) : closed(call, 200)
    if (!sessions.has(call.session)) return oldFault(unknownSession)
    if (call.path === '/rest/vcenter/vm') return { status: 200, body: { value: listed(call.query, 'filter.') } }
    const [, id, action] = /^\/rest\/vcenter\/vm\/([^/]+)\/power\/(start|stop)$/.exec(call.path) ?? []
    const meant = booked().find(({ vm }) => vm === id)
    const fault = meant === undefined ? unknownMachine : await order(meant, action ?? '')
    return fault === undefined ? { status: 200 } : oldFault(fault)
  }
  const recent = async (call: Call): Promise<Reply> => {
    if (call.path === '/api/session') return call.method === 'POST' ? open((id) => ({ status: 201, body: id }), call, newFault) : closed(call, 204)
    if (!sessions.has(call.session)) return newFault(unknownSession)
    if (call.path === '/api/vcenter/vm') return { status: 200, body: listed(call.query, '') }
    if (call.path === '/api/vcenter/host') return { status: 200, body: hosts(call.query) }
    const [, id, rest = ''] = /^\/api\/vcenter\/vm\/([^/]+)(\/power|\/guest\/networking\/interfaces)?$/.exec(call.path) ?? []
    const meant = booked().find(({ vm }) => vm === id)
    if (meant === undefined) return newFault(unknownMachine)
    const { name, uuid, power } = meant
    if (rest === '') return { status: 200, body: { ...summary(meant), identity: { name, bios_uuid: uuid, instance_uuid: uuid }, hardware: { version: 'VMX_19' } } }
    if (rest.startsWith('/guest')) return own.addresses === undefined || id !== machineId ? newFault(noTools) : { status: 200, body: interfaces(own.addresses) }
    if (call.method === 'GET') return { status: 200, body: { state: power } }
    const fault = await order(meant, call.query.get('action') ?? '')
    return fault === undefined ? { status: 204 } : newFault(fault)
  }
  const open = (reply: (id: string) => Reply, { authorization }: Call, refuse: (fault: Fault) => Reply): Reply => {
    if (authorization !== `Basic ${Buffer.from(`${username}:${secret}`).toString('base64')}`) return refuse({ ...unknownSession, says: 'Authentication required.' })
    const id = randomUUID()
    sessions.add(id)
    return reply(id)
  }
  const closed = ({ session }: Call, status: number): Reply => {
    sessions.delete(session)
    return { status }
  }
  const front = await startCloudFront(rack, 'vcenter', [vcenterName], (call) => (call.path.startsWith('/rest/') ? old(call) : recent(call)))
  front.wrap('vmware')
  front.wrapOthers('fence_vmware_rest', 'vsphere')
  const login = { ip: vcenterName, username, password: secret, plug: machineName }
  return Object.assign(own, { front, ours: login, theirs: { ...login, ssl_insecure: '1' } })
}

interface Booked {
  readonly vm: string
  readonly name: string
  readonly uuid: string
  readonly feed: Feed
  readonly power: string
}

/** Of the others, by their place among them. */
export function otherId(index: number): string {
  return `vm-${1_002 + index}`
}

function summary({ vm, name, power }: Booked): object {
  return { vm, name, power_state: power, cpu_count: 1, memory_size_MiB: 128 }
}

function powerOf(feed: Feed): string {
  return feed.on() ? 'POWERED_ON' : 'POWERED_OFF'
}

function interfaces(addresses: readonly string[]): object {
  return [{ nic: '4000', mac_address: '00:50:56:00:00:01', ip: { ip_addresses: addresses.map((address) => ({ ip_address: address, prefix_length: 24, state: 'PREFERRED' })) } }]
}

interface Fault {
  readonly status: number
  readonly kind: string
  readonly says: string
}

const unknownSession: Fault = { status: 401, kind: 'UNAUTHENTICATED', says: 'The session is not authenticated.' }
const noTools: Fault = { status: 503, kind: 'SERVICE_UNAVAILABLE', says: 'VMware Tools is not running.' }
const unknownMachine: Fault = { status: 404, kind: 'NOT_FOUND', says: 'The object has already been deleted or has not been completely created.' }

function newFault({ status, kind, says }: Fault): Reply {
  return { status, body: { error_type: kind, messages: [{ args: [], default_message: says, id: 'x' }] } }
}

function oldFault({ status, kind, says }: Fault): Reply {
  return { status, body: { type: `com.vmware.vapi.std.errors.${kind.toLowerCase()}`, value: { messages: [{ args: [], default_message: says, id: 'x' }] } } }
}
