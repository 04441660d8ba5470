// Which of a machine's container runtimes is kubelet's. A host may have two (k3s brings its own containerd, and a distribution's runs beside it for other things), and of the wrong
// one every word is true and worth nothing: it runs nothing. The agent is a pod of kubelet's itself, so kubelet's runtime is the one that runs the agent; whoever does not
// know that pod is asked no more, and where nobody knows it nothing is known. An agent that is no pod (one that systemd started) has no such mark: then all that are
// there are asked, what runs in any of them runs, and one that does not answer leaves the whole unknown. There a setting names the right one.
import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ContainerSeen } from '../core/mounts.ts'
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import { askRuntime, listContainers, stopContainer } from './cri.ts'
import type { AgentHost, RuntimeAnswer } from './host.ts'
import { connectUnix } from './unix-stream.ts'

export interface Runtimes extends Pick<AgentHost, 'containers' | 'stopContainer' | 'runtimeHealth'> {
  /** The socket of kubelet's own. Undefined: there is none. */
  place(span: Ms): Promise<string | undefined>
}

/** `sockets`: where one may be. `proc`: the host's. */
export function machineRuntimes(clock: Clock, sockets: readonly string[], proc: string): Runtimes {
  let pod: Promise<string | undefined> | undefined
  let ours: string | undefined
  /** Which runtime told of a container. */
  let toldBy: ReadonlyMap<string, string> = new Map()

  return {
    async containers(span) {
      const answers = await kubelets(span)
      if ('failed' in answers) return answers
      toldBy = new Map(answers.flatMap(({ socket, seen }) => seen.map(({ id }) => [id, socket])))
      return answers.flatMap(({ seen }) => seen)
    },
    async stopContainer(container, span) {
      const socket = toldBy.get(container.id)
      return socket === undefined ? 'no runtime has told of it' : await stopContainer((within) => connectUnix(socket, within), clock, container, span)
    },
    async runtimeHealth(span) {
      const asked = ours !== undefined && await isThere(ours) ? [ours] : await there()
      if (asked.length === 0) return 'unknown'
      const faults = await Promise.all(asked.map((socket) => askRuntime((within) => connectUnix(socket, within), clock, span)))
      return faults.includes(undefined) ? 'ok' : 'ill'
    },
    async place(span) {
      if (ours !== undefined) return ours
      const all = await there()
      if (await own() === undefined) return all[0]
      const answers = await Promise.all(all.map((socket) => ask(socket, span)))
      await choose(answers)
      // One that does not answer now may be kubelet's.
      return ours ?? answers.find((answer) => 'failed' in answer)?.socket
    },
  }

  /** Of all of them, or why nothing is known. */
  async function kubelets(span: Ms): Promise<readonly Told[] | { readonly failed: string }> {
    if (ours !== undefined && await isThere(ours)) {
      const answer = await ask(ours, span)
      if ('failed' in answer) return { failed: `${ours}: ${answer.failed}` }
      if (knows(answer, await own())) return [answer]
    }
    const all = await there()
    if (all.length === 0) return { failed: `none of ${sockets.join(', ')} is there` }
    const answers = await Promise.all(all.map((socket) => ask(socket, span)))
    if (await own() === undefined) {
      const failed = answers.find((answer) => 'failed' in answer)
      return failed === undefined ? answers.filter((answer) => 'seen' in answer) : { failed: `${failed.socket}: ${failed.failed}` }
    }
    const chosen = await choose(answers)
    return chosen === undefined ? { failed: answers.map((answer) => `${answer.socket}: ${'failed' in answer ? answer.failed : 'it does not run this agent, so it is not kubelet\'s'}`).join('; ') } : [chosen]
  }

  async function choose(answers: readonly (Told | Silent)[]): Promise<Told | undefined> {
    const mine = await own()
    const chosen = answers.filter((answer) => 'seen' in answer).find((answer) => knows(answer, mine))
    ours = chosen?.socket
    return chosen
  }

  async function ask(socket: string, span: Ms): Promise<Told | Silent> {
    const answer: RuntimeAnswer = await listContainers((within) => connectUnix(socket, within), clock, span)
    return 'failed' in answer ? { socket, failed: answer.failed } : { socket, seen: answer }
  }

  /** Looked for anew each time: a runtime may start after us, and on another path than before. */
  async function there(): Promise<readonly string[]> {
    const found = await Promise.all(sockets.map(isThere))
    return sockets.filter((_, index) => found[index])
  }

  function own(): Promise<string | undefined> {
    return pod ??= ownPod(proc)
  }
}

interface Told {
  readonly socket: string
  readonly seen: readonly ContainerSeen[]
}

interface Silent {
  readonly socket: string
  readonly failed: string
}

function knows({ seen }: Told, pod: string | undefined): boolean {
  return seen.some((one) => one.pod === pod)
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(() => true, () => false)
}

/** Uid of the pod that this process is of. Undefined: of none. */
async function ownPod(proc: string): Promise<string | undefined> {
  const [own, host] = await Promise.all(['self', '1'].map((process) => readFile(join(proc, process, 'mountinfo'), 'utf8').catch(() => '')))
  const pod = podOfTable(own ?? '')
  // A machine may itself be a pod of another cluster.
  return pod === podOfTable(host ?? '') ? undefined : pod
}

/** Kubelet gives each container files of its pod's folder, whatever its runtime and its network. */
export function podOfTable(mountinfo: string): string | undefined {
  return /^\S+ \S+ \S+ \S*\/pods\/([^/ ]+)\/(?:etc-hosts \/etc\/hosts|containers\/\S+ \/dev\/termination-log) /m.exec(mountinfo)?.[1]
}
