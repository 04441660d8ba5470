import { numberAt, textAt } from './json.ts'
import type { Rules } from './kind.ts'
import { wrong } from './refusal.ts'
import { microTimeFault } from './times.ts'

export const leaseRules: Rules = {
  decode(lease) {
    for (const field of ['acquireTime', 'renewTime']) {
      const time = textAt(lease, 'spec', field)
      const fault = time === '' ? undefined : microTimeFault(time)
      if (fault !== undefined) return fault
    }
    return undefined
  },
  defaults(lease) {
    lease['spec'] ??= {}
  },
  check(lease) {
    const seconds = numberAt(lease, 'spec', 'leaseDurationSeconds')
    const transitions = numberAt(lease, 'spec', 'leaseTransitions')
    return [
      ...(seconds !== undefined && seconds <= 0 ? [wrong('spec.leaseDurationSeconds', seconds, 'must be greater than 0')] : []),
      ...(transitions !== undefined && transitions < 0 ? [wrong('spec.leaseTransitions', transitions, 'must be greater than or equal to 0')] : []),
    ]
  },
}
