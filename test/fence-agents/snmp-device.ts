// A device that speaks SNMP on a free port of this machine, v2c and v3, and behaves as badly as a test wants. Its library
// is that of the programs: that both are not wrong in the same way is shown in the device tier, where snmpd answers.
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import snmp, { type Agent, type Message, type Pdu, type Varbind } from 'net-snmp'
import type { Ms } from '../../core/model.ts'

export interface SnmpDevice {
  readonly port: number
  /** What it tells, by OID. A test bends it as it likes. */
  readonly values: Map<string, Value>
  /** Each thing that was written, as `oid=value`. */
  readonly orders: string[]
  fault: SnmpFault | undefined
  close(): Promise<void>
}

export type Value = { readonly type: 'Integer' | 'Gauge' | 'OctetString' | 'OID' | 'Counter64' | 'NoSuchObject'; readonly value: number | string | Buffer | null }

export type SnmpFault =
  | 'mute' | 'garbage' | 'unsealed'
  /** Answers with the first value that it has, whatever was asked. */
  | 'another answer'
  | { readonly slow: Ms }
  /** A name of SNMP's errors, in answer to what is written. */
  | { readonly refuses: string }

export const v2c = { community: 'hush-hush' }
export const v3 = { snmp_version: '3', username: 'fencer', password: 'hush-authentic', snmp_priv_passwd: 'hush-private', snmp_auth_prot: 'SHA256', snmp_priv_prot: 'AES' }

/** `obey` carries out what was written; left out, it is taken and forgotten. */
export async function startSnmpDevice(values: Readonly<Record<string, Value>>, obey: (oid: string, value: number, values: Map<string, Value>) => void): Promise<SnmpDevice> {
  const socket = createSocket('udp4')
  await new Promise<void>((resolve) => { socket.bind(0, '127.0.0.1', () => resolve()) })
  const { port } = socket.address()
  // The library binds what it makes, and takes no free port: it gets one that is bound.
  socket.bind = () => socket
  const agent: Agent = snmp.createAgent({ port, address: '127.0.0.1', dgramModule: { createSocket: () => socket } }, () => undefined)
  agent.getAuthorizer().addCommunity(v2c.community)
  agent.getAuthorizer().addUser({
    name: v3.username, level: snmp.SecurityLevel.authPriv, authProtocol: snmp.AuthProtocols['sha256'] ?? '', authKey: v3.password,
    privProtocol: snmp.PrivProtocols['aes'] ?? '', privKey: v3.snmp_priv_passwd,
  })
  const device: SnmpDevice = { port, values: new Map(Object.entries(values)), orders: [], fault: undefined, close: () => new Promise((resolve) => { socket.close(() => resolve()) }) }
  const answer = (work: (pdu: Pdu) => Varbind[]) => (from: Socket, message: Message, to: RemoteInfo) => {
    const { fault } = device
    if (fault === 'mute') return
    if (fault === 'garbage') return void from.send(Buffer.from([0x30, 0x03, 0x02, 0x01, 0x01, 0xff, 0x00]), to.port, to.address)
    const send = () => {
      const response = message.pdu.getResponsePduForRequest()
      try {
        response.varbinds.push(...work(message.pdu))
      } catch (error) {
        response.errorStatus = snmp.ErrorStatus[error instanceof Error ? error.message : ''] ?? 5
        response.errorIndex = 1
        response.varbinds.push(...message.pdu.varbinds)
      }
      if (fault === 'unsealed') {
        agent.sendResponse(from, to, unsealed(message), response)
        return
      }
      agent.sendResponse(from, to, message, response)
    }
    if (typeof fault === 'object' && 'slow' in fault) setTimeout(send, fault.slow)
    else send()
  }
  const told = (oid: string): Varbind => {
    const value = device.fault === 'another answer' ? [...device.values.values()][0] : device.values.get(oid)
    return value === undefined ? { oid, type: snmp.ObjectType['NoSuchInstance'] ?? 0, value: null } : varbind(device.fault === 'another answer' ? `${oid}.1` : oid, value)
  }
  const next = (oid: string): Varbind => {
    const after = [...device.values.keys()].toSorted(byOid).find((one) => byOid(one, oid) > 0)
    return after === undefined ? { oid, type: snmp.ObjectType['EndOfMibView'] ?? 0, value: null } : told(after)
  }
  agent.getRequest = answer((pdu) => pdu.varbinds.map(({ oid }) => told(oid)))
  agent.getNextRequest = answer((pdu) => pdu.varbinds.map(({ oid }) => next(oid)))
  agent.getBulkRequest = answer((pdu) => {
    const found: Varbind[] = []
    for (let oid = pdu.varbinds[0]?.oid ?? ''; found.length < pdu.maxRepetitions;) {
      const one = next(oid)
      found.push(one)
      if (one.value === null) break
      oid = one.oid
    }
    return found
  })
  agent.setRequest = answer((pdu) => {
    if (typeof device.fault === 'object' && 'refuses' in device.fault) throw new Error(device.fault.refuses)
    for (const { oid, value } of pdu.varbinds) {
      device.orders.push(`${oid}=${String(value)}`)
      obey(oid, Number(value), device.values)
    }
    return pdu.varbinds
  })
  return device
}

function varbind(oid: string, { type, value }: Value): Varbind {
  return { oid, type: snmp.ObjectType[type] ?? 0, value }
}

/** The same message, whose answer is neither authenticated nor encrypted. */
function unsealed(message: Message): Message {
  message.setAuthentication(false)
  message.setPrivacy(false)
  return message
}

function byOid(one: string, other: string): number {
  const [left, right] = [one.split('.').map(Number), other.split('.').map(Number)]
  for (let at = 0; at < Math.max(left.length, right.length); at += 1) {
    const difference = (left[at] ?? -1) - (right[at] ?? -1)
    if (difference !== 0) return difference
  }
  return 0
}
