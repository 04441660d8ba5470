// A machine with our agent in it, as the bundle that a cluster runs, and a watchdog that is hardware; and, where it is asked for, a container runtime, which
// that agent asks what runs there. Nothing else of Kubernetes is in it.
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { bundle } from '../../deploy/build.ts'
import { makeAuthority, makeServer } from '../../edge/certificate.ts'
import { replicaName } from '../../edge/tls-link.ts'
import { pack, place } from './guest-tree.ts'
import { startMachine, type Machine } from './machine.ts'
import { installed, type Rack } from './rack.ts'

export interface GuestAgent {
  readonly machine: Machine
  /** In the boot that runs, in the place of one that may be there. `replicas`: `address:port`. */
  begin(replicas: string, token: string): void
  signal(name: 'TERM' | 'KILL'): void
}

export const timeoutMs = 20_000

const now = Date.now()
const life = { from: now - 3_600_000, until: now + 86_400_000 }
const authority = { name: 'test', ...makeAuthority({ name: 'test', ...life }) }
/** What the agent believes, and what whoever it dials must serve. */
export const believed = authority.certificate
export const serving = makeServer(authority, { name: replicaName, names: [replicaName], ...life })

/** Where simulated replicas have their addresses, and the machine one of its own beside each. One address of a network of qemu's is our own loopback, so there is one
 *  network for each; nothing else can be reached. */
export const replicaAddresses = ['10.1.0.10', '10.1.0.11'] as const
const range = '10.1.0.0/24'
const ownAddress = (index: number): string => `10.1.0.${200 + index}`

export async function startGuestAgent(rack: Rack, { runtime = false }: { readonly runtime?: boolean } = {}): Promise<GuestAgent> {
  const initrd = await makeGuest(rack.folder, runtime)
  const machine = await startMachine(rack, 'machine', { guest: {
    kernel: join(installed('watchdog'), 'vmlinuz'), initrd, memory: runtime ? '1024' : '768',
    devices: ['-cpu', 'max', '-device', 'i6300esb', ...replicaAddresses.flatMap((host, index) => ['-netdev', `user,id=net${index},net=${range},host=${host}`, '-device', `e1000,netdev=net${index}`])],
  } })
  return {
    machine,
    begin(replicas, token) {
      for (const line of [...(runtime ? runtimeBegins : []), ...agentBegins(replicas, token)]) machine.tell(line)
    },
    signal: (name) => machine.tell(`kill -${name} $(cat /tmp/agent)`),
  }
}

/** The smallest system, and over it what the agent needs: Node with its libraries, the bundle, the drivers. */
async function makeGuest(folder: string, runtime: boolean): Promise<string> {
  const tree = join(folder, 'guest')
  mkdirSync(join(tree, 'holdfast'), { recursive: true })
  const built = await bundle({ from: 'agent/main.ts', to: 'holdfast/agent.mjs' }, tree)
  if ('missing' in built) throw new Error(built.missing)
  place(tree, execPath, join(tree, 'holdfast', 'node'))
  if (runtime) {
    place(tree, join(installed('runtime'), 'containerd'), join(tree, 'holdfast', 'containerd'))
    writeFileSync(join(tree, 'holdfast', 'containerd.toml'), containerd)
  }
  cpSync(join(installed('watchdog'), 'modules'), join(tree, 'modules'), { recursive: true })
  writeFileSync(join(tree, 'holdfast', 'ca.crt'), believed)
  const initrd = join(folder, 'guest.cpio')
  pack(tree, initrd)
  return initrd
}

/** It lies in memory, as all of this machine: an overlay could not be mounted there. */
const containerd = `version = 2
root = "/tmp/containerd"
state = "/tmp/run/containerd"
[grpc]
  address = "/tmp/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "native"
`

const runtimeBegins = ['[ -e /tmp/runtime ] || { mkdir -p /tmp/run; /holdfast/containerd --config /holdfast/containerd.toml > /tmp/runtime 2>&1 & }']

function agentBegins(replicas: string, token: string): readonly string[] {
  const settings = {
    REPLICAS: replicas, PROC: '/proc', STATE: '/tmp/state', TOKEN_FILE: '/holdfast/token', AUTHORITY_FILE: '/holdfast/ca.crt', KUBELET_ROOT: '/tmp/kubelet', RUN: '/tmp/run',
    WHISPER_PORT: '0', KUBELET_HEALTH: 'http://127.0.0.1:1/healthz', VITALS: 'off', ENTER: 'none',
  }
  return [
    'insmod /modules/watchdog.ko', `insmod /modules/i6300esb.ko heartbeat=${timeoutMs / 1_000}`, 'insmod /modules/e1000.ko',
    'ifconfig lo 127.0.0.1 up', 'mkdir -p /tmp/kubelet/pods',
    ...replicaAddresses.flatMap((host, index) => [`ifconfig eth${index} ${ownAddress(index)} netmask 255.255.255.255 up`, `route add -host ${host} dev eth${index}`]),
    `echo ${token} > /holdfast/token`, '[ ! -e /tmp/agent ] || kill -KILL $(cat /tmp/agent)',
    `${Object.entries(settings).map(([name, value]) => `HOLDFAST_${name}=${value}`).join(' ')} /holdfast/node /holdfast/agent.mjs > /tmp/log 2>&1 & echo $! > /tmp/agent`,
  ]
}
