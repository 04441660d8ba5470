// SSH to one device: commands, and what it prints for each. The device's key is judged before any password is sent; whoever
// stands between could say of any machine that it is off.
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Client, ClientChannel, ClientError, ClientOptions } from 'ssh2'
import { Failure, neverPrint, type Given, type ParameterDescription } from './contract.ts'

export interface SshSession {
  /** All that the device printed. Its exit code is not looked at: few devices give one that means anything. */
  run(command: string): Promise<string>
}

/** Without `ip`, `ipport` and time-outs, which belong to the device whatever it speaks. */
export const sshParameters: readonly ParameterDescription[] = [
  { name: 'username', says: 'Login name', type: 'string', obsoletes: 'login', short: 'l' },
  { name: 'password', says: 'Password', type: 'string', obsoletes: 'passwd', short: 'p' },
  { name: 'identity_file', says: 'A file with a private key, instead of a password', type: 'string', short: 'k' },
  { name: 'hostkey_sha256', says: 'The SHA-256 of the device\'s key, as ssh-keygen -l prints it: this one and no other is trusted', type: 'string' },
  { name: 'ssh_insecure', says: 'Trust any key of the device', type: 'boolean' },
]

const longestAnswer = 1024 * 1024
const prefix = 'SHA256:'

export function checkSsh(given: Given): void {
  given.text('username')
  if (filled(given, 'password') === undefined && filled(given, 'identity_file') === undefined) throw new Failure('config', 'neither password= nor identity_file= is given')
  const pin = filled(given, 'hostkey_sha256')
  if (pin === undefined && !given.yes('ssh_insecure')) throw new Failure('config', 'hostkey_sha256= is missing: without it anybody could answer for the device (ssh_insecure=1 lets anybody)')
  if (pin !== undefined && plainDigest(pin).length !== digestLength) throw new Failure('config', 'hostkey_sha256= is no SHA-256 as ssh-keygen -l prints it')
}

export async function overSsh<T>(given: Given, port: number, work: (session: SshSession) => Promise<T>): Promise<T> {
  checkSsh(given)
  // Here and not above: it is most of the program's start, and metadata or a refusal need none of it.
  const { default: ssh2 } = await import('ssh2')
  const client = new ssh2.Client()
  const lost = new Promise<never>((_, reject) => {
    client.on('close', () => reject(new Failure('unreachable', `${given.text('ip')} port ${port} has hung up`)))
  })
  lost.catch(() => undefined) // heard by whoever waits for an answer then, and by nobody where the work is done
  try {
    await Promise.race([loggedIn(client, given, port), lost])
    return await work({ run: (command) => Promise.race([answerTo(client, command, given), lost]) })
  } finally {
    client.destroy()
  }
}

async function loggedIn(client: Client, given: Given, port: number): Promise<void> {
  const place = `${given.text('ip')} port ${port}`
  const within = Math.max(1, Math.min(given.ms('login_timeout'), given.left()))
  const { options, refused } = await loginOf(given, port)
  await new Promise<void>((resolve, reject) => {
    // The library's own time begins when the connection stands, and a device may hang before that.
    const timer = setTimeout(() => reject(new Failure('timeout', `no login to ${place} within ${Math.round(within)} ms`)), within)
    const failed = (failure: Failure) => {
      clearTimeout(timer)
      reject(failure)
    }
    client.on('ready', () => {
      clearTimeout(timer)
      resolve()
    })
    client.on('error', (error) => failed(refused() ?? failureOf(error, place)))
    client.on('keyboard-interactive', (_name, _says, _language, prompts, answer) => answer(prompts.map(() => filled(given, 'password') ?? '')))
    client.connect({ ...options, readyTimeout: Math.ceil(within) })
    // Each step of a login is one small packet, and would wait for the acknowledgement of the one before it.
    client.setNoDelay(true)
  })
}

/** `refused` tells why the device's own key was not taken, once it was not. */
async function loginOf(given: Given, port: number): Promise<{ readonly options: Omit<ClientOptions, 'readyTimeout'>; refused(): Failure | undefined }> {
  const [password, file, pin] = [filled(given, 'password'), filled(given, 'identity_file'), filled(given, 'hostkey_sha256')]
  if (password !== undefined) neverPrint(password)
  let refusal: Failure | undefined
  const options = {
    host: given.text('ip'), port, username: given.text('username'), tryKeyboard: password !== undefined,
    ...(password === undefined ? {} : { password }), ...(file === undefined ? {} : { privateKey: (await import('./https.ts')).contentOf(file, 'identity_file=') }),
    hostVerifier(key: Buffer) {
      const has = createHash('sha256').update(key).digest()
      if (pin === undefined || timingSafeEqual(has, plainDigest(pin))) return true
      refusal = new Failure('config', `the key of ${given.text('ip')} is not the pinned one: it has ${prefix}${has.toString('base64').replace(/=+$/, '')}`)
      return false
    },
  }
  return { options, refused: () => refusal }
}

async function answerTo(client: Client, command: string, given: Given): Promise<string> {
  const within = Math.max(1, Math.min(given.ms('shell_timeout'), given.left()))
  const pieces: Buffer[] = []
  let size = 0
  let channel: ClientChannel | undefined
  let timer: NodeJS.Timeout | undefined
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => reject(new Failure('timeout', `no end of ${command} within ${Math.round(within)} ms`)), within)
      const heard = (piece: Buffer) => {
        size += piece.length
        if (size > longestAnswer) return reject(new Failure('device', `${command} does not stop talking`))
        pieces.push(piece)
      }
      client.exec(command, (error, opened) => {
        if (error !== undefined) return reject(new Failure('busy', `the device opens no session for ${command}: ${error.message}`))
        channel = opened
        opened.on('data', heard)
        opened.stderr.on('data', heard)
        opened.on('error', (broke: Error) => reject(new Failure('unreachable', `${command}: ${broke.message}`)))
        opened.on('close', () => resolve())
        // A question back, as for a confirmation, would find nobody: the readback tells what came of it.
        opened.end()
      })
    })
    return Buffer.concat(pieces).toString()
  } finally {
    clearTimeout(timer)
    channel?.close()
  }
}

function failureOf(error: ClientError, place: string): Failure {
  switch (error.level) {
    case 'client-authentication': return new Failure('auth', `${place} refuses this user, or its password or key`)
    case 'client-timeout': return new Failure('timeout', `${place} did not finish the login`)
    default: return new Failure('unreachable', `${place}: ${error.message}`)
  }
}

const digestLength = 32

function plainDigest(pin: string): Buffer {
  return Buffer.from(pin.startsWith(prefix) ? pin.slice(prefix.length) : pin, 'base64')
}

function filled(given: Given, name: string): string | undefined {
  const value = given.optional(name)
  return value === '' ? undefined : value
}
