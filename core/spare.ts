// Drills that nobody asks for by hand: at the hours that a policy names, one node that has nothing to do is switched off and on while
// everybody listens. Nobody stands by then, so what keeps a node out is wider than for a drill by hand, and whatever is in doubt ends
// it instead of making it wait: a machine that goes dark an hour later would be a surprise.
import type { Action, Look } from './action.ts'
import { handsOff } from './brake.ts'
import { hasTaint, outOfServiceKey, quarantineKey } from './clear.ts'
import { isCordoned, isDrillable, levelOf, undrained, unfit } from './drill-fit.ts'
import { keptOff, othersHands } from './hands.ts'
import { given, isDrill, openedKey, type Incident } from './incident.ts'
import { askPods } from './look.ts'
import { sameMachine } from './machine-id.ts'
import type { Boot, Method, Ms, NodeName, NodeSeen } from './model.ts'
import { incidentName } from './name.ts'
import { auditOf, toldMachine } from './path.ts'
import { policyOf, type Policy } from './policy.ts'
import { readingsOf } from './reading.ts'
import { latestBoot, type Situation } from './situation.ts'
import type { Survey } from './survey.ts'

/** A policy's hour has come, and nobody was chosen yet. */
export interface DrillTurn {
  readonly policy: string
  readonly beganAt: Ms
  /** Wall time, RFC 3339: what an earlier drill has proven is to be proven again. */
  readonly before: string
}

/** `policy`, `incident`, `silent` and `no-spare`: of the turn as a whole. */
export type DrillRefusal = 'policy' | 'incident' | 'silent' | 'no-spare' | 'control-plane' | 'hands' | 'unfit' | 'not-drained' | 'proven' | 'failed'

export interface Refused {
  readonly because: DrillRefusal
  readonly detail: string
}

export type SpareChoice =
  | { readonly is: 'chosen'; readonly node: NodeSeen; readonly boot: Boot; readonly policy: Policy }
  /** Nobody can say yet. */
  | { readonly is: 'look'; readonly looks: readonly Look[] }
  | { readonly is: 'nobody'; readonly refused: Refused; readonly nodes: readonly (Refused & { readonly node: NodeName })[] }

/** What is not begun so long after it was opened, because of a pause or a change of leaders, is not begun any more. */
const beginsWithin: Ms = 120_000

export function scheduledDrills(on: Survey): Action[] {
  const [turn] = on.seen.self.drillTurns ?? []
  const choice = turn === undefined ? undefined : chooseSpare(on, turn)
  if (choice === undefined || choice.is === 'nobody') return []
  if (choice.is === 'look') return [...choice.looks]
  const { node, boot, policy } = choice
  const evidence = [{ source: `HoldfastPolicy ${policy.name}`, word: 'a drill is due', at: '' }]
  return [{ do: 'open', node: node.name, name: incidentName(on.seen, node, boot), boot, cause: 'scheduled-drill', policy, evidence }]
}

export function chooseSpare(on: Survey, turn: DrillTurn): SpareChoice {
  const policy = on.policies.find(({ name }) => name === turn.policy)
  if (policy?.drills === undefined) return nobody('policy', `policy ${turn.policy} asks for no drills`)
  const nodes = [...on.seen.nodes.values()].filter((node) => node.gone !== true)
  // One that is being opened is on no record yet.
  if (nodes.some(({ name, busy }) => busy.has(`deed ${name}`))) return { is: 'look', looks: [] }
  const never = unquiet(on, policy)
  if (never !== undefined) return { is: 'nobody', refused: never, nodes: [] }
  const cordoned = nodes.filter((node) => isCordoned(node) && isUnder(node, policy, on.policies))
  if (cordoned.length === 0) return nobody('no-spare', `no node of policy ${policy.name} is cordoned`)
  const refused: (Refused & { node: NodeName })[] = []
  for (const node of cordoned.toSorted((one, other) => triedAt(on, one) - triedAt(on, other) || (one.name < other.name ? -1 : 1))) {
    const boot = latestBoot(node)
    const why = notSpare(on, node, boot, policy, turn)
    if (why !== undefined) refused.push({ node: node.name, ...why })
    else if (node.pods === undefined || node.pods.askedAt < turn.beganAt) return { is: 'look', looks: askPods(node) }
    else {
      const left = undrained(node)
      if (left === undefined) return { is: 'chosen', node, boot, policy }
      refused.push({ node: node.name, because: 'not-drained', detail: left })
    }
  }
  return { is: 'nobody', refused: { because: 'no-spare', detail: `no node of policy ${policy.name} can be drilled` }, nodes: refused }
}

/** What has changed since it was chosen, so that it is not begun. */
export function spareNoMore({ on, incident, node }: Situation): Refused | undefined {
  const now = policyOf(node, on.policies)
  if (!('policy' in now) || now.policy.drills === undefined) return { because: 'policy', detail: 'its policy asks for no drills any more' }
  if (on.now - (node.firstSeen.get(openedKey(incident.name)) ?? on.now) > beginsWithin) return { because: 'policy', detail: 'it could not be begun in its time' }
  return unquiet(on, now.policy, incident) ?? takenOut(node)
}

function nobody(because: DrillRefusal, detail: string): SpareChoice {
  return { is: 'nobody', refused: { because, detail }, nodes: [] }
}

/** A cluster in which something is wrong already is no place for a machine to be switched off without need. */
function unquiet(on: Survey, policy: Policy, own?: Incident): Refused | undefined {
  const off = handsOff(on.seen.self, policy)
  if (off !== undefined) return { because: 'policy', detail: off.detail }
  const other = [...on.open.values(), ...on.beside].find(({ name }) => name !== own?.name)
  if (other !== undefined) return { because: 'incident', detail: `${other.name} of ${other.nodeName} is open` }
  const [silent] = [...on.verdicts].find(([, { is }]) => is === 'suspect' || is === 'dead') ?? []
  return silent === undefined ? undefined : { because: 'silent', detail: `${silent} is silent` }
}

function isUnder(node: NodeSeen, { name }: Policy, policies: readonly Policy[]): boolean {
  const chosen = policyOf(node, policies)
  return 'policy' in chosen && chosen.policy.name === name
}

function notSpare(on: Survey, node: NodeSeen, boot: Boot, policy: Policy, turn: DrillTurn): Refused | undefined {
  const out = takenOut(node)
  if (out !== undefined) return out
  const why = unfit(node, boot, policy, node.path.levels[levelOf(node, boot)] ?? [], on.now)
  if (why !== undefined) return { because: 'unfit', detail: why }
  if (isProven(node, boot, turn)) return { because: 'proven', detail: `every fence path of it is proven, by a drill since ${turn.before} where its device does not tell` }
  const last = lastDrill(on, node)
  if (last !== undefined && hasFailed(last, node, turn)) return { because: 'failed', detail: `${last.name} failed, and its fence path is configured as it was: a person must look` }
  return undefined
}

function takenOut(node: NodeSeen): Refused | undefined {
  if (node.controlPlane) return { because: 'control-plane', detail: 'it is of the control plane' }
  const hands = othersHands(node) ?? keptOff(node)
  if (hands !== undefined) return { because: 'hands', detail: hands.detail }
  const taint = [quarantineKey, outOfServiceKey].find((key) => hasTaint(node, key))
  return taint === undefined ? undefined : { because: 'hands', detail: `it bears ${taint}` }
}

/** Where the device tells the machine's own UUID that is asked again in each turn of the audit, and never grows old. */
function isProven(node: NodeSeen, boot: Boot, { before }: DrillTurn): boolean {
  return node.path.levels.filter(isDrillable).flat().every((method) => {
    const audit = auditOf(node, method, boot)
    if (audit?.identity !== 'proven') return false
    return audit.drill === undefined || tellsItself(node, method) || Date.parse(audit.drill.at) >= Date.parse(before)
  })
}

function tellsItself(node: NodeSeen, method: Method): boolean {
  const last = readingsOf(node, method).at(-1)
  const told = last && toldMachine(last, node)
  return told !== undefined && node.machine !== '' && node.twin === undefined && sameMachine(told, node.machine)
}

const begunAt = ({ status }: Incident): number => Date.parse(status.timeline[0]?.at ?? '') || 0

function lastDrill(on: Survey, node: NodeSeen): Incident | undefined {
  let last: Incident | undefined
  for (const incident of on.seen.incidents.values()) {
    if (!isDrill(incident) || incident.nodeName !== node.name || incident.nodeUid !== node.uid) continue
    if (last === undefined || begunAt(incident) > begunAt(last)) last = incident
  }
  return last
}

/** Whoever was not tried yet comes first. */
function triedAt(on: Survey, node: NodeSeen): number {
  const last = lastDrill(on, node)
  const drills = (node.record?.paths ?? []).flatMap(({ drill }) => (drill === undefined ? [] : Date.parse(drill.at) || 0))
  return Math.max(last === undefined ? 0 : begunAt(last), ...drills, 0)
}

/** Switched off again and again a machine tells nothing new. */
function hasFailed(last: Incident, node: NodeSeen, { before }: DrillTurn): boolean {
  const digests = new Set(node.path.levels.flat().map(({ digest }) => digest))
  return last.status.outcome !== 'Drilled' && begunAt(last) >= Date.parse(before) && given(last.status).some(({ action, digest }) => action === 'off' && digest !== undefined && digests.has(digest))
}
