// Is each defence needed? It is cut out, and schedules are drawn until a judge fails; what fails without it and not with it is what
// it is there for. The answers stand in a table in docs/safety.md, which sim/search/defence-page.ts writes row by row.
import type { Ms } from '../../core/model.ts'
import { seededChance, type Chance } from '../chance.ts'
import { drawnCue } from './cue.ts'
import type { Aimed, Defence } from './defences.ts'
import type { Judge } from './judgement.ts'
import { runPool, type Verdict } from './pool.ts'
import { draw, isPlain, kinds, type Schedule } from './schedule.ts'
import type { Trouble } from './trouble.ts'

export interface Caught {
  readonly judge: Judge
  readonly seed: number
  /** Drawn until then, this one with them. */
  readonly seeds: number
  readonly what: string
}

export interface DefenceSearch {
  readonly seeds: number
  readonly from: number
  readonly jobs: number
}

/** Undefined: no judge failed. */
export async function searchWithout(defence: Defence, { seeds, from, jobs }: DefenceSearch): Promise<Caught | undefined> {
  let next = from
  let caught: Caught | undefined
  const failing: Verdict[] = []
  await runPool({
    jobs, without: namesOf(defence),
    next: () => (caught !== undefined || failing.length > 0 || next >= from + seeds ? undefined : lean(draw(next++), defence)),
    told: (verdict) => void (worst(verdict) === undefined ? undefined : failing.push(verdict)),
  })
  for (const verdict of failing.toSorted((one, other) => one.seed - other.seed)) {
    const { judge, what } = worst(verdict) ?? { judge: 'liveness', what: '' } // it failed
    // The product as it is must pass: else this seed tells of a fault of the product, and nothing of the defence. So must one that
    // lacks only what stands before it.
    const schedule = lean(draw(verdict.seed), defence)
    const others = [await verdictOn(schedule), ...(defence.behind === undefined ? [] : [await verdictOn(schedule, defence.behind)])]
    if (others.every((other) => worst(other)?.judge !== judge)) caught ??= { judge, what, seed: verdict.seed, seeds: verdict.seed - from + 1 }
  }
  return caught ?? (next < from + seeds ? later(await searchWithout(defence, { seeds: from + seeds - next, from: next, jobs }), next - from) : undefined)
}

const namesOf = ({ name, behind }: Defence): string => (behind === undefined ? name : `${name}+${behind}`)

function later(caught: Caught | undefined, by: number): Caught | undefined {
  return caught === undefined ? undefined : { ...caught, seeds: caught.seeds + by }
}

async function verdictOn(schedule: Schedule, without?: string): Promise<Verdict> {
  const [said] = await new Promise<readonly Verdict[]>((resolve, reject) => {
    const queue = [schedule]
    const verdicts: Verdict[] = []
    runPool({ jobs: 1, ...(without === undefined ? {} : { without }), next: () => queue.shift(), told: (verdict) => verdicts.push(verdict) }).then(() => resolve(verdicts), reject)
  })
  return said ?? { seed: schedule.seed, broke: 'no verdict' }
}

const graver: readonly Judge[] = ['safety', 'restraint', 'progress', 'liveness']

function worst(verdict: Verdict): { readonly judge: Judge; readonly what: string } | undefined {
  if ('broke' in verdict) return undefined
  return verdict.said.violations.toSorted((one, other) => graver.indexOf(one.judge) - graver.indexOf(other.judge))[0]
}

/** The kinds of trouble that a defence exists for, and the deaths of the seed, if its own are not aimed; in one seed of three
 *  what else it draws, too. All of it is over soon, so that many can be tried. */
export function lean(drawn: Schedule, { troubles = [], scene = {}, alone }: Pick<Defence, 'troubles' | 'scene' | 'alone'>): Schedule {
  const chance = seededChance(drawn.seed).fork('lean')
  const aimed = troubles.map((one): Aimed => (typeof one === 'string' ? { does: one } : one))
  if (alone === true) {
    const only = { ...drawn, ...soonOver, scene: { ...usual, ...scene } }
    return { ...only, troubles: aimed.map((one) => leaning(chance, only, one)).toSorted((one, other) => one.at - other.at) }
  }
  if (troubles.length === 0 || isPlain(drawn)) return drawn
  const schedule = { ...drawn, scene: { ...drawn.scene, ...scene } }
  const deaths = schedule.troubles.filter(({ does }) => isDeath(does) && !aimed.some((own) => isDeath(own.does) && own.at !== undefined))
  const kept = chance.yes(1 / 3) ? schedule.troubles : deaths
  const own = aimed.filter(({ does }) => kinds[does]?.fits?.(schedule.scene) !== false && chance.yes(0.8)).map((one) => leaning(chance, schedule, one))
  const all = [...kept.map((one) => ({ ...one, at: Math.min(one.at, beginWithin) })), ...own]
  return { ...schedule, ...soonOver, troubles: all.toSorted((one, other) => one.at - other.at) }
}

const usual: Schedule['scene'] = { nodes: 5, zones: 3, replicas: 2, profile: 'fast', feed: 'own', power: 'bmc' }
const isDeath = (does: string): boolean => kinds[does]?.class.startsWith('death') === true

const soonOver = { reliefAt: 110_000, shortest: 110_000 } as const
const beginWithin: Ms = 45_000
const spans: readonly (readonly [Ms, Ms])[] = [[1_000, 10_000], [10_000, 60_000]]

function leaning(chance: Chance, { scene }: Schedule, aimed: Aimed): Trouble {
  const { does, on, how, after } = aimed
  const drawn = { on: '', ...kinds[does]?.draw(chance, scene) }
  const free = { at: Math.round(chance.between(0, beginWithin)), ...(chance.yes(0.5) ? drawnCue(chance) : {}) }
  const within = ([least, most]: readonly [Ms, Ms]): Ms => Math.round(chance.between(least, most))
  const manner = how ?? drawn.how
  return {
    does, on: on ?? (drawn.on.startsWith('node-') && chance.yes(0.5) ? 'victim' : drawn.on), span: within(aimed.span ?? chance.pick(spans)),
    ...(aimed.at === undefined ? free : { at: within(aimed.at) }), ...(after === undefined ? {} : { after }), ...(manner === undefined ? {} : { how: manner }),
  }
}
