// Hears crash kernels: the word of ClusterLabs' fence_kdump_send on UDP, eight bytes in the sender's own order of bytes, which bear
// no name. Whose it is, only the address that it comes from tells. One listener serves all nodes.
import { createSocket } from 'node:dgram'

export interface KdumpListener {
  readonly port: number
  close(): Promise<void>
}

const magic = 0x1b302a40
const version = 1
const length = 8

export function isDumpWord(bytes: Buffer): boolean {
  if (bytes.length !== length) return false
  return (bytes.readUInt32LE(0) === magic && bytes.readUInt32LE(4) === version) || (bytes.readUInt32BE(0) === magic && bytes.readUInt32BE(4) === version)
}

/** Whoever wrote to a socket of both families by IPv4 shows so. */
const mapped = '::ffff:'

export async function listenKdump({ bind, port }: { readonly bind: string; readonly port: number }, heard: (from: string) => void): Promise<KdumpListener> {
  const socket = createSocket(bind.includes(':') ? 'udp6' : 'udp4')
  socket.on('message', (bytes, { address }) => {
    if (isDumpWord(bytes)) heard(address.startsWith(mapped) ? address.slice(mapped.length) : address)
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject)
    socket.bind(port, bind, () => {
      socket.off('error', reject).on('error', () => undefined) // a word that cannot be read is sent again
      resolve()
    })
  })
  return {
    port: socket.address().port,
    close: () => new Promise((resolve) => { socket.close(() => resolve()) }),
  }
}
