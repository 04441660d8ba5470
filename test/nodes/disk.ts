// The root disk of a machine: a folder, made once and kept over its boots, with the settings of containerd, CNI and kubelet.
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { labImage } from './lab-image.ts'
import { podRangeOf } from './network.ts'

/** Where a machine's boot id stands, for containers, whose own /proc would show them that of the kernel all machines share. */
export const bootIdFile = '/run/kernel/_proc_sys_kernel_random_boot_id'

/** Of what build.sh makes: today's, or one whose NRI asks in the older way. */
export type Runtime = 'containerd-2.3' | 'containerd-1.7'

export interface DiskSettings {
  readonly name: string
  readonly index: number
  /** A UUID. Without firmware to ask kubelet reports this for systemUUID, as it would the UUID of a mainboard. */
  readonly machineId: string
  readonly kubeconfig: string
  /** Whose certificates kubelet's own port believes. */
  readonly clientAuthority: string
  readonly binaries: string
  readonly runtime: Runtime
}

export function makeDisk(disk: string, settings: DiskSettings): void {
  for (const folder of folders) mkdirSync(join(disk, folder), { recursive: true })
  for (const link of ['bin', 'sbin', 'lib', 'lib64']) symlinkSync(`usr/${link}`, join(disk, link))
  symlinkSync('/run', join(disk, 'var/run'))
  // Found before the other one, by the machine's init and by whoever runs something there.
  if (settings.runtime === 'containerd-1.7') symlinkSync('lab/containerd-1.7', join(disk, 'opt/runtime'))
  for (const file of ['passwd', 'group', 'nsswitch.conf', 'ld.so.cache']) if (existsSync(`/etc/${file}`)) cpSync(`/etc/${file}`, join(disk, 'etc', file))
  for (const plugin of readdirSync(join(settings.binaries, 'cni'))) cpSync(join(settings.binaries, 'cni', plugin), join(disk, 'opt/cni/bin', plugin))
  for (const [file, text] of Object.entries(texts(settings))) {
    mkdirSync(dirname(join(disk, file)), { recursive: true })
    writeFileSync(join(disk, file), text)
  }
}

const folders = [
  '.old', 'usr', 'proc', 'sys', 'dev', 'run', 'tmp', 'root', 'mnt', 'san', 'opt/lab', 'opt/images', 'opt/cni/bin', 'opt/nri/plugins',
  'etc/nri/conf.d', 'etc/kubernetes/manifests', 'var/log/pods', 'var/lib/kubelet', 'var/lib/containerd',
]

function texts(settings: DiskSettings): Readonly<Record<string, string>> {
  return {
    'etc/hostname': `${settings.name}\n`,
    'etc/hosts': `127.0.0.1 localhost ${settings.name}\n`,
    // Nobody answers there: a cluster without a name server is one that the product must work in.
    'etc/resolv.conf': 'nameserver 10.0.0.10\n',
    'etc/machine-id': `${settings.machineId}\n`,
    'etc/cni/net.d/10-lab.conflist': JSON.stringify(podNetwork(settings.index)),
    'etc/containerd/config.toml': runtimes[settings.runtime],
    'etc/kubernetes/kubelet.yaml': JSON.stringify(kubelet),
    'etc/kubernetes/kubeconfig': settings.kubeconfig,
    'etc/kubernetes/clients.crt': settings.clientAuthority,
  }
}

function podNetwork(index: number): object {
  // Addresses in use are kept where the power takes them away, or the pods of the last boot would keep theirs.
  const ipam = { type: 'host-local', dataDir: '/run/cni-addresses', ranges: [[{ subnet: podRangeOf(index) }]], routes: [{ dst: '0.0.0.0/0' }] }
  return { cniVersion: '1.0.0', name: 'lab', plugins: [{ type: 'ptp', ipMasq: false, ipam }] }
}

const nri = `[plugins.'io.containerd.nri.v1.nri']
  disable = false
  socket_path = "/var/run/nri/nri.sock"
  plugin_path = "/opt/nri/plugins"
  plugin_config_path = "/etc/nri/conf.d"
`

const runtimes: Readonly<Record<Runtime, string>> = {
  'containerd-2.3': `version = 3
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "${labImage}"
[plugins.'io.containerd.cri.v1.runtime']
  # Where root may not lower an OOM score (no CAP_SYS_RESOURCE), no sandbox would start at the one that kubelet asks for.
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/opt/cni/bin"]
    conf_dir = "/etc/cni/net.d"
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "runc"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        BinaryName = "/opt/lab/runc"
        SystemdCgroup = false
${nri}`,
  // The same in its words; of NRI it offers nothing unless it is told to.
  'containerd-1.7': `version = 2
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins.'io.containerd.grpc.v1.cri']
  sandbox_image = "${labImage}"
  restrict_oom_score_adj = true
  [plugins.'io.containerd.grpc.v1.cri'.cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
  [plugins.'io.containerd.grpc.v1.cri'.containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]
        BinaryName = "/opt/lab/runc"
        SystemdCgroup = false
${nri}`,
}

const kubelet = {
  apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration',
  failCgroupV1: false, cgroupDriver: 'cgroupfs', failSwapOn: false, oomScoreAdj: 0,
  containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
  address: '0.0.0.0', healthzBindAddress: '127.0.0.1', staticPodPath: '/etc/kubernetes/manifests', resolvConf: '/etc/resolv.conf',
  authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: '/etc/kubernetes/clients.crt' } },
  authorization: { mode: 'Webhook' },
  // The disk is this computer's own, and how full that is says nothing of the machine.
  evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1%', 'nodefs.inodesFree': '1%', 'imagefs.available': '1%' },
  imageGCHighThresholdPercent: 100, imageMinimumGCAge: '24h',
  enforceNodeAllocatable: ['pods'],
}
