// Debian's snmpd, as the one who speaks for a device. The library of our own programs has no part in it.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Component } from '../control-plane/component.ts'
import { freePorts } from '../control-plane/ports.ts'
import { secret, type Parameters, type Rack } from './rack.ts'

export interface Snmpd {
  readonly process: Component
  readonly port: string
  readonly v2c: Parameters
  readonly v3: Parameters
}

/** Its passwords are the rack's secret, twice over: version 3 takes none below eight signs. */
const authentic = `${secret}${secret}`
const privately = `${secret}-${secret}`

/** `command` comes before snmpd, as where it is to run in another network namespace. */
export async function startSnmpd(rack: Rack, name: string, lines: readonly string[], command: readonly string[] = []): Promise<Snmpd> {
  const { snmp } = await freePorts(['snmp'])
  const at = (file: string) => join(rack.folder, `${name}.${file}`)
  mkdirSync(at('state'))
  writeFileSync(at('conf'), [
    `agentaddress udp:127.0.0.1:${snmp}`, `rwcommunity ${secret}`, 'rocommunity reads-only', `createUser fencer SHA-256 "${authentic}" AES "${privately}"`, 'rwuser fencer priv',
    `createUser reader SHA-256 "${authentic}" AES "${privately}"`, 'rouser reader priv', ...lines, '',
  ].join('\n'))
  const process = await rack.start(name, [
    ...command, 'env', 'MIBS=', `SNMP_PERSISTENT_DIR=${at('state')}`, 'SNMPCONFPATH=/nonexistent', 'snmpd', '-f', '-Lo', '-C', '-c', at('conf'), '-I', '-smux',
  ])
  const common = { ip: '127.0.0.1', ipport: String(snmp) }
  return {
    process, port: String(snmp),
    v2c: { ...common, community: secret, snmp_version: '2c' },
    v3: {
      ...common, snmp_version: '3', username: 'fencer', snmp_sec_level: 'authPriv', snmp_auth_prot: 'SHA256', password: authentic, snmp_priv_prot: 'AES', snmp_priv_passwd: privately,
    },
  }
}
