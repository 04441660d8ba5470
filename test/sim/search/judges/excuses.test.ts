import { readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Violation } from '../../../../sim/search/judgement.ts'
import { excuseReasons } from '../../../../sim/search/judges/excuse-reasons.ts'
import { excuses, type Struck } from '../../../../sim/search/judges/excuses.ts'
import { darkByUs, feedCutByUs, leftInTheDark } from '../../../../sim/search/judges/liveness.ts'
import { judgeRestraint } from '../../../../sim/search/judges/restraint.ts'
import { judgeSafety } from '../../../../sim/search/judges/safety.ts'
import type { PodObject } from '../../../../sim/objects.ts'
import { deletePods } from '../../../../sim/search/troubles-hands.ts'
import { quietWorld, type Quiet } from './quiet-world.ts'

const test = suite('search: excuses')

const podPath = '/api/v1/namespaces/work/pods/db-0'

async function free({ product, pod, done }: Quiet): Promise<void> {
  await done(product.remove(podPath, { gracePeriodSeconds: 0, preconditions: { uid: pod().metadata.uid ?? '' } }))
}

/** Each call has the cables of the node's first outlet and of another node's change places, as a person does it. */
function astray({ world, victim }: Quiet): () => void {
  const other = [...world.nodes.keys()].find((name) => name !== victim) ?? ''
  const pair = [victim, other].map((name) => world.switches(name).flat()[0])
  return () => {
    const machines = pair.map((one) => world.devices.get(one?.device ?? '')?.plugs.get(one?.plug ?? '')?.machine)
    for (const [index, one] of pair.entries()) world.devices.get(one?.device ?? '')?.wire(one?.plug ?? '', machines[1 - index])
    const [one, next] = pair.map((own) => `${own?.device}/${own?.plug}`)
    world.truth.note('cables changed', { one, other: next })
  }
}

/** By its outlets, as they are configured; then each is read. */
async function switchOff(quiet: Quiet, count = Infinity): Promise<void> {
  const outlets = quiet.world.switches(quiet.victim).flat()
  for (const { device, plug } of outlets.slice(0, count)) void quiet.world.devices.get(device)?.order(plug, 'off')
  await quiet.run(3_000)
  for (const { device, plug } of outlets) await ask(quiet, device, plug)
}

/** Its kubelet has renewed its Lease, and not only just now. */
async function renewedLately({ world, victim, run }: Quiet): Promise<void> {
  const version = () => world.server?.peek('leases.coordination.k8s.io').find(({ metadata }) => metadata.name === victim)?.metadata.resourceVersion
  const before = version()
  for (let passed = 0; version() === before && passed < 20_000; passed += 500) await run(500)
  await run(7_000)
}

async function ask({ world, run }: Quiet, device: string, plug: string, times = 1): Promise<void> {
  for (let count = 0; count < times; count += 1) {
    void world.devices.get(device)?.read(plug)
    await run(1_300)
  }
}

/** What a product is blamed for that freed the pod just now, and which of it is excused. */
function judged({ world, ears, history }: Quiet, struck: readonly Struck[] = []): { readonly found: number; readonly because: readonly string[] } {
  const judge = judgeSafety(world, ears)
  const found = judge.found()
  judge.stop()
  return { found: found.length, because: excuses(found, history, struck).map(({ because }) => because) }
}

function text(file: string): string {
  return readFileSync(new URL(`../../../../${file}`, import.meta.url), 'utf8')
}

test('each reason is given somewhere, and docs/safety.md says what it rests on; it tells of no other', () => {
  const given = [...text('sim/search/judges/excuses.ts').matchAll(/excuse\('([^']+)', /g)].map(([, reason = '']) => reason)
  assert.equal(given.toSorted(), [...excuseReasons].toSorted(), 'each in one place')
  const [, section = ''] = /## What the judges excuse\n(.*?)\n## /s.exec(text('docs/safety.md')) ?? []
  const rows = [...section.matchAll(/^\| (.+?) \| (.+) \| (.+) \|$/gm)].slice(1)
  assert.equal(rows.map(([, reason = '']) => reason).toSorted(), [...excuseReasons].toSorted())
})

test('nothing went wrong: no excuse', async () => {
  const quiet = await quietWorld()
  await free(quiet)
  assert.equal(judged(quiet), { found: 1, because: [] })
})

test('the only device said off twice, and it was on: that was believed', async () => {
  const quiet = await quietWorld()
  const device = quiet.world.devices.get(`bmc-${quiet.victim}`)
  if (device !== undefined) device.fault = { does: 'lie' }
  void device?.order('1', 'off')
  await ask(quiet, `bmc-${quiet.victim}`, '1', 2)
  await free(quiet)
  assert.match(judged(quiet).because.join(), /was a lie, told twice/)
})

test('its watchdog had run down and did not fire: that was waited for; one that fires, or that is fed again, or that nothing was proven by, is no excuse', async () => {
  for (const [what, excused] of [['never fires', true], ['is fed again', false], ['had not run down', false], ['beside another proof', false], ['of a node that is heard', false], ['of a node whose Lease moves', false]] as const) {
    const quiet = await quietWorld({ watchdog: { identity: 'iTCO_wdt', timeout: 10_000, fires: 'never' } })
    const node = quiet.world.nodes.get(quiet.victim)
    const agent = node?.agent()
    if (node === undefined || agent === undefined) throw new Error('its agent runs')
    quiet.plantFence('a-1', quiet.victim, { phase: 'Running', proof: { kind: what === 'beside another proof' ? 'off' : 'self-fenced' } })
    if (what === 'of a node whose Lease moves') quiet.world.partition({ from: [quiet.victim], to: ['replica-0', 'replica-1'] })
    else if (what !== 'of a node that is heard') quiet.world.isolate(quiet.victim)
    await quiet.run(12_000)
    const handle = node.machine.watchdog.forProcess(agent).open()
    await quiet.run(what === 'had not run down' ? 5_000 : 12_000)
    if (what === 'is fed again' && !('failed' in handle)) handle.feed()
    if (what === 'of a node whose Lease moves') await renewedLately(quiet)
    await free(quiet)
    assert.equal(judged(quiet).because.map((because) => because.includes('did not fire')), excused ? [true] : [], what)
  }
})

test('a cable that somebody changed after a drill had shown where it leads is an excuse; one that was wrong before, or was put right, or behind which nobody read off, is none', async () => {
  for (const [what, excused] of [['after', true], ['before', false], ['put right', false], ['and says on', false]] as const) {
    const quiet = await quietWorld({ power: 'outlet' })
    const change = astray(quiet)
    if (what === 'before') change()
    await quiet.run(1_000)
    quiet.world.truth.note('a drill passed', { node: quiet.victim })
    await quiet.run(1_000)
    if (what !== 'before') change()
    if (what === 'put right') change()
    if (what !== 'put right' && what !== 'and says on') await switchOff(quiet)
    await free(quiet)
    assert.equal(judged(quiet).because.map((because) => because.includes('after a drill')), excused ? [true] : [], what)
  }
})

test('what is freed later, once the lie is over, is excused by nothing that was believed before; nor does what reads like it stand for it', async () => {
  const quiet = await quietWorld()
  const { world, victim, product, done } = quiet
  const device = world.devices.get(`bmc-${victim}`)
  if (device !== undefined) device.fault = { does: 'lie' }
  void device?.order('1', 'off')
  await ask(quiet, `bmc-${victim}`, '1', 2)
  const on = (name: string) => ((world.server?.peek('pods') ?? []) as readonly PodObject[]).filter(({ metadata, spec }) => metadata.namespace === 'work' && spec.nodeName === victim && metadata.name.startsWith(name)) // that collection's kind
  const [first] = on('db-0')
  const [other] = on('').filter(({ metadata }) => metadata.uid !== first?.metadata.uid)
  assert.ok(first !== undefined && other !== undefined, 'two pods run there')
  await free(quiet)
  if (device !== undefined) device.fault = undefined
  await quiet.run(30_000)
  await done(product.remove(`/api/v1/namespaces/work/pods/${other.metadata.name}`, { gracePeriodSeconds: 0, preconditions: { uid: other.metadata.uid ?? '' } }))
  const judge = judgeSafety(world, quiet.ears)
  const found = judge.found().filter(({ act }) => act !== undefined).toSorted((one, next) => (one.from ?? 0) - (next.from ?? 0))
  judge.stop()
  const excused = excuses(found, quiet.history, [])
  assert.equal(found.map(({ act }) => [act?.pod?.uid, excused.some(({ of }) => of.act === act)]), [[first.metadata.uid, true], [other.metadata.uid, false]])
  const boot = world.nodes.get(victim)?.machine.boot()?.id ?? ''
  const writers = (podUid = ''): Violation => ({ judge: 'safety', what: 'two writers', from: world.clock.now(), parties: [{ node: victim, boot, podUid }] })
  assert.equal([first, other].map(({ metadata }) => excuses([writers(metadata.uid)], quiet.history, []).length), [1, 0])
})

test('what somebody else freed is excused, and nothing that came after it', async () => {
  const quiet = await quietWorld()
  const { world, victim, history, run } = quiet
  deletePods(world, victim)
  await run(60_000)
  const boot = world.nodes.get(victim)?.machine.boot()?.id ?? ''
  const [freed = ''] = world.truth.entries.flatMap(({ what, facts }) => (what === 'another frees' ? facts['pods'] as readonly string[] : [])) // as they are noted
  const because = (podUid: string) => excuses([{ judge: 'safety', what: 'two writers', from: world.clock.now(), parties: [{ node: victim, boot, podUid }] }], history, []).map(({ reason }) => reason)
  assert.equal([because(freed), because('one that came later')], [['freed by another'], []])
})

test('a lie told once, told of another node, told too long ago, taken back, or told after the deed is no excuse', async () => {
  const cases: readonly (readonly [string, (quiet: Quiet, device: string) => Promise<void>])[] = [
    ['once', (quiet, device) => ask(quiet, device, '1')],
    ['long ago', async (quiet, device) => {
      await ask(quiet, device, '1', 3)
      await quiet.run(30_000)
    }],
    ['taken back', async (quiet, device) => {
      await ask(quiet, device, '1', 3)
      const there = quiet.world.devices.get(device)
      if (there !== undefined) there.fault = undefined
      await ask(quiet, device, '1')
    }],
  ]
  for (const [name, happens] of cases) {
    const quiet = await quietWorld()
    const device = `bmc-${quiet.victim}`
    const there = quiet.world.devices.get(device)
    if (there !== undefined) there.fault = { does: 'lie' }
    void there?.order('1', 'off')
    await happens(quiet, device)
    await free(quiet)
    assert.equal(judged(quiet), { found: 1, because: [] }, name)
  }
  const quiet = await quietWorld()
  const [other = ''] = [...quiet.world.nodes.keys()].filter((name) => name !== quiet.victim)
  for (const name of [other, quiet.victim]) {
    const there = quiet.world.devices.get(`bmc-${name}`)
    if (there !== undefined) there.fault = { does: 'lie' }
    void there?.order('1', 'off')
  }
  await ask(quiet, `bmc-${other}`, '1', 3)
  await free(quiet)
  await ask(quiet, `bmc-${quiet.victim}`, '1', 3)
  assert.equal(judged(quiet), { found: 1, because: [] }, 'of another node, and after the deed')
})

test('two feeds: an honest outlet that says on leaves no excuse, nor does one that nobody asked; where it says off, the liar is the cause', async () => {
  for (const honest of ['on', 'off', 'not asked'] as const) {
    const quiet = await quietWorld({ power: 'two feeds on two strips' })
    const [[a, b] = []] = quiet.sight().switches(quiet.victim)
    assert.ok(a !== undefined && b !== undefined)
    const liar = quiet.world.devices.get(a.device)
    if (liar !== undefined) liar.fault = { does: 'lie' }
    void liar?.order(a.plug, 'off')
    if (honest === 'off') void quiet.world.devices.get(b.device)?.order(b.plug, 'off')
    await quiet.run(5_000)
    if (honest !== 'not asked') await ask(quiet, b.device, b.plug, 2)
    await ask(quiet, a.device, a.plug, 2)
    await free(quiet)
    const { found, because } = judged(quiet)
    assert.is(found, 1)
    assert.is(because.length, honest === 'off' ? 1 : 0, honest)
  }
})

test('a port to the storage: its lie is the cause whatever the machine\'s controller says, and so is its cable; a policy that demands identity leaves none', async () => {
  for (const [identity, happens, excused] of [
    ['warn', 'lies', true], ['warn', 'is wired elsewhere', true], ['warn', 'is wired elsewhere, and says on', false], ['require', 'is wired elsewhere', false], ['warn', 'is honest', false],
  ] as const) {
    const quiet = await quietWorld({ power: 'fabric, then bmc', policy: { identity } })
    const fabric = quiet.world.devices.get('fabric')
    if (happens === 'lies' && fabric !== undefined) {
      fabric.fault = { does: 'lie' }
      void fabric.order(quiet.victim, 'off')
    }
    if (happens.startsWith('is wired elsewhere')) astray(quiet)()
    if (happens === 'is wired elsewhere') void fabric?.order(quiet.victim, 'off')
    await quiet.run(2_000)
    await ask(quiet, 'fabric', quiet.victim, 2)
    await ask(quiet, `bmc-${quiet.victim}`, '1')
    await free(quiet)
    assert.is(judged(quiet).because.length, excused ? 1 : 0, `${identity}, ${happens}`)
  }
})

test('what is freed of a machine that cannot reach its storage is freed of nobody who writes', async () => {
  const quiet = await quietWorld({ power: 'fabric, then bmc' })
  void quiet.world.devices.get('fabric')?.order(quiet.victim, 'off')
  await quiet.run(2_000)
  await free(quiet)
  assert.is(judged(quiet).found, 0)
})

test('an image that was on disk when its pods were freed', async () => {
  const quiet = await quietWorld()
  quiet.world.hibernate(quiet.victim)
  await free(quiet)
  assert.match(judged(quiet).because.join(), /written its image to disk/)
})

test('a false oath excuses what it was given for: before the deed, while it stands, of that boot, of a node that nobody hears, whose Lease stands still and no device calls on', async () => {
  for (const [name, excused, happens] of [
    ['sworn', 1, async (quiet: Quiet) => swear(quiet)],
    ['sworn, and a device says on', 0, async (quiet: Quiet) => {
      await swear(quiet)
      await ask(quiet, `bmc-${quiet.victim}`, '1')
    }],
    ['sworn of a node that is well', 0, async (quiet: Quiet) => {
      await swear(quiet)
      quiet.world.thaw(quiet.victim)
      await quiet.run(1_000)
    }],
    ['sworn, and taken back just now', 1, async (quiet: Quiet) => {
      await swear(quiet)
      await takeBack(quiet)
      await quiet.run(5_000)
    }],
    ['sworn, and taken back', 0, async (quiet: Quiet) => {
      await swear(quiet)
      await takeBack(quiet)
      await quiet.run(15_000)
    }],
    ['taken back alone', 0, takeBack],
    ['sworn of a node whose Lease moves', 0, async (quiet: Quiet) => {
      await swear(quiet)
      quiet.world.thaw(quiet.victim)
      quiet.world.partition({ from: [quiet.victim], to: ['replica-0', 'replica-1'] })
      await renewedLately(quiet)
    }],
    ['sworn afterwards', 0, () => Promise.resolve()],
  ] as const) {
    const quiet = await quietWorld()
    quiet.world.freeze(quiet.victim)
    await quiet.run(15_000)
    quiet.plantFence('a-1', quiet.victim, { phase: 'Running' })
    await happens(quiet)
    await free(quiet)
    await quiet.run(10)
    if (name === 'sworn afterwards') await swear(quiet)
    const { found, because } = judged(quiet)
    assert.equal([found, because.length], [1, excused], name)
  }
})

test('the word of a crash kernel that somebody forged, of a node that nobody hears, where the policy takes such words; after the deed, of another boot, or beside another proof it is no excuse', async () => {
  for (const [name, kdump, excused] of [['accepted', 'accept', 1], ['refused', 'refuse', 0], ['of a node that is well', 'accept', 0], ['afterwards', 'accept', 0], ['of the boot before', 'accept', 0], ['beside another proof', 'accept', 0]] as const) {
    const quiet = await quietWorld({ policy: { kdump } })
    const { world, victim, run } = quiet
    if (name === 'of the boot before') {
      world.forgeDumpWord(victim)
      world.reboot(victim, 1_000)
      await run(60_000)
    }
    if (name !== 'of a node that is well') world.isolate(victim)
    if (name !== 'afterwards' && name !== 'of the boot before') world.forgeDumpWord(victim)
    await run(1_000)
    quiet.plantFence('a-1', victim, { phase: 'Running', proof: { kind: name === 'beside another proof' ? 'off' : 'kdump' } })
    await free(quiet)
    await run(10)
    if (name === 'afterwards') world.forgeDumpWord(victim)
    const { found, because } = judged(quiet)
    assert.equal([found, because.length], [1, excused], name)
  }
})

const onFence = ({ world, done }: Quiet, acknowledge: object | null) => done(world.api.patch('/apis/holdfast.dev/v1alpha1/nodefences/a-1', 'merge', { spec: { acknowledge } }))

async function swear(quiet: Quiet): Promise<void> {
  await onFence(quiet, { boot: `${quiet.world.nodes.get(quiet.victim)?.machine.boot()?.id}/1`, by: 'on call', reason: 'its plugs are in my hand', until: '2026-01-02T00:00:00.000Z' })
}

async function takeBack(quiet: Quiet): Promise<void> {
  await quiet.run(3_000)
  await onFence(quiet, null)
}

test('a machine that is merely frozen is no image', async () => {
  const quiet = await quietWorld()
  quiet.world.freeze(quiet.victim)
  await free(quiet)
  assert.equal(judged(quiet), { found: 1, because: [] })
})

test('a Node that a person deleted: of that node, before it, in that boot, and unless the product had a hand in it', async () => {
  const { world, victim, history, run, product, pod, done } = await quietWorld()
  await run(1_000)
  const at = world.clock.now()
  const boot = world.nodes.get(victim)?.machine.boot()?.id ?? ''
  const harm: Violation = { judge: 'safety', what: 'two writers', from: at + 5_000, parties: [{ node: victim, boot }, { node: 'node-9', boot: 'x' }] }
  const excused = (wanted: Partial<Struck>, other: Partial<Violation> = {}) => excuses([{ ...harm, ...other }], history, [{ at, does: 'the Node object is deleted', node: victim, ...wanted }]).length
  assert.is(excused({}), 1)
  assert.is(excused({ node: [...world.nodes.keys()].find((name) => name !== victim) ?? '' }), 0)
  assert.is(excused({ at: at + 6_000 }), 0)
  assert.is(excused({ does: 'the power button is pressed' }), 0)
  assert.is(excused({}, { parties: [{ node: victim, boot: 'an earlier one' }] }), 0)
  assert.is(excused({}, { judge: 'restraint' }), 0)
  await done(product.remove(podPath, { gracePeriodSeconds: 0, preconditions: { uid: pod().metadata.uid ?? '' } }))
  assert.is(excused({}), 0)
})

test('a machine left dark: the NodeFence that knew of the order was deleted after it, or its Node before it, and it has not booted since; nothing else', async () => {
  const { world, victim, history, run, plantFence, node } = await quietWorld()
  const before = world.clock.now()
  await run(1_000)
  void world.devices.get(`bmc-${victim}`)?.order('1', 'off')
  await run(5_000)
  const after = world.clock.now()
  const because = (...struck: readonly Struck[]) => excuses(leftInTheDark(history), history, struck).map((one) => one.because)
  assert.is(leftInTheDark(history).length, 1)
  assert.is(because({ at: after, does: 'every NodeFence is deleted', node: '' }).length, 1)
  assert.is(because({ at: before, does: 'every NodeFence is deleted', node: '' }).length, 0)
  assert.is(because({ at: after, does: 'every NodeRecord is deleted', node: '' }).length, 0)
  for (const does of ['the Node object is deleted', 'another remediator deletes the Node']) {
    assert.is(because({ at: before, does, node: victim }).length, 1)
    assert.is(because({ at: before, does, node: 'node-9' }).length, 0)
  }
  const attempts = [{ method: 'bmc-off', action: 'off', result: 'off', term: 1, within: '1s', late: '1s' }]
  plantFence('of-the-node-before', victim, { phase: 'Final', attempts })
  assert.is(because({ at: before, does: 'the Node object is deleted', node: victim }).length, 1, 'what was ordered was for the one before')
  plantFence('of-this-node', victim, { phase: 'Final', attempts }, { nodeUid: node(victim).metadata.uid })
  assert.is(because({ at: before, does: 'the Node object is deleted', node: victim }).length, 0, 'the Node stands again, and this was ordered for it')
  const [one] = world.switches(victim).flat()
  await run(20_000)
  world.truth.note('program runs', { action: 'off', ip: one?.address, plug: one?.plug, replica: 'replica-0' })
  assert.is(because({ at: after, does: 'every NodeFence is deleted', node: '' }).length, 0, 'and was ordered once more')
  world.powerOn(victim)
  await run(60_000)
  void world.devices.get(`bmc-${victim}`)?.order('1', 'off')
  await run(5_000)
  assert.is(because({ at: before, does: 'the Node object is deleted', node: victim }).length, 0, 'it has booted since')
})

test('an outlet behind a controller stays on: it is no word against a controller that lies; one that stands beside a lying outlet is', async () => {
  for (const [power, device, plug, excused] of [['bmc, then outlet', 'bmc-', '1', true], ['two feeds on two strips', 'pdu-a-1', '', false]] as const) {
    const quiet = await quietWorld({ power })
    const { world, victim } = quiet
    const lying: [string, string] = plug === '' ? [device, world.switches(victim)[0]?.[0]?.plug ?? ''] : [`${device}${victim}`, plug]
    const there = world.devices.get(lying[0])
    if (there !== undefined) there.fault = { does: 'lie' }
    void there?.order(lying[1], 'off')
    const honest = world.switches(victim).flat().find((one) => one.device !== lying[0])
    assert.ok(honest !== undefined)
    await ask(quiet, honest.device, honest.plug)
    await ask(quiet, ...lying, 2)
    await free(quiet)
    assert.is(judged(quiet).because.length, excused ? 1 : 0, power)
  }
})

test('an outlet that feeds another machine since its cable was changed: excused, unless the policy trusts no such path, or nobody changed it, or it was put right', async () => {
  for (const [identity, noted, excused] of [['warn', 1, 1], ['require', 1, 0], ['warn', 0, 0], ['warn', 2, 0]] as const) {
    const { world, victim, wellness, ears, history, run } = await quietWorld({ power: 'outlet', policy: { identity } })
    const judge = judgeRestraint(world, wellness, ears)
    await run(21_000)
    const other = [...world.nodes.keys()].find((name) => name !== victim) ?? ''
    for (let count = 0; count < noted; count += 1) world.truth.note('cables changed', { one: `pdu-a-1/${other}`, other: 'pdu-a-1/x' })
    void world.devices.get('pdu-a-1')?.order(other, 'off')
    await run(2_000)
    assert.is(judge.found().length, 1)
    assert.is(excuses(judge.found(), history, []).length, excused, `${identity} ${noted}`)
    judge.stop()
  }
})

test('a controller whose cable was changed while the order was on its way: excused; changed before it was sent: not', async () => {
  for (const [late, excused] of [[true, 1], [false, 0]] as const) {
    const { world, victim, wellness, ears, history, run } = await quietWorld()
    const judge = judgeRestraint(world, wellness, ears)
    await run(21_000)
    const sends = () => world.truth.note('program runs', { replica: 'replica-0-1', agent: 'redfish', action: 'off', plug: '1' })
    const changes = () => world.truth.note('cables changed', { one: `bmc-${victim}/1`, other: 'bmc-x/1' })
    for (const step of late ? [sends, changes] : [changes, sends]) {
      step()
      await run(500)
    }
    void world.devices.get(`bmc-${victim}`)?.order('1', 'off')
    await run(2_000)
    assert.is(judge.found().length, 1)
    assert.is(excuses(judge.found(), history, []).length, excused)
    judge.stop()
  }
})

test('a machine left dark by an order to another one, under which its cable was changed and changed back: excused; changed before it was asked whose it is, or not back: not', async () => {
  for (const [changed, excused] of [[['under it', 'back'], 1], [['once asked', 'back'], 1], [['before', 'back'], 0], [['under it'], 0]] as const) {
    const { world, victim, history, run } = await quietWorld()
    const other = [...world.nodes.keys()].find((name) => name !== victim) ?? ''
    const [one] = world.switches(other).flat()
    const changes = () => world.truth.note('cables changed', { one: `${one?.device}/1`, other: `bmc-${victim}/1` })
    if (changed[0] === 'before') changes()
    await run(500)
    void world.devices.get(one?.device ?? '')?.read('1')
    await run(500)
    if (changed[0] === 'once asked') changes()
    world.truth.note('program runs', { action: 'off', ip: one?.address, plug: '1', replica: 'replica-0-1' })
    await run(500)
    if (changed[0] === 'under it') changes()
    await run(500)
    world.truth.note('device switched', { device: one?.device, plug: '1', to: 'off', machine: victim })
    await run(20_000)
    if (changed.length > 1) changes()
    const dark: Violation = { judge: 'liveness', what: `${victim} ${darkByUs}`, node: victim, from: world.clock.now() }
    assert.is(excuses([dark], history, []).length, excused, changed.join())
  }
})

test('a machine left on one feed: its Node was deleted while it was being cut; deleted long before, it is no excuse', async () => {
  const { world, victim, history, run } = await quietWorld({ power: 'two feeds on two strips' })
  const before = world.clock.now()
  await run(1_000)
  void world.devices.get('pdu-b-1')?.order(victim, 'off')
  await run(2_000)
  const found = [{ judge: 'liveness', what: `${victim} runs, and pdu-b-1/${victim} ${feedCutByUs}`, node: victim, from: world.clock.now() }] as const
  const because = (at: number, node = victim) => excuses(found, history, [{ at, does: 'the Node object is deleted', node }]).length
  assert.equal([because(before), because(before - 500_000), because(before, 'node-9')], [1, 0, 0])
})

test('a machine left on one feed that came in the place of another one: what that was cut off from is a person\'s to give back; one that came later, or elsewhere, or that was cut off itself, is no excuse', async () => {
  const { world, victim, history, run, plantFence } = await quietWorld({ power: 'two feeds on two strips' })
  void world.devices.get('pdu-b-1')?.order(victim, 'off')
  await run(2_000)
  const from = world.clock.now()
  const found = [{ judge: 'liveness', what: `${victim} runs, and pdu-b-1/${victim} ${feedCutByUs}`, node: victim, from }] as const
  const because = (at: number, node = victim) => excuses(found, history, [{ at, does: 'another machine comes under the name', node }]).length
  assert.equal([because(from - 1_000), because(from + 1), because(from - 1_000, 'node-9')], [1, 0, 0])
  const attempts = [{ method: 'feed-b-off', action: 'off', result: 'off', term: 1, within: '1s', late: '1s' }]
  plantFence('of-the-machine-before', victim, { phase: 'Final', attempts })
  assert.is(because(from - 1_000), 1)
  world.truth.note('machine booted', { node: victim, boot: 'another' })
  plantFence('of-the-machine-that-came', victim, { phase: 'Final', attempts }, { boot: 'another/1' })
  assert.is(because(from - 1_000), 0)
})

test('a machine left dark that came in the place of another one: the order off to every feed was given for that, before it had booted, though it landed later; one that was given later, or to only one of two, is no excuse', async () => {
  for (const [orders, excused] of [[['a', 'b', 'boots'], 1], [['a', 'boots', 'b'], 0], [['a', 'boots'], 0]] as const) {
    const { world, victim, history, run } = await quietWorld({ power: 'two feeds on two strips' })
    const at = world.clock.now()
    for (const one of orders) {
      await run(10)
      if (one === 'boots') world.truth.note('machine booted', { node: victim, boot: 'another' })
      else {
        const own = world.switches(victim).flat().find(({ device }) => device === `pdu-${one}-1`)
        world.truth.note('program runs', { action: 'off', ip: own?.address, plug: own?.plug })
        void world.devices.get(`pdu-${one}-1`)?.order(victim, 'off')
      }
    }
    await run(2_000)
    const dark: Violation = { judge: 'liveness', what: `${victim} ${darkByUs}`, node: victim, from: world.clock.now() }
    assert.is(excuses([dark], history, [{ at, does: 'another machine comes under the name', node: victim }]).length, excused, orders.join())
  }
})

test('a machine left on one feed: the other called itself on while it ran, and nothing truer was heard before the end of the incident', async () => {
  const cases = [['told no more', 1], ['true after the end', 1], ['true before the end', 0], ['never asked', 0], ['asked of a machine that was off', 0], ['ordered off again', 0]] as const
  for (const [how, excused] of cases) {
    const quiet = await quietWorld({ power: 'two feeds on two strips' })
    const { world, victim, history, product, plantFence, done, run } = quiet
    const strip = world.devices.get('pdu-b-1')
    assert.ok(strip)
    const order = async (to: 'on' | 'off') => {
      world.truth.note('program runs', { replica: 'replica-0-1', action: to, ip: '10.2.1.2', plug: victim })
      void strip.order(victim, to)
      await run(2_000)
    }
    plantFence('a-1', victim, { phase: 'Done' })
    const end = () => done(product.patch('/apis/holdfast.dev/v1alpha1/nodefences/a-1/status', 'merge', { status: { phase: 'Final' } }))
    await order('off')
    strip.fault = { does: 'lie' }
    await order('on')
    if (how === 'asked of a machine that was off') world.cutPower(victim)
    if (how !== 'never asked') await ask(quiet, 'pdu-b-1', victim)
    strip.fault = undefined
    if (how === 'true before the end') await ask(quiet, 'pdu-b-1', victim)
    await end()
    if (how === 'true after the end') await ask(quiet, 'pdu-b-1', victim)
    if (how === 'ordered off again') await order('off')
    const found = [{ judge: 'liveness', what: `${victim} runs, and pdu-b-1/${victim} ${feedCutByUs}`, node: victim, from: world.clock.now() }] as const
    assert.is(excuses(found, history, []).length, excused, how)
  }
})

test('one of two feeds wired to another machine: excused while the policy trusts such paths, the cable is wrong and both read off; an only feed is not', async () => {
  const cases = [
    ['two feeds on two strips', 'warn', 1, 'both off', 1], ['two feeds on two strips', 'warn', 1, 'one off', 0], ['two feeds on two strips', 'warn', 1, 'nobody asked', 0],
    ['two feeds on two strips', 'warn', 2, 'one off', 0], ['two feeds on two strips', 'require', 1, 'both off', 0], ['outlet', 'warn', 1, 'both off', 0],
  ] as const
  for (const [power, identity, changes, read, excused] of cases) {
    const quiet = await quietWorld({ power, policy: { identity } })
    const change = astray(quiet)
    for (let count = 0; count < changes; count += 1) change()
    if (read !== 'nobody asked') await switchOff(quiet, read === 'one off' ? 1 : Infinity)
    await free(quiet)
    const { found, because } = judged(quiet)
    assert.equal([found, because.length], [1, excused], `${power} ${identity} ${changes} ${read}`)
  }
})

test('of who was shut out of its storage what was believed before it was let in again counts, and nothing after that', async () => {
  const lied = /was a lie, told twice/
  for (const [frees, lies, because] of [['after the lie', 'before it is let in', lied], ['before the lie', 'before it is let in', lied], ['after the lie', 'after that', /^$/], ['before the lie', 'after that', /^$/]] as const) {
    const quiet = await quietWorld({ power: 'fabric, then bmc' })
    const { world, victim } = quiet
    const port = async (to: 'on' | 'off'): Promise<void> => {
      world.truth.note('program runs', { replica: 'replica-0-1', action: to, ip: world.switches(victim).flat().find(({ kind }) => kind === 'port')?.address, plug: victim })
      void world.devices.get('fabric')?.order(victim, to)
      await quiet.run(2_000)
    }
    const lie = async (): Promise<void> => {
      const device = world.devices.get(`bmc-${victim}`)
      if (device !== undefined) device.fault = { does: 'lie' }
      void device?.order('1', 'off')
      await ask(quiet, `bmc-${victim}`, '1', 2)
      if (frees === 'after the lie') await free(quiet)
    }
    await port('off')
    if (frees === 'before the lie') await free(quiet)
    const from = world.clock.now()
    if (lies === 'before it is let in') await lie()
    await port('on')
    if (lies === 'after that') await lie()
    const boot = world.nodes.get(victim)?.machine.boot()?.id ?? ''
    const found = excuses([{ judge: 'safety', what: 'two writers', from, parties: [{ node: victim, boot }] }], quiet.history, [])
    assert.match(found.map((one) => one.because).join(), because, `${frees}, ${lies}`)
  }
})

test.run()
