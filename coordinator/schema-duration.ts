// Durations as people and Kubernetes write them: `90s`, `10m`, `1h30m`. Inside, every span is a number of milliseconds.
import type { Ms } from '../core/model.ts'

/** A week: nothing here waits longer, and every sum of such spans stays exact. */
export const longestDuration: Ms = 7 * 24 * 3_600_000

const units = [['h', 3_600_000], ['m', 60_000], ['s', 1_000], ['ms', 1]] as const

/** Of a text whose form was checked. What is finer than a millisecond is rounded to the nearest. */
export function readDuration(text: string): Ms {
  const parts = [...text.matchAll(/([0-9.]+)(ms|s|m|h)/g)]
  return Math.round(parts.reduce((sum, [, count, unit]) => sum + Number(count) * (units.find(([name]) => name === unit)?.[1] ?? 0), 0))
}

/** The shortest text that reads back as the same span; a fraction of a millisecond is rounded up, a wait never cut short. */
export function showDuration(span: Ms): string {
  let left = Math.ceil(span)
  const parts: string[] = []
  for (const [name, size] of units) {
    const count = Math.floor(left / size)
    left -= count * size
    if (count > 0) parts.push(`${count}${name}`)
  }
  return parts.join('') || '0s'
}
