// The table in docs/fence-agents.md is what the tool says today; ours keep every clause, and the known liars are found.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readFileSync } from 'node:fs'
import { tableOf } from './conformance-table.ts'
import { deviceNames, tried } from './conformance.ts'

const test = suite('conformance')

test('every clause is kept by ours and at least three of the others lie, as the docs have it', async () => {
  const all = await tried(deviceNames, () => undefined)
  const ours = all.filter(({ program }) => !program.startsWith('fence_'))
  assert.equal(ours.flatMap(({ program, rows }) => rows.filter(({ verdict }) => verdict !== 'kept' && verdict !== 'not run').map((row) => ({ program, ...row }))), [])
  const liars = all.filter(({ rows }) => rows.some(({ verdict }) => verdict === 'LIES')).map(({ program }) => program)
  assert.equal(liars, ['fence_apc_snmp', 'fence_eaton_snmp', 'fence_ifmib'])
  assert.ok(readFileSync('docs/fence-agents.md', 'utf8').includes(tableOf(all)), `the table of docs/fence-agents.md is another one: node test/devices/conformance.ts\n${tableOf(all)}`)
})

test.run()
