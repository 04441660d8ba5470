// Whatever a run shows to others: the words of each process below this one, all that the product logged, and every object that it
// wrote. No secret of a device may stand in any of it.
import type { ProgramEnd, ProgramRun, Programs } from '../../coordinator/host.ts'
import { overhear, type Overheard } from '../fence-agents/overheard.ts'
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

export interface Discreet extends Programs {
  /** Where one of the secrets was seen, in a few words: in an argument list while a program of ours ran, or in what it said. */
  slips(): readonly string[]
}

/** What a program of others does with a secret is its own affair: nobody listens while one runs. */
export function discreet(programs: Programs, secrets: readonly string[]): Discreet {
  const slips: string[] = []
  const running = { ours: 0, theirs: 0 }
  let overheard: Overheard | undefined
  const note = (place: string, text: string) => { if (secrets.some((secret) => text.includes(secret))) slips.push(`${place}: ${text.slice(0, 300)}`) }
  const listen = () => {
    const wanted = running.ours > 0 && running.theirs === 0
    if (wanted) overheard ??= overhear()
    else for (const { place, text } of overheard?.end() ?? []) if (place === 'argument list') note(place, text)
    if (!wanted) overheard = undefined
  }
  const counted = async (whose: 'ours' | 'theirs', run: ProgramRun): Promise<ProgramEnd> => {
    running[whose] += 1
    listen()
    try {
      return await programs.run(run)
    } finally {
      running[whose] -= 1
      listen()
    }
  }
  return {
    slips: () => slips,
    async run(run) {
      const whose = run.agent.startsWith('fence_') ? 'theirs' : 'ours'
      const end = await counted(whose, run)
      if (whose === 'ours') for (const text of [end.stdout, end.stderr, end.refused ?? '']) note(`said by ${run.agent}`, text)
      return end
    },
  }
}
