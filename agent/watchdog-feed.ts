// Arms the machine's watchdog where this node was asked to, feeds it as long as the permit lets it (core/self-stop.ts), and lets go of it only
// once the leader has put that on record: until then a coordinator may count on it.
//
// What an agent that ends leaves open stays armed. The next one feeds it again, as soon as somebody has permitted this node to run.
import type { WatchdogWord } from '../core/beat.ts'
import type { Ms } from '../core/model.ts'
import { unfit, type Watchdog } from '../core/watchdog.ts'
import type { AgentHost } from './host.ts'
import { keepRhythm } from './rhythm.ts'
import { machineKind, panicIn, type WatchdogHandle } from './watchdog.ts'

export interface WatchdogKeeper {
  /** For the leader, once there is anything to tell. */
  word(): WatchdogWord | undefined
  want(yes: boolean): void
  armed(): boolean
  /** The leader's answer to our wish to disarm it. */
  recorded(disarm: number): void
  /** Whether it is disarmed, or never was armed; asked of the leader, for so long. */
  disarm(within: Ms): Promise<boolean>
  stop(): void
}

export interface WatchdogOptions {
  readonly host: Pick<AgentHost, 'clock' | 'log' | 'read' | 'watchdog'>
  readonly mayFeed: () => boolean
  /** Of the membership that this node goes by. */
  readonly epoch: () => number
  say(word: WatchdogWord): void
  /** It was opened, or disarmed. */
  changed(): void
}

const feedEvery: Ms = 1_000
/** Well within a time-out: the agent before this one may end any moment, and leave it open till then. */
const lookAgainAfter: Ms = 5_000

export function keepWatchdog({ host, mayFeed, epoch, say, changed }: WatchdogOptions): WatchdogKeeper {
  const { clock, log } = host
  const stopping = new AbortController()
  let handle: WatchdogHandle | undefined
  let known: Watchdog | undefined
  let wanted = false
  let running = false
  let looking = false
  let lookAt = -Infinity
  let fed = true
  let asked = 0
  let asking: { readonly disarm: number; end(done: boolean): void } | undefined
  let told = ''

  const keeper: WatchdogKeeper = {
    word: () => (known === undefined ? undefined : { say: 'watchdog', ...known, epoch: epoch(), ...(asking === undefined ? {} : { disarm: asking.disarm }) }),
    want(yes) {
      wanted = yes
      if (yes && !running) {
        running = true
        keepRhythm(clock, feedEvery, 0, stopping.signal, turn)
      }
      tell()
    },
    armed: () => handle !== undefined,
    recorded(disarm) {
      if (asking?.disarm !== disarm) return
      const fault = handle?.disarm()
      if (fault !== undefined) log.error({ fault }, 'the watchdog could not be disarmed')
      else {
        handle = undefined
        log.info({}, 'the watchdog is disarmed')
        changed()
      }
      asking.end(fault === undefined)
    },
    async disarm(within) {
      if (handle === undefined) return true
      asking?.end(false)
      asked += 1
      const number = asked
      return new Promise((resolve) => {
        const late = clock.after(within, () => asking?.end(false))
        asking = {
          disarm: number,
          end(done) {
            late()
            asking = undefined
            if (done && known !== undefined) known = { ...known, state: 'unarmed' }
            else if (!done) log.warn({}, 'nobody has put on record that the watchdog is to be disarmed: it stays armed')
            tell()
            resolve(done)
          },
        }
        tell()
      })
    },
    stop: () => stopping.abort(),
  }
  return keeper

  function turn(): void {
    tell()
    if (handle === undefined) {
      if (wanted && mayFeed() && !looking && clock.now() >= lookAt) void arm()
      return
    }
    const may = mayFeed()
    if (fed && !may) log.error({ timeout: known?.timeout }, 'the watchdog is fed no more: this machine resets')
    fed = may
    const fault = may ? handle.feed() : undefined
    if (fault !== undefined) log.error({ fault }, 'the watchdog could not be fed')
  }

  async function arm(): Promise<void> {
    looking = true
    lookAt = clock.now() + lookAgainAfter
    const [seen, panic, cpu] = await Promise.all([host.watchdog.look().catch(() => undefined), host.read('panic'), host.read('cpuinfo')])
    looking = false
    const of = { identity: seen?.identity ?? '', timeout: seen?.timeout ?? 0, panic: panicIn(panic) ?? 0, machine: machineKind(cpu) }
    const fault = seen === undefined ? 'the kernel tells of no watchdog' : unfit(seen)
    // What was asked took its time, and to open it is to feed it.
    const opened = fault !== undefined ? { failed: fault } : stopping.signal.aborted || !wanted || !mayFeed() ? undefined : host.watchdog.open()
    if (opened === undefined) return
    const failed = 'failed' in opened
    if (failed && known?.why !== opened.failed) log.warn({ reason: opened.failed, again: lookAgainAfter }, 'the watchdog is not armed')
    if (!failed) log.info({ identity: of.identity, timeout: of.timeout }, 'the watchdog is armed')
    if (!failed) handle = opened
    if (!failed) changed()
    known = { ...of, state: failed ? 'unarmed' : 'armed', ...(failed ? { why: opened.failed } : {}) }
    tell()
  }

  function tell(): void {
    const word = keeper.word()
    const text = JSON.stringify(word)
    if (word === undefined || text === told) return
    told = text
    say(word)
  }
}
