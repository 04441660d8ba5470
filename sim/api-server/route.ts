// Where a path leads: a kind, a namespace, a name, a subresource, or one of the server's own pages.
import type { KindDefinition, Subresource } from './kind.ts'
import type { KindTable } from './kinds.ts'

export interface Target {
  readonly kind: KindDefinition
  /** '' for cluster-scoped kinds and for all namespaces. */
  readonly namespace: string
  /** '' for the collection. */
  readonly name: string
  readonly subresource: '' | Subresource
}

export type Route =
  | { readonly to: 'target'; readonly target: Target }
  | { readonly to: 'page'; readonly path: string }
  | { readonly to: 'nowhere' }

export function route(kinds: KindTable, path: string): Route {
  const parts = path.split('/').filter((part) => part !== '').map(decode)
  const rest = parts[0] === 'api' ? parts.slice(2) : parts[0] === 'apis' ? parts.slice(3) : undefined
  if (rest === undefined || rest.length === 0) return { to: 'page', path }
  const groupVersion = parts[0] === 'api' ? parts[1] ?? '' : `${parts[1]}/${parts[2]}`
  const inNamespace = rest[0] === 'namespaces' && rest.length > 2 && kinds.find(groupVersion, rest[2] ?? '')?.namespaced === true
  const [plural = '', name = '', subresource = '', ...beyond] = inNamespace ? rest.slice(2) : rest
  const kind = kinds.find(groupVersion, plural)
  if (kind === undefined || beyond.length > 0) return { to: 'nowhere' }
  if (kind.namespaced && name !== '' && !inNamespace) return { to: 'nowhere' }
  const known = kind.subresources.find((one) => one === subresource)
  if (subresource !== '' && known === undefined) return { to: 'nowhere' }
  return { to: 'target', target: { kind, namespace: inNamespace ? rest[1] ?? '' : '', name, subresource: known ?? '' } }
}

function decode(part: string): string {
  if (!part.includes('%')) return part
  try {
    return decodeURIComponent(part)
  } catch {
    // Not a valid escape: the text as it stands names nothing, which is the right answer.
    return part
  }
}
