// The cable of one process: while a file is there, nothing passes between the process and anywhere but its own address and the sockets of
// its own machine. Loaded before the product's program (`node --import`), because no socket on loopback can be cut from outside without rights
// that a test has not. What is sent meanwhile waits, what arrives is not read, no connection is made, and none is seen to end: as with a cable
// that is out, the other end hears nothing at all. Once it is in again, what stands still goes on.
import { Socket as Datagrams } from 'node:dgram'
import { existsSync } from 'node:fs'
import { Socket } from 'node:net'
import { env } from 'node:process'

/** For whoever starts the process. */
export const cableEnvironment = (file: string, address: string): Readonly<Record<string, string>> => ({ CABLE_FILE: file, CABLE_ADDRESS: address })

/** Of Node's own sockets, what stands between a stream and the kernel. */
interface Inner {
  _handle: { readStart(): void; readStop(): void; close(): void } | null
  connect(...input: unknown[]): unknown
  _write(...input: unknown[]): void
  _writev(...input: unknown[]): void
  _final(...input: unknown[]): void
  _destroy(...input: unknown[]): void
}

const lookEvery = 20
const { CABLE_FILE: file, CABLE_ADDRESS: own = '' } = env
if (file !== undefined) plug(file)

function plug(cut: string): void {
  const open = new Set<Socket>()
  let out = existsSync(cut)
  let held: (() => void)[] = []
  const leaves = (socket: Socket): boolean => open.has(socket)

  setInterval(() => {
    if (existsSync(cut) === out) return
    out = !out
    for (const socket of open) if (out) innerOf(socket)._handle?.readStop(); else innerOf(socket)._handle?.readStart()
    const waiting = held
    if (!out) held = []
    if (!out) for (const go of waiting) go()
  }, lookEvery).unref()

  const { connect, _write, _writev, _final, _destroy } = innerOf(Socket.prototype)
  innerOf(Socket.prototype).connect = function connectByCable(this: Socket, ...input: unknown[]) {
    const host = hostOf(input)
    if (host === undefined || host === own) return connect.apply(this, input)
    // It stays on its way until whoever dialled gives up.
    if (out) return Object.assign(this, { connecting: true })
    this.once('connect', () => {
      open.add(this)
      if (out) innerOf(this)._handle?.readStop()
    })
    this.once('close', () => open.delete(this))
    return connect.apply(this, input)
  }
  const later = (name: '_write' | '_writev' | '_final', real: (...input: unknown[]) => void): void => {
    innerOf(Socket.prototype)[name] = function waits(this: Socket, ...input: unknown[]) {
      if (!out || !leaves(this)) return real.apply(this, input)
      held.push(() => (this.destroyed ? undefined : real.apply(this, input)))
    }
  }
  later('_write', _write)
  later('_writev', _writev)
  later('_final', _final)
  innerOf(Socket.prototype)._destroy = function endsUnheard(this: Socket, ...input: unknown[]) {
    const handle = innerOf(this)._handle
    if (out && leaves(this) && handle !== null) {
      innerOf(this)._handle = null
      held.push(() => handle.close())
    }
    _destroy.apply(this, input)
  }

  const { send, emit } = Datagrams.prototype
  Datagrams.prototype.send = function sendByCable(this: Datagrams, ...input: unknown[]) {
    const done = input.at(-1)
    if (out && !input.includes(own)) return void (typeof done === 'function' && setImmediate(() => done(null)))
    Reflect.apply(send, this, input)
  }
  Datagrams.prototype.emit = function hearByCable(this: Datagrams, ...input: unknown[]) {
    const [event, , from] = input
    if (out && event === 'message' && Object(from).address !== own) return true
    return Reflect.apply(emit, this, input)
  }
}

/** Undefined: a socket of this machine. Node hands on its arguments as a list in a list. */
function hostOf([first]: readonly unknown[]): string | undefined {
  const options: unknown = Array.isArray(first) ? first[0] : first
  const { host, port }: { host?: string; port?: unknown } = Object(options) // a path has neither
  return port === undefined ? undefined : host ?? 'localhost'
}

function innerOf(socket: Socket): Inner {
  return socket as unknown as Inner // Node's own, by the names that it has had since there were streams
}
