import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readRecord, recordBody, recordsPath } from '../../coordinator/node-record.ts'
import type { KubeObject } from '../../coordinator/api.ts'
import type { NodeRecord } from '../../core/model.ts'

const test = suite('node-record')

const facts: Omit<NodeRecord, 'resourceVersion'> = {
  nodeUid: 'u1', boot: 'b/1', machine: 'm', addresses: ['10.0.0.7', 'fd00::7'],
  paths: [
    { method: 'bmc', digest: 'd1', boot: 'b/1', state: 'verified', identity: 'proven', at: '', evidence: 'exit 0' },
    { method: 'pdu', digest: 'd2', boot: 'b/1', state: 'unreachable', identity: 'unproven', at: '2026-01-01T00:00:00.000Z', evidence: 'x'.repeat(9_000) },
  ],
  probe: { boot: 'b/1', answered: true, at: '' }, gate: 'asks', strains: ['disk', 'load'],
  watchdog: { boot: 'b/1', state: 'armed', identity: 'i6300ESB timer', timeout: 30_000, panic: -1, machine: 'real', epoch: 2, memberships: [{ epoch: 2, agents: ['node-2'], replicas: ['replica-0'] }] },
}
const wall = Date.parse('2026-01-31T12:00:00.000Z')

test('a record is one object under the name of its node, and reads back', () => {
  const body = recordBody('node-1', facts, wall) as KubeObject // what a server would hand back of it
  assert.is(recordsPath, '/apis/holdfast.dev/v1alpha1/noderecords')
  assert.equal(body.metadata, { name: 'node-1' })
  const read = readRecord({ ...body, metadata: { ...body.metadata, resourceVersion: '9' } })
  assert.ok(read.ok)
  if (!read.ok) return
  assert.equal({ ...read.record, paths: [] }, { ...facts, paths: [], probe: { ...facts.probe, at: '2026-01-31T12:00:00.000Z' }, resourceVersion: '9' })
})

test('an audit without a time gets the time of writing; one that has a time keeps it', () => {
  const { spec } = Object(recordBody('node-1', facts, wall))
  assert.equal(spec.paths.map((path: { at: string }) => path.at), ['2026-01-31T12:00:00.000Z', '2026-01-01T00:00:00.000Z'])
  assert.is(spec.probe.at, '2026-01-31T12:00:00.000Z')
})

test('what a device said is cut rather than refused', () => {
  assert.is(Object(recordBody('node-1', facts, wall)).spec.paths[1].evidence.length, 1_024)
})

test('a replacement names the version that it replaces', () => {
  assert.is(Object(recordBody('node-1', facts, wall, '9')).metadata.resourceVersion, '9')
})

test('people see what the audits found in one column', () => {
  assert.is(Object(recordBody('node-1', facts, wall)).spec.summary, 'bmc verified, pdu unreachable')
  const { probe: _, ...portless } = facts
  assert.is(Object(recordBody('node-1', portless, wall)).spec.summary, 'bmc verified, pdu unreachable, kubelet port not asked: the Node names no IP address')
})

test('a record with a word that is not known is not read', () => {
  const { spec } = Object(recordBody('node-1', facts, wall))
  const read = readRecord(Object({ metadata: { name: 'node-1' }, spec: { ...spec, paths: [{ ...spec.paths[0], state: 'fine' }] } }))
  assert.equal(read.ok ? [] : read.faults.map((fault) => fault.path), ['spec.paths[0].state'])
})

test('a record is not read whose addresses are none, or more than a machine has', () => {
  const { spec } = Object(recordBody('node-1', facts, wall))
  const faults = (addresses: readonly string[]) => {
    const read = readRecord(Object({ metadata: { name: 'node-1' }, spec: { ...spec, addresses } }))
    return read.ok ? [] : read.faults.map((fault) => fault.path)
  }
  assert.equal(faults(Array.from({ length: 16 }, (_, index) => `10.0.0.${index}`)), [])
  for (const address of ['10.0.0.7 10.0.0.8', '10.0.0.7,10.0.0.8', '10.0.0.0/24', 'node-1', '', 'f'.repeat(46)]) assert.equal(faults(['10.0.0.7', address]), ['spec.addresses[1]'], address)
  assert.equal(faults(Array.from({ length: 17 }, (_, index) => `10.0.0.${index}`)), ['spec.addresses'])
})

test.run()
