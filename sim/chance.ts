// Chance by seed. Each consumer forks a generator of its own by name, so that one more draw in the network does not shift what
// the devices draw: a schedule stays recognisable while a world is changed or shrunk.
import type { Ms } from '../core/model.ts'

export interface Chance {
  /** In [0, 1). */
  next(): number
  /** A whole number in [0, bound). */
  below(bound: number): number
  /** Evenly between the two. */
  between(low: Ms, high: Ms): Ms
  /** True in that share of the draws; 0 and 1 draw too, so that switching a fault off does not shift the others. */
  yes(share: number): boolean
  pick<T>(choices: readonly T[]): T
  bytes(count: number): Uint8Array
  /** The same name twice gives the same generator: name each consumer once. Draws nothing from this one. */
  fork(name: string): Chance
}

export function seededChance(seed: number | string): Chance {
  return generator(String(seed))
}

function generator(path: string): Chance {
  const next = sfc32(path)
  const chance: Chance = {
    next,
    below: (bound) => Math.floor(next() * bound),
    between: (low, high) => low + next() * (high - low),
    yes: (share) => next() < share,
    pick(choices) {
      if (choices.length === 0) throw new Error('a pick from nothing')
      // Below the length, so an element is there.
      return choices[chance.below(choices.length)] as (typeof choices)[number]
    },
    bytes: (count) => Uint8Array.from({ length: count }, () => chance.below(256)),
    fork: (name) => generator(`${path}/${name}`),
  }
  return chance
}

/** Small fast counter, 32 bit: 128 bits of state, passes PractRand, and a few integer operations a draw. */
function sfc32(text: string): () => number {
  const hash = xmur3(text)
  let [a, b, c, d] = [hash(), hash(), hash(), 1]
  const draw = () => {
    const sum = (((a + b) | 0) + d) | 0
    d = (d + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + sum) | 0
    return (sum >>> 0) / 4_294_967_296
  }
  for (let round = 0; round < 12; round++) draw()
  return draw
}

/** Turns a text into as many well mixed 32 bit words as are asked for. */
function xmur3(text: string): () => number {
  let state = 1_779_033_703 ^ text.length
  for (const letter of text) {
    state = Math.imul(state ^ (letter.codePointAt(0) ?? 0), 3_432_918_353)
    state = (state << 13) | (state >>> 19)
  }
  return () => {
    state = Math.imul(state ^ (state >>> 16), 2_246_822_507)
    state = Math.imul(state ^ (state >>> 13), 3_266_489_909)
    state ^= state >>> 16
    return state >>> 0
  }
}
