// The agent's own process whose log nobody takes: the runtime reads it from a pipe, and a runtime that hangs (or whose log disk does) reads nothing. That is the very hour
// in which the agent has much to say.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineClock as clock, withDeadline } from '../../edge/clock.ts'
import { authority, replica, theToken } from './replica.ts'

const test = suite('deaf log')
/** A process that waits for its log waits for ever. */
const patient = 60_000

/** Until it takes no more. */
function fill(fifo: string): number {
  const fd = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK)
  const piece = Buffer.alloc(4_096, '\n')
  for (;;) {
    try {
      writeSync(fd, piece)
    } catch {
      return fd // full
    }
  }
}

test('with a runtime that hangs and takes no line of its log it beats, and says goodbye', async () => {
  const one = await replica('replica-a')
  const path = mkdtempSync(join(tmpdir(), 'holdfast-deaf-log-'))
  writeFileSync(join(path, 'ca.crt'), authority.certificate)
  writeFileSync(join(path, 'token'), `${theToken}\n`)
  const fifo = join(path, 'log')
  assert.is(spawnSync('mkfifo', [fifo]).status, 0)
  const [log, full] = [openSync(fifo, 'r+'), fill(fifo)] // it has a reader, who reads nothing
  const child = spawn(execPath, [join(import.meta.dirname, '../../agent/main.ts')], {
    stdio: ['ignore', log, 'ignore'],
    env: {
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], HOLDFAST_REPLICAS: one.address, HOLDFAST_PROC: '/proc', HOLDFAST_STATE: join(path, 'state'), HOLDFAST_TOKEN_FILE: join(path, 'token'),
      HOLDFAST_AUTHORITY_FILE: join(path, 'ca.crt'), HOLDFAST_BIND: '127.0.0.1', HOLDFAST_WHISPER_PORT: '0', HOLDFAST_KUBELET_ROOT: path, HOLDFAST_RUN: path,
      HOLDFAST_KUBELET_HEALTH: 'http://127.0.0.1:1/healthz', HOLDFAST_VITALS: 'off',
    },
  })
  const ended = once(child, 'exit')
  try {
    assert.is(await withDeadline(clock, patient, 'silent', async () => { await one.told('boot') }), undefined)
    const goodbye = one.told('goodbye')
    child.kill('SIGTERM')
    assert.is(await withDeadline(clock, patient, 'silent', async () => { await goodbye }), undefined)
    assert.equal(await withDeadline(clock, patient, 'it does not end', () => ended), [0, null])
  } finally {
    child.kill('SIGKILL')
    for (const fd of [log, full]) closeSync(fd)
    await ended
    await one.stop()
    rmSync(path, { recursive: true })
  }
})

test.run()
