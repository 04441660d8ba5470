// How words look on the wire. The two that fly thousands of times a second, beat and permit, are a few bytes; all others are
// JSON, which begins with a brace and so tells itself apart. What came from outside is judged here and nowhere else:
// a frame is a word, or a word this version does not know (ignored, so that neighbours of the next minor version can
// speak), or garbage with the reason. Bytes and fields beyond the known ones are ignored for the same reason.
import type {
  AgentWord, Answer, Beat, BootEnd, Check, CleanReport, GateState, GateWord, Goodbye, Leftover, PeerWord, Permit, Refused, ReplicaWord, Welcome, Whisper, WhisperAnswer, Witness,
} from './beat.ts'

/** Of what is not whole yet a link keeps so much, and a replica has five thousand links. A full list of leftovers must fit. */
export const frameLimit = 65_536

export type Read<W> = { readonly word: W } | { readonly unknown: string } | { readonly garbage: string }

export function frameOf(word: AgentWord | ReplicaWord | PeerWord): Uint8Array {
  if (word.say === 'beat') return beatFrame(word)
  if (word.say === 'permit') return permitFrame(word)
  return utf8.encode(JSON.stringify(word))
}

/** As many frames as the list takes, one after the other on one link. A name that kubelet gives no folder is left out: nothing
 *  on the node bears it, and whoever may annotate a pod could make a frame that no link carries. */
export function checkFrames(pods: readonly string[], stop = false): readonly Uint8Array[] {
  const known = pods.filter((pod) => podFolder.test(pod))
  const frames: Uint8Array[] = []
  for (let at = 0; at === 0 || at < known.length; at += podsAFrame) {
    frames.push(frameOf({ say: 'check', pods: known.slice(at, at + podsAFrame), ...(at + podsAFrame < known.length ? { more: true } : stop ? { stop } : {}) }))
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

/** A whisper fits one packet on any network. */
const whisperLimit = 1_000
const utf8 = new TextEncoder()
const strictUtf8 = new TextDecoder('utf-8', { fatal: true })

const beatKind = 1
const permitKind = 2
const brace = 0x7b

const kubeletWords = ['unknown', 'ok', 'ill'] as const
const gateStates = ['off', 'shut', 'open', 'absent'] as const satisfies readonly GateState[]

/** kind, kubelet, count (4), and the gate where there is one to tell of, counted from 1. */
function beatFrame(beat: Beat): Uint8Array {
  const frame = new Uint8Array(beat.gate === undefined ? beatHead : beatHead + 1)
  frame[0] = beatKind
  frame[1] = kubeletWords.indexOf(beat.kubelet)
  writeWhole(frame, 2, beat.count)
  if (beat.gate !== undefined) frame[beatHead] = gateStates.indexOf(beat.gate) + 1
  return frame
}

const beatHead = 6

function readBeat(frame: Uint8Array): Read<Beat> {
  if (frame.length < beatHead) return { garbage: `a beat of ${frame.length} bytes` }
  const kubelet = kubeletWords[frame[1] ?? 0]
  // A state that this version does not know is one of a newer agent: its beat counts as ever.
  const gate = gateStates[(frame[beatHead] ?? 0) - 1]
  if (kubelet === undefined) return { garbage: `a beat with kubelet word ${frame[1]}` }
  return { word: { say: 'beat', count: readWhole(frame, 2), kubelet, ...(gate === undefined ? {} : { gate }) } }
}

/** kind, flags, count (4), span (4), then each replica's address with its length before it, counted by one byte. */
function permitFrame(permit: Permit): Uint8Array {
  const addresses = permit.replicas.slice(0, mostReplicas).map((address) => utf8.encode(address.slice(0, longestAddress)))
  const frame = new Uint8Array(addresses.reduce((size, address) => size + 1 + address.length, permitHead))
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
  return { word: { say: 'permit', count: readWhole(frame, 2), leads: frame[1] === 1, span: readWhole(frame, 6), replicas } }
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

/** What a JSON word holds, and the first thing found wrong with it. */
interface Fields {
  readonly of: Readonly<Record<string, unknown>>
  fault?: string
}

function readJson<W>(frame: Uint8Array, wordOf: (say: string, fields: Fields) => W | undefined, limit = frameLimit): Read<W> {
  if (frame.length > limit) return { garbage: `a frame of ${frame.length} bytes, the limit is ${limit}` }
  if (frame.length === 0) return { garbage: 'an empty frame' }
  if (frame[0] !== brace) return { unknown: `kind ${frame[0]}` }
  const parsed = parsedJson(frame)
  if (parsed === undefined) return { garbage: 'neither a known kind nor JSON' }
  const fields: Fields = { of: parsed }
  const say = text(fields, 'say')
  const word = fields.fault === undefined ? wordOf(say, fields) : undefined
  if (fields.fault !== undefined) return { garbage: `${say === '' ? 'word' : say}: ${fields.fault}` }
  return word === undefined ? { unknown: say } : { word }
}

function parsedJson(frame: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  const json = decoded(frame)
  if (json === undefined) return undefined
  try {
    const value: unknown = JSON.parse(json)
    return isFields(value) ? value : undefined
  } catch {
    return undefined // the caller says that it is garbage
  }
}

function decoded(bytes: Uint8Array): string | undefined {
  try {
    return strictUtf8.decode(bytes)
  } catch {
    return undefined // the caller says that it is garbage
  }
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
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

function check(fields: Fields): Check {
  const pods = list(fields, 'pods', podsAFrame).map((pod) => (typeof pod === 'string' && pod.length <= 64 ? pod : wrong(fields, 'pods', 'uids', '')))
  return { say: 'check', pods, ...(fields.of['more'] === true ? { more: true } : {}), ...(fields.of['stop'] === true ? { stop: true } : {}) }
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
    path: text(fields, 'path', 4_096), ...maybeText(fields, 'pod'), ...maybeText(fields, 'volume'), ...maybeText(fields, 'driver'),
  }
  if (fields.fault !== undefined) report.fault ??= `leftovers: ${fields.fault}`
  return read
}

function text(fields: Fields, name: string, most = 256): string {
  const value = fields.of[name]
  return typeof value === 'string' && value.length <= most ? value : wrong(fields, name, `a text of at most ${most} characters`, '')
}

function maybeText<N extends string>(fields: Fields, name: N): { readonly [K in N]?: string } {
  // A computed key loses its name to the compiler; it is the one given.
  return fields.of[name] === undefined ? {} : { [name]: text(fields, name) } as { readonly [K in N]?: string }
}

function flag(fields: Fields, name: string): boolean {
  const value = fields.of[name]
  return typeof value === 'boolean' ? value : wrong(fields, name, 'yes or no', false)
}

function whole(fields: Fields, name: string, most = Number.MAX_SAFE_INTEGER): number {
  const value = fields.of[name]
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= most ? value : wrong(fields, name, `a whole number up to ${most}`, 0)
}

function oneOf<const T extends string>(fields: Fields, name: string, words: readonly [T, ...T[]]): T {
  return words.find((word) => word === fields.of[name]) ?? wrong(fields, name, `one of ${words.join(', ')}`, words[0])
}

/** A word that this version does not know is as good as none. */
function maybeOneOf<N extends string, const T extends string>(fields: Fields, name: N, words: readonly T[]): { readonly [K in N]?: T } {
  const word = words.find((one) => one === fields.of[name])
  // A computed key loses its name to the compiler; it is the one given.
  return word === undefined ? {} : { [name]: word } as { readonly [K in N]?: T }
}

function list(fields: Fields, name: string, most: number): readonly unknown[] {
  const value = fields.of[name]
  return Array.isArray(value) && value.length <= most ? value : wrong(fields, name, `a list of at most ${most}`, [])
}

function version(fields: Fields): 1 {
  return fields.of['version'] === 1 ? 1 : wrong(fields, 'version', '1', 1)
}

/** The stand-in is never seen: a word with a fault is garbage. */
function wrong<T>(fields: Fields, name: string, wanted: string, standIn: T): T {
  fields.fault ??= `${name} is not ${wanted}`
  return standIn
}
