// One run at a time for each device address. Incidents go before audits, and an audit that is under way is ended when an
// incident comes: it only reads, and it will be asked again.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'

export interface DeviceQueue {
  /** `work` gets a signal that also tells it to give way. Resolves with a refusal if its turn does not come in time. */
  inTurn<T>(
    device: string, purpose: 'audit' | 'incident', within: Ms, signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T | { readonly refused: string }>
}

interface Turn {
  readonly purpose: 'audit' | 'incident'
  call(): void
}

interface Line {
  /** Ends the audit that has the device now; undefined while an incident has it. */
  giveWay: AbortController | undefined
  readonly waiting: Turn[]
}

/** The reason on the signal of an audit that must give way. */
export const gaveWay = 'gave way to an incident'

/** A rack behind one power strip asks so many questions at most; more is a fault of ours. */
const longestLine = 256

export function deviceQueue(clock: Clock): DeviceQueue {
  const lines = new Map<string, Line>()
  return {
    async inTurn(device, purpose, within, signal, work) {
      if (signal?.aborted) return { refused: 'it was ended before its turn came' }
      const refused = await turn(lines, device, purpose, within, signal, clock)
      if (refused !== undefined) return { refused }
      const line = lines.get(device)
      const giveWay = new AbortController()
      if (line !== undefined) line.giveWay = purpose === 'audit' ? giveWay : undefined
      if (purpose === 'audit' && line?.waiting.some((other) => other.purpose === 'incident')) giveWay.abort(gaveWay)
      try {
        return await work(signal === undefined ? giveWay.signal : AbortSignal.any([signal, giveWay.signal]))
      } finally {
        passOn(lines, device)
      }
    },
  }
}

/** Undefined once the device is ours. */
async function turn(
  lines: Map<string, Line>, device: string, purpose: 'audit' | 'incident', within: Ms, signal: AbortSignal | undefined, clock: Clock,
): Promise<string | undefined> {
  const line = lines.get(device)
  if (line === undefined) {
    lines.set(device, { giveWay: undefined, waiting: [] })
    return undefined
  }
  if (line.waiting.length >= longestLine) return `${line.waiting.length} runs are waiting for ${device} already`
  if (purpose === 'incident') line.giveWay?.abort(gaveWay)
  const patience = new AbortController()
  let called = false
  const own: Turn = {
    purpose,
    call() {
      called = true
      patience.abort()
    },
  }
  line.waiting.push(own)
  await clock.wait(within, signal === undefined ? patience.signal : AbortSignal.any([patience.signal, signal]))
  if (called && !signal?.aborted) return undefined
  if (called) passOn(lines, device)
  else line.waiting.splice(line.waiting.indexOf(own), 1)
  return signal?.aborted ? 'it was ended before its turn came' : `${device} was busy all the while`
}

function passOn(lines: Map<string, Line>, device: string): void {
  const line = lines.get(device)
  if (line === undefined) return
  const first = line.waiting.findIndex((other) => other.purpose === 'incident')
  const [next] = line.waiting.splice(Math.max(first, 0), 1)
  line.giveWay = undefined
  if (next === undefined) lines.delete(device)
  else next.call()
}
