// How old a container is. Its runtime stamps it with the wall clock of then, and that is a clock which is set: at each boot whose hardware clock was wrong, by hand, by
// whoever keeps it right. So no decision hangs on the stamp alone.
import type { ContainerSeen, MountTable } from '../core/mounts.ts'
import type { Ms } from '../core/model.ts'

/** A stamp is finer than our reading of the clock, and that is set back by little again and again: what was made just now is not of the future. */
const slack: Ms = 1_000

/** What seems to be made only in the future was made before the clock was set back, and nobody knows how long: it counts as old, or it would go on until then.
 *  `before`, `now`: by the wall clock. */
export function isOlder({ since = 0 }: ContainerSeen, before: number, now: number): boolean {
  return since < before || since > now + slack
}

/** Those of which only their stamps can tell that they are of this boot. A pod that has a process is: processes end with the boot that began them. */
export function withoutProcess(containers: readonly ContainerSeen[], tables: readonly MountTable[]): readonly ContainerSeen[] {
  const living = new Set(tables.map(({ pod }) => pod))
  return containers.filter(({ pod }) => !living.has(pod))
}
