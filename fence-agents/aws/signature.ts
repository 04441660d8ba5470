// AWS Signature Version 4, for requests whose whole body is known and whose path needs no encoding, which is all of the query
// API. Judged by the vectors that AWS publishes.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
import { createHash, createHmac } from 'node:crypto'

export interface Credentials {
  readonly accessKey: string
  readonly secretKey: string
  readonly sessionToken?: string
}

export interface Unsigned {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Scope {
  readonly region: string
  readonly service: string
  /** Milliseconds since the epoch. AWS refuses a clock that is more than five minutes off. */
  readonly at: number
}

const algorithm = 'AWS4-HMAC-SHA256'

/** The headers to send: those given, and what makes them good. */
export function signed(request: Unsigned, credentials: Credentials, { region, service, at }: Scope): Readonly<Record<string, string>> {
  const url = new URL(request.url)
  const time = new Date(at).toISOString().replace(/[-:]|\.\d+/g, '')
  const day = time.slice(0, 8)
  const { sessionToken } = credentials
  const headers: Readonly<Record<string, string>> = {
    ...lowered(request.headers), host: url.host, 'x-amz-date': time, ...(sessionToken === undefined ? {} : { 'x-amz-security-token': sessionToken }),
  }
  const names = Object.keys(headers).toSorted()
  const canonical = [
    request.method, url.pathname, canonicalQuery(url.searchParams),
    ...names.map((name) => `${name}:${(headers[name] ?? '').trim().replace(/ +/g, ' ')}`), '',
    names.join(';'), sha256(request.body),
  ].join('\n')
  const scope = `${day}/${region}/${service}/aws4_request`
  const key = [day, region, service, 'aws4_request'].reduce<Buffer | string>((under, part) => hmac(under, part), `AWS4${credentials.secretKey}`)
  const signature = hmac(key, [algorithm, time, scope, sha256(canonical)].join('\n')).toString('hex')
  return { ...headers, authorization: `${algorithm} Credential=${credentials.accessKey}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}` }
}

function lowered(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

function canonicalQuery(query: URLSearchParams): string {
  const pairs = [...query].map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
  return pairs.toSorted().join('&')
}

/** All but letters, digits, - . _ and ~. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
