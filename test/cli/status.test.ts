import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { paint, showsColours, showsUnicode } from '../../cli/paint.ts'
import { statusLines, statusOf } from '../../cli/status.ts'
import type { Cluster } from '../../cli/cluster.ts'
import { quarantineKey } from '../../core/clear.ts'
import type { IncidentStatus } from '../../core/incident.ts'
import { incident, policy, record } from '../core/world.ts'
import { cluster, kept, part, refused } from './cluster-seen.ts'

const test = suite('status')

const began = Date.parse('2026-01-02T03:04:05.000Z')
const at = (seconds: number): string => new Date(began + seconds * 1_000).toISOString()
const plain = paint({ colours: false, unicode: true })
const lines = (seen: Cluster, after = 10): string[] => statusLines(statusOf(seen, began + after * 1_000), began + after * 1_000, plain)

const running: Partial<IncidentStatus> = {
  phase: 'Running', step: 'clear',
  timeline: [
    { at: at(0), what: 'opened', detail: 'silence, by replica-0: probe silent' },
    { at: at(3.1), what: 'proven', detail: 'off: order bmc off' },
    { at: at(3.2), what: 'tainted', detail: 'quarantine and out-of-service' },
  ],
  holds: [{ because: 'waiting-for-volumes', detail: '1 volumes are still attached: pv-web', lifts: 'their VolumeAttachments gone', since: at(4) }],
  volumes: [{ attachment: 'a', volume: 'pv-db', driver: 'd', fate: 'released' }, { attachment: 'b', volume: 'pv-web', driver: 'd', fate: 'attached' }],
}

test('the first line says whether it is well, and who leads', () => {
  assert.equal(lines(cluster()), ['√ 2 well   paths 2/2 verified   leader replica-0'])
  assert.ok(statusOf(cluster(), began).well)
})

test('an open incident is a tree: what was reached and when, what it waits for and what lifts it, what is ahead', () => {
  const text = lines(cluster({ incidents: part([incident(running)]), nodes: part([kept('node-1'), kept('node-2', { taints: [{ key: quarantineKey, effect: 'NoSchedule' }] })]) })).join('\n')
  assert.match(text, /^√ 1 well {3}● 1 fencing {3}‼ 1 quarantined/)
  assert.match(text, /node-2 {2}● Running: clear {2}silence, for 10\.0 s/)
  assert.match(text, /├─ √ proven +\+3\.1 s {2}off: order bmc off/)
  assert.match(text, /├─ ◷ volumes +1\/2 released, waits for pv-web/)
  assert.match(text, /├─ ‼ held: waiting-for-volumes, for 6\.0 s: 1 volumes are still attached: pv-web\n│ +lifted by: their VolumeAttachments gone/)
  assert.match(text, /└─ ◌ quarantine lifted$/)
})

test('a closed incident is one line with its outcome and its proof', () => {
  const closed = incident({ ...running, phase: 'Final', outcome: 'Recovered', holds: [], timeline: [...running.timeline ?? [], { at: at(40), what: 'closed', detail: 'Recovered' }] })
  const text = lines(cluster({ incidents: part([closed]) }), 100)
  assert.is(text.at(-1), '√ node-2  Recovered after 40.0 s, 1 min 0 s ago  node-2-abc-1')
  assert.ok(statusOf(cluster({ incidents: part([closed]) }), began).well)
})

test('a node that is not Ready, nobody who leads, a pause: none of them is well', () => {
  assert.not(statusOf(cluster({ nodes: part([kept('node-1', { ready: { status: 'Unknown', heartbeat: '' } })]) }), began).well)
  assert.not(statusOf(cluster({ lease: part({ holder: '', term: 1, renewTime: '' }) }), began).well)
  assert.not(statusOf(cluster({ pause: part({ reason: 'r', by: 'b' }) }), began).well)
  assert.is(statusOf(cluster({ pause: part({ reason: 'r', by: 'b', until: new Date(began).toISOString() }) }), began).pause, undefined)
  assert.match(lines(cluster({ lease: part({ holder: '', term: 1, renewTime: '' }) })).join('\n'), /× no replica leads/)
})

const turned = (missed: readonly string[]): Cluster['lease'] => part({ holder: 'replica-0', term: 3, renewTime: '', turn: { turn: 2, began: at(-600), ended: at(-500), stale: at(6_600), missed } })

test('how long ago the paths were audited stands in the first line, and those that were not since are named', () => {
  assert.equal(lines(cluster({ lease: turned([]) })), ['√ 2 well   paths 2/2 verified, audited 10 min 10 s ago   leader replica-0'])
  const [first, second] = lines(cluster({ lease: turned(['node-2']) }))
  assert.equal([first, second], ['√ 2 well   ‼ paths 1/2 verified, audited 10 min 10 s ago   leader replica-0', '‼ audited too long ago: node-2 bmc-off (nobody knows when)'])
  assert.not(statusOf(cluster({ lease: turned(['node-2']) }), began).well)
})

test('a node with a vital beyond its limit is named with it', () => {
  const records = part(new Map([['node-1', record({ nodeUid: 'uid-node-1', strains: ['disk', 'load'] })], ['node-2', record({ nodeUid: 'uid-node-2', strains: [] })]]))
  assert.match(lines(cluster({ records })).join('\n'), /‼ beyond their limits: node-1 \(disk, load\)$/m)
})

test('a node whose runtime does not ask the gate is named', () => {
  const records = part(new Map([['node-1', record({ nodeUid: 'uid-node-1', gate: 'absent' })], ['node-2', record({ nodeUid: 'uid-node-2', gate: 'asks' })]]))
  assert.match(lines(cluster({ records })).join('\n'), /‼ no gate, taints alone hold pods: node-1$/m)
})

test('an audit of an earlier boot is not counted as verified', () => {
  assert.equal(statusOf(cluster({ nodes: part([kept('node-1'), kept('node-2', { bootId: 'boot-9' })]) }), began).paths, { verified: 1, all: 2 })
})

test('what may not be read is said, and the rest is shown', () => {
  const text = lines(cluster({ incidents: refused('forbidden'), policies: refused('forbidden') })).join('\n')
  assert.match(text, /√ 2 well/)
  assert.match(text, /‼ not read: incidents, policies: forbidden/)
})

test('a NodeFence that cannot be read is told with its node and with what lifts it, and then it is not well', () => {
  const seen = cluster({ unreadable: [{ name: 'node-2-abc-1', node: 'node-2', faults: 'spec.weather is not known' }] })
  assert.not(statusOf(seen, began).well)
  assert.equal(lines(seen).slice(1), [
    '', '‼ node-2 is left alone: its NodeFence node-2-abc-1 cannot be read: spec.weather is not known',
    '  lifted by: a release that knows what stands there, or a person who mends or deletes it',
  ])
  assert.match(lines(seen)[0] ?? '', /^√ 1 well /)
})

test('faults of fence ConfigMaps are told, and then it is not well', () => {
  const seen = cluster({ fenceMaps: part([{ name: 'fence-config-node-1', data: { 'config.properties': 'oops' } }]) })
  assert.not(statusOf(seen, began).well)
  assert.equal(lines(seen).slice(1), ['‼ faults in fence ConfigMaps: ConfigMap fence-config-node-1, config.properties, line 1: is not of the form key=value'])
})

test('a cluster that cannot be read at all is one line', () => {
  const nothing = refused('connection refused')
  const blind = cluster({ version: nothing, kinds: nothing, nodes: nothing, incidents: nothing, records: nothing, policies: nothing, remedies: nothing, lease: nothing, pause: nothing, fenceMaps: nothing, agents: nothing, daemonSets: nothing, staticPods: nothing, longhorn: nothing, storks: nothing, guards: nothing, denying: nothing, gaveUp: nothing })
  assert.equal(lines(blind), ['× the cluster cannot be read: connection refused'])
})

test('without UTF-8 there are no glyphs, without a terminal no colours', () => {
  const ascii = statusLines(statusOf(cluster({ incidents: part([incident(running)]) }), began), began, paint({ colours: false, unicode: false })).join('\n')
  assert.ok([...ascii].every((letter) => letter === '\n' || (letter >= ' ' && letter <= '~')), ascii)
  const coloured = statusLines(statusOf(cluster(), began), began, paint({ colours: true, unicode: true })).join('\n')
  assert.ok(coloured.includes('\u001B[32m'))
  assert.equal([showsUnicode({ LANG: 'C' }), showsUnicode({ LANG: 'de_DE.UTF-8' }), showsUnicode({ LANG: 'de_DE.UTF-8', LC_ALL: 'C' })], [false, true, false])
  assert.equal([showsColours({}, false), showsColours({}, true), showsColours({ NO_COLOR: '1' }, true), showsColours({ TERM: 'dumb' }, true)], [false, true, false, false])
})

test('a node without a fence path is counted as one that lacks it, and then it is not well', () => {
  const bare = cluster({ records: part(new Map([['node-1', record({ nodeUid: 'uid-node-1' })], ['node-2', record({ nodeUid: 'uid-node-2', paths: [] })]])) })
  assert.equal(statusOf(bare, began).paths, { verified: 1, all: 2 })
  assert.equal(lines(bare), ['√ 2 well   ‼ paths 1/2 verified   leader replica-0', '‼ no fence path: node-2'])
  assert.not(statusOf(bare, began).well)
})

test('nodes that nobody acts for are told: two policies of one priority, none, or one that is a dry run', () => {
  const twins = cluster({ policies: part(['p', 'q'].map((name) => ({ name, policy: { ...policy, name }, faults: '' }))) })
  assert.equal(lines(twins).slice(1), ['‼ node-1, node-2 are only watched: policies p and q select them with one priority'])
  const none = cluster({ policies: part([]) })
  assert.equal(lines(none).slice(1), ['‼ node-1, node-2 are only watched: no policy selects them'])
  const dry = cluster({ policies: part([{ name: 'p', policy: { ...policy, name: 'p', mode: 'dryRun' as const }, faults: '' }]) })
  assert.equal(lines(dry).slice(1), ['‼ node-1, node-2 are only watched: policy p is a dry run'])
  assert.equal([twins, none, dry].map((one) => statusOf(one, began).well), [false, false, false])
  assert.equal(lines(cluster({ policies: refused('forbidden') })).slice(1), ['', '‼ not read: policies: forbidden'], 'what was not read is not said to be missing')
})

test('a pause of a policy stands there as the cluster-wide one does', () => {
  const pause = { reason: 'new switches', by: 'ops' }
  const some = cluster({ policies: part([{ name: 'all', policy: { ...policy, pause }, faults: '' }]) })
  assert.equal(lines(some).slice(1), ['‼ policy all is paused by ops: new switches'])
  assert.equal(lines(cluster({ pause: part(pause) })).slice(1), ['‼ paused by ops: new switches'])
  assert.not(statusOf(some, began).well)
})

test.run()
