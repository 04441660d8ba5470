// What a list or a watch asks for, parsed and checked as the real server does.
import type { KindDefinition } from './kind.ts'
import { badRequest, forbiddenField, invalid, isRefusal, unsupported } from './refusal.ts'
import type { Cause, Refusal } from './refusal.ts'
import { parseFieldSelector, parseLabelSelector } from './selector.ts'
import type { Filter } from './watch.ts'

export interface ListQuery {
  readonly filter: Filter
  readonly limit: number
  readonly continue: string
  readonly resourceVersion: string
  readonly match: string
  readonly watch: boolean
  readonly bookmarks: boolean
  readonly sendInitialEvents: boolean | undefined
  readonly timeoutSeconds: number | undefined
}

const truths = ['true', '1', 't', 'T', 'TRUE', 'True']

export function parseListQuery(kind: KindDefinition, namespace: string, name: string, query: URLSearchParams): ListQuery | Refusal {
  const labels = parseLabelSelector(query.get('labelSelector') ?? '')
  if (isRefusal(labels)) return labels
  const known = (field: string) => field === 'metadata.name' || (field === 'metadata.namespace' && kind.namespaced) || field in kind.selectable
  const fields = parseFieldSelector(query.get('fieldSelector') ?? '', known)
  if (isRefusal(fields)) return fields
  const flag = (parameter: string) => truths.includes(query.get(parameter) ?? '')
  const resourceVersion = query.get('resourceVersion') ?? ''
  if (resourceVersion !== '' && !/^\d+$/.test(resourceVersion)) return badVersion(resourceVersion)
  const limit = Number(query.get('limit') ?? '0')
  if (!Number.isInteger(limit)) return badRequest(`strconv.ParseInt: parsing ${JSON.stringify(query.get('limit'))}: invalid syntax`)
  const timeout = query.get('timeoutSeconds')
  const parsed: ListQuery = {
    filter: { prefix: namespace === '' ? '' : `${namespace}/`, labels, fields: name === '' ? fields : [...fields, { field: 'metadata.name', equal: true, value: name }] },
    limit: Math.max(0, limit),
    continue: query.get('continue') ?? '',
    resourceVersion,
    match: query.get('resourceVersionMatch') ?? '',
    watch: flag('watch'),
    bookmarks: flag('allowWatchBookmarks'),
    sendInitialEvents: query.has('sendInitialEvents') ? flag('sendInitialEvents') : undefined,
    timeoutSeconds: timeout === null ? undefined : Number(timeout),
  }
  const faults = parsed.watch ? watchFaults(parsed) : listFaults(parsed)
  return faults.length === 0 ? parsed : invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', faults)
}

function badVersion(text: string): Refusal {
  return badRequest(`invalid resource version: resourceVersion: Invalid value: ${JSON.stringify(text)}: strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`)
}

function listFaults(query: ListQuery): Cause[] {
  const { match } = query
  return [
    ...(query.sendInitialEvents === undefined ? [] : [forbiddenField('sendInitialEvents', 'sendInitialEvents is forbidden for list')]),
    ...(match === '' ? [] : [
      ...(query.resourceVersion === '' ? [forbiddenField('resourceVersionMatch', 'resourceVersionMatch is forbidden unless resourceVersion is provided')] : []),
      ...(query.continue === '' ? [] : [forbiddenField('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided')]),
      ...(['Exact', 'NotOlderThan'].includes(match) ? [] : [unsupported('resourceVersionMatch', match, ['Exact', 'NotOlderThan', ''])]),
      ...(match === 'Exact' && query.resourceVersion === '0' ? [forbiddenField('resourceVersionMatch', 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')] : []),
    ]),
  ]
}

function watchFaults(query: ListQuery): Cause[] {
  const { match } = query
  return [
    ...(query.sendInitialEvents !== undefined && match !== 'NotOlderThan'
      ? [forbiddenField('resourceVersionMatch', 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan')] : []),
    ...(match === '' ? [] : [
      ...(query.sendInitialEvents === undefined ? [forbiddenField('resourceVersionMatch', 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided')] : []),
      ...(match === 'NotOlderThan' ? [] : [unsupported('resourceVersionMatch', match, ['NotOlderThan'])]),
      ...(query.continue === '' ? [] : [forbiddenField('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided')]),
    ]),
  ]
}
