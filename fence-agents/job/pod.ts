// The Job that is made of an operator's PodTemplate for one run: one pod, once, never on the node that is fenced, ended by the
// cluster itself where nobody waits for it any more.
import { Failure } from '../contract.ts'
import { fieldsOf, itemsOf, textOf, type Fields } from '../https.ts'

export interface PodRun {
  readonly name: string
  readonly action: 'on' | 'off' | 'status'
  readonly plug: string
  readonly node: string
  readonly seconds: number
}

/** How long the cluster keeps a Job that is over, where we could not take it away ourselves. */
const keptFor = 120

export function jobOf(podTemplate: Fields, run: PodRun): object {
  const template = fieldsOf(podTemplate['template'])
  const spec = fieldsOf(template['spec'])
  const [container, second] = itemsOf(spec['containers']).map(fieldsOf)
  // Of two it would not be known whose exit is the answer.
  if (container === undefined || second !== undefined) throw new Failure('config', 'the PodTemplate must have one container')
  // The scheduler would not be asked, and the pod might wait for ever on a machine that is dead.
  if (spec['nodeName'] !== undefined) throw new Failure('config', 'the PodTemplate names a node in nodeName')
  return {
    apiVersion: 'batch/v1', kind: 'Job', metadata: { name: run.name, labels: { 'app.kubernetes.io/part-of': 'holdfast' } },
    spec: {
      completions: 1, parallelism: 1, backoffLimit: 0, activeDeadlineSeconds: run.seconds, ttlSecondsAfterFinished: keptFor,
      template: {
        metadata: fieldsOf(template['metadata']),
        spec: { ...spec, restartPolicy: 'Never', affinity: elsewhere(fieldsOf(spec['affinity']), run.node), containers: [toldTo(container, run)] },
      },
    },
  }
}

/** The end of its log stands for its message where it wrote none: so its last line reaches us without a right to read logs. */
function toldTo(container: Fields, { action, plug, node, seconds }: PodRun): object {
  const ours = { HOLDFAST_ACTION: action, HOLDFAST_PLUG: plug, HOLDFAST_NODE: node, HOLDFAST_DEADLINE: String(seconds * 1_000) }
  const others = itemsOf(container['env']).filter((one) => !((textOf(fieldsOf(one)['name']) ?? '') in ours))
  return { ...container, env: [...others, ...Object.entries(ours).map(([name, value]) => ({ name, value }))], terminationMessagePolicy: 'FallbackToLogsOnError' }
}

/** Its terms are alternatives, so each of them must leave out the node. */
function elsewhere(affinity: Fields, node: string): object {
  const nodeAffinity = fieldsOf(affinity['nodeAffinity'])
  const terms = itemsOf(fieldsOf(nodeAffinity['requiredDuringSchedulingIgnoredDuringExecution'])['nodeSelectorTerms']).map(fieldsOf)
  const without = (terms.length === 0 ? [{}] : terms).map((term: Fields) => {
    return { ...term, matchFields: [...itemsOf(term['matchFields']), { key: 'metadata.name', operator: 'NotIn', values: [node] }] }
  })
  return { ...affinity, nodeAffinity: { ...nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: without } } }
}
