import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readEnvironment } from '../../agent/settings.ts'

const test = suite('settings')

test('the replicas\' address is enough', () => {
  const read = readEnvironment({ HOLDFAST_REPLICAS: 'holdfast-coordinator.holdfast-system.svc:7414' })
  assert.ok(read.ok)
  assert.is(read.settings.podsFolder, '/var/lib/kubelet/pods')
  assert.is(read.settings.whisperPort, 7_416)
})

test('the pods folder follows the kubelet root', () => {
  const read = readEnvironment({ HOLDFAST_REPLICAS: 'a:1', HOLDFAST_KUBELET_ROOT: '/data/kubelet/' })
  assert.ok(read.ok)
  assert.is(read.settings.kubeletRoot, '/data/kubelet')
  assert.is(read.settings.podsFolder, '/data/kubelet/pods')
})

test('every fault is listed at once', () => {
  const read = readEnvironment({ HOLDFAST_REPLICAS: 'nowhere', HOLDFAST_WHISPER_PORT: '99999', HOLDFAST_STATE: 'here', HOLDFAST_LOG_LEVEL: 'loud' })
  assert.not.ok(read.ok)
  const told = read.ok ? '' : read.faults.join('\n')
  for (const name of ['REPLICAS', 'WHISPER_PORT', 'STATE', 'LOG_LEVEL']) assert.ok(told.includes(`HOLDFAST_${name}`), `${name} in ${told}`)
})

test.run()
