// Is the node dead? The intuition: silence is cheap, death is expensive, so silence alone never makes death. Three
// questions are asked of the snapshot, in order.
//
// 1. Who spoke last, and when? Any source's word counts (the agent's beat, a Lease seen to move, a status kubelet posted,
//    a witness with the node's own seal, a byte from the kubelet port), and silence is counted from the last of them.
//    A word that is merely old is neutral; a word spoken after the silence began ends it.
// 2. Does the machine answer, though its agent is silent? Then it runs, and the agent is *ill*: such a node is judged at
//    Kubernetes' own pace, by its Lease. A refused connection is an answer: some kernel sent it.
// 3. Is there evidence *for* death? Silence counts only from a listener that was heard: a probe only where the same probe
//    was answered at the last audit of this boot, a Lease only after a whole renew interval, witnesses only if two of
//    them answered and none hears.
//
// When unsure whether a node is dead, it is not.
import type { Evidence } from './incident.ts'
import { isKubeletsWord, sameBoot, type Ms, type NodeSeen, type Observed, type Self } from './model.ts'
import { profiles, type ProfileName } from './policy.ts'

export type Verdict =
  | { readonly is: 'alive' }
  /** Never heard by this replica, and not long enough known to be judged without an agent. */
  | { readonly is: 'unknown' }
  /** The agent is silent, the machine answers. */
  | { readonly is: 'ill'; readonly detail: string }
  | { readonly is: 'suspect'; readonly since: Ms; readonly lacks: string }
  | { readonly is: 'dead'; readonly since: Ms; readonly evidence: readonly Omit<Evidence, 'at'>[]; readonly hung?: true }

/** kubelet renews every 10 s; the margin covers a slow API server and the distance between two live reads. */
export const leaseInterval: Ms = 12_500
/** A node never heard, or not heard by this replica, is left alone so long. */
export const unknownFor: Ms = 120_000
const goodbyePatience: Readonly<Record<'restart' | 'reboot' | 'shutdown', Ms>> = { restart: 60_000, reboot: 600_000, shutdown: 600_000 }
/** An answer of the kubelet port stays a sign of life so long; it is asked again well before. */
const answerHolds: Ms = 15_000

/** `hungAfter`: how long a machine may answer with nothing on it working; 0 is for ever. */
export function judge(node: NodeSeen, self: Self, profileName: ProfileName, peers: Peers, now: Ms, hungAfter: Ms = 0): Verdict {
  const profile = profiles[profileName]
  const quiet = now - lastBeat(node, self)
  if (node.beat === undefined && quiet < unknownFor) return { is: 'unknown' }
  if (node.beat !== undefined && quiet < (shutsDown(node) ? profile.suspectAfter : patience(node, profile.suspectAfter))) return { is: 'alive' }
  // An answer from before the suspicion is no word on the silence that followed it.
  const answering = answers(node, lastBeat(node, self) + profile.suspectAfter, now)
  // Where there is no agent none is silent: kubelet's own answer is all that such a node says.
  if (answering !== undefined && isWithoutAgent(node) && node.probe?.word === 'answered') return { is: 'alive' }
  if (answering !== undefined) return hung(node, self, hungAfter, now) ?? { is: 'ill', detail: answering }

  const pace = fastJudged(node, self, peers, profile.suspectAfter) ? profile : profiles.conservative
  const spoken = lastWord(node, self)
  const silence = now - spoken
  if (silence < pace.suspectAfter) return { is: 'alive' }
  const lacks = (what: string): Verdict => ({ is: 'suspect', since: spoken, lacks: what })
  if (silence < patience(node, pace.deadAfter)) return lacks(`silent for ${seconds(silence)} of ${seconds(patience(node, pace.deadAfter))}`)
  if (pace.needsReadyLost && node.ready.status === 'True') return lacks('Ready has not left True')
  if (bareWord(node, spoken) && silence < 2 * pace.deadAfter) return lacks('a witness says, without a seal, that it hears the node')
  const evidence = forDeath(node, spoken, peers, now)
  return typeof evidence === 'string' ? lacks(evidence) : { is: 'dead', since: spoken, evidence }
}

/** A kernel runs, and nothing on it: the port accepts and says nothing, no beat comes, the Lease stands still, Ready is lost, and all
 *  of that for long. Whoever says a word there is merely ill, whether it is said here or to others: where nothing but small packets passes
 *  between the node and us, its port accepts and is not heard either. */
function hung(node: NodeSeen, self: Self, hungAfter: Ms, now: Ms): Verdict | undefined {
  const { beat, probe, ready, lease } = node
  const since = Math.max(lastBeat(node, self), ...sealedAt(node))
  if (hungAfter === 0 || beat === undefined || probe?.word !== 'open' || now - since < hungAfter) return undefined
  if (ready.status === 'True' || now - ready.since < hungAfter || lease === undefined || now - lease.readAt > hungLeaseWithin) return undefined
  const still = lease.askedAt - Math.max(lease.unmovedSince, since)
  if (still < leaseInterval) return undefined
  return {
    is: 'dead', since, hung: true,
    evidence: [{ source: 'probe', word: 'open, and says nothing' }, { source: 'Ready', word: `${ready.status} for ${seconds(now - ready.since)}` }, { source: 'Lease', word: `not renewed for ${seconds(still)}` }],
  }
}

/** Of a machine that answers the Lease is read every ten seconds. */
const hungLeaseWithin: Ms = 15_000

/** Whom one could ask about this node: other agents that are heard, and other replicas. */
export interface Peers {
  readonly agents: number
  readonly replicas: number
}

/** When this replica last heard the agent; for a node it never heard, when it began to listen. */
export function lastBeat(node: NodeSeen, self: Self): Ms {
  return Math.max(node.beat?.at ?? node.seenAt, self.awakeSince)
}

/** No agent of it was ever heard, here or by whoever led before: its Lease and its kubelet's word are all there is of it. */
export function isWithoutAgent({ beat, record }: Pick<NodeSeen, 'beat' | 'record'>): boolean {
  return beat === undefined && (record === undefined || isKubeletsWord(record.boot))
}

/** Of a node without an agent: when its kubelet, or a kernel at its address, last said anything. */
export function kubeletsLastWord({ ready, lease, probe }: Pick<NodeSeen, 'ready' | 'lease' | 'probe'>): Ms {
  return Math.max(ready.postedAt, lease?.moved === true ? lease.unmovedSince : -Infinity, probe?.spokeAt ?? -Infinity)
}

/** The last word of any source. `since`: of what it would refute, beside a silence. */
export function lastWord(node: NodeSeen, self: Self, since: Ms = -Infinity): Ms {
  // A move since a reading from before that may itself be from before it: it is no word then.
  const lease = node.lease?.moved === true && (node.lease.movedAfter ?? Infinity) >= Math.max(since, lastBeat(node, self)) ? node.lease.unmovedSince : -Infinity
  const sealed = sealedAt(node)
  return Math.max(lastBeat(node, self), lease, node.ready.postedAt, node.probe?.spokeAt ?? -Infinity, ...sealed)
}

/** When others brought the node's own seal. */
function sealedAt({ witnesses }: NodeSeen): readonly Ms[] {
  return witnesses.filter((witness) => witness.word === 'hears' && witness.proven).map((witness) => witness.answeredAt)
}

/** A beat that was on its way as its machine went off is taken in here no later than this. What is heard later was spoken after. */
export const onItsWay: Ms = 1_000

/** Without an agent's word, or with an agent that was silent while its machine answered, or with nobody else to ask, a node
 *  is judged at Kubernetes' own pace. */
function fastJudged(node: NodeSeen, self: Self, peers: Peers, suspectAfter: Ms): boolean {
  if (node.beat === undefined || peers.agents + peers.replicas === 0) return false
  return (node.probe?.spokeAt ?? -Infinity) < lastBeat(node, self) + suspectAfter
}

/** Of a machine that said it shuts down the devices may be asked at once: their *off* is what it announced. */
export function shutsDown(node: NodeSeen): boolean {
  return node.beat?.goodbye?.why === 'shutdown'
}

/** So long before anybody suspects it, a beat is late. */
const lateBefore: Ms = 250
/** No profile calls a beat late sooner. */
export const soonestLate = Math.min(...Object.values(profiles).map((profile) => profile.suspectAfter)) - lateBefore

/** The beat is late, and not yet so late that anybody suspects the node. */
export function isLate(node: NodeSeen, self: Self, profileName: ProfileName, now: Ms): boolean {
  if (node.beat === undefined || node.beat.goodbye !== undefined) return false
  const { suspectAfter } = profiles[profileName]
  const quiet = now - lastBeat(node, self)
  return quiet >= suspectAfter - lateBefore && quiet < suspectAfter
}

/** Lengths of silence at which it comes to mean more, in whatever profile. */
const ripenings = [...new Set(Object.values(profiles).flatMap(({ suspectAfter, deadAfter }) => [suspectAfter - lateBefore, suspectAfter, deadAfter]))]
  .toSorted((one, other) => one - other)

/** The next instant at which some silence comes to mean more, if it goes on. Of nodes that beat in time it is far away. */
export function ripensAt({ nodes, self }: Observed, now: Ms): Ms {
  let soonest = Infinity
  for (const { beat } of nodes.values()) {
    if (beat === undefined) continue
    const since = Math.max(beat.at, self.awakeSince)
    for (const ripening of ripenings) {
      if (since + ripening <= now) continue
      soonest = Math.min(soonest, since + ripening)
      break
    }
  }
  return soonest
}

/** A goodbye sets another patience, until the next beat. */
function patience(node: NodeSeen, usual: Ms): Ms {
  const goodbye = node.beat?.goodbye
  return goodbye === undefined ? usual : Math.max(usual, goodbyePatience[goodbye.why])
}

function answers(node: NodeSeen, heardAt: Ms, now: Ms): string | undefined {
  const probe = node.probe
  if (probe === undefined || probe.word === 'silent') return undefined
  if (probe.askedAt < heardAt || now - probe.answeredAt > answerHolds) return undefined
  switch (probe.word) {
    case 'answered': return 'the kubelet port answers, the agent does not'
    case 'open': return 'the kubelet port accepts and says nothing: a kernel runs there'
    case 'refused': return 'the kubelet port refuses: a kernel runs there'
  }
}

function bareWord(node: NodeSeen, since: Ms): boolean {
  return node.witnesses.some((witness) => witness.word === 'hears' && !witness.proven && witness.askedAt >= since)
}

/** The evidence that this node is dead, or what is lacking. */
function forDeath(node: NodeSeen, since: Ms, peers: Peers, now: Ms): readonly Omit<Evidence, 'at'>[] | string {
  const lease = leaseStill(node, since, now)
  if (lease !== undefined) return [lease]
  // Nobody ever heard it, so that nobody does now proves nothing.
  if (isWithoutAgent(node)) return 'the Lease was not yet watched for a whole interval, and no agent of it was ever heard'
  const probe = probeSilent(node, since)
  if (typeof probe === 'string') return `${probe}; the Lease was not yet watched for a whole interval`
  const deaf = deafWitnesses(node, since, peers)
  if (typeof deaf === 'string') return `${deaf}; the Lease was not yet watched for a whole interval`
  return [probe, ...deaf]
}

/** A Lease that a live read shows where it stood a whole renew interval ago. */
function leaseStill(node: NodeSeen, since: Ms, now: Ms): Omit<Evidence, 'at'> | undefined {
  const lease = node.lease
  if (lease === undefined || lease.readAt < since) return undefined
  // The answer shows the Lease as it stood when it was asked for, or later; nobody knows by how much.
  const still = lease.askedAt - Math.max(lease.unmovedSince, since)
  if (still < leaseInterval || now - lease.readAt > 5_000) return undefined
  return { source: 'Lease', word: `not renewed for ${seconds(still)}` }
}

function probeSilent(node: NodeSeen, since: Ms): Omit<Evidence, 'at'> | string {
  const audited = node.record?.probe
  const boot = node.beat?.boot ?? node.record?.boot
  if (audited?.answered !== true || boot === undefined || !sameBoot(audited.boot, boot)) return 'the kubelet port was not heard to answer at its last audit in this boot, so its silence proves nothing'
  if (node.probe === undefined || node.probe.askedAt < since) return 'the kubelet port was not asked yet'
  return node.probe.word === 'silent' ? { source: 'probe', word: 'silent' } : 'the kubelet port answers'
}

function deafWitnesses(node: NodeSeen, since: Ms, peers: Peers): readonly Omit<Evidence, 'at'>[] | string {
  const words = node.witnesses.filter((witness) => witness.askedAt >= since)
  const deaf = words.filter((witness) => witness.word === 'deaf')
  const agents = deaf.filter((witness) => witness.kind === 'agent')
  const enough = peers.agents >= 2 ? agents.length >= 2 : deaf.length >= 1 && peers.replicas + peers.agents >= 1
  if (enough) return deaf.map((witness) => ({ source: `witness ${witness.witness}`, word: 'deaf' }))
  if (peers.agents + peers.replicas === 0) return 'there is nobody else to ask'
  return `${agents.length} witnesses answered, two are needed`
}

export function seconds(span: Ms): string {
  return `${(span / 1000).toFixed(1)} s`
}
