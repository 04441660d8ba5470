// Label selectors (`a=b,c in (d,e),!f`) and field selectors (`spec.nodeName=n1`), as the query carries them.
import { listAt, objectAt, textAt } from './json.ts'
import type { JsonObject } from './json.ts'
import { badRequest } from './refusal.ts'
import type { Refusal } from './refusal.ts'

export type Labels = Readonly<Record<string, string>>

interface Requirement {
  readonly key: string
  readonly operator: 'in' | 'notin' | 'exists' | 'absent' | 'more' | 'less'
  readonly values: readonly string[]
}
export type LabelSelector = readonly Requirement[]

export interface FieldRequirement { readonly field: string; readonly equal: boolean; readonly value: string }
export type FieldSelector = readonly FieldRequirement[]

export function parseLabelSelector(text: string): LabelSelector | Refusal {
  const requirements: Requirement[] = []
  for (const part of splitOutsideBrackets(text)) {
    const requirement = parseRequirement(part.trim())
    if (requirement === undefined) return badRequest(`unable to parse requirement: found '${part.trim()}', expected: a label selector`)
    requirements.push(requirement)
  }
  return requirements
}

/** The same as an object has it in its spec. Undefined: it selects nothing, as an empty one does not either. */
export function labelSelectorOf(selector: JsonObject): LabelSelector | undefined {
  const exact = Object.entries(objectAt(selector, 'matchLabels')).map(([key, value]): Requirement => ({ key, operator: 'in', values: [String(value)] }))
  const expressions = listAt(selector, 'matchExpressions').map((one) => requirementOf(textAt(one, 'key'), textAt(one, 'operator'), listAt(one, 'values').map(String)))
  const all = [...exact, ...expressions].flatMap((one) => one ?? [])
  return all.length === 0 || all.length < exact.length + expressions.length ? undefined : all
}

function requirementOf(key: string, operator: string, values: readonly string[]): Requirement | undefined {
  switch (operator) {
    case 'In': return { key, operator: 'in', values }
    case 'NotIn': return { key, operator: 'notin', values }
    case 'Exists': return { key, operator: 'exists', values: [] }
    case 'DoesNotExist': return { key, operator: 'absent', values: [] }
    default: return undefined
  }
}

export function matchesLabels(selector: LabelSelector, labels: Labels): boolean {
  return selector.every((requirement) => {
    const value = labels[requirement.key]
    switch (requirement.operator) {
      case 'exists':
        return value !== undefined
      case 'absent':
        return value === undefined
      case 'in':
        return value !== undefined && requirement.values.includes(value)
      case 'notin':
        return value === undefined || !requirement.values.includes(value)
      case 'more':
        return value !== undefined && Number(value) > Number(requirement.values[0])
      case 'less':
        return value !== undefined && Number(value) < Number(requirement.values[0])
    }
  })
}

/** `known` says which fields this kind can be selected by; another one is refused, as on the real server. */
export function parseFieldSelector(text: string, known: (field: string) => boolean): FieldSelector | Refusal {
  const requirements: FieldRequirement[] = []
  for (const part of splitUnescaped(text)) {
    const match = /^([^=!]+)(==|=|!=)(.*)$/s.exec(part)
    if (match === null) return badRequest(`invalid field selector: '${part}'; can't understand '${part}'`)
    const [, field = '', operator, value = ''] = match
    if (!known(field)) return badRequest(`field label not supported: ${field}`)
    requirements.push({ field, equal: operator !== '!=', value: value.replace(/\\([\\,=])/g, '$1') })
  }
  return requirements
}

export function matchesFields(selector: FieldSelector, fields: Readonly<Record<string, string>>): boolean {
  return selector.every(({ field, equal, value }) => ((fields[field] ?? '') === value) === equal)
}

function splitOutsideBrackets(text: string): string[] {
  const parts: string[] = []
  let depth = 0
  let part = ''
  for (const letter of text) {
    if (letter === '(') depth += 1
    if (letter === ')') depth -= 1
    if (letter === ',' && depth === 0) {
      parts.push(part)
      part = ''
    } else part += letter
  }
  return [...parts, part].filter((one) => one.trim() !== '')
}

function splitUnescaped(text: string): string[] {
  return text.split(/(?<!\\),/).filter((part) => part !== '')
}

const key = String.raw`[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?`
const value = String.raw`(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?`
const absent = new RegExp(`^!\\s*(${key})$`)
const exists = new RegExp(`^(${key})$`)
const set = new RegExp(`^(${key})\\s+(in|notin)\\s*\\(([^()]*)\\)$`)
const compare = new RegExp(`^(${key})\\s*(==|=|!=|>|<)\\s*(${value})$`)

function parseRequirement(part: string): Requirement | undefined {
  const without = absent.exec(part)
  if (without !== null) return { key: without[1] ?? '', operator: 'absent', values: [] }
  const among = set.exec(part)
  if (among !== null) {
    const values = (among[3] ?? '').split(',').map((one) => one.trim())
    return { key: among[1] ?? '', operator: among[2] === 'in' ? 'in' : 'notin', values }
  }
  const bare = exists.exec(part)
  if (bare !== null) return { key: bare[1] ?? '', operator: 'exists', values: [] }
  const compared = compare.exec(part)
  if (compared === null) return undefined
  const [, name = '', sign, wanted = ''] = compared
  const operators = { '=': 'in', '==': 'in', '!=': 'notin', '>': 'more', '<': 'less' } as const
  const operator = sign === '=' || sign === '==' || sign === '!=' || sign === '>' || sign === '<' ? operators[sign] : undefined
  return operator === undefined ? undefined : { key: name, operator, values: [wanted] }
}
