import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { buildAll, bundle, programs, type Bundle } from '../../deploy/build.ts'
import { agentName, agentsBuilt, sizesTold } from './agent-sizes.ts'

const test = suite('build')

async function inFolder<T>(run: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-build-'))
  try {
    return await run(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The whole agent; its machine host comes with its main. */
const agentFrom = existsSync('agent/main.ts') ? 'agent/main.ts' : 'agent/agent.ts'

function packagesOf({ files }: Bundle): string[] {
  const names = files.flatMap((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)/.exec(file)?.[1] ?? [])
  return [...new Set(names)].toSorted()
}

test('the agent holds no client-node, nor anything that speaks to the API server', () => inFolder(async (folder) => {
  const built = await bundle({ from: agentFrom, to: 'agent.mjs' }, folder)
  if ('missing' in built) return assert.unreachable(built.missing)
  assert.equal(packagesOf(built).filter((name) => name.includes('kubernetes') || ['undici', 'openid-client', 'valibot', 'execa', 'systeminformation'].includes(name)), [])
  assert.equal(built.files.filter((file) => file.startsWith('coordinator/')), [])
  assert.ok(built.bytes < 512 * 1024, `${built.bytes} bytes`)
}))

test('what looks at the vitals is a bundle of its own, and runs by itself', () => inFolder(async (folder) => {
  const program = programs().find(({ to }) => to === 'vitals-program.mjs')
  if (program === undefined) return assert.unreachable('it is not built')
  const built = await bundle(program, folder)
  if ('missing' in built) return assert.unreachable(built.missing)
  assert.equal(packagesOf(built), ['systeminformation'])
  const told: unknown = JSON.parse(execFileSync(execPath, [join(folder, 'vitals-program.mjs'), folder], { encoding: 'utf8', cwd: folder, timeout: 60_000 }))
  assert.ok(typeof told === 'object' && told !== null && 'memory' in told && 'disk' in told)
}))

test('a bundle with client-node inside is seen as one', () => inFolder(async (folder) => {
  const built = await bundle({ from: 'coordinator/kubeconfig.ts', to: 'kubeconfig.mjs' }, folder)
  assert.ok(!('missing' in built) && packagesOf(built).includes('@kubernetes/client-node'))
}))

const snmp = ['asn1-ber', 'net-snmp', 'smart-buffer']
const ssh = ['asn1', 'bcrypt-pbkdf', 'safer-buffer', 'ssh2', 'tweetnacl']

test('every fence agent is one file under its own name that runs by itself, as large as the docs say, and the one for tests is not among them', () => inFolder(async (folder) => {
  const told = sizesTold()
  assert.equal([...told.keys()], agentsBuilt.map(agentName), 'the table in docs/fence-agents.md')
  assert.equal(agentsBuilt.map((program) => program.to).filter((to) => to.includes('test')), [])
  assert.ok(agentsBuilt.some((program) => program.to === 'fence-agents/redfish/redfish.mjs'))
  for (const program of agentsBuilt) {
    const built = await bundle(program, folder)
    if ('missing' in built) return assert.unreachable(built.missing)
    const speaks = program.to.includes('/fc-switch/') ? [...ssh, ...snmp].toSorted() : program.to.includes('-snmp/') ? snmp : []
    assert.equal(packagesOf(built), speaks)
    const said = execFileSync(execPath, [join(folder, program.to)], { input: 'action=metadata\n', encoding: 'utf8', cwd: folder, timeout: 20_000 })
    assert.match(said, /<resource-agent/)
    const size = told.get(agentName(program)) ?? 0
    assert.ok(Math.abs(built.bytes / 1024 - size) <= Math.max(3, size / 10), `docs/fence-agents.md says ${size} KiB of ${program.to}, which has ${built.bytes} bytes: node test/deploy/agent-sizes.ts`)
  }
}))

test('what cannot be built is a plain line, and the end is a failure', () => inFolder(async (folder) => {
  const built = await bundle({ from: 'agent/nobody.ts', to: 'nobody.mjs' }, folder)
  assert.equal(built, { missing: 'there is no agent/nobody.ts' })
}))

test('a program with a second program inside is refused: both would start', () => inFolder(async (folder) => {
  const built = await bundle({ from: 'deploy/manifests.ts', to: 'manifests.mjs' }, folder)
  assert.ok(!('missing' in built))
  const twice = await bundle({ from: 'test/deploy/build.test.ts', to: 'twice.mjs' }, folder)
  assert.match('missing' in twice ? twice.missing : '', /deploy\/build.ts is a program of its own/)
}))

test('manifests, kinds and examples are in dist, and each thing built has its size', () => inFolder(async (folder) => {
  const lines: string[] = []
  const end = await buildAll(join(folder, 'dist'), (line) => lines.push(line))
  assert.match(readFileSync(join(folder, 'dist', 'holdfast.yaml'), 'utf8'), /kind: DaemonSet/)
  assert.match(readFileSync(join(folder, 'dist', 'crds.yaml'), 'utf8'), /^kind: CustomResourceDefinition$/m)
  assert.ok(existsSync(join(folder, 'dist', 'examples', 'policy.yaml')))
  const missing = programs().filter((program) => !existsSync(program.from))
  assert.is(end, missing.length === 0 ? 0 : 1)
  for (const { to } of programs()) assert.ok(lines.some((line) => line.includes(to)), to)
  assert.equal(lines.filter((line) => line.startsWith('missing')).length, missing.length)
}))

/** As an older Node would start it: this one, with another name. */
function asNode(version: string, program: string, ...input: string[]): { readonly code: number | null; readonly err: string } {
  const older = `for (const [name, value] of [['version', 'v${version}'], ['versions', { ...process.versions, node: '${version}' }]]) Object.defineProperty(process, name, { value })`
  const { status, stderr } = spawnSync(execPath, ['--import', `data:text/javascript,${encodeURIComponent(older)}`, program, ...input], { encoding: 'utf8', timeout: 60_000 })
  return { code: status, err: stderr }
}

test('on a Node that is too old a program says so in one line, and nothing else of it runs', () => inFolder(async (folder) => {
  const built = await bundle({ from: 'cli/main.ts', to: 'kubectl-holdfast.mjs' }, folder)
  if ('missing' in built) return assert.unreachable(built.missing)
  const program = join(folder, 'kubectl-holdfast.mjs')
  for (const old of ['20.20.2', '23.11.1']) assert.equal(asNode(old, program, '--help'), { code: 1, err: `kubectl-holdfast needs Node 24 or later, this is v${old}\n` })
  for (const young of ['24.0.0', '100.0.0']) assert.equal(asNode(young, program, '--help'), { code: 0, err: '' })
}))

test.run()
