// The table of docs/fence-agents.md: a row for each program at each device, of what the tool of `npm run agent-test` found there.
import type { Row } from '../fence-agents/clauses.ts'

export interface Tried {
  readonly program: string
  readonly at: string
  readonly rows: readonly Row[]
}

const head = ['| program | at | keeps | lies | breaks |', '|---|---|---|---|---|']

export function tableOf(all: readonly Tried[]): string {
  return [...head, ...all.map(lineOf)].join('\n')
}

function lineOf({ program, at, rows }: Tried): string {
  const of = (verdict: Row['verdict']) => rows.filter((row) => row.verdict === verdict)
  return `${startOf({ program, at })} ${of('kept').length} of ${rows.length - of('not run').length} | ${seen(of('LIES'))} | ${of('broken').map(({ clause }) => clause).join('; ')} |`
}

function startOf({ program, at }: Pick<Tried, 'program' | 'at'>): string {
  return `| \`${program}\` | ${at} |`
}

function seen(rows: readonly Row[]): string {
  return rows.map((row) => `${row.clause} (${row.seen})`.replaceAll('|', '\\|').replace(/\s+/g, ' ')).join('; ')
}

/** Rows that were not made anew stay as they are, and new ones come last. */
export function merged(text: string, all: readonly Tried[]): string {
  const rows = text.split('\n').filter((line) => line.startsWith('| `'))
  for (const one of all) {
    const at = rows.findIndex((row) => row.startsWith(startOf(one)))
    rows.splice(at === -1 ? rows.length : at, at === -1 ? 0 : 1, lineOf(one))
  }
  return [...head, ...rows].join('\n')
}
