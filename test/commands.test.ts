// What the commands of package.json say to words that they do not know: one line with those that they do, and an end that a
// script notices.
import { execFile } from 'node:child_process'
import { execPath } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

const test = suite('commands')

interface Ran { readonly code: number; readonly lines: readonly string[] }

function run(...input: readonly string[]): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(execPath, [...input], { timeout: 90_000 }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), lines: `${out}${err}`.split('\n').filter((line) => line !== '') })
    })
  })
}

async function refuses(file: string, code: number, known: RegExp, wrong: readonly (readonly string[])[]): Promise<void> {
  for (const input of wrong) {
    const ran = await run(file, ...input)
    assert.equal([...input, ran.code, ran.lines.length], [...input, code, 1], ran.lines.join('\n'))
    assert.match(ran.lines[0] ?? '', known, input.join(' '))
  }
}

test('the search refuses what it does not know, and searches nothing', async () => {
  await refuses('sim/search.ts', 2, /--seeds N.*--from S.*--jobs J.*--minutes M.*--seed S.*--without NAME.*--marks/, [['--nope'], ['--seeds', 'x']])
  assert.is((await run('sim/search.ts', '--without', 'list')).code, 0)
  assert.match((await run('sim/search.ts', '--seeds', '1', '--jobs', '1')).lines.join('\n'), /^1 passed, 0 failed$/m)
})

test('a benchmark that there is not, and what one does not take, are refused before anything is measured', async () => {
  await refuses('test/bench/run.ts', 2, /NAME is one of agent, beats, decide, recovery/, [['run'], ['--json', '--runs', '3']])
  await refuses('test/bench/run.ts', 2, /recovery takes --json, --runs N, --only /, [
    ['recovery', '--runs', '0'], ['recovery', '--runs', '--json'], ['recovery', '--only', 'rain'], ['recovery', 'more'],
  ])
  await refuses('test/bench/run.ts', 2, /decide takes --json$/, [['decide', '--runs', '3']])
  const listed = await run('test/bench/run.ts')
  assert.equal([listed.code, listed.lines.length], [0, 1])
})

test('a pattern without a file, and a flag, are told as what they are', async () => {
  await refuses('test/run.ts', 1, /npm test -- .*test\/core\/\*\.test\.ts/, [['--help'], ['test/core/nobody.test.ts'], ['test/core/brake.test.ts', 'test/nobody/*.test.ts']])
})

test.run()
