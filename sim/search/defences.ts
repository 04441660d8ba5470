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
  /** A defence that does as much in every schedule there is: they are searched together, and `story` shows this one alone. */
  readonly behind?: string
  readonly story?: string
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

function one(name: string, against: string, file: string, take: string, put: string, more: Pick<Defence, 'troubles' | 'scene' | 'behind' | 'story'> = {}): Defence {
  return { name, against, cuts: [{ file, take, put }], ...more }
}

export const defences: readonly Defence[] = [
  one('decides-at-all', 'a product that always holds', 'core/decide.ts', 'if (seen.self.term === undefined) return []', 'if (now > 0) return []'),
  // Proofs.
  one('two-readings', 'a device that says off once', 'core/proof.ts', 'last.startedAt - first.endedAt < apart ? undefined', 'last.endedAt < first.endedAt ? undefined', { troubles: ['a device says off once', 'the kernel freezes and thaws'] }),
  one('readings-after-the-order', 'an off read before the order had ended', 'core/proof.ts', 'const pair = twoOffs(readings, since, now)', 'const pair = twoOffs(readings, -Infinity, now)', { troubles: ['a device switches on again by itself', 'power is lost and comes back', 'a device refuses orders'] }),
  one('no-proof-while-on-may-land', 'an on of a deposed leader that is still under way', 'core/proof.ts', 'if (late !== undefined) return { lacks: `the order on to ${late.method} may still land` }', '', { troubles: ['a device acts late', 'the kernel freezes and thaws', 'a replica dies at an order'] }),
  one('found-off-probe', 'a device that says off of a machine that answers', 'core/proof.ts', "if (node.probe.word !== 'silent') return { lacks: 'the kubelet port answers' }", '', { troubles: ['a device forgets its outlets and calls them off', 'a device lies', 'the machine hibernates and wakes'] }),
  one('found-off-witness', 'a device that says off of a machine that its peers hear', 'core/proof.ts', "if (asked.some((witness) => witness.word === 'hears')) return { lacks: 'a witness hears the node' }", '', { troubles: ['a device forgets its outlets and calls them off', 'a device lies', 'a firewall swallows the kubelet port'] }),
  one('identity-of-readings', 'two devices that were swapped', 'core/proof.ts', 'return machine !== undefined && node.machine !== \'\' && !sameMachine(machine, node.machine)', 'return false', { troubles: ['two devices are swapped', 'power is lost'] }),
  one('fresh-off-before-each-batch', 'power that comes back after the proof', 'core/proof.ts', "return last?.state === 'off' && !isStrange(last, node) && now - last.endedAt <= within", 'return last !== undefined || now > within', { troubles: ['power is lost and comes back', 'a replica dies at a write', 'every replica is killed'] }),
  one('contradiction-stops', 'a device that says on after the proof', 'core/proof.ts', "if (last !== undefined && last.state !== 'off') return `${name} reads ${last.state}`", '', { troubles: ['power is lost and comes back', 'detaching is stuck', 'the power button is pressed'] }),
  one('path-never-read-on', 'a device that never said on of this boot', 'core/proof.ts', "? undefined : `${method.name} was never read on in this boot`", '? undefined : undefined', { troubles: ['the machine reboots', 'a device loses its back end', 'two devices are swapped'] }),
  one('off-on-every-method', 'one feed of two that is on', 'core/proof.ts', "if (pair === undefined) return { lacks: `${method.name} was not yet read off twice since the order` }", 'if (pair === undefined) continue', { troubles: ['the kernel freezes and thaws', 'a device takes orders and ignores them'] }),
  one('found-off-on-every-method', 'one feed of two that was lost', 'core/proof.ts', "if (pair === undefined) return { lacks: `${method.name} was not yet read off twice` }", 'if (pair === undefined) continue', { troubles: ['a strip loses its feed', 'the kernel freezes and thaws'] }),
  one('no-other-path-says-on', 'an outlet that feeds nothing, below a controller that says on', 'core/proof.ts', "const other = node.path.levels.flat().find((method) => readingsOf(node, method).at(-1)?.state === 'on')", 'const other = node.path.levels.flat().find(() => now < 0)', { troubles: ['a strip loses its feed', 'two devices are swapped'] }),
  one('audited-before-found-off', 'a path that said off while the machine ran', 'core/proof.ts', "if (audit?.state !== 'verified') return ", 'if (audit === undefined) return ', { troubles: ['a device forgets its outlets and calls them off', 'the machine reboots', 'the kernel freezes and thaws'] }),
  one('neighbours-answer', 'an outlet that feeds another machine', 'core/proof.ts', 'if (!isIdentified(node, method, incident.boot)) {', 'if (now < 0) {', { troubles: ['two devices are swapped', 'the kernel freezes and thaws'] }),
  one('ended-before-proof', 'an order that is under way still', 'core/proof.ts', "const open = attempts.find((attempt) => attempt.result === 'running')", 'const open = attempts.find(() => now < 0)', { troubles: ['a device switches on again by itself', 'the kernel freezes and thaws'] }),
  // Judgement.
  one('reset-is-no-silence', 'a kubelet port that refuses: a kernel runs there', 'core/judge.ts', "if (probe === undefined || probe.word === 'silent') return undefined", "if (probe === undefined || probe.word !== 'answered') return undefined", { troubles: ['the kubelet is dead', 'the agent is dead'] }),
  one('probe-heard-before', 'a firewalled kubelet port', 'core/judge.ts', "if (audited?.answered !== true || boot === undefined || !sameBoot(audited.boot, boot)) return 'the kubelet port was never heard to answer this replica in this boot, so its silence proves nothing'", 'if (boot === undefined) return \'\'', { troubles: ['a firewall swallows the kubelet port', 'the machine reboots', 'a replica loses one node', 'the agent is dead'] }),
  one('two-witnesses', 'one peer that is deaf itself', 'core/judge.ts', 'agents.length >= 2 :', 'agents.length >= 0 :', { troubles: ['a replica loses one node', 'the replicas lose each other', 'whispers are swallowed'] }),
  one('live-lease', 'a Lease that was read before the silence', 'core/judge.ts', 'const leaseInterval: Ms = 12_500', 'const leaseInterval: Ms = 500', { troubles: ['a firewall swallows the kubelet port', 'the machine reboots', 'a replica loses one node', 'the agent is dead'] }),
  one('sealed-words-count', 'a node that only others can hear', 'core/judge.ts', '?? -Infinity, ...sealed)', '?? -Infinity)', { troubles: ['a replica loses one node', 'a replica loses the nodes'] }),
  one('goodbye-patience', 'an agent that is upgraded', 'core/judge.ts', 'return goodbye === undefined ? usual : Math.max(usual, goodbyePatience[goodbye.why])', 'return usual', { troubles: ['the agent is upgraded', 'the machine reboots in good order', 'a replica loses one node'] }),
  one('own-stall-is-blindness', 'a leader that stood still and wakes', 'core/brake.ts', 'if (now - self.awakeSince < wakingFor) {', 'if (now < 0) {', { troubles: ['a replica stands still, its clocks run'] }),
  one('stale-watch-is-blindness', 'a watch that stalls while writes work', 'core/brake.ts', 'if (now - self.freshAt > viewHolds) {', 'if (now < 0) {', { troubles: ['the coordinator\'s watches stall', 'watches stall', 'a replica loses its watches'] }),
  one('storm-brake', 'a fault that is common', 'core/brake.ts', "const cluster = common(silent, nodes.length, 'in all', policies)", 'const cluster = nodes.length < 0 ? common(silent, nodes.length, \'in all\', policies) : undefined', { troubles: ['a zone is cut off', 'a replica loses the nodes', 'a replica is not heard by the nodes'] }),
  one('stale-api-is-blindness', 'an API server that does not answer', 'core/brake.ts', 'if (now - self.apiAnsweredAt > viewHolds) {', 'if (now < 0) {', { troubles: ['the API server is away for the coordinator', 'a replica loses the API server'] }),
  one('one-at-a-time', 'a fault that is common and comes node by node', 'core/brake.ts', 'if (fencing.size < limit) return undefined', 'if (fencing.size < size) return undefined', { troubles: ['a zone is cut off', 'a rack is unreachable'] }),
  // Orders.
  one('late-off-waited-out', 'an off that lands after its program failed', 'core/plan.ts', 'if (last === undefined || last.until <= now) return undefined', 'if (last === undefined || last.until <= now || now > 0) return undefined', { troubles: ['a device acts late', 'the kernel freezes and thaws'] }),
  one('recorded-before-touched', 'an order that no next leader knows of', 'coordinator/deed.ts', 'if (!await incidents.change(deed.incident, timeline.ordered(attempt))) return false', 'await incidents.change(deed.incident, timeline.ordered(attempt))', { troubles: ['every other write conflicts', 'every other request fails', 'the API server is away for the coordinator'] }),
  one('term-on-the-fence', 'a leader that slept and goes on', 'coordinator/incident.ts', 'if (bears > term || (bears !== term && !adopting)) return false', '', { troubles: ['a replica stands still, its clocks too', 'bad weather'] }),
  one('process-group-ended', 'an order of a leader that lost its Lease', 'coordinator/coordinator.ts', 'leadership.abort(new Error(reason))', '', { troubles: ['a replica loses the API server', 'a device acts late', 'a device answers late'] }),
  one('restore-again', 'an off that lands after the on', 'core/restore.ts', "if (last.result === 'running' || last.result === 'on') return ended + incident.policy.bootWithin", "if (last.result === 'running' || last.result === 'on') return Infinity", { troubles: ['a device acts late', 'a replica dies at an order', 'a device takes orders and ignores them'] }),
  one('dark-boot-is-ours', 'an off that lands on the next boot', 'core/restore.ts', "!givenBack && (says === 'off' || says === 'nothing yet')", "!givenBack && (says === 'off' || says === 'nothing yet') && on.now < 0", { troubles: ['a device acts late', 'the machine reboots'] }),
  one('holder-waited-out', 'a second leader beside the first', 'core/lease.ts', 'if (now < until) return { do: ', 'if (now < unmovedSince) return { do: '),
  one('withdrawal-waits-for-the-end', 'an off that is under way when the node is heard again', 'core/decide.ts', 'if (running !== undefined) return [hold(', 'if (on.now < 0) return [hold(', { troubles: ['the kernel freezes and thaws'] }),
  one('device-asked-after-a-late-off', 'an off that landed, and nobody saw it', 'core/plan.ts', 'const ends = orders.filter(({ attempt }) => isOf(attempt, method)).map(({ until }) => until)', 'const ends = orders.filter(() => now < 0).map(({ until }) => until)', { troubles: ['a device acts late', 'the kernel freezes and thaws'] }),
  one('on-waited-out', 'an on that lands on the proof of the next incident', 'core/restore.ts', 'const pending = inHand(at) ?? offPending(at) ?? onPending(at)', 'const pending = inHand(at) ?? offPending(at)', { troubles: ['a device acts late', 'the kernel freezes and thaws'] }),
  one('off-is-given-back', 'a withdrawal that leaves a machine off', 'core/restore.ts', 'if (owed.length + lacking.length > 0) return', 'if (lacking.length > 0) return', { troubles: ['the kernel freezes and thaws', 'a device acts late'] }),
  one('secured-after-found-off', 'a machine that was off by itself, and nothing holds it so', 'core/clearing.ts', "if (proof.kind !== 'found-off' || shutsDown(node)) return []", 'if (on.now > 0) return []', { troubles: ['power is lost and comes back', 'detaching is stuck'] }),
  // Deletions.
  one('uid-and-version', 'a successor pod of the same name', 'coordinator/deed.ts', 'const body = { metadata: { uid, resourceVersion }, status', 'const body = { status', { troubles: ['the StatefulSet is scaled down and up', 'bad weather', 'every other answer is lost'] }),
  one('quarantine-with-the-order', 'a successor bound to the fenced node', 'core/decide.ts', '...(first ? [quarantine(at)] : []),', ''),
  one('void-on-a-heard-boot', 'a proof that was false', 'core/decide.ts', 'answered !== undefined && answered.issuedAt > (provenAt(at) ?? at.on.now) &&', 'answered !== undefined && answered.issuedAt < 0 &&', { troubles: ['a device lies', 'a device says off early', 'the kernel freezes and thaws'] }),
  one('beat-stops-the-clear', 'a fenced boot that speaks after the proof', 'core/decide.ts', 'if (beatsSinceProof(at) || hasAnswered(at)) return', 'if (hasAnswered(at)) return', { troubles: ['a device lies', 'a device says off early', 'detaching is stuck'] }),
  one('taint-before-delete', 'successors that the scheduler sends to the dead node', 'core/clearing.ts', 'if (!hasTaint(node, quarantineKey) || (outOfService && !hasTaint(node, outOfServiceKey))) {', 'if (left(incident, node, on.seen.self.podBudget, provenAt, on.now)?.batch.length === 0 && (!hasTaint(node, quarantineKey) || !hasTaint(node, outOfServiceKey))) {'),
  one('new-boot-ends-the-proof', 'a boot that nobody proved off', 'core/decide.ts', "if (at.heard === 'new boot' || laterBoot(node, incident.boot)) return ", "if (status.step === 'recovery' && (at.heard === 'new boot' || laterBoot(node, incident.boot))) return ", { troubles: ['power is lost and comes back', 'detaching is stuck', 'every replica is killed'] }),
  one('not-found-is-not-off', 'a device whose back end is gone', 'core/contract.ts', 'const state = stateOf(action, end.exitCode)', "const state = action === 'status' && end.stderr.includes('plug is not available') ? 'off' : stateOf(action, end.exitCode)", { troubles: ['a device loses its back end', 'the kernel freezes and thaws'] }),
  // Return.
  {
    name: 'out-of-service-off-before-on', against: 'volumes taken away from a running machine', troubles: ['the kernel freezes for good'],
    cuts: [
      { file: 'core/clearing.ts', take: "return [cleared(at, rest, 'everything that was to be freed is free, and the node is still off'), ", put: "return [untaint(node, 'nothing', '', incident, true), " },
      { file: 'core/restore.ts', take: "if (hasOurs(node, outOfServiceKey)) return [untaint(node, outOfServiceKey, 'the node is cleared', incident)]", put: '' },
      { file: 'core/restore.ts', take: "if (hasOurs(node, outOfServiceKey)) return [untaint(node, outOfServiceKey, 'a new boot is heard', incident, true)]", put: '' },
    ],
  },
  one('thirty-seconds', 'a controller whose cache still shows the taint', 'core/return.ts', 'if (freedByForce(incident) && (gone === undefined || now - gone < cachesOutlive)) {', 'if (now < 0 && (gone === undefined || now - gone < cachesOutlive)) {', { troubles: ['the controllers lag', 'the kernel freezes and thaws', 'the kubelet is dead'] }),
  one('clean-report', 'mounts left behind', 'core/return.ts', "if (clean.report.state === 'dirty') {", "if (clean.report.state === 'dirty' && now < 0) {", { troubles: ['what pods leave outlives a boot', 'the kernel freezes for good'] }),
  one('gate-shut-at-start', 'workloads in a boot that nobody has accepted', 'core/gate.ts', "if (boot === undefined) return shut('starts nothing: which boot of the machine this is cannot be read')", "if (boot === undefined) return shut('')\n  if (clean.state !== 'dirty') return { open: true, boot }", {
    troubles: ['power is lost and comes back', 'power is lost', 'the kernel freezes and thaws'], scene: { gate: true, frees: 'deployments' },
  }),
  one('hands-in-the-machine', 'a machine that a person switched off', 'core/restore.ts', 'if ((!ours || vouched) && !incident.policy.powerOnFoundOff) {', 'if (!ours && !vouched && on.now < 0) {', { troubles: ['the power button is pressed', 'power is lost'] }),
  one('kubelet-back', 'a node whose kubelet has not come up', 'core/return.ts', "if (ready.status !== 'True' || !sameBoot(ready.bootId, beat.boot)) return false", 'if (ready.bootId.length > 0) return true', { troubles: ['the kubelet is dead', 'the machine reboots'] }),
  one('freed-volumes-gone', 'a volume that is being detached still', 'core/return.ts', 'if (held.length > 0) return', 'if (held.length < 0) return', { troubles: ['detaching is stuck', 'power is lost and comes back'] }),
  one('foreign-taint-waits', 'out-of-service that a person put there', 'core/clear.ts', 'if (taint === undefined) return undefined', 'if (node.taints.length >= 0 || taint === undefined) return undefined', { troubles: ['a person puts out-of-service on the node', 'the kernel freezes and thaws'] }),
]
