// A cluster that starts cold: nobody accepts a boot, because the coordinator is itself among the pods that wait. Then a gate may open by
// the API server's own word, read anew and not from a cache: this very boot is the one that the node's kubelet has posted, no taint of
// ours is on it, no incident of it is open. What cannot be read, or is missing, says no.
import { outOfServiceKey, quarantineKey } from './clear.ts'
import { sameBoot, type Boot } from './model.ts'

/** What the API server told of the agent's own node. */
export interface ClusterSaid {
  readonly bootId: string
  /** Keys of its taints. */
  readonly taints: readonly string[]
  readonly fences: readonly FenceSaid[]
}

export interface FenceSaid {
  readonly name: string
  readonly phase: string
  readonly proof?: { readonly kind: string; readonly boot: Boot }
  /** Whose permit is taken back before anything is proven. */
  readonly revoked?: { readonly boot: Boot }
}

export type ColdWord = { readonly clear: true } | { readonly clear: false; readonly reason: string }

export function coldWord(boot: Boot, said: ClusterSaid): ColdWord {
  if (said.bootId === '' || !sameBoot(boot, said.bootId)) return no('its kubelet has not told the API server of this boot yet')
  const taint = [quarantineKey, outOfServiceKey].find((key) => said.taints.includes(key))
  if (taint !== undefined) return no(`it bears ${taint}`)
  const open = said.fences.find(({ phase }) => phase !== 'Final')
  return open === undefined ? { clear: true } : no(`the incident ${open.name} is open`)
}

function no(reason: string): ColdWord {
  return { clear: false, reason }
}
