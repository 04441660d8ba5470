// Runs one method: one program, one plug, one action. Whoever calls has written the attempt down before; here it is only
// carried out, and what comes back is a word, not a proof. One run at a time for each device address unless its configuration says otherwise,
// because devices mix up two sessions; an audit gives way to an incident, at once, since it only looks.
import { inputOf, offersOutlets, readEnd, readOutlets, reasonFor, sameKey, type AgentParameters, type AgentWord, type MethodAction, type Reason } from '../core/contract.ts'
import type { Boot, Ms, NodeName, PowerState, Reading } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import { timesOf, type ConfiguredMethod } from './fence-config.ts'
import { beyondOutlet, resolveParameters, type SecretLookup } from './fence-config-secret.ts'
import { deviceQueue, gaveWay } from './fence-queue.ts'
import type { ProgramEnd, Programs } from './host.ts'
import { redactor } from './redact.ts'

export interface FenceRunner {
  runMethod(run: MethodRun): Promise<MethodEnd>
  /** For an audit: what the method's device says of all its outlets, in one run. Undefined: its program tells of one at a time. */
  listOutlets(run: Pick<MethodRun, 'node' | 'method' | 'signal'>): Promise<OutletsSeen | undefined>
}

export interface OutletsSeen {
  /** Empty: it was not told. */
  readonly states: ReadonlyMap<string, PowerState>
  readonly startedAt: Ms
  readonly endedAt: Ms
}

export interface MethodRun {
  readonly node: NodeName
  readonly method: ConfiguredMethod
  readonly action: MethodAction
  readonly purpose: 'audit' | 'incident'
  readonly boot?: Boot
  readonly incident?: string
  readonly attempt?: string
  /** Ends the program's group at once: the lease is lost. */
  readonly signal?: AbortSignal
  /** Asked when the device is free: what has come to speak against the order while it waited for another node's. */
  against?(): string | undefined
}

export interface MethodEnd extends AgentWord {
  readonly startedAt: Ms
  readonly endedAt: Ms
  /** Whether a program ran at all. What was never started cannot land later. */
  readonly ran: boolean
  /** False: something of it still runs and cannot be ended. Nothing may be proven, and no order of ours may follow, while it does. */
  readonly gone: boolean
  /** An audit that an incident ended: it says nothing about the path and is to be asked again. */
  readonly gaveWay: boolean
}

export interface FenceHost {
  readonly programs: Programs
  readonly clock: Clock
  readonly secrets: SecretLookup
  readonly log: Log
}

/** A program that is asked what it is asks nobody. */
const metadataWithin: Ms = 10_000

export function fenceRunner(host: FenceHost): FenceRunner {
  const devices = deviceQueue(host.clock)
  /** By program, asked until it has said. */
  const offers = new Map<string, Promise<boolean>>()
  const offering = async (agent: string): Promise<boolean> => {
    const { exitCode, stdout } = await host.programs.run({ agent, stdin: 'action=metadata\n', environment: {}, within: metadataWithin })
    if (exitCode === undefined) offers.delete(agent)
    return exitCode === 0 && offersOutlets(stdout)
  }
  return {
    async listOutlets({ node, method, signal }) {
      const offered = offers.get(method.agent) ?? offering(method.agent)
      offers.set(method.agent, offered)
      if (!await offered) return undefined
      const startedAt = host.clock.now()
      const within = method.orderWithin
      const end = await devices.inTurn(method.device, method.atOnce ?? 1, 'audit', within, signal, (ending) => listNow(node, method, startedAt + within, ending, host))
      const states = end !== undefined && 'stdout' in end ? readOutlets(end) : new Map<string, PowerState>()
      host.log.debug({ node, method: method.name, agent: method.agent, device: method.device, outlets: states.size }, 'device asked for all its outlets')
      return { states, startedAt, endedAt: host.clock.now() }
    },
    async runMethod(run) {
      const within = run.action === 'status' ? run.method.statusWithin : timesOf(run.method, run.action).orderWithin
      const deadlineAt = host.clock.now() + within
      const work = (signal: AbortSignal) => runNow(run, deadlineAt, signal, host)
      const end = await devices.inTurn(run.method.device, run.method.atOnce ?? 1, run.purpose, within, run.signal, work)
      // That others had the device all the while says nothing of it.
      const ended = 'refused' in end ? { ...notRun(end.refused, host.clock, run.signal?.aborted ? undefined : 'busy'), gaveWay: run.purpose === 'audit' } : end
      logEnd(run, ended, host.log)
      return ended
    },
  }
}

/** A run of `status` as the core takes it. */
export function readingOf(run: Pick<MethodRun, 'method'>, end: MethodEnd): Reading {
  const { state, startedAt, endedAt, reason, evidence, machine, controller, addresses } = end
  const told = reason === '' ? evidence : `${reason}; ${evidence}`
  const of = { ...(machine === undefined ? {} : { machine }), ...(controller === undefined ? {} : { controller }), ...(addresses === undefined ? {} : { addresses }) }
  return { method: run.method.name, state: state === 'failed' ? 'unknown' : state, startedAt, endedAt, evidence: told, digest: run.method.digest, ...of }
}

/** Undefined: nothing was asked. */
async function listNow(node: NodeName, method: ConfiguredMethod, deadlineAt: Ms, signal: AbortSignal, { programs, clock, secrets }: FenceHost): Promise<ProgramEnd | undefined> {
  const resolved = resolveParameters(beyondOutlet(method.parameters), secrets)
  const input = 'missing' in resolved ? undefined : inputOf('list-status', resolved.parameters, node)
  const within = deadlineAt - clock.now()
  if (input === undefined || 'refused' in input || 'missing' in resolved || within <= 0) return undefined
  // Of what it prints only outlets and states are kept, and no log line bears them.
  return await programs.run({ agent: method.agent, stdin: input.text, files: resolved.files, environment: { HOLDFAST_NODE: node }, within, signal })
}

async function runNow(run: MethodRun, deadlineAt: Ms, signal: AbortSignal, host: FenceHost): Promise<MethodEnd> {
  const { method, action } = run
  const against = run.against?.()
  if (against !== undefined) return notRun(against, host.clock)
  const resolved = resolveParameters(action === 'on' ? method.on : method.parameters, host.secrets)
  if ('missing' in resolved) return notRun(resolved.missing.join('; '), host.clock, 'config')
  const parameters = { ...innerTimeout(method, action, resolved.parameters), ...resolved.parameters }
  const input = inputOf(action, parameters, run.node)
  if ('refused' in input) return notRun(input.refused.map((refusal) => refusal.says).join('; '), host.clock, 'config')
  const within = deadlineAt - host.clock.now()
  if (within <= 0) return notRun('its time was over before its turn came', host.clock, 'busy')
  const startedAt = host.clock.now()
  const end = await host.programs.run({ agent: method.agent, stdin: input.text, files: resolved.files, environment: environmentOf(run), within, signal })
  const clean = cleaned(end, redactor(resolved.secrets))
  const { state, reason: why, evidence } = readEnd(action, clean)
  const cut = signal.aborted && end.exitCode === undefined && end.gone
  const reason = cut ? `ended: ${typeof signal.reason === 'string' ? signal.reason : 'its caller has no use for it any more'}` : why
  const ran = end.refused === undefined
  return { state, reason, evidence, ...toldOf(readEnd(action, end), resolved.secrets), startedAt, endedAt: host.clock.now(), ran, gone: end.gone, gaveWay: cut && signal.reason === gaveWay }
}

/** Whose word it is, as the device wrote it: a UUID and addresses are no text that could hide a secret, but a piece of one may well be what a Secret
 *  holds, as the address of a device beside its node's. What is a secret as a whole is not told. */
function toldOf({ machine, controller, addresses }: AgentWord, secrets: readonly string[]): Pick<AgentWord, 'machine' | 'controller' | 'addresses'> {
  const known = new Set(secrets.map((secret) => secret.trim().toLowerCase()))
  return {
    ...(machine === undefined || known.has(machine) ? {} : { machine }),
    ...(controller === undefined || known.has(controller) ? {} : { controller }),
    ...(addresses === undefined || addresses.some((address) => known.has(address)) ? {} : { addresses }),
  }
}

/** Before anything reads them, so that no excerpt can cut a secret in half and so hide it. */
function cleaned(end: ProgramEnd, redact: (text: string) => string): ProgramEnd {
  const refused = end.refused === undefined ? {} : { refused: redact(end.refused) }
  return { ...end, stdout: redact(end.stdout), stderr: redact(end.stderr), ...refused }
}

/** ClusterLabs programs give up by a count of polls of their own; below our deadline, they say why. */
function innerTimeout(method: ConfiguredMethod, action: MethodAction, given: AgentParameters): Record<string, string> {
  if (!method.agent.startsWith('fence_') || action === 'status' || Object.keys(given).some((key) => sameKey(key) === 'power_timeout')) return {}
  return { power_timeout: String(Math.max(1, Math.floor(timesOf(method, action).orderWithin / 1_000) - 5)) }
}

function environmentOf(run: MethodRun): Record<string, string> {
  return {
    HOLDFAST_NODE: run.node,
    ...(run.boot === undefined ? {} : { HOLDFAST_BOOT_ID: run.boot }),
    ...(run.incident === undefined ? {} : { HOLDFAST_INCIDENT: run.incident }),
    ...(run.attempt === undefined ? {} : { HOLDFAST_ATTEMPT: run.attempt }),
  }
}

/** `type`: where it is none of its caller's. */
function notRun(why: string, clock: Clock, type?: Reason): MethodEnd {
  const now = clock.now()
  const says = `not started: ${why}`
  const reason = type === undefined ? says : reasonFor(type, says)
  return { state: 'unknown', reason, evidence: 'nothing was asked of the device', startedAt: now, endedAt: now, ran: false, gone: true, gaveWay: false }
}

function logEnd(run: MethodRun, end: MethodEnd, log: Log): void {
  const facts = {
    node: run.node, method: run.method.name, agent: run.method.agent, device: run.method.device, action: run.action, purpose: run.purpose,
    incident: run.incident, attempt: run.attempt, state: end.state, reason: end.reason, took: Math.round(end.endedAt - end.startedAt),
  }
  if (!end.gone) log.error(facts, 'a fence program cannot be ended')
  else if (run.action === 'status') log.debug(facts, 'device asked')
  else if (end.state === run.action) log.info(facts, 'order ended')
  else log.warn(facts, 'order did not end verified')
}
