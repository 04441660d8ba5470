// Partitions by halves: a machine, with all of its pods, and others that do not hear one another any more, or only one way.
import type { Machine } from './machine.ts'
import { cut, podRangeOf, serviceAddress } from './network.ts'

export type Way = 'both ways' | 'towards the machine' | 'from the machine'

export const everybody = ['0.0.0.0/0'] as const
export const theApi = [serviceAddress] as const

/** Until the answer is called, and also over boots. What is on the machine itself goes on hearing one another. */
export async function partition({ address, index }: Machine, others: readonly string[], way: Way): Promise<() => Promise<void>> {
  const mends: (() => Promise<void>)[] = []
  const mend = async (): Promise<void> => {
    for (const one of mends.splice(0)) await one()
  }
  try {
    for (const mine of [address, podRangeOf(index)]) {
      for (const other of others) {
        if (way !== 'towards the machine') mends.push(await cut(mine, other))
        if (way !== 'from the machine') mends.push(await cut(other, mine))
      }
    }
  } catch (error) {
    // What somebody else has cut already cannot be cut twice: then none of it is.
    await mend()
    throw error
  }
  return mend
}
