// Of which release the API server is, as far as anything of ours goes by that. Asked for while this replica leads, seldom: a control plane
// is upgraded under a leader that goes on.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Api } from './api.ts'

const askEvery: Ms = 3_600_000
const askAgain: Ms = 30_000

export interface ServerVersion {
  readonly major?: string
  readonly minor?: string
}

/** Kubernetes has conditions for what is being done to a node from 1.37 on. Some call themselves `37+`. */
export function knowsMaintenance({ major = '', minor = '' }: ServerVersion): boolean {
  const [first, second] = [Number.parseInt(major, 10), Number.parseInt(minor, 10)]
  return first > 1 || (first === 1 && second >= 37)
}

/** Until the signal aborts. */
export async function watchServerVersion(api: Pick<Api, 'get'>, clock: Clock, signal: AbortSignal, told: (version: ServerVersion) => void): Promise<void> {
  while (!signal.aborted) {
    const answer = await api.get<ServerVersion>('/version', { signal })
    if (answer.ok) told(answer.value)
    await clock.wait(answer.ok ? askEvery : askAgain, signal)
  }
}
