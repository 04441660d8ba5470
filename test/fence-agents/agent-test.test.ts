// The conformance tool on a program that keeps the contract, and on programs that break it in the ways that were met.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tableOf, testAgent, testOver } from './agent-test.ts'
import type { Row } from './clauses.ts'
import { inPlace, programsHere, type AgentPlace } from './place.ts'
import { startSnmpDevice, v2c } from './snmp-device.ts'

const test = suite('agent-test')

const state = '1.3.6.1.4.1.318.1.1.12.3.5.1.1.4'

async function rowsOf(program: string, params: readonly string[]): Promise<ReadonlyMap<string, Row>> {
  const rows = await testAgent(program, params.join('\n'), () => undefined)
  return new Map(rows.map((row) => [row.clause, row]))
}

/** A program in shell whose outlets are files. `off` and `reads` are what it does and says in the place of the honest. */
function script(place: AgentPlace, { off = 'for one in $plug; do :; done; echo off > "$folder/$one"', reads = 'cat "$folder/$plug"', missing = 'exit 1' } = {}): string[] {
  const file = join(place.folder, 'relay')
  writeFileSync(file, [
    '#!/bin/sh', `folder=${place.folder}`, 'action= plug= password=',
    'while IFS= read -r line; do case $line in action=*) action=${line#*=} ;; plug=*) plug=${line#*=} ;; password=*) password=${line#*=} ;; esac; done',
    `[ -n "$action" ] || { ${missing}; }`,
    'case $action in',
    'metadata) echo "<resource-agent/>"; exit 0 ;; validate-all | monitor) exit 0 ;;',
    'on | off) [ "$password" = right ] || exit 1 ;;', 'esac',
    'case $action in',
    'on) echo on > "$folder/$plug" ;;',
    `off) ${off} ;;`,
    `status) case $(${reads}) in on) exit 0 ;; *) exit 2 ;; esac ;;`,
    '*) exit 1 ;; esac', '',
  ].join('\n'))
  chmodSync(file, 0o755)
  for (const plug of ['one', 'two']) writeFileSync(join(place.folder, plug), 'on\n')
  return ['plug=one', 'other=two', 'unknown=nine', 'password=right', 'wrong.password=guess', `truth=cat ${place.folder}/$PLUG`]
}

const verdicts = (rows: ReadonlyMap<string, Row>, wanted: Row['verdict']) => [...rows.values()].filter(({ verdict }) => verdict === wanted).map(({ clause }) => clause)

test('a program that keeps the contract keeps every clause', async () => {
  const strip = await startSnmpDevice({ [`${state}.1`]: { type: 'Integer', value: 1 }, [`${state}.2`]: { type: 'Integer', value: 1 } }, (oid, value, values) => {
    values.set(`${state}.${oid.split('.').at(-1)}`, { type: 'Integer', value })
  })
  try {
    const told = await testOver(programsHere, 'pdu-snmp', [
      'ip=127.0.0.1', `ipport=${strip.port}`, `community=${v2c.community}`, 'model=apc-rpdu', 'plug=1', 'unknown=99', 'other=2', 'wrong.community=guess', 'shell_timeout=0.6',
    ].join('\n'), () => undefined)
    const rows = new Map(told.map((row) => [row.clause, row]))
    assert.equal(verdicts(rows, 'broken'), [])
    assert.equal(verdicts(rows, 'LIES'), [])
    assert.ok(verdicts(rows, 'kept').length >= 19)
    assert.equal(strip.orders.length, 5, 'on, off, off, on, on, and no more')
  } finally {
    await strip.close()
  }
})

test('whoever calls an outlet off that is not there lies', () => inPlace(async (place) => {
  const rows = await rowsOf(join(place.folder, 'relay'), script(place, { reads: 'cat "$folder/$plug" 2>/dev/null || echo off' }))
  assert.is(rows.get('status of an outlet that is not there: exit 1')?.verdict, 'LIES')
  assert.is(rows.get('off: exit 0, and off')?.verdict, 'kept')
  assert.is(rows.get('off with a wrong secret: exit 1, and still on')?.verdict, 'kept')
}))

test('whoever says off, and has not switched it, lies', () => inPlace(async (place) => {
  const rows = await rowsOf(join(place.folder, 'relay'), script(place, { off: 'exit 0' }))
  assert.is(rows.get('off: exit 0, and off')?.verdict, 'LIES')
}))

test('whoever switches one of two and says it is done lies', () => inPlace(async (place) => {
  const rows = await rowsOf(join(place.folder, 'relay'), script(place, { off: 'echo off > "$folder/${plug%%,*}"' }))
  assert.is(rows.get('off of two outlets in one run: both, or exit 1 and neither')?.verdict, 'LIES')
}))

test('whoever acts on garbage that stands before what names its device breaks a clause', () => inPlace(async (place) => {
  const rows = await rowsOf(join(place.folder, 'relay'), script(place, { missing: 'echo off > "$folder/$plug" 2>/dev/null; exit 1' }))
  assert.is(rows.get('garbage on stdin: nothing done, exit 1')?.verdict, 'broken')
}))

test('whoever acts without an action breaks a clause', () => inPlace(async (place) => {
  const rows = await rowsOf(join(place.folder, 'relay'), script(place, { missing: 'echo off > "$folder/$plug"; exit 0' }))
  assert.is(rows.get('no action: nothing done, exit 1')?.verdict, 'broken')
  assert.is(rows.get('an unknown action: nothing done, exit 1')?.verdict, 'kept', 'what it did before is not held against it')
}))

test('a clause for which something is not given is not run, and says what', () => inPlace(async (place) => {
  const rows = await rowsOf(join(place.folder, 'relay'), script(place).filter((line) => !/^(unknown|other|wrong)/.test(line)))
  assert.is(verdicts(rows, 'not run').length, 7)
  assert.match(rows.get('off of an outlet that is not there: exit 1')?.seen ?? '', /unknown= is not given/)
}))

test('the table is one row a clause, whatever a program prints', () => {
  assert.is(tableOf([{ clause: 'a', verdict: 'kept', seen: 'x | y\nz', took: 7 }]), '| clause | verdict | what was seen | ms |\n|---|---|---|---|\n| a | kept | x \\| y z | 7 |')
})

test.run()
