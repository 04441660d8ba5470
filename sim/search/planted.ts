// Mistakes that a product like this one has been seen to make, planted on purpose: each a change of the product's own text, as
// sim/search/cut.ts makes it, and a schedule under which a judge sees what comes of it. The same schedule finds nothing wrong
// with the product as it is. Where one defence stands behind another, both are taken out, and `beside` is the other: the mistake alone
// does not the harm that it would, and that the other alone is gone does none.
import type { Cut } from './defences.ts'
import type { Judge } from './judgement.ts'
import type { Schedule } from './schedule.ts'
import type { Trouble } from './trouble.ts'

export interface Plant {
  readonly name: string
  /** The mistake itself. */
  readonly cuts: readonly Cut[]
  /** The defences that had to be taken out as well. */
  readonly beside?: { readonly name: string; readonly cuts: readonly Cut[] }
  readonly schedule: Schedule
  readonly judge: Judge
}

/** What asks before each batch whether the proof still holds, and what stops at a word against it. */
const freshOffAndContradiction: NonNullable<Plant['beside']> = {
  name: 'fresh-off-before-each-batch and contradiction-stops',
  cuts: [
    { file: 'core/proof.ts', take: "return last?.state === 'off' && !isStrange(last, node) && now - last.endedAt <= within", put: 'return now >= within' },
    { file: 'core/clearing.ts', take: 'const doubt = doubtOf(proof, incident, node, on.now)', put: 'const doubt = undefined as string | undefined' },
  ],
}

const scene: Schedule['scene'] = { nodes: 5, zones: 3, replicas: 2, profile: 'fast', feed: 'own' }

/** Mistake and all. */
export function cutsOfPlant({ cuts, beside }: Plant): readonly Cut[] {
  return [...cuts, ...beside?.cuts ?? []]
}

/** In seconds from the end of the calm, as a person reads them. */
function trouble(does: string, at: number, span: number, wanted: Partial<Trouble> = {}): Trouble {
  return { does, at: at * 1_000, span: span * 1_000, on: 'victim', ...wanted }
}

/** Everything is over after `relief` seconds; what a plant leaves undone it leaves so for ever, and nobody need wait for it. */
function schedule(seed: number, relief: number, ...troubles: readonly Trouble[]): Schedule {
  return { seed, scene, troubles, reliefAt: relief * 1_000, shortest: relief * 1_000, patience: 240_000 }
}

/** The machine stands still, and goes on writing where it was. */
const frozen = (from: number, until: number): Trouble => trouble('the kernel freezes and thaws', from, until - from)

export const planted: readonly Plant[] = [
  {
    name: 'not found taken for off', judge: 'safety',
    cuts: [{
      file: 'core/contract.ts', take: 'const state = stateOf(action, end.exitCode)',
      put: "const state = action === 'status' && end.stderr.includes('plug is not available') ? 'off' : stateOf(action, end.exitCode)",
    }],
    schedule: schedule(1, 60, trouble('a device loses its back end', 0.5, 40, { how: '0' }), frozen(1, 21)),
  },
  {
    name: 'proof from exit 0 alone', judge: 'safety', beside: freshOffAndContradiction,
    cuts: [
      {
        file: 'core/proof.ts', take: 'const pair = twoOffs(readings, since, now)',
        put: "const said: Reading = { method: method.name, state: 'off', startedAt: now, endedAt: now, evidence: '', digest: method.digest }\n"
          + "    const pair = order.result === 'off' ? { first: said, last: said } : undefined",
      },
    ],
    schedule: schedule(1, 60, frozen(1, 21), trouble('a device loses its back end', 3.7, 40, { how: '0' })),
  },
  {
    name: 'delete before taint', judge: 'progress',
    cuts: [{
      file: 'core/clearing.ts', take: 'if ((node.gone !== true && !hasTaint(node, quarantineKey)) || (outOfService && !hasTaint(node, outOfServiceKey))) {',
      put: 'if (left(incident, node, on.seen.self.podBudget, provenAt, on.now)?.batch.length === 0 && (!hasTaint(node, quarantineKey) || !hasTaint(node, outOfServiceKey))) {',
    }],
    // Of three nodes the dead one has the fewest pods left, so the scheduler sends the successors there.
    schedule: { ...schedule(1, 60, trouble('power is lost', 1, 1)), scene: { ...scene, nodes: 3 } },
  },
  {
    name: 'out-of-service left on while powering on', judge: 'liveness',
    cuts: [
      { file: 'core/clearing.ts', take: "return [cleared(at, rest, 'everything that was to be freed is free, and the node is still off'), ", put: "return [untaint(node, 'nothing', '', incident, true), " },
      { file: 'core/restore.ts', take: "if (hasOurs(node, outOfServiceKey)) return [untaint(node, outOfServiceKey, 'the node is cleared', incident)]", put: '' },
      { file: 'core/restore.ts', take: "if (hasOurs(node, outOfServiceKey)) return [untaint(node, outOfServiceKey, 'a new boot is heard', incident, true)]", put: '' },
    ],
    schedule: { ...schedule(1, 60, trouble('the kernel freezes for good', 1, 1)), scene: { ...scene, nodes: 3 } },
  },
  {
    name: 'restore remembered as done', judge: 'liveness',
    beside: {
      name: 'late-off-waited-out and device-asked-after-a-late-off',
      cuts: [
        { file: 'core/plan.ts', take: 'if (last === undefined || last.until <= now) return undefined', put: 'if (last === undefined || now > 0) return undefined' },
        { file: 'core/plan.ts', take: 'const ends = orders.filter(({ attempt }) => isOf(attempt, method)).map(({ until }) => until)', put: 'const ends = orders.filter(() => now < 0).map(({ until }) => until)' },
      ],
    },
    cuts: [
      { file: 'core/restore.ts', take: "if (last.result === 'on' && says === 'off') return again(since((attempt) => attempt.action === 'off'))", put: '' },
      { file: 'core/restore.ts', take: "if (last.result === 'running' || last.result === 'on') return ended + incident.policy.bootWithin", put: "if (last.result === 'running' || last.result === 'on') return Infinity" },
    ],
    // The first order fails and lands a quarter of a minute later, when the machine that was switched on boots.
    schedule: { ...schedule(1, 60, trouble('the kernel freezes for good', 1, 1), trouble('a device acts late', 2, 2.05, { how: '1' })), scene: { ...scene, nodes: 3 } },
  },
  {
    name: 'a node judged by a cached Lease', judge: 'restraint',
    cuts: [{
      file: 'coordinator/observe.ts', take: 'row.lease = leaseAfter(row.lease, askedAt, clock.now(), renewTime)',
      put: 'row.lease = leaseAfter(row.lease, askedAt, clock.now(), row.lease?.renewTime ?? renewTime)',
    }],
    schedule: onlyItsLeaseSpeaks(1),
  },
  {
    name: 'a reset taken for silence', judge: 'restraint',
    cuts: [{
      file: 'coordinator/look.ts', take: 'observation.probed(node, { askedAt, answeredAt: clock.now(), word })',
      put: "observation.probed(node, { askedAt, answeredAt: clock.now(), word: word === 'refused' ? 'silent' : word })",
    }],
    // Both of its programs are dead, and its containers write on.
    schedule: schedule(1, 90, trouble('the kubelet is dead', 25, 30), trouble('the agent is dead', 25, 30)),
  },
  {
    name: 'a firewalled port taken for silence', judge: 'restraint',
    cuts: [{ file: 'core/judge.ts', take: 'if (audited?.answered !== true || boot === undefined || !sameBoot(audited.boot, boot)) return ', put: 'if (boot === undefined) return ' }],
    schedule: onlyItsLeaseSpeaks(1),
  },
  {
    name: 'a rebooted node let back without a clean report', judge: 'safety',
    cuts: [{ file: 'core/return.ts', take: "if (clean.report.state === 'dirty') {", put: "if (clean.report.state === 'dirty' && clean.at < 0) {" }],
    // The folders of the pods that were freed stay where they are for as long.
    schedule: { ...schedule(1, 100, trouble('what pods leave outlives a boot', 0.5, 40, { how: 'folders' }), trouble('the kernel freezes for good', 1, 1)), scene: { ...scene, nodes: 3 } },
  },
  {
    name: 'a proof carried over to a new boot', judge: 'safety', beside: freshOffAndContradiction,
    cuts: [
      { file: 'core/decide.ts', take: "if (at.heard === 'new boot' || laterBoot(node, incident.boot)) return ", put: "if (status.step === 'recovery' && (at.heard === 'new boot' || laterBoot(node, incident.boot))) return " },
    ],
    schedule: schedule(
      1, 100, trouble('power is lost and comes back', 1, 10), trouble('a replica is killed', 1, 44, { on: '1' }),
      trouble('a replica dies at a write', 3, 42, { on: '0', how: '5 answered 0 0' }),
    ),
  },
  {
    name: 'withdrawal while an off is under way', judge: 'liveness',
    beside: {
      name: 'secured-after-found-off',
      cuts: [{ file: 'core/clearing.ts', take: "if (proof.kind !== 'found-off' || shutsDown(node)) return []", put: 'if (shutsDown(node) || on.now > 0) return []' }],
    },
    cuts: [
      { file: 'core/decide.ts', take: 'if (running !== undefined) return [hold(', put: "if (running !== undefined) return [{ do: 'close', node: node.name, incident: incident.name, outcome: 'Withdrawn', because: '' }]\n    if (on.now < 0) return [hold(" },
    ],
    // It thaws when the device has taken the order and has not carried it out yet.
    schedule: { ...schedule(1, 60, frozen(1, 4.25)), scene: { ...scene, nodes: 3 } },
  },
  {
    name: 'two leaders overlapping', judge: 'progress',
    beside: {
      name: 'neighbours-asked-after-a-failed-order',
      cuts: [{ file: 'core/pursue.ts', take: 'challengeNeighbours(on, incident, node), ...back]', put: 'back]' }],
    },
    // Each stands for an election of its own, and wins it.
    cuts: [
      { file: 'coordinator/coordinator.ts', take: "name: 'holdfast-coordinator', log,", put: 'name: `holdfast-coordinator-${identity}`, log,' },
    ],
    // Two feeds take two orders, and each leader thinks that the other one's is over, and has failed.
    schedule: { ...schedule(2, 60, trouble('the kernel freezes for good', 1, 1)), scene: { ...scene, nodes: 3, power: 'two feeds on two strips' } },
  },
  {
    name: 'a dump cut short', judge: 'restraint',
    cuts: [{ file: 'core/pursue.ts', take: 'const dump = powerOrdered(incident, node) ? undefined :', put: 'const dump = powerOrdered(incident, node) || on.now > 0 ? undefined :' }],
    schedule: { ...schedule(1, 60, trouble('the kernel panics, and dumps', 8, 1, { how: '4000 50 40000' })), scene: { ...scene, nodes: 3, dumps: 'refused' } },
  },
  {
    name: "a crash kernel's word taken as it comes", judge: 'safety',
    cuts: [{ file: 'core/dump.ts', take: 'const doubt = isTold(node, incident) ? undefined : doubtOfSilence(node)', put: 'const doubt = isTold(node, incident) || self.awakeSince >= 0 ? undefined : doubtOfSilence(node)' }],
    // Both of its programs are dead, and its containers write on.
    schedule: {
      ...schedule(1, 180, trouble('the kubelet is dead', 25, 150), trouble('the agent is dead', 25, 150), trouble("a crash kernel's word is forged", 28, 140)),
      scene: { ...scene, nodes: 3, dumps: 'accepted' },
    },
  },
  {
    name: 'a remedy for many that ail alike', judge: 'restraint',
    cuts: [{ file: 'core/remedy.ts', take: 'if (alike < 2 || alike * 100 <= brakes.stormPercent * all) return undefined', put: 'if (alike < 2 || alike * 100 <= brakes.stormPercent * all || all > 0) return undefined' }],
    schedule: { ...schedule(1, 500, trouble('disks fill up', 1, 490, { how: '7 for good' })), scene: { ...scene, remedy: 'fence' } },
  },
  {
    name: 'a remedy for a node in a person\'s hands', judge: 'restraint',
    cuts: [{ file: 'core/remedy.ts', take: 'const brake = ownHands(on, node, chosen.policy) ??', put: 'const brake =' }],
    schedule: { ...schedule(1, 500, trouble('a person keeps us off the node', 60, 430, { how: 'exclude' }), trouble('disks fill up', 1, 490, { how: '1 for good' })), scene: { ...scene, remedy: 'fence' } },
  },
  {
    name: 'an abort that nobody heeds', judge: 'restraint',
    beside: { name: 'no-order-under-an-abort', cuts: [{ file: 'coordinator/order.ts', take: "if (known.abort) return 'a person aborted it'", put: '' }] },
    cuts: [{ file: 'core/decide.ts', take: "if (incident.abort) return [withdraw(incident, 'a person aborted it')]", put: '' }],
    // Its path answers long after the abort.
    schedule: schedule(1, 60, trouble('a device does not answer', 0.5, 40, { how: '0 device bmc' }), trouble('a person fences the node', 1, 8, { how: 'and aborts it' })),
  },
  {
    name: 'a volume that many may have taken for one that its driver keeps', judge: 'safety',
    cuts: [{ file: 'core/choice.ts', take: "return is === 'bound' && !shared && drivers.includes(driver)", put: "return is === 'bound' && (shared || !shared) && drivers.includes(driver)" }],
    // It runs, nobody hears it, and no device tells of it.
    schedule: {
      ...schedule(1, 150, trouble('a device does not answer', 0.5, 145, { how: '0 device bmc' }), trouble('a node is cut off', 1, 140)),
      scene: { ...scene, nodes: 3, apart: true, shared: true },
    },
  },
]

/** A node that was well all the time, whose port nobody who leads ever heard in its boot, and of which at last its Lease alone
 *  speaks: it booted behind a firewall, the leader lost it when that was opened, and then its agent died. */
function onlyItsLeaseSpeaks(seed: number): Schedule {
  return schedule(
    seed, 110, trouble('a firewall swallows the kubelet port', 0.5, 39.5), trouble('the machine reboots', 1, 1),
    trouble('a replica loses one node', 40, 60, { how: 'leader' }), trouble('the agent is dead', 64, 40),
  )
}
