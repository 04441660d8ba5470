import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Server } from 'node:net'

// Below the range from which Linux takes the ports of outgoing connections (32768 and up). A port from inside that
// range may be taken by any client while the apiserver is stopped on purpose, even by one that redials the
// apiserver and so ends up connected to itself.
const LOWEST = 20_000
const HIGHEST = 30_000
const ATTEMPTS = 200

/** Ports nobody listens on, one for each name. */
export async function freePorts<Name extends string>(names: readonly Name[]): Promise<Record<Name, number>> {
  // All are held until all are found, so that no two are the same.
  const held: Server[] = []
  const found: [Name, number][] = []
  for (const name of names) {
    const { port, server } = await hold()
    held.push(server)
    found.push([name, port])
  }
  for (const server of held) {
    server.close()
    await once(server, 'close')
  }
  // Object.fromEntries forgets the names' type; each of them was given a port just above.
  return Object.fromEntries(found) as Record<Name, number>
}

async function hold(): Promise<{ port: number; server: Server }> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const port = randomInt(LOWEST, HIGHEST)
    const server = createServer()
    if (await listens(server, port)) return { port, server }
  }
  throw new Error(`no free port between ${LOWEST} and ${HIGHEST} in ${ATTEMPTS} attempts`)
}

function listens(server: Server, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    // Whatever keeps us from listening, another port is the answer.
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => resolve(true))
  })
}
