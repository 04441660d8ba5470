// The coordinator's replicas as processes, each on a loopback address of its own, as what their ServiceAccount may and no more.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Api } from '../../coordinator/api.ts'
import type { PageState } from '../../coordinator/page-state.ts'
import { usualValues, names, type Values } from '../../deploy/values.ts'
import { startProduct, type ProductProcess } from './product-process.ts'

export interface Replicas {
  readonly running: ReadonlyMap<number, ProductProcess>
  start(number: number): Promise<void>
  /** SIGKILL. */
  kill(number: number): Promise<void>
  stop(): Promise<void>
  /** What agents dial. */
  readonly addresses: readonly string[]
  /** The number of the one whose name stands in the Lease. */
  leader(): Promise<number | undefined>
  /** What each running replica shows on its page; undefined where one does not answer. */
  states(): Promise<readonly (PageState | undefined)[]>
  readonly logs: readonly string[]
}

export interface ReplicasOptions {
  readonly api: Api
  readonly values: Values
  readonly url: string
  readonly ca: string
  /** For kubeconfig, tokens, logs. */
  readonly folder: string
  /** Of fence programs beside the product's own. */
  readonly programs: string
  readonly count: number
  readonly ports: { readonly beats: number; readonly http: number }
  readonly logLevel: string
}

const tokenLife = 8 * 3_600
export const fenceAgents = new URL('../../fence-agents', import.meta.url).pathname

export async function createReplicas(options: ReplicasOptions): Promise<Replicas> {
  const { api, folder, values: { namespace, agentNamespace } } = options
  const account = `/api/v1/namespaces/${namespace}/serviceaccounts/${names.coordinator}/token`
  const token = async (audiences?: readonly string[]): Promise<string> => {
    const spec = { expirationSeconds: tokenLife, ...(audiences === undefined ? {} : { audiences }) }
    const answer = await api.create<{ status: { token: string } }>(account, { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec })
    if (!answer.ok) throw new Error(`no token for the coordinator: ${answer.error.message}`)
    return answer.value.status.token
  }
  const kubeconfig = join(folder, 'coordinator.kubeconfig')
  writeFileSync(kubeconfig, JSON.stringify({
    apiVersion: 'v1', kind: 'Config', 'current-context': 'lab', users: [{ name: 'coordinator', user: { token: await token() } }],
    clusters: [{ name: 'lab', cluster: { server: options.url, 'certificate-authority-data': Buffer.from(options.ca).toString('base64') } }],
    contexts: [{ name: 'lab', context: { cluster: 'lab', user: 'coordinator', namespace } }],
  }), { mode: 0o600 })
  const tokenFile = join(folder, 'coordinator.token')
  writeFileSync(tokenFile, await token([names.audience]), { mode: 0o600 })
  const running = new Map<number, ProductProcess>()
  const logs: string[] = []
  let starts = 0

  return {
    running, logs,
    addresses: Array.from({ length: options.count }, (_, number) => `${addressOf(number)}:${options.ports.beats}`),
    async start(number) {
      if (running.get(number)?.alive() === true) return
      const logFile = join(folder, `${nameOf(number)}-${++starts}.log`)
      logs.push(logFile)
      running.set(number, await startProduct({
        name: nameOf(number), program: 'coordinator/main.ts', logFile,
        environment: {
          KUBECONFIG: kubeconfig, HOLDFAST_NAMESPACE: namespace, HOLDFAST_AGENT_NAMESPACE: agentNamespace, HOLDFAST_IDENTITY: nameOf(number),
          HOLDFAST_ADDRESS: addressOf(number), HOLDFAST_BIND: addressOf(number), HOLDFAST_BEATS_PORT: String(options.ports.beats), HOLDFAST_HTTP_PORT: String(options.ports.http),
          HOLDFAST_TOKEN_FILE: tokenFile, HOLDFAST_FENCE_AGENTS: `${fenceAgents}:${options.programs}`, HOLDFAST_LOG_LEVEL: options.logLevel,
          // What a killed one leaves behind goes with the lab.
          TMPDIR: folder,
        },
      }))
    },
    async kill(number) {
      await running.get(number)?.kill()
      running.delete(number)
    },
    async stop() {
      await Promise.all([...running.values()].map((one) => {
        one.resume()
        return one.stop()
      }))
      running.clear()
    },
    states: () => Promise.all([...running.keys()].map((number) => stateOf(`http://${addressOf(number)}:${options.ports.http}/api/state`))),
    async leader() {
      const lease = await api.get<{ spec?: { holderIdentity?: string } }>(`/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${names.coordinator}`)
      const holder = lease.ok ? lease.value.spec?.holderIdentity ?? '' : ''
      return [...running.keys()].find((number) => holder.startsWith(`${nameOf(number)}-`))
    },
  }
}

const pageWithin = 5_000

async function stateOf(url: string): Promise<PageState | undefined> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(pageWithin) })
    return answer.ok ? await answer.json() as PageState : undefined // our own page's words
  } catch {
    return undefined // it does not listen yet, or is stopped: whoever asks looks again
  }
}

/** With the agents in a namespace of their own and the fence configuration beside the coordinator, as installed. */
export const labValues = (image: string): Values => ({ ...usualValues, image, replicas: 0 })

const nameOf = (number: number): string => `replica-${number}`
const addressOf = (number: number): string => `127.0.2.${number + 1}`
