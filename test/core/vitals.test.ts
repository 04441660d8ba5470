import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { strainsOf, type Strain, type Vitals } from '../../core/vitals.ts'

const test = suite('vitals')

const cases: readonly (readonly [string, Vitals, readonly Strain[], readonly Strain[]])[] = [
  ['nothing told is no strain', {}, [], []],
  ['a disk at its limit', { disk: 90 }, [], []],
  ['a disk beyond its limit', { disk: 90.5 }, [], ['disk']],
  ['one that was beyond it, and is not well below', { disk: 86 }, ['disk'], ['disk']],
  ['one that was beyond it, and is', { disk: 85 }, ['disk'], []],
  ['the same share of a disk that was never beyond it', { disk: 86 }, ['inodes'], []],
  ['a strain whose vital is told no more', { memory: 99 }, ['disk'], ['memory']],
  ['everything at once, in one order', { load: 9, temperature: 99, memory: 99, inodes: 99, disk: 99 }, [], ['disk', 'inodes', 'memory', 'temperature', 'load']],
  ['all of it well', { load: 1, temperature: 60, memory: 50, inodes: 9, disk: 40 }, ['disk', 'inodes', 'memory', 'temperature', 'load'], []],
]

for (const [what, vitals, before, strains] of cases) test(what, () => assert.equal(strainsOf(vitals, before), strains))

test.run()
