// How words look on the wire. The two that fly thousands of times a second, beat and permit, are a few bytes; all others are
// JSON, which begins with a brace and so tells itself apart. What came from outside is judged here and nowhere else:
// a frame is a word, or a word this version does not know (ignored, so that neighbours of the next minor version can
// speak), or garbage with the reason. Bytes and fields beyond the known ones are ignored for the same reason.
import type {
  AgentWord, Answer, Beat, BootEnd, Check, CleanReport, GateState, GateWord, Goodbye, Leftover, MemberAnswer, MemberQuestion, NodeBoot, NodeKey, PeerWord, Permit, PermitState, Pressure, Refused,
  ReplicaWord, RevokedWord, RevokesWord, SelfStopWord, StorageWord, WatchdogWord, Welcome, Whisper, WhisperAnswer, Witness,
} from './beat.ts'
import { decoded, flag, frameLimit, isFields, list, maybeOneOf, maybeText, maybeWhole, oneOf, readJson, text, version, whole, wrong, type Fields, type Read } from './frame-json.ts'
import type { GiveUp, MemberSays } from './self-stop.ts'
import type { Vitals } from './vitals.ts'
import type { Membership } from './watchdog.ts'

export { frameLimit, type Read } from './frame-json.ts'

export function frameOf(word: AgentWord | ReplicaWord | PeerWord): Uint8Array {
  if (word.say === 'beat') return beatFrame(word)
  if (word.say === 'permit') return permitFrame(word)
  return utf8.encode(JSON.stringify(word))
}

/** As many frames as the word takes, one after the other on one link: who is the only node of its zone is a member of thousands, and all of
 *  them may lose their power at once. */
export function framesOf(word: AgentWord | ReplicaWord): readonly Uint8Array[] {
  if (word.say === 'keys') return inParts(word.keys).map((keys) => frameOf({ ...word, keys }))
  if (word.say !== 'revoked' && word.say !== 'revokes') return [frameOf(word)]
  const parts = inParts(word.boots)
  return parts.map((boots, index) => frameOf({ ...word, boots, ...(index < parts.length - 1 ? { more: true } : {}) }))
}

function inParts<T extends NodeBoot | NodeKey>(all: readonly T[]): readonly (readonly T[])[] {
  const parts: T[][] = [[]]
  let size = 0
  for (const one of all) {
    const more = utf8.encode(JSON.stringify(one)).length + 1
    const last = parts.at(-1)
    if (last !== undefined && last.length < bootsAFrame && size + more <= longestPart) {
      last.push(one)
      size += more
    } else {
      parts.push([one])
      size = more
    }
  }
  return parts
}

/** As many frames as the list takes, one after the other on one link. A name that kubelet gives no folder is left out: nothing
 *  on the node bears it, and whoever may annotate a pod could make a frame that no link carries. */
export function checkFrames(pods: readonly string[], wish: Pick<Check, 'stop' | 'cleanUp'> = {}): readonly Uint8Array[] {
  const known = pods.filter((pod) => podFolder.test(pod))
  const frames: Uint8Array[] = []
  for (let at = 0; at === 0 || at < known.length; at += podsAFrame) {
    frames.push(frameOf({ say: 'check', pods: known.slice(at, at + podsAFrame), ...(at + podsAFrame < known.length ? { more: true } : wish) }))
  }
  return frames
}

export function readAgentWord(frame: Uint8Array): Read<AgentWord> {
  return frame[0] === beatKind ? readBeat(frame) : readJson(frame, agentWord)
}

export function readReplicaWord(frame: Uint8Array): Read<ReplicaWord> {
  return frame[0] === permitKind ? readPermit(frame) : readJson(frame, replicaWord)
}

export function readPeerWord(frame: Uint8Array): Read<PeerWord> {
  return readJson(frame, peerWord)
}

/** The first word on a link that was accepted: an agent's or another replica's. */
export function readFirstWord(frame: Uint8Array): Read<AgentWord | PeerWord> {
  const peer = readPeerWord(frame)
  return 'word' in peer && peer.word.say === 'hello-replica' ? peer : readAgentWord(frame)
}

export function whisperOf(whisper: Whisper | WhisperAnswer): Uint8Array {
  return utf8.encode(JSON.stringify({ say: 'boot' in whisper ? 'whispered' : 'whisper', ...whisper }))
}

export function readWhisper(frame: Uint8Array): Read<Whisper> {
  return readJson(frame, (say, fields) => (say === 'whisper' ? { replica: text(fields, 'replica'), nonce: text(fields, 'nonce') } : undefined), whisperLimit)
}

export function readWhisperAnswer(frame: Uint8Array): Read<WhisperAnswer> {
  return readJson(frame, (say, fields) => say !== 'whispered' ? undefined : {
    nonce: text(fields, 'nonce'), boot: text(fields, 'boot'), ...maybeText(fields, 'seal'),
  }, whisperLimit)
}

export function memberFrame(word: MemberQuestion | MemberAnswer): Uint8Array {
  return utf8.encode(JSON.stringify({ say: 'node' in word ? 'may-run' : 'member', ...word }))
}

export function readMemberQuestion(frame: Uint8Array): Read<MemberQuestion> {
  return readJson(frame, (say, fields) => (say === 'may-run' ? { nonce: text(fields, 'nonce'), ...nodeBoot(fields), ...maybeText(fields, 'member') } : undefined), whisperLimit)
}

export function readMemberAnswer(frame: Uint8Array): Read<MemberAnswer> {
  return readJson(frame, (say, fields) => (say !== 'member' ? undefined : {
    nonce: text(fields, 'nonce'), says: oneOf(fields, 'says', memberWords), ...(fields.of['seals'] === undefined ? {} : { seals: names(fields, 'seals', mostSeals) }),
  }), whisperLimit)
}

/** Of a member: a key of each replica, and of some that were. */
export const mostSeals = 6
/** A whisper fits one packet on any network. */
const whisperLimit = 1_000
const utf8 = new TextEncoder()

const beatKind = 1
const permitKind = 2

const kubeletWords = ['unknown', 'ok', 'ill'] as const
const gateStates = ['off', 'shut', 'open', 'absent'] as const satisfies readonly GateState[]
const storageWords = ['unknown', 'reached', 'unreached'] as const satisfies readonly StorageWord[]
const permitStates = ['off', 'running', 'gave up'] as const satisfies readonly PermitState[]
const memberWords = ['unknown', 'permitted', 'revoked'] as const satisfies readonly MemberSays[]

/** kind, kubelet, count (4), then gate, permit, runtime, pressure (3), storage and vitals (5) as far as there is something to tell, each counted from 1. */
function beatFrame({ kubelet, count, gate, permit, runtime, pressure, storage, vitals = {} }: Beat): Uint8Array {
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

function vitalsOf(bytes: Uint8Array): Vitals | undefined {
  const told = vitalScales.flatMap(({ of, least, step }, index) => ((bytes[index] ?? 0) === 0 ? [] : [[of, Math.round(((bytes[index] ?? 0) - 1) * step * 10) / 10 + least] as const]))
  return told.length === 0 ? undefined : Object.fromEntries(told)
}

function readBeat(frame: Uint8Array): Read<Beat> {
  if (frame.length < beatHead) return { garbage: `a beat of ${frame.length} bytes` }
  const kubelet = kubeletWords[frame[1] ?? 0]
  // A state that this version does not know is one of a newer agent: its beat counts as ever.
  const gate = gateStates[(frame[beatHead] ?? 0) - 1]
  const permit = permitStates[(frame[beatHead + 1] ?? 0) - 1]
  const runtime = kubeletWords[(frame[beatHead + 2] ?? 0) - 1]
  const pressure = pressureOf(frame.subarray(beatHead + 3, beatHead + 6))
  const storage = storageWords[(frame[beatHead + 6] ?? 0) - 1]
  const vitals = vitalsOf(frame.subarray(beatHead + 7, beatHead + 12))
  if (kubelet === undefined) return { garbage: `a beat with kubelet word ${frame[1]}` }
  return { word: {
    say: 'beat', count: readWhole(frame, 2), kubelet, ...(gate === undefined ? {} : { gate }), ...(permit === undefined ? {} : { permit }),
    ...(runtime === undefined ? {} : { runtime }), ...(pressure === undefined ? {} : { pressure }), ...(storage === undefined ? {} : { storage }), ...(vitals === undefined ? {} : { vitals }),
  } }
}

/** All three or none: a share that is none is one of a later version. */
function pressureOf([cpu = 0, memory = 0, io = 0]: Uint8Array): Pressure | undefined {
  return [cpu, memory, io].every((share) => share >= 1 && share <= 101) ? { cpu: cpu - 1, memory: memory - 1, io: io - 1 } : undefined
}

/** kind, flags, count (4), span (4), then each replica's address with its length before it, counted by one byte; then what it says of the
 *  permit, counted from 1. */
function permitFrame(permit: Permit): Uint8Array {
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

const permitHead = 11
export const mostReplicas = 16
/** In characters of ASCII: an address is `host:port`. */
const longestAddress = 255

function readPermit(frame: Uint8Array): Read<Permit> {
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
  const says = memberWords[(frame[at] ?? 0) - 1]
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

function agentWord(say: string, fields: Fields): AgentWord | undefined {
  switch (say) {
    case 'hello':
      return {
        say, version: version(fields), token: text(fields, 'token', longestToken), agent: text(fields, 'agent'), boot: text(fields, 'boot'),
        uptime: whole(fields, 'uptime'), machine: text(fields, 'machine'), whisperPort: whole(fields, 'whisperPort', 65_535),
        ...maybeOneOf(fields, 'before', bootEnds),
      }
    case 'clean':
      return { say, report: cleanReport(fields) }
    case 'goodbye':
      return { say, why: oneOf(fields, 'why', goodbyes) }
    case 'answer':
      return { say, nonce: text(fields, 'nonce'), boot: text(fields, 'boot'), ...maybeText(fields, 'seal') } satisfies Answer
    case 'witness':
      return { say, ...hearing(fields) } satisfies Witness
    case 'watchdog':
      return watchdogWord(fields)
    case 'revokes':
      return { say, ...bootList(fields) } satisfies RevokesWord
    default: // not a union: what the other end said
      return undefined
  }
}

function replicaWord(say: string, fields: Fields): ReplicaWord | undefined {
  switch (say) {
    case 'welcome':
      return welcome(fields)
    case 'refused':
      return refused(fields)
    case 'challenge':
      return { say, nonce: text(fields, 'nonce') }
    case 'ask':
      return { say, id: whole(fields, 'id'), node: text(fields, 'node'), address: text(fields, 'address'), nonce: text(fields, 'nonce') }
    case 'check':
      return check(fields)
    case 'gate':
      return gateWord(fields)
    case 'self-stop':
      return selfStopWord(fields)
    case 'revoked':
      return revokedWord(fields)
    case 'keys':
      return { say, keys: nodeKeys(fields) }
    case 'disarm':
      return { say, boot: text(fields, 'boot'), disarm: whole(fields, 'disarm') }
    default: // not a union: what the other end said
      return undefined
  }
}

function peerWord(say: string, fields: Fields): PeerWord | undefined {
  switch (say) {
    case 'hello-replica':
      return { say, version: version(fields), token: text(fields, 'token', longestToken), replica: text(fields, 'replica') }
    case 'welcome':
      return welcome(fields)
    case 'refused':
      return refused(fields)
    case 'hears':
      return { say, id: whole(fields, 'id'), node: text(fields, 'node') }
    case 'heard':
      return { say, id: whole(fields, 'id'), word: oneOf(fields, 'word', hearings), ...maybeText(fields, 'boot') }
    default: // not a union: what the other end said
      return undefined
  }
}

const goodbyes = ['restart', 'reboot', 'shutdown'] as const satisfies readonly Goodbye[]
const hearings = ['hears', 'deaf'] as const
const states = ['clean', 'dirty', 'unknown'] as const
const leftoverKinds = ['mount', 'staging', 'pod directory', 'block volume', 'container', 'leaked mount', 'loop device'] as const satisfies readonly Leftover['kind'][]
const bootEnds = ['shut down', 'cut off'] as const satisfies readonly BootEnd[]

const longestToken = 16_384
/** A uid, or a static pod's hash. */
const podFolder = /^[\w-]{1,60}$/
/** With names as long as that they fit a frame. */
export const podsAFrame = 1_000
/** In all frames of a list. Kubelet runs some hundred pods, but those that are over stay bound to their node and keep their
 *  folder until their objects go: the API server has 12,500 of them before it collects any, and all may be of one node. */
export const mostPods = 15_000
/** What is left matters, not how much of it: the rest is found when these are gone. */
export const mostLeftovers = 100

function welcome(fields: Fields): Welcome {
  return {
    say: 'welcome', node: text(fields, 'node'), replica: text(fields, 'replica'), key: text(fields, 'key'), ...(fields.of['gates'] === true ? { gates: true } : {}),
  }
}

function gateWord(fields: Fields): GateWord {
  return {
    say: 'gate', boot: text(fields, 'boot'), accepted: flag(fields, 'accepted'), reason: text(fields, 'reason', 1_024),
    tolerating: list(fields, 'tolerating', podsAFrame).map((pod) => (typeof pod === 'string' && pod.length <= 64 ? pod : wrong(fields, 'tolerating', 'uids', ''))),
  }
}

const giveUps = ['never', 'stop'] as const satisfies readonly GiveUp[]
/** A leader names ten; twice that, for one of the next version. */
const mostMembers = 20
const bootsAFrame = 200
/** Names come from outside, and what JSON makes of them is longer than they are. The rest of the word has room beside it. */
const longestPart = frameLimit - 4_096
/** In all parts of a list: twice the nodes of the largest cluster. */
export const mostRevoked = 10_000

function selfStopWord(fields: Fields): SelfStopWord {
  return {
    say: 'self-stop', node: text(fields, 'node'), giveUp: giveUps.find((word) => word === fields.of['giveUp']) ?? 'never',
    members: list(fields, 'members', mostMembers).map((address) => (typeof address === 'string' && address.length <= longestAddress ? address : wrong(fields, 'members', 'addresses', ''))),
    ...(fields.of['membership'] === undefined ? {} : { membership: membership(fields) }), ...maybeText(fields, 'key'),
  }
}

function membership(fields: Fields): Membership {
  const of = fields.of['membership']
  const each: Fields = { of: isFields(of) ? of : {} }
  const read = { epoch: whole(each, 'epoch'), agents: names(each, 'agents', mostMembers), replicas: names(each, 'replicas', mostReplicas) }
  if (each.fault !== undefined) fields.fault ??= `membership: ${each.fault}`
  return read
}

function names(fields: Fields, name: string, most: number): readonly string[] {
  return list(fields, name, most).map((one) => (typeof one === 'string' && one.length <= 256 ? one : wrong(fields, name, 'names', '')))
}

/** What cannot be put on record as it was said would be written anew for ever. */
export const mostPanic = 1_000_000_000
/** The next number is one more, and must fit too. */
const mostEpoch = 2 ** 50

const watchdogStates = ['armed', 'unarmed'] as const
const machineKinds = ['real', 'virtual', 'unknown'] as const

function watchdogWord(fields: Fields): WatchdogWord {
  const panic = fields.of['panic']
  return {
    say: 'watchdog', state: oneOf(fields, 'state', watchdogStates), identity: text(fields, 'identity', 64), timeout: whole(fields, 'timeout', 86_400_000),
    panic: typeof panic === 'number' && Number.isInteger(panic) && Math.abs(panic) <= mostPanic ? panic : wrong(fields, 'panic', `a whole number of at most ${mostPanic}`, 0), machine: oneOf(fields, 'machine', machineKinds),
    epoch: whole(fields, 'epoch', mostEpoch), ...maybeText(fields, 'why'), ...maybeWhole(fields, 'disarm'),
  }
}

function revokedWord(fields: Fields): RevokedWord {
  return { say: 'revoked', ...maybeWhole(fields, 'term'), ...bootList(fields) }
}

function nodeKeys(fields: Fields): readonly NodeKey[] {
  return list(fields, 'keys', bootsAFrame).map((of) => {
    const each: Fields = { of: isFields(of) ? of : {} }
    const read = { node: text(each, 'node'), key: text(each, 'key') }
    if (each.fault !== undefined) fields.fault ??= `keys: ${each.fault}`
    return read
  })
}

function bootList(fields: Fields): Pick<RevokesWord, 'boots' | 'more'> {
  const boots = list(fields, 'boots', bootsAFrame).map((of) => {
    const each: Fields = { of: isFields(of) ? of : {} }
    const read = nodeBoot(each)
    if (each.fault !== undefined) fields.fault ??= `boots: ${each.fault}`
    return read
  })
  return { boots, ...(fields.of['more'] === true ? { more: true } : {}) }
}

function nodeBoot(fields: Fields): NodeBoot {
  return { node: text(fields, 'node'), boot: text(fields, 'boot') }
}

function check(fields: Fields): Check {
  const pods = list(fields, 'pods', podsAFrame).map((pod) => (typeof pod === 'string' && pod.length <= 64 ? pod : wrong(fields, 'pods', 'uids', '')))
  return { say: 'check', pods, ...(fields.of['more'] === true ? { more: true } : {}), ...(fields.of['stop'] === true ? { stop: true } : {}), ...(fields.of['cleanUp'] === true ? { cleanUp: true } : {}) }
}

function refused(fields: Fields): Refused {
  return { say: 'refused', reason: text(fields, 'reason', 1_024) }
}

function hearing(fields: Fields): Omit<Witness, 'say'> {
  return { id: whole(fields, 'id'), word: oneOf(fields, 'word', hearings), ...maybeText(fields, 'boot'), ...maybeText(fields, 'seal') }
}

function cleanReport(fields: Fields): CleanReport {
  const of = fields.of['report']
  if (!isFields(of)) return wrong(fields, 'report', 'a report', { state: 'unknown', reason: '' })
  const report: Fields = { of }
  const read = reportOf(report)
  if (report.fault !== undefined) fields.fault ??= `report: ${report.fault}`
  return read
}

function reportOf(report: Fields): CleanReport {
  const state = oneOf(report, 'state', states)
  switch (state) {
    case 'clean':
      return { state }
    case 'unknown':
      return { state, reason: text(report, 'reason', 1_024) }
    case 'dirty':
      return { state, leftovers: list(report, 'leftovers', mostLeftovers).map((item) => leftover(report, item)) }
  }
}

function leftover(report: Fields, of: unknown): Leftover {
  const fields: Fields = { of: isFields(of) ? of : {} }
  const read: Leftover = {
    // What a newer agent finds that this version has no word for is left over all the same; its link must not end over that.
    kind: leftoverKinds.find((kind) => kind === text(fields, 'kind', 64)) ?? 'other',
    path: text(fields, 'path', 4_096), ...maybeText(fields, 'pod'), ...maybeText(fields, 'volume'), ...maybeText(fields, 'driver'), ...maybeText(fields, 'fault'),
  }
  if (fields.fault !== undefined) report.fault ??= `leftovers: ${fields.fault}`
  return read
}

