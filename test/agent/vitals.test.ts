// Real children: one that tells, one that hangs with what it started, one that says what is none.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readEnvironment } from '../../agent/settings.ts'
import { readVitals, vitalsAsker } from '../../agent/vitals.ts'
import { machineClock, type Clock } from '../../edge/clock.ts'

const test = suite('vitals')

const patient = 60_000

async function within(program: string, play: (ask: ReturnType<typeof vitalsAsker>, folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-vitals-'))
  try {
    writeFileSync(join(folder, 'program.mjs'), program)
    await play(vitalsAsker(machineClock, join(folder, 'program.mjs'), folder), folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function isSo(what: () => boolean): Promise<void> {
  for (let tries = 0; !what(); tries += 1) {
    if (tries > 1_000) throw new Error('it never came so')
    await machineClock.wait(20)
  }
}

test('the program itself tells of this machine', async () => {
  const read = readEnvironment({ HOLDFAST_REPLICAS: 'c:1' })
  const program = read.ok ? read.settings.vitals : undefined
  const vitals = await vitalsAsker(machineClock, program ?? '', tmpdir())(patient)
  for (const name of ['disk', 'memory', 'load'] as const) assert.type(vitals?.[name], 'number', name)
  assert.ok((vitals?.memory ?? 0) > 0 && (vitals?.memory ?? 101) < 100)
})

test('one that hangs is killed with all that it started, and the next one is sent then', () => within(`
  import { spawn } from 'node:child_process'
  import { existsSync, writeFileSync } from 'node:fs'
  const { pid } = spawn('sleep', ['600'], { stdio: 'ignore' })
  if (existsSync(process.argv[2] + '/well')) { process.kill(pid); console.log('{"disk":7}'); process.exit(0) }
  writeFileSync(process.argv[2] + '/begun', process.pid + ' ' + pid)
  setInterval(() => undefined, 1_000)
`, async (ask, folder) => {
  const begun = join(folder, 'begun')
  // Its span is over as soon as it hangs.
  const clock: Clock = { ...machineClock, after(_, run) {
    void isSo(() => existsSync(begun) && readFileSync(begun, 'utf8') !== '').then(run)
    return () => undefined
  } }
  assert.is(await vitalsAsker(clock, join(folder, 'program.mjs'), folder)(patient), undefined)
  const pids = readFileSync(begun, 'utf8').split(' ').map(Number)
  for (const pid of pids) await isSo(() => !existsSync(`/proc/${pid}`) || readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z '))
  writeFileSync(join(folder, 'well'), '')
  assert.equal(await ask(patient), { disk: 7 })
}))

test('while one is under way no second one is sent', () => within(`
  import { appendFileSync } from 'node:fs'
  appendFileSync(process.argv[2] + '/begun', 'x')
  setTimeout(() => console.log('{"load":1}'), 300)
`, async (ask, folder) => {
  const both = await Promise.all([ask(patient), ask(patient)])
  assert.equal([both, readFileSync(join(folder, 'begun'), 'utf8')], [[{ load: 1 }, undefined], 'x'])
  assert.equal(await ask(patient), { load: 1 })
}))

test('one that fails after its word has told nothing', () => within(`console.log('{"disk":7}'); process.exit(3)`, async (ask) => {
  assert.is(await ask(patient), undefined)
}))

test('one that is not there tells nothing', async () => {
  assert.is(await vitalsAsker(machineClock, '/nowhere/vitals.mjs', '/')(patient), undefined)
})

test('garbage tells nothing, and of the rest only what can be', () => {
  for (const text of ['', 'nonsense', '[', 'null', '7', '[1,2]', '{}', '{"disk":"full"}', '{"disk":101}', '{"disk":null}', '{"uptime":3}']) assert.is(readVitals(text), undefined, text)
  assert.equal(readVitals('{"disk":12.5,"inodes":-1,"temperature":900,"load":0,"kernel":"6"}'), { disk: 12.5, load: 0 })
})

test.run()
