// The product changed and taken away while the workload writes: no release that rolls over the nodes is an incident, and what
// docs/install.md says of its removal leaves nothing behind.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renameImage } from '../../deploy/images.ts'
import { yamlOf, type Manifest } from '../../deploy/manifest.ts'
import { manifests } from '../../deploy/manifests.ts'
import { uninstallManifests } from '../../deploy/uninstall.ts'
import { names, usualValues, type Values } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { until } from './cluster.ts'
import { say, theRoom } from './room.ts'
import { dist, nodesOf, ourTaint, startStage, writes, type Stage } from './stage.ts'
import { begin, leftAlone, neverTwoWriters, untouched } from './story.ts'
import { driver, volumes } from './workload.ts'

const test = suite('rollout')
const { namespace, agentNamespace } = usualValues
/** With all that may be left on a node. */
const values: Values = { ...usualValues, gateFromBoot: 'on' }
/** There is one release yet: the same files under another name roll as another one would. */
const next = 'holdfast:0.1.0-next'
const rolledWithin = '240s'
let stage: Stage

const kubectl = (...words: readonly string[]): Promise<string> => stage.cluster.kubectl(...words)

function rendered(name: string, all: readonly Manifest[]): string {
  const file = join(theRoom().folder, `${name}.yaml`)
  writeFileSync(file, yamlOf(all))
  return file
}

async function roll(image: string): Promise<void> {
  await kubectl('apply', '--server-side', '--filename', rendered('release', manifests({ ...values, image })))
  await kubectl('--namespace', namespace, 'rollout', 'status', `deployment/${names.coordinator}`, `--timeout=${rolledWithin}`)
  await kubectl('--namespace', agentNamespace, 'rollout', 'status', `daemonset/${names.agent}`, `--timeout=${rolledWithin}`)
}

test('the stage is set', async () => {
  const archive = join(theRoom().folder, 'next.tar')
  await renameImage(dist, next, archive)
  stage = await startStage(say, { images: [archive], values })
})

test('upgrade, downgrade, upgrade under steady writes: no incident, nothing moves', async () => {
  const story = await begin(stage)
  for (const image of [next, usualValues.image, next]) {
    const began = clock.now()
    await roll(image)
    say(`rolled to ${image} in ${((clock.now() - began) / 1_000).toFixed(1)} s`)
    await leftAlone(story)
    for (const volume of volumes) assert.ok(writes(stage, volume), `nobody writes ${volume}`)
  }
  await untouched(story)
})

test('uninstalled as docs/install.md says, it leaves no taint, webhook, policy, kind, finalizer, or file on a node', async () => {
  const story = await begin(stage)
  await kubectl('--namespace', namespace, 'delete', 'deployment', names.coordinator, '--cascade=foreground')
  await kubectl('--namespace', agentNamespace, 'delete', 'daemonset', names.agent, '--cascade=foreground')
  const uninstall = rendered('uninstall', uninstallManifests(values))
  await kubectl('apply', '--filename', uninstall)
  await kubectl('--namespace', agentNamespace, 'rollout', 'status', 'daemonset/holdfast-uninstall', `--timeout=${rolledWithin}`)
  await kubectl('delete', '--filename', uninstall, '--cascade=foreground')
  await kubectl('delete', '--ignore-not-found', '--filename', rendered('release', manifests(values)))
  const kinds = ['namespaces', 'customresourcedefinitions', 'clusterroles', 'clusterrolebindings', 'validatingadmissionpolicies', 'validatingadmissionpolicybindings',
    'mutatingwebhookconfigurations', 'validatingwebhookconfigurations', 'priorityclasses', 'apiservices']
  const left = (await Promise.all(kinds.map((kind) => kubectl('get', kind, '--output', 'name')))).join('').split('\n').filter((line) => line.includes('holdfast'))
  assert.equal(left, [])
  for (const node of await nodesOf(stage)) {
    assert.equal(node.spec?.taints?.filter(ourTaint) ?? [], [])
    assert.not.match(JSON.stringify([node.metadata.finalizers ?? [], node.metadata.annotations ?? {}, node.metadata.labels ?? {}]), /holdfast\.dev/)
  }
  assert.not.match(await kubectl('get', 'pods,volumeattachments,persistentvolumes', '--all-namespaces', '--output', 'jsonpath={.items[*].metadata.finalizers}'), /holdfast\.dev/)
  // kubelet clears away the folders of pods that are gone a while after them.
  for (const machine of stage.cluster.machines.values()) {
    let files = ''
    await until(`nothing of it is on the disk of ${machine.name}`, async () => (files = await filesOf(machine.name)) === '', 180_000).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${files}`, { cause: error })
    })
  }
  for (const { metadata: { uid } } of story.pods) assert.ok((await stage.pods('work')).some((pod) => pod.metadata.uid === uid), 'the workload is where it was')
  for (const volume of volumes) assert.ok(writes(stage, volume), `nobody writes ${volume}`)
  neverTwoWriters(story)
})

/** With the product's name in theirs; the lab's own driver has it too. Images are the runtime's, which keeps them until it needs
 *  the room. */
async function filesOf(machine: string): Promise<string> {
  const found = await stage.cluster.machine(machine).run(['find', '/', '-xdev', '(', '-path', '/proc', '-o', '-path', '/var/lib/containerd', ')', '-prune', '-o', '-name', '*holdfast*', '-print'])
  return found.split('\n').filter((file) => file !== '' && !file.includes(driver)).join(' ')
}

test('the stage is left', async () => await stage.stop())

test.run()
