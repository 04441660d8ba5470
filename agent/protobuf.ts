// Just enough of protobuf for two peers on this machine, the runtime's NRI and CRI: varints, lengths of bytes, and passing over the rest.
// What cannot be read is undefined, never half a message.

export type Value = bigint | Uint8Array
/** By field number, in the order they came. */
export type Message = ReadonlyMap<number, readonly Value[]>

/** No message of ours nests deeper or names more; a peer gone mad must not cost memory beyond its own bytes. */
const mostFields = 200_000

export function readMessage(bytes: Uint8Array): Message | undefined {
  const fields = new Map<number, Value[]>()
  let at = 0
  for (let count = 0; at < bytes.length; count += 1) {
    const key = readVarint(bytes, at)
    if (key === undefined || count >= mostFields) return undefined
    const number = Number(key.value >> 3n)
    const value = readValue(bytes, key.end, Number(key.value & 7n))
    if (number === 0 || value === undefined) return undefined
    const known = fields.get(number)
    if (known === undefined) fields.set(number, [value.value])
    else known.push(value.value)
    at = value.end
  }
  return fields
}

interface Reading<V> { readonly value: V; readonly end: number }

function readValue(bytes: Uint8Array, at: number, wire: number): Reading<Value> | undefined {
  switch (wire) {
    case 0:
      return readVarint(bytes, at)
    case 1:
      return slice(bytes, at, 8)
    case 2: {
      const length = readVarint(bytes, at)
      return length === undefined || length.value > BigInt(bytes.length) ? undefined : slice(bytes, length.end, Number(length.value))
    }
    case 5:
      return slice(bytes, at, 4)
    default: // groups are of a protobuf that neither peer speaks
      return undefined
  }
}

function slice(bytes: Uint8Array, at: number, length: number): Reading<Uint8Array> | undefined {
  return at + length > bytes.length ? undefined : { value: bytes.subarray(at, at + length), end: at + length }
}

function readVarint(bytes: Uint8Array, from: number): Reading<bigint> | undefined {
  let value = 0n
  for (let at = from; at < bytes.length && at < from + 10; at += 1) {
    const byte = bytes[at] ?? 0
    value |= BigInt(byte & 127) << BigInt(7 * (at - from))
    if (byte < 128) return { value: BigInt.asUintN(64, value), end: at + 1 }
  }
  return undefined
}

/** The last one counts where a field that stands once came twice, as everywhere in protobuf. */
export function bytesOf(message: Message, number: number): Uint8Array | undefined {
  const value = message.get(number)?.at(-1)
  return value instanceof Uint8Array ? value : undefined
}

export function textOf(message: Message, number: number): string {
  const bytes = bytesOf(message, number)
  return bytes === undefined ? '' : utf8.decode(bytes)
}

/** Within what a number holds exactly: counts, states, codes, spans. */
export function wholeOf(message: Message, number: number): number {
  const value = message.get(number)?.at(-1)
  return typeof value === 'bigint' ? Number(value) : 0
}

/** Undefined: one of them is no message. */
export function messagesOf(message: Message, number: number): readonly Message[] | undefined {
  const read = (message.get(number) ?? []).map((value) => (value instanceof Uint8Array ? readMessage(value) : undefined))
  return read.every((one) => one !== undefined) ? read : undefined
}

/** A map of texts: entries {1 key, 2 value}. */
export function mapOf(message: Message, number: number): Readonly<Record<string, string>> | undefined {
  const entries = messagesOf(message, number)
  // No prototype: a key may be any text, `__proto__` among them.
  return entries === undefined ? undefined : Object.assign(Object.create(null), Object.fromEntries(entries.map((entry) => [textOf(entry, 1), textOf(entry, 2)])))
}

export function wholeField(number: number, value: number): Uint8Array {
  return joined([varint(BigInt(number) << 3n), varint(BigInt(value))])
}

export function bytesField(number: number, value: Uint8Array): Uint8Array {
  return joined([varint((BigInt(number) << 3n) | 2n), varint(BigInt(value.length)), value])
}

export function textField(number: number, value: string): Uint8Array {
  return bytesField(number, encoder.encode(value))
}

export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

function varint(value: bigint): Uint8Array {
  const bytes: number[] = []
  let left = value
  do {
    const low = Number(left & 127n)
    left >>= 7n
    bytes.push(left === 0n ? low : low | 128)
  } while (left !== 0n)
  return Uint8Array.from(bytes)
}

const utf8 = new TextDecoder()
const encoder = new TextEncoder()
