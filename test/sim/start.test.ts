// npm start as a person starts it: a process. What it leaves behind is looked for in its own folder for temporary files, and
// among the processes that bear its mark.
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath, platform } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineClock } from '../../edge/clock.ts'

const test = suite('start')

interface Started {
  readonly child: ChildProcessWithoutNullStreams
  readonly folder: string
  text(): string
  errors(): string
  /** Its code once it has ended. */
  readonly ended: Promise<number | null>
}

function start(...input: string[]): Started {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-start-test-'))
  const child = spawn(execPath, ['sim/start.ts', ...input], { env: { ...process.env, TMPDIR: folder } })
  let [text, errors] = ['', '']
  child.stdout.on('data', (piece: Buffer) => { text += piece.toString() })
  child.stderr.on('data', (piece: Buffer) => { errors += piece.toString() })
  return { child, folder, text: () => text, errors: () => errors, ended: new Promise((resolve) => { child.on('close', resolve) }) }
}

async function until(so: () => boolean | Promise<boolean>, within = 120_000): Promise<boolean> {
  for (const end = machineClock.now() + within; machineClock.now() < end;) {
    if (await so()) return true
    await machineClock.wait(50)
  }
  return false
}

/** Programs that it started bear its mark wherever they went. Only Linux tells; elsewhere the folder alone is looked at. */
function programsOf(pid: number | undefined): string[] {
  if (platform !== 'linux') return []
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).filter((name) => {
    try {
      return readFileSync(`/proc/${name}/environ`, 'utf8').split('\0').some((entry) => entry.startsWith(`HOLDFAST_RUN=${pid}-`))
    } catch {
      return false // it ended meanwhile, or is not ours to look at
    }
  })
}

function leavesNothing({ child, folder }: Started): void {
  assert.equal(readdirSync(folder), [], 'its folder')
  assert.equal(programsOf(child.pid), [], 'its programs')
  rmSync(folder, { recursive: true })
}

// The story takes most of a minute, and hardly any work: it goes on while the others are looked at. How long a machine needs that
// does much else is nothing that this claims.
const before = readdirSync('.').toSorted()
const story = start('--script', '--json', '--within', '280')

test('Ctrl-C in the middle of an incident leaves no process, no folder and no port; levers are pulled by the page alone', async () => {
  const started = start()
  try {
    assert.ok(await until(() => started.text().includes('KUBECONFIG=')), started.text() + started.errors())
    const page = /http:\/\/127\.0\.0\.1:\d+\//.exec(started.text())?.[0] ?? ''
    const lever = { 'x-holdfast-world': 'lever' }
    const pull = async (name: string, headers: Record<string, string>, method = 'POST') => (await fetch(`${page}world/node-2/${name}`, { method, headers })).status
    assert.is(await pull('cut-power', {}), 403)
    assert.is(await pull('cut-power', { ...lever, origin: 'http://example.org' }), 403)
    assert.is(await pull('cut-power', lever, 'GET'), 403)
    assert.is(await pull('thaw', lever), 409)

    interface Shown { glance: { is: string }; nodes: { levers?: unknown[] }[]; incidents: { node: string }[] }
    const shown = async () => await (await fetch(`${page}api/state`)).json() as Shown
    assert.ok(await until(async () => (await shown()).glance.is === 'well'), 'it is well')
    assert.is((await shown()).nodes.every(({ levers }) => levers?.length === 3), true)
    assert.match(await (await fetch(`${page}metrics`)).text(), /^holdfast_leader 1$/m)
    assert.is(await pull('freeze', { ...lever, origin: page.slice(0, -1) }), 200)
    assert.ok(await until(async () => (await shown()).incidents.some(({ node }) => node === 'node-2')), 'an incident is opened')
    if (platform === 'linux') assert.ok(await until(() => programsOf(started.child.pid).length > 0), 'a fence program runs')

    started.child.kill('SIGINT')
    assert.is(await started.ended, 0, started.errors())
    assert.is(started.errors(), '')
    leavesNothing(started)
    assert.ok(await fetch(page).then(() => false, () => true), 'its port is closed')
  } finally {
    started.child.kill('SIGKILL')
  }
})

test('an option that is not known ends at once with the reason', async () => {
  const started = start('--fault', 'flood')
  assert.is(await started.ended, 2)
  assert.match(started.errors(), /--fault flood: one of power, freeze, partition/)
  leavesNothing(started)
})

test('less time than the story takes is refused', async () => {
  const started = start('--script', '--within', '59')
  assert.is(await started.ended, 2)
  assert.match(started.errors(), /--within 59: whole seconds, 60 to 9999/)
  leavesNothing(started)
})

test('--json without the script that would print it is refused', async () => {
  const started = start('--json')
  assert.is(await started.ended, 2)
  assert.match(started.errors(), /--json is for --script/)
  leavesNothing(started)
})

test('the script plays the story to its end, tells each step, and leaves nothing behind', async () => {
  const started = story
  const code = await started.ended
  const lines = started.text().trimEnd().split('\n')
  assert.match(lines[0] ?? '', /^Holdfast: /, 'told at once what this is')
  const last = JSON.parse(lines.at(-1) ?? '{}') as { [key: string]: unknown; times: Record<string, number> }
  assert.is(code, 0, `${started.text()}${started.errors()}`)
  assert.is(started.errors(), '')
  assert.equal([last['phase'], last['outcome'], last['twoWriters'], last['twins'], last['reason']], ['Final', 'Recovered', false, false, undefined])
  // On a slow machine the order may be given before the device has been read off twice.
  assert.ok(['found-off', 'off'].includes(String(last['proof'])), String(last['proof']))
  const order = ['suspect', 'opened', 'proven', 'tainted', 'podsFreed', 'volumesReleased', 'outOfServiceRemoved', 'poweredOn', 'newBoot', 'quarantineLifted', 'final']
  const times = order.map((step) => last.times[step] ?? Number.NaN)
  assert.equal(times, times.toSorted((one, other) => one - other), JSON.stringify(last.times))
  assert.ok((last.times['replacementsRunning'] ?? 0) > (last.times['volumesReleased'] ?? Infinity))
  assert.match(started.text(), /\d+\.\d s {2}its volumes are released\n/)
  leavesNothing(started)
  assert.equal(readdirSync('.').toSorted(), before, 'the work tree')
})

test.run()
