// A disk that two nodes share is closed to one of them by a pod on the other: the fence agent `job`, a Job of it, and the script of
// deploy/examples, which reserves the disk by SCSI. The judges are the disk, which takes one node's blocks and not the other's, and the
// node that was cut off, which goes on beating.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { inPods } from '../fence-agents/pods.ts'
import { inRack, pause } from './rack.ts'
import { disk, startSharedDisk, type DiskNode } from './shared-disk.ts'

const test = suite('reservation')
const [one, two] = ['0x1a', '0x1b'] as const

/** A pod that runs the script on this node. */
const podOn = (node: DiskNode) => async ({ HOLDFAST_ACTION = '', HOLDFAST_PLUG = '' }: Readonly<Record<string, string>>) => {
  const { code, output } = await node.reservation({ HOLDFAST_ACTION, HOLDFAST_PLUG })
  return { exitCode: code, message: output }
}

test('a job on the node that is left closes the disk to the other: its blocks are refused, and only its', () => inRack(async (rack) => {
  const [fenced, left] = await startSharedDisk(rack, [one, two])
  if (fenced === undefined || left === undefined) throw new Error('there are two')
  const boot = await fenced.machine.beats()
  await inPods(podOn(left), async ({ cluster, at }) => {
    const ask = (action: 'off' | 'on' | 'status') => cluster.place.ask('job', action, { ...at, plug: one }, 120_000)
    assert.is((await ask('status')).state, 'unknown', 'nobody has registered: whoever likes may write')
    for (const node of [fenced, left]) assert.match((await node.reservation({}, 'register')).output, /"state":"on"/)
    assert.equal([(await ask('status')).state, await fenced.writes(), await left.writes()], ['on', true, true])
    fenced.writeOn()
    await pause(2_000)
    const word = await ask('off')
    assert.is(word.state, 'off', word.reason)
    const last = await left.read(one)
    assert.ok(last > 1, `it had written ${last}`)
    console.log(`job, off, read back: ${word.evidence ?? ''}`)
    assert.equal([(await ask('status')).state, (await ask('off')).state], ['off', 'off'])
    assert.equal([await fenced.writes(), await left.writes()], [false, true])
    assert.match((await fenced.machine.run('dmesg')).output, /sd .*: reservation conflict/)
    await pause(3_000)
    assert.is(await left.read(one), last, 'what the node goes on writing never lands')
    await fenced.machine.mustBeatOn(boot)

    // It cannot come back in this boot, by the script or by the tool.
    assert.match((await fenced.reservation({}, 'register')).output, /once in a boot/)
    assert.is((await ask('on')).state, 'failed')
    assert.match((await fenced.machine.run(`sg_persist --out --preempt-abort --param-rk=${one} --param-sark=${two} --prout-type=5 ${disk}`)).output, /[Cc]onflict/)
    assert.equal([(await ask('status')).state, await left.writes()], ['off', true])

    // Its next boot registers anew, and it writes again.
    for (const on of [false, true]) await fenced.machine.feed.switchTo(on)
    assert.is.not(await fenced.begins(), boot)
    assert.is(await fenced.writes(), false, 'not before it has registered')
    assert.match((await fenced.reservation({}, 'register')).output, /"state":"on"/)
    assert.equal([(await ask('on')).state, await fenced.writes(), await left.writes()], ['on', true, true])
  })
}))

test.run()
