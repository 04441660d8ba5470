// What a replica's deployment tells it, in the environment. Read once at the start; every fault is listed at once.
import { validate } from 'node-cron'
import * as v from 'valibot'

export interface ReplicaSettings {
  readonly namespace: string
  readonly agentNamespace: string
  /** The pod's name. */
  readonly name: string
  /** Where agents and other replicas dial this one. */
  readonly address: string
  /** What it listens on; every interface unless said. */
  readonly bind: string
  readonly beatsPort: number
  readonly httpPort: number
  readonly kdumpPort: number
  readonly tokenFile: string
  /** Folders of fence programs, or a folder and a prefix (`/usr/sbin/fence_*`). */
  readonly fenceAgents: readonly string[]
  /** When a turn of the audit begins, as cron has it. */
  readonly auditAt: string
  /** When history that need not be kept is deleted, likewise: an hour at which nobody waits for the API server. */
  readonly pruneAt: string
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
}

const word = v.pipe(v.string('is not set'), v.trim(), v.nonEmpty('is empty'))
const port = v.pipe(word, v.regex(/^\d+$/, 'is no number'), v.transform(Number), v.maxValue(65_535, 'is no port'))

const environment = v.object({
  HOLDFAST_NAMESPACE: v.optional(word, 'holdfast-system'),
  HOLDFAST_AGENT_NAMESPACE: v.optional(word, 'holdfast-agents'),
  HOLDFAST_IDENTITY: word,
  HOLDFAST_ADDRESS: word,
  HOLDFAST_BIND: v.optional(word, '::'),
  HOLDFAST_BEATS_PORT: v.optional(port, '7414'),
  HOLDFAST_HTTP_PORT: v.optional(port, '7415'),
  HOLDFAST_KDUMP_PORT: v.optional(port, '7410'),
  HOLDFAST_TOKEN_FILE: v.optional(word, '/var/run/secrets/holdfast/token'),
  HOLDFAST_FENCE_AGENTS: v.optional(word, '/holdfast/fence-agents:/usr/sbin/fence_*'),
  HOLDFAST_AUDIT_AT: v.optional(v.pipe(word, v.check(validate, 'is no time as cron has it')), '0 * * * *'),
  HOLDFAST_PRUNE_AT: v.optional(v.pipe(word, v.check(validate, 'is no time as cron has it')), '17 3 * * *'),
  HOLDFAST_LOG_LEVEL: v.optional(v.picklist(['debug', 'info', 'warn', 'error'], 'is none of debug, info, warn, error'), 'info'),
})

export type ReadSettings = { readonly ok: true; readonly settings: ReplicaSettings } | { readonly ok: false; readonly faults: readonly string[] }

export function readSettings(variables: Readonly<Record<string, string | undefined>>): ReadSettings {
  const read = v.safeParse(environment, variables)
  if (!read.success) return { ok: false, faults: read.issues.map((issue) => `${v.getDotPath(issue) ?? 'environment'} ${issue.message}`) }
  const from = read.output
  return {
    ok: true,
    settings: {
      namespace: from.HOLDFAST_NAMESPACE, agentNamespace: from.HOLDFAST_AGENT_NAMESPACE, name: from.HOLDFAST_IDENTITY, address: from.HOLDFAST_ADDRESS,
      bind: from.HOLDFAST_BIND, beatsPort: from.HOLDFAST_BEATS_PORT, httpPort: from.HOLDFAST_HTTP_PORT, kdumpPort: from.HOLDFAST_KDUMP_PORT, tokenFile: from.HOLDFAST_TOKEN_FILE,
      auditAt: from.HOLDFAST_AUDIT_AT, pruneAt: from.HOLDFAST_PRUNE_AT, fenceAgents: from.HOLDFAST_FENCE_AGENTS.split(':').filter((one) => one !== ''), logLevel: from.HOLDFAST_LOG_LEVEL,
    },
  }
}
