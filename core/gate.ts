// May a pod start on this node now? The gate stands between the runtime and every new sandbox and container, and is shut at the start of
// each boot: what ran here before may run elsewhere by now, and its volumes may still be mounted here.
//
// It opens once for a boot, when two words agree: the leader's, that it accepts this very boot (no quarantine, no open incident), and the
// agent's own, that nothing is left of pods that do not belong. From then on only the leader shuts it: what an agent finds later, by a
// list of pods that has aged, accuses nobody, and a leader that falls silent takes nothing back. A node that gives up (core/self-stop.ts)
// shuts it too, and it opens again as at first.
// Where nobody leads, as in a cluster that starts cold, the API server's word stands in for the leader's (core/cold-start.ts).
//
// The rules are those that KEP-36 asked of kubelet's admission: no word about the node, or none yet about this boot, or a taint: only
// what tolerates it starts; static pods always. A refusal is the sentence that a person reads in `kubectl describe pod`.
import type { CleanReport, GateWord, Leftover } from './beat.ts'
import type { ColdWord } from './cold-start.ts'
import type { Boot } from './model.ts'

export type Gate =
  | { readonly open: true; readonly boot: Boot }
  | { readonly open: false; readonly reason: string }

/** What the agent knows when it asks itself whether its gate is open. */
export interface GateFacts {
  /** Undefined while the machine's own boot cannot be read. */
  readonly boot: Boot | undefined
  /** What the welcome called this node; empty before the first. */
  readonly node: string
  /** The words of all replicas that say they lead; two may, for a moment. `older`: of a release that knows no gate. */
  readonly leaders: readonly (GateWord | 'older' | 'silent')[]
  readonly clean: CleanReport
  /** The boot for which the disk says that the gate was open, before this agent was started again. */
  readonly opened: Boot | undefined
  /** Of a cold start: nobody leads, and everything else says that workloads may start; or why they may not. */
  readonly alone?: { readonly boot: Boot; readonly word: ColdWord }
  /** Why this node has given up, as a sentence's end. */
  readonly gaveUp?: string | undefined
}

export function gateOf(standing: Gate | undefined, facts: GateFacts): Gate {
  const { boot, leaders, clean, opened } = facts
  const name = facts.node === '' ? 'this node' : facts.node
  const shut = (why: string): Gate => ({ open: false, reason: sentence(`${name} ${why}`) })
  if (boot === undefined) return shut('starts nothing: which boot of the machine this is cannot be read')
  if (facts.gaveUp !== undefined) return shut(`has given up: ${facts.gaveUp}`)
  const words = leaders.filter((leader) => typeof leader !== 'string').filter((word) => word.boot === boot)
  const held = words.find((word) => !word.accepted)
  if (held !== undefined) return shut(`is quarantined: ${held.reason}`)
  if (standing?.open === true && standing.boot === boot) return standing
  // Nobody would ever accept it. Taints alone hold then, as they did before there was a gate.
  if (leaders.includes('older')) return { open: true, boot }
  if (leaders.length === 0) {
    if (facts.alone === undefined || facts.alone.boot !== boot) return shut(unheard)
    return facts.alone.word.clear ? { open: true, boot } : shut(`${unheard}, and ${facts.alone.word.reason}`)
  }
  if (words.length === 0) return shut('starts nothing yet: the coordinator has not accepted this boot')
  if (opened === boot) return { open: true, boot }
  if (clean.state === 'unknown') return shut(`starts nothing yet: it cannot tell whether it is clean: ${clean.reason}`)
  if (clean.state === 'dirty') return shut(`is not clean: ${leftoversOf(clean.leftovers)}`)
  return { open: true, boot }
}

const unheard = 'starts nothing yet: no coordinator that leads has been heard in this boot'

/** A pod as the runtime tells of it: kubelet's own words, of which `config.source` is not the pod's to write. */
export interface PodAsked {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly annotations: Readonly<Record<string, string>>
}

export interface Exemptions {
  readonly namespaces: ReadonlySet<string>
  /** Uids, by the leader's latest word. */
  readonly tolerating: ReadonlySet<string>
}

export type Admission =
  | { readonly admit: true; readonly because: 'open' | 'static' | 'annotation' | 'namespace' | 'tolerates' }
  | { readonly admit: false; readonly reason: string }

/** On a pod that must start before anybody can be asked: network, storage and proxy of the node itself. The same key serves as the
 *  runtime's own `tolerate_missing_plugins_annotation`. */
export const tolerateGate = 'holdfast.dev/tolerate-gate'

const configSource = 'kubernetes.io/config.source'

/** `pod` undefined: the runtime told of one that cannot be read, which is no reason to let it pass. */
export function admit(gate: Gate, pod: PodAsked | undefined, exempt: Exemptions): Admission {
  if (gate.open) return { admit: true, because: 'open' }
  if (pod === undefined) return { admit: false, reason: gate.reason }
  const source = pod.annotations[configSource]
  if (source === 'file' || source === 'http') return { admit: true, because: 'static' }
  if (pod.annotations[tolerateGate] === 'true') return { admit: true, because: 'annotation' }
  if (exempt.namespaces.has(pod.namespace)) return { admit: true, because: 'namespace' }
  if (pod.uid !== '' && exempt.tolerating.has(pod.uid)) return { admit: true, because: 'tolerates' }
  return { admit: false, reason: gate.reason }
}

/** Kubelet puts two prefixes before it, and an Event holds 1,024 characters. */
const longestSentence = 600

function sentence(text: string): string {
  const whole = `holdfast: ${text}`.replaceAll(/\s+/g, ' ')
  return whole.length <= longestSentence ? whole : `${whole.slice(0, longestSentence - 1)}…`
}

const shown = 3

/** "2 mounts and 1 container left of other pods (pvc-1 of pod 4711; …)". */
function leftoversOf(leftovers: readonly Leftover[]): string {
  const counts = new Map<string, number>()
  for (const { kind } of leftovers) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  const kinds = [...counts].map(([kind, count]) => (count === 1 ? `1 ${kind}` : `${count} ${plural(kind)}`))
  const named = leftovers.slice(0, shown).map(({ path, pod, volume }) => `${volume ?? path}${pod === undefined ? '' : ` of pod ${pod}`}`)
  return `${listed(kinds)} left of pods that do not belong here (${[...named, ...(leftovers.length > shown ? ['…'] : [])].join('; ')})`
}

function plural(kind: string): string {
  return kind === 'staging' ? 'staging mounts' : kind.endsWith('y') ? `${kind.slice(0, -1)}ies` : kind === 'other' ? 'others' : `${kind}s`
}

function listed(parts: readonly string[]): string {
  return parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`
}
