// Where the replicas are: by name at the start and when all links are lost, by the permits in between, and by what was
// remembered on disk when neither speaks (a cluster that starts cold has no DNS).
import { mostReplicas } from '../core/frame.ts'
import type { Ms } from '../core/model.ts'
import { withDeadline } from '../edge/clock.ts'
import type { AgentHost } from './host.ts'

export interface Replicas {
  /** Looks for them until the signal aborts. */
  run(): Promise<void>
  /** What a permit says: all replicas there are. */
  told(addresses: readonly string[]): void
}

export interface ReplicasOptions {
  readonly host: Pick<AgentHost, 'clock' | 'chance' | 'log' | 'disk' | 'resolveReplicas'>
  readonly linked: () => boolean
  readonly found: (addresses: readonly string[]) => void
  readonly signal: AbortSignal
}

const resolveWithin: Ms = 5_000
/** Without a link: soon again. With one the permits tell, and five thousand agents must not wear out the name server. */
const resolveAlone: Ms = 5_000
const resolveLinked: Ms = 600_000
const memory = 'replicas.json'

export function recallReplicas({ host, linked, found, signal }: ReplicasOptions): Replicas {
  const { clock, log } = host
  let resolved: readonly string[] = []
  let permitted: readonly string[] = []
  let remembered: readonly string[] = []

  return {
    async run() {
      remembered = readAddresses(await host.disk.load(memory).catch(() => undefined)) // a disk that cannot be read remembers nothing
      tell()
      while (!signal.aborted) {
        await resolve()
        // Short waits, so that the loss of the last link is noticed soon; each costs one timer.
        for (let waited = 0; waited < (linked() ? resolveLinked : resolveAlone) && !signal.aborted; waited += resolveAlone) {
          await clock.wait(resolveAlone * (0.5 + host.chance()), signal)
        }
      }
    },
    told(addresses) {
      if (addresses.length === 0 || same(addresses, permitted)) return
      permitted = addresses
      remembered = addresses
      host.disk.save(memory, JSON.stringify(addresses)).catch((error: unknown) => log.warn({ reason: String(error) }, 'the replicas could not be remembered on disk'))
      tell()
    },
  }

  async function resolve(): Promise<void> {
    const names = await withDeadline(clock, resolveWithin, undefined, () => host.resolveReplicas()).catch(() => undefined) // asked again soon
    if (names === undefined || names.length === 0) return
    resolved = names
    tell()
  }

  function tell(): void {
    if (!signal.aborted) found([...new Set([...permitted, ...resolved, ...remembered])].slice(0, mostReplicas))
  }
}

function same(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((address, index) => address === other[index])
}

/** What an earlier run wrote, or anything else that a disk may hold. */
function readAddresses(text: string | undefined): readonly string[] {
  try {
    const value: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(value) ? value.filter((item) => typeof item === 'string' && item.length < 256).slice(0, mostReplicas) : []
  } catch {
    return [] // remembered nothing: the names are asked
  }
}
