// A port by FIBRE-CHANNEL-FE-MIB (RFC 2837): what is wished stands in fcFxPortPhysAdminStatus, what is so in
// fcFxPortPhysOperStatus, and a port is off only when both say offline. Fabric OS is refused: it was read to answer *offline*
// of every port that is not online, so that a port whose machine is dark, and which nobody cut, would pass for one that is.
import { Failure, pollUntil, type DeviceWord, type Given } from '../contract.ts'
import type { SnmpDevice, SnmpValue } from '../snmp.ts'

const sysObjectID = '1.3.6.1.2.1.1.2.0'
const brocade = /^1\.3\.6\.1\.4\.1\.1588\./
const table = '1.3.6.1.2.1.75.1.2.2.1'
const admin = `${table}.1`
const oper = `${table}.2`

const adminNumber = { on: 1, off: 2 } as const
const adminWords: ReadonlyMap<number, string> = new Map([[1, 'online'], [2, 'offline'], [3, 'testing']])
const operWords: ReadonlyMap<number, string> = new Map([...adminWords, [4, 'linkFailure']])

export async function statusByMib(device: SnmpDevice, given: Given): Promise<DeviceWord> {
  return stateOf(device, await portOn(device, given))
}

export async function orderByMib(device: SnmpDevice, given: Given, want: 'on' | 'off'): Promise<DeviceWord> {
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

export async function listByMib(device: SnmpDevice): Promise<readonly { plug: string; name: string }[]> {
  await refuseFabricOs(device)
  const ports = await device.below(admin)
  if (ports.size === 0) throw new Failure('notfound', 'the device has no ports in FIBRE-CHANNEL-FE-MIB')
  return [...ports.keys()].map((plug) => ({ plug, name: '' }))
}

/** On is that it may carry frames, whether or not a machine is at its other end. */
async function stateOf(device: SnmpDevice, index: string): Promise<DeviceWord> {
  const [wished, real] = await device.get([`${admin}.${index}`, `${oper}.${index}`])
  const [wish, is] = [wordOf(wished, adminWords, `port ${index}: fcFxPortPhysAdminStatus`), wordOf(real, operWords, `port ${index}: fcFxPortPhysOperStatus`)]
  const evidence = `port ${index}: admin ${wish}, oper ${is}`
  if (wish === 'online') return { state: 'on', evidence }
  if (wish === 'offline' && is === 'offline') return { state: 'off', evidence }
  return { state: 'unknown', evidence, reason: 'busy' }
}

function wordOf(value: SnmpValue | undefined, words: ReadonlyMap<number, string>, what: string): string {
  if (value === undefined || value.is === 'nothing') throw new Failure('notfound', `${what}: there is no such port (${value?.value ?? 'no answer to this'})`)
  const word = value.is === 'number' ? words.get(value.value) : undefined
  if (word === undefined) throw new Failure('device', `${what} is ${value.is === 'number' ? value.value : value.is}, which the MIB does not know`)
  return word
}

async function portOn(device: SnmpDevice, given: Given): Promise<string> {
  const plug = given.text('plug')
  if (!/^\d{1,5}\.\d{1,5}$/.test(plug)) throw new Failure('config', 'by SNMP plug= is MODULE.PORT, as list tells it')
  await refuseFabricOs(device)
  return plug
}

async function refuseFabricOs(device: SnmpDevice): Promise<void> {
  const [what] = await device.get([sysObjectID])
  if (what?.is !== 'object') throw new Failure('device', 'the device does not tell what it is (sysObjectID)')
  if (brocade.test(what.value)) throw new Failure('config', 'Fabric OS tells the same by SNMP of a port that is cut and of one whose machine is dark: leave out protocol=snmp')
}
