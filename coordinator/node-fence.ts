// NodeFence: one failure of one boot of one node, as it stands in the cluster. What its fields mean to the core stands in
// core/incident.ts. The reading is strict: a replica that does not understand all that another version wrote about an
// incident must not act on it. What is there for people alone is passed over.
import * as v from 'valibot'
import type { Acknowledgement, Cause, Incident, IncidentStatus } from '../core/incident.ts'
import type { KubeObject } from './api.ts'
import { defaultPolicy, type Policy } from '../core/policy.ts'
import { policyFields, policyOfSpec, specOfPolicy } from './holdfast-policy.ts'
import { conditionsOf, limited, limits, statusSchema, withoutAsides } from './node-fence-status.ts'
import { bootText } from './node-record.ts'
import { showDuration } from './schema-duration.ts'
import { fit, shapeOf } from './schema-shape.ts'
import { flag, instant, read, ruled, settled, text, word, type Fault, type Fields, type Rule } from './schema.ts'
import { apiVersion, pathOf, type Kind } from './schema-kind.ts'

const onlyOnce = ruled(settled)
const ofThisBoot: Rule = {
  rule: `!has(self.acknowledge) || self.boot == '' || self.acknowledge.boot == self.boot`, fieldPath: '.acknowledge.boot',
  message: 'must be spec.boot: a word that a machine is off is of the boot that failed, and of no other',
}

const spec = v.pipe(
  v.object({
    nodeName: v.pipe(text('The node.', 253), v.metadata(onlyOnce)),
    nodeUid: v.exactOptional(v.pipe(text('UID of the Node object: another Node of the same name is another node. Empty, as the next two: as it is when this is first seen.', 128, 0), v.metadata(onlyOnce)), ''),
    boot: v.exactOptional(v.pipe(bootText('The boot that failed.'), v.metadata(onlyOnce)), ''),
    machine: v.exactOptional(v.pipe(text('The machine\'s UUID (systemUUID).', 128, 0), v.metadata(onlyOnce)), ''),
    cause: v.exactOptional(v.pipe(word('Why it was opened.', {
      silence: 'nothing was heard of the node', hung: 'its machine answers and nothing on it works', 'found-off': 'its devices say off', 'by-hand': 'a person asked for it', 'by-word': 'somebody says by holdfast.dev/force-eviction that it is off',
      drill: 'nothing failed: a person wants to see that the path switches this machine, and no other',
      'scheduled-drill': 'nothing failed: its policy asks for drills, and the node was spare',
      owed: 'nothing failed: what an earlier incident left off is switched on again', remedy: 'it runs and is not well, and a NodeRemedy has such a node fenced', leftover: 'it is back, and did not become clean within returnPatience',
    } satisfies Record<Cause, string>), v.metadata(onlyOnce)), 'by-hand'),
    policy: v.exactOptional(v.pipe(
      v.object({ name: text('The HoldfastPolicy it was taken from.', 253), ...policyFields }),
      v.description('The policy, by value: editing the policy does not bend an incident under way. Absent: that of the node when this is first seen.'),
      v.metadata(onlyOnce),
    )),
    abort: v.exactOptional(v.pipe(
      flag('Set by a person: no more orders; what was cut is given back. After a proof it is refused.'),
      v.metadata(ruled({ rule: '!oldSelf || self', message: 'an abort cannot be taken back' })),
    ), false),
    acknowledge: v.exactOptional(v.pipe(
      v.object({
        boot: text('The boot that is off: spec.boot, letter by letter.', 253),
        by: text('Who says so.', 253),
        reason: text('How it is known.', 1_024),
        until: instant('Until when the word may be relied upon. A day is the most.'),
      } satisfies Fields<Acknowledgement>),
      v.description('A person\'s word that the machine is off and stays off. With nothing that speaks against it, it is a proof.'),
    )),
  } satisfies Fields<Omit<Incident, 'name' | 'uid' | 'resourceVersion' | 'incomplete' | 'status'>>),
  v.description('What failed, and by which policy it is treated. Only abort and acknowledge can be changed afterwards.'),
  // Read leniently: what the API server lets pass all the same, the core says on the record, and goes on.
  v.metadata(ruled(ofThisBoot)),
)

const aborts = 'has(self.spec.abort) && self.spec.abort && !(has(oldSelf.spec.abort) && oldSelf.spec.abort)'
/** What the API server lets pass because the proof came at the same time, the core refuses with a hold. */
const abortInTime: Rule = {
  rule: `!(${aborts}) || !has(oldSelf.status) || !has(oldSelf.status.proof)`, fieldPath: '.spec.abort',
  message: 'the node is proven unable to write already: what follows from that is finished, and an abort comes too late',
}
const abortWhileOpen: Rule = {
  rule: `!(${aborts}) || !has(oldSelf.status) || !has(oldSelf.status.phase) || oldSelf.status.phase != 'Final'`, fieldPath: '.spec.abort',
  message: 'this incident is over: there is nothing left to abort',
}

export const nodeFence: Kind = {
  kind: 'NodeFence', plural: 'nodefences', singular: 'nodefence', shortNames: ['nf'],
  says: 'NodeFence is one failure of one boot of one node: what is done about it, why, and what it waits for.',
  spec, status: statusSchema, rules: [abortInTime, abortWhileOpen],
  columns: [
    { name: 'Node', path: '.spec.nodeName', says: 'The node.' },
    { name: 'Phase', path: '.status.phase', says: 'How far it is.' },
    { name: 'Step', path: '.status.step', says: 'What is being done.' },
    { name: 'Proof', path: '.status.proof.kind', says: 'Why the node cannot write.' },
    { name: 'Waits-For', path: '.status.waitsFor', says: 'Why nothing is being done just now.' },
    { name: 'Outcome', path: '.status.outcome', says: 'How it ended.', wide: true },
    { name: 'Cause', path: '.spec.cause', says: 'Why it was opened.', wide: true },
    { name: 'Boot', path: '.spec.boot', says: 'The boot that failed.', wide: true },
    { name: 'Age', path: '.metadata.creationTimestamp', type: 'date', says: 'When it was opened.' },
  ],
  selectable: ['.spec.nodeName'],
}

export const fencesPath = pathOf(nodeFence)

interface FenceObject extends KubeObject {
  spec?: unknown
  status?: unknown
}

export function readIncident(object: KubeObject): { ok: true; incident: Incident } | { ok: false; faults: readonly Fault[] } {
  const { metadata, spec: wanted, status: reached } = object as FenceObject // both are unknown until read
  const head = read(spec, wanted, 'spec')
  const body = read(statusSchema, withoutAsides(reached ?? {}), 'status')
  if (!head.ok || !body.ok) return { ok: false, faults: [head, body].flatMap((part) => (part.ok ? [] : part.faults)) }
  const { policy, nodeUid = '', boot = '', machine = '', cause = 'by-hand', abort = false, ...rest } = head.value
  const { name, uid = '', resourceVersion = '' } = metadata
  const status = statusOf(body.value)
  const { taken } = status
  const complete = (nodeUid !== '' && policy !== undefined) || taken !== undefined
  return {
    ok: true,
    incident: {
      ...rest, name, uid, resourceVersion, cause, abort, status, nodeUid: nodeUid || (taken?.nodeUid ?? ''), boot: boot || (taken?.boot ?? ''), machine: machine || (taken?.machine ?? ''),
      policy: policy === undefined ? taken?.policy ?? { ...defaultPolicy, name: '' } : policyOf(policy), ...(complete ? {} : { incomplete: true }),
    },
  }
}

function policyOf({ name, ...policy }: { readonly name: string } & Parameters<typeof policyOfSpec>[1]): Policy {
  return policyOfSpec(name, policy)
}

/** What stands there for people only is left out. Every field with a default is there once parsed, which valibot's types of
 *  optional fields do not say. */
function statusOf(parsed: v.InferOutput<typeof statusSchema>): IncidentStatus {
  const { waitsFor: _, conditions: __, ...kept } = parsed
  const { phase = 'New', step = 'none', level = 0, round = 1, term = 0, attempts = [], voided = [], pods = [], volumes = [], holds = [], timeline = [], taken, ...rest } = kept
  return { phase, step, level, round, term, attempts, voided, pods, volumes, holds, timeline, ...rest, ...(taken === undefined ? {} : { taken: { ...taken, policy: policyOf(taken.policy) } }) }
}

export type IncidentDraft = Pick<Incident, 'name' | 'nodeName' | 'nodeUid' | 'boot' | 'machine' | 'cause' | 'policy'>

/** The body of a POST. */
export function incidentBody({ name, nodeName, nodeUid, boot, machine, cause, policy }: IncidentDraft): unknown {
  const wanted: v.InferInput<typeof spec> = { nodeName, nodeUid, boot, machine, cause, policy: { name: policy.name, ...specOfPolicy(policy) } }
  return { apiVersion, kind: nodeFence.kind, metadata: { name }, spec: fit(shapeOf(spec, 'spec'), wanted) }
}

/** etcd takes 1.5 MiB an object, the spec and what the API server keeps of its own included. */
const mostText = 1_000_000
const moments = [limits.timeline, 100, 10] as const

/** The whole body of a PUT to …/status. `uid` makes it miss a successor of the same name. */
export function statusBody(name: string, resourceVersion: string, uid: string, status: IncidentStatus, extra: { readonly generation?: number } = {}): Pick<KubeObject, 'apiVersion' | 'kind'> & { readonly metadata: object; readonly status: unknown } {
  const shape = shapeOf(statusSchema, 'status')
  let next: unknown
  for (const most of moments) {
    next = fit(shape, stored(limited(status, most), extra.generation))
    if (Buffer.byteLength(JSON.stringify(next)) <= mostText) break
  }
  return { apiVersion, kind: nodeFence.kind, metadata: { name, resourceVersion, uid }, status: next }
}

function stored({ attempts, taken, ...kept }: IncidentStatus, generation?: number): object {
  return {
    ...kept,
    ...(taken === undefined ? {} : { taken: { ...taken, policy: { name: taken.policy.name, ...specOfPolicy(taken.policy) } } }),
    attempts: attempts.map((one) => ({ ...one, within: showDuration(one.within), late: showDuration(one.late) })),
    waitsFor: kept.holds[0]?.because ?? '',
    conditions: conditionsOf({ attempts, ...kept }, generation),
  }
}
