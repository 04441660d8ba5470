// The replica that the agent in a machine beats to, where a test stands in for a leader: what that does by its record is done here by the test.
import type { Answer } from '../../coordinator/api.ts'
import { serveBeats } from '../../coordinator/beats.ts'
import { audience } from '../../coordinator/beats-review.ts'
import type { BeatSeen } from '../../core/model.ts'
import { machineClock } from '../../edge/clock.ts'
import { silentLog } from '../../edge/log.ts'
import { listenTls, tlsDialer } from '../../edge/tls-link.ts'
import { believed, replicaAddresses, serving } from './guest-agent.ts'
import type { Rack } from './rack.ts'

export interface GuestReplica {
  /** Where an agent in a machine dials it. */
  readonly address: string
  heard(): BeatSeen | undefined
  /** The replica leads, permits this boot, has its watchdog fed, and answers whoever asks to disarm it. */
  lead(): void
  /** Nobody is there any more. */
  away(): Promise<void>
}

const node = 'node-1'

export async function startGuestReplica(rack: Rack): Promise<GuestReplica> {
  const beats = serveBeats({
    host: {
      clock: machineClock, chance: Math.random, log: silentLog, secret: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
      dialer: tlsDialer({ clock: machineClock, authorities: async () => believed }),
    },
    api: { create: async <T>() => reviewed<T>() }, replica: 'replica-a', namespace: 'holdfast', replicaNamespace: 'holdfast', token: async () => undefined, changed: () => undefined,
  })
  const listener = await listenTls({ clock: machineClock, host: '127.0.0.1', port: 0, serving }, (link) => beats.accept(link))
  let leading: NodeJS.Timeout | undefined
  let gone: Promise<void> | undefined
  const away = (): Promise<void> => (gone ??= (async () => {
    clearInterval(leading)
    beats.close()
    await listener.close()
  })())
  rack.keep({ vanish: away })
  return {
    address: `${replicaAddresses[0]}:${listener.address.slice(listener.address.lastIndexOf(':') + 1)}`, heard: () => beats.heard(node), away,
    lead() {
      clearInterval(leading)
      beats.setLeading(true)
      leading = setInterval(() => {
        const seen = beats.heard(node)
        if (seen === undefined) return
        beats.permits(node, seen.boot, 'permitted')
        beats.say(node, { say: 'self-stop', node, giveUp: 'stop', members: [''], membership: { epoch: 1, agents: ['node-2'], replicas: ['replica-a'] } })
        if (seen.watchdog?.disarm !== undefined) beats.say(node, { say: 'disarm', boot: seen.boot, disarm: seen.watchdog.disarm })
      }, 50)
    },
  }
}

async function reviewed<T>(): Promise<Answer<T>> {
  const extra = { 'authentication.kubernetes.io/node-name': [node], 'authentication.kubernetes.io/pod-uid': ['pod-1'] }
  // What coordinator/beats-review.ts asks for.
  return { ok: true, value: { status: { authenticated: true, audiences: [audience], user: { username: 'system:serviceaccount:holdfast:holdfast-agent', extra } } } as T }
}
