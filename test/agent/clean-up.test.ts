import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { frameLimit, frameOf } from '../../core/frame.ts'
import { cleanReport, type ContainerSeen, type LoopDevice } from '../../core/mounts.ts'
import { beatsWorld, emptyMounts } from '../coordinator/beats-world.ts'

const test = suite('clean-up')

const uid = (digit: number): string => `${String(digit).repeat(8)}-1111-4111-8111-111111111111`
const [gone, mine] = [uid(1), uid(2)]
const podMount = (pod: string) => `/var/lib/kubelet/pods/${pod}/volumes/kubernetes.io~csi/pvc-1/mount`
const staging = '/var/lib/kubelet/plugins/kubernetes.io/csi/disk.example/abc/globalmount'

/** A node with what is left of a pod that is gone, and one that belongs; what its host was told to end. */
async function node(fault: (what: string) => string | undefined | Promise<undefined> = () => undefined, loops: readonly LoopDevice[] = []) {
  const world = beatsWorld()
  const [leader, follower] = [world.replica('replica-a', true), world.replica('replica-b')]
  const running = new Map<string, ContainerSeen>([['c1', { id: 'c1', name: 'work/db-0 main', pod: gone, since: 0 }], ['c2', { id: 'c2', name: 'work/web-1 main', pod: mine, since: 0 }]])
  const mounts = new Map([[podMount(gone), '8:16'], [staging, '8:16'], [podMount(mine), '8:32']])
  const bare = new Set(['/var/lib/kubelet/plugins/kubernetes.io/csi/disk.example/def/globalmount'])
  const ended: string[] = []
  const one = world.agent('node-1', {
    containers: async () => [...running.values()],
    stopContainer: async ({ id }) => {
      ended.push(`stop ${id}`)
      const why = await fault(id)
      if (why === undefined) running.delete(id)
      return why
    },
    endLeftover: async (step) => {
      const path = step.do === 'detach' ? step.device : step.path
      ended.push(`${step.do} ${path}`)
      const why = await fault(path)
      if (why !== undefined) return why
      mounts.delete(path)
      bare.delete(path)
      return undefined
    },
    bareStagings: async () => [...bare],
    loopDevices: async () => loops,
  })
  one.podFolders = []
  Object.defineProperty(one.files, 'mounts', { get: () => emptyMounts + [...mounts].map(([path, device], index) => `${40 + index} 22 ${device} / ${path} rw - ext4 /dev/sdb rw\n`).join('') })
  await world.clock.runFor(3_000)
  return {
    world, leader, follower, ended,
    /** Asks every five seconds, as who waits for a clean report does. */
    async ask(span: number, wish: { cleanUp?: true } = { cleanUp: true }, by = leader) {
      for (let asked = 0; asked < span; asked += 5_000) {
        by.beats.check('node-1', [mine], wish)
        await world.clock.runFor(5_000)
      }
    },
    report: () => leader.beats.heard('node-1')?.clean?.report,
  }
}

test('what is left over is ended in its order, and the node is clean', async () => {
  const { ask, ended, report } = await node()
  await ask(60_000)
  assert.equal(ended, ['stop c1', 'remove /var/lib/kubelet/plugins/kubernetes.io/csi/disk.example/def/globalmount', `unmount ${podMount(gone)}`, `unmount ${staging}`])
  assert.equal(report(), { state: 'clean' })
})

test('not before it was left over by lists ten seconds apart', async () => {
  const { ask, ended } = await node()
  await ask(10_000)
  assert.equal(ended, [])
  await ask(5_000)
  assert.ok(ended.length > 0)
})

test('not by a question without that wish, nor by the word of a replica that does not lead', async () => {
  const { ask, ended, follower, report } = await node()
  await ask(30_000, {})
  await ask(30_000, { cleanUp: true }, follower)
  assert.equal([ended, report()?.state], [[], 'dirty'])
})

test('what cannot be ended is tried again, is named with the reason, and holds back what it holds, and nothing else', async () => {
  let busy = true
  const { ask, ended, report, leader } = await node((what) => (busy && what === podMount(gone) ? 'umount: "target" is busy' : undefined))
  await ask(60_000)
  const said = report()
  assert.ok(ended.filter((one) => one === `unmount ${podMount(gone)}`).length > 2)
  assert.not(ended.includes(`unmount ${staging}`))
  assert.equal(said?.state === 'dirty' ? said.leftovers.map(({ path, fault }) => [path, fault]) : said, [[podMount(gone), 'umount: ?target? is busy'], [staging, undefined]])
  assert.ok(leader.beats.agent('node-1')?.linked)
  busy = false
  await ask(30_000)
  assert.equal(report(), { state: 'clean' })
})

test('a container that does not stop keeps its pod\'s mounts where they are', async () => {
  const { ask, ended, report } = await node((what) => (what === 'c1' ? 'it does not answer' : undefined))
  await ask(60_000)
  assert.not(ended.some((one) => one.startsWith('unmount')))
  assert.is(report()?.state, 'dirty')
})

test('a container and a loop device that cannot be ended are named with their reasons', async () => {
  const loop = { name: 'loop7', file: `/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/pvc-9/dev/${uid(3)}` }
  const reasons: Readonly<Record<string, string>> = { c1: 'it does not answer', loop7: 'device busy' }
  const { ask, report } = await node((what) => reasons[what], [loop])
  await ask(30_000)
  const said = report()
  assert.equal(said?.state === 'dirty' ? said.leftovers.map(({ path, fault }) => [path, fault]) : said, [
    ['work/db-0 main c1', 'it does not answer'], [podMount(gone), undefined], [staging, undefined], [`loop7 on ${loop.file}`, 'device busy'],
  ])
})

test('a step that never comes back delays no report, and only after long is it tried again', async () => {
  const { world, ask, ended, report, leader } = await node((what) => (what === podMount(gone) ? new Promise<undefined>(() => undefined) : undefined))
  await ask(60_000)
  assert.equal([ended.filter((one) => one === `unmount ${podMount(gone)}`).length, report()?.state], [2, 'dirty'])
  assert.ok(world.clock.now() - (leader.beats.heard('node-1')?.clean?.at ?? 0) < 6_000)
})

test('a full report with a reason for each leftover fits its frame', () => {
  const mountinfo = Array.from({ length: 200 }, (_, index) => `${index + 40} 22 8:16 / /var/lib/kubelet/pods/${uid(1)}/volumes/kubernetes.io~csi/${'p'.repeat(300)}${index}/mount rw - ext4 /dev/sdb rw`).join('\n')
  const report = cleanReport({ mountinfo, podFolders: [], containers: [], mountTables: [], loopDevices: [], kubeletRoot: '/var/lib/kubelet', belonging: new Set() })
  if (report.state !== 'dirty') return assert.unreachable('it is dirty')
  const faulty = report.leftovers.map((leftover) => ({ ...leftover, driver: 'd'.repeat(63), since: 253_402_300_799_999, fault: 'x'.repeat(100) }))
  assert.ok(faulty.length > 50)
  assert.ok(frameOf({ say: 'clean', report: { state: 'dirty', leftovers: faulty } }).length < frameLimit)
})

test.run()
