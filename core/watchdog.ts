// A machine's watchdog resets it when nobody feeds it. An agent feeds it as long as its node may run workloads, so that one which gives up, or
// whose kernel stands still, is ended by hardware. What it is worth as a proof is reckoned here: how long after the last word that
// permits a reset is certain, and of which watchdogs nothing is certain.
import { sameBoot, type BeatSeen, type Boot, type Ms, type NodeName, type NodeRecord } from './model.ts'
import { gaveUpWithin } from './self-stop.ts'

/** What the kernel says of the device. */
export interface WatchdogSeen {
  readonly identity: string
  readonly timeout: Ms
  /** Once armed its driver never lets it be disarmed. */
  readonly nowayout?: boolean
}

/** As its agent announces it. */
export interface Watchdog extends Omit<WatchdogSeen, 'nowayout'> {
  readonly state: 'armed' | 'unarmed'
  /** Seconds after which a kernel that panics reboots (kernel.panic); 0: it stays. */
  readonly panic: number
  /** A virtual machine may be made to stand still, its watchdog with it. */
  readonly machine: 'real' | 'virtual' | 'unknown'
  /** Why it is not armed. */
  readonly why?: string
}

/** And whose word its node goes by. */
export interface WatchdogSaid extends Watchdog {
  /** Of the membership that it holds. 0: none. */
  readonly epoch: number
  /** It asks that it be put on record as unarmed, so that it may close it; the number tells its answer from that to an earlier one. */
  readonly disarm?: number
}

/** Whose word, most of them together, stands in for a leader's: no others'. */
export interface Membership {
  readonly epoch: number
  readonly agents: readonly NodeName[]
  readonly replicas: readonly string[]
}

/** As it stands on the NodeRecord. No node is told of a membership that is not there, so all that it may hold are there. */
export interface WatchdogKept extends Omit<WatchdogSaid, 'why' | 'disarm'> {
  readonly boot: Boot
  /** Oldest first. */
  readonly memberships: readonly Membership[]
}

/** An agent that gets no turn of the processor for this long is not well; a shorter time-out would reset machines that are merely busy. */
export const shortest: Ms = 10_000
export const longest: Ms = 600_000

/** Why it is left alone. Undefined: it may be armed. */
export function unfit({ timeout, nowayout }: WatchdogSeen): string | undefined {
  // An agent that ends, or a policy that changes, would have its machine reset though all is well.
  if (nowayout === true) return 'its driver does not let it be disarmed (nowayout)'
  if (timeout < shortest) return `its time-out is ${timeout / 1_000} s, and less than ${shortest / 1_000} s is shorter than a busy machine may stand still`
  return timeout > longest ? `its time-out is ${timeout / 1_000} s, and the most is ${longest / 1_000} s` : undefined
}

const softdog = 'Software Watchdog'
/** Measured to fire at their time-out. Of any other it is known that some fire at twice that. */
const measured: ReadonlySet<string> = new Set([softdog, 'i6300ESB timer'])

/** Why it proves nothing. */
export function distrusted({ state, identity, timeout, panic, machine }: Omit<Watchdog, 'why'>): string | undefined {
  if (state !== 'armed') return 'its watchdog was not armed'
  if (identity === '') return 'nothing tells what its watchdog is'
  const fault = unfit({ identity, timeout })
  if (fault !== undefined) return `its watchdog is of no use: ${fault}`
  if (machine === 'virtual') return 'it is a virtual machine: where that stands still its watchdog does too'
  if (machine === 'unknown') return 'nothing tells whether it is a virtual machine, which may be made to stand still with its watchdog'
  return identity === softdog && panic <= 0 ? 'its watchdog is the kernel\'s own (softdog), which a panic ends, and kernel.panic is not above 0' : undefined
}

/** From the last check of an agent that fed it. That one may have been stopped between its look at the clock and its word to the device, and as
 *  it ends its kernel feeds the device once more: each may come when the device has all but fired, and then it counts down anew. */
export function resetsWithin({ identity, timeout }: WatchdogSeen): Ms {
  return feedsAfterCheck * timeout * (measured.has(identity) ? 1 : 2)
}

/** Its own, the one that was on its way, and its kernel's. */
const feedsAfterCheck = 3

/** Two clocks count the same span, and neither is exact. */
const margin = (span: Ms): Ms => 5_000 + Math.ceil(span / 50)

/** From the last instant at which anybody may have permitted it, to its reset. */
export function endedWithin(watchdog: WatchdogSeen): Ms {
  const span = gaveUpWithin + resetsWithin(watchdog)
  return span + margin(span)
}

/** When more than half of them had said that they permit it no more. `since`: who has, and when. */
export function mostSince({ agents, replicas }: Membership, since: (member: { readonly agent: NodeName } | { readonly replica: string }) => Ms | undefined): Ms | undefined {
  const all = agents.length + replicas.length
  const said = [...agents.map((agent) => since({ agent })), ...replicas.map((replica) => since({ replica }))].filter((at) => at !== undefined)
  return said.toSorted((one, other) => one - other)[Math.floor(all / 2)]
}

/** So many that a node has not confirmed are kept; it is told of no further one before it does. */
const mostMemberships = 3

/** What is to stand on record: what its agent says, and each membership before any node is told of it. */
export function watchdogKept({ record, members }: { readonly record?: NodeRecord | undefined; readonly members?: Omit<Membership, 'epoch'> | undefined }, { boot, watchdog: said }: Pick<BeatSeen, 'boot' | 'watchdog'>): WatchdogKept | undefined {
  const before = record?.watchdog !== undefined && sameBoot(record.watchdog.boot, boot) ? record.watchdog : undefined
  if (said === undefined && before === undefined && members === undefined) return undefined
  const { state, identity, timeout, panic, machine, epoch } = said ?? before ?? nothing
  const kept = { boot, state: said?.disarm === undefined ? state : 'unarmed', identity, timeout, panic, machine, epoch } as const
  const known = before?.memberships ?? []
  // Of what was confirmed everything earlier is over.
  const list = known.some((one) => one.epoch === epoch) ? known.filter((one) => one.epoch >= epoch) : known
  const last = list.at(-1)
  // Also where nobody is wanted now, or a replica that has just begun to lead does not know yet: no number is given out twice in a boot.
  if (members === undefined) return { ...kept, memberships: list }
  if ((last !== undefined && sameNames(last, members)) || list.length >= mostMemberships) return { ...kept, memberships: list }
  // Of a record that somebody has deleted: the node may have been told of others that it had not confirmed yet.
  const told = before === undefined && epoch > 0 ? epoch + mostMemberships - 1 : epoch
  return { ...kept, memberships: [...list, { epoch: Math.max(last?.epoch ?? 0, told) + 1, agents: members.agents, replicas: members.replicas }] }
}

const nothing: WatchdogSaid = { state: 'unarmed', identity: '', timeout: 0, panic: 0, machine: 'unknown', epoch: 0 }

function sameNames(one: Omit<Membership, 'epoch'>, other: Omit<Membership, 'epoch'>): boolean {
  return one.agents.join() === other.agents.join() && one.replicas.join() === other.replicas.join()
}

export function sameWatchdog(one: WatchdogKept | undefined, other: WatchdogKept | undefined): boolean {
  return sameDevice(one, other) && sameMemberships(one, other)
}

/** What it is, and whether it is armed: whoever lets go of it waits for that to be on record. */
export function sameDevice(one: WatchdogKept | undefined, other: WatchdogKept | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  return one.boot === other.boot && one.state === other.state && one.identity === other.identity && one.timeout === other.timeout && one.panic === other.panic && one.machine === other.machine
}

/** Whose word its node goes by. */
export function sameMemberships(one: WatchdogKept | undefined, other: WatchdogKept | undefined): boolean {
  return one?.epoch === other?.epoch && one?.memberships.map(({ epoch }) => epoch).join() === other?.memberships.map(({ epoch }) => epoch).join()
}
