// The health of the kubelet of this machine, asked on loopback. It never delays a beat: a beat carries the latest answer.
import type { Beat } from '../core/beat.ts'
import type { Ms } from '../core/model.ts'
import { withDeadline } from '../edge/clock.ts'
import type { AgentHost } from './host.ts'

const askEvery: Ms = 10_000
const answerWithin: Ms = 2_000

export function watchKubelet(host: Pick<AgentHost, 'clock' | 'kubeletHealth'>, signal: AbortSignal): { word(): Beat['kubelet'] } {
  let latest: Beat['kubelet'] = 'unknown'
  void watch()
  return { word: () => latest }

  async function watch(): Promise<void> {
    while (!signal.aborted) {
      // The host keeps to the span too; ours is the second, for a host that does not.
      const word = await withDeadline(host.clock, answerWithin * 2, 'ill' as const, () => host.kubeletHealth(answerWithin))
      latest = word
      await host.clock.wait(askEvery, signal)
    }
  }
}
