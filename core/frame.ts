// How words look on the wire. The two that fly thousands of times a second, beat and permit, are a few bytes; all others are
// JSON, which begins with a brace and so tells itself apart. What came from outside is judged here and nowhere else:
// a frame is a word, or a word this version does not know (ignored, so that neighbours of the next minor version can
// speak), or garbage with the reason. Bytes and fields beyond the known ones are ignored for the same reason.
import type {
  AgentWord, Answer, BootEnd, Check, CleanReport, CleanWord, GateWord, Goodbye, Leftover, MemberAnswer, MemberQuestion, NodeBoot, NodeKey, PeerWord, Places, Refused,
  ReplicaWord, RevokedWord, RevokesWord, SelfStopWord, WatchdogWord, Welcome, Whisper, WhisperAnswer, Witness,
} from './beat.ts'
import { beatFrame, beatKind, longestAddress, memberWords, mostReplicas, permitFrame, permitKind, readBeat, readPermit } from './frame-bytes.ts'
import { flag, frameLimit, isFields, list, maybeOneOf, maybeText, maybeWhole, oneOf, oneOfOr, readJson, text, version, whole, wrong, type Fields, type Read } from './frame-json.ts'
import type { GiveUp } from './self-stop.ts'
import type { Membership } from './watchdog.ts'

export { mostReplicas, permitAgain } from './frame-bytes.ts'
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
export function checkFrames(pods: readonly string[], wish: Pick<Check, 'stop' | 'cleanUp' | 'list'> = {}): readonly Uint8Array[] {
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
    nonce: text(fields, 'nonce'), says: oneOfOr(fields, 'says', memberWords, 'unknown'), ...(fields.of['seals'] === undefined ? {} : { seals: names(fields, 'seals', mostSeals) }),
  }), whisperLimit)
}

/** Of a member: a key of each replica, and of some that were. */
export const mostSeals = 6
/** A whisper fits one packet on any network. */
const whisperLimit = 1_000
const utf8 = new TextEncoder()

/** Of an agent that tells of them at all. */
function placesOf(fields: Fields): { readonly places?: Places } {
  const told = fields.of['places']
  if (told === undefined) return {}
  if (!isFields(told)) return wrong(fields, 'places', 'an object', {})
  const inner: Fields = { of: told }
  const places = { kubelet: text(inner, 'kubelet'), runtime: text(inner, 'runtime'), gate: text(inner, 'gate') }
  return inner.fault === undefined ? { places } : wrong(fields, 'places', `right: ${inner.fault}`, {})
}

function agentWord(say: string, fields: Fields): AgentWord | undefined {
  switch (say) {
    case 'hello':
      return {
        say, version: version(fields), token: text(fields, 'token', longestToken), agent: text(fields, 'agent'), boot: text(fields, 'boot'),
        uptime: whole(fields, 'uptime'), machine: text(fields, 'machine'), whisperPort: whole(fields, 'whisperPort', 65_535),
        ...maybeOneOf(fields, 'before', bootEnds), ...maybeText(fields, 'beforeBoot'), ...placesOf(fields),
      }
    case 'clean':
      return { say, report: cleanReport(fields), ...maybeText(fields, 'list') } satisfies CleanWord
    case 'goodbye':
      return { say, why: oneOfOr(fields, 'why', goodbyes, 'restart') }
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
const states = ['clean', 'dirty', 'unknown', 'of a later version'] as const
const leftoverKinds = ['mount', 'staging', 'pod directory', 'block volume', 'container', 'leaked mount', 'loop device'] as const satisfies readonly Leftover['kind'][]
const bootEnds = ['shut down', 'cut off'] as const satisfies readonly BootEnd[]

const longestToken = 16_384
/** The end of the year 9999: what is later cannot be written as people write an instant. */
const lastInstant = 253_402_300_799_999
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
    say: 'watchdog', state: oneOfOr(fields, 'state', watchdogStates, 'unarmed'), identity: text(fields, 'identity', 64), timeout: whole(fields, 'timeout', 86_400_000),
    panic: typeof panic === 'number' && Number.isInteger(panic) && Math.abs(panic) <= mostPanic ? panic : wrong(fields, 'panic', `a whole number of at most ${mostPanic}`, 0), machine: oneOfOr(fields, 'machine', machineKinds, 'unknown'),
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
  return { say: 'check', pods, ...(fields.of['more'] === true ? { more: true } : {}), ...(fields.of['stop'] === true ? { stop: true } : {}), ...(fields.of['cleanUp'] === true ? { cleanUp: true } : {}), ...maybeText(fields, 'list') }
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
  const state = oneOfOr(report, 'state', states, 'of a later version')
  switch (state) {
    case 'clean':
      return { state }
    case 'unknown':
      return { state, reason: text(report, 'reason', 1_024) }
    case 'of a later version':
      return { state: 'unknown', reason: 'its agent tells it in a word of a later version' }
    case 'dirty':
      return { state, leftovers: list(report, 'leftovers', mostLeftovers).map((item) => leftover(report, item)) }
  }
}

function leftover(report: Fields, of: unknown): Leftover {
  const fields: Fields = { of: isFields(of) ? of : {} }
  const read: Leftover = {
    // What a newer agent finds that this version has no word for is left over all the same; its link must not end over that.
    kind: leftoverKinds.find((kind) => kind === text(fields, 'kind', 64)) ?? 'other',
    path: text(fields, 'path', 4_096), ...maybeText(fields, 'pod'), ...maybeText(fields, 'volume'), ...maybeText(fields, 'driver'), ...maybeWhole(fields, 'since', lastInstant), ...maybeText(fields, 'fault'),
  }
  if (fields.fault !== undefined) report.fault ??= `leftovers: ${fields.fault}`
  return read
}

