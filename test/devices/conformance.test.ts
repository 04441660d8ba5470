// The table in docs/fence-agents.md is what the tool says today; ours keep every clause, and the known liars are found.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readFileSync } from 'node:fs'
import { tableOf } from './conformance-table.ts'
import { deviceNames, tried } from './conformance.ts'

const test = suite('conformance')

const noPlug = ['status of an outlet that is not there: exit 1', 'off of an outlet that is not there: exit 1']
const oneMachine = ['off of two outlets in one run: both, or exit 1 and neither']
const noSecret = ['off with a wrong secret: exit 1, and still on']
const noAddress = ['off at a device that never answers: exit 1, by itself, within 30 s', 'status where nobody listens: exit 1']
const noBackEnd = ['status with the back end gone: exit 1']
/** What ours are not asked, and why not. The rest of them is asked all. */
const notRun: Readonly<Record<string, readonly string[]>> = {
  ipmi: [...noPlug, ...oneMachine], // a controller is one machine's
  'switch-snmp': noBackEnd, // who answers and who carries frames is one kernel
  aws: noAddress, // its endpoint is no parameter that the tool knows
  gce: [...noAddress, ...oneMachine], azure: [...noAddress, ...oneMachine], openstack: [...noAddress, ...oneMachine], // as for aws; and there is one machine in each
  exec: noAddress, storage: noAddress, job: noAddress, // they speak to no address of a device
  libvirt: [...noSecret, ...noAddress], // by a socket of this machine
}

test('every clause is kept by ours and at least three of the others lie, as the docs have it', async () => {
  const all = await tried(deviceNames, () => undefined)
  const ours = all.filter(({ program }) => !program.startsWith('fence_'))
  assert.equal(ours.flatMap(({ program, rows }) => rows.filter(({ verdict }) => verdict !== 'kept' && verdict !== 'not run').map((row) => ({ program, ...row }))), [])
  for (const { program, at, rows } of ours) {
    const left = rows.filter(({ verdict }) => verdict === 'not run')
    const why = left.map(({ clause, seen }) => `${clause} (${seen})`).join('; ')
    assert.equal(left.map(({ clause }) => clause).toSorted(), (notRun[program] ?? []).toSorted(), `what ${program} at ${at} is not asked: ${why}`)
  }
  const liars = all.filter(({ rows }) => rows.some(({ verdict }) => verdict === 'LIES')).map(({ program }) => program)
  assert.equal(liars, [
    'fence_apc_snmp', 'fence_eaton_snmp', 'fence_tripplite_snmp', 'fence_ipdu', 'fence_emerson', 'fence_ibmblade', 'fence_intelmodular', 'fence_cisco_mds', 'fence_ifmib', 'fence_dummy',
  ])
  assert.ok(readFileSync('docs/fence-agents.md', 'utf8').includes(tableOf(all)), `the table of docs/fence-agents.md is another one: node test/devices/conformance.ts\n${tableOf(all)}`)
})

test.run()
