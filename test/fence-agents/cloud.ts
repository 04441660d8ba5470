// A cloud's API on loopback: HTTPS under an authority of its own, faults that can be set, and a proxy that leads any name to
// it, so that a program may be asked to speak to the real names. And the demands that are the same for every cloud.
import * as assert from 'uvu/assert'
import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import type { MethodAction } from '../../core/contract.ts'
import { fenceRunner } from '../../coordinator/fence.ts'
import type { Programs } from '../../coordinator/host.ts'
import { redactor } from '../../coordinator/redact.ts'
import { makeAuthority, makeServer } from '../../edge/certificate.ts'
import { machineClock } from '../../edge/clock.ts'
import { overhear } from './overheard.ts'
import { inPlace, type AgentPlace } from './place.ts'

export interface Call {
  readonly method: string
  readonly host: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Reply {
  readonly status: number
  readonly body: string | object
  readonly headers?: Readonly<Record<string, string>>
}

/** `busy` answers so many calls as an API that is asked too often; `drop` hangs up. */
export type Fault = 'none' | 'mute' | 'drop' | 'broken' | { slow: number } | { busy: number }

export interface Cloud {
  readonly place: AgentPlace
  readonly url: string
  /** The file of its authority. */
  readonly ca: string
  /** What reached it, as METHOD host/path. */
  readonly calls: readonly string[]
  /** The proxy's address, and whom it was asked for. */
  readonly proxy: string
  readonly proxied: readonly string[]
  fault(fault: Fault): void
  close(): Promise<void>
}

/** The names under which the tests speak to it; those of the clouds themselves stand in their tests. */
export interface CloudSettings {
  readonly names: readonly string[]
  answer(call: Call): Reply
  /** What it says when it is busy, or broken. */
  complaint(status: 429 | 500): Reply
}

export async function inCloud(settings: CloudSettings, work: (cloud: Cloud) => Promise<void>): Promise<void> {
  await inPlace(async (place) => {
    let fault: Fault = 'none'
    const calls: string[] = []
    const proxied: string[] = []
    const answer = (call: Call): Reply => {
      if (fault === 'broken') return settings.complaint(500)
      if (typeof fault === 'object' && 'busy' in fault && fault.busy > 0) {
        fault = { busy: fault.busy - 1 }
        return settings.complaint(429)
      }
      return settings.answer(call)
    }
    const authority = { ...makeAuthority({ name: 'clouds', from: Date.now() - 60_000, until: Date.now() + 3_600_000 }), name: 'clouds' }
    const { key, certificate } = makeServer(authority, { name: 'cloud', names: ['localhost', '127.0.0.1', ...settings.names], from: Date.now() - 60_000, until: Date.now() + 3_600_000 })
    const ca = join(place.folder, 'ca.pem')
    writeFileSync(ca, authority.certificate)
    const server = createTlsServer({ key, cert: certificate }, (request, response) => {
      const pieces: Buffer[] = []
      request.on('data', (piece: Buffer) => pieces.push(piece))
      request.on('end', () => {
        const url = new URL(request.url ?? '/', `https://${request.headers.host ?? 'localhost'}`)
        calls.push(`${request.method ?? ''} ${url.hostname}${url.pathname}`)
        if (fault === 'mute') return
        if (fault === 'drop') return void request.socket.destroy()
        const reply = answer({
          method: request.method ?? '', host: url.hostname, path: url.pathname, query: url.searchParams,
          headers: Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)])), body: Buffer.concat(pieces).toString(),
        })
        const text = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body)
        const send = () => response.writeHead(reply.status, reply.headers).end(text)
        if (typeof fault === 'object' && 'slow' in fault) setTimeout(send, fault.slow)
        else send()
      })
    })
    server.on('tlsClientError', () => undefined) // a client that does not trust it: its affair
    const port = await listening(server)
    const proxy = createServer()
    proxy.on('connect', (request, socket: Socket) => {
      proxied.push(`${request.url ?? ''} ${request.headers['proxy-authorization'] ?? ''}`.trim())
      const further = connect(port, '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 well\r\n\r\n')
        socket.pipe(further).pipe(socket)
      })
      further.on('error', () => socket.destroy())
      socket.on('error', () => further.destroy())
    })
    const proxyPort = await listening(proxy)
    const close = async () => { await Promise.all([closed(server), closed(proxy)]) }
    try {
      await work({
        place, ca, calls, proxied, close, url: `https://127.0.0.1:${port}`, proxy: `127.0.0.1:${proxyPort}`,
        fault: (next) => { fault = next },
      })
    } finally {
      await close()
    }
  })
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  return (server.address() as AddressInfo).port // a server that listens on TCP has one
}

async function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise<void>((resolve) => { server.close(() => resolve()) })
}

/** One machine behind a cloud's API, and what the program is told to reach it. */
export interface CloudWorld {
  readonly cloud: Cloud
  readonly agent: string
  /** The orders that the API took, whatever came of them. */
  readonly orders: readonly string[]
  readonly with: (over?: Readonly<Record<string, string>>) => Record<string, string>
  /** The parameter of it that stands in a Secret, and a value that the API refuses. */
  readonly secret: { readonly key: string; readonly wrong: string }
  /** The API refuses each order of this login, whose questions it answers. */
  forbid(): void
  /** The API takes each order and does nothing. */
  ignore(): void
  /** What the next question finds. */
  power(): string
}

type Test = (name: string, claim: () => Promise<void>) => void

/** None of these may appear in anything that a program says. */
export const hush = ['hush/hush+', 'hush-token']

/** A key stands in its JSON with its lines in one. */
const piecesOf = (secret: string) => secret.split('\\n').filter((piece) => piece.length > 3)

const plugs = (world: CloudWorld) => world.with()['plug'] ?? ''

/** What must hold of every cloud's program. */
export function sameDemands(test: Test, inWorld: (work: (world: CloudWorld) => Promise<void>) => Promise<void>, states: { readonly on: string; readonly off: string }): void {
  const quick = { login_timeout: '0.5', shell_timeout: '0.5' }

  test('status, off, off, status, on, on: ordered once each, and verified', () => inWorld(async (world) => {
    const ask = async (action: 'status' | 'off' | 'on') => (await world.cloud.place.ask(world.agent, action, world.with())).state
    assert.is(await ask('status'), 'on')
    // The order by the program as the coordinator starts it.
    assert.equal([(await world.cloud.place.started.ask(world.agent, 'off', world.with())).state, world.power()], ['off', states.off])
    assert.equal([await ask('off'), await ask('status')], ['off', 'off'])
    assert.equal([await ask('on'), world.power(), await ask('on')], ['on', states.on, 'on'])
    assert.is(world.orders.length, 2)
  }))

  for (const [name, fault, reason] of [['mute', 'mute', /^timeout/], ['hanging up', 'drop', /^unreachable/], ['broken', 'broken', /^busy/]] as const) {
    test(`an API that is ${name} is unknown, with its reason, in time, and nothing is ordered`, () => inWorld(async (world) => {
      world.cloud.fault(fault)
      const word = await world.cloud.place.ask(world.agent, 'off', world.with(quick), 15_000)
      assert.equal([word.state, word.late, world.orders], ['failed', false, []])
      assert.match(word.reason, reason)
      for (const secret of hush) assert.not.match(JSON.stringify(word), secret)
    }))
  }

  test('an API that is not there is unreachable', () => inWorld(async (world) => {
    await world.cloud.close()
    const word = await world.cloud.place.ask(world.agent, 'status', world.with())
    assert.is(word.state, 'unknown')
    assert.match(word.reason, /^unreachable/)
  }))

  test('a slow API is waited for', () => inWorld(async (world) => {
    world.cloud.fault({ slow: 400 })
    assert.is((await world.cloud.place.ask(world.agent, 'status', world.with())).state, 'on')
  }))

  test('an API that is asked too often is asked again, later', () => inWorld(async (world) => {
    world.cloud.fault({ busy: 2 })
    assert.equal([(await world.cloud.place.ask(world.agent, 'off', world.with())).state, world.power()], ['off', states.off])
  }))

  test('one that goes on refusing is unknown, and says that it is busy', () => inWorld(async (world) => {
    world.cloud.fault({ busy: 1_000 })
    const word = await world.cloud.place.ask(world.agent, 'off', world.with(), 5_000)
    assert.equal([word.state, word.late, world.orders], ['failed', false, []])
    assert.match(word.reason, /^busy/)
  }))

  test('an order that is accepted and ignored is not off', () => inWorld(async (world) => {
    world.ignore()
    const word = await world.cloud.place.ask(world.agent, 'off', world.with({ power_timeout: '1' }))
    assert.equal([word.state, world.orders.length], ['failed', 1])
    assert.match(word.reason, /^timeout/)
    assert.is((await world.cloud.place.ask(world.agent, 'status', world.with())).state, 'on')
  }))

  test('whatever comes of a run, no secret is an argument, in an environment, in a word or in a log', () => inWorld(async (world) => {
    const { cloud, agent, secret } = world
    const { [secret.key]: right = '', ...given } = world.with(quick)
    const overheard = overhear()
    const said: string[] = []
    const note = (...words: readonly unknown[]) => { said.push(JSON.stringify(words)) }
    const programs: Programs = {
      async run(run) {
        const end = await cloud.place.programs.run(run)
        note(end) // before the coordinator has taken anything out
        return end
      },
    }
    const runner = fenceRunner({ programs, clock: machineClock, secrets: ({ key }) => (key === 'right' ? right : secret.wrong), log: { debug: note, info: note, warn: note, error: note } })
    const asked = async (action: MethodAction, key: 'right' | 'wrong' = 'right') => {
      const parameters = { ...given, [secret.key]: { secret: 'cloud', key } }
      const method = { name: 'cloud', agent, device: agent, digest: 'd', orderWithin: 20_000, statusWithin: 20_000, late: 60_000, parameters, on: parameters }
      const end = await runner.runMethod({ node: 'n1', method, action, purpose: 'incident' })
      note(end)
      return end.reason === '' ? end.state : end.reason.split(' ')[0]
    }
    const faulty = async (fault: Fault) => {
      cloud.fault(fault)
      return asked('off').finally(() => cloud.fault('none'))
    }
    const came = [await asked('status'), await asked('off'), await asked('on'), await asked('off', 'wrong'), await faulty('mute'), await faulty('drop'), await faulty('broken')]
    world.forbid()
    came.push(await asked('off'))
    await cloud.close()
    came.push(await asked('off'))
    assert.equal(came, ['on', 'off', 'on', 'auth', 'timeout', 'unreachable', 'busy', 'privilege', 'unreachable'])
    const seen = overheard.end()
    for (const place of ['argument list', 'environment'] as const) assert.ok(seen.some((one) => one.place === place && one.text.includes(place === 'environment' ? 'HOLDFAST_NODE=n1' : `${agent}.ts`)), `no ${place} was seen`)
    const without = redactor([right, secret.wrong, ...hush].flatMap(piecesOf))
    for (const text of [...said, ...seen.map(({ place, text: words }) => `${place}: ${words}`)]) assert.is(without(text), text)
  }))

  test('two plugs, garbage, no action, two actions: nobody is asked', () => inWorld(async (world) => {
    const lines = (over: Record<string, string> = {}) => Object.entries(world.with(over)).map(([key, value]) => `${key}=${value}\n`).join('')
    const inputs = [
      `action=off\n${lines({ plug: `${plugs(world)},${plugs(world)}` })}`, `action=off\n${lines({ plug: `${plugs(world)} ${plugs(world)}` })}`,
      `${lines()}`, `action = off\n${lines()}`, `action=off\naction=off\n${lines()}`, `action=reboot\n${lines()}`, '\u0001\u0002=%%%\n=\n',
    ]
    for (const input of inputs) {
      const end = await world.cloud.place.raw(world.agent, input)
      assert.equal([end.exitCode, world.orders], [1, []], input)
      for (const secret of hush) assert.not.match(`${end.stdout}${end.stderr}`, secret)
    }
    assert.equal(world.cloud.calls.filter((call) => call.includes(encodeURIComponent(`${plugs(world)} ${plugs(world)}`))), [])
  }))

  test('a certificate that nobody vouches for: nothing is sent', () => inWorld(async (world) => {
    const word = await world.cloud.place.ask(world.agent, 'off', world.with({ ca: '' }))
    assert.is(word.state, 'failed')
    assert.match(word.reason, /^config \(.*is not trusted/)
    assert.equal(world.cloud.calls, [])
  }))

  test('an authority from the environment is trusted', () => inWorld(async (world) => {
    assert.is((await world.cloud.place.ask(world.agent, 'status', world.with({ ca: '' }), 20_000, { SSL_CERT_FILE: world.cloud.ca })).state, 'on')
  }))

  test('metadata and validate-all ask nobody, monitor and list do', () => inWorld(async (world) => {
    const lines = Object.entries(world.with()).map(([key, value]) => `${key}=${value}\n`).join('')
    assert.match((await world.cloud.place.raw(world.agent, 'action=metadata\n')).stdout, new RegExp(`<resource-agent name="${world.agent}"`))
    assert.is((await world.cloud.place.raw(world.agent, `action=validate-all\n${lines}`)).exitCode, 0)
    assert.equal(world.cloud.calls, [])
    assert.is((await world.cloud.place.raw(world.agent, `action=monitor\n${lines}`)).exitCode, 0)
    const list = await world.cloud.place.raw(world.agent, `action=list\n${lines}`)
    assert.ok(list.stdout.split('\n').some((line) => line.startsWith(`${plugs(world)},`)), list.stdout)
  }))
}
