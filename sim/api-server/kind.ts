// What the server has to know about a kind to serve it. Built-in kinds stand in kinds.ts; a CustomResourceDefinition becomes
// one in custom-kinds.ts.
import type { Ground } from './ground.ts'
import type { Json, JsonObject, Resource } from './json.ts'
import type { Cause, Refusal } from './refusal.ts'
import type { User } from './user.ts'

export interface KindDefinition {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly namespaced: boolean
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  /** Where its objects are kept. Two versions of one kind share it. */
  readonly collection: string
  /** Made by a CustomResourceDefinition: no strategic merge, no unconditional PUT, list items carry their kind. */
  readonly custom: boolean
  readonly subresources: readonly Subresource[]
  /** A PUT without resourceVersion is taken. */
  readonly unconditionalUpdate: boolean
  readonly createOnUpdate?: boolean
  /** DELETE answers with the object rather than with a Status. */
  readonly returnsDeleted?: boolean
  /** Counts the changes of everything but metadata and status. */
  readonly generation: boolean
  /** Status counts too: a custom kind without the subresource knows no difference. */
  readonly generationWithStatus?: boolean
  /** A field whose equality selector is answered by an index. */
  readonly index?: string
  /** Fields a field selector may name, beyond metadata.name and metadata.namespace, with their paths. */
  readonly selectable: Readonly<Record<string, readonly string[]>>
  readonly rules: Rules
  readonly columns: readonly Column[]
  /** What OpenAPI says of it. */
  readonly schema?: JsonObject
  /** Answers a POST at once and stores nothing (TokenReview and its like). */
  readonly review?: (ground: Ground, body: Resource, user: User) => Resource
  /** Two served forms of one stored object (Event). */
  readonly fromStored?: (object: Resource) => Resource
  readonly toStored?: (object: Resource) => Resource
}

export type Subresource = 'status' | 'scale' | 'binding' | 'eviction' | 'token' | 'finalize'

/** One kind's own behaviour; each function changes the object that it is given. */
export interface Rules {
  /** A sentence when the real server could not even decode it: 400. */
  readonly decode?: (object: Resource) => string | undefined
  readonly defaults?: (object: Resource) => void
  /** Admission and what the real server resets on create. */
  readonly prepareCreate?: (object: Resource, ground: RulesGround) => Refusal | undefined
  readonly prepareUpdate?: (next: Resource, old: Resource) => void
  readonly prepareStatus?: (next: Resource, old: Resource) => void
  readonly check?: (next: Resource, old: Resource | undefined) => Cause[]
  /** The grace a DELETE gives; undefined: this kind knows no grace. */
  readonly grace?: (object: Resource, wanted: number | undefined) => number
  /** How a name may look; the DNS-1123 subdomain unless said otherwise. */
  readonly name?: 'label' | 'any'
}

export interface RulesGround {
  readonly now: () => string
  /** Five letters by chance. */
  readonly suffix: () => string
  readonly exists: (collection: string, key: string) => boolean
  readonly read: (collection: string, key: string) => Resource | undefined
  readonly userName: string
  /** Made by the builder of a world rather than by a request: it stands as he gives it. */
  readonly planted: boolean
}

/** A column of `kubectl get`. */
export interface Column {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  readonly format?: string
  readonly description?: string
  /** Above 0: only with `-o wide`. */
  readonly priority: number
  readonly cell: (object: Resource, now: number) => Json
}

export function groupVersion(kind: Pick<KindDefinition, 'group' | 'version'>): string {
  return kind.group === '' ? kind.version : `${kind.group}/${kind.version}`
}

export function storeKey(namespace: string, name: string): string {
  return namespace === '' ? name : `${namespace}/${name}`
}
