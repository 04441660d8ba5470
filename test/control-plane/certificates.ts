// The identities of one control plane: a certificate authority that lives as long as the run, and whoever it
// signs. openssl does the work, because it is on every Debian and Node can make keys but not certificates.

import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type NodeUser = `system:node:${string}`
export type User = 'admin' | 'system:kube-controller-manager' | 'system:kube-scheduler' | NodeUser

/** What a client needs to be someone, as PEM text. */
export type Credentials = Readonly<{ cert: string; key: string; ca: string }>

export type Certificates = Readonly<{
  caFile: string
  ca: string
  servingCertFile: string
  servingKeyFile: string
  serviceAccountKeyFile: string
  /** Signed when first asked for, the same ever after. Blocks for a few milliseconds. */
  credentials(user: User): Credentials
}>

export function createCertificates(dir: string): Certificates {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  writeFileSync(join(dir, 'openssl.cnf'), CONFIGURATION)
  const caFile = sign(dir, { file: 'ca', subject: '/CN=holdfast-test-ca', extensions: 'authority' }).certFile
  const ca = readFileSync(caFile, 'utf8')
  const serving = sign(dir, { file: 'serving', subject: '/CN=kube-apiserver', extensions: 'server', by: 'ca' })
  const serviceAccountKeyFile = join(dir, 'service-account.key')
  openssl(['genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', serviceAccountKeyFile])
  return {
    caFile,
    ca,
    servingCertFile: serving.certFile,
    servingKeyFile: serving.keyFile,
    serviceAccountKeyFile,
    credentials: (user) => clientCredentials(dir, ca, user),
  }
}

function clientCredentials(dir: string, ca: string, user: User): Credentials {
  const file = fileName(user)
  const signed = existsSync(join(dir, `${file}.crt`))
    ? filesOf(dir, file)
    : sign(dir, { file, subject: subjectOf(user), extensions: 'client', by: 'ca' })
  return { cert: readFileSync(signed.certFile, 'utf8'), key: readFileSync(signed.keyFile, 'utf8'), ca }
}

/** A user's name as part of a file name. Also the place where a name that openssl would misread is refused. */
export function fileName(user: User): string {
  if (!/^[a-z0-9]([a-z0-9.:-]*[a-z0-9])?$/.test(user)) throw new Error(`not a user we can sign for: ${user}`)
  return `client-${user.replaceAll(':', '_')}`
}

// The apiserver reads the common name as the user and the organization as the group.
function subjectOf(user: User): string {
  if (user === 'admin') return '/O=system:masters/CN=admin'
  if (user.startsWith('system:node:')) return `/O=system:nodes/CN=${user}`
  return `/CN=${user}`
}

type Request = Readonly<{ file: string; subject: string; extensions: 'authority' | 'server' | 'client'; by?: string }>
type Signed = Readonly<{ certFile: string; keyFile: string }>

function sign(dir: string, request: Request): Signed {
  const { certFile, keyFile } = filesOf(dir, request.file)
  const issuer = request.by === undefined ? undefined : filesOf(dir, request.by)
  openssl([
    'req', '-x509', '-config', join(dir, 'openssl.cnf'), '-extensions', request.extensions,
    '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '365',
    '-subj', request.subject, '-keyout', keyFile, '-out', certFile,
    ...(issuer === undefined ? [] : ['-CA', issuer.certFile, '-CAkey', issuer.keyFile]),
  ])
  chmodSync(keyFile, 0o600)
  return { certFile, keyFile }
}

function filesOf(dir: string, file: string): Signed {
  return { certFile: join(dir, `${file}.crt`), keyFile: join(dir, `${file}.key`) }
}

function openssl(args: readonly string[]): void {
  // Its progress dots go to stderr: swallowed unless it fails, when execFileSync puts them into the error.
  execFileSync('openssl', args, { stdio: 'pipe', timeout: 30_000 })
}

// Our own configuration, since the machine's may add extensions to what it signs (Debian's makes every
// self-signed certificate an authority).
const CONFIGURATION = `
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign, digitalSignature
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1, IP:10.0.0.1, DNS:localhost, DNS:kubernetes.default.svc
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[client]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
`
