// What the program makes of the ends of pods, of the good ones and of those that never were.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { jobOf } from '../../fence-agents/job/pod.ts'
import { linesOf, testOver } from './agent-test.ts'
import { programsHere } from './place.ts'
import { honest, inPods } from './pods.ts'

const test = suite('job')

test('off, status, on: each by a pod on another node, each read back by another pod, and no Job is left', () => inPods(honest, async ({ cluster, at, ran, power, jobsLeft }) => {
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

test('every clause of the contract is kept', () => inPods(honest, async ({ params }) => {
  const rows = await testOver(programsHere, 'job', linesOf(params), () => undefined)
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
  test(`${name} is neither on nor off, and its Job is taken away`, () => inPods(() => reading, async ({ cluster, at, jobsLeft }) => {
    const word = await cluster.place.ask('job', 'status', at, 5_000)
    assert.is(word.state, 'unknown')
    assert.match(word.reason, reason)
    assert.is(jobsLeft(), 0)
  }))
}

test('an order that ends well and did nothing is not off', () => inPods((told, folder) => (told['HOLDFAST_ACTION'] === 'off' ? { exitCode: 0 } : honest(told, folder)), async ({ cluster, at, power }) => {
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
  test(`${name}: refused with the reason, and no pod is made`, () => inPods(honest, async ({ cluster, at, ran }) => {
    const word = await cluster.place.ask('job', 'off', { ...at, ...over })
    assert.is(word.state, 'failed')
    assert.match(word.reason, reason)
    assert.equal(ran, [])
  }, spec))
}

test('the node comes from the environment where it is not said; a mute server is no answer', () => inPods(honest, async ({ cluster, at }) => {
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
