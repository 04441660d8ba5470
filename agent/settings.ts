// What the agent's deployment tells it, in the environment. Every fault is listed at once.
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface AgentEnvironment {
  /** `host:port`, a name that stands for every replica. */
  readonly replicas: string
  readonly whisperPort: number
  /** What whispers are bound to; every address unless said. */
  readonly bind: string | undefined
  readonly kubeletRoot: string
  /** The folder of kubelet's pods as this process sees it. */
  readonly podsFolder: string
  readonly proc: string
  /** The host's /run. */
  readonly run: string
  readonly sys: string
  /** The command that brings a program into the host's mount namespace; empty where that is ours. */
  readonly enter: readonly string[]
  /** Where control groups can be frozen. */
  readonly cgroups: string
  /** Where the CRI of kubelet's runtime may be. */
  readonly runtimeSockets: readonly string[]
  readonly nriSocket: string
  /** Undefined: no gate on this node. */
  readonly gate: { readonly node: string } | undefined
  /** A program of its own keeps it before there is an agent. */
  readonly gateFromBoot: boolean
  /** Pods of these start while the gate is shut, and are not stopped by a node that gives up. */
  readonly exemptNamespaces: readonly string[]
  /** Undefined: there is none to ask here. */
  readonly api: { readonly host: string; readonly port: number; readonly folder: string } | undefined
  readonly machineFile: string
  readonly state: string
  readonly tokenFile: string
  readonly authorityFile: string
  readonly kubeletHealth: string
  /** Portals (`tcp://host:port`) and mount points whose storage is to be probed. */
  readonly storage: readonly string[]
  /** Its device, armed only where a policy asks for it. */
  readonly watchdog: string
  /** The program that tells the node's vitals. Undefined: nobody is to ask for them. */
  readonly vitals: string | undefined
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
}

export type ReadEnvironment = { readonly ok: true; readonly settings: AgentEnvironment } | { readonly ok: false; readonly faults: readonly string[] }

/** Below the host's /run: kubeadm's containerd, that of k3s and RKE2, CRI-O. Kubelet's root is the same for all of them. */
const usualRuntimes = ['containerd/containerd.sock', 'k3s/containerd/containerd.sock', 'crio/crio.sock']
const usualNri = 'nri/nri.sock'
/** What a cluster that starts cold needs before anybody can release a node, the coordinator among it. */
const usualExempt = 'kube-system,holdfast-system,holdfast-agents'

/** Beside this file, and with its ending: a bundle is beside the agent's. */
const vitalsProgram = fileURLToPath(new URL(`vitals-program${extname(import.meta.url)}`, import.meta.url))

const levels = ['debug', 'info', 'warn', 'error'] as const

export function readEnvironment(variables: Readonly<Record<string, string | undefined>>): ReadEnvironment {
  const faults: string[] = []
  const text = (name: string, usual?: string): string => {
    const value = variables[`HOLDFAST_${name}`]?.trim() ?? ''
    if (value === '' && usual === undefined) faults.push(`HOLDFAST_${name} is not set`)
    return value === '' ? usual ?? '' : value
  }
  const path = (name: string, usual: string): string => {
    const value = text(name, usual)
    if (!value.startsWith('/')) faults.push(`HOLDFAST_${name} is no absolute path`)
    return value.length > 1 ? value.replace(/\/+$/, '') : value
  }
  const replicas = text('REPLICAS')
  if (replicas !== '' && !/:\d+$/.test(replicas)) faults.push('HOLDFAST_REPLICAS is not host:port')
  const whisperPort = Number(text('WHISPER_PORT', '7416'))
  if (!Number.isInteger(whisperPort) || whisperPort < 0 || whisperPort > 65_535) faults.push('HOLDFAST_WHISPER_PORT is no port')
  const wanted = text('LOG_LEVEL', 'info')
  const logLevel = levels.find((level) => level === wanted)
  if (logLevel === undefined) faults.push(`HOLDFAST_LOG_LEVEL is none of ${levels.join(', ')}`)
  const bind = text('BIND', '*')
  const gateWord = text('GATE', 'off')
  if (gateWord !== 'on' && gateWord !== 'off') faults.push('HOLDFAST_GATE is neither on nor off')
  const fromBoot = text('GATE_FROM_BOOT', 'off')
  if (fromBoot !== 'on' && fromBoot !== 'off') faults.push('HOLDFAST_GATE_FROM_BOOT is neither on nor off')
  const exemptNamespaces = text('GATE_EXEMPT_NAMESPACES', usualExempt).split(',').map((name) => name.trim())
  for (const name of exemptNamespaces) if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) faults.push(`HOLDFAST_GATE_EXEMPT_NAMESPACES: ${name} is no namespace`)
  const apiHost = variables['KUBERNETES_SERVICE_HOST'] ?? ''
  const apiPort = Number(variables['KUBERNETES_SERVICE_PORT'] ?? '443')
  if (!Number.isInteger(apiPort) || apiPort < 1 || apiPort > 65_535) faults.push('KUBERNETES_SERVICE_PORT is no port')
  const run = path('RUN', '/run')
  const runtimeSockets = text('RUNTIME_SOCKET', '') === '' ? usualRuntimes.map((usual) => `${run}/${usual}`) : [path('RUNTIME_SOCKET', run)]
  const kubeletRoot = path('KUBELET_ROOT', '/var/lib/kubelet')
  const proc = path('PROC', '/host/proc')
  const enter = text('ENTER', `nsenter --mount=${proc}/1/ns/mnt --`)
  const kubeletHealth = text('KUBELET_HEALTH', 'http://127.0.0.1:10248/healthz')
  if (!kubeletHealth.startsWith('http://') || !URL.canParse(kubeletHealth)) faults.push('HOLDFAST_KUBELET_HEALTH is no http:// URL')
  const vitalsWord = text('VITALS', 'on')
  if (vitalsWord !== 'on' && vitalsWord !== 'off') faults.push('HOLDFAST_VITALS is neither on nor off')
  const storage = text('STORAGE', '').split(',').map((target) => target.trim()).filter((target) => target !== '')
  for (const target of storage) if (!/^(?:\/.*|tcp:\/\/(?:[\w.-]+|\[[\da-f:]+\]):\d{1,5})$/.test(target)) faults.push(`HOLDFAST_STORAGE: ${target} is neither a path nor tcp://host:port`)
  const settings: AgentEnvironment = {
    replicas, whisperPort, bind: bind === '*' ? undefined : bind, kubeletRoot, podsFolder: path('PODS', `${kubeletRoot}/pods`), proc, run, sys: path('SYS', '/sys'), enter: enter === 'none' ? [] : enter.split(/\s+/), cgroups: path('CGROUPS', '/sys/fs/cgroup'), runtimeSockets, nriSocket: path('NRI_SOCKET', `${run}/${usualNri}`),
    gate: gateWord === 'on' ? { node: text('NODE', '') } : undefined, gateFromBoot: gateWord === 'on' && fromBoot === 'on', exemptNamespaces,
    api: apiHost === '' ? undefined : { host: apiHost, port: apiPort, folder: path('API_FOLDER', '/var/run/secrets/holdfast-api') },
    machineFile: path('MACHINE_FILE', '/sys/class/dmi/id/product_uuid'), state: path('STATE', '/var/lib/holdfast'),
    tokenFile: path('TOKEN_FILE', '/var/run/secrets/holdfast/token'), authorityFile: path('AUTHORITY_FILE', '/etc/holdfast/ca.crt'),
    kubeletHealth, storage, watchdog: path('WATCHDOG', '/dev/watchdog0'), vitals: vitalsWord === 'on' ? vitalsProgram : undefined, logLevel: logLevel ?? 'info',
  }
  return faults.length > 0 ? { ok: false, faults } : { ok: true, settings }
}
