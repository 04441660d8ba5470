import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { watchCleanliness, type Cleanliness } from '../../agent/cleanliness.ts'
import type { CleanReport } from '../../core/beat.ts'
import { silentLog } from '../../edge/log.ts'
import { virtualClock, type VirtualClock } from '../../sim/clock.ts'
import { emptyMounts, idleMachine } from '../coordinator/beats-world.ts'

const test = suite('cleanliness')

/** A machine whose folder of pods takes a second to read; only the folder of pod `new` is in it. */
function slow(): { clock: VirtualClock; told: string[]; cleanliness: Cleanliness } {
  const clock = virtualClock()
  const told: string[] = []
  const cleanliness = watchCleanliness({
    ...idleMachine, clock, log: silentLog, read: async () => emptyMounts,
    podFolders: async () => {
      await clock.wait(1_000)
      return ['new']
    },
  }, '/var/lib/kubelet', (report, list) => told.push(`${report.state} by ${list}`))
  return { clock, told, cleanliness }
}

test('a reading under way for an older list of pods answers no newer question', async () => {
  const { clock, told, cleanliness } = slow()
  cleanliness.check([])
  await clock.runFor(500)
  cleanliness.check(['new'], {}, 'list-2')
  await clock.runFor(600)
  assert.equal(told, [], 'the reading for the older list is over, and tells nothing')
  await clock.runFor(1_500)
  assert.equal(told, ['clean by list-2'])
})

test('after the stop nothing is told of what was still being read', async () => {
  const { clock, told, cleanliness } = slow()
  cleanliness.check([])
  await clock.runFor(500)
  cleanliness.stop()
  await clock.runFor(10_000)
  assert.equal([told, clock.pending()], [[], 0])
})

/** A machine that tells what it is told to tell. */
async function reported(change: Partial<Parameters<typeof watchCleanliness>[0]>): Promise<CleanReport | undefined> {
  const clock = virtualClock()
  let told: CleanReport | undefined
  const cleanliness = watchCleanliness({ ...idleMachine, clock, log: silentLog, read: async () => emptyMounts, podFolders: async () => [], ...change }, '/var/lib/kubelet', (report) => { told = report })
  cleanliness.check(['mine'])
  await clock.runFor(5_000)
  cleanliness.stop()
  return told
}

test('one question that is not answered, in time or at all, makes the whole report unknown, and says which', async () => {
  const never = new Promise<never>(() => undefined)
  const cases: [Partial<Parameters<typeof watchCleanliness>[0]>, RegExp][] = [
    [{ containers: async () => ({ failed: '/run/containerd/containerd.sock: ENOENT' }) }, /did not say what it runs: .*ENOENT/],
    [{ mountTables: async () => undefined }, /mount tables of the containers/],
    [{ loopDevices: async () => undefined }, /loop devices/],
    [{ containers: () => never }, /could not be read within 3000 ms/],
    [{ mountTables: () => never }, /could not be read within 3000 ms/],
    [{ loopDevices: async () => Promise.reject(new Error('EIO')) }, /EIO/],
  ]
  for (const [change, wanted] of cases) {
    const report = await reported(change)
    assert.match(report?.state === 'unknown' ? report.reason : JSON.stringify(report), wanted)
  }
  assert.equal(await reported({}), { state: 'clean' })
})

test('a container of a pod that does not belong, and a staged volume by its own name, are in the report', async () => {
  const staging = '/var/lib/kubelet/plugins/kubernetes.io/csi/disk.example/ff/globalmount'
  const report = await reported({
    containers: async () => [{ id: 'c1', name: 'work/db-0 main', pod: 'gone' }, { id: 'c2', name: 'work/web', pod: 'mine' }],
    read: async () => `${emptyMounts}40 22 8:32 / ${staging} rw - ext4 /dev/sdc rw\n`,
    csiVolume: async (path) => (path === staging ? '{"driverName":"disk.example","volumeHandle":"vol-7"}' : undefined),
  })
  assert.equal(report?.state === 'dirty' && report.leftovers.map(({ since: _since, ...rest }) => rest), [
    { kind: 'container', path: 'work/db-0 main c1', pod: 'gone' }, { kind: 'staging', path: staging, volume: 'vol-7', driver: 'disk.example' },
  ])
})

test('each leftover says since when: through looks that tell nothing, and anew once it was gone', async () => {
  const clock = virtualClock()
  let folders: readonly string[] | undefined = ['gone']
  let told: CleanReport | undefined
  const cleanliness = watchCleanliness({ ...idleMachine, clock, log: silentLog, read: async () => emptyMounts, podFolders: async () => folders }, '/var/lib/kubelet', (report) => { told = report })
  const since = (): readonly unknown[] => (told?.state === 'dirty' ? told.leftovers.map((one) => [one.pod, one.since]) : [told?.state])
  const began = clock.wall()
  cleanliness.check([])
  await clock.runFor(5_000)
  assert.equal(since(), [['gone', began]])
  folders = ['gone', 'other']
  await clock.runFor(5_000)
  assert.equal(since(), [['gone', began], ['other', began + 6_000]])
  folders = undefined
  await clock.runFor(5_000)
  assert.equal(since(), ['unknown'])
  folders = ['gone']
  await clock.runFor(5_000)
  assert.equal(since(), [['gone', began]], 'a look that told nothing is no sign that it was gone')
  folders = []
  await clock.runFor(5_000)
  folders = ['gone']
  await clock.runFor(5_000)
  assert.equal(since(), [['gone', began + 26_000]])
  cleanliness.stop()
})

test('an old list has nobody look for long: half a minute after it was first clean, a minute while it is not and nobody asks again', async () => {
  const cases: [string, (at: number) => readonly string[], number][] = [
    ['clean', () => [], 35_000], ['a pod of after the list', (at) => (at < 20_000 ? [] : ['newer']), 35_000], ['left over', () => ['gone'], 65_000],
  ]
  for (const [what, found, within] of cases) {
    const clock = virtualClock()
    const began = clock.now()
    let looks = 0
    const cleanliness = watchCleanliness({
      ...idleMachine, clock, log: silentLog, read: async () => emptyMounts,
      podFolders: async () => {
        looks += 1
        return found(clock.now() - began)
      },
    }, '/var/lib/kubelet', () => undefined)
    cleanliness.check([])
    await clock.runFor(within)
    const before = looks
    await clock.runFor(600_000)
    assert.equal([before > 10, looks - before], [true, 0], what)
    cleanliness.check([])
    await clock.runFor(1_000)
    assert.is(looks - before, 1, `${what}: asked again it looks again`)
    cleanliness.stop()
  }
})

test('what is to be stopped and does not stop is gone after for long, though whoever asked for it is gone', async () => {
  const clock = virtualClock()
  const began = clock.now()
  const running = [{ id: 'c1', name: 'work/db-0 main', pod: '0d8f3b1c-1234-4abc-9def-0123456789ab' }]
  const cleanliness = watchCleanliness({
    ...idleMachine, clock, log: silentLog, read: async () => emptyMounts, podFolders: async () => [], containers: async () => running,
    stopContainer: async () => (clock.now() - began < 600_000 ? 'the runtime hangs' : void running.pop()),
  }, '/var/lib/kubelet', () => undefined)
  cleanliness.check([], { stop: true })
  await clock.runFor(590_000)
  assert.is(running.length, 1)
  await clock.runFor(15_000)
  assert.is(running.length, 0)
  cleanliness.stop()
})

test('a pod\'s own mount says which driver made it', async () => {
  const path = '/var/lib/kubelet/pods/gone/volumes/kubernetes.io~csi/pvc-1/mount'
  const asked: string[] = []
  const report = await reported({
    read: async () => `${emptyMounts}40 22 8:32 / ${path} rw - ext4 /dev/sdc rw\n41 22 0:60 / ${path}/deaf rw - nfs4 server:/ rw\n`,
    csiVolume: async (of) => {
      asked.push(of)
      return '{"driverName":"disk.example","volumeHandle":"vol-7"}'
    },
  })
  assert.equal(report?.state === 'dirty' && report.leftovers.map(({ volume, driver }) => [volume, driver]), [['pvc-1', 'disk.example'], ['pvc-1', undefined]])
  assert.equal([...new Set(asked)], [path], 'nothing is looked for beside what is mounted below it')
})

test.run()
