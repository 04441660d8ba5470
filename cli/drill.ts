// holdfast test-fence NODE --off: a drill, asked for with a NodeFence that says so. The coordinator does it, under the limits of any
// fence; here the person is told beforehand what would keep it from beginning, and then what happens, as it is written down.
import { randomBytes } from 'node:crypto'
import type { Api, KubeObject } from '../coordinator/api.ts'
import { fencesPath, incidentBody, readIncident, type IncidentDraft } from '../coordinator/node-fence.ts'
import type { Incident } from '../core/incident.ts'
import { policyOf } from '../core/policy.ts'
import type { Clock } from '../edge/clock.ts'
import type { Cluster } from './cluster.ts'

export interface Drilled {
  readonly passed: boolean
  readonly because: string
}

const lookEvery = 1_000
/** One that takes longer is going on all the same, and `status` tells of it. */
const watchedFor = 1_800_000
/** So many looks may fail one after the other before we say that we are blind. */
const missesAllowed = 30

/** Why it cannot be asked for, or the NodeFence that asks for it. */
export function drillOf(cluster: Cluster, name: string): { readonly refused: string } | { readonly draft: IncidentDraft } {
  const { nodes, records, policies, incidents } = cluster
  for (const part of [nodes, records, policies, incidents]) if (!part.ok) return { refused: part.because }
  if (!nodes.ok || !records.ok || !policies.ok || !incidents.ok) return { refused: 'the cluster cannot be read' }
  const node = nodes.value.find(({ metadata }) => metadata.name === name)
  if (node === undefined) return { refused: `there is no node ${name}` }
  const open = incidents.value.find(({ nodeName, status }) => nodeName === name && status.phase !== 'Final')
  if (open !== undefined) return { refused: `${open.name} of this node is open` }
  if (!node.taints.some(({ key }) => key === 'node.kubernetes.io/unschedulable')) return { refused: `${name} is not cordoned: kubectl drain ${name} --ignore-daemonsets, and ask again` }
  const record = records.value.get(name)
  if (record === undefined || record.nodeUid !== node.metadata.uid) return { refused: `nothing is on record of ${name}: its agent was not heard yet` }
  const chosen = policyOf({ labels: node.metadata.labels ?? {} }, policies.value.flatMap(({ policy }) => policy ?? []))
  if (!('policy' in chosen)) return { refused: chosen.none === 'unselected' ? `no policy selects ${name}` : `${chosen.names.join(' and ')} select ${name} with one priority` }
  return {
    draft: {
      name: `${name.slice(0, 200)}-drill-${randomBytes(4).toString('hex')}`, nodeName: name, nodeUid: record.nodeUid, boot: record.boot, machine: node.machine,
      cause: 'drill', policy: chosen.policy,
    },
  }
}

export async function carryOutDrill(api: Api, clock: Clock, draft: IncidentDraft, tell: (line: string) => void): Promise<Drilled> {
  const made = await api.create<KubeObject>(fencesPath, incidentBody(draft))
  if (!made.ok) return { passed: false, because: made.error.message }
  tell(`${draft.name}: waiting for the coordinator`)
  let told = 0
  let waits = ''
  let misses = 0
  for (const until = clock.now() + watchedFor; clock.now() < until;) {
    await clock.wait(lookEvery)
    const incident = await incidentNow(api, draft.name)
    if (incident === undefined) {
      misses += 1
      if (misses === missesAllowed) return { passed: false, because: `${draft.name} cannot be read any more; the drill goes on without us` }
      continue
    }
    misses = 0
    const { timeline, holds: [hold], phase } = incident.status
    for (const { at, what, detail } of timeline.slice(told)) tell(`${at} ${what}: ${detail}`)
    told = timeline.length
    if (hold !== undefined && hold.because !== waits) tell(`waits: ${hold.detail}; lifted by ${hold.lifts}`)
    waits = hold?.because ?? ''
    if (phase === 'Final') return resultOf(incident)
  }
  return { passed: false, because: `${draft.name} is not over; kubectl holdfast status tells what it waits for` }
}

async function incidentNow(api: Api, name: string): Promise<Incident | undefined> {
  const answer = await api.get<KubeObject>(`${fencesPath}/${name}`)
  const read = answer.ok ? readIncident(answer.value) : undefined
  return read?.ok === true ? read.incident : undefined
}

function resultOf({ nodeName, status }: Incident): Drilled {
  if (status.outcome === 'Drilled') return { passed: true, because: `the path of ${nodeName} switches this machine, and no other that was heard` }
  const { drill } = status
  if (drill?.passed === true) return { passed: false, because: `${drill.detail}; but its next boot was not heard (${status.outcome})` }
  return { passed: false, because: drill?.detail ?? `it ended ${status.outcome}` }
}
