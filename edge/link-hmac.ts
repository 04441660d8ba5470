// HMAC-SHA-256 (RFC 2104, FIPS 180-4) of short messages, each under a key that is used again and again. node:crypto begins anew with
// every message: it pads and hashes the key twice, and its way into native code and back costs more than the hash of a beat. Here a
// key is hashed once, when it is made; what is kept of it are the two states that come of it, and a message of up to 55 bytes then
// costs two blocks. Sums and shifts alone, whose time tells nothing of what is summed.

const blockSize = 64
const digestSize = 32
const words = 16
const rounds = 64

/** Up to the 64th: their roots' fractions are the standard's constants. */
const primes = Array.from({ length: 312 }, (_, number) => number).filter(isPrime)
const constants = Int32Array.from(primes, (prime) => fraction(Math.cbrt(prime)))
const initial = Int32Array.from(primes.slice(0, 8), (prime) => fraction(Math.sqrt(prime)))

/** What `compress` takes and leaves: one for all, since it never waits. */
const schedule = new Int32Array(rounds)
const digest = new Int32Array(8)

/** The states after the key's inner and its outer block, one behind the other. The key has 64 bytes at most. */
export function hmacStates(key: Uint8Array): Int32Array {
  const states = new Int32Array(2 * digest.length)
  for (const [index, pad] of [0x36, 0x5c].entries()) {
    const block = new Uint8Array(blockSize).fill(pad)
    for (const [at, byte] of key.entries()) block[at] = byte ^ pad
    load(block, 0)
    compress(initial, 0)
    states.set(digest, index * digest.length)
  }
  return states
}

/** The answer is shared, and good until the next call. */
export function hmacOf(states: Int32Array, message: Uint8Array): Int32Array {
  let from = states
  for (let at = 0; at <= message.length + 8; at += blockSize) {
    load(message, at)
    // The last block ends with how many bits were hashed, the key's block among them.
    if (at + blockSize > message.length + 8) schedule[words - 1] = (blockSize + message.length) * 8
    compress(from, 0)
    from = digest
  }
  for (let word = 0; word < words; word += 1) schedule[word] = word < digest.length ? digest[word] ?? 0 : 0
  schedule[digest.length] = 1 << 31
  schedule[words - 1] = (blockSize + digestSize) * 8
  compress(states, digest.length)
  return digest
}

/** The block that begins there. Behind the message comes one bit, then nothing. */
function load(message: Uint8Array, begin: number): void {
  for (let word = 0; word < words; word += 1) schedule[word] = 0
  const end = Math.min(begin + blockSize, message.length)
  for (let at = begin; at < end; at += 1) mark(at - begin, message[at] ?? 0)
  if (end === message.length && end >= begin && end < begin + blockSize) mark(end - begin, 0x80)
}

function mark(at: number, byte: number): void {
  const word = at >> 2
  schedule[word] = (schedule[word] ?? 0) | (byte << (24 - (at & 3) * 8))
}

/** Of the state that begins there; the next one is left in `digest`. */
function compress(states: Int32Array, begin: number): void {
  for (let round = words; round < rounds; round += 1) {
    const early = schedule[round - 15] ?? 0
    const late = schedule[round - 2] ?? 0
    const first = ((early >>> 7) | (early << 25)) ^ ((early >>> 18) | (early << 14)) ^ (early >>> 3)
    const second = ((late >>> 17) | (late << 15)) ^ ((late >>> 19) | (late << 13)) ^ (late >>> 10)
    schedule[round] = ((schedule[round - 16] ?? 0) + first + (schedule[round - 7] ?? 0) + second) | 0
  }
  let a = states[begin] ?? 0
  let b = states[begin + 1] ?? 0
  let c = states[begin + 2] ?? 0
  let d = states[begin + 3] ?? 0
  let e = states[begin + 4] ?? 0
  let f = states[begin + 5] ?? 0
  let g = states[begin + 6] ?? 0
  let h = states[begin + 7] ?? 0
  for (let round = 0; round < rounds; round += 1) {
    const sum = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))
    const one = (h + sum + (g ^ (e & (f ^ g))) + (constants[round] ?? 0) + (schedule[round] ?? 0)) | 0
    const total = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))
    const two = (total + ((a & b) ^ (c & (a ^ b)))) | 0
    h = g
    g = f
    f = e
    e = (d + one) | 0
    d = c
    c = b
    b = a
    a = (one + two) | 0
  }
  digest[0] = (states[begin] ?? 0) + a
  digest[1] = (states[begin + 1] ?? 0) + b
  digest[2] = (states[begin + 2] ?? 0) + c
  digest[3] = (states[begin + 3] ?? 0) + d
  digest[4] = (states[begin + 4] ?? 0) + e
  digest[5] = (states[begin + 5] ?? 0) + f
  digest[6] = (states[begin + 6] ?? 0) + g
  digest[7] = (states[begin + 7] ?? 0) + h
}

function fraction(root: number): number {
  return (root % 1) * 2 ** 32
}

function isPrime(number: number): boolean {
  for (let divisor = 2; divisor * divisor <= number; divisor += 1) if (number % divisor === 0) return false
  return number > 1
}
