// The last good fence ConfigMaps of nodes whose present ones have faults, kept by the leader where the next replica reads them: a
// ConfigMap of ours. They are kept by node, because of one node they were in force together; a text is well only beside those that it
// was read with. What stands unchanged in the cluster is kept as its digest alone, so that a typo in the template of five
// thousand nodes fits into one object.
import { createHash } from 'node:crypto'
import * as v from 'valibot'
import type { Ms, NodeName } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import type { Api, KubeObject } from './api.ts'
import { textData, type FenceConfigMap } from './fence-config.ts'
import { paths } from './kubernetes.ts'

export const keptName = 'holdfast-fence-in-force'

export type Good = ReadonlyMap<NodeName, readonly FenceConfigMap[]>
type Present = ReadonlyMap<string, FenceConfigMap>

export const keptKey = 'in-force.json'
/** In bytes: a ConfigMap holds a MiB. */
const longestKept = 900_000
/** What could not be written is written again. */
const againAfter: Ms = 5_000

/** Of each node its ConfigMaps: the number of a text, or name and digest of one that stands as it was. */
const keptSchema = v.object({
  texts: v.array(v.object({ name: v.string(), data: v.record(v.string(), v.string()) })),
  nodes: v.record(v.string(), v.array(v.union([v.number(), v.string()]))),
})
type Kept = v.InferOutput<typeof keptSchema>

export interface Packed {
  readonly text: string
  /** For which there was no room. */
  readonly left: readonly NodeName[]
}

export function pack(good: Good, present: Present, longest = longestKept): Packed {
  const kept: Kept = { texts: [], nodes: {} }
  const places = new Map<FenceConfigMap, number>()
  const left: NodeName[] = []
  let size = JSON.stringify(kept).length
  for (const [node, maps] of [...good].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const changed = maps.filter((map) => !stands(map, present))
    const fresh = changed.filter((map) => !places.has(map))
    const refs = maps.map((map) => (changed.includes(map) ? places.get(map) ?? kept.texts.length + fresh.indexOf(map) : reference(map)))
    const more = bytes({ [node]: refs }) + fresh.reduce((sum, map) => sum + bytes(map) + 1, 0)
    if (size + more > longest) {
      left.push(node)
      continue
    }
    size += more
    kept.nodes[node] = refs
    for (const map of fresh) places.set(map, kept.texts.push({ name: map.name, data: map.data }) - 1)
  }
  return { text: JSON.stringify(kept), left }
}

/** What nobody can read is nothing: then there is no last good one. */
export function unpack(text: string): { nodes(): readonly NodeName[]; of(node: NodeName, present: Present): readonly FenceConfigMap[] | undefined } {
  const read = v.safeParse(keptSchema, parsed(text))
  const { texts, nodes }: Kept = read.success ? read.output : { texts: [], nodes: {} }
  return {
    nodes: () => Object.keys(nodes),
    of(node, present) {
      if (!Object.hasOwn(nodes, node)) return undefined
      const maps = (nodes[node] ?? []).map((ref) => (typeof ref === 'number' ? texts[ref] : referred(ref, present)))
      return maps.some((map) => map === undefined) ? undefined : maps.filter((map) => map !== undefined)
    },
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function stands(map: FenceConfigMap, present: Present): boolean {
  const now = present.get(map.name)
  return now === map || (now !== undefined && reference(now) === reference(map))
}

/** Thousands are asked for in one go, and a ConfigMap that was seen is never changed in place. */
const references = new WeakMap<FenceConfigMap, string>()

function reference(map: FenceConfigMap): string {
  const known = references.get(map)
  if (known !== undefined) return known
  const entries = Object.entries(map.data).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const made = `${map.name} ${createHash('sha256').update(JSON.stringify(entries)).digest('hex').slice(0, 32)}`
  references.set(map, made)
  return made
}

function referred(ref: string, present: Present): FenceConfigMap | undefined {
  const map = present.get(ref.split(' ', 1)[0] ?? '')
  return map !== undefined && reference(map) === ref ? map : undefined
}

function bytes(value: object): number {
  return Buffer.byteLength(JSON.stringify(value))
}

export interface FencesKept {
  readonly nodes: () => readonly NodeName[]
  /** What the last good configuration of the node was made of. */
  of(node: NodeName, present: Present): readonly FenceConfigMap[] | undefined
  seen(object: KubeObject): void
  gone(): void
  /** The leader writes what is to be kept, where it does not stand there yet; true: it does. */
  keep(good: Good, present: Present): boolean
}

export interface FencesKeptOptions {
  readonly api: Api
  readonly clock: Clock
  readonly log: Log
  readonly namespace: string
}

export function fencesKept({ api, clock, log, namespace }: FencesKeptOptions): FencesKept {
  let held = unpack('')
  let text = ''
  let version: string | undefined
  let writing = false
  let notBefore: Ms = -Infinity
  let told = 0

  return {
    nodes: () => held.nodes(),
    of: (node, present) => held.of(node, present),
    seen(object) {
      text = textData(object)[keptKey] ?? ''
      version = object.metadata.resourceVersion
      held = unpack(text)
    },
    gone() {
      text = ''
      version = undefined
      held = unpack('')
    },
    keep(good, present) {
      if (writing || clock.now() < notBefore) return false
      const packed = pack(good, present)
      if (packed.left.length !== told) {
        told = packed.left.length
        if (told > 0) log.warn({ nodes: told }, 'there is no room to keep the last good fence configuration of some nodes: it ends with this replica')
      }
      if (packed.text === text || (good.size === 0 && version === undefined)) return true
      void write(packed.text)
      return false
    },
  }

  async function write(wanted: string): Promise<void> {
    writing = true
    const all = paths.configMaps(namespace)
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: keptName, namespace, ...(version === undefined ? {} : { resourceVersion: version }) }, data: { [keptKey]: wanted } }
    const answer = version === undefined ? await api.create<KubeObject>(all, body) : await api.replace<KubeObject>(`${all}/${keptName}`, body)
    writing = false
    // The watch brings what stands there now; until then nothing is written over it.
    notBefore = clock.now() + againAfter
    if (!answer.ok) log.info({ kind: answer.error.kind }, 'the last good fence configuration was not kept')
  }
}
