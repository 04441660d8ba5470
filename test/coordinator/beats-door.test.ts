import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createDoor } from '../../coordinator/beats-door.ts'
import { frameOf, readAgentWord } from '../../core/frame.ts'
import { silentLog } from '../../edge/log.ts'
import { virtualClock } from '../../sim/clock.ts'
import { linkPair } from '../edge/link-pair.ts'

const test = suite('beats door')

test('what is said between the hello and the welcome is not kept: who is not known yet has said nothing', async () => {
  const clock = virtualClock()
  const heard: string[] = []
  const [agent, ours] = linkPair(clock, ['node-1:1', 'replica-a:7443'])
  const door = createDoor({
    host: { clock, chance: () => 0.5, log: silentLog },
    reviews: {
      async review() {
        await clock.wait(100)
        return { caller: { is: 'agent', node: 'node-1', nodeUid: 'u', pod: 'p', podUid: 'pod-1' } }
      },
      forget: () => undefined,
    },
    agent: () => ({
      frame(frame) {
        const read = readAgentWord(frame)
        heard.push('word' in read ? `${read.word.say} ${'count' in read.word ? read.word.count : ''}` : 'garbage')
      },
      closed: () => undefined,
    }),
    replica: () => { throw new Error('it is none') },
  })
  door.accept(ours)
  agent.listen({ frame: () => undefined, closed: () => undefined })
  agent.send(frameOf({ say: 'hello', version: 1, token: 't', agent: 'a', boot: 'b007-0001/4711', uptime: 1_000, machine: 'uuid', whisperPort: 0 }))
  agent.send(frameOf({ say: 'beat', count: 1, kubelet: 'ok' }))
  await clock.runFor(200)
  assert.equal(heard, [])
  agent.send(frameOf({ say: 'beat', count: 2, kubelet: 'ok' }))
  await clock.runFor(10)
  assert.equal(heard, ['beat 2'])
})

test.run()
