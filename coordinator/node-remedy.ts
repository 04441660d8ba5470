// NodeRemedy: what is done about nodes that run, and are not well. What its fields mean to the core stands in core/remedy.ts.
import * as v from 'valibot'
import type { Remedy, Threshold } from '../core/remedy.ts'
import type { Strain } from '../core/vitals.ts'
import type { KubeObject } from './api.ts'
import { duration, labels, list, read, ruled, text, whole, word, type Fault, type Fields } from './schema.ts'
import { pathOf, type Kind } from './schema-kind.ts'

const hour = 3_600_000
const oneOfTwo = 'needs either vital or condition'
const bothOrNone = 'vital and above go together'
const neverReached = 'is never reached: a share is told up to 100, and load up to 25'

const threshold = v.pipe(
  v.object({
    name: text('Its name, for people.', 63),
    vital: v.exactOptional(word('What the agent of the node tells every other minute. One that is not told is not crossed.', {
      disk: 'the share of the file system of kubelet\'s folder that is in use', inodes: 'the share of its inodes', memory: 'the share that cannot be given to a new process',
      temperature: 'of the hottest processor, in degrees Celsius', load: 'processes that run or want to, for each core',
    } satisfies Record<Strain, string>)),
    above: v.exactOptional(whole('The vital is beyond this: a share in percent, degrees, or processes for each core.', 0, 200)),
    condition: v.exactOptional(text('A condition of the Node that is True, as a node problem detector sets it. It stands until whoever set it takes it back; no node is fenced for one that nobody was seen to post in its present boot.', 316)),
    period: duration('For so long without a break, as the coordinator that leads has seen it itself.', 300_000, 24 * hour),
  } satisfies Fields<Threshold, 'above'>),
  v.check((one) => (one.vital === undefined) !== (one.condition === undefined), oneOfTwo),
  v.check((one) => (one.vital === undefined) === (one.above === undefined), bothOrNone),
  v.check(({ vital, above = 0 }) => vital === undefined || above < most(vital), neverReached),
  v.description('When a node ails.'),
  v.metadata(ruled(
    { rule: 'has(self.vital) != has(self.condition)', message: oneOfTwo },
    { rule: 'has(self.vital) == has(self.above)', message: bothOrNone },
    { rule: `!has(self.vital) || !has(self.above) || self.vital == 'temperature' || self.above < (self.vital == 'load' ? ${most('load')} : ${most('disk')})`, message: neverReached, fieldPath: '.above' },
  )),
)

/** Where what a beat can carry ends. */
function most(vital: Strain): number {
  return vital === 'temperature' ? 201 : vital === 'load' ? 25 : 100
}

const spec = v.pipe(
  v.object({
    selector: v.exactOptional(v.pipe(
      v.object({ matchLabels: v.exactOptional(labels('Labels that a node must bear, all of them.', 50), {}) }),
      v.description('The nodes that this remedy is for. Empty selects every node.'),
    ), {}),
    thresholds: list('Any of them is enough.', threshold, 16, ['name']),
    remedy: v.exactOptional(word('What is done about a node that ails.', {
      tell: 'nothing, and it is told: on the page, by an Event, and in holdfast_holds',
      fence: 'its machine is switched off and on like that of a node which a person wants fenced: pods go in good order first within evictWithin of its HoldfastPolicy, one node at a time, and no node while many ail alike',
    } satisfies Record<Remedy['does'], string>), 'tell'),
    again: v.exactOptional(duration('A node that a remedy had fenced is not fenced by this one sooner.', hour, 7 * 24 * hour), '24h'),
  } satisfies Fields<Omit<Remedy, 'name' | 'nodeLabels' | 'does'>, 'selector' | 'remedy'>),
  v.description('When a node ails, and what is done about it. It needs a HoldfastPolicy that selects the node, too.'),
)

export const nodeRemedy: Kind = {
  kind: 'NodeRemedy', plural: 'noderemedies', singular: 'noderemedy', shortNames: ['nrem'],
  says: 'NodeRemedy says what is done about a node that runs, and is not well: whose disk is full, or that a node problem detector complains of.',
  spec,
  columns: [
    { name: 'Remedy', path: '.spec.remedy', says: 'tell or fence.' },
    { name: 'Again', path: '.spec.again', says: 'The least time between two fences of one node.' },
    { name: 'Age', path: '.metadata.creationTimestamp', type: 'date', says: 'When it was made.' },
  ],
}

export const remediesPath = pathOf(nodeRemedy)

interface RemedyObject extends KubeObject {
  spec?: unknown
}

export function readRemedy(object: KubeObject): { ok: true; remedy: Remedy } | { ok: false; faults: readonly Fault[] } {
  const { metadata, spec: wanted } = object as RemedyObject // unknown until read
  const got = read(spec, wanted, 'spec')
  if (!got.ok) return got
  // Every field with a default is there once parsed, which valibot's types of optional fields do not say.
  const { selector, thresholds, remedy = 'tell', again = 24 * hour } = got.value
  return { ok: true, remedy: { name: metadata.name, nodeLabels: selector?.matchLabels ?? {}, does: remedy, again: Number(again), thresholds: thresholds.map(thresholdOf) } }
}

function thresholdOf({ vital, above = 0, condition, ...rest }: v.InferOutput<typeof threshold>): Threshold {
  return { ...rest, ...(vital === undefined ? {} : { vital: { name: vital, above } }), ...(condition === undefined ? {} : { condition }) }
}
