// An in-memory API server on a virtual clock, with the shortest way to ask it something.
import { admin, createApiServer } from '../../../sim/api-server/server.ts'
import type { ApiServer, User } from '../../../sim/api-server/server.ts'
import { virtualClock } from '../../../sim/clock.ts'
import type { VirtualClock } from '../../../sim/clock.ts'
import type { ApiRequest } from '../../../coordinator/transport.ts'

export interface ServerWorld {
  readonly clock: VirtualClock
  readonly server: ApiServer
  /** Status and body of the answer. */
  ask(method: ApiRequest['method'], path: string, body?: unknown, options?: { user?: User; type?: string }): Promise<Told>
  /** Pieces of a watch as they come; `ended` says how, once it has. */
  watch(path: string, user?: User): Watched
}

export interface Told { readonly status: number; readonly body: Loose }
export interface Loose { readonly [field: string]: unknown }
export interface Watched { readonly lines: string[]; ended: string | undefined; stop(): void }

export function serverWorld(): ServerWorld {
  const clock = virtualClock()
  let state = 7
  const chance = () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
  const server = createApiServer({ clock, chance })
  return {
    clock, server,
    async ask(method, path, body, { user = admin, type = 'application/json' } = {}) {
      const request: ApiRequest = { method, path, headers: { 'content-type': type }, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
      const answer = await server.handle(request, user, new AbortController().signal)
      let text = ''
      for await (const piece of answer.body) text += piece
      // What the server answers is JSON everywhere these tests ask.
      return { status: answer.status, body: JSON.parse(text) as Loose }
    },
    watch(path, user = admin) {
      const stop = new AbortController()
      const watched: Watched = { lines: [], ended: undefined, stop: () => stop.abort() }
      void read(server, path, user, stop.signal, watched)
      return watched
    },
  }
}

async function read(server: ApiServer, path: string, user: User, signal: AbortSignal, watched: Watched): Promise<void> {
  try {
    const answer = await server.handle({ method: 'GET', path, headers: {} }, user, signal)
    for await (const line of answer.body) watched.lines.push(line.trim())
    watched.ended = 'politely'
  } catch (cause) {
    // How a watch ends is what the tests ask about.
    watched.ended = cause instanceof Error ? cause.message : String(cause)
  }
}

export function at(value: unknown, path: string): unknown {
  let here = value
  for (const part of path.split('.')) here = typeof here === 'object' && here !== null ? Reflect.get(here, part) : undefined
  return here
}

export const map = (name: string, data: Record<string, string> = {}, labels: Record<string, string> = {}) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels }, data })
export const maps = '/api/v1/namespaces/default/configmaps'
export const pods = '/api/v1/namespaces/default/pods'
export const pod = (name: string, nodeName = 'n1', spec: object = {}) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { nodeName, containers: [{ name: 'main', image: 'i:1' }], ...spec } })
