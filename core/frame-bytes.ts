// Beat and permit as bytes: they fly thousands of times a second. Each ends where nothing more is to be told; bytes beyond
// the known ones are ignored.
import type { Beat, GateState, Permit, PermitState, Pressure, StorageWord } from './beat.ts'
import { decoded, type Read } from './frame-json.ts'
import type { MemberSays } from './self-stop.ts'
import type { Vitals } from './vitals.ts'

const utf8 = new TextEncoder()

export const beatKind = 1
export const permitKind = 2

const kubeletWords = ['unknown', 'ok', 'ill'] as const
const gateStates = ['off', 'shut', 'open', 'absent'] as const satisfies readonly GateState[]
const storageWords = ['unknown', 'reached', 'unreached'] as const satisfies readonly StorageWord[]
const permitStates = ['off', 'running', 'gave up', 'resumed'] as const satisfies readonly PermitState[]
export const memberWords = ['unknown', 'permitted', 'revoked'] as const satisfies readonly MemberSays[]

/** By their byte, where 0 tells nothing. To ask a list for what is before its first costs more than the rest of a beat. */
const gatesTold = [undefined, ...gateStates]
const permitsTold = [undefined, ...permitStates]
const runtimesTold = [undefined, ...kubeletWords]
const storagesTold = [undefined, ...storageWords]
const membersTold = [undefined, ...memberWords]

/** kind, kubelet, count (4), then gate, permit, runtime, pressure (3), storage and vitals (5) as far as there is something to tell, each counted from 1. */
export function beatFrame({ kubelet, count, gate, permit, runtime, pressure, storage, vitals = {} }: Beat): Uint8Array {
  const tail = [
    gate === undefined ? 0 : gateStates.indexOf(gate) + 1, permit === undefined ? 0 : permitStates.indexOf(permit) + 1, runtime === undefined ? 0 : kubeletWords.indexOf(runtime) + 1,
    ...(pressure === undefined ? [0, 0, 0] : [pressure.cpu, pressure.memory, pressure.io].map((share) => Math.min(100, Math.max(0, Math.round(share))) + 1)),
    storage === undefined ? 0 : storageWords.indexOf(storage) + 1, ...vitalScales.map(({ of, least, step }) => scaled(vitals[of], least, step)),
  ]
  const told = tail.findLastIndex((word) => word > 0) + 1
  const frame = new Uint8Array(beatHead + told)
  frame[0] = beatKind
  frame[1] = kubeletWords.indexOf(kubelet)
  writeWhole(frame, 2, count)
  frame.set(tail.slice(0, told), beatHead)
  return frame
}

const beatHead = 6

/** Each vital is one byte: 0 untold, else so many steps above the least. What is beyond the last step is told as that. */
const vitalScales = [
  { of: 'disk', least: 0, step: 1 }, { of: 'inodes', least: 0, step: 1 }, { of: 'memory', least: 0, step: 1 }, { of: 'temperature', least: -50, step: 1 }, { of: 'load', least: 0, step: 0.1 },
] as const satisfies readonly { readonly of: keyof Vitals; readonly least: number; readonly step: number }[]

function scaled(value: number | undefined, least: number, step: number): number {
  return value === undefined || !Number.isFinite(value) ? 0 : Math.min(254, Math.max(0, Math.round((value - least) / step))) + 1
}

function vitalsOf(frame: Uint8Array, from: number): Vitals | undefined {
  let told: { -readonly [Of in keyof Vitals]: Vitals[Of] } | undefined
  let at = from
  for (const { of, least, step } of vitalScales) {
    const steps = frame[at] ?? 0
    if (steps > 0) (told ??= {})[of] = Math.round((steps - 1) * step * 10) / 10 + least
    at += 1
  }
  return told
}

export function readBeat(frame: Uint8Array): Read<Beat> {
  if (frame.length < beatHead) return { garbage: `a beat of ${frame.length} bytes` }
  // A state that this version does not know is one of a newer agent: its beat counts as ever.
  const kubelet = kubeletWords[frame[1] ?? 0] ?? 'unknown'
  const gate = gatesTold[frame[beatHead] ?? 0]
  const permit = permitsTold[frame[beatHead + 1] ?? 0]
  const runtime = runtimesTold[frame[beatHead + 2] ?? 0]
  const pressure = pressureOf(frame[beatHead + 3], frame[beatHead + 4], frame[beatHead + 5])
  const storage = storagesTold[frame[beatHead + 6] ?? 0]
  const vitals = vitalsOf(frame, beatHead + 7)
  // Field by field in one order: thousands of these a second, and what spreading makes of them is of as many shapes as there are fields.
  const word: Changing<Beat> = { say: 'beat', count: readWhole(frame, 2), kubelet }
  if (gate !== undefined) word.gate = gate
  if (permit !== undefined) word.permit = permit
  if (runtime !== undefined) word.runtime = runtime
  if (pressure !== undefined) word.pressure = pressure
  if (storage !== undefined) word.storage = storage
  if (vitals !== undefined) word.vitals = vitals
  return { word }
}

type Changing<T> = { -readonly [K in keyof T]: T[K] }

/** All three or none: a share that is none is one of a later version. */
function pressureOf(cpu = 0, memory = 0, io = 0): Pressure | undefined {
  return isShare(cpu) && isShare(memory) && isShare(io) ? { cpu: cpu - 1, memory: memory - 1, io: io - 1 } : undefined
}

function isShare(byte: number): boolean {
  return byte >= 1 && byte <= 101
}

/** kind, flags, count (4), span (4), then each replica's address with its length before it, counted by one byte; then what it says of the
 *  permit, counted from 1. */
export function permitFrame(permit: Permit): Uint8Array {
  const addresses = permit.replicas.slice(0, mostReplicas).map((address) => utf8.encode(address.slice(0, longestAddress)))
  const frame = new Uint8Array(addresses.reduce((size, address) => size + 1 + address.length, permitHead) + (permit.says === undefined ? 0 : 1))
  frame[0] = permitKind
  frame[1] = permit.leads ? 1 : 0
  writeWhole(frame, 2, permit.count)
  writeWhole(frame, 6, permit.span)
  frame[10] = addresses.length
  let at = permitHead
  for (const address of addresses) {
    frame[at] = address.length
    frame.set(address, at + 1)
    at += 1 + address.length
  }
  if (permit.says !== undefined) frame[at] = memberWords.indexOf(permit.says) + 1
  return frame
}

/** The same permit in answer to another beat. */
export function permitAgain(frame: Uint8Array, count: number): Uint8Array {
  const again = frame.slice()
  writeWhole(again, 2, count)
  return again
}

const permitHead = 11
export const mostReplicas = 16
/** In characters of ASCII: an address is `host:port`. */
export const longestAddress = 255

export function readPermit(frame: Uint8Array): Read<Permit> {
  if (frame.length < permitHead) return { garbage: `a permit of ${frame.length} bytes` }
  const many = frame[10] ?? 0
  if (many > mostReplicas) return { garbage: `a permit with ${many} replicas` }
  const replicas: string[] = []
  let at = permitHead
  for (let index = 0; index < many; index += 1) {
    const end = at + 1 + (frame[at] ?? frame.length)
    if (end > frame.length) return { garbage: 'a permit that ends within an address' }
    const address = decoded(frame.subarray(at + 1, end))
    if (address === undefined) return { garbage: 'a permit with an address that is not UTF-8' }
    replicas.push(address)
    at = end
  }
  const says = membersTold[frame[at] ?? 0]
  return { word: { say: 'permit', count: readWhole(frame, 2), leads: frame[1] === 1, span: readWhole(frame, 6), replicas, ...(says === undefined ? {} : { says }) } }
}

function writeWhole(frame: Uint8Array, at: number, value: number): void {
  frame[at] = value >>> 24
  frame[at + 1] = value >>> 16
  frame[at + 2] = value >>> 8
  frame[at + 3] = value
}

function readWhole(frame: Uint8Array, at: number): number {
  return (((frame[at] ?? 0) << 24) | ((frame[at + 1] ?? 0) << 16) | ((frame[at + 2] ?? 0) << 8) | (frame[at + 3] ?? 0)) >>> 0
}
