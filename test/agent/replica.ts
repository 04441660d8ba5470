// A replica that hears a real agent over real sockets, whatever cluster it believes itself in: node-1, by the token of these tests.
import type { Answer } from '../../coordinator/api.ts'
import { serveBeats, type Beats } from '../../coordinator/beats.ts'
import type { BeatChange } from '../../coordinator/beats-heard.ts'
import { audience } from '../../coordinator/beats-review.ts'
import type { Goodbye } from '../../core/beat.ts'
import { makeAuthority, makeServer } from '../../edge/certificate.ts'
import { machineClock } from '../../edge/clock.ts'
import { silentLog } from '../../edge/log.ts'
import { listenTls, replicaName, tlsDialer } from '../../edge/tls-link.ts'

/** What it lets in. */
export const theToken = 'the token'

const now = Date.now()
const life = { from: now - 3_600_000, until: now + 3_600_000 }
export const authority = { name: 'test', ...makeAuthority({ name: 'test', ...life }) }
const serving = makeServer(authority, { name: replicaName, names: [replicaName], ...life })

export interface Running {
  readonly beats: Beats
  readonly address: string
  /** Resolves when this was told of the node. */
  told(what: BeatChange): Promise<void>
  /** Every one so far. */
  readonly goodbyes: readonly Goodbye[]
  stop(): Promise<void>
}

export async function replica(name: string, host = '127.0.0.1'): Promise<Running> {
  const told: BeatChange[] = []
  const goodbyes: Goodbye[] = []
  const waiting: { what: BeatChange; resolve: () => void }[] = []
  const beats = serveBeats({
    host: {
      clock: machineClock, chance: Math.random, log: silentLog, secret: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
      dialer: tlsDialer({ clock: machineClock, authorities: async () => authority.certificate }),
    },
    api: { create: async <T>(_: string, body: unknown) => review<T>(body) },
    replica: name, namespace: 'holdfast', replicaNamespace: 'holdfast', token: async () => undefined,
    changed(node, what) {
      told.push(what)
      const goodbye = what === 'goodbye' ? beats.heard(node)?.goodbye : undefined
      if (goodbye !== undefined) goodbyes.push(goodbye.why)
      for (const one of waiting) if (one.what === what) one.resolve()
    },
  })
  const listener = await listenTls({ clock: machineClock, host, port: 0, serving }, (link) => beats.accept(link))
  return {
    beats, goodbyes, address: listener.address,
    told: (what) => told.includes(what) ? Promise.resolve() : new Promise((resolve) => { waiting.push({ what, resolve }) }),
    stop() {
      beats.close()
      return listener.close()
    },
  }
}

async function review<T>(body: unknown): Promise<Answer<T>> {
  // What coordinator/beats-review.ts asks.
  const good = (body as { spec: { token: string } }).spec.token === theToken
  const extra = { 'authentication.kubernetes.io/node-name': ['node-1'], 'authentication.kubernetes.io/pod-uid': ['pod-1'] }
  return { ok: true, value: { status: { authenticated: good, audiences: [audience], user: { username: 'system:serviceaccount:holdfast:holdfast-agent', extra } } } as T }
}
