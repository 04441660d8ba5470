// A share of the agents in one process. Each is light, and says what a real one says: a handshake and a hello to every replica, a
// beat a second with its state of health, a clean report when it is asked, the answer to a challenge, a witness's word. Some
// fall silent on a word from outside, as machines do that lose their power: their sockets stay, and nothing comes any more.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import process, { argv, exit } from 'node:process'
import { setTimeout as wait } from 'node:timers/promises'
import type { ReplicaWord } from '../../../core/beat.ts'
import { frameOf, readReplicaWord } from '../../../core/frame.ts'
import { machineClock } from '../../../edge/clock.ts'
import { sealOf } from '../../../edge/link-seal.ts'
import type { Link } from '../../../edge/link.ts'
import { tlsDialer } from '../../../edge/tls-link.ts'
import { nextBootId } from './cluster.ts'

export interface Agent {
  readonly node: string
  readonly boot: string
  readonly machine: string
  readonly token: string
}

export type CrowdWord =
  | { readonly do: 'silence' | 'boot'; readonly nodes: readonly string[] }
  | { readonly do: 'count' }

/** Until now, of all links. */
export interface CrowdTold { readonly sent: number; readonly redials: number }

const dialWithin = 30_000
const atOnce = 20
const redialAfter = 500
const slots = 1_000

interface Member extends Agent {
  boot: string
  gate: 'open' | 'shut'
  silent: boolean
  count: number
  links: Link[]
  /** Of each link, given with its welcome. */
  readonly keys: Map<Link, string>
}

if (import.meta.main) {
  const [, , folder = '', authority = '', addresses = '', share = '', shares = ''] = argv
  await run(folder, readFileSync(authority, 'utf8'), addresses.split(','), Number(share), Number(shares))
}

async function run(folder: string, authority: string, addresses: readonly string[], share: number, shares: number): Promise<void> {
  const all = JSON.parse(readFileSync(join(folder, 'agents.json'), 'utf8')) as Agent[] // the cluster's process wrote it
  const members = all.filter((_, index) => index % shares === share).map((agent): Member => ({ ...agent, gate: 'open', silent: false, count: 0, links: [], keys: new Map() }))
  const dialer = tlsDialer({ clock: machineClock, authorities: async () => authority })
  const mute = new Set<string>()
  const wheel: Member[][] = Array.from({ length: slots }, () => [])
  let placed = 0
  let sent = 0
  let redials = 0
  let slot = 0
  const began = performance.now()
  setInterval(() => {
    for (const due = Math.floor(performance.now() - began); slot < due; slot += 1) turn(wheel[slot % slots] ?? [])
  }, 1)
  process.on('message', (word: CrowdWord) => {
    if (word.do === 'count') return void process.send?.({ sent, redials } satisfies CrowdTold)
    for (const node of word.nodes) {
      if (word.do === 'silence') mute.add(node)
      else mute.delete(node)
      const member = members.find((one) => one.node === node)
      if (member === undefined) continue
      if (word.do === 'silence') member.silent = true
      else void boot(member)
    }
  })
  const first = new Map(members.map(({ node, boot: now }) => [node, now]))
  const open = [...members]
  await Promise.all(Array.from({ length: atOnce }, async () => {
    for (let member = open.pop(); member !== undefined; member = open.pop()) {
      await link(member)
      beatOn(member)
    }
  }))
  process.send?.('linked')

  async function link(member: Member): Promise<void> {
    member.links = await Promise.all(addresses.map((address) => dial(member, address)))
  }

  async function boot(member: Member): Promise<void> {
    const { links } = member
    Object.assign(member, { boot: `${nextBootId(member.node)}/4711`, gate: 'shut', count: 0, links: [], silent: false })
    for (const old of links) old.close('the machine lost its power')
    await link(member)
  }

  /** Again and again, as a real agent does, for as long as the boot lasts. */
  async function dial(member: Member, address: string): Promise<Link> {
    const { boot: now } = member
    for (;;) {
      const opened = await dialer.dial(address, dialWithin).catch(() => undefined) // it was too busy; nothing else is on this machine
      if (opened !== undefined && await welcomed(member, opened, address, now)) return opened
      redials += 1
      await wait(redialAfter * (1 + Math.random()))
    }
  }

  function welcomed(member: Member, opened: Link, address: string, now: string): Promise<boolean> {
    return new Promise((resolve) => {
      let met = false
      opened.listen({
        frame(frame) {
          const read = readReplicaWord(frame)
          if (!('word' in read) || member.silent || member.boot !== now) return
          hear(member, opened, read.word)
          if (read.word.say !== 'welcome') return
          met = true
          beat(member, opened)
          resolve(true)
        },
        closed() {
          member.keys.delete(opened)
          resolve(false)
          if (met && member.boot === now && !member.silent) void dial(member, address).then((again) => member.links.splice(member.links.indexOf(opened), 1, again))
        },
      })
      opened.send(frameOf({
        say: 'hello', version: 1, token: member.token, agent: 'benchmark', boot: now, uptime: 3_600_000, machine: member.machine, whisperPort: 7_000, ...(now === first.get(member.node) ? {} : { before: 'cut off' }),
      }))
    })
  }

  function hear(member: Member, opened: Link, word: ReplicaWord): void {
    switch (word.say) {
      case 'welcome':
        member.keys.set(opened, word.key)
        return
      case 'refused':
        return fail(`${member.node} was refused: ${word.reason}`)
      case 'challenge':
        return opened.send(frameOf({ say: 'answer', nonce: word.nonce, boot: member.boot, seal: sealOf(member.keys.get(opened) ?? '', word.nonce, member.boot) }))
      case 'ask':
        return opened.send(frameOf({ say: 'witness', id: word.id, word: mute.has(word.node) ? 'deaf' : 'hears' }))
      case 'check':
        if (word.more !== true) opened.send(frameOf({ say: 'clean', report: { state: 'clean' } }))
        return
      case 'gate':
        member.gate = word.accepted ? 'open' : 'shut'
        return
      case 'permit':
      case 'self-stop':
      case 'revoked':
        return // what follows from them is the agent's own business
    }
  }

  function beat(member: Member, to: Link): void {
    sent += 1
    to.send(frameOf({ say: 'beat', count: member.count, kubelet: 'ok', gate: member.gate, permit: 'off', runtime: 'ok', pressure: { cpu: member.count % 7, memory: 0, io: 1 } }), 'public')
  }

  /** At a phase of its own, a millisecond fine. */
  function beatOn(member: Member): void {
    placed += 1
    wheel[placed * 997 % slots]?.push(member)
  }

  function turn(due: readonly Member[]): void {
    for (const member of due) {
      if (member.silent) continue
      member.count += 1
      for (const to of member.links) beat(member, to)
    }
  }
}

function fail(reason: string): void {
  console.error(reason)
  exit(1)
}
