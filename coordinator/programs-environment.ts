// What of the coordinator's own environment a fence program gets: a cloud's program the identity that its own cloud gave this
// pod, and the way out of this network. Every other program gets nothing: a strip in the same rack needs no key of a cloud,
// and what a program does not have it cannot tell anybody.
import { cloudPrograms } from './cloud-programs.ts'

export type Surroundings = Readonly<Record<string, string | undefined>>

const wayOut = /^((HTTPS|NO)_PROXY|(https|no)_proxy|SSL_CERT_FILE)$/

export function handedOn(agent: string, surroundings: Surroundings): Readonly<Record<string, string>> {
  const cloud = cloudPrograms.get(agent)
  if (cloud === undefined) return {}
  return Object.fromEntries(Object.entries(surroundings).filter((entry): entry is [string, string] => {
    const [name, value] = entry
    return value !== undefined && (cloud.variables.test(name) || wayOut.test(name))
  }))
}

const secretName = /pass|secret|token|credential|key/i
/** Names of files, roles and services: without them a reason does not tell what is wrong. */
const plainName = /_(FILE|ID|PATH|ARN|URI|TYPE)$|^GOOGLE_APPLICATION_CREDENTIALS$/

/** What no word of the program may repeat. */
export function secretsAmong(environment: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(environment).flatMap(([name, value]) => {
    if (/_proxy$/i.test(name)) return proxySecrets(value)
    return secretName.test(name) && !plainName.test(name) ? [value] : []
  })
}

/** A password in a proxy's address, as it stands there and as it is sent. */
function proxySecrets(address: string): readonly string[] {
  const [, password] = /^(?:[a-z]+:\/\/)?[^@/:]*:([^@/]+)@/i.exec(address) ?? []
  if (password === undefined) return []
  try {
    return [password, decodeURIComponent(password)]
  } catch {
    return [password] // no writing of anything else
  }
}
