// The caches that a controller process keeps of the API, shared by its controllers as informers are. What a controller decides
// from, it decides from here; how old it is can be turned up, because a controller that acts on a taint which is gone already
// is a thing that happens.
import type { Api, KubeObject } from '../../coordinator/api.ts'
import { reflect, type Change } from '../../coordinator/reflector.ts'
import type { Ms } from '../../core/model.ts'
import type { Clock } from '../../edge/clock.ts'
import type { Log } from '../../edge/log.ts'
import type { Chance } from '../chance.ts'
import type {
  AttachmentObject, ClaimObject, DaemonSetObject, DeploymentObject, LeaseObject, NodeObject, PodObject, ReplicaSetObject, StatefulSetObject, VolumeObject,
} from '../objects.ts'

export interface Cache<T> {
  /** By `namespace/name`, or name. */
  readonly items: ReadonlyMap<string, T>
  synced(): boolean
  /** What is there already is told at once. */
  listen(ear: (change: Change<T>) => void): void
  /** From now on changes show so much later. */
  setLag(span: Ms): void
}

export interface Caches {
  readonly nodes: Cache<NodeObject>
  readonly pods: Cache<PodObject>
  readonly leases: Cache<LeaseObject>
  readonly claims: Cache<ClaimObject>
  readonly volumes: Cache<VolumeObject>
  readonly attachments: Cache<AttachmentObject>
  readonly statefulSets: Cache<StatefulSetObject>
  readonly replicaSets: Cache<ReplicaSetObject>
  readonly deployments: Cache<DeploymentObject>
  readonly daemonSets: Cache<DaemonSetObject>
}

/** What every controller gets. */
export interface ControllerGround {
  readonly clock: Clock
  readonly api: Api
  readonly chance: Chance
  readonly log: Log
  readonly caches: Caches
}

const paths: { readonly [kind in keyof Caches]: string } = {
  nodes: '/api/v1/nodes',
  pods: '/api/v1/pods',
  leases: '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases',
  claims: '/api/v1/persistentvolumeclaims',
  volumes: '/api/v1/persistentvolumes',
  attachments: '/apis/storage.k8s.io/v1/volumeattachments',
  statefulSets: '/apis/apps/v1/statefulsets',
  replicaSets: '/apis/apps/v1/replicasets',
  deployments: '/apis/apps/v1/deployments',
  daemonSets: '/apis/apps/v1/daemonsets',
}

const everyKind = Object.keys(paths) as readonly (keyof Caches)[] // keys of the record above, by construction

export function createCaches<Kind extends keyof Caches = keyof Caches>(
  ground: Omit<ControllerGround, 'caches'>, kinds: readonly (Kind | keyof Caches)[] = everyKind,
): Pick<Caches, Kind> {
  const made = kinds.map((kind) => [kind, createCache<KubeObject>(ground, paths[kind])])
  // Each path's objects have the type that its key says: the API's own schema.
  return Object.fromEntries(made) as unknown as Pick<Caches, Kind>
}

export function createCache<T extends KubeObject>(
  { api, clock, chance, log }: Omit<ControllerGround, 'caches'>, path: string, query: Readonly<Record<string, string>> = {},
): Cache<T> {
  const items = new Map<string, T>()
  const ears: ((change: Change<T>) => void)[] = []
  let lag: Ms = 0
  let latestAt: Ms = 0
  let waiting = 0

  const apply = (change: Change<T>) => {
    if (change.type === 'deleted') items.delete(change.key)
    else items.set(change.key, change.object)
    for (const ear of ears) ear(change)
  }
  const source = reflect<T>({
    api, clock, log, path, query, chance: () => chance.next(),
    changed(change) {
      if (lag === 0 && waiting === 0) return apply(change)
      // In order, whatever the lag was turned to meanwhile.
      latestAt = Math.max(latestAt, clock.now() + lag)
      waiting++
      clock.after(latestAt - clock.now(), () => {
        waiting--
        apply(change)
      })
    },
  })
  return {
    items,
    synced: () => source.synced && waiting === 0,
    listen(ear) {
      ears.push(ear)
      for (const [key, object] of items) ear({ type: 'added', key, object })
    },
    setLag(span) { lag = span },
  }
}

/** Resolves when every cache has been read once. */
export async function synced(clock: Clock, caches: Caches): Promise<void> {
  while (!Object.values(caches).every((cache: Cache<unknown>) => cache.synced())) await clock.wait(20)
}
