// A person's own kubectl against the in-memory API server over HTTPS, with machines, kubelets and controllers behind it: what
// people type in the embedded world must do what it does in a cluster. At last `npm start` itself, by the words that it prints.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { KubeObject } from '../../coordinator/api.ts'
import { incidentBody } from '../../coordinator/node-fence.ts'
import { bootOf } from '../../core/model.ts'
import { defaultPolicy } from '../../core/policy.ts'
import { customResourceDefinitions } from '../../deploy/crd.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { serve, type Served } from '../../sim/api-server/https-server.ts'
import { admin } from '../../sim/api-server/server.ts'
import { createWorld, type World } from '../../sim/world.ts'

const test = suite('kubectl on the in-memory API server')

interface Opened { readonly world: World; readonly served: Served; readonly folder: string }

let opened: Opened | undefined
const patience = 150_000
const kubectlFile = join(process.env['HOLDFAST_CACHE'] ?? join(homedir(), '.cache', 'holdfast'), 'control-plane', `v${(process.env['HOLDFAST_KUBERNETES'] ?? '1.36.4').replace(/^v/, '')}`, 'kubectl')

test('the in-memory server is there, and its workload runs', async () => {
  const world = await createWorld({ seed: 7, clock, nodes: 3, bootTime: [500, 500], objects: [...customResourceDefinitions(), policy('usual')] as unknown as KubeObject[], logFrom: 'none' }) // manifests are objects of many kinds
  if (world.server === undefined) throw new Error('a world without a server')
  const token = 'a-person-at-a-terminal'
  const served = await serve(world.server, { wall: clock.wall(), tokens: { [token]: admin } })
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-kubectl-'))
  writeFileSync(join(folder, 'kubeconfig'), JSON.stringify({
    apiVersion: 'v1', kind: 'Config', 'current-context': 'here', users: [{ name: 'person', user: { token } }],
    clusters: [{ name: 'here', cluster: { server: served.url, 'certificate-authority-data': Buffer.from(served.ca).toString('base64') } }],
    contexts: [{ name: 'here', context: { cluster: 'here', user: 'person', namespace: 'work' } }],
  }), { mode: 0o600 })
  opened = { world, served, folder }
  await kubectl(['wait', '--for=condition=Ready', 'pod', '--all', '--timeout=60s'])
})

test('get prints the columns of the main kinds', async () => {
  const nodes = rows(await kubectl(['get', 'nodes']))
  assert.equal(nodes[0], ['NAME', 'STATUS', 'ROLES', 'AGE', 'VERSION'])
  assert.equal(nodes.slice(1).map(([name, status]) => `${name} ${status}`), ['node-1 Ready', 'node-2 Ready', 'node-3 Ready'])
  const pods = rows(await kubectl(['get', 'pods', '-A', '-o', 'wide']))
  assert.ok(pods.some(([namespace, name, ready, status, , , , node]) => namespace === 'work' && name === 'db-0' && ready === '1/1' && status === 'Running' && node?.startsWith('node-')), JSON.stringify(pods))
  assert.is(rows(await kubectl(['get', 'sts,deploy,rs,pvc,pv,volumeattachments,leases,events', '-A'])).length > 8, true)
})

test('get knows our kinds by their short names, with their columns', async () => {
  await create(nodeFence('node-1-aaaa', 'node-1'))
  const fences = rows(await kubectl(['get', 'nf']))
  assert.equal(fences[0]?.slice(0, 3), ['NAME', 'NODE', 'PHASE'])
  assert.is(fences[1]?.[1], 'node-1')
  assert.is(rows(await kubectl(['get', 'hp']))[1]?.[0], 'usual')
  assert.match(await kubectl(['get', 'nodefence', 'node-1-aaaa', '-o', 'jsonpath={.spec.nodeName}']), /^node-1$/)
  assert.match(await kubectl(['get', 'nf', '-o', 'yaml']), /kind: NodeFence/)
})

test('describe tells of nodes, pods, volumes and fences', async () => {
  assert.match(await kubectl(['describe', 'node', 'node-2']), /Conditions:[\s\S]*KubeletReady/)
  assert.match(await kubectl(['describe', 'pod', 'db-0']), /Node: +node-\d[\s\S]*ClaimName: +data-db-0/)
  assert.match(await kubectl(['describe', 'pv', 'pv-web']), /VolumeHandle: +vol-web/)
  assert.match(await kubectl(['describe', 'nf', 'node-1-aaaa']), /Kind: +NodeFence[\s\S]*Node Name: +node-1/)
  assert.match(await kubectl(['describe', 'statefulset', 'db']), /Replicas: +1 desired/)
})

test('apply creates, changes, and changes nothing that is the same', async () => {
  assert.match(await kubectl(['apply', '-f', '-'], chart('10')), /configmap\/chart created/)
  assert.match(await kubectl(['apply', '-f', '-'], chart('10')), /configmap\/chart unchanged/)
  assert.match(await kubectl(['apply', '-f', '-'], chart('20')), /configmap\/chart configured/)
  assert.is(await kubectl(['get', 'cm', 'chart', '-o', 'jsonpath={.data.depth}']), '20')
  assert.match(await kubectl(['apply', '-f', '-'], policy('usual', 'fast')), /holdfastpolicy.holdfast.dev\/usual configured/)
})

test('apply of a policy with faults is refused, each with its path', async () => {
  const refusal = await refused(['apply', '-f', '-'], policy('usual', 'furious'))
  assert.match(refusal, /spec\.profile: Unsupported value: "furious"/)
})

test('apply of a remedy is taken, and shown by what it does', async () => {
  const spec = { thresholds: [{ name: 'full', vital: 'disk', above: 95, period: '15m' }], remedy: 'fence' }
  assert.match(await kubectl(['apply', '-f', '-'], { apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeRemedy', metadata: { name: 'disks' }, spec }), /noderemedy.holdfast.dev\/disks created/)
  assert.match(await kubectl(['get', 'nrem']), /NAME +REMEDY +AGAIN +AGE\ndisks +fence +24h/)
  await kubectl(['delete', 'nrem', 'disks'])
})

test('watch prints what changes', async () => {
  const watching = spawn(kubectlFile, [...own(), 'get', 'nf', '-w', '--no-headers'], { stdio: ['ignore', 'pipe', 'inherit'] })
  let seen = ''
  watching.stdout.on('data', (piece: Buffer) => { seen += piece.toString() })
  try {
    await eventually('the first line', () => seen.includes('node-1-aaaa'))
    await create(nodeFence('node-3-bbbb', 'node-3'))
    await eventually('a line of the new one', () => seen.includes('node-3-bbbb'))
  } finally {
    watching.kill('SIGKILL')
  }
})

test('cordon, label and taint change a node', async () => {
  await kubectl(['cordon', 'node-3'])
  await kubectl(['label', 'node', 'node-3', 'deck=lower'])
  await kubectl(['taint', 'node', 'node-3', 'holdfast.dev/force-eviction=:NoSchedule'])
  assert.match((await kubectl(['get', 'node', 'node-3', '-L', 'deck'])), /SchedulingDisabled.*lower/)
  await kubectl(['taint', 'node', 'node-3', 'holdfast.dev/force-eviction-'])
  await kubectl(['uncordon', 'node-3'])
})

test('delete ends a pod in good order, and its owner makes another', async () => {
  const uid = await kubectl(['get', 'pod', 'db-0', '-o', 'jsonpath={.metadata.uid}'])
  assert.match(await kubectl(['delete', 'pod', 'db-0']), /pod "db-0" deleted/)
  await eventually('another db-0', async () => ![uid, ''].includes(await kubectl(['get', 'pod', 'db-0', '--ignore-not-found', '-o', 'jsonpath={.metadata.uid}'])))
})

test('delete --force takes a pod away at once', async () => {
  const [name = ''] = rows(await kubectl(['get', 'pods', '-l', 'app=plain', '--no-headers']))[0] ?? []
  assert.match(await kubectl(['delete', 'pod', name, '--force', '--grace-period=0']), /deleted/)
  assert.is(await kubectl(['get', 'pod', name, '--ignore-not-found']), '')
})

test('it stops and leaves nothing', async () => {
  if (opened === undefined) return
  opened.world.stop()
  await opened.served.close()
  rmSync(opened.folder, { recursive: true })
})

test('with what npm start prints, a person sees a node die and come back, and deletes its record', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-kubectl-start-'))
  const started = spawn(execPath, ['sim/start.ts'], { env: { ...process.env, TMPDIR: folder }, stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  started.stdout.on('data', (piece: Buffer) => { said += piece.toString() })
  const ended = once(started, 'close')
  const word = (pattern: RegExp): string => pattern.exec(said)?.[1] ?? ''
  try {
    await eventually('its last word', () => said.includes('Cut the power'))
    const there = [`--kubeconfig=${word(/export KUBECONFIG=(\S+)/)}`, `--cache-dir=${join(folder, 'cache')}`]
    const told = async (...words: readonly string[]): Promise<string> => await run([...there, ...words])
    assert.equal(rows(await told('get', 'nodes')).slice(1).map(([name, status]) => `${name} ${status}`), ['node-1 Ready', 'node-2 Ready', 'node-3 Ready'])
    const home = word(/Cut the power of (\S+) on the page/)
    await eventually('its database on the node that is to die', async () => rows(await told('get', 'pods', '-A', '-o', 'wide')).some((cells) => cells.includes('db-0') && cells.includes('Running') && cells.includes(home)))
    await fetch(`${word(/page +(\S+)/)}world/${home}/cut-power`, { method: 'POST', headers: { 'x-holdfast-world': 'lever' } })
    const name = async (): Promise<string> => await told('get', 'nodefence', '-o', 'jsonpath={.items[0].metadata.name}')
    await eventually('a NodeFence', async () => (await told('get', 'nodefence', '--no-headers', '--ignore-not-found')) !== '')
    await eventually('its end', async () => /Final/.test(await told('get', 'nodefence', await name(), '--no-headers')))
    assert.match(await told('describe', 'nodefence', await name()), /Kind: +NodeFence[\s\S]*found-off/)
    assert.match(await told('delete', 'nodefence', await name()), /deleted/)
  } finally {
    started.kill('SIGTERM')
    await ended
    rmSync(folder, { recursive: true })
  }
})

function policy(name: string, profile = 'balanced'): object {
  return { apiVersion: 'holdfast.dev/v1alpha1', kind: 'HoldfastPolicy', metadata: { name }, spec: { profile, nodeDownPodDeletionPolicy: 'DeleteAllPods' } }
}

function chart(depth: string): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'chart', namespace: 'work' }, data: { depth } }
}

function nodeFence(name: string, nodeName: string): unknown {
  return incidentBody({ name, nodeName, nodeUid: 'a-uid', boot: bootOf('0f0e0d0c-0b0a-4908-8706-050403020100', '7'), machine: 'a-machine', cause: 'silence', policy: { ...defaultPolicy, name: 'usual' } })
}

async function create(object: unknown): Promise<void> {
  await kubectl(['create', '-f', '-'], object)
}

function own(): readonly string[] {
  if (opened === undefined) throw new Error('the world did not start, see the first test')
  return [`--kubeconfig=${join(opened.folder, 'kubeconfig')}`, `--cache-dir=${join(opened.folder, 'cache')}`]
}

function kubectl(words: readonly string[], input?: unknown): Promise<string> {
  return run([...own(), ...words], input)
}

function run(words: readonly string[], input?: unknown): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(kubectlFile, words, { timeout: patience }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout.trim())
      else reject(new Error(`kubectl ${words.join(' ')}: ${stderr || error.message}`))
    })
    child.stdin?.end(input === undefined ? '' : JSON.stringify(input))
  })
}

async function refused(words: readonly string[], input: object): Promise<string> {
  const outcome = await kubectl(words, input).then(() => undefined, (error: unknown) => error)
  if (outcome instanceof Error) return outcome.message
  throw new Error(`kubectl ${words.join(' ')} went through, and should have been refused`)
}

function rows(printed: string): string[][] {
  return printed.split('\n').filter((line) => line.trim() !== '').map((line) => line.trim().split(/\s+/))
}

async function eventually(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = clock.now() + patience
  while (!await holds()) {
    if (clock.now() > deadline) throw new Error(`waited in vain for ${what}`)
    await clock.wait(100)
  }
}

test.run()
