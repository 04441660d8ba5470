// How the node is beside its kubelet: whether its container runtime answers, how hard things wait for processor, memory and disk, how
// full and how hot it is (agent/vitals.ts), and whether the storage that somebody named can be reached. Each is asked in a rhythm of its own and delays no beat: a beat carries the
// latest answer. One miss of a storage is the network's; two in a row are told.
import type { Beat, Pressure, StorageWord } from '../core/beat.ts'
import type { Ms } from '../core/model.ts'
import { withDeadline, type Clock } from '../edge/clock.ts'
import type { AgentHost, HostFile } from './host.ts'

export interface Health {
  word(): Pick<Beat, 'runtime' | 'pressure' | 'storage' | 'vitals'>
}

const runtimeEvery: Ms = 10_000
const runtimeWithin: Ms = 2_000
const pressureEvery: Ms = 10_000
const pressureWithin: Ms = 2_000
const storageEvery: Ms = 15_000
/** An initiator tries a portal again for as long before it gives up. */
const storageWithin: Ms = 5_000
const missesTold = 2
/** A child each time, and nothing that it tells changes fast. The first when the agent has long begun: beats come before it. */
const vitalsEvery: Ms = 120_000
const vitalsAfter: Ms = 20_000
const vitalsWithin: Ms = 20_000

export function watchHealth(host: Pick<AgentHost, 'clock' | 'log' | 'read' | 'runtimeHealth' | 'reachStorage' | 'vitals'>, targets: readonly string[], signal: AbortSignal): Health {
  const { clock, log } = host
  const misses = new Map<string, number>()
  const runtime = keepAsking(clock, runtimeEvery, signal, 'unknown' as const, () => withDeadline(clock, runtimeWithin * 2, 'ill' as const, () => host.runtimeHealth(runtimeWithin)))
  const pressure = keepAsking(clock, pressureEvery, signal, undefined, () => withDeadline(clock, pressureWithin, undefined, () => readPressure(host)))
  const storage = targets.length === 0 ? undefined : keepAsking(clock, storageEvery, signal, 'unknown' as const, reach)
  const vitals = keepAsking(clock, vitalsEvery, signal, undefined, () => withDeadline(clock, vitalsWithin * 2, undefined, () => host.vitals(vitalsWithin)), vitalsAfter)
  return {
    word() {
      const [now, told] = [pressure(), vitals()]
      return { runtime: runtime(), ...(now === undefined ? {} : { pressure: now }), ...(storage === undefined ? {} : { storage: storage() }), ...(told === undefined ? {} : { vitals: told }) }
    },
  }

  async function reach(): Promise<StorageWord> {
    const words = await Promise.all(targets.map(async (target) => {
      const word = await withDeadline(clock, storageWithin * 2, 'unreached' as const, () => host.reachStorage(target, storageWithin))
      const missed = word === 'unreached' ? (misses.get(target) ?? 0) + 1 : 0
      if (missed === missesTold) log.warn({ target }, 'storage is not reached')
      if (missed === 0 && (misses.get(target) ?? 0) >= missesTold) log.info({ target }, 'storage is reached again')
      misses.set(target, missed)
      return missed >= missesTold ? 'unreached' : word === 'unreached' ? 'unknown' : word
    }))
    return words.includes('unreached') ? 'unreached' : words.includes('unknown') ? 'unknown' : 'reached'
  }
}

/** The latest answer; a question that fails is one that was not answered. */
function keepAsking<W>(clock: Clock, every: Ms, signal: AbortSignal, otherwise: W, ask: () => Promise<W>, first: Ms = 0): () => W {
  let latest = otherwise
  void turn()
  return () => latest

  async function turn(): Promise<void> {
    if (first > 0) await clock.wait(first, signal)
    while (!signal.aborted) {
      latest = await ask().catch(() => otherwise)
      await clock.wait(every, signal)
    }
  }
}

const pressureFiles = ['pressure-cpu', 'pressure-memory', 'pressure-io'] as const satisfies readonly HostFile[]

async function readPressure(host: Pick<AgentHost, 'read'>): Promise<Pressure | undefined> {
  const [cpu, memory, io] = (await Promise.all(pressureFiles.map((file) => host.read(file)))).map(pressureIn)
  return cpu === undefined || memory === undefined || io === undefined ? undefined : { cpu, memory, io }
}

/** `some avg10=1.53 avg60=...`: the share of ten seconds in which something waited. Kernels without it have no such file. */
export function pressureIn(text: string | undefined): number | undefined {
  const [, share] = /^some avg10=(\d{1,3}(?:\.\d+)?) /m.exec(text ?? '') ?? []
  return share === undefined || Number(share) > 100 ? undefined : Number(share)
}
