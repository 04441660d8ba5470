// What a test has to tell though it passes: times that were measured, and what it found, as it ran, that it could not try. Of a file that passes its runner
// shows nothing, so run.ts shows these lines at its end.
import { appendFileSync } from 'node:fs'
import { env } from 'node:process'

export const saidVariable = 'HOLDFAST_CLUSTER_SAID'
const skipped = 'skipped: '

/** A line that is shown though every test passes. */
export function say(line: string): void {
  console.log(line)
  const file = env[saidVariable]
  if (file !== undefined) appendFileSync(file, `${line}\n`)
}

/** The last word of a test that tried nothing: it does not count among those that passed. */
export function skip(why: string): void {
  say(`${skipped}${why}`)
}

export function skipsOf(said: string): number {
  return said.split('\n').filter((line) => line.startsWith(skipped)).length
}
