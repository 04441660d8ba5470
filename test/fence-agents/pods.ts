// An API server with a controller of Jobs behind it: a pod here is a function that switches outlets in files.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inCluster, type Cluster, type ClusterObject } from './cluster.ts'

const jobs = '/apis/batch/v1/namespaces/fences/jobs'
const pods = '/api/v1/namespaces/fences/pods'
const templates = '/api/v1/namespaces/fences/podtemplates'

interface PodSpec {
  readonly affinity: { readonly nodeAffinity: { readonly requiredDuringSchedulingIgnoredDuringExecution: { readonly nodeSelectorTerms: readonly { readonly matchFields: readonly { readonly values: readonly string[] }[] }[] } } }
  readonly containers: readonly { readonly env: readonly { readonly name: string; readonly value: string }[] }[]
}

/** What a pod comes to: how its container ended, or why it never did. */
type PodEnd = { readonly exitCode: number; readonly message?: string; readonly reason?: string } | { readonly waits: string } | { readonly evicted: string }

export interface PodWorld {
  readonly cluster: Cluster
  readonly at: Readonly<Record<string, string>>
  /** The same, and what agent-test must know of it. */
  readonly params: Readonly<Record<string, string>>
  /** What pods were made for, in their order. */
  readonly ran: string[]
  power(plug: string): string
  jobsLeft(): number
}

export type Pod = (told: Readonly<Record<string, string>>, folder: string) => PodEnd | Promise<PodEnd>

/** A pod that keeps the contract, for outlets that are files. */
export const honest: Pod = ({ HOLDFAST_ACTION: action = '', HOLDFAST_PLUG: plug = '' }, folder) => {
  const outlet = join(folder, `outlet-${plug}`)
  if (!existsSync(outlet)) return { exitCode: 1, message: 'holdfast {"v":1,"state":"unknown","evidence":"no such key registered","reason":"notfound"}\n' }
  if (action !== 'status') writeFileSync(outlet, action)
  else if (readFileSync(outlet, 'utf8') === 'off') return { exitCode: 2, message: 'reading keys\nholdfast {"v":1,"state":"off","evidence":"no key of it is registered"}\n' }
  return { exitCode: 0 }
}

export async function inPods(pod: Pod, work: (world: PodWorld) => Promise<void>, spec: object = {}): Promise<void> {
  const ran: string[] = []
  let folder = ''
  const template: ClusterObject = {
    kind: 'PodTemplate', metadata: { name: 'reservation' },
    template: { metadata: { labels: { app: 'reservation' } }, spec: { containers: [{ name: 'fence', image: 'sg3-utils:1', env: [{ name: 'DISK', value: '/dev/sdb' }] }], ...spec } },
  }
  const carryOut = async (job: ClusterObject, { objects, touch }: Pick<Cluster, 'objects' | 'touch'>) => {
    const podSpec = (job.spec as unknown as { template: { spec: PodSpec } }).template.spec // as the program wrote it
    const told = Object.fromEntries(podSpec.containers[0]?.env.map(({ name, value }) => [name, value]) ?? [])
    const forbidden = podSpec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]?.matchFields.flatMap(({ values }) => values) ?? []
    ran.push(`${told['HOLDFAST_ACTION']} ${told['HOLDFAST_PLUG']}`)
    const end = await pod(told, folder)
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
      if (path.startsWith(`${jobs}/`) && object.metadata.deletionTimestamp === undefined) setTimeout(() => void carryOut(object, cluster), 50)
    },
  }, async (cluster) => {
    folder = cluster.place.folder
    for (const plug of ['1', '2']) writeFileSync(join(folder, `outlet-${plug}`), 'on')
    const at = { ...cluster.login, pod_template: 'reservation', namespace: 'fences', node: 'n1', plug: '1', stonith_status_sleep: '0.1' }
    const params = { ...at, other: '2', unknown: '9', 'wrong.token_file': join(folder, 'wrong-token'), truth: `cat ${folder}/outlet-$PLUG`, gone: `touch ${folder}/gone`, back: `rm ${folder}/gone` }
    await work({
      cluster, ran, at, params,
      power: (plug) => readFileSync(join(folder, `outlet-${plug}`), 'utf8'), jobsLeft: () => [...cluster.objects.keys()].filter((path) => path.startsWith(`${jobs}/`)).length,
    })
  })
}
