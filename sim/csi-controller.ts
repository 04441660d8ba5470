// The controller half of a CSI driver, as the attacher calls it, and the simulated one: it attaches and detaches on the world's
// storage, in its own time and with its own faults, and refuses what is in use where that is wanted.
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Storage } from './storage.ts'

export interface CsiVolume {
  readonly handle: string
  /** For several nodes at once. */
  readonly shared: boolean
}

/** Each answers undefined when it is done, or the refusal in the driver's words. */
export interface CsiController {
  publish(volume: CsiVolume, node: string): Promise<string | undefined>
  unpublish(volume: CsiVolume, node: string): Promise<string | undefined>
}

/** All may be changed while it runs. */
export interface CsiSettings {
  attachTime: Ms
  detachTime: Ms
  /** `stuck`: never ends. `error`: fails and says so. */
  attachFault: 'none' | 'stuck' | 'error'
  detachFault: 'none' | 'stuck' | 'error'
  /** As a driver that looks first: what is written from a node stays there, and comes to no other one meanwhile. */
  refusesInUse: boolean
}

export interface SimulatedController extends CsiController {
  readonly settings: CsiSettings
}

const usual: CsiSettings = { attachTime: 500, detachTime: 500, attachFault: 'none', detachFault: 'none', refusesInUse: false }
const stuckLook: Ms = 1_000
const writtenLately: Ms = 1_000
const fault = 'the driver refused: simulated fault'

/** `clock`: of the process that calls it, with which it ends. */
export function simulateController(clock: Clock, storage: Pick<Storage, 'attach' | 'detach' | 'writersOf'>, wanted: Partial<CsiSettings> = {}): SimulatedController {
  const settings: CsiSettings = { ...usual, ...wanted }
  return {
    settings,
    async publish({ handle, shared }, node) {
      while (settings.attachFault === 'stuck') await clock.wait(stuckLook)
      await clock.wait(settings.attachTime)
      if (settings.attachFault === 'error') return fault
      // Who asks counts a volume whose detach has failed among those that nobody has.
      const refusal = shared ? undefined : inUse(handle, (one) => one !== node)
      if (refusal === undefined) storage.attach(handle, node)
      return refusal
    },
    async unpublish({ handle }, node) {
      while (settings.detachFault === 'stuck') await clock.wait(stuckLook)
      await clock.wait(settings.detachTime)
      if (settings.detachFault === 'error') return fault
      const refusal = inUse(handle, (one) => one === node)
      if (refusal === undefined) storage.detach(handle, node)
      return refusal
    },
  }

  function inUse(handle: string, matters: (node: string) => boolean): string | undefined {
    const user = settings.refusesInUse ? storage.writersOf(handle, writtenLately).find(({ node }) => matters(node)) : undefined
    return user === undefined ? undefined : `the driver refused: ${handle} is in use by ${user.pod} on ${user.node}`
  }
}
