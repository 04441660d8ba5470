// What the gate of a boot was, as the agent leaves it on disk: for an agent that is started again in the same boot, and for the program that keeps
// the gate before there is an agent.
import type { Boot } from '../core/model.ts'

/** In the agent's own folder. */
export const gateMemory = 'gate.json'

export interface Remembered {
  readonly boot: Boot
  readonly gate: 'open' | 'shut'
}

export function stateIn(text: string | undefined): Remembered | undefined {
  try {
    const value: unknown = JSON.parse(text ?? 'null')
    if (typeof value !== 'object' || value === null || !('gate' in value) || !('boot' in value) || typeof value.boot !== 'string') return undefined
    return value.gate === 'open' || value.gate === 'shut' ? { boot: value.boot, gate: value.gate } : undefined
  } catch {
    return undefined // cut short, or not ours: it remembers nothing
  }
}
