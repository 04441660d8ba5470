// How each kind of power strip numbers, names and switches its outlets. Numbers mean different things in neighbouring
// tables of one vendor (in APC's second table 1 is off, in its first 1 is on), so a table is chosen by what the device
// says it is, or by the operator, never by trying.
import { Failure, type Given } from '../contract.ts'

export interface OutletTable {
  readonly says: string
  /** Column of the state; the outlet's index follows it. */
  readonly state: string
  /** What its numbers mean. A number that is not here is no state. */
  readonly states: ReadonlyMap<number, OutletState>
  readonly on: Order
  readonly off: Order
  readonly name?: string
  /** Tells of a command still under way. Where a device does not offer the column it is not asked for an opinion. */
  readonly pending?: { readonly column: string; readonly none: number }
  /** Comes before a bare outlet number: the strip itself, where several hang on one controller. */
  readonly unit?: string
  /** Where the device counts from, if not from 1 as on the front of it. */
  readonly from?: number
}

export type OutletState = 'on' | 'off' | 'changing'

export interface Order {
  readonly column: string
  readonly value: number
}

const apc = '1.3.6.1.4.1.318.1.1'
const eaton = '1.3.6.1.4.1.534.6.6.7.6'
const managed = '1.3.6.1.4.1.534.6.6.6.1.2.2.1'
const raritan = '1.3.6.1.4.1.13742'

export const outletTables: Readonly<Record<string, OutletTable>> = {
  'apc-rpdu': {
    says: 'APC Rack PDU (PowerNet-MIB, rPDUOutlet)',
    state: `${apc}.12.3.5.1.1.4`, states: new Map([[1, 'on'], [2, 'off']]), name: `${apc}.12.3.5.1.1.2`, pending: { column: `${apc}.12.3.5.1.1.5`, none: 2 },
    on: { column: `${apc}.12.3.3.1.1.4`, value: 1 }, off: { column: `${apc}.12.3.3.1.1.4`, value: 2 },
  },
  'apc-rpdu2': {
    says: 'APC Rack PDU 2G (PowerNet-MIB, rPDU2OutletSwitched): here the state 1 is off',
    state: `${apc}.26.9.2.3.1.5`, states: new Map([[1, 'off'], [2, 'on']]), name: `${apc}.26.9.2.3.1.3`, pending: { column: `${apc}.26.9.2.3.1.6`, none: 2 },
    on: { column: `${apc}.26.9.2.4.1.5`, value: 1 }, off: { column: `${apc}.26.9.2.4.1.5`, value: 2 },
  },
  'apc-masterswitch': {
    says: 'APC MasterSwitch (PowerNet-MIB, sPDUOutlet): one column is state and order',
    state: `${apc}.4.4.2.1.3`, states: new Map([[1, 'on'], [2, 'off']]), name: `${apc}.4.4.2.1.4`, pending: { column: `${apc}.4.4.2.1.2`, none: 2 },
    on: { column: `${apc}.4.4.2.1.3`, value: 1 }, off: { column: `${apc}.4.4.2.1.3`, value: 2 },
  },
  eaton: {
    says: 'Eaton ePDU G2 and G3 (EATON-EPDU-MIB): an order is the seconds until it is carried out',
    state: `${eaton}.6.1.2`, states: new Map([[0, 'off'], [1, 'on'], [2, 'changing'], [3, 'changing']]), name: `${eaton}.1.1.3`, unit: '0',
    on: { column: `${eaton}.6.1.4`, value: 0 }, off: { column: `${eaton}.6.1.3`, value: 0 },
  },
  'eaton-managed': {
    says: 'Eaton and Powerware Managed ePDU, before G2: one column is state and order, and its outlets count from 0',
    state: `${managed}.3`, states: new Map([[0, 'off'], [1, 'on'], [2, 'changing']]), name: `${managed}.1`, from: 0,
    on: { column: `${managed}.3`, value: 1 }, off: { column: `${managed}.3`, value: 0 },
  },
  raritan: {
    says: 'Raritan PX2, PX3 and what followed (PDU2-MIB)',
    state: `${raritan}.6.4.1.2.1.3`, states: new Map([[7, 'on'], [8, 'off']]), name: `${raritan}.6.3.5.3.1.3`, unit: '1',
    on: { column: `${raritan}.6.4.1.2.1.2`, value: 1 }, off: { column: `${raritan}.6.4.1.2.1.2`, value: 0 },
  },
}

/** By the beginning of sysObjectID. */
const known: readonly (readonly [string, string])[] = [
  ['1.3.6.1.4.1.318.1.3.4.5', 'apc-rpdu'], ['1.3.6.1.4.1.318.1.3.4.6', 'apc-rpdu2'],
  ['1.3.6.1.4.1.318.1.3.4.1', 'apc-masterswitch'], ['1.3.6.1.4.1.318.1.3.4.2', 'apc-masterswitch'], ['1.3.6.1.4.1.318.1.3.4.3', 'apc-masterswitch'],
  ['1.3.6.1.4.1.534.6.6.7', 'eaton'], ['1.3.6.1.4.1.534.6.6.6', 'eaton-managed'], ['1.3.6.1.4.1.13742.6', 'raritan'],
]

export function tableOfDevice(sysObjectID: string): OutletTable {
  const found = known.find(([beginning]) => sysObjectID === beginning || sysObjectID.startsWith(`${beginning}.`))
  const table = found === undefined ? undefined : outletTables[found[1]]
  if (table === undefined) throw new Failure('config', `the device calls itself ${sysObjectID}, which is not known: set model= to ${modelNames()}`)
  return table
}

/** Undefined: the device is to be asked what it is. */
export function tableGiven(given: Given): OutletTable | undefined {
  const model = given.text('model')
  if (model === 'auto') return undefined
  if (model === 'generic') return genericTable(given)
  const table = Object.hasOwn(outletTables, model) ? outletTables[model] : undefined
  if (table === undefined) throw new Failure('config', `model= is none of auto, ${modelNames()}`)
  return table
}

function modelNames(): string {
  return [...Object.keys(outletTables), 'generic'].join(', ')
}

function genericTable(given: Given): OutletTable {
  const names = given.optional('name_oid') ?? ''
  const [on, off] = [whole(given, 'state_on'), whole(given, 'state_off')]
  if (on === off) throw new Failure('config', 'state_on= and state_off= are one number: the state could not be told')
  const orders = { on: whole(given, 'order_on'), off: whole(given, 'order_off') }
  if (orders.on === orders.off && given.text('order_on_oid') === given.text('order_off_oid')) throw new Failure('config', 'on and off are one order')
  return {
    says: 'by the OIDs given', state: oid(given, 'state_oid'), states: new Map([[on, 'on'], [off, 'off']]),
    on: { column: oid(given, 'order_on_oid'), value: orders.on }, off: { column: oid(given, 'order_off_oid'), value: orders.off },
    ...(names === '' ? {} : { name: oid(given, 'name_oid') }),
  }
}

function oid(given: Given, name: string): string {
  const text = given.text(name).replace(/^\./, '')
  if (!/^[0-2](\.\d{1,10}){3,126}$/.test(text)) throw new Failure('config', `${name}= is not an OID in numbers`)
  return text
}

function whole(given: Given, name: string): number {
  const text = given.text(name)
  if (!/^-?\d{1,9}$/.test(text)) throw new Failure('config', `${name}= is not a whole number`)
  return Number(text)
}
