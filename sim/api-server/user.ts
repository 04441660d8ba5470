// Who sends requests.
/** Who asks, as authentication found. `may` narrows what he may do; without it he may do everything that his groups may. */
export interface User {
  readonly name: string
  readonly groups: readonly string[]
  readonly uid?: string
  readonly extra?: Readonly<Record<string, readonly string[]>>
  readonly may?: (verb: string, resource: string, subresource: string, namespace: string, name: string) => boolean
}

export const admin: User = { name: 'admin', groups: ['system:masters', 'system:authenticated'] }

export function nodeUser(nodeName: string): User {
  return { name: `system:node:${nodeName}`, groups: ['system:nodes', 'system:authenticated'] }
}
