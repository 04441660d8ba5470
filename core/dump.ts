// A machine whose crash kernel writes its memory down. It announces itself, with a word that anybody could send and that names no
// boot: so it frees nothing, and all that it is good for is to be waited for before the power goes, as long as the operator allows.
import type { Brake } from './brake.ts'
import { seconds } from './judge.ts'
import type { Ms, NodeSeen } from './model.ts'

/** Undefined: its power need not wait, or not any more. */
export function dumping({ dump, path, beat }: NodeSeen, now: Ms): Brake | undefined {
  const { dumpsWithin } = path
  // Whoever beats since is no crash kernel, whatever the word was.
  if (dump === undefined || dumpsWithin === undefined || dump.since <= (beat?.at ?? -Infinity)) return undefined
  const left = dump.since + dumpsWithin - now
  if (left <= 0) return undefined
  return { because: 'dumping', detail: `its crash kernel announced itself ${seconds(now - dump.since)} ago, and has ${seconds(dumpsWithin)} for its dump (kdump=)`, lifts: 'that time over, or its next boot' }
}
