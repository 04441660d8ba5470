// Changing the taints of a node as a controller must: on what the API holds now, and only if nobody was faster.
import type { Api } from '../../coordinator/api.ts'
import type { NodeObject, StoredTaint } from '../objects.ts'

/** False: it could not be written this time; the caller's next turn tries again. */
export async function changeTaints(api: Api, name: string, change: (taints: readonly StoredTaint[]) => readonly StoredTaint[]): Promise<boolean> {
  for (let attempt = 0; attempt < 3; attempt++) {
    const node = await api.get<NodeObject>(`/api/v1/nodes/${name}`)
    if (!node.ok) return node.error.kind === 'notFound'
    const before = node.value.spec?.taints ?? []
    const after = change(before)
    if (JSON.stringify(after) === JSON.stringify(before)) return true
    const { resourceVersion } = node.value.metadata
    const written = await api.patch(`/api/v1/nodes/${name}`, 'merge', { metadata: { resourceVersion }, spec: { taints: after } })
    if (written.ok) return true
    if (written.error.kind !== 'conflict') return false
  }
  return false
}
