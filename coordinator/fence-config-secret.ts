// Parameters as they stand in the configuration: text, or the name of a Secret's key. The values are looked up just before
// a run and nowhere kept; of a value only a keyed hash stands in a method's digest, so that a changed password is a
// changed method and asks for a new audit.
import { createHmac } from 'node:crypto'
import { unescape } from 'node:querystring'
import { sameKey, type AgentParameters, type Refusal } from '../core/contract.ts'

export interface SecretReference {
  readonly secret: string
  readonly key: string
}

export type ParameterValue = string | SecretReference
export type ConfiguredParameters = Readonly<Record<string, ParameterValue>>

/** The value of a key of a Secret in the coordinator's own namespace; undefined: there is none. */
export type SecretLookup = (reference: SecretReference) => string | undefined

/** `files`: what the program is to find in a file of its own, by the parameter that names it. */
export type Resolved =
  | { readonly parameters: AgentParameters; readonly files: AgentParameters; readonly secrets: readonly string[] }
  | { readonly missing: readonly string[] }

export function resolveParameters(configured: ConfiguredParameters, lookup: SecretLookup): Resolved {
  const parameters: Record<string, string> = {}
  const files: Record<string, string> = {}
  const secrets: string[] = []
  const missing: string[] = []
  for (const [key, value] of Object.entries(configured)) {
    const text = typeof value === 'string' ? value : lookup(value)
    if (text === undefined) missing.push(lackOf(key, value))
    else if (typeof value !== 'string' && isFile(key)) files[key] = text
    else parameters[key] = text
    if (typeof value !== 'string' && text !== undefined) secrets.push(text)
  }
  return missing.length > 0 ? { missing } : { parameters, files, secrets: [...secrets, ...plainSecrets(parameters)] }
}

/** Whatever names a file: a key has lines, and none of them fits into one. */
function isFile(key: string): boolean {
  return /_file$|^(serviceaccount|kubeconfig|ca|cacert|tls(cert|key|cacert))$/.test(sameKey(key))
}

/** A password that was written into the ConfigMap as it is does not belong into a log either, and neither does one in a URL. */
function plainSecrets(parameters: AgentParameters): string[] {
  return Object.entries(parameters).flatMap(([key, value]) => [...(secretKey.test(key) ? [value] : []), ...inUrl(value)])
}

function inUrl(value: string): string[] {
  const [, password] = /^[a-z][a-z0-9+.-]*:\/\/(?:[^:@/]*:)?(.+)@/is.exec(value) ?? []
  return password === undefined ? [] : [password, unescape(password)]
}

const secretKey = /pass|secret|token|community|private|credential|api[-_]?key|^key$/i

const outletKeys: ReadonlySet<string> = new Set(['plug', 'port'])

/** The parameters by which the device is asked, whichever of its outlets is meant. */
export function beyondOutlet(configured: ConfiguredParameters): ConfiguredParameters {
  return Object.fromEntries(Object.entries(configured).filter(([key]) => !outletKeys.has(sameKey(key))))
}

/** Undefined: it names none in plain text. */
export function outletOf(configured: ConfiguredParameters): string | undefined {
  const value = Object.entries(configured).find(([key]) => outletKeys.has(sameKey(key)))?.[1]
  return typeof value === 'string' ? value : undefined
}

/** A parameter whose Secret is not there. */
export interface MissingSecret extends Refusal {
  readonly of: SecretReference
}

export function missingSecrets(configured: ConfiguredParameters, lookup: SecretLookup): readonly MissingSecret[] {
  return Object.entries(configured).flatMap(([key, value]) => (typeof value === 'string' || lookup(value) !== undefined ? [] : [{ key, of: value, says: lackOf(key, value) }]))
}

function lackOf(key: string, value: ParameterValue): string {
  return `${key}: ${nameOf(value)} is not there`
}

/** Equal digests: the same program would be told the same. `salt` is the cluster's own, so that a digest, which anybody may
 *  read on a NodeRecord, is no means to try out passwords. */
export function digestOf(agent: string, configured: ConfiguredParameters, lookup: SecretLookup, salt: string): string {
  const seal = (text: string) => createHmac('sha256', salt).update(text).digest('hex')
  const entries = Object.entries(configured).toSorted(([one], [other]) => (one < other ? -1 : 1))
  const sealed = entries.map(([key, value]) => [key, typeof value === 'string' ? value : [nameOf(value), sealedSecret(lookup(value), seal)]])
  return seal(JSON.stringify([agent, sealed])).slice(0, 32)
}

function sealedSecret(value: string | undefined, seal: (text: string) => string): string {
  return value === undefined ? 'missing' : seal(value)
}

function nameOf(value: ParameterValue): string {
  return typeof value === 'string' ? value : `Secret ${value.secret} key ${value.key}`
}
