// The wall round core/: each way to ask for time, chance, environment or network that core/ must not have is planted, and told.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { wall } from './check.ts'

const test = suite('check')

const read = [
  "import { readFileSync } from 'node:fs'", 'import { readFileSync } from "node:fs"', "import 'node:fs'", "export * from '../edge/clock.ts'", "const read = import('node:fs')",
  'Date.now()', 'Date[\'now\']()', 'new Date()', 'new Date ()', 'new Date( )', 'Date(at)', 'const { now } = Date', 'Math.random()', "Math['random']()", "globalThis['process']", 'async () => 1', 'new Promise(() => 1)',
]

test('what the text alone tells', () => {
  for (const text of read) assert.is(wall('core/planted.ts', `${text}\n`).length, 1, text)
  assert.equal(wall('core/planted.ts', "import { decide } from './decide.ts'\nconst at = new Date(Date.parse(text)).toISOString()\n"), [])
  assert.equal(wall('edge/clock.ts', 'Date.now()\n'), [], 'edges may')
})

const unknown = [
  'process.env', "process['env']", 'performance.now()', "performance['now']()", 'crypto.randomUUID()', "fetch('http://127.0.0.1/')", 'setTimeout(() => 1, 1)', 'setImmediate(() => 1)',
  'queueMicrotask(() => 1)', "require('fs')", 'structuredClone(process)', 'console.log(1)', 'navigator.hardwareConcurrency',
]

test('what the compiler tells, which knows nothing of Node there', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-wall-'))
  try {
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ extends: resolve('core/tsconfig.json'), include: ['.'] }))
    unknown.forEach((text, index) => writeFileSync(join(folder, `planted-${index}.ts`), `export const planted = ${text}\n`))
    writeFileSync(join(folder, 'well.ts'), 'export const well = Math.max(...[1, 2].map((one) => one + 1))\n')
    const { stdout } = spawnSync('node_modules/.bin/tsc', ['-p', folder], { encoding: 'utf8' })
    unknown.forEach((text, index) => assert.match(stdout, new RegExp(`planted-${index}\\.ts\\(1,\\d+\\): error`), text))
    assert.not.match(stdout, /well\.ts/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test.run()
