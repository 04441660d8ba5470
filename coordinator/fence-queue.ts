// One run at a time for each device address, or as many as its configuration says that it bears. Incidents go before audits, and an audit that is under way is ended when an
// incident comes: it only reads, and it will be asked again.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'

export interface DeviceQueue {
  /** `work` gets a signal that also tells it to give way, and begins while fewer than `atOnce` others are under way there. Resolves
   *  with a refusal if its turn does not come in time. */
  inTurn<T>(
    device: string, atOnce: number, purpose: 'audit' | 'incident', within: Ms, signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T | { readonly refused: string }>
}

interface Turn {
  readonly atOnce: number
  readonly purpose: 'audit' | 'incident'
  call(): void
}

interface Line {
  /** Of each that has the device now: how many it bears by that one's configuration. */
  readonly held: number[]
  /** Each ends an audit that has it. */
  readonly audits: Set<AbortController>
  readonly waiting: Turn[]
}

/** The reason on the signal of an audit that must give way. */
export const gaveWay = 'gave way to an incident'

/** A rack behind one power strip asks so many questions at most; more is a fault of ours. */
const longestLine = 256

export function deviceQueue(clock: Clock): DeviceQueue {
  const lines = new Map<string, Line>()
  return {
    async inTurn(device, atOnce, purpose, within, signal, work) {
      if (signal?.aborted) return { refused: 'it was ended before its turn came' }
      const refused = await turn(lines, device, { atOnce, purpose }, within, signal, clock)
      if (refused !== undefined) return { refused }
      const line = lines.get(device)
      const giveWay = new AbortController()
      if (purpose === 'audit') line?.audits.add(giveWay)
      if (purpose === 'audit' && line?.waiting.some((other) => other.purpose === 'incident')) giveWay.abort(gaveWay)
      try {
        return await work(signal === undefined ? giveWay.signal : AbortSignal.any([signal, giveWay.signal]))
      } finally {
        line?.audits.delete(giveWay)
        passOn(lines, device, atOnce)
      }
    },
  }
}

/** Undefined once the device is ours. */
async function turn(
  lines: Map<string, Line>, device: string, asked: Omit<Turn, 'call'>, within: Ms, signal: AbortSignal | undefined, clock: Clock,
): Promise<string | undefined> {
  const line = lines.get(device) ?? { held: [], audits: new Set(), waiting: [] }
  lines.set(device, line)
  if (hasRoom(line, asked) && line.waiting.length === 0) {
    line.held.push(asked.atOnce)
    return undefined
  }
  if (line.waiting.length >= longestLine) return `${line.waiting.length} runs are waiting for ${device} already`
  if (asked.purpose === 'incident') [...line.audits].find(({ signal: given }) => !given.aborted)?.abort(gaveWay)
  const patience = new AbortController()
  let called = false
  const own: Turn = {
    ...asked,
    call() {
      called = true
      patience.abort()
    },
  }
  line.waiting.push(own)
  await clock.wait(within, signal === undefined ? patience.signal : AbortSignal.any([patience.signal, signal]))
  if (called && !signal?.aborted) return undefined
  if (called) passOn(lines, device, asked.atOnce)
  else line.waiting.splice(line.waiting.indexOf(own), 1)
  return signal?.aborted ? 'it was ended before its turn came' : `${device} was busy all the while`
}

function passOn(lines: Map<string, Line>, device: string, atOnce: number): void {
  const line = lines.get(device)
  if (line === undefined) return
  line.held.splice(line.held.indexOf(atOnce), 1)
  for (let next = nextOf(line); next !== undefined && hasRoom(line, next); next = nextOf(line)) {
    line.waiting.splice(line.waiting.indexOf(next), 1)
    line.held.push(next.atOnce)
    next.call()
  }
  if (line.held.length === 0 && line.waiting.length === 0) lines.delete(device)
}

/** Where two configurations of one device differ, the one that says less of it counts. */
function hasRoom({ held }: Line, { atOnce }: Pick<Turn, 'atOnce'>): boolean {
  return held.length < Math.min(atOnce, ...held)
}

function nextOf({ waiting }: Line): Turn | undefined {
  return waiting.find(({ purpose }) => purpose === 'incident') ?? waiting[0]
}
