#!/usr/bin/env node
// Power by Network UPS Tools: one outlet of a device that upsd serves, or all that a UPS feeds. upsd tells what its driver
// read last, so a state is as old as the driver's `pollinterval` (for snmp-ups `pollfreq`); where upsd itself calls its
// knowledge stale, nothing is known.
import { Failure, pollUntil, runAgent, type AgentDescription, type DeviceWord, type Given } from '../contract.ts'
import { checkUpsd, overUpsd, type Upsd } from './upsd.ts'

export const agent: AgentDescription = {
  name: 'nut',
  says: 'Switches an outlet, or all that a UPS feeds, through upsd of Network UPS Tools. It cannot tell which machine hangs on it: the identity of such a path is proven by a drill.',
  vendor: 'https://networkupstools.org',
  parameters: [
    { name: 'ip', says: 'Address or name of the host of upsd', type: 'string', required: true, obsoletes: 'ipaddr', short: 'a' },
    { name: 'ipport', says: 'Its TCP port', type: 'integer', default: '3493', short: 'u' },
    { name: 'username', says: 'User of upsd.users', type: 'string', required: true, obsoletes: 'login', short: 'l' },
    { name: 'password', says: 'Password', type: 'string', required: true, obsoletes: 'passwd', short: 'p' },
    { name: 'ups', says: 'The device, as ups.conf names it', type: 'string', required: true },
    { name: 'plug', says: 'The outlet: its number, its name, or load for all that the UPS feeds', type: 'string', required: true, obsoletes: 'port', short: 'n' },
    { name: 'login_timeout', says: 'For connecting', type: 'second', default: '5' },
    { name: 'shell_timeout', says: 'For each answer', type: 'second', default: '5' },
    { name: 'power_timeout', says: 'From the order until the outlet must have changed', type: 'second', default: '20' },
  ],
  check: checkUpsd,
  status: (given) => overUpsd(given, async (upsd) => stateOf(upsd, await loadOn(upsd, given))),
  off: (given) => overUpsd(given, (upsd) => order(upsd, given, 'off')),
  on: (given) => overUpsd(given, (upsd) => order(upsd, given, 'on')),
  list: (given) => overUpsd(given, list),
  tellsAll: true,
}

/** `outlet.3`, or all of it. */
type Load = { readonly outlet: string } | 'all'

/** It is ordered even where it stands there already: a start that is pending is overridden by it. */
async function order(upsd: Upsd, given: Given, want: 'on' | 'off'): Promise<DeviceWord> {
  const load = await loadOn(upsd, given)
  await stateOf(upsd, load)
  await upsd.logIn()
  await give(upsd, load, want)
  return pollUntil(want, given, given.ms('power_timeout'), async () => {
    try {
      return await stateOf(upsd, load)
    } catch (error) {
      // The driver may lose its device for a moment while it switches; the poll ends by its own time.
      return { state: 'unknown', evidence: error instanceof Error ? error.message : 'no answer' }
    }
  })
}

/** By the command of that name; where there is none, by the variable, if it may be written. */
async function give(upsd: Upsd, load: Load, want: 'on' | 'off'): Promise<void> {
  const prefix = load === 'all' ? '' : `${load.outlet}.`
  if ((await upsd.commands()).has(`${prefix}load.${want}`)) return upsd.command(`${prefix}load.${want}`)
  const writable = load === 'all' ? new Set<string>() : await upsd.writable()
  const variable = ['switch', 'status'].map((name) => `${prefix}${name}`).find((name) => writable.has(name))
  if (variable === undefined) throw new Failure('config', `the driver of this device offers neither the command ${prefix}load.${want} nor a variable to write: it cannot switch it`)
  await upsd.set(variable, want)
}

async function stateOf(upsd: Upsd, load: Load): Promise<DeviceWord> {
  return load === 'all' ? stateOfAll(upsd) : stateOfOutlet(upsd, load.outlet)
}

async function stateOfOutlet(upsd: Upsd, outlet: string): Promise<DeviceWord> {
  const status = await upsd.variable(`${outlet}.status`)
  const evidence = `${outlet}.status is ${JSON.stringify(status)}`
  if (status !== 'on' && status !== 'off') return { state: 'unknown', evidence, reason: 'device' }
  for (const timer of ['shutdown', 'start']) {
    const seconds = Number(await optional(upsd, `${outlet}.timer.${timer}`) ?? '-1')
    if (seconds > 0) return { state: 'unknown', evidence: `${evidence}, but ${timer} is due in ${seconds} s`, reason: 'busy' }
  }
  return { state: status, evidence }
}

/** OFF together with BYPASS still feeds the load, past the UPS. */
async function stateOfAll(upsd: Upsd): Promise<DeviceWord> {
  const status = await upsd.variable('ups.status')
  const words = new Set(status.split(/\s+/))
  const evidence = `ups.status is ${JSON.stringify(status)}`
  if (words.has('BYPASS')) return { state: 'unknown', evidence, reason: 'device' }
  if (words.has('OFF')) return { state: 'off', evidence }
  if (words.has('OL') || words.has('OB')) return { state: 'on', evidence }
  return { state: 'unknown', evidence, reason: 'device' }
}

async function optional(upsd: Upsd, name: string): Promise<string | undefined> {
  try {
    return await upsd.variable(name)
  } catch (error) {
    if (error instanceof Failure && error.reason === 'notfound') return undefined // this device has no such timer
    throw error
  }
}

async function loadOn(upsd: Upsd, given: Given): Promise<Load> {
  const plug = given.text('plug')
  if (plug === 'load') return 'all'
  if (/^\d{1,5}$/.test(plug)) return { outlet: `outlet.${plug}` }
  const found = outletsOf(await upsd.variables()).filter(({ name }) => name === plug)
  const [first, second] = found
  if (first === undefined) throw new Failure('notfound', `no outlet is named ${JSON.stringify(plug)}`)
  if (second !== undefined) throw new Failure('config', `outlets ${found.map((outlet) => outlet.plug).join(' and ')} are both named ${JSON.stringify(plug)}`)
  return { outlet: `outlet.${first.plug}` }
}

async function list(upsd: Upsd): Promise<readonly { plug: string; name: string }[]> {
  const variables = await upsd.variables()
  const all = variables.has('ups.status') ? [{ plug: 'load', name: 'all that the UPS feeds' }] : []
  return [...outletsOf(variables), ...all]
}

function outletsOf(variables: ReadonlyMap<string, string>): readonly { plug: string; name: string }[] {
  const plugs = [...variables.keys()].flatMap((name) => /^outlet\.(\d{1,5})\.status$/.exec(name)?.[1] ?? [])
  return plugs.map((plug) => ({ plug, name: variables.get(`outlet.${plug}.desc`) ?? variables.get(`outlet.${plug}.name`) ?? '' }))
}

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) await runAgent(agent)
