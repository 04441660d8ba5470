// Asks a kubelet's port whether a machine is there: a connection, then the beginning of a TLS handshake. What counts is who
// answers, not what: the certificate is not checked, nothing is sent that would need one.
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Ms, ProbeWord } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'

/** Where a Node can be asked; empty: nowhere. Only an address will do, and no name: a name server that is away would make a
 *  silence of it that is not the machine's, and one that answers for everything would make another machine speak for it. */
export function probeAddress(offered: readonly { readonly type: string; readonly address: string }[]): string {
  const addresses = offered.filter(({ address }) => isIP(address) !== 0)
  return kinds.flatMap((kind) => addresses.find(({ type }) => type === kind)?.address ?? []).at(0) ?? ''
}

/** The nearest first. A machine without a name of its own has its address as Hostname. */
const kinds = ['InternalIP', 'ExternalIP', 'Hostname'] as const

/** An RST came from some kernel. Time-outs and unreachable hosts or networks are silence. */
const refusals: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ECONNRESET'])

export function probePort(clock: Clock, address: string, port: number, span: Ms): Promise<ProbeWord> {
  return new Promise((resolve) => {
    let accepted = false
    const socket = connect({ host: address, port })
    const cancel = clock.after(span, () => end(accepted ? 'open' : 'silent'))
    const end = (word: ProbeWord): void => {
      cancel()
      socket.destroy()
      resolve(word)
    }
    socket.on('error', (error) => end(refused(error) ? 'refused' : accepted ? 'open' : 'silent'))
    socket.on('connect', () => {
      accepted = true
      handshake(socket, end)
    })
  })
}

function handshake(socket: Socket, end: (word: ProbeWord) => void): void {
  // A handshake that fails was answered all the same, unless the connection was merely torn down.
  const secure = connectTls({ socket, rejectUnauthorized: false, minVersion: 'TLSv1.2' })
  secure.on('secureConnect', () => end('answered'))
  secure.on('error', (error) => end(refused(error) ? 'refused' : 'answered'))
  secure.on('close', () => end('open'))
}

function refused(error: Error): boolean {
  return 'code' in error && typeof error.code === 'string' && refusals.has(error.code)
}
