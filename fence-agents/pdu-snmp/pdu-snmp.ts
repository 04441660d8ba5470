#!/usr/bin/env node
// Power by an outlet of a power strip, over SNMP. Off is a number that the strip itself gives for off, with no command
// under way: an outlet in the midst of a reboot reads off too, for the few seconds until it is on again. That there is no
// such outlet, a text, an unknown number or silence is never off.
import { Failure, pollUntil, runAgent, type AgentDescription, type DeviceWord, type Given } from '../contract.ts'
import { checkSnmp, overSnmp, snmpParameters, type SnmpDevice, type SnmpValue } from '../snmp.ts'
import { tableGiven, tableOfDevice, type OutletTable } from './outlets.ts'

export const agent: AgentDescription = {
  name: 'pdu-snmp',
  says: 'Switches an outlet of a power strip by SNMP: APC, Eaton, Raritan, or any other by its OIDs. It cannot tell which machine hangs on the outlet: the identity of such a path is proven by a drill.',
  vendor: 'https://www.rfc-editor.org/rfc/rfc3416',
  parameters: [
    ...snmpParameters,
    { name: 'plug', says: 'The outlet: its number, UNIT.NUMBER where several strips hang on one controller, or its name', type: 'string', required: true, obsoletes: 'port', short: 'n' },
    { name: 'model', says: 'auto (ask the device), apc-rpdu, apc-rpdu2, apc-masterswitch, eaton, eaton-managed, raritan or generic', type: 'string', default: 'auto' },
    { name: 'power_timeout', says: 'From the order until the outlet must have changed', type: 'second', default: '20' },
    { name: 'state_oid', says: 'generic: the column of the state, to which the plug is added', type: 'string' },
    { name: 'state_on', says: 'generic: the number of on', type: 'integer', default: '1' },
    { name: 'state_off', says: 'generic: the number of off', type: 'integer', default: '2' },
    { name: 'order_on_oid', says: 'generic: the column for switching on', type: 'string' },
    { name: 'order_on', says: 'generic: what is written there', type: 'integer', default: '1' },
    { name: 'order_off_oid', says: 'generic: the column for switching off', type: 'string' },
    { name: 'order_off', says: 'generic: what is written there', type: 'integer', default: '2' },
    { name: 'name_oid', says: 'generic: the column of the names, if there is one', type: 'string' },
  ],
  check(given) {
    checkSnmp(given)
    tableGiven(given)
  },
  status: (given) => overSnmp(given, async (device) => stateOf(device, await outletOn(device, given))),
  off: (given) => overSnmp(given, (device) => order(device, given, 'off')),
  on: (given) => overSnmp(given, (device) => order(device, given, 'on')),
  list: (given) => overSnmp(given, (device) => list(device, given)),
  tellsAll: true,
}

const sysObjectID = '1.3.6.1.2.1.1.2.0'

interface Outlet {
  readonly table: OutletTable
  readonly index: string
}

/** It is ordered even where the outlet stands there already: what is pending, and would switch it back, is overridden by it. */
async function order(device: SnmpDevice, given: Given, want: 'on' | 'off'): Promise<DeviceWord> {
  const outlet = await outletOn(device, given)
  // Before anything is written: that the outlet is there, and its state is a number, shows that these are the right columns.
  await stateOf(device, outlet)
  const { column, value } = outlet.table[want]
  await device.set(`${column}.${outlet.index}`, value)
  return pollUntil(want, given, given.ms('power_timeout'), async () => {
    try {
      return await stateOf(device, outlet)
    } catch (error) {
      // A lost answer, or a strip whose agent starts anew and knows no outlets yet: the poll ends by its own time.
      return { state: 'unknown', evidence: error instanceof Error ? error.message : 'no answer' }
    }
  })
}

async function stateOf(device: SnmpDevice, { table, index }: Outlet): Promise<DeviceWord> {
  const asked = [table.state, table.pending?.column, table.name].filter((column) => column !== undefined)
  const answers = await device.get(asked.map((column) => `${column}.${index}`))
  const answerOf = (column: string | undefined): SnmpValue => (column === undefined ? undefined : answers[asked.indexOf(column)]) ?? missing
  const [state, pending, name] = [answerOf(table.state), answerOf(table.pending?.column), answerOf(table.name)]
  const outlet = `outlet ${index}${name.is === 'text' && name.value !== '' ? ` ${JSON.stringify(name.value)}` : ''}`
  if (state.is === 'nothing') throw new Failure('notfound', `the device has no outlet ${index} (${state.value})`)
  if (state.is !== 'number') throw new Failure('device', `${outlet}: its state is no number but ${state.is === 'other' ? state.value : state.is}`)
  const word = table.states.get(state.value)
  if (word === undefined) return { state: 'unknown', evidence: `${outlet}: state ${state.value}, which is neither on nor off`, reason: 'device' }
  if (word === 'changing') return { state: 'unknown', evidence: `${outlet}: state ${state.value}, a change is under way`, reason: 'busy' }
  if (table.pending !== undefined && pending.is !== 'nothing' && !(pending.is === 'number' && pending.value === table.pending.none)) {
    return { state: 'unknown', evidence: `${outlet} reads ${word}, but a command is pending`, reason: 'busy' }
  }
  return { state: word, evidence: `${outlet} reads ${word} (${state.value})` }
}

const missing: SnmpValue = { is: 'nothing', value: 'no answer to this' }

async function outletOn(device: SnmpDevice, given: Given): Promise<Outlet> {
  const table = await tableOn(device, given)
  const plug = given.text('plug')
  if (/^\d{1,9}(\.\d{1,9}){0,3}$/.test(plug)) return { table, index: indexOf(plug, table) }
  if (table.name === undefined) throw new Failure('config', 'plug= is a name, and there is no column of names: set name_oid=, or give the number')
  const found = [...await device.below(table.name)].filter(([, name]) => name.is === 'text' && name.value === plug)
  const [first, second] = found
  if (first === undefined) throw new Failure('notfound', `no outlet is named ${JSON.stringify(plug)}`)
  if (second !== undefined) throw new Failure('config', `outlets ${found.map(([index]) => index).join(' and ')} are both named ${JSON.stringify(plug)}`)
  return { table, index: first[0] }
}

/** As the device counts them: a bare number is what stands on its front. */
function indexOf(plug: string, { unit, from = 1 }: OutletTable): string {
  if (plug.includes('.')) return plug
  const index = Number(plug) + from - 1
  if (index < 0) throw new Failure('config', 'outlets of this device are numbered from 1, as on its front')
  return unit === undefined ? String(index) : `${unit}.${index}`
}

/** By the shortest plug= that names it. */
function plugAt(index: string, { unit, from = 1 }: OutletTable): string {
  if (unit !== undefined && index.startsWith(`${unit}.`)) return index.slice(unit.length + 1)
  return index.includes('.') ? index : String(Number(index) + 1 - from)
}

async function tableOn(device: SnmpDevice, given: Given): Promise<OutletTable> {
  const table = tableGiven(given)
  if (table !== undefined) return table
  const [kind] = await device.get([sysObjectID])
  if (kind?.is !== 'object') throw new Failure('config', 'the device does not say what it is: set model=')
  return tableOfDevice(kind.value)
}

async function list(device: SnmpDevice, given: Given): Promise<readonly { plug: string; name: string }[]> {
  const table = await tableOn(device, given)
  const states = await device.below(table.state)
  const names: ReadonlyMap<string, SnmpValue> = table.name === undefined ? new Map() : await device.below(table.name)
  if (states.size === 0) throw new Failure('notfound', `the device has no outlets of this kind: ${table.says}`)
  return [...states.keys()].map((index) => ({ plug: plugAt(index, table), name: names.get(index)?.value.toString() ?? '' }))
}

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) await runAgent(agent)
