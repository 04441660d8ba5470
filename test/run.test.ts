// The runner counts for itself. Each of these files, alone or between two that are well, must not be taken for one that passes.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { runBatches, type Tally } from './run.ts'

const test = suite('runner')

// Put together, since what these files do wrong is not to stand in a test.
const head = `import { suite } from '${import.meta.resolve('uvu')}'\nconst test = ${'suite'}('planted')\n`
const well = `${head}test('one', () => undefined)\ntest('two', () => undefined)\ntest.run()\n`

/** What all files come to, in so many processes. */
async function ran(texts: readonly string[], deadline = 120_000, processes = 1): Promise<Tally> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-runner-'))
  const said = console.log
  console.log = () => undefined
  try {
    const files = texts.map((text, index) => {
      const file = join(folder, `${index}.test.ts`)
      writeFileSync(file, text)
      return file
    })
    return await runBatches([{ files, processes }], processes, deadline)
  } finally {
    console.log = said
    rmSync(folder, { recursive: true })
  }
}

test('files that are well pass, and each of their tests is counted', async () => {
  assert.equal(await ran([well, well, well]), { passed: 6, failed: 0, skipped: 0 })
})

for (const [what, text] of [
  ['a test that fails', `${head}test('one', () => undefined)\ntest('two', () => { throw new Error('planted') })\ntest.run()\n`],
  ['a suite that is never run', `${head}test('one', () => undefined)\n`],
  ['nothing at all', ''],
  ['a test that is skipped', `${head}test('one', () => undefined)\ntest${'.skip'}('two', () => undefined)\ntest.run()\n`],
  ['a test that throws null', `${head}test('one', () => { throw null })\ntest.run()\n`],
  ['a hook that throws', `${head}test${'.before'}(() => { throw new Error('planted') })\ntest('one', () => undefined)\ntest.run()\n`],
  ['one of several tests that is asked for alone', `${head}test('one', () => undefined)\ntest${'.only'}('two', () => undefined)\ntest.run()\n`],
] as const) {
  test(`${what} fails, and what stands beside it is counted all the same`, async () => {
    const { failed, passed } = await ran([well, text, well])
    assert.equal([failed, passed >= 4], [1, true])
  })
}

for (const [what, text] of [
  ['a file that cannot be loaded', 'throw new Error("planted")\n'],
  ['a variable left for the next file to lean on', `${head}test('one', () => { process.env['PLANTED'] = '1' })\ntest.run()\n`],
  ['a listener left that swallows what the next file throws', `${head}test('one', () => { process.on('uncaughtException', () => undefined) })\ntest.run()\n`],
  ['an end in the middle, and well by its code', `${head}test('one', () => undefined)\ntest('two', () => process.exit(0))\ntest.run()\n`],
] as const) {
  test(`${what} fails, and with it what its process did not come to`, async () => {
    assert.equal(await ran([well, text, well]).then(({ failed, passed }) => [failed, passed < 5]), [2, true])
    assert.is((await ran([text])).failed, 1)
  })
}

test('a file that never ends, or whose process never does, fails at the deadline', async () => {
  assert.is((await ran([well, `${head}test('one', () => new Promise(() => setInterval(() => undefined, 1_000)))\ntest.run()\n`], 3_000)).failed, 1)
  assert.equal(await ran([well, `${well}setInterval(() => undefined, 1_000)\n`], 3_000).then(({ failed }) => failed), 1)
})

test('two processes take from one list, and what neither came to fails', async () => {
  assert.equal(await ran([well, well, well, well, well], 120_000, 2), { passed: 10, failed: 0, skipped: 0 })
  const ending = `${head}test('one', () => process.exit(0))\ntest.run()\n`
  assert.equal(await ran([ending, ending, well], 120_000, 2), { passed: 0, failed: 3, skipped: 0 })
})

test('a child left running, which holds the output, is ended with its file, and the file fails', async () => {
  const child = `${head}import { spawn } from 'node:child_process'\ntest('one', () => void spawn('sleep', ['100'], { stdio: 'inherit' }).unref())\ntest.run()\n`
  assert.equal(await ran([well, child]), { passed: 3, failed: 1, skipped: 0 })
})

test.run()
