// A unix socket that is spoken to in lines: the serial ports of a machine, and the back ends of devices whose servers are
// strangers' programs, so that their power and their faults are the test's own.
import { rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'

export interface LineServer {
  readonly path: string
  /** To whoever is connected. */
  say(text: string): void
  /** Whoever is connected loses us, and nobody else comes in until open(). */
  vanish(): Promise<void>
  open(): Promise<void>
}

export type Speaker = (lines: AsyncIterable<string>, say: (text: string) => void) => Promise<void>

export async function serveLines(path: string, speak: Speaker): Promise<LineServer> {
  const sockets = new Set<Socket>()
  // Half open: who asks says that he has asked all before he hears the answer.
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined) // its other end was killed: what every test here does
    speak(createInterface({ input: socket }), (text) => socket.write(text)).finally(() => socket.end()).catch(() => socket.destroy())
  })
  const open = () => new Promise<void>((resolve, reject) => { server.once('error', reject).listen(path, () => resolve()) })
  await open()
  return {
    path, open,
    say: (text) => { for (const socket of sockets) socket.write(text) },
    vanish: () => new Promise((resolve) => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
      rmSync(path, { force: true })
    }),
  }
}
