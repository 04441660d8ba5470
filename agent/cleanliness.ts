// Whether the node is clean, looked at when somebody asks and until the answer is settled. What belongs is known for the
// moment of the question only, so an old list must not go on calling newer pods leftovers.
import type { Check, CleanReport, Leftover } from '../core/beat.ts'
import { newsTakes } from '../core/clean-up.ts'
import type { Ms } from '../core/model.ts'
import { bootReport, cleanReport, isOfCsi, withName, type HostTables } from '../core/mounts.ts'
import { withDeadline } from '../edge/clock.ts'
import { cleaner } from './clean-up.ts'
import { isOlder, withoutProcess } from './container-age.ts'
import type { AgentHost } from './host.ts'
import { hidesMounts } from './kubelet-root.ts'
import { stopStrangers } from './strangers.ts'

type Wish = Pick<Check, 'stop' | 'cleanUp'>

export interface Cleanliness {
  report(): CleanReport
  /** One look without a list of what belongs: whether anything is older than this boot. */
  alone(bootedAt: number): Promise<CleanReport>
  /** Looks at once, and tells in any case. `stop`: whatever runs of other pods is stopped first. `cleanUp`: what is left over is ended in its time. */
  check(pods: readonly string[], wish?: Wish, list?: string): void
  stop(): void
}

const lookEvery: Ms = 2_000
/** Kubelet mounts for bound pods in its first second and cleans up in the seconds after: a node is watched a while after it was first found clean. What is found then
 *  may be a pod of after the list, so it makes that no longer. */
const settledAfter: Ms = 30_000
/** While not clean. Whoever waits for it asks again every five seconds, and each question begins anew. */
const watchedFor: Ms = 60_000
/** What runs here may run elsewhere too, and whoever asked for its end may be gone: what does not stop is gone after for longer. */
const stoppedFor: Ms = 1_800_000
const readWithin: Ms = 3_000
/** Sooner, so that the report says who did not answer. */
const runtimeWithin: Ms = 2_000

export function watchCleanliness(
  host: Pick<AgentHost, 'clock' | 'log' | 'read' | 'asMounted' | 'podFolders' | 'containers' | 'stopContainer' | 'endLeftover' | 'bareStagings' | 'mountTables' | 'loopDevices' | 'csiVolume'>, kubeletRoot: string, told: (report: CleanReport, list: string | undefined) => void,
): Cleanliness {
  const { clock, log } = host
  let latest: CleanReport = { state: 'unknown', reason: 'no list of the pods that belong here was received' }
  let said = JSON.stringify(latest)
  let round = new AbortController()
  let reading: Promise<CleanReport> | undefined
  let since: ReadonlyMap<string, number> = new Map()
  const cleaning = cleaner(host)

  return {
    report: () => latest,
    alone: (bootedAt) => withDeadline(clock, readWithin, late, () => alone(bootedAt).catch(unreadable)),
    check(pods, wish = {}, list = undefined) {
      round.abort()
      round = new AbortController()
      void watch(new Set(pods), wish, list, round.signal)
    },
    stop: () => round.abort(),
  }

  async function watch(belonging: ReadonlySet<string>, { stop, cleanUp }: Wish, list: string | undefined, signal: AbortSignal): Promise<void> {
    const began = clock.now()
    const before = clock.wall() - newsTakes
    let cleanSince: Ms | undefined
    for (let first = true; !signal.aborted; first = false) {
      if (stop === true) await stopStrangers(host, belonging, before)
      if (signal.aborted) return
      const report = await look(belonging)
      if (signal.aborted) return
      tell(report, list, first)
      // Not waited for: a report must not hang with a mount.
      if (cleanUp === true) void tables(belonging).then((found) => cleaning.turn(found, belonging, began)).catch(() => undefined) // it is tried again
      const now = clock.now()
      if (report.state === 'clean') cleanSince ??= now
      if (now - (cleanSince ?? now) > settledAfter || now - began > (stop === true ? stoppedFor : watchedFor)) return
      await clock.wait(lookEvery, signal)
    }
  }

  async function alone(bootedAt: number): Promise<CleanReport> {
    const found = await tables()
    const { containers, mountTables = [] } = found
    if ('failed' in containers) return bootReport(found, bootedAt)
    // What is left after these two is older, whatever its stamp says.
    const older = withoutProcess(containers, mountTables).filter((one) => isOlder(one, bootedAt, clock.wall()))
    return bootReport({ ...found, containers: older }, Infinity)
  }

  function tell(report: CleanReport, list: string | undefined, asked: boolean): void {
    const text = JSON.stringify(report)
    latest = report
    if (!asked && text === said) return
    if (text !== said) log.info({ report }, 'clean report changed')
    said = text
    told(report, list)
  }

  /** A disk that hangs must not pile up readers: the next look waits for the one that never came back. */
  async function look(belonging: ReadonlySet<string>): Promise<CleanReport> {
    const mine = reading ?? read(belonging)
    const shared = reading !== undefined
    reading = mine
    mine.finally(() => { if (reading === mine) reading = undefined }).catch(() => undefined) // it is judged below
    const report = await withDeadline(clock, readWithin, late, () => mine)
    // An earlier reading was made for another list of pods: it only tells that the disk answers again.
    return shared && report !== late ? look(belonging) : report
  }

  async function read(belonging: ReadonlySet<string>): Promise<CleanReport> {
    try {
      return standing(await named(cleanReport(await tables(belonging)), host))
    } catch (error) {
      return unreadable(error)
    }
  }

  /** With since when each is left over, and what kept it from being ended. A look that tells nothing forgets nothing. */
  function standing(report: CleanReport): CleanReport {
    if (report.state === 'unknown') return report
    const leftovers = report.state === 'dirty' ? report.leftovers : []
    since = new Map(leftovers.map((one) => [key(one), since.get(key(one)) ?? Math.floor(clock.wall())]))
    return report.state === 'clean' ? report : { state: 'dirty', leftovers: leftovers.map((one) => cleaning.named({ ...one, since: since.get(key(one)) ?? 0 })) }
  }

  async function tables(belonging?: ReadonlySet<string>): Promise<HostTables> {
    const [mountinfo, root, podFolders, containers, mountTables, loopDevices] = await Promise.all([
      host.read('mounts'), host.asMounted(kubeletRoot), host.podFolders(), host.containers(runtimeWithin), host.mountTables(), host.loopDevices(),
    ])
    if (root === undefined) throw new Error(`where the host has ${kubeletRoot} cannot be told`)
    const found = { mountinfo, podFolders, containers, mountTables, loopDevices, kubeletRoot: root, belonging }
    if (hidesMounts(found)) throw new Error(`pods that belong here have their folders in ${root}, and the host has nothing mounted there`)
    return found
  }
}

function key({ kind, path }: Leftover): string {
  return `${kind} ${path}`
}

const late: CleanReport = { state: 'unknown', reason: `the host's tables could not be read within ${readWithin} ms` }

function unreadable(error: unknown): CleanReport {
  return { state: 'unknown', reason: `the host's tables could not be read: ${String(error).slice(0, 200)}` }
}

/** A staging mount bears its volume's name only in a digest, and a pod's mount not its driver's; kubelet keeps both beside them. */
async function named(report: CleanReport, { csiVolume }: Pick<AgentHost, 'csiVolume'>): Promise<CleanReport> {
  if (report.state !== 'dirty') return report
  const leftovers = await Promise.all(report.leftovers.map(async (leftover): Promise<Leftover> => {
    const text = isOfCsi(leftover.path) ? await csiVolume(leftover.path) : undefined
    return text === undefined ? leftover : withName(leftover, text)
  }))
  return { state: 'dirty', leftovers }
}
