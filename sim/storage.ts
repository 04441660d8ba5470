// The storage behind the CSI driver, and the data plane's truth. It refuses nothing: a volume takes a write from whoever sends
// one, attached or not, because real networks of disks have been seen to; only what is cut off from it does not arrive. What keeps two
// writers apart must therefore be elsewhere, and this file is where its failure would show. Volumes that lie apart are the exception: their
// driver is one of those that are safe to detach, and shuts out whoever is detached.
import type { Ms, NodeName } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'

export interface Writer {
  readonly node: NodeName
  /** The boot that wrote, as machine.ts numbers it: two boots of one machine are two writers. */
  readonly boot: string
  /** `namespace/name`. */
  readonly pod: string
  readonly podUid: string
}

/** Writes of one writer into one volume without a gap of note. */
export interface Stretch extends Writer {
  readonly volume: string
  readonly firstAt: Ms
  lastAt: Ms
  writes: number
  /** `mount`: a journal replayed at mount. Nobody asked for it, and it is a write. */
  readonly kind: 'data' | 'mount'
  /** Writes that came while the storage no longer had the volume attached to the writer's node. */
  late: { readonly firstAt: Ms; lastAt: Ms; writes: number } | undefined
}

export interface Storage {
  /** `apart`: reached by a way that no port of the storage network shuts, and written only where it is attached. `shared`: it may be attached to several
   *  nodes at once, and is written from all of them. */
  addVolume(volume: string, of?: { readonly apart?: boolean; readonly shared?: boolean }): void
  attach(volume: string, node: NodeName): void
  detach(volume: string, node: NodeName): void
  attachedTo(volume: string): readonly NodeName[]
  /** Whether the node is not cut off from it, or from this volume of it. */
  reaches(node: NodeName, volume?: string): boolean
  /** Whether it takes writes only where it is attached, and is not taken from whoever writes, nor given to another one meanwhile. */
  guards(volume: string): boolean
  write(volume: string, writer: Writer, kind: Stretch['kind']): void
  /** The same, for who writes all day: each call of the answer is a write. */
  pen(volume: string, writer: Writer, kind: Stretch['kind']): () => void
  /** Ordered by first write. */
  readonly log: readonly Stretch[]
  /** When the volume was last detached from the node; undefined: never, or attached again since. */
  releasedAt(volume: string, node: NodeName): Ms | undefined
  /** Stretches that a write extended within the span. */
  writersOf(volume: string, within: Ms): readonly Stretch[]
}

/** A writer that was silent longer begins a new stretch, so that a pause is seen as one. */
const gap: Ms = 1_000

export function createStorage(
  clock: Pick<Clock, 'now'>, note: (what: string, facts: Readonly<Record<string, unknown>>) => void, port: (node: NodeName) => boolean = () => true,
): Storage {
  const attachments = new Map<string, Map<NodeName, Ms>>()
  const apart = new Set<string>()
  const many = new Set<string>()
  const released = new Map<string, Ms>()
  const log: Stretch[] = []
  const current = new Map<string, Stretch>()

  const attachedTo = (volume: string) => {
    const nodes = attachments.get(volume)
    if (nodes === undefined) throw new Error(`the storage has no volume ${volume}`)
    return nodes
  }

  const reaches = (node: NodeName, volume = ''): boolean => apart.has(volume) || port(node)

  return {
    log, reaches, guards: (volume) => apart.has(volume) && !many.has(volume),
    addVolume(volume, of = {}) {
      if (of.apart === true) apart.add(volume)
      if (of.shared === true) many.add(volume)
      if (!attachments.has(volume)) attachments.set(volume, new Map())
    },
    attach(volume, node) {
      attachedTo(volume).set(node, clock.now())
      released.delete(`${volume} ${node}`)
      note('volume attached', { volume, node })
    },
    detach(volume, node) {
      if (!attachedTo(volume).delete(node)) return
      released.set(`${volume} ${node}`, clock.now())
      note('volume released', { volume, node })
    },
    attachedTo: (volume) => [...attachedTo(volume).keys()],
    releasedAt: (volume, node) => released.get(`${volume} ${node}`),
    writersOf: (volume, within) => log.filter((stretch) => stretch.volume === volume && clock.now() - stretch.lastAt <= within),
    write: (volume, writer, kind) => land(keyOf(volume, writer, kind), volume, writer, kind),
    pen(volume, writer, kind) {
      const key = keyOf(volume, writer, kind)
      return () => land(key, volume, writer, kind)
    },
  }

  function keyOf(volume: string, writer: Writer, kind: Stretch['kind']): string {
    return `${volume} ${writer.node} ${writer.boot} ${writer.podUid} ${kind}`
  }

  function land(key: string, volume: string, writer: Writer, kind: Stretch['kind']): void {
    if (!reaches(writer.node, volume) || (apart.has(volume) && !attachedTo(volume).has(writer.node))) return
    const now = clock.now()
    let stretch = current.get(key)
    if (stretch === undefined || now - stretch.lastAt > gap) {
      stretch = { ...writer, volume, kind, firstAt: now, lastAt: now, writes: 0, late: undefined }
      current.set(key, stretch)
      log.push(stretch)
      note(kind === 'mount' ? 'volume mounted and written' : 'volume written', { volume, node: writer.node, boot: writer.boot, pod: writer.pod, uid: writer.podUid })
    }
    stretch.lastAt = now
    stretch.writes++
    if (attachedTo(volume).has(writer.node)) return
    if (stretch.late === undefined) {
      stretch.late = { firstAt: now, lastAt: now, writes: 0 }
      note('volume written after its release', { volume, node: writer.node, boot: writer.boot, pod: writer.pod, uid: writer.podUid })
    }
    stretch.late.lastAt = now
    stretch.late.writes++
  }
}
