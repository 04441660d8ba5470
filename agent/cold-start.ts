// While no coordinator is heard and the gate is shut: the API server is asked what it knows of this node, seldom and ever more seldom. A
// coordinator that is heard ends it; core/cold-start.ts judges what is said.
import { coldWord, type ClusterSaid, type ColdWord, type FenceSaid } from '../core/cold-start.ts'
import type { Boot, Ms } from '../core/model.ts'
import type { AgentHost } from './host.ts'

export interface ColdStartOptions {
  readonly host: Pick<AgentHost, 'clock' | 'chance' | 'log' | 'askApi'>
  readonly node: string
  /** The boot, as long as its gate is shut and nobody leads whom it could ask. */
  waits(): Boot | undefined
  told(boot: Boot, word: ColdWord): void
  readonly signal: AbortSignal
}

/** Longer than an agent needs to find a coordinator that is there. */
const firstAfter: Ms = 15_000
const lastAfter: Ms = 120_000
const askWithin: Ms = 5_000
/** Of one node; where there are more, not all are seen, and one that is not seen may be open. */
const mostFences = 500

export async function keepColdStart({ host, node, waits, told, signal }: ColdStartOptions): Promise<void> {
  const { clock, log } = host
  let after = firstAfter
  while (!signal.aborted) {
    await clock.wait(after * (0.5 + host.chance()), signal)
    const boot = waits()
    if (boot === undefined || signal.aborted) {
      after = firstAfter
      continue
    }
    after = Math.min(after * 2, lastAfter)
    const said = await askCluster(host, node)
    const word: ColdWord = 'failed' in said ? { clear: false, reason: `the API server does not tell either: ${said.failed}` } : coldWord(boot, said)
    log.info({ word }, 'no coordinator is heard: the API server was asked')
    // It may have taken seconds, and somebody may lead by now.
    if (!signal.aborted && waits() === boot) told(boot, word)
  }
}

/** Both without a resourceVersion: what a majority of the API server's own store holds now. */
export async function askCluster(host: Pick<AgentHost, 'askApi'>, node: string): Promise<ClusterSaid | { readonly failed: string }> {
  const [own, fences] = await Promise.all([
    host.askApi(`/api/v1/nodes/${encodeURIComponent(node)}`, askWithin),
    host.askApi(`/apis/holdfast.dev/v1alpha1/nodefences?fieldSelector=spec.nodeName%3D${encodeURIComponent(node)}&limit=${mostFences}`, askWithin),
  ])
  for (const answer of [own, fences]) {
    if ('failed' in answer) return answer
    if (answer.status !== 200) return { failed: `it answers ${answer.status}` }
  }
  return 'body' in own && 'body' in fences ? readSaid(node, own.body, fences.body) : { failed: 'nothing' }
}

/** Strictly: a field that is missing is a reason to say no. */
export function readSaid(node: string, ownText: string, fencesText: string): ClusterSaid | { readonly failed: string } {
  const own = parsed(ownText)
  const list = parsed(fencesText)
  const bootId = at(own, 'status', 'nodeInfo', 'bootID')
  const taints = at(own, 'spec', 'taints') ?? []
  const items = at(list, 'items')
  if (at(own, 'metadata', 'name') !== node || typeof bootId !== 'string' || !Array.isArray(taints)) return { failed: 'its word on this node cannot be read' }
  const more = at(list, 'metadata', 'continue') ?? ''
  if (!Array.isArray(items) || more !== '') return { failed: 'its list of incidents is not whole' }
  const keys = taints.map((taint: unknown) => at(taint, 'key'))
  const fences = items.map((item: unknown) => ({ of: at(item, 'spec', 'nodeName'), name: at(item, 'metadata', 'name'), phase: at(item, 'status', 'phase') ?? 'New', proof: proofSaid(at(item, 'status', 'proof')), revoked: revokedSaid(at(item, 'status', 'revoked')) }))
  if (!keys.every((key) => typeof key === 'string')) return { failed: 'its word on this node cannot be read' }
  const read = fences.flatMap(({ of, name, phase, proof, revoked }): readonly FenceSaid[] => (
    of === node && typeof name === 'string' && typeof phase === 'string' && proof !== 'unreadable' && revoked !== 'unreadable' ? [{ name, phase, ...proof, ...revoked }] : []))
  return read.length === fences.length ? { bootId, taints: keys, fences: read } : { failed: 'its list of incidents cannot be read' }
}

function proofSaid(proof: unknown): Pick<FenceSaid, 'proof'> | 'unreadable' {
  if (proof === undefined) return {}
  const [kind, boot] = [at(proof, 'kind'), at(proof, 'boot')]
  return typeof kind === 'string' && typeof boot === 'string' ? { proof: { kind, boot } } : 'unreadable'
}

function revokedSaid(revoked: unknown): Pick<FenceSaid, 'revoked'> | 'unreadable' {
  if (revoked === undefined) return {}
  const boot = at(revoked, 'boot')
  return typeof boot === 'string' ? { revoked: { boot } } : 'unreadable'
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // cut short: whoever looks into it finds nothing
  }
}

function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce((inner: unknown, key): unknown => (typeof inner === 'object' && inner !== null && Object.hasOwn(inner, key) ? Reflect.get(inner, key) : undefined), value)
}
