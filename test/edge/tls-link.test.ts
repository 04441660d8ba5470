import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { checkFrames, frameLimit, mostPods } from '../../core/frame.ts'
import { makeAuthority, makeServer, type Certified } from '../../edge/certificate.ts'
import { machineClock, type Clock } from '../../edge/clock.ts'
import type { Link } from '../../edge/link.ts'
import { listenTls, mostUnsent, replicaName, tlsDialer, type TlsListener, type TlsListenOptions } from '../../edge/tls-link.ts'
import { virtualClock } from '../../sim/clock.ts'

const test = suite('tls-link')

const now = Date.now()
const hour = 3_600_000
const span = 20_000
const authority = newAuthority('one')
const serving = servingFrom(authority)

type Named = Certified & { readonly name: string }

function newAuthority(name: string): Named {
  return { name, ...makeAuthority({ name, from: now - hour, until: now + hour }) }
}

function servingFrom(by: Named, change: { readonly name?: string; readonly until?: number } = {}): Certified {
  const name = change.name ?? replicaName
  return makeServer(by, { name, names: [name], from: now - hour, until: change.until ?? now + hour })
}

/** A link as a test sees it: what came, and how it ended. */
interface Watched {
  readonly link: Link
  readonly frames: Buffer[]
  readonly ended: Promise<string>
  arrived(count: number): Promise<void>
}

function watched(link: Link): Watched {
  const frames: Buffer[] = []
  const waiting: { readonly count: number; readonly resolve: () => void }[] = []
  let tell: (reason: string) => void
  const ended = new Promise<string>((resolve) => { tell = resolve })
  link.listen({
    frame(frame) {
      frames.push(Buffer.from(frame))
      for (const one of waiting) if (frames.length >= one.count) one.resolve()
    },
    closed: (reason) => tell(reason),
  })
  return { link, frames, ended, arrived: (count) => frames.length >= count ? Promise.resolve() : new Promise((resolve) => { waiting.push({ count, resolve }) }) }
}

interface Listening {
  readonly listener: TlsListener
  readonly accepted: Watched[]
  next(): Promise<Watched>
}

async function listening(change: Partial<TlsListenOptions> = {}): Promise<Listening> {
  const accepted: Watched[] = []
  const waiting: ((link: Watched) => void)[] = []
  const listener = await listenTls({ clock: machineClock, host: '127.0.0.1', port: 0, serving, ...change }, (link) => {
    const seen = watched(link)
    const first = waiting.shift()
    if (first === undefined) accepted.push(seen)
    else first(seen)
  })
  return { listener, accepted, next: () => { const first = accepted.shift(); return first === undefined ? new Promise((resolve) => { waiting.push(resolve) }) : Promise.resolve(first) } }
}

function dialer(authorities: () => string = () => authority.certificate, clock: Clock = machineClock) {
  return tlsDialer({ clock, authorities: async () => authorities() })
}

async function linked(address: string, to: Listening): Promise<readonly [Watched, Watched]> {
  const [near, far] = await Promise.all([dialer().dial(address, span).then(watched), to.next()])
  return [near, far]
}

function refusal(address: string, authorities: () => string = () => authority.certificate, within = span): Promise<string> {
  return dialer(authorities).dial(address, within).then(() => 'linked', (error: unknown) => String(error))
}

/** Stands between the two ends and does with the bytes what it is told. */
async function between(address: string, pass: (piece: Buffer, to: Socket, towards: 'replica' | 'agent') => void): Promise<{ readonly address: string; close(): void }> {
  const sockets: Socket[] = []
  const server: Server = createServer((near) => {
    const far = connect(Number(address.split(':')[1]), '127.0.0.1')
    sockets.push(near, far)
    near.on('data', (piece: Buffer) => pass(piece, far, 'replica'))
    far.on('data', (piece: Buffer) => pass(piece, near, 'agent'))
    for (const [one, other] of [[near, far], [far, near]] as const) {
      one.on('error', () => undefined)
      one.on('close', () => other.destroy())
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `127.0.0.1:${portOf(server)}`,
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.on('error', () => undefined) // a reset is an end too
    socket.on('close', () => resolve())
    socket.resume()
  })
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port // it listens on TCP
}

test('frames of every size, sealed and public, arrive whole and in order, both ways', async () => {
  const server = await listening()
  const [near, far] = await linked(server.listener.address, server)
  const sizes = [0, 1, 6, 100, 16_000, 20_000, frameLimit, 3]
  for (const [index, size] of sizes.entries()) {
    near.link.send(Buffer.alloc(size, index), index % 2 === 0 ? 'public' : undefined)
    far.link.send(Buffer.alloc(size, index + 100), index % 2 === 0 ? undefined : 'public')
  }
  await Promise.all([near.arrived(sizes.length), far.arrived(sizes.length)])
  assert.equal(far.frames, sizes.map((size, index) => Buffer.alloc(size, index)))
  assert.equal(near.frames, sizes.map((size, index) => Buffer.alloc(size, index + 100)))
  await server.listener.close()
})

test('a stream that comes byte by byte is a link all the same', async () => {
  const server = await listening()
  const slow = await between(server.listener.address, (piece, to) => { for (const byte of piece) to.write(Buffer.of(byte)) })
  const [near, far] = await linked(slow.address, server)
  near.link.send(Buffer.from('one'))
  near.link.send(Buffer.from('two'), 'public')
  await far.arrived(2)
  assert.equal(far.frames.map(String), ['one', 'two'])
  slow.close()
  await server.listener.close()
})

test('nothing that was sealed can be read between the ends', async () => {
  const server = await listening()
  const heard: Buffer[] = []
  const ear = await between(server.listener.address, (piece, to) => {
    heard.push(Buffer.from(piece))
    to.write(piece)
  })
  const [near, far] = await linked(ear.address, server)
  near.link.send(Buffer.from('a token that nobody may see'))
  await far.arrived(1)
  assert.not.ok(Buffer.concat(heard).includes('token'))
  ear.close()
  await server.listener.close()
})

test('one changed bit ends the link, and the frame is not handed on', async () => {
  for (const secrecy of [undefined, 'public'] as const) {
    const server = await listening()
    let spoil = false
    const mischief = await between(server.listener.address, (piece, to) => {
      if (spoil) piece[piece.length - 20] = (piece[piece.length - 20] ?? 0) ^ 1
      to.write(piece)
    })
    const [near, far] = await linked(mischief.address, server)
    near.link.send(Buffer.from('first'), secrecy)
    await far.arrived(1)
    spoil = true
    near.link.send(Buffer.from('a second one, longer than the tag'), secrecy)
    assert.is(await far.ended, 'a record that does not open')
    assert.is(far.frames.length, 1)
    assert.is(await near.ended, 'closed by the other end')
    mischief.close()
    await server.listener.close()
  }
})

test('a replica certified by another authority is not believed', async () => {
  const server = await listening({ serving: servingFrom(newAuthority('two')) })
  assert.match(await refusal(server.listener.address), /no link to .*(certificate|issuer)/)
  await server.listener.close()
})

test('a certificate for another name, or out of its time, is not believed', async () => {
  const renamed = await listening({ serving: servingFrom(authority, { name: 'somebody-else' }) })
  assert.match(await refusal(renamed.listener.address), /altnames/)
  await renamed.listener.close()
  const old = await listening({ serving: servingFrom(authority, { until: now - 60_000 }) })
  assert.match(await refusal(old.listener.address), /expired/)
  await old.listener.close()
})

test('authorities are read at each dial, so a new one needs no restart', async () => {
  const two = newAuthority('two')
  const server = await listening({ serving: servingFrom(two) })
  let trusted = authority.certificate
  const one = tlsDialer({ clock: machineClock, authorities: async () => trusted })
  assert.match(await one.dial(server.listener.address, span).then(() => 'linked', String), /no link/)
  trusted = `${authority.certificate}${two.certificate}`
  assert.ok(await one.dial(server.listener.address, span))
  await server.listener.close()
})

test('a renewed certificate serves the next handshake and leaves open links alone', async () => {
  const server = await listening()
  const [near, far] = await linked(server.listener.address, server)
  const two = newAuthority('two')
  server.listener.renew(servingFrom(two))
  assert.match(await refusal(server.listener.address), /no link/)
  assert.is(await refusal(server.listener.address, () => two.certificate), 'linked')
  near.link.send(Buffer.from('still here'))
  await far.arrived(1)
  await server.listener.close()
})

test('without authorities to believe there is no link', async () => {
  const server = await listening()
  const blind = tlsDialer({ clock: machineClock, authorities: () => Promise.reject(new Error('no such file')) })
  assert.match(await blind.dial(server.listener.address, span).then(() => 'linked', String), /no such file/)
  await server.listener.close()
})

test('words sent just before the close still arrive', async () => {
  const server = await listening()
  const [near, far] = await linked(server.listener.address, server)
  far.link.send(Buffer.from('refused, because'))
  far.link.close('we are done')
  assert.is(await far.ended, 'we are done')
  assert.is(await near.ended, 'closed by the other end')
  assert.equal(near.frames.map(String), ['refused, because'])
  await server.listener.close()
})

test('a closed link says so once and swallows what is sent', async () => {
  const server = await listening()
  const [near, far] = await linked(server.listener.address, server)
  near.link.close('first')
  near.link.close('second')
  near.link.send(Buffer.from('lost'))
  assert.is(await near.ended, 'first')
  assert.is(await far.ended, 'closed by the other end')
  assert.is(far.frames.length, 0)
  await server.listener.close()
})

test('who listens late misses neither frames nor the end', async () => {
  const server = await listening()
  const near = await dialer().dial(server.listener.address, span)
  const far = await server.next()
  far.link.send(Buffer.from('early'))
  far.link.close('early too')
  await machineClock.wait(100)
  const late = watched(near)
  assert.is(await late.ended, 'closed by the other end')
  await server.listener.close()
})

test('an end that does not read is closed before it fills the memory', async () => {
  const server = await listening()
  let pass = true
  const stuck = await between(server.listener.address, (piece, to, towards) => {
    if (pass || towards === 'replica') to.write(piece)
    else to.pause() // an end that reads nothing: the stream backs up to the sender
  })
  const [, far] = await linked(stuck.address, server)
  pass = false
  const frame = new Uint8Array(frameLimit)
  // The proxy drains what it is sent; a burst within one turn of the loop cannot be drained by anybody.
  for (let sent = 0; sent < 200; sent += 1) far.link.send(frame)
  assert.is(await far.ended, 'the other end does not read')
  stuck.close()
  await server.listener.close()
})

test('the longest list of pods may be said in one go, though nobody can read it within that turn', async () => {
  const server = await listening()
  const [near, far] = await linked(server.listener.address, server)
  const frames = checkFrames(Array.from({ length: mostPods }, (_, index) => String(index).padStart(60, '0')))
  // What the kernel takes at once differs from machine to machine: none of it is counted on.
  assert.ok(frames.reduce((sum, frame) => sum + frame.length, 0) < mostUnsent)
  for (const frame of frames) far.link.send(frame)
  assert.is(await Promise.race([near.arrived(frames.length).then(() => 'all of it arrived'), far.ended]), 'all of it arrived')
  near.link.close('enough')
  await server.listener.close()
})

test('a frame beyond the limit ends the link of whoever sends it', async () => {
  const server = await listening()
  const [near] = await linked(server.listener.address, server)
  near.link.send(new Uint8Array(frameLimit + 1))
  assert.match(await near.ended, /too long/)
  await server.listener.close()
})

test('whoever speaks something else is closed and never accepted', async () => {
  const server = await listening()
  const port = Number(server.listener.address.split(':')[1])
  await closed(connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false }))
  const first = [
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    Buffer.of(1, 0, 0, 8, 9, 9, 9, 9, 9, 9, 9, 9), // a handshake record that holds no handshake
    Buffer.of(2, 0xff, 0, 0), // longer than any record
    Buffer.concat(Array.from({ length: 3 }, () => Buffer.concat([Buffer.of(2, 1, 0, 0), Buffer.alloc(frameLimit)]))), // frames before any handshake
  ]
  for (const bytes of first) {
    const stranger = connect(port, '127.0.0.1')
    stranger.write(bytes)
    await closed(stranger)
  }
  assert.is(server.accepted.length, 0)
  await server.listener.close()
})

test('who begins a handshake and does not go on is closed at the deadline', async () => {
  const clock = virtualClock()
  const server = await listening({ clock })
  const idle = connect(Number(server.listener.address.split(':')[1]), '127.0.0.1')
  const end = closed(idle)
  while (clock.pending() === 0) await machineClock.wait(5)
  await clock.runFor(9_000)
  assert.not.ok(idle.destroyed)
  await clock.runFor(1_000)
  await end
  assert.is(server.accepted.length, 0)
  await server.listener.close()
})

test('a dial that nobody answers is given up at the deadline with a sentence', async () => {
  const silent = createServer(() => undefined)
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const sockets: Socket[] = []
  silent.on('connection', (socket) => sockets.push(socket))
  assert.match(await refusal(`127.0.0.1:${portOf(silent)}`, undefined, 100), /no link to 127\.0\.0\.1:\d+ within 100 ms/)
  for (const socket of sockets) socket.destroy()
  silent.close()
})

test('a port that nobody listens on is refused with a sentence', async () => {
  const server = await listening()
  await server.listener.close()
  assert.match(await refusal(server.listener.address), /no link to .*ECONNREFUSED/)
})

test('more links than allowed are not taken', async () => {
  const server = await listening({ mostLinks: 1 })
  await linked(server.listener.address, server)
  assert.match(await refusal(server.listener.address), /no link/)
  await server.listener.close()
})

test('a listener that closes ends every link', async () => {
  const server = await listening()
  const [near, far] = await linked(server.listener.address, server)
  await server.listener.close()
  assert.is(await near.ended, 'closed by the other end')
  assert.is(await far.ended, 'closed by the other end')
})

test('a port that is taken rejects the listener', async () => {
  const server = await listening()
  const port = Number(server.listener.address.split(':')[1])
  assert.match(await listening({ port }).then(() => '', String), /EADDRINUSE/)
  await server.listener.close()
})

test('each end knows where the other one is', async () => {
  const server = await listening()
  const [near, far] = await linked(server.listener.address, server)
  assert.is(near.link.remote, server.listener.address)
  assert.match(far.link.remote, /^127\.0\.0\.1:\d+$/)
  await server.listener.close()
})

test.run()
