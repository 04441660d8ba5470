// Whatever a run shows to others: the words of each process below this one, all that the product logged, and every object that it
// wrote. No secret of a device may stand in any of it.
import { readFileSync, readdirSync } from 'node:fs'
import type { Cluster } from './cluster.ts'

export interface Overheard {
  /** Each place in which one of them stands, in a few words. Ends the listening. */
  found(cluster: Cluster, secrets: readonly string[]): readonly string[]
  /** How many argument lists were seen, and which programs. */
  readonly programs: ReadonlySet<string>
}

const lookEvery = 5
/** What the product writes, and what people read; ConfigMaps and Secrets are the operator's own. */
const written = ['nodefences.holdfast.dev', 'noderecords.holdfast.dev', 'holdfastpolicies.holdfast.dev', 'events', 'nodes', 'pods', 'leases.coordination.k8s.io']

export function overhear(): Overheard {
  const lists = new Set<string>()
  const programs = new Set<string>()
  const looks = setInterval(() => {
    for (const pid of below(process.pid)) {
      const words = read(`/proc/${pid}/cmdline`)
      if (words === '') continue
      lists.add(words.replaceAll('\0', ' '))
      for (const word of words.split('\0')) programs.add(word.slice(word.lastIndexOf('/') + 1))
    }
  }, lookEvery)
  return {
    programs,
    found(cluster, secrets) {
      clearInterval(looks)
      const places: (readonly [string, string])[] = [
        ...[...lists].map((list) => ['argument list', list] as const),
        ...cluster.world.truth.entries.filter(({ what }) => what === 'log').map((entry) => ['log', JSON.stringify(entry.facts)] as const),
        ...written.flatMap((kind) => cluster.objects(kind).map((object) => [`${kind} ${object.metadata.name}`, JSON.stringify(object)] as const)),
      ]
      return places.flatMap(([place, text]) => (secrets.some((secret) => text.includes(secret)) ? `${place}: ${text.slice(0, 300)}` : []))
    },
  }
}

function below(pid: number): readonly number[] {
  const own = children(pid)
  return [...own, ...own.flatMap(below)]
}

function children(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((task) => read(`/proc/${pid}/task/${task}/children`).split(' ').filter((word) => word !== '').map(Number))
  } catch {
    return [] // it has just ended
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return '' // likewise
  }
}
