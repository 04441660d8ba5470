import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { answerCall, environment, neverPrint, parseInput, type ParameterDescription } from '../../fence-agents/contract.ts'
import { metadataOf } from '../../fence-agents/metadata.ts'
import { inPlace, type AgentPlace } from './place.ts'
import { startSnmpDevice, v2c } from './snmp-device.ts'
import { startUpsd, upsdLogin } from './upsd.ts'

const test = suite('fence-agents contract')

const parameters: readonly ParameterDescription[] = [
  { name: 'plug', says: 'p', type: 'string', obsoletes: 'port' }, { name: 'power_wait', says: 'w', type: 'second' }, { name: 'password', says: 's', type: 'string' },
  { name: 'resourceGroup', says: 'g', type: 'string' },
]

const read = (text: string) => {
  const { actions, values, warnings } = parseInput(text, parameters)
  return { actions, values: Object.fromEntries(values), warnings: warnings.length }
}

for (const [name, text, wanted] of [
  ['comments and blank lines are skipped', '# x\n\n  \naction=off\n', { actions: ['off'], values: {}, warnings: 0 }],
  ['the last of two wins, an old name counts as the new one', 'port=1\nplug=2\n', { actions: [], values: { plug: '2' }, warnings: 0 }],
  ['a name with capitals is known, however it is written', 'resourceGroup=a\n', { actions: [], values: { resourceGroup: 'a' }, warnings: 0 }],
  ['- and _ are equal, capitals too', 'Power-Wait=3\n', { actions: [], values: { power_wait: '3' }, warnings: 0 }],
  ['one pair of quotes and outer blanks are stripped', '  plug=" a "  \npassword=""x""\n', { actions: [], values: { plug: ' a ', password: '"x"' }, warnings: 0 }],
  ['what is not known is warned of', 'colour=red\nnodename=n1\n', { actions: [], values: {}, warnings: 1 }],
  ['a blank before the = makes another key of it', 'action = off\n', { actions: [], values: {}, warnings: 1 }],
  ['a value may hold =', 'password=a=b\n', { actions: [], values: { password: 'a=b' }, warnings: 0 }],
] as const) {
  test(`read as ClusterLabs programs read: ${name}`, () => assert.equal(read(text), wanted))
}

test('the metadata is XML that says what it should, whatever stands in a description', () => {
  const text = metadataOf({ name: 'x', says: 'a < b & "c". More', vendor: 'v', parameters }, ['on', 'off', 'status'])
  const open: string[] = []
  for (const [, end, name, alone] of text.replace(/<\?.*\?>/, '').matchAll(/<(\/?)([a-z-]+)(?:\s+[a-z]+="[^"<>]*")*\s*(\/?)>/g)) {
    if (end === '/') assert.is(open.pop(), name)
    else if (alone !== '/') open.push(name ?? '')
  }
  assert.equal(open, [])
  assert.is(text.replace(/<[^>]*>/g, '').match(/[<>]/), null)
  assert.match(text, /<parameter name="plug" unique="0" required="0" obsoletes="port">/)
  assert.match(text, /<parameter name="port" unique="0" required="0" deprecated="1">/)
  assert.match(text, /shortdesc="a &lt; b &amp; &quot;c&quot;"/)
})

interface Device {
  readonly agent: string
  readonly stdin: string
  /** What monitor ends with while the machine is off: a device of several outlets asks for their list. */
  readonly monitorOff: 0 | 2
  power(): string
}

/** The same demands on each of our programs that a device can be had for here, and on the shell script of the README. */
async function withDevices(work: (devices: readonly Device[], place: AgentPlace) => Promise<void>): Promise<void> {
  const [strip, port, upsd] = [await startStrip(), await startPort(), await startUpsd()]
  const at = { ip: '127.0.0.1', ...v2c }
  try {
    await inPlace((place) => work([
      ...inFiles(place),
      { agent: 'pdu-snmp', stdin: lines({ ...at, ipport: strip.port, plug: '1' }), monitorOff: 0, power: () => (strip.values.get(`${stripState}.1`)?.value === 2 ? 'off' : 'on') },
      { agent: 'switch-snmp', stdin: lines({ ...at, ipport: port.port, plug: '1' }), monitorOff: 0, power: () => (port.values.get(`${portState}.1`)?.value === 2 ? 'off' : 'on') },
      { agent: 'nut', stdin: lines({ ...at, ...upsdLogin, ipport: upsd.port, plug: '1' }), monitorOff: 0, power: () => upsd.variables.get('outlet.1.status') ?? '' },
    ], place))
  } finally {
    await Promise.all([strip.close(), port.close(), upsd.close()])
  }
}

const stripState = '1.3.6.1.4.1.318.1.1.12.3.5.1.1.4'
const portState = '1.3.6.1.2.1.2.2.1.8'

function startStrip() {
  return startSnmpDevice({ '1.3.6.1.2.1.1.2.0': { type: 'OID', value: '1.3.6.1.4.1.318.1.3.4.5' }, [`${stripState}.1`]: { type: 'Integer', value: 1 } }, (_, value, values) => {
    values.set(`${stripState}.1`, { type: 'Integer', value })
  })
}

function startPort() {
  const admin = '1.3.6.1.2.1.2.2.1.7.1'
  return startSnmpDevice({ '1.3.6.1.2.1.2.2.1.2.1': { type: 'OctetString', value: 'p1' }, [admin]: { type: 'Integer', value: 1 }, [`${portState}.1`]: { type: 'Integer', value: 1 } }, (_, value, values) => {
    values.set(admin, { type: 'Integer', value }).set(`${portState}.1`, { type: 'Integer', value })
  })
}

function lines(given: Readonly<Record<string, string | number>>): string {
  return Object.entries(given).map(([key, value]) => `${key}=${value}\n`).join('')
}

function inFiles(place: AgentPlace): readonly Device[] {
  const file = join(place.folder, 'device')
  writeFileSync(file, JSON.stringify({ power: 'on' }))
  const readme = readFileSync(fileURLToPath(new URL('../../fence-agents/README.md', import.meta.url)), 'utf8')
  writeFileSync(join(place.folder, 'gpio-relay'), /```sh\n([\s\S]*?)```/.exec(readme)?.[1] ?? '')
  chmodSync(join(place.folder, 'gpio-relay'), 0o755)
  const gpio = join(place.folder, 'gpio')
  writeFileSync(gpio, '1\n')
  return [
    { agent: 'test-device', stdin: `state_file=${file}\n`, monitorOff: 2, power: () => (JSON.parse(readFileSync(file, 'utf8')) as { power: string }).power },
    { agent: 'gpio-relay', stdin: `gpio=${gpio}\n`, monitorOff: 2, power: () => (readFileSync(gpio, 'utf8').trim() === '1' ? 'on' : 'off') },
  ]
}

test('metadata, validate-all, monitor, status, off, off, status, on, on, status: as the contract says', () => withDevices(async (devices, place) => {
  for (const { agent, stdin, power, monitorOff } of devices) {
    const code = async (action: string) => (await place.raw(agent, `action=${action}\n${stdin}nodename=n1\n`)).exitCode
    assert.match((await place.raw(agent, 'action=metadata\n')).stdout, new RegExp(`^<\\?xml version="1.0" \\?>\n<resource-agent name="${agent}"`))
    const codes: (number | undefined)[] = []
    for (const action of ['metadata', 'validate-all', 'monitor', 'status', 'off', 'off', 'status', 'monitor']) codes.push(await code(action))
    assert.equal(codes, [0, 0, 0, 0, 0, 0, 2, monitorOff], agent)
    assert.is(power(), 'off')
    assert.equal([await code('on'), await code('on'), await code('status')], [0, 0, 0])
    assert.is(power(), 'on')
  }
}))

for (const [name, input] of [
  ['nothing at all', ''], ['no action', 'plug=1\n'], ['an action with blanks', 'action = off\n'], ['two actions', 'action=status\naction=off\n'],
  ['an action twice', 'action=off\naction=off\n'], ['a reboot', 'action=reboot\n'], ['an unknown action', 'action=OFF!\n'], ['an empty action', 'action=\n'], ['garbage', '\u0001\u0002=%%%\n=\n'],
] as const) {
  test(`${name} is not acted upon`, () => withDevices(async (devices, place) => {
    for (const { agent, stdin, power } of devices) {
      assert.is((await place.raw(agent, `${input}${stdin}`)).exitCode, 1, agent)
      assert.is(power(), 'on')
    }
  }))
}

test('a device that is not there fails, and is not made', () => inPlace(async (place) => {
  const missing = join(place.folder, 'missing')
  for (const [agent, stdin] of [['test-device', `state_file=${missing}\n`], ['gpio-relay', `gpio=${missing}\n`], ['test-device', ''], ['gpio-relay', '']] as const) {
    inFiles(place)
    for (const action of ['status', 'off', 'on']) assert.is((await place.raw(agent, `action=${action}\n${stdin}`)).exitCode, 1)
    assert.not.ok(existsSync(missing))
  }
}))

test('a list of plugs is refused', () => withDevices(async (devices, place) => {
  for (const { agent, stdin, power } of devices.filter((device) => device.agent !== 'gpio-relay')) {
    const end = await place.raw(agent, `action=off\n${stdin}plug=1,2\n`)
    assert.equal([end.exitCode, power()], [1, 'on'], agent)
  }
}))

test('why it fails is said in a word, a sentence, and what to do about it', () => withDevices(async (devices, place) => {
  for (const { agent, stdin } of devices.filter((device) => device.agent !== 'gpio-relay')) {
    const end = await place.raw(agent, `action=off\n${stdin}plug=1,2\n`)
    assert.match(end.stderr, /^ERROR: config: plug= names more than one outlet\nCorrect the ConfigMap/m, agent)
    assert.match(end.stdout, /^holdfast \{.*"reason":"config","advice":"Correct the ConfigMap/m, agent)
  }
}))

test('a program ends itself before its deadline, and says why', () => inPlace(async (place) => {
  const file = join(place.folder, 'slow')
  writeFileSync(file, JSON.stringify({ power: 'on', mode: 'slow', delayMs: 60_000 }))
  const word = await place.started.ask('test-device', 'off', { state_file: file }, 4_000)
  assert.equal([word.state, word.late], ['failed', false])
  assert.match(word.reason, /^timeout/)
}))

for (const agent of ['redfish', 'ipmi', 'aws', 'gce', 'azure', 'openstack', 'vmware', 'pdu-snmp', 'nut', 'switch-snmp', 'test-device']) {
  test(`${agent} started alone says all of its metadata, as in this process`, () => inPlace(async (place) => {
    const [started, here] = [await place.started.raw(agent, 'action=metadata\n'), await place.raw(agent, 'action=metadata\n')]
    assert.is(started.exitCode, 0, started.stderr)
    assert.match(started.stdout, /^<\?xml [^]*<\/resource-agent>\n$/)
    assert.equal([started.stdout, started.stderr], [here.stdout, here.stderr])
  }))
}

test('started for each question: status, off, status, on end 0, 0, 2, 0, and a question without an action 1', () => withDevices(async (devices, place) => {
  for (const { agent, stdin, power } of devices.filter((device) => device.agent === 'test-device' || device.agent === 'nut')) {
    const ended: (number | undefined)[] = []
    for (const action of ['action=status\n', 'action=off\n', 'action=status\n', 'action=on\n', '']) ended.push((await place.started.raw(agent, `${action}${stdin}`)).exitCode)
    assert.equal([ended, power()], [[0, 0, 2, 0, 1], 'on'], agent)
  }
}))

test('arguments are refused, and nothing is done', () => inPlace(async (place) => {
  const [device] = inFiles(place)
  const program = fileURLToPath(new URL('../../fence-agents/test-device/test-device.ts', import.meta.url))
  const ended = spawnSync(execPath, [program, '--action=off'], { input: `action=off\n${device?.stdin}`, encoding: 'utf8' })
  assert.equal([ended.status, device?.power()], [1, 'on'])
  assert.match(ended.stderr, /^ERROR: config: takes no arguments/)
}))

/** It names a secret of its own, and says that of both. */
async function saidBy(name: string, HOLDFAST_DEADLINE: string): Promise<string> {
  const look = async () => {
    neverPrint(`${name}-secret`)
    await new Promise((resolve) => { setTimeout(resolve, 50) })
    return { state: 'on', evidence: `one-secret two-secret ${environment()['NAME']}` } as const
  }
  const agent = { name, says: '', vendor: '', parameters: [], status: look, off: look, on: look }
  return (await answerCall(agent, { words: [], stdin: [Buffer.from('action=status\n')], environment: { NAME: name, HOLDFAST_DEADLINE }, beganAt: performance.now() })).stdout
}

test('two calls in one process share nothing: neither a secret nor an environment, nor the end of their time', async () => {
  const [one, two, late] = await Promise.all([saidBy('one', '5000'), saidBy('two', '5000'), saidBy('late', '301')])
  assert.match(one, /"\*\*\* two-secret one"/)
  assert.match(two, /"one-secret \*\*\* two"/)
  assert.match(late, /"no end within 1 ms"/)
})

test('a slow start counts: it leaves less time for the device, not for the last words', () => inPlace(async (place) => {
  const contract = fileURLToPath(new URL('../../fence-agents/contract.ts', import.meta.url))
  mkdirSync(join(place.folder, 'sluggish'))
  writeFileSync(join(place.folder, 'sluggish', 'sluggish.ts'), [
    `import { runAgent } from ${JSON.stringify(contract)}`,
    'const never = () => new Promise<never>(() => setInterval(() => undefined, 1_000))',
    'while (performance.now() < 1_500);',
    "await runAgent({ name: 'sluggish', says: '', vendor: '', parameters: [], status: never, off: never, on: never })", '',
  ].join('\n'))
  const word = await place.ask('sluggish', 'status', {}, 3_000)
  assert.equal([word.state, word.late], ['unknown', false])
  assert.match(word.reason, /^timeout/)
}))

test.run()
