// What a beat makes of what is known of its node. Most beats change a number, and nothing else; whatever is worth a decision is told.
import type { Beat, Before, NodeBoot, Places } from '../core/beat.ts'
import type { BeatSeen, Boot, Ms, NodeName } from '../core/model.ts'

/** `boot`: the first beat of a boot; `back`: the first beat after a goodbye. */
export type BeatChange = 'boot' | 'back' | 'watchdog' | 'revokes' | 'kubelet' | 'gate' | 'permit' | 'health' | 'report' | 'goodbye' | 'answer'

export type Changing<T> = { -readonly [K in keyof T]: T[K] }

/** What the hello on its link said, and where from. */
interface Greeted {
  readonly boot: Boot
  readonly from: string
  readonly bootedAt: Ms
  readonly before: Before
  readonly places: Places | undefined
}

/** Shorter gaps between two beats are the network's; no profile suspects sooner. */
export const lapseFrom: Ms = 1_500

export function takeBeat(row: { seen: Changing<BeatSeen> | undefined }, link: Greeted, beat: Beat, now: Ms, node: NodeName, changed: (node: NodeName, what: BeatChange) => void): void {
  const { seen } = row
  if (seen !== undefined && seen.boot === link.boot) return goesOn(seen, link, beat, now, node, changed)
  const { boot, bootedAt, from, before, places } = link
  const { kubelet, gate, permit, runtime, pressure, storage, vitals } = beat
  const health = { ...(runtime === undefined ? {} : { runtime }), ...(pressure === undefined ? {} : { pressure }), ...(storage === undefined ? {} : { storage }), ...(vitals === undefined ? {} : { vitals }) }
  row.seen = { boot, bootedAt, since: now, at: now, from, kubelet, ...(gate === undefined ? {} : { gate, gateSince: now }), ...(permit === undefined ? {} : { permit }), ...health, ...before, ...(places === undefined ? {} : { places }) }
  changed(node, 'boot')
}

function goesOn(seen: Changing<BeatSeen>, { from }: Greeted, { kubelet, gate, permit, runtime, pressure, storage, vitals }: Beat, now: Ms, node: NodeName, changed: (node: NodeName, what: BeatChange) => void): void {
  if (now - seen.at >= lapseFrom && seen.goodbye === undefined) seen.lapse = { from: seen.at, to: now }
  seen.at = now
  seen.from = from
  const other = seen.runtime !== runtime || seen.storage !== storage
  if (runtime !== undefined) seen.runtime = runtime
  if (pressure !== undefined) seen.pressure = pressure
  if (storage !== undefined) seen.storage = storage
  // A look that came to nothing leaves none: an old one must not be taken for the latest.
  if (vitals !== undefined) seen.vitals = vitals
  else if (seen.vitals !== undefined) seen.vitals = undefined
  if (other) changed(node, 'health')
  if (seen.kubelet !== kubelet) {
    seen.kubelet = kubelet
    changed(node, 'kubelet')
  }
  if (seen.gate !== gate) {
    if (gate === undefined) seen.gate = undefined
    else Object.assign(seen, { gate, gateSince: now })
    changed(node, 'gate')
  }
  if (permit !== undefined && seen.permit !== permit) {
    seen.permit = permit
    changed(node, 'permit')
  }
  if (seen.goodbye !== undefined) {
    seen.goodbye = undefined
    changed(node, 'back')
  }
}

/** A hello holds more, its token among it, and that is not kept. */
export function beforeOf({ before, beforeBoot }: Before): Before {
  return { ...(before === undefined ? {} : { before }), ...(beforeBoot === undefined ? {} : { beforeBoot }) }
}

/** What a member permits no more, each with when it first said so. */
export function sinceFirst({ revokes = [] }: BeatSeen, boots: readonly NodeBoot[], now: Ms): NonNullable<BeatSeen['revokes']> {
  const known = new Map(revokes.map(({ node, boot, at }) => [`${node} ${boot}`, at]))
  return boots.map((one) => ({ ...one, at: known.get(`${one.node} ${one.boot}`) ?? now }))
}
