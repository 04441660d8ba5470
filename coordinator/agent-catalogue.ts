// What the installed fence programs say of themselves, each asked once, when the first configuration names it. One that says nothing that can
// be read is unknown for as long as this replica lives: its audit tells what is wrong with it. One that is not there, or did not come to say
// in time, as on a machine that has just booted, is unknown for now: whoever names it next has it asked again, and waits for it no more.
import { readMetadata, type AgentMetadata } from '../core/agent-metadata.ts'
import type { Log } from '../edge/log.ts'

export interface AgentCatalogue {
  /** `pending`: it is being asked, and learned() of whoever made this is called when it has answered. */
  of(agent: string): AgentMetadata | 'pending' | 'unknown'
}

export interface AgentCatalogueOptions {
  readonly log: Log
  /** Undefined: it did not come to say anything. */
  describe(agent: string): Promise<string | undefined>
  learned(): void
}

export function agentCatalogue({ log, describe, learned }: AgentCatalogueOptions): AgentCatalogue {
  const known = new Map<string, AgentMetadata | 'pending' | 'unknown'>()
  const unheard = new Set<string>()
  const ask = async (agent: string): Promise<void> => {
    const said = await describe(agent)
    const read = readMetadata(said ?? '')
    if (said === undefined) unheard.add(agent)
    if (read === undefined && known.get(agent) === 'pending') log.warn({ agent }, 'a fence program does not say what it is')
    known.set(agent, read ?? 'unknown')
    if (read !== undefined) log.info({ agent, parameters: [...read.values()].map(({ name, required }) => (required ? `${name} (required)` : name)) }, 'fence program known')
    learned()
  }
  return {
    of(agent) {
      const found = known.get(agent)
      if (unheard.delete(agent)) void ask(agent)
      if (found !== undefined) return found
      known.set(agent, 'pending')
      void ask(agent)
      return 'pending'
    },
  }
}

/** Where programs are not asked, none is typed. */
export const noCatalogue: AgentCatalogue = { of: () => 'unknown' }
