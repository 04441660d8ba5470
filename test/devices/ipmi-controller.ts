// A management controller with IPMI 2.0: Debian's ipmi_sim, whose chassis is a feed of a machine.
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Component } from '../control-plane/component.ts'
import { freePorts } from '../control-plane/ports.ts'
import { serveLines, type LineServer } from './lines.ts'
import type { Feed } from './machine.ts'
import { pause, secret, until, type Parameters, type Rack } from './rack.ts'

export interface IpmiController {
  /** As a fence agent wants to have them. */
  readonly login: Parameters
  readonly process: Component
  readonly backEnd: LineServer
  fault: IpmiFault | undefined
}

/** `ignores` accepts an order and does nothing. `late` accepts it and carries it out when this comes to pass;
 *  `slow` answers nobody while so much time goes by at each question of the power. */
export type IpmiFault = 'ignores' | 'broken' | { readonly late: Promise<unknown> } | { readonly slow: number }

const chassis = fileURLToPath(new URL('chassis.sh', import.meta.url))

/** `guid`: what it calls itself. Real ones bear their machine's UUID there, or one of their own. */
export async function startIpmiController(rack: Rack, name: string, feed: Feed, guid = randomBytes(16).toString('hex')): Promise<IpmiController> {
  const { lan } = await freePorts(['lan'])
  const at = (file: string) => join(rack.folder, `${name}.${file}`)
  const controller: { fault: IpmiFault | undefined } = { fault: undefined }
  const backEnd = rack.keep(await serveLines(at('chassis'), async (lines, say) => {
    for await (const line of lines) {
      say(`${await answered(line, feed, controller.fault)}\n`)
      return
    }
  }))
  writeFileSync(at('lan'), configuration(name, lan, backEnd.path, guid))
  // What this controller is made of: one management controller, with an event log.
  writeFileSync(at('emu'), 'mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\nsel_enable 0x20 1000 0x0a\nmc_enable 0x20\n')
  mkdirSync(at('state'))
  const process = await rack.start(name, ['ipmi_sim', '-c', at('lan'), '-f', at('emu'), '-s', at('state'), '-n'])
  // It knows suite 3 alone.
  const login = { ip: '127.0.0.1', ipport: String(lan), username: 'admin', password: secret, cipher: '3' }
  await until(`${name} to answer`, async () => (await rack.ask('ipmi', 'status', login)).state !== 'unknown')
  return Object.assign(controller, { login, process, backEnd })
}

function configuration(name: string, port: number, backEnd: string, guid: string): string {
  return [
    `name "${name}"`, 'set_working_mc 0x20', 'startlan 1', `addr 127.0.0.1 ${port}`, 'priv_limit admin', 'allowed_auths_admin none md2 md5 straight',
    `guid ${guid}`, 'endlan', `chassis_control "${chassis} ${backEnd}"`,
    `user 2 true "admin" "${secret}" admin 10 none md2 md5 straight`, `user 4 true "viewer" "${secret}" user 10 none md2 md5 straight`, '',
  ].join('\n')
}

async function answered(line: string, feed: Feed, fault: IpmiFault | undefined): Promise<string> {
  if (fault === 'broken') return 'fault: the chassis does not answer'
  if (typeof fault === 'object' && 'slow' in fault) await pause(fault.slow)
  if (line === 'get power') return `power:${feed.on() ? 1 : 0}`
  const [, value] = /^set power ([01])$/.exec(line) ?? []
  if (value === undefined) return line.startsWith('get') ? 'boot:default' : 'fault: this controller switches power, and no more'
  const order = () => feed.switchTo(value === '1')
  if (typeof fault === 'object' && 'late' in fault) void fault.late.then(order)
  else if (fault !== 'ignores') await order()
  return 'done'
}
