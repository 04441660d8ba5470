// What a searched cluster has done about nodes that run and are not well: one NodeRemedy, for a full disk and for what a node problem detector
// complains of. And which nodes ail, as the world knows it: an agent tells of a disk later, and what it told stands for longer.
import type { KubeObject } from '../../coordinator/api.ts'
import type { Ms } from '../../core/model.ts'
import type { Chance } from '../chance.ts'
import type { NodeObject } from '../objects.ts'
import type { World } from '../world.ts'
import type { Scene } from './scene.ts'

/** The least that a remedy may ask for. */
export const ailsFor: Ms = 300_000
/** An agent looks every other minute, a look may fail, and a beat takes its time. */
export const toldLate: Ms = 170_000
export const fullDisk = 97
export const condition = 'KernelDeadlock'
export const remedyName = 'ailing-nodes'

export function drawRemedy(chance: Chance, scene: Scene, plain: boolean): Scene {
  return plain || !chance.yes(0.08) ? scene : { ...scene, remedy: chance.pick(['fence', 'fence', 'fence', 'tell']) }
}

export function remedyOf(does: NonNullable<Scene['remedy']>): KubeObject {
  const period = `${ailsFor / 1_000}s`
  return {
    apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeRemedy', metadata: { name: remedyName },
    spec: { remedy: does, thresholds: [{ name: 'full', vital: 'disk', above: fullDisk - 2, period }, { name: 'stuck', condition, period }] },
  } as KubeObject // a kind of ours, written as a person would
}

export interface Ailment {
  readonly node: string
  readonly of: 'disk' | 'condition'
  readonly since: Ms
  until: Ms
}

export interface Ailments {
  /** All that there was of the node, oldest first. What was over for less than anybody could tell went on. */
  of(node: string): readonly Ailment[]
  /** Whether that ails it at this moment. */
  now(node: string, of: Ailment['of']): boolean
  stop(): void
}

const looksEvery: Ms = 1_000

/** Where no remedy stands nobody asks. */
export function watchAilments(world: World): Ailments {
  const all: Ailment[] = []
  if ((world.server?.peek('noderemedies.holdfast.dev') ?? []).length === 0) return { of: () => [], now: () => false, stop: () => undefined }
  let cancel: (() => void) | undefined
  const look = (): void => {
    const now = world.clock.now()
    for (const [node, of] of ailing(world)) {
      const last = all.findLast((one) => one.node === node && one.of === of)
      if (last !== undefined && now - last.until <= toldLate) last.until = now
      else all.push({ node, of, since: now, until: now })
    }
    cancel = world.clock.after(looksEvery, look)
  }
  look()
  return { of: (node) => all.filter((one) => one.node === node), now: (node, of) => ailing(world).some(([name, what]) => name === node && what === of), stop: () => cancel?.() }
}

function ailing(world: World): readonly (readonly [string, Ailment['of']])[] {
  const complained = ((world.server?.peek('nodes') ?? []) as readonly NodeObject[]).filter(({ status }) => status?.conditions?.some(({ type, status: word }) => type === condition && word === 'True') === true) // that collection's kind
  const full = [...world.nodes].filter(([, { faults: { vitals } }]) => vitals !== undefined && vitals !== 'untold' && (vitals.disk ?? 0) >= fullDisk)
  return [...full.map(([name]) => [name, 'disk'] as const), ...complained.map(({ metadata }) => [metadata.name, 'condition'] as const)]
}
