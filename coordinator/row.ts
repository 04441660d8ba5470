// What is known of one node, in one object that lives as long as the node and is read in place at each tick.
//
// A class, and no field of it is ever deleted: so every row has one and the same shape, and a field of it is found where it
// lies. Over five thousand nodes that is the greater part of what a tick costs.
import { cloudShutdownKey, forceEvictionKey } from '../core/acknowledge.ts'
import { outOfServiceKey } from '../core/clear.ts'
import { evictionKey, goneKey, kubeletsBootKey, type BeatSeen, type EvictionSeen, type LeaseSeen, type Ms, type NodeName, type NodeRecord, type NodeSeen, type PodsSeen, type ProbeSeen, type Reading, type VolumeSeen, type WitnessSeen } from '../core/model.ts'
import type { KeptNode } from './kubernetes.ts'

/** What is kept elsewhere for all nodes, and asked for when it is read. */
export interface Elsewhere {
  heard(node: NodeName): BeatSeen | undefined
  auditedUntil(node: NodeName): Ms | undefined
}

/** One for all the nodes that use none. */
const noVolumes: ReadonlySet<string> = new Set()

export class Row implements NodeSeen {
  readonly name: NodeName
  readonly uid: string
  readonly seenAt: Ms
  readonly busy: Set<string>
  readonly firstSeen = new Map<string, Ms>()
  readonly #elsewhere: Elsewhere
  machine = ''
  twin: NodeSeen['twin'] = undefined
  bootId = ''
  address = ''
  addresses: NodeSeen['addresses'] = undefined
  kubeletPort = 0
  heartbeat: string
  zone = ''
  controlPlane = false
  labels: NodeSeen['labels'] = {}
  annotations: NodeSeen['annotations'] = {}
  taints: NodeSeen['taints'] = []
  conditions: NodeSeen['conditions'] = undefined
  maintenance: NodeSeen['maintenance'] = undefined
  inUse = noVolumes
  resourceVersion = ''
  ready: NodeSeen['ready']
  gone: boolean | undefined = undefined
  readAt: Ms | undefined = undefined
  lease: LeaseSeen | undefined = undefined
  probe: ProbeSeen | undefined = undefined
  dump: NodeSeen['dump'] = undefined
  record: NodeRecord | undefined = undefined
  recordWrite: NodeSeen['recordWrite'] = undefined
  unkept: NodeSeen['unkept'] = undefined
  members: NodeSeen['members'] = undefined
  ailing: NodeSeen['ailing'] = undefined
  pods: PodsSeen | undefined = undefined
  podsRefused: string | undefined = undefined
  evictions: Map<string, EvictionSeen> | undefined = undefined
  path: NodeSeen['path'] = { levels: [], faults: [] }
  witnesses: WitnessSeen[] = []
  readings: Reading[] = []
  volumes: VolumeSeen[] = []

  constructor(kept: KeptNode, now: Ms, elsewhere: Elsewhere, busy: Set<string> = new Set()) {
    this.name = kept.metadata.name
    this.uid = kept.metadata.uid ?? ''
    this.seenAt = now
    this.busy = busy
    this.heartbeat = kept.ready.heartbeat
    this.ready = { status: 'Unknown', postedAt: -Infinity, since: now, bootId: kept.bootId }
    this.#elsewhere = elsewhere
  }

  get beat(): BeatSeen | undefined {
    return this.#elsewhere.heard(this.name)
  }

  get auditedUntil(): Ms | undefined {
    return this.#elsewhere.auditedUntil(this.name)
  }

  /** What its Node object says now. */
  refresh(kept: KeptNode, now: Ms): void {
    const labels = kept.metadata.labels ?? {}
    const first = this.resourceVersion === ''
    this.resourceVersion = kept.metadata.resourceVersion ?? ''
    this.machine = kept.machine
    if (kept.bootId !== this.bootId) this.firstSeen.set(kubeletsBootKey, now)
    this.bootId = kept.bootId
    this.address = kept.address
    this.addresses = kept.addresses
    this.kubeletPort = kept.kubeletPort
    this.labels = labels
    this.annotations = kept.metadata.annotations ?? {}
    this.zone = labels['topology.kubernetes.io/zone'] ?? ''
    this.controlPlane = labels['node-role.kubernetes.io/control-plane'] !== undefined
    this.taints = kept.taints
    this.conditions = kept.conditions && conditionsAfter(this.conditions, kept.conditions, now, first)
    this.maintenance = kept.maintenance
    this.inUse = kept.inUse.length === 0 ? noVolumes : new Set(kept.inUse)
    this.gone = undefined
    this.firstSeen.delete(goneKey)
    const posted = kept.ready.heartbeat !== this.heartbeat
    this.heartbeat = kept.ready.heartbeat
    const since = kept.ready.status === this.ready.status ? this.ready.since : now
    this.ready = posted
      ? { status: kept.ready.status, postedAt: now, since, bootId: kept.bootId }
      : { ...this.ready, status: kept.ready.status, since }
    const said = this.taints.some(({ key }) => key === forceEvictionKey || key === cloudShutdownKey)
    if (!said) this.firstSeen.delete(evictionKey)
    else if (!this.firstSeen.has(evictionKey)) this.firstSeen.set(evictionKey, first ? -Infinity : now)
    const out = this.taints.some((taint) => taint.key === outOfServiceKey)
    if (out) this.firstSeen.delete(`gone ${outOfServiceKey}`)
    else if (!this.firstSeen.has(`gone ${outOfServiceKey}`)) this.firstSeen.set(`gone ${outOfServiceKey}`, now)
  }
}

function conditionsAfter(before: NodeSeen['conditions'], kept: NonNullable<KeptNode['conditions']>, now: Ms, first: boolean): NonNullable<NodeSeen['conditions']> {
  return new Map(kept.map(({ type, heartbeat }) => {
    const known = before?.get(type)
    return [type, known?.heartbeat === heartbeat ? known : { heartbeat, postedAt: now, ...(first ? { stood: true } : {}) }]
  }))
}
