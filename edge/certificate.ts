// X.509 certificates by hand: the few forms that the coordinator's own authority needs, ECDSA on P-256, no dependency.
// node:crypto makes keys and signatures and writes public keys in their standard form; the rest is the DER below.
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'
import { isIP } from 'node:net'

/** PEM. */
export interface Certified { readonly certificate: string; readonly key: string }

export interface AuthorityRequest {
  readonly name: string
  /** Milliseconds since the epoch. */
  readonly from: number
  readonly until: number
}

export interface ServerRequest extends AuthorityRequest {
  /** DNS names and IP addresses that the certificate is good for. */
  readonly names: readonly string[]
}

/** A self-signed authority that may sign servers and nothing below them. */
export function makeAuthority(request: AuthorityRequest): Certified {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const certificate = signed(request, pair.publicKey, request.name, pair.privateKey, pair.publicKey, [
    extension(oids.basicConstraints, true, sequence(boolean(true), integer(0))),
    extension(oids.keyUsage, true, bits(keyCertSign | crlSign)),
  ])
  return { certificate, key: keyText(pair.privateKey) }
}

export function makeServer(authority: Certified & { readonly name: string }, request: ServerRequest): Certified {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const authorityKey = createPrivateKey(authority.key)
  const certificate = signed(request, pair.publicKey, authority.name, authorityKey, createPublicKey(authorityKey), [
    extension(oids.basicConstraints, true, sequence()),
    extension(oids.keyUsage, true, bits(digitalSignature)),
    extension(oids.extendedKeyUsage, false, sequence(objectId(oids.serverAuth))),
    extension(oids.subjectAltName, false, sequence(...request.names.map(generalName))),
  ])
  return { certificate, key: keyText(pair.privateKey) }
}

function signed(
  request: AuthorityRequest, subjectKey: KeyObject, issuer: string, issuerKey: KeyObject, issuerPublicKey: KeyObject, extensions: readonly Buffer[],
): string {
  const spki = subjectKey.export({ type: 'spki', format: 'der' })
  const algorithm = sequence(objectId(oids.ecdsaWithSha256))
  const body = sequence(
    tagged(0xa0, integer(2)), // version 3
    serial(),
    algorithm,
    distinguishedName(issuer),
    sequence(time(request.from), time(request.until)),
    distinguishedName(request.name),
    spki,
    tagged(0xa3, sequence(
      ...extensions,
      extension(oids.subjectKeyIdentifier, false, octets(keyIdentifier(spki))),
      extension(oids.authorityKeyIdentifier, false, sequence(tagged(0x80, keyIdentifier(issuerPublicKey.export({ type: 'spki', format: 'der' }))))),
    )),
  )
  const der = sequence(body, algorithm, tagged(0x03, Buffer.concat([Buffer.of(0), sign('sha256', body, issuerKey)])))
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

/** Object identifiers (RFC 5280, RFC 5758), as their DER content. */
const oids = {
  commonName: '550403',
  basicConstraints: '551d13',
  keyUsage: '551d0f',
  extendedKeyUsage: '551d25',
  subjectAltName: '551d11',
  subjectKeyIdentifier: '551d0e',
  authorityKeyIdentifier: '551d23',
  serverAuth: '2b06010505070301',
  ecdsaWithSha256: '2a8648ce3d040302',
} as const

/** Key usage, in the bit string's order: the first bit is the highest. */
const digitalSignature = 0x80
const keyCertSign = 0x04
const crlSign = 0x02

function tagged(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const size = content.length < 0x80 ? Buffer.of(content.length) : longSize(content.length)
  return Buffer.concat([Buffer.of(tag), size, content])
}

function longSize(size: number): Buffer {
  const digits = Buffer.alloc(4)
  digits.writeUInt32BE(size)
  const short = digits.subarray(digits.findIndex((digit) => digit !== 0))
  return Buffer.concat([Buffer.of(0x80 | short.length), short])
}

function sequence(...parts: readonly Uint8Array[]): Buffer {
  return tagged(0x30, ...parts)
}

function integer(value: number): Buffer {
  return tagged(0x02, Buffer.of(value))
}

function boolean(value: boolean): Buffer {
  return tagged(0x01, Buffer.of(value ? 0xff : 0))
}

function octets(content: Uint8Array): Buffer {
  return tagged(0x04, content)
}

/** A bit string of at most one byte, written without its trailing zeros as DER wants it. */
function bits(byte: number): Buffer {
  return tagged(0x03, Buffer.of(Math.clz32(byte & -byte) === 32 ? 0 : 31 - Math.clz32(byte & -byte), byte))
}

function objectId(content: string): Buffer {
  return tagged(0x06, Buffer.from(content, 'hex'))
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return sequence(objectId(id), ...(critical ? [boolean(true)] : []), octets(value))
}

/** 127 random bits with the highest set: positive, and always as long. */
function serial(): Buffer {
  const digits = randomBytes(16)
  digits[0] = ((digits[0] ?? 0) & 0x7f) | 0x40
  return tagged(0x02, digits)
}

function distinguishedName(name: string): Buffer {
  return sequence(tagged(0x31, sequence(objectId(oids.commonName), tagged(0x0c, Buffer.from(name, 'utf8')))))
}

/** Two digits of the year up to 2049, four from then on (RFC 5280 §4.1.2.5). */
function time(at: number): Buffer {
  const text = new Date(at).toISOString().replaceAll(/[-:T]|\.\d+/g, '')
  return at < Date.UTC(2050, 0) ? tagged(0x17, Buffer.from(text.slice(2))) : tagged(0x18, Buffer.from(text))
}

function generalName(name: string): Buffer {
  if (isIP(name) === 0) return tagged(0x82, Buffer.from(name, 'latin1'))
  return tagged(0x87, isIP(name) === 4 ? Buffer.from(name.split('.').map(Number)) : ipv6(name))
}

function ipv6(address: string): Buffer {
  // The URL parser writes any spelling, one with dots too, as hexadecimal groups.
  const [head = '', tail] = new URL(`http://[${address.split('%')[0]}]`).hostname.slice(1, -1).split('::')
  const before = ipv6Groups(head)
  const after = ipv6Groups(tail ?? '')
  const left = Array.from({ length: 8 - before.length - after.length }, () => 0)
  return Buffer.from([...before, ...left, ...after].flatMap((group) => [group >>> 8, group & 0xff]))
}

function ipv6Groups(text: string): readonly number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
}

/** RFC 7093's first method: the leading 160 bits of SHA-256; only sameness matters. */
function keyIdentifier(spki: Buffer): Buffer {
  return createHash('sha256').update(spki).digest().subarray(0, 20)
}

function keyText(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}
