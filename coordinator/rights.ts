// What this replica may not read. A look that fails leaves things as they were, and is asked again; one that is refused is refused
// again and again, so it is told: once of each kind of thing and each namespace, and once more if a right is taken away again.
import type { Log } from '../edge/log.ts'
import type { Api } from './api.ts'

/** Reads like `api`. */
export function tellingRefusals(api: Pick<Api, 'get'>, log: Log): Pick<Api, 'get'> {
  const told = new Set<string>()
  return {
    async get(path, wanted) {
      const answer = await api.get<never>(path, wanted) // nothing of its value is looked at here
      if (answer.ok ? told.size === 0 : answer.error.kind !== 'forbidden') return answer
      const right = rightTo(path)
      if (answer.ok) told.delete(right)
      else if (!told.has(right)) {
        told.add(right)
        log.error({ right, kind: answer.error.kind, message: answer.error.message }, 'this replica lacks a right, and what it would read stays unknown')
      }
      return answer
    },
  }
}

/** As the API server's own words have it: verb, kind, and namespace, if any. */
export function rightTo(path: string): string {
  const [, namespace, plural, name] = /^\/(?:api|apis\/[^/]+)\/[^/]+(?:\/namespaces\/([^/]+))?\/([^/?]+)(?:\/([^/?]+))?/.exec(path) ?? []
  return `${name === undefined ? 'list' : 'get'} ${plural ?? path}${namespace === undefined ? '' : ` in ${namespace}`}`
}
