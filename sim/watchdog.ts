// A machine's watchdog: once opened it counts down, each word starts the count anew, and at its end the machine is reset. It is hardware: it
// counts on while the kernel stands still, and only what stops the machine itself stops it.
import type { WatchdogDevice, WatchdogHandle } from '../agent/watchdog.ts'
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Process } from './process.ts'

export interface WatchdogPlan {
  readonly identity: string
  readonly timeout: Ms
  /** How long after its time-out it fires, or that it never does, as one that is wrongly wired. */
  readonly fires: 'at once' | 'at twice its time-out' | 'never'
  readonly panic?: number
  readonly virtual?: boolean
}

export interface SimulatedWatchdog {
  armed(): boolean
  forProcess(process: Process): WatchdogDevice
  /** The machine is off: nothing counts. */
  powerOff(): void
  /** Made to stand still with its machine, and to go on. */
  stand(): void
  goOn(): void
}

/** `fed again`: after it should have fired. */
export type WatchdogWord = 'armed' | 'disarmed' | 'resets the machine' | 'does not fire' | 'fed again'

export function createWatchdog(clock: Clock, plan: WatchdogPlan | undefined, tell: (what: WatchdogWord) => void): SimulatedWatchdog {
  let armed = false
  let overdue = false
  let open: Process | undefined
  let endsAt: Ms | undefined
  let stoodAt: Ms | undefined
  let cancel: (() => void) | undefined
  const handle: WatchdogHandle = {
    feed() {
      feed()
      return undefined
    },
    disarm() {
      cancel?.()
      armed = false
      overdue = false
      open = undefined
      tell('disarmed')
      return undefined
    },
  }

  return {
    armed: () => armed,
    powerOff() {
      cancel?.()
      armed = false
      overdue = false
      open = undefined
      stoodAt = undefined
    },
    stand() {
      cancel?.()
      stoodAt = clock.now()
    },
    goOn() {
      const left = (endsAt ?? 0) - (stoodAt ?? 0)
      const stood = stoodAt !== undefined
      stoodAt = undefined
      if (armed && stood) count(Math.max(0, left))
    },
    forProcess: (process) => ({
      look: async () => (plan === undefined ? undefined : { identity: plan.identity, timeout: plan.timeout }),
      open() {
        if (plan === undefined) return { failed: 'ENOENT' }
        if (open !== undefined) return { failed: 'EBUSY' }
        open = process
        // Whoever has it open and ends leaves it armed, and its kernel feeds it once more.
        process.onEnd(() => {
          if (open !== process) return
          open = undefined
          feed()
        })
        if (!armed) tell('armed')
        armed = true
        feed()
        return handle
      },
    }),
  }

  function feed(): void {
    if (overdue) tell('fed again')
    overdue = false
    if (plan !== undefined && armed && stoodAt === undefined) count(plan.timeout * (plan.fires === 'at twice its time-out' ? 2 : 1))
  }

  function count(span: Ms): void {
    cancel?.()
    endsAt = clock.now() + span
    cancel = clock.after(span, () => {
      overdue = plan?.fires === 'never'
      tell(overdue ? 'does not fire' : 'resets the machine')
    })
  }
}
