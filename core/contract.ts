// The ClusterLabs fence agent contract as data: what a program is told on stdin, and what its end means. The program says
// what it did; the core decides what is proven. Truth is the exit code alone. Text gives reasons and evidence, and a richer
// last line may weaken what the exit code says, never strengthen it: a program that contradicts itself is not believed.
import type { PowerState } from './model.ts'

export type MethodAction = 'off' | 'on' | 'status'
export type AgentAction = MethodAction | 'monitor' | 'metadata' | 'validate-all' | 'list' | 'list-status'

export type AgentParameters = Readonly<Record<string, string>>

export type AgentInput = { readonly text: string } | { readonly refused: readonly Refusal[] }

/** Why a parameter may not be given to a program. `says` is a sentence that never repeats the value: it may be a secret. */
export interface Refusal {
  readonly key: string
  readonly says: string
}

/** What one run said. `failed` is an order that the program itself calls failed: it may still land. */
export interface AgentWord {
  readonly state: PowerState | 'failed'
  /** Empty when the word is good. Else with what a person can do about it, where the program says so. */
  readonly reason: string
  readonly evidence: string
  /** The machine's UUID, where the device told it. */
  readonly machine?: string
  /** Its controller's own, which may be the machine's and may not be. */
  readonly controller?: string
  /** The machine's addresses, where the device told them. */
  readonly addresses?: readonly string[]
}

/** How a run of a program ended, as its runner saw it. */
export interface AgentEnd {
  /** Undefined: it was ended by a signal, by the deadline, or never started. */
  readonly exitCode?: number
  readonly stdout: string
  readonly stderr: string
  readonly late: boolean
  /** Nothing of it runs any more. */
  readonly gone: boolean
  /** Why it did not start, in a sentence. */
  readonly refused?: string
  /** Of which type that is. Undefined: `config`. */
  readonly refusedFor?: Reason
}

/** Why a run told nothing, or did nothing. `program`: it ended in no way that its contract knows, or with words that are not known here. */
export type Reason = 'auth' | 'unreachable' | 'notfound' | 'privilege' | 'busy' | 'timeout' | 'config' | 'device' | 'program'

/** What a person can do about it, where the program itself does not say. */
const advised: Readonly<Record<Reason, string>> = {
  auth: 'See the user and the password in the Secret that the template names.',
  unreachable: 'See whether address and port are right, whether the device has power, and what stands between it and the coordinator.',
  notfound: 'See whether plug= names something that this device has.',
  privilege: 'Give this user the right to switch, or name another user.',
  busy: 'See what else asks this device, and why it takes so long; concurrency= says how many runs it bears at once.',
  timeout: 'See why the device is slow; if it always is, give it more time.',
  config: 'Correct the ConfigMap of the method or of its template, or the Secret that it names.',
  device: 'Look at the device itself: it answers, and not as its kind should.',
  program: 'Read its own words, and try the program by itself with the same parameters.',
}

/** A reason that is no program's own: its type, what happened, what a person can do. */
export function reasonFor(reason: Reason, says: string): string {
  return `${reason}: ${says}. ${advised[reason]}`
}

/** `action=` stands first and exactly once, because the default of every ClusterLabs program is to reboot. */
export function inputOf(action: AgentAction, parameters: AgentParameters, nodeName?: string): AgentInput {
  const refused = refusalsOf(parameters)
  if (nodeName !== undefined && breaksLines(nodeName)) refused.push({ key: 'nodename', says: 'the node name has a line break or a NUL in it' })
  if (refused.length > 0) return { refused }
  const lines = [`action=${action}`, ...Object.entries(parameters).map(([key, value]) => `${key}=${quoted(value)}`)]
  if (nodeName !== undefined) lines.push(`nodename=${nodeName}`)
  return { text: `${lines.join('\n')}\n` }
}

export function readEnd(action: MethodAction, end: AgentEnd): AgentWord {
  const line = richLine(end.stdout)
  const evidence = evidenceOf(end, line)
  const of = { ...(line?.machine === undefined ? {} : { machine: line.machine }), ...(line?.controller === undefined ? {} : { controller: line.controller }), ...(line?.addresses === undefined ? {} : { addresses: line.addresses }) }
  const unknown = (reason: string): AgentWord => ({ state: 'unknown', reason, evidence, ...of })
  if (end.refused !== undefined) return unknown(reasonFor(end.refusedFor ?? 'config', `not started: ${end.refused}`))
  if (!end.gone) return unknown(reasonFor('program', 'something of it still runs and cannot be ended'))
  if (end.late) return unknown(reasonFor('timeout', 'ended at its deadline'))
  if (end.exitCode === undefined) return unknown(reasonFor('program', 'ended by a signal'))
  const state = stateOf(action, end.exitCode)
  if (state === 'unknown' || state === 'failed') return { state, reason: reasonOf(end, line), evidence, ...of }
  if (line?.state !== undefined && line.state !== state) {
    return unknown(reasonFor('program', `contradicts itself: exit ${end.exitCode} says ${state}, its last line says ${line.state}`))
  }
  return { state, reason: '', evidence, ...of }
}

/** Whether a program tells of all outlets of its device at once, with their states; a plain `list` tells none. */
export function offersOutlets(metadata: string): boolean {
  return /<action\s+name="list-status"/.test(metadata)
}

const mostOutlets = 4_096

function stateNamed(word = ''): PowerState {
  switch (word.toUpperCase()) {
    case 'ON': return 'on'
    case 'OFF': return 'off'
    default: return 'unknown'
  }
}

/** The end of a run of `list-status`: `outlet,name,ON` line by line, in capitals or, as ClusterLabs programs print it, without. What stands there twice, or in
 *  no such line, is not known. An outlet goes by its name as well, unless that is a number, which is always an outlet's own. */
export function readOutlets(end: AgentEnd): ReadonlyMap<string, PowerState> {
  const outlets = new Map<string, PowerState>()
  const names = new Map<string, PowerState>()
  if (end.refused !== undefined || !end.gone || end.late || end.exitCode !== 0) return outlets
  for (const line of end.stdout.split('\n').slice(0, mostOutlets)) {
    const [, outlet = '', name = '', word] = /^([^,]+),(.*),(ON|OFF|UNKNOWN)\s*$/i.exec(line) ?? []
    if (outlet === '') continue
    outlets.set(outlet, outlets.has(outlet) ? 'unknown' : stateNamed(word))
    if (name !== '' && !/^[\d.]+$/.test(name)) names.set(name, names.has(name) ? 'unknown' : stateNamed(word))
  }
  return new Map([...names, ...outlets])
}

function stateOf(action: MethodAction, exitCode: number): PowerState | 'failed' {
  switch (action) {
    case 'status': return exitCode === 0 ? 'on' : exitCode === 2 ? 'off' : 'unknown'
    case 'off': case 'on': return exitCode === 0 ? action : 'failed'
  }
}

const keyForm = /^[A-Za-z0-9_-]{1,64}$/
const longestValue = 8_192

/** ClusterLabs programs treat `-` and `_` in a name alike, so do we wherever two names are compared. */
export function sameKey(key: string): string {
  return key.toLowerCase().replaceAll('-', '_')
}

function refusalsOf(parameters: AgentParameters): Refusal[] {
  const refused: Refusal[] = []
  const seen = new Set<string>()
  for (const [key, value] of Object.entries(parameters)) {
    const says = refusalOf(key, value, parameters) ?? (seen.has(sameKey(key)) ? 'is given twice' : undefined)
    if (says !== undefined) refused.push({ key, says: `${key} ${says}` })
    seen.add(sameKey(key))
  }
  if (seen.has('plug') && seen.has('port')) refused.push({ key: 'port', says: 'plug and port both name the outlet' })
  return refused
}

function refusalOf(key: string, value: string, all: AgentParameters): string | undefined {
  if (!keyForm.test(key)) return 'is not a name of letters, digits, - and _'
  if (breaksLines(value)) return 'has a line break or a NUL in its value'
  if (value.length > longestValue) return `has a value longer than ${longestValue} characters`
  const name = sameKey(key)
  const forbidden = never.get(name) ?? (toolByPath.test(name) ? 'names a program by its path' : undefined)
  if (forbidden !== undefined) return forbidden
  if (name === 'method' && value.trim().toLowerCase() === 'cycle') return 'may not be cycle: the reset is sent, and nothing is verified'
  if (yesMeansDanger.has(name) && !isNo(value)) return yesMeansDanger.get(name)
  if (name === 'plug' || name === 'port') return plugRefusal(value, all)
  return undefined
}

/** Programs given a list of outlets were measured to switch the wrong one and to say it was done: one run, one plug. */
function plugRefusal(value: string, all: AgentParameters): string | undefined {
  const separator = Object.entries(all).find(([key]) => sameKey(key) === 'plug_separator')?.[1]
  if (value.trim() === '') return 'is empty'
  if (value.includes(',') || (separator !== undefined && separator !== '' && value.includes(separator))) return 'names more than one outlet'
  return undefined
}

/** Scripts that tell a password, and the tools that ClusterLabs' programs run: whoever writes a ConfigMap would choose what runs beside the coordinator. Of
 *  three that end so, one is of a URL, one a folder, and one a program on the other side. */
const toolByPath = /^(?!(api|store|vboxmanage)_).+_(path|script)$/

const never: ReadonlyMap<string, string> = new Map([
  ['action', 'is set by the coordinator alone'],
  ['option', 'is the old name of action, which is set by the coordinator alone'],
  ['nodename', 'is set by the coordinator alone'],
  ['delay', 'is not for a method: waiting is the coordinator\'s'],
  ['debug', 'writes what it is told, secrets included, into a file'],
  ['debug_file', 'writes what it is told, secrets included, into a file'],
  ['logfile', 'writes what it is told, secrets included, into a file'],
  ['openrc', 'names a script, which a shell would run'],
  // With one of these a ClusterLabs program prints its text and ends 0: an order would look done, a status would look on.
  ['help', 'makes the program end well without doing anything'],
  ['version', 'makes the program end well without doing anything'],
])

const yesMeansDanger: ReadonlyMap<string, string> = new Map([
  ['missing_as_off', 'would call a machine off that cannot be found'],
  ['disable_timeout', 'would let the program wait for ever'],
])

function isNo(value: string): boolean {
  return ['', '0', 'no', 'off', 'false'].includes(value.trim().toLowerCase())
}

function breaksLines(value: string): boolean {
  return /[\n\r\0]/.test(value)
}

/** Programs strip outer blanks and one pair of double quotes: what would be lost so gets a pair to lose. */
function quoted(value: string): string {
  return value !== value.trim() || /^".*"$/.test(value) ? `"${value}"` : value
}

interface RichLine {
  readonly state?: PowerState
  readonly evidence?: string
  readonly reason?: string
  readonly advice?: string
  readonly machine?: string
  readonly controller?: string
  readonly addresses?: readonly string[]
}

const longestRichLine = 4_096
const uuidForm = /^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$/

/** `holdfast {…}` as the last line of stdout. Anything malformed is as good as no line. */
function richLine(stdout: string): RichLine | undefined {
  const last = stdout.trimEnd().split('\n').at(-1)?.trim() ?? ''
  if (!last.startsWith('holdfast {') || last.length > longestRichLine) return undefined
  const said = parsed(last.slice('holdfast '.length))
  if (said === undefined) return undefined
  const state = said['state']
  const [machine, controller] = [uuidOf(said['machine']), uuidOf(said['controller'])]
  const evidence = textOf(said['evidence'])
  const reason = textOf(said['reason'])
  const advice = textOf(said['advice'])
  const addresses = addressesOf(said['addresses'])
  return {
    ...(state === 'on' || state === 'off' || state === 'unknown' ? { state } : {}),
    ...(evidence === undefined ? {} : { evidence }),
    ...(reason === undefined ? {} : { reason }),
    ...(advice === undefined ? {} : { advice }),
    ...(addresses.length === 0 ? {} : { addresses }),
    ...(machine === undefined ? {} : { machine }),
    ...(controller === undefined ? {} : { controller }),
  }
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    // An object's fields are unknown until each is looked at, which is what the caller does.
    return typeof value === 'object' && value !== null ? value as Readonly<Record<string, unknown>> : undefined
  } catch {
    return undefined // a broken line is no line: the exit code stands alone
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function uuidOf(value: unknown): string | undefined {
  const text = textOf(value)
  return text !== undefined && uuidForm.test(text) ? text.toLowerCase() : undefined
}

const addressForm = /^[\da-f]{1,4}[\da-f.:]{1,41}$/
const mostAddresses = 64

/** All of them or none: half a list would tell a machine that it is another one. */
function addressesOf(value: unknown): readonly string[] {
  if (!Array.isArray(value) || value.length > mostAddresses) return []
  const addresses = value.map((one) => (typeof one === 'string' ? one.toLowerCase() : ''))
  return addresses.every((address) => addressForm.test(address)) ? addresses : []
}

const longestExcerpt = 300

function evidenceOf(end: AgentEnd, line: RichLine | undefined): string {
  const said = line?.evidence ?? lastLine(end.stdout) ?? lastLine(end.stderr)
  const code = end.exitCode === undefined ? 'no exit code' : `exit ${end.exitCode}`
  return said === undefined ? code : `${code}: ${excerpt(said)}`
}

/** What the texts of known programs mean in truth; several say one thing for two causes, and then so does the reason. */
const meanings: readonly (readonly [RegExp, readonly Reason[], string])[] = [
  [/RAKP 2 HMAC is invalid/, ['auth'], ': wrong password'],
  [/unauthorized name/, ['auth'], ': unknown user'],
  [/Get Auth Capabilities error|Unable to establish (IPMI|LAN) v2/, ['unreachable'], ''],
  [/Unable to connect\/login to fencing device/, ['auth', 'unreachable'], ''],
  [/Unable to obtain correct plug status/, ['auth', 'notfound'], ': no such plug'],
  [/Timed out waiting to power/, ['timeout'], ': slow, ignored or not permitted; the order may still land'],
  [/Timeout: No Response/, ['unreachable', 'auth'], ': wrong community'],
  [/Error in packet/, ['privilege', 'notfound'], ': no such outlet'],
  [/Connection timed out|ECONNREFUSED|EHOSTUNREACH|ENETUNREACH/, ['unreachable'], ''],
  [/Traceback \(most recent call last\)/, ['program'], ': it broke'],
]

function reasonOf(end: AgentEnd, line: RichLine | undefined): string {
  const { name, types } = known(`${end.stderr}\n${end.stdout}`, line)
  const said = line?.evidence ?? lastLine(end.stderr) ?? lastLine(end.stdout) ?? `exit ${end.exitCode ?? 'unknown'} without a word`
  const advice = line?.advice === undefined ? types.map((type) => advised[type]) : [excerpt(line.advice)]
  const told = `${excerpt(name)} (${excerpt(said)})`
  return advice.length === 0 ? told : `${told}. ${advice.join(' ')}`
}

/** A program's own word for it goes before what its text says. */
function known(text: string, line: RichLine | undefined): { readonly name: string; readonly types: readonly Reason[] } {
  if (line?.reason !== undefined) return { name: line.reason, types: isReason(line.reason) ? [line.reason] : [] }
  const [, types, more] = meanings.find(([pattern]) => pattern.test(text)) ?? [undefined, ['program'] as const, '']
  return { name: `${types.join(', or ')}${more}`, types }
}

function isReason(word: string): word is Reason {
  return Object.hasOwn(advised, word)
}

/** Our own last line, and how ClusterLabs programs end whatever went wrong before. */
const noWord = /^holdfast \{|Please use '-h' for usage/

function lastLine(text: string): string | undefined {
  return text.split('\n').map((line) => line.trim()).findLast((line) => line !== '' && !noWord.test(line))
}

function excerpt(text: string): string {
  const plain = text.replace(/\p{Cc}+/gu, ' ').trim()
  return plain.length <= longestExcerpt ? plain : `${plain.slice(0, longestExcerpt)}…`
}
