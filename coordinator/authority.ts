// The coordinator's own certificate authority, and where replicas find each other. Whoever comes first makes it; it is kept in a
// Secret, and what agents must know of it (the certificates to believe, the replicas' addresses) in a ConfigMap that they
// mount. Each replica issues its own serving certificate at start and renews it; no key leaves the coordinator's namespace.
//
// A new authority is believed long before anybody serves by it: it is published first (`next`), takes over after `overlap`,
// and the one before stays believed as long again. A mounted ConfigMap needs a minute or two to reach every node.
//
// There is one authority: the one in the Secret. A replica that finds agents told of another one than its own looks there before
// it writes anything. A Secret that is gone is written anew by whoever notices first, and the others go by what that one wrote.
import { X509Certificate, randomBytes } from 'node:crypto'
import type { Ms } from '../core/model.ts'
import { makeAuthority, makeServer, type Certified } from '../edge/certificate.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import { replicaName, type Serving } from '../edge/tls-link.ts'
import type { Api, KubeObject } from './api.ts'

export interface Authority {
  /** This replica's own, as it is now. */
  serving(): Serving
  /** PEM of every authority that is to be believed now. */
  authorities(): string
  /** A secret of the cluster that outlives every certificate. As it was at the start: whoever has gone over to another Secret since has computed with this one all along. */
  readonly salt: string
  /** Makes this replica's address known, and tells all of them whenever they change; the answer ends both. */
  replicas(own: string, changed: (addresses: readonly string[]) => void): () => void
  stop(): void
}

export interface AuthorityOptions {
  readonly api: Api
  readonly clock: Clock
  readonly log: Log
  readonly namespace: string
  readonly agentNamespace: string
  readonly identity: string
  /** Address others dial. */
  readonly address: string
  renewed(serving: Serving): void
  /** How often the ConfigMap is looked at for other replicas. */
  readonly lookEvery?: Ms
}

export const authorityName = 'holdfast-authority'

const day: Ms = 86_400_000
const authorityLife: Ms = 730 * day
const servingLife: Ms = 30 * day
const renewAfter: Ms = 10 * day
const overlap: Ms = 2 * day
/** Certificates of machines whose clock is a little behind must hold already. */
const backdated: Ms = 3_600_000
const usualLook: Ms = 10_000
const writeTries = 5
/** An address not refreshed for so long belongs to nobody; each replica refreshes its own far sooner. */
const addressHolds: Ms = 2 * day
const refreshAddress: Ms = day / 4
const mostAddresses = 8

interface Kept extends KubeObject {
  data?: Record<string, string>
}

/** What the Secret holds. */
interface Holding {
  readonly salt: string
  readonly current: Certified
  readonly next?: Certified
  readonly nextSince?: number
  readonly previous?: string
}

export async function keepAuthority(options: AuthorityOptions): Promise<Authority> {
  const { api, clock, log, identity } = options
  const secrets = `/api/v1/namespaces/${options.namespace}/secrets`
  const maps = `/api/v1/namespaces/${options.agentNamespace}/configmaps`
  const stopping = new AbortController()
  let holding = await firstHolding()
  let serving = issue()
  let servingSince = clock.wall()
  let turnedAt = servingSince
  let own: string | undefined
  let refreshedAt = 0
  let told = ''
  let changed: ((addresses: readonly string[]) => void) | undefined
  await publish()
  void keep()

  return {
    salt: holding.salt,
    serving: () => serving,
    authorities: () => believed(holding),
    replicas(address, ear) {
      own = address
      changed = ear
      void publish()
      // Agents would go on dialling an address at which nobody is any more, for two days.
      return () => {
        changed = undefined
        own = undefined
        void publish()
      }
    },
    stop: () => stopping.abort(),
  }

  async function keep(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.wait(options.lookEvery ?? usualLook, stopping.signal)
      if (stopping.signal.aborted) return
      await publish()
      if (clock.wall() - turnedAt > day || due(holding, clock.wall())) await turn()
    }
  }

  /** Once a day, and where agents are told of another authority: what the Secret holds is gone by, the authority moves on if its
   *  time has come, and a serving certificate that is old, or of another authority, is made anew. False: nobody knows what holds. */
  async function turn(): Promise<boolean> {
    const secret = await theSecret()
    if (secret === undefined) return false
    turnedAt = clock.wall()
    const before = holding
    const found = holdingOf(secret)
    if (found === undefined) log.error({}, 'the Secret of the certificate authority holds something else; what was known of it goes on')
    holding = found ?? holding
    const wanted = movedOn(holding, clock.wall())
    if (wanted !== undefined) {
      const written = await api.replace<Kept>(`${secrets}/${authorityName}`, secretOf(wanted, secret))
      if (written.ok) holding = wanted
      log.info({ written: written.ok }, 'the certificate authority moves on')
    }
    if (before.current.certificate === holding.current.certificate && clock.wall() - servingSince < renewAfter) return true
    serving = issue()
    servingSince = clock.wall()
    options.renewed(serving)
    return true
  }

  /** As it stands in the cluster. Where it is gone, as it is written again from what is held, unless another one was first: that is read at the next look. */
  async function theSecret(): Promise<Kept | undefined> {
    const read = await api.get<Kept>(`${secrets}/${authorityName}`)
    if (read.ok) return read.value
    if (read.error.kind !== 'notFound') return undefined
    const created = await api.create<Kept>(secrets, secretOf(holding))
    log.warn({ written: created.ok }, 'the Secret of the certificate authority was gone, and is written again from what is held')
    return created.ok ? created.value : undefined
  }

  function issue(): Serving {
    const { current } = holding
    const wall = clock.wall()
    return makeServer({ ...current, name: authorityName }, { name: replicaName, from: wall - backdated, until: wall + servingLife, names: [replicaName, options.address] })
  }

  async function firstHolding(): Promise<Holding> {
    for (let tries = 0; ; tries += 1) {
      const read = await api.get<Kept>(`${secrets}/${authorityName}`)
      const found = read.ok ? holdingOf(read.value) : undefined
      if (found !== undefined) return found
      if (!read.ok && read.error.kind === 'notFound') {
        const made: Holding = { salt: randomBytes(32).toString('base64'), current: newAuthority(clock.wall()) }
        const created = await api.create<Kept>(secrets, secretOf(made))
        if (created.ok) return made
      } else {
        log.warn({ because: read.ok ? 'the Secret is not ours' : read.error.message }, 'the certificate authority cannot be read')
      }
      await clock.wait(Math.min(10_000, 500 * 2 ** Math.min(tries, 5)))
    }
  }

  /** The ConfigMap says what agents must know. Written only when it says something else, over the very version that was read. */
  async function publish(): Promise<void> {
    for (let tries = 0; tries < writeTries && !stopping.signal.aborted; tries += 1) {
      const read = await api.get<Kept>(`${maps}/${authorityName}`)
      if (!read.ok && read.error.kind !== 'notFound') return
      const before = read.ok ? read.value.data ?? {} : {}
      // Not ours: another replica moved on before us, or holds another authority. Whoever just wrote over it would be written over in turn.
      if ((before['ca.crt'] ?? believed(holding)) !== believed(holding) && !await turn()) return
      const data = dataOf(before)
      tell(data)
      if (JSON.stringify(before) === JSON.stringify(data)) return
      const body: Kept = {
        apiVersion: 'v1', kind: 'ConfigMap', data,
        metadata: { name: authorityName, namespace: options.agentNamespace, ...(read.ok && read.value.metadata.resourceVersion !== undefined ? { resourceVersion: read.value.metadata.resourceVersion } : {}) },
      }
      const written = read.ok ? await api.replace<Kept>(`${maps}/${authorityName}`, body) : await api.create<Kept>(maps, body)
      if (written.ok) {
        refreshedAt = clock.wall()
        return
      }
    }
  }

  function dataOf(before: Readonly<Record<string, string>>): Record<string, string> {
    const wall = clock.wall()
    const known = readReplicas(before['replicas']).filter((replica) => wall - replica.at < addressHolds && replica.address !== own && replica.identity !== identity)
    const mine = readReplicas(before['replicas']).find((replica) => replica.identity === identity && replica.address === own)
    const ours = own === undefined ? [] : [{ identity, address: own, at: mine !== undefined && wall - refreshedAt < refreshAddress ? mine.at : wall }]
    const all = [...known, ...ours].toSorted((one, other) => other.at - one.at).slice(0, mostAddresses)
      .toSorted((one, other) => (one.identity < other.identity ? -1 : 1))
    return { 'ca.crt': believed(holding), replicas: JSON.stringify(all) }
  }

  function tell(data: Readonly<Record<string, string>>): void {
    const addresses = readReplicas(data['replicas']).map((replica) => replica.address)
    if (own === undefined || told === addresses.join()) return
    told = addresses.join()
    changed?.(addresses)
  }
}

interface Replica {
  readonly identity: string
  readonly address: string
  readonly at: number
}

/** What anybody with rights on the ConfigMap may have written there is read with care. */
function readReplicas(text: string | undefined): readonly Replica[] {
  try {
    const read: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(read) ? read.filter(isReplica) : []
  } catch {
    return [] // no JSON: nobody is known, and our own entry is written anew
  }
}

function isReplica(value: unknown): value is Replica {
  return typeof value === 'object' && value !== null && 'identity' in value && typeof value.identity === 'string'
    && 'address' in value && typeof value.address === 'string' && value.address.length < 300 && 'at' in value && typeof value.at === 'number'
}

function newAuthority(wall: number): Certified {
  return makeAuthority({ name: authorityName, from: wall - backdated, until: wall + authorityLife })
}

function believed(holding: Holding): string {
  return [holding.current.certificate, holding.next?.certificate, holding.previous].filter((one) => one !== undefined).map((pem) => `${pem.trim()}\n`).join('')
}

const due = (holding: Holding, wall: number): boolean => movedOn(holding, wall) !== undefined

/** The next state of the authority, if its time has come: a next one at half its life, its taking over after the overlap. */
function movedOn(holding: Holding, wall: number): Holding | undefined {
  const { current, next, nextSince = 0, previous, salt } = holding
  if (next !== undefined) {
    return wall - nextSince < overlap ? undefined : { salt, current: next, previous: current.certificate }
  }
  const until = new X509Certificate(current.certificate).validToDate.getTime()
  if (until - wall > authorityLife / 2) return undefined
  return { salt, current, next: newAuthority(wall), nextSince: wall, ...(previous === undefined ? {} : { previous }) }
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== ''
  } catch {
    return false // whoever asked goes on with what it has
  }
}

function secretOf(holding: Holding, before?: Kept): Kept & { type: string } {
  const { salt, current, next, nextSince, previous } = holding
  const plain: Record<string, string> = {
    salt, 'current.crt': current.certificate, 'current.key': current.key,
    ...(next === undefined ? {} : { 'next.crt': next.certificate, 'next.key': next.key, 'next.since': String(nextSince) }),
    ...(previous === undefined ? {} : { 'previous.crt': previous }),
  }
  const data = Object.fromEntries(Object.entries(plain).map(([key, text]) => [key, Buffer.from(text).toString('base64')]))
  return { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata: before?.metadata ?? { name: authorityName }, data }
}

function holdingOf(secret: Kept): Holding | undefined {
  const text = (key: string): string | undefined => {
    const value = secret.data?.[key]
    return value === undefined ? undefined : Buffer.from(value, 'base64').toString()
  }
  const [salt, certificate, key] = [text('salt'), text('current.crt'), text('current.key')]
  const [nextCertificate, nextKey, previous] = [text('next.crt'), text('next.key'), text('previous.crt')]
  if (salt === undefined || certificate === undefined || key === undefined) return undefined
  // What is no certificate must reach nobody who would believe it, and replace none that is one.
  if (![certificate, nextCertificate, previous].every((one) => one === undefined || isCertificate(one))) return undefined
  return {
    salt, current: { certificate, key },
    ...(nextCertificate === undefined || nextKey === undefined ? {} : { next: { certificate: nextCertificate, key: nextKey }, nextSince: Number(text('next.since')) }),
    ...(previous === undefined ? {} : { previous }),
  }
}
