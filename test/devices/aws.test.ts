// Our `aws` and Debian's fence_aws at moto, which is neither's, and boto3 as the judge of both.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startEc2Endpoint } from './ec2-endpoint.ts'
import { inRack } from './rack.ts'

const test = suite('aws')

test('beside fence_aws: both stop the instance and start it, and no other', () => inRack(async (rack) => {
  const { ours, theirs, instances: [plug, other], state } = await startEc2Endpoint(rack)
  for (const [program, login] of [['aws', ours], ['fence_aws', theirs]] as const) {
    const taken: string[] = []
    for (const [action, exitCode, is] of [['status', 0, 'running'], ['off', 0, 'stopped'], ['off', 0, 'stopped'], ['status', 2, 'stopped'], ['on', 0, 'running']] as const) {
      const answer = await rack.ask(program, action, { ...login, plug })
      assert.is(answer.exitCode, exitCode, `${program} ${action}: ${answer.text}`)
      assert.equal([state(plug), state(other)], [is, 'running'], `${program} ${action}`)
      taken.push(`${action} ${answer.took} ms`)
    }
    console.log(`${program.padEnd(18)} ${taken.join(', ')}`)
  }
}))

test('an unknown instance, a list, a mute endpoint and a dead one: nothing is off, and nothing is stopped', () => inRack(async (rack) => {
  const { ours, instances: [plug, other], process: moto, state } = await startEc2Endpoint(rack)
  const fails = async (over: Readonly<Record<string, string>>, reason: RegExp) => {
    const word = await rack.ask('aws', 'off', { ...ours, plug, login_timeout: '2', shell_timeout: '2', ...over })
    assert.equal([word.state, word.exitCode, word.late], ['failed', 1, false], `${JSON.stringify(over)}: ${word.text}`)
    assert.match(word.reason, reason)
    assert.not.match(word.text, /S3cret!/)
  }
  await fails({ plug: 'i-0123456789abcdef0' }, /^notfound/)
  await fails({ plug: `${plug},${other}` }, /^config/)
  process.kill(moto.pid, 'SIGSTOP')
  await fails({}, /^timeout|^unreachable/)
  process.kill(moto.pid, 'SIGCONT')
  assert.equal([state(plug), state(other)], ['running', 'running'])
  await moto.crash()
  await fails({}, /^unreachable/)
}))

test.run()
