// The table of docs/fence-agents.md: a row for each program at each device, of what the tool of `npm run agent-test` found there.
import type { Row } from '../fence-agents/clauses.ts'

export interface Tried {
  readonly program: string
  readonly at: string
  readonly rows: readonly Row[]
}

/** What Debian's package has: of each program by its name, its own text. */
export interface Debian {
  readonly version: string
  readonly programs: ReadonlyMap<string, string>
}

const [start, end] = ['<!-- made by: node test/devices/conformance.ts -->', '<!-- made so far -->']
const head = ['| program | at | keeps | lies | breaks | not run |', '|---|---|---|---|---|---|']

/** A document with the table between its two marks. Where not all devices were asked, the rows of the others stay as they are. */
export function rewritten(document: string, all: readonly Tried[], whole: boolean, debian: Debian): string {
  const [from, to] = [document.indexOf(start), document.indexOf(end)]
  if (from === -1 || to < from) throw new Error(`the document lacks its two marks: ${start} and ${end}`)
  const table = whole ? tableOf(all) : merged(document.slice(from, to), all)
  return `${document.slice(0, from)}${start}\n\n${table}\n\nDebian's programs are fence-agents ${debian.version}: ${untried(table, debian.programs)}\n${document.slice(to)}`
}

export function tableOf(all: readonly Tried[]): string {
  return [...head, ...all.map(lineOf)].join('\n')
}

/** Rows that were not made anew stay as they are, and new ones come last. */
function merged(text: string, all: readonly Tried[]): string {
  const rows = text.split('\n').filter((line) => line.startsWith('| `'))
  for (const one of all) {
    const at = rows.findIndex((row) => row.startsWith(startOf(one)))
    rows.splice(at === -1 ? rows.length : at, at === -1 ? 0 : 1, lineOf(one))
  }
  return [...head, ...rows].join('\n')
}

function lineOf({ program, at, rows }: Tried): string {
  const of = (verdict: Row['verdict']) => rows.filter((row) => row.verdict === verdict)
  const names = (verdict: Row['verdict']) => of(verdict).map(({ clause }) => clause).join('; ')
  return `${startOf({ program, at })} ${of('kept').length} of ${rows.length - of('not run').length} | ${seen(of('LIES'))} | ${names('broken')} | ${names('not run')} |`
}

function startOf({ program, at }: Pick<Tried, 'program' | 'at'>): string {
  return `| \`${program}\` | ${at} |`
}

function seen(rows: readonly Row[]): string {
  return rows.map((row) => `${row.clause} (${row.seen})`.replaceAll('|', '\\|').replace(/\s+/g, ' ')).join('; ')
}

/** Of Debian's programs: how many stand in the table, which are one of these by another name, and which were not tried. */
function untried(table: string, programs: ReadonlyMap<string, string>): string {
  const stands = (name: string) => table.includes(`\n| \`${name}\` |`)
  const texts = new Set([...programs].filter(([name]) => stands(name)).map(([, text]) => text))
  const others = [...programs].filter(([name]) => !stands(name)).toSorted()
  const named = (same: boolean) => others.filter(([, text]) => texts.has(text) === same).map(([name]) => `\`${name}\``).join(', ')
  return `${programs.size - others.length} of ${programs.size} stand here. One of them by another name: ${named(true)}. Not tried: ${named(false)}.`
}
