// The front of a cloud's API, in a network namespace where the cloud's real names lead to it and nowhere else: whoever is asked to
// speak to the cloud, the vendor's own library among them, speaks to this test and cannot tell.
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { makeAuthority, makeServer } from '../../edge/certificate.ts'
import type { Feed } from './machine.ts'
import { startNamespace } from './namespace.ts'
import { installed, pause, until, type Rack } from './rack.ts'

export interface Call {
  readonly method: string
  readonly host: string
  readonly path: string
  readonly query: URLSearchParams
  readonly authorization: string
  /** Of vCenter. */
  readonly session: string
  readonly body: string
}

export interface Reply {
  readonly status: number
  readonly body?: object | string
  readonly headers?: Readonly<Record<string, string>>
}

/** `mute` never answers, `broken` answers 500, `forbidden` refuses each order, `ignores` takes it and calls it done. `late` carries it
 *  out when this comes to pass, `slow` keeps every answer so long. */
export type CloudFault = 'mute' | 'broken' | 'forbidden' | 'ignores' | { readonly late: Promise<unknown> } | { readonly slow: number }

export interface CloudFront {
  fault: CloudFault | undefined
  /** Nobody answers at the cloud's names any more, and whoever was spoken to is cut off. */
  leave(): Promise<void>
  /** The next order that is taken. */
  ordered(): Promise<void>
  /** Done when the cloud says so, which it may say of an order that it ignores. */
  carryOut(feed: Feed, on: boolean): Promise<void>
  /** Whoever asks for our program, or for this one of others, gets it run where the names lead here. */
  wrap(program: string): void
  wrapOthers(program: string, python: string): void
  /** A command run there, with what the python of this name has installed, and what it said. */
  run(python: string, ...words: string[]): Promise<string>
}

export async function startCloudFront(rack: Rack, name: string, hosts: readonly string[], answer: (call: Call) => Reply | Promise<Reply>): Promise<CloudFront> {
  const span = { from: Date.now() - 60_000, until: Date.now() + 3_600_000 }
  const authority = { ...makeAuthority({ name: 'clouds', ...span }), name: 'clouds' }
  const { key, certificate } = makeServer(authority, { name, names: hosts, ...span })
  const [trusted, socket] = [join(rack.folder, `${name}.ca`), join(rack.folder, `${name}.https`)]
  writeFileSync(trusted, authority.certificate)
  const own: { fault: CloudFault | undefined } = { fault: undefined }
  let taken: (() => void) | undefined
  const server = createServer({ key, cert: certificate }, (request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece)).on('end', () => void respond())
    const respond = async () => {
      const { fault } = own
      if (fault === 'mute') return
      const url = new URL(request.url ?? '/', `https://${request.headers.host ?? name}`)
      const { status, body, headers = {} } = fault === 'broken' ? { status: 500, body: {} } : await answer({
        method: request.method ?? '', host: url.hostname, path: url.pathname, query: url.searchParams, authorization: request.headers.authorization ?? '',
        session: String(request.headers['vmware-api-session-id']), body: Buffer.concat(pieces).toString(),
      })
      if (typeof fault === 'object' && 'slow' in fault) await pause(fault.slow)
      response.writeHead(status, { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers }).end(body === undefined ? '' : JSON.stringify(body))
    }
  })
  server.on('tlsClientError', () => undefined) // a client that does not trust it: its affair
  await new Promise<void>((resolve) => { server.listen(socket, resolve) })
  rack.keep({
    vanish: () => new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    }),
  })
  const space = await startNamespace(rack, name, Object.fromEntries(hosts.map((host) => [host, '127.0.0.1'])))
  space.run('ip', 'link', 'set', 'lo', 'up')
  const wayIn = await rack.start(`${name}-way-in`, space.command('socat', 'TCP-LISTEN:443,bind=127.0.0.1,reuseaddr,fork', `UNIX-CONNECT:${socket}`))
  await until(`the way to ${name}`, () => space.run('ss', '-Hltn', 'sport', '=', '443') !== '')
  const trusting = ['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'HTTPLIB2_CA_CERTS'].map((variable) => `${variable}=${trusted}`)
  const within = (python: string) => ['env', ...trusting, `PYTHONPATH=${join(installed(python), 'lib/python3.11/site-packages')}`]
  return Object.assign(own, {
    async leave() {
      await wayIn.crash()
      server.closeAllConnections()
    },
    ordered: () => new Promise<void>((resolve) => { taken = resolve }),
    async carryOut(feed: Feed, on: boolean) {
      const { fault } = own
      taken?.()
      if (fault === 'ignores') return
      await (typeof fault === 'object' && 'late' in fault ? fault.late : pause(100))
      await feed.switchTo(on)
    },
    wrap: (program: string) => space.wrap(program, ['env', ...trusting, execPath, fileURLToPath(new URL(`../../fence-agents/${program}/${program}.ts`, import.meta.url))]),
    wrapOthers: (program: string, python: string) => space.wrap(program, [...within(python), `/usr/sbin/${program}`]),
    async run(python: string, ...words: string[]) {
      const [file = '', ...args] = space.command(...within(python), ...words)
      return (await execa(file, args)).stdout
    },
  })
}
