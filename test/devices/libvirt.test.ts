// Our `libvirt` and Debian's fence_virsh at one hypervisor, whose machines' processes are the judge of both.
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startHypervisor } from './hypervisor.ts'
import { inRack, pause, until, type Parameters } from './rack.ts'

const test = suite('libvirt')

test('beside fence_virsh: both end the machine and start it, and no other; ours tells its UUID', () => inRack(async (rack) => {
  const { ours, theirs, machines: [plug, other], isOn } = await startHypervisor(rack)
  for (const [program, login] of [['libvirt', ours], ['fence_virsh', theirs]] as const) {
    const taken: string[] = []
    for (const [action, exitCode, on] of [['status', 0, true], ['off', 0, false], ['off', 0, false], ['status', 2, false], ['on', 0, true]] as const) {
      const answer = await rack.ask(program, action, { ...login, plug })
      assert.is(answer.exitCode, exitCode, `${program} ${action}: ${answer.text}`)
      assert.equal([isOn(plug), isOn(other)], [on, true], `${program} ${action}`)
      taken.push(`${action} ${answer.took} ms`)
    }
    console.log(`${program.padEnd(18)} ${taken.join(', ')}`)
  }
  assert.is((await rack.ask('libvirt', 'status', { ...ours, plug: 'node-1' })).machine, plug)
}))

test('each way of failing is told apart, and the machines go on; a mute hypervisor and one that nobody answers for are not off', () => inRack(async (rack) => {
  const { ours, machines: [plug, other], isOn, signal, backEnd } = await startHypervisor(rack)
  const ask = (action: 'status' | 'off', over: Parameters = {}) => rack.ask('libvirt', action, { ...ours, plug, shell_timeout: '3', ...over })
  const fails = async (over: Parameters, reason: RegExp) => {
    const word = await ask('off', over)
    assert.equal([word.state, word.exitCode, word.late], ['failed', 1, false], `${JSON.stringify(over)}: ${word.text}`)
    assert.match(word.reason, reason)
  }
  await fails({ plug: 'node-9' }, /^notfound/)
  await fails({ plug: `${plug},${other}` }, /^config|^notfound/)
  await fails({ uri: 'qemu+unix:///session?socket=/nonexistent' }, /^unreachable/)
  signal('SIGSTOP')
  await fails({}, /^timeout|^unreachable|^device/)
  const slow = ask('status', { shell_timeout: '20' })
  await pause(700)
  signal('SIGCONT')
  assert.is((await slow).state, 'on')
  await backEnd.vanish()
  await fails({}, /^unreachable/)
  assert.is((await ask('status')).state, 'unknown')
  await backEnd.open()
  await until('the hypervisor to be back', async () => (await ask('status')).state === 'on')
  assert.equal([isOn(plug), isOn(other)], [true, true])
}))

test('a name that leads to another machine: off of the wrong one, and its UUID is not that of the one that lives', () => inRack(async (rack) => {
  const { ours, machines: [meant, other], isOn } = await startHypervisor(rack)
  const word = await rack.ask('libvirt', 'off', { ...ours, plug: 'node-2' })
  assert.equal([word.state, word.machine], ['off', other])
  assert.equal([isOn(meant), isOn(other)], [true, false])
}))

test.run()
