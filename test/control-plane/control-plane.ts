// A real Kubernetes control plane on loopback, for as long as a test needs it: etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler as child processes, with Kubernetes' own timers unless asked
// otherwise. There are no kubelets; whoever wants a node is one, with the credentials of `system:node:NAME`.

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { createCertificates, fileName } from './certificates.ts'
import type { Credentials, NodeUser, User } from './certificates.ts'
import { startComponent } from './component.ts'
import type { Component } from './component.ts'
import { claimDirectory } from './directory.ts'
import { kubeconfigText } from './kubeconfig.ts'
import { freePorts } from './ports.ts'
import { clientOf, flagsOf } from './programs.ts'
import type { Name, Settings, Site } from './programs.ts'
import { statusOf } from './status.ts'

export type ControlPlane = Readonly<{
  url: string
  port: number
  caFile: string
  ca: string
  /** The path of a kubectl of the same version. */
  kubectl: string
  /** Where its files and the logs of its programs are. */
  dir: string
  credentials(user: 'admin' | NodeUser): Credentials
  /** The path of a kubeconfig for this user. */
  kubeconfig(user: 'admin' | NodeUser): string
  /** What runs now. */
  processes(): readonly Readonly<{ name: Name; pid: number }>[]
  /**
   * The API is gone at once, as in a crash, until startApiServer(); etcd and the controllers stay. Asked politely it
   * would go on answering those who are connected for as long as they watch, which is no outage.
   */
  stopApiServer(): Promise<void>
  /** Back on the same port with the same data, and ready. */
  startApiServer(): Promise<void>
  stop(): Promise<void>
}>

export type Options = Settings & Readonly<{
  /** Kubernetes, such as 1.36.4; it must have been built. Else $HOLDFAST_KUBERNETES, else 1.36.4. */
  version?: string
  /** An empty or new directory, kept by stop(). Else a temporary one, removed by stop() and by our death. */
  dir?: string
  /** Hears of starts, stops and programs that end by themselves. */
  log?: (line: string) => void
}>

export async function startControlPlane(options: Options = {}): Promise<ControlPlane> {
  const bin = binaries(options.version ?? process.env['HOLDFAST_KUBERNETES'] ?? '1.36.4')
  const directory = await claimDirectory(options.dir)
  const crew: Crew = { components: new Map(), log: options.log ?? (() => {}) }
  const stop = async (): Promise<void> => {
    await stopAll(crew)
    await directory.release()
  }
  try {
    const run: Run = {
      ...crew,
      bin,
      dir: directory.path,
      ports: await freePorts(['etcd', 'etcdPeer', 'apiServer', 'controllerManager', 'scheduler']),
      certificates: createCertificates(join(directory.path, 'certificates')),
      settings: options,
    }
    await startAll(run)
    return controlPlane(run, stop)
  } catch (cause) {
    // Passed on as it is: here we only see to it that a failed start leaves as little behind as a good stop.
    await stop()
    throw cause
  }
}

type Crew = Readonly<{
  /** What we started and have not stopped. A program that ended by itself stays, to be noticed, until it is started again. */
  components: Map<Name, Component>
  log: (line: string) => void
}>
type Run = Site & Crew & Readonly<{ bin: string }>

function controlPlane(run: Run, stop: () => Promise<void>): ControlPlane {
  let stopping: Promise<void> | undefined
  return {
    url: urlOf(run),
    port: run.ports.apiServer,
    caFile: run.certificates.caFile,
    ca: run.certificates.ca,
    kubectl: join(run.bin, 'kubectl'),
    dir: run.dir,
    credentials: run.certificates.credentials,
    kubeconfig: (user) => kubeconfig(run, user),
    processes: () => [...run.components].map(([name, component]) => ({ name, pid: component.pid })),
    stopApiServer: () => stopOne(run, 'kube-apiserver', 'crash'),
    startApiServer: () => startApiServer(run),
    stop: () => (stopping ??= stop()),
  }
}

function binaries(version: string): string {
  const number = version.replace(/^v/, '')
  const cache = process.env['HOLDFAST_CACHE'] || join(homedir(), '.cache', 'holdfast')
  const bin = join(cache, 'control-plane', `v${number}`)
  const wanted = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubectl']
  const missing = wanted.filter((file) => !existsSync(join(bin, file)))
  if (missing.length === 0) return bin
  throw new Error(`no ${missing.join(', ')} in ${bin}: run test/control-plane/build.sh ${number} first`)
}

async function startAll(run: Run): Promise<void> {
  mkdirSync(join(run.dir, 'logs'))
  mkdirSync(join(run.dir, 'kubeconfigs'))
  await startOne(run, 'etcd')
  await startApiServer(run)
  // Not before the apiserver is ready: the controllers give up if they find none for ten seconds.
  await Promise.all([startOne(run, 'kube-controller-manager'), startOne(run, 'kube-scheduler')])
  // It is made by a controller, and without it no pod is admitted: once it is there, the cluster is usable.
  await until(run, 'the default ServiceAccount', '/api/v1/namespaces/default/serviceaccounts/default')
}

async function startApiServer(run: Run): Promise<void> {
  await startOne(run, 'kube-apiserver')
  await until(run, 'a ready apiserver', '/readyz')
}

async function startOne(run: Run, name: Name): Promise<void> {
  if (run.components.has(name)) throw new Error(`${name} is already running`)
  keep(run, name, await begin(run, name))
}

async function begin(run: Run, name: Name): Promise<Component> {
  const client = clientOf(name)
  return await startComponent({
    name,
    file: join(run.bin, name),
    args: [...(client === undefined ? [] : clientFlags(kubeconfig(run, client))), ...flagsOf(name, run)],
    logFile: join(run.dir, 'logs', `${name}.log`),
  })
}

function keep(run: Run, name: Name, component: Component): void {
  run.components.set(name, component)
  run.log(`${name} started, pid ${component.pid}`)
  void component.ended.then(async (how) => {
    if (run.components.get(name) !== component) return
    run.log(`${name} ended by itself, ${how}:\n${component.lastWords()}`)
    if (clientOf(name) !== undefined) await startAgain(run, name, component)
  })
}

const AGAIN_AFTER_MS = 1_000

// As kubelet does with these two. kube-scheduler needs it: after an outage of the API it may be shown a pod's successor as a
// change of that pod, calls its own cache corrupted, and exits; nothing would be scheduled from then on.
async function startAgain(run: Run, name: Name, ended: Component): Promise<void> {
  await sleep(AGAIN_AFTER_MS)
  if (run.components.get(name) !== ended) return
  const next = await begin(run, name)
  if (run.components.get(name) === ended) keep(run, name, next)
  else await next.stop()
}

function clientFlags(file: string): readonly string[] {
  return [`--kubeconfig=${file}`, `--authentication-kubeconfig=${file}`, `--authorization-kubeconfig=${file}`]
}

// Clients before servers, or each would spend its last seconds looking for the one that went first.
async function stopAll(crew: Crew): Promise<void> {
  await Promise.all([stopOne(crew, 'kube-scheduler'), stopOne(crew, 'kube-controller-manager')])
  await stopOne(crew, 'kube-apiserver')
  await stopOne(crew, 'etcd')
}

async function stopOne({ components, log }: Crew, name: Name, how: 'stop' | 'crash' = 'stop'): Promise<void> {
  const component = components.get(name)
  if (component === undefined) return
  components.delete(name)
  await component[how]()
  log(`${name} stopped`)
}

// Ten times what a start needs on two busy cores: whoever waits longer waits for something that will not come.
const READY_WITHIN_MS = 120_000
const LOOK_EVERY_MS = 100

async function until(run: Run, what: string, path: string): Promise<void> {
  const deadlineAt = performance.now() + READY_WITHIN_MS
  const admin = run.certificates.credentials('admin')
  let status: string | number
  while ((status = await statusOf(new URL(path, urlOf(run)), admin)) !== 200) {
    const dead = [...run.components.values()].find((component) => component.end() !== undefined)
    if (dead !== undefined) throw new Error(`${dead.name} ended (${dead.end()}) before ${what}:\n${dead.lastWords()}`)
    if (performance.now() > deadlineAt) throw new Error(`no ${what} within ${READY_WITHIN_MS / 1000} s: ${path} says ${status}`)
    await sleep(LOOK_EVERY_MS)
  }
}

function kubeconfig(run: Run, user: User): string {
  const file = join(run.dir, 'kubeconfigs', `${fileName(user)}.json`)
  if (existsSync(file)) return file
  writeFileSync(file, kubeconfigText(user, urlOf(run), run.certificates.credentials(user)), { mode: 0o600 })
  return file
}

function urlOf(run: Run): string {
  return `https://127.0.0.1:${run.ports.apiServer}`
}
