// The properties form of the fence ConfigMaps: `key=value` lines, comments with #. Reading never fails; what is wrong is
// listed with its line.
import { sameKey } from '../core/contract.ts'
import type { Ms } from '../core/model.ts'

export interface Entry {
  readonly key: string
  readonly value: string
  readonly line: number
}

export interface LineFault {
  readonly line: number
  readonly says: string
}

export interface Properties {
  readonly entries: readonly Entry[]
  readonly faults: readonly LineFault[]
}

const longestText = 64 * 1024

export function readProperties(text: string): Properties {
  if (text.length > longestText) return { entries: [], faults: [{ line: 1, says: `is longer than ${longestText} characters` }] }
  const entries = new Map<string, Entry>()
  const faults: LineFault[] = []
  for (const [index, raw] of text.split('\n').entries()) {
    const line = index + 1
    const trimmed = raw.trim()
    if (trimmed === '' || trimmed.startsWith('#')) continue
    const [, key, value] = /^([A-Za-z0-9_.-]+)\s*=\s*(.*)$/s.exec(trimmed) ?? []
    if (key === undefined || value === undefined) {
      // The line may hold a password with its key forgotten, so it is not repeated.
      faults.push({ line, says: 'is not of the form key=value' })
      continue
    }
    // Whatever is laid over it, or reads it, takes both for one.
    const earlier = entries.get(sameKey(key))
    if (earlier === undefined) entries.set(sameKey(key), { key, value, line })
    else faults.push({ line, says: `${key} stands in line ${earlier.line} already` })
  }
  return { entries: [...entries.values()], faults }
}

/** `30s`, `500ms`, `2m`; a bare number is seconds, as in every ClusterLabs parameter. */
export function readSpan(text: string): Ms | undefined {
  const [, count, unit] = /^(\d{1,9})(ms|s|m)?$/.exec(text.trim()) ?? []
  if (count === undefined) return undefined
  return Number(count) * (unit === 'ms' ? 1 : unit === 'm' ? 60_000 : 1_000)
}
