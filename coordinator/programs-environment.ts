// What of the coordinator's own environment a fence program gets: a cloud's program the identity that its own cloud gave this
// pod, and the way out of this network. Every other program gets nothing: a strip in the same rack needs no key of a cloud,
// and what a program does not have it cannot tell anybody.
import { cloudPrograms } from './cloud-programs.ts'

export type Surroundings = Readonly<Record<string, string | undefined>>

const wayOut = /^((HTTPS|NO)_PROXY|(https|no)_proxy|SSL_CERT_FILE)$/

/** Programs that ask the API server of our own cluster: where it is the kubelet alone says, and a name needs a DNS that answers. */
const inCluster: ReadonlySet<string> = new Set(['job', 'storage'])
const ownServer = /^KUBERNETES_SERVICE_(HOST|PORT)$/

export function handedOn(agent: string, surroundings: Surroundings): Readonly<Record<string, string>> {
  const cloud = cloudPrograms.get(agent)
  const mayHave = (name: string) => (cloud === undefined ? inCluster.has(agent) && ownServer.test(name) : cloud.variables.test(name) || wayOut.test(name))
  return Object.fromEntries(Object.entries(surroundings).filter((entry): entry is [string, string] => entry[1] !== undefined && mayHave(entry[0])))
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
