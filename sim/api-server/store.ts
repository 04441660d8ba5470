// All objects, by collection, and the recent history of each collection. An object is kept as text: whoever reads it parses
// an object of his own, so nothing in here can be changed behind its back, and lists and watch events are plain joins of
// texts. One counter of writes serves the whole server: a resourceVersion is a place in the one order of all writes.
import type { Ms } from '../../core/model.ts'
import type { Clock } from '../../edge/clock.ts'
import { textAt } from './json.ts'
import type { Resource } from './json.ts'
import { storeKey } from './kind.ts'

/** One version of one object. `text` is the object without `kind` and `apiVersion`, which depend on how it is served. */
export interface Version {
  readonly key: string
  readonly revision: number
  readonly text: string
  readonly labels: Readonly<Record<string, string>>
  /** Values of the selectable fields. */
  readonly fields: Readonly<Record<string, string>>
}

export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly revision: number
  readonly at: Ms
  /** For a deletion the last state, under the revision of the deletion. */
  readonly version: Version
  readonly previous: Version | undefined
}

/** How one collection's objects are looked up. */
export interface Shape {
  readonly selectable: Readonly<Record<string, readonly string[]>>
  readonly index?: string
}

/** A cluster that has been up for a while: the first revisions are long gone, as on any real server. */
const firstRevision = 1000

/** Changes kept per collection. The real server keeps about as many in its watch cache under load. */
const historyLimit = 20_000

/** Above this many, sorting all keys is quicker than moving each to its place. */
const movedLimit = 500

export class Store {
  revision = firstRevision
  readonly #collections = new Map<string, Collection>()
  readonly #clock: Pick<Clock, 'now'>

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  collection(name: string, shape: Shape): Collection {
    const there = this.#collections.get(name)
    if (there !== undefined) return there
    const made = new Collection(shape, this.revision, this.#clock)
    this.#collections.set(name, made)
    return made
  }

  find(name: string): Collection | undefined {
    return this.#collections.get(name)
  }

  collections(): Iterable<[string, Collection]> {
    return this.#collections
  }

  /** Writes the object under the next revision. */
  put(collection: Collection, object: Resource): Version {
    this.revision += 1
    return collection.put(object, this.revision)
  }

  delete(collection: Collection, key: string): Version | undefined {
    if (!collection.has(key)) return undefined
    this.revision += 1
    return collection.delete(key, this.revision)
  }

  /** Forgets all history: whoever asks for an older revision hears 410. */
  compact(): void {
    this.revision += 1
    for (const collection of this.#collections.values()) collection.compact(this.revision)
  }
}

export class Collection {
  readonly #shape: Shape
  readonly #versions = new Map<string, Version>()
  #keys: string[] | undefined
  /** Keys that came or went since the keys were last put in order. */
  readonly #moved = new Set<string>()
  readonly #indexed = new Map<string, Set<string>>()
  #history: Change[] = []
  /** Changes after this revision are all known. */
  #knownSince: number
  /** Listeners by `field=value` of what alone they want to hear, or under '' for everything: five thousand kubelets that
   *  each watch their own node and pods must not all be asked about every change. */
  readonly #ears = new Map<string, Set<(change: Change) => void>>()

  readonly #clock: Pick<Clock, 'now'>

  constructor(shape: Shape, knownSince: number, clock: Pick<Clock, 'now'>) {
    this.#clock = clock
    this.#shape = shape
    this.#knownSince = knownSince
  }

  get size(): number {
    return this.#versions.size
  }

  get knownSince(): number {
    return this.#knownSince
  }

  has(key: string): boolean {
    return this.#versions.has(key)
  }

  get(key: string): Version | undefined {
    return this.#versions.get(key)
  }

  read(key: string): Resource | undefined {
    const version = this.#versions.get(key)
    return version === undefined ? undefined : readVersion(version)
  }

  put(object: Resource, revision: number): Version {
    object.metadata.resourceVersion = String(revision)
    const { kind: _kind, apiVersion: _apiVersion, ...rest } = object
    const key = storeKey(object.metadata.namespace ?? '', object.metadata.name ?? '')
    const version: Version = {
      key, revision, text: JSON.stringify(rest),
      labels: { ...object.metadata.labels },
      fields: this.#fieldsOf(object),
    }
    const previous = this.#versions.get(key)
    this.#versions.set(key, version)
    if (previous === undefined) this.#move(key)
    this.#reindex(key, previous, version)
    this.#tell({ type: previous === undefined ? 'ADDED' : 'MODIFIED', revision, version, previous, at: this.#clock.now() })
    return version
  }

  delete(key: string, revision: number): Version | undefined {
    const previous = this.#versions.get(key)
    if (previous === undefined) return undefined
    const object = readVersion(previous)
    object.metadata.resourceVersion = String(revision)
    const version: Version = { ...previous, revision, text: JSON.stringify(object) }
    this.#versions.delete(key)
    this.#move(key)
    this.#reindex(key, previous, undefined)
    this.#tell({ type: 'DELETED', revision, version, previous, at: this.#clock.now() })
    return version
  }

  /** Every object as it is read from now on, under the revision that it has: that is no write, and nobody is told. */
  reread(reading: (object: Resource) => void): void {
    for (const [key, version] of this.#versions) {
      const object = readVersion(version)
      reading(object)
      const next = { ...version, text: JSON.stringify(object), fields: this.#fieldsOf(object) }
      this.#versions.set(key, next)
      this.#reindex(key, version, next)
    }
  }

  /** Keys in the order in which lists show them. A few that came or went are put in their places; many mean sorting anew. */
  keys(): readonly string[] {
    const keys = this.#keys ?? [...this.#versions.keys()].toSorted(byKey)
    for (const key of this.#moved) settle(keys, key, this.#versions.has(key))
    this.#moved.clear()
    this.#keys = keys
    return keys
  }

  #move(key: string): void {
    if (this.#keys === undefined) return
    this.#moved.add(key)
    if (this.#moved.size <= movedLimit) return
    this.#keys = undefined
    this.#moved.clear()
  }

  indexed(value: string): readonly string[] {
    return [...(this.#indexed.get(value) ?? [])].toSorted()
  }

  get index(): string | undefined {
    return this.#shape.index
  }

  /** What was different at that revision: for each key changed since, its version then (undefined: it was not there).
   *  Undefined when that is longer ago than history goes. */
  changedSince(revision: number): ReadonlyMap<string, Version | undefined> | undefined {
    if (revision < this.#knownSince) return undefined
    const then = new Map<string, Version | undefined>()
    for (let index = this.#after(revision); index < this.#history.length; index += 1) {
      const change = this.#history[index]
      if (change !== undefined && !then.has(change.version.key)) then.set(change.version.key, change.previous)
    }
    return then
  }

  /** The changes after that revision, or undefined when they are no longer all known. */
  changesAfter(revision: number): readonly Change[] | undefined {
    if (revision < this.#knownSince) return undefined
    return this.#history.slice(this.#after(revision))
  }

  /** The last revision of this collection's that was known at that instant; undefined: longer ago than history goes. */
  revisionAt(instant: Ms): number | undefined {
    const first = this.#history[0]
    if (first === undefined || first.at > instant) return undefined
    return this.#history.findLast(({ at }) => at <= instant)?.revision
  }

  /** `only` names one value of metadata.name or of the index; changes that touch it before or after are told. */
  listen(ear: (change: Change) => void, only?: { field: string; value: string }): () => void {
    const topic = only !== undefined && this.#topics().includes(only.field) ? `${only.field}=${only.value}` : ''
    const ears = this.#ears.get(topic) ?? new Set()
    this.#ears.set(topic, ears.add(ear))
    return () => {
      ears.delete(ear)
      if (ears.size === 0 && this.#ears.get(topic) === ears) this.#ears.delete(topic)
    }
  }

  #topics(): string[] {
    return this.#shape.index === undefined ? ['metadata.name'] : ['metadata.name', this.#shape.index]
  }

  compact(revision: number): void {
    this.#history = []
    this.#knownSince = revision
  }

  #tell(change: Change): void {
    this.#history.push(change)
    if (this.#history.length > historyLimit * 2) {
      this.#knownSince = this.#history[historyLimit - 1]?.revision ?? this.#knownSince
      this.#history = this.#history.slice(historyLimit)
    }
    if (this.#ears.size === 0) return
    const topics = new Set([''])
    if (this.#ears.size > 1 || !this.#ears.has('')) for (const field of this.#topics()) {
      topics.add(`${field}=${change.version.fields[field] ?? ''}`)
      if (change.previous !== undefined) topics.add(`${field}=${change.previous.fields[field] ?? ''}`)
    }
    for (const topic of topics) for (const ear of this.#ears.get(topic) ?? []) ear(change)
  }

  /** Index of the first change after the revision. */
  #after(revision: number): number {
    let low = 0
    let high = this.#history.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#history[middle]?.revision ?? 0) <= revision) low = middle + 1
      else high = middle
    }
    return low
  }

  #fieldsOf(object: Resource): Record<string, string> {
    const fields: Record<string, string> = { 'metadata.name': object.metadata.name ?? '', 'metadata.namespace': object.metadata.namespace ?? '' }
    for (const [field, path] of Object.entries(this.#shape.selectable)) fields[field] = scalarAt(object, path)
    return fields
  }

  #reindex(key: string, previous: Version | undefined, version: Version | undefined): void {
    const field = this.#shape.index
    if (field === undefined) return
    const before = previous?.fields[field]
    const after = version?.fields[field]
    if (before === after) return
    if (before !== undefined) {
      const keys = this.#indexed.get(before)
      keys?.delete(key)
      if (keys?.size === 0) this.#indexed.delete(before)
    }
    if (after === undefined) return
    const keys = this.#indexed.get(after) ?? new Set()
    keys.add(key)
    this.#indexed.set(after, keys)
  }
}

export function readVersion(version: Version): Resource {
  // Only put() writes texts, and it writes objects of Kubernetes.
  return JSON.parse(version.text) as Resource
}

function scalarAt(object: Resource, path: readonly string[]): string {
  const text = textAt(object, ...path)
  if (text !== '') return text
  let here: unknown = object
  for (const field of path) here = typeof here === 'object' && here !== null ? Reflect.get(here, field) : undefined
  return typeof here === 'boolean' || typeof here === 'number' ? String(here) : ''
}

function byKey(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

/** Puts the key into its place among sorted keys, or takes it out. */
function settle(keys: string[], key: string, there: boolean): void {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((keys[middle] ?? '') < key) low = middle + 1
    else high = middle
  }
  const found = keys[low] === key
  if (there && !found) keys.splice(low, 0, key)
  else if (!there && found) keys.splice(low, 1)
}
