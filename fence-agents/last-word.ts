// What another program said last: its line for the runner (`holdfast {…}`), if it has one, and else something for people.
import type { Reason } from './contract.ts'

export interface LastWord {
  readonly evidence: string
  readonly state?: string
  readonly machine?: string
  readonly reason?: Reason
}

const reasons: readonly Reason[] = ['auth', 'unreachable', 'notfound', 'privilege', 'busy', 'timeout', 'config', 'device']
const mark = 'holdfast '

export function lastWordOf(output: string, errors = ''): LastWord {
  const line = output.trimEnd().split('\n').at(-1) ?? ''
  if (!line.startsWith(mark)) return { evidence: lastLine(errors) || lastLine(output) }
  try {
    const { state, evidence, machine, reason } = JSON.parse(line.slice(mark.length)) as Readonly<Record<string, unknown>> // each field is looked at below
    const known = reasons.find((one) => one === reason)
    return {
      evidence: typeof evidence === 'string' ? lastLine(evidence) : '',
      ...(typeof state === 'string' ? { state } : {}), ...(typeof machine === 'string' ? { machine } : {}), ...(known === undefined ? {} : { reason: known }),
    }
  } catch {
    return { evidence: lastLine(errors) } // no line of the contract: its exit code alone is left
  }
}

/** The last line that says something, so much of it as people need. */
export function lastLine(text: string): string {
  return (text.split('\n').map((line) => line.replace(/\p{Cc}+/gu, ' ').trim()).findLast((line) => line !== '') ?? '').slice(0, longest)
}

const longest = 160
