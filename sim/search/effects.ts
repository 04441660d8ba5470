// What of a scene came into play in a run. A cluster that could have done something and never did shows nothing, so each is counted, as
// troubles are.
import type { KubeObject } from '../../coordinator/api.ts'
import { auditTurnKey } from '../../coordinator/audit-turns.ts'
import type { Stage } from '../stage.ts'
import type { TruthEntry } from '../truth.ts'
import { drillPassed } from './troubles-drill.ts'

interface Fence extends KubeObject { readonly spec: { readonly cause?: string }; readonly status?: { readonly pods?: readonly { readonly name: string; readonly fate: string }[] } }

type Shows = (on: Stage) => boolean

const happened = (is: (entry: TruthEntry) => boolean): Shows => ({ world }) => world.truth.entries.some(is)
const noted = (what: string): Shows => happened((entry) => entry.what === what)
const logged = (message: string): Shows => happened(({ what, facts }) => what === 'log' && facts['message'] === message)
const held = (because: string): Shows => happened(({ what, facts }) => what === 'log' && facts['message'] === 'held' && facts['because'] === because)
/** A proof may be gone from the record by the end. */
const proven = (kind: string): Shows => happened(({ what, facts }) => what === 'log' && facts['message'] === 'proven' && String(facts['proof']).includes(kind))
const fenced = (is: (fence: Fence) => boolean): Shows => ({ world }) => ((world.server?.peek('nodefences.holdfast.dev') ?? []) as readonly Fence[]).some(is) // that collection's kind

const shows: Readonly<Record<string, Shows>> = {
  'a node gives up': logged('this node gives up its workloads'),
  'an agent unmounts': noted('agent unmounts'),
  'a watchdog is armed': noted('watchdog armed'),
  'a watchdog resets its machine': noted('watchdog resets the machine'),
  'a watchdog does not fire': noted('watchdog does not fire'),
  'a watchdog proves': proven('self-fenced'),
  'a driver proves': proven('safe-detach'),
  'a pod with volumes of two drivers is freed': fenced(({ status }) => status?.pods?.some(({ name, fate }) => fate === 'freed' && name.includes('both-')) === true),
  'a pod with a shared volume is freed': fenced(({ status }) => status?.pods?.some(({ name, fate }) => fate === 'freed' && name.includes('many-')) === true),
  'evictions begin': held('evicting'),
  'a budget says no': held('disruption-budget'),
  'a drill passes': noted(drillPassed),
  'a remedy is told': held('ailing'),
  'a remedy fences': fenced(({ spec }) => spec.cause === 'remedy'),
  'a dump is waited for': held('dumping'),
  'a crash kernel proves': proven('kdump'),
  'a turn of the audit ends': ({ world }) => (world.server?.peek('leases.coordination.k8s.io') ?? []).some(({ metadata }) => metadata.annotations?.[auditTurnKey] !== undefined),
}

export const effectNames = Object.keys(shows) as readonly string[]

export function effectsOf(on: Stage): readonly string[] {
  return effectNames.filter((name) => shows[name]?.(on) === true)
}
