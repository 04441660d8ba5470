// The table of conformance, of rows that no device was asked for.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { merged, tableOf, type Tried } from './conformance-table.ts'

const test = suite('conformance table')

const triedOf = (program: string, at: string, verdict: 'kept' | 'broken'): Tried => ({ program, at, rows: [{ clause: 'c', verdict, seen: 's' }] })

test('rows made anew take the place of their own, new ones come last, and the others stay as they are', () => {
  const before = tableOf([triedOf('pdu-snmp', 'apc', 'kept'), triedOf('pdu-snmp', 'eaton', 'kept'), triedOf('nut', 'upsd', 'kept')])
  const [eaton, exec] = [triedOf('pdu-snmp', 'eaton', 'broken'), triedOf('exec', 'a script', 'kept')]
  assert.is(merged(`\n${before}\n\nDebian's\n`, [eaton, exec]), tableOf([triedOf('pdu-snmp', 'apc', 'kept'), eaton, triedOf('nut', 'upsd', 'kept'), exec]))
})

test.run()
