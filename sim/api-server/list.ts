// Lists: one consistent moment, in pages. A later page shows the moment of the first one, rebuilt from the history of what
// changed since; when that is gone, 410 with a token that goes on from here and now.
import { waitOn } from '../../edge/clock.ts'
import type { Ground } from './ground.ts'
import { collectionOf } from './ground.ts'
import type { KindDefinition } from './kind.ts'
import type { ListQuery } from './query.ts'
import { badRequest, expired, tooLargeResourceVersion } from './refusal.ts'
import type { Refusal } from './refusal.ts'
import type { Collection, Version } from './store.ts'
import { matches } from './watch.ts'

export interface Page {
  readonly versions: readonly Version[]
  readonly revision: number
  readonly continue: string
  readonly remaining: number | undefined
}

/** As long as the real server waits for a revision that it has not reached. */
const catchUpFor = 3_000

export async function list(ground: Ground, kind: KindDefinition, query: ListQuery, signal: AbortSignal): Promise<Page | Refusal> {
  if (query.continue !== '') return laterPage(ground, kind, query)
  const asked = Number(query.resourceVersion || '0')
  if (asked > ground.store.revision) {
    await waitOn(ground.clock, catchUpFor, signal)
    if (asked > ground.store.revision) return tooLargeResourceVersion(asked, ground.store.revision)
  }
  const exact = asked > 0 && (query.match === 'Exact' || (query.match === '' && query.limit > 0))
  const revision = exact ? asked : ground.store.revision
  const collection = collectionOf(ground, kind)
  const then = collection.changedSince(revision)
  if (then === undefined) return expired(`The resourceVersion for the provided list is too old.`)
  return page(collection, query, revision, '', then)
}

interface Token { readonly rv: number; readonly start: string }

/** rv -1 goes on without a consistent moment. */
function laterPage(ground: Ground, kind: KindDefinition, query: ListQuery): Page | Refusal {
  if (query.resourceVersion !== '' && query.resourceVersion !== '0') return badRequest('specifying resource version is not allowed when using continue')
  const token = readToken(query.continue)
  if (token === undefined) return badRequest('invalid continue token: continue key is not valid')
  const collection = collectionOf(ground, kind)
  const revision = token.rv < 0 ? ground.store.revision : token.rv
  const then = collection.changedSince(revision)
  if (then !== undefined) return page(collection, query, revision, token.start, then)
  return {
    ...expired('The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.'),
    metadata: { continue: writeToken({ rv: -1, start: token.start }) },
  }
}

function page(collection: Collection, query: ListQuery, revision: number, after: string, then: ReadonlyMap<string, Version | undefined>): Page {
  const versions: Version[] = []
  const { filter, limit } = query
  const selective = filter.labels.length > 0 || filter.fields.length > 0
  const walk = walkOf(collection, query, after, then)
  for (let key = walk.next(); key !== undefined; key = walk.next()) {
    const version = then.has(key) ? then.get(key) : collection.get(key)
    if (version === undefined || !matches(filter, version)) continue
    if (limit === 0 || versions.length < limit) {
      versions.push(version)
      continue
    }
    // One more than fits: nobody counts the rest of a selective list, neither here nor there.
    const last = versions.at(-1)?.key ?? ''
    return { versions, revision, continue: writeToken({ rv: revision, start: last }), remaining: selective ? undefined : 1 + walk.left() }
  }
  return { versions, revision, continue: '', remaining: undefined }
}

interface Walk {
  next(): string | undefined
  /** Objects of that moment still to come; right only while nothing is filtered out. */
  left(): number
}

/** Keys that may belong to the list, in order, after the given one: those of now, and between them those that were there
 *  then and have gone since. A page must not cost more than a page, however long the list is. */
function walkOf(collection: Collection, query: ListQuery, after: string, then: ReadonlyMap<string, Version | undefined>): Walk {
  const { prefix } = query.filter
  const { index } = collection
  const wanted = index === undefined ? undefined : query.filter.fields.find((one) => one.equal && one.field === index)
  const keys = wanted === undefined ? collection.keys() : collection.indexed(wanted.value)
  const listed = wanted === undefined ? undefined : new Set(keys)
  const begins = after > prefix ? after : prefix
  const inRange = (key: string) => key.startsWith(prefix) && (after === '' || key > after)
  const others = [...then.keys()].filter((key) => inRange(key) && !(listed?.has(key) ?? collection.has(key))).toSorted()
  const younger = [...then].filter(([key, version]) => version === undefined && inRange(key) && collection.has(key)).map(([key]) => key).toSorted()
  let place = firstAfter(keys, begins, after === '' || after < prefix)
  const end = prefix === '' ? keys.length : firstAfter(keys, `${prefix}\uffff`, true)
  let other = 0
  let seen = ''
  return {
    next() {
      const key = place < end ? keys[place] : undefined
      const gone = others[other]
      const takesGone = gone !== undefined && (key === undefined || gone < key)
      if (takesGone) other += 1
      else place += 1
      seen = (takesGone ? gone : key) ?? seen
      return takesGone ? gone : key
    },
    left: () => end - place + others.length - other - younger.filter((key) => key > seen).length,
  }
}

function firstAfter(keys: readonly string[], bound: string, inclusive: boolean): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >> 1
    const key = keys[middle] ?? ''
    if (inclusive ? key < bound : key <= bound) low = middle + 1
    else high = middle
  }
  return low
}

function writeToken(token: Token): string {
  return Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv: token.rv, start: token.start })).toString('base64url')
}

function readToken(text: string): Token | undefined {
  const match = /^\{"v":"meta\.k8s\.io\/v1","rv":(-?\d+),"start":("(?:[^"\\]|\\.)*")\}$/.exec(Buffer.from(text, 'base64url').toString())
  if (match === null) return undefined
  const start: unknown = JSON.parse(match[2] ?? '""')
  return { rv: Number(match[1]), start: typeof start === 'string' ? start : '' }
}
