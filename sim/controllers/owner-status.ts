// What an owner of pods tells of them: counts, and which generation of its spec they are of. Who waits for a rollout reads both,
// and believes no count before the generation is his.
import type { Api, KubeObject } from '../../coordinator/api.ts'

/** A count of pods, or of nodes. Undefined: the API leaves it out when it is zero. */
export type Counts = Readonly<Record<string, number | undefined>>

/** Written only where it differs from what stands there. */
export async function tellStatus(api: Pick<Api, 'patch'>, collection: string, owner: KubeObject & { status?: object }, counts: Counts): Promise<void> {
  const wanted: Counts = { observedGeneration: owner.metadata.generation, ...counts }
  const known: Counts = { ...owner.status } // of the kinds told here every field that is compared is a number
  if (Object.entries(wanted).every(([field, value]) => known[field] === value)) return
  const status = Object.fromEntries(Object.entries(wanted).map(([field, value]) => [field, value ?? null]))
  await api.patch(`/apis/apps/v1/namespaces/${owner.metadata.namespace}/${collection}/${owner.metadata.name}/status`, 'merge', { status })
}

/** As the API's `omitempty`. */
export function some(count: number): number | undefined {
  return count === 0 ? undefined : count
}
