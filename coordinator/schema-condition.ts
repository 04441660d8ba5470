// Conditions as Kubernetes has them: what is true of an object now, since when, and of which generation that was said.
import * as v from 'valibot'
import { instant, list, prose, text, whole, word } from './schema.ts'

export interface Condition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly observedGeneration?: number
  readonly lastTransitionTime: string
  readonly reason: string
  readonly message: string
}

const condition = v.pipe(
  v.object({
    type: text('What is said.', 316),
    status: word('Whether it is so.', { True: '', False: '', Unknown: '' }),
    observedGeneration: v.exactOptional(whole('The metadata.generation of which it was said.', 0, Number.MAX_SAFE_INTEGER)),
    lastTransitionTime: instant('Since when the status stands.'),
    reason: text('Why, in one word.', 128),
    message: prose('Why, in a sentence.', 4_096),
  }),
  v.description('One condition.'),
)

export const conditions = (says: string) => list(says, condition, 16, ['type'])

/** The condition with its time of transition: the earlier one's while the status is the same. */
export function conditionAfter(before: readonly Condition[], next: Omit<Condition, 'lastTransitionTime'>, at: string): Condition {
  const same = before.find((old) => old.type === next.type && old.status === next.status)
  return { ...next, lastTransitionTime: same?.lastTransitionTime ?? at }
}
