// Against a stand-in for virsh: what the program tells the tool, and what it makes of the tool's answers, in the words that
// virsh 9.0 uses. Whether a real hypervisor understands it is the device tier's question.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { testOver } from './agent-test.ts'
import { inPlace, type AgentPlace } from './place.ts'

const test = suite('libvirt')

const [one, two] = ['4c4c4544-0042-3510-8051-b7c04f4e3432', '4c4c4544-0042-3510-8051-b7c04f4e3433'] as const
const at = { uri: 'qemu+ssh://fencer@10.0.0.1/system?keyfile=/key', plug: one }

interface Hypervisor {
  readonly log: string
  set(uuid: string, state: string, saved?: 'yes' | 'no'): void
  state(uuid: string): string
}

/** Two machines, node-1 and node-2. `destroy` is the line of shell that carries that order out. */
function hypervisor({ folder }: AgentPlace, { destroy = 'echo "shut off (destroyed)" > "$state"' } = {}): Hypervisor {
  const log = join(folder, 'log')
  writeFileSync(join(folder, 'virsh'), [
    '#!/bin/sh', `folder=${folder}`, `echo "$*" >> ${log}`, '[ -e "$folder/stuck" ] && exec sleep 600',
    'fail() { echo "error: $1" >&2; exit 1; }', '[ -e "$folder/gone" ] && fail "Cannot recv data: ssh: connect to host 10.0.0.1 port 22: Connection refused: Connection reset by peer"',
    '[ "$1 $2" = "-q -c" ] || fail "unexpected words"', 'verb=$4', 'for last; do :; done',
    `case $last in node-1) last=${one} ;; node-2) last=${two} ;; esac`, 'state=$folder/$last.state',
    'if [ "$verb" = list ]; then echo " $(printf %s "' + one + '") node-1"; echo " ' + two + ' node-2"; exit 0; fi',
    '[ -e "$state" ] || { echo "error: failed to get domain \'$last\'" >&2; fail "Domain not found: no domain with matching uuid \'$last\'"; }',
    'case $verb in', 'domuuid) echo "$last" ;;', 'domstate) cat "$state" ;;',
    'dominfo) printf "Id:             1\\nName:           node\\nUUID:           %s\\nState:          x\\nManaged save:   %s\\n" "$last" "$(cat "$folder/$last.saved")" ;;',
    `destroy) ${destroy} ;;`, 'start) echo "running (booted)" > "$state" ;;', '*) fail "unknown command" ;;', 'esac', '',
  ].join('\n'))
  chmodSync(join(folder, 'virsh'), 0o755)
  const made: Hypervisor = {
    log,
    set(uuid, state, saved = 'no') {
      writeFileSync(join(folder, `${uuid}.state`), `${state}\n`)
      writeFileSync(join(folder, `${uuid}.saved`), saved)
    },
    state: (uuid) => readFileSync(join(folder, `${uuid}.state`), 'utf8').trim(),
  }
  for (const uuid of [one, two]) made.set(uuid, 'running (booted)')
  return made
}

function ordersIn(log: string): string[] {
  return readFileSync(log, 'utf8').split('\n').flatMap((line) => /\b(destroy|start) \S+/.exec(line)?.[0] ?? [])
}

for (const plug of [one, one.toUpperCase(), 'node-1'] as const) {
  test(`a machine by ${plug}: off, off, status, on, each read back, and told by its UUID`, () => inPlace(async (place) => {
    const virsh = hypervisor(place)
    const first = await place.ask('libvirt', 'status', { ...at, plug })
    assert.equal([first.state, first.machine], ['on', one])
    assert.is((await place.started.ask('libvirt', 'off', { ...at, plug })).state, 'off')
    assert.equal([virsh.state(one), virsh.state(two)], ['shut off (destroyed)', 'running (booted)'])
    assert.is((await place.ask('libvirt', 'off', { ...at, plug })).state, 'off')
    assert.is((await place.ask('libvirt', 'status', { ...at, plug })).state, 'off')
    assert.is((await place.ask('libvirt', 'on', { ...at, plug })).state, 'on')
    assert.equal(ordersIn(virsh.log), [`destroy ${one}`, `start ${one}`])
    assert.match(readFileSync(virsh.log, 'utf8'), /^-q -c qemu\+ssh:\/\/fencer@10\.0\.0\.1\/system\?keyfile=\/key&no_tty=1 dom/)
  }))
}

test('every clause of the contract is kept', () => inPlace(async (place) => {
  hypervisor(place)
  const { folder } = place
  const rows = await testOver({ run: ({ agent, stdin, within, environment }) => place.raw(agent, stdin, within, environment) }, 'libvirt', [
    `uri=${at.uri}`, `plug=${one}`, `other=${two}`, 'unknown=4c4c4544-0042-3510-8051-b7c04f4e3499',
    `truth=grep -q running ${folder}/$PLUG.state && echo on || echo off`, `gone=touch ${folder}/gone`, `back=rm ${folder}/gone`,
  ].join('\n'), () => undefined)
  assert.equal(rows.filter(({ verdict }) => verdict !== 'kept').map(({ clause, verdict }) => [clause, verdict]), [
    ['off with a wrong secret: exit 1, and still on', 'not run'], ['off at a device that never answers: exit 1, by itself, within 30 s', 'not run'], ['status where nobody listens: exit 1', 'not run'],
  ], 'the secret and the address are in the URI')
}))

for (const state of [
  'paused (user)', 'paused (I/O error)', 'pmsuspended (unknown)', 'crashed (panicked)', 'in shutdown (user)', 'shut off (saved)', 'shut off (migrated)', 'shut off (from snapshot)',
  'shut off (unknown)', 'shut off', 'no state', 'dying', '', 'Shut off (destroyed)', 'shut off (destroyed) or so',
] as const) {
  test(`${JSON.stringify(state)} is neither on nor off, and is never started`, () => inPlace(async (place) => {
    const virsh = hypervisor(place)
    virsh.set(one, state)
    assert.is((await place.ask('libvirt', 'status', at)).state, 'unknown')
    assert.is((await place.ask('libvirt', 'on', at)).state, 'failed')
    assert.equal(ordersIn(virsh.log), [])
  }))
}

test('what is paused, crashed or asleep is ordered off like what runs', () => inPlace(async (place) => {
  const virsh = hypervisor(place)
  for (const state of ['paused (user)', 'crashed (panicked)', 'pmsuspended (unknown)']) {
    virsh.set(one, state)
    assert.is((await place.ask('libvirt', 'off', at)).state, 'off', state)
  }
}))

test('a machine whose memory was saved is not off: its old boot would go on', () => inPlace(async (place) => {
  const virsh = hypervisor(place)
  virsh.set(one, 'shut off (destroyed)', 'yes')
  assert.is((await place.ask('libvirt', 'status', at)).state, 'unknown')
  assert.match((await place.ask('libvirt', 'on', at)).reason, /woken/)
  assert.equal(ordersIn(virsh.log), [])
}))

test('a reason that libvirt has forgotten is well where nothing is ever moved; what was moved is not', () => inPlace(async (place) => {
  const virsh = hypervisor(place)
  virsh.set(one, 'shut off (unknown)')
  assert.is((await place.ask('libvirt', 'off', { ...at, never_moved: '1' })).state, 'off')
  virsh.set(one, 'shut off (unknown)', 'yes')
  assert.is((await place.ask('libvirt', 'status', { ...at, never_moved: '1' })).state, 'unknown')
  virsh.set(one, 'shut off (migrated)')
  assert.is((await place.ask('libvirt', 'status', { ...at, never_moved: '1' })).state, 'unknown')
  assert.equal(ordersIn(virsh.log), [])
}))

for (const [name, destroy, reason] of [
  ['an order that is taken and not carried out', ':', /^timeout \(ordered off, and still: running/],
  ['qemu that cannot be killed', 'fail "Failed to terminate process 71 with SIGKILL: Device or resource busy"', /^device \(virsh destroy: error: Failed to terminate/],
  ['a hypervisor that takes no orders', 'fail "operation virDomainDestroy forbidden for read only access"', /^privilege/],
  ['a machine that vanishes: it may have been moved', 'rm "$state"', /^timeout \(ordered off, and still: virsh dom.*Domain not found/],
] as const) {
  test(`${name} is not off`, () => inPlace(async (place) => {
    hypervisor(place, { destroy })
    const word = await place.ask('libvirt', 'off', { ...at, power_timeout: '0.5' })
    assert.is(word.state, 'failed')
    assert.match(word.reason, reason)
  }))
}

test('no such machine, no hypervisor, a hypervisor that hangs: neither on nor off, with the reason', () => inPlace(async (place) => {
  const virsh = hypervisor(place)
  assert.match((await place.ask('libvirt', 'off', { ...at, plug: 'node-9' })).reason, /^notfound/)
  writeFileSync(join(place.folder, 'gone'), '')
  assert.match((await place.ask('libvirt', 'off', at)).reason, /^unreachable \(virsh domstate: error: Cannot recv data/)
  writeFileSync(join(place.folder, 'stuck'), '')
  const word = await place.started.ask('libvirt', 'off', { ...at, shell_timeout: '0.5' })
  assert.equal([word.state, word.late], ['failed', false])
  assert.match(word.reason, /^timeout/)
  assert.equal(ordersIn(virsh.log), [])
}))

for (const [name, over] of [
  ['a number, which virsh takes for a running machine\'s', { plug: '3' }], ['an option for a name', { plug: '--all' }], ['a list', { plug: `${one},${two}` }],
  ['a URI with a program', { uri: 'qemu+ssh://h/system?command=/bin/sh' }], ['a URI with a program on the other side', { uri: 'qemu+ssh://h/system?NETCAT=x' }],
  ['a transport that is a program', { uri: 'qemu+ext://h/system' }], ['plain TCP', { uri: 'qemu+tcp://h/system' }], ['a hypervisor that is none', { uri: 'test:///default' }],
  ['a hypervisor that anybody may be', { uri: 'qemu+tls://h/system?no_verify=1' }], ['a key that anybody may have', { uri: 'qemu+libssh://h/system?known_hosts_verify=ignore' }],
  ['a password in the URI', { uri: 'qemu+libssh2://fencer:hush-hush@h/system' }],
  ['an option for a host', { uri: 'qemu+ssh://-oProxyCommand=x/system' }], ['an option for a user', { uri: 'qemu+ssh://-oProxyCommand=x@h/system' }], ['blanks in the URI', { uri: 'qemu:///system -d' }],
] as const) {
  test(`${name} never reaches virsh`, () => inPlace(async (place) => {
    const { log } = hypervisor(place)
    const word = await place.ask('libvirt', 'off', { ...at, ...over })
    assert.equal([word.state, word.reason.split(' ')[0]], ['failed', 'config'])
    assert.not.ok(existsSync(log))
  }))
}

test('list names every machine', () => inPlace(async (place) => {
  hypervisor(place)
  assert.is((await place.raw('libvirt', `action=list\nuri=${at.uri}\n`)).stdout, `${one},node-1\n${two},node-2\n`)
}))

test.run()
