// What holds of each cloud's program at an endpoint that a client of others was driven by, with a real machine behind it.
import * as assert from 'uvu/assert'
import type { CloudFront } from './cloud-front.ts'
import { startMachine, type Machine } from './machine.ts'
import { inRack, secret, until, type Answer, type Parameters, type Rack } from './rack.ts'
import { sideBySide } from './side-by-side.ts'

export interface CloudAtTest {
  readonly program: string
  readonly front: CloudFront
  readonly login: Parameters
  /** As login, and refused by the cloud. */
  readonly wrong: Parameters
  readonly unknown: Parameters
  /** Debian's program at the same endpoint, and how it logs in. */
  readonly others: readonly [string, Parameters]
}

type Test = (name: string, claim: () => Promise<void>) => void
type Start = (rack: Rack, machine: Pick<Machine, 'uuid' | 'feed'>) => Promise<CloudAtTest>

const quick = { login_timeout: '2', shell_timeout: '2', power_timeout: '3' }

export function sameClaims(test: Test, others: string, start: Start): void {
  const withMachine = (work: (cloud: CloudAtTest, ask: (action: 'off' | 'on' | 'status', over?: Parameters) => Promise<Answer>, machine: Machine, rack: Rack) => Promise<void>) => inRack(async (rack) => {
    const machine = await startMachine(rack, 'machine')
    const cloud = await start(rack, machine)
    await work(cloud, (action, over = {}) => rack.ask(cloud.program, action, { ...cloud.login, ...quick, ...over }), machine, rack)
  })

  test(`beside ${others}: both stop the machine and start it`, () => withMachine(async (cloud, _, machine, rack) => {
    const [program, login] = cloud.others
    await sideBySide(rack, machine, { [cloud.program]: cloud.login, [program]: login })
  }))

  test('each way of failing is told apart, and the machine goes on', () => withMachine(async (cloud, ask, machine) => {
    const boot = await machine.beats()
    const fails = async (over: Parameters, reason: RegExp) => {
      const word = await ask('off', over)
      assert.equal([word.state, word.exitCode, word.late], ['failed', 1, false], `${JSON.stringify(over)}: ${word.text}`)
      assert.match(word.reason, reason)
      assert.not.ok(word.text.includes(secret), word.text)
    }
    await fails(cloud.wrong, /^auth/)
    await fails(cloud.unknown, /^notfound/)
    cloud.front.fault = 'forbidden'
    await fails({}, /^privilege/)
    cloud.front.fault = 'ignores'
    await fails({}, /^timeout \(ordered off, and still/)
    cloud.front.fault = 'broken'
    await fails({}, /^busy/)
    assert.is((await ask('status')).state, 'unknown')
    await machine.mustBeatOn(boot)
  }))

  test('a mute cloud, then one that is gone in the middle of an order, then for good: the machine lives, and nothing says off', () => withMachine(async (cloud, ask, machine) => {
    const { front } = cloud
    const boot = await machine.beats()
    front.fault = 'mute'
    const mute = await ask('off')
    assert.equal([mute.state, mute.exitCode, mute.late], ['failed', 1, false], mute.text)
    assert.match(mute.reason, /^timeout|^unreachable/)
    front.fault = 'ignores'
    const [asked, ordered] = [ask('off'), front.ordered()]
    await ordered
    await front.leave()
    const gone = await asked
    assert.equal([gone.state, gone.exitCode], ['failed', 1], gone.text)
    assert.match(gone.reason, /ECONNREFUSED/)
    assert.is((await ask('status')).state, 'unknown')
    assert.match((await ask('off')).reason, /^unreachable/)
    await machine.mustBeatOn(boot)
  }))

  test('slow is waited for; an off that comes late is failed first, and then lands', () => withMachine(async (cloud, ask, machine) => {
    const { front } = cloud
    const boot = await machine.beats()
    front.fault = { slow: 600 }
    assert.is((await ask('status')).state, 'on')
    const due = Promise.withResolvers<void>()
    front.fault = { late: due.promise }
    const failed = await ask('off')
    assert.equal([failed.state, failed.exitCode], ['failed', 1], failed.text)
    await machine.mustBeatOn(boot)
    front.fault = undefined
    due.resolve()
    await until('the late off', async () => (await ask('status')).state === 'off')
    await machine.mustBeDead()
  }))

  test('a name that leads to another machine: off of the wrong one, and where the cloud tells a UUID, it is not that of the one that lives', () => inRack(async (rack) => {
    const [one, other] = [await startMachine(rack, 'one'), await startMachine(rack, 'other')]
    const cloud = await start(rack, other)
    const boot = await one.beats()
    const word = await rack.ask(cloud.program, 'off', cloud.login)
    assert.is(word.state, 'off')
    assert.is.not(word.machine, one.uuid)
    await other.mustBeDead()
    await one.mustBeatOn(boot)
  }))
}

/** A machine that goes on in its old boot when the cloud starts it is not off: what each program says of one. */
export async function saysOf(rack: Rack, { program, login, others: [theirs, theirLogin] }: CloudAtTest): Promise<{ readonly ours: string; readonly theirs: string }> {
  const [own, debians] = [await rack.ask(program, 'status', login), await rack.ask(theirs, 'status', theirLogin)]
  return { ours: own.state, theirs: debians.state }
}

