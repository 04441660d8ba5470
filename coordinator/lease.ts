// Stands for election on one Lease, by the judgement of core/lease.ts. Everything here is reading, writing and waking up.
import {
  decideLease, leadershipAt, leadershipSpan, lookEvery, nobody, renewEvery, viewOf,
  type Attempt, type Candidate, type LeaseAction, type LeaseRecord, type LeaseView,
} from '../core/lease.ts'
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import { mayHaveHappened, type Answer, type Api, type KubeObject } from './api.ts'
import { microTime } from './api-time.ts'

export interface ElectorOptions {
  readonly api: Api
  readonly clock: Clock
  chance(): number
  /** Of this process, not of this pod: a pod that returns under its name must not be taken for its old self. */
  readonly identity: string
  readonly namespace: string
  readonly name: string
  readonly log: Log
  /** Terms are never given out below this (the highest one seen on any NodeFence), even if the Lease was deleted. */
  highestTerm?(): number
  /** Annotations that each write of a leader bears; others stay as they are. */
  note?(): Readonly<Record<string, string>>
  gained(term: number): void
  /** Called at the latest when the leadership lapses by this process's own clock; what acts for it must end at once. */
  lost(reason: string): void
}

export interface Elector {
  /** The term, while this process leads at this very moment; asks the clock each time. */
  leads(): number | undefined
  /** Who holds the Lease, as last read; for people. */
  holder(): string | undefined
  /** As last read. */
  annotations(): Readonly<Record<string, string>>
  /** Leads no more from this call on; resolves when the Lease is released, or could not be. */
  stop(): Promise<void>
}

export interface Lease extends KubeObject {
  spec?: {
    holderIdentity?: string | null
    leaseDurationSeconds?: number
    acquireTime?: string
    renewTime?: string
    leaseTransitions?: number
  }
}

// A renewal that takes longer is read after: there is still time to find that it happened, or to send another.
const writeDeadline: Ms = 1_500
const readDeadline: Ms = 1_000
const pauseAfterTrouble: Ms = 250
const attemptsLimit = 16

export function elect(options: ElectorOptions): Elector {
  const { api, clock, identity, namespace, name, log } = options
  const collection = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`
  const stopping = new AbortController()
  let object: Lease | undefined
  let view: LeaseView | undefined
  let attempts: (Attempt & { readonly on: string | undefined })[] = []
  let highest = 0
  let term: number | undefined
  let sentAt: Ms = 0
  let cancelLapse: (() => void) | undefined
  let trouble: string | undefined

  const running = keepRunning()

  return {
    leads: () => (stopping.signal.aborted || term === undefined ? undefined : leadershipAt(view, clock.now(), candidate())?.term),
    holder: () => view?.record?.holder || undefined,
    annotations: () => object?.metadata.annotations ?? {},
    async stop() {
      if (stopping.signal.aborted) return await running
      stopping.abort()
      // First of all nobody acts any more; only then may another one begin.
      settle('stopped')
      await running
      await release()
    },
  }

  async function keepRunning(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        await run()
      } catch (error) {
        // A fault of ours, or of who told us the highest term. A replica that silently never stands again would be worse.
        log.error({ error }, 'the election stumbled, and begins again')
        await clock.wait(renewEvery, stopping.signal)
      }
    }
  }

  async function run(): Promise<void> {
    let known = false
    while (!stopping.signal.aborted) {
      if (!known) {
        known = await read()
        if (!known) await clock.wait(pauseAfterTrouble, stopping.signal)
        continue
      }
      const action = decideLease(view as LeaseView, clock.now(), candidate()) // read() said that there is one
      if (action.do === 'wait') {
        await clock.wait(Math.min(action.until - clock.now(), lookEvery * (0.9 + 0.2 * options.chance())), stopping.signal)
        // At the end of the span the last reading will do: should it be old, the write meets a conflict.
        known = clock.now() >= action.until
        continue
      }
      if (action.do === 'create') {
        await create(action.term)
        known = false
        continue
      }
      if (action.do === 'renew') await clock.wait(sentAt + renewEvery - clock.now(), stopping.signal)
      if (stopping.signal.aborted) return
      known = await write(decideLease(view as LeaseView, clock.now(), candidate()))
    }
  }

  async function read(): Promise<boolean> {
    const answer = await api.get<Lease>(`${collection}/${name}`, { deadline: readDeadline, urgent: true })
    if (answer.ok) learn(answer.value)
    else if (answer.error.kind === 'notFound') learn(undefined)
    else said(answer)
    return answer.ok || answer.error.kind === 'notFound'
  }

  async function create(highestTerm: number): Promise<void> {
    const spec = { holderIdentity: nobody, leaseDurationSeconds: leadershipSpan / 1000, renewTime: microTime(clock.wall(), options.chance() * 1000), leaseTransitions: highestTerm }
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name, namespace }, spec }
    const answer = await api.create<Lease>(collection, lease, { deadline: writeDeadline, urgent: true })
    if (answer.ok) return
    if (answer.error.kind !== 'conflict') said(answer) // a conflict: another one made it
    await clock.wait(pauseAfterTrouble, stopping.signal)
  }

  /** True: we know what the Lease is now. A wait may have turned the renewal into another action, or into none. */
  async function write(action: LeaseAction): Promise<boolean> {
    if (!object || action.do === 'wait' || action.do === 'create') return true
    const now = microTime(clock.wall(), options.chance() * 1000)
    // The very same text would look to the others like a record that nobody moved.
    const renewTime = now === view?.record?.renewTime ? microTime(clock.wall() + 1) : now
    const attempt = { term: action.term, renewTime, sentAt: clock.now(), on: object.metadata.resourceVersion }
    attempts = [...attempts, attempt].slice(-attemptsLimit)
    sentAt = attempt.sentAt
    const spec = {
      ...object.spec, holderIdentity: identity, leaseDurationSeconds: leadershipSpan / 1000, renewTime, leaseTransitions: action.term,
      acquireTime: action.do === 'renew' ? (object.spec?.acquireTime ?? renewTime) : renewTime,
    }
    const how = { deadline: writeDeadline, urgent: true }
    const annotations = { ...object.metadata.annotations, ...(action.do === 'renew' ? options.note?.() : {}) }
    const metadata = Object.keys(annotations).length === 0 ? object.metadata : { ...object.metadata, annotations }
    const answer = await api.replace<Lease>(`${collection}/${name}`, { ...object, metadata, spec }, how)
    if (answer.ok) {
      learn(answer.value, action.do === 'renew' ? undefined : action.because)
      return true
    }
    const { kind, retryAfter = 0 } = answer.error
    // Refused for good: it can never show. Else only a reading can tell.
    if (!mayHaveHappened(answer.error)) attempts = attempts.filter((one) => one !== attempt)
    const moved = kind === 'conflict' || kind === 'notFound'
    if (!moved) said(answer)
    // A late answer has cost time enough, and a leader's next renewal has its own time; all else must not come in a spin.
    if (kind !== 'late' && !(moved && action.do === 'renew')) await clock.wait(Math.max(pauseAfterTrouble, Math.min(retryAfter, renewEvery)), stopping.signal)
    return false
  }

  function learn(found: Lease | undefined, because?: string): void {
    object = found
    view = viewOf(view, found && recordOf(found), clock.now())
    highest = Math.max(highest, view.record?.term ?? 0)
    // An attempt made on an older version can never land any more, unless it is the one that is shown.
    const shown = view.record
    attempts = attempts.filter(({ on, renewTime }) => on === found?.metadata.resourceVersion || renewTime === shown?.renewTime)
    if (trouble !== undefined) log.info({ holder: shown?.holder }, 'the lease is readable again')
    trouble = undefined
    settle(because ?? (shown ? `${shown.holder || 'nobody'} holds the lease` : 'the lease was deleted'))
  }

  /** Makes known what changed, if anything did, and sets the alarm for the moment when it lapses. */
  function settle(because: string): void {
    cancelLapse?.()
    const leadership = stopping.signal.aborted ? undefined : leadershipAt(view, clock.now(), candidate())
    if (leadership) cancelLapse = clock.after(leadership.until - clock.now(), () => settle('not renewed in time'))
    if (leadership?.term === term) return
    const [before, after] = [term, leadership?.term]
    term = after
    if (before !== undefined) {
      log.warn({ term: before, because }, 'leadership lost')
      heard(() => options.lost(because))
    }
    if (after !== undefined) {
      log.info({ term: after, because }, 'leadership gained')
      heard(() => options.gained(after))
    }
  }

  function heard(tell: () => void): void {
    try {
      tell()
    } catch (error) {
      // The election must go on whatever its listeners do: a leader that stops renewing hurts nobody, a stuck one does.
      log.error({ error }, 'a listener of the election failed')
    }
  }

  function said(answer: Answer<Lease>): void {
    if (answer.ok || trouble !== undefined) return
    trouble = answer.error.message
    log.warn({ because: trouble }, 'the lease cannot be read or written')
  }

  function candidate(): Candidate {
    return { identity, attempts, highestTerm: Math.max(highest, options.highestTerm?.() ?? 0) }
  }

  async function release(): Promise<void> {
    for (let attempt = 0; attempt < 2; attempt++) {
      if (!(await read()) || !object || !isOurs()) return
      const spec = { ...object.spec, holderIdentity: null, renewTime: microTime(clock.wall(), options.chance() * 1000) }
      const answer = await api.replace<Lease>(`${collection}/${name}`, { ...object, spec }, { deadline: writeDeadline, urgent: true })
      if (answer.ok) return
      log.warn({ because: answer.error.message }, 'the lease could not be released; it lapses by itself')
    }
  }

  function isOurs(): boolean {
    const record = view?.record
    return record?.holder === identity && attempts.some(({ renewTime }) => renewTime === record.renewTime)
  }
}

function recordOf({ spec = {} }: Lease): LeaseRecord {
  return { holder: spec.holderIdentity ?? '', term: spec.leaseTransitions ?? 0, renewTime: spec.renewTime ?? '' }
}
