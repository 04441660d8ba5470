// A management controller with Redfish that is none of ours: sushy-tools, whose systems are feeds of machines.
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { selfSigned } from '../../sim/redfish-certificate.ts'
import type { Component } from '../control-plane/component.ts'
import { freePorts } from '../control-plane/ports.ts'
import { serveLines, type LineServer } from './lines.ts'
import type { Feed, Machine } from './machine.ts'
import { installed, pause, secret, until, type Parameters, type Rack } from './rack.ts'

export interface RedfishController {
  /** As a fence agent wants to have them, but for the system. */
  readonly login: Parameters
  readonly pin: Parameters
  readonly process: Component
  readonly backEnd: LineServer
  fault: RedfishFault | undefined
}

/** `ignores` answers an order with 204 and does nothing, `forbidden` refuses it, as it does of one who may only read. `late` carries it
 *  out when this comes to pass; `slow` keeps each question of the power so long. `says` is what it tells of the power, whatever it is. */
export type RedfishFault = 'ignores' | 'broken' | 'forbidden' | { readonly late: Promise<unknown> } | { readonly slow: number } | { readonly says: string }

/** Its systems are the machines by their UUIDs, each behind the feed that is named beside it. */
export async function startRedfishController(rack: Rack, wires: readonly { readonly machine: Pick<Machine, 'name' | 'uuid'>; readonly feed: Feed }[]): Promise<RedfishController> {
  const { https } = await freePorts(['https'])
  const at = (file: string) => join(rack.folder, `redfish.${file}`)
  const controller: { fault: RedfishFault | undefined } = { fault: undefined }
  const feeds = new Map(wires.map(({ machine, feed }) => [machine.name, feed]))
  const backEnd = rack.keep(await serveLines(at('power'), async (lines, say) => {
    for await (const line of lines) {
      say(`${await answered(line, feeds, controller.fault)}\n`)
      return
    }
  }))
  const { key, certificate, fingerprint } = selfSigned('redfish.test', '127.0.0.1')
  writeFileSync(at('key'), key)
  writeFileSync(at('certificate'), certificate)
  writeFileSync(at('users'), `admin:${crypted(secret)}\n`)
  mkdirSync(at('state'))
  writeFileSync(at('conf'), [
    'SUSHY_EMULATOR_FAKE_DRIVER = True', "SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'", `SUSHY_EMULATOR_LISTEN_PORT = ${https}`,
    `SUSHY_EMULATOR_SSL_CERT = '${at('certificate')}'`, `SUSHY_EMULATOR_SSL_KEY = '${at('key')}'`,
    `SUSHY_EMULATOR_AUTH_FILE = '${at('users')}'`, `SUSHY_EMULATOR_STATE_DIR = '${at('state')}'`,
    `SUSHY_EMULATOR_FAKE_SYSTEMS = [${wires.map(({ machine }) => `{'uuid': '${machine.uuid}', 'name': '${machine.name}', 'power_state': 'On', 'nics': []}`).join(', ')}]`, '',
  ].join('\n'))
  const server = fileURLToPath(new URL('redfish-server.py', import.meta.url))
  const process = await rack.start('redfish', [join(installed('redfish'), 'bin/python'), server, at('conf'), backEnd.path])
  const login = { ip: '127.0.0.1', ipport: String(https), username: 'admin', password: secret }
  const pin = { certificate_sha256: fingerprint }
  await until('the Redfish service to answer', async () => (await rack.ask('redfish', 'status', { ...login, ...pin, plug: wires[0]?.machine.uuid ?? '' })).state !== 'unknown')
  return Object.assign(controller, { login, pin, process, backEnd })
}

/** It takes bcrypt alone. */
function crypted(password: string): string {
  return execFileSync(join(installed('redfish'), 'bin/python'), ['-c', 'import bcrypt, sys; print(bcrypt.hashpw(sys.stdin.read().encode(), bcrypt.gensalt(4)).decode())'], { input: password, encoding: 'utf8' }).trim()
}

async function answered(line: string, feeds: ReadonlyMap<string, Feed>, fault: RedfishFault | undefined): Promise<string> {
  if (fault === 'broken') return 'fault: something broke'
  const [, word, name = '', order] = /^(get|set) (\S+)(?: (\S+))?$/.exec(line) ?? []
  const feed = feeds.get(name)
  if (feed === undefined) return 'fault: no such system'
  if (typeof fault === 'object' && 'slow' in fault) await pause(fault.slow)
  if (word === 'get') return typeof fault === 'object' && 'says' in fault ? fault.says : feed.on() ? 'On' : 'Off'
  if (fault === 'forbidden') return 'forbidden: it needs the privilege ConfigureComponents'
  if (order !== 'ForceOff' && order !== 'On' && order !== 'ForceOn') return 'fault: this controller switches power, and no more'
  const obey = () => feed.switchTo(order !== 'ForceOff')
  if (typeof fault === 'object' && 'late' in fault) void fault.late.then(obey)
  else if (fault !== 'ignores') await obey()
  return 'done'
}
