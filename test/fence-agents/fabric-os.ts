// A Fibre Channel switch as Fabric OS speaks by SSH, of few lines: what it prints is written after the tables of real ones,
// and a port that is cut carries no light and bears a remark. Whether a real one understands the program is the device
// tier's question.
import { createHash, generateKeyPairSync } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import ssh2, { type ServerChannel, type ServerConnection } from 'ssh2'
import type { Ms } from '../../core/model.ts'

export interface FabricOs {
  readonly port: number
  /** As ssh-keygen prints it. */
  readonly fingerprint: string
  readonly ports: Map<string, FcPort>
  /** What was ordered, without the questions. */
  readonly orders: string[]
  /** The same as it comes in. */
  heard: (order: string) => void
  /** What its shell prints, whoever brings the command. */
  says(command: string): string
  readonly head: 'fixed' | 'director'
  fault: FabricFault | undefined
  close(): Promise<void>
}

export interface FcPort {
  machine: 'lit' | 'dark'
  cut: 'no' | 'till restart' | 'persistent'
  /** Instead of what it would print. */
  row?: { readonly state: string; readonly remark: string }
}

export type FabricFault =
  | 'mute' | 'disobedient' | 'hangs up' | 'not permitted' | 'keyboard'
  | { readonly prints: string }
  | { readonly lag: Ms }

export const fabricLogin = { username: 'fencer', password: 'hush hush' }

/** `folder`: each port's power as a file of its own, for whoever asks for the truth outside of the program; while a file
 *  `gone` is there the switch's shell answers nothing that makes sense. */
export async function startFabricOs(head: FabricOs['head'] = 'fixed', folder?: string): Promise<FabricOs> {
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'sec1', format: 'pem' }).toString()
  const connections = new Set<ServerConnection>()
  const server = new ssh2.Server({ hostKeys: [key] }, (connection) => {
    connections.add(connection.setNoDelay(true))
    connection.on('close', () => connections.delete(connection))
    connection.on('error', () => undefined) // a client that leaves in the midst of a handshake
    connection.on('authentication', (login) => {
      const right = login.username === fabricLogin.username
      if (fabric.fault === 'mute') return
      if (fabric.fault !== 'keyboard' && login.method === 'password' && right && login.password === fabricLogin.password) return login.accept()
      if (login.method !== 'keyboard-interactive') return login.reject(fabric.fault === 'keyboard' ? ['keyboard-interactive'] : ['password', 'keyboard-interactive'])
      login.prompt([{ prompt: 'Password: ', echo: false }], ([word]) => {
        if (right && word === fabricLogin.password) login.accept()
        else login.reject()
      })
    })
    connection.on('ready', () => connection.on('session', (accept) => {
      accept().on('exec', (open, _reject, { command }) => answer(open(), command, fabric, connection, folder))
    }))
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', () => resolve()) })
  const names = head === 'fixed' ? ['0', '1', '2', '3'] : ['1/0', '1/1', '2/0', '2/1']
  const fabric: FabricOs = {
    port: (server.address() as AddressInfo).port, // it listens on a port
    fingerprint: `SHA256:${createHash('sha256').update(ssh2.utils.parseKey(key).getPublicSSH()).digest('base64').replace(/=+$/, '')}`,
    ports: new Map(names.map((name) => [name, { machine: 'lit', cut: 'no' }])),
    orders: [], head, fault: undefined, heard: () => undefined, says: (command) => said(command, fabric, folder),
    close: () => new Promise((resolve) => {
      for (const connection of connections) connection.end()
      server.close(() => resolve())
    }),
  }
  tellTruth(fabric, folder)
  return fabric
}

function answer(channel: ServerChannel, command: string, fabric: FabricOs, connection: ServerConnection, folder: string | undefined): void {
  const { fault } = fabric
  if (fault === 'hangs up') return connection.end()
  if (fault === 'mute') return
  const prints = typeof fault === 'object' && 'prints' in fault ? fault.prints : said(command, fabric, folder)
  channel.end(prints.replaceAll('\n', '\r\n'))
  channel.exit(0)
}

function said(command: string, fabric: FabricOs, folder: string | undefined): string {
  if (folder !== undefined && existsSync(join(folder, 'gone'))) return 'switchd: not running\n'
  if (command === 'switchshow') return tableOf(fabric)
  const [, persistent = '', verb = '', name = ''] = /^port(cfgpersistent)?(disable|enable) (\S+)$/i.exec(command) ?? []
  const port = fabric.ports.get(name)
  if (verb === '') return `rbash: ${command}: command not found\n`
  if (port === undefined) return 'Error: port number out of range\n'
  if (fabric.fault === 'not permitted') return 'RBAC permission denied.\n'
  const order = `${persistent === '' ? '' : 'persistent '}${verb.toLowerCase()} ${name}`
  fabric.orders.push(order)
  fabric.heard(order)
  const obey = () => {
    if (verb.toLowerCase() === 'enable') port.cut = persistent === '' && port.cut === 'persistent' ? 'persistent' : 'no'
    else port.cut = persistent === '' ? 'till restart' : 'persistent'
    tellTruth(fabric, folder)
  }
  if (typeof fabric.fault === 'object' && 'lag' in fabric.fault) setTimeout(obey, fabric.fault.lag)
  else if (fabric.fault !== 'disobedient') obey()
  return ''
}

function tableOf({ ports, head }: FabricOs): string {
  const columns = head === 'fixed' ? 'Index Port Address  Media Speed   State       Proto' : 'Index Slot Port Address  Media Speed   State       Proto'
  const rows = [...ports].map(([name, { machine, cut, row }], index) => {
    const state = row?.state ?? (cut !== 'no' || machine === 'dark' ? 'No_Light' : 'Online')
    const remark = row?.remark ?? { no: machine === 'lit' ? 'F-Port  50:06:01:60:90:20:1e:7a' : '', 'till restart': 'Disabled', persistent: 'Disabled (Persistent)' }[cut]
    const place = name.split('/').map((part) => part.padStart(4)).join('')
    return `${String(index).padStart(4)}${place}   01${index.toString(16).padStart(2, '0')}00   id    N16     ${state.padEnd(11)} FC  ${remark}`
  })
  return ['switchName:\tfabric-1', 'switchType:\t109.1', 'switchState:\tOnline', 'zoning:\t\tON (prod)', '', columns, '='.repeat(columns.length), ...rows, ''].join('\n')
}

function tellTruth({ ports }: FabricOs, folder: string | undefined): void {
  if (folder === undefined) return
  for (const [name, { cut }] of ports) writeFileSync(join(folder, `port-${name.replace('/', '-')}`), cut === 'no' ? 'on' : 'off')
}
