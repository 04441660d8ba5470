// The root disk of a machine whose process 1 is systemd (systemd-init.sh): nothing runs on it but that, its bus, logind, and our agent from the product's image, to
// which the host's /run and /proc are given as to its pod. It is a service of systemd here, which may end it in either of two ways (`ends`).
import { mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { nodeFlags } from '../../agent/node-flags.ts'

export interface SystemdDiskSettings {
  readonly name: string
  /** `host:port`. */
  readonly replica: string
  readonly authority: string
  readonly token: string
  /** The folder of what is in the product's image. */
  readonly image: string
}

export const agentUnit = 'holdfast.service'
const state = 'var/lib/holdfast'
const kubelet = 'var/lib/kubelet'
const folders = ['.old', 'usr', 'proc', 'sys', 'dev', 'run', 'tmp', 'root', 'var/log', 'opt/image', 'opt/agent', state, kubelet]
/** Seconds. */
const delayAtMost = 60
/** Nothing here is for them: there is no device, no module and no console, and of the kernel nothing may be set. */
const without = [
  'dev-hugepages.mount', 'dev-mqueue.mount', 'sys-fs-fuse-connections.mount', 'sys-kernel-config.mount', 'sys-kernel-debug.mount', 'sys-kernel-tracing.mount', 'systemd-remount-fs.service',
  'kmod-static-nodes.service', 'systemd-modules-load.service', 'systemd-sysctl.service', 'systemd-binfmt.service', 'systemd-random-seed.service', 'systemd-firstboot.service', 'getty.target',
]

export function makeSystemdDisk(disk: string, settings: SystemdDiskSettings): void {
  for (const folder of folders) mkdirSync(join(disk, folder), { recursive: true })
  for (const link of ['bin', 'sbin', 'lib', 'lib64']) symlinkSync(`usr/${link}`, join(disk, link))
  symlinkSync('/run', join(disk, 'var/run'))
  for (const [file, text] of Object.entries(texts(settings))) write(disk, file, text)
  for (const masked of without) symlinkSync('/dev/null', join(disk, 'etc/systemd/system', masked))
  mkdirSync(join(disk, 'etc/systemd/system/multi-user.target.wants'))
  symlinkSync(`../${agentUnit}`, join(disk, 'etc/systemd/system/multi-user.target.wants', agentUnit))
  symlinkSync('/lib/systemd/system/multi-user.target', join(disk, 'etc/systemd/system/default.target'))
}

/** From the next boot on. `with the services`: systemd stops it as it goes down, as it does with a container of CRI-O. `at the end`: nothing stops it before all that is left is
 *  ended, as with a container of containerd: runc makes its groups without the usual dependencies. */
export function ends(disk: string, when: 'with the services' | 'at the end'): void {
  write(disk, `etc/systemd/system/${agentUnit}.d/end.conf`, `[Unit]\nDefaultDependencies=${when === 'at the end' ? 'no' : 'yes'}\n`)
}

/** As kubelet writes it when it hears that a shutdown is coming; undefined takes it away. */
export function kubeletSays(disk: string, began: Date | undefined): void {
  const file = `${kubelet}/graceful_node_shutdown_state`
  if (began === undefined) rmSync(join(disk, file), { force: true })
  else write(disk, file, JSON.stringify({ startTime: began.toISOString(), endTime: '0001-01-01T00:00:00Z' }))
}

/** Whether the agent's own mark calls the boot ended in good order. */
export const markFile = join(state, 'boot.json')

function texts({ name, replica, authority, token, image }: SystemdDiskSettings): Readonly<Record<string, string>> {
  const people = 'root:x:0:0::/root:/bin/sh\nmessagebus:x:100:100::/nonexistent:/bin/false\nnobody:x:65534:65534::/nonexistent:/bin/false\n'
  return {
    'etc/hostname': `${name}\n`,
    'etc/machine-id': '0123456789abcdef0123456789abcdef\n',
    // What kubelet asks for where it is to end pods in good order.
    'etc/systemd/logind.conf.d/kubelet.conf': `[Login]\nInhibitDelayMaxSec=${delayAtMost}\n`,
    'etc/passwd': people,
    'etc/group': 'root:x:0:\nmessagebus:x:100:\nnogroup:x:65534:\n',
    'etc/holdfast/ca.crt': authority,
    'etc/holdfast/token': `${token}\n`,
    [`etc/systemd/system/${agentUnit}`]: unit(replica, readdirSync(image).filter((folder) => ['holdfast', 'lib', 'lib64', 'usr'].includes(folder))),
  }
}

function unit(replica: string, ofTheImage: readonly string[]): string {
  const environment = {
    REPLICAS: replica, PROC: '/host/proc', RUN: '/host/run', STATE: `/${state}`, TOKEN_FILE: '/etc/holdfast/token', AUTHORITY_FILE: '/etc/holdfast/ca.crt', VITALS: 'off',
  }
  return `[Unit]
StartLimitIntervalSec=0

[Service]
Type=exec
RootDirectory=/opt/agent
MountAPIVFS=yes
${ofTheImage.map((folder) => `BindReadOnlyPaths=/opt/image/${folder}:/${folder}`).join('\n')}
BindReadOnlyPaths=/run:/host/run /proc:/host/proc /etc/holdfast /${kubelet}
BindPaths=/${state}
CapabilityBoundingSet=
NoNewPrivileges=yes
${Object.entries(environment).map(([key, value]) => `Environment=HOLDFAST_${key}=${value}`).join('\n')}
ExecStart=/holdfast/node ${nodeFlags.join(' ')} /holdfast/agent.mjs
`
}

function write(disk: string, file: string, text: string): void {
  mkdirSync(dirname(join(disk, file)), { recursive: true })
  writeFileSync(join(disk, file), text)
}
