// NodeRecord: what must outlive a leader and cannot be asked of a dead node. One a node, under the node's name, written by
// the leader alone and only when a fact changes; it is all spec, so that one write carries it whole.
import * as v from 'valibot'
import { mostAddresses } from '../core/address.ts'
import type { Drill, GateKept, NodeRecord, PathAudit } from '../core/model.ts'
import type { Places } from '../core/beat.ts'
import { mostPanic } from '../core/frame.ts'
import type { Strain } from '../core/vitals.ts'
import type { Membership, WatchdogKept } from '../core/watchdog.ts'
import type { KubeObject } from './api.ts'
import { fit, pruned, shapeOf } from './schema-shape.ts'
import { flag, instant, list, prose, read, text, whole, word, type Fault, type Fields } from './schema.ts'
import { apiVersion, pathOf, type Kind } from './schema-kind.ts'

export const bootText = (says: string) => text(`${says} Boot id and start of the machine's pid 1, id/start; the id alone where only kubelet's word is known.`, 253, 0)

const path = v.pipe(
  v.object({
    method: text('The method, as the fence ConfigMap names it.', 253),
    digest: text('Of the method\'s configuration: another configuration was not audited.', 128),
    boot: bootText('The boot that was beating when the device was asked.'),
    state: word('What came of it.', {
      verified: 'the device answered on', mismatch: 'it answered otherwise than it should', unreachable: 'it did not answer',
      marked: 'a proof made by this path was shown false, or an off by it struck another machine',
    } satisfies Record<PathAudit['state'], string>),
    identity: word('Whether the path is known to be wired to this node.', {
      proven: 'by the machine\'s UUID, a drill or a fence', unproven: 'nothing tells', mismatch: 'it is another machine\'s',
    } satisfies Record<PathAudit['identity'], string>),
    at: instant('When the device was asked.'),
    evidence: prose('What it said.'),
    drill: v.exactOptional(v.pipe(
      v.object({
        at: instant('When it passed, or was over.'),
        machine: text('The machine that it was.', 128),
        digests: list('Of every method that was switched then: they prove it together.', text('One digest.', 128), 32),
      } satisfies Fields<Drill>),
      v.description('The drill, or the fence, that proved the identity of this path.'),
    )),
  } satisfies Fields<PathAudit>),
  v.description('The latest audit of one method.'),
)

const named = (says: string) => text(says, 253)

export const watchdogField = (says: string) => v.pipe(
  v.object({
    boot: bootText('The boot in which its agent told of it.'),
    state: word('Whether it resets the machine once nobody feeds it.', { armed: 'it does', unarmed: 'it does not' } satisfies Record<WatchdogKept['state'], string>),
    identity: text('What the kernel calls it.', 64, 0),
    timeout: whole('Its time-out, in milliseconds.', 0, 86_400_000),
    panic: whole('What kernel.panic is there: the seconds after which a kernel that panics reboots.', -mostPanic, mostPanic),
    machine: word('Whether the machine may be made to stand still, its watchdog with it.', {
      real: 'no', virtual: 'yes', unknown: 'nobody can tell',
    } satisfies Record<WatchdogKept['machine'], string>),
    epoch: whole('The membership that the node has confirmed; 0 is none.', 0, Number.MAX_SAFE_INTEGER),
    memberships: list('Every membership that the node may hold, oldest first. A node is told of none that does not stand here.', v.pipe(
      v.object({
        epoch: whole('Its number.', 0, Number.MAX_SAFE_INTEGER),
        agents: list('Nodes whose agents are members.', named('Its name.'), 20),
        replicas: list('Replicas that are.', named('Its name.'), 16),
      } satisfies Fields<Membership>),
      v.description('Whose word, most of them together, stands in for a leader\'s.'),
    ), 4),
  } satisfies Fields<WatchdogKept>),
  v.description(says),
)

const spec = v.pipe(
  v.object({
    nodeUid: text('UID of the Node object.', 128),
    boot: bootText('The latest boot heard.'),
    machine: text('The machine\'s UUID (systemUUID).', 128, 0),
    addresses: v.exactOptional(list('IP addresses of the machine, as its Node named them while it was well: {addresses} of the fence ConfigMaps.', v.pipe(
      v.string(), v.maxLength(45), v.regex(/^[0-9a-f.:]+$/, 'must be an IP address'), v.description('One of them.'),
    ), mostAddresses)),
    summary: v.exactOptional(prose('What the latest audits found, in short.', 256)),
    paths: v.exactOptional(list('The fence paths of the node and what their latest audits found.', path, 64, ['method']), []),
    probe: v.exactOptional(v.pipe(
      v.object({
        boot: bootText('The boot that was beating when the port was asked.'),
        answered: flag('Whether it answered. A port that never answers proves nothing by its silence.'),
        at: instant('When it was asked.'),
      } satisfies Fields<NonNullable<NodeRecord['probe']>>),
      v.description('The latest audit of the kubelet\'s port.'),
    )),
    gate: v.exactOptional(word('Whether the container runtime asks the gate of the node before it starts a pod.', {
      asks: 'it does', absent: 'it does not, though the gate is wanted: taints alone hold there', off: 'no gate is wanted there',
    } satisfies Record<GateKept, string>)),
    places: v.exactOptional(v.pipe(
      v.object({
        kubelet: text('Kubelet\'s folder.', 256, 0), runtime: text('The socket of the container runtime.', 256, 0), gate: text('The socket at which it lets plugins in (NRI).', 256, 0),
      } satisfies Fields<Places>),
      v.description('Where its agent found kubelet and the runtime; empty where it found nothing.'),
    )),
    strains: v.exactOptional(list('Vitals of the node that are beyond their limits.', word('One of them.', {
      disk: 'the file system of kubelet\'s folder is nearly full', inodes: 'it has hardly an inode left', memory: 'hardly any memory is left for a new process',
      temperature: 'a processor is too hot', load: 'far more wants to run than there are cores',
    } satisfies Record<Strain, string>), 5)),
    watchdog: v.exactOptional(watchdogField('The watchdog of the machine, and whose word the node goes by.')),
  } satisfies Fields<Omit<NodeRecord, 'resourceVersion'>, 'summary'>),
  v.description('What is known of the node.'),
)

export const nodeRecord: Kind = {
  kind: 'NodeRecord', plural: 'noderecords', singular: 'noderecord', shortNames: ['nrec'],
  says: 'NodeRecord keeps what was learned of a node while it was well and cannot be asked of it once it is dead. Written by the coordinator alone.',
  spec,
  columns: [
    { name: 'Audits', path: '.spec.summary', says: 'What the latest audit of each fence path found.' },
    { name: 'Boot', path: '.spec.boot', says: 'The latest boot heard.', wide: true },
    { name: 'Machine', path: '.spec.machine', says: 'The machine\'s UUID.', wide: true },
    { name: 'Age', path: '.metadata.creationTimestamp', type: 'date', says: 'When it was made.' },
  ],
}

export const recordsPath = pathOf(nodeRecord)

interface RecordObject extends KubeObject {
  spec?: unknown
}

export function readRecord(object: KubeObject): { ok: true; record: NodeRecord } | { ok: false; faults: readonly Fault[] } {
  const { metadata, spec: kept } = object as RecordObject // spec is unknown until read
  // Facts that a later release keeps as well are in nobody's way: none of them is an order or a proof, and whoever leads learns them anew.
  const got = read(spec, pruned(shapeOf(spec, 'spec'), kept), 'spec')
  if (!got.ok) return got
  const { summary: _, paths = [], ...facts } = got.value
  return { ok: true, record: { ...facts, paths, resourceVersion: metadata.resourceVersion ?? '' } }
}

/** Its lists as the schema has them. */
export function writtenWatchdog({ memberships, ...rest }: WatchdogKept): v.InferInput<ReturnType<typeof watchdogField>> {
  return { ...rest, memberships: memberships.map(({ epoch, agents, replicas }) => ({ epoch, agents: [...agents], replicas: [...replicas] })) }
}

/** Everything of a node that can be asked is asked before its record is written. */
const unasked = 'kubelet port not asked: the Node names no IP address'

/** The whole body of a POST, or with a resourceVersion of a PUT. `wall`, in milliseconds since the epoch, is the time of
 *  every audit that bears none: the core, which made the record, does not know the time of day. */
export function recordBody(name: string, record: Omit<NodeRecord, 'resourceVersion'>, wall: number, resourceVersion?: string): unknown {
  const at = (time: string): string => (time === '' ? new Date(wall).toISOString() : time)
  const { nodeUid, boot, machine, addresses, paths, probe, gate, places, strains, watchdog } = record
  const facts: v.InferInput<typeof spec> = {
    nodeUid, boot, machine, summary: [...paths.map((audit) => `${audit.method} ${audit.state}`), ...(probe === undefined ? [unasked] : [])].join(', '),
    paths: paths.map(({ drill, ...audit }) => ({ ...audit, at: at(audit.at), ...(drill === undefined ? {} : { drill: { ...drill, digests: [...drill.digests] } }) })),
    ...(probe === undefined ? {} : { probe: { ...probe, at: at(probe.at) } }),
    ...(addresses === undefined ? {} : { addresses: [...addresses] }), ...(gate === undefined ? {} : { gate }), ...(places === undefined ? {} : { places: { ...places } }), ...(strains === undefined ? {} : { strains: [...strains] }), ...(watchdog === undefined ? {} : { watchdog: writtenWatchdog(watchdog) }),
  }
  return {
    apiVersion, kind: nodeRecord.kind, metadata: { name, ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    spec: fit(shapeOf(spec, 'spec'), facts),
  }
}
