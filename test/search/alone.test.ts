// The table in docs/safety.md names for some defences a file of tests that fails when this defence is cut and nothing else, since
// others stand behind it in every schedule. Each such file is run against the product without it.
import { execFile } from 'node:child_process'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { defences } from '../../sim/search/defences.ts'

const test = suite('search: alone')

const program = fileURLToPath(new URL('without.ts', import.meta.url))
const deadline = 60_000

interface Marks { readonly failed: number; readonly output: string }

function runWithout(name: string, file: string): Promise<Marks> {
  return new Promise((resolve) => {
    // Its exit code tells of failed tests and of a file that could not be loaded alike: the mark of each test tells them apart, and is there
    // also where a later test waits for ever for what the defence would have brought about.
    execFile(execPath, [program, name, file], { timeout: deadline, maxBuffer: 16_777_216, env: { ...process.env, FORCE_COLOR: '0', NO_COLOR: '1' } }, (_error, stdout, stderr) => {
      resolve({ failed: stdout.split('✘').length - 1, output: `${stdout}${stderr}` })
    })
  })
}

for (const { name, story } of defences) {
  if (story === undefined) continue
  test(`${name}: ${story} fails without it`, async () => {
    const { failed, output } = await runWithout(name, story)
    assert.ok(failed > 0, `no test of ${story} fails without ${name}: ${output.slice(-2_000)}`)
  })
}

test('a file that has nothing of what was cut is no test of it', async () => {
  const { failed, output } = await runWithout('two-readings', 'test/sim/search/wanted.test.ts')
  assert.is(failed, 0)
  assert.match(output, /core\/reading\.ts was not cut/)
})

test.run()
