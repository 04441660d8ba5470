// The script of deploy/examples that closes shared disks to a node, with a stand-in for sg_persist whose disks are files. Whether a
// real disk understands it is asked in test/devices/reservation.test.ts.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lastWordOf } from '../../fence-agents/last-word.ts'

const test = suite('reservation')

const script = 'deploy/examples/reservation.sh'
/** Each node's own. */
const keys = { one: '0x1a', two: '0x1a2', three: '0x3' } as const
type Node = keyof typeof keys

interface Ran { readonly code: number | null; readonly state: string | undefined; readonly evidence: string; readonly reason: string | undefined }

interface Place {
  readonly folder: string
  register(node: Node): Ran
  /** As a pod on `node`, about the node `plug`. */
  ask(node: Node, action: string, plug: Node, over?: Readonly<Record<string, string>>): Ran
  registered(disk: 'a' | 'b'): string[]
  reserved(disk: 'a' | 'b'): string
}

/** A disk knows who asks by INITIATOR, and each order as SPC has it: whoever is not registered is refused (24), who has not heard yet that
 *  something changed hears that first (6). */
const standIn = `#!/bin/sh
for disk; do :; done
[ -e "$disk.broken" ] && exit 5
if [ -e "$disk.news" ]; then rm "$disk.news"; exit 6; fi
rk= sark= verb=
for word; do case $word in --param-rk=*) rk=\${word#*=} ;; --param-sark=*) sark=\${word#*=} ;; --read-*|--register-ignore|--reserve|--preempt-abort) verb=$word ;; esac; done
mine=$(sed -n "s/^$INITIATOR //p" "$disk")
case $verb in
--read-keys) count=$(grep -c . "$disk"); if [ "$count" = 0 ]; then echo "  PR generation=0x1, there are NO registered reservation keys"; else echo "  PR generation=0x1, $count registered reservation keys follow:"; sed 's/^[a-z]* /    /' "$disk"; fi ;;
--read-reservation) if [ -s "$disk.held" ]; then printf '  PR generation=0x1, Reservation follows:\\n    Key=%s\\n    scope: LU_SCOPE,  type: Write Exclusive, registrants only\\n' "$(cat "$disk.held")"; else echo "  PR generation=0x1, there is NO reservation held"; fi ;;
--register-ignore) sed -i "/^$INITIATOR /d" "$disk"; echo "$INITIATOR $sark" >> "$disk" ;;
--reserve) [ "$mine" = "$rk" ] && { [ ! -s "$disk.held" ] || [ "$(cat "$disk.held")" = "$rk" ]; } || exit 24; echo "$rk" > "$disk.held" ;;
--preempt-abort) [ -n "$mine" ] && [ "$mine" = "$rk" ] || exit 24; grep -q " $sark$" "$disk" || exit 24; sed -i "/ $sark$/d" "$disk"; [ "$(cat "$disk.held" 2>/dev/null)" != "$sark" ] || echo "$rk" > "$disk.held" ;;
esac
`

function inPlace(work: (place: Place) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'reservation-test-'))
  mkdirSync(join(folder, 'bin'))
  writeFileSync(join(folder, 'bin', 'sg_persist'), standIn)
  chmodSync(join(folder, 'bin', 'sg_persist'), 0o755)
  const [a, b] = [join(folder, 'a'), join(folder, 'b')]
  for (const disk of [a, b]) writeFileSync(disk, '')
  for (const [node, key] of Object.entries(keys)) writeFileSync(join(folder, `key-${node}`), `${key}\n`)
  const run = (node: Node, words: readonly string[], more: Readonly<Record<string, string>>): Ran => {
    const environment = { PATH: `${join(folder, 'bin')}:/usr/bin:/bin`, INITIATOR: node, DISKS: `${a} ${b}`, KEY_FILE: join(folder, `key-${node}`), ONCE: join(folder, `once-${node}`), ...more }
    const { status, stdout, stderr } = spawnSync('sh', [script, ...words], { env: environment, encoding: 'utf8' })
    assert.is(stderr, '')
    return { code: status, state: undefined, reason: undefined, ...lastWordOf(stdout, stderr) }
  }
  try {
    work({
      folder,
      register: (node) => run(node, ['register'], {}),
      ask: (node, action, plug, over = {}) => run(node, [], { HOLDFAST_ACTION: action, HOLDFAST_PLUG: keys[plug], ...over }),
      registered: (disk) => readFileSync(join(folder, disk), 'utf8').split('\n').filter((line) => line !== '').toSorted(),
      reserved: (disk) => (existsSync(join(folder, `${disk}.held`)) ? readFileSync(join(folder, `${disk}.held`), 'utf8').trim() : ''),
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const told = ({ code, state }: Ran) => [code, state]

test('registered nodes read on; one that is cut off reads off on every disk, again too, and the others stay', () => inPlace(({ register, ask, registered, reserved }) => {
  for (const node of ['one', 'two', 'three'] as const) assert.equal(told(register(node)), [0, 'on'])
  assert.equal(told(ask('two', 'status', 'one')), [0, 'on'])
  assert.equal(told(ask('two', 'off', 'one')), [0, 'off'])
  assert.equal(told(ask('two', 'off', 'one')), [0, 'off'])
  assert.equal(told(ask('three', 'status', 'one')), [2, 'off'])
  for (const disk of ['a', 'b'] as const) assert.equal([registered(disk), reserved(disk)], [['three 0x3', 'two 0x1a2'], keys.two], 'the reservation went over to who took it')
  assert.equal([told(ask('three', 'status', 'two')), told(ask('two', 'status', 'three'))], [[0, 'on'], [0, 'on']])
}))

test('on is what the node has done itself: failed until then, and it may be done once in a boot', () => inPlace(({ folder, register, ask }) => {
  for (const node of ['one', 'two'] as const) register(node)
  ask('two', 'off', 'one')
  const early = ask('two', 'on', 'one')
  assert.equal(told(early), [1, 'unknown'])
  assert.match(early.evidence, /has not registered itself yet/)
  assert.match(register('one').evidence, /once in a boot/)
  assert.equal(told(ask('two', 'status', 'one')), [2, 'off'], 'a node that was cut off and lives cannot come back')
  rmSync(join(folder, 'once-one'), { recursive: true })
  assert.equal([told(register('one')), told(ask('two', 'on', 'one'))], [[0, 'on'], [0, 'on']])
}))

test('a key that is not registered is not off where no reservation stands', () => inPlace(({ folder, register, ask }) => {
  register('two')
  rmSync(join(folder, 'b.held'))
  const word = ask('two', 'status', 'one')
  assert.equal([word.code, word.reason], [1, 'device'])
  assert.match(word.evidence, /\/b: no reservation stands/)
  assert.is(ask('two', 'off', 'one').code, 1)
}))

test('one disk that is open is on, one that cannot be read is unknown, and the others are closed all the same', () => inPlace(({ folder, register, ask, registered }) => {
  for (const node of ['one', 'two'] as const) register(node)
  writeFileSync(join(folder, 'a.broken'), '')
  assert.equal(told(ask('two', 'status', 'one')), [0, 'on'])
  const word = ask('two', 'off', 'one')
  assert.equal([word.code, word.reason, registered('b')], [1, 'device', ['two 0x1a2']])
  assert.match(word.evidence, /\/a: its keys cannot be read/)
  assert.equal(ask('two', 'status', 'one').code, 1)
}))

test('a node that is not registered itself cannot cut another off, and says so', () => inPlace(({ register, ask, registered }) => {
  register('one')
  const word = ask('three', 'off', 'one')
  assert.is(word.code, 1)
  assert.match(word.evidence, /still registered, the order was refused: is 0x3 registered there\?/)
  assert.equal(registered('a'), ['one 0x1a'])
}))

test('what a disk says first, that something has changed, is no answer', () => inPlace(({ folder, register, ask, registered }) => {
  for (const node of ['one', 'two'] as const) register(node)
  for (const disk of ['a', 'b']) writeFileSync(join(folder, `${disk}.news`), '')
  assert.equal([told(ask('two', 'off', 'one')), registered('a')], [[0, 'off'], ['two 0x1a2']])
}))

test('a key that begins another is not taken for it', () => inPlace(({ register, ask }) => {
  for (const node of ['two', 'three'] as const) register(node)
  assert.equal(told(ask('three', 'status', 'one')), [2, 'off'], '0x1a is not 0x1a2')
}))

for (const [name, action, over] of [
  ['a plug that is no key', 'off', { HOLDFAST_PLUG: 'node-1' }], ['a key written otherwise than disks print it', 'off', { HOLDFAST_PLUG: '0x001A' }], ['no disk', 'off', { DISKS: '' }],
  ['no key of its own', 'off', { KEY_FILE: '/nowhere' }], ['its own node', 'off', { HOLDFAST_PLUG: keys.two }], ['an unknown action', 'reboot', {}],
] as const) {
  test(`${name}: refused, and nothing is ordered`, () => inPlace(({ register, ask, registered }) => {
    for (const node of ['one', 'two'] as const) register(node)
    const word = ask('two', action, 'one', over)
    assert.equal([word.code, word.reason], [1, 'config'])
    assert.equal(registered('a'), ['one 0x1a', 'two 0x1a2'])
  }))
}

test.run()
