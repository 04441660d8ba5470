// Network UPS Tools themselves: upsd with dummy-ups, a driver whose device is a file. Nothing hangs on its outlets; the judge is
// NUT's own upsc.
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Component } from '../control-plane/component.ts'
import { freePorts } from '../control-plane/ports.ts'
import type { LineServer } from './lines.ts'
import { installed, secret, until, type Parameters, type Rack } from './rack.ts'

export interface UpsServer {
  readonly login: Parameters
  readonly process: Component
  readonly driver: Component
  /** The driver is what reads the device: away with it, until upsd misses it, and another one in its place, until upsd knows it. */
  readonly backEnd: Pick<LineServer, 'vanish' | 'open'>
  /** By NUT's own client. */
  variable(name: string): string
  /** A line of shell that prints the state of the outlet in $PLUG, by the same. */
  readonly stateCommand: string
}

export async function startUpsServer(rack: Rack): Promise<UpsServer> {
  const { upsd } = await freePorts(['upsd'])
  const etc = join(rack.folder, 'nut')
  const state = join(rack.folder, 'nut-state')
  mkdirSync(etc)
  mkdirSync(state)
  const write = (file: string, lines: readonly string[]) => writeFileSync(join(etc, file), `${lines.join('\n')}\n`, { mode: 0o640 })
  const outlets = [1, 2].flatMap((outlet) => [`outlet.${outlet}.id: ${outlet}`, `outlet.${outlet}.desc: outlet-${outlet}`, `outlet.${outlet}.switchable: yes`, `outlet.${outlet}.status: on`])
  write('strip.dev', ['device.type: pdu', 'ups.status: OL', 'outlet.count: 2', ...outlets])
  write('ups.conf', ['[strip]', 'driver = dummy-ups', `port = ${join(etc, 'strip.dev')}`, 'mode = dummy-once'])
  write('upsd.conf', [`LISTEN 127.0.0.1 ${upsd}`])
  write('upsd.users', ['[admin]', `password = ${secret}`, 'actions = SET', 'instcmds = ALL', '[viewer]', `password = ${secret}`])
  write('nut.conf', ['MODE=netserver'])
  const nut = installed('nut')
  const libraries = ['lib/x86_64-linux-gnu', 'usr/lib/x86_64-linux-gnu'].map((folder) => join(nut, folder)).join(':')
  const surroundings = { LD_LIBRARY_PATH: libraries, NUT_CONFPATH: etc, NUT_STATEPATH: state, NUT_ALTPIDPATH: state }
  const command = (...words: string[]) => ['env', ...Object.entries(surroundings).map(([name, value]) => `${name}=${value}`), ...words]
  const startDriver = () => rack.start('driver', command(join(nut, 'lib/nut/dummy-ups'), '-a', 'strip', '-u', 'root', '-F'))
  const driver = await startDriver()
  let present = driver
  const process = await rack.start('upsd', command(join(nut, 'lib/nut/upsd'), '-u', 'root', '-F'))
  const login = { ip: '127.0.0.1', ipport: String(upsd), username: 'admin', password: secret, ups: 'strip' }
  await until('upsd to answer', async () => (await rack.ask('nut', 'status', { ...login, plug: '1' })).state !== 'unknown')
  const variable = (name: string) => execFileSync(join(nut, 'bin/upsc'), [`strip@127.0.0.1:${upsd}`, name], { encoding: 'utf8', env: surroundings, stdio: ['ignore', 'pipe', 'pipe'] }).trim()
  const isKnown = () => {
    try {
      return variable('outlet.count') !== ''
    } catch {
      return false // upsd has no driver, or none that speaks
    }
  }
  return {
    login, process, driver, variable,
    backEnd: {
      async vanish() {
        await present.crash()
        await until('upsd to miss its driver', () => !isKnown())
      },
      async open() {
        present = await startDriver()
        await until('upsd to know its driver', isKnown)
      },
    },
    stateCommand: `${command(join(nut, 'bin/upsc')).join(' ')} strip@127.0.0.1:${upsd} "outlet.$PLUG.status"`,
  }
}
