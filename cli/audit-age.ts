// How old the audit of a path is. Its record bears the time of the latest result, and is not written again while that stays the same;
// that it was asked since is told by the latest turn, on the Lease.
import type { AuditTurn } from '../coordinator/audit-turns.ts'
import type { PathAudit } from '../core/model.ts'
import { span } from './span.ts'

export interface AuditAge {
  /** Undefined: nothing tells. */
  readonly at?: number
  readonly stale: boolean
}

/** Without a turn nothing is too old: none has come to its end yet. */
export function auditAge(node: string, { at: writtenAt }: PathAudit, turn: AuditTurn | undefined, wall: number): AuditAge {
  const written = Date.parse(writtenAt)
  const asked = turn === undefined || turn.missed.includes(node) ? Number.NaN : Date.parse(turn.began)
  const known = [written, asked].filter(Number.isFinite)
  const at = known.length === 0 ? {} : { at: Math.max(...known) }
  const holds = turn === undefined ? Infinity : Date.parse(turn.stale) - Date.parse(turn.began)
  return { ...at, stale: wall - Math.max(-Infinity, ...known) > holds }
}

export function agoOf({ at }: Pick<AuditAge, 'at'>, wall: number): string {
  return at === undefined ? 'nobody knows when' : `${span(wall - at)} ago`
}
