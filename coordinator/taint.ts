// Puts our taints on a Node and takes them off, and nobody else's. With the last one it may cordon the node, so that there is no moment in between.
import type { Deed } from '../core/action.ts'
import { hasOurs, hasTaint, isOurs, outOfServiceKey, ownValue, quarantineKey } from '../core/clear.ts'
import type { Taint } from '../core/model.ts'
import * as timeline from '../core/timeline.ts'
import type { KubeObject } from './api.ts'
import type { DeedMeans } from './deed-means.ts'
import { keepNode, paths } from './kubernetes.ts'
import { holds } from './on-record.ts'
import type { Row } from './row.ts'

export interface Tainter {
  taint(deed: Extract<Deed, { do: 'taint' }>): Promise<boolean>
  untaint(deed: Extract<Deed, { do: 'untaint' }>): Promise<boolean>
}

export function tainter({ api, observation, incidents, log, leads, how, at, say, concern }: DeedMeans): Tainter {
  return { taint, untaint }

  async function taint(deed: Extract<Deed, { do: 'taint' }>): Promise<boolean> {
    const row = observation.row(deed.node)
    const incident = deed.incident === undefined ? undefined : observation.seen.incidents.get(deed.incident)
    if (row === undefined || (deed.incident !== undefined && incident === undefined)) return false
    if (deed.outOfService && (incident === undefined || !holds(deed.proof, incident, row))) {
      log.warn({ node: deed.node, incident: deed.incident, because: 'its proof does not stand on the record' }, 'out-of-service not set')
      return false
    }
    const wanted: Taint[] = [
      { key: quarantineKey, value: ownValue, effect: 'NoSchedule' } as const,
      ...(deed.outOfService ? [{ key: outOfServiceKey, value: ownValue, effect: 'NoSchedule' } as const] : []),
    ].filter((one) => !hasTaint(row, one.key))
    if (wanted.length === 0 || !await writeTaints(row, [...row.taints, ...wanted])) return false
    if (deed.incident === undefined) quarantined(row)
    else await incidents.change(deed.incident, timeline.tainted(deed.outOfService, at()))
    return true
  }

  function quarantined({ name, beat }: Row): void {
    log.warn({ node: name, boot: beat?.boot }, 'node quarantined: the boot before this one was cut off, or nobody knows how it ended')
    say(name, undefined, 'Quarantined', 'Taint', 'the boot before this one was cut off, or nobody knows how it ended: no workload is sent here until its agent has found it clean', 'Warning')
  }

  async function untaint(deed: Extract<Deed, { do: 'untaint' }>): Promise<boolean> {
    const row = observation.row(deed.node)
    if (row === undefined || leads() === undefined) return false
    // Where another's does the same, there may be none of ours.
    if (hasOurs(row, deed.key) || deed.cordons === true) {
      if (!await writeTaints(row, row.taints.filter((one) => one.key !== deed.key || !isOurs(one)), deed.cordons)) return false
      log.info({ node: deed.node, incident: deed.incident, taint: deed.key, because: deed.because }, 'taint removed')
      say(deed.node, deed.incident, 'TaintRemoved', 'Untaint', `${deed.key}: ${deed.because}`, 'Normal')
    }
    const { incident } = deed
    if (incident === undefined) return true
    return incidents.change(incident, (status) => timeline.volumesSeen(row.volumes, at(), concern(incident, row))(
      timeline.leftAlone(deed.left ?? [])(timeline.untainted(deed.key, deed.because, deed.recovers, at())(status))))
  }

  /** The whole list is one value to Kubernetes: it is written only over the very version it was read from. */
  async function writeTaints(row: Row, taints: readonly Taint[], cordons = false): Promise<boolean> {
    if (leads() === undefined) return false
    const patch = [
      { op: 'test', path: '/metadata/uid', value: row.uid },
      { op: 'test', path: '/metadata/resourceVersion', value: row.resourceVersion },
      { op: 'add', path: '/spec/taints', value: taints },
      ...(cordons ? [{ op: 'add', path: '/spec/unschedulable', value: true }] : []),
    ]
    const answer = await api.patch<KubeObject>(paths.node(row.name), 'json', patch, how())
    if (answer.ok) {
      observation.node(keepNode(answer.value), 'live')
      return true
    }
    log.info({ node: row.name, kind: answer.error.kind }, 'taints not written; the node is read again')
    const newer = await api.get<KubeObject>(paths.node(row.name), how())
    if (newer.ok) observation.node(keepNode(newer.value), 'live')
    return false
  }
}
