import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { watchKubelet } from '../../agent/kubelet.ts'
import { virtualClock } from '../../sim/clock.ts'

const test = suite('kubelet')

test('a kubelet that never answers is ill, whatever it answered before', async () => {
  const clock = virtualClock()
  const over = new AbortController()
  let hangs = false
  const kubelet = watchKubelet({ clock, kubeletHealth: () => (hangs ? new Promise(() => undefined) : Promise.resolve('ok')) }, over.signal)
  assert.is(kubelet.word(), 'unknown')
  await clock.runFor(1)
  assert.is(kubelet.word(), 'ok')
  hangs = true
  await clock.runFor(15_000)
  assert.is(kubelet.word(), 'ill')
  over.abort()
})

test.run()
