// What an agent that is told to end says of it: an upgrade and a shutdown send it the same signal. systemd has in its queue what takes the machine down, and at the
// end, when it ends what nobody else has ended (containers among it), it is another program and says so in its words. Kubelet writes down when its own orderly
// shutdown began, where one is configured: that is before systemd queues anything. Where systemd does not answer, the file tells by which it closes the door
// to people's logins as it goes down, and the one in which it keeps what was planned. Where none of them tells, it counts as a restart.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Goodbye } from '../core/beat.ts'
import type { Ms } from '../core/model.ts'
import { machineClock, withDeadline } from '../edge/clock.ts'
import { queuedJobs, systemdSocket, type Job } from './systemd-jobs.ts'
import { connectUnix } from './unix-stream.ts'

const readWithin: Ms = 500
/** It has hundreds of processes to end, and answers one question at a time. */
const toldWithin: Ms = 1_000

/** `run`: the host's, which a boot begins without anything of the one before. */
export async function whyItEnds({ kubeletRoot, proc, run }: { readonly kubeletRoot: string; readonly proc: string; readonly run: string }): Promise<Goodbye> {
  const files = [join(proc, '1/cmdline'), join(kubeletRoot, 'graceful_node_shutdown_state'), join(proc, 'stat'), join(run, 'nologin'), join(run, 'systemd/shutdown/scheduled')]
  const [jobs, [first = '', state = '', stat = '', nologin = '', planned = '']] = await Promise.all([
    queuedJobs((span) => connectUnix(join(run, systemdSocket), span), machineClock, toldWithin),
    // A disk that hangs must not cost it its goodbye.
    Promise.all(files.map((path) => withDeadline(machineClock, readWithin, '', () => readFile(path, 'utf8').catch(() => '')))),
  ])
  return atTheEnd(first) ?? queued(jobs ?? []) ?? (began(state, stat) || (jobs === undefined && closed(nologin)) ? plannedWay(planned) : 'restart')
}

/** How a machine goes down, in the words of systemd: its units and the last of its programs are named so. */
const ways: ReadonlyMap<string, Goodbye> = new Map([
  ['reboot', 'reboot'], ['kexec', 'reboot'], ['soft-reboot', 'reboot'], ['poweroff', 'shutdown'], ['halt', 'shutdown'], ['exit', 'shutdown'],
])

/** By the command line of process 1: `/lib/systemd/systemd-shutdown reboot --log-level …`. */
function atTheEnd(first: string): Goodbye | undefined {
  const [program = '', way = ''] = first.split('\0')
  return program.endsWith('/systemd-shutdown') ? ways.get(way) ?? 'shutdown' : undefined
}

function queued(jobs: readonly Job[]): Goodbye | undefined {
  const wanted = jobs.flatMap(({ unit, type }) => (type === 'start' && unit.endsWith('.target') ? [unit.slice(0, -'.target'.length)] : []))
  return wanted.map((way) => ways.get(way)).find((why) => why !== undefined)
}

/** In this boot: kubelet leaves the file where it is. Both times are this machine's own. */
export function began(state: string, procStat: string): boolean {
  const [, booted] = /^btime (\d+)$/m.exec(procStat) ?? []
  if (booted === undefined) return false
  try {
    const value: unknown = JSON.parse(state)
    if (typeof value !== 'object' || value === null || !('startTime' in value) || typeof value.startTime !== 'string') return false
    return Date.parse(value.startTime) >= Number(booted) * 1_000
  } catch {
    return false // none, or one that is being written: said to be a restart, and a silence after it is judged like every other
  }
}

/** The same file keeps people out while a system comes up, and while an administrator wants it so: other words stand in it then. It is there too in the last minutes before
 *  what was planned. */
function closed(nologin: string): boolean {
  return nologin.startsWith('System is going down.')
}

/** A shutdown that nobody planned ahead leaves no such file, and is said to be one for good: its devices are asked sooner, and say on. */
function plannedWay(planned: string): Goodbye {
  return ways.get(/^MODE=(\S+)$/m.exec(planned)?.[1] ?? '') ?? 'shutdown'
}
