// What goes wrong in a searched schedule, as plain words and numbers, so that a schedule can be written down, shrunk and
// played again. How each kind is drawn, begun and ended stands in the files beside this one, by where it strikes.
import type { Ms } from '../../core/model.ts'
import type { Chance } from '../chance.ts'
import type { Stage } from '../stage.ts'
import type { Cue } from './cue.ts'
import type { Scene } from './schedule.ts'

export interface Trouble {
  /** Its kind. */
  readonly does: string
  /** From the end of the calm, or from its cue. */
  readonly at: Ms
  /** It waits for this to happen; if it never does before the relief, neither does the trouble. */
  readonly after?: Cue
  /** It ends after so long, if it is one that ends. */
  readonly span: Ms
  /** `victim` (the node that runs the StatefulSet's pod), another node, a replica's number, or `leader`. */
  readonly on: string
  /** What else its kind wants to know. */
  readonly how?: string
}

/** Kinds are switched off class by class: a run without any trouble of the network searches elsewhere. */
export type TroubleClass = 'death' | 'death for good' | 'ailment' | 'network' | 'api' | 'replica' | 'node' | 'device' | 'storage' | 'people' | 'remediator'

export interface TroubleKind {
  readonly class: TroubleClass
  /** How often it is drawn beside others of its class; 1 without it. */
  readonly weight?: number
  /** How long it lasts, one of them; the usual ones without it. */
  readonly spans?: readonly (readonly [Ms, Ms])[]
  /** Whether there is anything for it to strike; without it there always is. */
  fits?(scene: Scene): boolean
  draw(chance: Chance, scene: Scene): Pick<Trouble, 'on' | 'how'>
  /** It waits for its moment, and tells the ground when it strikes. */
  readonly waits?: true
  /** Undefined: it could not take effect. The answer ends it; ending it twice does no harm. */
  begin(ground: Ground, trouble: Trouble): (() => void) | undefined
}

/** What kinds act on. */
export interface Ground {
  readonly on: Stage
  /** The node that a trouble names. */
  node(trouble: Trouble): string
  /** The replica it names; undefined when that one does not run. */
  replica(trouble: Trouble): number | undefined
  readonly api: ApiTroubles
  /** One that waited has come to its moment. */
  strikes(trouble: Trouble): void
}

/** The API server holds one list of faults at a time; troubles overlap. */
export interface ApiTroubles {
  add(fault: ApiFault): () => void
}

export type ApiFault = Parameters<NonNullable<Stage['world']['server']>['faults']['set']>[0][number]

export function createApiTroubles({ world }: Stage): ApiTroubles {
  const live = new Set<ApiFault>()
  const tell = () => world.server?.faults.set([...live])
  return {
    add(fault) {
      live.add(fault)
      tell()
      return () => {
        if (live.delete(fault)) tell()
      }
    },
  }
}

/** Ends nothing: what is done is done. */
export const lasting = (): void => undefined

/** The victim more often than not: trouble far away finds less. */
export function aNode(chance: Chance, { nodes }: Scene): string {
  return chance.yes(0.6) ? 'victim' : `node-${chance.below(nodes) + 1}`
}

export function aReplica(chance: Chance, { replicas }: Scene): string {
  return chance.yes(0.5) ? 'leader' : String(chance.below(replicas))
}

/** As a person would: again, until it is done or has had no success for minutes. */
export async function insist({ clock }: Stage['world'], act: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < insistsFor && !await act(); tries += 1) await clock.wait(insistsEvery)
}

const insistsEvery: Ms = 2_000
const insistsFor = 150

/** Once it is so, looked for until it is called off. */
export function when({ clock }: Stage['world'], so: () => boolean, act: () => void, every: Ms = 100): () => void {
  let cancel: (() => void) | undefined
  const look = (): void => {
    if (so()) return act()
    cancel = clock.after(every, look)
  }
  look()
  return () => cancel?.()
}
