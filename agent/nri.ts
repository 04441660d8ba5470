// The gate as the runtime sees it: an NRI plugin, by the wire protocol itself. The runtime asks it before each sandbox and each container;
// it answers at once and from memory, because a plugin that is late (2 s) or gone is dropped and pods run.
//
// Refused in RunPodSandbox: the pod waits in Pending, our sentence stands in its Event, kubelet tries again. And once more when a
// container's creation is checked (ValidateContainerAdjustment), which closes the hole of a sandbox that passed while the plugin was away,
// late or dying. Never in StartContainer: that makes a crash loop. Runtimes whose NRI knows no such check are refused at CreateContainer.
import type { Admission, PodAsked } from '../core/gate.ts'
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import type { ByteStream } from './host.ts'
import { bytesOf, joined, mapOf, readMessage, textField, textOf, wholeField, wholeOf, type Message } from './protobuf.ts'
import { callBody, piecesOf, pluginService, readCall, readFrames, readReply, replyBody, runtimeService, type Call, type Frame, type Reply } from './ttrpc.ts'

export interface NriOptions {
  readonly clock: Clock
  readonly log: Log
  /** Two digits, by which the runtime orders its plugins. */
  readonly index?: string
  /** Asked within a call of the runtime: no I/O, no waiting. */
  judge(pod: PodAsked | undefined): Admission
  /** The runtime asks from now on. */
  serving(runtime: string): void
  /** Once; nothing is asked any more. */
  ended(reason: string): void
}

/** The runtime gives up on a plugin that registers for longer. */
const registerWithin: Ms = 5_000
const name = 'holdfast'
export const usualIndex = '05'
/** The newest NRI whose calls are known here. */
const spoken = 'v0.12.0'

/** Numbers of the protocol: an event's bit is the one below its number. */
const events = { runPodSandbox: 1, createContainer: 4, validate: 14 } as const
const bit = (event: number) => 2 ** (event - 1)
/** The first versions that check a container's creation. An older one takes a mask with that bit for a fault. NRI tells its own only since
 *  it is newer than that. */
const validatesSince: Readonly<Record<string, readonly [number, number]>> = { nri: [0, 10], containerd: [2, 2], 'cri-o': [1, 34] }

/** FAILED_PRECONDITION: a veto. UNIMPLEMENTED makes the runtime ask in the older way. */
const vetoed = 9
const unimplemented = 12
const unreadable = 3

export function speakNri(stream: ByteStream, { clock, log, index = usualIndex, judge, serving, ended }: NriOptions): { close(reason: string): void } {
  let over = false
  let runtime = ''
  const frames = readFrames(take)
  const late = clock.after(registerWithin, () => end('not registered in time'))
  stream.listen({
    bytes(bytes) {
      if (over) return
      const fault = frames.feed(bytes)
      if (fault !== undefined) end(`what the runtime says cannot be read: ${fault}`)
    },
    closed: (reason) => end(reason),
  })
  const registration = joined([textField(1, name), textField(2, index), textField(3, spoken)])
  send({ connection: runtimeService, stream: 1, type: 'request', body: callBody({ service: 'nri.pkg.api.v1alpha1.Runtime', method: 'RegisterPlugin', payload: registration }, registerWithin) })
  return { close: (reason) => end(reason) }

  function end(reason: string): void {
    if (over) return
    over = true
    late()
    stream.close()
    ended(reason)
  }

  function send(frame: Frame): void {
    for (const piece of piecesOf(frame)) stream.send(piece)
  }

  function take(frame: Frame): void {
    if (over) return
    if (frame.connection === runtimeService) return registered(frame)
    if (frame.type === 'response') return // we ask nothing there
    const call = readCall(frame.body)
    // A call that cannot be read might be about any pod: an error other than `unimplemented` is a veto.
    const reply = call === undefined ? refusal(unreadable, 'holdfast: this call cannot be read') : answer(call)
    send({ connection: pluginService, stream: frame.stream, type: 'response', body: replyBody(reply) })
  }

  function registered({ type, body }: Frame): void {
    if (type === 'request') return // nothing is offered there
    const reply = readReply(body)
    if (reply?.ok !== true) end(`not registered: ${reply === undefined ? 'an answer that cannot be read' : reply.message.slice(0, 300)}`)
  }

  function answer(call: Call): Reply {
    const message = readMessage(call.payload)
    switch (call.method) {
      case 'Configure':
        return configure(message)
      case 'Synchronize':
        return synchronize(message)
      case 'RunPodSandbox':
        return veto(message, 1)
      case 'CreateContainer':
        return veto(message, 1)
      case 'StateChange': // NRI before 0.12 tells all but a container's creation so
        return message !== undefined && wholeOf(message, 1) !== events.runPodSandbox ? allowed : veto(message, 2)
      case 'ValidateContainerAdjustment':
        return validate(message)
      case 'Shutdown':
        log.info({ runtime }, 'the runtime asks its plugins to end')
        return allowed
      default: // of a newer NRI, or one that we did not ask for: whatever can be asked in another way must not be allowed here
        return refusal(unimplemented, 'holdfast: not known')
    }
  }

  function configure(message: Message | undefined): Reply {
    if (message === undefined) return refusal(unreadable, 'holdfast: the configuration cannot be read')
    runtime = `${textOf(message, 2)} ${textOf(message, 3)}`.trim().slice(0, 100)
    const validates = since('nri', textOf(message, 6)) || since(textOf(message, 2), textOf(message, 3))
    const second = validates ? events.validate : events.createContainer
    return { ok: true, payload: wholeField(2, bit(events.runPodSandbox) + bit(second)) }
  }

  /** What runs already is the clean report's business. A list in parts is to be acknowledged part by part. */
  function synchronize(message: Message | undefined): Reply {
    if (message === undefined) return refusal(unreadable, 'holdfast: the list of pods cannot be read')
    const more = wholeOf(message, 3) !== 0
    if (!more) {
      late()
      serving(runtime)
    }
    return more ? { ok: true, payload: wholeField(2, 1) } : allowed
  }

  function veto(message: Message | undefined, field: number): Reply {
    const admission = judge(podOf(message, field))
    return admission.admit ? allowed : refusal(vetoed, admission.reason)
  }

  /** Here a refusal is a successful answer {1 reject, 2 reason}. */
  function validate(message: Message | undefined): Reply {
    const admission = judge(podOf(message, 1))
    return admission.admit ? allowed : { ok: true, payload: joined([wholeField(1, 1), textField(2, admission.reason)]) }
  }
}

const allowed: Reply = { ok: true, payload: new Uint8Array() }

function refusal(code: number, message: string): Reply {
  return { ok: false, code, message }
}

function since(program: string, version: string): boolean {
  const first = validatesSince[program.toLowerCase()]
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? []
  if (first === undefined || major === undefined || minor === undefined) return false
  return Number(major) > first[0] || (Number(major) === first[0] && Number(minor) >= first[1])
}

/** PodSandbox {2 name, 3 uid, 4 namespace, 6 annotations}. Undefined: it cannot be read, or there is none. */
function podOf(message: Message | undefined, field: number): PodAsked | undefined {
  const bytes = message === undefined ? undefined : bytesOf(message, field)
  const pod = bytes === undefined ? undefined : readMessage(bytes)
  const annotations = pod === undefined ? undefined : mapOf(pod, 6)
  if (pod === undefined || annotations === undefined) return undefined
  return { name: textOf(pod, 2), uid: textOf(pod, 3), namespace: textOf(pod, 4), annotations }
}
