// Real processes: whether a group is empty cannot be pretended.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import type { ProgramRun } from '../../coordinator/host.ts'
import { machinePrograms, type MachinePrograms } from '../../coordinator/programs.ts'
import { machineClock } from '../../edge/clock.ts'

const test = suite('programs')
const ownAgents = fileURLToPath(new URL('../../fence-agents', import.meta.url))

interface Place {
  readonly folder: string
  readonly programs: MachinePrograms
  readonly write: (name: string, script: string) => void
  readonly file: (name: string) => string
}

async function inPlace(work: (place: Place) => Promise<void>, width?: number, surroundings?: Readonly<Record<string, string>>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'programs-test-'))
  mkdirSync(join(folder, 'agents'))
  const programs = machinePrograms({ folders: [join(folder, 'agents'), ownAgents], clock: machineClock, ...(width === undefined ? {} : { width }), ...(surroundings === undefined ? {} : { surroundings }) })
  const write = (name: string, script: string) => {
    writeFileSync(join(folder, 'agents', name), script)
    chmodSync(join(folder, 'agents', name), 0o755)
  }
  try {
    await work({ folder, programs, write, file: (name) => join(folder, name) })
  } finally {
    await programs.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function asked(agent: string, over: Partial<ProgramRun> = {}): ProgramRun {
  return { agent, stdin: '', environment: {}, within: 20_000, ...over }
}

/** Of a process that was told by its pid: neither alive nor waiting. */
function running(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return !['Z', 'X'].includes(stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3))
  } catch {
    return false // no such process
  }
}

async function until(fact: () => boolean): Promise<void> {
  for (let turn = 0; turn < 500 && !fact(); turn += 1) await machineClock.wait(20)
  assert.ok(fact(), 'what was waited for never came')
}

const pidIn = (file: string) => Number(readFileSync(file, 'utf8'))

test('a private file lies where its path is told, for nobody else, and is gone with the run, however that ends', () => inPlace(async ({ programs, write, file }) => {
  write('teller', '#!/bin/sh\nwhile read line; do case "$line" in key_file=*) path="${line#key_file=}";; esac; done\nstat -c "%a $(stat -c %a "$(dirname "$path")") %u" "$path"; cat "$path"; echo "$path" > ' + file('path') + '; [ "$HOLDFAST_STAY" = 1 ] && sleep 60')
  const files = { key_file: 'one\ntwo\n' }
  const end = await programs.run(asked('teller', { files, stdin: 'action=status\n' }))
  assert.is(end.stdout, `600 700 ${process.getuid?.()}\none\ntwo\n`)
  assert.not.ok(existsSync(readFileSync(file('path'), 'utf8').trim()))
  rmSync(file('path'))
  const stop = new AbortController()
  const staying = programs.run(asked('teller', { files, stdin: 'action=status\n', environment: { HOLDFAST_STAY: '1' }, signal: stop.signal }))
  await until(() => existsSync(file('path')) && readFileSync(file('path'), 'utf8').endsWith('\n'))
  assert.ok(existsSync(readFileSync(file('path'), 'utf8').trim()))
  stop.abort()
  assert.is((await staying).exitCode, undefined)
  assert.not.ok(existsSync(readFileSync(file('path'), 'utf8').trim()))
}))

test('where its file cannot be written nothing was started', () => inPlace(async ({ programs, write, file }) => {
  write('teller', `#!/bin/sh\necho ran > ${file('path')}`)
  const end = await programs.run(asked('teller', { files: { [`${'k'.repeat(300)}_file`]: 'one' }, stdin: 'action=off\n' }))
  assert.equal([end.refused, end.gone, existsSync(file('path'))], ['its files could not be written: ENAMETOOLONG', true, false])
}))

test('what Node made of a program in TypeScript is kept for its next run, out of its sight, and goes with us', () => inPlace(async ({ folder, programs }) => {
  mkdirSync(join(folder, 'agents', 'typed'))
  writeFileSync(join(folder, 'agents', 'typed', 'typed.ts'), [
    "import { getCompileCacheDir } from 'node:module'", "import { readdirSync } from 'node:fs'", 'const kept: string = getCompileCacheDir() ?? ""',
    'console.log(JSON.stringify({ kept, before: readdirSync(kept).length, here: readdirSync(".").length }))', '',
  ].join('\n'))
  const runs = [await programs.run(asked('typed')), await programs.run(asked('typed'))].map((end) => JSON.parse(end.stdout) as { kept: string; before: number; here: number })
  assert.equal(runs.map(({ before }) => before > 0), [false, true])
  assert.equal(runs.map(({ here }) => here), [0, 0])
  assert.is(runs[0]?.kept, runs[1]?.kept)
  await programs.close()
  assert.not(existsSync(runs[0]?.kept ?? ''))
}))

test('a program gets its input whole on stdin, no arguments, an empty folder, and nothing of our environment', () => inPlace(async ({ programs, write }) => {
  write('echo-all', '#!/bin/sh\necho "args $#"\ncat\nenv | sort\npwd\nls -A | wc -l\n')
  const stdin = `action=status\n${'x'.repeat(200_000).match(/.{1,100}/g)?.map((part, index) => `k${index}=${part}`).join('\n')}\n`
  process.env['HOLDFAST_TEST_LEAK'] = 'yes'
  const end = await programs.run(asked('echo-all', { stdin: 'action=status\npassword=hush\n', environment: { HOLDFAST_NODE: 'n1' } }))
  delete process.env['HOLDFAST_TEST_LEAK']
  assert.is(end.exitCode, 0)
  assert.match(end.stdout, /^args 0\naction=status\npassword=hush\n/)
  assert.match(end.stdout, /HOLDFAST_NODE=n1/)
  assert.match(end.stdout, /LANG=C\nLC_ALL=C|LC_ALL=C[\s\S]*LANG=C|LANG=C/)
  assert.not.match(end.stdout, /HOLDFAST_TEST_LEAK/)
  assert.match(end.stdout, /\n0\n$/, 'its folder is empty')
  write('count', '#!/bin/sh\nwc -c\n')
  assert.is(Number((await programs.run(asked('count', { stdin }))).stdout), stdin.length)
}))

/** All that a pod may have in its environment, each with a value that shows where it stood. */
const surroundings = {
  AWS_ROLE_ARN: 'arn:aws:iam::1:role/fence', AWS_SECRET_ACCESS_KEY: 'wJalrXUtnFEMI', AZURE_CLIENT_SECRET: 'azure-s3cret', AZURE_CLIENT_ID: 'a-client',
  GOOGLE_APPLICATION_CREDENTIALS: '/var/run/gce.json', GCE_METADATA_HOST: '127.0.0.1:1', OS_APPLICATION_CREDENTIAL_SECRET: 'nova-s3cret', OS_USERNAME: 'nova',
  HTTPS_PROXY: 'http://fence:pr0xy%21word@proxy.example:3128', no_proxy: '10.0.0.0/8', SSL_CERT_FILE: '/etc/ca.pem',
  KUBERNETES_SERVICE_HOST: '10.0.0.1', NODE_OPTIONS: '--require=/x', LD_PRELOAD: '/x.so', HOLDFAST_NODE: 'of the coordinator', AWS_PROXY_COMMAND: 'x',
}

async function givenTo(agent: string): Promise<readonly string[]> {
  let names: readonly string[] = []
  await inPlace(async ({ programs, write }) => {
    write(agent, '#!/bin/sh\nenv | cut -d= -f1\n')
    names = (await programs.run(asked(agent, { environment: { HOLDFAST_NODE: 'n1' } }))).stdout.trim().split('\n')
  }, undefined, surroundings)
  return names.filter((name) => name in surroundings && name !== 'HOLDFAST_NODE').toSorted()
}

const wayOut = ['HTTPS_PROXY', 'SSL_CERT_FILE', 'no_proxy']
for (const [agents, names] of [
  [['aws', 'fence_aws'], ['AWS_PROXY_COMMAND', 'AWS_ROLE_ARN', 'AWS_SECRET_ACCESS_KEY', ...wayOut]],
  [['azure', 'fence_azure_arm'], ['AZURE_CLIENT_ID', 'AZURE_CLIENT_SECRET', ...wayOut]],
  [['gce', 'fence_gce'], ['GCE_METADATA_HOST', 'GOOGLE_APPLICATION_CREDENTIALS', ...wayOut]],
  [['openstack', 'fence_openstack'], ['OS_APPLICATION_CREDENTIAL_SECRET', 'OS_USERNAME', ...wayOut]],
  [['vmware', 'fence_vmware_rest'], wayOut],
  [['redfish', 'ipmi', 'pdu-snmp', 'nut', 'fence_ipmilan', 'fence_apc_snmp', 'aws-like', 'fence_awsx'], []],
] as const) {
  test(`of our environment ${agents.join(', ')} ${agents.length > 1 ? 'get' : 'gets'} ${names.length === 0 ? 'nothing' : names.join(', ')}`, async () => {
    for (const agent of agents) assert.equal(await givenTo(agent), [...names].toSorted(), agent)
  })
}

test('what a run was told of itself is not overridden by our environment', () => inPlace(async ({ programs, write }) => {
  write('aws', '#!/bin/sh\necho "$HOLDFAST_NODE"\n')
  assert.is((await programs.run(asked('aws', { environment: { HOLDFAST_NODE: 'n1' } }))).stdout, 'n1\n')
}, undefined, surroundings))

test('the secrets of our environment leave in nothing that a program prints, and what names a file or a role does', () => inPlace(async ({ programs, write }) => {
  write('aws', '#!/bin/sh\nenv\nenv >&2\n')
  const end = await programs.run(asked('aws'))
  for (const text of [end.stdout, end.stderr]) {
    assert.not.match(text, /wJalrXUtnFEMI|pr0xy/)
    assert.match(text, /AWS_SECRET_ACCESS_KEY=\[redacted\]/)
    assert.match(text, /AWS_ROLE_ARN=arn:aws:iam::1:role\/fence/)
    assert.match(text, /SSL_CERT_FILE=\/etc\/ca\.pem/)
  }
  write('openstack', '#!/bin/sh\nprintf "%s" "user:$OS_APPLICATION_CREDENTIAL_SECRET" | base64\n')
  assert.match((await programs.run(asked('openstack'))).stdout, /\[redacted\]/)
}, undefined, surroundings))

test('a program that does not read its stdin is judged by its exit code', () => inPlace(async ({ programs, write }) => {
  write('deaf', '#!/bin/sh\nexec <&-\nexit 2\n')
  const end = await programs.run(asked('deaf', { stdin: 'x'.repeat(1_000_000) }))
  assert.equal([end.exitCode, end.late, end.gone], [2, false, true])
}))

for (const name of ['../agents/ok', '/bin/true', 'OK', '', 'a/b', '.ok', '-x', 'a b', 'x'.repeat(100)]) {
  test(`${JSON.stringify(name)} is not the name of a program`, () => inPlace(async ({ programs, write }) => {
    write('ok', '#!/bin/sh\nexit 0\n')
    const end = await programs.run(asked(name))
    assert.match(end.refused ?? '', /is not the name/)
    assert.is(end.exitCode, undefined)
  }))
}

test('what is not there, not executable, or not startable is not started', () => inPlace(async ({ programs, write, file }) => {
  assert.match((await programs.run(asked('nobody'))).refused ?? '', /there is no program nobody/)
  write('plain', 'exit 0\n')
  chmodSync(file('agents/plain'), 0o644)
  assert.match((await programs.run(asked('plain'))).refused ?? '', /there is no program plain/)
  write('orphan', '#!/no/such/interpreter\n')
  assert.match((await programs.run(asked('orphan'))).refused ?? '', /could not be started/)
}))

test('a folder that holds other things allows only the names that begin as written', () => inPlace(async ({ write, file }) => {
  write('fence_one', '#!/bin/sh\nexit 0\n')
  write('reboot', '#!/bin/sh\nexit 0\n')
  const narrow = machinePrograms({ folders: [file('agents/fence_*')], clock: machineClock })
  assert.is((await narrow.run(asked('fence_one'))).exitCode, 0)
  assert.match((await narrow.run(asked('reboot'))).refused ?? '', /there is no program/)
  await narrow.close()
}))

test('our own programs are started by name with the node that runs us', () => inPlace(async ({ programs, file }) => {
  writeFileSync(file('state'), JSON.stringify({ power: 'on' }))
  const end = await programs.run(asked('test-device', { stdin: `action=off\nstate_file=${file('state')}\n` }))
  assert.is(end.exitCode, 0, end.stderr)
  assert.is(JSON.parse(readFileSync(file('state'), 'utf8')).power, 'off')
}))

test('a program that ignores SIGTERM is ended by SIGKILL, and nothing of it is left', () => inPlace(async ({ programs, write, file }) => {
  write('stubborn', `#!/bin/sh\ntrap '' TERM\necho $$ > ${file('pid')}\nwhile :; do sleep 1; done\n`)
  const end = await programs.run(asked('stubborn', { within: 500 }))
  assert.equal([end.exitCode, end.late, end.gone], [undefined, true, true])
  assert.not.ok(running(pidIn(file('pid'))))
}))

test('a child that hangs for its parent is ended with the group', () => inPlace(async ({ programs, write, file }) => {
  write('parent', `#!/bin/sh\n(trap '' TERM; echo started > ${file('child')}; exec sleep 600) &\necho $! > ${file('pid')}\nwait\n`)
  const end = await programs.run(asked('parent', { within: 1_000 }))
  assert.equal([end.late, end.gone], [true, true])
  assert.not.ok(running(pidIn(file('pid'))))
}))

test('a grandchild that keeps the pipe open does not hold a run that is over', () => inPlace(async ({ programs, write, file }) => {
  write('leaver', `#!/bin/sh\nsleep 600 &\necho $! > ${file('pid')}\necho done\nexit 0\n`)
  const end = await programs.run(asked('leaver'))
  assert.equal([end.exitCode, end.stdout, end.late, end.gone], [0, 'done\n', false, true])
  assert.not.ok(running(pidIn(file('pid'))))
}))

test('a grandchild that left the group is found by its mark', () => inPlace(async ({ programs, write, file }) => {
  const escape = `require('child_process').spawn('sleep', ['600'], { detached: true, stdio: 'inherit' }).unref()`
  write('escaper', `#!/bin/sh\n"${execPath}" -e "const c = ${escape.replace('.unref()', '')}; c.unref(); require('fs').writeFileSync('${file('pid')}', String(c.pid))"\nexit 0\n`)
  const end = await programs.run(asked('escaper'))
  assert.equal([end.exitCode, end.gone], [0, true])
  assert.not.ok(running(pidIn(file('pid'))))
}))

test('a grandchild without our environment is found by its group', () => inPlace(async ({ programs, write, file }) => {
  write('stripper', `#!/bin/sh\nenv -i /bin/sleep 600 &\necho $! > ${file('pid')}\nexit 0\n`)
  assert.equal([(await programs.run(asked('stripper'))).exitCode, running(pidIn(file('pid')))], [0, false])
}))

test('a coordinator that ends takes its programs with it', () => inPlace(async ({ write, folder, file }) => {
  write('long', `#!/bin/sh\necho $$ > ${file('pid')}\nexec sleep 600\n`)
  const [programsUrl, clockUrl] = ['../../coordinator/programs.ts', '../../edge/clock.ts'].map((path) => new URL(path, import.meta.url).href)
  writeFileSync(file('coordinator.mjs'), [
    `import { machinePrograms } from ${JSON.stringify(programsUrl)}`, `import { machineClock } from ${JSON.stringify(clockUrl)}`, "import { existsSync } from 'node:fs'",
    `const programs = machinePrograms({ folders: [${JSON.stringify(join(folder, 'agents'))}], clock: machineClock })`,
    "programs.run({ agent: 'long', stdin: '', environment: {}, within: 600000 })",
    `while (!existsSync(${JSON.stringify(file('pid'))})) await machineClock.wait(20)`, 'process.exit(0)',
  ].join('\n'))
  const ended = spawnSync(execPath, [file('coordinator.mjs')], { encoding: 'utf8' })
  assert.is(ended.status, 0, ended.stderr)
  await until(() => !running(pidIn(file('pid'))))
}))

test('an abort ends the group at once, without waiting for the deadline or for SIGTERM to be heard', () => inPlace(async ({ programs, write, file }) => {
  write('stubborn', `#!/bin/sh\ntrap 'echo heard >> ${file('term')}' TERM\necho $$ > ${file('pid')}\nwhile :; do sleep 1; done\n`)
  const stop = new AbortController()
  const work = programs.run(asked('stubborn', { within: 600_000, signal: stop.signal }))
  await until(() => existsSync(file('pid')) && readFileSync(file('pid'), 'utf8').endsWith('\n'))
  stop.abort()
  const end = await work
  assert.equal([end.exitCode, end.late, end.gone], [undefined, false, true])
  assert.not.ok(running(pidIn(file('pid'))))
  assert.not.ok(existsSync(file('term')))
}))

test('an abort before the start starts nothing', () => inPlace(async ({ programs, write, file }) => {
  write('mark', `#!/bin/sh\necho x > ${file('ran')}\n`)
  const end = await programs.run(asked('mark', { signal: AbortSignal.abort() }))
  assert.match(end.refused ?? '', /ended before it began/)
  assert.not.ok(existsSync(file('ran')))
}))

test('a process that slept until the time of a program was over, just before it would have started, starts nothing', () => inPlace(async ({ write, file }) => {
  write('mark', `#!/bin/sh\necho x > ${file('ran')}\n`)
  let slept = 0
  const programs = machinePrograms({ folders: [file('agents')], clock: { ...machineClock, now: () => machineClock.now() + slept } })
  const run = programs.run(asked('mark', { within: 5_000 }))
  setImmediate(() => { slept = 3_600_000 })
  const end = await run
  await programs.close()
  assert.match(end.refused ?? '', /its time was over/)
  assert.not.ok(existsSync(file('ran')))
}))

test('of endless output the end is kept, by whole lines', () => inPlace(async ({ programs, write }) => {
  write('talker', `#!/bin/sh\ni=0\nwhile [ $i -lt 3000 ]; do echo "line $i ${'x'.repeat(90)}"; i=$((i+1)); done\necho last\n`)
  const end = await programs.run(asked('talker'))
  assert.ok(end.stdout.length <= 64 * 1024)
  assert.match(end.stdout, /^line \d+ x/)
  assert.match(end.stdout, /last\n$/)
}))

test('no more run at once than there are seats, and who waits too long is not started', () => inPlace(async ({ programs, write, file }) => {
  mkdirSync(file('now'))
  mkdirSync(file('seen'))
  write('sitter', `#!/bin/sh\ntouch ${file('now')}/$$\nls ${file('now')} | wc -l > ${file('seen')}/$$\nsleep 0.3\nrm ${file('now')}/$$\n`)
  const ends = await Promise.all(Array.from({ length: 6 }, () => programs.run(asked('sitter'))))
  assert.ok(ends.every((end) => end.exitCode === 0))
  const most = Math.max(...readdirSync(file('seen')).map((name) => pidIn(join(file('seen'), name))))
  assert.ok(most <= 2, `${most} at once`)
  write('long', '#!/bin/sh\nsleep 600\n')
  const stop = new AbortController()
  const long = [1, 2].map(() => programs.run(asked('long', { signal: stop.signal })))
  const late = await programs.run(asked('sitter', { within: 50 }))
  assert.match(late.refused ?? '', /2 programs were running/)
  stop.abort()
  await Promise.all(long)
}, 2))

test('who waited for a seat is told so much less time to act in: alone it would go on past what its record says', () => inPlace(async ({ programs, write, file }) => {
  write('sitter', `#!/bin/sh\necho $$ > ${file('pid')}\nwhile [ ! -e ${file('go')} ]; do sleep 0.02; done\n`)
  write('told', '#!/bin/sh\necho "$HOLDFAST_DEADLINE"\n')
  const sitter = programs.run(asked('sitter'))
  const askedAt = performance.now()
  const told = programs.run(asked('told', { within: 15_000, environment: { HOLDFAST_DEADLINE: '15000' } }))
  await until(() => existsSync(file('pid')))
  const waited = performance.now() - askedAt
  writeFileSync(file('go'), '')
  await sitter
  const left = Number((await told).stdout)
  assert.ok(left > 0 && left <= 15_000 - waited, `${left} of 15000 are left after ${waited}`)
}, 1))

test('closing ends what runs and refuses what comes', () => inPlace(async ({ programs, write, file }) => {
  write('long', `#!/bin/sh\necho $$ > ${file('pid')}\nsleep 600\n`)
  const work = programs.run(asked('long'))
  await until(() => existsSync(file('pid')) && readFileSync(file('pid'), 'utf8').endsWith('\n'))
  await programs.close()
  assert.is((await work).exitCode, undefined)
  assert.not.ok(running(pidIn(file('pid'))))
  assert.match((await programs.run(asked('long'))).refused ?? '', /ended before it began/)
}))

test.run()
