// What every verb stands on: the store, the kinds, the time and chance it was given.
import type { Clock } from '../../edge/clock.ts'
import type { Resource } from './json.ts'
import { groupVersion } from './kind.ts'
import type { KindDefinition } from './kind.ts'
import type { KindTable } from './kinds.ts'
import { readVersion } from './store.ts'
import type { Collection, Store, Version } from './store.ts'
import { timeText } from './times.ts'
import type { Tokens } from './tokens.ts'

export interface Ground {
  readonly clock: Clock
  readonly chance: () => number
  readonly store: Store
  readonly kinds: KindTable
  readonly tokens: Tokens
  /** Which release it says it is, `v1.36.4`. */
  readonly version: string
}

export function collectionOf(ground: Ground, kind: KindDefinition): Collection {
  return ground.store.collection(kind.collection, kind)
}

export function stamp(ground: Ground): string {
  return timeText(ground.clock.wall())
}

export function newUid(ground: Pick<Ground, 'chance'>): string {
  const digit = () => Math.floor(ground.chance() * 16).toString(16)
  const variant = () => (8 + Math.floor(ground.chance() * 4)).toString(16)
  return 'xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx'.replace(/[xy]/g, (letter) => (letter === 'x' ? digit() : variant()))
}

/** Letters and digits that make no words and are not mistaken for one another, as the real server uses them. */
const suffixLetters = 'bcdfghjklmnpqrstvwxz2456789'

export function nameSuffix(ground: Pick<Ground, 'chance'>): string {
  return Array.from({ length: 5 }, () => suffixLetters[Math.floor(ground.chance() * suffixLetters.length)]).join('')
}

/** An object as it is served, with its kind. */
export function served(kind: KindDefinition, object: Resource): Resource {
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = kind.fromStored?.(object) ?? object
  return { kind: kind.kind, apiVersion: groupVersion(kind), ...rest }
}

/** The same as text, from the stored text where no conversion is needed. */
export function servedText(kind: KindDefinition, version: Version): string {
  if (kind.fromStored !== undefined) return JSON.stringify(served(kind, readVersion(version)))
  return `{"kind":"${kind.kind}","apiVersion":"${groupVersion(kind)}",${version.text.slice(1)}`
}

/** As an item of a list: only custom objects say their kind there. */
export function itemText(kind: KindDefinition, version: Version): string {
  if (kind.custom) return servedText(kind, version)
  if (kind.fromStored === undefined) return version.text
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = served(kind, readVersion(version))
  return JSON.stringify(rest)
}
