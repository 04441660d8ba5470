// The end of what a program writes: its last words tell the outcome. What came before the limit is forgotten, together
// with the line that was cut, since half a secret is not recognised when secrets are taken out by value.
import type { Readable } from 'node:stream'

export function tailOf(stream: Readable, limit: number): { text(): string } {
  const pieces: Buffer[] = []
  let size = 0
  let cut = false
  stream.on('data', (piece: Buffer) => {
    pieces.push(piece)
    size += piece.length
    while (pieces.length > 1 && size - (pieces[0]?.length ?? 0) >= limit) {
      size -= pieces.shift()?.length ?? 0
      cut = true
    }
  })
  stream.on('error', () => undefined) // the pipe broke: what came before it is all there is
  return {
    text() {
      const whole = Buffer.concat(pieces)
      if (!cut && whole.length <= limit) return whole.toString()
      const kept = whole.subarray(Math.max(0, whole.length - limit))
      const lineEnd = kept.indexOf(0x0a)
      return lineEnd === -1 ? '' : kept.subarray(lineEnd + 1).toString()
    },
  }
}
