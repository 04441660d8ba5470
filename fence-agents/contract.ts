// What every fence agent here has in common: it reads `key=value` lines on stdin as ClusterLabs programs do, does one
// action on one plug, and ends 0 only when that was verified. It imports nothing but Node, because it is started for each
// question and a slow start is paid at the worst moment.
import { AsyncLocalStorage } from 'node:async_hooks'
import { argv, env, exit, stderr, stdin, stdout } from 'node:process'
import { metadataOf } from './metadata.ts'

export interface AgentDescription {
  readonly name: string
  readonly says: string
  readonly vendor: string
  readonly parameters: readonly ParameterDescription[]
  /** Each resolves with what the device said, and rejects with a Failure, or with anything else that went wrong. */
  status(given: Given): Promise<DeviceWord>
  off(given: Given): Promise<DeviceWord>
  on(given: Given): Promise<DeviceWord>
  /** Outlets of the device and their names. Without it the device has one outlet. */
  list?(given: Given): Promise<readonly { readonly plug: string; readonly name: string }[]>
  /** Its outlets are few, and a status of each costs little: all are told in one run, `list-status`. */
  readonly tellsAll?: true
  /** Throws a Failure where the form of the parameters is wrong beyond what is required of each. Asks nothing of the device. */
  check?(given: Given): void
}

export interface ParameterDescription {
  readonly name: string
  readonly says: string
  readonly type: 'string' | 'integer' | 'boolean' | 'second'
  readonly required?: boolean
  readonly default?: string
  /** The old name, still understood. */
  readonly obsoletes?: string
  readonly short?: string
}

export interface DeviceWord {
  readonly state: 'on' | 'off' | 'unknown'
  readonly evidence: string
  /** The machine's UUID, if the device knows it: it proves that this path ends at this machine. */
  readonly machine?: string
  /** A GUID of its controller's own, which may be the machine's UUID and may not be: an equal one proves as much, and another one says nothing. */
  readonly controller?: string
  /** The machine's addresses, if the device knows them: where no UUID is told they are all that ties this path to a node. */
  readonly addresses?: readonly string[]
  readonly reason?: Reason
}

export type Reason = 'auth' | 'unreachable' | 'notfound' | 'privilege' | 'busy' | 'timeout' | 'config' | 'device'

/** What a person can do about it, where the message itself does not say. */
const advice: Readonly<Record<Reason, string>> = {
  auth: 'See the user and the password in the Secret that the template names.',
  unreachable: 'See whether address and port are right, whether the device has power, and what stands between it and the coordinator.',
  notfound: 'See whether plug= names something that this device has.',
  privilege: 'Give this user the right to switch, or name another user.',
  busy: 'Ask again in a minute: the device is at something else.',
  timeout: 'See why the device is slow; if it always is, give it more time.',
  config: 'Correct the ConfigMap of the method or of its template.',
  device: 'Look at the device itself: it answers, and not as its kind should.',
}

export class Failure extends Error {
  readonly reason: Reason
  constructor(reason: Reason, message: string) {
    super(message)
    this.reason = reason
  }
}

/** The parameters with their defaults, and the instant by which the program must have ended. */
export interface Given {
  /** A parameter that is required, or has a default. */
  text(name: string): string
  optional(name: string): string | undefined
  yes(name: string): boolean
  ms(name: string): number
  /** Milliseconds that are left for this run. */
  left(): number
}

const actions = ['on', 'off', 'status', 'monitor', 'metadata', 'validate-all', 'list', 'list-status'] as const
type Action = (typeof actions)[number]

/** Time that the program leaves itself to say why, before its runner ends it without a word. */
const lastWords = 300
const defaultDeadline = 30_000
const longestInput = 256 * 1024

/** The program: one call, answered out of this process. */
export async function runAgent(agent: AgentDescription): Promise<void> {
  // Counted from when the process began: a start that was slow must not eat up the time for the last words.
  const said = await answerCall(agent, { words: argv.slice(2), stdin, environment: env, beganAt: 0 })
  stderr.write(said.stderr)
  stdout.write(said.stdout)
  // Not before the words are out: an exit drops what a pipe has not taken yet.
  stderr.write('', () => stdout.write('', () => exit(said.exitCode)))
}

/** All that a program is given. */
export interface Call {
  /** What stands behind its name. */
  readonly words: readonly string[]
  readonly stdin: AsyncIterable<Buffer> | Iterable<Buffer>
  readonly environment: Environment
  /** By performance.now(); HOLDFAST_DEADLINE counts from here. */
  readonly beganAt: number
}

export type Environment = Readonly<Record<string, string | undefined>>

export interface CallAnswer {
  readonly exitCode: 0 | 1 | 2
  readonly stdout: string
  readonly stderr: string
}

/** What belongs to one call and to no other that is answered in the same process. */
const calls = new AsyncLocalStorage<{ readonly environment: Environment; readonly hidden: Set<string> }>()

export function answerCall(agent: AgentDescription, call: Call): Promise<CallAnswer> {
  return calls.run({ environment: call.environment, hidden: new Set() }, () => answerInTime(agent, call))
}

async function answerInTime(agent: AgentDescription, call: Call): Promise<CallAnswer> {
  // A coordinator that was killed cannot end us, so we end ourselves: an order that lands for ever later helps nobody.
  const deadline = Number(call.environment['HOLDFAST_DEADLINE'])
  const within = Number.isFinite(deadline) && deadline > lastWords ? deadline - lastWords : defaultDeadline
  const endsAt = call.beganAt + within
  const warnings: string[] = []
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<CallAnswer>((resolve) => {
    const tooLate = () => resolve(finish(1, { state: 'unknown', evidence: `no end within ${Math.round(within)} ms`, reason: 'timeout' }))
    timer = setTimeout(tooLate, Math.max(0, endsAt - performance.now())).unref()
  })
  try {
    const said = await Promise.race([answered(agent, call, endsAt, warnings), late])
    return { ...said, stderr: `${warnings.join('')}${said.stderr}` }
  } finally {
    clearTimeout(timer)
  }
}

async function answered(agent: AgentDescription, call: Call, endsAt: number, warnings: string[]): Promise<CallAnswer> {
  try {
    if (call.words.length > 0) throw new Failure('config', 'takes no arguments: write key=value lines to its stdin')
    const input = parseInput(await readAll(call.stdin), agent.parameters)
    for (const warning of input.warnings) warnings.push(`WARNING: ${warning}\n`)
    const given = givenFrom(input.values, agent.parameters, endsAt)
    return await act(agent, actionOf(input.actions), given)
  } catch (error) {
    // The edge of the program: whatever went wrong becomes exit 1 and a reason, and exit 1 is never a yes.
    const reason = error instanceof Failure ? error.reason : 'device'
    return finish(1, { state: 'unknown', evidence: error instanceof Error ? error.message : 'broke for no reason it could name', reason })
  }
}

async function act(agent: AgentDescription, action: Action, given: Given): Promise<CallAnswer> {
  switch (action) {
    case 'metadata':
      return well(metadataOf(agent, actions.filter((known) => (known !== 'list' || agent.list !== undefined) && (known !== 'list-status' || agent.tellsAll === true))))
    case 'validate-all':
      agent.check?.(needRequired(agent.parameters, given))
      return well('')
    case 'list':
      return well((await listed(agent, given)).map((outlet) => `${outlet.plug},${outlet.name}\n`).join(''))
    case 'list-status':
      return well(await told(agent, given))
    case 'monitor':
      if (agent.list !== undefined) {
        await listed(agent, given)
        return well('')
      }
      return tell(await agent.status(needRequired(agent.parameters, given)))
    case 'status':
      return tell(await agent.status(needRequired(agent.parameters, given)))
    case 'off': case 'on': {
      const word = await agent[action](needRequired(agent.parameters, given))
      return finish(word.state === action ? 0 : 1, word)
    }
  }
}

function well(said: string): CallAnswer {
  return { exitCode: 0, stdout: said, stderr: '' }
}

async function listed(agent: AgentDescription, given: Given): Promise<readonly { plug: string; name: string }[]> {
  if (agent.list === undefined) throw new Failure('config', `${agent.name} has one outlet and no list`)
  return agent.list(needRequired(agent.parameters.filter((parameter) => parameter.name !== 'plug'), given))
}

/** As ClusterLabs programs print it. An outlet whose status fails, or for which no time is left, is unknown. */
async function told(agent: AgentDescription, given: Given): Promise<string> {
  if (agent.tellsAll !== true) throw new Failure('config', `${agent.name} tells of one outlet at a time`)
  let lines = ''
  for (const { plug, name } of await listed(agent, given)) {
    const optional = (key: string): string | undefined => (key === 'plug' ? plug : given.optional(key))
    const own: Given = { ...given, optional, text: (key) => (key === 'plug' ? plug : given.text(key)) }
    const state = given.left() < leastForOne ? 'unknown' : await agent.status(own).then((word) => word.state, () => 'unknown' as const)
    lines += `${plug},${name.replaceAll(/[\p{Cc},]/gu, ' ')},${state.toUpperCase()}\n`
  }
  return lines
}

const leastForOne = 1_000

/** The environment of the call: the process's own is not looked at. */
export function environment(): Environment {
  return ownCall().environment
}

function ownCall() {
  const own = calls.getStore()
  if (own === undefined) throw new Error('nobody has called')
  return own
}

/** From here on the call never prints this: a cloud that refuses a request may quote what stood in it. */
export function neverPrint(secret: string): void {
  if (secret.length >= shortestSecret) ownCall().hidden.add(secret)
}

/** Shorter ones would take words apart that have nothing to do with them. */
const shortestSecret = 4

export function withoutSecrets(text: string): string {
  let shown = text
  for (const secret of ownCall().hidden) shown = shown.replaceAll(secret, '***')
  return shown
}

function tell(word: DeviceWord): CallAnswer {
  return finish(word.state === 'on' ? 0 : word.state === 'off' ? 2 : 1, word)
}

function finish(exitCode: 0 | 1 | 2, said: DeviceWord): CallAnswer {
  const word = { ...said, evidence: withoutSecrets(said.evidence) }
  const reason = word.reason ?? 'device'
  const failed = exitCode === 1
  const last = `holdfast ${JSON.stringify({ v: 1, ...word, ...(failed ? { advice: advice[reason] } : {}) })}\n`
  return {
    exitCode,
    stdout: failed ? last : `Status: ${word.state.toUpperCase()}\n${last}`,
    stderr: failed ? `ERROR: ${reason}: ${word.evidence}\n${advice[reason]}\n` : '',
  }
}

interface Parsed {
  readonly actions: readonly string[]
  readonly values: ReadonlyMap<string, string>
  readonly warnings: readonly string[]
}

/** As ClusterLabs programs read it: comments and blank lines are skipped, the last of two wins, `-` and `_` are equal, outer
 *  blanks and one pair of quotes are stripped, what is not known is warned of and ignored. */
export function parseInput(text: string, parameters: readonly ParameterDescription[]): Parsed {
  const known = new Map<string, string>()
  for (const { name, obsoletes = name } of parameters) known.set(obsoletes.toLowerCase(), name).set(name.toLowerCase(), name)
  const values = new Map<string, string>()
  const given: string[] = []
  const warnings: string[] = []
  for (const line of text.split('\n').map((raw) => raw.trim())) {
    if (line === '' || line.startsWith('#')) continue
    const at = line.indexOf('=')
    const key = at === -1 ? line : line.slice(0, at)
    const value = at === -1 ? '' : line.slice(at + 1).replace(/^"(.*)"$/s, '$1')
    const name = known.get(key.replaceAll('-', '_').toLowerCase())
    if (key === 'action') given.push(value)
    else if (name !== undefined) values.set(name, value)
    else if (key !== 'nodename') warnings.push(`${JSON.stringify(key.slice(0, 64))} is not a parameter and is ignored`)
  }
  return { actions: given, values, warnings }
}

/** Where ClusterLabs programs take a missing action for a reboot, ours do nothing. */
function actionOf(given: readonly string[]): Action {
  const [first, ...others] = given
  if (first === undefined) throw new Failure('config', 'no action= was given, and none is taken for granted')
  if (others.length > 0) throw new Failure('config', 'action= was given more than once')
  const action = actions.find((known) => known === first)
  if (action === undefined) throw new Failure('config', `${JSON.stringify(first.slice(0, 64))} is none of ${actions.join(', ')}`)
  return action
}

function givenFrom(values: ReadonlyMap<string, string>, parameters: readonly ParameterDescription[], endsAt: number): Given {
  const optional = (name: string) => values.get(name) ?? parameters.find((parameter) => parameter.name === name)?.default
  const text = (name: string) => {
    const value = optional(name)
    if (value === undefined || value === '') throw new Failure('config', `${name}= is missing`)
    return value
  }
  return {
    text,
    optional,
    yes: (name) => ['1', 'yes', 'on', 'true'].includes((optional(name) ?? '').toLowerCase()),
    ms(name) {
      const seconds = Number(text(name))
      if (!Number.isFinite(seconds) || seconds < 0 || seconds > 3_600) throw new Failure('config', `${name}= is not a number of seconds`)
      return seconds * 1_000
    },
    left: () => Math.max(0, endsAt - performance.now()),
  }
}

function needRequired(parameters: readonly ParameterDescription[], given: Given): Given {
  const missing = parameters.filter((parameter) => parameter.required === true && (given.optional(parameter.name) ?? '') === '')
  if (missing.length > 0) throw new Failure('config', `missing: ${missing.map((parameter) => `${parameter.name}=`).join(', ')}`)
  // Given a list, programs elsewhere were measured to switch the wrong outlet; here a list is refused.
  if (given.optional('plug')?.includes(',') === true) throw new Failure('config', 'plug= names more than one outlet')
  for (const parameter of parameters) if (parameter.type === 'second' && given.optional(parameter.name) !== undefined) given.ms(parameter.name)
  return given
}

async function readAll(stream: Call['stdin']): Promise<string> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of stream) {
    size += piece.length
    if (size > longestInput) throw new Failure('config', 'more input than any device needs')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}

/** Asks again and again until the device is where it was ordered to be. `want` is a word that was read, never a guess. */
export async function pollUntil(want: 'on' | 'off', given: Given, within: number, look: () => Promise<DeviceWord>, pause = pollPause): Promise<DeviceWord> {
  const until = performance.now() + Math.min(within, given.left())
  for (;;) {
    const word = await look()
    if (word.state === want) return word
    if (performance.now() + pause >= until) {
      return { ...word, state: 'unknown', evidence: `ordered ${want}, and still: ${word.evidence}`, reason: 'timeout' }
    }
    await new Promise((resolve) => { setTimeout(resolve, pause) })
  }
}

const pollPause = 250
