import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readEnvironment } from '../../agent/settings.ts'

const test = suite('settings')

test('only where the replicas are must be said', () => {
  const read = readEnvironment({ HOLDFAST_REPLICAS: 'holdfast-coordinator.holdfast-system.svc:7443' })
  assert.ok(read.ok)
  assert.equal(read.ok && [read.settings.kubeletRoot, read.settings.podsFolder, read.settings.whisperPort, read.settings.bind], ['/var/lib/kubelet', '/var/lib/kubelet/pods', 7_416, undefined])
})

function settings(variables: Readonly<Record<string, string>> = {}) {
  const read = readEnvironment({ HOLDFAST_REPLICAS: 'c:1', ...variables })
  if (!read.ok) throw new Error(read.faults.join())
  return read.settings
}

function kept(variables: Readonly<Record<string, string>>): boolean | readonly string[] {
  const read = readEnvironment({ HOLDFAST_REPLICAS: 'a:1', ...variables })
  return read.ok ? read.settings.gateFromBoot : read.faults
}

test('the gate is kept from boot on only where there is one, and another word is a fault', () => {
  assert.equal([kept({}), kept({ HOLDFAST_GATE: 'on' }), kept({ HOLDFAST_GATE_FROM_BOOT: 'on' }), kept({ HOLDFAST_GATE: 'on', HOLDFAST_GATE_FROM_BOOT: 'on' })], [false, false, false, true])
  assert.equal(kept({ HOLDFAST_GATE_FROM_BOOT: 'maybe' }), ['HOLDFAST_GATE_FROM_BOOT is neither on nor off'])
})

test('the runtime is looked for where the common installers have it, and the gate is off unless it is wanted', () => {
  const usual = settings()
  assert.equal(usual.runtimeSockets, ['/run/containerd/containerd.sock', '/run/k3s/containerd/containerd.sock', '/run/crio/crio.sock'])
  assert.equal([usual.nriSocket, usual.sys, usual.gate], ['/run/nri/nri.sock', '/sys', undefined])
  const elsewhere = settings({ HOLDFAST_RUN: '/host/run/', HOLDFAST_GATE: 'on' })
  assert.equal([elsewhere.runtimeSockets[1], elsewhere.nriSocket], ['/host/run/k3s/containerd/containerd.sock', '/host/run/nri/nri.sock'])
  assert.equal([elsewhere.gate, elsewhere.exemptNamespaces], [{ node: '' }, ['kube-system', 'holdfast-system', 'holdfast-agents']])
  const named = settings({ HOLDFAST_RUNTIME_SOCKET: '/run/k0s/containerd.sock', HOLDFAST_NRI_SOCKET: '/x/nri.sock', HOLDFAST_GATE: 'on', HOLDFAST_GATE_EXEMPT_NAMESPACES: 'net, storage', HOLDFAST_NODE: 'node-7' })
  assert.equal([named.runtimeSockets, named.nriSocket, named.gate, named.exemptNamespaces], [['/run/k0s/containerd.sock'], '/x/nri.sock', { node: 'node-7' }, ['net', 'storage']])
})

test('the API server is where kubelet says it is, or there is none to be asked', () => {
  assert.is(settings().api, undefined)
  assert.equal(settings({ KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '6443' }).api, { host: 'fd00::1', port: 6_443, folder: '/var/run/secrets/holdfast-api' })
  assert.not(readEnvironment({ HOLDFAST_REPLICAS: 'a:1', KUBERNETES_SERVICE_HOST: 'a', KUBERNETES_SERVICE_PORT: 'https' }).ok)
})

test('what storage is probed, and how the host is entered, is said or not there', () => {
  assert.equal([settings().storage, settings().enter], [[], ['nsenter', '--mount=/host/proc/1/ns/mnt', '--']])
  const said = settings({ HOLDFAST_STORAGE: ' /mnt/a, tcp://10.0.0.5:3260,tcp://[fd00::5]:3260', HOLDFAST_ENTER: 'none' })
  assert.equal([said.storage, said.enter], [['/mnt/a', 'tcp://10.0.0.5:3260', 'tcp://[fd00::5]:3260'], []])
})

test('the program that looks at the vitals is beside this one, and is not started where nobody wants it', () => {
  assert.match(settings().vitals ?? '', /\/agent\/vitals-program\.ts$/)
  assert.is(settings({ HOLDFAST_VITALS: 'off' }).vitals, undefined)
})

test('the watchdog is the first one unless another is said', () => {
  assert.equal([settings().watchdog, settings({ HOLDFAST_WATCHDOG: '/dev/watchdog1' }).watchdog], ['/dev/watchdog0', '/dev/watchdog1'])
})

test('every fault is named at once', () => {
  const read = readEnvironment({
    HOLDFAST_WHISPER_PORT: 'seventy', HOLDFAST_KUBELET_ROOT: 'kubelet', HOLDFAST_LOG_LEVEL: 'loud', HOLDFAST_KUBELET_HEALTH: 'https://127.0.0.1:10248',
    HOLDFAST_GATE: 'ajar', HOLDFAST_GATE_EXEMPT_NAMESPACES: 'a,B_', HOLDFAST_RUNTIME_SOCKET: 'containerd.sock', HOLDFAST_NRI_SOCKET: 'nri', HOLDFAST_RUN: 'run', HOLDFAST_SYS: 'sys', HOLDFAST_VITALS: 'some', HOLDFAST_WATCHDOG: 'watchdog0', HOLDFAST_STORAGE: '/mnt/a, iscsi://a:1, tcp://a',
  })
  assert.ok(!read.ok)
  const faults = read.ok ? [] : read.faults
  for (const name of ['REPLICAS', 'WHISPER_PORT', 'KUBELET_ROOT', 'LOG_LEVEL', 'KUBELET_HEALTH', 'GATE is', 'GATE_EXEMPT_NAMESPACES: B_', 'RUNTIME_SOCKET', 'NRI_SOCKET', 'RUN is', 'SYS', 'VITALS', 'WATCHDOG', 'STORAGE: iscsi://a:1', 'STORAGE: tcp://a is']) assert.ok(faults.some((fault) => fault.includes(`HOLDFAST_${name}`)), name)
})

test.run()
