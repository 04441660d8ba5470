// Whatever a run shows to others: the words of each process below this one, all that the product logged, and every object that it
// wrote. No secret of a device may stand in any of it.
import type { Overheard } from '../fence-agents/overheard.ts'
import type { Cluster } from './cluster.ts'

/** What the product writes, and what people read; ConfigMaps and Secrets are the operator's own. */
const written = ['nodefences.holdfast.dev', 'noderecords.holdfast.dev', 'holdfastpolicies.holdfast.dev', 'events', 'nodes', 'pods', 'leases.coordination.k8s.io']

/** Each place in which one of them stands, in a few words. Ends the listening. */
export function placesOf(secrets: readonly string[], overheard: Overheard, cluster: Cluster): readonly string[] {
  const places: (readonly [string, string])[] = [
    ...overheard.end().filter(({ place }) => place === 'argument list').map(({ place, text }) => [place, text] as const),
    ...cluster.world.truth.entries.filter(({ what }) => what === 'log').map((entry) => ['log', JSON.stringify(entry.facts)] as const),
    ...written.flatMap((kind) => cluster.objects(kind).map((object) => [`${kind} ${object.metadata.name}`, JSON.stringify(object)] as const)),
  ]
  return places.flatMap(([place, text]) => (secrets.some((secret) => text.includes(secret)) ? `${place}: ${text.slice(0, 300)}` : []))
}
