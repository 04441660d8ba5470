import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Api, KubeObject } from '../../coordinator/api.ts'
import { podVolumes } from '../../coordinator/pod-volumes.ts'
import type { PodVolume } from '../../core/model.ts'

const test = suite('pod volumes')

type Answers = Readonly<Record<string, object | 'notFound' | 'network'>>

const pod = (claims: readonly string[]): KubeObject => ({ metadata: { name: 'p', namespace: 'work', uid: 'u' }, spec: { volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })) } } as KubeObject) // a Pod is more

/** The API server, as far as it is asked here. */
function small(answers: Answers): { of: (...claims: string[]) => Promise<readonly PodVolume[]>; asked: string[] } {
  const asked: string[] = []
  const get = async (path: string): Promise<object> => {
    const name = path.split('/').at(-1) ?? ''
    asked.push(name)
    const answer = answers[name] ?? 'notFound'
    return typeof answer === 'string' ? { ok: false, error: { kind: answer, message: '' } } : { ok: true, value: { metadata: { name }, ...answer } }
  }
  const volumes = podVolumes({ get } as unknown as Pick<Api, 'get'>) // nothing else is called
  return { asked, of: (...claims) => volumes.of(pod(claims)) }
}

const claim = (volumeName: string, accessModes: readonly string[] = ['ReadWriteOnce']): object => ({ spec: { volumeName, accessModes } })
const affinity = (key: string): object => ({ required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values: ['x'] }] }] } })

const kinds: readonly (readonly [what: string, claimed: object, volume: object, is: Partial<PodVolume>])[] = [
  ['a CSI volume', claim('pv'), { spec: { csi: { driver: 'ebs.csi.aws.com' } } }, { driver: 'ebs.csi.aws.com', shared: false, local: false }],
  ['an in-tree volume, as its CSI translation', claim('pv'), { metadata: { name: 'pv', annotations: { 'pv.kubernetes.io/migrated-to': 'ebs.csi.aws.com', 'pv.kubernetes.io/provisioned-by': 'kubernetes.io/aws-ebs' } } }, { driver: 'ebs.csi.aws.com', provisioner: 'kubernetes.io/aws-ebs' }],
  ['an in-tree volume that nobody translates', claim('pv'), { spec: {} }, { driver: '', provisioner: '' }],
  ['one that is claimed ReadWriteMany', claim('pv', ['ReadWriteMany']), { spec: {} }, { shared: true }],
  ['one that could be claimed so', claim('pv'), { spec: { accessModes: ['ReadWriteOnce', 'ReadWriteMany'] } }, { shared: true }],
  ['a local disk', claim('pv'), { spec: { local: { path: '/mnt' } } }, { local: true }],
  ['one that names its host', claim('pv'), { spec: { csi: { driver: 'x' }, nodeAffinity: affinity('kubernetes.io/hostname') } }, { local: true }],
  ['one whose driver names its node', claim('pv'), { spec: { csi: { driver: 'x' }, nodeAffinity: affinity('topology.topolvm.io/node') } }, { local: true }],
  ['one of a zone', claim('pv'), { spec: { csi: { driver: 'x' }, nodeAffinity: affinity('topology.kubernetes.io/zone') } }, { local: false }],
]
for (const [what, claimed, volume, is] of kinds) test(`${what} is told by its claim and its volume`, async () => {
  const [found] = await small({ c: claimed, pv: volume }).of('c')
  assert.equal([found?.is, found?.volume, found?.claim], ['bound', 'pv', 'work/c'])
  assert.equal({ ...found, ...is }, found)
})

const lost: readonly (readonly [what: string, answers: Answers, is: PodVolume['is']])[] = [
  ['a claim that is not bound', { c: claim('') }, 'unbound'], ['a claim that is gone', {}, 'unbound'], ['a volume that is gone', { c: claim('pv') }, 'unbound'],
  ['a claim that could not be read', { c: 'network' }, 'unread'], ['a volume that could not be read', { c: claim('pv'), pv: 'network' }, 'unread'],
]
for (const [what, answers, is] of lost) test(`${what} leads nowhere: ${is}`, async () => assert.is((await small(answers).of('c'))[0]?.is, is))

test('what is bound is asked about once, and what is not each time', async () => {
  const on = small({ c: claim('pv'), pv: { spec: {} }, d: 'network' })
  for (let time = 0; time < 3; time += 1) await on.of('c', 'd')
  assert.equal(on.asked.toSorted(), ['c', 'd', 'd', 'd', 'pv'])
})

test.run()
