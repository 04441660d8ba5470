// What a fence program says of itself when it is asked for `metadata`, in the XML that ClusterLabs' programs and ours print: which
// parameters it knows, of which kind, and which it cannot do without. By it a configuration is refused before anything is run.
import { sameKey, type Refusal } from './contract.ts'

type Kind = 'boolean' | 'integer' | 'second' | 'select' | 'string'

export interface AgentParameter {
  readonly name: string
  readonly kind: Kind
  readonly required: boolean
  /** Its name of before, which is as good. */
  readonly obsoletes: string | undefined
  readonly options: readonly string[]
}

/** By name, with `-` and `_` alike. */
export type AgentMetadata = ReadonlyMap<string, AgentParameter>

const mostParameters = 500

/** Undefined: it is not of that form, and nothing can be held against it. */
export function readMetadata(text: string): AgentMetadata | undefined {
  const parameters = [...text.matchAll(/<parameter\s([^>]*)>(.*?)<\/parameter>/gs)].slice(0, mostParameters).flatMap(([, head = '', body = '']) => {
    const name = attribute(head, 'name')
    if (name === undefined) return []
    const content = /<content\s([^>]*)>/.exec(body)?.[1] ?? ''
    const options = [...body.matchAll(/<option\s([^>]*)>/g)].flatMap(([, option = '']) => attribute(option, 'value') ?? [])
    const required = attribute(head, 'required') === '1' && attribute(head, 'deprecated') !== '1'
    return [{ name, kind: kindOf(attribute(content, 'type')), required, obsoletes: attribute(head, 'obsoletes'), options }]
  })
  return parameters.length === 0 ? undefined : new Map(parameters.map((parameter) => [sameKey(parameter.name), parameter]))
}

function attribute(tag: string, name: string): string | undefined {
  return new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(tag)?.[1]
}

function kindOf(word: string | undefined): Kind {
  return word === 'boolean' || word === 'integer' || word === 'second' || word === 'select' ? word : 'string'
}

const forms: ReadonlyMap<Kind, readonly [RegExp, string]> = new Map([
  ['boolean', [/^(1|0|yes|no|on|off|true|false)$/i, 'is neither yes nor no']],
  ['integer', [/^-?\d{1,15}$/, 'is no whole number']],
  ['second', [/^\d{1,9}(\.\d{1,6})?$/, 'is no number of seconds']],
])

/** Given by whoever starts the program. */
const givenByUs: ReadonlySet<string> = new Set(['action', 'option', 'nodename'])

/** What of these does not fit, each in a sentence that repeats no value. Undefined as a value: it is a secret, known when it is run. */
export function misfits(metadata: AgentMetadata, parameters: Readonly<Record<string, string | undefined>>): readonly Refusal[] {
  const given = new Set(Object.entries(parameters).flatMap(([key, value]) => (value === '' ? [] : [sameKey(key)])))
  const wrong = Object.entries(parameters).flatMap(([key, value]): Refusal[] => {
    const known = metadata.get(sameKey(key))
    if (known === undefined) return givenByUs.has(sameKey(key)) ? [] : [{ key, says: `${key} is not known to its program` }]
    const says = value === undefined ? undefined : formFault(known, value.trim())
    return says === undefined ? [] : [{ key, says: `${key} ${says}` }]
  })
  const lacking = [...metadata.values()].filter(({ name, required, obsoletes }) => required && !givenByUs.has(sameKey(name)) && ![name, obsoletes].some((one) => one !== undefined && given.has(sameKey(one))))
  // The program takes the one that it reads last, and by the other one its device would be called.
  const twice = [...metadata.values()].flatMap(({ name, obsoletes = name }) => (sameKey(obsoletes) !== sameKey(name) && given.has(sameKey(name)) && given.has(sameKey(obsoletes)) ? [{ key: obsoletes, says: `${obsoletes}= is the old name of ${name}=, which is given as well` }] : []))
  return [...wrong, ...twice, ...lacking.map(({ name }) => ({ key: name, says: `${name}= is missing, and its program cannot do without` }))]
}

function formFault({ kind, options }: AgentParameter, value: string): string | undefined {
  if (kind === 'select') return options.length === 0 || options.includes(value) ? undefined : `is none of ${options.join(', ')}`
  const [form, says] = forms.get(kind) ?? []
  return form === undefined || form.test(value) ? undefined : says
}
