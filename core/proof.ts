// Why the old node cannot write. A Proof is of one boot of one machine under one Node UID, and this file alone can make
// one: the brand cannot be written down anywhere else, so a forged proof does not compile. Everything that frees something
// carries one.
//
// Seven proofs stand here. *off*: we ordered a whole level off, and afterwards, once nothing of the level's programs ran any
// more, every method of it was read off twice, at least a second apart, by separate runs. *found-off*: nobody ordered
// anything, yet every method of a level reads off twice, the paths were seen on while this very boot was beating, nothing
// says on, and a probe and a witness asked after the first reading got no answer. *vouched*: a person
// says that the machine is off, and nothing that could speak says otherwise. *self-fenced*: nobody could permit it any more, and since then its own
// watchdog must have reset it. *kdump*: it fell silent, and then its crash kernel was heard. Two are of some volumes alone, and the machine may run:
// *isolated*, as *off*, by methods that put the volumes of some drivers out of its reach; *safe-detach*, by drivers that
// refuse to detach what is in use. An answer that is missing, unknown or late is never off.
import { doubtOfWord, forceEvictionKey, sealAskedAt, sealedSince, sourceOf, spokenSince, unasked, unread, wordOf } from './acknowledge.ts'
import type { Extent } from './choice.ts'
import { doubtOfDump, evidenceOfDump, withoutRefusals } from './dump.ts'
import { given, isOf, isPartial, proofKey, shownFalse, type Attempt, type Found, type Incident, type ProofKind, type ProofRecord } from './incident.ts'
import { driversBehind, isIsolation, powerMethods } from './isolation.ts'
import { isWithoutAgent, leaseInterval } from './judge.ts'
import type { Boot, Method, Ms, NodeName, NodeSeen, Reading, Self } from './model.ts'
import { auditOf, heardAt, isIdentified, isStale, isStrange, strangeness, unidentified, untrusted } from './path.ts'
import { readingsOf, twoOffs, type Pair } from './reading.ts'
import { endedByWatchdog, revokedKey } from './self-fence.ts'
import { neighbourDoubt } from './struck.ts'

declare const made: unique symbol

export interface Proof {
  readonly kind: ProofKind
  readonly boot: Boot
  readonly nodeUid: string
  readonly level: number
  readonly methods: readonly string[]
  readonly digests?: readonly string[]
  readonly evidence: readonly Found[]
  /** Only beside *isolated*. */
  readonly joined?: { readonly kind: 'safe-detach'; readonly evidence: readonly Found[] }
  readonly [made]: true
}

/** A batch of deletions starts at most this long after an off was read. */
export const freshFor: Ms = 1_000

/** What is read live for a person's word is asked again so soon that it is no older than this. */
const liveWithin: Ms = 5_000

export type Proven = { readonly proof: Proof } | Lacking

/** `astray`: what was switched may have been another machine. */
/** `waitsFor`: whose own *off* is all that keeps it from being proven. */
export interface Lacking { readonly lacks: string; readonly astray?: true; readonly waitsFor?: readonly NodeName[] }

/** *off*, or *isolated*: the level was ordered off in this incident. */
export function proveOff(incident: Incident, node: NodeSeen, level: number, others: readonly NodeSeen[], now: Ms, incidents: ReadonlyMap<NodeName, Incident> = new Map()): Proven {
  const methods = node.path.levels[level] ?? []
  if (methods.length === 0) return { lacks: `level ${level + 1} has no methods` }
  const isolates = isIsolation(methods)
  const drivers = driversBehind(methods)
  if (isolates && drivers.length === 0) return { lacks: `${methods.map(({ name }) => name).join(', ')} names no CSI driver whose volumes it puts out of reach` }
  const attempts = given(incident.status)
  const orders = ordersOf(incident, level)
  const open = attempts.find((attempt) => attempt.result === 'running' && (!isolates || methods.some((method) => isOf(attempt, method))))
  if (open !== undefined) return { lacks: `an order to ${open.method} is under way` }
  // The record's own order tells which came first: the times on it are of the clocks of several replicas.
  const on = attempts.find((attempt, index) => attempt.action === 'on' && orders[0] !== undefined && index > attempts.indexOf(orders[0]))
  if (on !== undefined) return { lacks: `${on.method} was ordered on since` }
  const late = attempts.find((attempt) => attempt.action === 'on' && attempt.result !== 'on' && now < landsBy(node, attempt, now))
  if (late !== undefined) return { lacks: `the order on to ${late.method} may still land` }
  const evidence: Found[] = []
  const firsts: Reading[] = []
  // An order on another level may have taken the power of this level's device: what that said before is not what it will say.
  const settled = settledAt(node, attempts.filter((attempt) => attempt.action === 'off' && attempt.round === incident.status.round))
  // A beat of a machine that was called off may have been on its way. A device that lies is found so: the next one comes too, here or to
  // others, whose seal was made after they asked for it. What answers at the kubelet port keeps nothing waiting: proxies answer for the dead.
  const since = isolates ? settled : Math.max(settled, node.beat?.at ?? -Infinity, sealAskedAt(node))
  for (const method of methods) {
    const order = orders.findLast((attempt) => isOf(attempt, method))
    if (order === undefined) return { lacks: `${method.name} was not ordered off` }
    const audit = auditOf(node, method, incident.boot)
    const readings = readingsOf(node, method)
    const wrong = untrusted(node, method, audit, { ...incident.status, attempts })
    if (wrong !== undefined) return { lacks: wrong }
    const pair = twoOffs(readings, since, now)
    if (pair === undefined) return { lacks: `${method.name} was not yet read off twice since the order` }
    if (isStrange(pair.first, node)) return { lacks: strangeness(method.name) }
    firsts.push(pair.first)
    evidence.push({ source: `order ${method.name}`, word: 'off', at: order.endedAt ?? order.startedAt }, ...offs(pair))
    if (!isIdentified(node, method, incident.boot)) {
      const known = tellsAddress(pair, node, others)
      const doubt = known ? undefined : neighbourDoubt(incident, node, method, pair.first, others, incidents, now)
      if (doubt !== undefined) return { lacks: doubt.says, astray: true, waitsFor: doubt.waitsFor }
      const why = known ? `the device tells the node's address ${node.address}` : 'every other node of the device answered after the first off, or is off as well'
      evidence.push({ source: `identity ${method.name}`, word: `unproven: ${why}`, at: now })
    }
  }
  // It may feed the machine still. A new round takes what is configured then.
  const struck = orders.flatMap(({ method, beside = [] }) => [method, ...beside]).find((method) => !node.path.levels.flat().some(({ name }) => name === method))
  if (struck !== undefined) return { lacks: `${struck} was of the level in this round, and is not configured any more` }
  if (isolates) return { proof: makeProof('isolated', incident.boot, node.uid, level, methods, [...drivers.map((driver): Found => ({ source: `${driverSource}${driver}`, word: 'its volumes are out of reach', at: now })), ...evidence]) }
  const other = powerMethods(node).find((method) => !methods.includes(method) && outweighs(readingsOf(node, method).findLast((reading) => reading.startedAt >= since), firsts))
  if (other !== undefined) return { lacks: `${other.name} says on` }
  return { proof: makeProof('off', incident.boot, node.uid, level, methods, evidence) }
}

/** A device that says on of this very machine outweighs an outlet that may feed nothing. But an outlet behind a controller stays
 *  on when that has switched its machine off: what cannot tell of which machine it speaks is no word against what told. */
function outweighs(said: Reading | undefined, proving: readonly Reading[]): boolean {
  return said?.state === 'on' && (said.machine !== undefined || proving.some(({ machine }) => machine === undefined))
}

/** *found-off*: nothing was ordered in this incident, and the devices say off by themselves. */
export function foundOff(boot: Boot, node: NodeSeen, level: number, now: Ms): Proven {
  const methods = node.path.levels[level] ?? []
  if (methods.length === 0) return { lacks: `level ${level + 1} has no methods` }
  if (isIsolation(methods)) return { lacks: `level ${level + 1} does not switch the machine` }
  const evidence: Found[] = []
  let offAt = -Infinity
  for (const method of methods) {
    const audit = auditOf(node, method, boot)
    if (audit?.state !== 'verified') return { lacks: `${method.name} was not read on at an audit while this boot was beating` }
    if (isStale(node)) return { lacks: `the audit of ${method.name} is stale: two turns went by without it before the node was last heard` }
    if (audit.identity !== 'proven') return { lacks: `the identity of ${method.name} is not proven: ${unidentified(node, method)}` }
    const pair = twoOffs(readingsOf(node, method), heardAt(node), now)
    if (pair === undefined) return { lacks: `${method.name} was not yet read off twice` }
    if ([pair.first, pair.last].some((reading) => isStrange(reading, node))) return { lacks: strangeness(method.name) }
    offAt = Math.max(offAt, pair.first.endedAt)
    evidence.push({ source: `audit ${method.name}`, word: 'on', at: audit.at }, ...offs(pair))
  }
  const other = powerMethods(node).find((method) => readingsOf(node, method).at(-1)?.state === 'on')
  if (other !== undefined) return { lacks: `${other.name} says on` }
  if (node.probe === undefined || node.probe.askedAt < offAt) return { lacks: 'the kubelet port was not asked since the first off' }
  if (node.probe.word !== 'silent') return { lacks: 'the kubelet port answers' }
  const unheard = isWithoutAgent(node) ? leaseSince(node, offAt) : unheardSince(node, offAt)
  if (typeof unheard === 'string') return { lacks: unheard }
  evidence.push({ source: 'probe', word: 'silent', at: node.probe.answeredAt }, unheard)
  return { proof: makeProof('found-off', boot, node.uid, level, methods, evidence) }
}

/** A replica that began after the silence does not know where peers could ask for the agent: as long as no other replica can say, its Lease does. */
function unheardSince(node: NodeSeen, since: Ms): Found | string {
  const asked = node.witnesses.filter((witness) => witness.askedAt >= since)
  if (asked.some((witness) => witness.word === 'hears')) return 'a witness hears the node'
  const deaf = asked.find((witness) => witness.word === 'deaf')
  if (deaf !== undefined) return { source: `witness ${deaf.witness}`, word: 'deaf', at: deaf.answeredAt }
  return node.beat === undefined ? leaseSince(node, since) : 'no witness was asked since the first off'
}

/** Whom nobody ever heard nobody can witness. Its Lease stands in for that, read live, and still for a whole interval. */
function leaseSince({ lease }: NodeSeen, since: Ms): Found | string {
  if (lease === undefined || lease.askedAt < since) return 'its Lease was not read since the first off'
  if (lease.askedAt - lease.unmovedSince < leaseInterval) return 'its Lease was not yet watched for a whole interval'
  return { source: 'Lease', word: 'not renewed for a whole interval', at: lease.readAt }
}

/** *vouched*: somebody says so, and whatever was asked since does not say otherwise. */
export function proveByWord(incident: Incident, node: NodeSeen, now: Ms): Proven {
  const word = wordOf(incident, node)
  if (word === undefined) return { lacks: 'nobody has acknowledged that the machine is off' }
  const lacks = doubtOfWord(incident, node, now) ?? unasked(incident, node, now, liveWithin)
  if (lacks !== undefined) return { lacks }
  const late = onMayLand(incident, node, now)
  if (late !== undefined) return { lacks: late }
  return { proof: makeProof('vouched', incident.boot, node.uid, -1, [], [{ source: sourceOf(word), word: `off: ${word.reason}`, at: now }, ...silence(node, now)]) }
}

/** *self-fenced*: its watchdog must have reset it, and whatever was asked does not say otherwise. */
export function proveSelfFenced(incident: Incident, node: NodeSeen, nodes: ReadonlyMap<NodeName, NodeSeen>, self: Self, now: Ms): Proven {
  const ended = endedByWatchdog(incident, node, nodes, self, now)
  if ('lacks' in ended) return ended
  // One that has lapsed as well: something spoke when it must have been reset already.
  if (incident.status.voided.some(({ proof }) => proof.kind === 'self-fenced')) return { lacks: 'its watchdog was shown not to have reset it' }
  const lacks = spokenSince(node, incident.boot, node.firstSeen.get(revokedKey(incident.name)) ?? now) ?? unread(node, now, liveWithin) ?? onMayLand(incident, node, now)
  if (lacks !== undefined) return { lacks }
  return { proof: makeProof('self-fenced', incident.boot, node.uid, -1, [], [...ended.evidence, ...silence(node, now)]) }
}

/** *kdump*: the kernel that ran the pods is dead, by the word of the one that it left behind, and whatever was asked does not say otherwise. */
export function proveDumped(incident: Incident, node: NodeSeen, self: Self, now: Ms): Proven {
  if (incident.policy.kdump !== 'accept') return { lacks: 'its policy does not accept the word of a crash kernel' }
  if (shownFalse(incident.status).some(({ proof }) => proof.kind === 'kdump')) return { lacks: 'the word of its crash kernel was shown false' }
  const lacks = doubtOfDump(node, self, incident) ?? spokenSince(withoutRefusals(node), incident.boot, node.beat?.at ?? now) ?? unread(node, now, liveWithin) ?? onMayLand(incident, node, now)
  if (lacks !== undefined) return { lacks }
  return { proof: makeProof('kdump', incident.boot, node.uid, -1, [], [...evidenceOfDump(node, self, incident), ...silence(node, now)]) }
}

/** *safe-detach*: of a node that is dead by all evidence, volumes whose driver itself refuses to detach what is in use. */
export function proveSafeDetach(incident: Incident, node: NodeSeen, drivers: readonly string[], now: Ms): Proven {
  if (drivers.length === 0) return { lacks: 'no driver is known to refuse to detach what is in use' }
  const lacks = spokenSince(node, incident.boot, now) ?? unread(node, now, liveWithin)
  if (lacks !== undefined) return { lacks }
  const covered = [...new Set(node.volumes.map(({ driver }) => driver).filter((driver) => drivers.includes(driver)))]
  if (covered.length === 0) return { lacks: 'no volume of the node is of a driver that refuses to detach what is in use' }
  const evidence = [...covered.map((driver): Found => ({ source: `${driverSource}${driver}`, word: 'refuses to detach what is in use', at: now })), ...silence(node, now)]
  return { proof: makeProof('safe-detach', incident.boot, node.uid, -1, [], evidence) }
}

const driverSource = 'CSIDriver '

function silence(node: NodeSeen, now: Ms): readonly Found[] {
  return [{ source: 'Ready', word: node.ready.status, at: node.readAt ?? now }, { source: 'Lease', word: 'not renewed for a whole interval', at: node.lease?.readAt ?? now }]
}

function onMayLand(incident: Incident, node: NodeSeen, now: Ms): string | undefined {
  const late = given(incident.status).find((attempt) => attempt.action === 'on' && attempt.result !== 'on' && now < landsBy(node, attempt, now))
  return late && `${late.method} was ordered on, which may still land`
}

type Named = readonly { readonly source: string }[]

export type Extended = Pick<Proof, 'kind'> & { readonly evidence?: Named; readonly joined?: { readonly evidence: Named } }

/** *isolated* and *safe-detach* of one boot: each is of other drivers' volumes, and stays under its own rule. */
export function join(one: Proof, other: Proof): Proof {
  const [isolated, refusing] = one.kind === 'isolated' ? [one, other] : [other, one]
  const { joined: _, ...own } = isolated
  return { ...own, joined: { kind: 'safe-detach', evidence: refusing.evidence } } as unknown as Proof // the brand exists for the compiler only
}

/** What was joined, each by itself. */
export function partsOf(proof: Proof): readonly Proof[] {
  const { joined, ...own } = proof
  if (joined === undefined) return [proof]
  const { boot, nodeUid } = proof
  return [own as unknown as Proof, { ...makeProof(joined.kind, boot, nodeUid, -1, [], joined.evidence) }] // as above
}

/** The drivers of whose volumes it is. */
export function driversOf({ evidence = [] }: { readonly evidence?: Named }): readonly string[] {
  return evidence.flatMap(({ source }) => (source.startsWith(driverSource) ? [source.slice(driverSource.length)] : []))
}

/** How far a proof goes: to the whole machine, to volumes of some drivers, or to what does not tolerate the taint it rests on. */
export function extentOf(proof: Extended): Extent {
  const { kind, evidence = [], joined } = proof
  if (isPartial(proof)) {
    const own = driversOf(proof)
    return { drivers: [...own, ...(joined === undefined ? [] : driversOf(joined))], ...(kind === 'isolated' ? { outOfReach: own } : {}) }
  }
  return evidence.some(({ source }) => source.startsWith(forceEvictionKey)) ? { tolerated: true } : {}
}

/** The proof as it stands on the record, for the next leader; it frees nothing without a fresh reading of its own. */
export function recall(record: ProofRecord): Proof {
  return record as unknown as Proof // the brand exists for the compiler only
}

/** No device and nobody's word stands behind it: it is borne out by the node's silence alone. */
export function restsOnSilence({ kind }: Pick<Proof, 'kind'>): boolean {
  return kind === 'safe-detach' || kind === 'self-fenced' || kind === 'kdump'
}

/** Whether what the proof rests on was looked at again just now, and bears it out. */
export function borneOut(proof: Proof, incident: Incident, node: NodeSeen, now: Ms, within: Ms = freshFor): boolean {
  if (proof.joined !== undefined) return partsOf(proof).every((part) => borneOut(part, incident, node, now, within))
  if (restsOnSilence(proof)) return doubtOf(proof, incident, node, now) === undefined && unread(node, now, within) === undefined
  if (proof.kind !== 'vouched') return stillOff(proof, node, now, within)
  return doubtOfWord(incident, node, now) === undefined && unasked(incident, node, now, within) === undefined
}

/** What speaks against a proof that stands: nothing more is freed while it does. */
export function doubtOf(proof: Proof, incident: Incident, node: NodeSeen, now: Ms): string | undefined {
  if (proof.joined !== undefined) return partsOf(proof).flatMap((part) => doubtOf(part, incident, node, now) ?? []).join('; ') || undefined
  if (restsOnSilence(proof)) {
    const since = node.firstSeen.get(proofKey(incident.name, incident.status.voided.length, proof)) ?? now
    return spokenSince(proof.kind === 'kdump' ? withoutRefusals(node) : node, incident.boot, since) ?? sealedSince(node, since)
  }
  return proof.kind === 'vouched' ? doubtOfWord(incident, node, now) : contradicted(proof, node, now) ?? saidElsewhere(proof, incident, node)
}

/** Another path than the one that proved, which was mute then: it says on of this very machine, asked since. What cannot tell of which machine
 *  it speaks is no word against a proof. */
export function saidElsewhere(proof: Proof, incident: Incident, node: NodeSeen): string | undefined {
  if (isPartial(proof) || node.twin !== undefined) return undefined
  const provenAt = node.firstSeen.get(proofKey(incident.name, incident.status.voided.length, proof)) ?? Infinity
  const other = powerMethods(node).find((method) => {
    if (proof.methods.includes(method.name)) return false
    const last = readingsOf(node, method).findLast(({ state, startedAt }) => state !== 'unknown' && startedAt >= provenAt)
    return last?.state === 'on' && last.machine !== undefined && !isStrange(last, node)
  })
  return other && `${other.name} says on of this very machine`
}

/** Another path than the one that proved, which nobody has asked since this replica leads: what it told the leader before is not known here. One that
 *  does not answer was asked. */
export function unheardElsewhere(proof: Proof, node: NodeSeen, { ledSince = -Infinity }: Self): boolean {
  if (proof.methods.length === 0 || isPartial(proof)) return false
  return powerMethods(node).some((method) => !proof.methods.includes(method.name) && !readingsOf(node, method).some(({ startedAt }) => startedAt >= ledSince))
}

/** Whether what the proof rests on was read again just now: every method of the proving level, off. */
export function stillOff(proof: Proof, node: NodeSeen, now: Ms, within: Ms = freshFor): boolean {
  return proof.methods.length > 0 && proof.methods.every((_, index) => {
    const last = saidOf(proof, index, node).at(-1)
    return last?.state === 'off' && !isStrange(last, node) && now - last.endedAt <= within
  })
}

/** Whether some method of the proving level reads anything but off since: then nothing more is freed. After an *on* one off
 *  is not enough: it takes as many as the proof took. */
export function contradicted(proof: Proof, node: NodeSeen, now: Ms): string | undefined {
  for (const [index, name] of proof.methods.entries()) {
    const readings = saidOf(proof, index, node)
    const last = readings.at(-1)
    if (last !== undefined && last.state !== 'off') return `${name} reads ${last.state}`
    if (last !== undefined && isStrange(last, node)) return strangeness(name)
    const since = readings.slice(readings.findLastIndex((reading) => reading.state === 'on') + 1)
    if (since.length < readings.length && twoOffs(since, -Infinity, now) === undefined) return `${name} read on, and off only once since`
  }
  return undefined
}

/** A device that has answered before is given so long to answer again. */
const speechlessFor: Ms = 30_000

const speechlessTimes = 3

/** Which method of the proof has told nothing for so long, though it is asked, that nobody can tell any more whether it is off.
 *  One that says on is another thing: a word against the proof. */
export function speechless(proof: Proof, node: NodeSeen, now: Ms): string | undefined {
  if (saysOn(proof, node)) return undefined
  return proof.methods.find((name, index) => {
    const last = saidOf(proof, index, node).slice(-speechlessTimes)
    const [first] = last
    if (first === undefined || last.length < speechlessTimes || last.some(({ state }) => state !== 'unknown')) return false
    return now - (node.firstSeen.get(speechlessSince(name, first.digest)) ?? now) >= speechlessFor
  })
}

/** The key under which it is kept since when a method, in one configuration, has told nothing. */
export const speechlessSince = (method: string, digest: string): string => `speechless ${method} ${digest}`

export function saysOn(proof: Proof, node: NodeSeen): boolean {
  return proof.methods.some((_, index) => saidOf(proof, index, node).at(-1)?.state === 'on')
}

/** A method of the proof that is not configured any more as it was when it proved: nothing can be read of it. */
export function unconfigured(proof: Proof, node: NodeSeen): string | undefined {
  const methods = node.path.levels.flat()
  return proof.methods.find((name, index) => !methods.some((method) => method.name === name && (proof.digests?.[index] ?? method.digest) === method.digest))
}

/** What the nth method said, in the configuration in which it proved. */
function saidOf(proof: Proof, nth: number, node: NodeSeen): readonly Reading[] {
  const digest = proof.digests?.[nth]
  return node.readings.filter((reading) => reading.method === proof.methods[nth] && (digest === undefined || reading.digest === digest))
}

function offs(pair: Pair): Found[] {
  return [pair.first, pair.last].map((reading) => ({ source: `status ${reading.method}`, word: 'off', at: reading.endedAt }))
}

/** Orders of this incident's present round on the level. */
export function ordersOf(incident: Incident, level: number): readonly Attempt[] {
  return given(incident.status).filter((attempt) => attempt.action === 'off' && attempt.level === level && attempt.round === incident.status.round)
}

/** When this process knew the last of these orders ended: readings count from there. */
function settledAt(node: NodeSeen, orders: readonly Attempt[]): Ms {
  return Math.max(...orders.map((attempt) => node.firstSeen.get(`ended ${attempt.id}`) ?? Infinity))
}

/** After this an order that did not end verified lands no more. What this process never saw begin may land for all of it. */
export function landsBy(node: NodeSeen, attempt: Attempt, now: Ms): Ms {
  return (node.firstSeen.get(`began ${attempt.id}`) ?? now) + attempt.within + attempt.late
}

/** A device that gives its machine the address of this node, and of no other, speaks of none of the others. */
function tellsAddress({ first, last }: Pair, node: NodeSeen, others: readonly NodeSeen[]): boolean {
  return node.address !== '' && others.every((other) => other.name === node.name || other.address !== node.address)
    && [first, last].every(({ addresses = [] }) => addresses.includes(node.address.toLowerCase()))
}

function makeProof(kind: ProofKind, boot: Boot, nodeUid: string, level: number, methods: readonly Method[], evidence: readonly Found[]): Proof {
  return { kind, boot, nodeUid, level, methods: methods.map((method) => method.name), digests: methods.map((method) => method.digest), evidence } as unknown as Proof // the brand exists for the compiler only
}
