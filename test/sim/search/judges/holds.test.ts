import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { customResourceDefinitions } from '../../../../deploy/crd.ts'
import { falseFor, judgeHolds } from '../../../../sim/search/judges/holds.ts'
import { lie, truths } from '../../../../sim/search/judges/reasons.ts'
import { look } from '../../../../sim/search/judges/sight.ts'
import { switchesOf } from '../../../../sim/world/power.ts'
import type { World } from '../../../../sim/world.ts'
import { quietWorld, type Quiet } from './quiet-world.ts'

const test = suite('search: the judge of holds')

/** Sentences as the product writes them, each false where nothing is wrong. */
const sentences: readonly (readonly [string, string])[] = [
  ['storm', '2 of 3 nodes in all fell silent within 60.0 s, more than 40 %'],
  ['storm', '2 of 3 nodes in zone zone-1 fell silent within 60.0 s, more than 40 %'],
  ['storm', 'disk 97 %, above 95 for 301.0 s: NodeRemedy full-disks would have it fenced; 3 of 5 nodes ail alike, more than 40 %: that is hardly the fault of each'],
  ['concurrency', 'disk 97 %, above 95 for 301.0 s: NodeRemedy full-disks would have it fenced; node-9 is fenced by a remedy, and one node at a time'],
  ['repeat-limit', 'disk 97 %, above 95 for 301.0 s: NodeRemedy full-disks would have it fenced; a remedy began on it 60.0 s ago, and it did not help'],
  ['waiting-for-clean', 'disk 97 %, above 95 for 301.0 s: NodeRemedy full-disks would have it fenced; it is under quarantine as it is'],
  ['waiting-for-boot', 'disk 97 %, above 95 for 301.0 s: NodeRemedy full-disks would have it fenced; it shuts down by itself'],
  ['storage', '2 of 3 nodes say StorageUnreachable, more than 40 %'],
  ['concurrency', 'node-1 was ordered off by bmc-off, and that may be what silenced VICTIM'],
  ['concurrency', 'node-1, node-2 are being fenced, 1 at once is allowed'],
  ['concurrency', 'node-1-a-1 of the same node is open'],
  ['control-plane', '1 of 3 control-plane nodes would stand: no majority'],
  ['control-plane', 'nothing tells where the members of etcd are: no node bears the label'],
  ['path-unverified', 'level 1: bmc-off does not answer: no answer'],
  ['path-unverified', 'level 1: bmc-off is marked: a proof made by it was shown false'],
  ['path-unverified', 'level 1: bmc-off said off while this boot was beating'],
  ['path-unverified', 'level 1: bmc-off answers for another machine'],
  ['path-unverified', 'level 1: bmc-off was never read on in this boot'],
  ['out-of-levels', 'level 1: bmc-off failed 2 times: refused; level 2: bmc-off does not answer: no answer'],
  ['identity-unproven', 'nothing proves that bmc-off is wired to VICTIM'],
  ['identity-unproven', 'level 1: nothing proves that bmc-off leads to this machine'],
  ['no-path', 'no fence path is configured'],
  ['config-invalid', 'there is no template x'],
  ['not-dead', 'silent for 2.0 s of 3.0 s'],
  ['blind', 'the API server has not answered for 11.0 s'],
  ['blind', 'nothing is known of its node yet'],
  ['pause', 'paused by on call: a look'],
  ['dry-run', 'policy all is a dry run'],
  ['unselected', 'no policy selects this node'],
  ['policy-conflict', 'all and other select this node with one priority'],
  ['do-nothing', 'nodeDownPodDeletionPolicy is DoNothing'],
  ['order-may-land', 'the order to bmc-off did not end verified and may land for another 12.0 s'],
  ['order-may-land', 'an order off to bmc-off did not end verified, and nothing has told since how the machine stands by it'],
  ['ailing', 'disk 97 %, above 95 for 301.0 s: NodeRemedy full-disks has it told, and nothing done'],
  ['ailing', 'KernelDeadlock is True for 301.0 s: NodeRemedy locked has it told, and nothing done'],
  ['dumping', 'a crash kernel of it has another 12.0 s to announce itself (kdump_within=)'],
  ['dumping', 'its crash kernel announced itself 12.0 s ago, and has 100.0 s for its dump (kdump=)'],
  ['order-may-land', 'bmc-off is being asked'],
  ['resting', 'level 1: bmc-off failed 2 times; no proof: bmc-off says on'],
  ['waiting-for-boot', 'ordered on, no new boot is heard yet'],
  ['waiting-for-boot', 'withdrawn, and silent again: not heard yet since this replica listens'],
  ['still-cut', 'bmc-off was ordered off, and on without success so far'],
  ['still-cut', 'bmc-off was ordered off, and is not configured any more as it was then'],
  ['waiting-for-clean', 'VICTIM cannot tell yet whether it is clean'],
  ['waiting-for-clean', '1 left over on VICTIM: mount /x'],
  ['out-of-patience', '1 left over on VICTIM: mount /x; that is so for 70.0 s, longer than returnPatience (60.0 s)'],
  ['waiting-for-kubelet', 'kubelet on VICTIM has not posted Ready since this boot'],
  ['waiting-for-controllers', 'Kubernetes\' own node.kubernetes.io/not-ready is still on VICTIM'],
  ['waiting-for-controllers', 'out-of-service is still on: controllers\' caches outlive a taint'],
  ['proof-void', 'shown false'],
  ['proof-doubted', 'the proof on record is of another boot on another'],
  ['proof-doubted', 'nothing more is freed: bmc-off of node-1 was ordered on since, and nothing proves that it does not let VICTIM in'],
  ['aborted', 'a person aborted it'],
  ['abort-refused', 'the abort came too late'],
  ['unvouched', 'the acknowledgement by on call proves nothing'],
  ['finalizer', 'kept by finalizers: work/db-0'],
  ['foreign-taint', 'another\'s out-of-service is on VICTIM'],
  ['unreadable', 'nothing is done on VICTIM'],
  ['not-due', 'not to be freed yet: work/db-0 (onlyTerminating: Kubernetes has not evicted it, or its grace is not over)'],
  ['power-after', 'isolated by fc-off; its power stays on for another 200.0 s (powerAfter)'],
  ['exhausted', '3 rounds came to nothing, and restarts is 2'],
  ['permit', 'proven off 3.0 s ago'],
  ['evicting', '1 pods are going in good order before VICTIM is ordered off: work/db-0'],
  ['disruption-budget', '1 pods may not go yet: work/db-0'],
  ['self-fencing', 'its watchdog (i6300ESB timer, 30.0 s) must have reset it in 40.0 s'],
  ['partial', 'proven of the volumes of disk.example alone'],
  ['exclude', 'holdfast.dev/exclude stands on VICTIM'],
  ['maintenance', 'holdfast.dev/maintenance stands on VICTIM'],
  ['kept-off', 'holdfast.dev/keep-off stands on VICTIM'],
  ['remediator', 'a remediator has VICTIM in hand: remediator.example/busy stands on it'],
  ['repeat-limit', 'VICTIM was fenced 3 times in 3600.0 s'],
]
/** These are false only where there is nothing of the kind, which a node that runs has. */
const elsewhere: readonly string[] = ['waiting-for-volumes', 'sent-back', 'rate']

async function asked(quiet: Quiet): Promise<void> {
  const { world, victim, run } = quiet
  for (let count = 0; count < 4; count += 1) {
    void world.devices.get(`bmc-${victim}`)?.read('1')
    await run(1_500)
  }
}

test('each reason that the product knows has its truth, and each truth is tried here', () => {
  const [, list = ''] = /"because":\{[^{}]*"enum":\[([^\]]*)\]/.exec(JSON.stringify(customResourceDefinitions())) ?? []
  const known = JSON.parse(`[${list}]`) as readonly string[] // words
  assert.ok(known.includes('storm') && known.length > 20, list)
  assert.equal(known.filter((word) => truths[word] === undefined), [])
  const tried = new Set([...sentences.map(([because]) => because), ...elsewhere])
  assert.equal(Object.keys(truths).filter((word) => !tried.has(word)), [])
})

test('where nothing is wrong each of them is a lie', async () => {
  const quiet = await quietWorld()
  const { victim, plantFence } = quiet
  // Longer than a rest after the start of whoever leads.
  await quiet.run(60_000)
  await asked(quiet)
  const boot = `${quiet.world.nodes.get(victim)?.machine.boot()?.id}/1`
  quiet.world.server?.plant({
    apiVersion: 'holdfast.dev/v1alpha1', kind: 'NodeRecord', metadata: { name: victim },
    spec: { nodeUid: 'u', boot, machine: 'm', paths: [{ method: 'bmc-off', digest: 'd', boot, state: 'verified', identity: 'proven', at: '2026-01-01T00:00:00.000Z', evidence: 'on' }] },
  } as never)
  plantFence('a-1', victim, { phase: 'Running' })
  for (const [because, detail] of sentences) {
    const sight = quiet.sight()
    const fence = sight.fences().find(({ metadata }) => metadata.name === 'a-1')
    const why = lie({ node: victim, because, detail: detail.replaceAll('VICTIM', victim), ...(fence === undefined ? {} : { fence }) }, sight)
    assert.ok(why !== undefined, `${because}: ${detail}`)
  }
  for (const because of elsewhere) assert.ok(lie({ node: 'nowhere', because, detail: '' }, quiet.sight()) !== undefined, because)
  assert.match(lie({ node: victim, because: 'a whim', detail: '' }, quiet.sight()) ?? '', /no judge knows/)
})

test('a machine whose crash kernel refuses for long is dead; once its record was deleted in that boot nobody can know it', async () => {
  for (const [records, known] of [['stand', true], ['are deleted', false]] as const) {
    const quiet = await quietWorld()
    const { world, victim, run, sight } = quiet
    world.panic(victim, { after: 20_000, speaksAfter: 5_000 })
    if (records === 'are deleted') world.truth.note('trouble', { does: 'every NodeRecord is deleted', on: '', how: '' })
    await run(400_000)
    const why = lie({ node: victim, because: 'not-dead', detail: 'the kubelet port refuses: a kernel runs there' }, sight())
    assert.is(why !== undefined, known, why ?? records)
  }
})

const attempt = { id: 'b-1.1', round: 1, level: 0, method: 'bmc-off', agent: 'redfish', action: 'off', replica: 'replica-0-1', term: 1, startedAt: '2026-01-01T00:00:00.000Z', result: 'failed' }

const asksOf = (world: World, node: string) => ({ replica: 'replica-0-1', action: 'off', ip: switchesOf('bmc', { node, index: [...world.nodes.keys()].indexOf(node), zone: 0 })[0]?.[0]?.address, plug: '1' })
const programRuns = (world: World, node: string) => world.truth.note('program runs', asksOf(world, node))

/** What makes each of them true. */
const makings: readonly (readonly [string, string, (quiet: Quiet) => Promise<void> | void])[] = [
  ['storm', '2 of 3 nodes in all fell silent within 60.0 s', ({ world }) => { for (const name of ['node-1', 'node-2']) world.freeze(name) }],
  ['concurrency', 'node-1 is being fenced, 1 at once is allowed', ({ plantFence }) => void plantFence('b-1', 'node-1', { phase: 'Running' })],
  ['concurrency', 'node-1 was ordered off by bmc-off, and that may be what silenced VICTIM', ({ world }) => programRuns(world, 'node-1')],
  ['concurrency', 'x of the same node is open', ({ plantFence, victim }) => { for (const name of ['b-1', 'b-2']) plantFence(name, victim, { phase: 'Running' }) }],
  ['path-unverified', 'level 1: bmc-off is marked', async (quiet) => {
    const device = quiet.world.devices.get(`bmc-${quiet.victim}`)
    if (device !== undefined) device.fault = { does: 'lie' }
    void device?.order('1', 'off')
    await asked(quiet)
  }],
  ['path-unverified', 'level 1: bmc-off said off while this boot was beating', async (quiet) => {
    const { world, victim, plantFence } = quiet
    plantFence('b-1', victim, { phase: 'Running' })
    const device = world.devices.get(`bmc-${victim}`)
    if (device !== undefined) device.fault = { does: 'lie' }
    void device?.order('1', 'off')
    await asked(quiet)
    // The next boot is another one, and so is none at all.
    world.cutPower(victim)
  }],
  ['path-unverified', 'level 1: bmc-off answers for another machine', async (quiet) => {
    quiet.world.devices.get(`bmc-${quiet.victim}`)?.wire('1', [...quiet.world.nodes.values()].find(({ machine }) => machine.name !== quiet.victim)?.machine)
    await asked(quiet)
  }],
  ['path-unverified', 'level 1: bmc-off does not answer: x', async (quiet) => {
    const device = quiet.world.devices.get(`bmc-${quiet.victim}`)
    if (device !== undefined) device.fault = { does: 'vanish' }
    await asked(quiet)
  }],
  ['not-dead', 'silent for 2.0 s of 3.0 s', ({ world, victim }) => world.freeze(victim)],
  ['not-dead', 'the kubelet port answers, the agent does not', ({ world, victim }) => world.killAgent(victim)],
  ['blind', 'a watch has not been known fresh', ({ world }) => world.server?.faults.set([{ does: 'stall watch' }])],
  ['blind', 'the API server has not answered', ({ world }) => void world.partition({ from: ['replica-0'], to: ['api'] })],
  ['order-may-land', 'the order to bmc-off did not end verified and may land for another 12.0 s', ({ world, victim, plantFence }) => {
    plantFence('b-1', victim, { phase: 'Running', attempts: [{ ...attempt, within: '20s', late: '1m' }] })
    programRuns(world, victim)
    world.truth.note('program ended', asksOf(world, victim))
  }],
  ['order-may-land', 'bmc-off is being asked', ({ world, victim }) => programRuns(world, victim)],
  ['resting', 'level 1: bmc-off failed 2 times', ({ world, victim }) => programRuns(world, victim)],
  ['power-after', 'isolated by fc-off; its power stays on for another 200.0 s (powerAfter)', ({ world, victim, plantFence }) => {
    plantFence('b-1', victim, { phase: 'Running' }, { policy: { name: 'all', powerAfter: '5m' } })
    programRuns(world, victim)
  }],
  ['exhausted', '3 rounds came to nothing, and restarts is 2', ({ plantFence, victim }) => void plantFence('b-1', victim, { phase: 'Error', round: 3 }, { policy: { name: 'all', restarts: 2 } })],
  ['waiting-for-boot', 'ordered on, no new boot is heard yet', ({ world, victim }) => world.cutPower(victim)],
  ['waiting-for-boot', 'it was found off, and nobody here switched it off', ({ world, victim }) => world.cutPower(victim)],
  ['waiting-for-kubelet', 'kubelet on VICTIM has not posted Ready since this boot', ({ world, victim }) => world.killKubelet(victim)],
  ['waiting-for-controllers', 'Kubernetes\' own node.kubernetes.io/unreachable is still on VICTIM', ({ world, victim, run }) => {
    world.freeze(victim)
    return run(70_000)
  }],
  ['waiting-for-clean', '1 left over on VICTIM: staged x', ({ world, victim }) => {
    const path = '/var/lib/kubelet/plugins/kubernetes.io/csi/x/globalmount'
    world.nodes.get(victim)?.machine.mounts.set(path, { path, source: 'ext4 /dev/x', volume: 'of nobody' })
  }],
  ['waiting-for-clean', 'VICTIM cannot tell yet', ({ world, victim }) => world.killAgent(victim)],
  ['waiting-for-volumes', '2 volumes are still attached', () => undefined],
  ['foreign-taint', 'another\'s', ({ taint, victim }) => taint(victim, { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' })],
  ['still-cut', 'bmc-off was ordered off, and on without success so far', async (quiet) => {
    void quiet.world.devices.get(`bmc-${quiet.victim}`)?.order('1', 'off')
    await asked(quiet)
  }],
  ['still-cut', 'bmc-off was ordered off, and is not configured any more as it was then', async ({ world, victim, done }) => {
    programRuns(world, victim)
    await done(world.api.remove(`/api/v1/namespaces/holdfast-system/configmaps/fence-config-${victim}`))
  }],
  ['proof-doubted', 'nothing more is freed: bmc-off reads on', asked],
  ['proof-doubted', 'nothing more is freed: bmc-off of node-1 was ordered on since, and nothing proves that it does not let VICTIM in', ({ world }) => world.truth.note('program runs', { ...asksOf(world, 'node-1'), action: 'on' })],
  ['proof-doubted', 'the fenced boot beats after the proof', ({ plantFence, victim }) => void plantFence('b-1', victim, { phase: 'Running' })],
]

test('and where a lever makes it so it is the truth', async () => {
  for (const [because, detail, make] of makings) {
    const quiet = await quietWorld()
    await make(quiet)
    await quiet.run(2_000)
    const sight = quiet.sight()
    const fence = sight.fences().find(({ spec }) => spec.nodeName === quiet.victim)
    assert.is(lie({ node: quiet.victim, because, detail: detail.replaceAll('VICTIM', quiet.victim), ...(fence === undefined ? {} : { fence }) }, sight), undefined, `${because}: ${detail}`)
  }
})

test('time alone makes a lie of some: a rest that is over, a machine that is dead to all, a machine that we switched off', async () => {
  const quiet = await quietWorld()
  const { world, victim, run } = quiet
  void world.devices.get(`bmc-${victim}`)?.order('1', 'off')
  await run(250_000)
  const says = (because: string, detail: string) => lie({ node: victim, because, detail }, quiet.sight()) ?? ''
  assert.match(says('not-dead', 'silent for 2.0 s of 3.0 s'), /has been dead for 2\d\d/)
  assert.match(says('resting', 'x'), /a rest is 60.0 s/)
  // That somebody else's controller was asked just now, by the same plug, is no news of it.
  programRuns(world, [...world.nodes.keys()].find((name) => name !== victim) ?? '')
  assert.match(says('order-may-land', 'the order to bmc-off did not end verified and may land for another 12.0 s'), /the last order was begun \d+/)
  assert.match(says('waiting-for-boot', 'it was found off, and nobody here switched it off'), /an order of ours switched it off/)
  assert.match(says('waiting-for-boot', 'ordered on, no new boot is heard yet'), /^$/)
})

test('that a device says off of a boot that is over is no word against it', async () => {
  const quiet = await quietWorld()
  const { world, victim, plantFence } = quiet
  const fence = plantFence('b-1', victim, { phase: 'Running' })
  world.cutPower(victim)
  await asked(quiet)
  world.powerOn(victim)
  await quiet.run(60_000)
  assert.match(lie({ node: victim, because: 'path-unverified', detail: 'level 1: bmc-off said off while this boot was beating', fence: fence as never }, quiet.sight()) ?? '', /never said off while that boot had power/)
})

const hold = (because: string) => ({ because, detail: 'x', lifts: 'y', since: '2026-01-01T00:00:00.000Z' })

test('a false reason is a violation once it has stood for its while, and once; a true one, or one that goes, is none', async () => {
  const quiet = await quietWorld()
  const { victim, plantFence, run, history, beside, world } = quiet
  const judge = judgeHolds()
  const turn = async (span: number) => {
    for (let count = 0; count < span / 5_000; count += 1) {
      judge.look(look(history))
      await run(5_000)
    }
  }
  plantFence('a-1', victim, { phase: 'Running', holds: [hold('pause'), hold('waiting-for-volumes')] })
  plantFence('a-2', victim, { phase: 'Final', holds: [hold('pause')] })
  await turn(falseFor - 5_000)
  assert.equal(judge.found(), [])
  await turn(30_000)
  assert.equal(judge.found().map(({ judge: whose, what }) => [whose, what.slice(0, 10)]), [['liveness', 'a-1 pause ']])
  beside.push({ do: 'hold', node: victim, because: 'dry-run', detail: 'x', lifts: 'y' })
  await turn(falseFor - 10_000)
  beside.pop()
  await turn(10_000)
  beside.push({ do: 'hold', node: victim, because: 'dry-run', detail: 'x', lifts: 'y' })
  await turn(falseFor - 10_000)
  assert.is(judge.found().length, 1)
  await turn(20_000)
  assert.is(judge.found().length, 2)
  assert.ok(world.nodes.has(victim))
})

test('an incident that holds for nothing and does nothing is a violation; one whose record changes, that holds, or that is over, is none', async () => {
  const { victim, plantFence, run, history, world, done } = await quietWorld()
  const judge = judgeHolds()
  plantFence('a-still', victim, { phase: 'Running' })
  plantFence('a-busy', victim, { phase: 'Running' })
  plantFence('a-held', victim, { phase: 'Running', holds: [hold('waiting-for-volumes')] })
  plantFence('a-over', victim, { phase: 'Final' })
  for (let count = 0; count < falseFor / 5_000 + 2; count += 1) {
    judge.look(look(history))
    await done(world.api.patch('/apis/holdfast.dev/v1alpha1/nodefences/a-busy', 'merge', { metadata: { annotations: { turn: String(count) } } }))
    await run(5_000)
  }
  assert.equal(judge.found().map(({ what }) => what.slice(0, 18)), ['a-still is Running'])
})

test.run()
