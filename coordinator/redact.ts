// Secrets are taken out by value from everything that leaves a run: reasons, evidence, log lines. A program may print its
// password as it is, in an Authorization header, in a URL or inside JSON; each of these writings is looked for.
export type Redact = (text: string) => string

export const redacted = '[redacted]'

/** Very short pieces of an encoding would also hit innocent text; the secret itself is taken out however short it is. */
const shortestPiece = 6

export function redactor(secrets: readonly string[]): Redact {
  const writings = [...new Set(secrets.filter((secret) => secret !== '').flatMap(writingsOf))]
  // Longest first, so that no secret leaves a stump because a part of it was taken out before.
  writings.sort((one, other) => other.length - one.length)
  return (text) => writings.reduce((rest, writing) => rest.replaceAll(writing, redacted), text)
}

function writingsOf(secret: string): string[] {
  const lines = secret.split(/\r?\n/).filter((line) => line.trim().length >= shortestPiece)
  const encoded = [encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1), Buffer.from(secret).toString('hex'), ...base64Pieces(secret)]
  return [secret, ...lines, ...encoded.filter((piece) => piece.length >= shortestPiece)]
}

/** A secret somewhere inside a base64 text (`user:secret`) stands at one of three offsets; the characters that also depend
 *  on its neighbours are cut off at both ends. */
function base64Pieces(secret: string): string[] {
  return [0, 1, 2].flatMap((offset) => {
    const whole = Buffer.from('\0'.repeat(offset) + secret)
    const first = offset === 0 ? 0 : offset + 1
    const last = Math.floor((whole.length * 8) / 6)
    const piece = whole.toString('base64').slice(first, last)
    return [piece, piece.replaceAll('+', '-').replaceAll('/', '_')]
  })
}
