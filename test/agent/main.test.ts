// The agent as the process it is in a cluster, over real sockets and real files, against replicas in this process.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { machineClock } from '../../edge/clock.ts'
import { machineWhispers } from '../../edge/whisper.ts'
import { readWhisperAnswer, whisperOf } from '../../core/frame.ts'
import { authority, replica, theToken } from './replica.ts'

const test = suite('main')

function folder(replicas: readonly string[]): string {
  const path = mkdtempSync(join(tmpdir(), 'holdfast-agent-'))
  writeFileSync(join(path, 'ca.crt'), authority.certificate)
  writeFileSync(join(path, 'replicas'), JSON.stringify(replicas.map((address, index) => ({ identity: `r${index}`, address, at: 0 }))))
  writeFileSync(join(path, 'token'), `${theToken}\n`)
  return path
}

function agent(path: string, variables: Readonly<Record<string, string>>) {
  const child = spawn(execPath, [join(import.meta.dirname, '../../agent/main.ts')], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], HOLDFAST_PROC: '/proc', HOLDFAST_STATE: join(path, 'state'), HOLDFAST_TOKEN_FILE: join(path, 'token'), HOLDFAST_AUTHORITY_FILE: join(path, 'ca.crt'),
      HOLDFAST_BIND: '127.0.0.1', HOLDFAST_WHISPER_PORT: '0', HOLDFAST_KUBELET_ROOT: path, HOLDFAST_KUBELET_HEALTH: 'http://127.0.0.1:1/healthz', ...variables,
    },
  })
  let output = ''
  child.stdout.on('data', (piece: Buffer) => { output += piece.toString() })
  child.stderr.on('data', (piece: Buffer) => { output += piece.toString() })
  return { child, output: () => output, ended: once(child, 'exit').then(([code]) => Number(code)) }
}

test('an agent told of one replica finds the others where the authority is published, beats, proves itself and says goodbye', async () => {
  const replicas = await Promise.all(['replica-a', 'replica-b', 'replica-c'].map((name) => replica(name)))
  const [first] = replicas
  const path = folder(replicas.map(({ address }) => address))
  const run = agent(path, { HOLDFAST_REPLICAS: first?.address ?? '' })
  await Promise.all(replicas.map((one) => one.told('boot')))
  const facts = first?.beats.agent('node-1')
  assert.match(facts?.boot ?? '', /^[0-9a-f-]{36}\/\d+$/)
  assert.is((await first?.beats.challenge('node-1', 10_000))?.boot, facts?.boot)

  const nonce = first?.beats.nonce() ?? ''
  const whispered = await machineWhispers(machineClock, '127.0.0.1').ask(facts?.whisperAddress ?? '', whisperOf({ replica: 'replica-a', nonce }), 10_000, () => true)
  const answer = readWhisperAnswer(whispered ?? new Uint8Array())
  assert.ok('word' in answer && answer.word.nonce === nonce && answer.word.seal !== undefined)

  const goodbyes = Promise.all(replicas.map((one) => one.told('goodbye')))
  run.child.kill('SIGTERM')
  await goodbyes
  assert.is(await run.ended, 0)
  assert.not.ok(run.output().includes(theToken))
  for (const one of replicas) await one.stop()
  rmSync(path, { recursive: true })
})

const loopbacks = Object.values(networkInterfaces()).flat().map((one) => one?.address)
const families = [
  { says: 'over IPv6', listens: '::1', dials: '[::1]', from: /^\[::1\]:\d+$/ },
  { says: 'over IPv4 to a replica of both families', listens: '::', dials: '127.0.0.1', from: /^127\.0\.0\.1:\d+$/ },
]
if (!loopbacks.includes('::1')) console.log('main: this machine has no IPv6, so no agent beat over it')
else for (const { says, listens, dials, from } of families) test(`${says} it beats, is found by its peers, and proves itself`, async () => {
  const one = await replica('replica-a', listens)
  const address = `${dials}:${one.address.slice(one.address.lastIndexOf(':') + 1)}`
  const path = folder([])
  const run = agent(path, { HOLDFAST_REPLICAS: address, HOLDFAST_BIND: '' })
  await one.told('boot')
  const { whisperAddress = '', boot } = one.beats.agent('node-1') ?? {}
  assert.match(whisperAddress, from)
  assert.is((await one.beats.challenge('node-1', 10_000))?.boot, boot)
  const nonce = one.beats.nonce()
  const answer = readWhisperAnswer(await machineWhispers(machineClock).ask(whisperAddress, whisperOf({ replica: 'replica-a', nonce }), 10_000, () => true) ?? new Uint8Array())
  assert.ok('word' in answer && answer.word.nonce === nonce && answer.word.seal !== undefined)
  run.child.kill('SIGTERM')
  await run.ended
  await one.stop()
  rmSync(path, { recursive: true })
})

test('an agent writes down the replicas that a permit names', async () => {
  const one = await replica('replica-a')
  one.beats.setReplicas([one.address, '127.0.0.1:1'])
  const path = folder([one.address])
  const run = agent(path, { HOLDFAST_REPLICAS: one.address })
  await one.told('report')
  for (let tries = 0; tries < 200; tries += 1) {
    try {
      assert.equal(JSON.parse(readFileSync(join(path, 'state', 'replicas.json'), 'utf8')), [one.address, '127.0.0.1:1'])
      break
    } catch (error) {
      if (tries === 199) throw error
      await machineClock.wait(50) // it is written a moment after the first permit
    }
  }
  run.child.kill('SIGTERM')
  await run.ended
  await one.stop()
  rmSync(path, { recursive: true })
})

test('a watchdog is armed and fed where a leader says so, and let go of on SIGTERM once that is on record, by a device that takes anything', async () => {
  for (const records of [true, false]) {
    const one = await replica('replica-a')
    const path = folder([one.address])
    const sysfs = join(path, 'sys', 'class', 'watchdog', 'null0')
    mkdirSync(sysfs, { recursive: true })
    for (const [file, text] of [[join(sysfs, 'identity'), 'i6300ESB timer\n'], [join(sysfs, 'timeout'), '30\n'], [join(sysfs, 'state'), 'active\n']] as const) writeFileSync(file, text)
    const run = agent(path, { HOLDFAST_REPLICAS: one.address, HOLDFAST_SYS: join(path, 'sys'), HOLDFAST_WATCHDOG: '/dev/null', HOLDFAST_VITALS: 'off' })
    await one.told('boot')
    assert.not.match(run.output(), /the watchdog is armed/, 'nobody has asked for it')
    const lead = setInterval(() => {
      const seen = one.beats.heard('node-1')
      if (seen === undefined) return
      one.beats.setLeading(true)
      one.beats.permits('node-1', seen.boot, 'permitted')
      one.beats.say('node-1', { say: 'self-stop', node: 'node-1', giveUp: 'stop', members: [''], membership: { epoch: 1, agents: ['node-2'], replicas: ['replica-a'] } })
      if (records && seen.watchdog?.disarm !== undefined) one.beats.say('node-1', { say: 'disarm', boot: seen.boot, disarm: seen.watchdog.disarm })
    }, 20)
    await isSo(() => one.beats.heard('node-1')?.watchdog?.state === 'armed')
    run.child.kill('SIGTERM')
    assert.is(await run.ended, 0)
    clearInterval(lead)
    assert.is(run.output().includes('the watchdog is disarmed'), records)
    assert.is(one.beats.heard('node-1')?.watchdog?.state, records ? 'unarmed' : 'armed')
    await one.stop()
    rmSync(path, { recursive: true })
  }
})

async function isSo(what: () => boolean): Promise<void> {
  for (let tries = 0; !what(); tries += 1) {
    if (tries > 2_000) throw new Error('it never came so')
    await machineClock.wait(20)
  }
}

test('an agent whose gate is not kept from boot on takes away what keeps it, and another one leaves it', async () => {
  const one = await replica('replica-a')
  for (const [fromBoot, stays] of [['off', false], ['on', true]] as const) {
    const path = folder([one.address])
    const kept = join(path, 'state', 'boot-gate')
    mkdirSync(kept, { recursive: true })
    const run = agent(path, { HOLDFAST_REPLICAS: one.address, HOLDFAST_GATE: 'on', HOLDFAST_NRI_SOCKET: join(path, 'nri.sock'), HOLDFAST_GATE_FROM_BOOT: fromBoot, HOLDFAST_VITALS: 'off' })
    await isSo(() => run.output().includes('agent started'))
    assert.is(existsSync(kept), stays)
    run.child.kill('SIGTERM')
    await run.ended
    rmSync(path, { recursive: true })
  }
  await one.stop()
})

test('an agent that is told nothing ends at once and names every fault', async () => {
  const run = agent('/tmp', { HOLDFAST_WHISPER_PORT: 'x' })
  assert.is(await run.ended, 2)
  assert.match(run.output(), /HOLDFAST_REPLICAS[\s\S]*HOLDFAST_WHISPER_PORT|HOLDFAST_WHISPER_PORT[\s\S]*HOLDFAST_REPLICAS/)
})

test.run()
