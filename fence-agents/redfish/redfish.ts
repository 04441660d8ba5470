#!/usr/bin/env node
// Power by Redfish. Off is ForceOff, and done only when the controller itself reads Off: PoweringOff is a machine that may
// still write. The system is always named; where several share a controller, guessing has switched off the wrong one.
import { runAgent, Failure, pollUntil, type AgentDescription, type DeviceWord, type Given, type Reason } from '../contract.ts'
import { connectTo, samePlace, type Answer, type Connection } from './connection.ts'

export const agent: AgentDescription = {
  name: 'redfish',
  says: 'Switches a server by the Redfish API of its management controller. Tells the UUID of the machine, so that the path can be proven to end at it.',
  vendor: 'https://www.dmtf.org/standards/redfish',
  parameters: [
    { name: 'ip', says: 'Address or name of the controller', type: 'string', required: true, obsoletes: 'ipaddr', short: 'a' },
    { name: 'ipport', says: 'Its TCP port', type: 'integer', default: '443', short: 'u' },
    { name: 'username', says: 'Login name', type: 'string', required: true, obsoletes: 'login', short: 'l' },
    { name: 'password', says: 'Password', type: 'string', required: true, obsoletes: 'passwd', short: 'p' },
    { name: 'plug', says: 'The system: its id, or its whole path', type: 'string', obsoletes: 'port', short: 'n' },
    { name: 'systems_uri', says: 'The path of the system, where plug is not given', type: 'string' },
    { name: 'redfish_uri', says: 'Where the service begins', type: 'string', default: '/redfish/v1' },
    { name: 'certificate_sha256', says: 'The SHA-256 of the controller\'s certificate: this one and no other is trusted', type: 'string' },
    { name: 'ssl_insecure', says: 'Trust any certificate', type: 'boolean' },
    { name: 'session', says: 'Log in for a session instead of sending the password with each request', type: 'boolean' },
    { name: 'login_timeout', says: 'For connecting', type: 'second', default: '5' },
    { name: 'shell_timeout', says: 'For each answer', type: 'second', default: '5' },
    { name: 'power_timeout', says: 'From the order until the power must have changed', type: 'second', default: '20' },
  ],
  status: (given) => loggedIn(given, async (connection) => wordOf(await systemAt(connection, given))),
  off: (given) => loggedIn(given, (connection) => order(connection, given, 'off')),
  on: (given) => loggedIn(given, (connection) => order(connection, given, 'on')),
  list: (given) => loggedIn(given, (connection) => list(connection, given)),
}

const mostSystems = 256

async function loggedIn<T>(given: Given, work: (connection: Connection) => Promise<T>): Promise<T> {
  const connection = connectTo(given)
  try {
    const leave = await logIn(connection, given)
    try {
      return await work(connection)
    } finally {
      await leave()
    }
  } finally {
    connection.close()
  }
}

/** Answers how to leave again: controllers have few sessions, and one left behind is one less for the next who must fence. */
async function logIn(connection: Connection, given: Given): Promise<() => Promise<void>> {
  const [username, password] = [given.text('username'), given.text('password')]
  if (!given.yes('session')) {
    connection.authorize({ authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` })
    return () => Promise.resolve()
  }
  const answer = must(await connection.call('POST', `${base(given)}/SessionService/Sessions`, { UserName: username, Password: password }), 'the login')
  if (answer.token === undefined) throw new Failure('device', 'the login answered without a token')
  connection.authorize({ 'x-auth-token': answer.token })
  const { location } = answer
  return async () => {
    if (location === undefined) return
    await connection.call('DELETE', samePlace(location, given)).catch(() => undefined) // the session ends by itself, only later
  }
}

async function order(connection: Connection, given: Given, want: 'on' | 'off'): Promise<DeviceWord> {
  const system = await systemAt(connection, given)
  const before = wordOf(system)
  if (before.state === want) return before
  const { target, type } = resetOf(system, given, want)
  must(await connection.call('POST', target, { ResetType: type }), `${type} of ${systemPath(given)}`)
  return pollUntil(want, given, given.ms('power_timeout'), async () => {
    try {
      return wordOf(await systemAt(connection, given))
    } catch (error) {
      // One lost answer while the machine changes its power is common; the poll ends by its own time.
      return { state: 'unknown', evidence: error instanceof Error ? error.message : 'no answer' }
    }
  })
}

function resetOf(system: Answer['body'], given: Given, want: 'on' | 'off'): { target: string; type: string } {
  const reset = record(record(system['Actions'])['#ComputerSystem.Reset'])
  const target = reset['target']
  const allowed = reset['ResetType@Redfish.AllowableValues']
  const fit = want === 'off' ? ['ForceOff'] : ['On', 'ForceOn']
  const type = Array.isArray(allowed) ? fit.find((one) => allowed.includes(one)) : fit[0]
  if (type === undefined) throw new Failure('device', `${systemPath(given)} offers none of ${fit.join(', ')}`)
  return { target: typeof target === 'string' ? samePlace(target, given) : `${systemPath(given)}/Actions/ComputerSystem.Reset`, type }
}

async function systemAt(connection: Connection, given: Given): Promise<Answer['body']> {
  const path = systemPath(given)
  const { body } = must(await connection.call('GET', path), path)
  if (Array.isArray(body['Members'])) throw new Failure('config', `${path} is a collection: name one system with plug=`)
  return body
}

/** Only the two words On and Off are a state. Everything else, and nothing at all, is unknown. */
function wordOf(system: Answer['body']): DeviceWord {
  const power = system['PowerState']
  const uuid = system['UUID']
  const machine = typeof uuid === 'string' ? { machine: uuid } : {}
  if (power === 'On') return { state: 'on', evidence: 'PowerState On', ...machine }
  if (power === 'Off') return { state: 'off', evidence: 'PowerState Off', ...machine }
  return { state: 'unknown', evidence: typeof power === 'string' ? `PowerState ${power}` : 'no PowerState', reason: 'device', ...machine }
}

async function list(connection: Connection, given: Given): Promise<readonly { plug: string; name: string }[]> {
  const collection = `${base(given)}/Systems`
  const members = must(await connection.call('GET', collection), collection).body['Members']
  const paths = (Array.isArray(members) ? members : []).slice(0, mostSystems).map((member: unknown) => record(member)['@odata.id'])
  const outlets: { plug: string; name: string }[] = []
  for (const path of paths) {
    if (typeof path !== 'string') continue
    const { body } = must(await connection.call('GET', samePlace(path, given)), path)
    outlets.push({ plug: path, name: typeof body['Name'] === 'string' ? body['Name'] : '' })
  }
  return outlets
}

const reasons: ReadonlyMap<number, Reason> = new Map([[401, 'auth'], [403, 'privilege'], [404, 'notfound'], [409, 'busy'], [429, 'busy'], [503, 'busy']])

function must(answer: Answer, what: string): Answer {
  if (answer.status >= 200 && answer.status <= 299) return answer
  throw new Failure(reasons.get(answer.status) ?? 'device', `${what}: HTTP ${answer.status}`)
}

function systemPath(given: Given): string {
  const plug = given.optional('plug') ?? ''
  if (plug.startsWith('/')) return plug
  if (plug !== '') return `${base(given)}/Systems/${encodeURIComponent(plug)}`
  const uri = given.optional('systems_uri') ?? ''
  if (!uri.startsWith('/')) throw new Failure('config', 'plug= is missing: the system must be named')
  return uri
}

function base(given: Given): string {
  return given.text('redfish_uri').replace(/\/+$/, '')
}

/** Of what the controller sent; a field that is not there is an empty one. */
function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? value as Readonly<Record<string, unknown>> : {}
}

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) await runAgent(agent)
