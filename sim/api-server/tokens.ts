// Bearer tokens: those handed in at start, and those issued for service accounts. A token bound to a pod dies with the pod.
import type { Ground } from './ground.ts'
import { newUid } from './ground.ts'
import { numberAt, textAt } from './json.ts'
import type { Resource } from './json.ts'
import type { Store } from './store.ts'
import type { User } from './user.ts'

export const serverAudience = 'https://kubernetes.default.svc'

export const unknownToken = 'invalid bearer token'

/** How long a bound token outlives the deletionTimestamp of its pod, as on the real server. */
const afterDeletion = 60_000

interface Issued {
  readonly namespace: string
  readonly account: string
  readonly accountUid: string
  readonly audiences: readonly string[]
  readonly expiresAt: number
  readonly pod?: { readonly name: string; readonly uid: string }
  readonly node?: { readonly name: string; readonly uid?: string }
  readonly id: string
}

export type TokenWord = { readonly user: User; readonly audiences: readonly string[] } | { readonly fault: string }

export class Tokens {
  readonly #standing = new Map<string, User>()
  readonly #issued = new Map<string, Issued>()

  /** A token of a person or a component, good for ever. */
  add(token: string, user: User): void {
    this.#standing.set(token, user)
  }

  issue(ground: Pick<Ground, 'chance' | 'clock'>, wanted: Omit<Issued, 'id' | 'expiresAt'> & { readonly seconds: number }): { token: string; expiresAt: number } {
    const { seconds, ...rest } = wanted
    const now = ground.clock.wall()
    const issued: Issued = { ...rest, id: newUid(ground), expiresAt: now + seconds * 1000 }
    for (const [token, old] of this.#issued) {
      // The oldest stand first: what has not expired ends the sweep.
      if (old.expiresAt > now) break
      this.#issued.delete(token)
    }
    const token = `${part({ alg: 'none', kid: 'simulated' })}.${part(claims(issued, now))}.${newUid(ground).replaceAll('-', '')}`
    this.#issued.set(token, issued)
    return { token, expiresAt: issued.expiresAt }
  }

  /** Who the token speaks for, asked for one of these audiences. */
  review(store: Store, now: number, token: string, audiences: readonly string[]): TokenWord {
    const standing = this.#standing.get(token)
    if (standing !== undefined) return { user: standing, audiences: audiences.filter((audience) => audience === serverAudience) }
    const issued = this.#issued.get(token)
    if (issued === undefined) return { fault: unknownToken }
    const agreed = audiences.filter((audience) => issued.audiences.includes(audience))
    if (agreed.length === 0) return { fault: `token audiences ${JSON.stringify(issued.audiences)} is invalid for the target audiences ${JSON.stringify(audiences)}` }
    if (now >= issued.expiresAt) return { fault: 'token has expired' }
    const fault = boundFault(store, now, issued)
    return fault === undefined ? { user: userOf(issued), audiences: agreed } : { fault }
  }
}

function boundFault(store: Store, now: number, issued: Issued): string | undefined {
  const account = store.find('serviceaccounts')?.read(`${issued.namespace}/${issued.account}`)
  if (account === undefined || account.metadata.uid !== issued.accountUid) return 'service account token has been invalidated'
  if (issued.pod === undefined) return undefined
  const pod = store.find('pods')?.read(`${issued.namespace}/${issued.pod.name}`)
  if (pod === undefined || pod.metadata.uid !== issued.pod.uid) return 'service account token has been invalidated'
  const dyingSince = pod.metadata.deletionTimestamp
  return dyingSince !== undefined && now > Date.parse(dyingSince) + afterDeletion ? 'service account token has been invalidated' : undefined
}

function userOf(issued: Issued): User {
  const extra: Record<string, readonly string[]> = { 'authentication.kubernetes.io/credential-id': [`JTI=${issued.id}`] }
  if (issued.node !== undefined) {
    extra['authentication.kubernetes.io/node-name'] = [issued.node.name]
    if (issued.node.uid !== undefined) extra['authentication.kubernetes.io/node-uid'] = [issued.node.uid]
  }
  if (issued.pod !== undefined) {
    extra['authentication.kubernetes.io/pod-name'] = [issued.pod.name]
    extra['authentication.kubernetes.io/pod-uid'] = [issued.pod.uid]
  }
  return {
    name: `system:serviceaccount:${issued.namespace}:${issued.account}`, uid: issued.accountUid,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${issued.namespace}`, 'system:authenticated'], extra,
  }
}

function claims(issued: Issued, now: number): object {
  return {
    aud: issued.audiences, exp: inSeconds(issued.expiresAt), iat: inSeconds(now), iss: serverAudience, jti: issued.id, nbf: inSeconds(now),
    'kubernetes.io': {
      namespace: issued.namespace, serviceaccount: { name: issued.account, uid: issued.accountUid },
      ...(issued.pod === undefined ? {} : { pod: issued.pod }), ...(issued.node === undefined ? {} : { node: issued.node }),
    },
    sub: `system:serviceaccount:${issued.namespace}:${issued.account}`,
  }
}

function inSeconds(wall: number): number {
  return Math.floor(wall / 1000)
}

function part(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** What a TokenRequest asks for, read from its body. */
export function tokenRequest(body: Resource): { audiences: string[]; seconds: number; pod: { name: string; uid: string } | undefined } {
  const spec = body['spec']
  const audiences = Array.isArray(spec) ? [] : textList(body)
  const pod = textAt(spec, 'boundObjectRef', 'kind') === 'Pod' ? { name: textAt(spec, 'boundObjectRef', 'name'), uid: textAt(spec, 'boundObjectRef', 'uid') } : undefined
  return { audiences: audiences.length === 0 ? [serverAudience] : audiences, seconds: numberAt(spec, 'expirationSeconds') ?? 3600, pod }
}

function textList(body: Resource): string[] {
  const spec = body['spec']
  const list = typeof spec === 'object' && spec !== null && !Array.isArray(spec) ? spec['audiences'] : undefined
  return Array.isArray(list) ? list.map(String) : []
}
