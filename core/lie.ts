// Paths that were shown to be wrong, as NodeFences tell it: that is the fact, whoever leads now and whatever the NodeRecord says yet.
// A proof may have been shown false: the boot that it was of has answered after it. Or an *off* was never proven, and the boot that
// it was meant for lives on: what was switched is another machine's.
import { sealBroughtBy } from './acknowledge.ts'
import { given, isOf, isPartial, lapsed, lastProvenAt, shownFalse, type Incident, type ProofRecord } from './incident.ts'
import { isIsolation } from './isolation.ts'
import { sameBoot, type Method, type Ms, type NodeName, type NodeSeen, type Observed, type PathAudit } from './model.ts'
import { diesWithin } from './reading.ts'

export interface Lie {
  /** Each with the digest of its configuration then, where that was written. */
  readonly methods: readonly { readonly name: string; readonly digest: string | undefined }[]
  readonly at: string
  readonly evidence: string
  /** It leads to another machine. Only of a path whose identity nothing proves can that be said. */
  readonly astray: boolean
}

/** Of the present Node of each name. */
export function liesOf(seen: Observed): ReadonlyMap<NodeName, readonly Lie[]> {
  const lies = new Map<NodeName, Lie[]>()
  for (const incident of seen.incidents.values()) {
    const node = seen.nodes.get(incident.nodeName)
    if (node === undefined || node.uid !== incident.nodeUid) continue
    const own = [...falseProofs(incident), ...falseNow(node, incident), ...strayedAndAnswered(node, incident)]
    if (own.length > 0) lies.set(node.name, [...lies.get(node.name) ?? [], ...own])
  }
  return lies
}

/** To us, or to others that we asked whether they hear it, since who asks may be the only one that does not. Undefined: it did not. */
export function answerAfterProof(incident: Incident, node: NodeSeen): string | undefined {
  const since = lastProvenAt(incident, node.firstSeen) ?? Infinity
  const { answered } = node.beat ?? {}
  const what = 'the fenced boot answered a challenge issued after the proof'
  if (answered !== undefined && answered.issuedAt > since && sameBoot(answered.boot, incident.boot)) return what
  const by = sealBroughtBy(node, incident.boot, since)
  return by && `${what}, as ${by} brings its seal`
}

/** In the tick of the void: its NodeFence may be gone before that is written. */
function falseNow(node: NodeSeen, incident: Incident): readonly Lie[] {
  const { phase, proof = lapsed(incident.status)?.proof } = incident.status
  const evidence = proof === undefined || isPartial(proof) || phase === 'Final' ? undefined : answerAfterProof(incident, node)
  return proof === undefined || evidence === undefined ? [] : [{ methods: methodsOf(proof), at: '', evidence, astray: false }]
}

function methodsOf({ methods, digests }: ProofRecord): Lie['methods'] {
  return methods.map((name, index) => ({ name, digest: digests?.[index] }))
}

function falseProofs({ status }: Incident): readonly Lie[] {
  return shownFalse(status).map(({ proof, at, evidence }) => ({ methods: methodsOf(proof), at, evidence, astray: false }))
}

function strayedAndAnswered(node: NodeSeen, incident: Incident): readonly Lie[] {
  const { answered } = node.beat ?? {}
  if (answered === undefined || !sameBoot(answered.boot, incident.boot)) return []
  return strayed(node, incident).filter(({ endedAt }) => answered.issuedAt > endedAt + diesWithin).map(({ methods, at }) => ({
    methods: methods.map(({ name, digest }) => ({ name, digest })), at, astray: true,
    evidence: 'ordered off, and it said so, and the boot that was to be cut answered a challenge issued after that: it leads to another machine',
  }))
}

/** Nodes of which one answered challenge would tell that an *off* struck another machine. */
export function mayHaveStrayed(seen: Observed, now: Ms, beatsWithin: Ms): readonly NodeSeen[] {
  const nodes = new Set<NodeSeen>()
  for (const incident of seen.incidents.values()) {
    const node = seen.nodes.get(incident.nodeName)
    if (node?.beat === undefined || node.uid !== incident.nodeUid) continue
    const { boot, at } = node.beat
    if (now - at >= beatsWithin || !sameBoot(boot, incident.boot) || strayedAndAnswered(node, incident).length > 0) continue
    if (strayed(node, incident).some(({ methods, endedAt }) => at > endedAt + diesWithin && methods.some((method) => node.record?.paths.some((path) => isUnmarked(path, method))))) nodes.add(node)
  }
  return [...nodes]
}

const isUnmarked = ({ method, digest, state, identity }: PathAudit, of: Method): boolean => method === of.name && digest === of.digest && state !== 'marked' && identity === 'unproven'

interface Stray {
  readonly methods: readonly Method[]
  readonly endedAt: Ms
  readonly at: string
}

/** Levels all of which was ordered off and said so, nothing of it switched on between, and no proof came of it. A machine that was
 *  isolated goes on beating, and shows nothing by it. */
function strayed(node: NodeSeen, { status }: Incident): readonly Stray[] {
  if (status.proof !== undefined || status.voided.length > 0) return []
  const attempts = given(status)
  return node.path.levels.filter((methods) => !isIsolation(methods)).flatMap((methods): Stray[] => {
    const back = attempts.findIndex((attempt) => attempt.action === 'on' && methods.some((method) => isOf(attempt, method)))
    const orders = back === -1 ? attempts : attempts.slice(0, back)
    const offs = methods.map((method) => orders.findLast((attempt) => attempt.action === 'off' && isOf(attempt, method)))
    if (offs.length === 0 || !offs.every((off) => off?.result === 'off')) return []
    const times = offs.map((off) => node.firstSeen.get(`ended ${off?.id}`) ?? Infinity)
    return [{ methods, endedAt: Math.max(...times), at: offs.at(-1)?.endedAt ?? '' }]
  })
}
