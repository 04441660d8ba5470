// Whom an *off* may have struck instead of the node that it was meant for, where nothing proves which outlet feeds which: every other node
// of the device must have lived on after it. What is known of either is words, and each is older than it looks: an order that another
// replica gave was perhaps seen here long after it; an agent that is being upgraded is silent on a machine that runs.
//
// One that was silent before cannot be missed, and may run, and be what the order struck: core/unheard.ts says what stands in for its word.
import { mayStrike, shares } from './device.ts'
import { given, type Attempt, type Incident } from './incident.ts'
import { isWithoutAgent, onItsWay } from './judge.ts'
import type { Method, Ms, NodeName, NodeSeen, Reading } from './model.ts'
import { diesWithin } from './reading.ts'
import { isProvenOff, saidOffBeside } from './unheard.ts'

/** One beat may be lost. */
const heardBefore: Ms = 2_500
/** A watch that goes well brings an order no later. */
const seenLate: Ms = 2_500
/** An agent that said goodbye is away for so long, or its machine goes down. */
export const awayWithin: Ms = 60_000
/** While an agent is silent its machine is asked every few seconds, and its kubelet renews its Lease every ten. */
const machineSpeaksWithin: Ms = 15_000

export interface Doubt {
  readonly says: string
  /** They were silent before the order: their own *off* would end it. */
  readonly waitsFor: readonly NodeName[]
}

/** Each other node of the device must have lived later after the first off than what was struck can speak. One that was silent before may
 *  read off instead: then neither has power, whichever outlet is whose. An order of an earlier round counts too: a neighbour that it
 *  silenced is silent still, and a new round would make that look like its own affair. Undefined: nobody else was struck. */
export function neighbourDoubt(
  incident: Incident, node: NodeSeen, method: Method, first: Reading, others: readonly NodeSeen[], open: ReadonlyMap<NodeName, Incident>, now: Ms,
): Doubt | undefined {
  const orders = given(incident.status).filter((attempt) => attempt.action === 'off' && attempt.method === method.name)
  const present = others.filter((other) => other.name !== node.name && other.gone !== true)
  const neighbours = present.filter((other) => mayStrike(other, node, method))
  const dark = new Map(neighbours.flatMap((other) => {
    const offAt = saidOffBeside(other, method, first, now)
    return offAt === undefined ? [] : [[other, offAt] as const]
  }))
  // Three may be wired in a ring: whom the off of one of these struck lived on after the first one.
  const until = Math.max(first.endedAt, ...dark.values()) + diesWithin
  const silenced = neighbours.find((other) => livedAt(other) < until && orders.some((order) => mayHaveSilenced(incident, node, order, other)))
  const unproven = `the identity of ${method.name} is unproven`
  const where = (other: NodeSeen): string => (shares(other, method) ? 'on the same device' : 'with the same machine id')
  if (silenced !== undefined) return { says: `${unproven}, and ${silenced.name} ${where(silenced)} has not answered since the first off`, waitsFor: [] }
  const fallen = present.find((other) => !neighbours.includes(other) && orders.some((order) => fellWith(incident, node, order, other, first.endedAt + diesWithin)))
  if (fallen !== undefined) return { says: `${unproven}, and ${fallen.name} has not beaten since the first off`, waitsFor: [] }
  const [unheard, ...more] = neighbours.filter((other) => livedAt(other) < until && !dark.has(other) && !isWithoutAgent(other) && !isProvenOff(other, open.get(other.name), method, node, incident.boot))
  if (unheard === undefined) return undefined
  return { says: `${unproven}, and ${unheard.name} ${where(unheard)} was silent before the order, and is not read off itself`, waitsFor: [unheard, ...more].map(({ name }) => name) }
}

/** Any other node: a cable may lead to another strip, and a controller's name to another board. Nobody can ask thousands; but they beat. */
function fellWith(incident: Incident, node: NodeSeen, order: Attempt, { beat }: NodeSeen, until: Ms): boolean {
  if (beat === undefined || beat.goodbye !== undefined || beat.at >= until) return false
  return beat.at >= Math.max(beganAt(incident, node, order), (node.beat?.at ?? node.seenAt) - seenLate) - heardBefore
}

function mayHaveSilenced(incident: Incident, node: NodeSeen, order: Attempt, other: NodeSeen): boolean {
  const began = beganAt(incident, node, order)
  const { beat } = other
  if (beat === undefined && order.term !== incident.status.term) return !isWithoutAgent(other)
  const heardAt = beat?.at ?? -Infinity
  if (heardAt >= began - heardBefore || (beat?.goodbye?.at ?? -Infinity) >= began - awayWithin) return true
  const saidAt = machineSaidAt(other)
  return saidAt > heardAt + onItsWay && saidAt >= began - machineSpeaksWithin
}

/** Not later than the order. Whoever leads now saw another's on the record when the watch brought it; but none is given before the node is
 *  silent, and this replica heard for itself when that was. One that never heard it knows nothing. */
export function beganAt({ status }: Pick<Incident, 'status'>, node: NodeSeen, { id, term }: Attempt): Ms {
  const seenAt = node.firstSeen.get(`began ${id}`) ?? -Infinity
  return term === status.term ? seenAt : Math.min(seenAt - seenLate, node.beat?.at ?? -Infinity)
}

/** The latest word of a machine whose agent this replica does not hear. */
function machineSaidAt({ witnesses, probe, lease }: NodeSeen): Ms {
  const sealed = witnesses.filter(({ word, proven }) => word === 'hears' && proven).map(({ answeredAt }) => answeredAt)
  return Math.max(-Infinity, ...sealed, probe?.spokeAt ?? -Infinity, lease?.moved === true ? lease.movedAfter ?? -Infinity : -Infinity)
}

/** The latest instant at which the machine is known to have run: not what was sent by then, but what it was asked for by then. */
function livedAt({ beat, witnesses, lease }: NodeSeen): Ms {
  const sealed = witnesses.filter(({ word, proven }) => word === 'hears' && proven).map(({ askedAt }) => askedAt)
  return Math.max(beat?.answered?.issuedAt ?? -Infinity, ...sealed, lease?.moved === true ? lease.movedAfter ?? -Infinity : -Infinity)
}
