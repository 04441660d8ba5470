// A hypervisor of libvirt, and two machines of it that are never more than a firmware without a disk: libvirtd for one user, who is
// nobody, so that all it keeps is in the rack's folder. Whether a machine is on is told by its process.
import { chmodSync, chownSync, existsSync, globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { LineServer } from './lines.ts'
import { until, type Parameters, type Rack } from './rack.ts'
import { startSshShell } from './ssh-shell.ts'

export interface Hypervisor {
  /** Parameters of `libvirt`, and of fence_virsh, which logs in to the host. */
  readonly ours: Parameters
  readonly theirs: Parameters
  readonly machines: readonly [string, string]
  isOn(uuid: string): boolean
  /** Nobody answers for it any more, and again. Its machines go on. */
  readonly backEnd: Pick<LineServer, 'vanish' | 'open'>
  /** To libvirtd, and not to its machines. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void
}

const nobody = 65_534
/** Its own, and that nothing of the host is kept. */
const shellOptions = '-o UserKnownHostsFile=/dev/null -t \'/bin/bash -c "PS1=\\\\[EXPECT\\\\]# /bin/bash --noprofile --norc"\''

export async function startHypervisor(rack: Rack): Promise<Hypervisor> {
  const home = join(rack.folder, 'libvirt')
  chmodSync(rack.folder, 0o711)
  for (const folder of [home, join(home, 'libvirt')]) {
    mkdirSync(folder, { mode: 0o700 })
    chownSync(folder, nobody, nobody)
  }
  // Else it starts a second server for what its machines print, which stays.
  writeFileSync(join(home, 'libvirt', 'qemu.conf'), 'stdio_handler = "file"\n')
  const socket = join(home, 'libvirt', 'libvirt-sock')
  const environment = ['PATH=/usr/sbin:/usr/bin:/sbin:/bin', `HOME=${home}`, ...['RUNTIME_DIR', 'CONFIG_HOME', 'CACHE_HOME', 'DATA_HOME'].map((name) => `XDG_${name}=${home}`)]
  const asNobody = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups', 'env', '-i', ...environment]
  // Its machines would outlive it and us, but for the namespace; and one that nobody reaps it takes for one that will not end.
  const { pid } = await rack.start('libvirtd', ['unshare', '--pid', '--mount-proc', '--fork', '--kill-child', 'sh', '-c', '"$@" & wait', 'sh', ...asNobody, 'libvirtd'])
  await until('libvirtd to listen', () => existsSync(socket))
  const uri = `qemu+unix:///session?socket=${socket}`
  const machines = [randomUUID(), randomUUID()] as const
  for (const [index, uuid] of machines.entries()) {
    const file = join(rack.folder, `${uuid}.xml`)
    writeFileSync(file, `<domain type='qemu'><name>node-${index + 1}</name><uuid>${uuid}</uuid><memory unit='MiB'>32</memory><os><type arch='x86_64' machine='pc'>hvm</type></os><devices><emulator>/usr/bin/qemu-system-x86_64</emulator><memballoon model='none'/></devices></domain>`)
    // Off for a reason that libvirt has forgotten, as one that has never run, is not off.
    for (const words of [['define', file], ['start', uuid]]) execFileSync('virsh', ['-q', '-c', uri, ...words])
  }
  return {
    ours: { uri }, theirs: { ...await startSshShell(rack, { VIRSH_DEFAULT_CONNECT_URI: uri }), ssh_options: shellOptions }, machines, isOn: runs,
    backEnd: {
      vanish: () => Promise.resolve(renameSync(socket, `${socket}.away`)),
      open: () => Promise.resolve(renameSync(`${socket}.away`, socket)),
    },
    // A group of its own, which its machines have left.
    signal: (name) => void process.kill(-pid, name),
  }
}

function runs(uuid: string): boolean {
  return globSync('/proc/[0-9]*/cmdline').some((file) => {
    try {
      return readFileSync(file, 'utf8').includes(`\0-uuid\0${uuid}\0`)
    } catch {
      return false // it has just ended
    }
  })
}
