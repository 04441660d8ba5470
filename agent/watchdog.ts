// The watchdog of this machine, by files alone: what it is stands below /sys; opening the device arms it, each word written to it feeds it, and
// a `V` before the close disarms it. Its time-out is its driver's: to set it takes an ioctl, which Node cannot make
// (docs/decisions/0018-self-fence.md).
import { closeSync, constants, fstatSync, openSync, readFileSync, writeSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { WatchdogSeen } from '../core/watchdog.ts'

export interface WatchdogDevice {
  /** What the kernel says of it, which arms nothing. Undefined: there is none. */
  look(): Promise<WatchdogSeen | undefined>
  /** From here on it counts. At once, or not at all: whoever has looked at the clock before must not wait. */
  open(): WatchdogHandle | { readonly failed: string }
}

export interface WatchdogHandle {
  /** Undefined: fed; else why not. */
  feed(): string | undefined
  /** Disarmed, if its driver lets it be. Undefined: it was told so. */
  disarm(): string | undefined
}

/** `device`: /dev/watchdog0, or /dev/watchdog, which is the same one. */
export function machineWatchdog(device: string, sys: string, isDevice = (file: number): boolean => fstatSync(file).isCharacterDevice()): WatchdogDevice {
  const name = basename(device)
  const folder = join(sys, 'class', 'watchdog', /\d$/.test(name) ? name : `${name}0`)
  return {
    async look() {
      const [identity = '', timeout, nowayout] = await Promise.all(['identity', 'timeout', 'nowayout'].map(async (file) => (await readFile(join(folder, file), 'utf8').catch(() => '')).trim()))
      const seconds = Number(timeout)
      if (identity === '' || !Number.isInteger(seconds) || seconds <= 0) return undefined
      return { identity: identity.slice(0, 64), timeout: seconds * 1_000, ...(nowayout === '1' ? { nowayout: true } : {}) }
    },
    open() {
      try {
        // Never made: a container has no device that it was not given, and a file in its place would be fed, and reset nothing.
        const file = openSync(device, constants.O_WRONLY)
        if (!isDevice(file)) {
          closeSync(file)
          return { failed: 'it is no device' }
        }
        const handle = handleOf(file)
        if (stateIn(folder) === 'active') return handle
        handle.disarm()
        return { failed: 'the kernel does not say that it counts' }
      } catch (error) {
        return { failed: faultOf(error) }
      }
    },
  }
}

function stateIn(folder: string): string {
  try {
    return readFileSync(join(folder, 'state'), 'utf8').trim()
  } catch {
    return '' // it does not tell
  }
}

/** Written without waiting for anything: a word that lay in a queue would feed it later than anybody meant. */
function handleOf(file: number): WatchdogHandle {
  const write = (word: string): string | undefined => {
    try {
      writeSync(file, word)
      return undefined
    } catch (error) {
      return faultOf(error)
    }
  }
  return {
    feed: () => write('.'),
    disarm() {
      const fault = write('V')
      if (fault === undefined) closeSync(file)
      return fault
    },
  }
}

/** `EBUSY`: somebody else has it open. */
function faultOf(error: unknown): string {
  return (error instanceof Error && 'code' in error ? String(error.code) : String(error)).slice(0, 200)
}

/** Whether this machine may be made to stand still from outside, by what its processor says of itself. Where it says nothing of that kind
 *  nothing follows. */
export function machineKind(cpuinfo: string | undefined): 'real' | 'virtual' | 'unknown' {
  const [, flags] = /^flags\s*:(.*)$/m.exec(cpuinfo ?? '') ?? []
  return flags === undefined ? 'unknown' : /(?:^|\s)hypervisor(?:\s|$)/.test(flags) ? 'virtual' : 'real'
}

/** Undefined: it cannot be read. */
export function panicIn(text: string | undefined): number | undefined {
  const [, seconds] = /^(-?\d{1,9})\s*$/.exec(text ?? '') ?? []
  return seconds === undefined ? undefined : Number(seconds)
}
