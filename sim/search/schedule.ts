// One schedule of trouble: what the cluster is like, and what goes wrong in it when. A pure function of its seed, written in
// plain words and numbers, so that a failing one can be read, made smaller and played again.
import type { Ms } from '../../core/model.ts'
import { seededChance, type Chance } from '../chance.ts'
import { drawnCue } from './cue.ts'
import { drawScene, isClearedInSeconds, type Scene } from './scene.ts'
import { ailingTroubles } from './troubles-ailing.ts'
import { apiTroubles } from './troubles-api.ts'
import { crashTroubles } from './troubles-crash.ts'
import { deviceTroubles } from './troubles-device.ts'
import { drillTroubles } from './troubles-drill.ts'
import { handTroubles } from './troubles-hands.ts'
import { networkTroubles } from './troubles-network.ts'
import { nodeTroubles } from './troubles-node.ts'
import { peopleTroubles } from './troubles-people.ts'
import { remediatorTroubles } from './troubles-remediator.ts'
import { replicaTroubles } from './troubles-replica.ts'
import { storageTroubles } from './troubles-storage.ts'
import { wordTroubles } from './troubles-words.ts'
import type { Trouble, TroubleClass, TroubleKind } from './trouble.ts'

export type { Scene } from './scene.ts'

export interface Schedule {
  readonly seed: number
  readonly scene: Scene
  readonly troubles: readonly Trouble[]
  /** All troubles are over then, counted from the end of the calm. */
  readonly reliefAt: Ms
  /** The run is no shorter: what comes late must have time to come. */
  readonly shortest: Ms
  /** How long whatever is left may take after the relief; else half an hour, in which all that waits for anything is over. */
  readonly patience?: Ms
}

export const kinds: Readonly<Record<string, TroubleKind>> = {
  ...nodeTroubles, ...networkTroubles, ...apiTroubles, ...replicaTroubles, ...deviceTroubles, ...peopleTroubles, ...handTroubles,
  ...storageTroubles, ...remediatorTroubles, ...wordTroubles, ...drillTroubles, ...crashTroubles, ...ailingTroubles,
}

/** Agents are heard and paths are audited before the first trouble. */
export const calm: Ms = 30_000
/** Troubles begin within these spans after the calm: deaths, most of the others, and the rest. */
interface Pace { readonly deaths: Ms; readonly most: Ms; readonly rest: Ms; readonly over: Pick<Schedule, 'reliefAt' | 'shortest'> }

const usualPace: Pace = { deaths: 20_000, most: 45_000, rest: 180_000, over: { reliefAt: 240_000, shortest: 600_000 } }
/** A remedy begins after five minutes and more, and what goes wrong is to meet it. */
const slowPace: Pace = { deaths: 500_000, most: 500_000, rest: 500_000, over: { reliefAt: 720_000, shortest: 900_000 } }

const classes: readonly TroubleClass[] = ['network', 'api', 'replica', 'node', 'device', 'storage', 'people', 'remediator']
const spans: readonly (readonly [Ms, Ms])[] = [[500, 5_000], [5_000, 30_000], [30_000, 90_000]]

export function draw(seed: number): Schedule {
  const chance = seededChance(seed).fork('schedule')
  const size = { nodes: 5 + chance.below(3), zones: chance.pick([1, 3, 3]), replicas: chance.pick([2, 2, 3]), profile: chance.pick(['fast', 'fast', 'balanced'] as const) }
  // One in six is plain: a machine dies for good, and nothing else goes wrong.
  const plain = chance.yes(1 / 6)
  const scene = drawScene(seededChance(seed).fork('scene'), size, plain)
  const pace = scene.remedy === undefined ? usualPace : slowPace
  const swarm = plain ? [] : classes.filter(() => chance.yes(0.4))
  const death = plain ? [drawn(chance, scene, ['death for good'], pace.deaths, 'victim')]
    : chance.yes(0.85) ? [drawn(chance, scene, ['death', 'death for good'], pace.deaths, 'victim')] : []
  const count = swarm.length === 0 ? 0 : 1 + chance.below(6)
  const others = Array.from({ length: count }, (): Trouble => ({
    ...drawn(chance, scene, chance.yes(0.1) ? ['death', 'death for good'] : swarm, chance.yes(0.7) ? pace.most : pace.rest),
    ...(chance.yes(0.3) ? drawnCue(chance) : {}),
  }))
  return { seed, scene, ...pace.over, troubles: [...death, ...others, ...ailments(seededChance(seed).fork('ailments'), scene)].toSorted((one, other) => one.at - other.at) }
}

/** One, or two: each of its own time. Where a remedy stands somebody may take it away, which among all that people do is drawn too seldom. */
function ailments(chance: Chance, scene: Scene): readonly Trouble[] {
  if (scene.remedy === undefined) return []
  const ailing = Array.from({ length: 1 + chance.below(2) }, () => drawn(chance, scene, ['ailment'], 20_000))
  return chance.yes(0.2) ? [...ailing, drawnOf(chance, scene, 'the remedies are taken away', slowPace.most)] : ailing
}

function drawn(chance: Chance, scene: Scene, among: readonly TroubleClass[], latest: Ms, on?: string): Trouble {
  const choices = Object.entries(kinds).filter(([, kind]) => among.includes(kind.class) && kind.fits?.(scene) !== false)
  return drawnOf(chance, scene, weighted(chance, choices), latest, on)
}

function drawnOf(chance: Chance, scene: Scene, does: string, latest: Ms, on?: string): Trouble {
  const [least, most] = chance.pick(kinds[does]?.spans ?? spans)
  const trouble = { does, at: whole(chance.between(0, latest)), span: whole(chance.between(least, most)), ...kinds[does]?.draw(chance, scene) }
  return { ...trouble, on: on ?? trouble.on ?? '' }
}

function weighted(chance: Chance, choices: readonly (readonly [string, TroubleKind])[]): string {
  let at = chance.between(0, choices.reduce((sum, choice) => sum + weightOf(choice), 0))
  for (const choice of choices) {
    at -= weightOf(choice)
    if (at < 0) return choice[0]
  }
  throw new Error('a draw from nothing')
}

const weightOf = ([, { weight = 1 }]: readonly [string, TroubleKind]): number => weight

function whole(span: Ms): Ms {
  return Math.round(span)
}

/** Only a machine dies, wholly and for good, in a cluster that has all that it takes: it must be cleared in seconds. */
export function isPlain({ scene, troubles: [only, ...others] }: Schedule): boolean {
  return others.length === 0 && isClearedInSeconds(scene) && only !== undefined && kinds[only.does]?.class === 'death for good'
}

export function sentence({ does, on, how, after, at, span }: Trouble): string {
  const words = [does, on === '' ? '' : `(${on})`, how === undefined ? '' : `[${how}]`].filter((word) => word !== '').join(' ')
  const begins = after === undefined ? `at ${(at / 1_000).toFixed(1)} s` : `${(at / 1_000).toFixed(1)} s after ${after}`
  return `${words} ${begins} for ${(span / 1_000).toFixed(1)} s`
}
