// A folder, and programs run in it the way the coordinator runs them.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readEnd, type AgentWord, type MethodAction } from '../../core/contract.ts'
import type { ProgramEnd } from '../../coordinator/host.ts'
import { machinePrograms } from '../../coordinator/programs.ts'
import { machineClock } from '../../edge/clock.ts'

export interface AgentPlace {
  readonly folder: string
  /** What the program said to exactly this input. */
  raw(agent: string, stdin: string, within?: number, environment?: Environment): Promise<ProgramEnd>
  ask(agent: string, action: MethodAction, parameters: Environment, within?: number, environment?: Environment): Promise<AgentWord & { readonly late: boolean }>
}

type Environment = Readonly<Record<string, string>>

/** `folder` itself is allow-listed before our own agents, and stands first in the programs' PATH. */
export async function inPlace(work: (place: AgentPlace) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'fence-agents-test-'))
  const agents = fileURLToPath(new URL('../../fence-agents', import.meta.url))
  const programs = machinePrograms({ folders: [folder, agents], clock: machineClock, path: `${folder}:${process.env['PATH'] ?? ''}` })
  const raw = (agent: string, stdin: string, within = 20_000, environment: Environment = {}) => {
    return programs.run({ agent, stdin, environment: { ...environment, HOLDFAST_DEADLINE: String(within) }, within })
  }
  try {
    await work({
      folder,
      raw,
      async ask(agent, action, parameters, within, environment) {
        const lines = Object.entries(parameters).map(([key, value]) => `${key}=${value}\n`)
        const end = await raw(agent, `action=${action}\n${lines.join('')}nodename=n1\n`, within, environment)
        return { ...readEnd(action, end), late: end.late }
      },
    })
  } finally {
    await programs.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
