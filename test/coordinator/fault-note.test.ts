// What an Event says of many faults, within what the API server takes.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { faultNote, noteLimit } from '../../coordinator/fault-note.ts'

const test = suite('fault note')

const faults = (count: number): string[] => Array.from({ length: count }, (_, index) => (
  `ConfigMap fence-config-node-2, fence-method-bmc-${index}, line ${index + 1}: is not a time from 1000 ms to 600000 ms, and nothing else can be read from it`
))

test('few faults stand whole, and their ConfigMap is named once', () => {
  assert.is(
    faultNote('the last good one stays in force', ['ConfigMap one, config.properties, line 1: a', 'ConfigMap one, config.properties, line 2: b', 'ConfigMap two, template.properties, line 3: c']),
    'the last good one stays in force: ConfigMap one, config.properties, line 1: a; config.properties, line 2: b; ConfigMap two, template.properties, line 3: c',
  )
  assert.is(faultNote('this policy is not in force', ['spec.profile: is not one of them', 'spec.mode: neither']), 'this policy is not in force: spec.profile: is not one of them; spec.mode: neither')
})

test('of what finds no room the place is told, of every one', () => {
  for (const count of [9, 15, 25]) {
    const note = faultNote('the last good one stays in force', faults(count))
    assert.ok(Buffer.byteLength(note) <= noteLimit, note)
    for (let index = 0; index < count; index += 1) assert.match(note, new RegExp(`fence-method-bmc-${index}, line ${index + 1}[:;]`))
    assert.match(note, /wrong: fence-method-bmc-\d+, line \d+; .*all of it in the coordinator's log$/)
  }
})

test('of what finds no room even so the number is told', () => {
  const note = faultNote('the last good one stays in force', faults(200))
  assert.ok(Buffer.byteLength(note) <= noteLimit, note)
  const named = [...note.matchAll(/fence-method-bmc-\d+, line/g)].length
  assert.ok(named > 20, note)
  assert.ok(note.endsWith(`; and ${200 - named} more; all of it in the coordinator's log`), note)
})

test('a fault that is longer than a note keeps its place; one whose place is, its number', () => {
  const note = faultNote('x', [`spec.${'ü'.repeat(100)}: ${'ü'.repeat(600)}`, 'spec.mode: neither'])
  assert.ok(Buffer.byteLength(note) <= noteLimit)
  assert.match(note, /^x: wrong: spec\.ü+; spec\.mode; all of it/)
  assert.is(faultNote('x', [`${'ü'.repeat(600)}: a`]), "x: 1 faults, told in the coordinator's log")
})

test.run()
