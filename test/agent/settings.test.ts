import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readEnvironment } from '../../agent/settings.ts'

const test = suite('settings')

test('only where the replicas are must be said', () => {
  const read = readEnvironment({ HOLDFAST_REPLICAS: 'holdfast-coordinator.holdfast-system.svc:7443' })
  assert.ok(read.ok)
  assert.equal(read.ok && [read.settings.kubeletRoot, read.settings.podsFolder, read.settings.whisperPort, read.settings.bind], ['/var/lib/kubelet', '/var/lib/kubelet/pods', 7_416, undefined])
})

test('every fault is named at once', () => {
  const read = readEnvironment({ HOLDFAST_WHISPER_PORT: 'seventy', HOLDFAST_KUBELET_ROOT: 'kubelet', HOLDFAST_LOG_LEVEL: 'loud', HOLDFAST_KUBELET_HEALTH: 'https://127.0.0.1:10248' })
  assert.ok(!read.ok)
  const faults = read.ok ? [] : read.faults
  for (const name of ['REPLICAS', 'WHISPER_PORT', 'KUBELET_ROOT', 'LOG_LEVEL', 'KUBELET_HEALTH']) assert.ok(faults.some((fault) => fault.includes(`HOLDFAST_${name}`)), name)
})

test.run()
