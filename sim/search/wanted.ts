// What `npm run sim` was asked for.
import { parseArgs } from 'node:util'
import { defences } from './defences.ts'

export interface Wanted {
  readonly seeds?: number
  readonly from?: number
  readonly jobs?: number
  readonly minutes?: number
  readonly seed?: number
  readonly without?: string
  readonly marks: boolean
  readonly defences: boolean
  readonly only?: string
}

/** What is wanted, or what was not understood. */
export function read(args: readonly string[]): Wanted | string {
  try {
    const one = { type: 'string' } as const
    const yes = { type: 'boolean', default: false } as const
    const { values: { without: cut, only, marks, defences: table, ...numbers } } = parseArgs({
      args: [...args],
      options: { seeds: one, from: one, jobs: one, minutes: one, seed: one, without: one, only: one, marks: yes, defences: yes },
    })
    // Minutes alone come in parts.
    const wrong = Object.entries(numbers).find(([name, text]) => !(name === 'minutes' ? /^\d*\.?\d+$/ : /^\d+$/).test(text) || Number(text) <= 0)
    if (wrong !== undefined) return `--${wrong[0]} wants a number above 0, not ${JSON.stringify(wrong[1])}`
    const nobody = [...(cut?.split('+').filter((name) => name !== 'list') ?? []), ...(only === undefined || only === 'all' ? [] : [only])]
      .find((name) => !defences.some((defence) => defence.name === name))
    if (nobody !== undefined) return `there is no defence ${JSON.stringify(nobody)}`
    if (only !== undefined && !table) return '--only is of --defences'
    return {
      ...Object.fromEntries(Object.entries(numbers).map(([name, text]) => [name, Number(text)])),
      ...(cut === undefined ? {} : { without: cut }), ...(only === undefined ? {} : { only }), marks, defences: table,
    }
  } catch (error) {
    return error instanceof Error ? (error.message.split(/[.\n]/)[0] ?? '') : String(error) // an option that is not known, or lacks its value
  }
}
