// Fence programs of the simulated world: the ClusterLabs contract on stdin and in the exit code, in virtual time, against the
// world's devices. A program that is ended has sent what it has sent: the device carries an order out all the same.
//
// Kept from the common agents: `off` and `on` are verified by asking again until the device says so, or the power time-out is
// over (exit 1); `status` is 0 on, 2 off, 1 anything else; an outlet that the device does not know reads as off after an order,
// exit 0, which is the measured fault that makes exit 0 no proof; a list of plugs is refused.
import type { ProgramEnd, ProgramRun, Programs } from '../coordinator/host.ts'
import type { Ms } from '../core/model.ts'
import type { DeviceAnswer, PowerDevice } from './device.ts'
import type { Host, Network } from './network.ts'
import type { Process } from './process.ts'

const askAgainAfter: Ms = 500
const startsWithin: Ms = 40
const usualPowerTimeout: Ms = 20_000

/** Of the replica that runs as this process on this host. */
export function simulatedPrograms(
  network: Network, from: Host, process: Process, devices: ReadonlyMap<string, PowerDevice>,
  note: (what: string, facts: Readonly<Record<string, unknown>>) => void,
): Programs {
  // A chain that still ran when its process died starts no program.
  return { run: (run) => (process.alive() ? process.hold(runProgram(network, from, process, devices, run, note)) : new Promise(() => undefined)) }
}

type Words = Pick<ProgramEnd, 'exitCode' | 'stdout' | 'stderr'>

/** One for all, since an abort without a reason makes an exception with a stack each time, and nobody reads it. */
const over = new Error('the program is over')

async function runProgram(
  network: Network, from: Host, process: Process, devices: ReadonlyMap<string, PowerDevice>, run: ProgramRun,
  note: (what: string, facts: Readonly<Record<string, unknown>>) => void,
): Promise<ProgramEnd> {
  const { clock } = network
  const input = readInput(run.stdin)
  const asks = { replica: process.name, action: input.get('action') ?? '', ip: addressOf(input), plug: input.get('plug') ?? '' }
  note('program runs', { ...asks, agent: run.agent })
  const stopped = new AbortController()
  const stop = () => stopped.abort(over)
  run.signal?.addEventListener('abort', stop, { once: true })
  // A program of a process that died is ended with it: the pod's processes go together.
  const forget = process.onEnd(stop)
  const work = execute(network, from, devices, input, stopped.signal)
  const deadline = clock.wait(run.within, stopped.signal).then((): 'deadline' => 'deadline')
  const first = await Promise.race([work, deadline])
  run.signal?.removeEventListener('abort', stop)
  forget()
  const end: ProgramEnd = first === 'deadline' || stopped.signal.aborted
    ? { stdout: '', stderr: '', late: !stopped.signal.aborted, gone: true }
    : { ...first, late: false, gone: true }
  stopped.abort(over)
  note('program ended', { ...asks, exit: end.exitCode ?? (end.late ? 'deadline' : 'signal') })
  return end
}

async function execute(
  network: Network, from: Host, devices: ReadonlyMap<string, PowerDevice>, input: ReadonlyMap<string, string>, signal: AbortSignal,
): Promise<Words> {
  const { clock } = network
  await clock.wait(network.chance.between(startsWithin / 2, startsWithin), signal)
  const action = input.get('action')
  if (action === undefined || input.has('action twice')) return fails('Failed: action is not given exactly once')
  if (action === 'metadata') return { exitCode: 0, stdout: metadata, stderr: '' }
  if (action === 'validate-all') return { exitCode: 0, stdout: '', stderr: '' }
  const device = devices.get(addressOf(input))
  const plug = input.get('plug') ?? input.get('port') ?? '1'
  if (plug.includes(',')) return fails('Failed: one plug a run')
  if (device === undefined || !(await reached(network, from, device, signal))) return fails('Failed: Unable to connect/login to fencing device')
  switch (action) {
    case 'status': return statusWords(await device.read(plug))
    case 'monitor': return { exitCode: 0, stdout: '', stderr: '' }
    case 'list': return { exitCode: 0, stdout: [...device.plugs.keys()].map((name) => `${name},${name}\n`).join(''), stderr: '' }
    case 'list-status': return { exitCode: 0, stdout: (await Promise.all([...device.plugs.keys()].map(async (name) => `${name},${name},${listedAs(await device.read(name))}\n`))).join(''), stderr: '' }
    case 'off': case 'on': return await order(network, device, plug, action, Number(input.get('power_timeout') ?? usualPowerTimeout / 1_000) * 1_000, signal)
    default: return fails(`Failed: unknown action ${action}`)
  }
}

async function order(network: Network, device: PowerDevice, plug: string, to: 'on' | 'off', within: Ms, signal: AbortSignal): Promise<Words> {
  const before = await device.read(plug)
  if (signal.aborted) return fails('Failed: ended')
  if (before.says === to) return done(to, before)
  const taken = await device.order(plug, to)
  if (taken.says === 'refused') return fails(`Failed: the device refused to power ${to}`)
  const until = network.clock.now() + within
  for (let now = await device.read(plug); ; now = await device.read(plug)) {
    if (now.says === to) return done(to, now)
    // The measured mistake of the common agents: what cannot be found is taken for what is off.
    if (now.says === 'missing' && to === 'off') return done('off', now)
    if (signal.aborted || network.clock.now() >= until) return fails(`Failed: Timed out waiting to power ${to.toUpperCase()}`)
    await network.clock.wait(askAgainAfter, signal)
  }
}

/** A device that cannot be reached is a connection that times out; a cut on the way back is the same to the program. */
async function reached(network: Network, from: Host, { host }: PowerDevice, signal: AbortSignal): Promise<boolean> {
  await network.clock.wait(network.delay() * 2, signal)
  const ways = [network.reach(from, host, 'device'), network.reach(host, from, 'device')]
  if (ways.includes('refused')) return false
  if (!ways.includes('silent') && host.kernel === 'up') return true
  await network.clock.wait(5_000, signal)
  return false
}

function listedAs({ says }: DeviceAnswer): string {
  return says === 'on' || says === 'off' ? says.toUpperCase() : 'UNKNOWN'
}

function statusWords(answer: DeviceAnswer): Words {
  switch (answer.says) {
    case 'on': case 'off': return { exitCode: answer.says === 'on' ? 0 : 2, stdout: `Status: ${answer.says.toUpperCase()}\n${rich(answer.says, answer)}`, stderr: '' }
    case 'missing': return fails('Failed: Unable to obtain correct plug status or plug is not available')
    case 'refused': case 'done': case 'nothing': return fails('Failed: the device gave no status')
  }
}

function done(to: 'on' | 'off', answer: DeviceAnswer): Words {
  return { exitCode: 0, stdout: `Success: Powered ${to.toUpperCase()}\n${answer.says === to ? rich(to, answer) : ''}`, stderr: '' }
}

function fails(sentence: string): Words {
  return { exitCode: 1, stdout: '', stderr: `${sentence}\n` }
}

function rich(state: 'on' | 'off', answer: DeviceAnswer): string {
  const machine = 'machine' in answer ? answer.machine : undefined
  return `holdfast ${JSON.stringify({ v: 1, state, evidence: `the device says ${state}`, ...(machine === undefined ? {} : { machine }) })}\n`
}

function addressOf(input: ReadonlyMap<string, string>): string {
  return input.get('ip') ?? input.get('ipaddr') ?? ''
}

function readInput(stdin: string): ReadonlyMap<string, string> {
  const input = new Map<string, string>()
  for (const line of stdin.split('\n')) {
    const equals = line.indexOf('=')
    if (equals <= 0) continue
    const key = line.slice(0, equals)
    if (key === 'action' && input.has('action')) input.set('action twice', '')
    input.set(key, line.slice(equals + 1).replace(/^"(.*)"$/, '$1'))
  }
  return input
}

const metadata = '<?xml version="1.0" ?><resource-agent name="simulated" shortdesc="A device of the simulated world"><parameters/><actions><action name="list-status" /></actions></resource-agent>\n'
