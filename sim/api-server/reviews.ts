// Kinds that are questions: posted, answered, never stored.
import { isObject, listAt, objectAt, textAt } from './json.ts'
import type { JsonObject, Resource } from './json.ts'
import type { KindDefinition } from './kind.ts'
import { serverAudience, unknownToken } from './tokens.ts'
import type { User } from './user.ts'

type Review = NonNullable<KindDefinition['review']>

const tokenReview: Review = (ground, body) => {
  const wanted = listAt(body, 'spec', 'audiences').map(String)
  const word = ground.tokens.review(ground.store, ground.clock.wall(), textAt(body, 'spec', 'token'), wanted.length === 0 ? [serverAudience] : wanted)
  if ('fault' in word) return { ...body, status: { user: {}, error: word.fault === unknownToken ? word.fault : `[${unknownToken}, ${word.fault}]` } }
  return { ...body, status: { authenticated: true, user: userInfo(word.user), audiences: [...word.audiences] } }
}

function userInfo(user: User): JsonObject {
  const extra = Object.fromEntries(Object.entries(user.extra ?? {}).map(([key, values]) => [key, [...values]]))
  return {
    username: user.name, ...(user.uid === undefined ? {} : { uid: user.uid }), groups: [...user.groups],
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  }
}

const selfSubjectReview: Review = (_ground, body, user) => ({ ...body, status: { userInfo: userInfo(user) } })

const selfAccessReview: Review = (_ground, body, user) => ({ ...body, status: { allowed: allowed(user, objectAt(body, 'spec', 'resourceAttributes')) } })

/** Only what the asked-for user may do if he came himself would be an answer; nobody here is that user, so it is yes. */
const accessReview: Review = (_ground, body) => ({ ...body, status: { allowed: true } })

function allowed(user: User, wanted: JsonObject): boolean {
  if (user.may === undefined) return true
  const group = textAt(wanted, 'group')
  const resource = group === '' ? textAt(wanted, 'resource') : `${textAt(wanted, 'resource')}.${group}`
  return user.may(textAt(wanted, 'verb'), resource, textAt(wanted, 'subresource'), textAt(wanted, 'namespace'), textAt(wanted, 'name'))
}

export function reviewKinds(): KindDefinition[] {
  return [
    define('authentication.k8s.io', 'TokenReview', 'tokenreviews', tokenReview),
    define('authentication.k8s.io', 'SelfSubjectReview', 'selfsubjectreviews', selfSubjectReview),
    define('authorization.k8s.io', 'SelfSubjectAccessReview', 'selfsubjectaccessreviews', selfAccessReview),
    define('authorization.k8s.io', 'SubjectAccessReview', 'subjectaccessreviews', accessReview),
  ]
}

function define(group: string, kind: string, plural: string, answer: Review): KindDefinition {
  return {
    group, version: 'v1', kind, plural, singular: kind.toLowerCase(), namespaced: false, collection: '', custom: false, subresources: [],
    unconditionalUpdate: false, generation: false, selectable: {}, rules: {}, columns: [],
    review: (ground, body, user) => answer(ground, withSpec(body), user),
  }
}

function withSpec(body: Resource): Resource {
  return isObject(body['spec']) ? body : { ...body, spec: {} }
}
