// A power strip behind snmpd, of APC's or of Eaton's kind, or of one of those that programs of others alone speak to: eight outlets,
// each of them a feed of a machine or of nothing.
import { EventEmitter, once } from 'node:events'
import { join } from 'node:path'
import { execa } from 'execa'
import { serveLines, type LineServer } from './lines.ts'
import { loose, type Feed } from './machine.ts'
import { pause, until, type Rack } from './rack.ts'
import { startSnmpd, type Snmpd } from './snmpd.ts'

export interface PowerStrip extends Snmpd {
  readonly backEnd: LineServer
  /** The next order that it is given, before it is carried out. */
  ordered(): Promise<void>
  /** Each of them as it comes in: `off 3`. */
  heard: (order: string) => void
  fault: StripFault | undefined
}

/** `ignores` takes an order and does nothing; `late` carries it out when this comes to pass; `slow` keeps each question so long. */
export type StripFault = 'ignores' | { readonly late: Promise<unknown> } | { readonly slow: number }

/** How a kind of strip numbers and names what it has. `reboot` is off, and on again. */
interface Kind {
  readonly says: string
  readonly root: string
  readonly order: string
  readonly state: string
  readonly name?: string
  readonly pending?: string
  readonly on: number
  readonly off: number
  readonly reboot?: number
  /** Where a state is told by other numbers than it is ordered by. */
  readonly tells?: { readonly on: number; readonly off: number }
  /** Of the first outlet. */
  readonly first: number
}

const apc = '.1.3.6.1.4.1.318.1.1.12'
const eaton = '.1.3.6.1.4.1.534.6.6.6'
const tripplite = '.1.3.6.1.4.1.850.10.2.3.5.1'
const ibm = '.1.3.6.1.4.1.2.6.223'
const emerson = '.1.3.6.1.4.1.476.1.42.3.8.50.20.1'
const blades = '.1.3.6.1.4.1.2.3.51.2.22.1'
const modules = '.1.3.6.1.4.1.343.2.19.1.2.10.202.1.1'
const fibreChannel = '.1.3.6.1.2.1.75.1.2.2.1.1'
export const kinds = {
  apc: {
    says: '.1.3.6.1.4.1.318.1.3.4.5', root: apc, order: `${apc}.3.3.1.1.4`, state: `${apc}.3.5.1.1.4`, name: `${apc}.3.5.1.1.2`, pending: `${apc}.3.5.1.1.5`,
    on: 1, off: 2, reboot: 3, first: 1,
  },
  eaton: { says: eaton, root: eaton, order: `${eaton}.1.2.2.1.3`, state: `${eaton}.1.2.2.1.3`, name: `${eaton}.1.2.2.1.1`, on: 1, off: 0, reboot: 2, first: 0 },
  tripplite: { says: '.1.3.6.1.4.1.850.1', root: tripplite, order: `${tripplite}.4.1`, state: `${tripplite}.2.1`, name: `${tripplite}.5.1`, on: 2, off: 1, reboot: 3, first: 1 },
  ibm: { says: ibm, root: ibm, order: `${ibm}.8.2.2.1.11`, state: `${ibm}.8.2.2.1.11`, name: `${ibm}.8.2.2.1.2`, on: 1, off: 0, reboot: 2, first: 1 },
  emerson: {
    says: '.1.3.6.1.4.1.476.1.42', root: emerson, order: `${emerson}.100.1.1`, state: `${emerson}.95.1.1`, name: `${emerson}.10.1.1`,
    on: 1, off: 0, reboot: 2, tells: { on: 2, off: 1 }, first: 1,
  },
  /** No strips, but chassis of machines: IBM's BladeCenter, Intel's Modular Server. */
  ibmBlades: { says: '.1.3.6.1.4.1.2.3.51.2', root: blades, order: `${blades}.6.1.1.7`, state: `${blades}.5.1.1.4`, on: 1, off: 0, first: 1 },
  intel: { says: '.1.3.6.1.4.1.343.2.19', root: modules, order: `${modules}.6`, state: `${modules}.6`, on: 2, off: 3, tells: { on: 2, off: 0 }, first: 1 },
  /** No strip, but ports of a switch (FIBRE-CHANNEL-FE-MIB): those of its first module. */
  cisco: { says: '.1.3.6.1.4.1.9.12.3.1.3', root: fibreChannel, order: `${fibreChannel}.22`, state: `${fibreChannel}.22`, on: 1, off: 2, first: 0 },
} as const satisfies Readonly<Record<string, Kind>>

const outlets = [1, 2, 3, 4, 5, 6, 7, 8]

/** `wired` by the outlet's number. */
export async function startPowerStrip(rack: Rack, name: string, wired: Readonly<Record<number, Feed>>, kind: Kind = kinds.apc): Promise<PowerStrip> {
  const own: Pick<PowerStrip, 'fault' | 'heard'> = { fault: undefined, heard: () => undefined }
  const heard = new EventEmitter()
  const feeds = new Map(outlets.map((outlet) => [outlet, wired[outlet] ?? loose()]))
  const backEnd = rack.keep(await serveLines(join(rack.folder, `${name}.outlets`), (lines, say) => speak(lines[Symbol.asyncIterator](), say, { kind, feeds, heard: (order) => own.heard(order) }, (what) => {
    if (what === 'set') heard.emit('order')
    return own.fault
  })))
  const snmpd = await startSnmpd(rack, name, [`sysObjectID ${kind.says}`, `pass_persist ${kind.root} /usr/bin/socat - UNIX-CONNECT:${backEnd.path}`])
  // By a client that knows no kind.
  const first = ['-m', '', '-Oeqv', '-v2c', '-c', 'reads-only', `127.0.0.1:${snmpd.port}`, `${kind.state}.${kind.first}`]
  await until(`${name} to answer`, async () => /^\d/.test((await execa('snmpget', first, { reject: false })).stdout))
  return Object.assign(own, snmpd, { backEnd, ordered: async () => void await once(heard, 'order') })
}

interface Strip {
  readonly kind: Kind
  readonly feeds: ReadonlyMap<number, Feed>
  heard(order: string): void
}

/** What snmpd asks of whoever stands behind a part of its tree: `PING`, `get`, `getnext` or `set`, each with its OID. */
async function speak(lines: AsyncIterator<string>, say: (text: string) => void, strip: Strip, faultAt: (word: string) => StripFault | undefined): Promise<void> {
  const next = async () => (await lines.next()).value as string | undefined // the lines of a socket are texts, until it ends
  for (let word = await next(); word !== undefined; word = await next()) {
    const now = faultAt(word)
    if (word === 'PING') say('PONG\n')
    else if (word === 'get' || word === 'getnext') {
      const oid = await next() ?? ''
      if (typeof now === 'object' && 'slow' in now) await pause(now.slow)
      const found = word === 'get' ? oid : oidsOf(strip.kind).find((one) => isBehind(one, oid))
      say(answerOf(found, strip))
    } else if (word === 'set') {
      say(`${await ordered(await next() ?? '', await next() ?? '', strip, now)}\n`)
    }
    // An empty line comes after each set. It is no question.
  }
}

function oidsOf(kind: Kind): readonly string[] {
  const its = [kind.order, kind.state, kind.name, kind.pending].filter((column) => column !== undefined)
  const columns = [...new Set(its)].toSorted((one, other) => (isBehind(one, other) ? 1 : -1))
  return columns.flatMap((column) => outlets.map((outlet) => `${column}.${outlet - 1 + kind.first}`))
}

function isBehind(oid: string, other: string): boolean {
  const [one, two] = [numbersOf(oid), numbersOf(other)]
  const at = one.findIndex((number, index) => number !== two[index])
  return at !== -1 && (one[at] ?? 0) > (two[at] ?? -1)
}

function numbersOf(oid: string): readonly number[] {
  return oid.trim().replace(/^\./, '').split('.').map(Number)
}

function placeOf(oid: string | undefined, { kind, feeds }: Strip): { readonly column: string; readonly outlet: number; readonly feed: Feed | undefined } {
  const at = oid?.lastIndexOf('.') ?? 0
  const outlet = Number(oid?.slice(at + 1)) + 1 - kind.first
  return { column: oid?.slice(0, at) ?? '', outlet, feed: feeds.get(outlet) }
}

function answerOf(oid: string | undefined, strip: Strip): string {
  const { column, outlet, feed } = placeOf(oid, strip)
  const { kind } = strip
  if (feed === undefined) return 'NONE\n'
  const { on, off } = kind.tells ?? kind
  if (column === kind.order || column === kind.state) return `${oid}\ninteger\n${feed.on() ? on : off}\n`
  if (column === kind.name) return `${oid}\nstring\noutlet-${outlet}\n`
  return column === kind.pending ? `${oid}\ninteger\n2\n` : 'NONE\n'
}

async function ordered(oid: string, value: string, strip: Strip, fault: StripFault | undefined): Promise<string> {
  const { column, outlet, feed } = placeOf(oid, strip)
  const { kind } = strip
  if (feed === undefined || column !== kind.order) return 'not-writable'
  const number = Number(/^integer (\d)$/.exec(value.trim())?.[1] ?? Number.NaN)
  if (![kind.on, kind.off, kind.reboot].includes(number)) return 'wrong-value'
  strip.heard(`${number === kind.reboot ? 'reboot' : number === kind.off ? 'off' : 'on'} ${outlet}`)
  const obey = async () => {
    if (number === kind.reboot) await feed.switchTo(false)
    await feed.switchTo(number !== kind.off)
  }
  if (typeof fault === 'object' && 'late' in fault) void fault.late.then(obey)
  else if (fault !== 'ignores') await obey()
  return 'DONE'
}
