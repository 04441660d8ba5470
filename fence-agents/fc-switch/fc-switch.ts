#!/usr/bin/env node
// The link of one machine to its storage, by a port of a Fibre Channel switch: Fabric OS by SSH, others by SNMP. It cuts a
// machine off from its disks, and the machine goes on running: this is isolation, never power.
import { Failure, pollUntil, runAgent, type AgentDescription, type DeviceWord, type Given } from '../contract.ts'
import { checkSnmp, overSnmp, snmpParameters, type SnmpDevice } from '../snmp.ts'
import { checkSsh, overSsh, sshParameters, type SshSession } from '../ssh.ts'
import { listByMib, orderByMib, statusByMib } from './fe-mib.ts'
import { portsIn, powerOf, type Port } from './ports.ts'

const shared: ReadonlySet<string> = new Set(['ip', 'ipport', 'username', 'password', 'shell_timeout'])

export const agent: AgentDescription = {
  name: 'fc-switch',
  says: 'Cuts a machine off from its storage, by a port of a Fibre Channel switch: Brocade Fabric OS by SSH, others by SNMP (FIBRE-CHANNEL-FE-MIB). The machine goes on running.',
  vendor: 'https://www.rfc-editor.org/rfc/rfc2837',
  parameters: [
    { name: 'ip', says: 'Address or name of the switch', type: 'string', required: true, obsoletes: 'ipaddr', short: 'a' },
    { name: 'ipport', says: 'Its port: 22 for SSH, 161 for SNMP', type: 'integer', short: 'u' },
    { name: 'protocol', says: 'ssh (Fabric OS), or snmp', type: 'string', default: 'ssh' },
    { name: 'plug', says: 'The port, as switchshow numbers it: PORT, or SLOT/PORT on a director; by SNMP MODULE.PORT', type: 'string', required: true, obsoletes: 'port', short: 'n' },
    { name: 'persistent', says: 'Fabric OS: keep the port off when the switch restarts', type: 'boolean', default: '1' },
    ...sshParameters,
    ...snmpParameters.filter(({ name }) => !shared.has(name)),
    { name: 'login_timeout', says: 'For the login by SSH', type: 'second', default: '8' },
    { name: 'shell_timeout', says: 'For each answer', type: 'second', default: '5' },
    { name: 'power_timeout', says: 'From the order until the port must have changed', type: 'second', default: '20' },
  ],
  check(given) {
    if (bySnmp(given)) return checkSnmp(withPort(given))
    portNumber(given)
    checkSsh(given)
    plugOf(given)
  },
  status: (given) => either(given, async (shell) => wordOf(await portOn(shell, given), given), (device) => statusByMib(device, given)),
  off: (given) => either(given, (shell) => order(shell, given, 'off'), (device) => orderByMib(device, given, 'off')),
  on: (given) => either(given, (shell) => order(shell, given, 'on'), (device) => orderByMib(device, given, 'on')),
  list: (given) => either(given, list, listByMib),
}

function either<T>(given: Given, shell: (session: SshSession) => Promise<T>, snmp: (device: SnmpDevice) => Promise<T>): Promise<T> {
  return bySnmp(given) ? overSnmp(withPort(given), snmp) : overSsh(given, portNumber(given), shell)
}

function bySnmp(given: Given): boolean {
  const protocol = given.text('protocol')
  if (protocol !== 'ssh' && protocol !== 'snmp') throw new Failure('config', 'protocol= is neither ssh nor snmp')
  return protocol === 'snmp'
}

/** The usual port is another one for each protocol. */
function withPort(given: Given): Given {
  const port = given.optional('ipport') ?? '161'
  return { ...given, text: (name) => (name === 'ipport' ? port : given.text(name)) }
}

function portNumber(given: Given): number {
  const text = given.optional('ipport') ?? '22'
  if (!/^\d{1,5}$/.test(text) || Number(text) < 1 || Number(text) > 65_535) throw new Failure('config', 'ipport= is not a port')
  return Number(text)
}

/** It goes into the switch's own shell as it stands, so nothing but numbers may stand there. */
function plugOf(given: Given): string {
  const plug = given.text('plug')
  if (!/^(\d{1,2}\/)?\d{1,4}$/.test(plug)) throw new Failure('config', 'plug= is neither PORT nor SLOT/PORT')
  return plug
}

/** A port that a person or another program cut for this run of the switch alone is cut once more, for good. */
async function order(shell: SshSession, given: Given, want: 'on' | 'off'): Promise<DeviceWord> {
  const before = await portOn(shell, given)
  if (powerOf(before, given.yes('persistent')) === want) return wordOf(before, given)
  const command = given.yes('persistent') ? { off: 'portCfgPersistentDisable', on: 'portCfgPersistentEnable' } : { off: 'portDisable', on: 'portEnable' }
  const said = await shell.run(`${command[want]} ${before.plug}`)
  if (/permission denied|not authorized|RBAC/i.test(said)) throw new Failure('privilege', `${command[want]}: the switch does not let this user do it`)
  return pollUntil(want, given, given.ms('power_timeout'), async () => {
    try {
      return wordOf(await portOn(shell, given), given)
    } catch (error) {
      // A switch may miss a question while it changes a port; the poll ends by its own time.
      return { state: 'unknown', evidence: error instanceof Error ? error.message : 'no answer' }
    }
  })
}

async function portOn(shell: SshSession, given: Given): Promise<Port> {
  const plug = plugOf(given)
  const [port, second] = (await portsOf(shell)).filter((one) => one.plug === plug)
  if (port === undefined) throw new Failure('notfound', `switchshow has no port ${plug}`)
  if (second !== undefined) throw new Failure('device', `switchshow has port ${plug} twice`)
  return port
}

async function portsOf(shell: SshSession): Promise<readonly Port[]> {
  const ports = portsIn(await shell.run('switchshow'))
  if (ports.length === 0) throw new Failure('device', 'what the switch prints for switchshow is no table of ports')
  return ports
}

function wordOf(port: Port, given: Given): DeviceWord {
  const state = powerOf(port, given.yes('persistent'))
  const evidence = `port ${port.plug}: ${port.state.slice(0, 20)} ${port.remark.slice(0, 60)}`.trimEnd()
  return state === 'unknown' ? { state, evidence, reason: 'device' } : { state, evidence }
}

async function list(shell: SshSession): Promise<readonly { plug: string; name: string }[]> {
  return (await portsOf(shell)).map(({ plug, state }) => ({ plug, name: state }))
}

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) await runAgent(agent)
