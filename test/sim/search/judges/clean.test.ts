import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { judgeClean, newsTakes } from '../../../../sim/search/judges/clean.ts'
import { look } from '../../../../sim/search/judges/sight.ts'
import { quietWorld, type Quiet } from './quiet-world.ts'

const test = suite('search: the judge of nodes that are let back')

const quarantine = { key: 'holdfast.dev/quarantine', value: 'holdfast', effect: 'NoSchedule' }
const staged = { path: '/var/lib/kubelet/plugins/kubernetes.io/csi/x/globalmount', source: 'ext4 /dev/x', volume: 'of nobody' }

async function turns({ history, run }: Quiet, judge: ReturnType<typeof judgeClean>, span: number): Promise<void> {
  for (let count = 0; count < span / 5_000; count += 1) {
    judge.look(look(history))
    await run(5_000)
  }
}

async function lift({ product, node, done }: Quiet, name: string, over = node(name).metadata.resourceVersion): Promise<void> {
  await done(product.patch(`/api/v1/nodes/${name}`, 'json', [{ op: 'test', path: '/metadata/resourceVersion', value: over }, { op: 'add', path: '/spec/taints', value: [] }]))
}

/** Under our quarantine for long, with whatever was done to it before. */
async function back(litter: (quiet: Quiet) => Promise<void> | void, span = newsTakes + 5_000): Promise<readonly string[]> {
  const quiet = await quietWorld()
  const judge = judgeClean(quiet.history)
  await quiet.taint(quiet.victim, quarantine)
  await litter(quiet)
  await turns(quiet, judge, span)
  await lift(quiet, quiet.victim)
  return judge.found().map(({ judge: whose, what }) => `${whose}: ${what.replaceAll(quiet.victim, 'VICTIM')}`)
}

const machineOf = ({ world, victim }: Quiet) => world.nodes.get(victim)?.machine

test('a node on which nothing is left over may come back', async () => {
  assert.equal(await back(() => undefined), [])
})

test('a staged mount of nobody, a folder or a mount of a pod that is gone keep it from that', async () => {
  assert.match((await back((quiet) => void machineOf(quiet)?.mounts.set(staged.path, staged))).join(), /^safety: VICTIM was let back with 1 left over on it: .*globalmount had stood there for 1/)
  const path = '/var/lib/kubelet/pods/gone/volumes/kubernetes.io~csi/pv/mount'
  assert.match((await back((quiet) => void machineOf(quiet)?.mounts.set(path, { path, source: 'ext4 /dev/x' }))).join(), /pods\/gone\//)
  assert.match((await back((quiet) => {
    const faults = quiet.world.nodes.get(quiet.victim)?.faults
    if (faults !== undefined) faults.kept = 'folders'
    machineOf(quiet)?.podFolders.add('gone')
  })).join(), /1 left over on it: gone/)
})

test('a container of a pod that the product called over keeps it from that', async () => {
  const found = await back(async ({ product, pod, done, world, victim }) => {
    world.nodes.get(victim)?.kubelet()?.process.kill()
    await done(product.patch('/api/v1/namespaces/work/pods/db-0/status', 'strategic', { metadata: { uid: pod().metadata.uid ?? '' }, status: { phase: 'Failed' } }))
  })
  assert.match(found.join(), /a container of work\/db-0/)
})

test('an agent that lets go of what a pod has mounted that belongs there breaks it; of what nobody has, or a pod that was freed, it does not', async () => {
  const quiet = await quietWorld()
  const judge = judgeClean(quiet.history)
  const machine = machineOf(quiet)
  const own = [...machine?.mounts.values() ?? []].find(({ path }) => path.includes(`/pods/${quiet.pod().metadata.uid}/`) && path.includes('csi'))
  const staging = [...machine?.mounts.values() ?? []].find(({ path, volume }) => path.includes('/plugins/') && volume === own?.volume)
  machine?.mounts.set(staged.path, staged)
  const unmounts = (path = '') => quiet.world.truth.note('agent unmounts', { node: quiet.victim, path })
  unmounts(staged.path)
  assert.equal(judge.found(), [])
  for (const mount of [own, staging]) unmounts(mount?.path)
  assert.equal(judge.found().map(({ judge: whose, what }) => `${whose} ${what.includes('which db-0 has mounted')}`), ['safety true', 'safety true'])
  await quiet.done(quiet.product.patch('/api/v1/namespaces/work/pods/db-0/status', 'strategic', { metadata: { uid: quiet.pod().metadata.uid ?? '' }, status: { phase: 'Failed' } }))
  unmounts(own?.path)
  assert.is(judge.found().length, 2)
  judge.stop()
})

test('what came up a moment before could not be known', async () => {
  assert.equal(await back((quiet) => void machineOf(quiet)?.mounts.set(staged.path, staged), 5_000), [])
})

test('a person who takes the quarantine off, and a write over what stands no more, let nobody back', async () => {
  const quiet = await quietWorld()
  const judge = judgeClean(quiet.history)
  machineOf(quiet)?.mounts.set(staged.path, staged)
  await quiet.taint(quiet.victim, quarantine)
  await turns(quiet, judge, newsTakes + 5_000)
  await lift(quiet, quiet.victim, '1')
  assert.equal(quiet.node(quiet.victim).spec?.taints?.map(({ key }) => key), [quarantine.key])
  await quiet.taint(quiet.victim)
  assert.equal(judge.found(), [])
})

test.run()
