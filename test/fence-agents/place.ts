// A folder, and our programs asked in it as the coordinator asks them: by the words that they read and the environment that
// they get. Most are answered in this process; what is claimed of a process is asked of one.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readEnd, type AgentWord, type MethodAction } from '../../core/contract.ts'
import type { ProgramEnd, ProgramRun, Programs } from '../../coordinator/host.ts'
import { findProgram, machinePrograms } from '../../coordinator/programs.ts'
import { machineClock } from '../../edge/clock.ts'
import { answerCall, type AgentDescription } from '../../fence-agents/contract.ts'

export interface AgentPlace extends Asking {
  readonly folder: string
  /** The same, each time of a program that is started for it. What is no program of ours is always started. */
  readonly started: Asking
  /** The same, as the coordinator has them. */
  readonly programs: Programs
}

export interface Asking {
  /** What the program said to exactly this input. */
  raw(agent: string, stdin: string, within?: number, environment?: Environment): Promise<ProgramEnd>
  ask(agent: string, action: MethodAction, parameters: Environment, within?: number, environment?: Environment): Promise<AgentWord & { readonly late: boolean }>
}

type Environment = Readonly<Record<string, string>>

const agents = fileURLToPath(new URL('../../fence-agents', import.meta.url))

/** The test runner keeps what Node made of a program for all that start it. */
function kept(): { readonly compiledFolder?: string } {
  const folder = process.env['NODE_COMPILE_CACHE']
  return folder === undefined ? {} : { compiledFolder: folder }
}

/** `folder` itself is allow-listed before our own agents, and stands first in the programs' PATH. */
export async function inPlace(work: (place: AgentPlace) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'fence-agents-test-'))
  const path = `${folder}:${process.env['PATH'] ?? ''}`
  const started = machinePrograms({ folders: [folder, agents], clock: machineClock, path, ...kept() })
  const here: Programs = {
    run(program) {
      const found = findProgram(program.agent, [folder, agents])
      return 'file' in found && dirname(dirname(found.file)) === agents ? answeredHere(found.file, program, path) : started.run(program)
    },
  }
  try {
    await work({ folder, ...askingOf(here), started: askingOf(started), programs: started })
  } finally {
    await started.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function askingOf(programs: Programs): Asking {
  const raw: Asking['raw'] = (agent, stdin, within = 20_000, environment = {}) => {
    return programs.run({ agent, stdin, environment: { ...environment, HOLDFAST_DEADLINE: String(within) }, within })
  }
  return {
    raw,
    async ask(agent, action, parameters, within, environment) {
      const lines = Object.entries(parameters).map(([key, value]) => `${key}=${value}\n`)
      const end = await raw(agent, `action=${action}\n${lines.join('')}nodename=n1\n`, within, environment)
      return { ...readEnd(action, end), late: end.late }
    },
  }
}

/** Our programs, without a process for each. */
export const programsHere: Programs = { run: (program) => answeredHere(join(agents, program.agent, `${program.agent}.ts`), program, process.env['PATH'] ?? '') }

async function answeredHere(file: string, { stdin, environment, within }: ProgramRun, path: string): Promise<ProgramEnd> {
  const { agent } = await import(file) as { readonly agent: AgentDescription } // as each of our programs has it
  const late = new AbortController()
  const answer = answerCall(agent, { words: [], stdin: [Buffer.from(stdin)], environment: { ...environment, PATH: path, LANG: 'C', LC_ALL: 'C' }, beganAt: performance.now() })
  try {
    return await Promise.race([
      answer.then((said) => ({ ...said, late: false, gone: true })),
      machineClock.wait(within, late.signal).then(() => ({ stdout: '', stderr: '', late: true, gone: true })),
    ])
  } finally {
    late.abort()
  }
}
