import { spawnSync } from 'node:child_process'
import { constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineClock } from '../../edge/clock.ts'
import { keptLines, type LineKeeper } from '../../edge/machine-log.ts'

const test = suite('machine log')

/** A pipe that nobody reads until `read` does, once. */
async function piped(most: number, use: (lines: LineKeeper, read: () => string, missing: readonly number[]) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-log-'))
  const path = join(folder, 'log')
  assert.is(spawnSync('mkfifo', [path]).status, 0)
  const missing: number[] = []
  const lines = keptLines(openSync(path, 'r+'), (count) => missing.push(count), most)
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const piece = Buffer.alloc(1_048_576)
  const read = (): string => {
    try {
      return piece.toString('utf8', 0, readSync(reader, piece))
    } catch {
      return '' // it is empty now
    }
  }
  await use(lines, read, missing).finally(() => rmSync(folder, { recursive: true }))
}

const line = (index: number): string => `${String(index).padStart(7, '0')} ${'x'.repeat(1_000)}\n`
const numbers = (text: string): readonly number[] => text.split('\n').filter((one) => one !== '').map((one) => Number(one.slice(0, 7)))

test('a line is in the pipe before its writer goes on', async () => {
  await piped(100_000, async (lines, read) => {
    for (let index = 0; index < 3; index += 1) lines.write(line(index))
    assert.equal(numbers(read()), [0, 1, 2])
  })
})

test('of what nobody takes the first lines are kept, and where some are missing it is said how many', async () => {
  await piped(100_000, async (lines, read, missing) => {
    for (let index = 0; index < 1_000; index += 1) lines.write(line(index))
    let taken = ''
    for (let tries = 0; missing.length === 0 && tries < 10_000; tries += 1) {
      taken += read()
      await machineClock.wait(1)
    }
    taken += read()
    const kept = numbers(taken)
    assert.equal(kept, kept.map((_, index) => index), 'whole, and in order')
    assert.ok(kept.length * 1_009 > 100_000 && kept.length < 1_000, `${kept.length} kept`)
    assert.equal(missing, [1_000 - kept.length])
    lines.write(line(1_000))
    assert.equal([numbers(read()), missing.length], [[1_000], 1], 'and from there on all is taken')
  })
})

test('of a process that ends at once the last line is read, as pino makes it', () => {
  const url = new URL('../../edge/machine-log.ts', import.meta.url).href
  const ran = spawnSync(execPath, ['--input-type=module', '--eval', `import { machineLog } from '${url}'; machineLog('info', { replica: 'a' }).error({ x: 1 }, 'the last'); process.exit(3)`], { encoding: 'utf8' })
  const { level, time: _time, ...said } = JSON.parse(ran.stdout) as Record<string, unknown> // one line of pino's
  assert.equal([ran.status, level, said], [3, 50, { replica: 'a', x: 1, msg: 'the last' }])
})

test.run()
