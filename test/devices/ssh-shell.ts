// A host that one logs in to by SSH with a password, and gets a terminal: what programs want that speak to a shell. Every command
// runs with this environment and no other.
import { spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import type { EventEmitter } from 'node:events'
import type { AddressInfo } from 'node:net'
import ssh2, { type ServerConnection } from 'ssh2'
import { secret, type Parameters, type Rack } from './rack.ts'

export async function startSshShell(rack: Rack, environment: Parameters): Promise<Parameters> {
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'sec1', format: 'pem' }).toString()
  const connections = new Set<ServerConnection>()
  const server = new ssh2.Server({ hostKeys: [key] }, (connection) => {
    connections.add(connection)
    connection.on('close', () => connections.delete(connection)).on('error', () => undefined) // a client that has read enough
    connection.on('authentication', (login) => {
      if (login.method === 'password' && login.username === 'root' && login.password === secret) login.accept()
      else login.reject(['password'])
    })
    connection.on('ready', () => connection.on('session', (accept) => {
      const session = accept()
      // OpenSSH gives up where a terminal is refused, and the types here know no such question. The terminal is script's.
      ;(session as unknown as EventEmitter).on('pty', (grant?: () => void) => grant?.())
      session.on('exec', (open, _, { command }) => {
        const channel = open()
        const shell = spawn('script', ['-qefc', command, '/dev/null'], { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', TERM: 'dumb', ...environment } })
        shell.on('close', (code) => {
          channel.exit(code ?? 1)
          channel.end()
        })
        channel.on('close', () => shell.kill())
        channel.pipe(shell.stdin)
        shell.stdout.pipe(channel, { end: false })
      })
    }))
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', () => resolve()) })
  rack.keep({
    vanish: () => new Promise((resolve) => {
      for (const connection of connections) connection.end()
      server.close(() => resolve())
    }),
  })
  return { ip: '127.0.0.1', ipport: String((server.address() as AddressInfo).port), username: 'root', password: secret } // it listens on a port
}
