// One claim of `holdfast check`: it holds, or says why not and where to read on.
import type { Part } from './cluster.ts'

export interface Checked {
  readonly id: string
  readonly description: string
  readonly result: 'success' | 'warning' | 'error'
  readonly error?: string
  readonly hint?: string
}

/** Each check has a heading of its own there. */
const docs = 'docs/checks.md'
const mostNamed = 5

function well(id: string, description: string): Checked {
  return { id, description, result: 'success' }
}

function fails(id: string, description: string, error: string, result: 'warning' | 'error' = 'error'): Checked {
  return { id, description, result, error, hint: `${docs}#${id}` }
}

/** A claim about parts: what could not be read makes it neither true nor false, and that is a failure. */
export function claim(id: string, description: string, parts: readonly Part<unknown>[], against: () => string | undefined, weight: 'warning' | 'error' = 'error'): Checked {
  const unread = parts.find((part) => !part.ok)
  if (unread !== undefined && !unread.ok) return fails(id, description, `cannot be read: ${unread.because.replace(/^GET \S+: /, '')}`)
  const error = against()
  return error === undefined ? well(id, description) : fails(id, description, error, weight)
}

export function valueOf<T>(part: Part<T>, otherwise: T): T {
  return part.ok ? part.value : otherwise
}

export function few(list: readonly string[]): string {
  return list.length > mostNamed ? `${list.slice(0, mostNamed).join(', ')} and ${list.length - mostNamed} more` : list.join(', ')
}
