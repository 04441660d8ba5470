import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { fit, shapeOf } from '../../coordinator/schema-shape.ts'
import { duration, flag, labels, list, prose, read, showFaults, text, whole, word } from '../../coordinator/schema.ts'

const test = suite('schema')

const machine = v.pipe(
  v.object({
    name: text('Its name.', 5),
    power: v.exactOptional(word('How it is.', { on: 'running', off: '' }), 'on'),
    outlets: v.exactOptional(list('Its outlets.', v.pipe(v.object({ number: whole('Which.', 1, 8) }), v.description('One.')), 2), []),
    remarks: v.exactOptional(prose('What is to be said.', 10)),
    patience: v.exactOptional(duration('How long to wait.', 1_000, 60_000), '5s'),
    labels: v.exactOptional(labels('Its labels.', 1), {}),
    spare: v.exactOptional(flag('Whether it is one.')),
  }),
  v.description('A machine.'),
)

const faults = (value: unknown): string[] => {
  const got = read(machine, value, 'spec')
  return got.ok ? [] : got.faults.map((fault) => `${fault.path}: ${fault.says}`)
}

test('what is left out has its default', () => {
  assert.equal(read(machine, { name: 'm1' }, 'spec'), { ok: true, value: { name: 'm1', power: 'on', outlets: [], patience: 5_000, labels: {} } })
})

test('every fault is told at once, each with its path', () => {
  assert.equal(faults({
    power: 'maybe', outlets: [{ number: 9, colour: 1 }, { number: 1.5 }, {}], remarks: 7, patience: '2h', labels: { 'a/b': 'no blanks' }, spare: 'yes', colour: 'red',
  }), [
    'spec.name: is missing',
    'spec.power: must be one of on, off; is "maybe"',
    'spec.outlets[0].number: must be at most 8, is 9',
    'spec.outlets[1].number: must be a whole number, is 1.5',
    'spec.outlets[2].number: is missing',
    'spec.remarks: must be text, is 7',
    'spec.patience: must be at most 1m',
    'spec.labels["a/b"]: is not a label value',
    'spec.spare: must be true or false, is "yes"',
    'spec.outlets: has 3 items, at most 2 are allowed',
    'spec.outlets[0].colour: is not a field; known are number',
    'spec.colour: is not a field; known are name, power, outlets, remarks, patience, labels, spare',
  ])
})

test('a field that is only spelt otherwise is named', () => {
  assert.equal(faults({ name: 'm1', Power: 'off' }), ['spec.Power: is not a field; power is'])
})

test('what is not there at all, and what is a list, is no object', () => {
  assert.equal(faults(undefined), ['spec: is missing'])
  assert.equal(faults(null), ['spec: must be an object, is null'])
  assert.ok(faults([]).includes('spec: must be an object, is a list'))
  assert.ok(faults({ name: 'm1', labels: [] }).includes('spec.labels: must be an object, is a list'))
})

test('null is no way to leave a field out', () => {
  assert.equal(faults({ name: 'm1', remarks: null }), ['spec.remarks: must be text, is null'])
})

for (const bad of ['', '5', '5 s', '-5s', '5d', 's', '1h 30m', '5S']) {
  test(`${JSON.stringify(bad)} is no duration`, () => assert.equal(faults({ name: 'm1', patience: bad }), ['spec.patience: must be a duration such as 90s, 10m or 1h30m']))
}

test('a long value is not echoed whole', () => {
  assert.ok((faults({ name: 'm1', power: 'x'.repeat(5_000) })[0]?.length ?? 0) < 200)
})

test('faults are one line each', () => {
  assert.is(showFaults([{ path: 'spec.a', says: 'is missing' }, { path: 'spec.b', says: 'is empty' }]), 'spec.a: is missing; spec.b: is empty')
})

test('what is written is made to fit: sentences cut, the newest items kept, numbers whole', () => {
  const shape = shapeOf(machine, 'spec')
  const fitted = fit(shape, { name: 'too long', remarks: 'twelve letters', outlets: [{ number: 1 }, { number: 2.4 }, { number: 99 }] })
  assert.equal(fitted, { name: 'too long', remarks: 'twelve le…', outlets: [{ number: 2 }, { number: 8 }] })
})

test('a sentence is never cut within a letter', () => {
  const fitted = Object(fit(shapeOf(machine, 'spec'), { name: 'm1', remarks: `12345678${'😀'.repeat(9)}` }))
  assert.is(fitted.remarks, '12345678…')
  assert.ok(read(machine, fitted, 'spec').ok)
})

test('a field without a description, or without a limit, is a fault of ours that shows at once', () => {
  assert.throws(() => shapeOf(v.pipe(v.string(), v.maxLength(3)), 'spec.a'), /spec.a has no description/)
  assert.throws(() => shapeOf(v.pipe(v.string(), v.description('A.')), 'spec.a'), /spec.a has no max_length/)
  assert.throws(() => shapeOf(v.pipe(v.number(), v.minValue(1), v.maxValue(2), v.description('A.')), 'spec.a'), /not a whole number/)
  assert.throws(() => shapeOf(v.pipe(v.any(), v.description('A.')), 'spec.a'), /any has no counterpart/)
})

test.run()
