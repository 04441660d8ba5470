// What the container runtime says it has of pods, by its CRI, and the word by which one of them is ended. Sandboxes that are ready and
// containers that are not over are told with the uid of their pod; what kubelet's own label does not name is told without, so that it
// belongs to nobody. A pod's own annotations stand on its sandbox alone.
import { tolerateGate } from '../core/gate.ts'
import type { ContainerSeen } from '../core/mounts.ts'
import type { Ms } from '../core/model.ts'
import type { Clock } from '../edge/clock.ts'
import { askGrpc } from './grpc.ts'
import type { ByteStream, RuntimeAnswer } from './host.ts'
import { mapOf, messagesOf, readMessage, textField, textOf, wholeOf, type Message } from './protobuf.ts'

/** `connect` makes a stream of its own for each question, within the span. */
export async function listContainers(connect: (span: Ms) => Promise<ByteStream>, clock: Clock, span: Ms): Promise<RuntimeAnswer> {
  const until = clock.now() + span
  try {
    const [sandboxes, containers] = await Promise.all([list('ListPodSandbox', sandboxOf), list('ListContainers', containerOf)])
    if ('failed' in sandboxes) return sandboxes
    if ('failed' in containers) return containers
    const tolerate = new Set(sandboxes.filter(({ tolerates, pod }) => tolerates === true && pod !== '').map(({ pod }) => pod))
    return [...containers.map((one): ContainerSeen => (tolerate.has(one.pod) ? { ...one, tolerates: true } : one)), ...sandboxes]
  } catch (error) {
    return { failed: String(error).slice(0, 300) } // nobody listens there: whoever asked says that he does not know
  }

  async function list(method: string, read: (item: Message) => ContainerSeen | 'over' | undefined): Promise<RuntimeAnswer> {
    const stream = await connect(span)
    const answer = await askGrpc(stream, clock, { path: `/runtime.v1.RuntimeService/${method}`, message: new Uint8Array() }, Math.max(1, until - clock.now()))
    if ('failed' in answer) return { failed: `${method}: ${answer.failed}` }
    const message = readMessage(answer.message)
    const items = message === undefined ? undefined : messagesOf(message, 1)?.map(read)
    // One that cannot be read could be the one that matters.
    if (items === undefined || items.includes(undefined)) return { failed: `${method}: an answer that cannot be read` }
    return items.filter((item) => item !== undefined && item !== 'over')
  }
}

/** Undefined: it answers. */
export async function askRuntime(connect: (span: Ms) => Promise<ByteStream>, clock: Clock, span: Ms): Promise<string | undefined> {
  const until = clock.now() + span
  try {
    const answer = await askGrpc(await connect(span), clock, { path: '/runtime.v1.RuntimeService/Version', message: new Uint8Array() }, Math.max(1, until - clock.now()))
    return 'failed' in answer ? answer.failed : undefined
  } catch (error) {
    return String(error).slice(0, 300) // nobody listens there
  }
}

/** {1 id}; a container's own has a grace in seconds beside it, which is none here: SIGKILL at once. */
export async function stopContainer(connect: (span: Ms) => Promise<ByteStream>, clock: Clock, { id, sandbox }: ContainerSeen, span: Ms): Promise<string | undefined> {
  const until = clock.now() + span
  const method = sandbox === true ? 'StopPodSandbox' : 'StopContainer'
  try {
    const stream = await connect(span)
    const answer = await askGrpc(stream, clock, { path: `/runtime.v1.RuntimeService/${method}`, message: textField(1, id) }, Math.max(1, until - clock.now()))
    return 'failed' in answer ? `${method}: ${answer.failed}` : undefined
  } catch (error) {
    return String(error).slice(0, 300) // nobody listens there
  }
}

const sandboxReady = 0
const containerOver = 2

/** {1 id, 2 metadata {1 name, 2 uid, 3 namespace}, 3 state, 4 created_at, 6 annotations}. */
function sandboxOf(item: Message): ContainerSeen | 'over' | undefined {
  const metadata = messagesOf(item, 2)?.at(-1)
  const annotations = mapOf(item, 6)
  if (metadata === undefined || annotations === undefined || textOf(item, 1) === '') return undefined
  if (wholeOf(item, 3) !== sandboxReady) return 'over'
  return { id: textOf(item, 1), name: `${textOf(metadata, 3)}/${textOf(metadata, 1)}`, pod: textOf(metadata, 2), sandbox: true, ...madeAt(item, 4), ...(annotations[tolerateGate] === 'true' ? { tolerates: true } : {}) }
}

/** {1 id, 3 metadata {1 name}, 6 state, 7 created_at, 8 labels}. Created, running or in a state that the runtime itself does not know: not over. */
function containerOf(item: Message): ContainerSeen | 'over' | undefined {
  const metadata = messagesOf(item, 3)?.at(-1)
  const labels = mapOf(item, 8)
  if (metadata === undefined || labels === undefined || textOf(item, 1) === '') return undefined
  if (wholeOf(item, 6) === containerOver) return 'over'
  const of = `${labels['io.kubernetes.pod.namespace'] ?? ''}/${labels['io.kubernetes.pod.name'] ?? ''}`
  return { id: textOf(item, 1), name: `${of} ${textOf(metadata, 1)}`, pod: labels['io.kubernetes.pod.uid'] ?? '', ...madeAt(item, 7) }
}

/** In nanoseconds since the epoch. */
function madeAt(item: Message, field: number): { readonly since?: number } {
  const made = wholeOf(item, field)
  return made > 0 ? { since: made / 1_000_000 } : {}
}
