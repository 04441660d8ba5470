// The in-memory API server: requests in, answers out, no time and no chance but what it was given.
import { waitOn } from '../../edge/clock.ts'
import type { Clock } from '../../edge/clock.ts'
import type { ApiRequest, ApiResponse, Transport } from '../../coordinator/transport.ts'
import type { KubeObject } from '../../coordinator/api.ts'
import { create } from './write.ts'
import type { Ground } from './ground.ts'
import { usualVersion } from './discovery.ts'
import { createFaults } from './faults.ts'
import type { Faults } from './faults.ts'
import { answerRequest } from './answer.ts'
import type { Opened } from './answer.ts'
import type { Resource } from './json.ts'
import type { KindDefinition } from './kind.ts'
import { builtInKinds, KindTable } from './kinds.ts'
import { isRefusal } from './refusal.ts'
import { refusalResponse } from './response.ts'
import { Store, readVersion } from './store.ts'
import type { Version } from './store.ts'
import { served } from './ground.ts'
import { serverAudience, Tokens } from './tokens.ts'
import { admin } from './user.ts'
import type { User } from './user.ts'
import type { Watch } from './watch.ts'

export { admin, nodeUser } from './user.ts'
export type { User } from './user.ts'

export interface ApiServer {
  handle(request: ApiRequest, user: User, signal: AbortSignal): Promise<ApiResponse>
  transportFor(user: User): Transport
  /** Faults to be met by whom they name, until cleared. */
  readonly faults: Faults
  /** Makes an object outside of any request, status and all; throws on a refusal, since a world that cannot be built is
   *  a mistake of its builder. */
  plant(object: KubeObject): KubeObject
  /** What stands in a collection now, for judges who must not go through the faults. `nodes`, `nodefences.holdfast.dev`. */
  peek(collection: string): readonly KubeObject[]
  /** Who a bearer token speaks for towards this server; undefined: nobody. */
  authenticate(token: string): User | undefined
  /** A token of a person or a component. */
  addToken(token: string, user: User): void
  /** The latest write's place in the one order of all writes. */
  revision(): number
}

export interface ApiServerOptions {
  readonly clock: Clock
  readonly chance: () => number
  /** Kinds beside the built-in ones; those of CustomResourceDefinitions come by creating these. */
  readonly kinds?: readonly KindDefinition[]
  /** Which release it says it is. What it does is of one alone. */
  readonly version?: string
}

export function createApiServer(options: ApiServerOptions): ApiServer {
  const ground: Ground = {
    clock: options.clock, chance: options.chance, store: new Store(options.clock), tokens: new Tokens(), version: options.version ?? usualVersion,
    kinds: new KindTable([...builtInKinds(), ...(options.kinds ?? [])]),
  }
  const open = new Set<Opened>()
  const faults = createFaults({
    openWatches: () => [...open],
    compact: () => ground.store.compact(),
  })
  const peeked = new WeakMap<Version, KubeObject>()
  const track = (opened: Opened) => {
    open.add(opened)
    if (faults.stalls(opened)) opened.watch.stall(true)
  }
  const untrack = (watch: Watch) => {
    for (const opened of open) if (opened.watch === watch) open.delete(opened)
  }

  const handle = async (request: ApiRequest, user: User, signal: AbortSignal): Promise<ApiResponse> => {
    const met = faults.before(request, user)
    if (met.delay > 0) await waitOn(ground.clock, met.delay, signal)
    if (signal.aborted) throw new Error('the request was aborted')
    if (met.unreachable) throw new Error('connect: the API server cannot be reached')
    if (met.answer !== undefined) return refusalResponse(met.answer)
    faults.lands(request, user)
    const answered = await answerRequest(ground, request, met.call, signal, { opened: track, closed: untrack, lag: faults.lag })
    if (met.loseAnswer) throw new Error('read: the connection broke before the answer came')
    return isRefusal(answered) ? refusalResponse(answered) : answered
  }
  for (const name of ['default', 'kube-system', 'kube-public', 'kube-node-lease']) plant({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })

  /** A version never changes, and judges ask for all of them several times a second: one object each, which nobody may change. */
  function shown(kind: KindDefinition, version: Version): KubeObject {
    const known = peeked.get(version)
    if (known !== undefined) return known
    const made = asKube(frozen(served(kind, readVersion(version))))
    peeked.set(version, made)
    return made
  }

  function plant(object: KubeObject): KubeObject {
    const kind = ground.kinds.named(object.apiVersion ?? '', object.kind ?? '')
    if (kind === undefined) throw new Error(`no kind ${object.kind} in ${object.apiVersion} is served`)
    // What comes in is an object of Kubernetes; its copy is ours to change.
    const body = structuredClone(object) as unknown as Resource
    const status = body['status']
    const made = create(ground, kind, body.metadata.namespace ?? (kind.namespaced ? 'default' : ''), body, { userName: admin.name, dryRun: status !== undefined, planted: true })
    if (isRefusal(made)) throw new Error(`cannot plant ${object.kind} ${object.metadata.name}: ${made.message}`)
    if (status !== undefined) {
      made['status'] = status
      ground.store.put(ground.store.collection(kind.collection, kind), made)
    }
    return asKube(served(kind, made))
  }

  return {
    handle,
    transportFor: (user) => (request, signal) => handle(request, user, signal),
    faults,
    plant,
    peek(collection) {
      const kind = ground.kinds.of(collection)
      const there = ground.store.find(collection)
      const objects: KubeObject[] = []
      if (kind === undefined || there === undefined) return objects
      for (const key of there.keys()) {
        const version = there.get(key)
        if (version !== undefined) objects.push(shown(kind, version))
      }
      return objects
    },
    authenticate(token) {
      const word = ground.tokens.review(ground.store, ground.clock.wall(), token, [serverAudience])
      return 'fault' in word ? undefined : word.user
    },
    addToken: (token, user) => ground.tokens.add(token, user),
    revision: () => ground.store.revision,
  }
}

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const below of Object.values(value)) frozen(below)
  return Object.freeze(value)
}

function asKube(object: Resource): KubeObject {
  // The same thing under the contract's name: a stored object always has its name.
  return object as unknown as KubeObject
}
