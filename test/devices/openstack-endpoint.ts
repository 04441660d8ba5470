// Keystone and Nova of our own, as far as a server is stopped and started, with a machine behind the server. That they speak as
// OpenStack does is shown by its own client: fence_openstack and python-novaclient are driven by them.
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Machine } from './machine.ts'
import { installed, pause, secret, type Parameters, type Rack } from './rack.ts'

export interface OpenStackEndpoint {
  readonly login: Parameters
  fault: NovaFault | undefined
  /** The next order that is taken. */
  ordered(): Promise<void>
  /** Nobody answers any more, and whoever was spoken to is cut off. */
  leave(): Promise<void>
}

/** What stands behind its one server. */
export type Instance = Pick<Machine, 'uuid' | 'name' | 'feed'>

/** `dead compute` takes an order, and its task stays for ever. `forbidden` refuses each. `late` carries it out when this comes to pass.
 *  `mute` never answers, `broken` answers 500, `slow` keeps every answer so long. */
export type NovaFault = 'dead compute' | 'forbidden' | 'mute' | 'broken' | { readonly late: Promise<unknown> } | { readonly slow: number }

interface Reply {
  readonly status: number
  readonly body?: object
  readonly token?: string
}

export async function startOpenStack(rack: Rack, machine: Instance): Promise<OpenStackEndpoint> {
  const own: { fault: NovaFault | undefined } = { fault: undefined }
  let taken: (() => void) | undefined
  const nova: Nova = { machine, task: null, fault: () => own.fault, took: () => taken?.() }
  const server = createServer((request, response) => {
    void textOf(request).then(async (body) => {
      if (own.fault === 'mute') return
      if (typeof own.fault === 'object' && 'slow' in own.fault) await pause(own.fault.slow)
      const { status, body: said, token } = own.fault === 'broken' ? refusal(500, 'computeFault', 'The server has failed.') : answer(nova, { method: request.method ?? '', path: (request.url ?? '').replace(/\?.*$/, ''), token: String(request.headers['x-auth-token']), body, host: request.headers.host ?? '' })
      response.writeHead(status, { 'content-type': 'application/json', ...(token === undefined ? {} : { 'x-subject-token': token }) }).end(said === undefined ? '' : JSON.stringify(said))
    })
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  const { port } = server.address() as AddressInfo // it listens on TCP, so this is no path
  rack.wrap('fence_openstack', ['env', `PYTHONPATH=${join(installed('openstack'), 'lib/python3.11/site-packages')}`, '/usr/sbin/fence_openstack'])
  const login = { auth_url: `http://127.0.0.1:${port}/v3`, username: 'holdfast', password: secret, project_name: 'nodes', user_domain_name: 'Default', project_domain_name: 'Default', plug: machine.uuid }
  const leave = () => new Promise<void>((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
  rack.keep({ vanish: leave })
  return Object.assign(own, { login, leave, ordered: () => new Promise<void>((resolve) => { taken = resolve }) })
}

interface Nova {
  readonly machine: Instance
  task: string | null
  fault(): NovaFault | undefined
  took(): void
}

interface Call {
  readonly method: string
  readonly path: string
  readonly token: string
  readonly body: string
  readonly host: string
}

const token = 'gAAAAAB-token'

function answer(nova: Nova, call: Call): Reply {
  const at = `http://${call.host}`
  const version = { id: 'v3.14', status: 'stable', links: [{ rel: 'self', href: `${at}/v3/` }] }
  if (call.path.replace(/\/$/, '') === '') return { status: 300, body: { versions: { values: [version] } } }
  if (call.path.replace(/\/$/, '') === '/v3') return { status: 200, body: { version } }
  if (call.path === '/v3/auth/tokens') return logIn(at, call.body)
  if (call.token !== token) return refusal(401, 'unauthorized', 'Unauthorized')
  const root = call.path.replace(/\/$/, '')
  if (root === '/compute/v2.1') return { status: 200, body: { version: { id: 'v2.1', status: 'CURRENT', version: '2.93', min_version: '2.1', links: [{ rel: 'self', href: `${at}/compute/v2.1/` }] } } }
  if (root === '/compute/v2.1/servers/detail' || root === '/compute/v2.1/servers') return { status: 200, body: { servers: [told(nova)] } }
  const [, id, action] = /^\/compute\/v2\.1\/servers\/([^/]+)(\/action)?$/.exec(root) ?? []
  if (id !== nova.machine.uuid) return refusal(404, 'itemNotFound', 'Instance could not be found.')
  if (action === undefined) return { status: 200, body: { server: told(nova) } }
  return ordered(nova, Object.keys(JSON.parse(call.body) as object)[0] ?? '') // an object whose one key is the order
}

function logIn(at: string, body: string): Reply {
  const { auth } = JSON.parse(body) as { readonly auth: { readonly identity: { readonly password?: { readonly user?: { readonly password?: string } } } } } // by Keystone's reference
  if (auth.identity.password?.user?.password !== secret) return refusal(401, 'error', 'The request you have made requires authentication.')
  const endpoints = ['public', 'internal', 'admin'].map((side) => ({ id: side, interface: side, region: 'one', region_id: 'one', url: `${at}/compute/v2.1/` }))
  return {
    status: 201, token,
    body: {
      token: {
        methods: ['password'], issued_at: '2026-01-01T00:00:00.000000Z', expires_at: '2099-01-01T00:00:00.000000Z', user: { id: 'holdfast', name: 'holdfast', domain: { id: 'default', name: 'Default' } },
        project: { id: 'nodes', name: 'nodes', domain: { id: 'default', name: 'Default' } }, roles: [{ id: 'member', name: 'member' }], catalog: [{ id: 'nova', name: 'nova', type: 'compute', endpoints }],
      },
    },
  }
}

function told({ machine, task }: Nova): object {
  const on = machine.feed.on()
  return {
    id: machine.uuid, name: machine.name, status: on ? 'ACTIVE' : 'SHUTOFF', links: [], addresses: {}, metadata: {},
    'OS-EXT-STS:task_state': task, 'OS-EXT-STS:vm_state': on ? 'active' : 'stopped', 'OS-EXT-STS:power_state': on ? 1 : 4,
  }
}

function ordered(nova: Nova, action: string): Reply {
  const on = nova.machine.feed.on()
  const fault = nova.fault()
  if (fault === 'forbidden') return refusal(403, 'forbidden', `Policy doesn't allow os_compute_api:${action} to be performed.`)
  const fits = nova.task === null && ((action === 'os-stop' && on) || (action === 'os-start' && !on))
  if (!fits) return refusal(409, 'conflictingRequest', `Cannot '${action}' instance while it is in this state`)
  nova.task = action === 'os-stop' ? 'powering-off' : 'powering-on'
  nova.took()
  if (fault === 'dead compute') return { status: 202 }
  void (typeof fault === 'object' && 'late' in fault ? fault.late : pause(100)).then(async () => {
    await nova.machine.feed.switchTo(action === 'os-start')
    nova.task = null
  })
  return { status: 202 }
}

function refusal(status: number, name: string, message: string): Reply {
  return { status, body: { [name]: { code: status, message } } }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece)
  return Buffer.concat(pieces).toString()
}
