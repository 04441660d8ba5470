// What a kind of ours is besides its fields: how the API server names it and what `kubectl get` shows of it.
import type * as v from 'valibot'
import type { Rule } from './schema-shape.ts'

export const group = 'holdfast.dev'
export const version = 'v1alpha1'
export const apiVersion = `${group}/${version}`

export interface Kind {
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly says: string
  readonly spec: v.GenericSchema
  /** Absent: written by one writer in one piece, without a status of its own. */
  readonly status?: v.GenericSchema
  /** Of the whole object, where a rule on the spec must see the status. */
  readonly rules?: readonly Rule[]
  readonly columns: readonly Column[]
  /** Fields that a watch or `--field-selector` may select by. */
  readonly selectable?: readonly string[]
}

export interface Column {
  readonly name: string
  /** JSONPath as CRDs have it. */
  readonly path: string
  readonly type?: 'string' | 'integer' | 'date'
  readonly says: string
  /** Only with `-o wide`. */
  readonly wide?: boolean
}

/** All our kinds are of the whole cluster, as nodes are. */
export function pathOf(kind: Pick<Kind, 'plural'>): string {
  return `/apis/${apiVersion}/${kind.plural}`
}
