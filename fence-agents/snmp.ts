// SNMP to one device, for every program here that speaks it. What comes back is typed: a number, a text, a name of an
// object, or *nothing there*. Programs elsewhere compare texts, take whatever is not "on" for off, and so call an outlet
// off that does not exist, or one whose agent was just starting anew.
import { createSocket, type Socket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import type { Datagrams, Session, SessionOptions, User, Varbind } from 'net-snmp'
import { Failure, type Given, type ParameterDescription, type Reason } from './contract.ts'

export interface SnmpDevice {
  /** One answer for each question, in their order. */
  get(oids: readonly string[]): Promise<readonly SnmpValue[]>
  set(oid: string, value: number): Promise<void>
  /** What stands below an object: the rest of each name, and its value. */
  below(oid: string): Promise<ReadonlyMap<string, SnmpValue>>
}

export type SnmpValue =
  | { readonly is: 'number'; readonly value: number }
  | { readonly is: 'text'; readonly value: string }
  | { readonly is: 'object'; readonly value: string }
  /** The device says that it has no such thing. This is never a state of anything. */
  | { readonly is: 'nothing'; readonly value: string }
  | { readonly is: 'other'; readonly value: string }

export const snmpParameters: readonly ParameterDescription[] = [
  { name: 'ip', says: 'Address or name of the device', type: 'string', required: true, obsoletes: 'ipaddr', short: 'a' },
  { name: 'ipport', says: 'Its UDP port', type: 'integer', default: '161', short: 'u' },
  { name: 'snmp_version', says: '2c, or 3 (always authenticated and encrypted)', type: 'string', default: '2c', short: 'd' },
  { name: 'community', says: 'Community that may write, for version 2c', type: 'string', short: 'c' },
  { name: 'username', says: 'User name, for version 3', type: 'string', obsoletes: 'login', short: 'l' },
  { name: 'password', says: 'Password of authentication, for version 3', type: 'string', obsoletes: 'passwd', short: 'p' },
  { name: 'snmp_auth_prot', says: 'MD5, SHA, SHA224, SHA256, SHA384 or SHA512', type: 'string', default: 'SHA', short: 'b' },
  { name: 'snmp_priv_passwd', says: 'Password of encryption, for version 3', type: 'string', short: 'P' },
  { name: 'snmp_priv_prot', says: 'DES, AES, AES256B or AES256R', type: 'string', default: 'AES', short: 'B' },
  { name: 'shell_timeout', says: 'For each answer', type: 'second', default: '5' },
]

/** Each question is sent so often within its time: a datagram may be lost, and to say a thing twice changes nothing here. */
const sendings = 3
const rowsAtOnce = 20
const mostRows = 4_096
const shortestPassword = 8

/** What the form of the parameters must hold, beyond those that are always required. */
export function checkSnmp(given: Given): void {
  port(given)
  switch (given.text('snmp_version')) {
    case '2c':
      given.text('community')
      return
    case '3':
      given.text('username')
      for (const name of ['password', 'snmp_priv_passwd']) {
        if (given.text(name).length < shortestPassword) throw new Failure('config', `${name}= is shorter than ${shortestPassword} characters, which no device accepts`)
      }
      protocol(given, 'snmp_auth_prot', ['md5', 'sha', 'sha224', 'sha256', 'sha384', 'sha512'])
      protocol(given, 'snmp_priv_prot', ['des', 'aes', 'aes256b', 'aes256r'])
      return
    default:
      throw new Failure('config', 'snmp_version= is neither 2c nor 3: version 1 cannot say that there is no such outlet')
  }
}

export async function overSnmp<T>(given: Given, work: (device: SnmpDevice) => Promise<T>): Promise<T> {
  checkSnmp(given)
  const socket = await connected(given)
  try {
    return await work(await deviceOn(socket, given))
  } finally {
    socket.close()
  }
}

/** A connected socket hears its device alone, and is told at once where nobody listens. */
async function connected(given: Given): Promise<Socket> {
  const ip = given.text('ip')
  const { address, family } = await lookup(ip).catch((error: Error) => { throw new Failure('unreachable', `${ip}: ${error.message}`) })
  const socket = createSocket(family === 6 ? 'udp6' : 'udp4')
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.connect(port(given), address, () => resolve())
    })
  } catch (error) {
    socket.close()
    throw new Failure('unreachable', `${place(given)}: ${error instanceof Error ? error.message : 'no way there'}`)
  }
  socket.removeAllListeners('error')
  return socket
}

async function deviceOn(socket: Socket, given: Given): Promise<SnmpDevice> {
  // Here and not above: it is most of the program's start, and metadata or a refusal need none of it.
  const { default: snmp } = await import('net-snmp')
  const third = given.text('snmp_version') === '3'
  const within = Math.max(sendings, Math.min(given.ms('shell_timeout'), given.left()))
  const options: SessionOptions = {
    port: port(given), version: third ? snmp.Version3 : snmp.Version2c, retries: sendings - 1, timeout: Math.ceil(within / sendings),
    // Answers to another question, and tables that lead in a circle, are refused.
    reportOidMismatchErrors: true, backwardsGetNexts: false,
    dgramModule: { createSocket: () => plainSocket(socket, (error) => session.cancelRequests(error)) },
  }
  const session: Session = third
    ? snmp.createV3Session(given.text('ip'), userOf(given, snmp), options)
    : snmp.createSession(given.text('ip'), given.text('community'), options)
  session.on('error', () => undefined) // a datagram that is no SNMP is no answer: the question waits on
  socket.on('error', (error) => session.cancelRequests(new Failure('unreachable', `${place(given)}: ${error.message}`)))
  if (third) refuseUnsealed(session)
  let heard = false
  const asked = async <V>(ask: (answered: (error: Error | null, value: V) => void) => void): Promise<V> => {
    try {
      const value = await new Promise<V>((resolve, reject) => ask((error, answer) => (error === null ? resolve(answer) : reject(error))))
      heard = true
      return value
    } catch (error) {
      throw failureOf(error, snmp, { given, within, heard, third })
    }
  }
  const typeName = (varbind: Varbind) => snmp.ObjectType[varbind.type] ?? `type ${varbind.type}`
  return {
    async get(oids) {
      const varbinds = await asked<readonly Varbind[]>((answered) => session.get(oids, answered))
      return varbinds.map((varbind) => valueOf(varbind, typeName(varbind)))
    },
    async set(oid, value) {
      await asked<readonly Varbind[]>((answered) => session.set([{ oid, type: snmp.ObjectType['Integer'] ?? 2, value }], answered))
    },
    async below(oid) {
      const found = new Map<string, SnmpValue>()
      await asked<undefined>((answered) => session.subtree(oid, rowsAtOnce, (varbinds) => {
        for (const varbind of varbinds) found.set(varbind.oid.slice(oid.length + 1), valueOf(varbind, typeName(varbind)))
        return found.size >= mostRows
      }, (error) => answered(error ?? null, undefined)))
      return found
    },
  }
}

type NetSnmp = (typeof import('net-snmp'))['default']

/** The library's own way to a socket, over one that is connected. What breaks it in an answer ends the question, not the program. */
function plainSocket(socket: Socket, failed: (error: Error) => void): Datagrams {
  return {
    on(event, heard) {
      if (event === 'error') return undefined // ours to hear: the library would lose it
      return socket.on(event, (...told: unknown[]) => {
        try {
          heard(...told as never[]) // what a socket tells is what the library's hearer of the same event takes
        } catch (error) {
          failed(new Failure('device', `the device sent what cannot be read: ${error instanceof Error ? error.message : 'no reason given'}`))
        }
      })
    },
    ref: () => socket.ref(),
    unref: () => socket.unref(),
    close: () => undefined,
    bind: () => undefined,
    send: (bytes, offset, length, _port, _address, sent) => socket.send(bytes, offset, length, sent),
  }
}

/** The library checks a seal where there is one. An answer without one could be anybody's word that a machine is off. */
function refuseUnsealed(session: Session): void {
  const answered = session.onSimpleGetResponse
  session.onSimpleGetResponse = (request, message) => {
    if (message.hasAuthentication() && message.hasPrivacy()) answered.call(session, request, message)
    else request.responseCb(new Failure('auth', 'an answer that is not sealed with our passwords'))
  }
}

function userOf(given: Given, snmp: NetSnmp): User {
  return {
    name: given.text('username'), level: snmp.SecurityLevel.authPriv,
    authProtocol: snmp.AuthProtocols[given.text('snmp_auth_prot').toLowerCase()] ?? '', authKey: given.text('password'),
    privProtocol: snmp.PrivProtocols[given.text('snmp_priv_prot').toLowerCase()] ?? '', privKey: given.text('snmp_priv_passwd'),
  }
}

function valueOf({ value }: Varbind, type: string): SnmpValue {
  switch (type) {
    case 'Integer': case 'Gauge': return typeof value === 'number' ? { is: 'number', value } : { is: 'other', value: type }
    case 'OctetString': return { is: 'text', value: Buffer.isBuffer(value) ? plain(value.toString()) : '' }
    case 'OID': return { is: 'object', value: String(value) }
    case 'NoSuchObject': case 'NoSuchInstance': case 'EndOfMibView': case 'Null': return { is: 'nothing', value: type }
    default: return { is: 'other', value: type }
  }
}

/** Some devices end a text with a NUL; a line break in a name would make two lines of one. */
function plain(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ').trim()
}

interface Circumstances {
  readonly given: Given
  readonly within: number
  /** The device has answered before in this run. */
  readonly heard: boolean
  readonly third: boolean
}

const failures: ReadonlyMap<string, readonly [Reason, string]> = new Map([
  ['NoSuchName', ['notfound', 'the device knows no such thing']],
  ['ReadOnly', ['privilege', 'this user or community may only read']],
  ['NoAccess', ['privilege', 'this user or community may not do that']],
  ['AuthorizationError', ['privilege', 'this user or community may not do that']],
  ['NotWritable', ['privilege', 'this cannot be written, or not by this user or community']],
  ['ResourceUnavailable', ['busy', 'the device has no room for that now']],
] as const)

function failureOf(error: unknown, snmp: NetSnmp, { given, within, heard, third }: Circumstances): Failure {
  if (error instanceof Failure) return error
  if (error instanceof snmp.RequestTimedOutError) {
    if (heard) return new Failure('timeout', `${place(given)} fell silent: no answer within ${Math.round(within)} ms`)
    // SNMP answers a wrong community with silence, and a wrong key of encryption too.
    return new Failure('unreachable', `no answer from ${place(given)} within ${Math.round(within)} ms: nobody there, or ${third ? 'a wrong password' : 'another community'}`)
  }
  if (error instanceof snmp.RequestFailedError) {
    const name = snmp.ErrorStatus[error.status] ?? String(error.status)
    const [reason, says] = failures.get(name) ?? ['device', 'the device refuses']
    return new Failure(reason, `${says} (${error.message})`)
  }
  if (error instanceof snmp.ResponseInvalidError && [snmp.ResponseInvalidCode['EAuthFailure'], snmp.ResponseInvalidCode['ECouldNotDecrypt']].includes(error.code)) {
    return new Failure('auth', `${place(given)}: ${error.message.startsWith('Authentication digest') ? 'its answer is not sealed with our password' : error.message}`)
  }
  return new Failure('device', `${place(given)}: ${error instanceof Error ? error.message : 'no reason given'}`)
}

function place(given: Given): string {
  return `${given.text('ip')} port ${given.text('ipport')}`
}

function port(given: Given): number {
  const text = given.text('ipport')
  const number = Number(text)
  if (!/^\d{1,5}$/.test(text) || number < 1 || number > 65_535) throw new Failure('config', 'ipport= is not a port')
  return number
}

function protocol(given: Given, name: string, known: readonly string[]): void {
  if (!known.includes(given.text(name).toLowerCase())) throw new Failure('config', `${name}= is none of ${known.join(', ').toUpperCase()}`)
}
