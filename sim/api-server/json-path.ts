// The part of JSONPath that printer columns use: `.spec.a`, `.items[0].b`, `.conditions[?(@.type=="Ready")].status`.
import { isObject, same } from './json.ts'
import type { Json, Resource } from './json.ts'

export function jsonPathCell(object: Resource, path: string, type: string, now: number): Json {
  const found = jsonPath(object, path)
  const first = found[0]
  if (first === undefined || first === null) return type === 'string' || type === 'date' ? (type === 'date' ? '<unknown>' : '') : null
  if (type === 'date') return typeof first === 'string' ? age(first, now) : '<invalid>'
  if (type === 'string') return typeof first === 'string' ? first : JSON.stringify(first)
  return first
}

export function jsonPath(value: Json, path: string): Json[] {
  const steps = path.match(/\.(?:\\.|[^.[\]\\])+|\['[^']*'\]|\[[^\]]*\]/g) ?? []
  return steps.reduce<Json[]>((found, step) => found.flatMap((one) => take(one, step)), [value])
}

function take(value: Json, step: string): Json[] {
  if (step.startsWith('.')) return field(value, step.slice(1).replaceAll('\\.', '.'))
  const inside = step.slice(1, -1)
  const quoted = /^'(.*)'$/.exec(inside)
  if (quoted !== null) return field(value, quoted[1] ?? '')
  if (!Array.isArray(value)) return inside === '*' && isObject(value) ? Object.values(value).filter((one) => one !== undefined) : []
  if (inside === '*') return value
  const filter = /^\?\(@\.([\w.]+)\s*(==|!=)\s*(.+)\)$/.exec(inside)
  if (filter !== null) return value.filter((item) => fits(item, filter[1] ?? '', filter[2] ?? '', filter[3] ?? ''))
  const index = Number(inside)
  const item = value[index < 0 ? value.length + index : index]
  return item === undefined ? [] : [item]
}

function field(value: Json, name: string): Json[] {
  const found = isObject(value) ? value[name] : undefined
  return found === undefined ? [] : [found]
}

function fits(item: Json, path: string, operator: string, literal: string): boolean {
  const wanted = literal.trim().replace(/^['"]|['"]$/g, '')
  const equal = jsonPath(item, `.${path}`).some((found) => same(found, wanted) || String(found) === wanted)
  return operator === '==' ? equal : !equal
}

/** `5m12s`, `3h`, `12d`: as kubectl writes the time since then. */
export function age(time: string, now: number): string {
  const then = Date.parse(time)
  return Number.isNaN(then) ? '<invalid>' : shortSpan(now - then)
}

export function shortSpan(span: number): string {
  const seconds = Math.floor(span / 1000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m${seconds % 60}s`
  if (minutes < 180) return `${minutes}m`
  const hours = Math.floor(minutes / 60)
  if (hours < 8) return minutes % 60 === 0 ? `${hours}h` : `${hours}h${minutes % 60}m`
  if (hours < 48) return `${hours}h`
  const days = Math.floor(hours / 24)
  if (hours < 192) return hours % 24 === 0 ? `${days}d` : `${days}d${hours % 24}h`
  if (days < 730) return `${days}d`
  return `${Math.floor(days / 365)}y${days % 365 === 0 ? '' : `${days % 365}d`}`
}
