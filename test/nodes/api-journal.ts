// What the agents asked of the API server, in that server's own words: it writes down each request of their account as it comes in.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { usualValues } from '../../deploy/values.ts'
import type { Ms } from '../../core/model.ts'

export interface Request {
  /** Wall time. */
  readonly at: Ms
  /** As the token says, which is bound to the agent's pod. */
  readonly node: string
  /** get, list, watch; or what writes. */
  readonly verb: string
  readonly path: string
}

const journal = 'agents.log'

/** For an API server that keeps it in this folder. */
export function journalFlags(folder: string): readonly string[] {
  const policy = join(folder, 'agents.yaml')
  writeFileSync(policy, JSON.stringify({
    apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages: ['ResponseStarted', 'ResponseComplete'],
    rules: [{ level: 'Metadata', userGroups: [`system:serviceaccounts:${usualValues.agentNamespace}`] }, { level: 'None' }],
  }))
  return [`--audit-policy-file=${policy}`, `--audit-log-path=${join(folder, journal)}`]
}

export function requestsIn(folder: string): readonly Request[] {
  const file = join(folder, journal)
  // It is made with the first of them.
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8').split('\n').filter((line) => line !== '').map((line) => {
    const { user, verb, requestURI, requestReceivedTimestamp } = JSON.parse(line) as Written
    return { at: Date.parse(requestReceivedTimestamp), node: user.extra?.['authentication.kubernetes.io/node-name']?.[0] ?? '', verb, path: requestURI }
  })
}

/** As audit.k8s.io/v1 has it. */
interface Written {
  readonly user: { readonly extra?: Readonly<Record<string, readonly string[]>> }
  readonly verb: string
  readonly requestURI: string
  readonly requestReceivedTimestamp: string
}

const reading: readonly string[] = ['get', 'list', 'watch']

export function writing({ verb }: Request): boolean {
  return !reading.includes(verb)
}
