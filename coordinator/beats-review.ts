// Who is at the other end of a link: the API server's word on the token of its hello. The node comes from the token, which
// is bound to one pod, that pod to one node; so a stolen token can lie about its own node only.
import { createHash } from 'node:crypto'
import type { NodeName } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Api } from './api.ts'

export const audience = 'holdfast-coordinator'

export type Caller =
  | { readonly is: 'agent'; readonly node: NodeName; readonly nodeUid: string; readonly pod: string; readonly podUid: string }
  | { readonly is: 'replica'; readonly podUid: string }

/** `unsure`: nobody could say (no API server, no time). The token may be as good as any: ask again. */
export type Review = { readonly caller: Caller } | { readonly refused: string } | { readonly unsure: string }

export interface Reviews {
  /** `wanted` is asked when the review's turn comes: a link that ended meanwhile costs no request. */
  review(token: string, wanted: () => boolean): Promise<Review>
  /** The pod ended: its tokens are worth nothing, whatever is remembered of them. */
  forget(podUid: string): void
}

export interface ReviewOptions {
  readonly api: Pick<Api, 'create'>
  readonly clock: Clock
  readonly namespace: string
  /** Where the replicas' account is. */
  readonly replicaNamespace: string
}

/** A whole cluster of agents dials a new replica within seconds; the API server has other work too. */
const mostInFlight = 32
/** A link that breaks and comes back at once needs no second review; a pod that ended is struck out by `forget`. */
const rememberedFor = 60_000
const mostRemembered = 10_000

export function createReviews({ api, clock, namespace, replicaNamespace }: ReviewOptions): Reviews {
  const remembered = new Map<string, { readonly caller: Caller; readonly at: number }>()
  const gone = new Set<string>()
  const waiting: (() => void)[] = []
  let inFlight = 0

  return {
    async review(token, wanted) {
      const name = createHash('sha256').update(token).digest('base64')
      const known = remembered.get(name)
      if (known !== undefined && clock.now() - known.at < rememberedFor) return { caller: known.caller }
      await turn()
      try {
        if (!wanted()) return { refused: 'the link ended before its turn' }
        const review = await ask(api, { namespace, replicaNamespace }, token)
        if (!('caller' in review)) return review
        if (gone.has(review.caller.podUid)) return { refused: 'the pod of this token has ended' }
        remember(remembered, name, { caller: review.caller, at: clock.now() })
        return review
      } finally {
        const next = waiting.shift()
        if (next === undefined) inFlight -= 1
        else next() // the place is handed on
      }
    },
    forget(podUid) {
      for (const [name, { caller }] of remembered) if (caller.podUid === podUid) remembered.delete(name)
      gone.add(podUid)
      for (const oldest of gone) {
        if (gone.size <= mostRemembered) break
        gone.delete(oldest)
      }
    },
  }

  async function turn(): Promise<void> {
    if (inFlight >= mostInFlight) return new Promise((resolve) => { waiting.push(resolve) })
    inFlight += 1
  }
}

function remember<T>(remembered: Map<string, T>, name: string, value: T): void {
  remembered.delete(name)
  remembered.set(name, value)
  for (const oldest of remembered.keys()) {
    if (remembered.size <= mostRemembered) break
    remembered.delete(oldest)
  }
}

async function ask(api: Pick<Api, 'create'>, accounts: Accounts, token: string): Promise<Review> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', metadata: { name: '' }, spec: { token, audiences: [audience] } }
  const answer = await api.create<unknown>('/apis/authentication.k8s.io/v1/tokenreviews', body)
  if (!answer.ok) return { unsure: `the token could not be reviewed: ${answer.error.message}` }
  return judge(answer.value, accounts)
}

type Accounts = Pick<ReviewOptions, 'namespace' | 'replicaNamespace'>

/** What a TokenReview's answer must say before anything is believed. */
export function judge(answer: unknown, { namespace, replicaNamespace }: Accounts): Review {
  const status = field(answer, 'status')
  if (field(status, 'authenticated') !== true) return { refused: `the token is not valid${reasonOf(field(status, 'error'))}` }
  // A server without audience support leaves the list empty, and the token might be one for anything else.
  if (!texts(field(status, 'audiences')).includes(audience)) return { refused: `the token is not for ${audience}` }
  const user = field(status, 'user')
  const username = field(user, 'username')
  const extra = field(user, 'extra')
  const one = (key: string) => texts(field(extra, `authentication.kubernetes.io/${key}`))[0] ?? ''
  const podUid = one('pod-uid')
  if (username === `system:serviceaccount:${replicaNamespace}:holdfast-coordinator`) return { caller: { is: 'replica', podUid } }
  if (username !== `system:serviceaccount:${namespace}:holdfast-agent`) return { refused: `${String(username)} is not an agent's account` }
  const node = one('node-name')
  if (node === '' || podUid === '') return { refused: 'the token is not bound to a pod on a node' }
  return { caller: { is: 'agent', node, nodeUid: one('node-uid'), pod: one('pod-name'), podUid } }
}

function reasonOf(error: unknown): string {
  return typeof error === 'string' && error !== '' ? `: ${error.slice(0, 200)}` : ''
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}
