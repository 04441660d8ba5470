import fc from 'fast-check'
import { validate } from 'node-cron'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parse } from 'yaml'
import { holdfastPolicy, readPolicy, specOfPolicy } from '../../coordinator/holdfast-policy.ts'
import { incidentBody, nodeFence, readIncident, statusBody } from '../../coordinator/node-fence.ts'
import { nodeRecord, readRecord, recordBody } from '../../coordinator/node-record.ts'
import { nodeRemedy, readRemedy } from '../../coordinator/node-remedy.ts'
import type { Kind } from '../../coordinator/schema-kind.ts'
import type { Incident } from '../../core/incident.ts'
import { defaultPolicy } from '../../core/policy.ts'
import { customResourceDefinitions, kinds, rootOf, type Property } from '../../deploy/crd.ts'
import { yamlOf } from '../../deploy/manifest.ts'
import { additions, everyProperty, refusalsOf, valueOf, variants, type Value } from './openapi.ts'

const test = suite('crd')

const schemaOf = (kind: Kind, part: 'spec' | 'status'): Property => rootOf(kind).properties[part] as Property // the root holds any JSON
const all = kinds.flatMap((kind) => (['spec', 'status'] as const).filter((part) => kind[part] !== undefined)
  .flatMap((part) => [...everyProperty(schemaOf(kind, part), `${kind.kind}.${part}`)]))

const policySpec = schemaOf(holdfastPolicy, 'spec')
const fenceSpec = schemaOf(nodeFence, 'spec')
const fenceStatus = schemaOf(nodeFence, 'status')
const recordSpec = schemaOf(nodeRecord, 'spec')
const remedySpec = schemaOf(nodeRemedy, 'spec')

/** The rules of a NodeRemedy's threshold, said a second time. */
function measures(spec: Value): boolean {
  return (Object(spec).thresholds ?? []).every(({ vital, above, condition }: { vital?: string; above?: number; condition?: string }) => (
    (vital === undefined) !== (condition === undefined) && (vital === undefined) === (above === undefined)
    && (vital === undefined || vital === 'temperature' || (above ?? 0) < (vital === 'load' ? 25 : 100))
  ))
}

/** The rules of HoldfastPolicy that look at more than one field, said a second time; and the 31st of February, which no pattern knows. */
function agrees(value: Value): boolean {
  const { profile = 'balanced', powerOnFoundOff = false, nodeDownPodDeletionPolicy = 'DoNothing', selfFenced = 'refuse', giveUp = 'never', brakes, drills } = Object(value)
  const least = { fast: 3_000, balanced: 8_000, conservative: 45_000 }[String(profile)] ?? 0
  return (selfFenced === 'refuse' || giveUp === 'watchdog') && ((powerOnFoundOff === false && drills === undefined) || nodeDownPodDeletionPolicy !== 'DoNothing') && (drills === undefined || validate(drills.schedule)) && Number.parseInt(brakes?.stormWindow ?? '60000ms', 10) >= least
}

const policy = (spec: unknown) => ({ metadata: { name: 'usual' }, spec })
const record = (spec: unknown) => ({ metadata: { name: 'node-1', resourceVersion: '7' }, spec })
const fence = (spec: unknown, status?: unknown) => ({ metadata: { name: 'node-1-abc', uid: 'u', resourceVersion: '7' }, spec, ...(status === undefined ? {} : { status }) })

test('every field says what it is, in a sentence', () => {
  assert.ok(all.length > 100)
  for (const [path, property] of all) assert.match(property.description, /^[A-Z].*\.$/s, path)
})

test('every text, list, map and number has a limit', () => {
  for (const [path, property] of all) {
    const limits: Readonly<Record<string, readonly unknown[]>> = {
      string: [property.maxLength], array: [property.maxItems], integer: [property.minimum, property.maximum],
      object: [property.properties ?? property.maxProperties], boolean: [true],
    }
    for (const limit of limits[property.type ?? ''] ?? [undefined]) assert.not.type(limit, 'undefined', path)
  }
})

test('a list that is a map has its keys in every item', () => {
  for (const [path, property] of all) {
    for (const key of property['x-kubernetes-list-map-keys'] ?? []) assert.ok(property.items?.required?.includes(key), `${path} ${key}`)
  }
})

test('a default is a value that the field takes', () => {
  for (const [path, property] of all) if (property.default !== undefined) assert.equal(refusalsOf(property, property.default), [], path)
})

test('patterns are of the kind that Go understands too', () => {
  for (const [path, property] of all) if (property.pattern !== undefined) assert.not.match(property.pattern, /\(\?[=!<]|\\[dwsb1-9]/, path)
})

test('what a policy may be by the CRD is read, and written back as what the CRD takes, without loss', () => {
  fc.assert(fc.property(valueOf(policySpec).filter(agrees), (spec) => {
    const read = readPolicy(policy(spec))
    if (!read.ok) return assert.unreachable(JSON.stringify(read.faults))
    const back = specOfPolicy(read.policy)
    assert.equal(refusalsOf(policySpec, back), [])
    assert.equal(readPolicy(policy(back)), read)
  }), { numRuns: 300 })
})

/** As ours are; what a person leaves out is filled from elsewhere. */
function isWhole(spec: unknown): boolean {
  const { nodeUid = '', policy: wanted } = Object(spec)
  return nodeUid !== '' && wanted !== undefined && agrees(wanted)
}

test('what a NodeFence may be by the CRD is read, and written back as what the CRD takes, without loss', () => {
  fc.assert(fc.property(valueOf(fenceSpec).filter(isWhole), valueOf(fenceStatus).filter((status) => Object(status).taken === undefined || agrees(Object(status).taken.policy)), (spec, status) => {
    const read = readIncident(fence(spec, status))
    if (!read.ok) return assert.unreachable(JSON.stringify(read.faults))
    const { incident } = read
    const head = Object(incidentBody(incident)).spec
    const body = Object(statusBody(incident.name, '7', 'u', incident.status)).status
    assert.equal([...refusalsOf(fenceSpec, head), ...refusalsOf(fenceStatus, body)], [])
    assert.equal(readIncident(fence({ ...head, abort: incident.abort, ...(incident.acknowledge === undefined ? {} : { acknowledge: incident.acknowledge }) }, JSON.parse(JSON.stringify(body)))), read)
  }), { numRuns: 200 })
})

test('what a NodeRecord may be by the CRD is read, and written back as what the CRD takes, without loss', () => {
  fc.assert(fc.property(valueOf(recordSpec), (spec) => {
    const read = readRecord(record(spec))
    if (!read.ok) return assert.unreachable(JSON.stringify(read.faults))
    const back = Object(recordBody('node-1', read.record, 0)).spec
    assert.equal(refusalsOf(recordSpec, back), [])
    assert.equal(readRecord(record(back)), read)
  }), { numRuns: 200 })
})

test('what a NodeRemedy may be by the CRD is read, and what its rules refuse is not', () => {
  const anyOf = valueOf(remedySpec)
  fc.assert(fc.property(anyOf, (spec) => {
    assert.is(readRemedy(policy(spec)).ok, measures(spec), JSON.stringify(spec))
  }), { numRuns: 300 })
  assert.ok(fc.sample(anyOf, 300).some((spec) => measures(spec) && Object(spec).thresholds.length > 0), 'some of them are right')
})

/** For people only; the core has no use for them. */
const forPeople = /^(status)?\.(waitsFor|conditions\[\].*|summary)$/

function inVain(schema: Property, base: Value, read: (value: Value) => unknown): string[] {
  const before = JSON.stringify(read(base))
  return [...variants(schema, base)].filter(([path]) => !forPeople.test(path)).filter(([, other]) => JSON.stringify(read(other)) === before).map(([path]) => path)
}

const sample = (schema: Property): Value => must(fc.sample(valueOf(schema, true), { numRuns: 1, seed: 7 })[0])

const wholeFence = (): readonly [spec: Value, status: Value] => [{ ...Object(sample(fenceSpec)), policy: { ...Object(sample(fenceSpec)).policy, nodeDownPodDeletionPolicy: 'DeleteAllPods', giveUp: 'watchdog' } }, sample(fenceStatus)]

test('no field of a policy is there in vain: each one, changed, changes what is read', () => {
  const base = { ...Object(sample(policySpec)), nodeDownPodDeletionPolicy: 'DeleteAllPods', giveUp: 'watchdog', brakes: { ...Object(sample(policySpec)).brakes, stormWindow: '1h' } }
  assert.ok(readPolicy(policy(base)).ok)
  assert.equal(inVain(policySpec, base, (spec) => readPolicy(policy(spec))), [])
})

test('no field of a NodeFence is there in vain', () => {
  const [spec, status] = wholeFence()
  assert.ok(readIncident(fence(spec, status)).ok)
  assert.equal(inVain(fenceSpec, spec, (other) => readIncident(fence(other, status))), [])
  assert.equal(inVain(fenceStatus, status, (other) => readIncident(fence(spec, other))), [])
})

test('no field of a NodeRecord is there in vain', () => {
  assert.equal(inVain(recordSpec, sample(recordSpec), (spec) => readRecord(record(spec))), [])
})

function incidentOf(spec: Value, status: Value): Incident | undefined {
  const read = readIncident(fence(spec, status))
  return read.ok ? read.incident : undefined
}

test('what a later release adds to a NodeFence stops this one, wherever it may be an order or a proof; what is there for people alone is passed over', () => {
  const [spec, status] = wholeFence()
  const before = incidentOf(spec, status)
  assert.ok(before !== undefined)
  const passed = [
    ...[...additions(fenceSpec, spec)].map(([path, one]) => ({ path: `spec${path}`, got: incidentOf(one, status) })),
    ...[...additions(fenceStatus, status)].map(([path, other]) => ({ path: `status${path}`, got: incidentOf(spec, other) })),
  ].filter(({ got }) => got !== undefined)
  assert.equal([...new Set(passed.map(({ path }) => path))], ['status.holds[].weather', 'status.holds[].because', 'status.timeline[].weather', 'status.conditions[].weather'])
  for (const { path, got } of passed) {
    assert.equal({ ...got, status: { ...got?.status, holds: [] } }, { ...before, status: { ...before.status, holds: [] } }, path)
    assert.is(got?.status.holds.length, before.status.holds.length - (path.endsWith('because') ? 1 : 0), path)
  }
})

test('facts that a later release adds to a NodeRecord are passed over, and words that it adds are not', () => {
  const spec = sample(recordSpec)
  const before = readRecord(record(spec))
  for (const [path, other] of additions(recordSpec, spec)) {
    const got = readRecord(record(other))
    if (path.endsWith('.weather')) assert.equal(got, before, path)
    else assert.not.ok(got.ok, path)
  }
})

test('the kinds fill in, and a NodeFence bears of a policy, nothing unasked that a release before does not know', () => {
  // The API server puts a default into every object that it reads, also for replicas of the release before, and what these do not know is a fault
  // to them: the policy is not in force, the NodeFence holds its node. What is added has its default where it is read (core/policy.ts).
  const policyDefaults = `priority selector selector.matchLabels mode profile nodeDownPodDeletionPolicy onlyTerminating provisioners volumeAttachmentRecovery safeDetach release
    hungAfter evictWithin retries powerAfter restAfter bootWithin returnPatience afterPatience cleanUp clearPatience powerOnFoundOff identity cloudShutdown giveUp selfFenced kdump
    waitForPermit brakes brakes.stormPercent brakes.stormWindow brakes.concurrency brakes.repeatLimit brakes.repeatWindow brakes.etcd drills.again`.split(/\s+/)
  const known = new Set([
    ...['HoldfastPolicy.spec', 'HoldfastPolicy.status.inForce', 'NodeFence.spec.policy', 'NodeFence.status.taken.policy'].flatMap((of) => policyDefaults.map((field) => `${of}.${field}`)),
    ...['faults', 'conditions'].map((field) => `HoldfastPolicy.status.${field}`), ...['nodeUid', 'boot', 'machine', 'cause', 'abort'].map((field) => `NodeFence.spec.${field}`),
    ...['phase', 'step', 'level', 'round', 'term', 'attempts', 'voided', 'pods', 'volumes', 'holds', 'timeline', 'conditions'].map((field) => `NodeFence.status.${field}`),
    'NodeRecord.spec.paths', ...['selector', 'selector.matchLabels', 'remedy', 'again'].map((field) => `NodeRemedy.spec.${field}`),
  ])
  // As little does what every incident bears of its policy: what nobody asked for is not written (docs/decisions/0044-neighbours.md).
  const written = specOfPolicy({ ...defaultPolicy, name: 'usual' })
  assert.equal([...Object.keys(written), ...Object.keys(written.brakes ?? {}).map((name) => `brakes.${name}`)].filter((field) => !policyDefaults.includes(field)), [])
  assert.equal(all.filter(([path, { default: filled }]) => filled !== undefined && !known.has(path)).map(([path]) => path), [])
})

test('what makes an incident is settled when it is opened: only abort, one way, and acknowledge can be changed', () => {
  const rules = Object.entries(fenceSpec.properties ?? {}).map(([name, property]) => [name, (property['x-kubernetes-validations'] ?? []).map((rule) => Object(rule).rule)])
  const settled = ['nodeName', 'nodeUid', 'boot', 'machine', 'cause', 'policy'].map((name) => [name, ['self == oldSelf']])
  assert.equal(rules, [...settled, ['abort', ['!oldSelf || self']], ['acknowledge', []]])
})

test('kinds are cluster-wide, short to type, and columns name fields that exist', () => {
  for (const kind of kinds) {
    const definition = customResourceDefinitions()[kinds.indexOf(kind)]
    const spec = Object(definition?.['spec'])
    assert.is(spec.scope, 'Cluster')
    assert.is(definition?.metadata.name, `${kind.plural}.holdfast.dev`)
    for (const { path } of kind.columns.filter((column) => !column.path.startsWith('.metadata'))) {
      const plain = path.replace(/\[\?.*?\]/, '[]')
      assert.ok(all.some(([known]) => known === `${kind.kind}${plain}`), path)
    }
  }
  assert.equal(kinds.map((kind) => kind.shortNames), [['hp'], ['nf'], ['nrec'], ['nrem']])
  assert.equal(nodeFence.columns.filter((column) => column.wide !== true).map((column) => column.name), ['Node', 'Phase', 'Step', 'Proof', 'Waits-For', 'Age'])
})

test('no word turns into a truth value on its way through YAML as kubectl reads it', () => {
  const text = yamlOf(customResourceDefinitions())
  assert.not.match(text, /^ *- (off|on|yes|no|y|n)$/im)
  const first = Object(parse(text.split('---\n')[1] ?? '', { version: '1.1' }))
  const status = first.spec.versions[0].schema.openAPIV3Schema.properties.status.properties
  assert.equal(status.attempts.items.properties.action.enum, ['off', 'on'])
})

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('no sample')
  return value
}

test.run()
