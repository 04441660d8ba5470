// The line protocol of upsd, the server of Network UPS Tools: one question, one answer, or a list between BEGIN and END.
// What upsd says of a device is what its driver read last; where that is too old, upsd says so, and it is no answer.
import { connect, type Socket } from 'node:net'
import { Failure, type Given, type Reason } from '../contract.ts'

export interface Upsd {
  /** The value of a variable; a Failure `notfound` if the device has none of this name. */
  variable(name: string): Promise<string>
  variables(): Promise<ReadonlyMap<string, string>>
  writable(): Promise<ReadonlySet<string>>
  commands(): Promise<ReadonlySet<string>>
  logIn(): Promise<void>
  set(name: string, value: string): Promise<void>
  command(name: string): Promise<void>
}

const longestAnswer = 1024 * 1024

export async function overUpsd<T>(given: Given, work: (upsd: Upsd) => Promise<T>): Promise<T> {
  checkUpsd(given)
  const lines = await connectedTo(given)
  try {
    return await work(upsdOver(lines, given.text('ups'), given))
  } finally {
    lines.close()
  }
}

/** `ups` and the names of variables go onto the wire as they are. */
export function checkUpsd(given: Given): void {
  const port = given.text('ipport')
  if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535) throw new Failure('config', 'ipport= is not a port')
  if (!/^[A-Za-z0-9_.-]{1,64}$/.test(given.text('ups'))) throw new Failure('config', 'ups= is not a name as ups.conf has them')
}

function upsdOver(lines: Lines, ups: string, given: Given): Upsd {
  const ask = async (question: string): Promise<string> => {
    lines.send(question)
    return refused(await lines.next(), question)
  }
  const ok = async (question: string): Promise<void> => {
    const answer = await ask(question)
    if (answer !== 'OK' && !answer.startsWith('OK ')) throw new Failure('device', `upsd answered ${excerpt(answer)}`)
  }
  const list = async (kind: 'VAR' | 'RW' | 'CMD'): Promise<string[][]> => {
    const began = await ask(`LIST ${kind} ${ups}`)
    if (began !== `BEGIN LIST ${kind} ${ups}`) throw new Failure('device', `upsd answered ${excerpt(began)} to a list`)
    const rows: string[][] = []
    for (let line = await lines.next(); line !== `END LIST ${kind} ${ups}`; line = await lines.next()) rows.push(wordsOf(refused(line, `LIST ${kind}`)).slice(2))
    return rows
  }
  return {
    async variable(name) {
      const [kind, of, variable, value, ...more] = wordsOf(await ask(`GET VAR ${ups} ${name}`))
      if (kind !== 'VAR' || of !== ups || variable !== name || value === undefined || more.length > 0) throw new Failure('device', `upsd answered another question than that for ${name}`)
      return value
    },
    async variables() {
      return new Map((await list('VAR')).map(([name = '', value = '']) => [name, value]))
    },
    async writable() {
      return new Set((await list('RW')).map(([name = '']) => name))
    },
    async commands() {
      return new Set((await list('CMD')).map(([name = '']) => name))
    },
    async logIn() {
      // upsd takes any name and any password here; it judges them at the order.
      await ok(`USERNAME ${quoted(given.text('username'))}`)
      await ok(`PASSWORD ${quoted(given.text('password'))}`)
    },
    set: (name, value) => ok(`SET VAR ${ups} ${name} ${quoted(value)}`),
    command: (name) => ok(`INSTCMD ${ups} ${name}`),
  }
}

const errors: ReadonlyMap<string, readonly [Reason, string]> = new Map([
  ['ACCESS-DENIED', ['auth', 'upsd refuses: wrong user or password, or upsd.users does not let this user do it']],
  ['USERNAME-REQUIRED', ['auth', 'upsd wants a user']], ['PASSWORD-REQUIRED', ['auth', 'upsd wants a password']],
  ['INVALID-USERNAME', ['auth', 'upsd does not take this user']], ['INVALID-PASSWORD', ['auth', 'upsd does not take this password']],
  ['UNKNOWN-UPS', ['notfound', 'upsd has no device of this name']],
  ['VAR-NOT-SUPPORTED', ['notfound', 'the device has no such outlet or variable']],
  ['CMD-NOT-SUPPORTED', ['notfound', 'the device does not know this command']],
  ['READONLY', ['privilege', 'this variable can only be read']],
  ['DATA-STALE', ['unreachable', 'upsd has no fresh word from the device: its driver has lost it']],
  ['DRIVER-NOT-CONNECTED', ['unreachable', 'the driver of the device does not run']],
] as const)

function refused(answer: string, question: string): string {
  if (!answer.startsWith('ERR ')) return answer
  const code = answer.split(' ')[1] ?? ''
  const [reason, says] = errors.get(code) ?? ['device', 'upsd refuses']
  // Of a question with a secret only its first word is told.
  const told = question.startsWith('PASSWORD') || question.startsWith('USERNAME') ? question.split(' ')[0] : question
  throw new Failure(reason, `${says} (ERR ${excerpt(code)} to ${told})`)
}

interface Lines {
  send(line: string): void
  next(): Promise<string>
  close(): void
}

async function connectedTo(given: Given): Promise<Lines> {
  const place = `upsd at ${given.text('ip')} port ${given.text('ipport')}`
  const within = Math.max(1, Math.min(given.ms('login_timeout'), given.left()))
  const socket = connect({ host: given.text('ip'), port: Number(given.text('ipport')), noDelay: true })
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Failure('timeout', `no connection to ${place} within ${Math.round(within)} ms`)), within)
    socket.once('connect', resolve)
    socket.once('error', (error) => reject(new Failure('unreachable', `${place}: ${error.message}`)))
    socket.once('close', () => clearTimeout(timer))
    socket.once('connect', () => clearTimeout(timer))
  }).catch((error: unknown) => {
    socket.destroy()
    throw error
  })
  return linesOf(socket, place, given)
}

function linesOf(socket: Socket, place: string, given: Given): Lines {
  const whole: string[] = []
  let rest = ''
  let size = 0
  let ended: Failure | undefined
  let wake = nobodyWaits
  const end = (failure: Failure) => {
    ended ??= failure
    wake()
  }
  socket.setEncoding('utf8')
  socket.on('data', (piece: string) => {
    size += piece.length
    if (size > longestAnswer) return end(new Failure('device', `${place} does not stop talking`))
    const pieces = `${rest}${piece}`.split('\n')
    rest = pieces.pop() ?? ''
    whole.push(...pieces.map((line) => line.replace(/\r$/, '')))
    wake()
  })
  socket.on('error', (error) => end(new Failure('unreachable', `${place}: ${error.message}`)))
  socket.on('close', () => end(new Failure('unreachable', `${place} has hung up`)))
  return {
    send: (line) => { socket.write(`${line}\n`) },
    async next() {
      const until = performance.now() + Math.min(given.ms('shell_timeout'), given.left())
      for (;;) {
        const line = whole.shift()
        if (line !== undefined) return line
        if (ended !== undefined) throw ended
        const left = until - performance.now()
        if (left <= 0) throw new Failure('timeout', `${place} gave no answer within ${Math.round(given.ms('shell_timeout'))} ms`)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, left)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
    },
    close: () => {
      // It closes when it has read this; if it does not, we do not wait for it.
      socket.end('LOGOUT\n', () => socket.destroy())
    },
  }
}

function nobodyWaits(): void {}

/** Words, or one in quotes in which a backslash takes the next character as it is. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, inQuotes, bare]) => (inQuotes === undefined ? bare ?? '' : inQuotes.replace(/\\(.)/g, '$1')))
}

function quoted(value: string): string {
  return `"${value.replace(/[\\"]/g, '\\$&')}"`
}

function excerpt(text: string): string {
  return JSON.stringify(text.slice(0, 80))
}
