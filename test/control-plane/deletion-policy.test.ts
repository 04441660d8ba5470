// The test plan of "Improve Node Failure Handling By Automatically Force Delete Terminating Pods of StatefulSet/Deployment On Down
// Node", row by row and to its letter (onlyTerminating, provisioners), all rows at once: a node each, which loses its power and is kept
// off. Beside these rows a node each for the policies that exclude kinds, plain: with nothing else that could spare a pod; and with
// HOLDFAST_ALL three on which no timer is cut short, for the document's own timeline. Misprints of the plan: of `wait` and `immediate` it
// says that the original pod is stuck in Pending; it is Terminating. And `do-nothing` and its like stand there for the values of the table
// above it.
import { env } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import type { Ms } from '../../core/model.ts'
import type { DeletionPolicy } from '../../core/policy.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import type { NodeObject } from '../../sim/objects.ts'
import { handleOf, volume, workImage } from '../../sim/world/objects.ts'
import { usualWorld } from '../../sim/world/settings.ts'
import { rightsSuffice } from './lab-judge.ts'
import { workNamespace } from './lab-objects.ts'
import { until, verdictsOf } from './lab-play.ts'
import { watch, type Watch } from './lab-watch.ts'
import { startLab, type Lab } from './lab.ts'
import { say } from './said.ts'

const test = suite('pods of a down node, by policy')

const { driver } = usualWorld
const policies: readonly DeletionPolicy[] = ['DoNothing', 'DeleteStatefulSetPod', 'DeleteDeploymentPod', 'DeleteBothStatefulsetAndDeploymentPod']
const recoveries = ['never', 'wait', 'immediate'] as const
type Recovery = (typeof recoveries)[number]

interface Row {
  readonly node: string
  readonly number: number
  readonly policy: DeletionPolicy
  readonly recovery: Recovery
  /** Without onlyTerminating and provisioners: what is spared is spared for its kind. */
  readonly plain: boolean
  /** Kubernetes' five minutes before an eviction, and the graces of the document's examples; else both are cut short. */
  readonly fullTimers: boolean
  readonly says: string
}

const full = env['HOLDFAST_ALL'] === '1'
const both = 'DeleteBothStatefulsetAndDeploymentPod'

const rowOf = (number: number, row: Pick<Row, 'policy' | 'recovery' | 'plain' | 'says'> & Partial<Row>): Row => ({ fullTimers: false, ...row, node: `node-${number}`, number })
const toTheLetter = policies.flatMap((policy, one) => recoveries.map((recovery, other) =>
  rowOf(one * recoveries.length + other + 1, { policy, recovery, plain: false, says: `${policy}, ${recovery}` })))
const plain = policies.filter((policy) => policy !== 'DoNothing').map((policy, index) =>
  rowOf(toTheLetter.length + index + 1, { policy, recovery: 'never', plain: true, says: `${policy}, plain` }))
const rows: readonly Row[] = [...toTheLetter, ...plain]
const timed = { recovery: 'never', fullTimers: true } as const
const [alone, letter, atOnce] = [
  rowOf(rows.length + 1, { ...timed, policy: 'DoNothing', plain: false, says: 'Kubernetes alone' }),
  rowOf(rows.length + 2, { ...timed, policy: both, plain: false, says: 'ours, to the letter' }),
  rowOf(rows.length + 3, { ...timed, policy: both, plain: true, says: 'ours, at once' }),
]
const everyRow = full ? [...rows, alone, letter, atOnce] : rows
const survivors = [1, 2].map((more) => `node-${everyRow.length + more}`)

/** Whose pods are deleted, of the document's own table. */
const deletes = (policy: DeletionPolicy, kind: 'StatefulSet' | 'Deployment'): boolean =>
  policy === both || policy === (kind === 'StatefulSet' ? 'DeleteStatefulSetPod' : 'DeleteDeploymentPod')

/** What the plan calls for ever. */
const forEver: Ms = full ? 600_000 : 20_000
/** Kubernetes' five minutes before an eviction, and a pod's grace, are cut short; the loss of Ready is not. */
const tolerated = 5
const grace = 20
/** Where they are not cut short. */
const toleratedInFull: Ms = 300_000
const graceInFull = { set: 10, deployment: 30 } as const

interface Pod extends KubeObject {
  readonly spec: { readonly nodeName?: string }
  readonly status?: { readonly phase?: string }
}

let opened: { lab: Lab; cutAt: Ms; original: ReadonlyMap<string, string>; pods: Watch<Pod>; nodes: Watch<NodeObject> } | undefined

const names = (row: Row) => ({ set: `db-${row.number}`, deployment: `shell-${row.number}`, job: `job-${row.number}`, bare: `bare-${row.number}` })
/** More of other kinds, where nothing but their kind spares them. */
const others = (row: Row) => ({ daemon: `daemon-${row.number}`, fixed: `static-${row.number}`, operated: `operated-${row.number}` })
/** Which Kubernetes evicts, and which it does not. */
const evictedOf = (row: Row): readonly string[] => [...Object.values(names(row)), ...(row.plain ? [others(row).operated] : [])]
const stayingOf = (row: Row): readonly string[] => (row.plain ? [others(row).daemon, others(row).fixed] : [])

const among = (values: readonly string[]): object => ({ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values }] })
const labels = (app: string): object => ({ selector: { matchLabels: { app } } })
const of = (name: string): object => ({ metadata: { name, namespace: workNamespace } })
const claimed = (claimName: string): readonly object[] => [{ name: 'data', persistentVolumeClaim: { claimName } }]

function objectsOf(row: Row): readonly KubeObject[] {
  const { set, deployment, job, bare } = names(row)
  const { daemon, fixed } = others(row)
  const [ofSet, ofDeployment] = row.fullTimers ? [graceInFull.set, graceInFull.deployment] : [grace, grace]
  // Without any of its own a pod is given Kubernetes' five minutes.
  const tolerations = row.fullTimers ? [] : ['not-ready', 'unreachable'].map((key) =>
    ({ key: `node.kubernetes.io/${key}`, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: tolerated }))
  const spec = (own: string, volumes: readonly object[], elsewhere: boolean, seconds = grace): object => ({
    terminationGracePeriodSeconds: seconds, automountServiceAccountToken: false, tolerations, volumes, containers: [{ name: 'main', image: workImage }],
    affinity: { nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [among(elsewhere ? [own, ...survivors] : [own])] },
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference: among([own]) }],
    } },
  })
  const template = (app: string, volumes: readonly object[], elsewhere = true, seconds = grace): object =>
    ({ template: { metadata: { labels: { app } }, spec: spec(row.node, volumes, elsewhere, seconds) } })
  return [
    { apiVersion: 'holdfast.dev/v1alpha1', kind: 'HoldfastPolicy', metadata: { name: row.node }, spec: {
      selector: { matchLabels: { 'kubernetes.io/hostname': row.node } }, profile: 'fast', nodeDownPodDeletionPolicy: row.policy, volumeAttachmentRecovery: row.recovery,
      ...(row.plain ? {} : { onlyTerminating: true, provisioners: [driver] }),
    } },
    ...[`data-${set}-0`, deployment, bare].flatMap((claim) => volume(claim, workNamespace, driver)),
    { apiVersion: 'apps/v1', kind: 'StatefulSet', ...of(set), spec: { replicas: 1, serviceName: set, ...labels(set), ...template(set, [], true, ofSet),
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: { accessModes: ['ReadWriteOnce'], storageClassName: '', resources: { requests: { storage: '1Gi' } } } }] } },
    { apiVersion: 'apps/v1', kind: 'Deployment', ...of(deployment), spec: {
      replicas: 1, ...labels(deployment), ...template(deployment, claimed(deployment), true, ofDeployment),
    } },
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: bare, namespace: workNamespace, labels: { app: bare } }, spec: spec(row.node, claimed(bare), false) },
    { apiVersion: 'batch/v1', kind: 'Job', ...of(job), spec: { template: { metadata: { labels: { app: job } }, spec: { ...spec(row.node, [], false), restartPolicy: 'Never' } } } },
    ...(row.plain ? [
      { apiVersion: 'apps/v1', kind: 'DaemonSet', ...of(daemon), spec: { ...labels(daemon), ...template(daemon, [], false) } },
      // As its kubelet shows it: from a file on the node, and in spite of every taint.
      {
        apiVersion: 'v1', kind: 'Pod',
        metadata: { name: fixed, namespace: workNamespace, labels: { app: fixed }, annotations: { 'kubernetes.io/config.mirror': fixed, 'kubernetes.io/config.source': 'file' } },
        spec: { nodeName: row.node, tolerations: [{ operator: 'Exists' }], containers: [{ name: 'main', image: workImage }] },
      },
    ] : []),
  ] as KubeObject[] // each is more than the common type names
}

/** Of an operator: its owner is an object of a kind that Kubernetes does not know, here the row's policy. */
async function operate(lab: Lab, row: Row): Promise<void> {
  const owner = await lab.api.get<KubeObject>(`/apis/holdfast.dev/v1alpha1/holdfastpolicies/${row.node}`)
  if (!owner.ok) throw new Error(owner.error.message)
  const { apiVersion, kind, metadata: { name, uid } } = owner.value
  const { operated } = others(row)
  const bare = objectsOf(row).find((object) => object.kind === 'Pod') as Pod | undefined // by its kind
  const made = await lab.api.create(`/api/v1/namespaces/${workNamespace}/pods`, {
    apiVersion: 'v1', kind: 'Pod',
    metadata: { name: operated, namespace: workNamespace, labels: { app: operated }, ownerReferences: [{ apiVersion, kind, name, uid, controller: true }] },
    spec: { ...bare?.spec, volumes: [] },
  })
  if (!made.ok) throw new Error(made.error.message)
}

function the(): NonNullable<typeof opened> {
  if (opened === undefined) throw new Error('the lab did not begin, see the first test')
  return opened
}

async function podsOf(app: string): Promise<readonly Pod[]> {
  const answer = await the().lab.api.get<{ items: Pod[] }>(`/api/v1/namespaces/${workNamespace}/pods?labelSelector=app%3D${app}`)
  if (!answer.ok) throw new Error(answer.error.message)
  return answer.value.items
}

const terminating = (pod: Pod): boolean => pod.metadata.deletionTimestamp !== undefined
const originalOf = async (app: string): Promise<Pod | undefined> => (await podsOf(app)).find((pod) => pod.metadata.uid === the().original.get(app))
const successorOf = async (app: string): Promise<Pod | undefined> => (await podsOf(app)).find((pod) => pod.metadata.uid !== the().original.get(app) && !terminating(pod))

/** A replacement that runs, on another node, and writes the volume. */
async function takesOver(row: Row, app: string, claim: string): Promise<void> {
  await until(`${row.says}: ${app} runs elsewhere and writes`, async () => {
    const successor = await successorOf(app)
    if (successor?.status?.phase !== 'Running' || successor.spec.nodeName === row.node) return false
    return the().lab.world.storage.writersOf(handleOf(claim), 2_000).some((stretch) => stretch.podUid === successor.metadata.uid && stretch.kind === 'data')
  }, 120_000)
  console.log(`${row.says}: ${app} writes ${((clock.now() - the().cutAt) / 1_000).toFixed(0)} s after the power loss`)
}

test('the rows stand: a node each with its policy, a StatefulSet, a Deployment, a Job and a bare pod', async () => {
  const nodes = everyRow.length + survivors.length
  const lab = await startLab({ nodes, zones: nodes, objects: everyRow.flatMap(objectsOf) })
  opened = {
    lab, cutAt: 0, original: new Map(),
    pods: await watch<Pod>(lab, `/api/v1/namespaces/${workNamespace}/pods`), nodes: await watch<NodeObject>(lab, '/api/v1/nodes'),
  }
  await Promise.all([0, 1].map((number) => lab.replicas.start(number)))
  for (const row of everyRow.filter((one) => one.plain)) await operate(lab, row)
  const apps = everyRow.flatMap((row) => [...evictedOf(row), ...stayingOf(row)].map((app) => ({ app, node: row.node })))
  await until('every pod runs on the node of its row', async () => {
    const pods = await Promise.all(apps.map(async ({ app, node }) => (await podsOf(app)).filter((pod) => pod.status?.phase === 'Running' && pod.spec.nodeName === node)))
    if (pods.every((own) => own.length === 1)) return true
    // What was bound before its own node had registered tries again.
    for (const { app, node } of apps) for (const pod of await podsOf(app)) {
      if (pod.status?.phase === 'Running' && pod.spec.nodeName !== node) await lab.api.remove(`/api/v1/namespaces/${workNamespace}/pods/${pod.metadata.name}`)
    }
    await clock.wait(5_000)
    return false
  }, 300_000)
  await until('every node is audited and heard', async () => {
    const audited = everyRow.every(({ node }) => lab.records().get(node)?.paths.every((path) => path.state === 'verified' && path.identity === 'proven') === true)
    return audited && (await verdictsOf(lab, everyRow.map(({ node }) => node))).every((verdict) => verdict === 'alive')
  }, 300_000)
  for (const { node } of everyRow) {
    const kept = await lab.api.patch(`/api/v1/nodes/${node}`, 'merge', { metadata: { annotations: { 'holdfast.dev/keep-off': 'its row is watched' } } })
    assert.ok(kept.ok)
  }
  const original = new Map(await Promise.all(apps.map(async ({ app }) => [app, (await podsOf(app))[0]?.metadata.uid ?? ''] as const)))
  for (const { node } of everyRow) lab.world.cutPower(node)
  opened = { ...opened, cutAt: clock.now(), original }
})

test('each node is found off within seconds, long before Kubernetes evicts anything', async () => {
  const isProven = ({ node }: Row): boolean => the().lab.incidents().some((incident) => incident.nodeName === node && incident.status.proof?.kind === 'found-off')
  await until('every node is proven off', () => everyRow.every(isProven), 60_000)
  console.log(`all found off ${((clock.now() - the().cutAt) / 1_000).toFixed(0)} s after the power loss`)
})

test('Kubernetes evicts the pods, and where the policy waits for that nothing of ours went before it', async () => {
  const apps = rows.flatMap(evictedOf)
  const all = () => Promise.all(apps.map(originalOf))
  await until('every original pod is terminating, or was until it was freed', async () => (await all()).every((pod) => pod === undefined || terminating(pod)), 240_000)
  const told = the().lab.incidents().filter(({ nodeName }) => toTheLetter.some(({ node }) => node === nodeName)).flatMap(({ status }) => status.timeline)
  const first = Math.min(...told.filter(({ what }) => what === 'freed' || what === 'detached').map(({ at }) => Date.parse(at)))
  console.log(`the first pod or volume of them all was freed ${((first - clock.wall() + clock.now() - the().cutAt) / 1_000).toFixed(0)} s after the power loss`)
  assert.ok(first - clock.wall() + clock.now() - the().cutAt > tolerated * 1_000, 'not before the eviction')
})

for (const row of rows) {
  const { set, deployment } = names(row)
  const goes = row.recovery === 'wait' ? 'once its grace is over' : 'while its grace lasts'
  if (deletes(row.policy, 'StatefulSet')) {
    test(`StatefulSet, ${row.says}: the pod is deleted, its replacement runs and writes the volume`, () => takesOver(row, set, `data-${set}-0`))
  }
  if (deletes(row.policy, 'Deployment')) test(`Deployment, ${row.says}: the pod is deleted, its replacement runs and writes the volume`, async () => {
    await takesOver(row, deployment, deployment)
    assert.is(await originalOf(deployment), undefined)
  })
  else if (row.recovery !== 'never') test(`Deployment, ${row.says}: the original pod stays terminating, the replacement runs and writes; the volume goes ${goes}`, async () => {
    await takesOver(row, deployment, deployment)
    const span = releasedAt(row, deployment) - evictedAt(deployment)
    console.log(`${row.says}: the volume goes ${(span / 1_000).toFixed(1)} s after the eviction, with a grace of ${grace} s`)
    if (row.recovery === 'wait') assert.ok(span > grace * 1_000 - heardWithin, `${span} ms`)
    else assert.ok(span < grace * 1_000 - heardWithin, `${span} ms`)
  })
}

/** What is written was heard of by then. */
const heardWithin: Ms = 1_000

function evictedAt(app: string): Ms {
  return the().pods.told().find(({ type, object }) => type !== 'DELETED' && object.metadata.uid === the().original.get(app) && terminating(object))?.at ?? NaN
}

function releasedAt({ node }: Row, claim: string): Ms {
  return the().lab.world.truth.entries.find(({ what, facts }) => what === 'volume released' && facts['node'] === node && facts['volume'] === handleOf(claim))?.at ?? NaN
}

/** What becomes of a pod that is spared, and of whom its owner makes in its place. */
interface Fate { readonly row: Row; readonly app: string; readonly evicted: boolean; readonly successor: 'none' | 'Pending' | 'Running' }

function sparedOf(row: Row): readonly Fate[] {
  const { set, deployment, job, bare } = names(row)
  return [
    ...(deletes(row.policy, 'StatefulSet') ? [] : [{ app: set, successor: 'none' } as const]),
    ...(deletes(row.policy, 'Deployment') ? [] : [{ app: deployment, successor: row.recovery === 'never' ? 'Pending' : 'Running' } as const]),
    // A Job's pod that is terminating is replaced by its Job, and bound to no node but this one.
    { app: job, successor: 'Pending' } as const, { app: bare, successor: 'none' } as const,
    ...(row.plain ? [{ app: others(row).operated, successor: 'none' } as const] : []),
    ...stayingOf(row).map((app) => ({ app, successor: 'none' } as const)),
  ].map((fate) => ({ ...fate, row, evicted: !stayingOf(row).includes(fate.app) }))
}

test(`for ever (${forEver / 1_000} s): what the policy spares is still there, terminating, and has no replacement that runs`, async () => {
  const spared = rows.flatMap(sparedOf)
  const limit = clock.now() + forEver
  for (;;) {
    for (const { row, app, evicted, successor } of spared) {
      const [original, next] = [await originalOf(app), await successorOf(app)]
      assert.ok(original !== undefined && terminating(original) === evicted, `${row.says}: ${app} is still there`)
      assert.is(next?.status?.phase ?? 'none', successor, `${row.says}: the replacement of ${app}`)
    }
    if (clock.now() > limit) break
    await clock.wait(2_000)
  }
})

/** The two owners of the document's example, with the grace of its pod, and when it is deleted there. */
const exampleOf = {
  StatefulSet: { app: (row: Row) => names(row).set, claim: (row: Row) => `data-${names(row).set}-0`, grace: graceInFull.set, deleted: '5:50' },
  Deployment: { app: (row: Row) => names(row).deployment, claim: (row: Row) => names(row).deployment, grace: graceInFull.deployment, deleted: '6:10' },
} as const

if (full) test('the timeline of the document, with no timer cut short: its own, what Kubernetes does alone, and what we do', () => {
  const columns = [alone, letter, atOnce]
  const line = (what: string, document: string, at: (row: Row) => Ms): void => say(`| ${what} | ${document} | ${columns.map((row) => sinceCut(at(row))).join(' | ')} |`)
  say(`minutes and seconds after the power loss, of ${sinceCut(clock.now())} that were watched`)
  say(`| | the document | ${columns.map(({ says }) => says).join(' | ')} |\n|---|---|---|---|---|`)
  line('the node is not Ready', '0:40', notReadyAt)
  for (const [kind, { app, claim, deleted }] of Object.entries(exampleOf)) {
    line(`the ${kind}'s pod is evicted`, '5:40', (row) => evictedAt(app(row)))
    line('it is deleted', deleted, (row) => deletedAt(app(row)))
    line('its replacement writes', '', (row) => takenOverAt(row, claim(row)))
  }
  for (const [kind, { app, grace: seconds }] of Object.entries(exampleOf)) {
    for (const row of [alone, letter]) {
      assert.ok(evictedAt(app(row)) - notReadyAt(row) > toleratedInFull - heardWithin, `${row.says}: the ${kind}'s pod is evicted after five minutes`)
    }
    assert.ok(Number.isNaN(deletedAt(app(alone))), `Kubernetes alone deletes no pod of a ${kind}`)
    assert.ok(deletedAt(app(letter)) - evictedAt(app(letter)) > seconds * 1_000 - heardWithin, `the ${kind}'s pod is deleted once its grace is over`)
    assert.ok(deletedAt(app(atOnce)) < evictedAt(app(alone)), `the ${kind}'s pod is deleted before Kubernetes would have evicted it`)
  }
})

function sinceCut(at: Ms): string {
  const seconds = Math.floor((at - the().cutAt) / 1_000)
  return Number.isNaN(at) ? 'never' : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

const isReady = ({ status }: NodeObject): boolean => status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true

function notReadyAt({ node }: Row): Ms {
  const { cutAt, nodes } = the()
  return nodes.told().find(({ at, object }) => at > cutAt && object.metadata.name === node && !isReady(object))?.at ?? NaN
}

function deletedAt(app: string): Ms {
  return the().pods.told().find(({ type, object }) => type === 'DELETED' && object.metadata.uid === the().original.get(app))?.at ?? NaN
}

function takenOverAt({ node }: Row, claim: string): Ms {
  const { lab, cutAt } = the()
  return lab.world.storage.log.find((one) => one.volume === handleOf(claim) && one.node !== node && one.kind === 'data' && one.firstAt > cutAt)?.firstAt ?? NaN
}

if (full) for (const row of rows.filter(({ policy, recovery }) => !deletes(policy, 'Deployment') && recovery === 'never')) {
  test(`Deployment, ${row.says}: once a person force-deletes the pod, the replacement runs`, async () => {
    const { deployment } = names(row)
    const original = await originalOf(deployment)
    await the().lab.api.remove(`/api/v1/namespaces/${workNamespace}/pods/${original?.metadata.name}`, { gracePeriodSeconds: 0 })
    await until('Kubernetes detaches by force after six minutes', async () => (await successorOf(deployment))?.status?.phase === 'Running', 480_000)
    await takesOver(row, deployment, deployment)
  })
}

test('nobody wrote beside another, out-of-service never stood, and no replica lacked a right', async () => {
  const { lab } = the()
  const { judges } = lab.world
  assert.equal([judges.twoWriters(), judges.wroteAfterRelease(), judges.twins()], [[], [], []])
  const tainted = lab.incidents().flatMap(({ status }) => status.timeline.filter(({ what, detail }) => what === 'tainted' && detail.includes('out-of-service')))
  assert.equal(tainted, [])
  rightsSuffice(lab)
})

test('the lab stops', async () => {
  opened?.pods.stop()
  opened?.nodes.stop()
  await opened?.lab.stop()
})

test.run()
