import { globSync, readFileSync, readdirSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseAllDocuments } from 'yaml'
import { shimName } from '../../agent/boot-gate-install.ts'
import { readEnvironment } from '../../agent/settings.ts'
import type { KubeObject } from '../../coordinator/api.ts'
import { resolveParameters, type SecretLookup } from '../../coordinator/fence-config-secret.ts'
import { readFenceConfigs, sentenceOf, type NodeWords } from '../../coordinator/fence-config.ts'
import { readPolicy } from '../../coordinator/holdfast-policy.ts'
import { readRemedy } from '../../coordinator/node-remedy.ts'
import { readMetadata, type AgentMetadata } from '../../core/agent-metadata.ts'
import { inputOf, type AgentParameters } from '../../core/contract.ts'
import { programs as built } from '../../deploy/build.ts'
import type { Manifest } from '../../deploy/manifest.ts'
import { yamlOf } from '../../deploy/manifest.ts'
import { manifests } from '../../deploy/manifests.ts'
import { uninstallManifests } from '../../deploy/uninstall.ts'
import { names, usualValues } from '../../deploy/values.ts'
import type { AgentDescription } from '../../fence-agents/contract.ts'
import { metadataOf } from '../../fence-agents/metadata.ts'
import { programsHere } from '../fence-agents/place.ts'

const test = suite('manifests')

const made = manifests(usualValues)

// The fields of a manifest are whatever its kind has; these tests look at those that they name.
function madeOf(kind: string, name: string): Record<string, unknown> {
  const found = made.find((manifest) => manifest.kind === kind && manifest.metadata.name === name)
  if (found === undefined) throw new Error(`no ${kind} ${name}`)
  return found
}

const pod = (kind: string, name: string) => Object(madeOf(kind, name)['spec']).template.spec
const coordinator = pod('Deployment', names.coordinator)
const agent = pod('DaemonSet', names.agent)
const setting = (of: { containers: { env: { name: string; value?: string }[] }[] }, name: string) => of.containers[0]?.env.find((variable) => variable.name === name)

test('namespaces and kinds come before what needs them, and nothing stands twice', () => {
  assert.equal(made.slice(0, 6).map((manifest) => manifest.kind), ['Namespace', 'Namespace', ...Array.from({ length: 4 }, () => 'CustomResourceDefinition')])
  const keys = made.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''} ${metadata.name}`)
  assert.is(new Set(keys).size, keys.length)
})

test('the file reads back as what was meant, by YAML 1.1 as by 1.2', () => {
  for (const version of ['1.1', '1.2'] as const) {
    const read = parseAllDocuments(yamlOf(made), { version }).map((document) => document.toJS())
    assert.equal(read, JSON.parse(JSON.stringify(made)))
  }
})

const securityOf = (name: string) => Object(madeOf('Namespace', name)['metadata']).labels['pod-security.kubernetes.io/enforce']

test('the namespace with the devices\' passwords is restricted; only the agents\' is not', () => {
  assert.equal([securityOf(usualValues.namespace), securityOf(usualValues.agentNamespace)], ['restricted', 'privileged'])
})

test('the coordinator\'s pod is as the restricted level asks', () => {
  const [container] = coordinator.containers
  assert.is(coordinator.securityContext.runAsNonRoot, true)
  assert.is(coordinator.securityContext.seccompProfile.type, 'RuntimeDefault')
  assert.equal(container.securityContext, { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } })
  assert.equal([coordinator.hostNetwork, coordinator.hostPID, coordinator.hostIPC], [undefined, undefined, undefined])
  assert.ok(coordinator.volumes.every((volume: object) => !('hostPath' in volume)))
})

test('two replicas never share a node, leave a dead one within ten seconds, and one at a time', () => {
  const spec = Object(madeOf('Deployment', names.coordinator)['spec'])
  assert.is(spec.replicas, 2)
  assert.is(coordinator.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey, 'kubernetes.io/hostname')
  assert.equal(coordinator.tolerations.filter((one: { tolerationSeconds?: number }) => one.tolerationSeconds === 10).map((one: { key: string }) => one.key),
    ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'])
  assert.equal(Object(madeOf('PodDisruptionBudget', names.coordinator)['spec']).maxUnavailable, 1)
  assert.equal(spec.strategy.rollingUpdate, { maxSurge: 0, maxUnavailable: 1 })
})

test('the coordinator starts on a node under quarantine, where there may be no other, and not on one that was put out of service or evicted', () => {
  assert.equal(coordinator.tolerations.filter((one: { effect: string }) => one.effect === 'NoSchedule').map((one: { key: string }) => one.key), ['node-role.kubernetes.io/control-plane', 'holdfast.dev/quarantine'])
  for (const { key, operator } of coordinator.tolerations) assert.ok(operator === 'Exists' && key !== undefined)
})

test('the agent runs on every node, whatever taints it bears', () => {
  assert.equal(agent.tolerations, [{ operator: 'Exists' }])
  assert.is(agent.priorityClassName, 'system-node-critical')
  assert.is(agent.nodeSelector, undefined)
})

test('the agent has no privilege and no capability, and its account\'s token where it is put alone', () => {
  const [container] = agent.containers
  assert.equal(container.securityContext, { runAsUser: 0, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } })
  assert.is(agent.automountServiceAccountToken, false)
  assert.equal([agent.hostPID, agent.hostIPC], [undefined, undefined])
})

test('of the host the agent may write one folder of its own only', () => {
  const host = new Set(agent.volumes.filter((volume: object) => 'hostPath' in volume).map((volume: { name: string }) => volume.name))
  const writable = agent.containers[0].volumeMounts.filter((mount: { name: string; readOnly?: boolean }) => host.has(mount.name) && mount.readOnly !== true)
  assert.equal(writable, [{ name: 'state', mountPath: '/var/lib/holdfast' }])
})

test('where it may freeze what no runtime stops, the control groups are its to write, and nothing else', () => {
  const freezing = Object(manifests({ ...usualValues, freezer: 'on' }).find(({ kind }) => kind === 'DaemonSet')?.['spec']).template.spec
  const host = new Map(freezing.volumes.filter((volume: object) => 'hostPath' in volume).map((volume: { name: string; hostPath: { path: string } }) => [volume.name, volume.hostPath.path]))
  const writable = freezing.containers[0].volumeMounts.filter((mount: { name: string; readOnly?: boolean }) => host.has(mount.name) && mount.readOnly !== true)
  assert.equal(writable.map(({ name, mountPath }: { name: string; mountPath: string }) => [host.get(name), mountPath]), [['/var/lib/holdfast', '/var/lib/holdfast'], ['/sys/fs/cgroup', '/host/cgroup']])
  assert.is(setting(freezing, 'HOLDFAST_CGROUPS')?.value, '/host/cgroup')
  assert.equal(freezing.containers[0].securityContext, agent.containers[0].securityContext, 'with no more rights')
})

test('where it may clean up it has three capabilities, no privilege, and nothing of the host to write but its folder', () => {
  const cleaning = Object(manifests({ ...usualValues, cleanUp: 'on' }).find(({ kind }) => kind === 'DaemonSet')?.['spec']).template.spec
  const [container] = cleaning.containers
  assert.equal(container.securityContext.capabilities, { drop: ['ALL'], add: ['SYS_ADMIN', 'SYS_CHROOT', 'SYS_PTRACE'] })
  assert.equal([container.securityContext.privileged, container.securityContext.readOnlyRootFilesystem, cleaning.hostPID], [undefined, true, undefined])
  assert.equal([cleaning.volumes, container.volumeMounts, container.env], [agent.volumes, agent.containers[0].volumeMounts, agent.containers[0].env])
})

test('only where it may arm the watchdog of its machine is it privileged, and then with nothing more to write', () => {
  const arming = Object(manifests({ ...usualValues, watchdog: 'on', cleanUp: 'on' }).find(({ kind }) => kind === 'DaemonSet')?.['spec']).template.spec
  const [container] = arming.containers
  assert.equal(container.securityContext, { runAsUser: 0, readOnlyRootFilesystem: true, privileged: true })
  assert.equal([arming.volumes, container.volumeMounts, container.env], [agent.volumes, agent.containers[0].volumeMounts, agent.containers[0].env])
})

test('storage that is to be probed is told to the agent as it reads it', () => {
  const probing = Object(manifests({ ...usualValues, storage: ['tcp://10.0.0.5:3260', '/mnt/a'] }).find(({ kind }) => kind === 'DaemonSet')?.['spec']).template.spec
  const read = readEnvironment({ HOLDFAST_REPLICAS: 'a:1', HOLDFAST_STORAGE: setting(probing, 'HOLDFAST_STORAGE')?.value })
  assert.equal(read.ok && read.settings.storage, ['tcp://10.0.0.5:3260', '/mnt/a'])
  assert.is(setting(agent, 'HOLDFAST_STORAGE'), undefined)
})

test('the agent lets go of the mounts of volumes when the host does', () => {
  const mounts = agent.containers[0].volumeMounts
  for (const name of ['kubelet', 'proc', 'run']) assert.is(mounts.find((mount: { name: string }) => mount.name === name).mountPropagation, 'HostToContainer')
})

test('every file that the agent reads of the host lies in a folder that it is given', () => {
  const [container] = agent.containers
  const read = readEnvironment({ ...Object.fromEntries(container.env.map(({ name, value }: { name: string; value?: string }) => [name, value])), KUBERNETES_SERVICE_HOST: '10.0.0.1' })
  assert.ok(read.ok)
  const { settings: { proc, podsFolder, kubeletRoot, runtimeSockets, nriSocket, state, tokenFile, authorityFile, api } } = read
  const folders: string[] = container.volumeMounts.map((mount: { mountPath: string }) => `${mount.mountPath}/`)
  for (const path of [`${proc}/1/mountinfo`, podsFolder, `${kubeletRoot}/graceful_node_shutdown_state`, ...runtimeSockets, nriSocket, `${state}/boot.json`, tokenFile, authorityFile, `${api?.folder}/token`]) {
    assert.ok(folders.some((folder) => path.startsWith(folder)), path)
  }
})

test('the sockets of a runtime that keeps them elsewhere are where the agent looks, and it is given their folder to read', () => {
  for (const [runtimeSocket, nriSocket, folders] of [
    ['/run/k0s/containerd.sock', '', []], ['/var/snap/k8s/run/containerd.sock', '/var/snap/k8s/run/nri.sock', ['/var/snap/k8s/run']], ['', '/opt/nri/nri.sock', ['/opt/nri']],
  ] as const) {
    const { containers: [container], volumes } = Object(manifests({ ...usualValues, runtimeSocket, nriSocket }).find(({ kind }) => kind === 'DaemonSet')?.['spec']).template.spec
    const read = readEnvironment(Object.fromEntries(container.env.map(({ name, value }: { name: string; value?: string }) => [name, value])))
    assert.ok(read.ok)
    const given = volumes.flatMap(({ name, hostPath }: { name: string; hostPath?: { path: string } }) => {
      const mount = container.volumeMounts.find((one: { name: string }) => one.name === name)
      return hostPath === undefined ? [] : [{ host: hostPath.path, at: mount.mountPath, readOnly: mount.readOnly === true }]
    })
    const asTheHost = (path: string) => given.flatMap(({ host, at }: { host: string; at: string }) => (path.startsWith(`${at}/`) ? [host + path.slice(at.length)] : []))
    if (runtimeSocket !== '') assert.equal(read.settings.runtimeSockets.map(asTheHost), [[runtimeSocket]])
    assert.equal(asTheHost(read.settings.nriSocket), [nriSocket === '' ? '/run/nri/nri.sock' : nriSocket])
    assert.equal(given.filter(({ at, readOnly }: { at: string; readOnly: boolean }) => readOnly && !['/host/proc', '/host/run', '/var/lib/kubelet'].includes(at)).map(({ host }: { host: string }) => host), [...folders])
  }
})

test('the namespaces of the product pass the gate whatever they are called', () => {
  const renamed = manifests({ ...usualValues, namespace: 'hf', agentNamespace: 'hf-agents' }).find(({ kind }) => kind === 'DaemonSet')
  const [container] = Object(renamed)['spec'].template.spec.containers
  const read = readEnvironment(Object.fromEntries(container.env.map(({ name, value }: { name: string; value?: string }) => [name, value])))
  assert.equal(read.ok && [read.settings.gate, read.settings.exemptNamespaces], [{ node: '' }, ['kube-system', 'hf', 'hf-agents']])
})

test('a gate from boot on is put onto the node before the agent, by the words that its program takes', () => {
  const values = { ...usualValues, gateFromBoot: 'on', nriPlugins: '/opt/plugins' } as const
  const { initContainers: [first], containers: [own], volumes } = Object(manifests(values).find(({ kind }) => kind === 'DaemonSet'))['spec'].template.spec
  assert.equal(first.command, ['/holdfast/node', '/holdfast/boot-gate.mjs', 'install', '/var/lib/holdfast', '/host/nri-plugins', 'kube-system,holdfast-system,holdfast-agents'])
  assert.ok(built().some(({ to }) => to === 'boot-gate.mjs'))
  const pathOf = (mounted: string) => volumes.find(({ name }: { name: string }) => name === first.volumeMounts.find(({ mountPath }: { mountPath: string }) => mountPath === mounted)?.name)?.hostPath.path
  assert.equal([pathOf('/var/lib/holdfast'), pathOf('/host/nri-plugins')], ['/var/lib/holdfast', '/opt/plugins'])
  const read = readEnvironment(Object.fromEntries(own.env.map(({ name, value }: { name: string; value?: string }) => [name, value])))
  assert.is(read.ok && read.settings.gateFromBoot, true)
  assert.not.match(JSON.stringify(agent), /boot-gate|nri-plugins|GATE_FROM_BOOT/, 'unless it is wanted')
})

test('both start where a gate is shut, and where the plugin that a runtime requires is not there yet', () => {
  for (const [kind, name] of [['Deployment', names.coordinator], ['DaemonSet', names.agent]] as const) {
    assert.equal(Object(madeOf(kind, name)['spec']).template.metadata.annotations, { 'holdfast.dev/tolerate-gate': 'true' })
  }
})

test('both sides bear tokens for one audience, bound to their pods', () => {
  for (const spec of [agent, coordinator]) {
    const { projected } = spec.volumes.find((volume: { name: string }) => volume.name === 'token')
    assert.equal(projected.sources, [{ serviceAccountToken: { audience: 'holdfast-coordinator', expirationSeconds: 3_600, path: 'token' } }])
  }
})

test('agents dial the name and the port that the coordinator serves', () => {
  const service = Object(madeOf('Service', names.coordinator))
  const [port] = service.spec.ports
  assert.is(setting(agent, 'HOLDFAST_REPLICAS')?.value, `${service.metadata.name}.${service.metadata.namespace}.svc:${port.port}`)
  assert.is(setting(coordinator, 'HOLDFAST_BEATS_PORT')?.value, String(port.port))
  assert.equal([service.spec.clusterIP, service.spec.publishNotReadyAddresses], ['None', true])
  assert.equal(service.spec.selector, Object(madeOf('Deployment', names.coordinator)['spec']).template.metadata.labels)
})

test('whatever the coordinator listens on is let in to it, from wherever it comes', () => {
  const { ingress } = Object(madeOf('NetworkPolicy', names.coordinator)['spec'])
  const open: string[] = ingress.flatMap(({ ports }: { ports: { port: string; protocol: string }[] }) => ports.map(({ port, protocol }) => `${port} ${protocol}`))
  const listens: string[] = coordinator.containers[0].ports.map(({ name, protocol = 'TCP' }: { name: string; protocol?: string }) => `${name} ${protocol}`)
  assert.equal(open.toSorted(), listens.toSorted())
})

test('the fence ConfigMaps are looked for where the coordinator itself is', () => {
  assert.is(setting(coordinator, 'HOLDFAST_NAMESPACE')?.value, Object(madeOf('Deployment', names.coordinator)['metadata']).namespace)
  assert.is(setting(coordinator, 'HOLDFAST_AGENT_NAMESPACE')?.value, Object(madeOf('DaemonSet', names.agent)['metadata']).namespace)
})

test('every container says how much memory it may have, and none is throttled', () => {
  for (const spec of [agent, coordinator]) for (const { resources } of spec.containers) {
    assert.match(resources.limits.memory, /^\d+Mi$/)
    assert.is(resources.limits.cpu, undefined)
  }
})

test('other values go wherever they belong', () => {
  const text = yamlOf(manifests({ ...usualValues, namespace: 'hf', agentNamespace: 'hf-agents', image: 'registry.example/hf:1', kubeletRoot: '/data/kubelet' }))
  assert.not.match(text, /holdfast-system|holdfast-agents|holdfast:0|\/var\/lib\/kubelet/)
  assert.match(text, /path: "?\/data\/kubelet"?\n/)
})

const examples = globSync('deploy/examples/*.yaml').toSorted()
const objects = (file: string) => parseAllDocuments(readFileSync(file, 'utf8')).map((document): Manifest => document.toJS())

test('the example policy is without faults, would free every pod of a dead node, and does nothing yet', () => {
  const [policy] = objects('deploy/examples/policy.yaml')
  const read = readPolicy(policy as unknown as KubeObject) // read strictly just here
  assert.equal(read.ok ? [] : read.faults, [])
  assert.equal(read.ok && [read.policy.nodeDownPodDeletionPolicy, read.policy.mode], ['DeleteAllPods', 'dryRun'])
})

test('the example remedy is without faults, and does nothing but tell', () => {
  const [remedy] = objects('deploy/examples/remedy.yaml')
  const read = readRemedy(remedy as unknown as KubeObject) // read strictly just here
  assert.equal(read.ok ? [] : read.faults, [])
  assert.is(read.ok && read.remedy.does, 'tell')
})

const onRecord: NodeWords = { labels: {}, annotations: {}, addresses: ['192.0.2.61', '2001:db8::61'] }

const shipped = readdirSync('fence-agents', { withFileTypes: true }).filter((entry) => entry.isDirectory() && entry.name !== 'test-device').map(({ name }) => name)

for (const [file, node, levels] of [
  ['deploy/examples/fence-redfish.yaml', 'node-3', [['bmc']]],
  ['deploy/examples/fence-redfish.yaml', 'node-7', [['bmc']]],
  ['deploy/examples/fence-ipmi.yaml', 'node-1', [['bmc'], ['left', 'right']]],
  ['deploy/examples/fence-pdu-snmp.yaml', 'node-1', [['left', 'right']]],
  ['deploy/examples/fence-switch-snmp.yaml', 'node-1', [['port-off'], ['feed-off']]],
  ['deploy/examples/fence-nut.yaml', 'node-1', [['outlet']]],
  ['deploy/examples/fence-fc-switch.yaml', 'node-1', [['fc-off'], ['eaton-off']]],
  ['deploy/examples/fence-storage.yaml', 'node-1', [['storage-off'], ['bmc-off']]],
  ['deploy/examples/fence-libvirt.yaml', 'node-3', [['machine-off']]],
  ['deploy/examples/fence-exec.yaml', 'node-1', [['relay-off']]],
  ['deploy/examples/fence-job.yaml', 'node-1', [['disk-off'], ['bmc-off']]],
  ['deploy/examples/fence-aws.yaml', 'node-1', [['instance']]],
  ['deploy/examples/fence-gce.yaml', 'node-3', [['instance']]],
  ['deploy/examples/fence-azure.yaml', 'node-3', [['machine']]],
  ['deploy/examples/fence-openstack.yaml', 'node-1', [['server']]],
  ['deploy/examples/fence-vmware.yaml', 'node-3', [['machine']]],
] as const) {
  test(`${file} gives ${node} a fence path without faults`, async () => {
    assert.ok(examples.includes(file))
    const all = objects(file)
    const secrets = new Map(all.filter(({ kind }) => kind === 'Secret').map((secret) => [secret.metadata.name, Object(secret['stringData'])]))
    const maps = all.filter(({ kind }) => kind === 'ConfigMap').map((map) => ({ name: map.metadata.name, data: Object(map['data']) }))
    const lookup: SecretLookup = ({ secret, key }) => secrets.get(secret)?.[key]
    const known = await metadataHere()
    const config = readFenceConfigs(maps, lookup, 'salt', (name) => known.get(name)).forNode(node, undefined, undefined, onRecord)
    assert.equal(config.faults.map(sentenceOf), [])
    assert.equal(config.path.levels.map((level) => level.map((method) => method.name)), levels)
    const asked = new Map<string, Promise<string[]>>()
    for (const method of Object.values(config.methods)) for (const configured of [method.parameters, method.on]) {
      const resolved = resolveParameters(configured, lookup)
      assert.ok('parameters' in resolved)
      // Most are the same on as off.
      const same = JSON.stringify([method.agent, resolved.parameters])
      if (!method.agent.startsWith('fence_') && !asked.has(same)) asked.set(same, complaintsOf(method.agent, resolved.parameters))
    }
    assert.equal((await Promise.all(asked.values())).flat(), [])
  })
}

/** What our programs say of themselves. */
async function metadataHere(): Promise<ReadonlyMap<string, AgentMetadata>> {
  const programs = await Promise.all(shipped.map(async (name) => {
    const program = await import(`../../fence-agents/${name}/${name}.ts`) as { readonly agent: AgentDescription } // each of them exports it
    return [name, readMetadata(metadataOf(program.agent, []))] as const
  }))
  return new Map(programs.flatMap(([name, metadata]) => (metadata === undefined ? [] : [[name, metadata] as const])))
}

/** What one of our programs has against its parameters before it has asked any device. */
async function complaintsOf(program: string, parameters: AgentParameters): Promise<string[]> {
  const input = inputOf('validate-all', parameters)
  assert.ok('text' in input)
  const { exitCode, refused, stderr } = await programsHere.run({ agent: program, stdin: input.text, environment: {}, within: 20_000 })
  return exitCode === 0 ? stderr.split('\n').filter((line) => line.startsWith('WARNING')) : [refused ?? `exit ${exitCode}: ${stderr}`]
}

test('each fence program that switches power has an example', () => {
  const named = new Set(examples.flatMap(objects).flatMap((map) => /agent_name=(\S+)/.exec(JSON.stringify(map).replaceAll('\\n', '\n'))?.[1] ?? []))
  assert.equal(shipped.filter((name) => !named.has(name)), [])
})

test('the example Secrets bear the label without which they are not read', () => {
  const secrets = examples.flatMap(objects).filter(({ kind }) => kind === 'Secret')
  assert.ok(secrets.length > 0)
  for (const { metadata } of secrets) assert.is(metadata.labels?.['holdfast.dev/fence-secret'], 'true')
})

for (const [when, values] of [
  ['the gate is kept from boot on', { ...usualValues, gateFromBoot: 'on' }],
  ['that was switched off', usualValues],
  ['the runtime\'s plugins lie elsewhere', { ...usualValues, nriPlugins: '/var/lib/k3s/plugins' }],
] as const) {
  test(`what is removed from a node at the end is all that was ever put there, and nothing beside it: ${when}`, () => {
    const { initContainers, containers, volumes: given } = Object(manifests({ ...values, gateFromBoot: 'on' }).find(({ kind }) => kind === 'DaemonSet'))['spec'].template.spec
    const mounts = [...initContainers, ...containers].flatMap(({ volumeMounts }) => volumeMounts.filter((mount: { readOnly?: boolean }) => mount.readOnly !== true))
    const written = given.filter(({ name, hostPath }: { name: string; hostPath?: object }) => hostPath !== undefined && mounts.some((mount) => mount.name === name)).map(({ hostPath: { path } }: { hostPath: { path: string } }) => path)
    assert.equal(written, ['/var/lib/holdfast', values.nriPlugins])
    const { containers: [container], volumes, tolerations } = Object(uninstallManifests(values)[0])['spec'].template.spec
    const asTheHost = (path: string): string => {
      const [{ name, mountPath }] = container.volumeMounts.filter((mount: { mountPath: string }) => path.startsWith(`${mount.mountPath}/`)).toSorted((one: { mountPath: string }, other: { mountPath: string }) => other.mountPath.length - one.mountPath.length)
      return volumes.find((volume: { name: string }) => volume.name === name).hostPath.path + path.slice(mountPath.length)
    }
    for (const [, list = ''] of container.command[2].matchAll(/\[([^\]]*)\]/g)) {
      assert.equal([...list.matchAll(/'([^']+)'/g)].map(([, path = '']) => asTheHost(path)), ['/var/lib/holdfast', `${values.nriPlugins}/${shimName}`])
    }
    assert.equal(tolerations, agent.tolerations)
  })
}

test.run()
