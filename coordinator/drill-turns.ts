// Drills by the hour. The core says which node is spare; here it is kept whose hour came, who was chosen, and why nobody was, which
// stands on the Lease as the audit's turns do, so that `check` and the next leader can tell.
import * as v from 'valibot'
import type { Ms } from '../core/model.ts'
import type { Policy } from '../core/policy.ts'
import { chooseSpare, type DrillRefusal, type DrillTurn, type Refused, type SpareChoice } from '../core/spare.ts'
import { survey } from '../core/survey.ts'
import type { Clock } from '../edge/clock.ts'
import type { Log } from '../edge/log.ts'
import type { Observation } from './observe.ts'

/** What came of the latest hour of a policy, as it stands on the Lease. */
export interface DrillTurnEnd {
  readonly policy: string
  readonly at: string
  /** Who was chosen, and by which NodeFence it is drilled. */
  readonly chosen?: { readonly node: string; readonly incident: string }
  /** Why nobody was; then node by node, of those that are cordoned. */
  readonly refused?: Refused
  readonly nodes: readonly (Refused & { readonly node: string })[]
}

export const drillTurnsKey = 'holdfast.dev/drill-turns'

const lookEvery: Ms = 1_000
/** Lists of pods may have to wait; a drill that begins later than this was not meant. */
const choosesWithin: Ms = 60_000
const mostPolicies = 10
const mostNodes = 10
const longestDetail = 200
const longestText = 65_536

const words: Readonly<Record<DrillRefusal, true>> = { policy: true, incident: true, silent: true, 'no-spare': true, 'control-plane': true, hands: true, unfit: true, 'not-drained': true, proven: true, failed: true }
const name = v.pipe(v.string(), v.maxLength(253))
const refusal = { because: v.picklist(Object.keys(words) as DrillRefusal[]), detail: v.pipe(v.string(), v.maxLength(longestDetail)) } // the keys are exactly its words
const shape = v.pipe(v.array(v.object({
  policy: name, at: v.pipe(v.string(), v.maxLength(40), v.check((text) => Number.isFinite(Date.parse(text)))),
  chosen: v.exactOptional(v.object({ node: name, incident: name })), refused: v.exactOptional(v.object(refusal)),
  nodes: v.pipe(v.array(v.object({ node: name, ...refusal })), v.maxLength(mostNodes)),
})), v.maxLength(mostPolicies))

/** What cannot be read is as good as none. */
export function readDrillTurns(annotations: Readonly<Record<string, string>> | undefined): readonly DrillTurnEnd[] {
  const text = annotations?.[drillTurnsKey] ?? ''
  if (text === '' || text.length > longestText) return []
  const read = v.safeParse(v.pipe(v.string(), v.parseJson(), shape), text)
  return read.success ? read.output : []
}

export interface DrillTurns {
  /** False: this replica does not lead, or the policy asks for no drills, or its last hour is not over. */
  begin(policy: string): boolean
  led(annotations: Readonly<Record<string, string>>): void
  lost(): void
  /** After each decision. */
  now(): void
  /** What the Lease is to bear. */
  note(): Readonly<Record<string, string>>
  last(): readonly DrillTurnEnd[]
}

export interface DrillTurnsOptions {
  readonly clock: Clock
  readonly log: Log
  readonly observation: Observation
  leads(): number | undefined
  policies(): readonly Policy[]
}

export function drillTurns({ clock, log, observation, leads, policies }: DrillTurnsOptions): DrillTurns {
  const { self } = observation.seen
  let ends: readonly DrillTurnEnd[] = []
  let lookedAt: Ms = -Infinity
  /** NodeFences that were there when the first of the open turns began to be looked at. */
  let before: ReadonlySet<string> = new Set()

  return {
    begin(policy) {
      const drills = policies().find((one) => one.name === policy)?.drills
      const waiting = self.drillTurns ?? []
      if (leads() === undefined || drills === undefined || waiting.some((turn) => turn.policy === policy)) return false
      if (waiting.length === 0) before = new Set(observation.seen.incidents.keys())
      self.drillTurns = [...waiting, { policy, beganAt: clock.now(), before: new Date(clock.wall() - drills.again).toISOString() }]
      return true
    },
    led(annotations) {
      ends = readDrillTurns(annotations)
    },
    lost() {
      ends = []
      delete self.drillTurns
    },
    now() {
      const [turn] = self.drillTurns ?? []
      if (turn === undefined || leads() === undefined || clock.now() - lookedAt < lookEvery) return
      lookedAt = clock.now()
      const opened = [...observation.seen.incidents.values()].find((one) => one.cause === 'scheduled-drill' && one.policy.name === turn.policy && !before.has(one.name))
      if (opened !== undefined) return end(turn, { chosen: { node: opened.nodeName, incident: opened.name }, nodes: [] })
      const choice = chooseSpare(survey(observation.seen, lookedAt, policies()), turn)
      if (choice.is === 'nobody') end(turn, refusedOf(choice))
      else if (lookedAt - turn.beganAt > choosesWithin) end(turn, { refused: { because: 'no-spare', detail: 'what it takes to choose a node could not be read, or not be written, in time' }, nodes: [] })
    },
    note: () => (ends.length === 0 ? {} : { [drillTurnsKey]: JSON.stringify(ends) }),
    last: () => ends,
  }

  function end({ policy }: DrillTurn, came: Omit<DrillTurnEnd, 'policy' | 'at'>): void {
    const latest: DrillTurnEnd = { policy, at: new Date(clock.wall()).toISOString(), ...came }
    ends = [...ends.filter((one) => one.policy !== policy), latest].slice(-mostPolicies)
    before = new Set(observation.seen.incidents.keys())
    const waiting = (self.drillTurns ?? []).slice(1)
    if (waiting.length === 0) delete self.drillTurns
    else self.drillTurns = waiting
    log.info({ policy, ...came }, came.chosen === undefined ? 'a drill is due, and no node is drilled' : 'a drill is due, and a node is chosen')
  }
}

function refusedOf({ refused, nodes }: Extract<SpareChoice, { is: 'nobody' }>): Pick<DrillTurnEnd, 'refused' | 'nodes'> {
  return { refused: shortened(refused), nodes: nodes.slice(0, mostNodes).map(shortened) }
}

function shortened<One extends Refused>(one: One): One {
  return { ...one, detail: one.detail.slice(0, longestDetail) }
}
