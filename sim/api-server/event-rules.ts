// Events are stored once and served in two shapes, core/v1 and events.k8s.io/v1. Stored is the core shape.
import { at, numberAt, same, textAt } from './json.ts'
import type { Resource } from './json.ts'
import type { Rules } from './kind.ts'
import { qualifiedNameFault } from './names.ts'
import { required, wrong } from './refusal.ts'
import type { Cause } from './refusal.ts'
import { microTimeFault } from './times.ts'

/** [core/v1, events.k8s.io/v1] */
const renamed: readonly (readonly [string, string])[] = [
  ['involvedObject', 'regarding'], ['message', 'note'], ['reportingComponent', 'reportingController'], ['source', 'deprecatedSource'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'], ['lastTimestamp', 'deprecatedLastTimestamp'], ['count', 'deprecatedCount'],
]

export function fromStoredEvent(event: Resource): Resource {
  const newer = rename(event, renamed)
  // This shape leaves out what is empty where the core shape shows it.
  for (const field of ['reportingController', 'reportingInstance']) if (newer[field] === '') delete newer[field]
  return newer
}

export function toStoredEvent(event: Resource): Resource {
  return rename(event, renamed.map(([core, newer]) => [newer, core] as const))
}

function rename(event: Resource, names: readonly (readonly [string, string])[]): Resource {
  const { metadata, ...fields } = event
  const to = new Map(names)
  return { metadata, ...Object.fromEntries(Object.entries(fields).map(([field, value]) => [to.get(field) ?? field, value])) }
}

function decode(event: Resource): string | undefined {
  const times = [at(event, 'eventTime'), at(event, 'series', 'lastObservedTime')]
  return times.map((time) => (typeof time === 'string' ? microTimeFault(time) : undefined)).find((fault) => fault !== undefined)
}

function defaults(event: Resource): void {
  // A typed event shows these even when they are empty.
  event['source'] ??= {}
  event['eventTime'] ??= null
  event['firstTimestamp'] ??= null
  event['lastTimestamp'] ??= null
  event['reportingComponent'] ??= ''
  event['reportingInstance'] ??= ''
}

export const coreEventRules: Rules = { decode, defaults, check: (next) => commonFaults(next, 'reportingComponent') }

export const eventRules: Rules = {
  decode,
  defaults,
  check: (next, old) => [...commonFaults(next, 'reportingController'), ...(old === undefined ? newEventFaults(next) : changeFaults(next, old))],
}

/** An event with an eventTime is a new one and must say who reports it; an older one must stand where its object stands. */
function commonFaults(event: Resource, reporter: string): Cause[] {
  const about = textAt(event, 'involvedObject', 'namespace')
  const own = event.metadata.namespace ?? ''
  const misplaced = wrong('involvedObject.namespace', about, 'does not match event.namespace')
  if (textAt(event, 'eventTime') === '') return about === own || (about === '' && own === 'default') ? [] : [misplaced]
  const missing = (field: string, shown: string) => (textAt(event, field) === '' ? [required(shown)] : [])
  const long = (field: string, most: number) => (textAt(event, field).length > most ? [wrong(field, '', `can have at most ${most} characters`)] : [])
  const fault = qualifiedNameFault(textAt(event, 'reportingComponent'))
  return [
    ...(about === '' && own !== 'default' && own !== 'kube-system' ? [misplaced] : []),
    ...missing('reportingComponent', reporter), ...(fault === undefined ? [] : [wrong(reporter, textAt(event, 'reportingComponent'), fault)]),
    ...missing('reportingInstance', 'reportingInstance'), ...long('reportingInstance', 128), ...missing('action', 'action'), ...long('action', 128),
    ...missing('reason', 'reason'), ...long('reason', 128), ...long('message', 1024),
  ]
}

function newEventFaults(event: Resource): Cause[] {
  const type = textAt(event, 'type')
  return [
    ...seriesFaults(event), ...(textAt(event, 'eventTime') === '' ? [required('eventTime')] : []),
    ...(type === 'Normal' || type === 'Warning' ? [] : [wrong('type', '', `has invalid value: ${type}`)]),
    ...unset('firstTimestamp', textAt(event, 'firstTimestamp') === ''), ...unset('lastTimestamp', textAt(event, 'lastTimestamp') === ''),
    ...unset('count', (numberAt(event, 'count') ?? 0) === 0), ...unset('source', textAt(event, 'source', 'component') === '' && textAt(event, 'source', 'host') === ''),
  ]
}

function unset(field: string, empty: boolean): Cause[] {
  return empty ? [] : [wrong(field, '', 'needs to be unset')]
}

function seriesFaults(event: Resource): Cause[] {
  if (at(event, 'series') === undefined) return []
  return [
    ...((numberAt(event, 'series', 'count') ?? 0) < 2 ? [wrong('series.count', '', 'should be at least 2')] : []),
    ...(textAt(event, 'series', 'lastObservedTime') === '' ? [required('series.lastObservedTime')] : []),
  ]
}

/** Only the series, and what labels it carries, may change. */
function changeFaults(next: Resource, old: Resource): Cause[] {
  const fixed = ['involvedObject', 'reason', 'message', 'source', 'firstTimestamp', 'lastTimestamp', 'count', 'type', 'eventTime', 'action', 'related', 'reportingComponent', 'reportingInstance']
  return [
    ...(same(at(next, 'series'), at(old, 'series')) ? [] : seriesFaults(next)),
    ...fixed.flatMap((field) => (same(at(next, field), at(old, field)) ? [] : [wrong(field, at(next, field), 'field is immutable')])),
  ]
}
