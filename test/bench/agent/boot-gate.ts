// What the gate of the boot holds: its bundle as the shim starts it, registered and asked once, after some seconds.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { setTimeout as wait } from 'node:timers/promises'
import { installBootGate, shimName } from '../../../agent/boot-gate-install.ts'
import { configure, runtimeOf } from './gate.ts'
import { usageOf, type Usage } from './process.ts'

const settle = 10_000

/** `program`: its bundle; `folder`: where it may be installed. */
export async function weighBootGate(program: string, folder: string): Promise<Pick<Usage, 'rssMiB' | 'rssAnonMiB'>> {
  const plugins = join(folder, 'plugins')
  mkdirSync(plugins)
  writeFileSync(join(folder, 'gate.json'), '')
  await installBootGate({ program, node: execPath, folder, plugins, exemptNamespaces: ['kube-system'] })
  const child = spawn(join(plugins, shimName), [], { stdio: ['ignore', 'ignore', 'inherit', 'pipe'], env: { NRI_PLUGIN_NAME: 'holdfast', NRI_PLUGIN_IDX: '06', NRI_PLUGIN_SOCKET: '3' } })
  const ended = once(child, 'exit')
  try {
    const runtime = runtimeOf(child.stdio[3] as Socket) // 'pipe' beyond the first three is a pair of sockets
    await runtime.registered
    await configure(runtime)
    await wait(settle)
    const { rssMiB, rssAnonMiB } = usageOf(child.pid ?? 0)
    return { rssMiB, rssAnonMiB }
  } finally {
    child.kill('SIGKILL')
    await ended
  }
}
