import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { CleanReport } from '../../core/beat.ts'
import { checkFrames, frameOf, mostPods, readAgentWord } from '../../core/frame.ts'
import type { Link } from '../../edge/link.ts'
import { beatsWorld, emptyMounts } from '../coordinator/beats-world.ts'

const test = suite('agent')

const volume = (pod: string) => `40 22 8:16 / /var/lib/kubelet/pods/${pod}/volumes/kubernetes.io~csi/pvc-1/mount rw shared:9 - ext4 /dev/sdb rw\n`

test('an agent beats to every replica once a second, and not faster', async () => {
  const world = beatsWorld()
  const replicas = ['replica-a', 'replica-b', 'replica-c'].map((name) => world.replica(name))
  world.agent('node-1')
  await world.clock.runFor(5_000)
  for (const { beats } of replicas) {
    const at: number[] = []
    for (let step = 0; step < 100; step += 1) {
      await world.clock.runFor(100)
      const heard = beats.heard('node-1')?.at ?? 0
      if (heard !== at.at(-1)) at.push(heard)
    }
    assert.ok(at.length >= 10 && at.length <= 11)
    assert.ok(at.slice(2).every((instant, index) => instant - (at[index + 1] ?? 0) === 1_000))
  }
})

test('what it says of its machine is what the machine\'s files say', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  world.agent('node-1')
  await world.clock.runFor(2_000)
  const { boot, machine, uptime } = replica.beats.agent('node-1') ?? {}
  assert.equal({ boot, machine }, { boot: 'b007-0001/4711', machine: 'uuid-of-node-1' })
  assert.is(uptime, 100_000 - 47_110)
})

test('an agent that cannot read its boot is not heard, and is once it can', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const { files, said } = world.agent('node-1', { boot: '' })
  await world.clock.runFor(10_000)
  assert.is(replica.beats.agent('node-1'), undefined)
  assert.ok(said.some((line) => line.includes('cannot be read')))
  files['boot-id'] = 'b007-0002'
  await world.clock.runFor(5_000)
  assert.is(replica.beats.heard('node-1')?.boot, 'b007-0002/4711')
})

test('without a token it says no hello, and with the next one it does', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const { files } = world.agent('node-1', { token: '' })
  await world.clock.runFor(5_000)
  assert.is(replica.beats.agent('node-1'), undefined)
  files.token = 'agent node-1 pod-1\n'
  await world.clock.runFor(15_000)
  assert.ok(replica.beats.heard('node-1'))
})

test('the health of kubelet travels with the beat', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const agent = world.agent('node-1')
  await world.clock.runFor(5_000)
  assert.is(replica.beats.heard('node-1')?.kubelet, 'ok')
  agent.kubelet = 'ill'
  await world.clock.runFor(12_000)
  assert.is(replica.beats.heard('node-1')?.kubelet, 'ill')
})

test('the health of the runtime and of the storage travels with it, and a change of either is worth a decision', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  let runtime: 'ok' | 'ill' = 'ok'
  world.agent('node-1', { storage: ['/mnt/a'], runtimeHealth: async () => runtime })
  await world.clock.runFor(5_000)
  const seen = () => [replica.beats.heard('node-1')?.runtime, replica.beats.heard('node-1')?.storage]
  assert.equal(seen(), ['ok', 'reached'])
  const before = replica.changes.filter(({ what }) => what === 'health').length
  runtime = 'ill'
  await world.clock.runFor(12_000)
  assert.equal([seen(), replica.changes.filter(({ what }) => what === 'health').length], [['ill', 'reached'], before + 1])
})

test('a kubelet that does not answer delays no beat', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const agent = world.agent('node-1')
  Object.defineProperty(agent, 'kubelet', { get: () => new Promise(() => undefined) })
  await world.clock.runFor(30_000)
  assert.ok(world.clock.now() - (replica.beats.heard('node-1')?.at ?? 0) <= 1_001)
})

test('a look at the vitals that hangs delays no beat, and one that was told is gone when the next comes to nothing', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const answers = [Promise.resolve({ disk: 93, load: 0.7 }), new Promise<undefined>(() => undefined)]
  world.agent('node-1', { vitals: () => answers.shift() ?? Promise.resolve(undefined) })
  await world.clock.runFor(60_000)
  assert.equal(replica.beats.heard('node-1')?.vitals, { disk: 93, load: 0.7 })
  for (let second = 0; second < 150; second += 1) {
    await world.clock.runFor(1_000)
    assert.ok(world.clock.now() - (replica.beats.heard('node-1')?.at ?? 0) <= 1_001)
  }
  assert.equal([answers.length, replica.beats.heard('node-1')?.vitals], [0, undefined])
})

test('a replica that was away is linked again, with longer and longer waits, and none forgets the others', async () => {
  const world = beatsWorld()
  const [one, two] = [world.replica('replica-a'), world.replica('replica-b')]
  world.agent('node-1')
  await world.clock.runFor(5_000)
  one.stop()
  const before = world.network.dials.get(one.address) ?? 0
  await world.clock.runFor(60_000)
  const dials = (world.network.dials.get(one.address) ?? 0) - before
  assert.ok(dials >= 8 && dials <= 40, `${dials} dials in a minute, the other replica's among them`)
  assert.ok(two.beats.agent('node-1')?.linked)
  const back = world.replica('replica-a')
  await world.clock.runFor(20_000)
  assert.ok(back.beats.heard('node-1'))
})

test('a link on which nothing comes back is given up and dialled anew', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const { agent } = world.agent('node-1')
  await world.clock.runFor(5_000)
  world.network.cut('node-1')
  await world.clock.runFor(20_000)
  assert.equal(agent.links(), [])
  world.network.join('node-1')
  await world.clock.runFor(20_000)
  assert.is(agent.links().length, 1)
  assert.ok(world.clock.now() - (replica.beats.heard('node-1')?.at ?? 0) <= 1_001)
})

test('the replicas that a permit names are dialled, and remembered over a restart without names', async () => {
  const world = beatsWorld()
  const [one, two] = [world.replica('replica-a'), world.replica('replica-b')]
  const first = world.agent('node-1', { replicas: [one.address] })
  await world.clock.runFor(10_000)
  assert.ok(two.beats.heard('node-1'))
  assert.equal(JSON.parse(first.disk.get('replicas.json') ?? ''), [one.address, two.address])
  await first.agent.stop('restart')
  const second = world.agent('node-1', { replicas: [], disk: first.disk })
  await world.clock.runFor(5_000)
  assert.is(second.agent.links().length, 2)
})

test('a memory that is spoilt is no memory, and harms nothing', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  world.agent('node-1', { disk: new Map([['replicas.json', '{"not": "a list"']]) })
  await world.clock.runFor(5_000)
  assert.ok(replica.beats.heard('node-1'))
})

test('two addresses of one replica end in one link, not in a fight', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  world.network.listen('alias:7443', (link) => replica.beats.accept(link))
  const { agent } = world.agent('node-1', { replicas: ['replica-a:7443', 'alias:7443'] })
  await world.clock.runFor(30_000)
  const dials = () => (world.network.dials.get('alias:7443') ?? 0) + (world.network.dials.get('replica-a:7443') ?? 0)
  const before = dials()
  await world.clock.runFor(60_000)
  assert.is(agent.links().length, 1)
  assert.is(dials(), before)
})

test('a challenge is answered with the seal of the replica that asks', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  world.agent('node-1')
  await world.clock.runFor(5_000)
  const asked = replica.beats.challenge('node-1')
  await world.clock.runFor(100)
  assert.is((await asked)?.boot, 'b007-0001/4711')
})

test('a peer that hears proves it, and one that cannot reach the node is deaf', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  world.agent('node-1')
  world.agent('node-2')
  await world.clock.runFor(5_000)
  const address = replica.beats.agent('node-1')?.whisperAddress ?? ''
  const hears = replica.beats.ask('node-2', 'node-1', address, replica.beats.nonce())
  await world.clock.runFor(100)
  assert.equal(await hears, { word: 'hears', proven: true, boot: 'b007-0001/4711' })
  world.network.cut('node-1')
  const deaf = replica.beats.ask('node-2', 'node-1', address, replica.beats.nonce())
  await world.clock.runFor(1_500)
  assert.equal(await deaf, { word: 'deaf', proven: false })
})

test('a node whose link to the replica is gone still proves through a peer that it lives', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const { agent } = world.agent('node-1')
  world.agent('node-2')
  await world.clock.runFor(5_000)
  const address = replica.beats.agent('node-1')?.whisperAddress ?? ''
  replica.beats.drop('pod-node-1')
  await world.clock.runFor(5_000)
  assert.equal(agent.links(), [])
  const asked = replica.beats.ask('node-2', 'node-1', address, replica.beats.nonce())
  await world.clock.runFor(100)
  assert.is((await asked)?.proven, true)
})

test('asked while it does not know which pods belong, it says that it cannot tell', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  world.agent('node-1')
  await world.clock.runFor(5_000)
  assert.equal(replica.beats.heard('node-1')?.clean?.report, { state: 'unknown', reason: 'no list of the pods that belong here was received' })
})

test('a check is answered at once, each time, and a change is told without being asked', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const agent = world.agent('node-1', { mounts: `${emptyMounts}${volume('pod-old')}` })
  agent.podFolders = ['pod-old', 'pod-mine']
  await world.clock.runFor(5_000)
  replica.beats.check('node-1', ['pod-mine'])
  await world.clock.runFor(100)
  const first = replica.beats.heard('node-1')?.clean
  assert.equal(first?.report.state === 'dirty' && first.report.leftovers.map(({ kind }) => kind), ['mount', 'pod directory'])
  replica.beats.check('node-1', ['pod-mine'])
  await world.clock.runFor(100)
  assert.ok((replica.beats.heard('node-1')?.clean?.at ?? 0) > (first?.at ?? 0))
  agent.files.mounts = emptyMounts
  agent.podFolders = ['pod-mine']
  await world.clock.runFor(3_000)
  assert.equal(replica.beats.heard('node-1')?.clean?.report, { state: 'clean' })
})

test('its report is of the list that it answers, to whoever told it that one, and to nobody else', async () => {
  const world = beatsWorld()
  const [leader, other] = [world.replica('replica-a'), world.replica('replica-b')]
  world.agent('node-1')
  await world.clock.runFor(5_000)
  leader.beats.check('node-1', [], {}, 4_321)
  await world.clock.runFor(100)
  assert.equal([leader, other].map(({ beats }) => beats.heard('node-1')?.clean?.asOf), [4_321, -Infinity])
})

test('five thousand pods are told whole, however many frames that takes, and the node is clean', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const pods = Array.from({ length: 5_000 }, (_, index) => `12345678-1234-1234-1234-${String(index).padStart(12, '0')}`)
  const agent = world.agent('node-1', { mounts: `${emptyMounts}40 22 0:60 / /var/lib/kubelet/pods/${pods[0]}/volumes/kubernetes.io~projected/token rw - tmpfs tmpfs rw\n` })
  agent.podFolders = pods
  await world.clock.runFor(5_000)
  replica.beats.check('node-1', pods)
  await world.clock.runFor(1_000)
  assert.equal(replica.beats.heard('node-1')?.clean?.report, { state: 'clean' })
  replica.beats.check('node-1', pods.slice(1))
  await world.clock.runFor(1_000)
  const { report } = replica.beats.heard('node-1')?.clean ?? {}
  assert.equal(report?.state === 'dirty' && report.leftovers.map(({ pod }) => pod), [pods[0]])
})

/** A replica that welcomes whoever dials it, hears the reports, and says nothing else by itself. */
function scripted() {
  const world = beatsWorld()
  const links: Link[] = []
  const heard: CleanReport[] = []
  world.network.listen('replica-a:7443', (link) => {
    links.push(link)
    link.listen({
      frame(frame) {
        const read = readAgentWord(frame)
        if (!('word' in read)) return
        if (read.word.say === 'hello') link.send(frameOf({ say: 'welcome', node: 'node-1', replica: 'replica-a', key: 'key' }))
        if (read.word.say === 'clean') heard.push(read.word.report)
      },
      closed() {}, // it is dialled again
    })
  })
  return { world, links, heard }
}

test('half a list is no list: what follows a link that broke in the middle begins anew', async () => {
  const { world, links, heard } = scripted()
  world.agent('node-1', { replicas: ['replica-a:7443'] }).podFolders = ['of-the-half', 'of-the-whole']
  await world.clock.runFor(5_000)
  links.at(-1)?.send(frameOf({ say: 'check', pods: ['of-the-half'], more: true }))
  await world.clock.runFor(100)
  links.at(-1)?.close('broken')
  await world.clock.runFor(5_000)
  assert.equal([links.length, heard.map(({ state }) => state)], [2, ['unknown', 'unknown']])
  links.at(-1)?.send(frameOf({ say: 'check', pods: ['of-the-whole'] }))
  await world.clock.runFor(1_000)
  const report = heard.at(-1)
  assert.equal(report?.state === 'dirty' && report.leftovers.map(({ pod }) => pod), ['of-the-half'])
})

test('a list longer than it can keep is answered by nothing, and the next one as ever', async () => {
  const { world, links, heard } = scripted()
  world.agent('node-1', { replicas: ['replica-a:7443'] })
  await world.clock.runFor(5_000)
  const before = heard.length
  const frames = checkFrames(Array.from({ length: mostPods + 1 }, (_, index) => `pod-${index}`))
  for (const frame of frames) links.at(-1)?.send(frame)
  await world.clock.runFor(1_000)
  assert.is(heard.length, before)
  links.at(-1)?.send(frameOf({ say: 'check', pods: [] }))
  await world.clock.runFor(1_000)
  assert.equal(heard.slice(before), [{ state: 'clean' }])
})

test('a clean node is watched half a minute more, and then an old list of pods accuses nobody', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const agent = world.agent('node-1')
  await world.clock.runFor(5_000)
  replica.beats.check('node-1', [])
  await world.clock.runFor(10_000)
  agent.podFolders = ['late-mount']
  await world.clock.runFor(3_000)
  assert.is(replica.beats.heard('node-1')?.clean?.report.state, 'dirty')
  agent.podFolders = []
  await world.clock.runFor(40_000)
  agent.podFolders = ['pod-of-tomorrow']
  await world.clock.runFor(60_000)
  assert.is(replica.beats.heard('node-1')?.clean?.report.state, 'clean')
})

test('a pods folder that cannot be read, or not in time, is never clean', async () => {
  const world = beatsWorld()
  const replica = world.replica('replica-a')
  const agent = world.agent('node-1')
  agent.podFolders = undefined
  await world.clock.runFor(5_000)
  replica.beats.check('node-1', [])
  await world.clock.runFor(1_000)
  assert.equal(replica.beats.heard('node-1')?.clean?.report, { state: 'unknown', reason: 'the folder of pods cannot be read' })
  Object.defineProperty(agent, 'podFolders', { get: () => new Promise(() => undefined), configurable: true })
  await world.clock.runFor(20_000)
  assert.match(JSON.stringify(replica.beats.heard('node-1')?.clean?.report), /could not be read within/)
})

test('an agent that stops says goodbye on every link and leaves no timer behind', async () => {
  const world = beatsWorld()
  const replicas = ['replica-a', 'replica-b'].map((name) => world.replica(name))
  const { agent } = world.agent('node-1')
  await world.clock.runFor(5_000)
  const others = world.clock.pending()
  await agent.stop('reboot')
  await world.clock.runFor(10)
  for (const { beats } of replicas) {
    assert.is(beats.heard('node-1')?.goodbye?.why, 'reboot')
    assert.is(beats.agent('node-1')?.linked, false)
  }
  await world.clock.runFor(30_000)
  assert.ok(world.clock.pending() < others)
  for (const replica of replicas) replica.stop()
  await world.clock.runFor(10_000)
  assert.is(world.clock.pending(), 0)
})

test.run()
