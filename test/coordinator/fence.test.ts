import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fenceRunner, readingOf, type FenceRunner, type MethodRun } from '../../coordinator/fence.ts'
import type { ConfiguredMethod } from '../../coordinator/fence-config.ts'
import type { SecretLookup } from '../../coordinator/fence-config-secret.ts'
import type { ProgramEnd, ProgramRun, Programs } from '../../coordinator/host.ts'
import { machinePrograms } from '../../coordinator/programs.ts'
import { machineClock } from '../../edge/clock.ts'
import type { Log } from '../../edge/log.ts'

const test = suite('fence')

function method(over: Partial<ConfiguredMethod> = {}): ConfiguredMethod {
  return {
    name: 'bmc', agent: 'test-device', device: '10.0.0.1', digest: 'd', orderWithin: 20_000, statusWithin: 20_000, late: 60_000,
    parameters: { plug: '1' }, on: { plug: '1' }, ...over,
  }
}

function asked(over: Partial<MethodRun> = {}): MethodRun {
  return { node: 'n1', method: method(), action: 'status', purpose: 'incident', ...over }
}

/** Programs that end when the test says so. */
function held(): { programs: Programs; runs: { run: ProgramRun; end: (exitCode: number, over?: Partial<ProgramEnd>) => void }[] } {
  const runs: { run: ProgramRun; end: (exitCode: number, over?: Partial<ProgramEnd>) => void }[] = []
  const programs: Programs = {
    run: (run) => new Promise((resolve) => {
      runs.push({ run, end: (exitCode, over) => resolve({ exitCode, stdout: '', stderr: '', late: false, gone: true, ...over }) })
      run.signal?.addEventListener('abort', () => resolve({ stdout: '', stderr: '', late: false, gone: true }))
    }),
  }
  return { programs, runs }
}

function logged(): { log: Log; lines: string[] } {
  const lines: string[] = []
  const note = (facts: object, message: string) => { lines.push(`${message} ${JSON.stringify(facts)}`) }
  return { log: { debug: note, info: note, warn: note, error: note }, lines }
}

function runner(programs: Programs, secrets: SecretLookup = () => undefined, log: Log = logged().log): FenceRunner {
  return fenceRunner({ programs, clock: machineClock, secrets, log })
}

const settled = async () => { for (let turn = 0; turn < 20; turn += 1) await Promise.resolve() }

test('what a program is told: the action first, its parameters, the node; and who asks in its environment', async () => {
  const { programs, runs } = held()
  const work = runner(programs).runMethod(asked({ action: 'off', incident: 'nf-1', attempt: 'a1', boot: 'b/1' }))
  await settled()
  const [first] = runs
  assert.is(first?.run.stdin, 'action=off\nplug=1\nnodename=n1\n')
  const { environment, within } = first?.run ?? {}
  assert.equal(environment, { HOLDFAST_NODE: 'n1', HOLDFAST_BOOT_ID: 'b/1', HOLDFAST_INCIDENT: 'nf-1', HOLDFAST_ATTEMPT: 'a1' })
  assert.ok(within !== undefined && within > 0 && within <= 20_000)
  first?.end(0)
  const end = await work
  assert.equal([end.state, end.ran, end.gone, end.gaveWay], ['off', true, true, false])
})

test('on is told with the parameters written for it', async () => {
  const { programs, runs } = held()
  const work = runner(programs).runMethod(asked({ action: 'on', method: method({ on: { plug: '1', power_wait: '4' } }) }))
  await settled()
  assert.match(runs[0]?.run.stdin ?? '', /^action=on\nplug=1\npower_wait=4\n/)
  runs[0]?.end(0)
  assert.is((await work).state, 'on')
})

test('a ClusterLabs program is told to give up before we do', async () => {
  const { programs, runs } = held()
  const work = runner(programs).runMethod(asked({ action: 'off', method: method({ agent: 'fence_ipmilan' }) }))
  await settled()
  assert.match(runs[0]?.run.stdin ?? '', /^action=off\npower_timeout=15\nplug=1\n/)
  runs[0]?.end(0)
  await work
})

test('where the operator says when it is to give up, in whichever writing, that is all that it is told', async () => {
  for (const key of ['power_timeout', 'power-timeout', 'Power_Timeout']) {
    const { programs, runs } = held()
    const work = runner(programs).runMethod(asked({ action: 'off', method: method({ agent: 'fence_ipmilan', parameters: { plug: '1', [key]: '9' } }) }))
    await settled()
    assert.is(runs[0]?.run.stdin, `action=off\nplug=1\n${key}=9\nnodename=n1\n`)
    runs[0]?.end(0)
    assert.is((await work).state, 'off')
  }
})

test('an on takes as long as is written for it', async () => {
  const { programs, runs } = held()
  const fence = runner(programs)
  for (const action of ['off', 'on'] as const) {
    const work = fence.runMethod(asked({ action, method: method({ agent: 'fence_ipmilan', onTimes: { orderWithin: 90_000, late: 60_000 } }) }))
    await settled()
    runs.at(-1)?.end(0)
    await work
  }
  assert.equal(runs.map(({ run: { stdin, within } }) => [/power_timeout=(\d+)/.exec(stdin)?.[1], within > 20_000]), [['15', false], ['85', true]])
})

test('a secret is looked up just before the run, goes on stdin alone, and leaves in no word and no log line', async () => {
  const { programs, runs } = held()
  const { log, lines } = logged()
  const secret = 'tops3cret'
  const lookup: SecretLookup = ({ secret: name, key }) => (name === 'bmc' && key === 'password' ? secret : undefined)
  const parameters = { plug: '1', password: { secret: 'bmc', key: 'password' }, passwd_plain: 'writtenhere', apikey: 'k3yk3yk3y', url: 'https://admin:in%2Furl@bmc.example/' }
  const work = runner(programs, lookup, log).runMethod(asked({ action: 'off', method: method({ parameters }) }))
  await settled()
  const [first] = runs
  assert.match(first?.run.stdin ?? '', /password=tops3cret\n/)
  assert.not.match(JSON.stringify(first?.run.environment), /tops3cret/)
  first?.end(1, { stdout: `${'x'.repeat(295)}${secret}`, stderr: `login with ${secret} and writtenhere, in%2Furl or in/url, k3yk3yk3y\n` })
  const end = await work
  assert.is(end.state, 'failed')
  assert.match(end.reason, /login with \[redacted\] and \[redacted\], \[redacted\] or \[redacted\]/)
  assert.not.match(JSON.stringify(end) + lines.join(''), /tops3|writtenhere|k3y/)
})

test('an address that merely begins as one out of a Secret is told whole, and what is one is not told', async () => {
  const machine = '42039f2f-ce98-3f27-455c-463d34b8af41'
  const parameters = { plug: '1', ip: { secret: 'vc', key: 'ip' }, password: { secret: 'vc', key: 'password' } }
  const told = async (values: Readonly<Record<string, string>>, addresses: readonly string[]) => {
    const { programs, runs } = held()
    const work = runner(programs, ({ key }) => values[key]).runMethod(asked({ method: method({ parameters }) }))
    await settled()
    runs[0]?.end(0, { stdout: `holdfast ${JSON.stringify({ state: 'on', machine, addresses, evidence: `asked ${values['ip']}` })}\n` })
    const end = await work
    return [end.state, end.machine, end.addresses, end.evidence]
  }
  const vc = { ip: '10.0.0.1', password: 'hush-hush' }
  assert.equal(await told(vc, ['10.0.0.12', 'fe80::1']), ['on', machine, ['10.0.0.12', 'fe80::1'], 'exit 0: asked [redacted]'])
  assert.equal(await told(vc, ['10.0.0.12', '10.0.0.1']), ['on', machine, undefined, 'exit 0: asked [redacted]'])
  assert.equal(await told({ ...vc, password: machine.toUpperCase() }, []), ['on', undefined, undefined, 'exit 0: asked [redacted]'])
})

test('a Secret that is not there starts nothing, and is named', async () => {
  const { programs, runs } = held()
  const end = await runner(programs).runMethod(asked({ action: 'off', method: method({ parameters: { password: { secret: 'bmc', key: 'pw' } } }) }))
  assert.equal([end.state, end.ran, end.gone], ['unknown', false, true])
  assert.match(end.reason, /^config: not started: .*Secret bmc key pw is not there.*\. Correct the ConfigMap of the method or of its template, or the Secret that it names\.$/)
  assert.is(runs.length, 0)
})

test('a secret with a line break starts nothing, and is not repeated', async () => {
  const { programs, runs } = held()
  const end = await runner(programs, () => 'hush\naction=on').runMethod(asked({ method: method({ parameters: { password: { secret: 'a', key: 'b' } } }) }))
  assert.is(runs.length, 0)
  assert.match(end.reason, /line break/)
  assert.not.match(end.reason, /hush/)
})

test('a device that bears two at once has two, the third waits, and an incident before an audit', async () => {
  const { programs, runs } = held()
  const fence = runner(programs)
  const run = (node: string, purpose: 'audit' | 'incident' = 'incident') => fence.runMethod(asked({ node, purpose, action: 'status', method: method({ atOnce: 2 }) }))
  const nodes = () => runs.map(({ run: { environment } }) => environment['HOLDFAST_NODE'])
  const works = [run('n0'), run('n1'), run('n2', 'audit'), run('n3')]
  await settled()
  assert.equal(nodes(), ['n0', 'n1'])
  runs[1]?.end(0)
  await works[1]
  await settled()
  assert.equal(nodes(), ['n0', 'n1', 'n3'])
  runs[0]?.end(0)
  await works[0]
  await settled()
  assert.equal(nodes(), ['n0', 'n1', 'n3', 'n2'])
  const [more, evenMore] = [run('n4'), run('n5')]
  assert.ok((await works[2])?.gaveWay, 'the audit gives way')
  await settled()
  assert.equal(nodes().slice(4), ['n4'])
  for (const { end } of runs) end(0)
  await works[3]
  await settled()
  for (const { end } of runs) end(0)
  await Promise.all([more, evenMore])
  assert.is((await Promise.all([works[0], works[1], works[3]])).every((end) => end?.state === 'on'), true)
})

test('a Secret that a key file is to hold goes to the program as a file, with its lines, and leaves in no word', async () => {
  const { programs, runs } = held()
  const { log, lines } = logged()
  const key = '-----BEGIN KEY-----\nhushhushhush\n-----END KEY-----\n'
  const parameters = { plug: '1', identity_file: { secret: 'fc', key: 'id' }, username: { secret: 'fc', key: 'user' } }
  const work = runner(programs, (of) => (of.key === 'id' ? key : 'admin'), log).runMethod(asked({ action: 'off', method: method({ parameters }) }))
  await settled()
  assert.equal([runs[0]?.run.stdin, runs[0]?.run.files], ['action=off\nplug=1\nusername=admin\nnodename=n1\n', { identity_file: key }])
  runs[0]?.end(1, { stderr: 'bad key hushhushhush\n' })
  assert.not.match(JSON.stringify(await work) + lines.join(''), /hushhush/)
})

test('whichever parameter names a file of authorities or of a key is told the path of one', async () => {
  for (const name of ['ca', 'cacert', 'tlscert', 'tlskey', 'tlscacert', 'kubeconfig', 'serviceaccount', 'Token-File']) {
    const { programs, runs } = held()
    const work = runner(programs, () => 'one\ntwo\n').runMethod(asked({ method: method({ parameters: { plug: '1', [name]: { secret: 's', key: 'k' } } }) }))
    await settled()
    assert.equal(runs[0]?.run.files, { [name]: 'one\ntwo\n' }, name)
    runs[0]?.end(0)
    await work
  }
})

test('one run at a time for a device, any number for different ones', async () => {
  const { programs, runs } = held()
  const fence = runner(programs)
  const works = ['10.0.0.1', '10.0.0.1', '10.0.0.2'].map((device, index) => fence.runMethod(asked({ node: `n${index}`, method: method({ device }) })))
  await settled()
  assert.equal(runs.map(({ run }) => run.environment['HOLDFAST_NODE']), ['n0', 'n2'])
  runs[0]?.end(0)
  await works[0]
  await settled()
  assert.is(runs.at(-1)?.run.environment['HOLDFAST_NODE'], 'n1')
  for (const { end } of runs) end(0)
  await Promise.all(works)
})

test('an audit that is under way gives way to an incident, and says that it said nothing', async () => {
  const { programs, runs } = held()
  const fence = runner(programs)
  const audit = fence.runMethod(asked({ purpose: 'audit' }))
  await settled()
  const incident = fence.runMethod(asked({ action: 'off' }))
  const given = await audit
  assert.equal([given.state, given.gaveWay, given.reason], ['unknown', true, 'ended: gave way to an incident'])
  await settled()
  assert.match(runs[1]?.run.stdin ?? '', /^action=off/)
  runs[1]?.end(0)
  assert.is((await incident).state, 'off')
})

test('an order is never ended for another', async () => {
  const { programs, runs } = held()
  const fence = runner(programs)
  const order = fence.runMethod(asked({ action: 'off' }))
  await settled()
  const second = fence.runMethod(asked({ node: 'n2', action: 'off' }))
  await settled()
  assert.is(runs.length, 1)
  runs[0]?.end(0)
  assert.is((await order).state, 'off')
  await settled()
  runs[1]?.end(0)
  assert.is((await second).state, 'off')
})

test('incidents that wait go before audits that waited longer', async () => {
  const { programs, runs } = held()
  const fence = runner(programs)
  const works = [
    fence.runMethod(asked({ node: 'first' })), fence.runMethod(asked({ node: 'audit', purpose: 'audit' })),
    fence.runMethod(asked({ node: 'second' })), fence.runMethod(asked({ node: 'third' })),
  ]
  for (let turn = 0; turn < 4; turn += 1) {
    await settled()
    await settled()
    runs[turn]?.end(0)
  }
  await Promise.all(works)
  assert.equal(runs.map(({ run }) => run.environment['HOLDFAST_NODE']), ['first', 'second', 'third', 'audit'])
})

test('the wait for the device counts: an order whose time is over is never started', async () => {
  const { programs, runs } = held()
  const fence = runner(programs)
  const first = fence.runMethod(asked())
  const late = await fence.runMethod(asked({ action: 'off', method: method({ orderWithin: 30 }) }))
  assert.equal([late.state, late.ran], ['unknown', false])
  assert.match(late.reason, /^busy: not started: .* was busy all the while\. See what else asks this device/)
  assert.is(late.gaveWay, false)
  const audit = await fence.runMethod(asked({ purpose: 'audit', method: method({ statusWithin: 30 }) }))
  assert.ok(audit.gaveWay, 'an audit whose turn never came says nothing of the path')
  runs[0]?.end(0)
  await first
  assert.is(runs.length, 1)
})

test('an abort ends the run, frees the device and starts nothing that waited', async () => {
  const { programs, runs } = held()
  const fence = runner(programs)
  const stop = new AbortController()
  const works = [1, 2].map(() => fence.runMethod(asked({ action: 'off', signal: stop.signal })))
  await settled()
  stop.abort('the lease was lost')
  const [ran, waited] = await Promise.all(works)
  assert.equal([ran?.state, ran?.ran, ran?.reason], ['unknown', true, 'ended: the lease was lost'])
  assert.equal([waited?.state, waited?.ran], ['unknown', false])
  const next = fence.runMethod(asked())
  await settled()
  assert.is(runs.length, 2)
  runs[1]?.end(2)
  assert.is((await next).state, 'off')
})

test('a group that cannot be ended is told, whatever the program said', async () => {
  const { programs, runs } = held()
  const { log, lines } = logged()
  const work = runner(programs, undefined, log).runMethod(asked({ action: 'off' }))
  await settled()
  runs[0]?.end(0, { gone: false })
  assert.equal([(await work).state, (await work).gone], ['unknown', false])
  assert.match(lines.join(), /cannot be ended/)
})

test('a reading takes the digest of its method, and a failure is unknown', () => {
  const end = { state: 'failed', reason: 'why', evidence: 'exit 1', startedAt: 1, endedAt: 2, ran: true, gone: true, gaveWay: false } as const
  assert.equal(readingOf({ method: method() }, end), { method: 'bmc', state: 'unknown', startedAt: 1, endedAt: 2, evidence: 'why; exit 1', digest: 'd' })
  const of = { machine: 'aaaaaaaa-0000-0000-0000-000000000001', addresses: ['10.0.0.5'] }
  assert.equal(readingOf({ method: method() }, { ...end, ...of }), { ...readingOf({ method: method() }, end), ...of })
})

test('a real program, for real: status, off, status, on; a hang; a liar', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'fence-test-'))
  const programs = machinePrograms({ folders: [fileURLToPath(new URL('../../fence-agents', import.meta.url))], clock: machineClock })
  const file = join(folder, 'n1')
  const set = (state: object) => writeFileSync(file, JSON.stringify(state))
  const power = () => (JSON.parse(readFileSync(file, 'utf8')) as { power: string }).power
  const fence = runner(programs)
  const device = method({ parameters: { state_file: file, plug: 'n1' }, on: { state_file: file, plug: 'n1' } })
  const run = async (action: MethodRun['action'], over: Partial<ConfiguredMethod> = {}) => fence.runMethod(asked({ action, method: { ...device, ...over } }))
  try {
    set({ power: 'on', machine: 'aaaaaaaa-0000-0000-0000-000000000001' })
    const first = await run('status')
    assert.equal([first.state, first.machine], ['on', 'aaaaaaaa-0000-0000-0000-000000000001'])
    assert.equal([(await run('off')).state, power()], ['off', 'off'])
    assert.is((await run('status')).state, 'off')
    assert.equal([(await run('on')).state, power()], ['on', 'on'])
    set({ power: 'on', mode: 'fail' })
    const failed = await run('off')
    assert.equal([failed.state, failed.reason], ['failed', 'device (the device refuses). Look at the device itself: it answers, and not as its kind should.'])
    set({ power: 'on', mode: 'say-off-once' })
    assert.equal([(await run('off')).state, (await run('status')).state, (await run('status')).state, power()], ['off', 'off', 'on', 'on'])
    set({ power: 'on', mode: 'lie' })
    assert.equal([(await run('off')).state, (await run('status')).state, power()], ['off', 'off', 'on'])
    set({ power: 'on', mode: 'hang-in-child' })
    const hung = await run('off', { orderWithin: 1_000 })
    assert.equal([hung.state, hung.ran, hung.gone], ['unknown', true, true])
    assert.match(hung.reason, /^timeout: ended at its deadline\. /)
    assert.ok(existsSync(`${file}.log`))
  } finally {
    await programs.close()
    rmSync(folder, { recursive: true, force: true })
  }
})

const offering = '<action name="list-status" />'

test('all outlets of a device are asked for without naming one, if the program says that it can; that is asked once', async () => {
  const { programs, runs } = held()
  const fence = runner(programs, () => 'tops3cret')
  const strip = method({ parameters: { ip: '10.0.0.1', plug: '1', password: { secret: 'pdu', key: 'password' } } })
  const first = fence.listOutlets({ node: 'n1', method: strip })
  await settled()
  assert.is(runs[0]?.run.stdin, 'action=metadata\n')
  runs[0]?.end(0, { stdout: offering })
  while (runs.length < 2) await settled()
  assert.is(runs[1]?.run.stdin, 'action=list-status\nip=10.0.0.1\npassword=tops3cret\nnodename=n1\n')
  runs[1]?.end(0, { stdout: '1,a,ON\n2,b,OFF\n' })
  assert.equal([...(await first)?.states ?? []], [['a', 'on'], ['b', 'off'], ['1', 'on'], ['2', 'off']])
  const second = fence.listOutlets({ node: 'n2', method: strip })
  while (runs.length < 3) await settled()
  assert.match(runs[2]?.run.stdin ?? '', /^action=list-status/)
  runs[2]?.end(1, { stdout: '1,a,ON\n' })
  assert.equal([...(await second)?.states ?? []], [])
})

test('a program that did not come to say what it offers is asked again', async () => {
  const { programs, runs } = held()
  const fence = runner(programs)
  for (const [at, end] of [[0, { late: true, exitCode: undefined }], [1, { stdout: offering }]] as const) {
    const work = fence.listOutlets({ node: 'n1', method: method() })
    await settled()
    assert.is(runs[at]?.run.stdin, 'action=metadata\n')
    runs[at]?.end(0, end as Partial<ProgramEnd>) // one that was ended at its deadline has no exit code
    if (at === 1) while (runs.length < 3) await settled()
    runs[2]?.end(0, { stdout: '1,a,ON\n' })
    assert.is((await work)?.states.get('1'), at === 0 ? undefined : 'on')
  }
})

test('a program that tells of one outlet at a time is asked for no list', async () => {
  const { programs, runs } = held()
  const work = runner(programs).listOutlets({ node: 'n1', method: method() })
  await settled()
  runs[0]?.end(0, { stdout: '<action name="list" />' })
  assert.is(await work, undefined)
  assert.is(runs.length, 1)
})

test('a list gives way to an incident at its device, and then tells nothing', async () => {
  const { programs, runs } = held()
  const fence = runner(programs)
  const list = fence.listOutlets({ node: 'n1', method: method() })
  await settled()
  runs[0]?.end(0, { stdout: offering })
  while (runs.length < 2) await settled()
  const order = fence.runMethod(asked({ action: 'off' }))
  assert.equal([...(await list)?.states ?? []], [])
  while (runs.length < 3) await settled()
  runs[2]?.end(0)
  assert.is((await order).state, 'off')
})

test.run()
