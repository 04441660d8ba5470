// The runtime's end of NRI: it lets plugins in, asks them before a pod starts, by the bytes of the real protocol, and drops those that
// are late or gone.
//
// Kept as measured of containerd 2.3: Configure, then Synchronize, then the plugin is asked; a plugin that answers RunPodSandbox with an
// error refuses the pod; one that does not answer within two seconds, or goes, is dropped and the pod runs; a check of a container's
// creation that fails in any way refuses it; where a plugin is required and none is asked, only pods annotated for that start. Both
// generations of calls. Left out: that hooks run one at a time, adjustments, updates.
import type { ByteStream } from '../agent/host.ts'
import { bytesField, joined, readMessage, textField, textOf, wholeField, wholeOf } from '../agent/protobuf.ts'
import { callBody, piecesOf, pluginService, readCall, readFrames, readReply, replyBody, runtimeService, type Frame, type Reply } from '../agent/ttrpc.ts'
import { tolerateGate, type PodAsked } from '../core/gate.ts'
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'

export interface RuntimeNri {
  /** A plugin's connection, the plugin's end of it. */
  connect(): ByteStream
  /** Whether any plugin is asked now, or one is required. */
  asks(): boolean
  /** Why a pod may not start. Undefined: it may. */
  ask(pod: PodAsked): Promise<string | undefined>
  /** The runtime ends: every plugin loses its connection. */
  drop(): void
}

export interface NriRelease {
  readonly name: string
  readonly version: string
  /** Of NRI itself; told by newer ones alone. */
  readonly nri?: string
  /** How a pod's start is asked: as NRI before 0.12, or since. */
  readonly calls: 'state-change' | 'dedicated'
}

export const usualNri: NriRelease = { name: 'containerd', version: 'v2.3.7', nri: 'v0.12.0', calls: 'dedicated' }

const missing = 'validator "00-default-validator" rejected container adjustment, reason: validation error: required plugin "holdfast" not present'
const callWithin: Ms = 2_000
/** On one machine, through a socket. */
const onTheWay: Ms = 0.2
const events = { runPodSandbox: 1, createContainer: 4, validate: 14 } as const

interface Plugin {
  readonly ears: { bytes(bytes: Uint8Array): void; closed(reason: string): void }[]
  readonly waiting: Map<number, (reply: Reply | undefined) => void>
  calls: number
  mask: number
  asked: boolean
  open: boolean
}

export interface NriSetting {
  readonly release?: NriRelease
  /** `required_plugins`, and the annotation of pods that start without. */
  readonly required?: boolean
  readonly heard?: (bytes: Uint8Array) => void
}

export function createRuntimeNri(clock: Clock, { release = usualNri, required = false, heard }: NriSetting = {}): RuntimeNri {
  const plugins = new Set<Plugin>()
  return {
    connect,
    asks: () => required || asked(),
    async ask(pod) {
      for (const plugin of plugins) if (plugin.asked) {
        const refusal = await askOne(plugin, pod)
        if (refusal !== undefined) return refusal
      }
      // Looked for when a container is created: a plugin that was dropped while the pod's sandbox was asked for is missed, too.
      return required && !asked() && pod.annotations[tolerateGate] !== 'true' ? missing : undefined
    },
    drop() {
      for (const plugin of plugins) close(plugin, 'the runtime ended')
    },
  }

  function asked(): boolean {
    return [...plugins].some((plugin) => plugin.asked)
  }

  function connect(): ByteStream {
    const plugin: Plugin = { ears: [], waiting: new Map(), calls: 0, mask: 0, asked: false, open: true }
    plugins.add(plugin)
    const frames = readFrames((frame) => take(plugin, frame))
    return {
      send(bytes) {
        const sent = Uint8Array.from(bytes)
        clock.after(onTheWay, () => {
          if (!plugin.open) return
          heard?.(sent)
          if (frames.feed(sent) !== undefined) close(plugin, 'garbage')
        })
      },
      listen: (ears) => void plugin.ears.push(ears),
      close: () => clock.after(onTheWay, () => close(plugin, 'the plugin went')),
    }
  }

  function close(plugin: Plugin, reason: string): void {
    if (!plugin.open) return
    plugin.open = false
    plugin.asked = false
    plugins.delete(plugin)
    for (const end of plugin.waiting.values()) end(undefined)
    for (const { closed } of plugin.ears) closed(reason)
  }

  function take(plugin: Plugin, { connection, stream, type, body }: Frame): void {
    if (connection === pluginService && type === 'response') return plugin.waiting.get(stream)?.(readReply(body))
    if (connection !== runtimeService || type !== 'request') return
    const called = readCall(body)
    const registration = called?.method === 'RegisterPlugin' ? readMessage(called.payload) : undefined
    const good = registration !== undefined && textOf(registration, 1) !== '' && /^\d\d$/.test(textOf(registration, 2))
    send(plugin, { connection, stream, type: 'response', body: replyBody(good ? { ok: true, payload: new Uint8Array() } : { ok: false, code: 2, message: 'invalid plugin' }) })
    if (good) void begin(plugin)
  }

  async function begin(plugin: Plugin): Promise<void> {
    const configuration = joined([
      textField(2, release.name), textField(3, release.version), wholeField(4, 5_000), wholeField(5, callWithin), ...(release.nri === undefined ? [] : [textField(6, release.nri)]),
    ])
    const configured = await call(plugin, 'Configure', configuration)
    const answer = configured?.ok === true ? readMessage(configured.payload) : undefined
    plugin.mask = answer === undefined ? 0 : wholeOf(answer, 2)
    const synchronized = answer === undefined ? undefined : await call(plugin, 'Synchronize', new Uint8Array())
    if (synchronized?.ok !== true) return close(plugin, 'not configured')
    plugin.asked = true
  }

  async function askOne(plugin: Plugin, pod: PodAsked): Promise<string | undefined> {
    const sandbox = podBytes(pod)
    if (wants(plugin, events.runPodSandbox)) {
      const reply = release.calls === 'dedicated' ? await call(plugin, 'RunPodSandbox', bytesField(1, sandbox))
        : await call(plugin, 'StateChange', joined([wholeField(1, events.runPodSandbox), bytesField(2, sandbox)]))
      if (reply === undefined) return void close(plugin, 'no answer in time')
      if (!reply.ok) return `NRI RunPodSandbox failed: rpc error: code = Unknown desc = ${reply.message}`
    }
    if (wants(plugin, events.createContainer)) {
      const reply = await call(plugin, 'CreateContainer', bytesField(1, sandbox))
      if (reply === undefined) return void close(plugin, 'no answer in time')
      if (!reply.ok) return `failed to get NRI adjustment for container: ${reply.message}`
    }
    if (!wants(plugin, events.validate)) return undefined
    const reply = await call(plugin, 'ValidateContainerAdjustment', bytesField(1, sandbox))
    const verdict = reply?.ok === true ? readMessage(reply.payload) : undefined
    if (verdict === undefined) return 'validator plugin 05-holdfast failed'
    return wholeOf(verdict, 1) === 0 ? undefined : `rejected container adjustment, reason: ${textOf(verdict, 2)}`
  }

  function wants({ mask }: Plugin, event: number): boolean {
    return (mask & (1 << (event - 1))) !== 0
  }

  function call(plugin: Plugin, method: string, payload: Uint8Array): Promise<Reply | undefined> {
    if (!plugin.open) return Promise.resolve(undefined)
    plugin.calls += 1
    const stream = plugin.calls * 2 - 1
    return new Promise((resolve) => {
      const late = clock.after(callWithin, () => end(undefined))
      const end = (reply: Reply | undefined): void => {
        late()
        plugin.waiting.delete(stream)
        resolve(reply)
      }
      plugin.waiting.set(stream, end)
      send(plugin, { connection: pluginService, stream, type: 'request', body: callBody({ service: 'nri.pkg.api.v1alpha1.Plugin', method, payload }, callWithin) })
    })
  }

  function send(plugin: Plugin, frame: Frame): void {
    for (const piece of piecesOf(frame)) clock.after(onTheWay, () => { if (plugin.open) for (const { bytes } of plugin.ears) bytes(piece) })
  }
}

/** PodSandbox {1 id, 2 name, 3 uid, 4 namespace, 6 annotations}. */
export function podBytes({ name, uid, namespace, annotations }: PodAsked): Uint8Array {
  const entries = Object.entries(annotations).map(([key, value]) => bytesField(6, joined([textField(1, key), textField(2, value)])))
  return joined([textField(1, `sandbox-of-${uid}`), textField(2, name), textField(3, uid), textField(4, namespace), ...entries])
}
