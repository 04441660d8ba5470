import { readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { AuditTurn } from '../../coordinator/audit-turns.ts'
import { check, checkLines, succeeded } from '../../cli/check.ts'
import type { Checked } from '../../cli/claim.ts'
import type { Cluster, DaemonSet } from '../../cli/cluster.ts'
import { paint } from '../../cli/paint.ts'
import { guardNames } from '../../cli/guards.ts'
import { keptKey, keptName, pack } from '../../coordinator/fence-kept.ts'
import { forceEvictionKey } from '../../core/acknowledge.ts'
import { outOfServiceKey, ownValue, quarantineKey } from '../../core/clear.ts'
import type { Policy } from '../../core/policy.ts'
import { manifests } from '../../deploy/manifests.ts'
import { usualValues } from '../../deploy/values.ts'
import { incident, policy, record } from '../core/world.ts'
import { cluster, kept, part, refused } from './cluster-seen.ts'

const test = suite('check')

const plain = paint({ colours: false, unicode: true })
const wall = Date.parse('2026-01-02T12:00:00Z')
const all = (seen: Cluster, moves = true): readonly Checked[] => check(seen, moves, wall).flatMap(({ checks }) => checks)
const one = (id: string, seen: Cluster, moves = true): Checked | undefined => all(seen, moves).find((checked) => checked.id === id)
const records = (name: string, changes: Parameters<typeof record>[0]): Cluster['records'] =>
  part(new Map([['node-1', record({ nodeUid: 'uid-node-1' })], ['node-2', record({ nodeUid: 'uid-node-2' })], [name, record({ nodeUid: `uid-${name}`, ...changes })]]))

const plugin = (tolerations: DaemonSet['tolerations']) => one('plugins-tolerate', cluster({ daemonSets: part([{ name: 'csi/node', csi: true, critical: true, passes: true, tolerations }]) }))

test('a cluster in which all is well passes every check', () => {
  assert.equal(all(cluster()).filter(({ result }) => result !== 'success'), [])
  assert.ok(succeeded(check(cluster(), true, wall)))
  assert.is(checkLines(check(cluster(), true, wall), plain).at(-1), 'Status check results are √')
})

test('each failure names its reason and a heading that stands in the docs', () => {
  const headings = new Set([...readFileSync('docs/checks.md', 'utf8').matchAll(/^## (\S+)$/gm)].map((match) => match[1]))
  const nothing = refused()
  const blind = cluster({
    version: nothing, kinds: nothing, nodes: nothing, incidents: nothing, records: nothing, policies: nothing, remedies: nothing, lease: nothing, pause: nothing, fenceMaps: nothing, agents: nothing, daemonSets: nothing, staticPods: nothing, longhorn: nothing, storks: nothing, guards: nothing, denying: nothing, gaveUp: nothing,
  })
  for (const checked of all(blind, false)) {
    assert.is(checked.result, 'error', checked.id)
    assert.is(checked.error, 'cannot be read: no rights', checked.id)
    assert.is(checked.hint, `docs/checks.md#${checked.id}`)
    assert.ok(headings.has(checked.id), `docs/checks.md has no heading ${checked.id}`)
  }
  assert.is(headings.size, all(blind, false).length, 'a heading without a check')
  assert.not(succeeded(check(blind, false, wall)))
})

const own = (node: string, steps: string) => ({ name: `fence-config-${node}`, data: { 'config.properties': steps, 'fence-method-bmc': 'agent_name=redfish\nip=10.2.0.1\npassword=secret:bmc/password\naction=off\n' } })

test('drills by the hour: who was chosen, or why nobody was; that everybody is proven is no reason', () => {
  const asking = part([{ name: 'all', faults: '', policy: { ...policy, drills: { schedule: '0 3 * * 6', again: 3_600_000 } } }])
  const of = (latest: object, policies: Cluster['policies'] = asking) => one('drills-made', cluster({ policies, lease: part({ holder: 'replica-0', term: 3, renewTime: 'then', drills: [{ policy: 'all', at: '2026-01-02T09:00:00Z', nodes: [], ...latest }] }) }))
  assert.is(of({ chosen: { node: 'node-1', incident: 'node-1-x-1' } })?.description, 'every policy that asks for drills finds a node for them: all, node-1, 3 h 0 min ago')
  const nobody = { because: 'no-spare', detail: 'no node of policy all can be drilled' } as const
  const proven = { node: 'node-1', because: 'proven', detail: 'it is proven' } as const
  assert.is(of({ refused: nobody, nodes: [proven] })?.error, undefined)
  const found = of({ refused: nobody, nodes: [proven, { node: 'node-2', because: 'not-drained', detail: 'work/web-0 is on the node still' }] })
  assert.equal([found?.result, found?.error], ['warning', 'all: no node of policy all can be drilled (node-2: work/web-0 is on the node still)'])
  assert.is(of({ refused: { because: 'no-spare', detail: 'no node of policy all is cordoned' } })?.error, 'all: no node of policy all is cordoned')
  assert.is(of({ refused: nobody }, part([{ name: 'all', faults: '', policy }]))?.error, undefined, 'it asks for none any more')
})

test('a fence ConfigMap with faults warns with each of them, and says of which node the last good one holds', () => {
  const [good, other] = [own('node-1', 'power_management=bmc'), own('node-2', 'power_management=bmc')]
  assert.is(one('paths-valid', cluster({ fenceMaps: part([good, other]) }))?.result, 'success')
  const faulty = [own('node-1', 'power_managment=bmc'), own('node-2', 'oops')]
  const text = pack(new Map([['node-1', [good]]]), new Map(faulty.map((map) => [map.name, map]))).text
  const found = one('paths-valid', cluster({ fenceMaps: part([...faulty, { name: keptName, data: { [keptKey]: text } }]) }))
  assert.is(found?.result, 'warning')
  assert.match(found?.error ?? '', /ConfigMap fence-config-node-1, config.properties, line 1: .*ConfigMap fence-config-node-2, config.properties, line 1: is not of the form key=value/)
  assert.match(found?.error ?? '', /; the last good one stays in force for node-1; none is kept for node-2$/)
})

const ofSet = (name: string, selector: string) => ({ name: `fence-config-${name}`, data: { 'config.properties': `node_selector=${selector}\npower_management=` } })

test('it is said which ConfigMap has the last word of how many nodes', () => {
  const underlying = { name: 'fence-config-default', data: { 'config.properties': 'power_management=' } }
  const nodes = part([kept('node-1', { metadata: { name: 'node-1', labels: { rack: '4' } } }), kept('node-2', { metadata: { name: 'node-2', labels: { rack: '4' } } }), kept('node-3', { metadata: { name: 'node-3', labels: {} } })])
  const said = (...maps: Parameters<typeof part<readonly { name: string; data: Record<string, string> }[]>>[0]) => one('paths-configured', cluster({ nodes, fenceMaps: part(maps) }))?.description
  assert.is(said(), 'every node has a fence path: 3 by no ConfigMap')
  assert.is(said(own('node-1', 'power_management=bmc'), ofSet('rack-4', 'rack=4'), underlying), 'every node has a fence path: 1 by fence-config-default, 1 by fence-config-rack-4, 1 by its own ConfigMap')
})

test('a path that hangs on what it is to cut warns', () => {
  const found = one('paths-apart', cluster({ fenceMaps: part([own('node-1', 'power_management=bmc')]) }))
  assert.equal([found?.result, found?.error?.split(':')[0]], ['warning', 'node-1 has no level without the controller in the machine'])
})

test('two nodes that name one instance, and a faulty map of no node, are faults there, too', () => {
  const nodes = part(['node-1', 'node-2'].map((name) => kept(name, { providerID: 'aws:///eu-west-1a/i-0123456789abcdef0' })))
  assert.match(one('paths-valid', cluster({ nodes }))?.error ?? '', /is named by node-2 too/)
  const ofVsphere = part(['4203942f-ce98-3f27-455c-463d34b8af41', '2F940342-98CE-273F-455C-463D34B8AF41'].map((uuid, nth) => kept(`node-${nth + 1}`, { providerID: `vsphere://${uuid}` })))
  const naming = part([{ name: 'all', faults: '', policy: { ...policy, cloudCredentials: 'vcenter' } }])
  assert.match(one('paths-valid', cluster({ nodes: ofVsphere, policies: naming }))?.error ?? '', /is named by node-2 too/)
  assert.match(one('paths-valid', cluster({ fenceMaps: part([{ name: 'fence-config-node-9', data: { 'config.properties': 'oops' } }]) }))?.error ?? '', /fence-config-node-9/)
})

const place = { kubelet: '/var/lib/kubelet', runtime: '/run/containerd/containerd.sock', gate: '/run/nri/nri.sock' }
const placed = (two: Partial<typeof place>, gate: 'asks' | 'off' = 'asks') => cluster({ records: part(new Map([
  ['node-1', record({ nodeUid: 'uid-node-1', gate, places: { ...place, runtime: '/run/k3s/containerd/containerd.sock' } })], ['node-2', record({ nodeUid: 'uid-node-2', gate, places: { ...place, ...two } })],
])) })

test('what agents found is told by whose it is, and what they miss is a warning', () => {
  assert.is(one('places-found', cluster())?.description, 'every agent finds kubelet and the container runtime of its node')
  assert.is(one('places-found', placed({}))?.description, 'every agent finds kubelet and the container runtime of its node: containerd of k3s or RKE2 on 1, containerd on 1; kubelet in /var/lib/kubelet on 2; NRI at /run/nri/nri.sock on 2')
  assert.is(
    one('places-found', placed({ runtime: '/run/x.sock', kubelet: '/data/kubelet', gate: '' }, 'off'))?.description,
    'every agent finds kubelet and the container runtime of its node: containerd of k3s or RKE2 on 1, /run/x.sock on 1; kubelet in /var/lib/kubelet on 1, kubelet in /data/kubelet on 1; NRI at /run/nri/nri.sock on 1',
  )
  assert.is(one('places-found', placed({}))?.result, 'success')
  const found = one('places-found', placed({ runtime: '', gate: '', kubelet: '' }))
  assert.equal([found?.result, found?.error], ['warning', 'not there: node-2 (kubelet\'s folder, the socket of kubelet\'s runtime, the socket of NRI)'])
  assert.is(one('places-found', placed({ gate: '' }, 'off'))?.result, 'success', 'no gate is wanted there')
})

const agents = (fromBoot: boolean, on = true): DaemonSet => ({
  name: 'holdfast-agents/holdfast-agent', csi: false, critical: true, passes: true, tolerations: [], gate: { on, fromBoot, exemptNamespaces: ['kube-system', 'holdfast-agents'] },
})
const set = (name: string, changes: Partial<DaemonSet> = {}): DaemonSet => ({ name, csi: false, critical: true, passes: false, tolerations: [], ...changes })

for (const [what, sets, pods, error] of [
  ['no gate is wanted', [agents(false, false), set('cni/calico')], [], undefined],
  ['a network plugin in an exempt namespace', [agents(false), set('kube-system/proxy')], [], undefined],
  ['a network plugin elsewhere', [agents(false), set('cni/calico')], [], 'cni/calico: without the annotation holdfast.dev/tolerate-gate=true, and in no namespace that passes'],
  ['one that is annotated', [agents(false), set('cni/calico', { passes: true })], [], undefined],
  ['a CSI plugin of no priority', [agents(false), set('csi/node', { critical: false, csi: true })], [], 'csi/node: without the annotation holdfast.dev/tolerate-gate=true, and in no namespace that passes'],
  ['any other DaemonSet', [agents(false), set('logs/fluent', { critical: false })], [], undefined],
  ['static pods, which pass by themselves', [agents(false)], [{ name: 'kube-system/etcd-1', passes: false }], undefined],
  ['from boot on, an exempt namespace', [agents(true), set('kube-system/proxy')], [], 'kube-system/proxy: without the annotation holdfast.dev/tolerate-gate=true'],
  ['from boot on, a static pod', [agents(true)], [{ name: 'kube-system/etcd-1', passes: false }, { name: 'kube-system/api-1', passes: true }], 'kube-system/etcd-1: without the annotation holdfast.dev/tolerate-gate=true'],
] as const) {
  test(`what must start before its gate is open: ${what} ${error === undefined ? 'is well' : 'is told'}`, () => {
    const found = one('gate-passed', cluster({ daemonSets: part(sets), staticPods: part(pods) }))
    assert.is(found?.error, error)
    if (error !== undefined) assert.is(found?.result, error.includes('namespace') ? 'warning' : 'error')
  })
}

test('a Lease that is held and not renewed is no leader', () => {
  assert.match(one('replica-leads', cluster(), false)?.error ?? '', /replica-0 holds the Lease and does not renew it/)
  assert.is(one('replica-leads', cluster({ lease: part({ holder: '', term: 3, renewTime: 'then' }) }), false)?.error, 'nobody holds the Lease')
  assert.match(one('replica-leads', cluster({ lease: { ...refused(), kind: 'notFound' } }), false)?.error ?? '', /no replica has ever led/)
})

test('missing kinds are named, also where the whole group is missing', () => {
  assert.is(one('kinds-installed', cluster({ kinds: part(['nodefences']) }))?.error, 'not served: holdfastpolicies, noderecords, noderemedies')
  assert.is(one('kinds-installed', cluster({ kinds: { ...refused(), kind: 'notFound' } }))?.error, 'not served: holdfastpolicies, nodefences, noderecords, noderemedies')
})

const without = (name: string) => part(guardNames.filter((other) => other !== name))

test('admission policies that are not there, or that nothing has deny, are named', () => {
  const installed = manifests(usualValues).flatMap(({ kind, metadata: { name } }) => (kind === 'ValidatingAdmissionPolicy' ? [name] : []))
  assert.equal([...guardNames].toSorted(), installed.toSorted(), 'those that come with the product')
  assert.is(one('guards-stand', cluster({ guards: without('holdfast-taints') }))?.error, 'not there, or without a binding that denies: holdfast-taints')
  assert.is(one('guards-stand', cluster({ denying: without('holdfast-records') }))?.error, 'not there, or without a binding that denies: holdfast-records')
  assert.is(one('guards-stand', cluster({ guards: part([]), denying: part([]) }))?.result, 'warning')
})

test('a version older than those that were tried fails, a later one does not', () => {
  assert.is(one('version-known', cluster({ version: part('v1.33.9') }))?.result, 'error')
  assert.is(one('version-known', cluster({ version: part('v1.38.0-alpha.1+abc') }))?.result, 'success')
  assert.is(one('version-known', cluster({ version: part('nonsense') }))?.result, 'error')
})

test('a policy with faults fails with all of them, one that does nothing only warns', () => {
  assert.is(one('policies-valid', cluster({ policies: part([{ name: 'p', faults: 'spec.profile: no such word' }]) }))?.error, 'p: spec.profile: no such word')
  const idle = cluster({ policies: part([{ name: 'p', policy: { ...policy, name: 'p', nodeDownPodDeletionPolicy: 'DoNothing' }, faults: '' }]) })
  assert.is(one('policies-act', idle)?.result, 'warning')
  assert.ok(succeeded(check(idle, true, wall)))
})

test('a remedy with faults is told, and does not fail the rest', () => {
  const faulty = cluster({ remedies: part([{ name: 'disks', faults: 'spec.thresholds[0]: needs either vital or condition' }, { name: 'heat', faults: '' }]) })
  assert.is(one('remedies-valid', faulty)?.error, 'disks (spec.thresholds[0]: needs either vital or condition): not in force')
  assert.is(one('remedies-valid', faulty)?.result, 'warning')
  assert.is(one('remedies-valid', cluster())?.result, 'success')
})

test('a node that no policy selects, or two of one priority, is told', () => {
  assert.match(one('nodes-selected', cluster({ policies: part([]) }))?.error ?? '', /only watched/)
  const some = part([{ name: 'p', policy: { ...policy, nodeLabels: { disk: 'ssd' } }, faults: '' }])
  assert.is(one('nodes-selected', cluster({ policies: some }))?.error, 'only watched: node-1, node-2')
  const two = part(['p', 'q'].map((name) => ({ name, policy: { ...policy, name }, faults: '' })))
  assert.match(one('nodes-selected', cluster({ policies: two }))?.error ?? '', /node-1 is selected by p and q with one priority/)
})

test('a record of an earlier boot, or of another Node of the name, is as good as none', () => {
  assert.is(one('agents-heard', cluster({ nodes: part([kept('node-1', { bootId: 'boot-2' }), kept('node-2')]) }))?.error, 'no record of the present boot of node-1')
  assert.is(one('agents-heard', cluster({ records: records('node-2', { nodeUid: 'another' }) }))?.error, 'no record of the present boot of node-2')
  assert.is(one('agents-heard', cluster({ records: part(new Map()) }))?.result, 'error')
})

test('a path that did not say on, is not this node\'s, or is missing fails', () => {
  const [path] = record().paths
  assert.ok(path)
  assert.match(one('paths-verified', cluster({ records: records('node-2', { paths: [{ ...path, state: 'unreachable', evidence: 'timed out' }] }) }))?.error ?? '', /node-2 bmc-off unreachable \(timed out\)/)
  assert.is(one('paths-configured', cluster({ records: records('node-2', { paths: [] }) }))?.result, 'error')
  const unproven = one('identity-proven', cluster({ records: records('node-2', { paths: [{ ...path, identity: 'unproven' }] }) }))
  assert.equal([unproven?.result, unproven?.error], ['warning', 'nothing proves node-2 bmc-off'])
  const twins = part([kept('node-1', { machine: 'AABBCCDD-0000-1111-2222-333333333333' }), kept('node-2', { machine: 'ddccbbaa-0000-1111-2222-333333333333' })])
  const doubled = one('identity-proven', cluster({ nodes: twins, records: records('node-2', { paths: [{ ...path, identity: 'unproven' }] }) }))
  assert.is(doubled?.error, 'nothing proves node-2 bmc-off (node-1 bears the same machine id)')
  assert.match(one('identity-proven', cluster({ records: records('node-2', { paths: [{ ...path, identity: 'mismatch' }] }) }))?.error ?? '', /another machine's/)
})

const hour = 3_600_000
const written = (ago: number): string => new Date(wall - ago).toISOString()
const audited = (ago: number, changes: Partial<AuditTurn> = {}): Cluster['lease'] =>
  part({ holder: 'replica-0', term: 3, renewTime: 'then', turn: { turn: 12, began: written(ago), ended: written(ago - 60_000), stale: written(ago - 2 * hour), missed: [], ...changes } })
const current = (changes: Partial<Cluster>): readonly [string | undefined, string | undefined] => {
  const found = one('audits-current', cluster({ records: records('node-2', { paths: record().paths.map((path) => ({ ...path, at: written(9 * hour) })) }), ...changes }))
  return [found?.result, found?.error]
}

test('a path is as old as the latest turn that asked it, or as its record; a turn too old is an error, a node that it missed a warning', () => {
  assert.equal(current({ lease: audited(hour / 2) }), ['success', undefined])
  assert.is(one('audits-current', cluster({ lease: audited(hour / 2) }))?.description, 'every fence path was audited again lately: turn 12 began 30 min 0 s ago')
  assert.equal(current({ lease: audited(hour / 2, { missed: ['node-2'] }) }), ['warning', 'stale: node-2 bmc-off (9 h 0 min ago)'])
  assert.equal(current({ lease: audited(3 * hour) }), ['error', 'stale: node-1 bmc-off (3 h 0 min ago), node-2 bmc-off (3 h 0 min ago)'])
  assert.is(current({})[0], 'error')
  assert.match(current({})[1] ?? '', /^no turn has come to its end yet, and the latest audits are old: /)
})

test('a kubelet port that never answered is told from one that nobody can ask', () => {
  const silent = cluster({ records: records('node-2', { probe: { boot: 'boot-1', answered: false, at: 'then' } }) })
  assert.match(one('ports-heard', silent)?.error ?? '', /^not of node-2: /)
  const { probe: _, ...portless } = record({ nodeUid: 'uid-node-2' })
  const nowhere = cluster({ nodes: part([kept('node-1'), kept('node-2', { address: '' })]), records: part(new Map([['node-1', record({ nodeUid: 'uid-node-1' })], ['node-2', portless]])) })
  assert.equal([one('ports-heard', nowhere)?.result, one('ports-heard', nowhere)?.error],
    ['warning', 'no IP address to ask node-2 at: their silence will prove nothing, and death is judged by the Lease alone'])
})

test('a NodeFence that this version cannot read is an error, with the node that waits for it', () => {
  const strange = one('fences-readable', cluster({ unreadable: [{ name: 'node-2-abc-1', node: 'node-2', faults: 'spec.weather is not known' }] }))
  assert.equal([strange?.result, strange?.error], ['error', 'node-2-abc-1 of node-2 (spec.weather is not known): nothing is done there'])
})

test('a node whose runtime does not ask the gate is named; where none is wanted, or nobody told, there is nothing to say', () => {
  assert.match(one('gates-asked', cluster({ records: records('node-1', { gate: 'absent' }) }))?.error ?? '', /^not on node-1: taints alone/)
  for (const gate of ['asks', 'off'] as const) assert.is(one('gates-asked', cluster({ records: records('node-1', { gate }) }))?.result, 'success')
})

const awaited = (kdump: 'refuse' | 'accept', steps: string, changes: object = {}) => one('dumps-awaited', cluster({
  policies: part([{ name: 'all', policy: { ...policy, kdump }, faults: '' }]), records: records('node-1', changes), fenceMaps: part([own('node-1', `power_management=bmc${steps}`), own('node-2', 'power_management=bmc\nkdump=5m\nkdump_within=30s')]),
}))?.error

test('a crash kernel that is waited for, or accepted, and cannot count is named', () => {
  assert.match(awaited('accept', '') ?? '', /^not of node-1 \(its policy says kdump: accept/)
  assert.match(awaited('refuse', '\nkdump=5m') ?? '', /^not of node-1 \(without kdump_within=/)
  assert.match(awaited('accept', '\nkdump=5m\nkdump_within=30s', { probe: { boot: 'boot-1/100', answered: false, at: 'then' } }) ?? '', /^not of node-1 \(its kubelet port did not answer at its last audit/)
  for (const well of [awaited('refuse', ''), awaited('accept', '\nkdump=5m\nkdump_within=30s'), awaited('refuse', '\nkdump=5m\nkdump_within=30s', { probe: { boot: 'boot-1/100', answered: false, at: 'then' } })]) assert.is(well, undefined)
})

const lacking = (giveUp: 'stop' | 'watchdog', selfFenced: 'refuse' | 'accept', changes: object) => one('watchdogs-armed', cluster({
  policies: part([{ name: 'all', policy: { ...policy, giveUp, selfFenced }, faults: '' }]), records: records('node-1', changes),
}))?.error

const outlet = (ip: string, plug: number) => `agent_name=pdu-snmp\nip=${ip}\nplug=${plug}\naction=off\n`
const alone = (steps: string, change: Partial<Policy> = {}, strips = '10.0.0.2') => one('second-line', cluster({
  policies: part([{ name: 'all', policy: { ...policy, nodeDownPodDeletionPolicy: 'DeleteAllPods', ...change }, faults: '' }]),
  fenceMaps: part([{ name: 'fence-config-node-1', data: { 'config.properties': steps, 'fence-method-left': outlet('10.0.0.1', 1), 'fence-method-right': outlet(strips, 2) } }]),
}))

test('where one device could make two writers by a lie, that its node should give up as well is recommended, and nowhere else', () => {
  const found = alone('power_management=left')
  assert.equal([found?.result, found?.error], ['warning', 'not node-1: giveUp: stop is recommended there'])
  assert.ok(alone('power_management=left right', {}, '10.0.0.1')?.error, 'two outlets of one device')
  assert.ok(alone('power_management=left right | left')?.error, 'its last level is one device')
  const well: readonly [string, Partial<Policy>][] = [
    ['power_management=left right', {}], ['power_management=left', { giveUp: 'stop' }], ['power_management=left', { giveUp: 'watchdog' }],
    ['power_management=left', { mode: 'dryRun' }], ['power_management=left', { nodeDownPodDeletionPolicy: 'DoNothing' }],
  ]
  for (const [steps, change] of well) assert.is(alone(steps, change)?.result, 'success', `${steps} ${JSON.stringify(change)}`)
})

test('a node that has stopped its workloads by itself is named once, however often it did', () => {
  assert.is(one('none-gave-up', cluster({}))?.result, 'success')
  const told = one('none-gave-up', cluster({ gaveUp: part(['node-2', 'node-1', 'node-2']) }))
  assert.equal([told?.result, told?.error], ['warning', 'nobody permitted node-1, node-2 to run them'])
})

test('a watchdog that a policy asks for and that is not armed is named, or one that proves nothing where the policy accepts its proof', () => {
  const watchdog = { boot: 'boot-1/100', state: 'armed', identity: 'i6300ESB timer', timeout: 30_000, panic: 0, machine: 'real', epoch: 1, memberships: [] } as const
  assert.match(lacking('watchdog', 'refuse', {}) ?? '', /^not of node-1 \(it is not armed\)/)
  assert.match(lacking('watchdog', 'refuse', { watchdog: { ...watchdog, state: 'unarmed' } }) ?? '', /node-1 \(it is not armed\)/)
  assert.not.match(lacking('watchdog', 'refuse', { watchdog: { ...watchdog, machine: 'virtual' } }) ?? '', /node-1 /)
  assert.match(lacking('watchdog', 'accept', { watchdog: { ...watchdog, machine: 'virtual' } }) ?? '', /node-1 \(it is a virtual machine/)
  assert.is(lacking('stop', 'refuse', {}), undefined)
})

test('a taint of ours without an open incident is an orphan, with one it is not', () => {
  const marked = part([kept('node-1'), kept('node-2', { taints: [{ key: quarantineKey, effect: 'NoSchedule' }, { key: outOfServiceKey, value: ownValue, effect: 'NoSchedule' }] })])
  assert.is(one('taints-owned', cluster({ nodes: marked }))?.error, `node-2 bears ${quarantineKey}, node-2 bears ${outOfServiceKey}`)
  assert.is(one('taints-owned', cluster({ nodes: marked, incidents: part([incident({ phase: 'Final' })]) }))?.result, 'error')
  assert.is(one('taints-owned', cluster({ nodes: marked, incidents: part([incident({ phase: 'Running' })]) }))?.result, 'success')
  const quarantined = part([kept('node-2', { taints: [{ key: quarantineKey, effect: 'NoSchedule' }] })])
  assert.is(one('taints-owned', cluster({ nodes: quarantined }))?.result, 'warning', 'it comes off by itself')
  for (const taint of [{ key: outOfServiceKey, value: 'nodeshutdown', effect: 'NoExecute' }, { key: outOfServiceKey, effect: 'NoSchedule' }, { key: forceEvictionKey, effect: 'NoSchedule' }] as const) {
    assert.is(one('taints-owned', cluster({ nodes: part([kept('node-2', { taints: [taint] })]) }))?.result, 'success', 'a person put it there')
  }
})

test('a CSI node plugin that does not tolerate our taints is named', () => {
  assert.match(plugin([])?.error ?? '', /csi\/node/)
  assert.is(plugin([{ key: quarantineKey, operator: 'Exists' }])?.result, 'error')
  assert.is(plugin([{ key: quarantineKey, operator: 'Exists' }, { key: outOfServiceKey, operator: 'Exists', effect: 'NoSchedule' }])?.result, 'success')
  assert.is(plugin([{ operator: 'Exists', effect: 'NoExecute' }])?.result, 'error')
})

test('a pause warns with the name and the reason', () => {
  const paused = one('not-paused', cluster({ pause: part({ reason: 'new switches', by: 'ops' }) }))
  assert.equal([paused?.result, paused?.error], ['warning', 'paused by ops: new switches'])
  const over = one('not-paused', cluster({ pause: part({ reason: 'new switches', by: 'ops', until: '1970-01-01T00:00:00Z' }) }))
  assert.is(over?.error, undefined, 'one whose hour is past is none')
})

const error = (changes: Partial<Cluster>): string => one('freed-by-nobody-else', cluster(changes))?.error ?? ''

test('who else frees pods of a node that is down is named, and needs no proof', () => {
  assert.equal([error({}), error({ longhorn: part('do-nothing') })], ['', ''])
  assert.match(error({ longhorn: part('delete-statefulset-pod') }), /Longhorn: its node-down-pod-deletion-policy is delete-statefulset-pod/)
  assert.match(error({ storks: part(['kube-system/stork']) }), /Stork: the health monitor of kube-system\/stork is on/)
})

test.run()
