// Kernels that panic into a crash kernel, which tells that it writes a dump; and those who say so in its place.
import { aNode, lasting, type Ground, type Trouble, type TroubleKind } from './trouble.ts'

/** From the panic to an address: what lies between is the silence that tells a crash from a kernel that runs on. */
const comesUp = [1_500, 4_000, 9_000, 22_000] as const
const speaks = [50, 2_000, 6_000] as const
/** The longest is longer than anybody waits. */
const writes = [3_000, 30_000, 80_000, 200_000] as const
/** As fence_kdump_send does. */
const saidEvery = 10_000

function panics(trouble: Pick<TroubleKind, 'class' | 'weight'>, ends: boolean): TroubleKind {
  return {
    ...trouble,
    fits: ({ dumps }) => dumps !== undefined,
    draw: (chance, scene) => ({ on: aNode(chance, scene), how: [chance.pick(comesUp), chance.pick(speaks), ...(ends ? [chance.pick(writes)] : [])].join(' ') }),
    begin(ground, { how = '', ...rest }) {
      const { world } = ground.on
      const node = ground.node(rest)
      const machine = world.nodes.get(node)?.machine
      if (machine?.state() !== 'running' || machine.frozen()) return undefined
      const [after = 0, speaksAfter = 0, span] = how.split(' ').map(Number)
      world.panic(node, { after, speaksAfter, ...(span === undefined ? {} : { writes: span }) })
      return lasting
    },
  }
}

/** Said again and again by whoever can send from the node's address, whatever is so there. */
const forged: TroubleKind = {
  class: 'network', weight: 8,
  fits: ({ dumps }) => dumps !== undefined,
  draw: (chance, scene) => ({ on: aNode(chance, scene) }),
  begin(ground: Ground, trouble: Trouble) {
    const { world } = ground.on
    const node = ground.node(trouble)
    let cancel: () => void = lasting
    const say = (): void => {
      world.forgeDumpWord(node)
      cancel = world.clock.after(saidEvery, say)
    }
    say()
    return () => cancel()
  },
}

export const crashTroubles: Readonly<Record<string, TroubleKind>> = {
  'the kernel panics, and dumps': panics({ class: 'death', weight: 12 }, true),
  'the kernel panics, and its crash kernel hangs': panics({ class: 'death for good', weight: 8 }, false),
  "a crash kernel's word is forged": forged,
}
