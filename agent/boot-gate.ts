// The gate before there is an agent: a program of its own in the runtime's plugin folder, which starts it before it serves its first call. It asks
// nobody. It reads this boot's state, as the agent leaves it on disk (agent/gate.ts), and until that says open it refuses what the
// agent's gate would refuse of a boot that nobody has accepted. Where its own bundle is gone it was uninstalled, and lets go.
//
// `boot-gate.mjs FOLDER`: the plugin; `boot-gate.mjs install FOLDER PLUGINS NAMESPACES`: puts it there (agent/boot-gate-install.ts).
import { access, readFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import { join } from 'node:path'
import process, { argv, env, exit } from 'node:process'
import { admit, type Gate } from '../core/gate.ts'
import type { Boot, Ms } from '../core/model.ts'
import { machineClock } from '../edge/clock.ts'
import { silentLog } from '../edge/log.ts'
import { installBootGate, settingsFile } from './boot-gate-install.ts'
import { gateMemory, stateIn } from './gate-memory.ts'
import { readMachine } from './machine.ts'
import { speakNri } from './nri.ts'
import { streamOf } from './unix-stream.ts'

/** What is read while it is shut holds pods up; open, only a leader shuts it again, by the agent's own gate first. */
const lookEvery: Readonly<Record<'shut' | 'open', Ms>> = { shut: 250, open: 2_000 }

if (import.meta.main) {
  const [word = '', ...rest] = argv.slice(2)
  if (word === 'install') await install(rest)
  else await serve(word)
}

/** A node without it is better than one without its agent, which starts after this. */
async function install([folder = '', plugins = '', namespaces = '']: readonly string[]): Promise<void> {
  await installBootGate({ program: argv[1] ?? '', node: process.execPath, folder, plugins, exemptNamespaces: namespaces.split(',') })
    .catch((error: unknown) => console.error(`holdfast: the gate of the boot is not installed: ${String(error)}`))
}

async function serve(folder: string): Promise<void> {
  const look = await looker(folder, argv[1] ?? '')
  let seen = await look()
  if (seen === 'uninstalled') exit(0)
  // The runtime lets go of a plugin that does not register at once.
  const stream = streamOf(new Socket({ fd: Number(env['NRI_PLUGIN_SOCKET'] ?? '3') }))
  const plugin = speakNri(stream, {
    clock: machineClock, log: silentLog, index: env['NRI_PLUGIN_IDX'] ?? '06',
    judge: (pod) => (seen === 'uninstalled' ? { admit: true, because: 'open' } : admit(seen.gate, pod, { namespaces: seen.exemptNamespaces, tolerating: new Set() })),
    serving: () => undefined, ended: () => exit(0),
  })
  for (;;) {
    await machineClock.wait(lookEvery[seen !== 'uninstalled' && seen.gate.open ? 'open' : 'shut'])
    seen = await look()
    if (seen === 'uninstalled') plugin.close('uninstalled')
  }
}

export interface BootSeen {
  readonly gate: Gate
  readonly exemptNamespaces: ReadonlySet<string>
}

/** What stands on disk of this boot, asked again and again. */
export async function looker(folder: string, program: string, proc = '/proc'): Promise<() => Promise<BootSeen | 'uninstalled'>> {
  const boot = await bootRead(proc)
  return async () => {
    if (!await access(program).then(() => true, () => false)) return 'uninstalled'
    const [state, settings] = await Promise.all([join(folder, gateMemory), settingsFile(folder)].map((file) => readFile(file, 'utf8').catch(() => undefined)))
    return { gate: gateFor(boot, state), exemptNamespaces: new Set(namespacesIn(settings)) }
  }
}

/** The same words as the agent's: of the machine, and of its process 1. */
async function bootRead(proc: string): Promise<Boot | undefined> {
  const files: Readonly<Record<string, string>> = { 'boot-id': join(proc, 'sys/kernel/random/boot_id'), 'pid-1-stat': join(proc, '1/stat'), uptime: join(proc, 'uptime') }
  const machine = await readMachine({ clock: machineClock, read: async (file) => (files[file] === undefined ? undefined : readFile(files[file], 'utf8').catch(() => undefined)) })
  return machine?.boot
}

function gateFor(boot: Boot | undefined, state: string | undefined): Gate {
  const known = stateIn(state)
  if (boot === undefined) return { open: false, reason: 'holdfast: this node starts nothing: which boot of the machine this is cannot be read' }
  if (known?.boot === boot && known.gate === 'open') return { open: true, boot }
  return { open: false, reason: `holdfast: this node starts nothing yet: its agent has not ${known?.boot === boot ? 'opened its gate again' : 'opened the gate of this boot'}` }
}

function namespacesIn(text: string | undefined): readonly string[] {
  try {
    const value: unknown = JSON.parse(text ?? 'null')
    const told = typeof value === 'object' && value !== null && 'exemptNamespaces' in value ? value.exemptNamespaces : []
    return Array.isArray(told) ? told.filter((name) => typeof name === 'string') : []
  } catch {
    return [] // cut short: nobody is exempt
  }
}
