// The command line itself, against the in-memory API server over HTTPS; once as the process that a person starts.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { main } from '../../cli/main.ts'
import { createApi, type KubeObject } from '../../coordinator/api.ts'
import { fencesPath } from '../../coordinator/node-fence.ts'
import { recordBody } from '../../coordinator/node-record.ts'
import { customResourceDefinitions } from '../../deploy/crd.ts'
import { machineClock } from '../../edge/clock.ts'
import { serve } from '../../sim/api-server/https-server.ts'
import { admin, createApiServer, type ApiServer } from '../../sim/api-server/server.ts'
import { record } from '../core/world.ts'

const test = suite('holdfast')

interface Ran { readonly code: number; readonly out: string; readonly err: string }

async function withServer(plant: (server: ApiServer) => void, use: (run: (...input: string[]) => Promise<Ran>, folder: string) => Promise<void>): Promise<void> {
  const server = createApiServer({ clock: machineClock, chance: () => 0.5 })
  plant(server)
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'))
  const served = await serve(server, { wall: machineClock.wall(), tokens: { person: admin } })
  writeFileSync(join(folder, 'kubeconfig'), JSON.stringify({
    apiVersion: 'v1', kind: 'Config', 'current-context': 'right',
    clusters: [{ name: 'c', cluster: { server: served.url, 'certificate-authority-data': Buffer.from(served.ca).toString('base64') } }, { name: 'gone', cluster: { server: 'https://127.0.0.1:1' } }],
    users: [{ name: 'u', user: { token: 'person' } }],
    contexts: [{ name: 'right', context: { cluster: 'c', user: 'u' } }, { name: 'wrong', context: { cluster: 'gone', user: 'u' } }],
  }))
  const run = async (...input: string[]): Promise<Ran> => {
    const said = { out: '', err: '' }
    const named = input.includes('--kubeconfig') ? [] : ['--kubeconfig', join(folder, 'kubeconfig')]
    const code = await main([...input, ...named], {
      environment: { LC_ALL: 'C.UTF-8' }, isTerminal: false, print: (line) => void (said.out += `${line}\n`), complain: (line) => void (said.err += `${line}\n`),
    })
    return { code, ...said }
  }
  try {
    await use(run, folder)
  } finally {
    await served.close()
    rmSync(folder, { recursive: true })
  }
}

function installed(server: ApiServer): void {
  // Manifests of ours are objects of Kubernetes; only the types do not say so.
  for (const definition of customResourceDefinitions() as unknown as KubeObject[]) server.plant(definition)
  server.plant({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'holdfast-system' } })
  server.plant({ apiVersion: 'holdfast.dev/v1alpha1', kind: 'HoldfastPolicy', metadata: { name: 'all' }, spec: { nodeDownPodDeletionPolicy: 'DeleteAllPods' } } as KubeObject)
  const node = server.plant({
    apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' },
    status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { bootID: 'boot-1', systemUUID: 'machine-1' } },
  } as KubeObject)
  // Audits without a time get the present one.
  const { paths, probe, ...facts } = record({ nodeUid: node.metadata.uid ?? '' })
  const untimed = { ...facts, paths: paths.map((path) => ({ ...path, at: '' })), ...(probe === undefined ? {} : { probe: { ...probe, at: '' } }) }
  server.plant(recordBody('node-1', untimed, machineClock.wall()) as KubeObject)
}

test('check names what is missing and exits 1; status still tells what there is', async () => {
  await withServer(installed, async (run) => {
    const [checked, plain, status] = await Promise.all([run('check', '--json'), run('check'), run('status')])
    const { success, categories } = JSON.parse(checked.out) as { success: boolean; categories: { checks: { id: string; result: string }[] }[] }
    const failed = categories.flatMap(({ checks }) => checks).filter(({ result }) => result === 'error').map(({ id }) => id)
    assert.equal([checked.code, success, failed], [1, false, ['replica-leads', 'agents-run']])
    assert.match(plain.out, /× a coordinator replica leads\n {4}there is no Lease holdfast-coordinator.*\n {4}see docs\/checks\.md#replica-leads/)
    assert.is(status.code, 0)
    assert.is(status.out, '√ 1 well   paths 1/1 verified   × no replica leads\n\n‼ not read: lease: 404 leases.coordination.k8s.io "holdfast-coordinator" not found\n')
  })
})

test('a server without our kinds is told to have none', async () => {
  await withServer(() => undefined, async (run) => {
    const { code, out } = await run('check', '--ascii')
    assert.is(code, 1)
    assert.match(out, /X the kinds of Holdfast are installed\n {4}not served: holdfastpolicies, nodefences, noderecords, noderemedies/)
  })
})

test('the kubeconfig and the context are those that were asked for', async () => {
  await withServer(installed, async (run, folder) => {
    const [wrong, none, nowhere] = await Promise.all([run('status', '--context', 'wrong'), run('status', '--context', 'none'), run('status', '--kubeconfig', join(folder, 'none'))])
    assert.is(wrong.code, 1)
    assert.match(wrong.out, /^× the cluster cannot be read: .*ECONNREFUSED/)
    assert.match(none.err, /no context "none", only right, wrong/)
    assert.match(nowhere.err, /the kubeconfig cannot be read/)
  })
})

test('a drill is asked for only of a node that is cordoned, only with --off, and its end is the command\'s', async () => {
  let server: ApiServer | undefined
  await withServer((one) => {
    server = one
    installed(one)
  }, async (run) => {
    const [bare, loose, none] = await Promise.all([run('test-fence', 'node-1'), run('test-fence', 'node-1', '--off'), run('test-fence', 'node-9', '--off')])
    assert.equal([bare.code, loose.code, none.code], [2, 1, 1])
    assert.match(bare.err, /needs --off: the machine is switched off/)
    assert.match(loose.out, /× node-1 is not cordoned: kubectl drain node-1/)
    assert.match(none.out, /× there is no node node-9/)
    assert.equal(server?.peek('nodefences.holdfast.dev'), [])
  })
  await withServer((one) => {
    server = one
    installed(one)
    const [node] = one.peek('nodes')
    if (node !== undefined) one.plant({ ...node, metadata: { name: 'node-2' }, spec: { taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] } } as KubeObject)
    const uid = one.peek('nodes').find(({ metadata }) => metadata.name === 'node-2')?.metadata.uid ?? ''
    one.plant(recordBody('node-2', { ...record({ nodeUid: uid }), paths: [], probe: undefined } as never, machineClock.wall()) as KubeObject)
  }, async (run) => {
    const ran = run('test-fence', 'node-2', '--off')
    const found = () => server?.peek('nodefences.holdfast.dev')[0] as (KubeObject & { spec: { cause: string; nodeName: string } }) | undefined
    while (found() === undefined) await machineClock.wait(50)
    const fence = found()
    assert.equal([fence?.spec.cause, fence?.spec.nodeName], ['drill', 'node-2'])
    if (server === undefined) throw new Error('no server') // it is there since the fence is
    const api = createApi({ transport: server.transportFor(admin), clock: machineClock, userAgent: 'test' })
    const status = { phase: 'Final', outcome: 'Withdrawn', drill: { passed: false, detail: 'node-3 fell silent with it' } }
    const written = await api.patch(`${fencesPath}/${fence?.metadata.name}/status`, 'merge', { status })
    assert.ok(written.ok)
    const { code, out } = await ran
    assert.is(code, 1)
    assert.match(out, /× node-3 fell silent with it/)
  })
})

test('a command that is not known ends with the usage and exit code 2', async () => {
  await withServer(() => undefined, async (run) => {
    const wrong = [['frob'], ['status', 'more'], ['check', '--frob'], ['status', '--color', 'blue']]
    assert.equal(await Promise.all(wrong.map(async (input) => [...input, (await run(...input)).code])), wrong.map((input) => [...input, 2]))
    assert.match((await run('--help')).out, /kubectl holdfast check/)
  })
})

test('as a process it takes its kubeconfig from the environment, and a script notices how it ended', async () => {
  await withServer(installed, async (_run, folder) => {
    const ran = (...input: string[]) => new Promise<Ran>((resolve) => {
      execFile(execPath, ['cli/main.ts', ...input], { env: { ...process.env, KUBECONFIG: join(folder, 'kubeconfig'), LC_ALL: 'C.UTF-8' }, timeout: 60_000 }, (error, out, err) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), out, err })
      })
    })
    const [checked, unknown] = await Promise.all([ran('check'), ran('frob')])
    assert.equal([checked.code, unknown.code, unknown.out], [1, 2, ''])
    assert.match(checked.out, /× a coordinator replica leads/)
  })
})

test.run()
