#!/usr/bin/env node
// A fence that a pod carries out, on a node that is left: its image, its tools and its rights are the operator's, in a
// PodTemplate. An order is a Job of its own, and so is each reading after it. That the pod ends 2 is not yet off: a shell that
// cannot find its script ends so too. It must say the word as well.
import { createHash, randomBytes } from 'node:crypto'
import { environment, Failure, pollUntil, runAgent, type AgentDescription, type DeviceWord, type Given } from '../contract.ts'
import { contentOf, excerpt, fieldsOf, itemsOf, textOf, type Fields } from '../https.ts'
import { checkCluster, clusterParameters, overCluster, type Cluster } from '../kubernetes.ts'
import { lastWordOf, type LastWord } from '../last-word.ts'
import { jobOf, type PodRun } from './pod.ts'

export const agent: AgentDescription = {
  name: 'job',
  says: 'Runs a pod as a Job on another node for each order and each reading, and takes its exit for the answer. Of a reading 0 is on, and 2 is off where its last line says so too.',
  vendor: 'https://kubernetes.io/docs/concepts/workloads/controllers/job/',
  parameters: [
    { name: 'pod_template', says: 'The PodTemplate, by its name', type: 'string', required: true },
    { name: 'plug', says: 'Told to the pod as HOLDFAST_PLUG', type: 'string', required: true, obsoletes: 'port', short: 'n' },
    { name: 'node', says: 'The node that is fenced, on which the pod never runs; else HOLDFAST_NODE of the environment', type: 'string' },
    { name: 'namespace', says: 'Where the PodTemplate stands and the Jobs run; else that of this pod', type: 'string' },
    ...clusterParameters,
    { name: 'stonith_status_sleep', says: 'Between two looks at a Job', type: 'second', default: '1' },
  ],
  check(given) {
    checkCluster(given)
    for (const name of ['pod_template', 'node', 'namespace']) named(given, name)
  },
  status: (given) => overCluster(given, async (cluster) => status(await placeOf(cluster, given))),
  off: (given) => overCluster(given, async (cluster) => order(await placeOf(cluster, given), 'off')),
  on: (given) => overCluster(given, async (cluster) => order(await placeOf(cluster, given), 'on')),
}

interface Place {
  readonly cluster: Cluster
  readonly given: Given
  readonly namespace: string
  readonly podTemplate: Fields
  readonly node: string
}

async function placeOf(cluster: Cluster, given: Given): Promise<Place> {
  const node = named(given, 'node') ?? environment()['HOLDFAST_NODE']
  if (node === undefined) throw new Failure('config', 'node= is missing: without it the pod might run on the node that is fenced')
  const namespace = named(given, 'namespace') ?? contentOf(ownNamespace, 'namespace= is not given, and its default').trim()
  const name = named(given, 'pod_template') ?? ''
  const podTemplate = await cluster.get(`/api/v1/namespaces/${namespace}/podtemplates/${name}`)
  if (podTemplate === undefined) throw new Failure('config', `there is no PodTemplate ${name} in ${namespace}`)
  return { cluster, given, namespace, podTemplate, node }
}

const ownNamespace = '/var/run/secrets/kubernetes.io/serviceaccount/namespace'

function named(given: Given, name: string): string | undefined {
  const text = textOf(given.optional(name))
  if (text !== undefined && !/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(text)) throw new Failure('config', `${name}= is not a name as Kubernetes has them`)
  return text
}

async function order(place: Place, want: 'on' | 'off'): Promise<DeviceWord> {
  const end = await run(place, want)
  if (end.code !== 0) throw failureOf(want, end)
  return pollUntil(want, place.given, place.given.left(), async () => {
    try {
      return await status(place)
    } catch (error) {
      // A reading may be lost while the machine changes its power; the poll ends by its own time.
      return { state: 'unknown', evidence: error instanceof Error ? error.message : 'no answer' }
    }
  }, pauseOf(place.given))
}

async function status(place: Place): Promise<DeviceWord> {
  const { code, node, said } = await run(place, 'status')
  const state = code === 0 && (said.state ?? 'on') === 'on' ? 'on' : code === 2 && said.state === 'off' ? 'off' : undefined
  if (state === undefined) throw failureOf('status', { code, node, said })
  return { state, evidence: `a pod on ${node} ends ${code}${said.evidence === '' ? '' : `: ${said.evidence}`}`, ...(said.machine === undefined ? {} : { machine: said.machine }) }
}

function failureOf(action: string, { code, node, said }: PodEnd): Failure {
  const doubt = action === 'status' && (code === 2 || code === 0) ? `, and says ${said.state ?? 'nothing of it'}` : ''
  return new Failure(said.reason ?? 'device', `the pod on ${node} ends ${code} on ${action}${doubt}${said.evidence === '' ? '' : `: ${said.evidence}`}`)
}

interface PodEnd {
  readonly code: number
  readonly node: string
  readonly said: LastWord
}

async function run({ cluster, given, namespace, podTemplate, node }: Place, action: PodRun['action']): Promise<PodEnd> {
  const jobs = `/apis/batch/v1/namespaces/${namespace}/jobs`
  const seconds = Math.max(1, Math.floor(given.left() / 1_000))
  const name = `holdfast-${action}-${createHash('sha256').update(given.text('plug')).digest('hex').slice(0, 8)}-${randomBytes(4).toString('hex')}`
  const made = await cluster.create(jobs, jobOf(podTemplate, { name, action, plug: given.text('plug'), node, seconds }))
  const pods = () => cluster.list(`/api/v1/namespaces/${namespace}/pods`, { 'batch.kubernetes.io/controller-uid': textOf(fieldsOf(made['metadata'])['uid']) ?? '' })
  try {
    await overBy(cluster, `${jobs}/${name}`, given, pods)
    return endOf(await pods(), node)
  } finally {
    // What we cannot take away the cluster takes away itself, after a while.
    await cluster.remove(`${jobs}/${name}`, made).catch(() => undefined)
  }
}

/** Time that is left to take the Job away, and to say why. */
const farewell = 500

async function overBy(cluster: Cluster, path: string, given: Given, pods: () => Promise<readonly Fields[]>): Promise<void> {
  for (;;) {
    const job = await cluster.get(path)
    if (job === undefined) throw new Failure('device', 'somebody has taken the Job away')
    const over = itemsOf(fieldsOf(job['status'])['conditions']).map(fieldsOf).some(({ type, status: is }) => (type === 'Complete' || type === 'Failed') && is === 'True')
    if (over) return
    if (given.left() < pauseOf(given) + farewell) throw new Failure('timeout', `the Job has no end: ${waitOf(await pods())}`)
    await new Promise((resolve) => { setTimeout(resolve, pauseOf(given)) })
  }
}

/** Of the one pod, on another node, whose container ended by itself; of anything else nothing is known. */
function endOf(pods: readonly Fields[], fenced: string): PodEnd {
  const [pod, second] = pods
  if (pod === undefined || second !== undefined) throw new Failure('device', `the Job has ${pods.length} pods`)
  const node = textOf(fieldsOf(pod['spec'])['nodeName']) ?? 'no node'
  if (node === fenced) throw new Failure('device', 'the pod ran on the node that is fenced')
  const [container, other] = itemsOf(fieldsOf(pod['status'])['containerStatuses']).map(fieldsOf)
  const ended = fieldsOf(fieldsOf(container?.['state'])['terminated'])
  const [code, reason] = [ended['exitCode'], textOf(ended['reason'])]
  if (other !== undefined || typeof code !== 'number' || (reason !== 'Completed' && reason !== 'Error')) {
    throw new Failure('device', `the pod on ${node} did not come to its own end: ${reason ?? waitOf(pods)}`)
  }
  return { code, node, said: lastWordOf(textOf(ended['message']) ?? '') }
}

/** For people: why it does not run. */
function waitOf([pod]: readonly Fields[]): string {
  if (pod === undefined) return 'no pod was made'
  const told = fieldsOf(pod['status'])
  const waiting = itemsOf(told['containerStatuses']).map((one) => fieldsOf(fieldsOf(fieldsOf(one)['state'])['waiting'])['reason'])
  const conditions = itemsOf(told['conditions']).map(fieldsOf).filter(({ status: is }) => is === 'False').map(({ message }) => message)
  const why = [...waiting, ...conditions, told['reason'], told['phase']].map(textOf).find((one) => one !== undefined)
  return excerpt(why ?? 'no reason given')
}

const shortestPause = 100

function pauseOf(given: Given): number {
  return Math.max(shortestPause, given.ms('stonith_status_sleep'))
}

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) await runAgent(agent)
