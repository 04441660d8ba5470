// How a NodeRemedy is read, and what its faults say.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readRemedy } from '../../coordinator/node-remedy.ts'
import { showFaults } from '../../coordinator/schema.ts'

const test = suite('node remedy')

const object = (spec: unknown) => ({ metadata: { name: 'disks' }, spec })
const full = { name: 'full', vital: 'disk', above: 95, period: '15m' }

test('one with what it must have is read, and the rest is as usual', () => {
  assert.equal(readRemedy(object({ thresholds: [full, { name: 'locked', condition: 'KernelDeadlock', period: '5m' }] })), { ok: true, remedy: {
    name: 'disks', nodeLabels: {}, does: 'tell', again: 86_400_000,
    thresholds: [{ name: 'full', period: 900_000, vital: { name: 'disk', above: 95 } }, { name: 'locked', period: 300_000, condition: 'KernelDeadlock' }],
  } })
})

test('everything that can be said is read', () => {
  const read = readRemedy(object({ selector: { matchLabels: { pool: 'db' } }, thresholds: [full], remedy: 'fence', again: '2h' }))
  assert.equal(read.ok && [read.remedy.nodeLabels, read.remedy.does, read.remedy.again], [{ pool: 'db' }, 'fence', 7_200_000])
})

for (const [what, threshold, says] of [
  ['neither of the two', { name: 'a', period: '5m' }, 'spec.thresholds[0]: needs either vital or condition'],
  ['both', { ...full, condition: 'KernelDeadlock' }, 'spec.thresholds[0]: needs either vital or condition'],
  ['a vital without its limit', { name: 'a', vital: 'disk', period: '5m' }, 'spec.thresholds[0]: vital and above go together'],
  ['a limit of no vital', { name: 'a', condition: 'KernelDeadlock', above: 3, period: '5m' }, 'spec.thresholds[0]: vital and above go together'],
  ['a share that is never reached', { ...full, above: 100 }, 'spec.thresholds[0]: is never reached: a share is told up to 100, and load up to 25'],
  ['a load that is never told', { ...full, vital: 'load', above: 25 }, 'spec.thresholds[0]: is never reached: a share is told up to 100, and load up to 25'],
  ['a vital that nobody tells', { ...full, vital: 'humidity' }, 'spec.thresholds[0].vital: must be one of disk, inodes, memory, temperature, load; is "humidity"'],
  ['less time than a vital needs to be told twice', { ...full, period: '4m' }, 'spec.thresholds[0].period: must be at least 5m'],
  ['a field that is none', { ...full, below: 3 }, 'spec.thresholds[0].below: is not a field; known are name, vital, above, condition, period'],
] as const) {
  test(`${what} is a fault: ${says}`, () => {
    const read = readRemedy(object({ thresholds: [threshold] }))
    assert.is(read.ok ? '' : showFaults(read.faults), says)
  })
}

test.run()
