// The defences that exist for a schedule, each with the cut that takes it out. A cut is a piece of the product's own text, found
// exactly once, and what stands in its place: a defence that was reworded fails its test until the cut is reworded too.
export interface Defence {
  readonly name: string
  /** What it is there for. */
  readonly against: string
  readonly cuts: readonly Cut[]
}

export interface Cut {
  /** From the repository's root. */
  readonly file: string
  readonly take: string
  readonly put: string
}

function one(name: string, against: string, file: string, take: string, put: string): Defence {
  return { name, against, cuts: [{ file, take, put }] }
}

export const defences: readonly Defence[] = [
  one('decides-at-all', 'a product that always holds', 'core/decide.ts', 'if (seen.self.term === undefined) return []', 'if (now > 0) return []'),
  // Proofs.
  one('two-readings', 'a device that says off once', 'core/proof.ts', 'last.startedAt - first.endedAt < apart ? undefined', 'last.endedAt < first.endedAt ? undefined'),
  one('readings-after-the-order', 'an off read before the order had ended', 'core/proof.ts', 'const pair = twoOffs(readings, settledAt(node, orders), now)', 'const pair = twoOffs(readings, -Infinity, now)'),
  one('no-proof-while-on-may-land', 'an on of a deposed leader that is still under way', 'core/proof.ts', 'if (late !== undefined) return { lacks: `the order on to ${late.method} may still land` }', ''),
  one('found-off-probe', 'a device that says off of a machine that answers', 'core/proof.ts', "if (node.probe.word !== 'silent') return { lacks: 'the kubelet port answers' }", ''),
  one('found-off-witness', 'a device that says off of a machine that its peers hear', 'core/proof.ts', "if (asked.some((witness) => witness.word === 'hears')) return { lacks: 'a witness hears the node' }", ''),
  one('identity-of-readings', 'two devices that were swapped', 'core/proof.ts', 'return machine !== undefined && node.machine !== \'\' && !sameMachine(machine, node.machine)', 'return false'),
  one('fresh-off-before-each-batch', 'power that comes back after the proof', 'core/proof.ts', "return last?.state === 'off' && !isStrange(last, node) && now - last.endedAt <= within", 'return last !== undefined || now > within'),
  one('contradiction-stops', 'a device that says on after the proof', 'core/proof.ts', "if (last !== undefined && last.state !== 'off') return `${name} reads ${last.state}`", ''),
  one('path-never-read-on', 'a device that never said on of this boot', 'core/proof.ts', "? undefined : `${method.name} was never read on in this boot`", '? undefined : undefined'),
  // Judgement.
  one('reset-is-no-silence', 'a kubelet port that refuses: a kernel runs there', 'core/judge.ts', "if (probe === undefined || probe.word === 'silent') return undefined", "if (probe === undefined || probe.word !== 'answered') return undefined"),
  one('probe-heard-before', 'a firewalled kubelet port', 'core/judge.ts', "if (audited?.answered !== true || boot === undefined || !sameBoot(audited.boot, boot)) return 'the kubelet port was never heard to answer this replica in this boot, so its silence proves nothing'", 'if (boot === undefined) return \'\''),
  one('two-witnesses', 'one peer that is deaf itself', 'core/judge.ts', 'agents.length >= 2 :', 'agents.length >= 0 :'),
  one('live-lease', 'a Lease that was read before the silence', 'core/judge.ts', 'const leaseInterval: Ms = 12_500', 'const leaseInterval: Ms = 500'),
  one('sealed-words-count', 'a node that only others can hear', 'core/judge.ts', '?? -Infinity, ...sealed)', '?? -Infinity)'),
  one('goodbye-patience', 'an agent that is upgraded', 'core/judge.ts', 'return goodbye === undefined ? usual : Math.max(usual, goodbyePatience[goodbye.why])', 'return usual'),
  one('own-stall-is-blindness', 'a leader that stood still and wakes', 'core/brake.ts', 'if (now - self.awakeSince < wakingFor) {', 'if (now < 0) {'),
  one('stale-watch-is-blindness', 'a watch that stalls while writes work', 'core/brake.ts', 'if (now - self.freshAt > viewHolds) {', 'if (now < 0) {'),
  one('storm-brake', 'a fault that is common', 'core/brake.ts', "const cluster = common(silent, nodes.length, 'in all', policies)", 'const cluster = nodes.length < 0 ? common(silent, nodes.length, \'in all\', policies) : undefined'),
  // Orders.
  one('late-off-waited-out', 'an off that lands after its program failed', 'core/plan.ts', 'if (last === undefined || last.until <= now) return undefined', 'if (last === undefined || last.until <= now || now > 0) return undefined'),
  one('recorded-before-touched', 'an order that no next leader knows of', 'coordinator/deed.ts', 'if (!await incidents.change(deed.incident, timeline.ordered(attempt))) return false', 'await incidents.change(deed.incident, timeline.ordered(attempt))'),
  one('term-on-the-fence', 'a leader that slept and goes on', 'coordinator/incident.ts', 'if (bears > term || (bears !== term && !adopting)) return false', ''),
  one('process-group-ended', 'an order of a leader that lost its Lease', 'coordinator/coordinator.ts', 'leadership.abort(new Error(reason))', ''),
  one('restore-again', 'an off that lands after the on', 'core/restore.ts', "if (last.result === 'running' || last.result === 'on') return ended + incident.policy.bootWithin", "if (last.result === 'running' || last.result === 'on') return Infinity"),
  one('dark-boot-is-ours', 'an off that lands on the next boot', 'core/restore.ts', '  const dark = withoutPower(at)\n', '  const dark = withoutPower(at).slice(0, 0)\n'),
  // Deletions.
  one('uid-and-version', 'a successor pod of the same name', 'coordinator/deed.ts', 'const body = { metadata: { uid, resourceVersion }, status', 'const body = { status'),
  one('quarantine-with-the-order', 'a successor bound to the fenced node', 'core/decide.ts', '...(first ? [quarantine(at)] : []),', ''),
  one('void-on-a-heard-boot', 'a proof that was false', 'core/decide.ts', 'answered !== undefined && answered.issuedAt > since &&', 'answered !== undefined && answered.issuedAt < 0 &&'),
  one('beat-stops-the-clear', 'a fenced boot that speaks after the proof', 'core/decide.ts', 'if (beatsSinceProof(at)) {', 'if (beatsSinceProof(at) && since < 0) {'),
  // Return.
  one('out-of-service-off-before-on', 'volumes taken away from a running machine', 'core/restore.ts', "if (hasOurs(node, outOfServiceKey)) return [untaint(node, outOfServiceKey, 'the node is cleared', incident)]", ''),
  one('thirty-seconds', 'a controller whose cache still shows the taint', 'core/return.ts', 'if (freedByForce(incident) && (gone === undefined || now - gone < cachesOutlive)) {', 'if (now < 0 && (gone === undefined || now - gone < cachesOutlive)) {'),
  one('clean-report', 'mounts left behind', 'core/return.ts', "if (clean.report.state === 'dirty') {", "if (clean.report.state === 'dirty' && now < 0) {"),
  one('hands-in-the-machine', 'a machine that a person switched off', 'core/restore.ts', 'if (!ours && !incident.policy.powerOnFoundOff) {', 'if (!ours && on.now < 0) {'),
]
