// The watchdogs that machines of a searched schedule may have, as an operator meets them.
import type { Chance } from '../chance.ts'
import type { WatchdogPlan } from '../watchdog.ts'
import type { Scene } from './scene.ts'

const known = 'i6300ESB timer'
const unknown = 'iTCO_wdt'

export const watchdogs = {
  'ten seconds': { identity: known, timeout: 10_000, fires: 'at once' },
  'half a minute': { identity: known, timeout: 30_000, fires: 'at once' },
  'of a kind that nobody measured': { identity: unknown, timeout: 10_000, fires: 'at twice its time-out' },
  'of a virtual machine': { identity: known, timeout: 10_000, fires: 'at once', virtual: true },
  'wrongly wired': { identity: unknown, timeout: 10_000, fires: 'never' },
} as const satisfies Readonly<Record<string, WatchdogPlan>>

export type WatchdogKind = keyof typeof watchdogs

/** Most of those that can prove anything. */
const drawn: readonly WatchdogKind[] = ['ten seconds', 'ten seconds', 'half a minute', 'of a kind that nobody measured', 'of a virtual machine', 'wrongly wired']

/** A watchdog proves where no device can: so the controllers often fall silent with their machines. */
export function drawWatchdog(chance: Chance, scene: Scene, plain: boolean): Scene {
  if (!chance.yes(0.25)) return scene
  const { givesUp: _, ...rest } = scene
  const unfed = !plain && scene.power === 'bmc' && chance.yes(0.6)
  return { ...rest, watchdog: chance.pick(drawn), ...(unfed ? { feed: 'machine' } : {}) }
}

/** Nothing makes a machine stand still and go on that does not say that it is a virtual one: docs/safety.md assumes it. */
export function mayStandStill({ watchdog }: Scene): boolean {
  return watchdog === undefined || 'virtual' in watchdogs[watchdog]
}
