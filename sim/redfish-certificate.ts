// A self-signed certificate as management controllers have them. Node makes keys but no certificates, and this must work
// where no other tool is installed, so the few fields of X.509 that are needed are written out in DER here.
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'

export interface Certificate {
  /** PEM. */
  readonly key: string
  readonly certificate: string
  /** SHA-256 of the certificate, hex without colons: what an operator pins. */
  readonly fingerprint: string
}

export function selfSigned(commonName: string, ipv4: string): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const name = sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(commonName)))))
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    ecdsaWithSha256,
    name,
    // A controller's clock is wrong more often than not, and so is the span in its certificate.
    sequence(der(0x17, Buffer.from('200101000000Z')), der(0x17, Buffer.from('491231235959Z'))),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(sequence(oid('551d11'), der(0x04, sequence(
      der(0x82, Buffer.from(commonName)), der(0x87, Buffer.from(ipv4.split('.').map(Number))),
    ))))),
  )
  const signature = sign('sha256', body, privateKey)
  const whole = sequence(body, ecdsaWithSha256, der(0x03, Buffer.concat([Buffer.from([0]), signature])))
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    certificate: `-----BEGIN CERTIFICATE-----\n${whole.toString('base64').replace(/.{64}/g, '$&\n').trimEnd()}\n-----END CERTIFICATE-----\n`,
    fingerprint: createHash('sha256').update(whole).digest('hex'),
  }
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts))
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'))
}

const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'))
