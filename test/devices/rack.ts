// What a test of devices stands in: a folder, programs that end with us however we end, and fence agents asked as the
// coordinator asks them, ours and others' alike.
import * as assert from 'uvu/assert'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { env } from 'node:process'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'
import { readEnd, type AgentWord, type MethodAction } from '../../core/contract.ts'
import type { Programs } from '../../coordinator/host.ts'
import { machinePrograms } from '../../coordinator/programs.ts'
import { machineClock } from '../../edge/clock.ts'
import { startComponent, type Component } from '../control-plane/component.ts'
import { claimDirectory } from '../control-plane/directory.ts'
import { fabricLogin } from '../fence-agents/fabric-os.ts'
import type { LineServer } from './lines.ts'
import { discreet } from './overheard.ts'

export interface Rack {
  readonly folder: string
  readonly programs: Programs
  /** Whoever asks for this program gets this command run, with the same stdin. */
  wrap(program: string, command: readonly string[]): void
  start(name: string, command: readonly string[]): Promise<Component>
  /** Closed when the test is over. */
  keep<T extends Closing>(server: T): T
  ask(agent: string, action: MethodAction, parameters: Parameters): Promise<Answer>
  /** The same, with nobody who listens beside it: that costs a program of ours time, and no other. */
  time(agent: string, action: MethodAction, parameters: Parameters): Promise<Answer>
}

export type Closing = Pick<LineServer, 'vanish'>
export type Parameters = Readonly<Record<string, string>>

export interface Answer extends AgentWord {
  readonly exitCode: number | undefined
  /** Its runner had to end it. */
  readonly late: boolean
  readonly took: number
  readonly text: string
}

const patience = 60_000
/** Of every device here but one, which has its own; no text of a program of ours may hold it, and no argument list while one runs. */
export const secret = 'S3cret!'
const ours = fileURLToPath(new URL('../../fence-agents', import.meta.url))

/** Where install.sh puts what it makes. */
export function installed(name: string): string {
  return join(env['HOLDFAST_CACHE'] ?? join(env['HOME'] ?? '/root', '.cache/holdfast'), 'devices', name)
}

export async function inRack(work: (rack: Rack) => Promise<void>): Promise<void> {
  const directory = await claimDirectory(undefined)
  // In front of our own agents and those of fence-agents: a program here is the one that is run.
  const wrappers = join(directory.path, 'wrappers')
  const components: Component[] = []
  const servers: Closing[] = []
  const processes = machinePrograms({ folders: [wrappers, ours, '/usr/sbin/fence_*'], clock: machineClock })
  const programs = discreet(processes, [secret, fabricLogin.password])
  try {
    await work({
      folder: directory.path, programs,
      wrap(program, command) {
        mkdirSync(wrappers, { recursive: true })
        writeFileSync(join(wrappers, program), `#!/bin/sh\nexec ${command.join(' ')}\n`)
        chmodSync(join(wrappers, program), 0o755)
      },
      async start(name, [file = '', ...args]) {
        const component = await startComponent({ name, file, args, logFile: join(directory.path, `${name}.log`) })
        components.push(component)
        return component
      },
      keep(server) {
        servers.push(server)
        return server
      },
      ask: (agent, action, parameters) => askBy(programs, agent, action, parameters),
      time: (agent, action, parameters) => askBy(processes, agent, action, parameters),
    })
    assert.equal(programs.slips(), [], 'no secret is shown to anybody')
  } finally {
    await processes.close()
    // One that a test has stopped in its tracks hears no SIGTERM.
    for (const component of components.toReversed()) await component.crash()
    for (const server of servers) await server.vanish()
    await directory.release()
  }
}

async function askBy(programs: Programs, agent: string, action: MethodAction, parameters: Parameters): Promise<Answer> {
  const began = performance.now()
  const stdin = [`action=${action}`, ...Object.entries(parameters).map(([key, value]) => `${key}=${value}`), ''].join('\n')
  const end = await programs.run({ agent, stdin, environment: { PYTHONWARNINGS: 'ignore', HOLDFAST_DEADLINE: String(patience) }, within: patience })
  const took = Math.round(performance.now() - began)
  return { ...readEnd(action, end), exitCode: end.exitCode, late: end.late, took, text: `${end.stderr}${end.stdout}${end.refused ?? ''}`.trim() }
}

/** Waits for what must come, however slow the machine is; what does not come is named. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, within = patience): Promise<void> {
  const end = performance.now() + within
  while (!await holds()) {
    if (performance.now() > end) throw new Error(`${what}: not within ${within} ms`)
    await pause(25)
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => { setTimeout(resolve, ms) })
}
