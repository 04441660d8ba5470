#!/usr/bin/env node
// A device for tests: one machine whose power is a word in a file. The file's `mode` says how the device behaves, and may
// be changed between two runs. What the device says and what is true are two things here: `power` is the truth.
import { spawn } from 'node:child_process'
import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import process, { execPath, pid } from 'node:process'
import { Failure, runAgent, type AgentDescription, type DeviceWord, type Given } from '../contract.ts'

type Mode = 'ok' | 'fail' | 'hang' | 'hang-in-child' | 'leave-child' | 'say-off-once' | 'lie' | 'slow' | 'mute-status'

interface DeviceState {
  power: 'on' | 'off'
  mode?: Mode
  machine?: string
  /** For `slow`. */
  delayMs?: number
  /** Set by say-off-once: the next status says off, and no other. */
  saysOff?: boolean
  /** Set by lie: what was ordered last, and never done. */
  claims?: 'on' | 'off'
}

/** Ten minutes are for ever in a test, and an end all the same if the test is killed. */
const hanging = 'process.on("SIGTERM", () => {}); setTimeout(() => {}, 600000)'

export const agent: AgentDescription = {
  name: 'test-device',
  says: 'A machine whose power is a word in a file. For tests only.',
  vendor: 'https://holdfast.dev',
  parameters: [
    { name: 'state_file', says: 'JSON: power, mode, machine, delayMs', type: 'string', required: true },
    { name: 'plug', says: 'Which machine; only told back', type: 'string', obsoletes: 'port', short: 'n' },
    { name: 'password', says: 'Ignored', type: 'string', obsoletes: 'passwd', short: 'p' },
  ],
  status: (given) => ask(given, 'status'),
  off: (given) => ask(given, 'off'),
  on: (given) => ask(given, 'on'),
}

async function ask(given: Given, action: 'status' | 'off' | 'on'): Promise<DeviceWord> {
  const file = given.text('state_file')
  const state = read(file)
  appendFileSync(`${file}.log`, `${action} ${pid}\n`)
  switch (state.mode ?? 'ok') {
    case 'ok': return act(file, state, action)
    case 'fail': throw new Failure('device', 'the device refuses')
    case 'hang': return hang()
    case 'hang-in-child': return hangInChild()
    case 'leave-child':
      spawn(execPath, ['-e', hanging], { stdio: 'inherit' }).unref()
      return act(file, state, action)
    case 'say-off-once': return sayOffOnce(file, state, action)
    case 'lie': return lie(file, state, action)
    case 'slow':
      await new Promise((resolve) => { setTimeout(resolve, state.delayMs ?? 1_000) })
      return act(file, read(file), action)
    case 'mute-status':
      if (action === 'status') throw new Failure('unreachable', 'the device does not answer')
      return act(file, state, action)
  }
}

function act(file: string, state: DeviceState, action: 'status' | 'off' | 'on'): DeviceWord {
  if (action === 'status') return word(state, state.power)
  write(file, { ...state, power: action })
  return word(state, action)
}

/** It takes the order, says it is done, shows it once, and goes on running the machine. */
function sayOffOnce(file: string, state: DeviceState, action: 'status' | 'off' | 'on'): DeviceWord {
  if (action === 'status' && state.saysOff === true) {
    write(file, { ...state, saysOff: false })
    return word(state, 'off')
  }
  if (action === 'off') write(file, { ...state, saysOff: true })
  return word(state, action === 'status' ? state.power : action)
}

/** It says that it did what it was told, and goes on saying so. */
function lie(file: string, state: DeviceState, action: 'status' | 'off' | 'on'): DeviceWord {
  if (action === 'status') return word(state, state.claims ?? state.power)
  write(file, { ...state, claims: action })
  return word(state, action)
}

/** The whole program stands still, its own deadline and its handler of SIGTERM with it: only SIGKILL ends this. */
function hang(): never {
  process.on('SIGTERM', () => undefined)
  standStill()
}

/** The program itself would go at SIGTERM; its child would not, and holds the pipes. */
function hangInChild(): never {
  spawn(execPath, ['-e', hanging], { stdio: 'inherit' })
  standStill()
}

function standStill(): never {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600_000)
  process.exit(1)
}

function word(state: DeviceState, says: 'on' | 'off'): DeviceWord {
  return { state: says, evidence: `the file says ${state.power}`, ...(state.machine === undefined ? {} : { machine: state.machine }) }
}

function read(file: string): DeviceState {
  return JSON.parse(readFileSync(file, 'utf8')) as DeviceState // a test's own file
}

/** Whole or not at all: a test reads the file while programs write it. */
function write(file: string, state: DeviceState): void {
  writeFileSync(`${file}.${pid}`, JSON.stringify(state))
  renameSync(`${file}.${pid}`, file)
}

// Last, so that every constant above has its value when the program begins.
if (import.meta.main) await runAgent(agent)
