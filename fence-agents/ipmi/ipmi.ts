#!/usr/bin/env node
// Power by IPMI, through ipmitool. An accepted order is not an off machine (measured: accepted, and running on), so the
// status is asked until it says off. The password goes to ipmitool in its environment, never in its arguments.
import { spawn } from 'node:child_process'
import { Failure, environment, pollUntil, runAgent, type AgentDescription, type DeviceWord, type Given, type Reason } from '../contract.ts'

export const agent: AgentDescription = {
  name: 'ipmi',
  says: 'Switches a server by IPMI 2.0 over LAN, with ipmitool. Tells the GUID of its controller, which on many boards is the UUID of the machine: the path is proven to end at it then, and else by a drill.',
  vendor: 'https://github.com/ipmitool/ipmitool',
  parameters: [
    { name: 'ip', says: 'Address or name of the controller', type: 'string', required: true, obsoletes: 'ipaddr', short: 'a' },
    { name: 'ipport', says: 'Its UDP port', type: 'integer', default: '623', short: 'u' },
    { name: 'username', says: 'Login name', type: 'string', required: true, obsoletes: 'login', short: 'l' },
    { name: 'password', says: 'Password', type: 'string', required: true, obsoletes: 'passwd', short: 'p' },
    { name: 'cipher', says: 'Cipher suite: 17, or 3 for old controllers', type: 'integer', default: '17', short: 'C' },
    { name: 'privlvl', says: 'Privilege level of the session', type: 'string', default: 'administrator', short: 'L' },
    { name: 'login_timeout', says: 'For one answer of the controller', type: 'second', default: '5' },
    { name: 'power_timeout', says: 'From the order until the power must have changed', type: 'second', default: '20' },
  ],
  status: (given) => status(given),
  off: (given) => order(given, 'off'),
  on: (given) => order(given, 'on'),
}

/** ipmitool sends each request so often, a second apart; its own default would take longer than a fence may. */
const retries = '2'
const longestOutput = 64 * 1024

async function order(given: Given, want: 'on' | 'off'): Promise<DeviceWord> {
  const before = await power(given)
  if (before.state === want) return before
  await ipmitool(given, ['chassis', 'power', want])
  return pollUntil(want, given, given.ms('power_timeout'), async () => {
    try {
      return await power(given)
    } catch (error) {
      // A controller may miss a question while it switches; the poll ends by its own time.
      return { state: 'unknown', evidence: error instanceof Error ? error.message : 'no answer' }
    }
  })
}

/** An audit wants to know whose power this is, a fence only how it stands: of a machine that is off nothing more is asked. */
async function status(given: Given): Promise<DeviceWord> {
  const word = await power(given)
  return word.state === 'on' ? { ...word, ...await controllerOf(given) } : word
}

/** Not worth a status that is known already. */
const guidWithin = 2_000
/** As a board tells it of which nobody ever set one. */
const unset = /^[0-]+$|^[f-]+$/i

async function controllerOf(given: Given): Promise<Pick<DeviceWord, 'controller'>> {
  if (given.left() < 2 * guidWithin) return {}
  try {
    const guid = /^System GUID\s*:\s*([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})\b/im.exec(await ipmitool(given, ['mc', 'guid'], guidWithin))?.[1]
    return guid === undefined || unset.test(guid) ? {} : { controller: guid }
  } catch {
    return {} // many controllers know none, and the power was told
  }
}

async function power(given: Given): Promise<DeviceWord> {
  const text = await ipmitool(given, ['chassis', 'power', 'status'])
  const line = text.split('\n').map((one) => one.trim()).findLast((one) => one.startsWith('Chassis Power is '))
  if (line === 'Chassis Power is on') return { state: 'on', evidence: line }
  if (line === 'Chassis Power is off') return { state: 'off', evidence: line }
  return { state: 'unknown', evidence: line ?? 'ipmitool told no chassis power', reason: 'device' }
}

const levels: ReadonlySet<string> = new Set(['callback', 'user', 'operator', 'administrator'])

function sessionOf(given: Given): string[] {
  const privilege = given.text('privlvl').toLowerCase()
  if (!levels.has(privilege)) throw new Failure('config', `privlvl= is none of ${[...levels].join(', ')}`)
  for (const name of ['ipport', 'cipher']) if (!/^\d{1,5}$/.test(given.text(name))) throw new Failure('config', `${name}= is not a number`)
  for (const name of ['ip', 'username']) if (given.text(name).startsWith('-')) throw new Failure('config', `${name}= looks like an option`)
  return [
    '-I', 'lanplus', '-H', given.text('ip'), '-p', given.text('ipport'), '-U', given.text('username'), '-E',
    '-C', given.text('cipher'), '-L', privilege.toUpperCase(), '-N', '1', '-R', retries, '-v',
  ]
}

/** The tool stays in our process group: whoever ends us ends it too. */
async function ipmitool(given: Given, command: readonly string[], most = Infinity): Promise<string> {
  const within = Math.max(1, Math.min(given.ms('login_timeout') + Number(retries) * 1_000, given.left(), most))
  const child = spawn('ipmitool', [...sessionOf(given), ...command], {
    env: { PATH: environment()['PATH'], LANG: 'C', LC_ALL: 'C', IPMI_PASSWORD: given.text('password') }, stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  let errors = ''
  child.stdout.on('data', (piece: Buffer) => { output = (output + piece.toString()).slice(-longestOutput) })
  child.stderr.on('data', (piece: Buffer) => { errors = (errors + piece.toString()).slice(-longestOutput) })
  let late = false
  const timer = setTimeout(() => {
    late = true
    child.kill('SIGKILL')
  }, within)
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', (error) => {
      const missing = 'code' in error && error.code === 'ENOENT'
      reject(new Failure('config', missing ? 'ipmitool is not installed' : `ipmitool: ${error.message}`))
    })
    child.once('close', (ended) => resolve(ended))
  }).finally(() => clearTimeout(timer))
  if (late) throw new Failure('timeout', `ipmitool gave no answer within ${Math.round(within)} ms`)
  if (code === 0) return output
  throw failureOf(`${errors}\n${output}`)
}

/** The first that is found counts: whatever kept a session from being made, the tool says in the end that it could not make one. */
const causes: readonly (readonly [RegExp, Reason, string])[] = [
  [/RAKP 2 HMAC is invalid|RAKP 2 message indicates an error : invalid/i, 'auth', 'wrong password'],
  [/unauthorized name/i, 'auth', 'unknown user'],
  [/insufficient (privilege|role)|privilege level (cannot|insufficient)/i, 'privilege', 'the user may not do that'],
  [/no matching cipher suite|invalid (authentication|integrity|confidentiality) algorithm/i, 'config', 'the controller does not know this cipher suite'],
  [/Node busy/i, 'busy', 'the controller is busy'],
  [/Get Auth Capabilities error|Unable to establish (IPMI|LAN)/i, 'unreachable', 'the controller does not answer'],
]

function failureOf(text: string): Failure {
  const lines = text.split('\n').map((line) => line.trim())
  const cause = causes.find(([pattern]) => pattern.test(text))
  const said = lines.find((line) => cause?.[0].test(line)) ?? lines.findLast((line) => /error|fail|unable|invalid/i.test(line)) ?? 'no reason given'
  return cause === undefined ? new Failure('device', `ipmitool: ${said}`) : new Failure(cause[1], `${cause[2]} (ipmitool: ${said})`)
}

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) await runAgent(agent)
