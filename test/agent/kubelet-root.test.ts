// Kubelet's folder behind a symbolic link, as MicroK8s ships it (/var/lib/kubelet -> /var/snap/microk8s/common/var/lib/kubelet) and as people make it who
// move it to a larger disk. The host's mount table spells the place that the link leads to.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { watchCleanliness } from '../../agent/cleanliness.ts'
import type { AgentHost } from '../../agent/host.ts'
import { asHostSpells, hidesMounts } from '../../agent/kubelet-root.ts'
import { machineHost } from '../../agent/machine-host.ts'
import { readEnvironment } from '../../agent/settings.ts'
import type { CleanReport } from '../../core/beat.ts'
import { silentLog } from '../../edge/log.ts'

const test = suite('kubelet root')
const mine = '11111111-1111-4111-8111-111111111111'
const usual = '/var/lib/kubelet'

const cases: readonly (readonly [what: string, path: string, own: readonly string[], host: readonly string[], wanted: string | undefined])[] = [
  ['on the host itself', usual, ['8:1 / /'], ['8:1 / /'], usual],
  ['on the host itself, while it mounts something', usual, ['8:1 / /'], ['8:1 / /', '0:60 / /new'], usual],
  ['in a container that has it from the host\'s own disk', usual, ['0:50 / /', `8:1 ${usual} ${usual}`], ['8:1 / /'], usual],
  ['where the host has a link to another place', usual, ['0:50 / /', `8:1 /snap/kubelet ${usual}`], ['8:1 / /'], '/snap/kubelet'],
  ['where the host has a link to another disk', usual, ['0:50 / /', `8:17 /kubelet ${usual}`], ['8:1 / /', '8:17 / /data'], '/data/kubelet'],
  ['where the folder is a disk of its own', usual, ['0:50 / /', `8:17 / ${usual}`], ['8:1 / /', `8:17 / ${usual}`], usual],
  ['where the host has it twice, and once by this name', usual, ['0:50 / /', `8:17 /kubelet ${usual}`], ['8:1 / /', '8:17 / /data', `8:17 /kubelet ${usual}`], usual],
  ['where the host has it twice, and kubelet mounts in one of the places', usual, ['0:50 / /', `8:17 /kubelet ${usual}`], ['8:17 / /data', '8:17 /kubelet /kubelet', '0:60 / /kubelet/pods/x'], '/kubelet'],
  ['where only a part of the disk is mounted', usual, ['0:50 / /', `0:40 /@data/kubelet ${usual}`], ['0:40 /@ /', '0:40 /@data /data'], '/data/kubelet'],
  ['where another mount has covered one of the places', usual, ['0:50 / /', `8:17 /kubelet ${usual}`], ['8:17 / /old', '8:33 / /old', '8:17 / /data'], '/data/kubelet'],
  ['with a space in it', '/a kubelet', ['0:50 / /', '8:17 /the\\040kubelet /a\\040kubelet'], ['8:17 / /my\\040data'], '/my data/the kubelet'],
  ['where the host has no such disk', usual, ['0:50 / /', `8:17 /kubelet ${usual}`], ['8:1 / /'], undefined],
  ['where the host has another part of it', usual, ['0:50 / /', `8:17 /kubelet ${usual}`], ['8:17 /kubelets /data'], undefined],
  ['without a table of one\'s own', usual, [], ['8:1 / /'], undefined],
]
const table = (rows: readonly string[]): string => rows.map((row, index) => `${index + 22} 1 ${row} rw,relatime shared:1 - ext4 /dev/x rw\n`).join('')

for (const [what, path, own, host, wanted] of cases) {
  test(`the host's spelling of kubelet's folder ${what}`, () => assert.is(asHostSpells(path, table(own), table(host)), wanted))
}

test('a pod of the API that belongs and has its folder here, and no mount of kubelet\'s at all: nobody looks at the right place', () => {
  const tables = { mountinfo: table(['8:1 / /']), podFolders: [mine], kubeletRoot: usual, containers: [], mountTables: [], loopDevices: [], belonging: new Set([mine]) }
  assert.ok(hidesMounts(tables))
  const seen = { mountinfo: table(['8:1 / /', `0:60 / ${usual}/pods/${mine}/volumes/kubernetes.io~projected/token`]) }
  const ofAFile = '0123456789abcdef0123456789abcdef'
  const others: Partial<typeof tables>[] = [seen, { podFolders: [] }, { belonging: new Set() }, { podFolders: [ofAFile], belonging: new Set([ofAFile]) }]
  for (const change of others) assert.not(hidesMounts({ ...tables, ...change }), Object.keys(change).join())
})

interface Found {
  readonly folder: string
  readonly real: string
  readonly root: string
  readonly host: AgentHost
  look(): Promise<CleanReport>
  end(): void
}

/** A machine of files whose kubelet uses a disk that no pod wants any more. `link`: what is set is a link to its folder. */
function machine({ link, seen = true }: { readonly link: boolean; readonly seen?: boolean }): Found {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-root-'))
  const real = join(folder, 'snap', 'kubelet')
  const root = link ? join(folder, 'kubelet') : real
  for (const path of [`snap/kubelet/pods/${mine}`, 'proc/1', 'proc/self', 'sys/block']) mkdirSync(join(folder, path), { recursive: true })
  if (link) symlinkSync(real, root)
  const below = seen ? [`0:50 / ${real}/pods/${mine}/volumes/kubernetes.io~projected/token`, `8:32 / ${real}/plugins/kubernetes.io/csi/disk.example/ff/globalmount`] : []
  for (const process of ['1', 'self']) writeFileSync(join(folder, 'proc', process, 'mountinfo'), table(['8:1 / /', ...below]))
  writeFileSync(join(folder, 'proc', '1', 'cgroup'), '0::/init\n')
  const read = readEnvironment({ HOLDFAST_REPLICAS: '127.0.0.1:1', HOLDFAST_PROC: join(folder, 'proc'), HOLDFAST_SYS: join(folder, 'sys'), HOLDFAST_KUBELET_ROOT: root, HOLDFAST_STATE: join(folder, 'state') })
  if (!read.ok) throw new Error(read.faults.join())
  const host = machineHost(read.settings, silentLog)
  return {
    folder, real, root, host,
    async look() {
      const told = Promise.withResolvers<CleanReport>()
      const cleanliness = watchCleanliness({ ...host, containers: async () => [] }, root, told.resolve)
      cleanliness.check([mine])
      return await told.promise.finally(cleanliness.stop)
    },
    end: () => rmSync(folder, { recursive: true }),
  }
}

for (const [what, link] of [['itself', false], ['a link to it', true]] as const) {
  test(`a staging mount that nobody uses is left over, and named with its volume, where the setting names kubelet's folder ${what}`, async () => {
    const one = machine({ link })
    mkdirSync(join(one.real, 'plugins/kubernetes.io/csi/disk.example/ff'), { recursive: true })
    writeFileSync(join(one.real, 'plugins/kubernetes.io/csi/disk.example/ff/vol_data.json'), '{"driverName":"disk.example","volumeHandle":"vol-7"}')
    const report = await one.look()
    assert.equal(report.state === 'dirty' && report.leftovers.map(({ since: _since, ...rest }) => rest), [
      { kind: 'staging', path: `${one.real}/plugins/kubernetes.io/csi/disk.example/ff/globalmount`, volume: 'vol-7', driver: 'disk.example' },
    ])
    assert.is((await one.host.places()).kubelet, one.real)
    one.end()
  })

  test(`of the folders meant for staging mounts only those are bare that nothing is mounted on, where the setting names kubelet's folder ${what}`, async () => {
    const one = machine({ link })
    for (const volume of ['ff', 'ee']) mkdirSync(join(one.real, 'plugins/kubernetes.io/csi/disk.example', volume, 'globalmount'), { recursive: true })
    assert.equal(await one.host.bareStagings(), [join(one.real, 'plugins/kubernetes.io/csi/disk.example/ee/globalmount')])
    one.end()
  })
}

test('a host without any mount of a pod that is there is not known to be clean, and why is told', async () => {
  const one = machine({ link: true, seen: false })
  const report = await one.look()
  assert.match(report.state === 'unknown' ? report.reason : JSON.stringify(report), /the host has nothing mounted there/)
  one.end()
})

test('a host whose table has kubelet\'s folder nowhere is not known to be clean, and check is told of no folder', async () => {
  const one = machine({ link: true })
  writeFileSync(join(one.folder, 'proc', '1', 'mountinfo'), table(['8:2 / /']))
  const report = await one.look()
  assert.match(report.state === 'unknown' ? report.reason : JSON.stringify(report), /cannot be told/)
  assert.is((await one.host.places()).kubelet, '')
  one.end()
})

test.run()
