import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Answer } from '../../coordinator/api.ts'
import type { MethodEnd, MethodRun } from '../../coordinator/fence.ts'
import { keepNode, readPod } from '../../coordinator/kubernetes.ts'
import { looker, type LookOptions } from '../../coordinator/look.ts'
import { createObservation, type Observation } from '../../coordinator/observe.ts'
import type { Look } from '../../core/action.ts'
import type { BeatSeen, ProbeWord } from '../../core/model.ts'
import { silentLog } from '../../edge/log.ts'
import { virtualClock, type VirtualClock } from '../../sim/clock.ts'
import { beat, boot, incident, method } from '../core/world.ts'
import { configured, turned } from './edge-world.ts'

const test = suite('look')

interface Small {
  readonly clock: VirtualClock
  readonly observation: Observation
  readonly gets: string[]
  readonly checked: (readonly string[])[]
  readonly checkedAsOf: (number | undefined)[]
  readonly asked: string[]
  readonly runs: MethodRun[]
  answer: (path: string, nth: number) => Promise<Answer<unknown>> | Answer<unknown>
  probe: () => Promise<ProbeWord>
  ask: (witness: string) => Promise<{ word: 'hears' | 'deaf'; proven: boolean } | undefined>
  end: Partial<MethodEnd>
  whisperAddress: string | undefined
  /** What audits may begin. */
  budget: 0 | 1
  /** What is heard of node-2. */
  beat: BeatSeen | undefined
  look(look: Look): Promise<boolean>
  node(uid?: string, address?: string): void
}

const refused: Answer<never> = { ok: false, error: { kind: 'server', message: 'x' } }

function small(): Small {
  const clock = virtualClock(100_000)
  const observation = createObservation(clock, 'replica-0', { heard: () => world.beat, forget: () => undefined })
  let version = 0
  const world: Omit<Small, 'look'> = {
    clock, observation, gets: [], checked: [], checkedAsOf: [], asked: [], runs: [], whisperAddress: '10.0.0.2:7000', budget: 1, end: {}, beat: undefined,
    answer: () => refused, probe: async () => 'answered', ask: async () => ({ word: 'deaf', proven: false }),
    node(uid = 'uid-1', address = '10.0.0.2') {
      version += 1
      observation.node(keepNode({ metadata: { name: 'node-2', uid, resourceVersion: String(version) }, status: { addresses: [{ type: 'InternalIP', address }] } } as never)) // a Node is more
    },
  }
  const beats: LookOptions['beats'] = {
    agent: () => (world.whisperAddress === undefined ? undefined : { whisperAddress: world.whisperAddress } as never), // only this of it is looked at
    ask: (witness) => { world.asked.push(`agent ${witness}`); return world.ask(witness) },
    askReplica: (replica) => { world.asked.push(`replica ${replica}`); return world.ask(replica) },
    challenge: async () => ({ issuedAt: clock.now(), boot: 'b' }),
    check: (_, folders, __, asOf) => {
      world.checked.push(folders)
      world.checkedAsOf.push(asOf)
      return true
    },
    nonce: () => 'n',
  }
  const look = looker({
    beats, observation, log: silentLog, stopping: new AbortController().signal,
    api: { get: async <T>(path: string) => { world.gets.push(path); return await world.answer(path, world.gets.length) as Answer<T> } },
    fences: { method: (_, wanted) => (wanted.digest === configured.digest ? configured : undefined), sharing: () => [] },
    host: { clock, probe: () => world.probe() }, audits: { take: () => world.budget },
    runner: {
      listOutlets: async () => undefined,
      runMethod: async (run) => {
        world.runs.push(run)
        return { state: 'on', reason: '', evidence: 'e', startedAt: clock.now(), endedAt: clock.now(), ran: true, gone: true, gaveWay: false, ...world.end }
      },
    },
  })
  world.node()
  return Object.assign(world, { look })
}

const askDevice = { do: 'askDevice', node: 'node-2', method, purpose: 'audit' } as const
const askWitnesses = { do: 'askWitnesses', node: 'node-2', again: false, witnesses: [{ name: 'node-1', kind: 'agent' }, { name: 'replica-1', kind: 'replica' }] } as const
const probe = { do: 'probe', node: 'node-2', again: false } as const
const listPods = { do: 'listPods', node: 'node-2' } as const
const pods = (names: readonly string[], more = ''): Answer<unknown> => ({
  ok: true, value: { metadata: { resourceVersion: '1', continue: more }, items: names.map((name) => ({ metadata: { name, namespace: 'work', uid: `uid-${name}` }, status: { phase: 'Running' } })) },
})

test('a probe\'s word stands with when it was asked and when it was answered', async () => {
  const on = small()
  on.probe = async () => {
    await on.clock.wait(40)
    return 'answered'
  }
  assert.ok(await turned(on.clock, on.look(probe)))
  assert.equal(on.observation.row('node-2')?.probe, { askedAt: 100_000, answeredAt: 100_040, word: 'answered', spokeAt: 100_040, acceptedAt: 100_040 })
})

test('a node without an address is not asked, and stays unknown', async () => {
  const on = small()
  on.node('uid-1', '')
  assert.is(await on.look(probe), false)
  assert.is(on.observation.row('node-2')?.probe, undefined)
})

test('what the old address answered is no word on the Node that was made again, nor on one that moved', async () => {
  for (const [uid, address] of [['uid-other', '10.0.0.2'], ['uid-1', '10.0.0.9']] as const) {
    const on = small()
    on.probe = async () => {
      on.node(uid, address)
      return 'silent'
    }
    assert.is(await on.look(probe), false)
    assert.is(on.observation.row('node-2')?.probe, undefined)
  }
})

test('what was asked of the Node that was there before is no word on the one that was made again under its name', async () => {
  for (const look of [askWitnesses, { do: 'readLease', node: 'node-2' } as const, listPods]) {
    const on = small()
    const before = on.observation.row('node-2')
    on.ask = async () => {
      on.node('uid-other')
      return { word: 'deaf', proven: false }
    }
    on.answer = (path) => {
      on.node('uid-other')
      return path.includes('leases') ? { ok: true, value: { spec: { renewTime: 't1' } } } : pods(['a'])
    }
    assert.is(await on.look(look), false, look.do)
    const row = on.observation.row('node-2')
    assert.is.not(row, before)
    assert.equal([row?.witnesses, row?.lease, row?.pods], [[], undefined, undefined], look.do)
  }
})

test('each witness that answers is heard as soon as it does; one that does not says nothing, neither way', async () => {
  const on = small()
  on.ask = async (witness) => (witness === 'node-1' ? undefined : { word: 'hears', proven: true, boot: 'b' })
  assert.ok(await on.look(askWitnesses))
  assert.equal(on.observation.row('node-2')?.witnesses.map((one) => [one.witness, one.word, one.proven, one.boot]), [['replica-1', 'hears', true, 'b']])
})

test('no peer is asked about a node that answers no whispers; another replica is', async () => {
  const on = small()
  on.whisperAddress = undefined
  assert.ok(await on.look(askWitnesses))
  assert.equal(on.asked, ['replica replica-1'])
})

test('no witness answered: nothing is stored', async () => {
  const on = small()
  on.ask = async () => undefined
  assert.is(await on.look(askWitnesses), false)
  assert.equal(on.observation.row('node-2')?.witnesses, [])
})

test('a Lease is read live; a read that fails, and a Lease that is not there, store nothing', async () => {
  const on = small()
  assert.is(await on.look({ do: 'readLease', node: 'node-2' }), false)
  assert.is(on.observation.row('node-2')?.lease, undefined)
  on.answer = () => ({ ok: true, value: { spec: { renewTime: 't1' } } })
  assert.ok(await on.look({ do: 'readLease', node: 'node-2' }))
  assert.is(on.observation.row('node-2')?.lease?.renewTime, 't1')
  assert.ok(on.gets.every((path) => path.endsWith('/namespaces/kube-node-lease/leases/node-2')))
})

test('pods of one node are listed page by page, and stand there only when all of them are', async () => {
  const on = small()
  on.answer = (path) => (path.includes('continue=more') ? pods(['c']) : pods(['a', 'b'], 'more'))
  assert.ok(await on.look(listPods))
  assert.equal(on.observation.row('node-2')?.pods?.items.map((pod) => pod.name), ['a', 'b', 'c'])
  assert.is(on.gets.length, 2)
})

test('a list that breaks off at its second page, or never ends, is not used', async () => {
  const on = small()
  on.answer = (path) => (path.includes('continue=') ? refused : pods(['a'], 'more'))
  assert.is(await on.look(listPods), false)
  assert.is(on.observation.row('node-2')?.pods, undefined)
  on.answer = () => pods(['a'], 'more')
  assert.is(await on.look(listPods), false)
  assert.is(on.observation.row('node-2')?.pods, undefined)
})

test('that a list was refused stands there until it is asked for again, and what else went wrong is no refusal', async () => {
  const on = small()
  const said = async (): Promise<string | undefined> => {
    assert.is(await on.look(listPods), false)
    return on.observation.row('node-2')?.podsRefused
  }
  on.answer = () => ({ ok: false, error: { kind: 'forbidden', status: 403, message: 'pods is forbidden' } })
  assert.is(await said(), 'pods is forbidden')
  on.answer = () => refused
  assert.is(await said(), undefined)
  on.answer = (path) => (path.includes('continue=') ? { ok: false, error: { kind: 'forbidden', status: 403, message: 'no more of them' } } : pods(['a'], 'more'))
  assert.is(await said(), 'no more of them')
  on.answer = () => pods(['a'])
  assert.ok(await on.look(listPods))
  assert.is(on.observation.row('node-2')?.podsRefused, undefined)
})

test('a list whose pages take longer than one may is not used', async () => {
  const on = small()
  on.answer = async () => {
    await on.clock.wait(3_000)
    return pods(['a'], 'more')
  }
  assert.is(await turned(on.clock, on.look(listPods)), false)
  assert.is(on.observation.row('node-2')?.pods, undefined)
})

test('a list bears when it was asked for', async () => {
  const on = small()
  on.answer = async () => {
    await on.clock.wait(700)
    return pods(['a'])
  }
  assert.ok(await turned(on.clock, on.look(listPods)))
  assert.equal([on.observation.row('node-2')?.pods?.askedAt, on.observation.row('node-2')?.pods?.listedAt], [100_000, 100_700])
})

test('a device\'s word stands with its evidence; a run that could not start is unknown', async () => {
  const on = small()
  assert.ok(await on.look(askDevice))
  on.end = { state: 'unknown', reason: 'not started: no Secret', ran: false }
  assert.ok(await on.look(askDevice))
  assert.equal(on.observation.row('node-2')?.readings.map((one) => one.state), ['on', 'unknown'])
  assert.is(on.observation.row('node-2')?.readings[1]?.evidence, 'not started: no Secret; e')
  assert.equal(on.runs.map((run) => [run.action, run.purpose]), [['status', 'audit'], ['status', 'audit']])
})

test('an audit that gave way to an incident says nothing of the device', async () => {
  const on = small()
  on.end = { state: 'unknown', reason: 'ended: gave way to an incident', gaveWay: true }
  assert.is(await on.look(askDevice), false)
  assert.equal(on.observation.row('node-2')?.readings, [])
})

test('a method whose configuration has changed meanwhile is not asked', async () => {
  const on = small()
  assert.is(await on.look({ ...askDevice, method: { ...method, digest: 'd0' } }), false)
  assert.equal(on.runs, [])
})

test('the agent is told which pods belong by the names of their folders: of a static pod its config hash', async () => {
  const on = small()
  on.answer = () => ({
    ok: true, value: {
      metadata: { resourceVersion: '1' }, items: [
        { metadata: { name: 'web', namespace: 'work', uid: 'uid-web' } },
        { metadata: { name: 'etcd-node-2', namespace: 'kube-system', uid: 'uid-of-the-mirror', annotations: { 'kubernetes.io/config.mirror': 'hash-1', 'kubernetes.io/config.hash': 'hash-1' } } },
      ],
    },
  })
  assert.ok(await on.look({ do: 'askClean', node: 'node-2' }))
  assert.equal(on.checked, [['uid-web', 'hash-1']])
})

test('its list is as old as the question for it: what was freed while it was on its way it calls the node\'s own', async () => {
  const on = small()
  const askedAt = on.clock.now()
  on.answer = async () => {
    await on.clock.wait(300)
    return pods(['web-0'])
  }
  const done = on.look({ do: 'askClean', node: 'node-2' })
  await on.clock.runFor(1_000)
  assert.ok(await done)
  assert.equal([on.checked, on.checkedAsOf], [[['uid-web-0']], [askedAt]])
})

/** web-0 was freed and doomed, web-1 recorded and then not touched, and what stands beside them was never to be freed. */
const afterBatch: Answer<unknown> = {
  ok: true, value: {
    metadata: { resourceVersion: '1' },
    items: [['web-0', 'Failed'], ['web-1', 'Running'], ['job', 'Failed']].map(([name, phase]) => ({ metadata: { name, namespace: 'work', uid: `uid-${name}` }, status: { phase } })),
  },
}
const fates = ['web-0', 'web-1'].map((name) => ({ namespace: 'work', name, uid: `uid-${name}`, fate: 'freed' as const }))

test('what this incident doomed, and nobody deleted, does not belong: the fenced boot may be running it still, beside its successor', async () => {
  const on = small()
  on.answer = () => afterBatch
  on.beat = beat({ boot })
  on.observation.incident(incident({ phase: 'Done', pods: fates }))
  assert.ok(await on.look({ do: 'askClean', node: 'node-2' }))
  assert.equal(on.checked, [['uid-web-1', 'uid-job']])
})

test('in another boot nothing doomed runs, and an incident that is over, or another node\'s, says nothing of the pods here', async () => {
  for (const [heard, phase, changes] of [['boot-9/1', 'Done', {}], [boot, 'Final', {}], [boot, 'Done', { nodeName: 'node-3' }]] as const) {
    const on = small()
    on.answer = () => afterBatch
    on.beat = beat({ boot: heard })
    on.observation.incident(incident({ phase, pods: fates }, changes))
    assert.ok(await on.look({ do: 'askClean', node: 'node-2' }))
    assert.equal(on.checked, [['uid-web-0', 'uid-web-1', 'uid-job']], heard)
  }
})

test('without a list of this moment the agent is not asked whether it is clean: an old list would call old pods its own', async () => {
  const on = small()
  on.answer = (_, nth) => (nth === 1 ? pods(['freed since']) : refused)
  assert.ok(await on.look(listPods))
  assert.is(await on.look({ do: 'askClean', node: 'node-2' }), false)
  assert.equal(on.checked, [])
})

const pod = (changes: object, annotations = {}): Parameters<typeof readPod>[0] => ({
  metadata: { name: 'p', namespace: 'work', uid: 'u', resourceVersion: '4', annotations, ...changes },
  spec: { priority: 7, volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }, { name: 'e', ephemeral: {} }, { name: 's', secret: {} }] },
} as never) // a Pod is more
const owner = (kind: string, controller = true) => ({ ownerReferences: [{ apiVersion: 'v1', kind, name: 'o', uid: 'o', controller }] })

test('of a pod is kept what a decision needs: owner, priority, claims, generic ephemeral ones too, and why it is left alone', () => {
  assert.equal(readPod(pod(owner('StatefulSet'))), {
    namespace: 'work', name: 'p', uid: 'u', resourceVersion: '4', owner: 'StatefulSet', priority: 7, terminating: false, phase: 'Unknown', finalizers: [], volumes: [], grace: 0, ended: true, toleratesEviction: false,
  })
  assert.is(readPod(pod(owner('Widget'))).owner, 'other')
  assert.is(readPod(pod(owner('StatefulSet', false))).owner, 'none')
  assert.ok(readPod(pod(owner('DaemonSet'))).exempt !== undefined)
  assert.ok(readPod(pod(owner('Node'))).exempt !== undefined)
  assert.ok(readPod(pod({}, { 'kubernetes.io/config.mirror': 'h' })).exempt !== undefined)
  assert.is(readPod(pod(owner('ReplicaSet'))).exempt, undefined)
  assert.ok(readPod(pod({ deletionTimestamp: 'now' })).terminating)
})

test('an audit begins no program beyond what may be begun, an incident does', async () => {
  const on = small()
  on.budget = 0
  assert.is(await on.look(askDevice), false)
  assert.is(on.runs.length, 0)
  assert.ok(await on.look({ ...askDevice, purpose: 'incident' }))
  assert.is(on.runs.length, 1)
})

test.run()
