// From check to removal as docs/install.md says it: a policy that is tried dry and then in earnest, a release that rolls over the nodes while the workload writes, kinds
// and all, and back, which is no incident, and a removal that leaves nothing behind.
import { randomUUID } from 'node:crypto'
import { copyFileSync, cpSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { quarantineKey } from '../../core/clear.ts'
import type { buildAll } from '../../deploy/build.ts'
import { renameImage } from '../../deploy/images.ts'
import { yamlOf, type Manifest } from '../../deploy/manifest.ts'
import { manifests } from '../../deploy/manifests.ts'
import { names, usualValues, type Values } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { news, nextTree } from '../stories/release.ts'
import { until } from './cluster.ts'
import { command } from './command.ts'
import type { Machine } from './machine.ts'
import { say, theRoom } from './room.ts'
import { dist, nodesOf, ourTaint, startStage, writes, type Stage } from './stage.ts'
import { begin, comesBack, ended, heldBecause, incidentsOf, leftAlone, movedAway, neverTwoWriters, tell, transcript, untouched } from './story.ts'
import { driver, volumes } from './workload.ts'

const test = suite('rollout')
const { namespace, agentNamespace } = usualValues
/** With all that may be left on a node. */
const values: Values = { ...usualValues, gateFromBoot: 'on' }
const next = 'holdfast:0.1.0-next'
const rolledWithin = '240s'
const within = 120_000
const watchedFor = 15_000
let stage: Stage
let manifestsOf: Readonly<Record<string, readonly Manifest[]>>

const kubectl = (...words: readonly string[]): Promise<string> => stage.cluster.kubectl(...words)

function rendered(name: string, all: readonly Manifest[]): string {
  const file = join(theRoom().folder, `${name}.yaml`)
  writeFileSync(file, yamlOf(all))
  return file
}

/** There is one release yet: a next one is this tree with what a minor may add in its text. Its image in an archive, and what it renders. */
async function nextRelease(archive: string): Promise<readonly Manifest[]> {
  const tree = nextTree('cli', 'fence-agents')
  const built = join(tree, 'dist')
  const [builder, renderer] = await Promise.all(['build', 'manifests'].map((file) => import(pathToFileURL(join(tree, 'deploy', `${file}.ts`)).href) as Promise<{ buildAll: typeof buildAll; manifests: typeof manifests }>)) // the one exports the one, the other the other
  assert.is(await builder?.buildAll(`${built}/`, () => undefined), 0)
  const root = join(built, 'image', 'root')
  cpSync(join(dist, 'image', 'root'), root, { recursive: true })
  for (const program of globSync(['*.mjs', 'fence-agents/*/*.mjs'], { cwd: built })) copyFileSync(join(built, program), join(root, 'holdfast', program))
  await renameImage(built, next, archive)
  return (renderer?.manifests({ ...values, image: next }) ?? []).map(withColumn)
}

const policies = 'holdfastpolicies.holdfast.dev'

/** Of the field that its text does not print. */
function withColumn(one: Manifest): Manifest {
  if (one.kind !== 'CustomResourceDefinition' || one.metadata.name !== policies) return one
  const { spec } = one as Definition // as deploy/crd.ts writes it
  const column = { name: 'Weather', type: 'string', jsonPath: `.spec.${news.field}`, description: 'In which one acts.' }
  return { ...one, spec: { ...spec, versions: spec.versions.map((version) => ({ ...version, additionalPrinterColumns: [...version.additionalPrinterColumns, column] })) } } as Manifest // as it was, and a column
}

type Definition = Manifest & { readonly spec: { readonly versions: readonly { readonly additionalPrinterColumns: readonly object[] }[] } }

async function roll(image: string): Promise<void> {
  await kubectl('apply', '--server-side', '--filename', rendered('release', manifestsOf[image] ?? []))
  await kubectl('--namespace', namespace, 'rollout', 'status', `deployment/${names.coordinator}`, `--timeout=${rolledWithin}`)
  await kubectl('--namespace', agentNamespace, 'rollout', 'status', `daemonset/${names.agent}`, `--timeout=${rolledWithin}`)
}

test('the stage is set', async () => {
  const archive = join(theRoom().folder, 'next.tar')
  manifestsOf = { [usualValues.image]: manifests(values), [next]: await nextRelease(archive) }
  stage = await startStage(say, { images: [archive], values })
})

test('once every path is verified, check finds nothing that it would not rest on', async () => {
  const cli = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))
  const told = await command(execPath, [cli, 'check', '--kubeconfig', stage.cluster.plane.kubeconfig('admin'), '--ascii'])
  assert.match(told, /ok every fence path answered on at its latest audit/)
})

test('by the example policy a death is told and nothing is done; patched to enforce it is cut off, moved, and back', async () => {
  await kubectl('delete', 'holdfastpolicy', 'lab')
  await kubectl('apply', '--filename', join(dist, 'examples', 'policy.yaml'))
  const story = await begin(stage)
  const orders = (): number => stage.management.of.get(story.machine.name)?.orders.length ?? 0
  await story.machine.powerOff()
  let would: string | undefined
  await until('what would be done is told', async () => (would = await heldBecause(story, 'dry-run')) !== undefined, within)
  await clock.wait(watchedFor)
  assert.match(would ?? '', /an incident would be opened/)
  assert.equal([await incidentsOf(story), orders() - story.orders, stage.turns(volumes[0] ?? '').at(-1)?.boot], [[], 0, story.bootId])
  await kubectl('patch', 'holdfastpolicy', 'usual', '--type', 'merge', '--patch', '{"spec":{"mode":"enforce"}}')
  await movedAway(story)
  const incident = await ended(story)
  tell(`the example policy, first dry (held: ${would})`, story, incident)
  await comesBack(story, incident)
})

/** What stands in the cluster of ours and must outlive every release, but for what a replica writes anew: what people wrote, what was done, and on whom there is a record. */
async function kept(): Promise<Readonly<Record<string, readonly unknown[]>>> {
  const [own = [], fences = [], records = []] = await Promise.all([policies, 'nodefences', 'noderecords'].map(objectsOf))
  return { policies: own.map(({ metadata: { uid }, spec }) => ({ uid, spec })), fences: fences.map(({ metadata: { uid }, spec, status }) => ({ uid, spec, status })), records: records.map(({ metadata: { uid } }) => uid) }
}

async function objectsOf(kind: string): Promise<readonly (KubeObject & { readonly spec?: unknown; readonly status?: unknown })[]> {
  return (JSON.parse(await kubectl('get', kind, '--output', 'json')) as { items: KubeObject[] }).items // as kubectl prints them
}

/** What only the next release knows: whether the API server takes it, and prints it. */
async function knowsNews(): Promise<boolean> {
  const field = await kubectl('patch', policies, 'usual', '--type', 'merge', '--patch', JSON.stringify({ spec: { [news.field]: 'fair' } }), '--dry-run=server', '--output', `jsonpath={.spec.${news.field}}`)
  const column = (await kubectl('get', policies)).includes(news.field.toUpperCase())
  assert.is(field === 'fair', column, 'the field and its column come and go together')
  return column
}

test('upgrade, downgrade, upgrade under steady writes, kinds and all: no incident, nothing moves, and nothing on record is lost', async () => {
  const story = await begin(stage)
  const before = await kept()
  assert.equal(Object.values(before).map((all) => all.length > 0), [true, true, true], 'there is something to lose')
  assert.not(await knowsNews())
  for (const image of [next, usualValues.image, next]) {
    const began = clock.now()
    await roll(image)
    say(`rolled to ${image} in ${((clock.now() - began) / 1_000).toFixed(1)} s`)
    await leftAlone(story)
    assert.is(await knowsNews(), image === next, `${image} and its kinds`)
    assert.equal(await kept(), before)
    for (const volume of volumes) assert.ok(writes(stage, volume), `nobody writes ${volume}`)
  }
  await untouched(story)
})

const replicas = (count: number): Promise<string> => kubectl('--namespace', namespace, 'scale', 'deployment', names.coordinator, `--replicas=${count}`)

/** Its boot before was cut off while nobody led, and something of that is left: quarantined, and no incident tells of it. */
async function bootsUnclean({ name, disk, powerOff, powerOn }: Machine): Promise<void> {
  const mount = `/var/lib/kubelet/pods/${randomUUID()}/volumes/kubernetes.io~csi/forgotten/mount`
  await replicas(0)
  await until('no replica is left', async () => (await stage.pods(namespace)).length === 0, within)
  writeFileSync(join(disk, 'etc/rc.local'), `mkdir -p ${mount}; mount --bind /san ${mount}; (cd ${mount}; exec sleep infinity) &\n`)
  await powerOff()
  await powerOn()
  await replicas(usualValues.replicas)
  await until('it is quarantined', async () => (await stage.cluster.node(name)).spec?.taints?.some(({ key }) => key === quarantineKey) ?? false, within)
}

test('uninstalled as docs/install.md says, it leaves no taint, webhook, policy, kind, finalizer, or file on a node', async () => {
  const story = await begin(stage)
  const machines = [...stage.cluster.machines.values()]
  const other = machines.find(({ name }) => name !== story.machine.name) ?? story.machine
  await bootsUnclean(other)
  assert.equal((await stage.incidents()).filter(({ name, status }) => !story.before.has(name) || status.phase !== 'Final').map(transcript), [], 'by the incidents nothing is under way')
  const [, asked = ''] = /^kubectl (get nodes .*\S) +# none of/m.exec(readFileSync('docs/install.md', 'utf8')) ?? []
  assert.match(await kubectl(...asked.replaceAll('\'', '').split(' ')), new RegExp(`${other.name} .*${quarantineKey}`), 'the page asks for it')
  for (const { name } of machines) assert.match(await filesOf(name), /\/var\/lib\/holdfast/)
  await kubectl('--namespace', namespace, 'delete', 'deployment', names.coordinator, '--cascade=foreground')
  await kubectl('--namespace', agentNamespace, 'delete', 'daemonset', names.agent, '--cascade=foreground')
  await kubectl('taint', 'node', other.name, `${quarantineKey}-`)
  const uninstall = join(dist, 'uninstall.yaml') // which knows of no gate from boot on
  await kubectl('apply', '--filename', uninstall)
  await kubectl('--namespace', agentNamespace, 'rollout', 'status', 'daemonset/holdfast-uninstall', `--timeout=${rolledWithin}`)
  await kubectl('delete', '--filename', uninstall, '--cascade=foreground')
  await kubectl('delete', '--ignore-not-found', '--filename', rendered('release', manifestsOf[next] ?? []))
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
  for (const machine of machines) {
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
  const found = await stage.cluster.machine(machine).run(['find', '/', '/run', '-xdev', '(', '-path', '/proc', '-o', '-path', '/var/lib/containerd', ')', '-prune', '-o', '-name', '*holdfast*', '-print'])
  return found.split('\n').filter((file) => file !== '' && !file.includes(driver)).join(' ')
}

test('the stage is left', async () => await stage.stop())

test.run()
