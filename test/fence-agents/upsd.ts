// An upsd of few lines, with two outlets behind a device that knows commands. Whether a real one understands the program
// is the device tier's question.
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'

export interface Upsd {
  readonly port: number
  readonly variables: Map<string, string>
  readonly commands: Set<string>
  readonly writable: Set<string>
  /** What was ordered, without the questions that only look. */
  readonly orders: string[]
  /** What is said instead, to each question it fits. */
  fault: { readonly to: RegExp; readonly says: string | undefined } | undefined
  close(): Promise<void>
}

export const upsdLogin = { username: 'fencer', password: 'hush "hush" \\', ups: 'pdu' }

/** A state follows its order after a while, as a driver's next look does; or never, where it does not obey. */
export async function startUpsd({ obeys = true } = {}): Promise<Upsd> {
  const server = createServer((socket) => serve(socket, upsd, obeys))
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', () => resolve()) })
  const { port } = server.address() as AddressInfo // it listens on a port
  const upsd: Upsd = {
    port,
    variables: new Map([
      ['ups.status', 'OL'], ['outlet.1.desc', 'node-1'], ['outlet.1.status', 'on'], ['outlet.2.desc', 'node "2"'], ['outlet.2.status', 'on'],
    ]),
    commands: new Set(['load.off', 'load.on', 'outlet.1.load.off', 'outlet.1.load.on', 'outlet.2.load.off', 'outlet.2.load.on']),
    writable: new Set(), orders: [], fault: undefined,
    close: () => closed(server),
  }
  return upsd
}

export function closed(server: Server): Promise<void> {
  return new Promise((resolve) => { server.close(() => resolve()) })
}

function serve(socket: Socket, upsd: Upsd, obeys: boolean): void {
  const login = { username: '', password: '' }
  let rest = ''
  socket.setEncoding('utf8')
  socket.on('error', () => undefined)
  socket.on('data', (piece: string) => {
    const lines = `${rest}${piece}`.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const { fault } = upsd
      const answer = fault?.to.test(line) === true ? fault.says : answerTo(line, login, upsd, obeys)
      if (answer !== undefined) socket.write(`${answer}\n`)
      if (line === 'LOGOUT') socket.end()
    }
  })
}

function answerTo(line: string, login: { username: string; password: string }, upsd: Upsd, obeys: boolean): string {
  const words = [...line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, inQuotes, bare]) => inQuotes?.replace(/\\(.)/g, '$1') ?? bare ?? '')
  const [verb = '', ...rest] = words
  if (verb === 'LOGOUT') return 'OK Goodbye'
  if (verb === 'USERNAME' || verb === 'PASSWORD') {
    login[verb === 'USERNAME' ? 'username' : 'password'] = rest[0] ?? ''
    return 'OK'
  }
  const known = ['GET VAR', 'SET VAR', 'LIST VAR', 'LIST RW', 'LIST CMD'].includes(`${verb} ${rest[0]}`) ? rest.slice(1) : rest
  if (known[0] !== 'pdu') return 'ERR UNKNOWN-UPS'
  const [, name = '', value = ''] = known
  switch (`${verb} ${rest[0] === 'pdu' ? '' : rest[0]}`.trim()) {
    case 'GET VAR': return upsd.variables.has(name) ? `VAR pdu ${name} ${quoted(upsd.variables.get(name) ?? '')}` : 'ERR VAR-NOT-SUPPORTED'
    case 'LIST VAR': return listed('VAR', [...upsd.variables].map(([variable, is]) => `${variable} ${quoted(is)}`))
    case 'LIST RW': return listed('RW', [...upsd.writable].map((variable) => `${variable} "x"`))
    case 'LIST CMD': return listed('CMD', [...upsd.commands])
    case 'SET VAR': case 'INSTCMD': {
      if (login.username !== upsdLogin.username || login.password !== upsdLogin.password) return 'ERR ACCESS-DENIED'
      if (verb === 'INSTCMD' && !upsd.commands.has(name)) return 'ERR CMD-NOT-SUPPORTED'
      if (verb === 'SET' && !upsd.writable.has(name)) return 'ERR READONLY'
      upsd.orders.push(verb === 'SET' ? `${name}=${value}` : name)
      if (obeys) setTimeout(() => obey(name, value, upsd), 300)
      return 'OK'
    }
    default: return 'ERR UNKNOWN-COMMAND'
  }
}

function obey(name: string, value: string, { variables }: Upsd): void {
  const command = /^(outlet\.\d+\.)?load\.(on|off)$/.exec(name)
  if (command === null) variables.set(name.replace(/switch$/, 'status'), value)
  else if (command[1] === undefined) variables.set('ups.status', command[2] === 'off' ? 'OL OFF' : 'OL')
  else variables.set(`${command[1]}status`, command[2] ?? '')
}

function listed(kind: string, rows: readonly string[]): string {
  return [`BEGIN LIST ${kind} pdu`, ...rows.map((row) => `${kind} pdu ${row}`), `END LIST ${kind} pdu`].join('\n')
}

function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, '\\$&')}"`
}
