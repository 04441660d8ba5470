// A link to a replica whose other end does nothing by itself.
import type { AgentWord, PeerWord, ReplicaWord } from '../../core/beat.ts'
import { frameOf, readReplicaWord } from '../../core/frame.ts'
import type { Link } from '../../edge/link.ts'
import type { World } from './beats-world.ts'

export const boot = 'b007-0001/4711'

/** An agent that says only what the test says. */
export interface Puppet {
  readonly link: Link
  readonly heard: ReplicaWord[]
  readonly ended: string[]
  say(word: AgentWord | PeerWord): void
  key(): string
}

export const hello: Extract<AgentWord, { say: 'hello' }> = { say: 'hello', version: 1, token: 'agent node-1 pod-1', agent: 'puppet', boot, uptime: 1_000, machine: 'uuid', whisperPort: 7_000 }

export async function puppet(world: World, address: string, first: AgentWord | PeerWord | 'nothing' = hello, from = 'node-1'): Promise<Puppet> {
  const dialling = world.network.dialer(from).dial(address, 1_000)
  await world.clock.runFor(2)
  const link = await dialling
  const heard: ReplicaWord[] = []
  const ended: string[] = []
  link.listen({
    frame(frame) {
      const read = readReplicaWord(frame)
      if ('word' in read) heard.push(read.word)
    },
    closed: (reason) => ended.push(reason),
  })
  const say = (word: AgentWord | PeerWord) => link.send(frameOf(word))
  if (first !== 'nothing') say(first)
  await world.clock.runFor(20)
  return { link, heard, ended, say, key: () => heard.flatMap((word) => (word.say === 'welcome' ? [word.key] : [])).at(-1) ?? '' }
}

export function refusals(one: Puppet): readonly string[] {
  return one.heard.flatMap((word) => (word.say === 'refused' ? [word.reason] : []))
}
