// What an agent asks where its cluster starts cold, asked of the real API server with the agent's own account and its own few lines of
// HTTP: what it may read is whole and true, what it may not is refused.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readSaid } from '../../agent/cold-start.ts'
import { httpsGet } from '../../agent/https-get.ts'
import type { ApiAnswer } from '../../agent/host.ts'
import { createApi, type Answer } from '../../coordinator/api.ts'
import { fencesPath, incidentBody } from '../../coordinator/node-fence.ts'
import { coldWord } from '../../core/cold-start.ts'
import { bootOf } from '../../core/model.ts'
import { defaultPolicy } from '../../core/policy.ts'
import { yamlOf } from '../../deploy/manifest.ts'
import { manifests } from '../../deploy/manifests.ts'
import { names, usualValues } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { startControlPlane } from './control-plane.ts'
import { transportTo } from './transport.ts'

const test = suite('cold start')

const patient = 20_000
const boot = bootOf('0f0e0d0c-0b0a-4908-8706-050403020100', '7')

test('the agent reads its own Node and the incidents of its node, and nothing else', async () => {
  const plane = await startControlPlane()
  const transport = transportTo(plane, 'admin')
  const admin = createApi({ transport, clock, userAgent: 'cold-start' })
  try {
    const file = join(plane.dir, 'holdfast.yaml')
    writeFileSync(file, yamlOf(manifests({ ...usualValues, replicas: 0 })))
    execFileSync(plane.kubectl, [`--kubeconfig=${plane.kubeconfig('admin')}`, 'apply', '--server-side', '-f', file], { timeout: 60_000, stdio: 'pipe' })
    for (const name of ['node-1', 'node-2']) good(await admin.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name } }))
    good(await admin.patch('/api/v1/nodes/node-1/status', 'merge', { status: { nodeInfo: { bootID: boot.split('/')[0] } } }))
    for (const name of ['node-1', 'node-2']) {
      good(await admin.create(fencesPath, incidentBody({ name: `${name}-abc-1`, nodeName: name, nodeUid: 'u', boot, machine: 'm', cause: 'by-hand', policy: { ...defaultPolicy, name: 'all' } })))
    }
    const path = `/api/v1/namespaces/${usualValues.agentNamespace}/serviceaccounts/${names.agent}/token`
    const { status } = good(await admin.create<{ status: { token: string } }>(path, { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }))
    const { hostname, port } = new URL(plane.url)
    const get = (what: string): Promise<ApiAnswer> => httpsGet(clock, { host: hostname, port: Number(port), authority: plane.ca, token: status.token }, what, patient)
    const said = async () => {
      const [own, list] = [await get('/api/v1/nodes/node-1'), await get(`${fencesPath}?fieldSelector=spec.nodeName%3Dnode-1&limit=500`)]
      assert.ok('body' in own && 'body' in list && own.status === 200 && list.status === 200, JSON.stringify([own, list]).slice(0, 500))
      const read = readSaid('node-1', 'body' in own ? own.body : '', 'body' in list ? list.body : '')
      if ('failed' in read) throw new Error(read.failed)
      return read
    }
    const first = await said()
    assert.equal(first.fences, [{ name: 'node-1-abc-1', phase: 'New' }])
    assert.equal(coldWord(boot, first), { clear: false, reason: 'the incident node-1-abc-1 is open' })
    good(await admin.remove(`${fencesPath}/node-1-abc-1`))
    assert.equal(coldWord(boot, await said()), { clear: true })
    for (const forbidden of ['/api/v1/nodes', '/api/v1/pods', '/api/v1/secrets', `${fencesPath}/node-1-abc-1`, '/apis/holdfast.dev/v1alpha1/noderecords']) {
      const answer = await get(forbidden)
      assert.is('status' in answer && answer.status, 403, forbidden)
    }
  } finally {
    transport.close()
    await plane.stop()
  }
})

function good<T>(answer: Answer<T>): T {
  if (!answer.ok) throw new Error(answer.error.message)
  return answer.value
}

test.run()
