// The one word that `kubectl get pods` shows for a pod, and its restarts: the real server reckons them from many fields.
import { at, listAt, numberAt, textAt } from './json.ts'
import type { Json, Resource } from './json.ts'
import { age } from './json-path.ts'

export function podStatus(pod: Resource): string {
  const phase = textAt(pod, 'status', 'reason') || textAt(pod, 'status', 'phase') || 'Unknown'
  const gated = listAt(pod, 'status', 'conditions').some((one) => textAt(one, 'type') === 'PodScheduled' && textAt(one, 'reason') === 'SchedulingGated')
  const word = containerWord(pod, gated ? 'SchedulingGated' : phase)
  if (pod.metadata.deletionTimestamp === undefined) return word
  if (textAt(pod, 'status', 'reason') === 'NodeLost') return 'Unknown'
  return ['Failed', 'Succeeded'].includes(textAt(pod, 'status', 'phase')) ? word : 'Terminating'
}

function containerWord(pod: Resource, phase: string): string {
  const statuses = listAt(pod, 'status', 'containerStatuses')
  const words = statuses.toReversed().flatMap((status) => {
    const word = stateWord(at(status, 'state'))
    return word === '' ? [] : [word]
  })
  const word = words.at(-1) ?? phase
  const running = statuses.some((status) => at(status, 'ready') === true && at(status, 'state', 'running') !== undefined)
  return word === 'Completed' && running ? 'Running' : word
}

function stateWord(state: Json | undefined): string {
  const waiting = textAt(state, 'waiting', 'reason')
  if (waiting !== '') return waiting
  if (at(state, 'terminated') === undefined) return ''
  const signal = numberAt(state, 'terminated', 'signal')
  return textAt(state, 'terminated', 'reason') || (signal === undefined ? `ExitCode:${numberAt(state, 'terminated', 'exitCode') ?? 0}` : `Signal:${signal}`)
}

export function restarts(pod: Resource, now: number): string {
  const statuses = listAt(pod, 'status', 'containerStatuses')
  const times = statuses.reduce<number>((sum, status) => sum + (numberAt(status, 'restartCount') ?? 0), 0)
  const last = statuses.map((status) => textAt(status, 'lastState', 'terminated', 'finishedAt')).filter((time) => time !== '').toSorted().at(-1)
  return times > 0 && last !== undefined ? `${times} (${age(last, now)} ago)` : String(times)
}
