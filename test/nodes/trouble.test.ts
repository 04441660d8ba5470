// What happens in the middle of an incident, or beside one: machines that wake up or are switched on by other hands while they
// are being cut off, a mount that nobody lets go, too many silent at once, and at last a device that lies. On nodes with a gate.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { leaseInterval } from '../../core/judge.ts'
import { usualValues } from '../../deploy/values.ts'
import { machineClock as clock } from '../../edge/clock.ts'
import { until } from './cluster.ts'
import { running } from './containers.ts'
import { labImage } from './lab-image.ts'
import { say } from './room.ts'
import { nodesOf, ourTaint, startStage, uptime, writes, type Stage } from './stage.ts'
import { begin, comesBack, ended, gateOf, goesOn, heldBecause, holding, incidentsOf, movedAway, neverTwoWriters, tell, transcript, writtenAgain, type Story } from './story.ts'
import { driver, volumes } from './workload.ts'

const test = suite('trouble')
let stage: Stage

const within = 120_000
test('the stage is set', async () => {
  stage = await startStage(say)
})

test('a frozen machine is thawed while it is being cut off: it writes on until it is off, and never again', async () => {
  const story = await begin(stage)
  const controller = stage.management.of.get(story.machine.name)
  controller?.takes(4_000)
  await story.machine.freeze()
  await until('it is ordered off', () => controller?.orders[story.orders]?.order === 'ForceOff', within)
  await story.machine.thaw()
  const thawedAt = uptime()
  await until('its writer goes on', () => (stage.turns(volumes[0] ?? '').at(-1)?.last ?? 0) > thawedAt, within)
  await movedAway(story)
  controller?.takes(0)
  const incident = await ended(story)
  tell('thawed while it is cut off', story, incident)
  assert.is(incident.status.proof?.kind, 'off')
  await comesBack(story, incident)
})

/** Bound past the scheduler, which would heed the quarantine. */
async function pin(node: string): Promise<void> {
  const containers = [{ name: 'main', image: labImage, command: ['/bin/sleep', 'infinity'] }]
  const file = join(stage.cluster.folder, 'pinned.json')
  writeFileSync(file, JSON.stringify({
    apiVersion: 'v1', kind: 'Pod', metadata: { name: 'pinned', namespace: 'default' },
    spec: { nodeName: node, containers, automountServiceAccountToken: false, terminationGracePeriodSeconds: 1, enableServiceLinks: false },
  }))
  await stage.cluster.kubectl('apply', '--filename', file)
}

const pinned = async (): Promise<string | undefined> => (await stage.pods('default')).find(({ metadata: { name } }) => name === 'pinned')?.status.phase

/** Pinned there, its gate being shut: refused, in our words. */
async function refusesPinned(node: string): Promise<void> {
  await pin(node)
  let told = ''
  await until('the pod is refused in our words', async () => (told = await stage.cluster.kubectl('describe', 'pod', 'pinned')).includes('holdfast: '), within)
  say(`refused: ${/holdfast: .*/.exec(told)?.[0]}`)
}

test('a frozen machine that is thawed once its work has moved has woken to another boot: not a line of the old one, and no pod starts there until the node is back', async () => {
  const story = await begin(stage)
  const { machine } = story
  await machine.freeze()
  await movedAway(story)
  // It was cut off before anything moved: of what stood still nothing is left to thaw.
  const thawedAt = uptime()
  await machine.thaw()
  const seen: (readonly [gate: string, quarantined: boolean])[] = []
  const looked = async (): Promise<boolean> => {
    const gate = machine.bootId() === story.bootId ? undefined : gateOf(machine)
    const quarantined = (await stage.cluster.node(machine.name)).spec?.taints?.some(ourTaint) ?? false
    if (gate !== undefined) seen.push([gate, quarantined])
    return gate === 'open'
  }
  await Promise.all([
    until('the gate of its next boot opens', looked, within),
    until('it is shut before', () => seen[0]?.[0] === 'shut', within).then(() => refusesPinned(machine.name)),
  ])
  const incident = await ended(story)
  tell('thawed after its work had moved', story, incident)
  assert.equal(seen.filter(([gate, quarantined]) => gate === 'open' && quarantined), [], 'it is shut as long as the node is quarantined')
  await until('the pod starts', async () => await pinned() === 'Running', within)
  await stage.cluster.kubectl('delete', 'pod', 'pinned')
  assert.is(linesSince(story, thawedAt), 0, 'the thawed machine got no line in')
  await comesBack(story, incident)
})

test('other hands switch a machine on in the middle of its incident: its new boot ends it, whatever was free by then', async () => {
  const story = await begin(stage)
  await story.machine.powerOff()
  await until('an incident', async () => (await incidentsOf(story)).length > 0, leaseInterval) // by its device, whose power is its own, in a third of that
  await story.machine.powerOn()
  await goesOn(story)
  const incident = await ended(story)
  tell('switched on by other hands', story, incident)
  assert.is(incident.status.outcome, 'Recovered', transcript(incident))
  assert.is.not(story.machine.bootId(), story.bootId)
  neverTwoWriters(story)
  await stage.peace()
  neverTwoWriters(story)
})

/** Mounts that are there before kubelet is, each kept by a process whose id stands in /run/busy.pid. */
const forgotten = [
  {
    what: 'is not let go',
    at: (uid: string) => `/var/lib/kubelet/pods/${uid}/volumes/kubernetes.io~csi/forgotten/mount`,
    make: (mount: string) => `mount --bind /san ${mount}; (cd ${mount}; exec sleep infinity) & echo $! > /run/busy.pid`,
  },
  {
    // As of a server that is gone: whoever looks at it waits for ever.
    what: 'hangs',
    at: () => `/var/lib/kubelet/plugins/kubernetes.io/csi/${driver}/forgotten/globalmount`,
    make: (mount: string) => `exec 3<>/dev/fuse; mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 hung ${mount}; sleep infinity & echo $! > /run/busy.pid; exec 3>&-`,
  },
] as const

for (const { what, at, make } of forgotten) test(`a node that comes back with a mount that ${what} stays quarantined, says which, starts no pod, and is back once it is gone`, async () => {
  const story = await begin(stage)
  const { disk } = story.machine
  // As by a line of /etc/fstab that somebody forgot.
  const mount = at(story.pods[0]?.metadata.uid ?? '')
  writeFileSync(join(disk, 'etc/rc.local'), `mkdir -p ${mount}; ${make(mount)}\n`)
  await story.machine.powerOff()
  await movedAway(story)
  let why = ''
  await until('it is held for what is left on it', async () => (why = await holding(story, 'waiting-for-clean')).includes(mount), within)
  rmSync(join(disk, 'etc/rc.local'))
  const { name } = story.machine
  assert.ok((await stage.cluster.node(name)).spec?.taints?.some(ourTaint), 'it is quarantined')
  assert.match(await stage.cluster.kubectl('describe', 'nodefences'), /waiting-for-clean/)
  await refusesPinned(name)
  await clock.wait(10_000)
  assert.is(await pinned(), 'Pending')
  assert.ok((await stage.cluster.node(name)).spec?.taints?.some(ourTaint), 'it is quarantined still')
  await story.machine.run(['sh', '-c', `kill $(cat /run/busy.pid); until umount ${mount}; do sleep 0.1; done; rmdir ${mount} ${mount.replace('/mount', '')} || true`])
  const incident = await ended(story)
  tell(`a mount that ${what} (held: ${why})`, story, incident)
  await until('the pod starts', async () => await pinned() === 'Running', within)
  await stage.cluster.kubectl('delete', 'pod', 'pinned')
  await comesBack(story, incident)
})

test('two of three machines stand still at once: nobody is cut off, with the reason, and all goes on when they do', async () => {
  const story = await begin(stage)
  const replicas = new Set((await stage.pods(usualValues.namespace)).map(({ spec }) => spec.nodeName))
  // One replica must be left to say so.
  const other = [...stage.cluster.machines.values()].filter(({ name }) => name !== story.machine.name).toSorted((one, another) => Number(replicas.has(one.name)) - Number(replicas.has(another.name)))[0]
  const orders = (): number => [...stage.management.of.values()].reduce((sum, controller) => sum + controller.orders.length, 0)
  const before = orders()
  await Promise.all([story.machine.freeze(), other?.freeze()])
  // Before there is an incident a hold stands nowhere but in an Event.
  let why: string | undefined
  await until('it is said why nothing is done', async () => (why = await heldBecause(story, 'storm')) !== undefined, within)
  await clock.wait(20_000)
  assert.is(orders(), before, 'nobody was ordered anything')
  await Promise.all([story.machine.thaw(), other?.thaw()])
  await until('all is over', async () => (await incidentsOf(story)).every(({ status }) => status.phase === 'Final'), within)
  const incidents = await incidentsOf(story)
  assert.equal(incidents.filter(({ status }) => status.outcome !== 'Withdrawn').map(transcript), [])
  assert.is(orders(), before, 'nobody was ordered anything')
  say(`two of three at once (held: ${why}): ${writtenAgain(story) || 'nothing moved'}`)
  neverTwoWriters(story)
  await stage.peace()
})

/** Lines that the victim's boot has written since then. */
function linesSince({ bootId }: Story, since: number): number {
  return volumes.flatMap((volume) => stage.turns(volume)).filter(({ boot, first }) => boot === bootId && first > since).reduce((sum, { lines }) => sum + lines, 0)
}

// The last story: its volumes have had two writers, and the path of its node is marked.
test('behind a device that lies the very boot wakes once its work has moved: the proof is void, its gate shuts, its agent ends what runs there, and only until then it writes beside its successor', async () => {
  const story = await begin(stage)
  const { machine } = story
  const controller = stage.management.of.get(machine.name)
  controller?.lies(true)
  // A kubelet would end its pods, too, as soon as it heard of them; here the agent is alone.
  await machine.killService('kubelet', 'stays away')
  await machine.freeze()
  await movedAway(story)
  const wokeAt = uptime()
  await machine.thaw()
  await until('its gate is shut', () => gateOf(machine) === 'shut', within)
  await until('what it runs is ended', async () => await running(machine, story.pods) === 0, within)
  const [lines, wroteFor] = [linesSince(story, wokeAt), uptime() - wokeAt]
  const voided = async (): Promise<readonly string[]> => (await incidentsOf(story)).flatMap(({ status }) => (status.proof === undefined ? status.voided.map(({ proof }) => proof.kind) : []))
  await until('the record says that its proof is void', async () => (await voided()).join() === 'off', within)
  assert.is(machine.bootId(), story.bootId, 'it never was without power')
  assert.ok(lines > 0, 'no storage keeps it from writing')
  await machine.startService('kubelet')
  const incident = await ended(story)
  tell('an old boot that wakes behind a device that lies', story, incident)
  say(`a device that lies: ${lines} lines of the old writer beside its successor, ended ${wroteFor.toFixed(1)} s after it woke`)
  assert.is(incident.status.outcome, 'Void', transcript(incident))
  await until('its gate is open', () => gateOf(machine) === 'open', within)
  assert.is(linesSince(story, wokeAt), lines, 'not a line of it came after its containers were ended')
  for (const volume of volumes) assert.ok(writes(stage, volume) && stage.turns(volume).at(-1)?.node !== machine.name, `its successor writes ${volume}`)
  assert.equal((await nodesOf(stage)).flatMap(({ spec }) => spec?.taints?.filter(ourTaint) ?? []), [])
})

test('the stage is left', async () => await stage.stop())

test.run()
