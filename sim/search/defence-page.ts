// The table of defences in docs/safety.md, written row by row as searches end: what judge fails without each. Those that stand behind
// others in this world, so that no judge can see that they are missing, stand below the table, each with its reason and what was
// searched all the same.
import type { Caught } from './defence-table.ts'
import { defences, type Defence } from './defences.ts'

const [begins, ends] = ['<!-- defences: written by npm run sim -- --defences -->', '<!-- defences end -->'] as const
const head = '| defence | against | judge | seeds until caught |\n|---|---|---|---|'
const unsought = 'not searched yet'
const below = 'Not in the table, since no judge of this world fails without them; they are kept for what the world lacks, and tests of the core hold them:\n'

/** The text with what this search has found in its place, and a line for each defence that has none. A defence that is no more has none either. */
export function withRow(text: string, name: string, caught: Caught | undefined, seeds: number): string {
  const before = linesOf(text)
  const lines = defences.map((defence) => (defence.name === name ? lineOf(defence, caught, seeds) : known(defence, before.get(defence.name)) ?? unsearched(defence)))
  const [start, end] = [text.indexOf(begins), text.indexOf(ends)]
  if (start === -1 || end < start) throw new Error(`no table: the lines ${begins} and ${ends} are not there`)
  const [rows, unseen] = [lines.filter(isRow), lines.filter((line) => !isRow(line))]
  return `${text.slice(0, start + begins.length)}\n${[head, ...rows, ...(unseen.length === 0 ? [] : ['', below, ...unseen])].join('\n')}\n${text.slice(end)}`
}

/** Defences of which the page says nothing yet. */
export function lacking(text: string): readonly Defence[] {
  const lines = linesOf(text)
  return defences.filter((defence) => defence.unseen === undefined && known(defence, lines.get(defence.name)) === undefined)
}

const isRow = (line: string): boolean => line.startsWith('|')

/** What a search has written, if it is of the kind that the defence is now. */
function known({ unseen }: Defence, line: string | undefined): string | undefined {
  if (line === undefined || line.includes(unsought)) return undefined
  if (unseen === undefined) return isRow(line) && !line.endsWith(' | |') ? line : undefined
  return isRow(line) === line.includes('(seed ') && (isRow(line) || line.includes(unseen)) ? line : undefined
}

function unsearched({ name, against, unseen }: Defence): string {
  return unseen === undefined ? `| ${name} | ${against} | | ${unsought} |` : `- *${name}*, against ${against}: ${unseen} (${unsought})`
}

function linesOf(text: string): ReadonlyMap<string, string> {
  const written = text.slice(text.indexOf(begins), text.indexOf(ends)).split('\n')
  return new Map(written.flatMap((line) => {
    const [, name] = /^(?:\| |- \*)([a-z][a-z-]*)(?: \||\*, )/.exec(line) ?? []
    return name === undefined || name === 'defence' ? [] : [[name, line]]
  }))
}

function lineOf({ name, against, behind, story, unseen }: Defence, caught: Caught | undefined, seeds: number): string {
  const both = behind === undefined ? '' : `, with ${behind.replaceAll('+', ' and ')} cut too`
  const alone = story === undefined ? '' : `; alone: \`${story}\``
  if (caught !== undefined) return `| ${name} | ${against} | ${caught.judge}${both}${alone} | ${caught.seeds} (seed ${caught.seed}) |`
  return unseen === undefined ? `| ${name} | ${against} | none${both}${alone} | more than ${seeds} |` : `- *${name}*, against ${against}: ${unseen} (no judge failed in ${seeds} seeds)`
}
