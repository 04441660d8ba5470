// GET with watch=true: what a new watch is told first, and how its lines look.
import type { ApiResponse } from '../../coordinator/transport.ts'
import type { WatchKeeper } from './answer.ts'
import type { Asked } from './asked.ts'
import { collectionOf, servedText } from './ground.ts'
import type { Ground } from './ground.ts'
import { groupVersion } from './kind.ts'
import { list } from './list.ts'
import type { ListQuery } from './query.ts'
import { isRefusal, statusOf, tooOld } from './refusal.ts'
import type { Refusal } from './refusal.ts'
import type { Change, Version } from './store.ts'
import { includeOf, tableOf, wantsTable } from './table.ts'
import { openWatch } from './watch.ts'

export async function startWatch(ground: Ground, asked: Asked, query: ListQuery, keeper: WatchKeeper): Promise<ApiResponse | Refusal> {
  const { kind } = asked.target
  const asTable = wantsTable(asked.request.headers['accept'])
  const include = includeOf(asked.call.query)
  const shown = (version: Version) => (asTable
    ? JSON.stringify(tableOf(kind, [version], { resourceVersion: String(version.revision) }, ground.clock.wall(), include)) : servedText(kind, version))
  const line = (type: Change['type'], version: Version) => `{"type":"${type}","object":${shown(version)}}\n`
  const bookmark = (initialEnd: number | undefined) => {
    const metadata = {
      resourceVersion: String(initialEnd ?? ground.store.revision),
      ...(initialEnd !== undefined ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}),
    }
    return `${JSON.stringify({ type: 'BOOKMARK', object: { kind: kind.kind, apiVersion: groupVersion(kind), metadata } })}\n`
  }
  const asText = Number(query.resourceVersion || '0')
  const wantsState = query.sendInitialEvents ?? asText === 0
  const lag = keeper.lag(asked.call)
  const collection = collectionOf(ground, kind)
  const past = lag === 0 ? undefined : collection.revisionAt(ground.clock.now() - lag)
  const moment = past === undefined ? { match: '' } : { match: 'Exact', resourceVersion: String(past) }
  const initial = wantsState ? await list(ground, kind, { ...query, ...moment, limit: 0, continue: '' }, asked.signal) : undefined
  if (isRefusal(initial)) return initial
  const seconds = query.timeoutSeconds === undefined || query.timeoutSeconds === 0 ? 1800 + Math.floor(ground.chance() * 1800) : query.timeoutSeconds
  const watch = openWatch(ground.clock, {
    filter: query.filter, bookmarks: query.bookmarks, span: seconds * 1000, line, bookmark, signal: asked.signal, lag,
  }, keeper.closed)
  keeper.opened({ call: asked.call, watch })
  if (initial !== undefined) {
    for (const version of initial.versions) watch.begin(line('ADDED', version))
    if (query.sendInitialEvents === true && query.bookmarks) watch.begin(bookmark(initial.revision))
    watch.follow(collection, initial.revision)
  } else if (asText > 0 && asText < collection.knownSince) {
    watch.begin(`${JSON.stringify({ type: 'ERROR', object: statusOf(tooOld(asText, collection.knownSince)) })}\n`)
    watch.end('politely')
  } else watch.follow(collection, asText === 0 ? ground.store.revision : asText)
  return { status: 200, headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked' }, body: watch.body }
}
