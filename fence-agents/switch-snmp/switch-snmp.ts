#!/usr/bin/env node
// The link of one machine, by a port of its switch (IF-MIB, RFC 2863). What is ordered is ifAdminStatus, what is so is
// ifOperStatus, and a port is off only when both say down: a switch was measured to answer *down* while frames still went
// through. It cuts a machine off, and the machine goes on running: this is isolation, never power.
import { Failure, pollUntil, runAgent, type AgentDescription, type DeviceWord, type Given } from '../contract.ts'
import { checkSnmp, overSnmp, snmpParameters, type SnmpDevice, type SnmpValue } from '../snmp.ts'

export const agent: AgentDescription = {
  name: 'switch-snmp',
  says: 'Cuts a machine off from its network, by a port of a switch and SNMP (IF-MIB). The machine goes on running.',
  vendor: 'https://www.rfc-editor.org/rfc/rfc2863',
  parameters: [
    ...snmpParameters,
    { name: 'plug', says: 'The port: its name (ifName, else ifDescr), or its ifIndex, which may change when the switch restarts', type: 'string', required: true, obsoletes: 'port', short: 'n' },
    { name: 'power_timeout', says: 'From the order until the port must have changed', type: 'second', default: '20' },
  ],
  check: checkSnmp,
  status: (given) => overSnmp(given, async (device) => stateOf(device, await portOn(device, given))),
  off: (given) => overSnmp(given, (device) => order(device, given, 'off')),
  on: (given) => overSnmp(given, (device) => order(device, given, 'on')),
  list: (given) => overSnmp(given, list),
  tellsAll: true,
}

const interfaces = '1.3.6.1.2.1.2.2.1'
const descr = `${interfaces}.2`
const admin = `${interfaces}.7`
const oper = `${interfaces}.8`
const ifName = '1.3.6.1.2.1.31.1.1.1.1'

const adminNumber = { on: 1, off: 2 } as const
const adminWords: ReadonlyMap<number, string> = new Map([[1, 'up'], [2, 'down'], [3, 'testing']])
const operWords: ReadonlyMap<number, string> = new Map([
  [1, 'up'], [2, 'down'], [3, 'testing'], [4, 'unknown'], [5, 'dormant'], [6, 'notPresent'], [7, 'lowerLayerDown'],
])

async function order(device: SnmpDevice, given: Given, want: 'on' | 'off'): Promise<DeviceWord> {
  const index = await portOn(device, given)
  const before = await stateOf(device, index)
  if (before.state === want) return before
  await device.set(`${admin}.${index}`, adminNumber[want])
  return pollUntil(want, given, given.ms('power_timeout'), async () => {
    try {
      return await stateOf(device, index)
    } catch (error) {
      // One lost answer while the switch changes a port is common; the poll ends by its own time.
      return { state: 'unknown', evidence: error instanceof Error ? error.message : 'no answer' }
    }
  })
}

/** On is that it is allowed to carry frames: whether the machine at its other end is there to send any is another question. */
async function stateOf(device: SnmpDevice, index: string): Promise<DeviceWord> {
  const [allowed, carries, name] = await device.get([`${admin}.${index}`, `${oper}.${index}`, `${descr}.${index}`])
  const port = `port ${index}${name?.is === 'text' ? ` ${JSON.stringify(name.value)}` : ''}`
  const wanted = wordOf(allowed, adminWords, `${port}: ifAdminStatus`)
  const real = wordOf(carries, operWords, `${port}: ifOperStatus`)
  const evidence = `${port}: admin ${wanted}, oper ${real}`
  if (wanted === 'up') return { state: 'on', evidence }
  if (wanted === 'down' && real === 'down') return { state: 'off', evidence }
  return { state: 'unknown', evidence, reason: 'busy' }
}

function wordOf(value: SnmpValue | undefined, words: ReadonlyMap<number, string>, what: string): string {
  if (value === undefined || value.is === 'nothing') throw new Failure('notfound', `${what}: there is no such port (${value?.value ?? 'no answer to this'})`)
  const word = value.is === 'number' ? words.get(value.value) : undefined
  if (word === undefined) throw new Failure('device', `${what} is ${value.is === 'number' ? value.value : value.is}, which IF-MIB does not know`)
  return word
}

async function portOn(device: SnmpDevice, given: Given): Promise<string> {
  const plug = given.text('plug')
  if (/^\d{1,10}$/.test(plug)) return plug
  const found = indexesOf(await device.below(ifName), plug)
  const indexes = found.length > 0 ? found : indexesOf(await device.below(descr), plug)
  const [first, second] = indexes
  if (first === undefined) throw new Failure('notfound', `no port is named ${JSON.stringify(plug)}`)
  if (second !== undefined) throw new Failure('config', `ports ${indexes.join(' and ')} are both named ${JSON.stringify(plug)}`)
  return first
}

function indexesOf(names: ReadonlyMap<string, SnmpValue>, wanted: string): readonly string[] {
  return [...names].filter(([, name]) => name.is === 'text' && name.value === wanted).map(([index]) => index)
}

async function list(device: SnmpDevice): Promise<readonly { plug: string; name: string }[]> {
  const [names, descriptions] = [await device.below(ifName), await device.below(descr)]
  if (descriptions.size === 0) throw new Failure('notfound', 'the device has no ports in IF-MIB')
  return [...descriptions].map(([plug, said]) => ({ plug, name: String((names.get(plug) ?? said).value) }))
}

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) await runAgent(agent)
