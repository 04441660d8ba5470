// The crash kernels that machines of a searched schedule may have, and how long the fence waits for them.
import type { Ms } from '../../core/model.ts'
import type { Chance } from '../chance.ts'
import type { Scene } from './scene.ts'

const [dumpsWithin, announcesWithin]: readonly [Ms, Ms] = [100_000, 20_000]

export const crashKernels = { dumpsWithin, announcesWithin, lines: `kdump=${dumpsWithin / 1_000}s\nkdump_within=${announcesWithin / 1_000}s\n` } as const

/** Every death waits for a word that may come: that is no cluster in which anything is cleared in seconds. */
export function drawCrashKernels(chance: Chance, scene: Scene, plain: boolean): Scene {
  return plain || !chance.yes(0.15) ? scene : { ...scene, dumps: chance.pick(['accepted', 'accepted', 'refused']) }
}
