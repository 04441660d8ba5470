// The gate of this node: what core/gate.ts decides, kept in memory, put before the runtime, and remembered on disk for an agent that is
// started again in the same boot.
import type { CleanReport, GateState } from '../core/beat.ts'
import { admit, gateOf, type Admission, type Gate, type GateFacts, type PodAsked } from '../core/gate.ts'
import type { ColdWord } from '../core/cold-start.ts'
import type { Boot, Ms } from '../core/model.ts'
import { gateMemory, stateIn, type Remembered } from './gate-memory.ts'
import type { AgentHost, ByteStream } from './host.ts'
import { speakNri } from './nri.ts'

export interface GateKeeper {
  /** For the beat. */
  word(): GateState
  judge(pod: PodAsked | undefined): Admission
  found(report: CleanReport): void
  /** The boot that waits for somebody to lead, and whether the disk says that its gate was open before, or shut by a leader. */
  waits(): { readonly boot: Boot; readonly before: 'open' | 'shut' | 'nothing' } | undefined
  /** What the API server and the node itself say where nobody leads. That nothing speaks against it is true for this moment alone. */
  alone(boot: Boot, word: ColdWord): void
  /** A leader's word came. Two may come within a beat, and the first must not go unnoticed. */
  told(): void
  stop(): void
}

export interface GateOptions {
  readonly host: Pick<AgentHost, 'clock' | 'chance' | 'log' | 'disk' | 'connectNri'>
  readonly exemptNamespaces: readonly string[]
  /** What is known now; asked each time, so that nothing here can be out of date. */
  known(): Pick<GateFacts, 'boot' | 'node' | 'leaders' | 'gaveUp'>
}

/** Until a runtime that was started again asks, its pods pass. To knock where nobody listens costs little. */
const firstAgain: Ms = 200
/** Where a runtime never asked there may be no NRI, and one that lets go of us each time is not to be kept busy. */
const lastAgain: Ms = 5_000
const connectWithin: Ms = 3_000
/** A plugin that served so long begins with the short wait again. */
const stood: Ms = 10_000
const notLookedAt: CleanReport = { state: 'unknown', reason: 'nobody has looked since its gate was shut' }

export function keepGate({ host, exemptNamespaces, known }: GateOptions): GateKeeper {
  const { clock, log } = host
  const namespaces = new Set(exemptNamespaces)
  const stopping = new AbortController()
  let gate: Gate | undefined
  let held = false
  let clean: CleanReport = notLookedAt
  let opened: Boot | undefined
  let remembered: Remembered | undefined
  let stand: GateFacts['alone']
  let runtime: 'asks' | 'away' = 'away'
  let everAsked = false
  let away = ''
  let leave: ((reason: string) => void) | undefined
  let saved = recall()

  const keeper: GateKeeper = {
    word: () => (turn().gate.open ? asked('open') : asked('shut')),
    judge(pod) {
      const { gate: now, leaders } = turn()
      const tolerating = new Set(now.open ? [] : leaders.flatMap((leader) => (typeof leader === 'string' ? [] : leader.tolerating)))
      const admission = admit(now, pod, { namespaces, tolerating })
      if (!admission.admit) log.debug({ pod: pod && `${pod.namespace}/${pod.name}`, reason: admission.reason }, 'pod refused')
      return admission
    },
    found(report) { clean = report },
    told: () => void turn(),
    waits() {
      const { gate: now, leaders } = turn()
      const { boot } = known()
      if (now.open || leaders.length > 0 || boot === undefined) return undefined
      return { boot, before: remembered?.boot === boot ? remembered.gate : 'nothing' }
    },
    alone(boot, word) {
      stand = { boot, word }
      turn()
      if (word.clear) stand = undefined
    },
    stop() {
      stopping.abort()
      leave?.('the agent stops')
    },
  }
  void serve()
  return keeper

  function asked(word: 'open' | 'shut'): GateState {
    return runtime === 'asks' ? word : 'absent'
  }

  function turn(): { readonly gate: Gate; readonly leaders: GateFacts['leaders'] } {
    const now = known()
    holdBack(now)
    const next = gateOf(gate, { ...now, clean, opened, ...(stand === undefined ? {} : { alone: stand }) })
    if (next.open !== gate?.open) {
      if (next.open) {
        log.info({ boot: next.boot }, 'gate open')
        remember(next.boot, 'open')
      } else log.info({ reason: next.reason }, 'gate shut')
    }
    gate = next
    return { gate: next, leaders: now.leaders }
  }

  /** What was found, or open, before this boot was held says nothing of the time after. */
  function holdBack({ boot, leaders, gaveUp }: Pick<GateFacts, 'boot' | 'leaders' | 'gaveUp'>): void {
    const before = held
    held = gaveUp !== undefined || leaders.some((leader) => typeof leader !== 'string' && leader.boot === boot && !leader.accepted)
    if (!held || before) return
    clean = notLookedAt
    opened = undefined
    if (boot !== undefined) remember(boot, 'shut')
  }

  async function recall(): Promise<void> {
    const text = await host.disk.load(gateMemory).catch(() => undefined) // a disk that cannot be read remembers nothing
    remembered ??= stateIn(text)
    if (remembered?.gate === 'open' && !held) opened = remembered.boot
  }

  /** One after the other, so that the last word is what stays. A disk that is full or read-only keeps an older word: an agent that is
   *  started again opens by the leader's word alone, whatever its disk says. */
  function remember(boot: Boot, state: Remembered['gate']): void {
    remembered = { boot, gate: state }
    saved = saved.then(() => host.disk.save(gateMemory, JSON.stringify({ boot, gate: state })))
      .catch((error: unknown) => log.warn({ reason: String(error) }, 'the state of the gate could not be remembered on disk'))
  }

  async function serve(): Promise<void> {
    let again = firstAgain
    while (!stopping.signal.aborted) {
      const served = await once()
      if (everAsked && (served === undefined || served > stood)) again = firstAgain
      await clock.wait(again * (0.5 + host.chance()), stopping.signal)
      again = Math.min(again * 2, lastAgain)
    }
  }

  /** From the connection to its end; answers how long the runtime asked. Undefined: nobody listened. */
  async function once(): Promise<Ms | undefined> {
    let stream: ByteStream
    try {
      stream = await host.connectNri(connectWithin)
    } catch (error) {
      missed(String(error))
      return undefined
    }
    if (stopping.signal.aborted) {
      stream.close()
      return undefined
    }
    return new Promise((resolve) => {
      let since: Ms | undefined
      leave = speakNri(stream, {
        clock, log, judge: (pod) => keeper.judge(pod),
        serving(name) {
          since = clock.now()
          runtime = 'asks'
          everAsked = true
          away = ''
          log.info({ runtime: name }, 'the runtime asks the gate')
        },
        ended(reason) {
          runtime = 'away'
          missed(reason)
          resolve(since === undefined ? 0 : clock.now() - since)
        },
      }).close
    })
  }

  function missed(reason: string): void {
    if (reason !== away && !stopping.signal.aborted) log.warn({ reason }, 'the runtime does not ask the gate: pods start unasked')
    away = reason
  }
}
