#!/usr/bin/env node
// A person's own script, on the same contract, from where it lies on this machine. What it says of an order is not taken for
// the deed: it is asked for the state after, in a run of its own. Which scripts may be run is not for the ConfigMaps to say, in
// which the devices stand: it is a file that the operator puts beside the coordinator.
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, isAbsolute } from 'node:path'
import { Failure, environment, neverPrint, pollUntil, runAgent, type AgentDescription, type DeviceWord, type Given } from '../contract.ts'
import { lastWordOf } from '../last-word.ts'
import { runTool, type ToolEnd } from '../tool.ts'

const toldAsTheyAre = ['plug', 'ip', 'ipport', 'username', 'password'] as const

export const agent: AgentDescription = {
  name: 'exec',
  says: 'Runs a script of your own that keeps the contract of fence agents, and asks it for the state after each order. The script must stand in the file of allowed ones.',
  vendor: 'https://github.com/ClusterLabs/fence-agents/blob/main/doc/FenceAgentAPI.md',
  parameters: [
    { name: 'program', says: 'The script, by its whole path', type: 'string', required: true },
    { name: 'plug', says: 'Told to the script', type: 'string', required: true, obsoletes: 'port', short: 'n' },
    { name: 'ip', says: 'Told to the script', type: 'string', obsoletes: 'ipaddr', short: 'a' },
    { name: 'ipport', says: 'Told to the script', type: 'string', short: 'u' },
    { name: 'username', says: 'Told to the script', type: 'string', obsoletes: 'login', short: 'l' },
    { name: 'password', says: 'Told to the script', type: 'string', obsoletes: 'passwd', short: 'p' },
    { name: 'parameters', says: 'More for the script: KEY=VALUE, with blanks between them', type: 'string' },
    { name: 'shell_timeout', says: 'For one status', type: 'second', default: '8' },
    { name: 'power_timeout', says: 'For an order, and from its end until the state must have changed', type: 'second', default: '15' },
  ],
  check(given) {
    pathOf(given)
    linesOf(given)
  },
  status: (given) => status(given),
  off: (given) => order(given, 'off'),
  on: (given) => order(given, 'on'),
}

async function order(given: Given, want: 'on' | 'off'): Promise<DeviceWord> {
  const before = await status(given)
  if (before.state === want) return before
  const end = await script(given, want, given.ms('power_timeout'))
  if (end.code !== 0) throw failureOf(want, end)
  return pollUntil(want, given, given.ms('power_timeout'), async () => {
    try {
      return await status(given)
    } catch (error) {
      // A device may miss a question while it switches; the poll ends by its own time.
      return { state: 'unknown', evidence: error instanceof Error ? error.message : 'no answer' }
    }
  })
}

async function status(given: Given): Promise<DeviceWord> {
  const end = await script(given, 'status', given.ms('shell_timeout'))
  const said = lastWordOf(end.output, end.errors)
  const state = end.code === 0 ? 'on' : end.code === 2 ? 'off' : undefined
  if (state === undefined) throw failureOf('status', end)
  // A script that contradicts itself knows nothing.
  if (said.state !== undefined && said.state !== state) throw new Failure('device', `the script ends as for ${state} and says ${said.state}`)
  return { state, evidence: `exit ${end.code ?? ''}${said.evidence === '' ? '' : `: ${said.evidence}`}`, ...(said.machine === undefined ? {} : { machine: said.machine }) }
}

async function script(given: Given, action: 'on' | 'off' | 'status', patience: number): Promise<ToolEnd> {
  const within = Math.max(1, Math.min(patience, given.left()))
  const password = given.optional('password')
  if (password !== undefined) neverPrint(password)
  const stdin = [`action=${action}`, ...linesOf(given), ''].join('\n')
  return runTool(programOf(given), { words: [], within, stdin, more: { HOLDFAST_DEADLINE: String(Math.floor(within)) } })
}

function failureOf(action: string, end: ToolEnd): Failure {
  const { reason, evidence } = lastWordOf(end.output, end.errors)
  const how = end.code === null ? 'was ended by a signal' : `ends ${end.code}`
  return new Failure(reason ?? 'device', `the script ${how} on ${action}${evidence === '' ? '' : `: ${evidence}`}`)
}

/** The operator's word on what may be run here: one path a line. */
const allowedFile = '/etc/holdfast/exec-allowed'

function pathOf(given: Given): string {
  const file = given.text('program')
  if (!isAbsolute(file)) throw new Failure('config', 'program= is not a whole path')
  return file
}

function programOf(given: Given): string {
  const file = pathOf(given)
  const list = environment()['HOLDFAST_EXEC_ALLOWED'] ?? allowedFile
  if (!linesIn(list).includes(file)) throw new Failure('config', `program= is not in ${list}, where the operator writes down what may be run`)
  let real: string
  try {
    real = realpathSync(file)
  } catch {
    throw new Failure('config', 'program= names a file that is not there')
  }
  // Whoever may write the file, or put another one in its place, would be the one who decides.
  for (const one of [list, real, dirname(real)]) if ((statSync(one).mode & 0o022) !== 0) throw new Failure('config', `${one} may be written by others than its owner`)
  return real
}

function linesIn(file: string): readonly string[] {
  try {
    return readFileSync(file, 'utf8').split('\n').map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'))
  } catch {
    return [] // no such file: nothing is allowed
  }
}

/** What the script reads after its action. A value cannot begin a line of its own: no newline comes through stdin. */
function linesOf(given: Given): readonly string[] {
  const own = toldAsTheyAre.flatMap((name) => {
    const value = given.optional(name)
    return value === undefined || value === '' ? [] : [`${name}=${value}`]
  })
  const more = (given.optional('parameters') ?? '').split(/\s+/).filter((word) => word !== '')
  for (const word of more) {
    const [, key = ''] = /^([A-Za-z][A-Za-z0-9_-]{0,63})=/.exec(word) ?? []
    const plain = key.replaceAll('-', '_').toLowerCase()
    if (key === '' || plain === 'action' || toldAsTheyAre.some((name) => name === plain)) throw new Failure('config', `parameters=: ${JSON.stringify(word.slice(0, 64))} is not KEY=VALUE, or has a parameter of its own`)
  }
  return [...own, ...more]
}

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) await runAgent(agent)
