// In a turn of the audit a device with many outlets is asked once for all of them, where its program tells their states in one run.
// It spares a strip of forty outlets forty sessions. What is told so confirms only: an outlet that is not plainly on is asked
// by itself, and so is a path that no `status` has shown to be on before, or whose device tells by `status` which machine it is.
import { sameBoot, type Ms, type NodeName } from '../core/model.ts'
import { beatsWithin } from '../core/look.ts'
import type { ConfiguredMethod } from './fence-config.ts'
import { outletOf } from './fence-config-secret.ts'
import type { FencePaths } from './fence-paths.ts'
import type { FenceRunner } from './fence.ts'
import type { Clock } from '../edge/clock.ts'
import type { Observation } from './observe.ts'

export interface AuditListOptions {
  readonly fences: Pick<FencePaths, 'sharing'>
  readonly runner: Pick<FenceRunner, 'listOutlets'>
  readonly observation: Observation
  readonly clock: Clock
  readonly stopping: AbortSignal
}

interface Path {
  readonly node: NodeName
  readonly method: ConfiguredMethod
}

/** Whether this path was read on, with the others of its device. */
export function auditLists({ fences, runner, observation, clock, stopping }: AuditListOptions): (node: NodeName, method: ConfiguredMethod) => Promise<boolean> {
  /** Devices that were asked in the turn that began then: whoever is left of them is asked by itself. */
  let asked = new Map<string, Promise<void>>()
  let askedIn: Ms = -Infinity

  return async (node, method) => {
    const { turnAt } = observation.seen.self
    if (turnAt === undefined || !isKnown({ node, method }, turnAt)) return false
    if (askedIn !== turnAt) [asked, askedIn] = [new Map(), turnAt]
    const under = asked.get(method.device)
    if (under !== undefined) await under
    else {
      const paths = fences.sharing(method).filter((path) => isKnown(path, turnAt))
      if (paths.length < 2) return false
      const asking = ask(node, method, turnAt)
      asked.set(method.device, asking)
      await asking
    }
    return !isKnown({ node, method }, turnAt)
  }

  async function ask(node: NodeName, method: ConfiguredMethod, turnAt: Ms): Promise<void> {
    const seen = await runner.listOutlets({ node, method, signal: stopping })
    if (seen === undefined) return
    const { states, startedAt, endedAt } = seen
    // What was begun meanwhile, or is heard no more, is not what the device was asked about.
    for (const path of fences.sharing(method).filter((one) => isKnown(one, turnAt))) {
      if (states.get(outletOf(path.method.parameters) ?? '') !== 'on') continue
      observation.read(path.node, { method: path.method.name, digest: path.method.digest, state: 'on', startedAt, endedAt, evidence: 'on, in the list of all outlets' })
    }
  }

  /** Verified in this boot, not asked in this turn, and nothing is lost by not hearing which machine it is. */
  function isKnown({ node, method }: Path, turnAt: Ms): boolean {
    const row = observation.row(node)
    const boot = row?.beat?.boot
    if (row === undefined || boot === undefined || clock.now() - (row.beat?.at ?? -Infinity) >= beatsWithin || method.claimed === true) return false
    const audit = row.record?.paths.find((path) => path.method === method.name && path.digest === method.digest)
    if (row.record?.nodeUid !== row.uid || audit?.state !== 'verified' || !sameBoot(audit.boot, boot)) return false
    const last = row.readings.findLast((reading) => reading.method === method.name && reading.digest === method.digest)
    if (last === undefined) return audit.drill !== undefined || (audit.identity === 'unproven' && row.twin === undefined && row.machine !== '')
    return last.startedAt < turnAt && last.state === 'on' && last.machine === undefined && last.addresses === undefined
  }
}
