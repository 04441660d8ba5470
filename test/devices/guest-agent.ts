// A machine with our agent in it, as the bundle that a cluster runs, and a watchdog that is hardware; and the replica that it beats to, outside.
// What a leader does by its record is done here by the test.
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { execPath } from 'node:process'
import type { Answer } from '../../coordinator/api.ts'
import { serveBeats } from '../../coordinator/beats.ts'
import { audience } from '../../coordinator/beats-review.ts'
import type { BeatSeen } from '../../core/model.ts'
import { bundle } from '../../deploy/build.ts'
import { makeAuthority, makeServer } from '../../edge/certificate.ts'
import { machineClock } from '../../edge/clock.ts'
import { silentLog } from '../../edge/log.ts'
import { listenTls, replicaName, tlsDialer } from '../../edge/tls-link.ts'
import { startMachine, type Machine } from './machine.ts'
import { installed, type Rack } from './rack.ts'

export interface GuestAgent {
  readonly machine: Machine
  heard(): BeatSeen | undefined
  /** In the boot that runs. */
  begin(): void
  signal(name: 'TERM' | 'KILL'): void
  /** The replica leads, permits this boot, has its watchdog fed, and answers whoever asks to disarm it. */
  lead(): void
  /** Nobody is there any more. */
  away(): Promise<void>
}

export const node = 'node-1'
const timeout = 20

const now = Date.now()
const life = { from: now - 3_600_000, until: now + 86_400_000 }
const authority = { name: 'test', ...makeAuthority({ name: 'test', ...life }) }
const serving = makeServer(authority, { name: replicaName, names: [replicaName], ...life })

export async function startGuestAgent(rack: Rack): Promise<GuestAgent> {
  const initrd = await makeGuest(rack.folder)
  const beats = serveBeats({
    host: {
      clock: machineClock, chance: Math.random, log: silentLog, secret: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
      dialer: tlsDialer({ clock: machineClock, authorities: async () => authority.certificate }),
    },
    api: { create: async <T>() => reviewed<T>() }, replica: 'replica-a', namespace: 'holdfast', replicaNamespace: 'holdfast', token: async () => undefined, changed: () => undefined,
  })
  const listener = await listenTls({ clock: machineClock, host: '127.0.0.1', port: 0, serving }, (link) => beats.accept(link))
  const port = listener.address.slice(listener.address.lastIndexOf(':') + 1)
  let leading: NodeJS.Timeout | undefined
  let gone: Promise<void> | undefined
  const away = (): Promise<void> => (gone ??= (async () => {
    clearInterval(leading)
    beats.close()
    await listener.close()
  })())
  rack.keep({ vanish: away })
  const machine = await startMachine(rack, 'machine', { guest: {
    kernel: join(installed('watchdog'), 'vmlinuz'), initrd, memory: '768',
    devices: ['-cpu', 'max', '-device', 'i6300esb', '-netdev', 'user,id=net', '-device', 'e1000,netdev=net'],
  } })
  return {
    machine, heard: () => beats.heard(node), away,
    begin() {
      for (const line of beginning(port)) machine.tell(line)
    },
    signal: (name) => machine.tell(`kill -${name} $(cat /tmp/agent)`),
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

/** The smallest system, and over it what the agent needs: Node with its libraries, the bundle, the drivers. */
async function makeGuest(folder: string): Promise<string> {
  const tree = join(folder, 'guest')
  mkdirSync(join(tree, 'holdfast'), { recursive: true })
  const built = await bundle({ from: 'agent/main.ts', to: 'holdfast/agent.mjs' }, tree)
  if ('missing' in built) throw new Error(built.missing)
  copyFileSync(execPath, join(tree, 'holdfast', 'node'))
  for (const [library] of execFileSync('ldd', [execPath], { encoding: 'utf8' }).matchAll(/\/lib\S+/g)) {
    mkdirSync(dirname(join(tree, library)), { recursive: true })
    copyFileSync(library, join(tree, library))
  }
  cpSync(join(installed('watchdog'), 'modules'), join(tree, 'modules'), { recursive: true })
  writeFileSync(join(tree, 'holdfast', 'ca.crt'), authority.certificate)
  writeFileSync(join(tree, 'holdfast', 'token'), 'the token\n')
  const initrd = join(folder, 'guest.cpio')
  const packed = spawnSync('sh', ['-c', `{ zcat ${join(installed('initrd'), 'initrd.gz')}; cd ${tree} && find . | cpio -o -H newc --quiet; } > ${initrd}`], { encoding: 'utf8' })
  if (packed.status !== 0) throw new Error(packed.stderr)
  return initrd
}

/** The host that it dials is the one that qemu's own network shows of ours. */
function beginning(port: string): readonly string[] {
  const settings = {
    REPLICAS: `10.0.2.2:${port}`, PROC: '/proc', STATE: '/tmp/state', TOKEN_FILE: '/holdfast/token', AUTHORITY_FILE: '/holdfast/ca.crt', KUBELET_ROOT: '/tmp/kubelet', RUN: '/tmp/run',
    WHISPER_PORT: '0', KUBELET_HEALTH: 'http://127.0.0.1:1/healthz', VITALS: 'off', ENTER: 'none',
  }
  return [
    'insmod /modules/watchdog.ko', `insmod /modules/i6300esb.ko heartbeat=${timeout}`, 'insmod /modules/e1000.ko', 'ifconfig lo 127.0.0.1 up', 'ifconfig eth0 10.0.2.15 up',
    `${Object.entries(settings).map(([name, value]) => `HOLDFAST_${name}=${value}`).join(' ')} /holdfast/node /holdfast/agent.mjs > /tmp/log 2>&1 & echo $! > /tmp/agent`,
  ]
}

export const timeoutMs = timeout * 1_000
