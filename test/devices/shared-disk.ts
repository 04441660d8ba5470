// One disk that several machines have, as a storage network gives it to them: a target of iSCSI, which is Linux's own in a machine of
// its own, and qemu as each node's initiator, which hands the commands of SCSI on as they are. So reservations are the target's, and
// what a node may write is told by the kernels at both ends.
import { copyFileSync, cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { freePorts } from '../control-plane/ports.ts'
import { pack, place } from './guest-tree.ts'
import { startMachine, type Machine } from './machine.ts'
import { installed, until, type Rack } from './rack.ts'

export interface DiskNode {
  readonly machine: Machine
  /** The boot that runs, once it has its disk. Again after each. */
  begins(): Promise<string>
  /** The script of deploy/examples, in the machine. */
  reservation(environment: Readonly<Record<string, string>>, word?: string): ReturnType<Machine['run']>
  /** Into a block of its own: whether the disk took it. */
  writes(): Promise<boolean>
  /** From now on, five times a second, a number that grows, into one block that is the node's own. */
  writeOn(): void
  /** What stands in the block of the node with this key, by the disk itself. */
  read(key: string): Promise<number>
}

export const disk = '/dev/sda'
const target = 'iqn.2026-01.internal.example:disk'
const size = 16 * 1024 * 1024
/** A page, so that no kernel writes back what another one has beside it. */
const block = 4_096
const patience = 400_000

export async function startSharedDisk(rack: Rack, keys: readonly string[]): Promise<readonly DiskNode[]> {
  const guest = { kernel: join(installed('reservation'), 'vmlinuz'), initrd: makeGuest(rack.folder), memory: '192' }
  const { iscsi } = await freePorts(['iscsi'])
  const storage = await startMachine(rack, 'storage', { guest: { ...guest, devices: ['-netdev', `user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:${iscsi}-:3260`, '-device', 'e1000,netdev=net'] } })
  await storage.beats(patience)
  for (const line of served) await mustRun(storage, line)
  return Promise.all(keys.map(async (key, index) => {
    const name = `node-${index + 1}`
    const at = `driver=iscsi,transport=tcp,portal=127.0.0.1:${iscsi},target=${target},lun=0,initiator-name=${target}.${name},node-name=disk,cache.direct=on`
    const machine = await startMachine(rack, name, { guest: { ...guest, devices: ['-blockdev', at, '-device', 'virtio-scsi-pci', '-device', 'scsi-generic,drive=disk'] } })
    const node = nodeOf(machine, key)
    await node.begins()
    return node
  }))
}

function nodeOf(machine: Machine, key: string): DiskNode {
  return {
    machine,
    async begins() {
      const boot = await machine.beats(patience)
      for (const line of ['mkdir -p /etc/holdfast /run', `echo ${key} > /etc/holdfast/reservation-key`, drivers]) await mustRun(machine, line)
      await until(`the disk of ${machine.name}`, async () => (await machine.run(`[ -b ${disk} ]`)).code === 0)
      return boot
    },
    reservation: (environment, word = '') => machine.run(`${Object.entries({ DISKS: disk, ...environment }).map(([name, value]) => `${name}='${value}'`).join(' ')} sh /holdfast/reservation.sh ${word}`),
    writes: async () => (await machine.run(`printf '%-${block}s' once | ${put(placeOf(key) + 1)}`)).code === 0,
    writeOn: () => machine.tell(`(n=0; while :; do n=$((n + 1)); printf '%-${block}s' $n | ${put(placeOf(key))}; sleep 0.2; done) &`),
    async read(of) {
      // Not what this kernel remembers of it.
      const { output } = await machine.run(`echo 3 > /proc/sys/vm/drop_caches; dd if=${disk} bs=${block} skip=${placeOf(of)} count=1 2> /dev/null | tr -d '\\000'; echo`)
      return Number(output.trim())
    },
  }
}

function put(seek: number): string {
  return `dd of=${disk} bs=${block} seek=${seek} count=1 conv=fsync 2> /dev/null`
}

function placeOf(key: string): number {
  return Number.parseInt(key, 16) * 2
}

async function mustRun(machine: Machine, command: string): Promise<void> {
  const { code, output } = await machine.run(command)
  if (code !== 0) throw new Error(`${command}: ${code}, ${output}\n${machine.lastWords()}`)
}

function makeGuest(folder: string): string {
  const tree = join(folder, 'disk-guest')
  mkdirSync(join(tree, 'holdfast'), { recursive: true })
  mkdirSync(join(tree, 'bin'), { recursive: true })
  place(tree, '/usr/bin/sg_persist', join(tree, 'bin', 'sg_persist'))
  copyFileSync('deploy/examples/reservation.sh', join(tree, 'holdfast', 'reservation.sh'))
  cpSync(join(installed('reservation'), 'modules'), join(tree, 'modules'), { recursive: true })
  const initrd = join(folder, 'disk-guest.cpio')
  pack(tree, initrd)
  return initrd
}

/** In their order. Some are for processors of another make, and are not missed. */
const drivers = 'for m in /modules/*.ko; do insmod $m 2> /dev/null; done; true'

const config = '/sys/kernel/config/target'
const portal = `${config}/iscsi/${target}/tpgt_1`

const served = [
  drivers, 'ifconfig lo 127.0.0.1 up', 'ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up',
  // Seconds until its link is up; who calls before that is hung up on.
  'until ping -c 1 -W 1 10.0.2.2 > /dev/null; do :; done',
  // There the target writes down who is registered; where it cannot, it does as it is told and says that it has failed.
  'mkdir -p /var/target/pr', 'mount -t configfs config /sys/kernel/config',
  `mkdir -p ${config}/core/fileio_0/disk && : > /disk && truncate -s ${size} /disk`, `echo fd_dev_name=/disk,fd_dev_size=${size} > ${config}/core/fileio_0/disk/control`, `echo 1 > ${config}/core/fileio_0/disk/enable`,
  `mkdir -p ${portal}/lun/lun_0 ${portal}/np/0.0.0.0:3260`, `ln -s ${config}/core/fileio_0/disk ${portal}/lun/lun_0/disk`,
  ...Object.entries({ authentication: 0, generate_node_acls: 1, demo_mode_write_protect: 0, cache_dynamic_acls: 1 }).map(([name, value]) => `echo ${value} > ${portal}/attrib/${name}`),
  `echo 1 > ${portal}/enable`,
]
