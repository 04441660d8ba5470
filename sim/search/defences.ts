// The defences that exist for a schedule, each with the cut that takes it out. A cut is a piece of the product's own text, found
// exactly once, and what stands in its place: a defence that was reworded fails its test until the cut is reworded too.
import type { Ms } from '../../core/model.ts'
import type { Scene } from './scene.ts'
import type { Trouble } from './trouble.ts'

export interface Defence {
  readonly name: string
  /** What it is there for. */
  readonly against: string
  readonly cuts: readonly Cut[]
  /** Kinds of trouble that it exists for: its own search draws more of these. */
  readonly troubles?: readonly (string | Aimed)[]
  /** What the cluster must be like for it to matter. */
  readonly scene?: Partial<Scene>
  /** Nothing else goes wrong, in a cluster that is the usual one but for `scene`. */
  readonly alone?: true
  /** A defence that does as much in every schedule there is: they are searched together, and `story` shows this one alone. */
  readonly behind?: string
  readonly story?: string
  /** Why no judge can see that it is missing. */
  readonly unseen?: string
}

/** A trouble whose time, place or manner matters: the rest of it is drawn. */
export interface Aimed extends Partial<Pick<Trouble, 'on' | 'how' | 'after'>> {
  readonly does: string
  /** Drawn from within. */
  readonly at?: readonly [Ms, Ms]
  readonly span?: readonly [Ms, Ms]
}

export interface Cut {
  /** From the repository's root. */
  readonly file: string
  readonly take: string
  readonly put: string
}

function one(name: string, against: string, file: string, take: string, put: string, more: Omit<Defence, 'name' | 'against' | 'cuts'> = {}): Defence {
  return { name, against, cuts: [{ file, take, put }], ...more }
}

/** In seconds from the end of the calm, or from its cue. */
function aim(does: string, at: readonly [number, number], span: readonly [number, number], more: Partial<Aimed> = {}): Aimed {
  return { does, on: 'victim', ...more, at: [at[0] * 1_000, at[1] * 1_000], span: [span[0] * 1_000, span[1] * 1_000] }
}

/** Of two feeds that a drill has shown to be its own, one calls itself off while the machine runs by both. */
const drilledFeeds: Pick<Defence, 'alone' | 'scene' | 'troubles'> = {
  alone: true, scene: { power: 'two feeds on two strips' },
  troubles: [
    aim('a node is drilled', [0.1, 0.3], [105, 107], { how: 'and all is well' }), aim('a device calls its machine off whatever is so', [64, 65], [40, 43], { how: '0 outlet feed-a' }),
    aim('a node is cut off', [68, 69], [38, 40]),
  ],
}

/** A node is well, and only the replica that does not lead hears it: neither that one nor any peer can tell the leader. */
const heardByOneReplica: Pick<Defence, 'alone' | 'troubles'> = {
  alone: true, troubles: [
    ...['node-1', 'node-2', 'node-3', 'node-4', 'node-5'].map((on) => aim('whispers are swallowed', [22, 23], [80, 85], { on })),
    aim('the replicas lose each other', [24, 25], [70, 75]), aim('a replica loses one node', [26, 28], [60, 65], { how: 'leader' }),
  ],
}

export const defences: readonly Defence[] = [
  one('decides-at-all', 'a product that always holds', 'core/decide.ts', 'if (seen.self.term === undefined) return []', 'if (now > 0) return []'),
  // Proofs.
  one('two-readings', 'a device that says off once', 'core/reading.ts', 'last.startedAt - first.endedAt < apart ? undefined', 'last.endedAt < first.endedAt ? undefined', { troubles: ['a device says off once', 'the kernel freezes and thaws'] }),
  one('readings-after-the-order', 'an off read before the order had ended', 'core/proof.ts', 'const pair = twoOffs(readings, since, now)', 'const pair = twoOffs(readings, -Infinity, now)', { unseen: 'an off that is true ends the boot of which it is read, and a boot takes longer than a sweep may' }),
  one('no-proof-while-on-may-land', 'an on of a deposed leader that is still under way', 'core/proof.ts', 'if (late !== undefined) return { lacks: `the order on to ${late.method} may still land` }', '', { unseen: 'no rack of the world has a level that is given up and switched on again before another one' }),
  one('found-off-probe', 'a device that says off of a machine that answers', 'core/proof.ts', "if (node.probe.word !== 'silent') return { lacks: 'the kubelet port answers' }", '', { unseen: 'a node whose port answers is ill, and no incident of it is opened' }),
  one('found-off-witness', 'a device that says off of a machine that its peers hear', 'core/proof.ts', "if (asked.some((witness) => witness.word === 'hears')) return 'a witness hears the node'", '', { unseen: 'a witness that hears the node has its seal, and that alone keeps the node alive' }),
  one('identity-of-readings', 'two devices that were swapped', 'core/path.ts', 'return machine !== undefined && node.machine !== \'\' && !sameMachine(machine, node.machine)', 'return false', { alone: true, troubles: [aim('two devices are swapped', [0.2, 0.4], [100, 105], { how: 'bmc' }), aim('the kernel freezes and thaws', [3, 4], [30, 40])] }),
  one('fresh-off-before-each-batch', 'power that comes back after the proof', 'core/proof.ts', "return last?.state === 'off' && !isStrange(last, node) && now - last.endedAt <= within", 'return last !== undefined || now > within', { alone: true, behind: 'contradiction-stops+new-boot-ends-the-proof', story: 'test/core/proof.test.ts', troubles: [aim('power is lost and comes back', [1, 1.2], [10, 11]), aim('a replica is killed', [1, 1.1], [42, 44], { on: '1' }), aim('a replica dies at a write', [3, 3], [40, 42], { on: '0', how: '5 answered 0 0' })] }),
  one('contradiction-stops', 'a device that says on after the proof', 'core/clearing.ts', 'const doubt = doubtOf(proof, incident, node, on.now)', 'const doubt = undefined as string | undefined', { alone: true, scene: { power: 'two feeds on two strips' }, behind: 'fresh-off-before-each-batch+off-on-every-method', story: 'test/core/decide-clear.test.ts', troubles: [aim('the kernel freezes and thaws', [1, 2], [60, 65]), aim('a device takes orders and ignores them', [0.2, 0.5], [95, 100], { how: '0 outlet feed-b' })] }),
  one('path-never-read-on', 'a device that never said on of this boot', 'core/path.ts', "? undefined : `${method.name} was never read on in this boot`", '? undefined : undefined', { alone: true, troubles: [aim('a device forgets its outlets and calls them off', [0.2, 0.5], [105, 108], { how: '0 device bmc' }), aim('every replica is killed', [0.3, 0.6], [9, 11], { on: '' }), aim('the machine reboots', [1, 1.5], [1, 2]), aim('the kernel freezes and thaws', [45, 46], [30, 35]), aim('every NodeRecord is deleted', [49, 51], [1, 2], { on: '' })] }),
  one('off-on-every-method', 'one feed of two that is on', 'core/proof.ts', "if (pair === undefined) return { lacks: `${method.name} was not yet read off twice since the order` }", 'if (pair === undefined) continue', { alone: true, scene: { power: 'two feeds on two strips' }, behind: 'fresh-off-before-each-batch+contradiction-stops', story: 'test/core/proof.test.ts', troubles: [aim('the kernel freezes and thaws', [1, 2], [60, 65]), aim('a device takes orders and ignores them', [0.2, 0.5], [95, 100], { how: '0 outlet feed-b' })] }),
  one('found-off-on-every-method', 'one feed of two that was lost', 'core/proof.ts', "if (pair === undefined) return { lacks: `${method.name} was not yet read off twice` }", 'if (pair === undefined) continue', { ...drilledFeeds, behind: 'no-other-path-says-on+fresh-off-before-each-batch+contradiction-stops', story: 'test/core/proof.test.ts' }),
  one('no-other-path-says-on', 'an outlet that feeds nothing, below a controller that says on', 'core/proof.ts', "const other = powerMethods(node).find((method) => readingsOf(node, method).at(-1)?.state === 'on')", 'const other = node.path.levels.flat().find(() => now < 0)', { ...drilledFeeds, behind: 'found-off-on-every-method+fresh-off-before-each-batch+contradiction-stops', story: 'test/core/proof.test.ts' }),
  one('audited-before-found-off', 'a path that said off while the machine ran', 'core/proof.ts', "if (audit?.state !== 'verified') return ", 'if (audit === undefined) return ', { alone: true, troubles: [aim('a device calls its machine off whatever is so', [0.2, 0.5], [105, 108], { how: '0 device bmc' }), aim('the machine reboots', [1, 1.5], [1, 2]), aim('the kernel freezes and thaws', [45, 50], [20, 25])] }),
  one('neighbours-answer', 'an outlet that feeds another machine', 'core/proof.ts', 'if (!isIdentified(node, method, incident.boot)) {', 'if (now < 0) {', { alone: true, scene: { power: 'outlet', zones: 1 }, troubles: [aim('two devices are swapped', [0.2, 0.5], [100, 105], { how: 'outlet' }), aim('the kernel freezes and thaws', [2, 3], [30, 40])] }),
  one('ended-before-proof', 'an order that is under way still', 'core/proof.ts', "attempts.find((attempt) => attempt.result === 'running' && (", 'attempts.find((attempt) => now < 0 && (', { unseen: 'no device is asked while an order to it runs, and what it said before does not count' }),
  // Judgement.
  one('reset-is-no-silence', 'a kubelet port that refuses: a kernel runs there', 'coordinator/look.ts', "observation.probed(node, { askedAt, answeredAt: clock.now(), word })", "observation.probed(node, { askedAt, answeredAt: clock.now(), word: word === 'refused' ? 'silent' : word })", { alone: true, troubles: [aim('the kubelet is dead', [24, 26], [28, 32]), aim('the agent is dead', [24, 26], [28, 32])] }),
  one('probe-heard-before', 'a firewalled kubelet port', 'core/judge.ts', "if (audited?.answered !== true || boot === undefined || !sameBoot(audited.boot, boot)) return 'the kubelet port was not heard to answer at its last audit in this boot, so its silence proves nothing'", 'if (boot === undefined) return \'\'', { alone: true, troubles: [aim('a firewall swallows the kubelet port', [0.4, 0.6], [39, 39.5]), aim('the machine reboots', [1, 1.2], [1, 2]), aim('a replica loses one node', [40, 40.5], [60, 60], { how: 'leader' }), aim('the agent is dead', [64, 65], [40, 41])] }),
  one('two-witnesses', 'one peer that is deaf itself', 'core/judge.ts', 'agents.length >= 2 :', 'agents.length >= 0 :', heardByOneReplica),
  one('peers-that-hear', 'peers of which none hears anybody', 'coordinator/ears.ts', "return word?.word === 'deaf' && beside.length > 0 && !hears() ? undefined : word", 'return word', heardByOneReplica),
  one('live-lease', 'a Lease that was read before the silence', 'core/judge.ts', 'const leaseInterval: Ms = 12_500', 'const leaseInterval: Ms = 500', { alone: true, troubles: [aim('a firewall swallows the kubelet port', [0.4, 0.6], [39, 39.5]), aim('the machine reboots', [1, 1.2], [1, 2]), aim('a replica loses one node', [40, 40.5], [60, 60], { how: 'leader' }), aim('the agent is dead', [64, 65], [40, 41])] }),
  one('sealed-words-count', 'a node that only others can hear', 'core/judge.ts', '?? -Infinity, ...sealed)', '?? -Infinity)', { alone: true, troubles: [aim('a replica loses one node', [8, 12], [60, 80], { how: 'leader' }), aim('a node loses the API server', [8, 12], [60, 80])] }),
  one('goodbye-patience', 'an agent that is upgraded', 'core/judge.ts', 'return goodbye === undefined ? usual : Math.max(usual, goodbyePatience[goodbye.why])', 'return usual', { unseen: 'an agent of the world is back within a second, and a machine that reboots is not called well' }),
  one('own-stall-is-blindness', 'a leader that stood still and wakes', 'core/brake.ts', 'if (now - self.awakeSince < wakingFor) {', 'if (now < 0) {', { unseen: 'every silence begins anew at the end of a stall, which is more than a second of patience' }),
  one('stale-watch-is-blindness', 'a watch that stalls while writes work', 'core/brake.ts', 'if (now - self.freshAt > viewHolds) {', 'if (now < 0) {', { unseen: 'each deed bears the version of what it was decided on, and a node is judged by what is heard and read live' }),
  one('storm-brake', 'a fault that is common', 'core/brake.ts', "const cluster = common(silent, nodes.length, 'in all', policies)", 'const cluster = nodes.length < 0 ? common(silent, nodes.length, \'in all\', policies) : undefined', { alone: true, scene: { nodes: 7 }, troubles: ['node-1', 'node-2', 'node-3'].map((on) => aim('a zone is cut off', [2, 2.5], [80, 90], { on })) }),
  one('stale-api-is-blindness', 'an API server that does not answer', 'core/brake.ts', 'if (now - self.apiAnsweredAt > viewHolds) {', 'if (now < 0) {', { unseen: 'nothing is ordered or freed that the API server has not taken down first' }),
  one('one-at-a-time', 'a fault that is common and comes node by node', 'core/brake.ts', 'if (fencing.size < limit || awaited()) return undefined', 'if (fencing.size < size || awaited()) return undefined', { unseen: 'no promise is a number: where nodes fall silent one by one, each is cleared before the next one' }),
  // Orders.
  one('late-off-waited-out', 'an off that lands after its program failed', 'core/plan.ts', 'if (last === undefined || last.until <= now) return undefined', 'if (last === undefined || last.until <= now || now > 0) return undefined', { alone: true, scene: { nodes: 3 }, behind: 'restore-again+device-asked-after-a-late-off', story: 'test/core/decide-close.test.ts', troubles: [aim('the kernel freezes for good', [1, 1.2], [1, 2]), aim('a device acts late', [1.8, 2.1], [2, 2.1], { how: '1 device bmc' })] }),
  one('recorded-before-touched', 'an order that no next leader knows of', 'coordinator/order.ts', 'if (!await incidents.change(deed.incident, timeline.ordered(attempt, deed.method.isolates !== undefined))) return false', 'void clock.wait(1_000).then(() => incidents.change(deed.incident, timeline.ordered(attempt, deed.method.isolates !== undefined)))', { alone: true, scene: { nodes: 3 }, behind: 'secured-after-found-off', story: 'test/coordinator/order.test.ts', troubles: [aim('a replica dies at an order', [0.1, 0.5], [100, 105], { on: 'leader', how: '1 sent 300 0' }), aim('the kernel freezes for good', [1, 1.5], [1, 2])] }),
  one('term-on-the-fence', 'a leader that slept and goes on', 'coordinator/incident.ts', 'const because = refuted(incident.status.term, term, adopting)', 'const because = undefined as string | undefined', { unseen: 'each of its writes bears a version, and the first write of the next leader changes that' }),
  one('process-group-ended', 'an order of a leader that lost its Lease', 'coordinator/coordinator.ts', 'leadership.abort(new Error(reason))', '', { unseen: 'the order is on record, and waited out as one that may land' }),
  {
    name: 'restore-again', against: 'an off that lands after the on', alone: true, scene: { nodes: 3 }, behind: 'late-off-waited-out+device-asked-after-a-late-off', story: 'test/core/decide-restore.test.ts',
    troubles: [aim('the kernel freezes for good', [1, 1.2], [1, 2]), aim('a device acts late', [1.8, 2.1], [2, 2.1], { how: '1 device bmc' })],
    cuts: [
      { file: 'core/restore.ts', take: "if (last.result === 'on' && says === 'off') return again(since((attempt) => attempt.action === 'off'))", put: '' },
      { file: 'core/restore.ts', take: "if (last.result === 'running' || last.result === 'on') return ended + incident.policy.bootWithin", put: "if (last.result === 'running' || last.result === 'on') return Infinity" },
    ],
  },
  one('dark-boot-is-ours', 'an off that lands on the next boot', 'core/restore.ts', "return says === 'off' || says === 'nothing yet' || (runs", 'return (runs', { unseen: 'a machine that such an order strikes is found off by the next incident, secured, and given back' }),
  one('holder-waited-out', 'a second leader beside the first', 'core/lease.ts', 'if (now < until) return { do: ', 'if (now < unmovedSince) return { do: ', { alone: true, scene: { nodes: 3, power: 'two feeds on two strips' }, troubles: [aim('the kernel freezes for good', [1, 3], [1, 2])] }),
  one('withdrawal-waits-for-the-end', 'an off that is under way when the node is heard again', 'core/decide.ts', 'if (running !== undefined) return [hold(', "if (running !== undefined) return [{ do: 'close', node: node.name, incident: incident.name, outcome: 'Withdrawn', because: '' }]\n    if (on.now < 0) return [hold(", { alone: true, scene: { nodes: 3 }, behind: 'secured-after-found-off', story: 'test/core/decide-heard.test.ts', troubles: [aim('the kernel freezes and thaws', [1, 1.5], [3.1, 3.4])] }),
  one('device-asked-after-a-late-off', 'an off that landed, and nobody saw it', 'core/plan.ts', 'const ends = orders.filter(({ attempt }) => isOf(attempt, method)).map(({ until }) => until)', 'const ends = orders.filter(() => now < 0).map(({ until }) => until)', { alone: true, scene: { nodes: 3 }, behind: 'restore-again+late-off-waited-out', story: 'test/core/decide-give-back.test.ts', troubles: [aim('the kernel freezes for good', [1, 1.2], [1, 2]), aim('a device acts late', [1.8, 2.1], [2, 2.1], { how: '1 device bmc' })] }),
  one('on-waited-out', 'an on that lands on the proof of the next incident', 'core/restore.ts', 'const pending = inHand(at) ?? offPending(at) ?? onPending(at)', 'const pending = inHand(at) ?? offPending(at)', { unseen: 'a machine that is switched on in the middle of a batch boots for longer than the batch lasts' }),
  one('off-is-given-back', 'a withdrawal that leaves a machine off', 'core/restore.ts', 'if (owed.length + lacking.length > 0) return', 'if (lacking.length > 0) return', { alone: true, scene: { nodes: 3 }, behind: 'secured-after-found-off', story: 'test/core/decide-give-back.test.ts', troubles: [aim('the kernel freezes and thaws', [1, 1.2], [6, 7]), aim('a device acts late', [0.3, 0.5], [7, 8], { how: '1 device bmc' })] }),
  one('owed-is-given-back', 'a feed that was off still when its incident ended', 'core/decide.ts', 'actions.push(...owing(on), ', 'actions.push(', { alone: true, scene: { nodes: 3, power: 'two feeds on one strip' }, troubles: [aim('the kernel freezes for good', [1, 1.2], [1, 2]), aim('the fence configuration is edited', [0.6, 0.8], [50, 55], { how: 'taken away', after: 'an on begins' })] }),
  one('secured-after-found-off', 'a machine that was off by itself, and nothing holds it so', 'core/clearing.ts', "if (proof.kind !== 'found-off' || shutsDown(node)) return []", 'if (on.now > 0) return []', { alone: true, scene: { nodes: 3 }, behind: 'off-is-given-back', story: 'test/core/decide-orders.test.ts', troubles: [aim('the kernel freezes and thaws', [1, 1.2], [6, 7]), aim('a device acts late', [0.3, 0.5], [7, 8], { how: '1 device bmc' })] }),
  // Deletions.
  one('uid-and-version', 'a successor pod of the same name', 'coordinator/free.ts', 'const body = { metadata: { uid, resourceVersion }, status', 'const body = { status', { alone: true, scene: { nodes: 3 }, troubles: [aim('the kernel freezes for good', [1, 1.5], [1, 2]), aim('the API server is slow for the coordinator', [0.2, 0.5], [100, 105], { on: '' }), aim('a person deletes the pods of a node that is ill', [0, 5], [1, 2], { after: 'an off is read' })] }),
  one('quarantine-with-the-order', 'a successor bound to the fenced node', 'core/pursue.ts', '...(first ? [quarantine(at)] : []),', '', { unseen: 'it is put on a moment later, and with the proof at the latest' }),
  one('void-on-a-heard-boot', 'a proof that was false', 'core/lie.ts', 'const since = lastProvenAt(incident, node.firstSeen) ?? Infinity', 'const since = Infinity', { alone: true, troubles: [aim('a device lies', [0.2, 0.5], [70, 80], { how: '0 device bmc' }), aim('the kernel freezes and thaws', [1, 2], [20, 30])] }),
  one('beat-stops-the-clear', 'a fenced boot that speaks after the proof', 'core/challenge.ts', 'return beatsSinceProof(at) || answerAfterProof(at.incident, at.node) !== undefined || (restsOnSilence(proof) && at.heard === \'old boot\')', 'return answerAfterProof(at.incident, at.node) !== undefined', { alone: true, behind: 'asks-who-hears', story: 'test/core/decide-heard.test.ts', troubles: [aim('a device lies', [0.2, 0.5], [70, 80], { how: '0 device bmc' }), aim('the kernel freezes and thaws', [1, 2], [20, 30])] }),
  one('asks-who-hears', 'a fenced boot that speaks after the proof, and not to the leader', 'core/decide.ts', ', ...askWhoHears(on, node, since, status.step === \'recovery\' ? hearsayLater : hearsayEvery)]', ']', { unseen: 'what a device that lies brings about is excused, and once faults stop every leader hears the node' }),
  one('taint-before-delete', 'successors that the scheduler sends to the dead node', 'core/clearing.ts', 'if ((node.gone !== true && !hasTaint(node, quarantineKey)) || (outOfService && !hasTaint(node, outOfServiceKey))) {', 'if (left(incident, node, on.seen.self.podBudget, provenAt, on.now)?.batch.length === 0 && (!hasTaint(node, quarantineKey) || !hasTaint(node, outOfServiceKey))) {', { alone: true, scene: { nodes: 3 }, troubles: [aim('power is lost', [1, 3], [1, 2])] }),
  one('new-boot-ends-the-proof', 'a boot that nobody proved off', 'core/decide.ts', "if (at.heard === 'new boot' || laterBoot(node, incident.boot)) return ", "if (status.step === 'recovery' && (at.heard === 'new boot' || laterBoot(node, incident.boot))) return ", { alone: true, behind: 'fresh-off-before-each-batch+contradiction-stops', story: 'test/core/decide-clear.test.ts', troubles: [aim('power is lost and comes back', [1, 1.2], [10, 11]), aim('a replica is killed', [1, 1.1], [42, 44], { on: '1' }), aim('a replica dies at a write', [3, 3], [40, 42], { on: '0', how: '5 answered 0 0' })] }),
  one('not-found-is-not-off', 'a device whose back end is gone', 'core/contract.ts', 'const state = stateOf(action, end.exitCode)', "const state = action === 'status' && end.stderr.includes('plug is not available') ? 'off' : stateOf(action, end.exitCode)", { alone: true, troubles: [aim('a device loses its back end', [0.3, 0.6], [38, 42], { how: '0 device bmc' }), aim('the kernel freezes and thaws', [0.9, 1.2], [18, 22])] }),
  one('isolation-spares-what-runs', 'a pod that runs on and has nothing on the storage that was cut off', 'core/choice.ts', "if (pod.volumes.length === 0) return 'it has no volume, and nothing proves that it does not run'", '', { alone: true, scene: { power: 'fabric, then bmc', wants: 'power after a while' }, troubles: [aim('a node is cut off', [1, 2], [25, 30])] }),
  // Return.
  one('isolated-until-clean', 'a machine that reaches its storage again, with what it had mounted', 'core/cut.ts', 'if (isDead || isClean) return undefined', "if (isDead || isClean || heard !== 'nothing') return undefined", { alone: true, scene: { power: 'fabric, then bmc', wants: 'power after a while' }, troubles: [aim('a node is cut off', [1, 2], [25, 30]), aim('the kubelet is dead', [20, 22], [40, 45])] }),
  one('let-in', 'a machine that falls silent again while its port is being switched on', 'core/let-in.ts', 'return letInItself(at, methods) ?? letInBeside(at, methods)', 'return undefined', {
    alone: true, scene: { power: 'fabric, then bmc', wants: 'power after a while' },
    troubles: [
      aim('a node is cut off', [1, 1.2], [6.8, 7.2]), aim('a replica dies at a write', [0.3, 0.9], [60, 65], { on: 'leader', how: '1 answered 0 0', after: 'an off is read' }),
      aim('a device acts late', [9, 9.2], [100, 105], { how: '1 device fabric' }), aim('a node is cut off', [0.1, 0.5], [60, 70], { after: 'an on begins' }),
    ],
  }),
  {
    name: 'out-of-service-off-before-on', against: 'volumes taken away from a running machine', alone: true, scene: { nodes: 3 }, troubles: [aim('the kernel freezes for good', [1, 3], [1, 2])],
    cuts: [
      { file: 'core/clearing.ts', take: "return [cleared(at, rest, 'everything that was to be freed is free, and the node is still off'), ", put: "return [untaint(node, 'nothing', '', incident, true), " },
      { file: 'core/restore.ts', take: "if (hasOurs(node, outOfServiceKey)) return [untaint(node, outOfServiceKey, 'the node is cleared', incident)]", put: '' },
      { file: 'core/restore.ts', take: "if (hasOurs(node, outOfServiceKey)) return [untaint(node, outOfServiceKey, 'a new boot is heard', incident, true)]", put: '' },
    ],
  },
  one('thirty-seconds', 'a controller whose cache still shows the taint', 'core/return.ts', 'if (freedByForce(incident) && (gone === undefined || now - gone < cachesOutlive)) {', 'if (now < 0 && (gone === undefined || now - gone < cachesOutlive)) {', { unseen: 'a pod that is deleted has ended here before a controller with an old cache takes its volume', alone: true, scene: { nodes: 3 }, troubles: [aim('a node is cordoned', [0.1, 0.2], [105, 108], { on: 'node-1' }), aim('a node is cordoned', [0.1, 0.2], [105, 108], { on: 'node-2' }), aim('power is lost and comes back', [1, 1.1], [8, 9]), aim('a device does not answer', [7, 7.5], [60, 65], { how: '0 device bmc' }), aim('the controllers see the nodes late', [0.4, 0.6], [105, 108], { on: '', how: '25000' }), aim('the StatefulSet is scaled down and up', [9, 14], [3, 4], { on: '', after: 'a machine booted' })] }),
  one('clean-report', 'mounts left behind', 'core/return.ts', "if (clean.report.state === 'dirty') {", "if (clean.report.state === 'dirty' && clean.at < 0) {", { alone: true, scene: { nodes: 3 }, troubles: [aim('what pods leave outlives a boot', [0.4, 0.6], [38, 42], { how: 'folders' }), aim('the kernel freezes for good', [1, 1.5], [1, 2])] }),
  one('gate-shut-at-start', 'workloads in a boot that nobody has accepted', 'core/gate.ts', "if (boot === undefined) return shut('starts nothing: which boot of the machine this is cannot be read')", "if (boot === undefined) return shut('')\n  if (clean.state !== 'dirty') return { open: true, boot }", {
    troubles: ['power is lost and comes back', 'power is lost', 'the kernel freezes and thaws'], scene: { gate: true, frees: 'deployments' },
  }),
  // Self-stop.
  one('gives-up-unpermitted', 'a node that is cut off, and that no device ends', 'agent/self-stop.ts', "if (must === 'give up' && (", "if (must === 'give up' && now < 0 && (", { alone: true, scene: { givesUp: true }, troubles: [aim('a device takes orders and ignores them', [0.2, 0.5], [108, 109], { how: '0 device bmc' }), aim('a node is cut off', [18, 19], [88, 90])] }),
  one('members-stand-in', 'a control plane that is away as a whole', 'core/self-stop.ts', 'permitting * 2 > named', 'permitting > named', { alone: true, scene: { givesUp: true }, troubles: [aim('the API server is away', [20, 21], [80, 85], { on: '' }), aim('every replica is killed', [21, 22], [80, 82], { on: '' })] }),
  // Of other drivers' volumes, and of the node's own watchdog.
  one('its-own-drivers', 'a volume whose driver lets go of what is in use', 'core/choice.ts', 'if (bare === undefined) return undefined', 'if (bare === undefined || bare.is === \'bound\') return undefined', { alone: true, scene: { apart: true }, troubles: [aim('a node is cut off with its devices', [1, 2], [105, 108])] }),
  one('watchdog-waited-out', 'a node whose watchdog has not fired yet', 'core/self-fence.ts', 'if (now < until) return { lacks: `its watchdog', 'if (now < since) return { lacks: `its watchdog', { alone: true, scene: { watchdog: 'half a minute' }, troubles: [aim('a node is cut off with its devices', [1, 2], [105, 108])] }),
  one('fed-by-a-word', 'an agent that feeds its watchdog whatever is said', 'agent/watchdog-feed.ts', 'const may = mayFeed()', 'const may = mayFeed() || clock.now() > 0', { alone: true, scene: { watchdog: 'ten seconds' }, troubles: [aim('the runtime fails', [5, 6], [100, 103], { how: 'hangs' }), aim('a node is cut off with its devices', [1, 2], [106, 108])] }),
  // People.
  {
    name: 'hands-of-people', against: 'a person who works on a node and has said so', alone: true, scene: { nodes: 3 },
    troubles: [aim('a person keeps us off the node', [0.1, 0.3], [100, 105], { how: 'maintenance' }), aim('the kernel freezes for good', [20, 22], [1, 2])],
    cuts: [
      { file: 'core/decide.ts', take: 'const off = handsOff(on.seen.self, chosen.policy) ?? othersHands(node)', put: 'const off = handsOff(on.seen.self, chosen.policy)' },
      { file: 'core/hands.ts', take: "'policy' in now ? now.policy : policy) ?? othersHands(node)", put: "'policy' in now ? now.policy : policy)" },
    ],
  },
  one('pause', 'a person who wants nothing done at all', 'core/brake.ts', 'if (self.pause !== undefined) return paused(self.pause, theirPause)', '', { alone: true, scene: { nodes: 3 }, troubles: [aim('a person pauses', [0.1, 0.3], [100, 105], { on: '' }), aim('the kernel freezes for good', [20, 22], [1, 2])] }),
  {
    name: 'kept-off', against: 'a person who wants the machine to stay off', alone: true, scene: { nodes: 3 },
    troubles: [aim('a person keeps us off the node', [0.1, 0.3], [100, 105], { how: 'keep-off' }), aim('the kernel freezes for good', [20, 22], [1, 2])],
    cuts: [
      { file: 'core/restore.ts', take: 'const stays = keptOff(node) ?? fencedTooOften(at)', put: 'const stays = fencedTooOften(at)' },
      { file: 'core/restore.ts', take: 'methods.length === 0 ? undefined : keptOff(node) ?? foreignTaint(node)', put: 'methods.length === 0 ? undefined : foreignTaint(node)' },
    ],
  },
  one('hands-in-the-machine', 'a machine that a person switched off', 'core/restore.ts', 'if ((!ours || vouched) && !incident.policy.powerOnFoundOff) {', 'if (!ours && !vouched && on.now < 0) {', { alone: true, scene: { nodes: 3 }, troubles: [aim('the kernel freezes for good', [0.1, 0.3], [1, 2]), aim('a device does not answer', [0, 0.1], [82, 92], { how: '0 device bmc', after: 'an off begins' }), aim('a person acknowledges a machine that is off', [4, 5], [104, 105], { how: '4000' })] }),
  one('kubelet-back', 'a node whose kubelet has not come up', 'core/return.ts', "if (ready.status !== 'True' || !sameBoot(ready.bootId, beat.boot)) return false", 'if (ready.bootId.length > 0) return true', { unseen: 'Kubernetes sets a taint of its own on such a node, which is waited for too' }),
  one('freed-volumes-gone', 'a volume that is being detached still', 'core/return.ts', 'if (held.length > 0) return', 'if (held.length < 0) return', { unseen: 'a kubelet mounts for pods that are bound to it, and those that wanted the volume were freed' }),
  one('foreign-taint-waits', 'out-of-service that a person put there', 'core/clear.ts', 'if (taint === undefined) return undefined', 'if (node.taints.length >= 0 || taint === undefined) return undefined', { unseen: 'whoever put it there, in this world, takes it off as soon as the machine has power' }),
]
