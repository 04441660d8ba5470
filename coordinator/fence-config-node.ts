// What of a Node its fence configuration goes by: its name, its labels, of its annotations those that are ours, and the addresses on its
// record; and which ConfigMaps are of a set of nodes, by their labels.
import type { NodeName } from '../core/model.ts'
import type { Placed } from './fence-config-method.ts'

export interface NodeWords {
  readonly labels: Readonly<Record<string, string>>
  /** Those that begin with holdfast.dev/: of no other is anything kept. */
  readonly annotations: Readonly<Record<string, string>>
  /** Those on its NodeRecord: what the Node names may be another's by now. Who reads no records takes what it names. */
  readonly addresses?: readonly string[] | undefined
}

export const wordless: NodeWords = { labels: {}, annotations: {} }

export interface NodeAsked extends NodeWords {
  readonly name: NodeName
}

const placeholder = /\{(node|addresses|label:([^{}\s]+)|annotation:([^{}\s]+))\}|\[NODE_NAME\]/g
const ownPrefix = 'holdfast.dev/'

/** Once over the text: what a label holds is taken as it is, whatever it looks like. */
export function filled(text: string, node: NodeAsked): string | { readonly wrong: string } {
  // What is left in such brackets would reach the device as it stands and might name another machine's outlet.
  if (/\{[a-z]+(:[^}]*)?\}/.test(text.replace(placeholder, ''))) return { wrong: 'has a word in braces that is not known; {node}, {addresses}, {label:KEY} and {annotation:KEY} are' }
  const asked = [...text.matchAll(placeholder)]
  if (asked.some(([, , , key]) => key?.startsWith(ownPrefix) === false)) return { wrong: `asks for an annotation that does not begin with ${ownPrefix}, and no other is read` }
  const missing = asked.some(([, , label, annotation]) => (label !== undefined && node.labels[label] === undefined) || (annotation !== undefined && node.annotations[annotation] === undefined))
  if (missing) return { wrong: `asks for a label or an annotation that ${node.name} does not bear` }
  const { addresses = [] } = node
  if (addresses.length === 0 && asked.some(([, word]) => word === 'addresses')) return { wrong: `asks for the addresses of ${node.name}, and its NodeRecord has none` }
  return text.replace(placeholder, (_, word: string | undefined, label?: string, annotation?: string) => {
    if (word === 'addresses') return addresses.join(' ')
    return label !== undefined ? node.labels[label] ?? '' : annotation !== undefined ? node.annotations[annotation] ?? '' : node.name
  })
}

/** Undefined as a value: whatever the label says. */
export type Selector = ReadonlyMap<string, string | undefined>

const keyForm = /^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/
const valueForm = /^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/

export const selectorKey = 'node_selector'

/** `KEY=VALUE,KEY`: labels that a node must bear, all of them. */
export function selectorOf(entry: Placed): Selector | { readonly wrong: string } {
  const selector = new Map<string, string | undefined>()
  for (const term of entry.value.split(',').map((text) => text.trim())) {
    const [key = '', value] = term.split(/=(.*)/s)
    if (!keyForm.test(key) || (value !== undefined && !valueForm.test(value)) || selector.has(key)) return { wrong: `${selectorKey}= is not of the form KEY=VALUE,KEY: labels that a node must bear, each once` }
    selector.set(key, value)
  }
  return selector
}

export function selects(selector: Selector, { labels }: NodeWords): boolean {
  return [...selector].every(([key, value]) => labels[key] !== undefined && (value === undefined || labels[key] === value))
}
