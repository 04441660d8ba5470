// A host with two runtimes: k3s brings its own containerd, and a containerd of the distribution (Debian's and Ubuntu's `containerd`, which `docker.io` needs, answers CRI
// without any configuration) runs beside it for other things. Kubelet's pods are all in the second place that the agent looks at.
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerHttp2Stream } from 'node:http2'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { RuntimeAnswer } from '../../agent/host.ts'
import { bytesField, joined, textField, wholeField } from '../../agent/protobuf.ts'
import { machineRuntimes, podOfTable, type Runtimes } from '../../agent/runtimes.ts'
import { machineClock } from '../../edge/clock.ts'

const test = suite('runtimes')
const [agent, gone] = ['11111111-1111-4111-8111-111111111111', '22222222-1111-4111-8111-111111111111']
const label = (key: string, value: string) => bytesField(8, joined([textField(1, key), textField(2, value)]))
const container = (pod: string) => bytesField(1, joined([
  textField(1, `c-${pod}`), textField(2, 's'), bytesField(3, textField(1, 'main')), wholeField(6, 1), wholeField(7, 1_700_000_000_000_000),
  label('io.kubernetes.pod.uid', pod), label('io.kubernetes.pod.name', 'db-0'), label('io.kubernetes.pod.namespace', 'work'),
]))
const patient = 20_000

/** What a runtime runs, and the state in which it is: `deaf` refuses every question. */
type Plan = readonly string[] | 'deaf'

interface Host {
  readonly runtimes: Runtimes
  readonly socket: (name: string) => string
  /** `usual StopContainer` for each. */
  readonly stops: readonly string[]
  change(name: string, plan: Plan): void
}

/** `pod`: whose the agent is. The first of the runtimes is looked at first. */
async function onHost(plans: Readonly<Record<string, Plan>>, pod: string | undefined, look: (host: Host) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-runtimes-'))
  const ends: (() => void)[] = []
  const stops: string[] = []
  const now: Record<string, Plan> = { ...plans }
  const socket = (name: string): string => join(folder, name, 'cri.sock')
  const files = pod === undefined ? '' : `40 22 8:1 /var/lib/kubelet/pods/${pod}/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n`
  for (const [process, more] of [['1', ''], ['self', files]] as const) {
    mkdirSync(join(folder, 'proc', process), { recursive: true })
    writeFileSync(join(folder, 'proc', process, 'mountinfo'), `22 1 8:1 / / rw - ext4 /dev/sda1 rw\n${more}`)
  }
  for (const name of Object.keys(plans)) ends.push(await serve(socket(name), (method) => {
    const plan = now[name] ?? []
    if (method.startsWith('Stop')) stops.push(`${name} ${method}`)
    return plan === 'deaf' ? undefined : method === 'ListContainers' ? joined(plan.map(container)) : new Uint8Array()
  }))
  try {
    await look({ runtimes: machineRuntimes(machineClock, [...Object.keys(plans), 'nowhere'].map(socket), join(folder, 'proc')), socket, stops, change: (name, plan) => { now[name] = plan } })
  } finally {
    for (const end of ends) end()
    rmSync(folder, { recursive: true })
  }
}

async function serve(path: string, answer: (method: string) => Uint8Array | undefined): Promise<() => void> {
  mkdirSync(dirname(path), { recursive: true })
  const server = createServer()
  const open = new Set<{ destroy(): void }>()
  server.on('session', (session) => open.add(session))
  server.on('stream', (stream: ServerHttp2Stream, given: Record<string, unknown>) => {
    stream.on('error', () => undefined)
    const message = answer(String(given[':path']).split('/').at(-1) ?? '')
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers(message === undefined ? { 'grpc-status': '12', 'grpc-message': 'unknown service' } : { 'grpc-status': '0' }))
    stream.end(message === undefined ? undefined : joined([Uint8Array.of(0, 0, 0, message.length >>> 8, message.length), message]))
  })
  server.listen(path)
  await once(server, 'listening')
  return () => { for (const one of open) one.destroy(); server.close() }
}

const podsOf = (told: RuntimeAnswer): readonly string[] | string => ('failed' in told ? told.failed : told.map(({ pod }) => pod))
const listed = async ({ runtimes }: Host): Promise<string> => String(podsOf(await runtimes.containers(patient)))

test('of two runtimes kubelet\'s is the one that runs the agent, wherever its socket is', async () => {
  await onHost({ usual: [], k3s: [agent, gone] }, agent, async (host) => {
    assert.is(await listed(host), `${agent},${gone}`)
    assert.is(await host.runtimes.place(patient), host.socket('k3s'))
  })
  await onHost({ usual: [agent], k3s: [gone] }, agent, async (host) => assert.is(await listed(host), agent))
})

test('before anything else was asked, too, the place that is told is kubelet\'s runtime', async () => {
  await onHost({ usual: [], k3s: [agent] }, agent, async ({ runtimes, socket }) => assert.is(await runtimes.place(patient), socket('k3s')))
})

test('a runtime beside it that refuses every question keeps nobody from knowing', async () => {
  await onHost({ usual: 'deaf', k3s: [agent, gone] }, agent, async (host) => {
    assert.is(await listed(host), `${agent},${gone}`)
    assert.is(await host.runtimes.runtimeHealth(patient), 'ok')
  })
})

test('where no runtime runs the agent nothing is known, and each is named with what it said', async () => {
  await onHost({ usual: [], k3s: [gone] }, agent, async (host) => {
    const said = await listed(host)
    for (const name of ['usual', 'k3s']) assert.match(said, `${host.socket(name)}: it does not run this agent`)
    assert.is(await host.runtimes.place(patient), undefined)
  })
  await onHost({ usual: [gone], k3s: 'deaf' }, agent, async (host) => {
    assert.match(await listed(host), /does not run this agent.*k3s\/cri\.sock: List/)
    assert.is(await host.runtimes.place(patient), host.socket('k3s'), 'it may be that one')
  })
})

test('kubelet\'s runtime that answers no more is not made up for by another one', async () => {
  await onHost({ usual: [], k3s: [agent] }, agent, async (host) => {
    await listed(host)
    host.change('k3s', 'deaf')
    assert.match(await listed(host), `${host.socket('k3s')}: `)
    assert.is(await host.runtimes.runtimeHealth(patient), 'ill')
  })
})

test('what is stopped is stopped by the runtime that runs it', async () => {
  await onHost({ usual: [], k3s: [agent, gone] }, agent, async ({ runtimes, stops }) => {
    const told = await runtimes.containers(patient)
    for (const one of 'failed' in told ? [] : told.filter(({ pod }) => pod === gone)) assert.is(await runtimes.stopContainer(one, patient), undefined)
    assert.equal(stops, ['k3s StopContainer'])
  })
})

test('an agent that is no pod takes for running what any runtime runs, and for unknown what one of them does not tell', async () => {
  await onHost({ usual: [], k3s: [gone] }, undefined, async (host) => {
    assert.is(await listed(host), gone)
    host.change('usual', 'deaf')
    assert.match(await listed(host), `${host.socket('usual')}: `)
  })
})

test('whose pod a process is, its mount table tells by the files that kubelet gives each container', () => {
  const cases: [string, string, string | undefined][] = [
    [`/var/lib/kubelet/pods/${agent}/etc-hosts`, '/etc/hosts', agent], [`/pods/${agent}/etc-hosts`, '/etc/hosts', agent],
    [`/data/pods/${agent}/containers/agent/ab12`, '/dev/termination-log', agent],
    [`/var/lib/kubelet/pods/${agent}/etc-hosts`, '/mnt/etc/hosts', undefined], ['/var/lib/docker/containers/ab12/hosts', '/etc/hosts', undefined],
    [`/var/lib/kubelet/pods/${agent}/volumes/x`, '/data', undefined],
  ]
  for (const [root, path, wanted] of cases) assert.is(podOfTable(`22 1 8:1 / / rw - ext4 /dev/sda1 rw\n40 22 8:1 ${root} ${path} rw - ext4 /dev/sda1 rw\n`), wanted, `${root} ${path}`)
  assert.is(podOfTable(''), undefined)
})

test.run()
