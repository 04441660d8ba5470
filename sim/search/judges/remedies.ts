// Was a node fenced as a remedy that no remedy was for, or not yet; beside another one, while many ailed alike, in a person's hands, or once more
// though it had not helped? Each incident that the product opens for a remedy is held against what ailed the nodes in truth.
import type { Ms } from '../../../core/model.ts'
import { ailsFor, remedyName, toldLate, type Ailment } from '../remedies.ts'
import type { Violation } from '../judgement.ts'
import type { Opening } from './ears.ts'
import { seconds } from './facts.ts'
import { look, type Fence, type History, type Sight } from './sight.ts'

export interface RemedyJudge {
  look(sight: Sight): void
  found(): readonly Violation[]
  stop(): void
}

/** To a leader, and from it. */
const newsTakes: Ms = 10_000
const usualStorm = 40

/** Listens from now on. */
export function judgeRemedies(history: History): RemedyJudge {
  const violations: Violation[] = []
  const before: Opening[] = []
  let stoodAt = history.on.world.clock.now()
  history.ears.onRemedy((opening) => {
    const sight = look(history)
    for (const why of wrongs(opening, before, sight, stoodAt)) violations.push({ judge: 'restraint', what: `a remedy began on ${opening.node}, and ${why}`, node: opening.node, from: opening.at })
    before.push(opening)
  })
  return {
    look(sight) {
      if (stands(sight)) stoodAt = sight.now
    },
    found: () => violations,
    stop: () => undefined,
  }
}

const remedies = ({ world }: Sight) => (world.server?.peek('noderemedies.holdfast.dev') ?? []).filter(({ metadata }) => metadata.name === remedyName) as readonly { readonly spec?: { readonly remedy?: string } }[] // that collection's kind
const stands = (sight: Sight): boolean => remedies(sight).some(({ spec }) => spec?.remedy === 'fence')

function wrongs({ node, name, at, policy }: Opening, before: readonly Opening[], sight: Sight, stoodAt: Ms): readonly string[] {
  const own = sight.wellness.ailments(node)
  // That which anybody could know of.
  const booted = sight.world.truth.entries.findLast((entry) => entry.at <= at - newsTakes && entry.what === 'machine booted' && entry.facts['node'] === node)?.at ?? Infinity
  const due = own.filter((one) => isDue(one, at))
  const beside = sight.fences().find((fence) => fence.metadata.name !== name && fence.spec.cause === 'remedy' && fence.status?.phase !== 'Final')
  const alike = due.map(({ of }) => [...sight.world.nodes.keys()].filter((one) => sight.wellness.ailments(one).some((ailment) => ailment.of === of && isToldBy(ailment, at) && sight.wellness.ailsNow(one, of) && sight.wellness.speaksFor(one) >= toldLate)).length)
  const many = Math.min(...alike)
  const again = before.find((one) => one.node === node && one.name !== name && sight.fences().some((fence) => fence.metadata.name === one.name && hasBegun(fence)))
  return [
    ...(stands(sight) || at - stoodAt < newsTakes ? [] : ['no remedy has anything fenced']),
    ...(due.length > 0 ? [] : [`nothing had ailed it for ${seconds(ailsFor)}: ${own.map(({ of, since, until }) => `${of} from ${seconds(since)} to ${seconds(until)}`).join(', ') || 'nothing at all'}`]),
    ...(at - booted >= ailsFor - newsTakes ? [] : [`its boot was ${seconds(at - booted)} old`]),
    ...(due.some((one) => isPosted(one, booted, sight)) || due.length === 0 ? [] : ['nobody had posted that in its boot']),
    ...(beside === undefined ? [] : [`${beside.spec.nodeName} was under one still`]),
    ...(many >= 2 && due.length > 0 && many * 100 > (policy?.brakes?.stormPercent ?? usualStorm) * sight.world.nodes.size ? [`${many} of ${sight.world.nodes.size} ailed alike`] : []),
    ...(again === undefined ? [] : [`one had begun on it ${seconds(at - again.at)} before`]),
  ]
}

/** Whoever asks every other minute may have met it late, and know of its end late. */
function isDue({ of, since, until }: Ailment, at: Ms): boolean {
  return at - since >= ailsFor - newsTakes && at - until <= (of === 'disk' ? toldLate : newsTakes) && until - since >= ailsFor - toldLate
}

function isToldBy({ since, until }: Ailment, at: Ms): boolean {
  return at - since >= toldLate && at - until <= 2_000
}

function isPosted({ node, of }: Ailment, booted: Ms, sight: Sight): boolean {
  return of !== 'condition' || sight.world.truth.entries.some(({ at, what, facts }) => what === 'node ails' && facts['node'] === node && facts['of'] === 'condition' && at >= booted)
}

function hasBegun({ status }: Fence): boolean {
  return status?.eviction !== undefined || (status?.attempts ?? []).length > 0
}
