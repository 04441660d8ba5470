// How the boot before this one ended, by a mark on disk that only an orderly shutdown leaves. It is evidence beside others and never the
// only one: where the disk was full, read-only or new, nothing is known, and that is not "in order". A boot that could not write leaves the
// mark of an older one in its place, so a mark is told with the boot that it is of, and whoever knows of a later one does not go by it.
import type { Before, BootEnd } from '../core/beat.ts'
import type { Boot, Ms } from '../core/model.ts'
import { withDeadline } from '../edge/clock.ts'
import type { AgentHost } from './host.ts'

export interface BootMark {
  /** Empty: no mark of an earlier boot was found. */
  readonly told: Before
  /** The machine shuts down in good order. */
  shutDown(): Promise<void>
}

/** How the boot before that one ended, too, for an agent that is started again within it. */
interface Mark extends Before {
  readonly boot: Boot
  readonly ended: boolean
}

const memory = 'boot.json'
/** A disk that hangs delays no beat by more. */
const diskWithin: Ms = 2_000

export async function markBoot(host: Pick<AgentHost, 'clock' | 'log' | 'disk'>, boot: Boot): Promise<BootMark> {
  const { clock, log, disk } = host
  const text = await withDeadline(clock, diskWithin, undefined, () => disk.load(memory)).catch(() => undefined) // a disk that cannot be read tells nothing
  const told = toldBy(readMark(text), boot)
  await write({ boot, ended: false, ...told })
  return { told, shutDown: () => write({ boot, ended: true, ...told }) }

  async function write(mark: Mark): Promise<void> {
    const written = await withDeadline(clock, diskWithin, 'the disk did not answer', () => disk.save(memory, JSON.stringify(mark))).catch((error: unknown) => String(error))
    if (written !== undefined) log.warn({ reason: written }, 'the mark of this boot could not be written: the next one will not know how it ended')
  }
}

function toldBy(mark: Mark | undefined, boot: Boot): Before {
  if (mark === undefined) return {}
  const { boot: markedBoot, ended, ...told } = mark
  return markedBoot === boot ? told : { before: ended ? 'shut down' : 'cut off', beforeBoot: markedBoot }
}

function readMark(text: string | undefined): Mark | undefined {
  let value: unknown
  try {
    value = JSON.parse(text ?? 'null')
  } catch {
    return undefined // cut short, or not ours
  }
  if (typeof value !== 'object' || value === null || !('boot' in value) || typeof value.boot !== 'string' || !('ended' in value)) return undefined
  const before = 'before' in value ? ends.find((end) => end === value.before) : undefined
  const beforeBoot = 'beforeBoot' in value && typeof value.beforeBoot === 'string' ? { beforeBoot: value.beforeBoot } : {}
  return { boot: value.boot, ended: value.ended === true, ...(before === undefined ? {} : { before, ...beforeBoot }) }
}

const ends = ['shut down', 'cut off'] as const satisfies readonly BootEnd[]
