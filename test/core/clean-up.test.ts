import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Action } from '../../core/action.ts'
import { cleanUpSteps, due, standingSteps, stepKey, withCleanUp } from '../../core/clean-up.ts'
import type { NodeSeen, Self } from '../../core/model.ts'
import { leftOn, type ContainerSeen, type HostTables, type LoopDevice } from '../../core/mounts.ts'
import type { Policy } from '../../core/policy.ts'
import { survey } from '../../core/survey.ts'
import { quarantine } from './states.ts'
import { incident, now, policy, self, three } from './world.ts'

const test = suite('clean-up')

const uid = (digit: number): string => `${String(digit).repeat(8)}-1111-4111-8111-111111111111`
const [gone, mine] = [uid(1), uid(2)]
const root = '/var/lib/kubelet'
const csi = `${root}/plugins/kubernetes.io/csi`
const podMount = (pod: string, volume = 'pvc-1') => `${root}/pods/${pod}/volumes/kubernetes.io~csi/${volume}/mount`
const staging = `${csi}/disk.example/abc/globalmount`

interface Found {
  /** Device and path. */
  readonly mounts?: readonly (readonly [string, string])[]
  readonly containers?: readonly ContainerSeen[]
  readonly loops?: readonly LoopDevice[]
  readonly bare?: readonly string[]
}

function steps({ mounts = [], containers = [], loops = [], bare = [] }: Found): string[] {
  const tables: HostTables = {
    mountinfo: ['22 1 8:1 / / rw - ext4 /dev/sda1 rw', ...mounts.map(([device, path], index) => `${index + 30} 22 ${device} / ${path} rw - ext4 /dev/sdb rw`)].join('\n'),
    podFolders: [], containers, mountTables: [], loopDevices: loops, kubeletRoot: root, belonging: undefined,
  }
  const left = leftOn(tables, new Set([mine]))
  if ('state' in left) return [`unknown ${JSON.stringify(left)}`]
  return cleanUpSteps(left, bare).map(stepKey)
}

const container = (id: string, pod: string, more: Partial<ContainerSeen> = {}): ContainerSeen => ({ id, name: `work/${id}`, pod, ...more })

test('what can be ended now, by what is left', () => {
  const cases: [string, Found, string[]][] = [
    ['nothing is left', { mounts: [['8:16', podMount(mine)], ['8:16', staging]], containers: [container('c1', mine)] }, []],
    ['a container holds its pod\'s mount, and that the staging mount', { containers: [container('c1', gone)], mounts: [['8:16', podMount(gone)], ['8:16', staging]] }, ['stop c1']],
    ['a sandbox goes after its containers', { containers: [container('s1', gone, { sandbox: true }), container('c1', gone)] }, ['stop c1']],
    ['a sandbox alone', { containers: [container('s1', gone, { sandbox: true })], mounts: [['8:16', podMount(gone)]] }, ['stop s1']],
    ['another pod\'s container holds nothing of this one', { containers: [container('c3', uid(3))], mounts: [['8:16', podMount(gone)]] }, ['stop c3', `unmount ${podMount(gone)}`]],
    ['a pod\'s mount holds its staging mount', { mounts: [['8:16', staging], ['8:16', podMount(gone)]] }, [`unmount ${podMount(gone)}`]],
    ['a staging mount that nobody uses', { mounts: [['8:16', staging]] }, [`unmount ${staging}`]],
    ['a staging mount whose device a pod that belongs has', { mounts: [['8:16', staging], ['8:16', podMount(mine)]] }, []],
    ['what lies deeper goes first', { mounts: [['8:16', podMount(gone)], ['8:32', `${podMount(gone)}/inner/mount`]] }, [`unmount ${podMount(gone)}/inner/mount`, `unmount ${podMount(gone)}`]],
    ['what kubelet made of the API\'s own data dies with its pod', { mounts: [['0:50', `${root}/pods/${gone}/volumes/kubernetes.io~projected/token`]] }, []],
    ['a static pod\'s is its node\'s own', { containers: [container('c1', '0123456789abcdef0123456789abcdef')], mounts: [['8:16', `${root}/pods/0123456789abcdef0123456789abcdef/volume-subpaths/a/b/0`]] }, []],
    ['a container of nobody', { containers: [container('c1', '')] }, []],
    ['an empty staging folder', { bare: [staging] }, [`remove ${staging}`]],
    ['one on which something is mounted again', { bare: [staging], mounts: [['8:16', staging], ['8:16', podMount(mine)]] }, []],
    ['a loop device that the pod\'s block volume held', { loops: [{ name: 'loop7', file: `${root}/pods/${gone}/volumeDevices/kubernetes.io~csi/pvc-1` }] }, [`detach loop7 ${root}/pods/${gone}/volumeDevices/kubernetes.io~csi/pvc-1`]],
    ['one whose block volume is there still', { loops: [{ name: 'loop7', file: `${csi}/volumeDevices/publish/pvc-1/${gone}` }], mounts: [['0:5', `${csi}/volumeDevices/publish/pvc-1/${gone}`]] }, [`unmount ${csi}/volumeDevices/publish/pvc-1/${gone}`]],
    ['one of a pod that belongs', { loops: [{ name: 'loop7', file: `${csi}/volumeDevices/publish/pvc-1/${mine}` }] }, []],
    ['another\'s loop device', { loops: [{ name: 'loop7', file: '/srv/disk.img' }] }, []],
  ]
  for (const [what, found, wanted] of cases) assert.equal(steps(found), wanted, what)
})

test('it must be left over by two lists ten seconds apart, and in between', () => {
  const step = { do: 'unmount', path: podMount(gone) } as const
  const first = standingSteps([step], new Map(), 1_000)
  const ten = (since: ReadonlyMap<string, number>, listedAt: number) => due([step], since, listedAt).length
  assert.equal([ten(first, 1_000), ten(first, 10_999), ten(first, 11_000)], [0, 0, 1])
  const again = standingSteps([step], standingSteps([], first, 6_000), 8_000)
  assert.equal([ten(again, 11_000), ten(again, 18_000)], [0, 1], 'it was gone in between')
  assert.equal(due([step], new Map(), 50_000), [])
})

const cleaning: Policy = { ...policy, cleanUp: 'agent' }
const asks: Action = { do: 'askClean', node: 'node-2' }

function asked(changes: Partial<NodeSeen>, policies: readonly Policy[], own: Self = self(), incidents: Parameters<typeof three>[1] = []): boolean {
  const [action] = withCleanUp(survey(three(changes, incidents, own), now, policies), [asks])
  return action?.do === 'askClean' && action.cleanUp === true
}

test('who asks a node under quarantine asks for that too where its policy wants it, and nowhere else', () => {
  const shut = { taints: [quarantine] }
  assert.is(asked(shut, [cleaning]), true)
  assert.is(asked(shut, [policy]), false, 'the usual policy')
  assert.is(asked({}, [cleaning]), false, 'not under quarantine')
  assert.is(asked(shut, []), false, 'no policy')
  assert.is(asked(shut, [{ ...cleaning, mode: 'dryRun' }]), false, 'a dry run')
  assert.is(asked(shut, [{ ...cleaning, pause: { reason: 'hands', by: 'ops' } }]), false, 'paused')
  assert.is(asked(shut, [cleaning], self({ pause: { reason: 'hands', by: 'ops' } })), false, 'paused in all')
  assert.is(asked(shut, [policy], self(), [incident({}, { policy: cleaning })]), true, 'by the policy that its incident began with')
  assert.is(asked(shut, [cleaning], self(), [incident({}, { policy })]), false, 'likewise')
  const begun = (mode: Policy['mode']): boolean => asked(shut, [{ ...policy, mode }], self(), [incident({}, { policy: { ...cleaning, mode: 'dryRun' } })])
  assert.equal([begun('enforce'), begun('dryRun')], [true, false], 'the policy in force says whether we act at all')
})

test.run()
