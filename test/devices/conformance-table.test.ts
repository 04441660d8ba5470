// The table of conformance, of rows that no device was asked for.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Row } from '../fence-agents/clauses.ts'
import { rewritten, tableOf, type Debian, type Tried } from './conformance-table.ts'

const test = suite('conformance table')

const triedOf = (program: string, at: string, ...verdicts: Row['verdict'][]): Tried => ({
  program, at, rows: verdicts.map((verdict, index) => ({ clause: `clause ${index + 1}`, verdict, seen: `exit ${index}` })),
})
const debian: Debian = {
  version: '4.12.1',
  programs: new Map([['fence_apc', 'telnet'], ['fence_apc_snmp', 'snmp'], ['fence_ilo4', 'ipmitool'], ['fence_ipmilan', 'ipmitool'], ['fence_tripplite_snmp', 'snmp']]),
}
const around = (made: string) => `before\n<!-- made by: node test/devices/conformance.ts -->\n${made}<!-- made so far -->\nbehind\n`
/** The lines between the two marks of a document that has them. */
const madeOf = (document: string) => document.slice(document.indexOf('-->') + 3, document.lastIndexOf('<!--')).trim().split('\n')

test('each clause that was not kept stands in its row by name: the lies with what was seen, and what was not asked, which is not counted', () => {
  const [, , line] = tableOf([triedOf('fence_x', 'a strip', 'kept', 'LIES', 'not run', 'broken', 'kept', 'not run', 'broken')]).split('\n')
  assert.is(line, '| `fence_x` | a strip | 2 of 5 | clause 2 (exit 1) | clause 4; clause 7 | clause 3; clause 6 |')
})

test('what was seen breaks no row: no end of a line, no bar', () => {
  const rows: readonly Row[] = [{ clause: 'off', verdict: 'LIES', seen: 'exit 0, "one | two\n three"' }]
  assert.is(tableOf([{ program: 'fence_x', at: 'a strip', rows }]).split('\n').at(-1), '| `fence_x` | a strip | 0 of 1 | off (exit 0, "one \\| two three") |  |  |')
})

test('rows made anew take the place of their own, new ones come last, and the others stay as they are', () => {
  const [apc, eaton, nut] = [triedOf('pdu-snmp', 'apc', 'kept'), triedOf('pdu-snmp', 'eaton', 'kept'), triedOf('nut', 'upsd', 'not run')]
  const before = rewritten(around(''), [apc, eaton, nut], true, debian)
  const [eatonAnew, exec] = [triedOf('pdu-snmp', 'eaton', 'broken'), triedOf('exec', 'a script', 'kept')]
  assert.is(rewritten(before, [eatonAnew, exec], false, debian), rewritten(around(''), [apc, eatonAnew, nut, exec], true, debian))
})

test('where every device was asked, no row is left of before, and nothing beside the table is touched', () => {
  const before = rewritten(around(''), [triedOf('nut', 'upsd', 'kept'), triedOf('gone', 'a device', 'kept')], true, debian)
  const after = rewritten(before, [triedOf('nut', 'upsd', 'broken')], true, debian)
  assert.is(after, around(`\n${madeOf(after).join('\n')}\n`))
  assert.equal(madeOf(after).slice(0, -2), tableOf([triedOf('nut', 'upsd', 'broken')]).split('\n'))
})

test('under the table stands which of Debian\'s are one of these by another name, and which were not tried', () => {
  const all = ['ipmi', 'fence_ipmilan', 'fence_apc_snmp', 'fence_tripplite_snmp'].map((program) => triedOf(program, 'a device', 'kept'))
  const last = "Debian's programs are fence-agents 4.12.1: 3 of 5 stand here. One of them by another name: `fence_ilo4`. Not tried: `fence_apc`."
  assert.is(madeOf(rewritten(around(''), all, true, debian)).at(-1), last)
})

test('a document without its two marks is not written', () => {
  for (const document of ['', 'before\n<!-- made so far -->\n', '<!-- made so far -->\n<!-- made by: node test/devices/conformance.ts -->\n']) {
    assert.throws(() => rewritten(document, [], true, debian), /lacks its two marks/)
  }
})

test.run()
