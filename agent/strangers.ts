// Containers of pods that do not belong here, ended at once: their boot was fenced and lives, so each of them may run elsewhere by now. A
// static pod is its node's own, whatever the API server has of it. What cannot be stopped stays in the clean report.
import { isOfTheApi, type ContainerSeen } from '../core/mounts.ts'
import type { Ms } from '../core/model.ts'
import { isOlder } from './container-age.ts'
import type { AgentHost } from './host.ts'

const listWithin: Ms = 2_000
const stopWithin: Ms = 5_000

/** `before`: by the wall clock; what was made later is left alone. */
export async function stopStrangers(host: Pick<AgentHost, 'clock' | 'log' | 'containers' | 'stopContainer'>, belonging: ReadonlySet<string>, before: number): Promise<void> {
  const seen = await host.containers(listWithin).catch((error: unknown) => ({ failed: String(error) }))
  if ('failed' in seen) return host.log.error({ reason: seen.failed }, 'what must be stopped cannot be listed')
  const strangers = strangersAmong(seen, belonging, before, host.clock.wall())
  // A sandbox after its containers: to stop it takes them down too, more slowly.
  for (const sandbox of [false, true]) {
    await Promise.all(strangers.filter((one) => (one.sandbox === true) === sandbox).map(async (one) => {
      const fault = await host.stopContainer(one, stopWithin).catch((error: unknown) => String(error))
      const facts = { container: one.name, id: one.id, pod: one.pod }
      if (fault === undefined) host.log.warn(facts, 'stopped: its pod does not belong here any more')
      else host.log.error({ ...facts, reason: fault }, 'its pod does not belong here any more, and it could not be stopped')
    }))
  }
}

export function strangersAmong(seen: readonly ContainerSeen[], belonging: ReadonlySet<string>, before: number, now: number): readonly ContainerSeen[] {
  return seen.filter((one) => isOfTheApi(one.pod) && !belonging.has(one.pod) && isOlder(one, before, now))
}
