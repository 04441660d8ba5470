// Judges of the data plane: they know only what the storage took and what the machines ran, nothing of any decision.
import type { Ms } from '../core/model.ts'
import type { Stretch } from './storage.ts'

/** A boot of a node that had a part in it, and the pod that it had there. */
export interface Party {
  readonly node: string
  readonly boot: string
  readonly podUid?: string
}

export interface DoubleWriters {
  readonly volume: string
  /** The earlier one, still writing... */
  readonly one: string
  /** ...when this one had begun. */
  readonly other: string
  /** Both, in that order. */
  readonly parties: readonly Party[]
  readonly from: Ms
  readonly until: Ms
}

export interface LateWriter {
  readonly volume: string
  readonly writer: string
  readonly parties: readonly Party[]
  readonly from: Ms
  readonly until: Ms
  readonly writes: number
}

/** Two boots wrote one volume in turn where one of them should have been over: a writer that writes after another boot's
 *  first write, and had begun before it. A volume that moved, and later moved back, is two sessions of the first writer. */
export function twoWriters(log: readonly Stretch[]): DoubleWriters[] {
  return byVolume(log).flatMap(([volume, stretches]) => {
    const sessions = sessionsOf(stretches)
    return sessions.flatMap((one, index) => sessions.slice(index + 1).flatMap((other) => {
      if (one.node === other.node && one.boot === other.boot) return []
      const [first, second] = one.firstAt <= other.firstAt ? [one, other] : [other, one]
      if (first.lastAt <= second.firstAt) return []
      return [{ volume, one: nameOf(first), other: nameOf(second), parties: [partyOf(first), partyOf(second)], from: second.firstAt, until: Math.min(first.lastAt, second.lastAt) }]
    }))
  })
}

/** Writes that landed when the storage had already taken the volume from the writer's node: not yet harm, and one mount away
 *  from it. */
export function wroteAfterRelease(log: readonly Stretch[]): LateWriter[] {
  return log.flatMap((stretch) => (stretch.late === undefined ? [] : [{
    volume: stretch.volume, writer: nameOf(stretch), parties: [partyOf(stretch)], from: stretch.late.firstAt, until: stretch.late.lastAt, writes: stretch.late.writes,
  }]))
}

/** A run of a container, as the machines know it. */
export interface Running {
  readonly pod: string
  readonly podUid: string
  readonly node: string
  readonly boot: string
  readonly startedAt: Ms
  /** Undefined: still running. */
  endedAt: Ms | undefined
  /** Its name is an identity that must not run twice (a StatefulSet's). */
  readonly identity: boolean
}

export interface Twins {
  readonly pod: string
  readonly one: string
  readonly other: string
  readonly parties: readonly Party[]
  readonly from: Ms
  readonly until: Ms | undefined
}

/** Two containers of one identity at one time. `shut`: whether a node was cut off from its storage in all that time, and so its
 *  container from all that it shares with the other; which of the two began later matters not, since a kubelet may start one again. */
export function twins(runs: readonly Running[], shut: (node: string, from: Ms, until: Ms | undefined) => boolean = () => false): Twins[] {
  const identities = runs.filter((run) => run.identity)
  return identities.flatMap((one, index) => identities.slice(index + 1).flatMap((other) => {
    if (one.pod !== other.pod || one.podUid === other.podUid) return []
    const [first, second] = one.startedAt <= other.startedAt ? [one, other] : [other, one]
    if (first.endedAt !== undefined && first.endedAt <= second.startedAt) return []
    const ends = [first.endedAt, second.endedAt].filter((end) => end !== undefined)
    const until = ends.length === 0 ? undefined : Math.min(...ends)
    if ([first, second].some(({ node }) => shut(node, second.startedAt, until))) return []
    return [{
      pod: one.pod, one: `${first.node} ${first.podUid}`, other: `${second.node} ${second.podUid}`,
      parties: [partyOf(first), partyOf(second)], from: second.startedAt, until,
    }]
  }))
}

function byVolume(log: readonly Stretch[]): [string, Stretch[]][] {
  return Object.entries(Object.groupBy(log, ({ volume }) => volume)).map(([volume, stretches]) => [volume, stretches ?? []])
}

interface Session { readonly node: string; readonly boot: string; readonly podUid: string; readonly pod: string; readonly firstAt: Ms; lastAt: Ms }

/** All that one pod of one boot wrote into the volume: its pauses do not end it (a frozen machine goes on where it was), but
 *  two pods of one node are two sessions, so a volume may go away from a node and come back. */
function sessionsOf(stretches: readonly Stretch[]): Session[] {
  const sessions = new Map<string, Session>()
  for (const stretch of stretches) {
    const key = `${stretch.node} ${stretch.boot} ${stretch.podUid}`
    const session = sessions.get(key)
    if (session === undefined) sessions.set(key, { ...stretch })
    else session.lastAt = Math.max(session.lastAt, stretch.lastAt)
  }
  return [...sessions.values()]
}

function partyOf({ node, boot, podUid }: Required<Party>): Party {
  return { node, boot, podUid }
}

function nameOf(writer: Pick<Stretch, 'node' | 'boot' | 'pod' | 'podUid'>): string {
  return `${writer.pod} (${writer.podUid}) on ${writer.node}, boot ${writer.boot}`
}
