// What a person is shown of a seed that failed: what is left of its schedule once it was made smaller, what happened under that, and
// the command that plays the seed again, whole and with all that happened.
import type { Ms } from '../../core/model.ts'
import type { Outcome } from './run.ts'
import { draw, sentence, type Schedule } from './schedule.ts'
import { shrink } from './shrink.ts'
import type { Failure } from './tally.ts'

export type Play = (schedule: Schedule) => Promise<Pick<Outcome, 'violations' | 'transcript'>>

/** A run has thousands of lines. These are of how it went wrong, and of what came before that: as much as a person reads. */
const [fromTheFirstTrouble, beforeTheEnd, afterTheEnd] = [150, 150, 10]
const longestLine = 300

/** Where there is nobody to play it, it is told as it was drawn. */
export async function findingOf({ seed, judge, schedule = draw(seed) }: Failure, { play, without }: { readonly play?: Play; readonly without?: string }): Promise<readonly string[]> {
  const head = [`seed ${seed}, for ${judge}:`]
  const again = `again, and whole: npm run sim -- --seed ${seed}${without === undefined ? '' : ` --without ${without}`}`
  if (play === undefined || judge === 'broke') return [...head, ...indented(told(schedule)), again]
  const least = await shrink(schedule, judge, async (smaller) => (await play(smaller)).violations.map((one) => one.judge))
  const { violations, transcript } = await play(least)
  const own = violations.filter((one) => one.judge === judge)
  return [...head, ...indented([...told(least), ...excerpt(transcript().split('\n'), own[0]?.from), ...own.map(({ what }) => `${judge}: ${what}`)]), again]
}

function told({ scene, troubles }: Schedule): readonly string[] {
  return [JSON.stringify(scene), ...troubles.map(sentence)]
}

/** From the first trouble on, and up to when it went wrong, which is where nobody says when the end of the run. */
export function excerpt(lines: readonly string[], wrongAt?: Ms): readonly string[] {
  const began = Math.max(0, lines.findIndex((line) => atOf(line) !== undefined && line.includes('  trouble  ')))
  const after = wrongAt === undefined ? -1 : lines.findIndex((line) => (atOf(line) ?? -Infinity) > wrongAt)
  const end = after === -1 ? lines.length : after
  const kept = lines.flatMap((line, index) => {
    const wanted = (index >= began && index < began + fromTheFirstTrouble) || (index >= end - beforeTheEnd && index < end + afterTheEnd)
    return wanted ? [{ index, line }] : []
  })
  return kept.flatMap(({ index, line }, place) => {
    const left = index - (place === 0 ? 0 : (kept[place - 1]?.index ?? 0) + 1)
    const rest = place === kept.length - 1 ? lines.length - index - 1 : 0
    return [...gap(left), line.length > longestLine ? `${line.slice(0, longestLine)} …` : line, ...gap(rest)]
  })
}

function gap(lines: number): readonly string[] {
  return lines === 0 ? [] : [`… ${lines} lines`]
}

/** A line begins with its time, in seconds; one that is the rest of another does not. */
function atOf(line: string): Ms | undefined {
  const [, seconds] = /^ *(\d+\.\d{4}) {2}/.exec(line) ?? []
  return seconds === undefined ? undefined : Number(seconds) * 1_000
}

function indented(lines: readonly string[]): readonly string[] {
  return lines.map((line) => `  ${line}`)
}
