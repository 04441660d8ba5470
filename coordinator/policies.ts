// The policies in force. A malformed one never takes a good one's place: its faults are told, all of them at once, and the
// last good text goes on, across restarts from `status.inForce`.
import type { Ms, NodeSeen } from '../core/model.ts'
import { isPauseOver, policyOf, type Pause, type Policy } from '../core/policy.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import type { Api, KubeObject } from './api.ts'
import type { Recorder } from './events.ts'
import { faultNote } from './fault-note.ts'
import { policiesPath, policyInForce, policyStatusBody, readPolicy } from './holdfast-policy.ts'
import { sentencesOf } from './schema.ts'

export interface Policies {
  inForce(): readonly Policy[]
  seen(object: KubeObject): void
  gone(name: string): void
  /** The leader says faults that it has not said yet, and writes what is in force onto the objects, where it does not stand there
   *  yet. Cheap when it does. */
  settle(): void
}

export interface PoliciesOptions {
  readonly api: Api
  readonly clock: Clock
  readonly log: Log
  readonly recorder: Recorder
  leads(): number | undefined
  changed(): void
}

/** A status that could not be written is written again. */
const againAfter: Ms = 5_000

export function keepPolicies({ api, clock, log, recorder, leads, changed }: PoliciesOptions): Policies {
  const good = new Map<string, Policy>()
  const objects = new Map<string, KubeObject>()
  const logged = new Map<string, readonly string[]>()
  /** Faults, with the term in which they were said. */
  const told = new Map<string, string>()
  const settled = new Map<string, number>()
  const notBefore = new Map<string, Ms>()
  let list: readonly Policy[] = []

  return {
    inForce() {
      const wall = clock.wall()
      if (list.some(({ pause }) => pause !== undefined && isPauseOver(pause, wall))) list = list.map((policy) => withoutPauseOver(policy, wall))
      return list
    },
    seen(object) {
      const { name } = object.metadata
      const read = readPolicy(object)
      objects.set(name, object)
      if (read.ok) good.set(name, read.policy)
      else {
        const before = good.get(name) ?? policyInForce(object)
        if (before !== undefined) good.set(name, before)
      }
      tell(object, read.ok ? [] : sentencesOf(read.faults))
      list = [...good.values()]
      changed()
      settle(object)
    },
    gone(name) {
      objects.delete(name)
      good.delete(name)
      logged.delete(name)
      told.delete(name)
      settled.delete(name)
      notBefore.delete(name)
      list = [...good.values()]
      changed()
    },
    settle() {
      objects.forEach(say)
      objects.forEach(settle)
    },
  }

  function tell(object: KubeObject, sentences: readonly string[]): void {
    const { name } = object.metadata
    const faults = sentences.join('; ')
    if ((logged.get(name) ?? []).join('; ') !== faults) {
      logged.set(name, sentences)
      if (faults === '') log.info({ policy: name }, 'the policy is without faults again')
      else log.warn({ policy: name, faults, holds: holding(name) }, 'the policy has faults')
    }
    say(object)
  }

  /** Whoever leads next says it once more: the one before may have said nothing. */
  function say(object: KubeObject): void {
    const { name, uid } = object.metadata
    const faults = logged.get(name) ?? []
    const term = leads()
    const text = `${term} ${faults.join('; ')}`
    if (term === undefined || told.get(name) === text) return
    told.set(name, text)
    if (faults.length === 0) return
    recorder.say({
      regarding: { apiVersion: 'holdfast.dev/v1alpha1', kind: 'HoldfastPolicy', name, uid: uid ?? '' }, reason: 'PolicyInvalid', action: 'Read',
      note: faultNote(holding(name), faults), type: 'Warning',
    })
  }

  function holding(name: string): string {
    return good.has(name) ? 'the last good policy stays in force' : 'this policy is not in force'
  }

  /** Once for each generation. What is in force must outlive us: after a restart a faulty text has nothing else behind it. */
  function settle(object: KubeObject): void {
    const { name, generation } = object.metadata
    if (leads() === undefined || generation === undefined || settled.get(name) === generation || clock.now() < (notBefore.get(name) ?? -Infinity)) return
    settled.set(name, generation)
    const read = readPolicy(object)
    const body = policyStatusBody(object, { inForce: good.get(name), faults: read.ok ? [] : read.faults, at: new Date(clock.wall()).toISOString() })
    void api.replace(`${policiesPath}/${name}/status`, body).then((answer) => {
      if (answer.ok) return
      log.info({ policy: name, kind: answer.error.kind }, 'the status of a policy was not written')
      if (settled.get(name) === generation) settled.delete(name)
      notBefore.set(name, clock.now() + againAfter)
    })
  }
}

/** The object keeps it, which is the person's; nothing here goes by it any more. */
function withoutPauseOver(policy: Policy, wall: number): Policy {
  const { pause, ...rest } = policy
  return pause === undefined || !isPauseOver(pause, wall) ? policy : rest
}

/** The ConfigMap by which everything is paused. */
export function readPause(object: KubeObject): Pause {
  const { data } = object as KubeObject & { data?: Record<string, string> } // a ConfigMap has it, or leaves it out
  const until = data?.['until']
  return { reason: data?.['reason'] ?? 'no reason given', by: data?.['by'] ?? 'somebody', ...(until === undefined ? {} : { until }) }
}

const mostNamed = 3

/** Sentences without a stop: for which nodes nothing would be done, and why. Conflicts come first, because nobody wants them. */
export function onlyWatched(nodes: readonly Pick<NodeSeen, 'name' | 'labels'>[], policies: readonly Policy[]): readonly string[] {
  const conflicts = new Map<string, string[]>()
  const unselected: string[] = []
  const dry = new Map<string, string[]>()
  for (const node of nodes) {
    const chosen = policyOf(node, policies)
    if ('policy' in chosen) {
      if (chosen.policy.mode === 'dryRun') into(dry, chosen.policy.name, node.name)
    } else if (chosen.none === 'unselected') unselected.push(node.name)
    else into(conflicts, chosen.names.join(' and '), node.name)
  }
  return [
    ...[...conflicts].map(([both, names]) => `${watched(names)}: policies ${both} select ${names.length === 1 ? 'it' : 'them'} with one priority`),
    ...(unselected.length === 0 ? [] : [`${watched(unselected)}: no policy selects ${unselected.length === 1 ? 'it' : 'them'}`]),
    ...[...dry].map(([policy, names]) => `${watched(names)}: policy ${policy} is a dry run`),
  ]
}

function into(group: Map<string, string[]>, why: string, name: string): void {
  group.set(why, [...group.get(why) ?? [], name])
}

function watched(names: readonly string[]): string {
  const list = names.length > mostNamed ? `${names.slice(0, mostNamed).join(', ')} and ${names.length - mostNamed} more` : names.join(', ')
  return `${list} ${names.length === 1 ? 'is' : 'are'} only watched`
}
