// The program against an API server with a controller of Jobs behind it: a pod here is a function that switches outlets in files.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { jobOf } from '../../fence-agents/job/pod.ts'
import { testOver } from './agent-test.ts'
import { inCluster, type Cluster, type ClusterObject } from './cluster.ts'
import { programsHere } from './place.ts'

const test = suite('job')

const jobs = '/apis/batch/v1/namespaces/fences/jobs'
const pods = '/api/v1/namespaces/fences/pods'
const templates = '/api/v1/namespaces/fences/podtemplates'

interface PodSpec {
  readonly affinity: { readonly nodeAffinity: { readonly requiredDuringSchedulingIgnoredDuringExecution: { readonly nodeSelectorTerms: readonly { readonly matchFields: readonly { readonly values: readonly string[] }[] }[] } } }
  readonly containers: readonly { readonly env: readonly { readonly name: string; readonly value: string }[] }[]
}

/** What a pod comes to: how its container ended, or why it never did. */
type PodEnd = { readonly exitCode: number; readonly message?: string; readonly reason?: string } | { readonly waits: string } | { readonly evicted: string }

interface World {
  readonly cluster: Cluster
  readonly at: Readonly<Record<string, string>>
  /** What pods were made for, in their order. */
  readonly ran: string[]
  power(plug: string): string
  jobsLeft(): number
}

type Pod = (told: Readonly<Record<string, string>>, folder: string) => PodEnd

/** A pod that keeps the contract, for outlets that are files. */
const honest: Pod = ({ HOLDFAST_ACTION: action = '', HOLDFAST_PLUG: plug = '' }, folder) => {
  const outlet = join(folder, `outlet-${plug}`)
  if (!existsSync(outlet)) return { exitCode: 1, message: 'holdfast {"v":1,"state":"unknown","evidence":"no such key registered","reason":"notfound"}\n' }
  if (action !== 'status') writeFileSync(outlet, action)
  else if (readFileSync(outlet, 'utf8') === 'off') return { exitCode: 2, message: 'reading keys\nholdfast {"v":1,"state":"off","evidence":"no key of it is registered"}\n' }
  return { exitCode: 0 }
}

async function inWorld(pod: Pod, work: (world: World) => Promise<void>, spec: object = {}): Promise<void> {
  const ran: string[] = []
  let folder = ''
  const template: ClusterObject = {
    kind: 'PodTemplate', metadata: { name: 'reservation' },
    template: { metadata: { labels: { app: 'reservation' } }, spec: { containers: [{ name: 'fence', image: 'sg3-utils:1', env: [{ name: 'DISK', value: '/dev/sdb' }] }], ...spec } },
  }
  const carryOut = (job: ClusterObject, { objects, touch }: Pick<Cluster, 'objects' | 'touch'>) => {
    const podSpec = (job.spec as unknown as { template: { spec: PodSpec } }).template.spec // as the program wrote it
    const told = Object.fromEntries(podSpec.containers[0]?.env.map(({ name, value }) => [name, value]) ?? [])
    const forbidden = podSpec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]?.matchFields.flatMap(({ values }) => values) ?? []
    ran.push(`${told['HOLDFAST_ACTION']} ${told['HOLDFAST_PLUG']}`)
    const end = pod(told, folder)
    const nodeName = ['n1', 'n2', 'n3'].find((name) => !forbidden.includes(name))
    const status = 'exitCode' in end
      ? { phase: end.exitCode === 0 ? 'Succeeded' : 'Failed', containerStatuses: [{ name: 'fence', state: { terminated: { reason: end.exitCode === 0 ? 'Completed' : 'Error', ...end } } }] }
      : 'waits' in end ? { phase: 'Pending', containerStatuses: [{ name: 'fence', state: { waiting: { reason: end.waits } } }] } : { phase: 'Failed', reason: end.evicted }
    const labels = { 'batch.kubernetes.io/controller-uid': job.metadata.uid ?? '' }
    objects.set(`${pods}/${job.metadata.name}-x`, { kind: 'Pod', metadata: { name: `${job.metadata.name}-x`, labels }, spec: { nodeName }, status })
    if ('waits' in end) return
    job.status = { conditions: [{ type: status.phase === 'Succeeded' ? 'Complete' : 'Failed', status: 'True' }] }
    touch(job)
  }
  await inCluster({
    serves: [jobs, pods, templates], gone: () => existsSync(join(folder, 'gone')), objects: { [`${templates}/reservation`]: template },
    written(path, object, cluster) {
      if (path.startsWith(`${jobs}/`) && object.metadata.deletionTimestamp === undefined) setTimeout(() => carryOut(object, cluster), 50)
    },
  }, async (cluster) => {
    folder = cluster.place.folder
    for (const plug of ['1', '2']) writeFileSync(join(folder, `outlet-${plug}`), 'on')
    await work({
      cluster, ran, at: { ...cluster.login, pod_template: 'reservation', namespace: 'fences', node: 'n1', plug: '1', stonith_status_sleep: '0.1' },
      power: (plug) => readFileSync(join(folder, `outlet-${plug}`), 'utf8'), jobsLeft: () => [...cluster.objects.keys()].filter((path) => path.startsWith(`${jobs}/`)).length,
    })
  })
}

test('off, status, on: each by a pod on another node, each read back by another pod, and no Job is left', () => inWorld(honest, async ({ cluster, at, ran, power, jobsLeft }) => {
  const { ask } = cluster.place
  const first = await ask('job', 'status', at)
  assert.equal([first.state, first.evidence], ['on', 'exit 0: a pod on n2 ends 0'])
  assert.is((await cluster.place.started.ask('job', 'off', at)).state, 'off')
  assert.equal([power('1'), power('2')], ['off', 'on'])
  assert.match((await ask('job', 'status', at)).evidence ?? '', /a pod on n2 ends 2: no key of it is registered/)
  assert.is((await ask('job', 'on', at)).state, 'on')
  assert.equal(ran, ['status 1', 'off 1', 'status 1', 'status 1', 'on 1', 'status 1'])
  assert.is(jobsLeft(), 0)
}))

test('every clause of the contract is kept', () => inWorld(honest, async ({ cluster, at }) => {
  const { folder } = cluster.place
  const rows = await testOver(programsHere, 'job', [
    ...Object.entries(at).map(([key, value]) => `${key}=${value}`), 'other=2', 'unknown=9', `wrong.token_file=${folder}/wrong-token`, `truth=cat ${folder}/outlet-$PLUG`, `gone=touch ${folder}/gone`, `back=rm ${folder}/gone`,
  ].join('\n'), () => undefined)
  assert.equal(rows.filter(({ verdict }) => verdict !== 'kept').map(({ clause, verdict }) => [clause, verdict]), [
    ['off at a device that never answers: exit 1, by itself, within 30 s', 'not run'], ['status where nobody listens: exit 1', 'not run'],
  ], 'the address is in server=')
}))

for (const [name, reading, reason] of [
  ['a shell that does not find its script', { exitCode: 2, message: 'sh: 0: cannot open /fence.sh: No such file\n' }, /^device \(the pod on n2 ends 2 on status, and says nothing of it: sh: 0: cannot open/],
  ['a word that contradicts the exit', { exitCode: 0, message: 'holdfast {"v":1,"state":"off"}' }, /^device \(.*says off/],
  ['a pod that was killed', { exitCode: 137, reason: 'OOMKilled' }, /^device \(the pod on n2 did not come to its own end: OOMKilled/],
  ['a pod that was lost', { exitCode: 2, reason: 'ContainerStatusUnknown', message: 'holdfast {"v":1,"state":"off"}' }, /^device \(.*ContainerStatusUnknown/],
  ['a pod that was evicted', { evicted: 'Evicted' }, /^device \(.*Evicted/],
  ['a pod whose image is not there', { waits: 'ImagePullBackOff' }, /^timeout \(the Job has no end: ImagePullBackOff/],
] as const) {
  test(`${name} is neither on nor off, and its Job is taken away`, () => inWorld(() => reading, async ({ cluster, at, jobsLeft }) => {
    const word = await cluster.place.ask('job', 'status', at, 5_000)
    assert.is(word.state, 'unknown')
    assert.match(word.reason, reason)
    assert.is(jobsLeft(), 0)
  }))
}

test('an order that ends well and did nothing is not off', () => inWorld((told, folder) => (told['HOLDFAST_ACTION'] === 'off' ? { exitCode: 0 } : honest(told, folder)), async ({ cluster, at, power }) => {
  const word = await cluster.place.ask('job', 'off', at, 2_500)
  assert.equal([word.state, power('1')], ['failed', 'on'])
  assert.match(word.reason, /^timeout/)
}))

for (const [name, over, spec, reason] of [
  ['two containers', {}, { containers: [{ name: 'a' }, { name: 'b' }] }, /^config \(the PodTemplate must have one container/],
  ['a node of its own', {}, { nodeName: 'n1' }, /^config \(the PodTemplate names a node/],
  ['no such PodTemplate', { pod_template: 'other' }, {}, /^config \(there is no PodTemplate other/],
  ['a path for a name', { pod_template: '../secrets' }, {}, /^config/],
  ['no node', { node: '' }, {}, /^config \(node= is missing/],
  ['another namespace', { namespace: 'other' }, {}, /^config/],
  ['nobody there', { server: 'https://127.0.0.1:1' }, {}, /^unreachable/],
] as const) {
  test(`${name}: refused with the reason, and no pod is made`, () => inWorld(honest, async ({ cluster, at, ran }) => {
    const word = await cluster.place.ask('job', 'off', { ...at, ...over })
    assert.is(word.state, 'failed')
    assert.match(word.reason, reason)
    assert.equal(ran, [])
  }, spec))
}

test('the node comes from the environment where it is not said; a mute server is no answer', () => inWorld(honest, async ({ cluster, at }) => {
  const { ask } = cluster.place
  const { node: _, ...rest } = at
  assert.match((await ask('job', 'status', rest, undefined, { HOLDFAST_NODE: 'n2' })).evidence ?? '', /a pod on n1 ends 0/)
  cluster.fault('mute')
  assert.match((await ask('job', 'off', { ...at, login_timeout: '0.3', shell_timeout: '0.3' })).reason, /^timeout/)
}))

test('the Job runs once, ends by itself, keeps what the operator wrote, and every alternative leaves out the node', () => {
  const given = {
    template: {
      metadata: { labels: { app: 'x' } },
      spec: {
        restartPolicy: 'Always', serviceAccountName: 'fencer',
        affinity: { podAffinity: { kept: true }, nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'disk', operator: 'Exists' }] }, { matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: ['n9'] }] }] } } },
        containers: [{ name: 'fence', env: [{ name: 'DISK', value: 'a' }, { name: 'HOLDFAST_PLUG', value: 'forged' }] }],
      },
    },
  }
  const without = { key: 'metadata.name', operator: 'NotIn', values: ['n1'] }
  assert.equal(jobOf(given, { name: 'holdfast-off-1', action: 'off', plug: '7', node: 'n1', seconds: 20 }), {
    apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'holdfast-off-1', labels: { 'app.kubernetes.io/part-of': 'holdfast' } },
    spec: {
      completions: 1, parallelism: 1, backoffLimit: 0, activeDeadlineSeconds: 20, ttlSecondsAfterFinished: 120,
      template: {
        metadata: { labels: { app: 'x' } },
        spec: {
          restartPolicy: 'Never', serviceAccountName: 'fencer',
          affinity: {
            podAffinity: { kept: true },
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [{ matchExpressions: [{ key: 'disk', operator: 'Exists' }], matchFields: [without] }, { matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: ['n9'] }, without] }],
              },
            },
          },
          containers: [{
            name: 'fence', terminationMessagePolicy: 'FallbackToLogsOnError',
            env: [
              { name: 'DISK', value: 'a' }, { name: 'HOLDFAST_ACTION', value: 'off' }, { name: 'HOLDFAST_PLUG', value: '7' }, { name: 'HOLDFAST_NODE', value: 'n1' }, { name: 'HOLDFAST_DEADLINE', value: '20000' },
            ],
          }],
        },
      },
    },
  })
})

test.run()
