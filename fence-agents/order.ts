// An order to a cloud: look, order once, look until the cloud itself says it is done. What it accepted is not what it did. An
// API that is busy is asked again, each time after twice the wait, as clouds ask of their callers.
import { Failure, pollUntil, type DeviceWord, type Given, type ParameterDescription } from './contract.ts'

export const orderParameters: readonly ParameterDescription[] = [
  { name: 'power_timeout', says: 'From the order until the power must have changed. Clouds need a minute or more: give the method a timeout= above it', type: 'second', default: '120' },
  { name: 'stonith_status_sleep', says: 'Between two looks after the order. Clouds count the looks of all callers together, and refuse who looks too often', type: 'second', default: '1' },
]

export function lookPause(given: Given): number {
  return Math.max(shortestPause, given.ms('stonith_status_sleep'))
}

const shortestPause = 100

export interface Machine<T> {
  look(): Promise<T>
  word(seen: T): DeviceWord
  /** Rejects where there is no order that could help. */
  order(before: T): Promise<void>
}

export async function carryOut<T>(want: 'on' | 'off', given: Given, machine: Machine<T>): Promise<DeviceWord> {
  const before = await patiently(given, () => machine.look())
  const word = machine.word(before)
  if (word.state === want) return word
  await machine.order(before)
  return pollUntil(want, given, given.ms('power_timeout'), async () => {
    try {
      return machine.word(await machine.look())
    } catch (error) {
      // One lost answer while the machine changes its power is common; the poll ends by its own time. A refusal stays one.
      if (error instanceof Failure && !passing.has(error.reason)) throw error
      return { state: 'unknown', evidence: error instanceof Error ? error.message : 'no answer' }
    }
  }, lookPause(given))
}

const passing: ReadonlySet<string> = new Set(['unreachable', 'timeout', 'busy', 'device'])

const firstPause = 500
const mostTurns = 5

export async function patiently<T>(given: Given, ask: () => Promise<T>): Promise<T> {
  for (let turn = 1, pause = firstPause; ; turn += 1, pause *= 2) {
    try {
      return await ask()
    } catch (error) {
      // What is left must still be enough to say why.
      if (!(error instanceof Failure) || error.reason !== 'busy' || turn === mostTurns || pause * 2 > given.left()) throw error
    }
    await new Promise((resolve) => { setTimeout(resolve, pause) })
  }
}
