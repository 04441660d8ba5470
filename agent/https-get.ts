// One GET of the API server, by hand: an agent asks two in its life, when its cluster starts cold, and node:https would stay with it for
// good. HTTP/1.0, so that an answer ends with its connection and nothing has to be put together; its length is held to what it says.
import { connect } from 'node:tls'
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { ApiAnswer } from './host.ts'

export interface ApiServer {
  readonly host: string
  readonly port: number
  /** PEM. */
  readonly authority: string
  readonly token: string
}

const longestAnswer = 8 * 1024 * 1024

export function httpsGet(clock: Clock, { host, port, authority, token }: ApiServer, path: string, span: Ms): Promise<ApiAnswer> {
  return new Promise((resolve) => {
    if (!/^[\w.~+/=-]+$/.test(token) || !/^\/[\x21-\x7e]*$/.test(path)) return resolve({ failed: 'a token or a path that cannot be sent' })
    const pieces: Buffer[] = []
    let size = 0
    const socket = connect({ host, port, ca: authority, minVersion: 'TLSv1.2' })
    const end = (answer: ApiAnswer): void => {
      late()
      socket.destroy()
      resolve(answer)
    }
    const late = clock.after(span, () => end({ failed: `no answer within ${span} ms` }))
    socket.on('secureConnect', () => socket.write(
      `GET ${path} HTTP/1.0\r\nHost: ${host.includes(':') ? `[${host}]` : host}:${port}\r\nAuthorization: Bearer ${token}\r\nAccept: application/json\r\nUser-Agent: holdfast-agent\r\n\r\n`,
    ))
    socket.on('data', (piece: Buffer) => {
      size += piece.length
      if (size > longestAnswer) return end({ failed: `an answer of more than ${longestAnswer} bytes` })
      pieces.push(piece)
    })
    socket.on('end', () => end(readAnswer(Buffer.concat(pieces))))
    socket.on('error', (error) => end({ failed: error.message.slice(0, 200) }))
    socket.on('close', () => end({ failed: 'the connection was cut' }))
  })
}

export function readAnswer(bytes: Buffer): ApiAnswer {
  const headEnd = bytes.indexOf('\r\n\r\n')
  const head = headEnd === -1 ? '' : bytes.toString('latin1', 0, headEnd)
  const [, status] = /^HTTP\/1\.[01] (\d{3})\b/.exec(head) ?? []
  if (status === undefined) return { failed: 'an answer that is no HTTP' }
  if (/^transfer-encoding:/im.test(head)) return { failed: 'an answer in chunks, which nobody asked for' }
  const body = bytes.subarray(headEnd + 4)
  const [, length] = /^content-length:\s*(\d+)\s*$/im.exec(head) ?? []
  if (length !== undefined && Number(length) !== body.length) return { failed: `an answer of ${body.length} bytes, of ${length} that it names` }
  return { status: Number(status), body: body.toString('utf8') }
}
