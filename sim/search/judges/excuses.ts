// What happened that is no fault of the product. An excuse names its cause from the world's truth, of the very node and boot that
// did the harm, and from before it: a device that lied twice and was believed, a person who deleted the Node, an image resumed.
// The product's own words play no part in it.
import type { KubeObject } from '../../../coordinator/api.ts'
import { fencedFor } from '../../../core/deleted.ts'
import type { Ms } from '../../../core/model.ts'
import type { TruthEntry } from '../../truth.ts'
import type { World } from '../../world.ts'
import type { Switch } from '../../world/power.ts'
import type { Excuse, Party, Violation } from '../judgement.ts'
import type { Trouble } from '../trouble.ts'
import { drillPassed } from '../troubles-drill.ts'
import type { Act, Ears, Word } from './ears.ts'
import type { ExcuseReason } from './excuse-reasons.ts'
import { bootId } from './facts.ts'
import { darkByUs, feedCutByUs, portCutByUs } from './liveness.ts'
import { look, type Fence, type History, type Sight } from './sight.ts'

/** A trouble that took effect, and when, and on which node. */
export interface Struck {
  readonly at: Ms
  readonly does: Trouble['does']
  readonly node: string
}

type Excused = Pick<Excuse, 'reason' | 'because'>

export function excuses(violations: readonly Violation[], history: History, struck: readonly Struck[]): readonly Excuse[] {
  return violations.flatMap((violation) => {
    const found = excuseOf(violation, history, struck)
    return found === undefined ? [] : [{ of: violation, judge: violation.judge, what: violation.what, ...found }]
  })
}

function excuse(reason: ExcuseReason, because: string): Excused {
  return { reason, because }
}

function excuseOf(violation: Violation, history: History, struck: readonly Struck[]): Excused | undefined {
  switch (violation.judge) {
    case 'safety': return excusedHarm(violation, history, struck)
    case 'liveness': return excusedDark(violation, history, struck)
    case 'restraint': return excusedStroke(violation, history)
    case 'progress': return undefined
  }
}

/** Somebody changed two cables. A strip cannot tell which machine hangs on an outlet; a controller can, but not to an order that
 *  was on its way when its cable was changed. */
function excusedStroke({ node = '', from }: Violation, { on: { world } }: History): Excused | undefined {
  const { entries } = world.truth
  const order = entries.find(({ at, what, facts }) => at === from && what === 'device ordered' && facts['to'] === 'off')
  if (order === undefined) return undefined
  const { device, plug } = order.facts
  // Put right since: then it is its own machine's outlet that was ordered off.
  if (!isAstray(String(device), String(plug), order.at, world)) return undefined
  const changed = entries.findLast(({ at, what, facts }) => at <= order.at && what === 'cables changed' && [facts['one'], facts['other']].includes(`${device}/${plug}`))
  if (changed === undefined) return undefined
  const sent = entries.findLast(({ at, what, facts }) => at <= order.at && what === 'program runs' && facts['action'] === 'off' && facts['plug'] === plug)
  if (sent !== undefined && changed.at >= sent.at) return excuse('a cable changed under an order', `somebody changed the cable of ${node} while the order was on its way`)
  const told = [...world.nodes.keys()].flatMap(world.switches).flat().some((one) => one.device === device && one.kind === 'chassis')
  return told || demandsIdentity(world) ? undefined : excuse('an outlet of a changed cable', `the outlet that was ordered off feeds ${node} since somebody changed its cable`)
}

/** Some policy trusts no path of unproven identity: then no order is given by it either. */
function demandsIdentity({ server }: World): boolean {
  return (server?.peek('holdfastpolicies.holdfast.dev') ?? []).some((policy) => (policy as KubeObject & { spec?: { identity?: string } }).spec?.identity === 'require')
}

function excusedHarm({ parties = [], from = -Infinity, act }: Violation, { ears, on: { world } }: History, struck: readonly Struck[]): Excused | undefined {
  for (const party of parties) {
    const until = act === undefined ? writesFrom(party.node, from, world) : from
    const acts = act === undefined ? whatFreed(party, until, ears) : [act]
    if (acts.some((one) => one.hibernated)) return excuse('an image resumed', `${party.node} had written its image to disk, reads off and resumed the fenced boot`)
    const moments = [...acts, ...(act === undefined ? letIn(party.node, from, until, world) : [])]
    if (moments.some((moment) => believedALie(moment, ears, world))) return excuse('a lie told twice', `all that was last read of ${party.node} was off, and some of it was a lie, told twice`)
    const other = freedByAnother(party, from, world)
    if (other !== undefined && acts.every(({ at }) => at >= other)) return excuse('freed by another', `somebody else freed what ran on ${party.node}, without a proof and before anything of ours did`)
    if (acts.some((one) => neverFired(one, world))) return excuse('a watchdog that did not fire', `the watchdog of ${party.node} had run down, and did not fire`)
    if (acts.some((one) => oneFeedAstray(one, ears, world))) return excuse('one feed of two astray', `one of the two feeds of ${party.node} was wired to another machine, and the policy trusts paths of unproven identity`)
    if (acts.some((one) => drilledAstray(one, ears, world))) return excuse('a cable changed after a drill', `somebody changed the cable of ${party.node} after a drill had shown where it leads`)
    if (acts.some((one) => portAstray(one, ears, world))) return excuse('a port astray', `the port of ${party.node} to its storage was wired to another machine, and the policy trusts paths of unproven identity`)
    if (acts.some((one) => forgedFor(one, world))) return excuse('a forged word of a crash kernel', `somebody sent the word of a crash kernel from the address of ${party.node}, which nobody heard, and the policy takes such words`)
    if (acts.some((one) => swornTo(one, ears, world))) return excuse('a false oath', `a person swore that ${party.node} was off, it was on, and nothing that was asked said so`)
    const deleted = struck.find(({ does, node, at }) => does === 'the Node object is deleted' && node === party.node && at <= from && aliveAt(party, at, world))
    if (deleted !== undefined && acts.every(({ does, at }) => does === 'out-of-service' && at < deleted.at)) return excuse('a Node deleted under its pods', `a person deleted the Node ${party.node} while it ran: Kubernetes itself swept its pods`)
  }
  return undefined
}

/** What freed the very pod. Where nothing did, Kubernetes took from its node what it had in hand, under what we had put there last. */
function whatFreed({ node, boot, podUid }: Party, until: Ms, { acts }: Ears): readonly Act[] {
  const own = acts.filter((act) => act.node === node && act.boot === boot && act.at <= until)
  const freed = own.filter(({ does, pod }) => does === 'free a pod' && (podUid === undefined || pod?.uid === podUid))
  return freed.length > 0 ? freed : own.filter(({ does }) => does === 'out-of-service').slice(-1)
}

/** Whoever is shut out of its storage does no harm to who writes there instead, before it is let in again: what was believed by then counts. */
function writesFrom(node: string, from: Ms, { truth: { entries } }: World): Ms {
  const switched = entries.filter(({ what, facts }) => what === 'port switched' && facts['machine'] === node)
  if (switched.findLast(({ at }) => at <= from)?.facts['to'] !== 'off') return from
  return switched.find(({ at, facts }) => at > from && facts['to'] === 'on')?.at ?? from
}

/** When it was decided to let in again who was shut out at `from`: with the first order on to anything of it. */
function letIn(node: string, from: Ms, until: Ms, { truth: { entries }, switches }: World): readonly Pick<Act, 'at' | 'node'>[] {
  const own = switches(node).flat()
  const ordered = entries.find(({ at, what, facts }) => at > from && at <= until && what === 'program runs' && facts['action'] === 'on' && own.some(({ address, plug }) => facts['ip'] === address && facts['plug'] === plug))
  return ordered === undefined ? [] : [{ at: ordered.at, node }]
}

/** Nothing tells of one that is wrongly wired but the reset that does not come, and whatever the machine says itself. */
function neverFired({ at, node, proof, wellFor, renewed }: Act, { truth: { entries } }: World): boolean {
  return proof === 'self-fenced' && wellFor < newsTakes && !renewed && entries.findLast((entry) => entry.at <= at && entry.facts['node'] === node && (entry.what.startsWith('watchdog ') || entry.what === 'machine booted'))?.what === 'watchdog does not fire'
}

/** A strip cannot tell which machine hangs on an outlet. Whoever lost his only supply instead would be silent, and that is seen; of
 *  two machines that each keep one feed both go on as before. */
function oneFeedAstray({ at, node }: Act, ears: Ears, world: World): boolean {
  const level = world.switches(node).find((switches) => switches.length > 1 && switches.some(({ kind, device, plug }) => kind === 'outlet' && isAstray(device, plug, at, world)))
  return level !== undefined && saidOff(level, at, ears) && !demandsIdentity(world)
}

/** A drill proves where a cable leads until somebody changes it. */
function drilledAstray({ at, node }: Act, ears: Ears, world: World): boolean {
  const { entries } = world.truth
  const passed = entries.findLast((entry) => entry.at <= at && entry.what === drillPassed && entry.facts['node'] === node)?.at ?? Infinity
  const changed = (device: string, plug: string) => entries.findLast((entry) => entry.at <= at && entry.what === 'cables changed' && [entry.facts['one'], entry.facts['other']].includes(`${device}/${plug}`))?.at ?? -Infinity
  return world.switches(node).some((level) => saidOff(level, at, ears) && level.some(({ kind, device, plug }) => kind === 'outlet' && isAstray(device, plug, at, world) && changed(device, plug) > passed))
}

/** Whoever lost his way to the storage instead goes on beating, and its own device cannot tell. */
function portAstray({ at, node }: Act, ears: Ears, world: World): boolean {
  return portsOf(node, world).some((port) => isAstray(port.device, port.plug, at, world) && saidOff([port], at, ears)) && !demandsIdentity(world)
}

function portsOf(node: string, world: World): readonly Switch[] {
  return world.switches(node).flat().filter(({ kind }) => kind === 'port')
}

/** Cables that change places again and again may lead to where they led at first. */
function isAstray(device: string, plug: string, at: Ms, { truth: { entries } }: World): boolean {
  const leads = new Map<unknown, unknown>()
  for (const entry of entries) {
    if (entry.at > at || entry.what !== 'cables changed') continue
    const { one, other } = entry.facts
    const [here, there] = [leads.get(one) ?? one, leads.get(other) ?? other]
    leads.set(one, there).set(other, here)
  }
  const own = `${device}/${plug}`
  return (leads.get(own) ?? own) !== own
}

/** Whatever the whole level is asked by said so when it was last asked. */
function saidOff(level: readonly Switch[], at: Ms, { words }: Ears): boolean {
  return level.every(({ device, plug }) => words.findLast((word) => word.device === device && word.plug === plug && word.at <= at && word.at >= at - readWithin)?.says === 'off')
}

/** What docs/safety.md assumes of where crash kernels' words are accepted: nobody else sends them. Nothing is left to it while the node is well. */
function forgedFor({ at, node, boot, wellFor, renewed, proof }: Act, world: World): boolean {
  const accepts = (world.server?.peek('holdfastpolicies.holdfast.dev') ?? []).some((policy) => (policy as KubeObject & { spec?: { kdump?: string } }).spec?.kdump === 'accept') // that collection's kind
  const booted = world.truth.entries.findLast(({ what, facts }) => what === 'machine booted' && facts['node'] === node && facts['boot'] === boot)?.at ?? Infinity
  return accepts && proof === 'kdump' && wellFor === 0 && !renewed && world.truth.entries.some((entry) => entry.what === "crash kernel's word forged" && entry.facts['node'] === node && entry.at >= booted && entry.at <= at)
}

/** From a word that is taken back to whoever goes by it. */
const newsTakes: Ms = 10_000

/** Nobody can see through a false oath, as long as it stands, about a node that nobody hears, whose Lease stands still and that no device calls on. */
function swornTo({ at, node, boot, wellFor, renewed }: Act, { oaths, words }: Ears, world: World): boolean {
  const said = wordsOn(node, words, world, at).filter((own) => !isPort(own.at(-1), node, world))
  return wellFor === 0 && !renewed && oaths.some((oath) => oath.node === node && oath.boot === boot && (oath.stoodAt ?? Infinity) <= at && at - (oath.overAt ?? Infinity) <= newsTakes) && said.every((own) => own.at(-1)?.says !== 'on')
}

/** What docs/safety.md assumes: a device tells the truth about power twice in a row, a second apart. */
const apart: Ms = 1_000
/** A sweep of a level, and a batch that it allowed. */
const readWithin: Ms = 20_000

/** What was read last of every outlet of a level before the act was off, and one of them had said so falsely for a second. An honest device beside
 *  it that says on leaves no excuse, and neither does one that nobody asked, nor a liar that never said on of this boot. */
function believedALie({ at, node }: Pick<Act, 'at' | 'node'>, ears: Ears, world: World): boolean {
  const { words, since } = ears
  const isWhole = ({ device, plug }: Word): boolean => world.switches(node).some((level) => level.some((one) => one.device === device && one.plug === plug) && saidOff(level, at, ears))
  const byOutlet = wordsOn(node, words, world, at)
  const bootedAt = world.truth.entries.findLast((entry) => entry.at <= at && entry.what === 'machine booted' && entry.facts['node'] === node)?.at ?? since
  const saidOn = ({ device, plug }: Word): boolean => bootedAt <= since || words.some((word) => word.device === device && word.plug === plug && word.says === 'on' && word.at >= bootedAt && word.at <= at)
  const liars = byOutlet.filter(liedForLong).map((own) => own.at(-1)).filter((liar) => liar !== undefined && saidOn(liar) && isWhole(liar))
  // Whether it has power says nothing of its way to the storage.
  if (liars.some((liar) => isPort(liar, node, world))) return true
  // An outlet stays on behind a controller that has switched its machine off, and cannot tell of which machine it speaks.
  const honest = byOutlet.map((own) => own.at(-1)).some((word) => word?.says === 'on' && !isPort(word, node, world) && (word.machine !== undefined || liars.every((liar) => liar?.machine === undefined)))
  return liars.length > 0 && !honest
}

/** Outlet by outlet, what was read of the node until then. */
function wordsOn(node: string, words: readonly Word[], world: World, at: Ms): readonly (readonly Word[])[] {
  const own = world.switches(node).flat()
  const said = words.filter((word) => word.at <= at && word.at >= at - readWithin && own.some(({ device, plug }) => device === word.device && plug === word.plug))
  return [...Map.groupBy(said, ({ device, plug }) => `${device} ${plug}`).values()]
}

function isPort(word: Word | undefined, node: string, world: World): boolean {
  return portsOf(node, world).some(({ device, plug }) => device === word?.device && plug === word.plug)
}

function liedForLong(said: readonly Word[]): boolean {
  const truthful = said.findLastIndex(({ lie }) => !lie)
  const lies = said.slice(truthful + 1)
  const [first, last] = [lies.at(0), lies.at(-1)]
  return first !== undefined && last !== undefined && last.at - first.at >= apart
}

/** When somebody else, who knows nothing of proofs, deleted this pod, or let its volumes be taken, and the boot lived. */
function freedByAnother({ node, boot, podUid }: Party, before: Ms, { truth: { entries } }: World): Ms | undefined {
  const isFreed = (pods: unknown): boolean => podUid === undefined || (pods as readonly string[]).includes(podUid) // as troubles-hands.ts notes them
  return entries.find(({ at, what, facts }) => what === 'another frees' && facts['node'] === node && facts['boot'] === boot && isFreed(facts['pods']) && at <= before)?.at
}

function aliveAt({ node, boot }: Party, at: Ms, { truth: { entries } }: World): boolean {
  const last = entries.findLast((entry: TruthEntry) => entry.at <= at && entry.facts['node'] === node && (entry.what === 'machine booted' || entry.what === 'machine lost its power'))
  return last?.what === 'machine booted' && last.facts['boot'] === boot
}

const nodeDeletions: ReadonlySet<string> = new Set(['the Node object is deleted', 'another remediator deletes the Node'])

/** What was decided while the fence of a deleted Node goes on, or before a coordinator cut off from the API server knew that it does not. */
const underWay: Ms = fencedFor + 120_000

/** A machine that we switched off, and that nobody switched on again: somebody took away what we knew it by. */
function excusedDark({ what, node = '', from = Infinity }: Violation, history: History, struck: readonly Struck[]): Excused | undefined {
  if (![darkByUs, feedCutByUs, portCutByUs].some((cut) => what.endsWith(cut))) return undefined
  const { world } = history.on
  // A feed's sentence, and a port's, end as a machine's does.
  const dark = what === `${node} ${darkByUs}`
  const cut = world.truth.entries.findLast(({ at, what: happened, facts }) => happened === (what.endsWith(portCutByUs) ? 'port switched' : 'device switched') && facts['to'] === 'off' && facts['machine'] === node && at <= from)
  const sight = look(history)
  const outlets = world.switches(node).flat().filter(({ kind, device, plug }) => (dark ? kind !== 'port' : what.includes(` ${device}/${plug} `)))
  const exchanged = struck.findLast((one) => one.does === 'another machine comes under the name' && one.node === node && one.at <= from)
  if (exchanged !== undefined && (dark ? withoutFeed(node, exchanged.at, from, world) : !orderedOff(outlets, node, isOfBootSince(exchanged, world), sight))) return excuse('a machine exchanged', 'the machine was exchanged: what the one before was cut off from is a person\'s to give back')
  const recordless = struck.findLast(({ does, at }) => does === 'every NodeFence is deleted' && at >= (cut?.at ?? Infinity))
  // What was ordered once more later stands on a record of its own.
  if (recordless !== undefined && outlets.every((outlet) => (lastGiven(outlet, world.truth.entries)?.at ?? -Infinity) <= recordless.at + newsTakes)) return excuse('a NodeFence deleted', 'a person deleted the NodeFence that knew of the order')
  if (cut !== undefined && dark && struckInPassing(cut, history)) return excuse('a cable changed and changed back', `somebody changed the cable of ${node} behind the last reading before an order to another machine, and changed it back`)
  if (calledOn(node, what, history)) return excuse('an outlet that called itself on', `it was ordered on and called itself on while ${node} ran: for all that anybody can tell, somebody else has switched it off since`)
  // With two cables changed the order was another node's.
  const meant = [...world.nodes.keys()].filter((name) => name === node || world.switches(name).flat().some((one) => one.device === cut?.facts['device'] && one.plug === cut.facts['plug']))
  const deleted = struck.findLast(({ does, node: whose, at }) => nodeDeletions.has(does) && meant.includes(whose) && at <= from)
  const booted = world.truth.entries.some(({ at, what: happened, facts }) => happened === 'machine booted' && facts['node'] === node && at > (deleted?.at ?? Infinity) && at <= from)
  if (deleted === undefined) return undefined
  // The Node stands again, and what was ordered since was ordered for that.
  const stands = sight.node(deleted.node)?.metadata.uid
  if (orderedOff(outlets, deleted.node, ({ spec }) => stands !== undefined && spec.nodeUid === stands, sight)) return undefined
  // On one feed it may have booted by itself.
  const forgotten = !dark ? (cut?.at ?? Infinity) - deleted.at <= underWay : !booted
  return forgotten ? excuse('a Node deleted under its fence', `the Node ${deleted.node} was deleted: its machine is nobody's to switch on`) : undefined
}

/** By such an incident of the node. A method is called the same on each node. */
function orderedOff(outlets: readonly Switch[], node: string, by: (fence: Fence) => boolean, sight: Sight): boolean {
  const methods = outlets.map(({ name }) => `${name}-off`)
  const fences = sight.fences().filter((fence) => fence.spec.nodeName === node && by(fence))
  return fences.some(({ status }) => status?.attempts?.some(({ method, action, result }) => action === 'off' && result !== 'not-given' && methods.includes(method)) === true)
}

/** Of the machine that came. */
function isOfBootSince({ node, at: since }: Struck, { truth: { entries } }: World): (fence: Fence) => boolean {
  return ({ spec }) => entries.some(({ at, what, facts }) => at >= since && what === 'machine booted' && facts['node'] === node && facts['boot'] === bootId(spec.boot))
}

function lastGiven({ address, plug }: Switch, entries: readonly TruthEntry[]): TruthEntry | undefined {
  return entries.findLast(({ what, facts }) => what === 'program runs' && facts['action'] === 'off' && facts['ip'] === address && facts['plug'] === plug)
}

/** The order off to every feed of it was given before the machine that came first booted: that was meant for the one before. */
function withoutFeed(node: string, since: Ms, until: Ms, { truth, switches }: World): boolean {
  const entries = truth.entries.filter(({ at }) => at < until)
  const booted = entries.find(({ at, what, facts }) => at >= since && what === 'machine booted' && facts['node'] === node)?.at ?? Infinity
  const isCut = (outlet: Switch): boolean => {
    const { kind, device, plug } = outlet
    const given = lastGiven(outlet, entries)
    const switched = entries.findLast(({ what, facts }) => what === 'device switched' && facts['device'] === device && facts['plug'] === plug)
    return kind === 'outlet' && given !== undefined && given.at <= booted && switched?.facts['to'] === 'off'
  }
  return switches(node).some((level) => level.length > 0 && level.every(isCut))
}

/** What fed it for a moment is another machine's again: nothing that could be asked tells that it was struck. */
function struckInPassing({ at, facts: { device, plug } }: TruthEntry, { ears: { words }, on: { world } }: History): boolean {
  const { entries } = world.truth
  const address = [...world.nodes.keys()].flatMap(world.switches).flat().find((one) => one.device === device && one.plug === plug)?.address
  const sent = entries.findLast((entry) => entry.at <= at && entry.what === 'program runs' && entry.facts['action'] === 'off' && entry.facts['ip'] === address && entry.facts['plug'] === plug)?.at ?? Infinity
  // A controller tells whose it is, to whoever asks once more.
  const asked = words.findLast((word) => word.device === device && word.plug === plug && word.at <= sent)?.at ?? sent
  const changes = entries.filter(({ what, facts }) => what === 'cables changed' && [facts['one'], facts['other']].includes(`${device}/${plug}`))
  return changes.some((change) => change.at <= at && change.at >= asked) && changes.filter((change) => change.at > at).length % 2 === 1
}

/** After it was ordered on a port said so falsely. Or an outlet did, of a machine that ran by another one, and nothing truer was heard of it
 *  before the incident was over. */
function calledOn(node: string, what: string, { ears, on: { world } }: History): boolean {
  const outlet = world.switches(node).flat().find(({ device, plug }) => what.includes(` ${device}/${plug} `))
  if (outlet === undefined) return false
  const { device, plug, address } = outlet
  const [on, off] = [ears.lastOrder(address, plug, 'on') ?? -Infinity, ears.lastOrder(address, plug, 'off') ?? Infinity]
  const ran = (at: Ms): boolean => world.truth.entries
    .findLast((entry) => entry.at <= at && entry.facts['node'] === node && (entry.what === 'machine booted' || entry.what === 'machine lost its power'))?.what === 'machine booted'
  const own = ears.words.filter((word) => word.device === device && word.plug === plug && word.at >= on)
  const lie = own.find(({ at, falselyOn }) => falselyOn && (outlet.kind === 'port' || ran(at)))
  if (on < off || lie === undefined) return false
  if (outlet.kind === 'port') return true
  const truth = own.find(({ at, says }) => at > lie.at && says === 'off')
  return truth === undefined || ears.ends.some((end) => end.node === node && end.at >= lie.at && end.at <= truth.at)
}
