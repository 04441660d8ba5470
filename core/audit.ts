// The standing, read-only check that a fence path answers, while the node is well: what it said then is what makes its word
// worth something once the node is silent. A whole cluster wants to be audited when the product is new, so programs, probes and
// writes are few at a time.
import type { Deed, Look } from './action.ts'
import { addressesKept, addressesStand, addressesTold } from './address.ts'
import { drilled, drillsOf } from './drill.ts'
import { isWithoutAgent, kubeletsLastWord, unknownFor } from './judge.ts'
import { beatsWithin, challenge } from './look.ts'
import { liesOf, mayHaveStrayed, type Lie } from './lie.ts'
import { isKubeletsWord, kubeletsBootKey, sameBoot, seenAs, unkeptOf, type BeatSeen, type Boot, type Drill, type GateKept, type Method, type Ms, type NodeName, type NodeSeen, type Observed, type PathAudit, type ProbeSeen, type Reading } from './model.ts'
import { auditOf, toldMachine } from './path.ts'
import { readingsOf } from './reading.ts'
import { isTooSoon, placesStand, rests, sameFacts, sameStrains } from './record-write.ts'
import { sameMachine } from './machine-id.ts'
import { latestBoot } from './situation.ts'
import { openOf, type Survey } from './survey.ts'
import { isGuarded } from './unclean.ts'
import { strainsOf, type Strain } from './vitals.ts'
import { sameDevice, sameMemberships, watchdogKept } from './watchdog.ts'

/** An audit that did not verify a path is repeated so often. */
const auditAgain: Ms = 15_000
const auditsAtOnce = 2
const probesAtOnce = 32
/** Of a turn: a handshake of TLS each, and nobody waits for it. */
const knownProbesAtOnce = 2
const recordsAtOnce = 8
/** A replica that has begun just now may see a node before it has read how the node is fenced. */
const pathReadWithin: Ms = 30_000

const leasesAtOnce = 4
/** A kubelet renews every ten seconds; of a node without an agent its Lease is read so often until it was seen to move. */
const leaseEvery: Ms = 5_000
/** What is said by a node without an agent counts for so long: its status comes every ten seconds, and so does its Lease. */
const kubeletSpeaksWithin: Ms = 15_000

/** A boot that lives now, as far as anybody can tell, and since when it was known. */
type Life = Pick<BeatSeen, 'boot' | 'since'> & Partial<Pick<BeatSeen, 'gate' | 'gateSince' | 'places' | 'vitals' | 'watchdog' | 'answered'>>

type RecordDeed = Extract<Deed, { do: 'record' }>

/** Each path, and the kubelet port, once in each boot and each configuration, while the node is well; and each again in each turn. A port may have
 *  been closed to us since it answered, by a firewall or a policy of the network, and its silence would still speak for death. */
export function audits(on: Survey): (Look | RecordDeed)[] {
  const devices: Question[] = []
  const probes: Question[] = []
  const knownProbes: Question[] = []
  const leases: Look[] = []
  const records: RecordDeed[] = []
  const lies = liesOf(on.seen)
  const drills = drillsOf(on.seen)
  const challenges = mayHaveStrayed(on.seen, on.now, beatsWithin).flatMap((node) => challenge(node, on.now))
  const turnAt = turnNow(on)
  const free = { devices: Math.min(auditsAtOnce - on.running.devices, on.seen.self.auditBudget), probes: probesAtOnce - on.running.probes, records: recordsAtOnce - on.running.records, later: on.seen.self.recordBudget }
  const marks = markings(on, lies).slice(0, Math.max(0, free.records))
  for (const node of on.seen.nodes.values()) {
    // What a device says counts as an audit only of a boot that is beating.
    const life = lifeOf(node, on.now)
    if (life === undefined || node.gone === true) continue
    const proven = drills.get(node.name) ?? none
    const watchdog = watchdogKept(node, life)
    const sound = audited(node, life, proven) && !outgrown(node, on.now) && gateStands(node, life, on.now) && placesStand(node.record, life) && addressesStand(node, life.boot, on.open) && sameDevice(node.record?.watchdog, watchdog)
    // What nobody waits for.
    const told = strainsStand(node, life) && addressesTold(node, life.boot, on) && sameMemberships(node.record?.watchdog, watchdog)
    const stands = sound && (told || free.later <= 0 || isTooSoon(node, on.now))
    // In a turn most nodes are still to be asked, and most ticks may begin no program.
    if ((stands && (free.devices <= 0 || keptUp(node, turnAt))) || inIncident(on.open, node, life)) continue
    const probeDue = duePort(node, life, turnAt, on.now)
    if (probeDue !== undefined) {
      // What this replica has never asked in this boot may keep a record from being written.
      const again = probeDue !== -Infinity && portStood(node, life)
      offer(again ? knownProbes : probes, again ? knownProbesAtOnce - on.running.probes : free.probes, { node, life, askedAt: probeDue, again })
    }
    let asked = probeDue === undefined
    for (const level of node.path.levels) {
      for (const method of level) {
        const due = dueMethod(node, life, method, turnAt, on.now)
        if (due !== undefined) offer(devices, free.devices, { node, life, method, askedAt: due, again: auditOf(node, method, life.boot) !== undefined })
        asked &&= due === undefined
      }
    }
    // Of a boot that is to be quarantined first the record must not say yet that it is known.
    if (on.unclean.has(node) && isGuarded(node, on.policies)) continue
    const lived = asked ? confirmed(node, life) : node
    if (lived === undefined) {
      if (node.beat !== undefined) challenges.push(...challenge(node, on.now))
      else if (leases.length < leasesAtOnce) leases.push(...leaseAgain(node, on.now))
      continue
    }
    const writing = node.busy.has(`record ${node.name}`) || marks.some((mark) => mark.node === node.name)
    if (!asked || records.length + marks.length >= free.records || writing) continue
    const wanted = auditRecord(lived, life, { on, lies: lies.get(node.name) ?? [], drills: proven })
    records.push(...wanted)
    if (sound) free.later -= wanted.length
  }
  return [...probes.map(lookOf), ...knownProbes.map(lookOf), ...devices.map(lookOf), ...challenges, ...leases, ...marks, ...records]
}

const none: readonly Drill[] = []

/** Undefined: nobody can say that its boot lives. A node without an agent does not beat: its kubelet speaks for it, once an agent would have been heard. */
function lifeOf(node: NodeSeen, now: Ms): Life | undefined {
  const { beat } = node
  if (beat !== undefined) return now - beat.at < beatsWithin ? beat : undefined
  if (!isWithoutAgent(node) || node.ready.status !== 'True' || now - node.seenAt < unknownFor || now - kubeletsLastWord(node) >= kubeletSpeaksWithin) return undefined
  const boot = latestBoot(node)
  return boot === '' ? undefined : { boot, since: node.firstSeen.get(kubeletsBootKey) ?? node.seenAt }
}

/** The node with what was said of a boot that lived on. Undefined: that has to be shown first. A machine may have lost its power since its last
 *  beat; and kubelet's word is older than a beat by far, so that what any device said before counts only once its Lease has moved after it. */
function confirmed(node: NodeSeen, life: Life): NodeSeen | undefined {
  if (node.beat !== undefined) return mayHaveDied(node, life) ? undefined : node
  const { lease, probe } = node
  const livedAt = (lease?.moved === true ? lease.movedAfter : undefined) ?? -Infinity
  const readings = node.readings.filter(({ endedAt }) => endedAt <= livedAt)
  const known = node.path.levels.flat().every(({ name, digest }) => readings.some((reading) => reading.method === name && reading.digest === digest && reading.startedAt >= life.since))
  return known && (probe === undefined || probe.word === 'answered' || probe.answeredAt <= livedAt) ? seenAs(node, { readings }) : undefined
}

function leaseAgain(node: NodeSeen, now: Ms): Look[] {
  const wait = now - (node.lease?.askedAt ?? -Infinity) < leaseEvery || node.busy.has(`readLease ${node.name}`)
  return wait ? [] : [{ do: 'readLease', node: node.name }]
}

/** Whoever found the path wrong may have died before the NodeRecord said so, and the device would be believed again. Not waited for
 *  until the node is heard and well: the next incident may be of the very boot that showed the proof false. */
function markings(on: Survey, lies: ReadonlyMap<NodeName, readonly Lie[]>): RecordDeed[] {
  return [...lies].flatMap(([name, own]): RecordDeed[] => {
    const node = on.seen.nodes.get(name)
    if (node?.record === undefined || node.record.nodeUid !== node.uid || node.busy.has(`record ${name}`)) return []
    const { resourceVersion: _, ...record } = node.record
    const paths = record.paths.map((path) => (path.state === 'marked' ? path : marked(path, own)))
    const wanted = { ...record, paths }
    return paths.every((path, index) => path === record.paths[index]) || rests(node, wanted, on.now) ? [] : [{ do: 'record', node: name, record: wanted }]
  })
}

/** In the configuration that was shown wrong; another one is another path. */
function marked(path: PathAudit, lies: readonly Lie[]): PathAudit {
  const lie = lies.find(({ methods, astray }) => (!astray || path.identity === 'unproven') && methods.some(({ name, digest }) => name === path.method && (digest ?? path.digest) === path.digest))
  return lie === undefined ? path : { ...path, state: 'marked', at: lie.at, evidence: lie.evidence, ...(lie.astray ? { identity: 'mismatch' } : {}) }
}

/** The boot an incident is about is asked by the incident itself, and has other things to say than what it is like when well. */
function inIncident(open: Survey['open'], node: NodeSeen, { boot }: Life): boolean {
  const incident = open.get(node.name)
  return incident !== undefined && sameBoot(boot, incident.boot)
}

/** One question of an audit: of a method, or of the kubelet port. */
interface Question {
  readonly node: NodeSeen
  readonly life: Life
  readonly method?: Method
  /** When it was last asked in this boot; never: -Infinity. */
  readonly askedAt: Ms
  /** The record knows it of this boot already. */
  readonly again: boolean
}

/** Keeps the first few. What no record knows goes first, and of that what was never asked in its boot, the youngest boot before others;
 *  then what was asked longest ago, so that a device that never answers does not keep the others from being heard. */
function offer(first: Question[], most: number, question: Question): void {
  const last = first.at(-1)
  if (first.length >= most && (most <= 0 || last === undefined || !goesBefore(question, last))) return
  const place = first.findIndex((other) => goesBefore(question, other))
  first.splice(place === -1 ? first.length : place, 0, question)
  if (first.length > most) first.pop()
}

function goesBefore(one: Question, other: Question): boolean {
  if (one.again !== other.again) return other.again
  return one.askedAt === other.askedAt ? one.life.since > other.life.since : one.askedAt < other.askedAt
}

function lookOf({ node, method }: Question): Look {
  return method === undefined ? { do: 'probe', node: node.name, again: false } : { do: 'askDevice', node: node.name, method, purpose: 'audit' }
}

/** Undefined: it need not be asked now. A Node without an address has no port that could be asked; its silence proves nothing. */
function duePort(node: NodeSeen, life: Life, turnAt: Ms, now: Ms): Ms | undefined {
  const { probe } = node
  if (node.address === '') return undefined
  if (node.busy.size > 0 && node.busy.has(`probe ${node.name}`)) return undefined
  return dueAgain(probe?.askedAt, probe?.word === 'answered', life, turnAt, now)
}

/** On record it has answered in this boot. */
function portStood({ record, uid }: NodeSeen, { boot }: Life): boolean {
  return record?.probe?.answered === true && record.nodeUid === uid && sameBoot(record.probe.boot, boot)
}

/** What has answered in this boot is not called otherwise for one question: a kubelet is started again now and then, and a machine may have just died. */
function portAnswers(node: NodeSeen, { askedAt, word, unansweredSince = askedAt }: ProbeSeen, life: Life): boolean {
  return word === 'answered' || (portStood(node, life) && askedAt - unansweredSince < auditAgain)
}

function dueMethod(node: NodeSeen, life: Life, method: Method, turnAt: Ms, now: Ms): Ms | undefined {
  if (node.busy.size > 0 && node.busy.has(`askDevice ${node.name} ${method.name}`)) return undefined
  const last = lastReading(node, method)
  return dueAgain(last?.startedAt, last?.state === 'on', life, turnAt, now)
}

function dueAgain(lastAt: Ms | undefined, well: boolean, { since }: Life, turnAt: Ms, now: Ms): Ms | undefined {
  const askedAt = lastAt === undefined || lastAt < since ? -Infinity : lastAt
  return askedAt === -Infinity || askedAt < turnAt || (!well && now - askedAt >= auditAgain) ? askedAt : undefined
}

/** Nothing is older: there was no turn yet, or it gives way to an incident whose programs run. */
function turnNow({ seen, running }: Survey): Ms {
  return running.programs > running.devices ? -Infinity : seen.self.turnAt ?? -Infinity
}

/** Every path of it was asked in the turn, and said on; and its port, which answered. */
function keptUp(node: NodeSeen, turnAt: Ms): boolean {
  if (turnAt === -Infinity) return true
  if (node.address !== '' && (node.probe === undefined || node.probe.askedAt < turnAt || node.probe.word !== 'answered')) return false
  for (const level of node.path.levels) {
    for (const method of level) {
      const last = lastReading(node, method)
      if (last === undefined || last.startedAt < turnAt || last.state !== 'on') return false
    }
  }
  return true
}

/** How far the turn has come: how many paths were asked in it, and how many of nodes that are heard were not. A node that is silent, or in
 *  an incident, is missed: what its devices are asked then is no audit. */
export function turnSoFar(seen: Observed, now: Ms): { readonly asked: number; readonly left: number; readonly missed: readonly NodeName[] } {
  const turnAt = seen.self.turnAt ?? -Infinity
  const { open } = openOf(seen)
  const missed: NodeName[] = []
  let [asked, left] = [0, 0]
  for (const node of seen.nodes.values()) {
    if (node.gone === true) continue
    const life = lifeOf(node, now)
    const paths = node.path.levels.flat()
    if (life === undefined || inIncident(open, node, life)) {
      if (paths.length > 0) missed.push(node.name)
      continue
    }
    const unasked = paths.filter((method) => (lastReading(node, method)?.startedAt ?? -Infinity) < turnAt).length
    left += unasked
    asked += paths.length - unasked
  }
  return { asked, left, missed }
}

/** Without leaving anything behind: of five thousand nodes, at each tick of a turn. */
function lastReading(node: NodeSeen, { name, digest }: Method): Reading | undefined {
  for (let index = node.readings.length - 1; index >= 0; index -= 1) {
    const reading = node.readings[index]
    if (reading?.method === name && reading.digest === digest) return reading
  }
  return undefined
}

/** The record speaks of this boot, this machine and this configuration, and every path of it was verified. */
export function audited(node: NodeSeen, { boot }: Pick<Life, 'boot'>, drills: readonly Drill[] = none): boolean {
  const { record } = node
  if (record?.probe?.answered !== true || record.nodeUid !== node.uid || !sameBoot(record.boot, boot) || isKubeletsWord(record.boot) !== isKubeletsWord(boot)) return false
  // Of five thousand nodes at each tick: in plain loops, which leave nothing behind.
  for (const level of node.path.levels) {
    for (const method of level) {
      const audit = auditOf(node, method, boot)
      if (audit?.state !== 'marked' && (audit?.state !== 'verified' || !identityStands(node, method, audit, drills))) return false
    }
  }
  return true
}

/** A twin came or went since, or a drill was passed. */
function identityStands(node: NodeSeen, method: Method, { identity, drill }: PathAudit, drills: readonly Drill[]): boolean {
  if (identity !== 'unproven') return drill === undefined || drilled(node, method, [drill]) !== undefined
  const written = node.record?.paths.find((path) => path.method === method.name && path.digest === method.digest)?.identity
  const last = node.readings.findLast((reading) => reading.method === method.name && reading.digest === method.digest)
  return written === (last === undefined ? identity : identityOf(node, method, last, drilled(node, method, drill === undefined ? drills : [...drills, drill])))
}

/** The record names a path that the node has no more, and whoever reads records would count on it. */
function outgrown(node: NodeSeen, now: Ms): boolean {
  for (const path of node.record?.paths ?? []) if (!isConfigured(node, path) && !outlives(node, path, now)) return true
  return false
}

function isConfigured(node: NodeSeen, { method, digest }: PathAudit): boolean {
  for (const level of node.path.levels) for (const one of level) if (one.name === method && one.digest === digest) return true
  return false
}

/** Of a path that is configured no more. A mark stays until another configuration takes the method's name: else to take the
 *  configuration out and put it back would make the device believed again. What was verified stays until the configuration is
 *  surely read: the boot could not be proven off without it. */
function outlives(node: NodeSeen, { method, state }: PathAudit, now: Ms): boolean {
  const replaced = node.path.levels.some((level) => level.some(({ name }) => name === method))
  return !replaced && (state === 'marked' || now - node.seenAt < pathReadWithin)
}

/** An agent that has just begun is not asked yet by its runtime, and neither is one whose runtime is started again. */
const absentFor: Ms = 30_000

function gateKept({ record }: NodeSeen, { gate, gateSince = -Infinity }: Life, now: Ms): GateKept | undefined {
  if (gate === 'absent') return now - gateSince < absentFor ? record?.gate ?? gate : gate
  return gate === 'open' || gate === 'shut' ? 'asks' : gate
}

/** A record that says nothing of it is not written for that alone: an API server whose kinds are older would drop it each time. */
function gateStands(node: NodeSeen, life: Life, now: Ms): boolean {
  return node.record?.gate === undefined || node.record.gate === gateKept(node, life, now)
}

/** What was told stays while nobody tells: an agent that has just begun has not looked yet. */
function strainsKept({ record }: NodeSeen, { vitals }: Life): readonly Strain[] | undefined {
  return vitals === undefined ? record?.strains : strainsOf(vitals, record?.strains ?? [])
}

/** As for the gate. */
function strainsStand(node: NodeSeen, life: Life): boolean {
  return node.record === undefined || sameStrains(node.record.strains, strainsKept(node, life))
}

/** A device said off, which is a word against its path only of a boot that lived on: the machine may have lost its power since its
 *  last beat, or while that was on its way. */
function mayHaveDied(node: NodeSeen, { boot, answered }: Life): boolean {
  const livedAt = answered !== undefined && sameBoot(answered.boot, boot) ? answered.issuedAt : -Infinity
  return node.path.levels.some((level) => level.some((method) => {
    const last = readingsOf(node, method).at(-1)
    return last?.state === 'off' && last.endedAt >= livedAt
  }))
}

/** What bears on a record beside the node itself. */
interface Known {
  readonly on: Survey
  readonly lies: readonly Lie[]
  readonly drills: readonly Drill[]
}

/** What the looks have told, if it differs from what the record says. The edge adds the wall time. */
function auditRecord(node: NodeSeen, life: Life, { on, lies, drills }: Known): RecordDeed[] {
  const probe = node.address === '' ? undefined : node.probe
  if ((probe === undefined && node.address !== '') || [...node.busy].some((key) => key.startsWith('askDevice ') || key.startsWith('probe '))) return []
  const paths = [...node.path.levels.flat().map((method) => pathAudit(node, method, life.boot, lies, drills)), ...outliving(node, life.boot, on.now)]
  const port = probe === undefined ? {} : { probe: { boot: life.boot, answered: portAnswers(node, probe, life), at: '' } }
  const gate = gateKept(node, life, on.now)
  const strains = strainsKept(node, life)
  const watchdog = watchdogKept(node, life)
  const places = life.places ?? node.record?.places
  const addresses = addressesKept(node, life.boot, on)
  const record = { nodeUid: node.uid, boot: life.boot, machine: node.machine, ...(addresses === undefined ? {} : { addresses }), paths, ...port, ...(gate === undefined ? {} : { gate }), ...(places === undefined ? {} : { places }), ...(strains === undefined ? {} : { strains }), ...(watchdog === undefined ? {} : { watchdog }) }
  const { record: unkept } = unkeptOf(node, on.now)
  const stands = node.record !== undefined && (sameFacts(node.record, record) || (unkept?.version === node.record.resourceVersion && sameFacts(unkept.wanted, record)))
  return stands || rests(node, record, on.now) ? [] : [{ do: 'record', node: node.name, record }]
}

/** A mark is of no boot; what was verified is of its own alone. */
function outliving(node: NodeSeen, boot: Boot, now: Ms): PathAudit[] {
  if (node.record?.nodeUid !== node.uid) return []
  const paths = node.record.paths.filter((path) => !isConfigured(node, path) && outlives(node, path, now))
  return paths.map((path) => (path.state === 'marked' ? { ...path, boot } : path))
}

/** A path that was marked stays so from boot to boot: rebooting the node does not mend it, another configuration may. */
function pathAudit(node: NodeSeen, method: Method, boot: Boot, lies: readonly Lie[], drills: readonly Drill[]): PathAudit {
  const before = node.record?.nodeUid === node.uid ? node.record.paths.find((path) => path.method === method.name && path.digest === method.digest) : undefined
  const last = readingsOf(node, method).at(-1)
  const drill = drilled(node, method, before?.drill === undefined ? drills : [...drills, before.drill])
  const identity = identityOf(node, method, last, drill)
  // What strayed is this machine's by its device's own word now.
  if (before?.state === 'marked' && (before.identity !== 'mismatch' || identity !== 'proven')) return { ...before, boot }
  if (before?.state === 'verified' && sameBoot(before.boot, boot) && !refuted(node, method)) return marked({ ...before, identity, ...(drill === undefined ? {} : { drill }) }, lies)
  const state = last?.state === 'on' ? 'verified' : last?.state === 'off' ? 'mismatch' : 'unreachable'
  return marked({ method: method.name, digest: method.digest, boot, state, identity, at: '', evidence: last?.evidence ?? 'not asked', ...(drill === undefined ? {} : { drill }) }, lies)
}

/** What said on in this boot is not called otherwise for one answer: a device may be busy, or not be reached in a trouble that is over. */
function refuted(node: NodeSeen, method: Method): boolean {
  const [before, last] = readingsOf(node, method).slice(-2)
  return before !== undefined && last !== undefined && before.state !== 'on' && last.state !== 'on' && last.startedAt - before.startedAt >= auditAgain
}

function identityOf(node: NodeSeen, method: Method, last: Reading | undefined, drill: Drill | undefined): PathAudit['identity'] {
  const machine = last && toldMachine(last, node)
  // Any Node may name any instance; the address that its beats come from it cannot choose.
  if (method.claimed === true && (node.beat?.from === undefined || last?.addresses?.includes(node.beat.from) !== true)) return 'mismatch'
  if (machine === undefined || node.machine === '') return drill === undefined ? 'unproven' : 'proven'
  if (!sameMachine(machine, node.machine)) return 'mismatch'
  return node.twin === undefined ? 'proven' : 'unproven'
}
